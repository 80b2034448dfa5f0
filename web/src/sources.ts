// Where the lines of notes come from: entries of the conversation's state that name their messages, messages that hold the
// exact strings of a line, and where it has none, messages that hold most of its rarer words.
import { useEffect, useState } from "preact/hooks";
import { partsOf } from "./parts";
import type { Item, JsonObject, StateEntry } from "./types";

const MOST_LINKS = 3;
/** Work on sources is done in slices of so many milliseconds. */
const SLICE_MS = 12;
/** Characters of a message that are looked at for words. */
const MOST_WORD_CHARS = 20_000;
/** A line has to share this part of its words with a message, by weight. */
const LEAST_SHARE = 0.45;
/** Shorter texts of entries stand in too many lines. */
const LEAST_ENTRY_CHARS = 12;

/** What leads a line of a list. */
const BULLET = /^\s*(?:[-*+]|\d+[.)])\s+/;

export function lineKey(text: string): string {
  return (text.split("\n")[0] ?? "").replace(BULLET, "");
}

/** Strings of a line that are exact enough to say where it comes from. */
export function anchors(text: string): string[] {
  const found = new Set<string>();
  for (const code of text.matchAll(/`([^`\n]{4,120})`/g)) found.add(code[1] ?? "");
  for (const word of text.matchAll(/(?:[\w.~-]*\/[\w./~-]{3,}|[\w-]+\.[a-z]{1,5}(?::\d+)?|[A-Za-z]+_[\w]{3,}|\b\d{4,}\b|"[^"\n]{8,120}")/g)) {
    const clean = word[0].replace(/^"|"$/g, "").replace(/[.:,]+$/, "");
    if (clean.length >= 5) found.add(clean);
  }
  return [...found].slice(0, 6);
}

function words(text: string): Set<string> {
  return new Set(text.slice(0, MOST_WORD_CHARS).toLowerCase().match(/[\p{L}\p{N}_]{4,}|[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]{2}/gu) ?? []);
}

function spoken(message: JsonObject): string {
  return partsOf(message)
    .map((part) => ("text" in part ? (part.text ?? "") : part.kind === "call" ? `${part.name} ${part.input}` : part.kind === "other" ? part.raw : ""))
    .join("\n");
}

const flat = (text: string): string => text.replace(/[`*_\s]+/g, " ").trim().toLowerCase();

type Source = { seq: number; raw: string; words: Set<string> | null; message: JsonObject };

/** The messages of each line, found in idle time. */
export function useSources(document: string | null, items: Item[], entries: StateEntry[] | null): Map<string, number[]> {
  const [found, setFound] = useState<Map<string, number[]>>(new Map());
  useEffect(() => {
    if (document === null) return;
    const sources: Source[] = items.flatMap((item) => (item.seq !== undefined && item.message ? [{ seq: item.seq, raw: JSON.stringify(item.message), words: null, message: item.message }] : []));
    const compacted = new Set(sources.map((source) => source.seq));
    const known = (entries ?? []).flatMap((entry) => {
      const text = flat(entry.text);
      const seqs = entry.messages.filter((seq) => compacted.has(seq));
      return text.length >= LEAST_ENTRY_CHARS && seqs.length > 0 ? [{ text, seqs }] : [];
    });
    const lines = [...new Set(document.split("\n").map(lineKey))].filter((one) => one.trim().length > 5 && !one.startsWith("#"));
    const out = new Map<string, number[]>();
    const places = new Map<string, number[]>();
    const holders = new Map<string, number>();
    const byState = (one: string): number[] => {
      const text = flat(one);
      for (const entry of known) {
        const start = entry.text.slice(0, 80);
        if (text.includes(start) || (text.length >= LEAST_ENTRY_CHARS && entry.text.includes(text))) return entry.seqs;
      }
      return [];
    };
    const byStrings = (one: string): number[] => {
      const seqs = new Set<number>();
      for (const anchor of anchors(one)) {
        let held = places.get(anchor);
        if (held === undefined) {
          held = [];
          const needle = JSON.stringify(anchor).slice(1, -1);
          for (const { seq, raw } of sources) {
            if (raw.includes(needle)) held.push(seq);
            if (held.length >= MOST_LINKS) break;
          }
          places.set(anchor, held);
        }
        held.forEach((seq) => seqs.add(seq));
      }
      return [...seqs].sort((a, b) => a - b);
    };
    const byWords = (one: string): number[] => {
      const own = [...words(one)];
      if (own.length < 2) return [];
      const weight = (word: string): number => Math.log(1 + sources.length / (1 + (holders.get(word) ?? 0)));
      const whole = own.reduce((sum, word) => sum + weight(word), 0);
      const scored = sources.map((source) => ({ seq: source.seq, score: own.reduce((sum, word) => sum + (source.words?.has(word) ? weight(word) : 0), 0) / whole }));
      return scored
        .filter((one) => one.score >= LEAST_SHARE)
        .sort((a, b) => b.score - a.score || a.seq - b.seq)
        .slice(0, MOST_LINKS - 1)
        .map((one) => one.seq);
    };
    let prepared = 0;
    let at = 0;
    let timer: ReturnType<typeof setTimeout>;
    const step = () => {
      const until = performance.now() + SLICE_MS;
      while (prepared < sources.length && performance.now() < until) {
        const source = sources[prepared++];
        if (!source) continue;
        source.words = words(spoken(source.message));
        source.words.forEach((word) => holders.set(word, (holders.get(word) ?? 0) + 1));
      }
      while (prepared >= sources.length && at < lines.length && performance.now() < until) {
        const one = lines[at++] ?? "";
        const seqs = [byState, byStrings, byWords].map((find) => find(one)).find((list) => list.length > 0);
        if (seqs) out.set(one, seqs.slice(0, MOST_LINKS));
      }
      if (at < lines.length) timer = setTimeout(step, 0);
      else setFound(new Map(out));
    };
    timer = setTimeout(step, 0);
    return () => clearTimeout(timer);
  }, [document, items, entries]);
  return found;
}
