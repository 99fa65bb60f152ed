"""Start of a query whose source has changed since it read it last."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headroom.streaming.queries import resume
from headroom.streaming.queries.checkpoint import Position
from headroom.streaming.queries.resume import Start, forget_lost_table, prepare_start
from headroom.streaming.sources.topic_position import PartitionOffsets

READ_MS = 1_800_000_000_000
LATER_MS = READ_MS + 3_600_000


class Stored:
    """A checkpoint that is a position; None: it is new."""

    def __init__(self, position: Position | None) -> None:
        self.read: Position | None = position
        self.removed = self.replaced = 0

    def position(self) -> Position | None:
        return self.read

    def remove(self) -> None:
        self.read, self.removed = None, self.removed + 1

    def replace(self) -> None:
        self.replaced += 1


class Topic:
    """A topic whose partitions are as the test says."""

    name = "ticks"

    def __init__(self, states: dict[int, PartitionOffsets] | None) -> None:
        self._states = states
        self.asked: Mapping[int, int] | None = None

    def states(self, offsets: Mapping[int, int], *, all_partitions: bool) -> dict[int, PartitionOffsets] | None:
        self.asked = offsets
        return self._states


def start(monkeypatch: pytest.MonkeyPatch, stored: Stored, topic: Topic) -> Start:
    monkeypatch.setattr(resume, "StoredCheckpoint", lambda *_: stored)
    spark: Any = None
    return prepare_start(spark, topic, "checkpoint", "bronze", all_partitions=True)


def read_to(*offsets: int, planned: int | None = None) -> Stored:
    """A checkpoint that has read up to some offsets; ``planned`` is the end of an unfinished batch of partition 0."""
    ends = {str(partition): offset for partition, offset in enumerate(offsets)}
    of_batch = ends if planned is None else ends | {"0": planned}
    return Stored(Position({"ticks": ends}, {"ticks": of_batch}, READ_MS, planned is None))


def test_a_new_query_asks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic({0: PartitionOffsets(7, 9)})
    assert start(monkeypatch, Stored(None), topic) == Start()
    assert topic.asked is None


@pytest.mark.parametrize("states", [None, {}])
def test_a_topic_that_cannot_be_read_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, states: dict[int, PartitionOffsets] | None
) -> None:
    stored = read_to(5)
    assert start(monkeypatch, stored, Topic(states)) == Start({0: 5})
    assert stored.removed == 0


def test_nothing_is_lost_of_a_topic_that_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = read_to(5, planned=8)
    assert start(monkeypatch, stored, Topic({0: PartitionOffsets(0, 9, READ_MS), 1: PartitionOffsets(0, 3)})) == Start(
        {0: 5, 1: 0}
    )
    assert (stored.removed, stored.replaced) == (0, 0)


def test_expired_records_are_named_and_a_new_checkpoint_begins_with_the_first_that_is_there(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stored, topic = read_to(5, 7), Topic({0: PartitionOffsets(6, 9), 1: PartitionOffsets(0, 9, READ_MS)})
    assert start(monkeypatch, stored, topic) == Start({0: 6, 1: 7})
    assert (stored.removed, stored.replaced, topic.asked) == (0, 1, {0: 5, 1: 7})
    (line,) = caplog.messages
    assert "topic ticks: offsets 5 to 5 of partition 0 (1) expired before query bronze read them" in line
    assert "retention.ms" in line


def test_an_unfinished_batch_comes_first_with_what_of_it_is_lost(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stored = read_to(5, planned=8)
    assert start(monkeypatch, stored, Topic({0: PartitionOffsets(20, 30)})) == Start(has_gap=True)
    assert (stored.removed, stored.replaced) == (0, 0)
    assert "offsets 5 to 7 of partition 0 (3)" in caplog.messages[0]
    # Once it is finished, the rest of what is lost is skipped.
    assert start(monkeypatch, read_to(8), Topic({0: PartitionOffsets(20, 30)})) == Start({0: 20})
    assert "offsets 8 to 19 of partition 0 (12)" in caplog.messages[1]


def test_a_topic_that_was_created_again_is_read_from_its_first_record(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stored = read_to(5)
    assert start(monkeypatch, stored, Topic({0: PartitionOffsets(0, 9, LATER_MS)})) == Start()
    assert stored.removed == 1
    (line,) = caplog.messages
    assert "topic ticks was created again since query bronze read it last at 2027-01-15 08:00:00 UTC" in line
    # The next start finds a new checkpoint.
    assert start(monkeypatch, stored, Topic({0: PartitionOffsets(0, 9, LATER_MS)})) == Start()
    assert stored.removed == 1


@pytest.mark.parametrize(
    ("error", "is_lost"),
    [
        (None, False),
        ("Caused by: java.lang.IllegalStateException: The stream from your Delta table was expecting process data from "
         "version 4,\nbut the earliest available version in the _delta_log directory is 9.", True),
        ("[DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE] If you never deleted it, it's likely ...", True),
        ("[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file", True),
        ("[DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE] The streaming query was reading from", True),
        ("java.io.IOException: No space left on device", False),
    ],
)  # fmt: skip
def test_a_table_without_what_comes_next_is_read_again_and_no_other_failure_is_taken_for_that(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: str | None, is_lost: bool
) -> None:
    stored = read_to(5)
    monkeypatch.setattr(resume, "StoredCheckpoint", lambda *_: stored)
    stopped: Any = SimpleNamespace(name="silver", exception=lambda: error)
    spark: Any = None
    forget_lost_table(spark, stopped, "checkpoint", "bronze/ticks")
    assert (stored.removed, len(caplog.messages)) == (int(is_lost), int(is_lost))


def test_the_line_of_a_lost_table_names_table_and_query(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setattr(resume, "StoredCheckpoint", lambda *_: read_to(5))
    stopped: Any = SimpleNamespace(name="silver", exception=lambda: "FAILED_READ_FILE.FILE_NOT_EXIST")
    spark: Any = None
    forget_lost_table(spark, stopped, str(tmp_path), "bronze/ticks")
    assert caplog.messages[0].startswith("bronze/ticks no longer has the commits or files that query silver would read")
