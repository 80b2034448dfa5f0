// What happens at the gateway, as it happens. One stream for the whole page; it comes back by itself.
import { useEffect, useRef, useState } from "preact/hooks";
import { api, ApiFailure } from "./api";
import { ofOwner } from "./owner";
import type { JsonObject } from "./types";

export type LiveState = "connecting" | "live" | "lost";
export type LiveEvent = JsonObject & { event: string };

const KINDS = [
  "served",
  "refused",
  "opened",
  "attached",
  "recalled",
  "warning",
  "missed",
  "pressure",
  "output_set_aside",
  "preparation_started",
  "preparation_ready",
  "preparation_postponed",
  "preparation_failed",
  "compaction_started",
  "compaction_completed",
  "compaction_no_op",
  "compaction_aborted",
  "compaction_blocked",
  "compaction_locked",
  "window_learnt",
  "cap_lowered",
  "fallback_used",
  "retrying",
  "notice",
];
const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;

class Live {
  state: LiveState = "connecting";
  private source: EventSource | null = null;
  private wait = FIRST_WAIT;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private wanted = false;
  readonly states = new Set<(state: LiveState, again: boolean) => void>();
  readonly events = new Set<(event: LiveEvent) => void>();

  start(): void {
    this.wanted = true;
    if (this.source === null) this.connect();
  }

  stop(): void {
    this.wanted = false;
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  /** Begins anew, in the name of another owner. */
  restart(): void {
    this.stop();
    this.state = "connecting";
    this.start();
  }

  private connect(): void {
    clearTimeout(this.timer);
    const source = new EventSource(ofOwner("/api/events"));
    this.source = source;
    source.onopen = () => {
      const again = this.state === "lost";
      this.wait = FIRST_WAIT;
      this.set("live", again);
    };
    source.onerror = () => {
      source.close();
      if (this.source !== source) return;
      this.source = null;
      this.set("lost", false);
      this.timer = setTimeout(() => void this.retry(), this.wait);
      this.wait = Math.min(this.wait * 2, LONGEST_WAIT);
    };
    for (const kind of KINDS) {
      source.addEventListener(kind, (message) => {
        try {
          const event = JSON.parse((message as MessageEvent<string>).data) as LiveEvent;
          this.events.forEach((listener) => listener(event));
        } catch {
          // A line that is no JSON is of a version that this page does not know.
        }
      });
    }
  }

  private async retry(): Promise<void> {
    if (!this.wanted) return;
    try {
      // A stream does not say why it was refused; this does, and the page asks for a token if that is why.
      await api("/api/me");
    } catch (error) {
      if (error instanceof ApiFailure && error.status === 401) return;
    }
    if (this.wanted && this.source === null) this.connect();
  }

  private set(state: LiveState, again: boolean): void {
    this.state = state;
    this.states.forEach((listener) => listener(state, again));
  }
}

export const live = new Live();

export function useLiveState(): LiveState {
  const [state, setState] = useState(live.state);
  useEffect(() => {
    const listener = (now: LiveState) => setState(now);
    live.states.add(listener);
    return () => void live.states.delete(listener);
  }, []);
  return state;
}

/**
 * Calls back when an event that matters has happened, and when the stream came back; at most once in `every` milliseconds,
 * and not while the page is hidden.
 */
export function useLiveReload(reload: () => void, matters: (event: LiveEvent) => boolean, every = 400): void {
  const latest = useRef({ reload, matters });
  latest.current = { reload, matters };
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let waiting = false;
    const due = () => {
      if (document.hidden) {
        waiting = true;
        return;
      }
      timer ??= setTimeout(() => {
        timer = undefined;
        latest.current.reload();
      }, every);
    };
    const event = (happened: LiveEvent) => {
      if (happened.event === "missed" || latest.current.matters(happened)) due();
    };
    const state = (_: LiveState, again: boolean) => {
      if (again) due();
    };
    const shown = () => {
      if (!document.hidden && waiting) {
        waiting = false;
        due();
      }
    };
    live.events.add(event);
    live.states.add(state);
    document.addEventListener("visibilitychange", shown);
    return () => {
      live.events.delete(event);
      live.states.delete(state);
      document.removeEventListener("visibilitychange", shown);
      clearTimeout(timer);
    };
  }, [every]);
}
