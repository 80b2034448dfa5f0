"""The SDKs of the providers against one base URL: every result as JSON on a line of its own."""

import json
import sys

import anthropic
import openai

URL = sys.argv[1]
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}

chat = openai.OpenAI(base_url=URL + "/v1", api_key="sk-of-the-client", max_retries=0)
claude = anthropic.Anthropic(base_url=URL, api_key="sk-ant-of-the-client", max_retries=0)


def show(name, value):
    print(json.dumps({name: value}, sort_keys=True, default=str), flush=True)


def plain(value):
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value


# --- Chat Completions

CHAT_TOOL = {"type": "function", "function": {"name": "read_file", "description": "Reads.", "parameters": SCHEMA}}


def chat_once(messages, streamed, **more):
    """One answer, as the SDK has it, and the message to go on with."""
    if not streamed:
        answer = chat.chat.completions.create(model="worker", messages=messages, **more)
        return plain(answer), answer.choices[0].message
    with chat.chat.completions.stream(
        model="worker", messages=messages, stream_options={"include_usage": True}, **more
    ) as stream:
        events = [(event.type, plain(getattr(event, "chunk", None))) for event in stream]
        answer = stream.get_final_completion()
        return [events, plain(answer)], answer.choices[0].message


def chat_talk(streamed):
    kind = "streamed" if streamed else "whole"
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Grüße, 日本 😀"}]
    shown, message = chat_once(messages, streamed)
    show(f"chat {kind}", shown)
    messages += [message.model_dump(exclude_none=True), {"role": "user", "content": "Read both files."}]
    shown, message = chat_once(messages, streamed, tools=[CHAT_TOOL])
    show(f"chat {kind} calls", shown)
    messages.append(message.model_dump(exclude_none=True))
    for call in message.tool_calls:
        messages.append({"role": "tool", "tool_call_id": call.id, "content": f"content for {call.id}"})
    shown, message = chat_once(messages, streamed, tools=[CHAT_TOOL])
    show(f"chat {kind} results", shown)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PIXEL}}
    messages = [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, image]}]
    show(f"chat {kind} image", chat_once(messages, streamed)[0])


# --- Responses

RESPONSES_TOOL = {"type": "function", "name": "read_file", "description": "Reads.", "parameters": SCHEMA, "strict": False}


def responses_once(items, streamed, **more):
    if not streamed:
        answer = chat.responses.create(model="worker", input=items, store=False, **more)
        return plain(answer), answer
    events, answer = [], None
    for event in chat.responses.create(model="worker", input=items, store=False, stream=True, **more):
        events.append(plain(event))
        if event.type == "response.completed":
            answer = event.response
    return events, answer


def responses_talk(streamed):
    kind = "streamed" if streamed else "whole"
    items = [{"role": "user", "content": [{"type": "input_text", "text": "Think, then greet."}]}]
    more = {"reasoning": {"effort": "low"}, "include": ["reasoning.encrypted_content"], "tools": [RESPONSES_TOOL]}
    shown, answer = responses_once(items, streamed, **more)
    show(f"responses {kind}", shown)
    items += [item.model_dump(exclude_none=True) for item in answer.output]
    items.append({"role": "user", "content": "Read both files."})
    shown, answer = responses_once(items, streamed, **more)
    show(f"responses {kind} calls", shown)
    items += [item.model_dump(exclude_none=True) for item in answer.output]
    for item in answer.output:
        if item.type == "function_call":
            items.append({"type": "function_call_output", "call_id": item.call_id, "output": "content"})
    shown, answer = responses_once(items, streamed, **more)
    show(f"responses {kind} results", shown)
    image = {"type": "input_image", "image_url": "data:image/png;base64," + PIXEL}
    items = [{"role": "user", "content": [{"type": "input_text", "text": "What is this?"}, image]}]
    show(f"responses {kind} image", responses_once(items, streamed)[0])


# --- Anthropic Messages

CLAUDE_TOOL = {"name": "read_file", "description": "Reads.", "input_schema": SCHEMA}


def claude_once(messages, streamed, **more):
    asked = {"model": "claude-worker", "max_tokens": 4096, "messages": messages, **more}
    if not streamed:
        answer = claude.messages.create(**asked)
        return plain(answer), answer
    with claude.messages.stream(**asked) as stream:
        events = [plain(event) for event in stream]
        answer = stream.get_final_message()
    return [events, plain(answer)], answer


def claude_talk(streamed):
    kind = "streamed" if streamed else "whole"
    more = {
        "system": "Be brief.",
        "thinking": {"type": "enabled", "budget_tokens": 2048},
        "tools": [CLAUDE_TOOL],
    }
    messages = [{"role": "user", "content": "Think, then greet."}]
    shown, answer = claude_once(messages, streamed, **more)
    show(f"claude {kind}", shown)
    messages.append({"role": "assistant", "content": [plain(block) for block in answer.content]})
    messages.append({"role": "user", "content": "Read both files."})
    shown, answer = claude_once(messages, streamed, **more)
    show(f"claude {kind} calls", shown)
    messages.append({"role": "assistant", "content": [plain(block) for block in answer.content]})
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": [{"type": "text", "text": "content"}]}
        for block in answer.content
        if block.type == "tool_use"
    ]
    messages.append({"role": "user", "content": results})
    show(f"claude {kind} results", claude_once(messages, streamed, **more)[0])
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    image = {"type": "image", "source": source, "cache_control": {"type": "ephemeral"}}
    messages = [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, image]}]
    show(f"claude {kind} image", claude_once(messages, streamed)[0])


# --- Errors and everything else


def error_of(ask):
    try:
        ask()
    except (openai.APIError, anthropic.APIError) as error:
        return [type(error).__name__, getattr(error, "status_code", None), error.body]
    return "no error"


def errors():
    refused = [{"role": "user", "content": "Refuse this."}]
    show("chat error", error_of(lambda: chat_once(refused, False)))
    show("chat streamed error", error_of(lambda: chat_once(refused, True)))
    show("responses error", error_of(lambda: responses_once(refused, False)))
    show("claude error", error_of(lambda: claude_once(refused, False)))
    broken = [{"role": "user", "content": "Break off."}]
    show("chat broken", error_of(lambda: chat_once(broken, True)))
    show("claude broken", error_of(lambda: claude_once(broken, True)))


for streamed in (False, True):
    chat_talk(streamed)
    responses_talk(streamed)
    claude_talk(streamed)
errors()
show("models", [model.id for model in chat.models.list()])
counted = claude.messages.count_tokens(model="claude-worker", messages=[{"role": "user", "content": "How long?"}])
show("count", plain(counted))
