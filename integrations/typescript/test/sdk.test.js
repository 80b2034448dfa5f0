// The SDK against the real program; THROUGHLINE_PROGRAM names it. Built first: `npm run build`.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { Engine, EngineError, Gateway, GatewayError, wrap } from "../lib/index.js";

const program = process.env.THROUGHLINE_PROGRAM;
const home = mkdtempSync(join(tmpdir(), "throughline-"));
after(() => rmSync(home, { recursive: true, force: true }));

const start = () =>
  Engine.start({
    windowTokens: 20_000,
    command: [program, "engine", "--stdio"],
    env: { HOME: home, THROUGHLINE_HOME: join(home, "own"), PATH: process.env.PATH },
  });

function conversation(steps = 60) {
  const messages = [{ role: "user", content: "Read every part of the archive; never touch src/lock.rs." }];
  for (let step = 0; step < steps; step += 1) {
    const call = { id: `c${step}`, type: "function", function: { name: "read", arguments: JSON.stringify({ step }) } };
    messages.push({ role: "assistant", content: null, tool_calls: [call] });
    messages.push({ role: "tool", tool_call_id: call.id, content: `part ${step}: ${"line of the archive. ".repeat(60)}` });
  }
  return messages;
}

test("conversations are compacted above the threshold and stay as they are below it", async () => {
  const engine = await start();
  const short = conversation(2);
  const same = await engine.compact(short);
  assert.equal(same.isCompacted, false);
  assert.ok(same.messages.every((message, index) => message === short[index]));
  const messages = conversation();
  const result = await engine.compact(messages);
  assert.ok(result.isCompacted && result.tokensAfter < result.tokensBefore / 2);
  const called = result.messages.flatMap((message) => (message.tool_calls ?? []).map(({ id }) => id));
  const answered = result.messages.filter(({ role }) => role === "tool").map((message) => message.tool_call_id);
  assert.deepEqual(called, answered);
  engine.close();
});

test("an engine that cannot start is said", async () => {
  await assert.rejects(Engine.start({ windowTokens: 1000, command: [join(home, "none")] }), EngineError);
  await assert.rejects(Engine.start({ windowTokens: 1000, command: ["/bin/false"] }), EngineError);
  await assert.rejects(Engine.start({ windowTokens: 0 }), RangeError);
});

test("sessions and usage are read page by page", async () => {
  const pages = {
    "/api/sessions?limit=100": { sessions: [{ root: "a" }], next: "a" },
    "/api/sessions?limit=100&after=a": { sessions: [{ root: "b" }] },
    "/api/usage": { total: { calls: 2 } },
  };
  const server = createServer((request, answer) => {
    const found = pages[request.url];
    answer.statusCode = found ? 200 : 404;
    answer.end(JSON.stringify(found ?? { error: { message: "there is no such session" } }));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const gateway = new Gateway({ url: `http://127.0.0.1:${server.address().port}/` });
  const roots = [];
  for await (const session of gateway.sessions()) roots.push(session.root);
  assert.deepEqual(roots, ["a", "b"]);
  assert.equal((await gateway.usage()).total.calls, 2);
  await assert.rejects(gateway.session("x y"), (error) => error instanceof GatewayError && error.status === 404);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await assert.rejects(gateway.usage(), GatewayError);
});

test("clients are pointed at the gateway", async () => {
  const { default: OpenAI } = await import("openai");
  const { default: Anthropic } = await import("@anthropic-ai/sdk");
  assert.equal(wrap(new OpenAI({ apiKey: "k" }), { url: "http://g:1" }).baseURL, "http://g:1/v1");
  assert.equal(wrap(new Anthropic({ apiKey: "k" }), { url: "http://g:1" }).baseURL, "http://g:1");
});

test("models of the AI SDK see compacted messages", async () => {
  const { generateText } = await import("ai");
  const { MockLanguageModelV3, MockLanguageModelV2, MockLanguageModelV4 } = await import("ai/test");
  const { prepareStep } = await import("../lib/ai.js");
  const engine = await start();
  const Mock = MockLanguageModelV4 ?? MockLanguageModelV3 ?? MockLanguageModelV2;
  let seen;
  const model = new Mock({
    doGenerate: async ({ prompt }) => {
      seen = prompt;
      return {
        finishReason: { unified: "stop", raw: "stop" },
        usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } },
        content: [{ type: "text", text: "done" }],
        warnings: [],
      };
    },
  });
  const messages = [{ role: "user", content: "Read the archive." }];
  for (let step = 0; step < 60; step += 1) {
    const call = { toolCallId: `c${step}`, toolName: "read" };
    messages.push({ role: "assistant", content: [{ type: "tool-call", ...call, input: { step } }] });
    const output = { type: "text", value: `part ${step}: ${"line of the archive. ".repeat(60)}` };
    messages.push({ role: "tool", content: [{ type: "tool-result", ...call, output }] });
  }
  messages.push({ role: "user", content: "And now?" });
  const { text } = await generateText({ model, messages, prepareStep: prepareStep(engine) });
  assert.equal(text, "done");
  assert.ok(seen.length < messages.length, `${seen.length} of ${messages.length}`);
  assert.ok(JSON.stringify(seen).length < JSON.stringify(messages).length / 2);
  engine.close();
});
