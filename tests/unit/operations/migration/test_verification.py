"""Verification of a mirror, read from two clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from headroom.cluster.migration.records import LogRecord
from headroom.operations.migration.verification import VerifiedMirror, verify_mirror, verify_moved
from headroom.planning.migration.mirrors.comparison import MirrorCounts
from headroom.planning.migration.readings import TopicRules
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import PartitionAgreement
from tests.unit.fakes.migration_clusters import RULES, FakeMigrationCluster, QuietProgress, clusters_of, log_record

ORDERS = [TopicPartition("orders", p) for p in (0, 1)]


@pytest.fixture
def origin() -> FakeMigrationCluster:
    cluster = FakeMigrationCluster("old")
    cluster.fill("orders", 0, range(100))
    cluster.fill("orders", 1, range(1_000, 1_050))
    return cluster


@pytest.fixture
def target() -> FakeMigrationCluster:
    cluster = FakeMigrationCluster("new")
    cluster.fill("orders", 0, range(100))
    cluster.fill("orders", 1, range(1_000, 1_050))
    return cluster


def verified(
    origin: FakeMigrationCluster,
    target: FakeMigrationCluster,
    committed: bool = False,
    notes: list[str] | None = None,
    progress: QuietProgress | None = None,
    wait: Callable[[float], object] = lambda seconds: None,
) -> VerifiedMirror:
    kept = [] if notes is None else notes
    clusters = clusters_of(origin, target)
    return verify_mirror(clusters, "orders", committed, progress or QuietProgress(), kept.append, wait)


def test_a_whole_mirror_whose_name_is_kept(origin: FakeMigrationCluster, target: FakeMigrationCluster) -> None:
    progress = QuietProgress()
    result = verified(origin, target, progress=progress)
    assert (result.topic, result.target_topic, result.with_timestamps) == ("orders", "orders", True)
    assert [(one.origin, one.target, one.counts) for one in result.partitions] == [
        ((0, 100), (0, 100), MirrorCounts(mirrored=100)),
        ((0, 50), (0, 50), MirrorCounts(mirrored=50)),
    ]
    assert result.total() == MirrorCounts(mirrored=150)
    assert result.total().is_whole()
    assert progress.steps == ["Comparing orders-0", "Comparing orders-1"]
    assert progress.notes == ["orders-0: 0 of 100 offsets", "orders-1: 0 of 50 offsets"]


def test_each_partition_is_compared_with_its_own(origin: FakeMigrationCluster, target: FakeMigrationCluster) -> None:
    """A record in another partition is missing in one, and foreign in the other."""
    moved = target.logs[ORDERS[0]].pop(50)
    target.logs[ORDERS[1]].append(moved._replace(offset=50))
    first, second = (one.counts for one in verified(origin, target).partitions)
    assert first == MirrorCounts(mirrored=99, missing=1)
    assert second == MirrorCounts(mirrored=50, foreign=1)


def test_records_that_one_cluster_has_deleted_are_not_read(
    origin: FakeMigrationCluster, target: FakeMigrationCluster
) -> None:
    # Retention of the origin has deleted 0 to 29 of one partition, that of the target 1,000 to 1,019 of the other.
    origin.fill("orders", 0, range(30, 100), first=30)
    target.fill("orders", 1, range(1_020, 1_050), first=20)
    result = verified(origin, target)
    assert [(one.origin, one.target, one.counts) for one in result.partitions] == [
        ((30, 100), (30, 100), MirrorCounts(mirrored=70)),
        ((20, 50), (20, 50), MirrorCounts(mirrored=30)),
    ]


def test_a_mirror_that_is_behind_is_whole_so_far(origin: FakeMigrationCluster, target: FakeMigrationCluster) -> None:
    del target.logs[ORDERS[0]][90:]
    total = verified(origin, target).total()
    assert (total.pending, total.is_whole()) == (10, True)


def test_timestamps_that_the_target_sets_are_not_compared(
    origin: FakeMigrationCluster, target: FakeMigrationCluster
) -> None:
    target.logs[ORDERS[0]] = [
        record._replace(digest=record.digest._replace(timestamp_ms=9), timestamp_ms=9)
        for record in target.logs[ORDERS[0]]
    ]
    assert not verified(origin, target).total().is_whole()
    target.settings["orders"] = TopicRules("delete", timestamp_type="LogAppendTime")
    notes: list[str] = []
    result = verified(origin, target, notes=notes)
    assert (result.total(), result.with_timestamps) == (MirrorCounts(mirrored=150), False)
    assert notes[0].startswith("Timestamps are not compared")


def test_only_committed_records_are_compared_if_asked_for(
    origin: FakeMigrationCluster, target: FakeMigrationCluster
) -> None:
    origin.stables[ORDERS[0]] = 95
    target.stables[ORDERS[0]] = 90
    first = verified(origin, target, committed=True).partitions[0]
    assert (first.origin, first.target, first.counts) == ((0, 95), (0, 90), MirrorCounts(mirrored=90, pending=5))


def test_a_compacted_topic_is_noted(origin: FakeMigrationCluster, target: FakeMigrationCluster) -> None:
    origin.settings["orders"] = TopicRules("compact", timestamp_type=RULES.timestamp_type)
    notes: list[str] = []
    verified(origin, target, notes=notes)
    assert notes == ["The topic is compacted: what one cluster has removed already counts as missing or foreign."]


def test_a_topic_that_may_be_mirrored_under_another_alias_is_noted(
    origin: FakeMigrationCluster, target: FakeMigrationCluster
) -> None:
    target.fill("a.orders", 0, [])
    notes: list[str] = []
    verified(origin, target, notes=notes)
    assert notes == ["orders counts as its own mirror. If a.orders is it, set migration.origin.name to that alias."]


def test_a_topic_that_cannot_be_compared_is_an_error(
    origin: FakeMigrationCluster, target: FakeMigrationCluster
) -> None:
    target.leaderless = {ORDERS[1]}
    waits: list[float] = []
    expected = "orders-1 on cluster new: has an unknown log end: no leader reported it within 30 s"
    with pytest.raises(HeadroomError, match=expected):
        verified(origin, target, wait=waits.append)
    assert sum(waits) < 30.0
    target.leaderless = set()
    del target.logs[ORDERS[1]]
    with pytest.raises(HeadroomError, match="has 2 partitions on the origin, and 1 on the target as orders"):
        verified(origin, target)


def test_a_doubled_run_of_records_is_counted(origin: FakeMigrationCluster, target: FakeMigrationCluster) -> None:
    """MirrorMaker was killed, and began again 20 records before."""
    numbers = [*range(60), *range(40, 100)]
    target.logs[ORDERS[0]] = [log_record(at, number) for at, number in enumerate(numbers)]
    assert verified(origin, target).partitions[0].counts == MirrorCounts(mirrored=100, doubled=20)


@pytest.mark.parametrize("cluster", ["old", "new"])
def test_a_leader_switch_in_the_middle_is_followed(
    origin: FakeMigrationCluster, target: FakeMigrationCluster, cluster: str
) -> None:
    """While the first partition is compared, the leader of the second one moves; its log has lost its beginning."""
    moving = origin if cluster == "old" else target

    def switch(name: TopicPartition, record: LogRecord) -> None:
        if record.offset == 50:
            origin.leaders[ORDERS[1]] = target.leaders[ORDERS[1]] = 2

    moving.before_record = switch
    # Found by time at the new leader: otherwise the first 20 records would count as missing.
    target.fill("orders", 1, range(1_020, 1_050), first=20)
    result = verified(origin, target)
    assert [(one.origin, one.counts) for one in result.partitions] == [
        ((0, 100), MirrorCounts(mirrored=100)),
        ((20, 50), MirrorCounts(mirrored=30)),
    ]


def test_a_partition_whose_new_leader_comes_late_is_waited_for(
    origin: FakeMigrationCluster, target: FakeMigrationCluster
) -> None:
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 9:
            target.leaderless, target.leaders = set(), {ORDERS[1]: 3}

    target.before_record = lambda name, record: target.leaderless.add(ORDERS[1]) if record.offset == 9 else None
    assert verified(origin, target, wait=wait).total() == MirrorCounts(mirrored=150)
    assert len(waits) == 9


def test_a_topic_that_is_recreated_in_the_middle_is_not_followed(
    origin: FakeMigrationCluster, target: FakeMigrationCluster
) -> None:
    def recreate(name: TopicPartition, record: LogRecord) -> None:
        target.topic_ids["orders"], target.leaders[ORDERS[1]] = "another", 2

    target.before_record = recreate
    with pytest.raises(HeadroomError, match="topic orders: was deleted or recreated on the cluster new"):
        verified(origin, target)


AGREED = PartitionAgreement(
    "m", 1, "id of old", "id of new", "orders", 0, "id of orders", "id of orders", 80, 5, "migrated"
)
BOTH = {0: AGREED, 1: replace(AGREED, partition=1, end_offset=50)}


def moved(
    origin: FakeMigrationCluster,
    target: FakeMigrationCluster,
    agreed: Mapping[int, PartitionAgreement],
    notes: list[str] | None = None,
    wait: Callable[[float], object] = lambda seconds: None,
) -> VerifiedMirror:
    kept = [] if notes is None else notes
    return verify_moved(clusters_of(origin, target), "orders", agreed, False, QuietProgress(), kept.append, wait)


def test_what_is_on_the_origin_from_its_end_on_has_to_be_on_the_target(origin: FakeMigrationCluster) -> None:
    """Of 20 records from 80 on, a router has moved 18; one is behind records that went straight there, one is twice."""
    target = FakeMigrationCluster("new")
    target.fill("orders", 0, [*range(5), *range(80, 90), 500, *range(90, 98), 501, 97])
    target.fill("orders", 1, [])
    result = moved(origin, target, BOTH)
    first, second = result.partitions
    assert first.counts == MirrorCounts(mirrored=18, missing=2, doubled=1)
    assert (first.origin, first.target) == ((80, 100), (5, 26))
    assert (second.counts, second.origin, result.from_end) == (MirrorCounts(), (50, 50), True)
    assert not result.total().is_whole()


def test_what_has_just_landed_there_is_waited_for(origin: FakeMigrationCluster) -> None:
    target = FakeMigrationCluster("new")
    target.fill("orders", 0, range(5))
    target.fill("orders", 1, [])
    result = moved(origin, target, BOTH, wait=lambda seconds: target.fill("orders", 0, [*range(5), *range(80, 100)]))
    assert result.total() == MirrorCounts(mirrored=20)


def at_times_of_a_broker(records: list[LogRecord]) -> list[LogRecord]:
    """The same records as a topic with LogAppendTime has them."""
    return [one._replace(digest=one.digest._replace(timestamp_ms=9), timestamp_ms=9) for one in records]


@pytest.mark.parametrize("cluster", ["origin", "target"])
def test_times_that_a_broker_has_set_are_no_difference_of_what_was_moved(
    origin: FakeMigrationCluster, cluster: str
) -> None:
    target, notes = FakeMigrationCluster("new"), list[str]()
    target.fill("orders", 0, [*range(5), *range(80, 100)])
    target.fill("orders", 1, [])
    changed = origin if cluster == "origin" else target
    changed.logs[ORDERS[0]] = at_times_of_a_broker(changed.logs[ORDERS[0]])
    assert moved(origin, target, BOTH).total().missing == 20
    changed.settings["orders"] = TopicRules("delete", timestamp_type="LogAppendTime")
    result = moved(origin, target, BOTH, notes)
    assert (result.total(), result.with_timestamps) == (MirrorCounts(mirrored=20), False)
    assert notes == [
        f"Timestamps are not compared: orders has message.timestamp.type LogAppendTime on the {cluster}.",
        "Records that are the same without them count for each other, and doubled ones are not counted.",
    ]


def test_without_times_a_later_record_that_is_the_same_is_not_doubled() -> None:
    """One ping was moved, and three later ones went straight to the target."""
    origin, target = FakeMigrationCluster("old"), FakeMigrationCluster("new")
    origin.logs = {ORDERS[0]: [log_record(80, 1, value=b"ping")], ORDERS[1]: []}
    target.logs = {ORDERS[0]: [log_record(at, at, value=b"ping") for at in range(5, 9)], ORDERS[1]: []}
    origin.starts = {ORDERS[0]: 80}
    target.settings["orders"] = TopicRules("delete", timestamp_type="LogAppendTime")
    assert moved(origin, target, {0: AGREED}).total() == MirrorCounts(mirrored=1)


def test_what_compaction_removes_on_the_target_is_said_to_count_as_missing(origin: FakeMigrationCluster) -> None:
    target, notes = FakeMigrationCluster("new"), list[str]()
    target.fill("orders", 0, [*range(5), *range(81, 100)])
    target.fill("orders", 1, [])
    target.settings["orders"] = replace(RULES, cleanup_policy="compact")
    assert moved(origin, target, BOTH, notes).total() == MirrorCounts(mirrored=19, missing=1)
    assert notes == [
        "The target is compacted: what was moved, and replaced there by a newer record, counts as missing."
    ]


def test_partitions_whose_target_is_not_in_use_are_left_out_and_nothing_but_them_is_an_error(
    origin: FakeMigrationCluster, target: FakeMigrationCluster
) -> None:
    notes: list[str] = []
    planned = replace(AGREED, partition=1, status="planned")
    assert len(moved(origin, target, {0: AGREED, 1: planned}, notes).partitions) == 1
    assert "orders-1 is left out: its target is not in use." in notes
    with pytest.raises(HeadroomError, match="has no partition whose target is in use"):
        moved(origin, target, {1: planned})


def test_offsets_of_another_topic_are_not_taken_for_those_that_were_agreed(
    origin: FakeMigrationCluster, target: FakeMigrationCluster
) -> None:
    target.topic_ids["orders"] = "another"
    with pytest.raises(HeadroomError, match="its ids are not those that were agreed"):
        moved(origin, target, BOTH)


def test_a_target_that_has_deleted_records_is_said_to_have(origin: FakeMigrationCluster) -> None:
    target, notes = FakeMigrationCluster("new"), list[str]()
    target.fill("orders", 0, range(90, 100), first=10)
    target.fill("orders", 1, [])
    assert moved(origin, target, BOTH, notes).total() == MirrorCounts(mirrored=10, missing=10)
    assert "orders-0: the target has deleted records; those that were moved count as missing." in notes
