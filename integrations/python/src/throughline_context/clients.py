"""Clients of `openai` and `anthropic` whose calls go through the gateway."""

from __future__ import annotations

import os
from typing import Any, TypeVar

Client = TypeVar("Client")

DEFAULT_URL = "http://127.0.0.1:8790"


def gateway_url() -> str:
    """The address of the gateway: `THROUGHLINE_GATEWAY`, else where `throughline serve` listens by default."""
    return os.environ.get("THROUGHLINE_GATEWAY", DEFAULT_URL).rstrip("/")


def wrap(client: Client, url: str | None = None, *, session: str | None = None) -> Client:
    """The same client, with its calls sent through the gateway.

    Works with `openai.OpenAI`, `anthropic.Anthropic` and their async and Azure relatives. The key stays the client's own.
    `session` names the session of the record that the calls belong to; without it, the gateway recognises it.
    """
    options = getattr(client, "with_options", None)
    package = type(client).__module__.split(".")[0]
    if options is None or package not in ("openai", "anthropic"):
        raise TypeError(f"{type(client).__name__} is no client of openai or anthropic")
    base = (url or gateway_url()).rstrip("/")
    more: dict[str, Any] = {"default_headers": {"x-throughline-session": session}} if session else {}
    wrapped: Client = options(base_url=f"{base}/v1" if package == "openai" else base, **more)
    return wrapped
