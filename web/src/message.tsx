// One message: who speaks, and what it holds. Long output is collapsed; nothing in it is followed, loaded or run by itself.
import { useMemo, useState } from "preact/hooks";
import { count, exactly, line, plain, when } from "./format";
import { Code, Markdown } from "./markdown";
import { partsOf, type Part } from "./parts";
import { Link } from "./router";
import type { JsonObject } from "./types";

// Characters of a text shown before the button for the rest: more slows scrolling down.
const SHOWN_CHARS = 6000;
const SHOWN_OUTPUT_CHARS = 700;
const SHOWN_OUTPUT_LINES = 12;
/** More than this is not put into the document at once, even when all of it is asked for. */
const MOST_CHARS = 400_000;

function shorten(text: string, chars: number, lines: number): string {
  let end = Math.min(text.length, chars);
  let at = -1;
  for (let n = 0; n < lines; n += 1) {
    at = text.indexOf("\n", at + 1);
    if (at < 0 || at >= end) break;
  }
  if (at >= 0 && at < end) end = at;
  return text.slice(0, end);
}

function More({ left, open, onClick }: { left: number; open: boolean; onClick: () => void }) {
  return (
    <button type="button" class="more" onClick={onClick} aria-expanded={open}>
      {open ? "Show less" : `Show ${count(left)} more characters`}
    </button>
  );
}

function Words({ text }: { text: string }) {
  const [open, setOpen] = useState(false);
  const long = text.length > SHOWN_CHARS;
  const shown = open ? text.slice(0, MOST_CHARS) : text.slice(0, SHOWN_CHARS);
  return (
    <>
      <Markdown text={shown} />
      {long ? <More left={text.length - SHOWN_CHARS} open={open} onClick={() => setOpen(!open)} /> : null}
    </>
  );
}

function Output({ text }: { text: string }) {
  const [open, setOpen] = useState(false);
  const clean = useMemo(() => plain(text.slice(0, MOST_CHARS)), [text]);
  const short = shorten(clean, SHOWN_OUTPUT_CHARS, SHOWN_OUTPUT_LINES);
  const long = short.length < clean.length;
  return (
    <>
      <Code text={open || !long ? clean : short} />
      {long ? <More left={text.length - short.length} open={open} onClick={() => setOpen(!open)} /> : null}
    </>
  );
}

function Folded({ name, text, kind }: { name: string; text: string; kind: string }) {
  const [open, setOpen] = useState(false);
  const first = line(text, 100);
  return (
    <div class={`part ${kind}`}>
      <button type="button" class="fold" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span class="twist" aria-hidden="true">
          {open ? "▾" : "▸"}
        </span>
        <b>{name}</b> {open ? null : <span class="glimpse">{first}</span>}
      </button>
      {open ? <Output text={text} /> : null}
    </div>
  );
}

function PartView({ part, tools }: { part: Part; tools: string[] }) {
  switch (part.kind) {
    case "text":
      return part.text.trim() === "" ? null : <Words text={part.text} />;
    case "reasoning":
      return part.text === null ? (
        <p class="label">Reasoning that only the provider can read</p>
      ) : (
        <Folded name="Reasoning" text={part.text} kind="reasoning" />
      );
    case "call":
      return <Folded name={`Call of ${line(part.name, 80) || "a tool without a name"}`} text={part.input} kind="call" />;
    case "result":
      return (
        <div class="part result">
          <p class="label">
            Result{tools.length > 0 ? ` of ${tools.map((tool) => line(tool, 60)).join(", ")}` : ""}
            {part.failed ? <strong class="failed"> failed</strong> : null}
          </p>
          {part.text === "" ? <p class="label">(empty)</p> : <Output text={part.text} />}
          {part.images.map((source, at) => (
            <img key={at} src={source} alt="Picture in the result of a tool" loading="lazy" />
          ))}
        </div>
      );
    case "image":
      return part.source ? <img src={part.source} alt="Picture in the message" loading="lazy" /> : <p class="label">A picture {part.note}</p>;
    case "other":
      return <Folded name={`Part of the type ${line(part.name, 60)}`} text={part.raw} kind="other" />;
  }
}

const NAMES: Record<string, string> = {
  user: "User",
  assistant: "Assistant",
  tool: "Tool",
  system: "System",
  developer: "Developer",
};

export function speaker(role: string, parts: Part[]): string {
  if (role === "user" && parts.length > 0 && parts.every((part) => part.kind === "result")) return "tool";
  return role in NAMES ? role : "user";
}

export function MessageView({
  message,
  role,
  seq,
  at,
  tokens,
  tools = [],
  to,
  note,
}: {
  message: JsonObject;
  role: string;
  seq?: number;
  at?: number;
  tokens?: number;
  tools?: string[];
  to?: string;
  note?: string;
}) {
  const parts = useMemo(() => partsOf(message), [message]);
  const who = speaker(role, parts);
  return (
    <article class={`message ${who}`} aria-label={`${NAMES[who] ?? role}${seq === undefined ? "" : `, message ${seq}`}`}>
      <header>
        <b>{NAMES[who] ?? line(role, 30)}</b>
        {note ? <span class="note">{note}</span> : null}
        {seq === undefined ? null : to ? (
          <Link to={to} class="seq" title="The address of this message">
            #{seq}
          </Link>
        ) : (
          <span class="seq">#{seq}</span>
        )}
        {at === undefined ? null : (
          <time dateTime={new Date(at).toISOString()} title={exactly(at)}>
            {when(at)}
          </time>
        )}
        {tokens === undefined ? null : <span class="size">{count(tokens)} tokens</span>}
      </header>
      {parts.length === 0 ? <p class="label">(empty)</p> : parts.map((part, n) => <PartView key={n} part={part} tools={tools} />)}
    </article>
  );
}
