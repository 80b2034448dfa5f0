// All conversations, by what they are chosen by; every choice is part of the address.
import { useEffect, useState } from "preact/hooks";
import { api, ApiFailure, query } from "../api";
import { useAfter, useApi } from "../data";
import { cost, count, line, nameOf, plural, rounded } from "../format";
import { useLiveReload } from "../live";
import { go, Link, usePlace, withParams } from "../router";
import type { Conversation, FirstWords, SessionList, UsagePage } from "../types";
import { Ago, Empty, Failure, Heading, Loading, Notice, prompt } from "../ui";

const PAGE = 50;
const DAY_MS = 86_400_000;

/** A day as the address has it, from its midnight in the viewer's zone. */
export function dayStart(text: string): number | null {
  const found = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text);
  if (!found) return null;
  const start = new Date(Number(found[1]), Number(found[2]) - 1, Number(found[3])).getTime();
  return Number.isFinite(start) && start >= 0 ? start : null;
}

function filtersOf(params: URLSearchParams) {
  const value = (name: string) => params.get(name) ?? "";
  const day = dayStart(value("day"));
  return {
    limit: PAGE,
    program: value("program"),
    model: value("model"),
    project: value("project"),
    attached: value("attached") === "true",
    since_ms: day,
    until_ms: day === null ? null : day + DAY_MS,
  };
}

/** Where the list that an address shows comes from. */
export function listPath(params: URLSearchParams): string {
  return `/api/sessions${query(filtersOf(params))}`;
}

export function Conversations() {
  const now = usePlace();
  const value = (name: string) => now.params.get(name) ?? "";
  const filters = filtersOf(now.params);
  const path = listPath(now.params);
  const { data, failure, loading, reload } = useApi<SessionList>(path);
  // The names to choose from are added up from all calls; the list does not wait for that.
  const settled = useAfter(data !== null);
  const known = useApi<UsagePage>(settled ? "/api/usage" : null);
  const [more, setMore] = useState<{ path: string; rows: Conversation[]; names: FirstWords; next: string | null }>({ path, rows: [], names: {}, next: null });
  const [wait, setWait] = useState(false);
  const [problem, setProblem] = useState<ApiFailure | null>(null);
  useLiveReload(reload, (event) => event.event === "served" || event.event === "opened", 2000);
  useEffect(() => setMore({ path, rows: [], names: {}, next: null }), [path]);
  const extended = more.path === path && more.rows.length > 0;
  const next = extended ? more.next : (data?.next ?? null);
  const first = data?.sessions ?? [];
  const seen = new Set(first.map((one) => one.root));
  const rows = [...first, ...(extended ? more.rows.filter((one) => !seen.has(one.root)) : [])];
  const names: FirstWords = { ...data?.first_words, ...(extended ? more.names : {}) };
  const load = async () => {
    if (next === null) return;
    setWait(true);
    setProblem(null);
    try {
      const page = await api<SessionList>(`/api/sessions${query({ ...filters, after: next })}`);
      setMore((old) => ({ path, rows: old.path === path ? [...old.rows, ...page.sessions] : page.sessions, names: { ...old.names, ...page.first_words }, next: page.next }));
    } catch (error) {
      setProblem(error instanceof ApiFailure ? error : null);
    } finally {
      setWait(false);
    }
  };
  const choose = (name: string, chosen: string) => go(withParams(now, { [name]: chosen }));
  const options = (groups: { group: string }[] | undefined, chosen: string) => {
    const names = new Set((groups ?? []).map((one) => one.group).filter((one) => one !== ""));
    if (chosen !== "") names.add(chosen);
    return [...names].sort().map((name) => (
      <option key={name} value={name}>
        {line(name, 60)}
      </option>
    ));
  };
  const filtered = ["program", "model", "project", "day", "attached"].some((name) => value(name) !== "");
  return (
    <>
      <Heading title="Conversations">Conversations</Heading>
      <form class="filters" role="search" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
        <label class="field">
          Program
          <select value={value("program")} onChange={(event) => choose("program", event.currentTarget.value)}>
            <option value="">All</option>
            {options(known.data?.by_program, value("program"))}
          </select>
        </label>
        <label class="field">
          Model
          <select value={value("model")} onChange={(event) => choose("model", event.currentTarget.value)}>
            <option value="">All</option>
            {options(known.data?.by_model, value("model"))}
          </select>
        </label>
        <label class="field">
          Project
          <select value={value("project")} onChange={(event) => choose("project", event.currentTarget.value)}>
            <option value="">All</option>
            {options(known.data?.by_project, value("project"))}
          </select>
        </label>
        <label class="field">
          Last active on
          <input type="date" value={value("day")} onChange={(event) => choose("day", event.currentTarget.value)} />
        </label>
        <label class="field check">
          <input type="checkbox" checked={value("attached") === "true"} onChange={(event) => choose("attached", event.currentTarget.checked ? "true" : "")} />
          With sub-agents and side calls
        </label>
        {filtered ? <Link to="/conversations">Clear filters</Link> : null}
      </form>
      {failure && data ? <Notice>{failure.message}</Notice> : null}
      {problem ? <Notice>{problem.message}</Notice> : null}
      {failure && !data ? <Failure failure={failure} what="The list of conversations" retry={reload} /> : null}
      {!data && !failure && loading ? <Loading what="conversations" /> : null}
      {data && rows.length === 0 ? (
        filtered ? (
          <Empty>
            <h2>No conversation fits</h2>
            <p>
              <Link to="/conversations">Show all</Link>
            </p>
          </Empty>
        ) : (
          <Empty>
            <h2>Nothing is recorded yet</h2>
            <p>
              Point an agent at this gateway, or import what other programs recorded: <code>throughline import</code>.
            </p>
          </Empty>
        )
      ) : null}
      {rows.length > 0 ? (
        <div class="scroll" tabIndex={0} role="group" aria-label="Conversations">
          <table class="listing">
            <thead>
              <tr>
                <th>Conversation</th>
                <th>Program</th>
                <th>Model</th>
                <th class="num">Messages</th>
                <th class="num">Tokens sent</th>
                <th class="num">Cost</th>
                <th class="num">Compactions</th>
                <th>Active</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((one) => (
                <tr key={one.root}>
                  <td class="main" data-label="Conversation">
                    <Link to={`/conversations/${encodeURIComponent(one.tip.id)}`} title={one.tip.id}>
                      {nameOf(one.title, names[one.root], one.tip.id)}
                    </Link>
                    {one.tip.origin.project ? <span class="soft">{line(one.tip.origin.project, 80)}</span> : null}
                  </td>
                  <td data-label="Program">{line(one.tip.origin.program, 30)}</td>
                  <td data-label="Model">{line(one.tip.model, 40)}</td>
                  <td class="num" data-label="Messages">
                    {count(one.totals.messages)}
                  </td>
                  <td class="num" data-label="Tokens sent" title={count(prompt(one.totals.usage))}>
                    {rounded(prompt(one.totals.usage))}
                  </td>
                  <td class="num" data-label="Cost">
                    {cost(one.totals.cost_micro_usd, one.totals.calls, one.totals.unpriced_calls)}
                  </td>
                  <td class="num" data-label="Compactions">
                    {count(one.compactions)}
                  </td>
                  <td data-label="Active">
                    <Ago ms={one.tip.active_ms} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
      {rows.length > 0 ? (
        <p class="actions">
          {next !== null ? (
            <button type="button" onClick={() => void load()} disabled={wait}>
              {wait ? "Loading…" : "Show more"}
            </button>
          ) : null}
          <span class="soft">{plural(rows.length, "conversation", "conversations")} shown</span>
        </p>
      ) : null}
    </>
  );
}
