// A compaction: before and after side by side, where each line of the notes comes from, what it is worth, undo and redo; and a
// preview of others, which changes nothing.
import { useCallback, useMemo, useState } from "preact/hooks";
import { api, ApiFailure, id as escaped } from "../api";
import { useApi } from "../data";
import { count, dollars, line, nameOf, percent, plural, rounded, sentence, when } from "../format";
import { VirtualList } from "../list";
import { Markdown } from "../markdown";
import { MessageView } from "../message";
import { glimpse } from "../parts";
import { go, Link } from "../router";
import { lineKey, useSources } from "../sources";
import type { CompactionPage, CompactResult, Item, Json, JsonObject, Payback, SessionPage, StateEntry, SummaryPage, TreeNode } from "../types";
import { Confirm, Failure, Heading, Loading, Notice } from "../ui";
import { turningWords } from "./conversation";

type Fate = "kept" | "rewritten" | "summarised";

const FATES: Record<Fate, string> = {
  kept: "as it was",
  rewritten: "shortened",
  summarised: "in the summary",
};

function role(message: JsonObject | undefined): string {
  const told = message?.["role"];
  if (typeof told === "string") return told;
  const kind = String(message?.["type"] ?? "");
  return kind.endsWith("_output") ? "tool" : "assistant";
}

function key(item: Item): string | null {
  return item.seq === undefined ? null : `${item.session ?? ""}/${item.seq}`;
}

/** One item of a view: a line that opens. */
function ItemRow({ item, fate, text, to }: { item: Item; fate: string; text: string; to?: string }) {
  const [open, setOpen] = useState(false);
  return (
    <div class={`item ${fate}`}>
      <button type="button" class="fold" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span class="twist" aria-hidden="true">
          {open ? "▾" : "▸"}
        </span>
        <span class="seq">{item.seq === undefined ? "" : `#${item.seq}`}</span>
        <span class={`who ${role(item.message)}`}>{item.kind === "summary" ? "summary" : item.kind === "synthetic" ? "added" : role(item.message)}</span>
        <span class="glimpse">{text}</span>
        <span class="size">{rounded(item.tokens)}</span>
      </button>
      {open && item.message ? (
        <MessageView message={item.message} role={role(item.message)} seq={item.seq} tokens={item.tokens} to={to} note={(item.renditions ?? []).join(", ").replaceAll("_", " ")} />
      ) : null}
    </div>
  );
}

function Facts({ facts }: { facts: Json }) {
  if (facts === null || typeof facts !== "object" || Array.isArray(facts)) return null;
  const figure = (name: string) => (typeof facts[name] === "number" ? (facts[name] as number) : 0);
  const attached = Array.isArray(facts["attached_facts"]) ? facts["attached_facts"] : [];
  const removed = Array.isArray(facts["removed_strings"]) ? facts["removed_strings"] : [];
  return (
    <section aria-label="Facts">
      <h2>Facts</h2>
      <p>
        {plural(figure("important"), "exact string", "exact strings")} of the compacted part matter: {count(figure("kept"))} are in the notes, {count(figure("attached"))} were added by the check,{" "}
        {count(figure("left_out"))} did not fit.
        {figure("removed") > 0 ? ` ${plural(figure("removed"), "string was", "strings were")} removed because the compacted part never held ${figure("removed") === 1 ? "it" : "them"}.` : ""}
        {figure("redacted") > 0 ? ` ${plural(figure("redacted"), "secret was", "secrets were")} masked.` : ""}
      </p>
      {attached.length > 0 ? (
        <details>
          <summary>Attached ({count(attached.length)})</summary>
          <ul class="tags">
            {attached.map((fact, n) => {
              const told = fact !== null && typeof fact === "object" && !Array.isArray(fact) ? fact : {};
              return (
                <li key={n}>
                  <code>{line(String(told["text"] ?? ""), 160)}</code> <span class="soft">{line(String(told["kind"] ?? ""), 30)}</span>
                </li>
              );
            })}
          </ul>
        </details>
      ) : null}
      {removed.length > 0 ? (
        <details>
          <summary>Removed ({count(removed.length)})</summary>
          <ul class="tags">
            {removed.map((one, n) => (
              <li key={n}>
                <code>{line(String(one), 160)}</code>
              </li>
            ))}
          </ul>
        </details>
      ) : null}
    </section>
  );
}

/** The arithmetic of a compaction: in money, where the price of a prompt token is known. */
export function PaybackTable({ payback, price, notes }: { payback: Payback; price: number | null; notes?: number | null }) {
  const money = (tokens: number) => (price === null ? "" : dollars(Math.round((tokens * price) / 1e6)));
  const sized = (tokens: number): [string, string] => [`${count(tokens)} tokens`, ""];
  const worth = (tokens: number): [string, string] => [`${count(tokens)} tokens`, money(tokens)];
  const perCall = payback.calls > 0 ? Math.round(payback.saved_tokens / payback.calls) : 0;
  const rows: [string, [string, string]][] = [
    ["The prompt before", sized(payback.before_tokens)],
    ["The prompt after", sized(payback.after_tokens)],
    ["Freed", sized(payback.freed_tokens)],
    ["Written to the cache anew", sized(payback.rewritten_tokens)],
    ["Calls until the next compaction", [count(payback.calls), ""]],
    ["Cost, in uncached prompt tokens", worth(payback.cost_tokens)],
    ["Saved by each call, on average", worth(perCall)],
    ["Saved until the next compaction", worth(payback.saved_tokens)],
  ];
  if (notes !== null && notes !== undefined) rows.push(["Paid for notes by a model, part of the cost", ["", dollars(notes)]]);
  return (
    <table class="sum">
      <tbody>
        {rows.map(([name, [tokens, amount]]) => (
          <tr key={name}>
            <th>{name}</th>
            <td class="num">{tokens}</td>
            {price === null ? null : <td class="num">{amount}</td>}
          </tr>
        ))}
      </tbody>
      <tfoot>
        <tr>
          <th>It {payback.pays ? "pays for itself" : "does not pay for itself"}</th>
          <td class="num">saves {percent(payback.saved_tokens, payback.cost_tokens)} of its cost</td>
          {price === null ? null : <td class="num">{money(payback.saved_tokens - payback.cost_tokens)}</td>}
        </tr>
      </tfoot>
    </table>
  );
}

function Tree({ node, session }: { node: TreeNode; session: string }) {
  const [open, setOpen] = useState(false);
  const first = Math.min(...node.sources.map((run) => run.first_seq));
  const end = Math.max(...node.sources.map((run) => run.end_seq));
  const level = Number(node.node["level"] ?? 0);
  return (
    <li>
      <button type="button" class="fold" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span class="twist" aria-hidden="true">
          {open ? "▾" : "▸"}
        </span>
        <b>n{node.id}</b> {level === 0 ? "leaf" : `level ${level}`}, messages {count(first)} to {count(Math.max(first, end - 1))}{" "}
        <span class="glimpse">{line(String(node.node["expand_for"] ?? ""), 120)}</span>
      </button>
      {open ? <TreeNodeBody id={node.id} session={session} /> : null}
    </li>
  );
}

function TreeNodeBody({ id, session }: { id: number; session: string }) {
  const { data, failure, reload } = useApi<SummaryPage>(`/api/summaries/${id}`);
  if (failure) return <Failure failure={failure} what={`Node n${id}`} retry={reload} />;
  if (!data) return <Loading what={`node n${id}`} />;
  const first = data.summary.sources[0]?.first_seq;
  return (
    <div class="branch">
      <Markdown text={data.summary.document} />
      {first === undefined ? null : <Link to={`/conversations/${escaped(session)}?at=${first}`}>Its first message in the transcript</Link>}
      {data.children.length > 0 ? (
        <ul class="tree">
          {data.children.map((child) => (
            <Tree key={child.id} node={child} session={session} />
          ))}
        </ul>
      ) : null}
    </div>
  );
}

const NO_ITEMS: Item[] = [];

/** What the model that wrote the notes was paid, in millionths of a dollar. */
function notesCost(figures: Json | undefined): number | null {
  const by = figures !== null && typeof figures === "object" && !Array.isArray(figures) ? figures["written_by"] : undefined;
  const paid = by !== null && typeof by === "object" && !Array.isArray(by) ? by?.["cost_micro_usd"] : undefined;
  return typeof paid === "number" ? paid : null;
}

export function CompactionView({ id }: { id: string }) {
  const { data, failure, loading, reload } = useApi<CompactionPage>(`/api/sessions/${escaped(id)}/compaction`);
  const [told, setTold] = useState<{ kind: "done" | "warning"; words: string } | null>(null);
  const [busy, setBusy] = useState(false);
  const sides = useMemo(() => {
    if (!data) return null;
    const after = new Map<string, Item>();
    for (const item of data.after) {
      const place = key(item);
      if (place !== null) after.set(place, item);
    }
    const before = new Map<string, Item>();
    const fates: Fate[] = data.before.map((item) => {
      const place = key(item);
      if (place !== null) before.set(place, item);
      const now = place === null ? undefined : after.get(place);
      if (!now) return "summarised";
      // A rendition that was sent before already stays as it was.
      const same = now.kind === "verbatim" || JSON.stringify(now.message) === JSON.stringify(item.message);
      return same ? "kept" : "rewritten";
    });
    const shown = data.after.map((item) => (item.message ? item : { ...item, message: before.get(key(item) ?? "")?.message }));
    const compacted = data.before.filter((_, n) => fates[n] === "summarised");
    const sum = (fate: Fate) => data.before.reduce((all, item, n) => (fates[n] === fate ? all + item.tokens : all), 0);
    return { fates, shown, compacted, tokens: { kept: sum("kept"), rewritten: sum("rewritten"), summarised: sum("summarised") } };
  }, [data]);
  const state = useApi<{ entries: StateEntry[] }>(data?.summary ? `/api/sessions/${escaped(id)}/state` : null);
  const sources = useSources(data?.summary?.document ?? null, sides?.compacted ?? NO_ITEMS, state.data?.entries ?? null);
  const mark = useCallback(
    (text: string) => {
      const seqs = sources.get(lineKey(text)) ?? [];
      if (seqs.length === 0) return null;
      return (
        <span class="sources">
          {seqs.map((seq) => (
            <Link key={seq} to={`/conversations/${escaped(id)}?at=${seq}`} title="A compacted message this line comes from">
              #{seq}
            </Link>
          ))}
        </span>
      );
    },
    [sources, id],
  );
  if (failure) {
    return (
      <>
        <Heading title="Compaction">Compaction</Heading>
        <Failure failure={failure} what="The compaction" retry={reload} />
      </>
    );
  }
  if (!data || !sides) return loading ? <Loading what="the compaction" /> : null;
  const { turning, summary } = data;
  const before = data.before.reduce((all, item) => all + item.tokens, 0);
  const after = data.after.reduce((all, item) => all + item.tokens, 0);
  const figures = summary?.figures;
  const payback = figures !== null && typeof figures === "object" && !Array.isArray(figures) ? (figures?.["payback"] as unknown as Payback | undefined) : undefined;
  const step = async (what: "undo" | "redo") => {
    setBusy(true);
    setTold(null);
    try {
      const result = await api<{ session: string }>(`/api/sessions/${escaped(id)}/${what}`, { method: "POST" });
      go(`/compactions/${escaped(result.session)}`);
    } catch (error) {
      setTold({ kind: "warning", words: error instanceof ApiFailure ? error.message : String(error) });
    } finally {
      setBusy(false);
    }
  };
  /** The summary of a client that compacted by itself: a message that nobody was sent before. */
  const isOwnSummary = (item: Item) => item.kind === "verbatim" && (item.seq ?? 0) >= turning.at_seq;
  const note = (name: string) => (figures !== null && typeof figures === "object" && !Array.isArray(figures) ? figures[name] : undefined);
  return (
    <>
      <Heading title={turningWords(turning)}>{turningWords(turning)}</Heading>
      <p class="soft">
        <Link to={`/conversations/${escaped(data.session.id)}?at=${Math.max(0, turning.at_seq - 1)}`}>{line(data.session.title) || data.session.id}</Link> · {when(turning.at_ms)} · before message {count(turning.at_seq)}
        {turning.author ? ` · written by ${turning.author === "rules" ? "rules" : line(turning.author, 60)}` : ""}
      </p>
      <dl class="figures">
        <div class="figure">
          <dt>Messages sent, before</dt>
          <dd>
            {count(data.before.length)} <small>{rounded(before)} tokens</small>
          </dd>
        </div>
        <div class="figure">
          <dt>After</dt>
          <dd>
            {count(data.after.length)} <small>{rounded(after)} tokens</small>
          </dd>
        </div>
        <div class="figure">
          <dt>Stayed as they were</dt>
          <dd>
            {count(sides.fates.filter((fate) => fate === "kept").length)} <small>{rounded(sides.tokens.kept)} tokens</small>
          </dd>
        </div>
        <div class="figure">
          <dt>Shortened</dt>
          <dd>
            {count(sides.fates.filter((fate) => fate === "rewritten").length)} <small>{rounded(sides.tokens.rewritten)} tokens</small>
          </dd>
        </div>
        <div class="figure">
          <dt>In the summary</dt>
          <dd>
            {count(sides.compacted.length)} <small>{rounded(sides.tokens.summarised)} tokens</small>
          </dd>
        </div>
        {typeof note("threshold_tokens") === "number" ? (
          <div class="figure">
            <dt>Threshold</dt>
            <dd>
              {rounded(note("threshold_tokens") as number)} <small>{typeof note("window_tokens") === "number" ? `of ${rounded(note("window_tokens") as number)}` : ""}</small>
            </dd>
          </div>
        ) : null}
      </dl>
      <div class="actions">
        <button type="button" onClick={() => void step("undo")} disabled={busy}>
          Undo
        </button>
        <button type="button" onClick={() => void step("redo")} disabled={busy}>
          Redo
        </button>
        <Link to={`/try/${escaped(id)}`} class="button">
          Try another
        </Link>
        {told ? <Notice kind={told.kind}>{told.words}</Notice> : null}
      </div>
      <div class="sides">
        <section aria-label="Before">
          <h2>Before</h2>
          <VirtualList
            count={data.before.length}
            estimate={() => 34}
            label="Messages before the compaction"
            render={(row) => {
              const item = data.before[row];
              const fate = sides.fates[row] ?? "kept";
              return item ? (
                <ItemRow
                  item={item}
                  fate={fate}
                  text={`${FATES[fate]} · ${item.message ? glimpse(item.message, 120) : ""}`}
                  to={item.seq === undefined ? undefined : `/conversations/${escaped(data.session.id)}?at=${item.seq}`}
                />
              ) : (
                <p />
              );
            }}
          />
        </section>
        <section aria-label="After">
          <h2>After</h2>
          <VirtualList
            count={sides.shown.length}
            estimate={() => 34}
            label="Messages after the compaction"
            render={(row) => {
              const item = sides.shown[row];
              return item ? (
                <ItemRow
                  item={isOwnSummary(item) ? { ...item, kind: "summary" } : item}
                  fate={isOwnSummary(item) ? "summary" : item.kind === "verbatim" ? "kept" : item.kind === "rendition" ? "rewritten" : item.kind}
                  text={item.message ? glimpse(item.message, 140) : ""}
                  to={item.seq === undefined ? undefined : `/conversations/${escaped(data.session.id)}?at=${item.seq}`}
                />
              ) : (
                <p />
              );
            }}
          />
        </section>
      </div>
      {summary ? (
        <>
          <section class="notes" aria-label="Notes">
            <h2>Notes</h2>
            <p class="soft">The numbers behind a line are the compacted messages it comes from: those that the state of the work names, else those that hold its exact strings, else those that share most of its words.</p>
            <Markdown text={summary.document} mark={mark} />
          </section>
          <Facts facts={summary.facts} />
          {payback && typeof payback.cost_tokens === "number" ? (
            <section aria-label="What it is worth">
              <h2>What it is worth</h2>
              <PaybackTable payback={payback} price={data.input_micro_usd_per_million} notes={notesCost(figures)} />
            </section>
          ) : null}
        </>
      ) : (
        <p class="state empty">
          {turning.kind === "compression"
            ? "The client compacted by itself. Its summary is the first message of the view after; the record has no notes of its own for this step."
            : "The record has no notes of this step: it went back or forward to a view that was there."}
        </p>
      )}
      {data.nodes.length > 0 ? (
        <section aria-label="Tree">
          <h2>Tree</h2>
          <ul class="tree">
            {data.nodes.map((node) => (
              <Tree key={node.id} node={node} session={data.session.id} />
            ))}
          </ul>
        </section>
      ) : null}
    </>
  );
}

type Wish = { focus: string; keep: string; engine: string; threshold: string };
type Attempt = Wish & { key: number; result: CompactResult };

function wishWords({ focus, keep, engine, threshold }: Wish): string {
  return [
    focus === "" ? "No focus" : `Focus: ${line(focus, 60)}`,
    keep === "" ? "tail by size" : plural(Number(keep), "exchange kept", "exchanges kept"),
    ...(engine === "" ? [] : [`engine ${engine}`]),
    ...(threshold === "" ? [] : [`threshold ${count(Number(threshold))}`]),
  ].join("; ");
}

/** Previews of compactions, compared. Nothing is changed and no model is asked. */
export function TryPage({ id }: { id: string }) {
  const { data, failure, loading, reload } = useApi<SessionPage>(`/api/sessions/${escaped(id)}`);
  const [focus, setFocus] = useState("");
  const [keep, setKeep] = useState("");
  const [engine, setEngine] = useState("");
  const [threshold, setThreshold] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const [attempts, setAttempts] = useState<Attempt[]>([]);
  const [chosen, setChosen] = useState<Attempt | null>(null);
  if (!data && failure) {
    return (
      <>
        <Heading title="Try a compaction">Try a compaction</Heading>
        <Failure failure={failure} what="The conversation" retry={reload} />
      </>
    );
  }
  if (!data) return loading ? <Loading what="the conversation" /> : null;
  const newest = data.chain[data.chain.length - 1] ?? data.session;
  const body = (wish: Wish, preview: boolean) => ({
    focus: wish.focus === "" ? null : wish.focus,
    keep_exchanges: wish.keep === "" ? null : Number(wish.keep),
    engine: wish.engine === "" ? null : wish.engine,
    threshold_tokens: wish.threshold === "" ? null : Number(wish.threshold),
    preview,
  });
  const run = async () => {
    setBusy(true);
    setProblem(null);
    try {
      const wish = { focus, keep, engine, threshold };
      const result = await api<CompactResult>(`/api/sessions/${escaped(newest.id)}/compact`, { method: "POST", body: body(wish, true) });
      setAttempts((old) => [{ ...wish, key: Date.now(), result }, ...old].slice(0, 6));
    } catch (error) {
      setProblem(error instanceof ApiFailure ? error.message : String(error));
    } finally {
      setBusy(false);
    }
  };
  const carryOut = async (attempt: Attempt) => {
    setBusy(true);
    setProblem(null);
    try {
      const result = await api<CompactResult>(`/api/sessions/${escaped(newest.id)}/compact`, { method: "POST", body: body(attempt, false) });
      if (result.outcome === "completed") go(`/compactions/${escaped(result.session)}`);
      else setProblem(sentence(result.detail ?? result.outcome));
    } catch (error) {
      setProblem(error instanceof ApiFailure ? error.message : String(error));
    } finally {
      setBusy(false);
      setChosen(null);
    }
  };
  return (
    <>
      <Heading title="Try a compaction">Try a compaction</Heading>
      <p class="soft">
        <Link to={`/conversations/${escaped(newest.id)}`}>{nameOf(newest.title, data.first_words, newest.id)}</Link> · A preview is made by rules, asks no model and changes nothing.
      </p>
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <label class="field wide">
          What most of the summary should be about
          <input value={focus} maxLength={2000} placeholder="anything" onInput={(event) => setFocus(event.currentTarget.value)} />
        </label>
        <label class="field">
          Newest exchanges to keep as they are
          <input value={keep} inputMode="numeric" pattern="[1-9][0-9]{0,4}" placeholder="by size" onInput={(event) => setKeep(event.currentTarget.value)} />
        </label>
        <label class="field">
          Engine
          <select value={engine} onChange={(event) => setEngine(event.currentTarget.value)}>
            <option value="">Built in, by rules</option>
            <option value="lcm">lcm, a tree of summaries</option>
          </select>
        </label>
        <label class="field">
          Threshold in tokens
          <input value={threshold} size={9} inputMode="numeric" pattern="[1-9][0-9]{0,8}" placeholder="as it is" onInput={(event) => setThreshold(event.currentTarget.value)} />
        </label>
        <button type="submit" class="primary" disabled={busy}>
          {busy ? "Working…" : "Preview"}
        </button>
      </form>
      {problem ? <Notice>{problem}</Notice> : null}
      {attempts.length === 0 ? (
        <p class="state empty">Previews appear here, side by side.</p>
      ) : (
        <div class="attempts">
          {attempts.map((attempt) => {
            const { result } = attempt;
            const report = result.report;
            return (
              <section key={attempt.key} class="attempt" aria-label="Preview">
                <h2>
                  {wishWords(attempt)}
                </h2>
                {result.outcome === "completed" && report ? (
                  <>
                    <table class="sum">
                      <tbody>
                        <tr>
                          <th>Tokens</th>
                          <td class="num">
                            {count(report.tokens.before)} → {count(report.tokens.after)} ({percent(report.tokens.after, report.tokens.before)})
                          </td>
                        </tr>
                        <tr>
                          <th>Messages</th>
                          <td class="num">
                            {count(report.messages.before)} → {count(report.messages.after)}
                          </td>
                        </tr>
                        <tr>
                          <th>Summary</th>
                          <td class="num">{count(report.summary_tokens)} tokens</td>
                        </tr>
                        <tr>
                          <th>Facts</th>
                          <td class="num">
                            {count(report.facts_kept)} of {count(report.facts_important)} in the notes, {count(report.facts_attached)} attached
                          </td>
                        </tr>
                      </tbody>
                    </table>
                    {report.payback ? (
                      <PaybackTable payback={report.payback} price={report.cost_micro_usd && report.payback.cost_tokens > 0 ? (report.cost_micro_usd * 1e6) / report.payback.cost_tokens : null} />
                    ) : null}
                    {report.warnings.map((warning) => (
                      <Notice key={warning}>{warning}</Notice>
                    ))}
                    {result.summary ? (
                      <details>
                        <summary>Notes</summary>
                        <Markdown text={result.summary} />
                      </details>
                    ) : null}
                    {attempt.engine === "" && attempt.threshold === "" ? (
                      <button type="button" onClick={() => setChosen(attempt)} disabled={busy}>
                        Compact like this…
                      </button>
                    ) : (
                      <p class="soft">
                        For good: the settings <code>context.engine</code> and <code>compression.threshold_tokens</code>.
                      </p>
                    )}
                  </>
                ) : (
                  <p>{sentence(result.detail ?? result.outcome)}</p>
                )}
              </section>
            );
          })}
        </div>
      )}
      {chosen ? (
        <Confirm title="Compact like this?" action="Compact" busy={busy} onYes={() => void carryOut(chosen)} onNo={() => setChosen(null)}>
          <p>The summary may be written by a model, as the settings say; the preview was made by rules. It can be undone.</p>
        </Confirm>
      ) : null}
    </>
  );
}
