"""Throttles that are enough until a migration switches and its writes come to the target."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from headroom.alerts.inputs.migrations import MigrationInputs
from headroom.alerts.inputs.throttle_status import LeadershipRisk
from headroom.alerts.recommendations.recommender import Recommender
from headroom.alerts.rules.rule import Assessment, RuleInputs
from headroom.alerts.rules.throttles.throttle_at_risk import ThrottleAtRisk
from headroom.planning.migration.progress.progress import MigrationProgress
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.config import AlertSettings
from headroom.schemas.keys import Role, TopicPartition
from tests.unit.builders.migration_progress import progress, switched, unread
from tests.unit.builders.throttle_status import MB, TICK_MS, partition, status

LEADER = Role.LEADER
# Listed on the target with two followers, and empty until the switch.
EMPTY = partition(0, topic="orders", leader=2, write_bytes_per_s=0.0, moving=False, in_sync_followers=2)
THROTTLED = status(2, LEADER, 5.6, 4.0, partition(1, leader=2), EMPTY)
WRITES = {TopicPartition("orders", 0): 2 * MB}
ACTIVE = {(AlertKind.THROTTLE_AT_RISK, "broker 2 as leader"): ["m"]}


def assess(
    *partitions: MigrationProgress, statuses: Any = (THROTTLED,), writes: Any = WRITES, **inputs: Any
) -> Assessment:
    read = [replace(one, write_bytes_per_s=writes.get(TopicPartition(one.topic, one.partition))) for one in partitions]
    return ThrottleAtRisk().evaluate(inputs_of(*read, statuses=statuses, **inputs))


def inputs_of(*partitions: MigrationProgress, statuses: Any = (THROTTLED,), **inputs: Any) -> RuleInputs:
    known: dict[str, Any] = {"migrations": MigrationInputs(partitions), "tick_ms": TICK_MS}
    return RuleInputs(statuses, AlertSettings(), Recommender(ThrottlePolicy(), "target:9092"), **known | inputs)


# 4.0 MB/s are required of 5.6 MB/s; 2 MB/s with two followers come: 8.0 MB/s.
def test_the_writes_of_a_switch_count_once_per_throttled_follower() -> None:
    (found,) = assess(progress()).findings
    assert (found.subject, found.severity) == ("broker 2 as leader", Severity.INFO)
    assert found.summary == (
        "Once migration m has switched, clients write 2.00 MB/s with 2 follower(s) to 1 partition(s) of broker 2 from "
        "08:05:00 UTC on, and its throttle of 5.60 MB/s would be 2.40 MB/s too low: it would have to send 8.00 MB/s"
    )
    evidence = found.evidence_json()
    assert (evidence["migration"], evidence["arriving_bytes_per_s"]) == ("m", 4 * MB)
    assert evidence["required_then_bytes_per_s"] == 8 * MB
    assert evidence["switch_ms"] == TICK_MS + 300_000
    # 8.0 MB/s x 1.2.
    assert found.recommendation.throttle_bytes_per_s == 9_600_000
    json.dumps([evidence, found.recommendation.to_json()])


def test_a_throttle_that_carries_the_writes_is_not_at_risk() -> None:
    assert assess(progress(), statuses=[status(2, LEADER, 8.1, 4.0, EMPTY)]) == Assessment()


def test_a_mirror_has_brought_the_same_writes_before() -> None:
    mirrored = partition(0, topic="orders", leader=2, write_bytes_per_s=2 * MB, moving=False, in_sync_followers=2)
    assert assess(progress(), statuses=[status(2, LEADER, 5.6, 4.0, mirrored)]) == Assessment()


def test_a_mirror_counts_by_its_own_name_on_the_target() -> None:
    copy = partition(0, topic="old.orders", leader=2, write_bytes_per_s=0.0, moving=False, in_sync_followers=2)
    mirrored = [status(2, LEADER, 5.6, 4.0, partition(1, leader=2), copy)]
    (found,) = assess(progress(method="mirrored", target_topic="old.orders"), statuses=mirrored).findings
    assert found.evidence_json()["arriving_bytes_per_s"] == 4 * MB
    # The target has a topic of its own with the name that the topic has on the origin.
    assert assess(progress(method="mirrored", target_topic="old.orders")) == Assessment()


def test_a_mirror_whose_name_is_unknown_brings_nothing_and_resolves_nothing() -> None:
    unnamed = progress(method="mirrored")
    assert assess(unnamed) == Assessment()
    assert assess(unnamed, active_resources=ACTIVE).keep_firing == set(ACTIVE)


def test_what_has_switched_or_is_not_listed_or_of_unknown_rate_brings_nothing() -> None:
    assert assess(switched()) == Assessment()
    assert assess(progress(topic="u")) == Assessment()
    assert assess(progress(), writes={}) == Assessment()
    assert assess() == Assessment()


def test_of_two_switches_the_one_that_needs_more_is_given() -> None:
    def of(takeover_mb: float) -> str:
        risk = LeadershipRisk(takeover_mb * MB, "orders", 7, 1)
        follows = status(2, Role.FOLLOWER, 5.6, 2, limited=0, takeover=risk)
        (found,) = assess(progress(), statuses=[THROTTLED, follows]).findings
        return found.summary

    assert of(6.0).startswith("If broker 2 came to lead orders-7, ")
    assert of(3.0).startswith("Once migration m has switched, ")


def test_an_alert_goes_on_while_its_migration_is_unknown() -> None:
    assert assess(unread(), active_resources=ACTIVE).keep_firing == set(ACTIVE)
    assert assess(migrations=None, active_resources=ACTIVE).keep_firing == set(ACTIVE)
    assert assess(migrations=None) == Assessment()
    assert assess(unread(migration="n"), active_resources=ACTIVE) == Assessment()


def test_an_alert_goes_on_while_a_list_of_throttled_replicas_cannot_be_read() -> None:
    unread_list = placed(7, None)
    assert assess(unread_list, active_resources=ACTIVE).keep_firing == set(ACTIVE)
    assert assess(placed(7, 0), active_resources=ACTIVE) == Assessment()
    assert assess(replace(unread_list, left_offsets=0), active_resources=ACTIVE) == Assessment()
    # A collector of an earlier version: the alert would never end.
    assert assess(progress(7), active_resources=ACTIVE) == Assessment()


def placed(number: int, followers: int | None = 2, **more: Any) -> MigrationProgress:
    """A partition that broker 2 leads on the target, to which 0.1 MB/s come."""
    here = {"target_leader": 2, "throttled_followers": followers, "arriving_bytes_per_s": 0.1 * MB}
    return progress(number, **here | more)


def test_all_partitions_count_and_not_only_those_of_the_evidence() -> None:
    """100 partitions of 0.1 MB/s with two followers: 20 MB/s, though the evidence lists two partitions."""
    (found,) = assess(*map(placed, range(100)), writes={}).findings
    evidence = found.evidence_json()
    assert (evidence["arriving_partitions"], round(evidence["arriving_bytes_per_s"])) == (100, 20 * MB)
    assert round(evidence["required_then_bytes_per_s"]) == 24 * MB


def test_of_partitions_that_the_collector_has_placed_only_those_on_lists_count_and_once() -> None:
    """The evidence has orders-0 too, which would be counted twice."""
    (found,) = assess(placed(0, arriving_bytes_per_s=2.0 * MB)).findings
    assert found.evidence_json()["arriving_bytes_per_s"] == 4 * MB
    others = (placed(0, 0), placed(1, target_leader=3), placed(2, left_offsets=0), placed(3, target_leader=None))
    assert assess(*others) == Assessment()


def test_the_switches_of_several_migrations_count_together() -> None:
    """Each brings 0.6 MB/s with two followers, and 5.2 of 5.6 MB/s would do; both need 6.4."""
    both = [placed(0, arriving_bytes_per_s=0.6 * MB), placed(1, migration="n", arriving_bytes_per_s=0.6 * MB)]
    assert [assess(one, writes={}) for one in both] == [Assessment(), Assessment()]
    (found,) = assess(*both, writes={}).findings
    assert found.summary.startswith("Once migrations m, n have switched, clients write 1.20 MB/s with 2 follower(s)")
    evidence = found.evidence_json()
    assert (evidence["migration"], evidence["migrations"]) == ("m", ["m", "n"])
    assert (evidence["arriving_partitions"], evidence["required_then_bytes_per_s"]) == (2, 6.4 * MB)
    assert found.recommendation.throttle_bytes_per_s == 7_680_000


def drained(**more: Any) -> MigrationProgress:
    """Producers are moved by hand, and E is known only once they have left."""
    waiting = {"method": "drained", "status": "planned", "end_offset": None, "left_offsets": None, "switch_eta_s": None}
    return placed(0, **waiting | {"arriving_bytes_per_s": 2.0 * MB, "write_bytes_per_s": 2.0 * MB} | more)


def test_producers_that_are_moved_by_hand_bring_their_writes_too() -> None:
    (found,) = ThrottleAtRisk().evaluate(inputs_of(drained())).findings
    evidence = found.evidence_json()
    assert (evidence["required_then_bytes_per_s"], evidence["switch_ms"]) == (8 * MB, None)
    # They have left the origin, or E is known: it is their log end.
    assert ThrottleAtRisk().evaluate(inputs_of(drained(arriving_bytes_per_s=0.0))) == Assessment()
    assert ThrottleAtRisk().evaluate(inputs_of(drained(end_offset=7, left_offsets=0))) == Assessment()
    # A mirror copies their writes there already.
    assert ThrottleAtRisk().evaluate(inputs_of(drained(method="mirrored"))) == Assessment()


def test_what_producers_moved_by_hand_bring_is_unknown_without_their_rate() -> None:
    quiet = drained(arriving_bytes_per_s=0.0, write_bytes_per_s=0.0)
    assert ThrottleAtRisk().evaluate(inputs_of(quiet, active_resources=ACTIVE)) == Assessment()
    unknown = drained(arriving_bytes_per_s=None, write_bytes_per_s=None)
    assert ThrottleAtRisk().evaluate(inputs_of(unknown, active_resources=ACTIVE)).keep_firing == set(ACTIVE)
