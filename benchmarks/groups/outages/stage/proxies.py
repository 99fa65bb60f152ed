"""The proxies that a watch may have between itself and what it needs, each a child process that takes orders."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType

from benchmarks.fixtures.bench_cluster import failure
from benchmarks.results import CHECKOUT

_END_S = 5.0


class ProxyProcess:
    """A running proxy; it ends with this process.

    Args:
        routes: as its command line names them: ``[http:]LISTEN:TARGET``.
    """

    def __init__(self, routes: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.groups.outages.stage.proxy", *routes],
            cwd=CHECKOUT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._require("listening")

    def __enter__(self) -> ProxyProcess:
        """Return the running proxy."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End it."""
        self.close()

    def order(self, order: str) -> None:
        """Give it an order, and return when that is carried out.

        Raises:
            HeadroomError: it has ended.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{order}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise failure("a proxy has ended") from None
        self._require(order)

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
            self._process.wait(_END_S)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()

    def _require(self, answer: str) -> None:
        assert self._process.stdout is not None
        answered = self._process.stdout.readline().strip()
        if answered != answer:
            raise failure(f"a proxy answered {answered!r}, not {answer!r}")


class Proxies:
    """Proxies by the name of what is behind them.

    Args:
        routes: by that name the routes of each.
    """

    def __init__(self, routes: Mapping[str, Sequence[str]]) -> None:
        self._running: dict[str, ProxyProcess] = {}
        try:
            for name, own in routes.items():
                self._running[name] = ProxyProcess(own)
        except BaseException:
            self.close()
            raise

    def order(self, name: str, order: str) -> None:
        """Give one of them an order, and return when that is carried out."""
        self._running[name].order(order)

    def pass_all(self) -> None:
        """Let all of them pass everything on."""
        for name in self._running:
            self.order(name, "pass")

    def close(self) -> None:
        """End them."""
        for proxy in self._running.values():
            proxy.close()
