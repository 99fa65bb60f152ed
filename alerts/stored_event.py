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

from headroom.alerts.recommendations.recommendation import FinishRange
from headroom.schemas.alerts import AlertEvent, Verdict, stored_object


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
    broker_id: int | None

    @staticmethod
    def of(values: Mapping[str, Any]) -> StoredFinding:
        """Return the finding of an entry of ``also``, or of ``goes_on_with``."""
        return StoredFinding(values["kind"], values["subject"], values.get("broker_id"))


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

    topic: str | None
    partition: int | None
    write_bytes_per_s: float | None
    followers: int | None
    in_sync_followers: int | None
    leader: int | None
    previous_leader: int | None
    switch_tick_ms: int | None

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
    """

    broker_id: int | None
    role: str | None
    verdict: str | None
    throttle_bytes_per_s: float | None
    in_sync_bytes_per_s: float | None
    required_bytes_per_s: float | None
    remaining_bytes: int | None
    partitions: Sequence[StoredPartition]
    switch_tick_ms: int | None
    counting_partitions: int | None
    cause: str | None
    group: str | None
    affected: int | None
    also: Sequence[StoredFinding]
    goes_on_with: StoredFinding | None
    escalation: int | None
    escalated_tick_ms: int | None
    escalated_event_ms: int | None
    is_before_first_tick: bool
    resources: Sequence[str] = ()

    @property
    def is_unthrottled(self) -> bool:
        """Return whether there is no throttle, in contrast to an unknown one."""
        return self.throttle_bytes_per_s is None and self.verdict == Verdict.UNTHROTTLED.value

    @staticmethod
    def of(values: Mapping[str, Any]) -> StoredEvidence:
        """Return the evidence of its JSON object."""
        goes_on_with = values.get("goes_on_with")
        return StoredEvidence(
            broker_id=values.get("broker_id"),
            role=values.get("role"),
            verdict=values.get("verdict"),
            throttle_bytes_per_s=values.get("throttle_bytes_per_s"),
            in_sync_bytes_per_s=values.get("in_sync_bytes_per_s"),
            required_bytes_per_s=values.get("required_bytes_per_s"),
            remaining_bytes=values.get("remaining_bytes"),
            partitions=[_partition(one) for one in values.get("partitions") or ()],
            switch_tick_ms=values.get("switch_tick_ms"),
            counting_partitions=values.get("counting_partitions"),
            cause=values.get("cause"),
            group=values.get("group"),
            affected=values.get("affected"),
            also=[StoredFinding.of(one) for one in values.get("also") or ()],
            goes_on_with=None if goes_on_with is None else StoredFinding.of(goes_on_with),
            escalation=values.get("escalation"),
            escalated_tick_ms=values.get("escalated_tick_ms"),
            escalated_event_ms=values.get("escalated_event_ms"),
            is_before_first_tick=values.get("last_tick_ms", 0) is None,
            resources=[one["resource"] for one in values.get("loads") or ()],
        )


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
    throttle_bytes_per_s: float | None
    recommended_bytes_per_s: float | None


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

    action: str | None
    throttle_bytes_per_s: float | None
    per_broker: Sequence[StoredThrottle]
    finish: FinishRange
    reason: str
    commands: Sequence[str]

    @staticmethod
    def of(values: Mapping[str, Any]) -> StoredRecommendation:
        """Return the recommendation of its JSON object."""
        return StoredRecommendation(
            action=values.get("action"),
            throttle_bytes_per_s=values.get("throttle_bytes_per_s"),
            per_broker=[
                StoredThrottle(
                    one["broker_id"], one["role"], one.get("throttle_bytes_per_s"), one.get("recommended_bytes_per_s")
                )
                for one in values.get("per_broker") or ()
            ],
            finish=FinishRange(values.get("finish_s"), values.get("finish_low_s"), values.get("finish_high_s")),
            reason=str(values.get("reason") or ""),
            commands=values.get("commands") or [],
        )


# Of values that no version writes, such as a number in place of a list.
_DAMAGED = (TypeError, ValueError, AttributeError, KeyError)


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


def _partition(values: Mapping[str, Any]) -> StoredPartition:
    return StoredPartition(
        topic=values.get("topic"),
        partition=values.get("partition"),
        write_bytes_per_s=values.get("write_bytes_per_s"),
        followers=values.get("followers"),
        in_sync_followers=values.get("in_sync_followers"),
        leader=values.get("leader"),
        previous_leader=values.get("previous_leader"),
        switch_tick_ms=values.get("switch_tick_ms"),
    )
