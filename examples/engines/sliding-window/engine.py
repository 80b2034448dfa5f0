"""A context engine in plain Python: a sliding window.

It keeps the first message, drops the oldest ones after it until what is left fits half of the threshold, and puts a
note in their place. Messages that belong together (a tool call and its results) stay or go together.

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
        groups = grouped([message["json"] for message in messages])
        if len(groups) < 3:
            return no_op("nothing_in_the_middle", "there is nothing between the first message and the newest")
        if not params.get("force") and before < self.threshold():
            return no_op("below_threshold", f"{before} tokens are below the threshold")
        room = self.threshold() // 2 - conversation["fixed_tokens"]
        tokens = [sum(messages[index]["tokens"] for index in group) for group in groups]
        room -= tokens[0]
        kept = len(groups)
        while kept > 2 and room - tokens[kept - 1] >= 0:
            kept -= 1
            room -= tokens[kept]
        kept = min(kept, len(groups) - 1)
        dropped = [index for group in groups[1:kept] for index in group]
        if not dropped:
            return no_op("nothing_in_the_middle", "everything fits")
        note = f"[{len(dropped)} earlier messages were left out to make room.]"
        view = [{"kind": "kept", "item": index} for index in groups[0]]
        view.append({"kind": "summary", "json": json.dumps(note_message(conversation["dialect"], note))})
        view.extend({"kind": "kept", "item": index} for group in groups[kept:] for index in group)
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


def no_op(reason, detail):
    return {"kind": "no_op", "reason": reason, "detail": detail}


def note_message(dialect, text):
    content = [{"type": "input_text", "text": text}] if dialect == "responses" else text
    message = {"role": "user", "content": content}
    return {"type": "message", **message} if dialect == "responses" else message


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
    groups, waiting = [], set()
    for index, message in enumerate(messages):
        calls, results = calls_and_results(message)
        belongs = groups and (waiting or results or message.get("type") == "reasoning")
        if belongs:
            groups[-1].append(index)
        else:
            groups.append([index])
        waiting = (waiting | calls) - results
    return groups


def main():
    engine = SlidingWindow()
    methods = {name: getattr(engine, name) for name in dir(engine) if not name.startswith("_")}
    for line in sys.stdin:
        request = json.loads(line)
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
