// Requests to the gateway. Everything the page knows comes from here.
import { ofOwner } from "./owner";

export class ApiFailure extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

type Options = { method?: string; body?: unknown; token?: string; signal?: AbortSignal };

const preloaded = new Map<string, Promise<Response>>();

/** Asks for what the first view will need before the page knows who is signed in: one round trip less. */
export function preload(...paths: string[]): void {
  for (const path of paths.map(ofOwner)) {
    const early = fetch(path, { headers: { "x-throughline-page": "1" }, cache: "no-store" });
    // The caller shows the failure.
    early.catch(() => undefined);
    preloaded.set(path, early);
    setTimeout(() => preloaded.delete(path), 5000);
  }
}

async function send(asked: string, options: Options): Promise<Response> {
  const path = ofOwner(asked);
  // Forms and other sites cannot set this header, so that changes come from this page only.
  const headers: Record<string, string> = { "x-throughline-page": "1" };
  if (options.body !== undefined) headers["content-type"] = "application/json";
  if (options.token !== undefined) headers["x-throughline-token"] = options.token;
  let response: Response;
  try {
    const early = options.method === undefined ? preloaded.get(path) : undefined;
    preloaded.delete(path);
    response = await (early ?? fetch(path, {
      method: options.method ?? "GET",
      headers,
      body: options.body === undefined ? undefined : JSON.stringify(options.body),
      signal: options.signal,
      cache: "no-store",
    }));
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiFailure(0, "unreachable", "The gateway does not answer.");
  }
  if (response.ok) return response;
  let code = "internal";
  let message = `The gateway answered with status ${response.status}.`;
  try {
    const told = await response.json();
    code = String(told.error.code);
    message = String(told.error.message);
  } catch {
    // The answer has another form, for example that of a proxy in between; the status says enough.
  }
  if (response.status === 401) {
    // What was asked early was asked without a log-in.
    preloaded.clear();
    signedOut();
  }
  throw new ApiFailure(response.status, code, message);
}

export async function api<T>(path: string, options: Options = {}): Promise<T> {
  const response = await send(path, options);
  return (await response.json()) as T;
}

export function id(part: string): string {
  return encodeURIComponent(part);
}

/** A query string of the values that are set. */
export function query(values: Record<string, string | number | boolean | null | undefined>): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined && value !== null && value !== "" && value !== false) pairs.set(name, String(value));
  }
  const text = pairs.toString();
  return text === "" ? "" : `?${text}`;
}

const listeners = new Set<() => void>();

/** Tells the page that the gateway wants a token. */
function signedOut(): void {
  listeners.forEach((listener) => listener());
}

export function onSignedOut(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
