/** Clients of `openai` and `@anthropic-ai/sdk` whose calls go through the gateway. */

import { gatewayUrl } from "./gateway.js";

interface WithOptions {
  baseURL: string;
  withOptions(options: object): unknown;
}

/**
 * The same client, with its calls sent through the gateway. The key stays the client's own. `session` names the session
 * of the record that the calls belong to; without it, the gateway recognises it.
 */
export function wrap<C extends WithOptions>(client: C, options: { url?: string; session?: string } = {}): C {
  const url = (options.url ?? gatewayUrl()).replace(/\/+$/, "");
  const name = client.constructor.name;
  // The client of Anthropic appends the version itself.
  const isAnthropic = name.includes("Anthropic") || "authToken" in client;
  const headers = options.session ? { defaultHeaders: { "x-throughline-session": options.session } } : {};
  return client.withOptions({ baseURL: isAnthropic ? url : `${url}/v1`, ...headers }) as C;
}
