"""A module of tests gets the shared cluster as it must be, whatever the module before it did."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.shared_cluster import SharedCluster


class Clusters:
    """Clusters that are only numbers; those of ``broken`` cannot be cleared, and those of ``dead`` not be started."""

    def __init__(self, broken: set[int] = frozenset(), dead: set[int] = frozenset()) -> None:  # type: ignore[assignment]
        self.broken, self.dead = broken, dead
        self.started = 0
        self.stopped: list[int] = []
        self.shared = SharedCluster(self._start, self._clear)

    def _start(self) -> Any:
        self.started += 1
        if self.started in self.dead:
            raise RuntimeError(f"cluster {self.started} does not start")
        return Fake(self.started, self.stopped)

    def _clear(self, cluster: Any) -> None:
        assert cluster.number not in self.broken, "a module has left a running reassignment"

    def module(self) -> int:
        """Return the number of the cluster that a module gets."""
        with self.shared.lent() as cluster:
            return cluster.number  # type: ignore[attr-defined,no-any-return]


class Fake:
    def __init__(self, number: int, stopped: list[int]) -> None:
        self.number, self._stopped = number, stopped

    def stop(self) -> None:
        self._stopped.append(self.number)


def test_modules_share_one_cluster() -> None:
    clusters = Clusters()
    assert [clusters.module() for _ in range(3)] == [1, 1, 1]
    clusters.shared.stop()
    assert clusters.stopped == [1]


def test_the_module_that_leaves_it_broken_fails_and_the_next_one_gets_another() -> None:
    clusters = Clusters(broken={1})
    with pytest.raises(AssertionError, match="has left a running reassignment"):
        clusters.module()
    # The report of the failure says what its brokers do.
    assert clusters.stopped == []
    assert clusters.module() == clusters.module() == 2
    assert clusters.stopped == [1]


def test_brokers_that_did_not_start_are_started_again_for_the_next_module() -> None:
    clusters = Clusters(dead={1})
    with pytest.raises(RuntimeError):
        clusters.module()
    assert clusters.module() == 2
