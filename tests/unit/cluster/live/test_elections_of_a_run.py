"""Elections at the end of a run: what the planner leaves out is returned with the reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.cluster.live import live_control
from headroom.cluster.live.live_control import LiveClusterControl
from headroom.schemas.config import Settings
from headroom.schemas.keys import TopicPartition
from tests.unit.builders.leadership import FakeCluster, away


class Connected(FakeCluster):
    connection, timeout_s = None, 1.0


def control(monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster, **elections: float) -> LiveClusterControl:
    monkeypatch.setattr(live_control, "LiveCluster", lambda settings: cluster)
    settings = Settings()
    return LiveClusterControl(replace(settings, elections=replace(settings.elections, pause_s=0.0, **elections)))


def test_elections_that_are_left_out_have_their_reason_and_those_of_others_are_not_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    behind = replace(away("t", 1), isr=(2, 3))
    deleted = replace(away("t", 3), deleting=True)
    cluster = Connected(away("t", 0), behind, away("t", 2), deleted, away("other", 0))
    names = [TopicPartition("t", n) for n in (0, 1, 3)]
    left_out = control(monkeypatch, cluster).elect(names, lambda text: None)
    assert left_out == {TopicPartition("t", 1): "its preferred broker is not in sync"}
    assert [cluster.leader("t", n) for n in (0, 1, 2)] == [1, 2, 2]
    assert cluster.leader("other", 0) == 2


def test_elections_beyond_the_capacity_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Connected(away("t", 0, write=10.0), away("t", 1, write=20.0))
    left_out = control(monkeypatch, cluster, capacity_bytes_per_s=15.0).elect(
        list(cluster.partitions), lambda text: None
    )
    assert left_out == {TopicPartition("t", 1): "its preferred broker would have to carry more than it can"}
    assert [cluster.leader("t", n) for n in (0, 1)] == [1, 2]
