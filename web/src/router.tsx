// Addresses: every state of the page has its own, and back goes back.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { keepingOwner } from "./owner";

export type Place = { path: string; params: URLSearchParams; hash: string };

const BASE = "/ui";
const listeners = new Set<() => void>();

export function place(): Place {
  const { pathname, search, hash } = window.location;
  const path = pathname.startsWith(BASE) ? pathname.slice(BASE.length) : pathname;
  return { path: path === "" ? "/" : path, params: new URLSearchParams(search), hash: hash.slice(1) };
}

function tell(): void {
  listeners.forEach((listener) => listener());
}

window.addEventListener("popstate", tell);

export function href(path: string): string {
  return `${BASE}${keepingOwner(path)}`;
}

let moves = 0;

/** Whether the document shows another page than the one it was loaded with. */
export function hasMoved(): boolean {
  return moves > 0;
}

/** Goes to a state of the page. A filter that is being typed replaces the address instead of adding to the history. */
export function go(path: string, how: "push" | "replace" = "push"): void {
  moves += 1;
  const target = href(path);
  const current = window.location.pathname + window.location.search;
  if (how === "replace" || target === current) window.history.replaceState(null, "", target);
  else window.history.pushState(null, "", target);
  tell();
}

export function usePlace(): Place {
  const [now, setNow] = useState(place);
  useEffect(() => {
    const listener = () => setNow(place());
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return now;
}

/** The address of the present page with other parameters; empty values are left out. */
export function withParams(now: Place, changes: Record<string, string | null>): string {
  const params = new URLSearchParams(now.params);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") params.delete(name);
    else params.set(name, value);
  }
  const text = params.toString();
  return text === "" ? now.path : `${now.path}?${text}`;
}

type LinkProps = {
  to: string;
  class?: string;
  title?: string;
  children?: ComponentChildren;
  current?: boolean;
  label?: string;
};

export function Link({ to, class: name, title, children, current, label }: LinkProps) {
  const click = (event: MouseEvent) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(to);
  };
  return (
    <a href={href(to)} class={name} title={title} onClick={click} aria-current={current ? "page" : undefined} aria-label={label}>
      {children}
    </a>
  );
}
