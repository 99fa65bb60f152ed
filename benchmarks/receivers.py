"""The receivers of a live watch as a process of their own, which may be killed, and started again on the same port."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import psutil

from benchmarks.harness import Ground, failure
from benchmarks.recorder import HOOK_PATH, SLACK_PATH, read
from benchmarks.results import CHECKOUT

# So that what a receiver missed comes soon after it is back.
_NOTIFY = {"retry_s": 0.5, "retry_max_s": 10.0}
_READY_S = 60.0
_HOST = "127.0.0.1"


class Receivers:
    """The process that receives.

    Args:
        folder: of its journal and log.
        port: where it listens; None: any that is free.

    Attributes:
        port: where it listens.
    """

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self._journal = folder / "received.jsonl"
        self._log = folder / "receivers.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.port = _free_port() if port is None else port

    def __enter__(self) -> Receivers:
        """Return the running receivers."""
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End them."""
        self.kill()

    def configure(self, ground: Ground, notify: Mapping[str, str | float] | None = None) -> None:
        """Name them in the configuration file.

        Args:
            ground: whose file it is.
            notify: further keys of the section ``[notify]``; None: there are none.
        """
        url = f"http://{_HOST}:{self.port}"
        ground.add_section("notify", {**_NOTIFY, **(notify or {})})
        ground.add_section("notify.webhook", {"url": url + HOOK_PATH})
        ground.add_section("notify.slack", {"token": "xoxb-0", "channel": "C0123456789", "api_url": url + SLACK_PATH})

    def start(self) -> None:
        """Start them, if they do not run, and return when they answer.

        Raises:
            HeadroomError: they do not.
        """
        if self._process is not None:
            return
        command = [sys.executable, "-m", "benchmarks.recorder", str(self.port), str(self._journal)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, cwd=CHECKOUT, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        give_up = time.monotonic() + _READY_S
        while not _answers(self.port):
            if time.monotonic() > give_up or self._process.poll() is not None:
                raise failure(f"the receivers do not answer: {self._log.read_text(encoding='utf-8')[-500:]}")
            time.sleep(0.1)

    def kill(self) -> int:
        """Kill them, and return how many processes that were."""
        if self._process is None:
            return 0
        self._process.kill()
        self._process.wait()
        self._process = None
        return 1

    def process(self) -> psutil.Process:
        """Return the process that receives.

        Raises:
            HeadroomError: it does not run.
        """
        if self._process is None:
            raise failure("the receivers do not run")
        return psutil.Process(self._process.pid)

    def shown(self) -> Mapping[str, Mapping[str, int]]:
        """Return for each receiver how often it shows which event, by the event's key."""
        return read(self._journal)[0].shown()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((_HOST, 0))
        port: int = free.getsockname()[1]
    return port


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection((_HOST, port), timeout=1):
        return True
    return False
