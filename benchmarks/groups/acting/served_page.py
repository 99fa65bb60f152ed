"""A page on a benchmark's cluster that carries out commands, and a browser and a program that use it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil

from benchmarks.fixtures.bench_cluster import BenchCluster, failure
from benchmarks.groups.dashboard.page_process import start_page
from headroom.cluster.embedded.patience import Patience
from headroom.dashboard.acting.actions import FOLDER

TOKEN = "a-token-of-a-benchmark"
_ANSWER_S, _ACTION_S, _POLL_S = 30.0, 240.0, 0.2
_ENDED = ("done", "failed", "lost", "not_possible", "nothing")


class ServedPage:
    """``headroom dashboard`` with a token, which can be killed and started again, and requests of a program.

    Args:
        bench: its cluster; the settings file needs no section ``[dashboard]``.
    """

    def __init__(self, bench: BenchCluster) -> None:
        self._bench = bench
        self._listen = "127.0.0.1:0"
        self.cluster = bench.settings.cluster.name

    def __enter__(self) -> ServedPage:
        """Start it."""
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop it."""
        self._process.terminate()
        self._process.wait()

    def start(self) -> None:
        """Start it, at the address that it had before.

        Raises:
            HeadroomError: it was not served.
        """
        token = {"HEADROOM_DASHBOARD__TOKEN": TOKEN}
        self._process, self.url = start_page(self._bench.config, self._listen, token)
        self._listen = urlsplit(self.url).netloc

    def kill_all(self) -> int:
        """Kill the page, and all that carries out its commands; return how many processes that were."""
        folder = str(self._bench.settings.store.path)
        killed = [self._process.pid]
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or []
            if any(word.startswith(f"{folder}/{FOLDER}/") for word in words):
                killed.append(process.pid)
        for pid in killed:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        return len(killed)

    def get(self, path: str) -> httpx.Response:
        """Return the answer to a request of a program with the token."""
        return httpx.get(self.url + path, headers={"authorization": f"Bearer {TOKEN}"}, timeout=_ANSWER_S)

    def post(self, path: str, content: Mapping[str, Any]) -> str:
        """Send a request of a program with the token, and return the address that it leads to.

        Raises:
            HeadroomError: it was refused.
        """
        headers = {"authorization": f"Bearer {TOKEN}"}
        answer = httpx.post(self.url + path, json=dict(content), headers=headers, timeout=_ANSWER_S)
        if answer.is_error:
            raise failure(f"{path} was refused: {answer.text}")
        return str(answer.json()["url"])

    def progress(self, action: str) -> str:
        """Return how far an action is, by its address."""
        return self._progress().get(action, "not there")

    def is_changing(self) -> bool:
        """Return whether any action is being carried out."""
        return "changing" in self._progress().values()

    def _progress(self) -> dict[str, str]:
        rows = self.get("/api/v1/runs?rows=1000").json()["actions"]["rows"]
        return {f"/actions/{row['action_id']}": str(row["progress"]) for row in rows}

    def await_progress(self, action: str, *wanted: str) -> str:
        """Return the progress of an action once it is one of those that are wanted, or an end.

        Raises:
            HeadroomError: it was none of them in time.
        """
        patience = Patience(_ACTION_S)
        while (progress := self.progress(action)) not in (*wanted, *_ENDED):
            if patience.is_over():
                raise failure(f"{action} is {progress} after {patience}")
            time.sleep(_POLL_S)
        return progress


class CountingBrowser:
    """A page of Chromium with the token, in which clicks are counted.

    Args:
        page: playwright's page.
        served: the server.
    """

    def __init__(self, page: Any, served: ServedPage) -> None:
        self.page = page
        self._served = served
        self.clicks = 0
        page.set_default_timeout(_ANSWER_S * 1000)

    def log_in(self) -> None:
        """Exchange the token for a session."""
        self.page.goto(f"{self._served.url}/login")
        self.page.get_by_label("Token").fill(TOKEN)
        with self.page.expect_navigation():
            self.page.get_by_role("button", name="Open").click()

    def open(self, path: str) -> None:
        """Open a page, as from a bookmark or an alert, and count from 0."""
        self.page.goto(self._served.url + path)
        self.clicks = 0

    def click(self, locator: Any, *, leads_on: bool = True) -> None:
        """Click, and count it.

        Args:
            locator: what is clicked.
            leads_on: whether another page follows.
        """
        self.clicks += 1
        if leads_on:
            with self.page.expect_navigation():
                locator.click()
        else:
            locator.click()

    def carry_out(self) -> str:
        """Click what carries out the action that is shown, wait for its end, and return the command that did it.

        Raises:
            HeadroomError: it has ended otherwise than well.
        """
        button = self.page.get_by_role("button", name="Carry it out")
        button.wait_for(timeout=_ACTION_S * 1000)
        # That of a made plan stands below the command that made it.
        command = str(self.page.locator("#action code").last.text_content())
        self.click(button, leads_on=False)
        action = urlsplit(self.page.url).path
        ended = self._served.await_progress(action)
        if ended != "done":
            raise failure(f"{command} has ended {ended}")
        return command
