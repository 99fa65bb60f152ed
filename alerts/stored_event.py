"""Typed view of the JSON in stored events, for all that read it: lifecycle, receivers, and text.

Versions differ in the keys that they write, so a key may be missing, and a word may be unknown to this version: such a
value is None or empty, and words stay text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from headroom.alerts.recommendations.recommendation import NO_FINISH, FinishRange
from headroom.schemas.alerts import AlertEvent, Verdict, stored_object
from headroom.schemas.records import record


@dataclass(frozen=True)
class StoredFinding:
    """A finding that an alert lists for another kind or subject.

    Attributes:
        kind: its alert kind.
        subject: its subject.
        broker_id: its broker; None if unknown.
    """

    kind: str
    subject: str
    broker_id: int | None = None


@dataclass(frozen=True)
class StoredPartition:
    """A partition in the evidence of an alert.

    Attributes:
        topic: topic.
        partition: partition.
        write_bytes_per_s: write rate; None if unknown.
        followers: followers that fetch under the throttle.
        in_sync_followers: those of them in the ISR.
        leader: leading broker; None if there is none.
        previous_leader: leader before the last switch; None if none was observed.
        switch_tick_ms: first tick after that switch, epoch milliseconds; None if none was observed.
    """

    topic: str | None = None
    partition: int | None = None
    write_bytes_per_s: float | None = None
    followers: int | None = None
    in_sync_followers: int | None = None
    leader: int | None = None
    previous_leader: int | None = None
    switch_tick_ms: int | None = None

    @property
    def name(self) -> str:
        """Return ``topic-partition``."""
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True)
class StoredEvidence:
    """Evidence of an event.

    Attributes:
        broker_id: broker; None if the alert is not about one.
        role: leader or follower; None if the alert is not about a throttle.
        verdict: verdict on the throttle.
        throttle_bytes_per_s: throttle in force.
        in_sync_bytes_per_s: traffic of in-sync followers.
        required_bytes_per_s: rate that a throttle has to exceed.
        remaining_bytes: bytes that out-of-sync replicas have to copy.
        partitions: affected partitions; of an alert on a throttle, those with the largest traffic.
        switch_tick_ms: first tick after the leader switch that is the cause, epoch milliseconds.
        counting_partitions: number of all partitions that count against the throttle.
        cause: cause within the alert kind.
        group: root cause that groups findings.
        affected: number of affected replicas or partitions.
        also: findings that the alert represents.
        goes_on_with: finding that the alert continued with; None if it was its own.
        escalation: number of escalations; None if there was none.
        escalated_tick_ms: tick of the last one, epoch milliseconds.
        escalated_event_ms: when its event was written, epoch milliseconds.
        is_before_first_tick: whether it is the alert that no tick has arrived since the start.
        resources: resources that an alert on the load of a broker is about.
        offsets: offsets that an alert on a migration counts.
        migration: name of the migration that the alert is about; of several, the first one.
        migrations: names of all of them, if the alert may be about several.
    """

    broker_id: int | None = None
    role: str | None = None
    verdict: str | None = None
    throttle_bytes_per_s: float | None = None
    in_sync_bytes_per_s: float | None = None
    required_bytes_per_s: float | None = None
    remaining_bytes: int | None = None
    partitions: Sequence[StoredPartition] = ()
    switch_tick_ms: int | None = None
    counting_partitions: int | None = None
    cause: str | None = None
    group: str | None = None
    affected: int | None = None
    also: Sequence[StoredFinding] = ()
    goes_on_with: StoredFinding | None = None
    escalation: int | None = None
    escalated_tick_ms: int | None = None
    escalated_event_ms: int | None = None
    is_before_first_tick: bool = False
    resources: Sequence[str] = ()
    offsets: int | None = None
    migration: str | None = None
    migrations: Sequence[str] = ()

    @property
    def is_unthrottled(self) -> bool:
        """Return whether there is no throttle, in contrast to an unknown one."""
        return self.throttle_bytes_per_s is None and self.verdict == Verdict.UNTHROTTLED.value

    @staticmethod
    def of(values: Mapping[str, Any]) -> StoredEvidence:
        """Return the evidence of its JSON object.

        Raises:
            ValueError: a value is of another type than any version writes.
        """
        of_others = {
            "is_before_first_tick": values.get("last_tick_ms", 0) is None,
            "resources": [one.get("resource") for one in values.get("loads") or ()],
        }
        return record(StoredEvidence, _without_null(values) | of_others)


@dataclass(frozen=True)
class StoredThrottle:
    """Throttle of one broker and role in a recommendation, bytes/s.

    Attributes:
        broker_id: broker id.
        role: leader or follower.
        throttle_bytes_per_s: throttle in force; None if there was none.
        recommended_bytes_per_s: recommended throttle; None if there was none.
    """

    broker_id: int
    role: str
    throttle_bytes_per_s: int | float | None = None
    recommended_bytes_per_s: int | float | None = None


@dataclass(frozen=True)
class StoredRecommendation:
    """Recommendation of an event.

    Attributes:
        action: recommended action.
        throttle_bytes_per_s: recommended throttle.
        per_broker: throttles of the brokers of the move.
        finish: finish of the move under the recommended throttle.
        reason: reason, or the action in words; empty if there is none.
        commands: shell commands, the best first.
    """

    action: str | None = None
    throttle_bytes_per_s: int | float | None = None
    per_broker: Sequence[StoredThrottle] = ()
    finish: FinishRange = NO_FINISH
    reason: str = ""
    commands: Sequence[str] = ()

    @staticmethod
    def of(values: Mapping[str, Any]) -> StoredRecommendation:
        """Return the recommendation of its JSON object.

        Raises:
            ValueError: a value is of another type than any version writes.
        """
        return record(StoredRecommendation, {**_without_null(values), "finish": record(FinishRange, values)})


def _without_null(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


# Of values that no version writes, such as a number in place of a list.
_DAMAGED = (TypeError, ValueError, AttributeError)


# A firing alert is compared with its last event in every tick, and a queued event with suppressions again and again.
@lru_cache(maxsize=1000)
def evidence_of(event: AlertEvent) -> StoredEvidence:
    """Return the evidence of an event; all of it unknown if the row is damaged."""
    try:
        return StoredEvidence.of(stored_object(event.evidence) or {})
    except _DAMAGED:
        return StoredEvidence.of({})


@lru_cache(maxsize=1000)
def recommendation_of(event: AlertEvent) -> StoredRecommendation:
    """Return the recommendation of an event; all of it unknown if the row is damaged."""
    try:
        return StoredRecommendation.of(stored_object(event.recommendation) or {})
    except _DAMAGED:
        return StoredRecommendation.of({})


def with_escalation(event: AlertEvent, escalation: int) -> AlertEvent:
    """Return the event with another number of escalations in its evidence, and all other keys as they are."""
    return replace(event, evidence=json.dumps({**(stored_object(event.evidence) or {}), "escalation": escalation}))
