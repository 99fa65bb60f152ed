"""Requests that nobody of the page has sent: forged, stale, repeated, and from pages of other origins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import httpx

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, failure
from benchmarks.groups.acting.served_page import TOKEN, ServedPage
from benchmarks.groups.reassign.throttle_state import throttles_in_force

_BEARER = {"authorization": f"Bearer {TOKEN}"}
_LOW = {"topics": "", "drain": "4"}


class ForgedRequest(NamedTuple):
    """A request, and why it may change nothing."""

    why: str
    path: str
    content: Mapping[str, Any]
    headers: Mapping[str, str]


class ForgedRequests:
    """Sends 40 requests, and looks after each whether anything has changed.

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
        action = self._served.post("/new/move", form)
        if self._served.await_progress(action, "shown") != "shown":
            raise failure("the plan of forged requests was not shown")
        sent = changed = 0
        before = self._state()
        for request in self._requests(action, form):
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
            yield ForgedRequest("another token", path, content, {"authorization": f"Bearer {TOKEN}x"})
            yield ForgedRequest("another name", path, content, {**_BEARER, "host": "attacker.example"})
        for offer in ("", "e30=.0", "W10=." + "0" * 64):
            yield ForgedRequest("an offer that was not signed", "/actions", {"offer": offer}, _BEARER)
        yield ForgedRequest("a command", "/actions", {"command": "headroom throttle clear --execute"}, _BEARER)

    def _session(self) -> str:
        answer = httpx.post(f"{self._served.url}/login", json={"token": TOKEN}, headers={"origin": self._served.url})
        return next(iter(answer.cookies.values()))
