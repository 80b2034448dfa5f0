// Small parts that every page uses: states, figures, the strip that shows what fills a context.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApiFailure } from "./api";
import { ago, count, dollars, exactly, percent, rounded } from "./format";
import { hasMoved } from "./router";
import type { Sent, Usage } from "./types";

export const KINDS: { key: keyof Sent; name: string }[] = [
  { key: "system", name: "System prompt" },
  { key: "tools", name: "Tools" },
  { key: "summary", name: "Summary" },
  { key: "user", name: "User" },
  { key: "assistant", name: "Assistant" },
  { key: "tool", name: "Tool results" },
];

export const BUCKETS: { key: "cache_read" | "cache_write" | "input" | "output"; name: string; short: string }[] = [
  { key: "cache_read", name: "Read from cache", short: "read" },
  { key: "cache_write", name: "Written to cache", short: "written" },
  { key: "input", name: "Uncached", short: "uncached" },
  { key: "output", name: "Output", short: "output" },
];

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title === "" ? "Throughline" : `${title} · Throughline`;
  }, [title]);
}

/** The heading of a page. It takes the focus when the page is gone to, so that screen readers say where one is. */
export function Heading({ children, title }: { children: ComponentChildren; title: string }) {
  useTitle(title);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    // On the first page the browser begins at the top, with the link that skips to the content.
    if (!hasMoved()) return;
    if (document.activeElement === document.body || document.activeElement?.closest("nav")) {
      heading.current?.focus({ preventScroll: true });
    }
  }, []);
  return (
    <h1 ref={heading} tabIndex={-1}>
      {children}
    </h1>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <p class="state" role="status">
      Loading {what}…
    </p>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <div class="state empty">{children}</div>;
}

const ADVICE: Record<string, string> = {
  unreachable: "It may be restarting. This page tries again by itself.",
  internal: "The log of the gateway says why. A damaged record is found by throughline doctor.",
  too_many_requests: "The token has a limit of requests. Wait a moment.",
};

export function Failure({ failure, what, retry }: { failure: ApiFailure; what: string; retry?: () => void }) {
  const title = failure.status === 404 ? `${what} is not in the record` : `${what} cannot be shown`;
  const words = failure.status === 404 ? "It may have been deleted, or it belongs to another owner." : failure.message;
  return (
    <div class="state failure" role="alert">
      <h2>{title}</h2>
      <p>{words}</p>
      {ADVICE[failure.code] ? <p>{ADVICE[failure.code]}</p> : null}
      {retry && failure.status !== 404 ? (
        <button type="button" onClick={retry}>
          Try again
        </button>
      ) : null}
    </div>
  );
}

/** A failure beside data that is still shown. */
export function Notice({ children, kind = "warning" }: { children: ComponentChildren; kind?: "warning" | "done" }) {
  return (
    <p class={`notice ${kind}`} role={kind === "warning" ? "alert" : "status"}>
      {children}
    </p>
  );
}

export function Ago({ ms }: { ms: number }) {
  return (
    <time dateTime={new Date(ms).toISOString()} title={exactly(ms)}>
      {ago(ms)}
    </time>
  );
}

export function sentTotal(sent: Sent): number {
  return KINDS.reduce((sum, { key }) => sum + sent[key], 0);
}

/** What fills a context, as one strip: parts by kind, free space up to the window, a mark at the threshold. */
export function Strip({ sent, window: size, threshold, label }: { sent: Sent; window: number | null; threshold: number | null; label?: string }) {
  const total = sentTotal(sent);
  const whole = Math.max(size ?? 0, total, threshold ?? 0, 1);
  const words = KINDS.filter(({ key }) => sent[key] > 0).map(({ key, name }) => `${name} ${rounded(sent[key])}`);
  const told = `${label ?? "Context"}: ${rounded(total)} tokens${size ? ` of ${rounded(size)}` : ""}${threshold ? `, compacted at ${rounded(threshold)}` : ""}. ${words.join(", ")}`;
  return (
    <div class="strip" role="img" aria-label={told} title={told}>
      {KINDS.map(({ key }) => (sent[key] > 0 ? <span key={key} class={`k-${key}`} style={{ width: `${(sent[key] / whole) * 100}%` }} /> : null))}
      {threshold !== null && size !== null ? <i style={{ left: `${(threshold / whole) * 100}%` }} /> : null}
    </div>
  );
}

export function Legend() {
  return (
    <ul class="legend" aria-label="Kinds">
      {KINDS.map(({ key, name }) => (
        <li key={key}>
          <i class={`k-${key}`} aria-hidden="true" />
          {name}
        </li>
      ))}
    </ul>
  );
}

export function prompt(usage: Usage): number {
  return usage.input + usage.cache_read + usage.cache_write;
}

export function Figure({ name, children, note }: { name: string; children: ComponentChildren; note?: string }) {
  return (
    <div class="figure">
      <dt>{name}</dt>
      <dd>
        {children}
        {note ? <small>{note}</small> : null}
      </dd>
    </div>
  );
}

export function CacheShare({ usage }: { usage: Usage }) {
  return <>{percent(usage.cache_read, prompt(usage))}</>;
}

export function Tokens({ value }: { value: number }) {
  return <span title={`${count(value)} tokens`}>{rounded(value)}</span>;
}

export function Money({ micro }: { micro: number }) {
  return <span title={`$${(micro / 1e6).toFixed(6)}`}>{dollars(micro)}</span>;
}

/** A question that has to be answered before something is done. */
export function Confirm({
  title,
  children,
  action,
  danger,
  busy,
  onYes,
  onNo,
}: {
  title: string;
  children: ComponentChildren;
  action: string;
  danger?: boolean;
  busy?: boolean;
  onYes: () => void;
  onNo: () => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const shown = dialog.current;
    if (shown && !shown.open) shown.showModal();
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby="dialog-title" onCancel={onNo} onClose={onNo}>
      <h2 id="dialog-title">{title}</h2>
      {children}
      <p class="actions">
        <button type="button" class={danger ? "danger" : "primary"} onClick={onYes} disabled={busy}>
          {busy ? "Working…" : action}
        </button>
        <button type="button" onClick={onNo}>
          Cancel
        </button>
      </p>
    </dialog>
  );
}

/** Whether the page is narrow: what stands side by side elsewhere is shown one at a time. */
export function useNarrow(below: number): boolean {
  const [narrow, setNarrow] = useState(() => window.innerWidth < below);
  useEffect(() => {
    const media = window.matchMedia(`(max-width: ${below - 1}px)`);
    const change = () => setNarrow(media.matches);
    change();
    media.addEventListener("change", change);
    return () => media.removeEventListener("change", change);
  }, [below]);
  return narrow;
}

export function download(name: string, kind: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: kind }));
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
