"""The follower of MirrorMaker's offset syncs: what it reads, and when it begins again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headroom.cluster.collector.clock import Clock
from headroom.cluster.collector.migration.sync_follower import SyncFollower
from headroom.planning.migration.mirrors.sync_record import SyncReading
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.unit.fakes.migration_clusters import FakeMigrationCluster, log_record, sync_bytes

ON_ORIGIN = TopicPartition("mm2-offset-syncs.new.internal", 0)
ON_TARGET = TopicPartition("mm2-offset-syncs.old.internal", 0)
NAMES = frozenset({TopicPartition("orders", 0)})


class Following:
    """A follower between two clusters in memory.

    Attributes:
        origin: the origin.
        target: the target.
        s: elapsed seconds.
    """

    def __init__(self, most: int = 100) -> None:
        self.origin, self.target = FakeMigrationCluster("old"), FakeMigrationCluster("new")
        self.origin.logs[ON_ORIGIN] = []
        self.origin.leader_epochs[ON_ORIGIN] = 1
        self.s = 0.0
        self.opened = 0
        clock = Clock(lambda: self.s, lambda: self.s)
        self.follower = SyncFollower(lambda: self.connect(self.origin), lambda: self.target, clock, most)  # type: ignore[arg-type, return-value]

    def connect(self, cluster: FakeMigrationCluster) -> FakeMigrationCluster:
        self.opened += 1
        return cluster

    def write(self, *offsets: int, name: TopicPartition = ON_ORIGIN) -> None:
        """Add syncs at offsets, of offset 10 times as large on both clusters."""
        cluster = self.origin if name == ON_ORIGIN else self.target
        for offset in offsets:
            key, value = sync_bytes(0, 10 * offset, 10 * offset)
            cluster.logs.setdefault(name, []).append(log_record(offset, offset)._replace(key=key, value=value))

    def read(self) -> SyncReading:
        return self.follower.read(NAMES)


@pytest.fixture
def following() -> Iterator[Following]:
    made = Following()
    yield made
    made.follower.close()


def offsets(reading: SyncReading) -> list[int]:
    return [record.offset for record in reading.records]


def test_each_reading_has_only_what_is_new(following: Following) -> None:
    following.write(0, 1)
    first = following.read()
    assert (offsets(first), first.is_restart, first.begin, first.end, first.is_all) == ([0, 1], True, 0, 2, True)
    assert (first.topic_id, first.leader_epoch) == (f"id of {ON_ORIGIN.topic}", 1)
    assert (first.records[1].origin, first.records[1].written_ms) == (10, 1_001)
    reads = len(following.origin.reads)
    second = following.read()
    assert (offsets(second), second.is_restart, second.is_all) == ([], False, True)
    # Nothing new costs no fetch.
    assert len(following.origin.reads) == reads
    following.write(2)
    assert offsets(following.read()) == [2]
    assert following.origin.reads[-1] == (ON_ORIGIN, 2, 3)
    assert following.opened == 1


def test_a_long_topic_is_read_in_parts() -> None:
    following = Following(most=2)
    following.write(0, 1, 2, 5, 6)
    parts = [following.read() for _ in range(3)]
    assert [(offsets(part), part.begin, part.end, part.is_all) for part in parts] == [
        ([0, 1], 0, 2, False),
        ([2, 5], 2, 6, False),
        ([6], 6, 7, True),
    ]
    assert [part.is_restart for part in parts] == [True, False, False]


def test_a_topic_that_was_created_again_is_read_from_its_start(following: Following) -> None:
    following.write(0, 1)
    following.read()
    following.origin.logs[ON_ORIGIN] = []
    following.write(0, 1, 2)
    following.origin.topic_ids[ON_ORIGIN.topic] = "another"
    again = following.read()
    assert (offsets(again), again.is_restart, again.topic_id) == ([0, 1, 2], True, "another")


def test_a_topic_that_is_shorter_than_before_is_read_from_its_start(following: Following) -> None:
    following.write(0, 1, 2)
    following.read()
    del following.origin.logs[ON_ORIGIN][1:]
    again = following.read()
    assert (offsets(again), again.is_restart) == ([0], True)


@pytest.mark.parametrize(("epoch_end", "is_restart"), [(3, False), (2, True), (None, True)])
def test_a_new_leader_with_another_log_is_seen_though_its_log_is_longer(
    following: Following, epoch_end: int | None, is_restart: bool
) -> None:
    following.write(0, 1, 2)
    following.read()
    following.write(3, 4)
    following.origin.leader_epochs[ON_ORIGIN] = 2
    following.origin.ended[ON_ORIGIN] = {} if epoch_end is None else {1: epoch_end}
    again = following.read()
    assert (again.is_restart, offsets(again)) == (is_restart, [0, 1, 2, 3, 4] if is_restart else [3, 4])


def test_records_that_retention_deleted_are_passed_over(following: Following) -> None:
    following.write(0, 1)
    following.read()
    following.origin.starts[ON_ORIGIN] = 5
    following.write(5)
    later = following.read()
    assert (later.begin, offsets(later), later.is_restart) == (5, [5], False)


def test_partitions_that_come_later_are_read_from_the_start(following: Following) -> None:
    following.write(0)
    following.read()
    more = NAMES | {TopicPartition("orders", 1)}
    assert following.follower.read(more).is_restart
    assert not following.follower.read(more).is_restart
    assert not following.read().is_restart


def test_syncs_on_the_target_are_read_there_also_after_the_origin_is_gone(following: Following) -> None:
    del following.origin.logs[ON_ORIGIN]
    following.write(0, name=ON_TARGET)
    following.target.leader_epochs[ON_TARGET] = 1
    assert offsets(following.read()) == [0]
    following.origin.down = True
    following.write(1, name=ON_TARGET)
    assert offsets(following.read()) == [1]


def test_the_cluster_of_the_topic_is_looked_for_again_now_and_then(following: Following) -> None:
    following.write(0)
    following.read()
    following.write(0, 1, name=ON_TARGET)
    del following.origin.logs[ON_ORIGIN]
    following.origin.fill("orders", 0, [0])
    following.s += 61.0
    moved = following.read()
    assert (offsets(moved), moved.is_restart, moved.topic_id) == ([0, 1], True, f"id of {ON_TARGET.topic}")


def test_a_record_that_is_no_sync_is_named_and_read_again(following: Following) -> None:
    following.write(0)
    following.read()
    following.write(1)
    following.origin.logs[ON_ORIGIN].append(log_record(2, 2))
    for _ in range(2):
        with pytest.raises(
            HeadroomError, match=r"mm2-offset-syncs.new.internal: its record at offset 2 is not an offset"
        ):
            following.read()
    del following.origin.logs[ON_ORIGIN][-1]
    following.write(3)
    # Nothing of the failed readings counts: the hole that was left shows.
    later = following.read()
    assert (later.begin, offsets(later), later.is_restart) == (1, [1, 3], False)


def test_a_topic_that_changes_while_it_is_read_gives_no_reading(following: Following) -> None:
    following.write(0)
    topics = following.origin.topics
    asked: list[int] = []

    def changing(names: object = None) -> object:
        asked.append(0)
        following.origin.leader_epochs[ON_ORIGIN] = len(asked)
        return topics()

    following.origin.topics = changing  # type: ignore[method-assign, assignment]
    with pytest.raises(HeadroomError, match="was created again, or got another leader, while it was read"):
        following.read()
    following.origin.topics = topics  # type: ignore[method-assign]
    assert offsets(following.read()) == [0]


def test_without_the_topic_the_aliases_of_others_are_named(following: Following) -> None:
    following.origin.logs[TopicPartition("mm2-offset-syncs.x.internal", 0)] = following.origin.logs.pop(ON_ORIGIN)
    asked: list[int] = []
    for _ in range(2):
        with pytest.raises(HeadroomError, match=r"or other aliases, are: mm2-offset-syncs.x.internal"):
            following.read()
        asked.append(following.origin.calls)
    # All topics are asked for once a minute at most.
    assert asked[0] == asked[1]
    following.write(0)
    following.s += 61.0
    assert offsets(following.read()) == [0]
