"""What an alert last announced, and how a finding of its next tick differs from that."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any

from headroom.alerts.evidence.evidence import EvidenceCause
from headroom.alerts.evidence.migration_evidence import MigrationEvidence
from headroom.alerts.evidence.throttle_evidence import ThrottleEvidence
from headroom.alerts.finding import Finding, Subject
from headroom.alerts.grouping import THROTTLE_KINDS, AdvisedIncrease
from headroom.alerts.recommendations.recommendation import Action
from headroom.alerts.stored_event import (
    StoredEvidence,
    StoredFinding,
    StoredRecommendation,
    evidence_of,
    recommendation_of,
)
from headroom.schemas.alerts import AlertEvent, AlertKind
from headroom.schemas.keys import BrokerRole, Role

# A firing alert is announced again when the recommended throttle has grown by more than this factor, or the throttle in
# force has changed by more than it.
_UPDATE_RATIO = 1.15
# It is announced again when it affects this many times as many replicas as announced, and at least five more.
_SPREAD_RATIO, _SPREAD = 2, 5
# Causes that escalate an alert whatever its cause was before: they need a person at once.
_SEVERE_CAUSES = (
    EvidenceCause.BROKER_DOWN,
    EvidenceCause.DESTINATION_DOWN,
    EvidenceCause.DESTINATION_DISK,
    EvidenceCause.NO_LEADER,
)
_KINDS, _ROLES = ({word.value for word in words} for words in (AlertKind, Role))


class Change(IntEnum):
    """How a finding differs from the announcement: not at all; in cause or action; or in scope, which escalates."""

    NONE = 0
    UPDATED = 1
    ESCALATED = 2


@dataclass(frozen=True)
class Escalation:
    """Escalations of a firing alert, in the evidence of its events.

    Attributes:
        escalation: number of escalations; None if there was none.
        escalated_tick_ms: tick of the last one, epoch milliseconds; None if there was none.
        escalated_event_ms: when its event was written, epoch milliseconds of this machine's clock; None if there was
            none, or an older version wrote it.
    """

    escalation: int | None = None
    escalated_tick_ms: int | None = None
    escalated_event_ms: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the keys of the stored evidence; empty if there was no escalation."""
        return {name: value for name, value in vars(self).items() if value is not None}


NO_ESCALATION = Escalation()


@dataclass(frozen=True)
class Announcement:
    """Content of an alert's last event.

    Attributes:
        evidence: evidence of the event.
        recommendation: recommendation of the event.
        also: findings that it listed; the finding that the alert continued with counts as listed.
        brokers: listed brokers, and those whose throttle the recommendation raises.
        raises: recommended increases, by broker and role.
    """

    evidence: StoredEvidence
    recommendation: StoredRecommendation
    also: frozenset[Subject]
    brokers: frozenset[int]
    raises: Mapping[BrokerRole, AdvisedIncrease]

    def change(self, finding: Finding, due: Collection[Subject]) -> Change:
        """Return how a finding differs from the announcement.

        Args:
            finding: finding of the alert.
            due: findings that have lasted for their pending time.
        """
        before, why, action = self.evidence, finding.evidence.cause, finding.recommendation.action
        spread = finding.affected - (before.affected or 0)
        more = before.affected is not None and spread >= max(_SPREAD, (_SPREAD_RATIO - 1) * before.affected)
        joined = {
            other.evidence.broker_id
            for other in finding.also
            if other.evidence.broker_id is not None and other.key in due
        }
        is_more_severe = why in _SEVERE_CAUSES and before.cause not in _SEVERE_CAUSES
        if is_more_severe or more or not joined <= self.brokers:
            return Change.ESCALATED
        goes_on_with = None if finding.goes_on_with is None else finding.goes_on_with[0].value
        is_other = (
            why not in (None, before.cause)
            # An action that is currently unknown is not a change.
            or action not in (Action.NONE, self.recommendation.action)
            or goes_on_with != (None if before.goes_on_with is None else before.goes_on_with.kind)
            or self._is_raised(finding)
            or self._has_other_throttle(finding)
            or self._has_other_loss(finding)
        )
        return Change.UPDATED if is_other else Change.NONE

    def _is_raised(self, finding: Finding) -> bool:
        """Return whether a throttle was raised as announced: the announcement does not cover what follows."""
        if not self.raises:
            return False
        return any(
            (advised := self.raises.get(BrokerRole(one.broker_id, one.role))) is not None
            and one.throttle_bytes_per_s is not None
            and one.throttle_bytes_per_s >= advised.to_bytes_per_s
            for one in finding.recommendation.per_broker
        )

    def _has_other_throttle(self, finding: Finding) -> bool:
        """Return whether the throttle in force has changed by more than the update ratio, or to another verdict.

        Otherwise an operator who has raised it, but not far enough, would read the old rate and take the change for
        lost.
        """
        before, now = self.evidence, finding.evidence
        was, is_now = before.throttle_bytes_per_s, now.throttle_bytes_per_s
        is_same = (before.broker_id, before.role) == (now.broker_id, now.role and now.role.value)
        if finding.kind not in THROTTLE_KINDS or not is_same or was is None or is_now is None:
            return False
        is_other_verdict = isinstance(now, ThrottleEvidence) and now.verdict.value != before.verdict
        return max(was, is_now) > min(was, is_now) * _UPDATE_RATIO or (was != is_now and is_other_verdict)

    def _has_other_loss(self, finding: Finding) -> bool:
        """Return whether another number of records is lost: producers report one after another what is missing."""
        if finding.kind is not AlertKind.MIGRATION_RECORDS_LOST or not isinstance(finding.evidence, MigrationEvidence):
            return False
        return finding.evidence.offsets != self.evidence.offsets

    def needs_higher_throttle(self, finding: Finding) -> bool:
        """Return whether the recommended throttle exceeds the announced one by more than the update ratio."""
        if finding.kind not in THROTTLE_KINDS:
            return False
        announced, needed = self.recommendation.throttle_bytes_per_s, finding.recommendation.throttle_bytes_per_s
        return bool(needed and (not announced or needed > announced * _UPDATE_RATIO))

    def escalation(self) -> Escalation:
        """Return the escalations of the alert so far."""
        before = self.evidence
        return Escalation(before.escalation, before.escalated_tick_ms, before.escalated_event_ms)

    def next_escalation(self, tick_ms: int, event_ms: int) -> Escalation:
        """Return the escalations of the alert with a new one.

        Args:
            tick_ms: tick of the new one, epoch milliseconds.
            event_ms: when its event is written, epoch milliseconds.
        """
        return Escalation((self.evidence.escalation or 0) + 1, tick_ms, event_ms)


# Every firing alert is compared with its last event in every tick.
@lru_cache(maxsize=1000)
def announcement_of(event: AlertEvent) -> Announcement:
    """Return what an event announced."""
    evidence, recommendation = evidence_of(event), recommendation_of(event)
    raises = _raises(recommendation)
    listed: list[StoredFinding] = [*evidence.also, *([] if evidence.goes_on_with is None else [evidence.goes_on_with])]
    brokers = {evidence.broker_id, *(one.broker_id for one in evidence.also), *(broker for broker, _ in raises)}
    return Announcement(
        evidence,
        recommendation,
        frozenset((AlertKind(one.kind), one.subject) for one in listed if one.kind in _KINDS),
        frozenset(broker for broker in brokers if broker is not None),
        raises,
    )


def _raises(recommendation: StoredRecommendation) -> dict[BrokerRole, AdvisedIncrease]:
    """Return the increases that a recommendation contains, by broker and role."""
    return {
        BrokerRole(one.broker_id, Role(one.role)): AdvisedIncrease(in_force, one.recommended_bytes_per_s)
        for one in recommendation.per_broker
        if one.role in _ROLES
        and one.recommended_bytes_per_s is not None
        and one.recommended_bytes_per_s > (in_force := one.throttle_bytes_per_s or 0.0)
    }
