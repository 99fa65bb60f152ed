"""Receivers of alerts that speak the real ones' protocols, small and on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

from headroom.schemas.alerts import AlertEvent


@dataclass
class Asked:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes
    method: str = "POST"


@dataclass
class Said:
    """An HTTP answer; with ``lose`` the connection is closed without it, although the request was processed."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    lose: bool = False


class _Handler(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        asked = Asked(self.path, dict(self.headers), body, self.command)
        server: Any = self.server
        scripted = server.answer(asked)
        if scripted.lose:
            self.close_connection = True
            return
        self.send_response(scripted.status)
        for name, value in {"Content-Type": "application/json", **scripted.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(scripted.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(scripted.body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, answer: Callable[[Asked], Said], port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.answer = answer

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors of clients that disconnected, which some tests provoke."""


@contextmanager
def serving(answer: Callable[[Asked], Said], port: int = 0) -> Iterator[str]:
    """Serve for the length of the block, at the URL given; port 0: any that is free."""
    server = _Server(answer, port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class Scripted:
    """Accepts every request; answers as scripted, then with 200.

    Attributes:
        asked: the requests so far.
        script: answers still to be given.
    """

    def __init__(self, *script: Said) -> None:
        self.asked: list[Asked] = []
        self.script = list(script)

    def __call__(self, asked: Asked) -> Said:
        self.asked.append(asked)
        return self.script.pop(0) if self.script else Said()

    def bodies(self) -> list[Any]:
        return [json.loads(asked.body) for asked in self.asked]


class FakeSlack:
    """Slack's Web API for one channel: messages with metadata, threads, edits, pages of history.

    Attributes:
        messages: by ts, replies with their thread_ts.
        script: answers to the next calls that write, in place of Slack's own; one that loses the answer takes the call.
        most: characters in all blocks of a message together, above which it is refused.
        calls: the methods so far.
        tokens: what came as authorization.
        refused: error of Slack by method.
    """

    def __init__(self, *script: Said) -> None:
        self.messages: dict[str, dict[str, Any]] = {}
        self.script = list(script)
        self.most = 11_000
        self.calls: list[str] = []
        self.tokens: set[str] = set()
        self.refused: dict[str, str] = {}

    def __call__(self, asked: Asked) -> Said:
        method = asked.path.rpartition("/")[2]
        self.calls.append(method)
        self.tokens.add(asked.headers["Authorization"])
        if method in self.refused:
            return _ok({"ok": False, "error": self.refused[method]})
        if method == "auth.test":
            return _ok({"ok": True, "user": "headroom", "team": "Orders"})
        if method.startswith("conversations"):
            return _ok(self._page(method, dict(parse_qsl(asked.body.decode()))))
        scripted = self.script.pop(0) if self.script else None
        if scripted is not None and not scripted.lose:
            return scripted
        answer = self._write(method, json.loads(asked.body))
        return scripted or _ok(answer)

    def _write(self, method: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if sum(map(len, texts_of(arguments.get("blocks", [])))) > self.most:
            return {"ok": False, "error": "msg_blocks_too_long"}
        if method == "chat.update":
            if arguments["ts"] not in self.messages:
                return {"ok": False, "error": "message_not_found"}
            self.messages[arguments["ts"]].update(text=arguments["text"], blocks=arguments["blocks"])
            return {"ok": True, "ts": arguments["ts"]}
        ts = f"{1_800_000_000 + len(self.messages)}.000100"
        self.messages[ts] = {**arguments, "ts": ts}
        return {"ok": True, "channel": arguments["channel"], "ts": ts}

    def _page(self, method: str, arguments: dict[str, str]) -> dict[str, Any]:
        thread = arguments.get("ts")
        found = [m for m in self.messages.values() if thread in (m.get("thread_ts"), m["ts"])]
        if method == "conversations.history":
            found = [m for m in self.messages.values() if "thread_ts" not in m]
        # Pages of two, so that there are several.
        at = int(arguments.get("cursor") or 0)
        following = str(at + 2) if at + 2 < len(found) else ""
        shown = found[at : at + 2]
        if arguments.get("include_all_metadata") != "true":
            shown = [{k: v for k, v in m.items() if k != "metadata"} for m in shown]
        return {"ok": True, "messages": shown, "response_metadata": {"next_cursor": following}}

    def roots(self) -> list[dict[str, Any]]:
        return [m for m in self.messages.values() if "thread_ts" not in m]

    def replies(self) -> list[dict[str, Any]]:
        return [m for m in self.messages.values() if "thread_ts" in m]


def texts_of(blocks: Any) -> Iterator[str]:
    """Every text in the blocks of a message, wherever it is."""
    if isinstance(blocks, dict):
        if blocks.get("type") in ("mrkdwn", "plain_text"):
            yield blocks["text"]
        blocks = list(blocks.values())
    if isinstance(blocks, list):
        for one in blocks:
            yield from texts_of(one)


def _ok(answer: dict[str, Any]) -> Said:
    return Said(body=json.dumps(answer).encode())


_EVIDENCE = {
    "role": "leader",
    "broker_id": 2,
    "throttle_bytes_per_s": 1_000_000.0,
    "in_sync_bytes_per_s": 1_500_000.0,
    "required_bytes_per_s": 3_000_000.0,
    "remaining_bytes": 5_000_000,
}


def event(alert_id: str = "a", state: str = "firing", tick_ms: int = 1_800_000_000_000, **changes: Any) -> AlertEvent:
    """Return an event, by default of a throttle that is too low."""
    advice = {
        "throttle_bytes_per_s": 3_600_000,
        "finish_s": 90.0,
        "reason": None,
        "commands": ["headroom throttle apply --rate 3600000 --brokers 1,2 --execute"],
    }
    fields = {
        "alert_id": alert_id,
        "kind": "throttle_below_leader_write",
        "severity": "critical",
        "state": state,
        "cluster": "orders",
        "subject": "broker 2 as leader",
        "summary": "The move will not finish",
        "evidence": json.dumps(_EVIDENCE),
        "recommendation": json.dumps(advice),
        "tick_ms": tick_ms,
        "event_ms": tick_ms + 5,
    }
    return AlertEvent(**{**fields, **changes})
