"""Sessions and usage, as a running gateway has them under `/api`."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Iterator, TypedDict, cast

from .clients import gateway_url


class GatewayError(Exception):
    """The gateway is not there, or refused."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Session(TypedDict, total=False):
    """A session of the record; `tip` is its newest part."""

    root: str
    tip: dict[str, Any]


class Usage(TypedDict, total=False):
    """Calls, tokens and cost."""

    total: dict[str, Any]


class Gateway:
    """A running gateway. `token` is an access token, where it demands one."""

    def __init__(self, url: str | None = None, token: str | None = None, *, timeout: float = 30.0) -> None:
        self.url = (url or gateway_url()).rstrip("/")
        self._token = token
        self._timeout = timeout

    def sessions(self, *, limit: int = 100, program: str | None = None) -> Iterator[Session]:
        """All sessions, the most recently active first; pages are fetched as they are needed."""
        after: str | None = None
        while True:
            page = self._get("/api/sessions", {"limit": limit, "after": after, "program": program})
            yield from cast("list[Session]", page.get("sessions", []))
            after = page.get("next")
            if not after:
                return

    def session(self, reference: str = "last") -> dict[str, Any]:
        """One session by its id, a unique prefix of one, its title, or `last`."""
        return self._get(f"/api/sessions/{urllib.parse.quote(reference, safe='')}")

    def usage(self, *, session: str | None = None, since_ms: int | None = None, until_ms: int | None = None) -> Usage:
        """Tokens, calls and cost, of one session or of all."""
        return cast(Usage, self._get("/api/usage", {"session": session, "since_ms": since_ms, "until_ms": until_ms}))

    def _get(self, path: str, query: dict[str, Any] | None = None) -> dict[str, Any]:
        given = {name: value for name, value in (query or {}).items() if value is not None}
        url = f"{self.url}{path}" + (f"?{urllib.parse.urlencode(given)}" if given else "")
        headers = {"accept": "application/json"}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        # A gateway on this machine is never behind a proxy.
        local = urllib.parse.urlsplit(self.url).hostname in ("127.0.0.1", "localhost", "::1")
        opener = urllib.request.build_opener(*([urllib.request.ProxyHandler({})] if local else []))
        try:
            with opener.open(urllib.request.Request(url, headers=headers), timeout=self._timeout) as answer:
                return cast("dict[str, Any]", json.load(answer))
        except urllib.error.HTTPError as error:
            try:
                message = json.load(error)["error"]["message"]
            except (ValueError, KeyError, TypeError):
                message = error.reason
            raise GatewayError(str(message), error.code) from error
        except (urllib.error.URLError, OSError, ValueError) as error:
            raise GatewayError(f"the gateway at {self.url} does not answer: {error}") from error
