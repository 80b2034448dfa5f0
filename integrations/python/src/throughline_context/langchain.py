"""Hooks for LangChain and LangGraph: the model sees compacted messages, the state keeps all of them."""

from __future__ import annotations

from typing import Any, Awaitable, Callable, Sequence

from langchain_core.messages import convert_to_messages, convert_to_openai_messages

from .engine import Engine


def compacted(engine: Engine, messages: Sequence[Any]) -> list[Any]:
    """The messages as the model should see them. Those that stay are the very same objects."""
    wire = convert_to_openai_messages(list(messages))
    assert isinstance(wire, list)
    by_identity = {id(form): message for form, message in zip(wire, messages)}
    result = engine.compact(wire)
    if not result.is_compacted:
        return list(messages)
    return [by_identity.get(id(form)) or convert_to_messages([dict(form)])[0] for form in result.messages]


def pre_model_hook(engine: Engine) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """For LangGraph: `create_react_agent(..., pre_model_hook=pre_model_hook(engine))`."""

    def hook(state: dict[str, Any]) -> dict[str, Any]:
        return {"llm_input_messages": compacted(engine, state["messages"])}

    return hook


def middleware(engine: Engine) -> Any:
    """For LangChain: `create_agent(..., middleware=[middleware(engine)])`."""
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse

    class CompactionMiddleware(AgentMiddleware):
        def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> ModelResponse:
            return handler(request.override(messages=compacted(engine, request.messages)))

        async def awrap_model_call(
            self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
        ) -> ModelResponse:
            return await handler(request.override(messages=compacted(engine, request.messages)))

    return CompactionMiddleware()


__all__ = ["compacted", "middleware", "pre_model_hook"]
