"""The SDK against the real program; `THROUGHLINE_PROGRAM` names it."""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from throughline_context import Engine, EngineError, Gateway, GatewayError, wrap

PROGRAM = os.environ["THROUGHLINE_PROGRAM"]


@pytest.fixture
def environment(tmp_path):
    return {"HOME": str(tmp_path), "THROUGHLINE_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}


@pytest.fixture
def engine(environment):
    with Engine(20_000, argv=[PROGRAM, "engine", "--stdio"], env=environment) as engine:
        yield engine


def conversation(steps=60):
    messages = [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "Read every part of the archive; never touch src/lock.rs."},
    ]
    for step in range(steps):
        call = {"id": f"c{step}", "type": "function", "function": {"name": "read", "arguments": json.dumps({"part": step})}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{step}", "content": f"part {step}: " + "line of the archive. " * 60})
    return messages


def test_short_conversations_come_back_as_they_are(engine):
    messages = conversation(2)
    result = engine.compact(messages)
    assert not result.is_compacted and result.reason == "below_threshold"
    assert all(one is other for one, other in zip(result.messages, messages))


def test_long_conversations_are_compacted_and_calls_keep_their_results(engine):
    messages = conversation()
    result = engine.compact(messages)
    assert result.is_compacted
    assert result.tokens_after < result.tokens_before / 2
    assert result.messages[0]["content"].startswith("You help.") and result.messages[-1] is messages[-1]
    called = [call["id"] for message in result.messages for call in message.get("tool_calls") or []]
    answered = [message["tool_call_id"] for message in result.messages if message["role"] == "tool"]
    assert called == answered
    assert "src/lock.rs" in json.dumps(result.messages)
    # The next compaction goes on from the first.
    again = engine.compact(list(result.messages) + conversation()[2:])
    assert again.is_compacted


def test_an_engine_that_cannot_start_is_said(tmp_path):
    with pytest.raises(EngineError, match="cannot be started"):
        Engine(1000, argv=[str(tmp_path / "none")])
    with pytest.raises(EngineError, match="ended"):
        Engine(1000, argv=["/bin/false"])
    with pytest.raises(ValueError):
        Engine(0)


class Api(BaseHTTPRequestHandler):
    def do_GET(self):
        pages = {
            "/api/sessions?limit=100": {"sessions": [{"root": "a"}], "next": "a"},
            "/api/sessions?limit=100&after=a": {"sessions": [{"root": "b"}]},
            "/api/usage": {"total": {"calls": 2}},
        }
        found = pages.get(self.path)
        body = json.dumps(found if found else {"error": {"code": "x", "message": "there is no such session"}}).encode()
        self.send_response(200 if found else 404)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_sessions_and_usage_are_read_page_by_page():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    gateway = Gateway(f"http://127.0.0.1:{server.server_port}")
    assert [session["root"] for session in gateway.sessions()] == ["a", "b"]
    assert gateway.usage()["total"]["calls"] == 2
    with pytest.raises(GatewayError, match="no such session") as refused:
        gateway.session("x y")
    assert refused.value.status == 404
    server.shutdown()
    server.server_close()
    with pytest.raises(GatewayError, match="does not answer"):
        gateway.usage()


def test_clients_are_pointed_at_the_gateway():
    openai, anthropic = pytest.importorskip("openai"), pytest.importorskip("anthropic")
    assert str(wrap(openai.OpenAI(api_key="k"), "http://g:1").base_url) == "http://g:1/v1/"
    assert str(wrap(anthropic.AsyncAnthropic(api_key="k"), "http://g:1").base_url).rstrip("/") == "http://g:1"
    with pytest.raises(TypeError):
        wrap(object())


def test_langchain_models_see_compacted_messages(engine):
    pytest.importorskip("langchain")
    from langchain.agents import create_agent
    from langchain_core.language_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, convert_to_messages

    from throughline_context.langchain import middleware, pre_model_hook

    seen = []

    class Model(GenericFakeChatModel):
        def _generate(self, messages, **options):
            seen.append(messages)
            return super()._generate(messages, **options)

    history = convert_to_messages(conversation())
    agent = create_agent(Model(messages=iter([AIMessage("done")])), [], middleware=[middleware(engine)])
    state = agent.invoke({"messages": history})
    assert len(state["messages"]) == len(history) + 1
    assert len(seen[0]) < len(history) / 2
    assert any(message is history[-1] or message.content == history[-1].content for message in seen[0])
    view = pre_model_hook(engine)({"messages": history})["llm_input_messages"]
    assert len(view) < len(history) / 2
