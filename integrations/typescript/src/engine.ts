/** The engine of Throughline as a child process: `throughline engine --stdio`, asked in JSON-RPC, a line a message. */

import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** A message as its wire format has it. */
export type Message = Record<string, unknown>;
/** The form of the messages: OpenAI Chat Completions, OpenAI Responses or Anthropic Messages. */
export type Wire = "chat" | "responses" | "anthropic";

export interface EngineOptions {
  windowTokens: number;
  model?: string;
  wire?: Wire;
  /** The share of the window above which a conversation is compacted; 0.5 without it. */
  threshold?: number;
  /** The command; the program of this package, or `throughline` in PATH, without it. */
  command?: [string, ...string[]];
  env?: NodeJS.ProcessEnv;
}

export interface Compaction<M> {
  messages: (M | Message)[];
  isCompacted: boolean;
  /** Why nothing was done, where nothing was. */
  reason?: string;
  tokensBefore: number;
  tokensAfter: number;
  warnings: string[];
}

/** The engine cannot be started, ended, or refused. */
export class EngineError extends Error {}

const PROTOCOL = 1;
const ANSWER_MS = 10_000;
const COMPACT_MS = 300_000;
/** A rough estimate is enough: the engine uses it to place cuts, not to bill anybody. */
const CHARACTERS_PER_TOKEN = 4;

interface Waiting {
  resolve: (result: Record<string, any>) => void;
  reject: (error: Error) => void;
  timer: NodeJS.Timeout;
}

interface ViewItem {
  kind: string;
  item?: number;
  json?: string;
}

function ownCommand(): [string, ...string[]] {
  const name = process.platform === "win32" ? "throughline.exe" : "throughline";
  const own = fileURLToPath(new URL(`../bin/${name}`, import.meta.url));
  return [existsSync(own) ? own : "throughline", "engine", "--stdio"];
}

const estimated = (message: object): number => Math.floor(JSON.stringify(message).length / CHARACTERS_PER_TOKEN) + 4;

/** Compacts one conversation. Close it when the conversation is over. */
export class Engine {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #wire: Wire;
  readonly #thresholdTokens: number;
  readonly #session = randomUUID();
  readonly #waiting = new Map<number, Waiting>();
  readonly #store = new Map<string, unknown>();
  #nextId = 0;
  #ended: EngineError | undefined;

  private constructor(options: EngineOptions) {
    const { windowTokens, threshold = 0.5, wire = "chat" } = options;
    if (!(windowTokens > 0) || !(threshold > 0 && threshold <= 1)) {
      throw new RangeError("windowTokens has to be positive, and threshold between 0 and 1");
    }
    this.#wire = wire;
    this.#thresholdTokens = Math.floor(windowTokens * threshold);
    const [program, ...args] = options.command ?? ownCommand();
    this.#process = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"], ...(options.env ? { env: options.env } : {}) });
    this.#process.on("error", (error) => this.#end(`${program} cannot be started: ${error.message}`));
    this.#process.on("exit", (code) => this.#end(`the engine has ended (${code})`));
    this.#process.stdin.on("error", () => undefined);
    this.#process.stderr.resume();
    createInterface({ input: this.#process.stdout }).on("line", (line) => this.#take(line));
  }

  /** Starts an engine. */
  static async start(options: EngineOptions): Promise<Engine> {
    const engine = new Engine(options);
    try {
      const said = await engine.#ask("initialize", { protocol: PROTOCOL, host: "typescript", engine: "throughline" });
      if (said["protocol"] !== PROTOCOL) {
        throw new EngineError(`the engine speaks version ${said["protocol"]} of the protocol`);
      }
      await engine.#ask("update_model", {
        model: options.model ?? "unknown",
        provider: "typescript",
        window_tokens: options.windowTokens,
        limits: limits(options.windowTokens, engine.#thresholdTokens),
      });
      await engine.#ask("session_started", {
        session: engine.#session,
        conversation: engine.#session,
        dialect: engine.#wire,
        program: "typescript",
        compactions: 0,
      });
      return engine;
    } catch (error) {
      engine.close();
      throw error;
    }
  }

  /** The messages as a model should see them: as they are below the threshold, compacted above it. */
  async compact<M extends object>(
    messages: readonly M[],
    options: { promptTokens?: number; focus?: string; force?: boolean } = {},
  ): Promise<Compaction<M>> {
    const carried = messages.map((json) => ({ json, tokens: estimated(json) }));
    const estimate = carried.reduce((sum, { tokens }) => sum + tokens, 0);
    const total = Math.max(options.promptTokens ?? 0, estimate);
    const asIs = (reason?: string): Compaction<M> => ({
      messages: [...messages],
      isCompacted: false,
      ...(reason ? { reason } : {}),
      tokensBefore: total,
      tokensAfter: total,
      warnings: [],
    });
    if (!options.force && total < this.#thresholdTokens) return asIs("below_threshold");
    const outcome = await this.#ask(
      "compress",
      {
        conversation: {
          session: this.#session,
          dialect: this.#wire,
          messages: carried,
          fixed_tokens: total - estimate,
          prompt_tokens: total,
        },
        trigger: options.force ? "manual" : "preflight",
        room: "left",
        force: options.force ?? false,
        ...(options.focus ? { focus: options.focus } : {}),
      },
      COMPACT_MS,
    );
    if (outcome["kind"] !== "completed") return asIs(outcome["reason"]);
    const view = (outcome["view"] as ViewItem[]).map((item): M | Message => {
      const kept = item.kind === "kept" && item.item !== undefined ? messages[item.item] : undefined;
      return kept ?? (JSON.parse(item.json ?? "null") as Message);
    });
    const report = outcome["report"] ?? {};
    return {
      messages: view,
      isCompacted: true,
      tokensBefore: report.tokens?.before ?? total,
      tokensAfter: report.tokens?.after ?? 0,
      warnings: report.warnings ?? [],
    };
  }

  /** Ends the engine. */
  close(): void {
    this.#process.stdin.end();
  }

  #end(why: string): void {
    this.#ended ??= new EngineError(why);
    for (const { reject, timer } of this.#waiting.values()) {
      clearTimeout(timer);
      reject(this.#ended);
    }
    this.#waiting.clear();
  }

  #take(line: string): void {
    let message: Record<string, any>;
    try {
      message = JSON.parse(line);
    } catch {
      return;
    }
    if (typeof message["method"] === "string") {
      this.#write({ jsonrpc: "2.0", id: message["id"], ...this.#answer(message["method"], message["params"] ?? {}) });
      return;
    }
    const waiting = this.#waiting.get(message["id"]);
    if (!waiting) return;
    this.#waiting.delete(message["id"]);
    clearTimeout(waiting.timer);
    if (message["error"]) waiting.reject(new EngineError(message["error"].message));
    else waiting.resolve(message["result"] ?? {});
  }

  /** What an engine asks of its host: a store, for as long as the conversation lasts. */
  #answer(method: string, params: Record<string, any>): object {
    const key = params["key"] as string;
    switch (method) {
      case "host/log":
        return { result: null };
      case "host/store_get":
        return { result: this.#store.get(key) ?? null };
      case "host/store_list":
        return { result: [...this.#store.keys()].filter((name) => name.startsWith(params["prefix"] ?? "")).sort() };
      case "host/store_put":
        this.#store.set(key, params["value"]);
        return { result: null };
      case "host/store_delete":
        this.#store.delete(key);
        return { result: null };
      default:
        return { error: { code: -32601, message: `there is no method \`${method}\`` } };
    }
  }

  #write(message: object): void {
    this.#process.stdin.write(`${JSON.stringify(message)}\n`);
  }

  #ask(method: string, params: object, ms = ANSWER_MS): Promise<Record<string, any>> {
    if (this.#ended) return Promise.reject(this.#ended);
    return new Promise((resolve, reject) => {
      const id = ++this.#nextId;
      const timer = setTimeout(() => {
        this.#process.kill("SIGKILL");
        this.#end(`the engine did not answer \`${method}\` within ${ms / 1000} s`);
      }, ms);
      this.#waiting.set(id, { resolve, reject, timer });
      this.#write({ jsonrpc: "2.0", id, method, params });
    });
  }
}

/** Limits as `throughline config defaults` has them, for this window. */
function limits(window: number, threshold: number): Record<string, number> {
  const share = Math.floor;
  return {
    threshold_configured_tokens: threshold,
    threshold_tokens: threshold,
    reserved_output_tokens: 0,
    hygiene_tokens: Math.max(share(window * 0.85), threshold),
    tail_permille: 200,
    tail_tokens: share(threshold / 5),
    summary_cap_tokens: Math.min(12_000, Math.max(share(window / 20), Math.min(2_000, share(window / 8)))),
    summary_floor_tokens: Math.min(2_000, share(window / 8)),
    protect_first_n: 3,
    protect_last_n: 20,
  };
}
