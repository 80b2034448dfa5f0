// Search over everything that was ever said, with results while typing.
import { useEffect, useRef, useState } from "preact/hooks";
import { query } from "../api";
import { useAfter, useApi, useSettled } from "../data";
import { line, nameOf, plain, plural, when } from "../format";
import { go, Link, usePlace } from "../router";
import type { Hit, SearchAnswer, UsagePage } from "../types";
import { Empty, Failure, Heading, Loading } from "../ui";
import { dayStart } from "./conversations";

const LIMIT = 50;
const TYPING_MS = 180;

/** A passage with the words that were found marked. Places count bytes of UTF-8. */
export function Passage({ hit }: { hit: Hit }) {
  const { text, marks, cut_before, cut_after } = hit.snippet;
  const bytes = new TextEncoder().encode(text);
  const decoder = new TextDecoder();
  const out = [];
  let at = 0;
  for (const [from, to] of [...marks].sort((a, b) => a[0] - b[0])) {
    if (from < at || to > bytes.length) continue;
    out.push(plain(decoder.decode(bytes.slice(at, from))), <mark key={from}>{plain(decoder.decode(bytes.slice(from, to)))}</mark>);
    at = to;
  }
  out.push(plain(decoder.decode(bytes.slice(at))));
  return (
    <p class="passage">
      {cut_before ? "… " : ""}
      {out}
      {cut_after ? " …" : ""}
    </p>
  );
}

export function Search() {
  const now = usePlace();
  const value = (name: string) => now.params.get(name) ?? "";
  const [typed, setTyped] = useState(value("q"));
  const settled = useSettled(typed, TYPING_MS);
  const box = useRef<HTMLInputElement>(null);
  useEffect(() => box.current?.focus(), []);
  // Back and forward change the address; typing does too, in place.
  const address = value("q");
  const own = useRef(address);
  useEffect(() => {
    if (address !== own.current) {
      own.current = address;
      setTyped(address);
    }
  }, [address]);
  const set = (changes: Record<string, string>, how: "push" | "replace") => {
    const params = new URLSearchParams(window.location.search);
    for (const [name, one] of Object.entries(changes)) {
      if (one === "") params.delete(name);
      else params.set(name, one);
    }
    const text = params.toString();
    go(text === "" ? "/search" : `/search?${text}`, how);
  };
  useEffect(() => {
    if (settled === own.current) return;
    const before = own.current;
    own.current = settled;
    // The first search is a step one can go back from; changing the words is not.
    set({ q: settled }, before === "" ? "push" : "replace");
  }, [settled]);
  const since = dayStart(value("since"));
  const until = dayStart(value("until"));
  const asked = value("q").trim();
  const path =
    asked === ""
      ? null
      : `/api/search${query({
          q: asked,
          role: value("role"),
          project: value("project"),
          tool: value("tool"),
          file: value("file"),
          session: value("session"),
          substring: value("how") === "substring",
          all_words: value("how") === "all",
          since_ms: since,
          until_ms: until === null ? null : until + 86_400_000,
          limit: LIMIT,
        })}`;
  const { data, failure, loading, reload } = useApi<SearchAnswer>(path);
  const [kept, setKept] = useState<SearchAnswer | null>(null);
  useEffect(() => {
    if (data) setKept(data);
  }, [data]);
  const isDrawn = useAfter(true);
  const known = useApi<UsagePage>(isDrawn ? "/api/usage" : null);
  // While the next results are on their way, the last ones stay.
  const shown = path === null ? null : (data ?? (failure ? null : kept));
  return (
    <>
      <Heading title={asked === "" ? "Search" : `${line(asked, 40)} – Search`}>Search</Heading>
      <form
        class="search"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          own.current = typed;
          set({ q: typed }, "push");
        }}
      >
        <label class="field wide">
          Words, a question, or an exact string
          <input ref={box} type="search" value={typed} maxLength={2000} onInput={(event) => setTyped(event.currentTarget.value)} autocomplete="off" spellcheck={false} />
        </label>
        <div class="filters">
          <label class="field">
            Match
            <select value={value("how")} onChange={(event) => set({ how: event.currentTarget.value }, "push")}>
              <option value="">Ranked words</option>
              <option value="all">All words</option>
              <option value="substring">Exact string</option>
            </select>
          </label>
          <label class="field">
            Speaker
            <select value={value("role")} onChange={(event) => set({ role: event.currentTarget.value }, "push")}>
              <option value="">Anyone</option>
              <option value="user">User</option>
              <option value="assistant">Assistant</option>
              <option value="tool">Tool</option>
              <option value="system">System</option>
            </select>
          </label>
          <label class="field">
            Project
            <select value={value("project")} onChange={(event) => set({ project: event.currentTarget.value }, "push")}>
              <option value="">All</option>
              {(known.data?.by_project ?? [])
                .filter((one) => one.group !== "")
                .map((one) => (
                  <option key={one.group} value={one.group}>
                    {line(one.group, 60)}
                  </option>
                ))}
            </select>
          </label>
          <label class="field">
            Tool
            <input value={value("tool")} size={10} onChange={(event) => set({ tool: event.currentTarget.value }, "push")} />
          </label>
          <label class="field">
            File
            <input value={value("file")} size={14} onChange={(event) => set({ file: event.currentTarget.value }, "push")} />
          </label>
          <label class="field">
            From
            <input type="date" value={value("since")} onChange={(event) => set({ since: event.currentTarget.value }, "push")} />
          </label>
          <label class="field">
            To
            <input type="date" value={value("until")} onChange={(event) => set({ until: event.currentTarget.value }, "push")} />
          </label>
        </div>
      </form>
      {failure ? <Failure failure={failure} what="The result" retry={reload} /> : null}
      {path === null ? (
        <Empty>
          <p>Everything that was said is searched, what was compacted away too.</p>
        </Empty>
      ) : null}
      {path !== null && !shown && !failure && loading ? <Loading what="results" /> : null}
      {shown ? (
        <>
          <p class="soft" role="status">
            {shown.hits.length === 0 ? "Nothing was found." : `${plural(shown.hits.length, "result", "results")}${shown.hits.length === LIMIT ? ", the best of more" : ""}`}
            {shown.as_substring ? " Matched as an exact string." : ""}
          </p>
          <ol class="hits">
            {shown.hits.map((hit) => (
              <li key={`${hit.session}/${hit.seq}`}>
                <Link to={`/conversations/${encodeURIComponent(hit.session)}?at=${hit.seq}`}>{nameOf(hit.title, shown.first_words[hit.session], hit.session)}</Link>
                <span class="soft">
                  #{hit.seq} · {hit.role}
                  {hit.tools.length > 0 ? ` · ${hit.tools.map((tool) => line(tool, 30)).join(", ")}` : ""} · {when(hit.at_ms)}
                  {hit.repeats > 0 ? ` · said ${plural(hit.repeats, "more time", "more times")}` : ""}
                </span>
                <Passage hit={hit} />
              </li>
            ))}
          </ol>
        </>
      ) : null}
    </>
  );
}
