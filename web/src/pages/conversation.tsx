// One conversation: the whole transcript, what each call sent, what it cost, and what can be done about it.
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, ApiFailure, id as escaped, query } from "../api";
import { Plot, Tip, tokensUnit, Downloads } from "../chart";
import { useApi } from "../data";
import { among, cost, count, dollars, duration, line, nameOf, percent, plural, rounded, span, when } from "../format";
import { type ListHandle, VirtualList } from "../list";
import { useLiveReload } from "../live";
import { MessageView } from "../message";
import { ofOwner } from "../owner";
import { go, Link, usePlace, withParams } from "../router";
import type { Call, CallsPage, CompactResult, Message, SessionPage, Transcript, Turning } from "../types";
import { Confirm, Failure, Heading, KINDS, Legend, Loading, Notice, prompt, useNarrow } from "../ui";

const PAGE = 100;
/** Points that a plot shows at most; a long conversation has many more calls than a window has pixels. */
const POINTS = 600;
/** How often the page looks whether the conversation is still there. */
const LOOK_AGAIN_MS = 10_000;
/** Pages of messages that are kept; others are loaded again when they are scrolled to. */
const KEPT_PAGES = 60;

/** Where the calls of a session come from, as many as a plot shows. `path` is that of the session. */
export function callsPath(path: string): string {
  return `${path}/calls${query({ points: POINTS })}`;
}

/** All calls of a conversation, for a table. */
async function allCalls(page: CallsPage): Promise<Call[]> {
  if (page.calls.length === page.total_calls) return page.calls;
  return (await api<CallsPage>(`/api/sessions/${escaped(page.session.id)}/calls`)).calls;
}

export function turningWords(turning: Turning): string {
  const sizes = turning.tokens_before !== null && turning.tokens_after !== null ? `, ${rounded(turning.tokens_before)} to ${rounded(turning.tokens_after)} tokens` : "";
  switch (turning.kind) {
    case "compression":
      return `Compacted${sizes}`;
    case "undo":
      return "Compaction undone";
    case "redo":
      return "Compaction redone";
    case "branch":
      return "A branch begins";
    default:
      return `Another session goes on (${line(turning.kind, 40)})`;
  }
}

/** Messages of a conversation, loaded a page at a time as they come into sight. */
function useMessages(session: string, revision: number) {
  const pages = useRef(new Map<number, Message[] | "loading" | ApiFailure>());
  const [, setTurn] = useState(0);
  const before = useRef(session);
  if (before.current !== session) {
    before.current = session;
    pages.current = new Map();
  }
  const redraw = useCallback(() => setTurn((old) => old + 1), []);
  const load = useCallback(
    (page: number) => {
      const map = pages.current;
      if (map.has(page)) return;
      map.set(page, "loading");
      const path = `/api/sessions/${escaped(session)}/transcript${query({ from_seq: page * PAGE || null, limit: PAGE, messages_only: true })}`;
      api<Transcript>(path).then(
        (answer) => {
          map.delete(page);
          map.set(page, answer.messages.filter((message) => message.seq < (page + 1) * PAGE));
          if (map.size > KEPT_PAGES) {
            const far = [...map.keys()].filter((key) => Math.abs(key - page) > KEPT_PAGES / 3);
            const oldest = far[0];
            if (oldest !== undefined) map.delete(oldest);
          }
          redraw();
        },
        (error: unknown) => {
          map.set(page, error instanceof ApiFailure ? error : new ApiFailure(0, "internal", String(error)));
          redraw();
        },
      );
    },
    [session, redraw],
  );
  // The newest page grows while the conversation goes on; pages that failed are tried again.
  useEffect(() => {
    for (const [page, held] of pages.current) {
      if (held instanceof ApiFailure || (Array.isArray(held) && held.length < PAGE)) pages.current.delete(page);
    }
    redraw();
  }, [revision, redraw]);
  return { pages: pages.current, load, redraw };
}

function estimated(): number {
  return 132;
}

function TranscriptPane({ page, at, revision }: { page: SessionPage; at: number | null; revision: number }) {
  const session = page.session;
  const total = session.next_seq;
  const { pages, load } = useMessages(session.id, revision);
  const heads = useApi<Transcript>(`/api/sessions/${escaped(session.id)}/transcript?limit=1`);
  const turnings = useMemo(() => {
    const map = new Map<number, Turning[]>();
    for (const turning of heads.data?.turnings ?? []) {
      const place = Math.min(turning.at_seq, Math.max(0, total - 1));
      map.set(place, [...(map.get(place) ?? []), turning]);
    }
    return map;
  }, [heads.data, total]);
  const handle = useRef<ListHandle | null>(null);
  const ask = useCallback(
    (first: number, last: number) => {
      for (let one = Math.floor(first / PAGE); one <= Math.floor(Math.max(first, last - 1) / PAGE); one += 1) load(one);
    },
    [load],
  );
  const [range, setRange] = useState<[number, number]>([at ?? 0, (at ?? 0) + 12]);
  const seen = useCallback(
    (first: number, last: number) => {
      setRange([first, last]);
      ask(first, last);
    },
    [ask],
  );
  useEffect(() => ask(range[0], range[1]), [ask, range[0], range[1], revision]);
  const render = (row: number) => {
    const held = pages.get(Math.floor(row / PAGE));
    const message = Array.isArray(held) ? held.find((one) => one.seq === row) : undefined;
    const marks = turnings.get(row) ?? [];
    return (
      <div class={`entry ${row === at ? "meant" : ""}`}>
        {marks.map((turning) => (
          <p class="turning" key={turning.to}>
            {turning.kind === "branch" ? (
              turningWords(turning)
            ) : (
              <Link to={`/compactions/${escaped(turning.to)}`}>{turningWords(turning)}</Link>
            )}{" "}
            <span class="soft">{when(turning.at_ms)}</span>
          </p>
        ))}
        {message ? (
          <MessageView
            message={message.message}
            role={message.role}
            seq={message.seq}
            at={message.at_ms}
            tokens={message.tokens}
            tools={message.tools}
            to={`/conversations/${escaped(session.id)}?at=${message.seq}`}
            note={message.machine_written ? "written by a program" : undefined}
          />
        ) : held instanceof ApiFailure ? (
          <p class="placeholder bad">
            {held.status === 404 ? "The conversation is not in the record any more." : held.message}{" "}
            <button
              type="button"
              class="small"
              onClick={() => {
                pages.delete(Math.floor(row / PAGE));
                ask(row, row + 1);
              }}
            >
              Try again
            </button>
          </p>
        ) : Array.isArray(held) ? (
          <p class="placeholder">Message {row} is not in the record.</p>
        ) : (
          <p class="placeholder">Message {row}…</p>
        )}
      </div>
    );
  };
  if (total === 0) return <p class="state empty">Nothing was said yet.</p>;
  return (
    <section class="transcript" aria-label="Transcript">
      <div class="bar">
        <span class="soft" aria-live="off">
          {count(Math.min(range[0] + 1, total))}–{count(Math.min(range[1], total))} of {plural(total, "message", "messages")}
        </span>
        <form
          class="jump"
          onSubmit={(event) => {
            event.preventDefault();
            const field = new FormData(event.currentTarget).get("seq");
            const seq = Math.max(0, Math.min(total - 1, Number(field)));
            if (Number.isFinite(seq)) go(`/conversations/${escaped(session.id)}?at=${seq}`);
          }}
        >
          <label class="field inline">
            Go to
            <input name="seq" inputMode="numeric" pattern="[0-9]*" size={7} placeholder="number" />
          </label>
        </form>
        <button type="button" class="small" onClick={() => handle.current?.show(0)}>
          First
        </button>
        <button type="button" class="small" onClick={() => handle.current?.show(total - 1)}>
          Newest
        </button>
      </div>
      <VirtualList count={total} estimate={estimated} render={render} onRange={seen} label="Messages" start={at ?? undefined} handle={handle} />
    </section>
  );
}

/** A line that is further above the largest prompt than this is left out of the plot. */
const MOST_ABOVE = 2.5;

const PARTS = KINDS.map(({ key, name }) => ({ key, name }));
const COSTS = [
  { key: "cache_read", name: "Read from cache" },
  { key: "cache_write", name: "Written to cache" },
  { key: "input", name: "Uncached" },
  { key: "output", name: "Output" },
];

function ContextMap({ page, onPick }: { page: CallsPage; onPick: (call: Call) => void }) {
  const calls = useMemo(() => page.calls.filter((call) => call.sent !== null), [page]);
  const limits = useMemo(() => {
    const past = page.past_limits;
    return (index: number, name: "window_tokens" | "threshold_tokens"): number | null => {
      const at = calls[index]?.at_ms ?? 0;
      // What held then is what the next compaction noted; after the last one, what holds now.
      const next = past.find((one) => one.at_ms >= at && one[name] !== null);
      return next?.[name] ?? page.limits[name];
    };
  }, [calls, page]);
  const largest = Math.max(0, ...calls.map((call) => prompt(call.usage)));
  // A window far above everything that was sent would press the picture flat.
  const shows = (name: "window_tokens" | "threshold_tokens") => {
    const now = page.limits[name];
    return now !== null && now <= largest * MOST_ABOVE ? (index: number) => limits(index, name) : () => null;
  };
  const window = shows("window_tokens");
  const threshold = shows("threshold_tokens");
  const value = useCallback((index: number, key: string) => calls[index]?.sent?.[key as keyof NonNullable<Call["sent"]>] ?? 0, [calls]);
  const lines = useMemo(
    () => [
      { name: "window", class: "window", at: window },
      { name: "threshold", class: "threshold", at: threshold },
    ],
    [calls, page],
  );
  const marks = page.turnings
    .filter((turning) => turning.kind !== "branch")
    .map((turning) => ({
      index: Math.max(0, calls.findIndex((call) => call.at_ms >= turning.at_ms)),
      name: turningWords(turning),
      class: turning.kind === "compression" ? "compaction" : "undo",
    }));
  return (
    <section aria-label="Context over time">
      <div class="bar">
        <h2>Context over time</h2>
        <Downloads
          name={`context-${page.session.id}`}
          rows={async () => [
            ["call", "time", "model", ...PARTS.map((part) => part.key)],
            ...(await allCalls(page)).filter((call) => call.sent !== null).map((call) => [call.id, new Date(call.at_ms).toISOString(), call.model, ...PARTS.map((part) => call.sent?.[part.key] ?? 0)]),
          ]}
        />
      </div>
      {calls.length === 0 ? (
        <p class="soft">No call of this conversation says what it sent. Calls through the gateway and the chat do.</p>
      ) : (
        <>
          <Plot
            name="Tokens sent by each call, by kind"
            count={calls.length}
            layers={PARTS}
            value={value}
            lines={lines}
            marks={marks}
            unit={tokensUnit}
            height={240}
            ticks={(index) => among(calls[index]?.at_ms ?? 0, calls[0]?.at_ms ?? 0, calls[calls.length - 1]?.at_ms ?? 0)}
            onPick={(index) => {
              const call = calls[index];
              if (call) onPick(call);
            }}
            describe={(index) => {
              const call = calls[index];
              if (!call?.sent) return <b>no figures</b>;
              const sent = call.sent;
              return (
                <Tip
                  title={`${when(call.at_ms)} · ${line(call.model, 40)}`}
                  rows={[
                    ...[...PARTS].reverse().map((part) => ({ key: part.key, name: part.name, value: rounded(sent[part.key]) })),
                    { key: "none", name: "Sent", value: count(prompt(call.usage)) },
                  ]}
                  note={call.error ? `Failed: ${line(call.error, 120)}` : call.cache_miss ? `Cache missed: ${line(call.cache_miss, 120)}` : undefined}
                />
              );
            }}
          />
          <Legend />
          <p class="soft">
            {page.calls.length < page.total_calls ? `The largest of ${count(page.total_calls)} calls. ` : ""}
            {page.limits.window_tokens !== null ? `Window ${rounded(page.limits.window_tokens)} tokens` : "The window is not known"}
            {page.limits.threshold_tokens !== null ? `; compaction at ${rounded(page.limits.threshold_tokens)}` : ""}. Triangles are compactions. A click goes to the message.
          </p>
        </>
      )}
    </section>
  );
}

function CostPlot({ page, onPick }: { page: CallsPage; onPick: (call: Call) => void }) {
  const calls = page.calls;
  const isPriced = calls.some((call) => call.cost_by_bucket !== null);
  const value = useCallback(
    (index: number, key: string) => {
      const call = calls[index];
      return (isPriced ? call?.cost_by_bucket?.[key as "input"] : call?.usage[key as "input"]) ?? 0;
    },
    [calls, isPriced],
  );
  return (
    <section aria-label="Cost of each call by bucket">
      <div class="bar">
        <h2>{isPriced ? "Cost by call" : "Tokens by call"}</h2>
        <Downloads
          name={`calls-${page.session.id}`}
          rows={async () => [
            ["call", "time", "model", "task", ...COSTS.map((part) => part.key), "cost_usd", ...COSTS.map((part) => `${part.key}_usd`), "cache_miss", "error"],
            ...(await allCalls(page)).map((call) => [
              call.id,
              new Date(call.at_ms).toISOString(),
              call.model,
              call.task,
              ...COSTS.map((part) => call.usage[part.key as "input"]),
              call.cost_micro_usd === null ? "" : call.cost_micro_usd / 1e6,
              ...COSTS.map((part) => (call.cost_by_bucket === null ? "" : call.cost_by_bucket[part.key as "input"] / 1e6)),
              call.cache_miss ?? "",
              call.error ?? "",
            ]),
          ]}
        />
      </div>
      {calls.length === 0 ? (
        <p class="soft">No call is recorded.</p>
      ) : !calls.some((_, index) => COSTS.some((part) => value(index, part.key) > 0)) ? (
        <p class="soft">The provider reported no tokens for these calls.</p>
      ) : (
        <>
          <Plot
            name={isPriced ? "Cost of each call, by bucket" : "Tokens of each call, by bucket"}
            count={calls.length}
            layers={COSTS}
            value={value}
            bars
            unit={isPriced ? cents : tokensUnit}
            height={150}
            ticks={(index) => among(calls[index]?.at_ms ?? 0, calls[0]?.at_ms ?? 0, calls[calls.length - 1]?.at_ms ?? 0)}
            onPick={(index) => {
              const call = calls[index];
              if (call) onPick(call);
            }}
            describe={(index) => {
              const call = calls[index];
              if (!call) return <b>no call</b>;
              const amount = (key: "input") => (call.cost_by_bucket === null ? "" : ` · ${dollars(call.cost_by_bucket[key])}`);
              return (
                <Tip
                  title={`${when(call.at_ms)} · ${call.cost_micro_usd === null ? "price unknown" : dollars(call.cost_micro_usd)}`}
                  rows={COSTS.map((part) => ({ key: part.key, name: part.name, value: `${count(call.usage[part.key as "input"])}${amount(part.key as "input")}` }))}
                  note={[call.latency_ms === null ? "" : duration(call.latency_ms), call.task].filter((one) => one !== "").join(" · ")}
                />
              );
            }}
          />
          <ul class="legend">
            {COSTS.map((part) => (
              <li key={part.key}>
                <i class={`k-${part.key}`} aria-hidden="true" />
                {part.name}
              </li>
            ))}
          </ul>
          {isPriced ? null : <p class="soft">In tokens: the prices of these calls are not known.</p>}
        </>
      )}
    </section>
  );
}

/** An amount at an axis. */
function cents(micro: number): string {
  const usd = micro / 1e6;
  return `$${usd >= 10 ? Math.round(usd) : Number(usd.toPrecision(2))}`;
}

const MOST_MISSES = 100;

function Misses({ page, onPick }: { page: CallsPage; onPick: (call: Call) => void }) {
  const missed = page.calls.filter((call) => call.cache_miss !== null || call.error !== null).reverse();
  return (
    <section aria-label="Cache misses and errors">
      <h2>Cache misses and errors</h2>
      {missed.length === 0 ? (
        <p class="soft">None is recorded.</p>
      ) : (
        <div class="scroll short" tabIndex={0} role="group" aria-label="Calls with a cache miss or an error">
          <table>
            <thead>
              <tr>
                <th>Time</th>
                <th>Reason</th>
                <th class="num">Not read</th>
              </tr>
            </thead>
            <tbody>
              {missed.slice(0, MOST_MISSES).map((call) => (
                <tr key={call.id}>
                  <td>
                    <button type="button" class="plain" onClick={() => onPick(call)}>
                      {among(call.at_ms, page.calls[0]?.at_ms ?? 0, page.calls[page.calls.length - 1]?.at_ms ?? 0)}
                    </button>
                  </td>
                  <td class={call.error ? "bad" : ""}>{line(call.error ?? call.cache_miss, 200)}</td>
                  <td class="num">{rounded(call.usage.input + call.usage.cache_write)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {page.missed_calls > MOST_MISSES ? <p class="soft">The newest {MOST_MISSES} of {count(page.missed_calls)}; the CSV above has all.</p> : null}
    </section>
  );
}

type Told = { kind: "done" | "warning"; words: string };

/** The result of an action, shown on the page that opens next. */
let carried: Told | null = null;

function Actions({ page, changed }: { page: SessionPage; changed: () => void }) {
  const session = page.session;
  const [asked, setAsked] = useState<"delete" | "compact" | null>(null);
  const [busy, setBusy] = useState(false);
  const [told, setTold] = useState<Told | null>(() => {
    const from = carried;
    carried = null;
    return from;
  });
  const lead = (path: string, words: string): string => {
    carried = { kind: "done", words };
    go(path, "replace");
    return words;
  };
  const [focus, setFocus] = useState("");
  const [dependants, setDependants] = useState(false);
  const newest = page.chain[page.chain.length - 1] ?? session;
  const run = async (act: () => Promise<string>) => {
    setBusy(true);
    setTold(null);
    try {
      setTold({ kind: "done", words: await act() });
      changed();
    } catch (error) {
      setTold({ kind: "warning", words: error instanceof ApiFailure ? error.message : String(error) });
    } finally {
      setBusy(false);
      setAsked(null);
    }
  };
  const compact = () =>
    run(async () => {
      const result = await api<CompactResult>(`/api/sessions/${escaped(newest.id)}/compact`, { method: "POST", body: { focus: focus === "" ? null : focus } });
      if (result.outcome !== "completed") return `Nothing was compacted: ${result.detail ?? String(result.outcome)}`;
      const tokens = result.report?.tokens;
      const words = tokens ? `Compacted from ${count(tokens.before)} to ${count(tokens.after)} tokens.` : "Compacted.";
      return lead(`/conversations/${escaped(result.session)}`, words);
    });
  const step = (what: "undo" | "redo") =>
    run(async () => {
      const result = await api<{ session: string }>(`/api/sessions/${escaped(newest.id)}/${what}`, { method: "POST" });
      return lead(`/conversations/${escaped(result.session)}`, what === "undo" ? "The last compaction is undone." : "The compaction is redone.");
    });
  const remove = () =>
    run(async () => {
      const gone = await api<{ deleted: string[] }>(`/api/sessions/${escaped(session.id)}${query({ dependants })}`, { method: "DELETE" });
      go("/conversations", "replace");
      return `${plural(gone.deleted.length, "session", "sessions")} deleted.`;
    });
  return (
    <div class="actions">
      <button type="button" onClick={() => setAsked("compact")} disabled={busy}>
        Compact…
      </button>
      <button type="button" onClick={() => void step("undo")} disabled={busy}>
        Undo compaction
      </button>
      <button type="button" onClick={() => void step("redo")} disabled={busy}>
        Redo
      </button>
      <Link to={`/try/${escaped(newest.id)}`} class="button">
        Try a compaction
      </Link>
      <details class="menu">
        <summary>Export</summary>
        <ul>
          <li>
            <a href={ofOwner(`/api/sessions/${escaped(session.id)}/export`)} download>
              Everything that was said (JSON)
            </a>
          </li>
          <li>
            <a href={ofOwner(`/api/sessions/${escaped(session.id)}/export?form=lines`)} download>
              One message a line (JSONL)
            </a>
          </li>
          <li>
            <a href={ofOwner(`/api/sessions/${escaped(session.id)}/export?side=shown&form=body`)} download>
              What the model would be sent (request body)
            </a>
          </li>
          <li>
            <a href={ofOwner(`/api/sessions/${escaped(session.id)}/export?redact=true`)} download>
              Everything, secrets masked (JSON)
            </a>
          </li>
        </ul>
      </details>
      <button type="button" class="danger" onClick={() => setAsked("delete")} disabled={busy}>
        Delete…
      </button>
      {told ? <Notice kind={told.kind}>{told.words}</Notice> : null}
      {asked === "compact" ? (
        <Confirm title="Compact this conversation now?" action="Compact" busy={busy} onYes={() => void compact()} onNo={() => setAsked(null)}>
          <p>Its older part is replaced by a summary in what the model is sent. The transcript keeps every message, and this can be undone.</p>
          <label class="field">
            What most of the summary should be about (optional)
            <input value={focus} maxLength={2000} onInput={(event) => setFocus(event.currentTarget.value)} />
          </label>
        </Confirm>
      ) : null}
      {asked === "delete" ? (
        <Confirm title="Delete this conversation?" action="Delete for good" danger busy={busy} onYes={() => void remove()} onNo={() => setAsked(null)}>
          <p>
            Messages, summaries and calls of {line(session.title, 80) || session.id} are removed from the record. This cannot be undone. Export it first if you may need it.
          </p>
          <label class="field check">
            <input type="checkbox" checked={dependants} onChange={(event) => setDependants(event.currentTarget.checked)} />
            Also delete sub-agents and branches that hang on it
          </label>
        </Confirm>
      ) : null}
    </div>
  );
}

export function ConversationPage({ id }: { id: string }) {
  const now = usePlace();
  const parameter = now.params.get("at");
  const at = parameter !== null && /^\d{1,9}$/.test(parameter) ? Number(parameter) : null;
  const tab = now.params.get("tab") ?? "transcript";
  const narrow = useNarrow(1000);
  const { data, failure, loading, reload } = useApi<SessionPage>(`/api/sessions/${escaped(id)}`);
  const calls = useApi<CallsPage>(callsPath(`/api/sessions/${escaped(id)}`));
  const [revision, setRevision] = useState(0);
  const refresh = useCallback(() => {
    reload();
    calls.reload();
    setRevision((old) => old + 1);
  }, [reload, calls.reload]);
  const own = useMemo(() => new Set((data?.chain ?? []).map((session) => session.id)), [data]);
  useLiveReload(refresh, (event) => [event["session"], event["conversation"], event["new"], event["old"]].some((one) => typeof one === "string" && own.has(one)), 800);
  // Somebody may delete it meanwhile, which no event tells.
  const isGone = failure?.status === 404;
  useEffect(() => {
    if (isGone) return;
    const timer = setInterval(() => !document.hidden && reload(), LOOK_AGAIN_MS);
    return () => clearInterval(timer);
  }, [reload, isGone]);
  const newest = data?.chain[data.chain.length - 1];
  if (!data && failure) {
    return (
      <>
        <Heading title="Conversation">Conversation</Heading>
        <Failure failure={failure} what="The conversation" retry={reload} />
        <p>
          <Link to="/conversations">All conversations</Link>
        </p>
      </>
    );
  }
  if (!data) return loading ? <Loading what="the conversation" /> : null;
  const session = data.session;
  const title = nameOf(data.chain.map((one) => one.title).filter((one) => one !== null).pop() ?? session.title, data.first_words, session.id);
  const sums = data.chain.reduce(
    (all, one) => ({
      calls: all.calls + one.counters.calls,
      cost: all.cost + one.counters.cost_micro_usd,
      unpriced: all.unpriced + one.counters.unpriced_calls,
      read: all.read + one.counters.usage.cache_read,
      sent: all.sent + prompt(one.counters.usage),
    }),
    { calls: 0, cost: 0, unpriced: 0, read: 0, sent: 0 },
  );
  const pick = (call: Call) => {
    if (call.sent_to_seq !== null) {
      const changes: Record<string, string | null> = { at: String(Math.max(0, call.sent_to_seq - 1)) };
      if (narrow) changes["tab"] = null;
      go(withParams(now, changes));
    }
  };
  const figures = calls.data ? (
    <>
      <ContextMap page={calls.data} onPick={pick} />
      <CostPlot page={calls.data} onPick={pick} />
      <Misses page={calls.data} onPick={pick} />
    </>
  ) : calls.failure ? (
    <Failure failure={calls.failure} what="The calls" retry={calls.reload} />
  ) : (
    <Loading what="calls" />
  );
  const shown = Math.min(at ?? 0, Math.max(0, session.next_seq - 1));
  return (
    <div class="conversation">
      <header class="summary">
        <Heading title={title}>{title}</Heading>
        <p class="soft">
          {line(session.origin.program, 30)}
          {session.model ? ` · ${line(session.model, 60)}` : ""}
          {session.origin.project ? ` · ${line(session.origin.project, 80)}` : ""} · {span(data.chain[0]?.started_ms ?? session.started_ms, session.active_ms)} ·{" "}
          {plural(session.next_seq, "message", "messages")} · {plural(sums.calls, "call", "calls")} · {cost(sums.cost, sums.calls, sums.unpriced)} · {percent(sums.read, sums.sent)} from cache{title === session.id ? "" : ` · ${session.id}`}
        </p>
        {newest && newest.id !== session.id ? (
          <Notice>
            This is an earlier window of the conversation. <Link to={`/conversations/${escaped(newest.id)}`}>Go to the newest</Link>
          </Notice>
        ) : null}
        {failure ? <Notice>{failure.message}</Notice> : null}
        <Actions page={data} changed={refresh} />
      </header>
      {narrow ? (
        <>
          <nav class="tabs" aria-label="Parts of the conversation">
            <Link to={withParams(now, { tab: null })} current={tab !== "context"}>
              Transcript
            </Link>
            <Link to={withParams(now, { tab: "context" })} current={tab === "context"}>
              Context and cost
            </Link>
          </nav>
          {tab === "context" ? <div class="side">{figures}</div> : <TranscriptPane key={session.id} page={data} at={at === null ? null : shown} revision={revision} />}
        </>
      ) : (
        <div class="columns">
          <TranscriptPane key={session.id} page={data} at={at === null ? null : shown} revision={revision} />
          <div class="side">{figures}</div>
        </div>
      )}
    </div>
  );
}

