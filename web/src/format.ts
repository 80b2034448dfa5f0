// Figures, times and recorded text, as people read them.

const counts = new Intl.NumberFormat("en-US");

export function count(value: number): string {
  return counts.format(value);
}

/** A count in at most five characters: 999, 1.2k, 182k, 1.2M. */
export function rounded(value: number): string {
  const units = ["", "k", "M", "G", "T"];
  let at = 0;
  let left = value;
  while (left >= 999.5 && at < units.length - 1) {
    left /= 1000;
    at += 1;
  }
  const digits = at > 0 && left < 9.95 ? 1 : 0;
  return `${left.toFixed(digits)}${units[at]}`;
}

export function plural(value: number, one: string, many: string): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** Millionths of a US dollar. */
export function dollars(micro: number): string {
  const sign = micro < 0 ? "-" : "";
  const value = Math.abs(micro);
  if (value === 0) return "$0";
  if (value < 100) return `${sign}<$0.0001`;
  if (value < 10_000) return `${sign}$${(value / 1e6).toFixed(4)}`;
  return `${sign}$${(value / 1e6).toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}

/** A cost of which part may not be known. */
export function cost(micro: number, calls: number, unpriced: number): string {
  if (calls === 0) return "–";
  if (unpriced >= calls) return "unknown";
  return unpriced > 0 ? `${dollars(micro)}+` : dollars(micro);
}

export function percent(part: number, whole: number): string {
  if (whole <= 0) return "–";
  const share = (part / whole) * 100;
  return `${share > 0 && share < 1 ? share.toFixed(1) : Math.round(share)}%`;
}

export function bytes(value: number): string {
  if (value < 1024) return `${value} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  let left = value / 1024;
  while (left >= 1024 && at < units.length - 1) {
    left /= 1024;
    at += 1;
  }
  return `${left.toFixed(left < 10 ? 1 : 0)} ${units[at]}`;
}

const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const fullTime = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
const timeOnly = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const shortTime = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
const minuteOnly = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const dayOnly = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });

export function when(ms: number): string {
  return dateTime.format(ms);
}
/** A time as short as it can be among others: without the day where all fall on one. */
export function among(ms: number, first: number, last: number): string {
  return new Date(first).toDateString() === new Date(last).toDateString() ? timeOnly.format(ms) : shortTime.format(ms);
}
export function exactly(ms: number): string {
  return fullTime.format(ms);
}
export function clock(ms: number): string {
  return timeOnly.format(ms);
}
export function day(ms: number): string {
  return dayOnly.format(ms);
}

export function ago(ms: number, now = Date.now()): string {
  const seconds = Math.round((now - ms) / 1000);
  if (seconds < 0) return when(ms);
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  if (seconds < 14 * 86_400) return plural(Math.floor(seconds / 86_400), "day", "days") + " ago";
  return day(ms);
}

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

// Codes of terminals, marks that reverse the direction of what follows, and other characters that nobody sees.
const ANSI = /\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[@-_]?/g;
const UNSEEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c\ufeff]/g;

/** Recorded text as it may be shown: colours of terminals are dropped, what cannot be seen is shown as a box. */
export function plain(text: string): string {
  const clean = text.includes("\u001b") ? text.replace(ANSI, "") : text;
  return clean.replace(/\r\n?/g, "\n").replace(UNSEEN, "\ufffd");
}

/** What a conversation is called: its title, how it begins, or its id. */
export function nameOf(title: string | null | undefined, firstWords: string | null | undefined, id: string): string {
  return line(title) || line(firstWords, 90) || id;
}

/** With a capital at its beginning. */
export function sentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** From when to when, without saying a day twice. */
export function span(first: number, last: number): string {
  if (when(first) === when(last)) return when(first);
  const same = new Date(first).toDateString() === new Date(last).toDateString();
  return `${when(first)} to ${same ? minuteOnly.format(last) : when(last)}`;
}

/** The same on one line, for titles and names. */
export function line(text: string | null | undefined, most = 200): string {
  const flat = plain((text ?? "").slice(0, most * 4)).replace(/\s+/g, " ").trim();
  return flat.length > most ? `${flat.slice(0, most - 1)}…` : flat;
}
