"""One cluster for the modules of a test process, replaced when a module has left it in another state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headroom.cluster.embedded import EmbeddedCluster


class SharedCluster:
    """Lends a cluster to one module after the other.

    A module that leaves it as it must not be fails itself, and the next one gets new brokers: it would fail for what
    another one did.

    Args:
        start: starts a cluster.
        clear: brings a cluster back to the state in which a module gets it; raises if it cannot.
    """

    def __init__(self, start: Callable[[], EmbeddedCluster], clear: Callable[[EmbeddedCluster], None]) -> None:
        self._start = start
        self._clear = clear
        self._cluster: EmbeddedCluster | None = None
        self._is_broken = False

    @contextmanager
    def lent(self) -> Iterator[EmbeddedCluster]:
        """Yield the cluster to a module, started if there is none."""
        # Not stopped earlier: the report of the failure says what the brokers do.
        if self._is_broken:
            self.stop()
        self._cluster = self._cluster or self._start()
        yield self._cluster
        self._is_broken = True
        self._clear(self._cluster)
        self._is_broken = False

    def stop(self) -> None:
        """Stop the cluster if there is one."""
        if self._cluster is not None:
            self._cluster.stop()
            self._cluster, self._is_broken = None, False
