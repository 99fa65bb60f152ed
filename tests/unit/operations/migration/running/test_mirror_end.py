"""Whether a mirror has all of a log: what looks like its last record need not be it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.cluster.migration.records import LogRecord
from headroom.operations.migration.running.mirror_end import MirrorEnd
from headroom.planning.migration.readings import LogOffsets
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.unit.fakes.migration_clusters import RULES, FakeMigrationCluster, log_record, sync_bytes

NAME, COPY = TopicPartition("orders", 0), TopicPartition("old.orders", 0)
SYNCS = TopicPartition("mm2-offset-syncs.new.internal", 0)


class Ends:
    """An origin with 100 records, its mirror, and what is seen of both after 10 s each."""

    def __init__(self, copied: int = 100, value: bytes | None = None) -> None:
        self.origin, self.target = FakeMigrationCluster("old"), FakeMigrationCluster("new")
        self.origin.logs[NAME] = [log_record(at, at, b"k", value) for at in range(100)]
        self.target.logs[COPY] = [log_record(at, at, b"k", value) for at in range(copied)]
        self.s = 0.0
        self.mirror_end = MirrorEnd(self.origin, self.target, 10.0, lambda: self.s)  # type: ignore[arg-type]

    def look(self) -> bool | None:
        log = LogOffsets(self.origin.starts.get(NAME, 0), self.origin.end_of(NAME))
        found = self.mirror_end.is_complete(NAME, log, COPY, LogOffsets(0, self.target.end_of(COPY)))
        self.s += 10.0
        return found

    def looks(self) -> list[bool | None]:
        return [self.look(), self.look()]

    def sync(self, *pairs: tuple[int, int]) -> None:
        bytes_ = [sync_bytes(0, *pair) for pair in pairs]
        self.origin.logs[SYNCS] = [log_record(n, n)._replace(key=k, value=v) for n, (k, v) in enumerate(bytes_)]


def test_a_mirror_has_all_once_it_rests_and_ends_with_the_same_record() -> None:
    ends = Ends()
    assert ends.looks() == [None, True]
    assert Ends(99).looks() == [None, False]
    # It copies something: older records again, or what comes next.
    ends.target.logs[COPY].append(log_record(100, 99, b"k"))
    assert ends.look() is None


def test_records_that_repeat_differ_in_their_time() -> None:
    assert Ends(50, b"beat").looks() == [None, False]
    assert Ends(100, b"beat").looks() == [None, True]


def test_times_of_the_brokers_are_no_difference_and_the_number_of_records_is_one() -> None:
    ends = Ends(50, b"beat")
    ends.target.settings["old.orders"] = replace(RULES, timestamp_type="LogAppendTime")
    # As another mirror without syncs: nothing distinguishes them.
    assert ends.looks() == [None, True]
    ends.sync((40, 40))
    ends.s += 10.0
    assert ends.look() is False
    ends.target.logs[COPY] = [log_record(at, 7, b"k", b"beat") for at in range(100)]
    assert ends.looks() == [None, True]


def test_ends_of_transactions_are_not_copied_and_do_not_count() -> None:
    ends = Ends(90)
    # Every tenth offset from 10 on is one.
    kept = [record for record in ends.origin.logs[NAME] if record.offset < 10 or record.offset % 10]
    ends.origin.logs[NAME] = kept
    ends.target.logs[COPY] = [record._replace(offset=at) for at, record in enumerate(kept)]
    ends.sync((11, 10), (-1, -1))
    assert ends.looks() == [None, True]
    # One is missing before the last.
    ends.target.logs[COPY] = [record._replace(offset=at) for at, record in enumerate([*kept[:50], *kept[51:]])]
    assert ends.looks() == [None, False]


def test_a_log_that_ends_without_records_is_looked_through_and_unknown_in_the_end() -> None:
    ends = Ends()
    ends.origin.ends[NAME] = 5_000
    assert ends.looks() == [None, True]
    ends.origin.ends[NAME] = 200_000
    assert ends.look() is None
    # Nothing is there any more that could be copied.
    ends.origin.starts[NAME] = 200_000
    assert ends.look() is True


@pytest.mark.parametrize(("end", "complete"), [(2, True), (101_000, True), (101_001, None)])
def test_a_log_of_aborted_transactions_alone_has_nothing_to_copy_if_all_of_it_was_read(
    end: int, complete: bool | None
) -> None:
    ends = Ends(0)
    ends.origin.logs[NAME], ends.origin.ends[NAME] = [], end
    assert ends.looks() == [None, complete]


def test_syncs_that_could_not_be_read_are_not_none() -> None:
    """The mirror has 50 of 100 equal records: only what is behind the sync shows that."""
    ends = Ends(50, b"beat")
    ends.target.settings["old.orders"] = replace(RULES, timestamp_type="LogAppendTime")
    ends.sync((40, 40))

    def fail(name: TopicPartition, record: LogRecord) -> None:
        if name == SYNCS:
            raise HeadroomError("the syncs", "no record came", "See that a leader is up.")

    ends.origin.before_record = fail
    assert ends.looks() == [None, None]
    assert ends.mirror_end.failures == {NAME: "the syncs to be read (no record came)"}
    ends.origin.before_record = lambda name, record: None
    assert (ends.look(), ends.mirror_end.failures) == (False, {})


@pytest.mark.parametrize("pair", [(101, 90), (90, 101)])
def test_a_sync_of_other_logs_leaves_it_unknown(pair: tuple[int, int]) -> None:
    ends = Ends()
    ends.sync(pair)
    assert ends.looks() == [None, None]
