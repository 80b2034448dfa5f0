// Conversations that are active: how full each is, what it costs, what went wrong. Live.
import { useEffect, useState } from "preact/hooks";
import { live, type LiveEvent, useLiveReload, useLiveState } from "../live";
import { useApi } from "../data";
import { clock, cost, count, dollars, line, nameOf, percent, plural, rounded } from "../format";
import { go, Link, usePlace, withParams } from "../router";
import { levers, savedBy, useSavings } from "../savings";
import type { Active, NowPage, Sent } from "../types";
import { Ago, Empty, Failure, Heading, Legend, Loading, Notice, prompt, sentTotal, Strip } from "../ui";

/** What its view holds, fitted to the size that the gateway measured: the rest stands before the messages. */
export function fitted(active: Active): Sent {
  const { view, pressure } = active;
  if (!pressure) return view;
  const messages = sentTotal(view);
  const fixed = pressure.tokens - messages;
  if (fixed >= 0) return { ...view, system: view.system + fixed };
  const scale = pressure.tokens / messages;
  return {
    system: view.system * scale,
    tools: 0,
    summary: view.summary * scale,
    user: view.user * scale,
    assistant: view.assistant * scale,
    tool: view.tool * scale,
  };
}

function Row({ active, rate, firstWords }: { active: Active; rate: number; firstWords: string | undefined }) {
  const { conversation, pressure, recent, total } = active;
  const { tip } = conversation;
  const minutes = rate / 60_000;
  const sent = fitted(active);
  const saved = total.uncached_micro_usd - total.cost_micro_usd;
  // It changes slowly and reads the whole conversation: once every ten calls is enough.
  const { savings } = useSavings({ session: tip.id }, `${conversation.compactions} ${Math.floor(total.calls / 10)}`);
  const by = savings ? levers(savings.total) : [];
  return (
    <li class="active">
      <div class="who">
        <Link to={`/conversations/${encodeURIComponent(tip.id)}`} title={tip.id}>
          {nameOf(conversation.title, firstWords, tip.id)}
        </Link>
        <span class="soft">
          {line(tip.origin.program, 30)}
          {tip.model ? ` · ${line(tip.model, 60)}` : ""}
          {tip.origin.project ? ` · ${line(tip.origin.project, 60)}` : ""} · <Ago ms={tip.active_ms} />
        </span>
      </div>
      <div class="gauge">
        <Strip sent={sent} window={pressure?.window_tokens ?? null} threshold={pressure?.threshold_tokens ?? null} />
        <span class="soft">
          {pressure
            ? `${rounded(pressure.tokens)} of ${rounded(pressure.window_tokens)} tokens; compaction at ${rounded(pressure.threshold_tokens)}`
            : `${rounded(sentTotal(sent))} tokens of messages; the window is known after the next call`}
        </span>
      </div>
      <dl class="facts">
        <div>
          <dt>Tokens a minute</dt>
          <dd>{rounded((prompt(recent.usage) + recent.usage.output) / minutes)}</dd>
        </div>
        <div>
          <dt>Cost a minute</dt>
          <dd>{cost(Math.round(recent.cost_micro_usd / minutes), recent.calls, recent.unpriced)}</dd>
        </div>
        <div>
          <dt>From cache</dt>
          <dd>{percent(recent.calls > 0 ? recent.usage.cache_read : total.usage.cache_read, prompt(recent.calls > 0 ? recent.usage : total.usage))}</dd>
        </div>
        <div>
          <dt>Cost so far</dt>
          <dd>{cost(total.cost_micro_usd, total.calls, total.unpriced)}</dd>
        </div>
        <div>
          <dt>Saved by the cache</dt>
          <dd>{saved > 0 ? dollars(saved) : "–"}</dd>
        </div>
        <div>
          <dt>Saved by Throughline</dt>
          <dd>{savings && savings.total.estimated > 0 ? dollars(savedBy(savings.total)) : "–"}</dd>
        </div>
        <div>
          <dt>Compactions</dt>
          <dd>{count(conversation.compactions)}</dd>
        </div>
        <div class={recent.failed > 0 ? "bad" : ""}>
          <dt>Failed calls</dt>
          <dd>{count(recent.failed)}</dd>
        </div>
      </dl>
      {by.length > 0 ? <p class="soft">Saved by Throughline: {by.map((lever) => `${dollars(lever.micro)} ${lever.name}`).join("; ")}</p> : null}
      {active.misses.length > 0 ? (
        <p class="soft">
          Cache missed: {active.misses.slice(0, 3).map((miss) => `${line(miss.group, 60)} (${plural(miss.calls, "call", "calls")}, ${rounded(prompt(miss.usage))} tokens)`).join("; ")}
        </p>
      ) : null}
    </li>
  );
}

function words(event: LiveEvent): string | null {
  const text = (name: string) => line(String(event[name] ?? ""), 160);
  switch (event.event) {
    case "served":
      return `${text("model")}: ${text("status")} in ${text("whole_ms")} ms${event["end"] === "whole" ? "" : `, ${text("end").replaceAll("_", " ")}`}`;
    case "refused":
      return `Refused ${text("method")} ${text("path")}: ${text("message")}`;
    case "compaction_started":
      return "Compaction started";
    case "compaction_completed":
      return "Compaction completed";
    case "compaction_aborted":
    case "compaction_blocked":
    case "compaction_no_op":
      return `${event.event.replaceAll("_", " ").replace("compaction", "Compaction")}: ${text("detail")}`;
    case "retrying":
    case "fallback_used":
      return `${event.event === "retrying" ? "Trying again" : `Another model was used: ${text("model")}`}: ${text("trouble")}`;
    case "warning":
    case "notice":
      return text("text");
    case "window_learnt":
      return `The window of ${text("model")} is ${text("window_tokens")} tokens`;
    case "recalled":
      return "The model looked something up in what was compacted";
    default:
      return null;
  }
}

const MOST_LINES = 40;

export function Now() {
  const now = usePlace();
  const minutes = now.params.get("minutes") ?? "30";
  const path = `/api/now?minutes=${encodeURIComponent(minutes)}`;
  const { data, failure, loading, reload } = useApi<NowPage>(path);
  const state = useLiveState();
  const [log, setLog] = useState<{ key: number; at: number; event: LiveEvent; words: string }[]>([]);
  useLiveReload(reload, () => true);
  useEffect(() => {
    let key = 0;
    const listener = (event: LiveEvent) => {
      const told = words(event);
      if (told === null) return;
      key += 1;
      const entry = { key, at: Number(event["at_ms"] ?? Date.now()), event, words: told };
      setLog((old) => [entry, ...old].slice(0, MOST_LINES));
    };
    live.events.add(listener);
    // Amounts per minute go down when nothing happens.
    const timer = setInterval(() => !document.hidden && reload(), 30_000);
    return () => {
      live.events.delete(listener);
      clearInterval(timer);
    };
  }, [reload]);
  const sum = (pick: (active: Active) => number) => (data?.conversations ?? []).reduce((all, active) => all + pick(active), 0);
  const rate = (data?.rate_ms ?? 300_000) / 60_000;
  return (
    <>
      <div class="top">
        <Heading title="Now">Now</Heading>
        <span class={`pulse ${state}`} role="status">
          {state === "live" ? "Live" : state === "lost" ? "Reconnecting" : "Connecting"}
        </span>
        <label class="field inline">
          Active within
          <select value={minutes} onChange={(event) => go(withParams(now, { minutes: event.currentTarget.value }))}>
            <option value="30">30 minutes</option>
            <option value="120">2 hours</option>
            <option value="1440">a day</option>
            <option value="10080">a week</option>
          </select>
        </label>
      </div>
      {failure && data ? <Notice>{failure.message} What is shown may be out of date.</Notice> : null}
      {failure && !data ? <Failure failure={failure} what="What is happening" retry={reload} /> : null}
      {!data && !failure && loading ? <Loading what="active conversations" /> : null}
      {data ? (
        <>
          <dl class="figures">
            <div class="figure">
              <dt>Conversations</dt>
              <dd>{count(data.conversations.length)}</dd>
            </div>
            <div class="figure">
              <dt>Tokens a minute</dt>
              <dd>{rounded(sum((active) => prompt(active.recent.usage) + active.recent.usage.output) / rate)}</dd>
            </div>
            <div class="figure">
              <dt>Cost a minute</dt>
              <dd>{dollars(Math.round(sum((active) => active.recent.cost_micro_usd) / rate))}</dd>
            </div>
            <div class="figure">
              <dt>From cache</dt>
              <dd>{percent(sum((active) => active.recent.usage.cache_read), sum((active) => prompt(active.recent.usage)))}</dd>
            </div>
          </dl>
          {data.conversations.length === 0 ? (
            <Empty>
              <h2>Nothing is happening</h2>
              <p>
                A conversation appears here when an agent sends its next request. Point one at this gateway: <code>throughline serve --show</code> tells how.
              </p>
              <p>
                <Link to="/conversations">All conversations</Link>
              </p>
            </Empty>
          ) : (
            <>
              <ul class="actives">
                {data.conversations.map((active) => (
                  <Row key={active.conversation.root} active={active} rate={data.rate_ms} firstWords={data.first_words[active.conversation.root]} />
                ))}
              </ul>
              <Legend />
            </>
          )}
        </>
      ) : null}
      <section class="log" aria-label="Events">
        <h2>Events</h2>
        {log.length === 0 ? (
          <p class="soft">What happens from now on is listed here.</p>
        ) : (
          <ol>
            {log.map((entry) => (
              <li key={entry.key} class={/refused|aborted|blocked|warning|retrying/.test(entry.event.event) || Number(entry.event["status"] ?? 200) >= 400 ? "bad" : ""}>
                <time>{clock(entry.at)}</time> {entry.words}
              </li>
            ))}
          </ol>
        )}
      </section>
    </>
  );
}

