/** Sessions and usage, as a running gateway has them under `/api`. */

/** A session of the record; `tip` is its newest part. */
export interface Session {
  root: string;
  tip: Record<string, unknown>;
}

/** Calls, tokens and cost. */
export interface Usage {
  total: Record<string, unknown>;
  [group: string]: unknown;
}

/** The gateway is not there, or refused. */
export class GatewayError extends Error {
  constructor(
    message: string,
    readonly status?: number,
  ) {
    super(message);
  }
}

/** The address of the gateway: `THROUGHLINE_GATEWAY`, else where `throughline serve` listens by default. */
export function gatewayUrl(): string {
  return (process.env["THROUGHLINE_GATEWAY"] ?? "http://127.0.0.1:8790").replace(/\/+$/, "");
}

/** A running gateway. `token` is an access token, where it demands one. */
export class Gateway {
  readonly url: string;
  readonly #token: string | undefined;

  constructor(options: { url?: string; token?: string } = {}) {
    this.url = (options.url ?? gatewayUrl()).replace(/\/+$/, "");
    this.#token = options.token;
  }

  /** All sessions, the most recently active first; pages are fetched as they are needed. */
  async *sessions(options: { limit?: number; program?: string } = {}): AsyncGenerator<Session> {
    let after: string | undefined;
    do {
      const page = await this.#get("/api/sessions", { limit: options.limit ?? 100, after, program: options.program });
      yield* (page["sessions"] ?? []) as Session[];
      after = (page["next"] as string | null | undefined) ?? undefined;
    } while (after);
  }

  /** One session by its id, a unique prefix of one, its title, or `last`. */
  session(reference = "last"): Promise<Record<string, unknown>> {
    return this.#get(`/api/sessions/${encodeURIComponent(reference)}`);
  }

  /** Tokens, calls and cost, of one session or of all. */
  async usage(options: { session?: string; sinceMs?: number; untilMs?: number } = {}): Promise<Usage> {
    const { session, sinceMs, untilMs } = options;
    return (await this.#get("/api/usage", { session, since_ms: sinceMs, until_ms: untilMs })) as Usage;
  }

  async #get(path: string, query: Record<string, string | number | undefined> = {}): Promise<Record<string, unknown>> {
    const url = new URL(this.url + path);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    let answer: Response;
    try {
      answer = await fetch(url, { headers: this.#token ? { authorization: `Bearer ${this.#token}` } : {} });
    } catch (error) {
      throw new GatewayError(`the gateway at ${this.url} does not answer: ${String(error)}`);
    }
    const body = (await answer.json().catch(() => ({}))) as Record<string, any>;
    if (!answer.ok) throw new GatewayError(body["error"]?.message ?? answer.statusText, answer.status);
    return body;
  }
}
