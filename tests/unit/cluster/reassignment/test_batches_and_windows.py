"""A batch that would not end before its window does not begin a minute before the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from headroom.cluster.reassignment.execution.control import RunPolicy
from headroom.operations.reassignments import run as runs
from headroom.operations.reassignments.run import RunRequest, run_policy
from headroom.operations.reassignments.run_plan import RunRates
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.run.snapshot import RunSnapshot
from headroom.schemas.config import ReassignSettings, Settings
from headroom.schemas.keys import TopicPartition
from tests.unit.builders.run_stage import RunStage, killed_while_moving, stage_of

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
RATE = 10_000_000
SNAPSHOT = RunSnapshot({}, frozenset())


def staged(late: Callable[[RunSnapshot, float], str | None]) -> RunStage:
    """Two batches, each of which copies 6 GB at 10 MB/s, which takes some 600 s."""
    policy = RunPolicy(RATE, pause_s=0, late_reason=late)
    stage = stage_of({A: (1, 2), B: (1, 2)}, {A: (3, 2)}, {B: (3, 2)}, policy=policy)
    stage.cluster.size_bytes = 6_000_000_000
    for name, partition in stage.cluster.partitions.items():
        stage.cluster.partitions[name] = replace(partition, write_bytes_per_s=0.0)
    return stage


def test_a_batch_that_takes_longer_than_what_is_left_does_not_begin() -> None:
    asked: list[float] = []

    def late(snapshot: RunSnapshot, lasts_s: float) -> str | None:
        asked.append(lasts_s)
        return "the window ends" if len(asked) > 1 else None

    stage = staged(late)
    assert stage.run().stopped == "batch 2 did not begin: the window ends"
    assert asked == [pytest.approx(600, rel=0.05)] * 2
    assert stage.replicas() == {("t", 0): (3, 2), ("t", 1): (1, 2)}
    assert (stage.cluster.rates, stage.cluster.lists, stage.left_behind()) == ({}, {}, [])


def test_a_batch_whose_time_is_unknown_or_that_has_begun_is_not_late() -> None:
    def late(snapshot: RunSnapshot, lasts_s: float) -> str | None:
        return "the window ends"

    unknown = staged(late)
    for name, partition in unknown.cluster.partitions.items():
        unknown.cluster.partitions[name] = replace(partition, write_bytes_per_s=None)
    assert unknown.run().stopped is None
    begun = killed_while_moving(lambda: staged(lambda snapshot, lasts_s: None), A)
    assert begun.run(policy=replace(begun.policy, late_reason=late)).stopped == "batch 2 did not begin: the window ends"
    assert begun.replicas()["t", 0] == (3, 2)


@pytest.mark.parametrize("throttle", [None, RATE])
def test_before_a_batch_of_unknown_time_the_run_says_that_it_may_overrun_the_window(throttle: int | None) -> None:
    stage = staged(lambda snapshot, lasts_s: None)
    # The second batch only changes the order of replicas.
    stage.batches[1] = ReassignmentPlan((TargetAssignment(B, (2, 1)),))
    for name, partition in stage.cluster.partitions.items():
        rate = 0.0 if throttle is None else None
        stage.cluster.partitions[name] = replace(partition, write_bytes_per_s=rate)
    ends = "22:00-06:00 ends in 1 h (reassign.window)"
    policy = replace(stage.policy, throttle_bytes_per_s=throttle, window_end=lambda snapshot: ends)
    assert stage.run(policy=policy).stopped is None
    lines = [line for line in stage.lines if "window" in line]
    assert lines == [f"Batch 1: its time is unknown, and {ends}: it may overrun the window"]
    outside = staged(lambda snapshot, lasts_s: None)
    assert outside.run(policy=replace(policy, window_end=lambda snapshot: None)).stopped is None
    assert [line for line in outside.lines if "window" in line] == []


def test_a_destination_that_is_down_makes_the_time_unknown_and_no_error() -> None:
    stage = staged(lambda snapshot, lasts_s: "late" if lasts_s > 1e6 else None)
    stage.cluster.alive.discard(3)
    stage.cluster.on_look = lambda cluster: cluster.alive.add(3) if cluster.left else None
    assert stage.run().stopped is None


@pytest.mark.parametrize(
    ("at", "lasts_s", "late"),
    [
        # A minute before the end of the window, and two hours before it.
        ("05:59", 3600, True),
        ("04:00", 3600, False),
        ("05:59", 60, False),
        # Longer than the window: it begins in it at any time.
        ("05:59", 9 * 3600, False),
        # Outside, where it begins by the write rate alone.
        ("12:00", 3600, False),
    ],
)
def test_what_is_shorter_than_the_window_ends_in_it(
    monkeypatch: pytest.MonkeyPatch, at: str, lasts_s: float, late: bool
) -> None:
    hours, minutes = map(int, at.split(":"))
    monkeypatch.setattr(runs.time, "time", lambda: hours * 3600.0 + minutes * 60)
    settings = Settings(reassign=ReassignSettings(window="22:00-06:00", quiet_below=1e6))
    policy = run_policy(settings, RunRequest(RunRates(RATE)), "")
    late_reason = policy.late_reason
    assert late_reason is not None
    assert (policy.window_end(SNAPSHOT) is not None) == (hours < 6)
    assert policy.window_end(replace(SNAPSHOT, cluster_write_bytes_per_s=1000.0)) is None
    text = "it takes about 1 h, and 22:00-06:00 ends in 1 min (reassign.window)"
    assert late_reason(SNAPSHOT, lasts_s) == (text if late else None)
    # Where producers write little, it may begin at any time.
    assert late_reason(replace(SNAPSHOT, cluster_write_bytes_per_s=1000.0), lasts_s) is None
    assert run_policy(Settings(), RunRequest(RunRates(RATE)), "").late_reason is None
