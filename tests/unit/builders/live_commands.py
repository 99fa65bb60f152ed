"""Commands on runs of plans, with a cluster in memory in the place of the running one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.fakes.reassigned_cluster import FakeReassignedCluster

_OPENING = (
    "operations.reassignments.run",
    "operations.reassignments.cleaning",
    "cli.reassign.verify",
    "cli.reassign.cancel",
)


class Opened:
    """The fake cluster as a command opens it."""

    def __init__(self, cluster: FakeReassignedCluster) -> None:
        self._cluster = cluster

    def __call__(self, settings: object, topics: object = (), measured: bool = False, placed: object = ()) -> Opened:
        return self

    def __enter__(self) -> FakeReassignedCluster:
        return self._cluster

    def __exit__(self, *error: object) -> None:
        """Close."""


def let_commands_open(fake: FakeReassignedCluster, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let commands run in a folder, with its store and this cluster, without waits."""
    for module in _OPENING:
        monkeypatch.setattr(f"headroom.{module}.LiveClusterControl", Opened(fake))
    monkeypatch.setenv("HEADROOM_CLUSTER__BOOTSTRAP_SERVERS", "broker1:9092")
    monkeypatch.setenv("HEADROOM_STORE__PATH", str(folder / "store"))
    monkeypatch.setenv("HEADROOM_REASSIGN__PAUSE_S", "0")
    monkeypatch.setenv("HEADROOM_REASSIGN__LOCK_GROUP", "off")
    for room in ("moves", "executor"):
        monkeypatch.setattr(f"headroom.cluster.reassignment.execution.{room}.STALE_S", 0.0)
    monkeypatch.chdir(folder)
