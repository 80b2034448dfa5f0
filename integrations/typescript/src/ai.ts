/** A hook for the Vercel AI SDK: `prepareStep` of `generateText`, `streamText` and agents. */

import type { ModelMessage } from "ai";

import type { Engine, Message } from "./engine.js";

/** A message of the AI SDK as one of OpenAI Chat Completions; several, where it holds several results. */
function toWire(message: ModelMessage): Message[] {
  const { role, content } = message;
  if (typeof content === "string") return [{ role, content }];
  if (role === "tool") {
    return content
      .filter((part) => part.type === "tool-result")
      .map((part) => ({ role, tool_call_id: part.toolCallId, content: JSON.stringify(part.output) }));
  }
  const text = content.map((part) => (part.type === "text" ? part.text : "")).join("");
  const calls = content
    .filter((part) => part.type === "tool-call")
    .map((part) => ({
      id: part.toolCallId,
      type: "function",
      function: { name: part.toolName, arguments: JSON.stringify(part.input) },
    }));
  return [calls.length > 0 ? { role, content: text || null, tool_calls: calls } : { role, content: text }];
}

/** A message that the engine wrote or shortened. */
function fromWire(message: Message, original: ModelMessage | undefined): ModelMessage {
  const text = typeof message["content"] === "string" ? message["content"] : JSON.stringify(message["content"] ?? "");
  if (message["role"] === "tool" && original?.role === "tool") {
    const content = original.content.map((part) =>
      part.type === "tool-result" && part.toolCallId === message["tool_call_id"]
        ? { ...part, output: { type: "text" as const, value: text } }
        : part,
    );
    return { ...original, content };
  }
  // Calls keep their form: the engine shortens results, not calls.
  if (original?.role === "assistant" && message["tool_calls"]) return original;
  const role = message["role"] === "assistant" || message["role"] === "system" ? message["role"] : "user";
  return { role, content: text };
}

/** The messages as the model should see them. Those that stay are the very same objects. */
export async function compacted(engine: Engine, messages: ModelMessage[]): Promise<ModelMessage[]> {
  const origin = new Map<Message, ModelMessage>();
  const wire = messages.flatMap((message) => {
    const forms = toWire(message);
    for (const form of forms) origin.set(form, message);
    return forms;
  });
  const byCall = new Map(wire.filter((form) => form["role"] === "tool").map((form) => [form["tool_call_id"], origin.get(form)]));
  const byCalls = new Map(
    wire.filter((form) => form["tool_calls"]).map((form) => [callIds(form), origin.get(form)]),
  );
  const result = await engine.compact(wire);
  if (!result.isCompacted) return messages;
  const view: ModelMessage[] = [];
  for (const form of result.messages as Message[]) {
    const original = origin.get(form) ?? byCall.get(form["tool_call_id"]) ?? (form["tool_calls"] ? byCalls.get(callIds(form)) : undefined);
    const next = origin.has(form) ? origin.get(form)! : fromWire(form, original);
    // Results of one message come one by one.
    const last = view.at(-1);
    if (next === last) continue;
    if (last?.role === "tool" && next.role === "tool" && original && sameCalls(last, next)) {
      view[view.length - 1] = merged(last, next, form["tool_call_id"]);
      continue;
    }
    view.push(next);
  }
  return view;
}

const callIds = (form: Message): string => (form["tool_calls"] as { id: string }[]).map(({ id }) => id).join(" ");

type ToolMessage = Extract<ModelMessage, { role: "tool" }>;

const ids = (message: ToolMessage): string =>
  message.content.map((part) => (part.type === "tool-result" ? part.toolCallId : "")).join(" ");

const sameCalls = (one: ToolMessage, other: ToolMessage): boolean => ids(one) === ids(other);

/** The first message with one result of the second. */
function merged(one: ToolMessage, other: ToolMessage, call: unknown): ToolMessage {
  const content = one.content.map((part, index) =>
    part.type === "tool-result" && part.toolCallId === call ? other.content[index]! : part,
  );
  return { ...one, content };
}

/** For `generateText({ ..., prepareStep: prepareStep(engine) })`. */
export function prepareStep(engine: Engine): (step: { messages: ModelMessage[] }) => Promise<{ messages: ModelMessage[] }> {
  return async ({ messages }) => ({ messages: await compacted(engine, messages) });
}
