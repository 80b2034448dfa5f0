// Markdown of models and people, as elements: no string is ever parsed as HTML. What is not Markdown we know stays text.
import type { VNode } from "preact";
import { plain } from "./format";

type Nodes = (VNode | string)[];

// Longer texts are shown as they are: parsing them would hold up scrolling, and they are data rather than prose.
const LONGEST = 60_000;
const INLINE = /(`+)([\s\S]*?[^`])\1(?!`)|\*\*([^\s*](?:[^*\n]*[^\s*])?)\*\*|(?<![\w*])\*([^\s*](?:[^*\n]*[^\s*])?)\*(?![\w*])|~~([^~\n]+)~~|\[([^\]\n]{1,300})\]\(([^()\s]{1,2000})\)|(https?:\/\/[^\s<>"'`)\]]{1,2000})/g;

/** An address that may be followed. Anything else than the web stays text. */
export function webAddress(text: string): string | null {
  if (!/^https?:\/\//i.test(text)) return null;
  try {
    const url = new URL(text);
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
  } catch {
    return null;
  }
}

function anchor(address: string, words: Nodes | string): VNode | string {
  const url = webAddress(address);
  if (url === null) return typeof words === "string" ? words : `${address}`;
  return (
    <a href={url} title={url} rel="noopener noreferrer nofollow" target="_blank">
      {words}
    </a>
  );
}

export function inline(text: string, depth = 0): Nodes {
  const out: Nodes = [];
  let last = 0;
  for (const found of text.matchAll(INLINE)) {
    const at = found.index;
    if (at > last) out.push(text.slice(last, at));
    last = at + found[0].length;
    const [whole, , code, strong, em, struck, words, address, bare] = found;
    const inner = (part: string): Nodes => (depth < 3 ? inline(part, depth + 1) : [part]);
    if (code !== undefined) out.push(<code>{code}</code>);
    else if (strong !== undefined) out.push(<strong>{inner(strong)}</strong>);
    else if (em !== undefined) out.push(<em>{inner(em)}</em>);
    else if (struck !== undefined) out.push(<s>{struck}</s>);
    else if (words !== undefined && address !== undefined) out.push(webAddress(address) ? anchor(address, words) : whole);
    else if (bare !== undefined) {
      const end = bare.replace(/[.,;:!?]+$/, "");
      out.push(anchor(end, end), bare.slice(end.length));
    } else out.push(whole);
  }
  if (last < text.length) out.push(text.slice(last));
  return out;
}

const LIST = /^(\s{0,8})([-*+]|\d{1,6}[.)])\s+(.*)$/;
const FENCE = /^\s{0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;

export function Code({ text, language }: { text: string; language?: string }) {
  const diff = language === "diff" || (/^@@ .* @@/m.test(text) && /^[-+]/m.test(text));
  if (!diff) {
    return (
      <pre class="code" tabIndex={0}>
        <code>{text}</code>
      </pre>
    );
  }
  return (
    <pre class="code diff" tabIndex={0}>
      <code>
        {text.split("\n").map((one, at) => {
          const kind = one.startsWith("+") ? "added" : one.startsWith("-") ? "removed" : one.startsWith("@@") ? "place" : "";
          return (
            <span key={at} class={kind}>
              {one}
              {"\n"}
            </span>
          );
        })}
      </code>
    </pre>
  );
}

function cells(row: string): string[] {
  return row.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());
}

/** The blocks of a text. `mark` may add something to a line, such as links to where it comes from. */
export function Markdown({ text, mark }: { text: string; mark?: (line: string) => VNode | null }) {
  const clean = plain(text);
  if (clean.length > LONGEST) return <pre class="words">{clean}</pre>;
  const lines = clean.split("\n");
  const out: VNode[] = [];
  let at = 0;
  const spoken = (line: string): Nodes => {
    const added = mark?.(line);
    return added ? [...inline(line), added] : inline(line);
  };
  while (at < lines.length) {
    const here = lines[at] ?? "";
    if (here.trim() === "") {
      at += 1;
      continue;
    }
    const fence = FENCE.exec(here);
    if (fence) {
      const [, ticks = "```", language] = fence;
      const body: string[] = [];
      at += 1;
      while (at < lines.length && !(lines[at] ?? "").trim().startsWith(ticks)) body.push(lines[at++] ?? "");
      at += 1;
      out.push(<Code key={out.length} text={body.join("\n")} language={language} />);
      continue;
    }
    const heading = /^(#{1,6})\s+(.*)$/.exec(here);
    if (heading) {
      const level = Math.min((heading[1] ?? "").length, 6);
      // Headings of recorded texts are no headings of the page.
      out.push(
        <p key={out.length} class={`heading h${level}`}>
          {inline(heading[2] ?? "")}
        </p>,
      );
      at += 1;
      continue;
    }
    if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(here)) {
      out.push(<hr key={out.length} />);
      at += 1;
      continue;
    }
    if (here.includes("|") && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)+\|?\s*$/.test(lines[at + 1] ?? "")) {
      const head = cells(here);
      const rows: string[][] = [];
      at += 2;
      while (at < lines.length && (lines[at] ?? "").includes("|")) rows.push(cells(lines[at++] ?? ""));
      out.push(
        <div key={out.length} class="scroll" tabIndex={0} role="group" aria-label="Table">
          <table>
            <thead>
              <tr>{head.map((cell, n) => <th key={n}>{inline(cell)}</th>)}</tr>
            </thead>
            <tbody>{rows.map((row, n) => <tr key={n}>{row.map((cell, m) => <td key={m}>{inline(cell)}</td>)}</tr>)}</tbody>
          </table>
        </div>,
      );
      continue;
    }
    if (/^\s*>/.test(here)) {
      const body: string[] = [];
      while (at < lines.length && /^\s*>/.test(lines[at] ?? "")) body.push((lines[at++] ?? "").replace(/^\s*>\s?/, ""));
      out.push(<blockquote key={out.length}>{body.flatMap((one, n) => [...(n > 0 ? [<br key={n} />] : []), ...spoken(one)])}</blockquote>);
      continue;
    }
    if (LIST.test(here)) {
      const items: { depth: number; mark: string; text: string }[] = [];
      while (at < lines.length) {
        const item = LIST.exec(lines[at] ?? "");
        if (item) items.push({ depth: Math.min(4, Math.floor((item[1] ?? "").length / 2)), mark: item[2] ?? "-", text: item[3] ?? "" });
        else if (/^\s{2,}\S/.test(lines[at] ?? "") && items.length > 0) {
          const last = items[items.length - 1];
          if (last) last.text += `\n${(lines[at] ?? "").trim()}`;
        } else break;
        at += 1;
      }
      out.push(
        <ul key={out.length} class="items">
          {items.map((item, n) => (
            <li key={n} class={`d${item.depth}`}>
              <span class="bullet" aria-hidden="true">
                {/\d/.test(item.mark) ? item.mark : "–"}
              </span>
              <span>{spoken(item.text)}</span>
            </li>
          ))}
        </ul>,
      );
      continue;
    }
    const body: string[] = [];
    while (at < lines.length) {
      const next = lines[at] ?? "";
      if (next.trim() === "" || FENCE.test(next) || (body.length > 0 && (LIST.test(next) || /^#{1,6}\s|^\s*>/.test(next)))) break;
      body.push(next);
      at += 1;
    }
    out.push(<p key={out.length}>{body.flatMap((one, n) => [...(n > 0 ? [<br key={`b${n}`} />] : []), ...spoken(one)])}</p>);
  }
  return <div class="markdown">{out}</div>;
}
