"""Requests that nobody of the page has sent: forged, stale, repeated, and from pages of other origins."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, failure
from benchmarks.groups.acting.served_page import TOKEN, ServedPage
from benchmarks.groups.reassign.throttle_state import throttles_in_force
from headroom.dashboard.acting.actions import FOLDER, LOOK_IS_GOOD_MS

_BEARER = {"authorization": f"Bearer {TOKEN}"}
_LOW = {"topics": "", "drain": "4"}
# A move without a record, which is carried out once.
_TOPIC, _MOVED = "forged", {"topics": "forged", "drain": "2", "throttle": "40MB"}
_OFFER = re.compile(r'data-run="([^"]+)"')


class ForgedRequest(NamedTuple):
    """A request, and why it may change nothing."""

    why: str
    path: str
    content: Mapping[str, Any]
    headers: Mapping[str, str]


class ForgedRequests:
    """Sends requests, and looks after each whether anything has changed.

    Args:
        bench: the cluster.
        served: its page.
    """

    def __init__(self, bench: BenchCluster, served: ServedPage) -> None:
        self._bench = bench
        self._served = served

    def changed(self, on_progress: OnProgress) -> tuple[int, int]:
        """Return how many requests there were, and how many of them have begun or changed anything.

        Raises:
            HeadroomError: the action that they are about could not be made.
        """
        form = {"cluster": self._served.cluster, "values": _LOW}
        done, outdated = self._done(), self._shown(form)
        offer = self._outdate(outdated)
        # Its offers end with a server.
        self._served.kill_all()
        self._served.start()
        action = self._shown(form)
        sent = changed = 0
        before = self._state()
        for request in (*self._requests(action, form), *self._late(done, outdated, offer)):
            answer = httpx.post(
                self._served.url + request.path, json=dict(request.content), headers=dict(request.headers), timeout=30
            )
            sent += 1
            after = self._state()
            if answer.is_success or after != before:
                changed += 1
                on_progress(f"{request.why}: {request.path} was answered by {answer.status_code}")
                before = after
        return sent, changed

    def _shown(self, form: Mapping[str, Any]) -> str:
        action = self._served.post("/new/move", form)
        if self._served.await_progress(action, "shown") != "shown":
            raise failure("the plan of forged requests was not shown")
        return action

    def _done(self) -> str:
        """Return an action that was carried out."""
        self._bench.admin.create_topics({_TOPIC: {"assignments": {0: [1, 2]}}}, wait_for_metadata=True)
        action = self._shown({"cluster": self._served.cluster, "values": _MOVED})
        self._served.post(f"{action}/change", {})
        if self._served.await_progress(action) != "done":
            raise failure("the move of forged requests was not carried out")
        return action

    def _outdate(self, action: str) -> str:
        """Have an action shown too long ago, and return the offer that its page has then."""
        file = Path(self._bench.settings.store.path) / FOLDER / action.rpartition("/")[2] / "action.json"
        content = json.loads(file.read_text(encoding="utf-8"))
        content["made_ms"] -= LOOK_IS_GOOD_MS
        file.write_text(json.dumps(content), encoding="utf-8")
        found = _OFFER.search(self._served.get(action).text)
        if found is None:
            raise failure(f"{action} cannot be looked at again")
        return found[1]

    def _late(self, done: str, outdated: str, offer: str) -> Iterator[ForgedRequest]:
        nothing: Mapping[str, Any] = {}
        own = self._served.url
        session = {"cookie": f"headroom_session_{own.rpartition(':')[2]}={self._session()}", "origin": own}
        for headers in (_BEARER, session):
            yield ForgedRequest("a second yes", f"{done}/change", nothing, headers)
            yield ForgedRequest("a stop after the end", f"{done}/stop", nothing, headers)
            yield ForgedRequest("a yes that comes too late", f"{outdated}/change", nothing, headers)
            yield ForgedRequest("an offer of an earlier server", "/actions", {"offer": offer}, headers)

    def _state(self) -> object:
        rows = self._served.get("/api/v1/runs?rows=1000").json()
        throttles = throttles_in_force(self._bench.settings)
        return rows["actions"]["rows"], rows["runs"]["total"], throttles

    def _requests(self, action: str, form: Mapping[str, Any]) -> Iterator[ForgedRequest]:
        nothing: Mapping[str, Any] = {}
        paths = [(f"{action}/change", nothing), (f"{action}/stop", nothing), ("/new/move", form)]
        own = self._served.url
        cookie = {"cookie": f"headroom_session_{own.rpartition(':')[2]}={self._session()}"}
        origins = (
            "null",
            "http://attacker.example",
            f"{own}.attacker.example",
            own.replace("127.0.0.1", "localhost"),
            own.rpartition(":")[0],
            f"https://attacker.example/{own}",
            f"{own}@attacker.example",
        )
        for path, content in paths:
            for origin in origins:
                yield ForgedRequest("another origin", path, content, {**cookie, "origin": origin})
            yield ForgedRequest("a cookie without an origin", path, content, cookie)
            yield ForgedRequest("no session", path, content, {"origin": own})
            yield ForgedRequest("an invented session", path, content, {"origin": own, "cookie": "headroom_session=x"})
            named = {"origin": own, "x-forwarded-user": "admin", "x-forwarded-for": "127.0.0.1"}
            yield ForgedRequest("a user whom no proxy has named", path, content, named)
            yield ForgedRequest("another token", path, content, {"authorization": f"Bearer {TOKEN}x"})
            yield ForgedRequest("another name", path, content, {**_BEARER, "host": "attacker.example"})
        for offer in ("", "e30=.0", "W10=." + "0" * 64):
            yield ForgedRequest("an offer that was not signed", "/actions", {"offer": offer}, _BEARER)
        yield ForgedRequest("a command", "/actions", {"command": "headroom throttle clear --execute"}, _BEARER)

    def _session(self) -> str:
        answer = httpx.post(f"{self._served.url}/login", json={"token": TOKEN}, headers={"origin": self._served.url})
        return next(iter(answer.cookies.values()))
