"""Plan of a migration: end offsets, what is left, and what forbids it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.planning.migration.plan.forecast import forecast
from headroom.planning.migration.plan.planned import (
    MigrationForecast,
    PartitionReading,
    PlannedReader,
    ReaderReading,
    TopicOnBoth,
)
from headroom.planning.migration.plan.retention import ReaderRetention
from headroom.planning.migration.readings import LogOffsets, MigratingTopic, TopicRules
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MigrationMethod

NAME = TopicPartition("orders", 0)
SAFE = TopicRules("delete", 604_800_000, -1, 2, False, "CreateTime")
TOPIC = TopicOnBoth("orders", MigratingTopic("a", {0: 1}, 3), SAFE)
EMPTY = LogOffsets(0, 0, 0)
# 20,000 records in 10 s.
READING = PartitionReading(NAME, 80_000, LogOffsets(0, 100_000, 100_000, 1_000_000), 10.0, 1_000_000)
ROUTED, DRAINED, MIRRORED, LINKED = MigrationMethod


def on_target(target: LogOffsets | None, rules: TopicRules | None = SAFE, partitions: int = 1) -> TopicOnBoth:
    topic = MigratingTopic("b", dict.fromkeys(range(partitions), 1), 3)
    return TOPIC if target is None else replace(TOPIC, target_name="orders", target=topic, target_rules=rules)


def planned(
    reading: PartitionReading = READING, topic: TopicOnBoth = TOPIC, method: MigrationMethod = DRAINED
) -> MigrationForecast:
    return forecast(method, {"orders": topic}, [reading], 300.0)


def forbidding(found: MigrationForecast) -> list[str]:
    assert found.is_forbidden() == any(finding.forbids for finding in found.findings)
    return [f"{finding.subject} {finding.rule}" for finding in found.findings if finding.forbids]


def warnings(found: MigrationForecast) -> list[str]:
    return [finding.rule for finding in found.findings if not finding.forbids]


def test_the_papers_partition() -> None:
    found = planned(replace(READING, readers=[ReaderReading("billing", 60_000, 61_000, True)]))
    (partition,) = found.partitions
    assert (partition.write_offsets_per_s, partition.end_offset) == (2_000.0, 700_000)
    assert (partition.switch_in_s, partition.left_offsets, partition.unstable_offsets) == (300.0, 600_000, 0)
    retention = ReaderRetention(300.0 + 604_800.0, 0, 0)
    assert partition.readers == (PlannedReader("billing", 61_000, True, 639_000, 100.0, retention),)
    assert found.findings == ()


def test_a_partition_that_does_not_grow_changes_at_its_log_end() -> None:
    found = planned(replace(READING, earlier_end=100_000))
    (partition,) = found.partitions
    assert (partition.write_offsets_per_s, partition.end_offset, partition.switch_in_s) == (0.0, 100_000, 0.0)
    assert not found.is_forbidden()


@pytest.mark.parametrize("earlier", [None, 100_001])
def test_an_unknown_rate_forbids_it(earlier: int | None) -> None:
    found = planned(replace(READING, earlier_end=earlier))
    (partition,) = found.partitions
    assert (partition.write_offsets_per_s, partition.end_offset, partition.switch_in_s) == (None, None, None)
    assert forbidding(found)[0].startswith("orders-0 has an unknown write rate")


def test_an_unknown_log_forbids_it() -> None:
    assert forbidding(planned(replace(READING, log=LogOffsets()))) == [
        "orders-0 has an unknown log end on the origin",
    ]
    assert forbidding(planned(replace(READING, log=LogOffsets(0, 100_000)))) == [
        "orders-0 has an unknown last stable offset on the origin"
    ]


def test_an_open_transaction_forbids_it() -> None:
    found = planned(replace(READING, log=replace(READING.log, stable=99_990)))
    assert forbidding(found) == ["orders-0 has an open transaction: its last 10 offsets may still be aborted"]
    assert found.partitions[0].unstable_offsets == 10


def test_unequal_partition_counts_forbid_it() -> None:
    found = planned(topic=on_target(EMPTY, partitions=2))
    assert forbidding(found) == [
        "topic orders has another number of partitions on the target, 2, than on the origin, 1: keys change theirs"
    ]


def test_a_target_with_records_forbids_a_migration_that_copies_nothing() -> None:
    full = LogOffsets(5, 50, 50)
    reading = replace(READING, target=full)
    assert forbidding(planned(reading, on_target(full))) == [
        "orders-0 is not empty on the target: it has offsets 5 to 50"
    ]
    assert forbidding(planned(reading, on_target(full), MIRRORED)) == []
    assert forbidding(planned(reading, on_target(full), LINKED)) == []
    # All of its records are deleted.
    assert forbidding(planned(replace(READING, target=LogOffsets(50, 50, 50)), on_target(EMPTY))) == []
    unknown = forbidding(planned(replace(READING, target=LogOffsets()), on_target(EMPTY)))
    assert unknown == ["orders-0 has an unknown log on the target"]


def test_a_link_whose_target_is_ahead_has_diverged() -> None:
    ahead = LogOffsets(0, 100_001, 100_001)
    assert forbidding(planned(replace(READING, target=ahead), on_target(ahead), LINKED)) == [
        "orders-0 has diverged: the target ends at 100,001, beyond the origin's 100,000"
    ]
    same = LogOffsets(0, 100_000, 100_000)
    assert forbidding(planned(replace(READING, target=same), on_target(same), LINKED)) == []


def test_a_mirror_or_link_without_its_topic_is_forbidden() -> None:
    assert forbidding(planned(method=MIRRORED)) == ["topic orders is not on the target"]
    assert forbidding(planned(method=LINKED)) == ["topic orders is not on the target"]
    assert forbidding(planned()) == []


@pytest.mark.parametrize(("policy", "forbidden"), [("compact", True), ("compact,delete", True), ("delete", False)])
def test_a_compacted_topic_has_to_be_copied(policy: str, forbidden: bool) -> None:
    topic = replace(TOPIC, rules=replace(SAFE, cleanup_policy=policy))
    assert bool(forbidding(planned(topic=topic))) is forbidden
    target = LogOffsets(0, 100_000, 100_000)
    copied = replace(on_target(target), rules=replace(SAFE, cleanup_policy=policy))
    assert not forbidding(planned(replace(READING, target=target), copied, MIRRORED))


def test_settings_by_which_an_acknowledged_record_may_be_lost_are_named_for_both_clusters() -> None:
    topic = on_target(EMPTY, replace(SAFE, min_insync_replicas=1))
    topic = replace(topic, rules=replace(SAFE, unclean_elections=True))
    found = planned(topic=topic)
    assert not found.is_forbidden()
    assert warnings(found) == [
        "has unclean.leader.election.enable on the origin: a leader switch may lose acknowledged records",
        "has min.insync.replicas 1 on the target: a record that one broker has is acknowledged, also with acks=all",
    ]
    alone = replace(TOPIC, origin=MigratingTopic("a", {0: 1}, 1), rules=replace(SAFE, min_insync_replicas=1))
    assert warnings(planned(topic=alone)) == [
        "has a partition with one replica on the origin: it is lost with its broker"
    ]
    assert warnings(planned(topic=replace(TOPIC, rules=None))) == ["has unknown settings on the origin"]


def with_reader(earlier: int | None, committed: int | None, active: bool | None = True) -> PartitionReading:
    return replace(READING, readers=[ReaderReading("billing", earlier, committed, active)])


def test_a_reader_that_retention_overtakes_forbids_it() -> None:
    # 639,000 left at 100 a second; kept for 300 + 3,600 s, in which it reads 390,000.
    topic = replace(TOPIC, rules=replace(SAFE, retention_ms=3_600_000))
    found = planned(with_reader(60_000, 61_000), topic)
    assert forbidding(found) == [
        "group billing at orders-0 is overtaken by retention: it would lose 249,000 of 639,000 offsets"
    ]
    # 6,390 s to read them, 6,090 s after the last is written, x 1.2.
    assert "Set retention.ms of the topic to 7308000" in found.findings[0].remedy


def test_a_group_without_consumers_reads_nothing_and_one_that_commits_seldom_reads_at_an_unknown_rate() -> None:
    found = planned(with_reader(61_000, 61_000, False))
    # 300 s and 7 days.
    assert warnings(found) == [
        "has no consumers: 639,000 offsets are deleted unread unless they start within 168 h 5 min"
    ]
    (stopped,) = found.partitions[0].readers
    assert stopped.read_offsets_per_s == 0.0
    assert stopped.retention is not None
    assert stopped.retention.lost_offsets == 639_000
    for active in (True, None):
        (seldom,) = planned(with_reader(61_000, 61_000, active)).partitions[0].readers
        assert seldom.read_offsets_per_s is None
        assert seldom.retention is not None
        assert seldom.retention.lost_offsets is None
    (reset,) = planned(with_reader(61_000, 50_000)).partitions[0].readers
    assert reset.read_offsets_per_s is None


def test_committed_offsets_that_are_missing_deleted_or_beyond_the_log() -> None:
    found = planned(with_reader(None, None))
    assert warnings(found)[0].startswith("has no committed offset: it begins where auto.offset.reset says")
    assert found.partitions[0].readers[0].left_offsets is None
    found = planned(replace(with_reader(0, 10), log=replace(READING.log, start=30)))
    assert warnings(found) == ["is behind the log start: 20 offsets that it has not read are deleted"]
    found = planned(with_reader(100_001, 100_001))
    assert forbidding(found) == ["group billing at orders-0 has committed 100,001, beyond the log end 100,000"]
    (reader,) = planned(with_reader(99_000, 100_000)).partitions[0].readers
    assert (reader.left_offsets, reader.is_beyond) == (600_000, False)


def test_what_forbids_it_comes_first() -> None:
    topic = replace(TOPIC, rules=replace(SAFE, unclean_elections=True))
    found = planned(replace(READING, log=replace(READING.log, stable=0)), topic)
    assert [finding.forbids for finding in found.findings] == [True, False]


def test_routed_clients_need_an_empty_target_and_may_leave_a_compacted_topic() -> None:
    assert not planned(method=ROUTED).is_forbidden()
    full = replace(READING, target=LogOffsets(0, 5, 5))
    assert "is not empty on the target" in forbidding(planned(full, on_target(EMPTY), ROUTED))[0]
    assert not planned(replace(READING, target=EMPTY), on_target(EMPTY), ROUTED).is_forbidden()
    compacted = replace(TOPIC, rules=replace(SAFE, cleanup_policy="compact"))
    assert not planned(topic=compacted, method=ROUTED).is_forbidden()
    assert "is compacted" in warnings(planned(topic=compacted, method=ROUTED))[0]
