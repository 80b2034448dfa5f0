// A message of any of the three wire formats as a list of parts: what a person reads.
import { plain } from "./format";
import type { Json, JsonObject } from "./types";

export type Part =
  | { kind: "text"; text: string }
  | { kind: "reasoning"; text: string | null }
  | { kind: "call"; id: string; name: string; input: string }
  | { kind: "result"; id: string; text: string; failed: boolean; images: string[] }
  | { kind: "image"; source: string | null; note: string }
  | { kind: "other"; name: string; raw: string };

function object(value: Json | undefined): JsonObject | null {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? value : null;
}

function text(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** The picture in a block if it is part of the message; one that lies elsewhere is never asked for. */
function picture(block: JsonObject): { source: string | null; note: string } {
  const source = object(block["source"]);
  const kind = text(source?.["media_type"]);
  const data = text(source?.["data"]);
  if (source && PICTURES.has(kind) && /^[A-Za-z0-9+/=\s]+$/.test(data)) return { source: `data:${kind};base64,${data}`, note: kind };
  const named = object(block["image_url"]);
  const address = text(block["image_url"]) || text(named?.["url"]) || text(source?.["url"]);
  const inside = /^data:(image\/[a-z]+);base64,([A-Za-z0-9+/=\s]+)$/.exec(address);
  if (inside && PICTURES.has(inside[1] ?? "")) return { source: address, note: inside[1] ?? "" };
  const place = address === "" ? "of a kind that is not shown" : `at ${address.slice(0, 200)}, which is not loaded`;
  return { source: null, note: plain(place) };
}

function pretty(value: Json | undefined): string {
  if (typeof value === "string") {
    try {
      const read = JSON.parse(value) as Json;
      if (read !== null && typeof read === "object") return JSON.stringify(read, null, 2);
    } catch {
      // Arguments that are no JSON are shown as they are.
    }
    return value;
  }
  return value === undefined ? "" : JSON.stringify(value, null, 2);
}

function resultOf(id: string, content: Json | undefined, failed: boolean): Part {
  const words: string[] = [];
  const images: string[] = [];
  if (typeof content === "string") words.push(content);
  for (const piece of Array.isArray(content) ? content : []) {
    const block = object(piece);
    if (!block) continue;
    if (typeof block["text"] === "string") words.push(block["text"]);
    else if (text(block["type"]).includes("image")) {
      const { source, note } = picture(block);
      if (source) images.push(source);
      else words.push(`[picture ${note}]`);
    } else words.push(pretty(block));
  }
  return { kind: "result", id, text: words.join("\n"), failed, images };
}

function blockPart(block: JsonObject): Part {
  const kind = text(block["type"]);
  switch (kind) {
    case "text":
    case "input_text":
    case "output_text":
    case "refusal":
      return { kind: "text", text: text(block["text"]) || text(block["refusal"]) };
    case "thinking":
      return { kind: "reasoning", text: text(block["thinking"]) || null };
    case "redacted_thinking":
      return { kind: "reasoning", text: null };
    case "tool_use":
    case "server_tool_use":
      return { kind: "call", id: text(block["id"]), name: text(block["name"]), input: pretty(block["input"]) };
    case "tool_result":
      return resultOf(text(block["tool_use_id"]), block["content"], block["is_error"] === true);
    case "image":
    case "image_url":
    case "input_image":
      return { kind: "image", ...picture(block) };
    default:
      return { kind: "other", name: kind === "" ? "unknown" : kind, raw: pretty(block) };
  }
}

/** The parts of a message. Whatever it holds, something is returned and nothing is thrown. */
export function partsOf(message: JsonObject): Part[] {
  const kind = text(message["type"]);
  if (kind === "function_call" || kind === "custom_tool_call") {
    return [{ kind: "call", id: text(message["call_id"]), name: text(message["name"]), input: pretty(message["arguments"] ?? message["input"]) }];
  }
  if (kind === "function_call_output" || kind === "custom_tool_call_output") {
    return [resultOf(text(message["call_id"]), message["output"], false)];
  }
  if (kind === "reasoning") {
    const pieces = [message["summary"], message["content"]].flatMap((list) => (Array.isArray(list) ? list : []));
    const words = pieces.map((piece) => text(object(piece)?.["text"])).filter((one) => one !== "");
    return [{ kind: "reasoning", text: words.length > 0 ? words.join("\n\n") : null }];
  }
  const parts: Part[] = [];
  const reasoning = text(message["reasoning_content"]) || text(message["reasoning"]);
  if (reasoning) parts.push({ kind: "reasoning", text: reasoning });
  const content = message["content"];
  if (text(message["role"]) === "tool") {
    parts.push(resultOf(text(message["tool_call_id"]), content, false));
    return parts;
  }
  if (typeof content === "string" && content !== "") parts.push({ kind: "text", text: content });
  for (const piece of Array.isArray(content) ? content : []) {
    const block = object(piece);
    if (block) parts.push(blockPart(block));
    else if (typeof piece === "string") parts.push({ kind: "text", text: piece });
  }
  for (const piece of Array.isArray(message["tool_calls"]) ? message["tool_calls"] : []) {
    const call = object(piece);
    const named = object(call?.["function"]) ?? object(call?.["custom"]);
    if (call && named) {
      parts.push({ kind: "call", id: text(call["id"]), name: text(named["name"]), input: pretty(named["arguments"] ?? named["input"]) });
    }
  }
  if (parts.length === 0 && kind !== "" && kind !== "message") parts.push({ kind: "other", name: kind, raw: pretty(message) });
  return parts;
}

/** One line that says what a message is. */
export function glimpse(message: JsonObject, most = 160): string {
  for (const part of partsOf(message)) {
    if (part.kind === "text" && part.text.trim() !== "") return cut(part.text, most);
    if (part.kind === "call") return cut(`${part.name} ${part.input}`, most);
    if (part.kind === "result") return cut(part.text || "(empty result)", most);
    if (part.kind === "image") return "picture";
  }
  return "(no words)";
}

function cut(words: string, most: number): string {
  const flat = plain(words.slice(0, most * 3)).replace(/\s+/g, " ").trim();
  return flat.length > most ? `${flat.slice(0, most - 1)}…` : flat;
}
