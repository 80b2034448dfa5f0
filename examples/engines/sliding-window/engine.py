"""A context engine in plain Python: a sliding window.

It drops the oldest messages until what is left fits half of the threshold, and puts a note in their place. The last
thing a person said always stays, and messages that belong together (a tool call and its results) stay or go together.

It speaks the engine protocol of Throughline: JSON-RPC 2.0 over standard input and output, a line a message.
"""

import json
import sys


class SlidingWindow:
    def __init__(self):
        self.model = None
        self.compactions = 0
        self.last_prompt_tokens = None

    # -- what a host asks ------------------------------------------------------------------------------------------

    def initialize(self, params):
        return {"protocol": 1, "name": "sliding-window", "version": "1.0", "capabilities": {}}

    def update_model(self, params):
        self.model = params

    def update_from_response(self, params):
        usage = params.get("usage")
        if usage:
            self.last_prompt_tokens = usage["input"] + usage["cache_read"] + usage["cache_write"]

    def should_compress(self, params):
        return params["prompt_tokens"] >= self.threshold()

    def session_started(self, params):
        self.compactions = params["compactions"]

    def compress(self, params):
        conversation = params["conversation"]
        messages = conversation["messages"]
        before = conversation["prompt_tokens"]
        dialect = conversation["dialect"]
        if not messages:
            return no_op("empty", "nothing was said yet")
        if not params.get("force") and before < self.threshold():
            return no_op("below_threshold", f"{before} tokens are below the threshold")
        groups = grouped([message["json"] for message in messages])
        first = self.first_kept(params, messages, groups)
        human = next((i for i in range(len(messages) - 1, -1, -1) if is_human(messages[i])), first)
        kept = [human] * (human < first) + list(range(first, len(messages)))
        dropped = [index for index in range(first) if index != human]
        if not dropped:
            return no_op("nothing_in_the_middle", "everything fits")
        note = f"[{len(dropped)} earlier messages were left out to make room.]"
        view = [{"kind": "summary", "json": json.dumps(message_of(dialect, "user", note))}]
        if messages[kept[0]]["json"].get("role") == "user":
            # Two messages of one role must not follow each other on every wire.
            reply = message_of(dialect, "assistant", "Understood.")
            view.append({"kind": "synthetic", "role": "acknowledgement", "json": json.dumps(reply)})
        view.extend({"kind": "kept", "item": index} for index in kept)
        after = before - sum(messages[index]["tokens"] for index in dropped) + len(note) // 4
        self.compactions += 1
        return {
            "kind": "completed",
            "view": view,
            "summary": {"author": "rules", "document": note, "covers": dropped},
            "quality": "rules",
            "report": {
                "tokens": {"before": before, "after": max(after, 0)},
                "messages": {"before": len(messages), "after": len(view)},
                "summary_tokens": len(note) // 4,
                "facts_important": 0,
                "facts_kept": 0,
                "facts_attached": 0,
            },
        }

    def get_status(self, params):
        limits = self.model["limits"]
        tokens = self.last_prompt_tokens or 0
        return {
            "engine": "sliding-window",
            "model": self.model["model"],
            "last_prompt_tokens": self.last_prompt_tokens,
            "threshold_configured_tokens": limits["threshold_configured_tokens"],
            "threshold_tokens": limits["threshold_tokens"],
            "window_tokens": self.model["window_tokens"],
            "compactions": self.compactions,
            "pressure": {
                "tokens": tokens,
                "threshold_tokens": limits["threshold_tokens"],
                "window_tokens": self.model["window_tokens"],
            },
        }

    # -- how it decides --------------------------------------------------------------------------------------------

    def threshold(self):
        return self.model["limits"]["threshold_tokens"]

    def first_kept(self, params, messages, groups):
        """The place of the oldest message that stays."""
        if params.get("keep_messages") is not None:
            return max(len(messages) - params["keep_messages"], 0)
        room = min(self.threshold(), params.get("target_tokens") or self.threshold()) // 2
        if params.get("force"):
            room = min(room, params["conversation"]["prompt_tokens"] // 2)
        room -= params["conversation"]["fixed_tokens"]
        first = groups[-1][0]
        for group in reversed(groups):
            room -= sum(messages[index]["tokens"] for index in group)
            if room < 0:
                break
            first = group[0]
        return first


def no_op(reason, detail):
    return {"kind": "no_op", "reason": reason, "detail": detail}


def message_of(dialect, role, text):
    if dialect != "responses":
        return {"role": role, "content": text}
    kind = "input_text" if role == "user" else "output_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def is_human(message):
    """Whether a person said it: a program's words in their name and results of tools are none of theirs."""
    said = message["json"]
    _, results = calls_and_results(said)
    return said.get("role") == "user" and not results and not message.get("machine_written")


def calls_and_results(message):
    """The ids of calls a message makes, and of calls it answers, on any of the three wires."""
    calls, results = set(), set()
    for call in message.get("tool_calls") or []:
        calls.add(call["id"])
    if message.get("role") == "tool":
        results.add(message.get("tool_call_id"))
    kind = message.get("type") or ""
    if kind.endswith("_call") and "call_id" in message:
        calls.add(message["call_id"])
    if kind.endswith("_call_output"):
        results.add(message.get("call_id"))
    content = message.get("content")
    for block in content if isinstance(content, list) else []:
        if block.get("type") == "tool_use":
            calls.add(block["id"])
        if block.get("type") == "tool_result":
            results.add(block["tool_use_id"])
    return calls, results


def grouped(messages):
    """Messages in groups that stay or go together: a new one begins when no call waits for its result."""
    groups, waiting, after_reasoning = [], set(), False
    for index, message in enumerate(messages):
        calls, results = calls_and_results(message)
        if groups and (waiting or results or after_reasoning):
            groups[-1].append(index)
        else:
            groups.append([index])
        waiting = (waiting | calls) - results
        after_reasoning = message.get("type") == "reasoning"
    return groups


def main():
    engine = SlidingWindow()
    methods = {name: getattr(engine, name) for name in dir(engine) if not name.startswith("_")}
    for line in sys.stdin:
        try:
            request = json.loads(line)
        except ValueError as error:
            if line.strip():
                print(f"this is no message: {error}", file=sys.stderr, flush=True)
            continue
        if "method" not in request:
            continue  # an answer, to a question this engine never asks
        answer = {"jsonrpc": "2.0", "id": request.get("id")}
        method = methods.get(request.get("method"))
        if method is None:
            answer["error"] = {"code": -32601, "message": f"there is no method `{request.get('method')}`"}
        else:
            try:
                answer["result"] = method(request.get("params") or {})
            except Exception as error:  # whatever goes wrong is told, and the next question is answered
                answer["error"] = {"code": -32000, "message": f"{type(error).__name__}: {error}"}
        if request.get("id") is not None:
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
