"""Rows of migrations from what is known of both clusters: what is unknown stays so, and a cluster costs its columns."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from headroom.cluster.collector.migration.rows import ClusterFacts, MigrationFacts, migration_rows
from headroom.cluster.migration.cluster_reader import ClusterReading
from headroom.planning.migration.log_size import LogSize
from headroom.planning.migration.progress.judgement import migration_progress
from headroom.planning.migration.readings import LogOffsets, TopicRules
from headroom.schemas.bounds import MOST_IN_ARRAY
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import PartitionAgreement, RouterReport
from tests.unit.builders.migration_progress import reading_of_row

NAME, OTHER = TopicPartition("orders", 0), TopicPartition("payments", 0)
AGREED = PartitionAgreement("m", 1, "o", "t", "orders", 0, None, None, 700, 0, "migrating")
UNREAD = ClusterFacts(error="no broker answered")


def reading(cluster_id: str = "o", **parts: Any) -> ClusterReading:
    """A reading of orders-0 with the group billing."""
    own: dict[str, Any] = {
        "logs": {NAME: LogOffsets(0, 500, 500)},
        "topic_ids": {"orders": "i"},
        "groups": {"billing": True},
        "committed": {"billing": {NAME: 100}},
    }
    return ClusterReading(0.0, 1_000, cluster_id, **own | parts)


def facts(now: ClusterReading) -> ClusterFacts:
    return ClusterFacts(now, last=now)


ORIGIN, TARGET = facts(reading()), facts(reading("t", groups={}, committed={}))


def row(origin: ClusterFacts = ORIGIN, target: ClusterFacts = TARGET, **more: Any) -> dict[str, Any]:
    (found,) = migration_rows(MigrationFacts([AGREED], origin=origin, target=target, **more))
    return found


def groups(found: dict[str, Any]) -> list[tuple[str, int | None]] | None:
    own = found["groups"]
    return None if own is None else [(group["group"], group["origin_offset"]) for group in own]


def test_a_log_has_its_newest_record() -> None:
    origin = row(facts(reading(logs={NAME: LogOffsets(0, 500, 500, 900, 499)})))["origin"]
    assert (origin["newest_ms"], origin["newest_offset"]) == (900, 499)


def test_groups_are_known_only_if_both_clusters_have_listed_them() -> None:
    assert groups(row()) == [("billing", 100)]
    unlisted = reading(groups=None, committed={})
    assert groups(row(facts(unlisted))) is None
    # One that has moved by hand would seem to read the origin.
    assert groups(row(target=facts(replace(unlisted, cluster_id="t")))) is None
    assert groups(row(target=UNREAD)) is None
    # A dead origin keeps those of its last reading, at an unknown place.
    assert groups(row(replace(UNREAD, last=reading()))) == [("billing", None)]
    assert groups(row(UNREAD)) is None


def test_a_named_group_that_neither_cluster_lists_reads_at_an_unknown_place() -> None:
    here, there = reading(unlisted=frozenset({"biling", "moved"})), reading("t", committed={}, groups={"moved": True})
    found = row(facts(here), facts(replace(there, unlisted=frozenset({"biling", "billing"}))))
    assert groups(found) == [("biling", None), ("billing", 100)]
    evaluated = reading_of_row(found, 1_000)
    assert evaluated is not None
    places = {group.group: group.left_offsets for group in migration_progress(evaluated).groups or ()}
    assert places == {"biling": None, "billing": 600}


def test_topics_of_one_name_on_two_origins_have_their_own_epochs() -> None:
    ends = {("o", NAME): {3: 480}, ("x", NAME): {4: 90}}
    other = replace(AGREED, origin_cluster_id="x")
    found = migration_rows(MigrationFacts([AGREED, other], origin=ORIGIN, target=TARGET, acknowledged=ends))
    epochs = [[(one["leader_epoch"], one["acknowledged_end"]) for one in own["epochs"]] for own in found]
    assert epochs == [[(3, 480)], [(4, 90)]]


def test_a_row_says_that_a_router_of_its_migration_has_dropped_notes() -> None:
    report = RouterReport("a", "1", "producer", "1", incomplete=("m",))
    assert row(reports={"a": report})["incomplete_reports"] is True
    assert row(reports={"a": replace(report, incomplete=("n",))})["incomplete_reports"] is False


def test_the_name_on_the_target_is_that_of_the_last_reading() -> None:
    assert row()["target_topic"] is None
    named = reading("t", names={"orders": "old.orders"})
    assert row(target=facts(named))["target_topic"] == "old.orders"
    assert row(target=replace(UNREAD, last=named))["target_topic"] == "old.orders"
    # It is another cluster than was agreed.
    assert row(target=facts(replace(named, cluster_id="x")))["target_topic"] is None


def test_a_group_has_its_members_on_both_clusters_and_whether_it_goes_on_at_the_target() -> None:
    def there(offset: int) -> ClusterReading:
        return reading("t", groups={"billing": False}, committed={"billing": {NAME: offset}})

    found = row(ClusterFacts(reading(), None, reading(), last=reading()), ClusterFacts(there(9), None, there(8)))
    (group,) = found["groups"]
    assert (group["active"], group["target_active"], group["prev_target_offset"]) == (True, False, 8)
    evaluated = reading_of_row(found, 1_000)
    assert evaluated is not None
    (first,) = evaluated.groups or ()
    assert (first.active, first.target_active, first.has_grown_on_target) == (True, False, True)


def test_the_age_at_the_end_offset_is_passed_on_while_the_origin_is_read() -> None:
    found = row(end_newest={NAME: 400})
    evaluated = reading_of_row(found, 1_000)
    assert evaluated is not None
    assert (found["end_newest_ms"], evaluated.end_newest_ms) == (400, 400)
    assert row(UNREAD, end_newest={NAME: 400})["end_newest_ms"] is None


def test_a_reading_that_was_about_other_topics_knows_no_group_of_this_one() -> None:
    others = reading(logs={OTHER: LogOffsets(0, 1, 1)}, topic_ids={"payments": "p"}, committed={"audit": {OTHER: 1}})
    assert groups(row(facts(others))) is None
    # So it is for a topic that is shielded while another one is read.
    shielded = replace(AGREED, shielded=True)
    known = replace(AGREED, topic="payments")
    both = MigrationFacts(
        [shielded, known], origin=facts(others), target=facts(reading("t", topic_ids={"orders": "i"}))
    )
    first, second = migration_rows(both)
    assert (first["topic"], first["origin"], first["groups"]) == ("orders", None, None)
    assert second["origin"]["log_end_offset"] == 1


def test_groups_of_a_topic_that_was_shielded_are_those_of_its_last_reading() -> None:
    (found,) = migration_rows(MigrationFacts([replace(AGREED, shielded=True)], origin=ORIGIN, target=TARGET))
    assert (found["origin"], found["origin_error"]) == (None, "nothing calls it: shielded")
    assert groups(found) == [("billing", None)]


def test_a_dead_target_costs_its_own_columns_and_what_was_read_of_it_before() -> None:
    found = row(target=UNREAD, earlier_target=reading("t"))
    assert (found["target"], found["earlier_target_end"], found["origin"]["log_end_offset"]) == (None, None, 500)
    assert row(earlier_target=reading("t"))["earlier_target_end"] == 500


def test_more_groups_than_a_message_takes_are_unknown_there_and_listed_elsewhere() -> None:
    many = {f"g{number:03}": {NAME: number} for number in range(MOST_IN_ARRAY + 1)}
    known = MigrationFacts([AGREED], origin=facts(reading(groups=dict.fromkeys(many), committed=many)), target=TARGET)
    assert migration_rows(known)[0]["groups"] is None
    assert len(migration_rows(known, sys.maxsize)[0]["groups"]) == MOST_IN_ARRAY + 1


def size(read_ms: int, bytes_: int, broker: int = 1) -> dict[str, Any]:
    return {"sizes": {NAME: LogSize(read_ms, broker, 0, read_ms, bytes_)}}


def written(before: ClusterReading, now: ClusterReading) -> tuple[dict[str, Any], float | None]:
    """The sizes of a row, and the rate that follows from them."""
    rules = {"orders": TopicRules("delete", remote_storage=False)}
    found = row(ClusterFacts(replace(now, rules=rules), before, last=now))
    progress = reading_of_row(found, 1_000)
    assert progress is not None
    return found["origin_size"], progress.write_bytes_per_s


def test_the_write_rate_of_clients_follows_from_two_sizes_of_the_leaders_log() -> None:
    sizes, rate = written(reading(**size(5_000, 10_000)), reading(**size(15_000, 30_000)))
    assert sizes == {
        **{"broker": 1, "read_ms": 15_000, "log_end_offset": 15_000, "log_start_offset": 0, "size_bytes": 30_000},
        **{"prev_read_ms": 5_000, "prev_log_end_offset": 5_000, "prev_log_start_offset": 0, "prev_size_bytes": 10_000},
    }
    assert rate == 2_000.0
    # Another leader's log of before is no size of this one: 10,000 offsets in 10 s, of 2 bytes each.
    sizes, rate = written(reading(**size(5_000, 10_000, broker=2)), reading(**size(15_000, 30_000)))
    assert (sizes["prev_log_end_offset"], sizes["prev_size_bytes"], rate) == (5_000, None, 2_000.0)


def test_one_size_gives_no_rate_nor_does_one_of_another_topic() -> None:
    now = reading(**size(15_000, 30_000))
    for before in (now, reading(), reading(topic_ids={"orders": "j"}, **size(5_000, 10_000))):
        sizes, rate = written(before, now)
        assert (sizes["size_bytes"], sizes["prev_read_ms"], rate) == (30_000, None, None)
    assert written(now, reading()) == (None, None)


def test_the_greatest_retention_that_kafka_takes_can_be_read() -> None:
    rules = TopicRules("delete", 2**63 - 1, -1, 2, False)
    found = reading_of_row(row(facts(reading(rules={"orders": rules}))), 1_000)
    assert found is not None
    assert found.rules == replace(rules, retention_ms=2**60)


def test_a_group_counts_for_the_topics_of_which_it_has_offsets_on_either_cluster() -> None:
    ids = {"orders": "i", "payments": "p"}
    committed = {"billing": {NAME: 1}, "audit": {OTHER: 2}}
    origin = reading(topic_ids=ids, groups={"billing": True, "audit": True, "new": False}, committed=committed)
    target = reading("t", topic_ids=ids, groups={"moved": True}, committed={"moved": {OTHER: 3}})
    both = MigrationFacts([AGREED, replace(AGREED, topic="payments")], origin=facts(origin), target=facts(target))
    assert [groups(found) for found in migration_rows(both)] == [[("billing", 1)], [("audit", 2), ("moved", None)]]
