"""Hermes with Throughline in its slot for a context engine, driven through its own commands; facts go to standard output."""

import json
import os
import sys

from cli import HermesCLI

turns, tool = int(sys.argv[1]), sys.argv[2]
facts = {}

hermes = HermesCLI(compact=True)


def say(words):
    answer = hermes.chat(words)
    assert answer, f"no answer to {words[:60]}"
    return answer


def filling(turn):
    return " ".join(f"entry {turn * 1000 + n}: crates/part_{n % 97}/src/file_{n}.rs was read" for n in range(170))


say("Hello.")
engine = hermes.agent.context_compressor
facts["engine"] = engine.name
asked = []
ask = engine._ask
engine._ask = lambda method, params, *rest: (asked.append((method, params)), ask(method, params, *rest))[1]

for turn in range(turns):
    say(f"Remember part {turn}: {filling(turn)}")
facts["compactions"] = engine.compression_count
facts["messages"] = len(hermes.conversation_history)

os.kill(engine.connection.process.pid, 9)
facts["answer_after_kill"] = say("Are you still there?")
facts["runs_again"] = engine.should_compress(10**9)

before = engine.compression_count
for turn in range(4):
    say(f"And part {turn}: {filling(turn)}")
hermes.process_command("/compress the garden")
facts["compactions_by_hand"] = engine.compression_count - before
facts["focus"] = [params.get("focus") for method, params in asked if method == "compress" and params.get("focus")]
facts["answer_after_compress"] = say("And now?")

if tool:
    facts["tools"] = sorted(hermes.agent._context_engine_tool_names)
    facts["answer_with_tool"] = say("Use your tool.")
    facts["tool_results"] = [
        message["content"] for message in hermes.conversation_history if message.get("role") == "tool"
    ]

print("\nFACTS " + json.dumps(facts))
