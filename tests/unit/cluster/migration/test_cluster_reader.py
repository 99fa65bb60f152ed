"""Readings of one cluster: what is read again, and what a refused part costs."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.cluster.migration.cluster_reader import (
    ClusterReader,
    WantedPartitions,
    wanted_on_origin,
    wanted_on_target,
)
from headroom.planning.migration.log_size import LogSize
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import PartitionAgreement
from tests.unit.fakes.migration_clusters import RULES, FakeMigrationCluster, log_record

NAME, COPY = TopicPartition("orders", 0), TopicPartition("old.orders", 0)
WANTED = WantedPartitions([NAME])


class Read:
    """A cluster in memory and its reader."""

    def __init__(self, name: TopicPartition = NAME, alias: str | None = None, groups: tuple[str, ...] = ()) -> None:
        self.s, self.set_s = 1_000.0, 0.0
        self.cluster = FakeMigrationCluster("old", "o", {name: [log_record(0, 0)]})
        clock_ms = lambda: int((self.s + self.set_s) * 1000)  # noqa: E731
        clock_s = lambda: self.s  # noqa: E731
        self.reader = ClusterReader(lambda: self.cluster, clock_s, clock_ms, groups, alias)  # type: ignore[arg-type, return-value]


def refuse(*given: Any) -> Any:
    raise HeadroomError("cluster old", "refused", "Grant DESCRIBE on its groups.")


def test_topics_are_read_again_once_a_leader_has_moved_and_otherwise_now_and_then() -> None:
    read = Read()
    asked: list[float] = []
    topics = read.cluster.topics

    def counted() -> Any:
        asked.append(read.s)
        return topics()

    read.cluster.topics = counted  # type: ignore[method-assign]
    for _ in range(3):
        assert read.reader.read(WantedPartitions([NAME])).logs[NAME].end == 1
    assert len(asked) == 1
    read.s += 6.0
    read.reader.read(WantedPartitions([NAME]))
    assert len(asked) == 2
    # A partition that the known topics do not have is looked for at once.
    read.reader.read(WantedPartitions([NAME, TopicPartition("orders", 7)]))
    assert len(asked) == 3


def test_a_reading_after_forgetting_has_nothing_of_the_one_before() -> None:
    read = Read()
    read.cluster.group_states, read.cluster.offsets = {"a": True, "b": True}, {"a": {NAME: 1}}
    assert read.reader.read(WANTED).committed == {"a": {NAME: 1}}
    read.cluster.offsets["b"] = {NAME: 0}
    read.cluster.topic_ids["orders"] = "another"
    # Known for some seconds: the id, and that b has no offset.
    kept = read.reader.read(WANTED)
    assert (kept.topic_ids, kept.committed) == ({"orders": "id of orders"}, {"a": {NAME: 1}})
    read.reader.forget()
    now = read.reader.read(WANTED)
    assert (now.topic_ids, now.committed) == ({"orders": "another"}, {"a": {NAME: 1}, "b": {NAME: 0}})


def test_named_groups_that_the_cluster_does_not_list_are_named() -> None:
    read = Read(groups=("a", "b"))
    read.cluster.group_states, read.cluster.offsets = {"a": True, "other": True}, {"a": {NAME: 1}}
    reading = read.reader.read(WANTED)
    assert (reading.groups, reading.committed, reading.unlisted) == ({"a": True}, {"a": {NAME: 1}}, frozenset("b"))
    read.cluster.groups = refuse  # type: ignore[method-assign]
    assert read.reader.read(WANTED).unlisted == frozenset()


def test_groups_that_may_not_be_read_leave_offsets_and_settings_known() -> None:
    read = Read()
    read.cluster.groups = refuse  # type: ignore[method-assign]
    reading = read.reader.read(WANTED)
    assert (reading.groups, reading.committed) == (None, {})
    assert (reading.logs[NAME].end, reading.rules) == (1, {"orders": RULES})


def test_settings_that_may_not_be_read_leave_groups_known_and_are_asked_for_again() -> None:
    read = Read()
    read.cluster.group_states, read.cluster.offsets = {"a": True}, {"a": {NAME: 1}}
    rules, read.cluster.rules = read.cluster.rules, refuse  # type: ignore[method-assign]
    reading = read.reader.read(WANTED)
    assert (reading.groups, reading.rules) == ({"a": True}, {})
    read.cluster.rules = rules  # type: ignore[method-assign]
    assert read.reader.read(WANTED).rules == {"orders": RULES}


def test_a_mirror_has_the_name_of_the_origin_in_readings_and_a_missing_topic_is_one_that_was_asked_about() -> None:
    read = Read(COPY, alias="old")
    assert read.reader.read(WantedPartitions([NAME], frozenset({"orders"}))).logs[NAME].end == 1
    reading = read.reader.read(WANTED)
    assert (reading.logs, reading.topic_ids) == ({}, {"orders": None})


def test_a_reading_of_logs_alone_asks_for_nothing_else() -> None:
    read = Read(COPY, alias="old")
    read.cluster.fill("old.orders", 1, range(3))
    for name in ("groups", "rules", "log_sizes", "leader_ends"):
        setattr(read.cluster, name, refuse)
    wanted = WantedPartitions([NAME], frozenset({"orders"}), sized=[NAME], is_logs_only=True)
    reading = read.reader.read(wanted)
    assert (reading.logs[NAME].end, reading.topic_ids) == (1, {"orders": "id of old.orders"})
    assert (reading.groups, reading.rules, reading.sizes, reading.epoch_ends) == (None, {}, {}, {})
    # The other partition too, which was not asked about.
    assert (reading.names, sorted(reading.topics["orders"].leaders)) == ({"orders": "old.orders"}, [0, 1])


def test_a_reading_of_the_origins_logs_alone_has_what_only_leaders_have() -> None:
    read = Read()
    read.cluster.fill("orders", 1, range(3))
    read.cluster.unreplicated = {NAME: 4}
    reading = read.reader.read(WantedPartitions([NAME], is_logs_only=True))
    assert (reading.logs[NAME].end, reading.leader_ends) == (1, {NAME: 5})
    read.cluster.leader_ends = refuse  # type: ignore[method-assign]
    assert read.reader.read(WANTED).leader_ends == {}


def test_sizes_of_logs_are_read_some_seconds_apart_and_only_those_that_are_wanted() -> None:
    read = Read()
    read.cluster.sizes = {NAME: 5_000}
    sized = WantedPartitions([NAME], sized=[NAME])
    first = read.reader.read(sized).sizes
    assert first == {NAME: LogSize(1_000_000, 1, 0, 1, 5_000)}
    read.s, read.cluster.sizes = read.s + 4.0, {NAME: 9_000}
    # The same sample, with the offsets that were read with it.
    assert read.reader.read(sized).sizes == first
    read.s += 2.0
    assert read.reader.read(sized).sizes == {NAME: LogSize(1_006_000, 1, 0, 1, 9_000)}
    assert read.reader.read(WANTED).sizes == {}
    assert read.cluster.sized == [[NAME], [NAME]]


def test_sizes_are_read_again_once_the_clock_was_set() -> None:
    read = Read()
    read.cluster.sizes, sized = {NAME: 5_000}, WantedPartitions([NAME], sized=[NAME])
    read.reader.read(sized)
    read.set_s = 600.0
    assert read.reader.read(sized).sizes[NAME].read_ms == 1_600_000


def test_sizes_that_may_not_be_read_are_unknown_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    read = Read()
    read.cluster.unsized, sized = "broker 1 does not show its log directories", WantedPartitions([NAME], sized=[NAME])
    for _ in range(3):
        reading = read.reader.read(sized)
        assert (reading.sizes, reading.logs[NAME].end) == ({}, 1)
        read.s += 6.0
    assert [one.getMessage() for one in caplog.records] == [
        "what clients write to partitions of a migration is unknown: broker 1 does not show its log directories"
    ]


def agreement(
    partition: int, method: str = "routed", shielded: bool = False, status: str = "planned"
) -> PartitionAgreement:
    return PartitionAgreement("m", 1, "o", "t", "orders", partition, status=status, method=method, shielded=shielded)


def test_shielded_partitions_are_read_on_the_target_alone() -> None:
    both = [agreement(0, shielded=True), agreement(1, "mirrored")]
    other = TopicPartition("orders", 1)
    target = wanted_on_target(both)
    assert (target.names, target.mirrored) == ([NAME, other], {"orders"})
    # Topics of two origins may have one name, and which one answers is not known yet.
    ends = {("o", NAME): {2: 5}, ("o", other): {3: 7, 4: 9}, ("x", other): {5: 1}}
    origin = wanted_on_origin(both, ends)
    assert origin is not None
    assert (origin.names, origin.epochs) == ([other], {other: [3, 4]})
    assert wanted_on_origin(both[:1], {}) is None


def test_sizes_are_wanted_of_partitions_that_clients_write_to_on_the_origin() -> None:
    statuses = ("planned", "migrating", "migrated", "aged")
    every = [agreement(number, status=status) for number, status in enumerate(statuses)]
    wanted = wanted_on_origin([*every, agreement(9, shielded=True)], {})
    assert wanted is not None
    assert (len(wanted.names), wanted.sized) == (4, [NAME, TopicPartition("orders", 1)])
    assert wanted_on_target(every).sized == ()
