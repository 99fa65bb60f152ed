"""A proxy between a watch and its surroundings: a child process that takes orders."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from benchmarks.fixtures.bench_cluster import failure
from benchmarks.results import CHECKOUT

_END_S = 5.0


class ProxyProcess:
    """A running proxy. It ends with this process.

    Args:
        routes: routes in the notation of its command line: ``[http:]LISTEN:TARGET``.
    """

    def __init__(self, routes: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.faults.proxy", *routes],
            cwd=CHECKOUT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # An interrupt from the terminal ends the benchmark first, which then stops its proxies.
            start_new_session=True,
        )
        self._require("listening")

    def order(self, order: str) -> None:
        """Send an order to the proxy, and return once it is in force.

        Raises:
            HeadroomError: the proxy has ended.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{order}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise failure("a proxy has ended") from None
        self._require(order)

    def close(self) -> None:
        """Stop the proxy."""
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
