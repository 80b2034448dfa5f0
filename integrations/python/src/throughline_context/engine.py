"""The engine of Throughline as a child process: `throughline engine --stdio`, asked in JSON-RPC, a line a message."""

from __future__ import annotations

import json
import queue
import shutil
import subprocess
import sysconfig
import threading
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Mapping, Sequence

Message = Mapping[str, Any]

PROTOCOL = 1
ANSWER_SECONDS = 10.0
COMPACT_SECONDS = 300.0
# A rough estimate is enough: the engine uses it to place cuts, not to bill anybody.
CHARACTERS_PER_TOKEN = 4


class EngineError(Exception):
    """The engine cannot be started, ended, or refused."""


@dataclass(frozen=True)
class Compaction:
    """The messages to send, and what became of the others."""

    messages: list[Message]
    is_compacted: bool
    #: Why nothing was done, where nothing was: `below_threshold`, `nothing_new`, ...
    reason: str | None = None
    tokens_before: int = 0
    tokens_after: int = 0
    warnings: list[str] = field(default_factory=list)


def command() -> list[str]:
    """The command of the engine: the program of this wheel, else the one in PATH."""
    for name in ("throughline", "throughline.exe"):
        own = Path(sysconfig.get_path("scripts")) / name
        if own.exists():
            return [str(own), "engine", "--stdio"]
    found = shutil.which("throughline")
    if found is None:
        raise EngineError("there is no program `throughline` in PATH")
    return [found, "engine", "--stdio"]


def estimated_tokens(message: Message) -> int:
    return len(json.dumps(message, ensure_ascii=False)) // CHARACTERS_PER_TOKEN + 4


class Engine:
    """Compacts one conversation. Use it as a context manager, or call `close`.

    `wire` is `chat` (OpenAI Chat Completions), `responses` or `anthropic`: the form of the messages.
    """

    def __init__(
        self,
        window_tokens: int,
        *,
        model: str = "unknown",
        wire: str = "chat",
        threshold: float = 0.5,
        argv: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        if window_tokens < 1 or not 0 < threshold <= 1:
            raise ValueError("window_tokens has to be positive, and threshold between 0 and 1")
        self._wire = wire
        self._threshold_tokens = int(window_tokens * threshold)
        self._session = uuid.uuid4().hex
        self._next_id = 0
        self._lock = threading.Lock()
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        argv = list(argv) if argv is not None else command()
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
                env=dict(env) if env is not None else None,
            )
        except OSError as error:
            raise EngineError(f"{argv[0]} cannot be started: {error}") from error
        self._store: dict[str, Any] = {}
        threading.Thread(target=self._listen, daemon=True).start()
        try:
            said = self._ask("initialize", {"protocol": PROTOCOL, "host": "python", "engine": "throughline"})
            if said.get("protocol") != PROTOCOL:
                raise EngineError(f"the engine speaks version {said.get('protocol')} of the protocol")
            limits = _limits(window_tokens, self._threshold_tokens)
            self._ask(
                "update_model",
                {"model": model, "provider": "python", "window_tokens": window_tokens, "limits": limits},
            )
            self._ask(
                "session_started",
                {
                    "session": self._session,
                    "conversation": self._session,
                    "dialect": wire,
                    "program": "python",
                    "compactions": 0,
                },
            )
        except BaseException:
            self.close()
            raise

    def compact(
        self,
        messages: Sequence[Message],
        *,
        prompt_tokens: int | None = None,
        focus: str | None = None,
        force: bool = False,
    ) -> Compaction:
        """The messages as a model should see them: as they are below the threshold, compacted above it.

        `prompt_tokens` is the size of the whole prompt, as the provider counted it; without it, an estimate is used.
        """
        carried = [{"json": message, "tokens": estimated_tokens(message)} for message in messages]
        estimate = sum(estimated_tokens(message) for message in messages)
        total = max(prompt_tokens or 0, estimate)
        if not force and total < self._threshold_tokens:
            return Compaction(list(messages), False, "below_threshold", total, total)
        params: dict[str, Any] = {
            "conversation": {
                "session": self._session,
                "dialect": self._wire,
                "messages": carried,
                "fixed_tokens": total - estimate,
                "prompt_tokens": total,
            },
            "trigger": "manual" if force else "preflight",
            "room": "left",
            "force": force,
        }
        if focus:
            params["focus"] = focus
        outcome = self._ask("compress", params, COMPACT_SECONDS)
        if outcome.get("kind") != "completed":
            return Compaction(list(messages), False, outcome.get("reason"), total, total)
        view = [messages[item["item"]] if item["kind"] == "kept" else json.loads(item["json"]) for item in outcome["view"]]
        report = outcome.get("report") or {}
        tokens = report.get("tokens") or {}
        return Compaction(
            view, True, None, tokens.get("before", total), tokens.get("after", 0), list(report.get("warnings") or [])
        )

    def close(self) -> None:
        """Ends the engine."""
        if self._process.stdin:
            try:
                self._process.stdin.close()
            except OSError:
                pass
        try:
            self._process.wait(timeout=ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if "method" in message:
                self._write({"jsonrpc": "2.0", "id": message.get("id"), **self._answer(message)})
            else:
                self._answers.put(message)
        self._answers.put(None)

    def _answer(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """What an engine asks of its host: a store, for as long as the conversation lasts."""
        params = message.get("params") or {}
        method, key = message["method"], params.get("key", "")
        if method == "host/log":
            return {"result": None}
        if method == "host/store_get":
            return {"result": self._store.get(key)}
        if method == "host/store_list":
            return {"result": sorted(name for name in self._store if name.startswith(params.get("prefix", "")))}
        if method == "host/store_put":
            self._store[key] = params.get("value")
            return {"result": None}
        if method == "host/store_delete":
            self._store.pop(key, None)
            return {"result": None}
        return {"error": {"code": -32601, "message": f"there is no method `{method}`"}}

    def _write(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        except (OSError, ValueError) as error:
            raise EngineError(f"the engine has ended: {error}") from error

    def _ask(self, method: str, params: Mapping[str, Any], seconds: float = ANSWER_SECONDS) -> dict[str, Any]:
        with self._lock:
            self._next_id += 1
            self._write({"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params})
            while True:
                try:
                    answer = self._answers.get(timeout=seconds)
                except queue.Empty:
                    self._process.kill()
                    raise EngineError(f"the engine did not answer `{method}` within {seconds:.0f} s") from None
                if answer is None:
                    self._answers.put(None)
                    raise EngineError(f"the engine has ended ({self._process.wait()})")
                if answer.get("id") != self._next_id:
                    continue
                if answer.get("error"):
                    raise EngineError(answer["error"].get("message", "an error without words"))
                result = answer.get("result")
                return result if isinstance(result, dict) else {}


def _limits(window: int, threshold: int) -> dict[str, int]:
    """Limits as `throughline config defaults` has them, for this window."""
    return {
        "threshold_configured_tokens": threshold,
        "threshold_tokens": threshold,
        "reserved_output_tokens": 0,
        "hygiene_tokens": max(window * 85 // 100, threshold),
        "tail_permille": 200,
        "tail_tokens": threshold // 5,
        "summary_cap_tokens": min(12_000, max(window // 20, min(2_000, window // 8))),
        "summary_floor_tokens": min(2_000, window // 8),
        "protect_first_n": 3,
        "protect_last_n": 20,
    }
