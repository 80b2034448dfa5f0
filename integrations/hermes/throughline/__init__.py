"""Throughline as the context engine of Hermes.

Hermes asks its context engine; this asks `throughline engine --stdio` in turn, by the engine protocol (JSON-RPC 2.0
over standard input and output, a line a message), and knows nothing about context itself. Whatever happens to that
program, the conversation is not hurt: it is started again at the next question, and while it does not answer the
messages stay as they are.

Settings, all optional, from the environment:
  HERMES_THROUGHLINE_COMMAND    the command, in place of `throughline engine --stdio`
  HERMES_THROUGHLINE_TIMEOUT    seconds a compaction may take (300)
"""

import json
import logging
import os
import queue
import shlex
import shutil
import subprocess
import threading
import time
from pathlib import Path

from agent.context_engine import ContextEngine

log = logging.getLogger(__name__)

ENGINE = "throughline engine --stdio"
ANSWER_SECONDS = 10
LONGEST_PAUSE_SECONDS = 60


class Gone(Exception):
    """The program is not there, ended, or did not answer in time."""


class Refused(Exception):
    """The program answered with an error."""


class Connection:
    """One process of the engine."""

    def __init__(self, command, answer_host):
        self.answer_host = answer_host
        self.answers = queue.Queue()
        self.next_id = 0
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
            )
        except OSError as error:
            raise Gone(f"{command[0]} cannot be started: {error}") from error
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._pass_on_errors, daemon=True).start()

    def _listen(self):
        for line in self.process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                log.info("throughline: %s", line.rstrip())
                continue
            if "method" in message:
                self._write({"jsonrpc": "2.0", "id": message.get("id"), **self.answer_host(message)})
            else:
                self.answers.put(message)
        self.answers.put(None)

    def _pass_on_errors(self):
        for line in self.process.stderr:
            log.info("throughline: %s", line.rstrip())

    def _write(self, message):
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
        except (OSError, ValueError) as error:
            raise Gone(f"it cannot be written to: {error}") from error

    def ask(self, method, params, seconds):
        self.next_id += 1
        self._write({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params})
        until = time.monotonic() + seconds
        while True:
            try:
                answer = self.answers.get(timeout=max(until - time.monotonic(), 0.001))
            except queue.Empty:
                self.close()
                raise Gone(f"it did not answer `{method}` within {seconds} s") from None
            if answer is None:
                self.answers.put(None)
                raise Gone(f"it ended ({self.process.wait()})")
            if answer.get("id") != self.next_id:
                continue  # too late, or to nobody
            if answer.get("error"):
                raise Refused(answer["error"].get("message", "an error without words"))
            return answer.get("result")

    def close(self):
        self.process.kill()
        self.process.wait()


class ThroughlineEngine(ContextEngine):
    threshold_percent = 0.5
    protect_first_n = 3
    protect_last_n = 20

    def __init__(self):
        self.command = shlex.split(os.environ.get("HERMES_THROUGHLINE_COMMAND") or ENGINE)
        self.compress_seconds = float(os.environ.get("HERMES_THROUGHLINE_TIMEOUT") or 300)
        self.threshold_percent = configured_threshold()
        self.model = None
        self.session = None
        self.store_file = None
        self.capabilities = {}
        self.connection = None
        self.lock = threading.RLock()
        self.failures, self.not_before = 0, 0.0

    def __deepcopy__(self, memo):
        """Each agent of Hermes gets an engine of its own, with a process of its own."""
        copy = ThroughlineEngine()
        copy.model, copy.session, copy.store_file = self.model, self.session, self.store_file
        copy.context_length, copy.threshold_tokens = self.context_length, self.threshold_tokens
        return copy

    @property
    def name(self):
        return "throughline"

    def is_available(self):
        return shutil.which(self.command[0]) is not None

    # -- asking -----------------------------------------------------------------------------------------------------

    def _open(self):
        if self.connection and self.connection.process.poll() is None:
            return self.connection
        if time.monotonic() < self.not_before:
            raise Gone("it is left alone for a moment before it is started again")
        self.connection = None
        connection = Connection(self.command, self._answer_engine)
        greeting = {"protocol": 1, "host": "hermes", "engine": self.name}
        said = connection.ask("initialize", greeting, ANSWER_SECONDS)
        if said.get("protocol") != 1:
            connection.close()
            raise Gone(f"it speaks version {said.get('protocol')} of the protocol, this plugin version 1")
        self.capabilities = said.get("capabilities") or {}
        if self.model:
            connection.ask("update_model", self.model, ANSWER_SECONDS)
        if self.session:
            connection.ask("session_started", {**self.session, "compactions": self.compression_count}, ANSWER_SECONDS)
        self.connection = connection
        return connection

    def _ask(self, method, params, seconds=ANSWER_SECONDS):
        """The answer of the engine. One that has ended is started again, and asked once more."""
        with self.lock:
            for attempt in (1, 2):
                try:
                    answer = self._open().ask(method, params, seconds)
                    self.failures, self.not_before = 0, 0.0
                    return answer
                except Gone as gone:
                    self.connection = None
                    if attempt == 2 or "did not answer" in str(gone):
                        self.failures += 1
                        pause = min(2 ** (self.failures - 1), LONGEST_PAUSE_SECONDS)
                        self.not_before = time.monotonic() + pause
                        raise

    def _ask_or(self, otherwise, method, params, seconds=ANSWER_SECONDS):
        """The answer of the engine; `otherwise` where there is none, and the reason in the log."""
        try:
            return self._ask(method, params, seconds)
        except (Gone, Refused) as error:
            log.warning("Throughline does not answer `%s`: %s", method, error)
            return otherwise

    def _answer_engine(self, message):
        """What an engine asks of its host: a store of its own. Summaries are its own business."""
        params = message.get("params") or {}
        method = message.get("method")
        if method == "host/log":
            log.info("throughline: %s", params.get("message"))
            return {"result": None}
        if not method.startswith("host/store_"):
            return {"error": {"code": -32601, "message": f"there is no method `{method}`"}}
        kept = self._kept()
        key = params.get("key", "")
        if method == "host/store_get":
            return {"result": kept.get(key)}
        if method == "host/store_list":
            return {"result": sorted(name for name in kept if name.startswith(params.get("prefix", "")))}
        if method == "host/store_put":
            kept[key] = params.get("value")
        else:
            kept.pop(key, None)
        if self.store_file:
            beside = self.store_file.with_suffix(".new")
            beside.write_text(json.dumps(kept), encoding="utf-8")
            beside.replace(self.store_file)
        return {"result": None}

    def _kept(self):
        try:
            return json.loads(self.store_file.read_text(encoding="utf-8"))
        except (AttributeError, OSError, ValueError):
            return {}

    # -- what Hermes asks -------------------------------------------------------------------------------------------

    def update_model(self, model, context_length, base_url="", api_key="", provider="", api_mode=""):
        self.context_length = context_length
        self.threshold_tokens = int(context_length * self.threshold_percent)
        self.model = {
            "model": model,
            "provider": provider or "hermes",
            "window_tokens": context_length,
            "limits": self._limits(),
        }
        self._ask_or(None, "update_model", self.model)

    def _limits(self):
        """Limits as the engine wants them, from what Hermes knows."""
        window, threshold = self.context_length, self.threshold_tokens
        return {
            "threshold_configured_tokens": threshold,
            "threshold_tokens": threshold,
            "reserved_output_tokens": 0,
            "hygiene_tokens": max(window * 85 // 100, threshold),
            "tail_permille": 200,
            "tail_tokens": threshold // 5,
            "summary_cap_tokens": min(12_000, max(window // 20, min(2_000, window // 8))),
            "summary_floor_tokens": min(2_000, window // 8),
            "protect_first_n": self.protect_first_n,
            "protect_last_n": self.protect_last_n,
        }

    def on_session_start(self, session_id, **about):
        old = self.session["session"] if self.session else None
        if about.get("hermes_home"):
            folder = Path(about["hermes_home"]) / "throughline"
            folder.mkdir(parents=True, exist_ok=True)
            self.store_file = folder / "store.json"
        if about.get("boundary_reason") and old:
            self.session["session"] = session_id
            if self.capabilities.get("lifecycle"):
                boundary = {"reason": "compression", "old": about.get("old_session_id") or old, "new": session_id}
                self._ask_or(None, "boundary", boundary)
            return
        self.session = {
            "session": session_id,
            "conversation": about.get("conversation_id") or session_id,
            "dialect": "chat",
            "program": "hermes",
        }
        self._ask_or(None, "session_started", {**self.session, "compactions": self.compression_count})

    def on_session_end(self, session_id, messages):
        if self.connection and self.capabilities.get("lifecycle"):
            self._ask_or(None, "session_ended", {"session": session_id, "reason": "ended"})
        with self.lock:
            if self.connection:
                self.connection.close()
            self.connection = None

    def on_session_reset(self):
        super().on_session_reset()
        if self.capabilities.get("lifecycle"):
            self._ask_or(None, "session_reset", {})

    def update_from_response(self, usage):
        if not usage:
            return
        self.last_prompt_tokens = usage.get("prompt_tokens", 0)
        self.last_completion_tokens = usage.get("completion_tokens", 0)
        self.last_total_tokens = usage.get("total_tokens", 0)
        read, write = usage.get("cache_read_tokens", 0), usage.get("cache_write_tokens", 0)
        counted = {
            "input": max(self.last_prompt_tokens - read - write, 0),
            "output": self.last_completion_tokens,
            "cache_read": read,
            "cache_write": write,
            "reasoning": usage.get("reasoning_tokens", 0),
        }
        self._ask_or(None, "update_from_response", {"session": self._session_id(), "usage": counted})

    def should_compress(self, prompt_tokens=None):
        tokens = self.last_prompt_tokens if prompt_tokens is None else prompt_tokens
        return bool(self._ask_or(False, "should_compress", {"prompt_tokens": max(int(tokens or 0), 0)}))

    def should_compress_preflight(self, messages):
        return self.should_compress(sum(tokens_of(message) for message in messages))

    def has_content_to_compress(self, messages):
        if not self.capabilities.get("has_content"):
            return bool(messages)
        return bool(self._ask_or(True, "has_content_to_compress", {"conversation": self._conversation(messages, None)}))

    def compress(self, messages, current_tokens=None, focus_topic=None, force=False, memory_context=""):
        conversation = self._conversation(messages, current_tokens)
        # Hermes asks below the threshold only when a person wants it, or when the provider has refused the prompt.
        is_refused = not force and conversation["prompt_tokens"] < self.threshold_tokens
        params = {
            "conversation": conversation,
            "trigger": "manual" if force else "overflow" if is_refused else "preflight",
            "room": "none" if is_refused else "left",
            "force": bool(force) or is_refused,
        }
        if focus_topic:
            params["focus"] = focus_topic
        if memory_context:
            params["memory_context"] = memory_context
        outcome = self._ask_or(None, "compress", params, self.compress_seconds)
        if not outcome or outcome.get("kind") != "completed":
            log.info("Throughline left the conversation as it is: %s", outcome and outcome.get("detail"))
            return messages
        view = [shown(item, messages) for item in outcome["view"]]
        self.compression_count += 1
        for warning in outcome["report"].get("warnings") or []:
            log.warning("Throughline: %s", warning)
        return view

    def get_tool_schemas(self):
        if not self.connection:
            self._ask_or(None, "get_status", {})
        return self._ask_or([], "get_tool_schemas", {}) if self.capabilities.get("tools") else []

    def handle_tool_call(self, name, args, **kwargs):
        call = {"session": self._session_id(), "name": name, "arguments": args}
        try:
            answer = self._ask("handle_tool_call", call, self.compress_seconds)
        except (Gone, Refused) as error:
            return json.dumps({"error": str(error)})
        return json.dumps({"error" if answer.get("is_error") else "result": answer["text"]})

    # -- from one form into the other ---------------------------------------------------------------------------------

    def _session_id(self):
        return self.session["session"] if self.session else "hermes"

    def _conversation(self, messages, current_tokens):
        carried = [{"json": wire_form(message), "tokens": tokens_of(message)} for message in messages]
        tokens = sum(message["tokens"] for message in carried)
        return {
            "session": self._session_id(),
            "dialect": "chat",
            "messages": carried,
            "fixed_tokens": max(int(current_tokens or 0) - tokens, 0),
            "prompt_tokens": max(int(current_tokens or 0), tokens),
        }


def wire_form(message):
    """A message without what Hermes keeps in it for itself."""
    return {key: value for key, value in message.items() if not key.startswith("_")}


def tokens_of(message):
    return len(json.dumps(wire_form(message), ensure_ascii=False)) // 4 + 4


def shown(item, messages):
    """One item of a view as a message of Hermes; what is kept is the very same message."""
    if item["kind"] == "kept":
        return messages[item["item"]]
    return json.loads(item["json"])


def configured_threshold():
    """Where Hermes' own settings want folding to start."""
    try:
        from hermes_cli.config import load_config

        threshold = float((load_config().get("compression") or {}).get("threshold", 0.5))
        return threshold if 0 < threshold < 1 else 0.5
    except Exception:  # settings of another version are no reason not to work
        return 0.5


def register(ctx):
    ctx.register_context_engine(ThroughlineEngine())
