"""Rule ``reassignment_stalled``: adding replicas copy nothing, and no throttle explains it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from headroom.alerts.evidence.evidence import EvidenceCause
from headroom.alerts.evidence.throttle_evidence import ThrottleEvidence
from headroom.alerts.finding import Finding
from headroom.alerts.inputs.throttle_status import Stall, ThrottleStatus
from headroom.alerts.rules.causes import NO_LEADER, BrokerPrecedence, broker_cause, broker_causes
from headroom.alerts.rules.rule import Assessment, Rule, RuleInputs
from headroom.schemas.alerts import AlertKind, Severity, Verdict
from headroom.schemas.keys import BrokerRole, Role
from headroom.schemas.text.amounts import join_names

_REASONS = {
    EvidenceCause.DESTINATION_DOWN: "the broker is down",
    EvidenceCause.DESTINATION_DISK: (
        "the broker is up but the replica is offline: a log directory of it has failed, or is full"
    ),
    EvidenceCause.NO_LEADER: "the partition has no leader: every broker that could lead it is down",
    EvidenceCause.NOT_FETCHING: "the broker does not fetch it",
    EvidenceCause.UNKNOWN: "no throttle explains it",
}
# By cause of a stall. If a destination has several, the alert names the last of these.
_CAUSES = {
    "unknown": EvidenceCause.UNKNOWN,
    "not_fetching": EvidenceCause.NOT_FETCHING,
    "no_leader": EvidenceCause.NO_LEADER,
    "offline": EvidenceCause.DESTINATION_DISK,
}
_GRAVITY = tuple(_CAUSES)
# Causes on the destination itself.
_CAUSED_BY_DESTINATION = (
    EvidenceCause.DESTINATION_DOWN,
    EvidenceCause.DESTINATION_DISK,
    EvidenceCause.NOT_FETCHING,
)
# Stalls that a throttle may explain too: the leader leaves a throttled replica out of its responses.
_THROTTLED = ("unknown", "not_fetching")


class ReassignmentStalled(Rule):
    """Adding replicas of a destination copy nothing, and no throttle explains it."""

    kind = AlertKind.REASSIGNMENT_STALLED

    def evaluate(self, tick: RuleInputs) -> Assessment:
        """Return a finding for each destination with such replicas; an unknown verdict keeps its alert firing."""
        slow_leaders = {status.broker for status in tick.below_required if status.role is Role.LEADER}
        unknown = {s.load.broker_role: s for s in tick.statuses if s.verdict is Verdict.NO_DATA}
        findings = [
            self._finding(status, stalls, tick, unknown)
            for status in tick.statuses
            if status.role is Role.FOLLOWER and (stalls := _unexplained_stalls(status, slow_leaders))
        ]
        return Assessment(findings, {(self.kind, status.subject) for status in unknown.values()})

    def _finding(
        self,
        status: ThrottleStatus,
        stalls: Sequence[Stall],
        tick: RuleInputs,
        unknown: Mapping[BrokerRole, ThrottleStatus],
    ) -> Finding:
        worst = max(stalls, key=lambda stall: _GRAVITY.index(stall.cause)).cause
        own = [stall for stall in stalls if stall.cause == worst]
        count, total = sum(stall.replicas for stall in own), sum(stall.replicas for stall in stalls)
        cause = _CAUSES[worst]
        if not status.alive and cause is not EvidenceCause.NO_LEADER:
            cause = EvidenceCause.DESTINATION_DOWN
        which = join_names([name for stall in own for name in stall.partitions], count)
        more = f"; nor of {total - count} more, for other reasons" if total > count else ""
        # Without a verdict on one of their throttles, that throttle may be the explanation.
        unread = _without_verdict(status, own, unknown) if worst in _THROTTLED and status.alive else []
        reason = f"no verdict on {join_names(unread)}, whose throttle may explain it" if unread else _REASONS[cause]
        return Finding(
            kind=self.kind,
            subject=status.subject,
            severity=Severity.WARNING,
            summary=(f"The move makes no progress: {status.subject} copies nothing of {which} ({reason}){more}"),
            evidence=replace(ThrottleEvidence.of(status), cause=cause),
            recommendation=(
                tick.recommender.read_throttles_first(status.broker, unread)
                if unread
                else tick.recommender.restore_or_inspect_broker(status.broker, cause)
            ),
            hold_s=tick.settings.stalled_s,
            cause=_group(status, cause, {stall.leader for stall in own}),
            continues=broker_causes(status.broker, status.alive) if cause in _CAUSED_BY_DESTINATION else (),
            precedence=BrokerPrecedence.STALLED,
            affected=total,
        )


def _unexplained_stalls(status: ThrottleStatus, slow_leaders: Collection[int]) -> list[Stall]:
    """Return the stalls that no throttle explains: neither the destination's own, nor that of the leader."""
    return [
        stall
        for stall in status.stalls
        if not status.alive
        or stall.cause not in _THROTTLED
        or not (status.below_required or stall.leader in slow_leaders)
    ]


def _without_verdict(
    status: ThrottleStatus, stalls: Sequence[Stall], unknown: Mapping[BrokerRole, ThrottleStatus]
) -> list[str]:
    """Return the subjects without a verdict among a destination and the leaders of its stalls."""
    leaders = sorted({stall.leader for stall in stalls if stall.leader is not None})
    keys = [status.load.broker_role, *(BrokerRole(leader, Role.LEADER) for leader in leaders)]
    return [unknown[key].subject for key in keys if key in unknown]


def _group(status: ThrottleStatus, cause: EvidenceCause, leaders: Collection[int | None]) -> str:
    """Return the group of a stall, shared with other destinations; empty if there is none."""
    if cause is EvidenceCause.NO_LEADER:
        return NO_LEADER
    if cause is EvidenceCause.UNKNOWN:
        # An unexplained stall must not join an older alert on its broker. If all copies have one leader, that leader
        # may be the cause.
        return f"copies from broker {next(iter(leaders))}" if len(leaders) == 1 else ""
    return broker_cause(status.broker, status.alive)
