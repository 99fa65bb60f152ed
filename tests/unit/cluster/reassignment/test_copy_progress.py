"""What a run shows while partitions move: bytes, rate and expected end."""

from __future__ import annotations

from itertools import pairwise

import pytest

from headroom.cluster.log_dirs.describe import LogDirsReading
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.unit.builders.run_stage import RunStage, stage_of
from tests.unit.fakes.reassigned_cluster import FakeReassignedCluster

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
MOVING = "batch 1 of 1: 2 partitions are moving, such as t-0; "


def staged(looks: int = 40) -> RunStage:
    """Two partitions of 80 MB each are copied to broker 3, 2 MB at each look, of which there is one every 2 s."""
    stage = stage_of({A: (1, 2), B: (1, 2)}, {A: (3, 2), B: (3, 2)})
    stage.cluster.size_bytes, stage.cluster.looks = 80_000_000, looks
    return stage


def progress(stage: RunStage) -> list[str]:
    return [note.partition("; ")[2] for note in stage.notes if "are moving" in note]


def test_every_line_has_bytes_rate_and_expected_end() -> None:
    stage = staged()
    stage.run()
    lines = progress(stage)
    # The first look after the submission: 1 of 40 parts.
    assert lines[0] == "4.0 MB of 160.0 MB copied, rate unknown so far, expected end unknown so far"
    # 10 s and five looks later: 20 of 160 MB in 10 s are 2 MB/s for both.
    assert lines[5] == "24.0 MB of 160.0 MB copied, 2.00 MB/s, expected end unknown so far"
    # Two bursts of a throttled copy would have passed, and 96 MB are left.
    assert lines[15] == "64.0 MB of 160.0 MB copied, 2.00 MB/s, expected to end in 48 s"
    assert lines[35] == "144.0 MB of 160.0 MB copied, 2.00 MB/s, expected to end in 8 s"


def test_sizes_are_read_every_ten_seconds_and_not_at_every_look(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, asked = staged(), []
    read_logs = stage.cluster.read_logs

    def count(brokers: list[int], names: list[TopicPartition] | None) -> LogDirsReading:
        if names is not None:
            asked.append((stage.time.now_s, brokers, names))
        return read_logs(brokers, names)

    monkeypatch.setattr(stage.cluster, "read_logs", count)
    stage.run()
    # Only the moving partitions, on brokers that have replicas of them.
    assert {(tuple(brokers), tuple(names)) for _, brokers, names in asked} == {((1, 2, 3), (A, B))}
    assert [at_s for at_s, _, _ in asked] == [10.0 * n for n in range(8)]


def test_a_slow_answer_is_asked_for_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, asked = staged(looks=200), []
    read_logs = stage.cluster.read_logs

    def slow(brokers: list[int], names: list[TopicPartition] | None) -> LogDirsReading:
        if names is not None:
            stage.time.now_s += 3.0
            asked.append(stage.time.now_s)
        return read_logs(brokers, names)

    monkeypatch.setattr(stage.cluster, "read_logs", slow)
    stage.run()
    # 3 s are 5 % of a minute.
    assert len(asked) > 3
    assert min(later - earlier for earlier, later in pairwise(asked)) >= 60


def test_without_sizes_it_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = staged()
    silent = LogDirsReading({}, {3: HeadroomError("broker 3", "did not report its log directories", "Look.")})
    monkeypatch.setattr(stage.cluster, "read_logs", lambda brokers, names: silent)
    assert stage.run().refused == {}
    assert set(progress(stage)) == {"bytes, rate and expected end are unknown: no log sizes were reported"}


def test_a_destination_that_reports_nothing_is_counted_as_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = stage_of({A: (1, 2), B: (1, 2)}, {A: (3, 2), B: (4, 2)})
    stage.cluster.size_bytes, stage.cluster.looks = 80_000_000, 40
    read_logs = stage.cluster.read_logs
    monkeypatch.setattr(
        stage.cluster, "read_logs", lambda brokers, names: read_logs([b for b in brokers if b != 4], names)
    )
    stage.run()
    assert progress(stage)[10] == "22.0 MB of 80.0 MB copied, 1 more replicas unknown; 1.00 MB/s, expected end unknown"


def test_copies_that_stand_still_have_no_end() -> None:
    stage = staged()
    stuck: list[int] = []

    def look(cluster: FakeReassignedCluster) -> None:
        if cluster.left and len(stuck) < 30:
            stuck.append(1)
            cluster.left = {name: looks + 1 for name, looks in cluster.left.items()}

    stage.cluster.on_look = look
    stage.run()
    # Between two bursts of a throttled copy nothing is copied either.
    assert progress(stage)[12] == "0 B of 160.0 MB copied, 0 MB/s, expected end unknown so far"
    assert progress(stage)[17] == "0 B of 160.0 MB copied, 0 MB/s, no end at this rate"


def test_a_batch_that_copies_nothing_shows_none() -> None:
    stage = stage_of({A: (1, 2, 3)}, {A: (2, 1)})
    stage.cluster.looks = 4
    stage.run()
    assert not [note for note in stage.notes if "copied" in note or "unknown" in note]


def test_a_destination_that_is_back_begins_its_rate_again() -> None:
    stage = staged()
    stage.cluster.alive.discard(3)

    def look(cluster: FakeReassignedCluster) -> None:
        if stage.time.now_s >= 20:
            cluster.alive.add(3)

    stage.cluster.on_look = look
    stage.run()
    lines = progress(stage)
    waiting = "waiting for broker 3, down: the replica of t-0 and 1 more"
    assert lines[0] == f"{waiting}; bytes, rate and expected end are unknown: no log sizes were reported"
    back = next(line for line in lines if "copied" in line)
    assert back.endswith("160.0 MB copied, rate unknown so far, expected end unknown so far")
    assert not [line for line in lines if "no end at this rate" in line]
