"""Evaluation of all rules for one tick, and the rules on throttles below the required rate and missing data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from alerts.grouping import THROTTLE, THROTTLE_KIND
from alerts.inputs.leader_balance import LeaderBalance
from alerts.inputs.throttle_status import LeaderSwitch, ThrottleStatus
from alerts.recommendations.recommender import Recommender
from alerts.rules.evidence import join_names, status_evidence, subject
from alerts.rules.leaders import leader_imbalance
from alerts.rules.reassignments.reassignment_stalled import (
    NO_METRICS,
    broker_cause,
    broker_causes,
    out_of_sync_findings,
    stalled_findings,
)
from alerts.rules.throttles.throttle_left_behind import (
    clear_throttle_recommendation,
    has_unknown_status,
    has_unread_rates,
    leader_unthrottled,
    reassignment_without_throttle,
    throttle_at_risk,
    throttle_left_behind,
)
from alerts.text.formatting import format_rate
from planning.throttles.recommendation import ThrottlePolicy
from schemas.alerts import AlertKind, Finding, Role, Severity, Verdict
from schemas.config import AlertSettings

Subject = tuple[AlertKind, str]

_SEVERITY = {Verdict.STARVED: Severity.CRITICAL, Verdict.LOSING: Severity.WARNING, Verdict.SLOW: Severity.INFO}
_CONSEQUENCE = {
    Verdict.STARVED: "get nothing",
    Verdict.LOSING: "fall further behind",
    Verdict.SLOW: "gain only by the responses that no quota cuts",
}


@dataclass(frozen=True)
class Assessment:
    """Result of all rules for one tick.

    Attributes:
        findings: conditions that hold.
        keep_firing: subjects within the exit margin or unknown: their alerts neither fire nor resolve.
        enough_while_down: throttles, bytes/s, that are enough only while brokers are down: their alerts keep firing,
            unless the throttle exceeds the announced required rate.
    """

    findings: list[Finding] = field(default_factory=list)
    keep_firing: set[Subject] = field(default_factory=set)
    enough_while_down: dict[Subject, float] = field(default_factory=dict)


def evaluate_rules(
    statuses: Sequence[ThrottleStatus],
    settings: AlertSettings,
    recommender: Recommender,
    balances: Sequence[LeaderBalance] = (),
) -> Assessment:
    """Evaluate all rules for one tick of one cluster.

    Args:
        statuses: every broker and role of the tick.
        settings: section ``[alerts]``.
        recommender: makes recommendations and their commands.
        balances: every broker that is the preferred leader of a partition, of this tick or a recent one.
    """
    too_low = [status for status in statuses if status.too_low]
    findings = [
        *_throttles_below_required(statuses, too_low, settings, recommender),
        *stalled_findings(statuses, [status for status in statuses if status.below_required], settings, recommender),
        *out_of_sync_findings(statuses, settings, recommender),
        *_no_data(statuses, settings, recommender),
        *leader_unthrottled(statuses, settings, recommender),
        *reassignment_without_throttle(statuses, settings, recommender),
        *throttle_at_risk(statuses, too_low, settings, recommender),
        *throttle_left_behind(statuses, settings, recommender),
        *leader_imbalance.leader_imbalance_findings(balances, settings, recommender),
        *leader_imbalance.preferred_leader_unavailable_findings(balances, statuses, settings, recommender),
    ]
    keep_firing = _keep_firing(statuses, too_low, settings, recommender.policy) | leader_imbalance.keep_firing(
        balances, settings
    )
    return Assessment(findings, keep_firing, _enough_while_down(statuses))


def _keep_firing(
    statuses: Sequence[ThrottleStatus],
    too_low: Sequence[ThrottleStatus],
    settings: AlertSettings,
    policy: ThrottlePolicy,
) -> set[Subject]:
    """Return the subjects that keep firing: unknown, or within the exit margin."""
    keep_firing = {
        (THROTTLE_KIND[status.role], subject(status)) for status in statuses if _keeps_firing(status, settings, policy)
    }
    if too_low:
        # Slow throttles are reported only if no throttle is too low.
        keep_firing.update(
            (THROTTLE_KIND[status.role], subject(status)) for status in statuses if status.verdict is Verdict.SLOW
        )
    any_unknown = has_unknown_status(statuses)
    for status in statuses:
        if status.verdict is Verdict.NO_DATA:
            keep_firing.add((AlertKind.REASSIGNMENT_STALLED, subject(status)))
        if status.role is Role.LEADER and (any_unknown or too_low):
            # A possible leader switch matters less than a throttle that is too low now.
            keep_firing.update(
                (kind, subject(status)) for kind in (AlertKind.THROTTLE_AT_RISK, AlertKind.LEADER_UNTHROTTLED)
            )
    if any_unknown:
        keep_firing.add((AlertKind.REASSIGNMENT_WITHOUT_THROTTLE, "moves"))
    if has_unread_rates(statuses):
        keep_firing.add((AlertKind.THROTTLE_LEFT_BEHIND, "throttles"))
    return keep_firing


def _keeps_firing(status: ThrottleStatus, settings: AlertSettings, policy: ThrottlePolicy) -> bool:
    """Return whether a throttle alert keeps firing: unknown, within the exit margin, or its destination is down."""
    if status.verdict is Verdict.NO_DATA:
        return True
    if status.verdict is Verdict.IDLE and status.down_replicas:
        # No replica fetches while its broker is down, which does not make the throttle sufficient.
        return True
    throttle, required = status.load.throttle_bytes_per_s, status.load.required_bytes_per_s
    if status.verdict is not Verdict.CATCHING_UP or throttle is None or required is None:
        return False
    # If a broker cannot carry the exit margin, the recommended throttle is enough.
    return throttle < min(required * settings.exit_ratio, policy.throttle_above(required) or math.inf)


def _enough_while_down(statuses: Sequence[ThrottleStatus]) -> dict[Subject, float]:
    """Return the throttles, bytes/s, that are enough only because replicas on dead brokers fetch nothing."""
    found = {}
    for status in statuses:
        throttle, required = status.load.throttle_bytes_per_s, status.load.required_bytes_per_s
        down = status.down_required_bytes_per_s or 0.0
        if status.verdict is not Verdict.CATCHING_UP or throttle is None or required is None or not down:
            continue
        if throttle <= required + down:
            found[THROTTLE_KIND[status.role], subject(status)] = throttle
    return found


def _throttles_below_required(
    statuses: Sequence[ThrottleStatus],
    too_low: Sequence[ThrottleStatus],
    settings: AlertSettings,
    recommender: Recommender,
) -> list[Finding]:
    # A slow throttle matters less than one under which the move never finishes.
    low = too_low or [status for status in statuses if status.below_required]
    if not low:
        return []
    recommendation: Mapping[str, Any]
    if any(status.moving_partitions for status in statuses):
        recommendation = recommender.raise_throttle(statuses)
    else:
        # A throttle left by a finished move slows down replicas that are out of sync for another reason.
        recommendation = clear_throttle_recommendation(
            statuses, recommender, "no reassignment is running: remove what one has left behind"
        )
    return [_throttle_finding(status, settings, recommendation) for status in low]


def _throttle_finding(status: ThrottleStatus, settings: AlertSettings, recommendation: Mapping[str, Any]) -> Finding:
    switches = _causing_switches(status)
    load = status.load
    return Finding(
        kind=THROTTLE_KIND[status.role],
        subject=subject(status),
        severity=_SEVERITY[status.verdict],
        summary=_throttle_summary(status, switches),
        evidence=status_evidence(status, switches),
        recommendation=recommendation,
        hold_s=0.0 if switches and status.too_low else settings.hold_s,
        # One leader switch affects several brokers, and one rate that is too low is usually set on all brokers.
        cause=f"switch from broker {switches[0].previous_leader}" if switches else THROTTLE,
        # If all throttles are too low, the alert on a leader represents the group.
        precedence=int(status.role is Role.FOLLOWER),
        weight=(load.required_bytes_per_s or status.known_required_bytes_per_s) - (load.throttle_bytes_per_s or 0.0),
        # A lowered throttle, or traffic above the recommended rate, is news even while another alert is active.
        joins=False,
    )


def _causing_switches(status: ThrottleStatus) -> list[LeaderSwitch]:
    """Return the recent leader switches that made the throttle too low, largest traffic first; may be empty."""
    throttle, required = status.load.throttle_bytes_per_s, status.load.required_bytes_per_s
    if status.role is not Role.LEADER or throttle is None or required is None or not status.switches:
        return []
    ordered = sorted(status.switches, key=lambda switch: switch.bytes_per_s, reverse=True)
    return ordered if throttle > required - sum(switch.bytes_per_s for switch in ordered) else []


def _throttle_summary(status: ThrottleStatus, switches: Sequence[LeaderSwitch]) -> str:
    load = status.load
    what = "its leaders must send" if status.role is Role.LEADER else "it must receive"
    moves = status.moving_partitions > 0
    operation, replicas = ("The move", "new replicas") if moves else ("Catching up", "replicas out of sync")
    consequence = f"{replicas} {_CONSEQUENCE[status.verdict]}"
    cause = ""
    if switches:
        names = [
            f"{name} ({switch.previous_leader} to {status.broker})" for switch in switches for name in switch.names
        ]
        cause = f" since the leader switch of {join_names(names, sum(switch.partitions for switch in switches))}"
    required = format_rate(load.required_bytes_per_s)
    if load.required_bytes_per_s is None:
        required = f"at least {format_rate(status.known_required_bytes_per_s)}"
    ends = "takes long" if status.verdict is Verdict.SLOW else "will not finish"
    return (
        f"{operation} {ends}: {subject(status)} is throttled to {format_rate(load.throttle_bytes_per_s)}, "
        f"but {what} {required}{cause}; {consequence}"
    )


def _no_data(statuses: Sequence[ThrottleStatus], settings: AlertSettings, recommender: Recommender) -> list[Finding]:
    return [
        Finding(
            kind=AlertKind.NO_DATA,
            subject=subject(status),
            severity=Severity.WARNING,
            summary=f"No verdict on {subject(status)}, which takes part in a move: {status.reason or 'unknown'}",
            evidence=status_evidence(status),
            recommendation=recommender.no_throttle_change(f"unknown: {status.reason or 'no data'}"),
            # A dead broker is a separate cause, and a restart takes longer than one failed read.
            hold_s=settings.no_data_s if status.alive else max(settings.no_data_s, settings.stalled_s),
            cause="no data" if status.alive else broker_cause(status.broker, alive=False),
            # A broker that has just started needs some time until it answers.
            continues=broker_causes(status.broker, status.alive),
            precedence=NO_METRICS,
        )
        for status in statuses
        if status.verdict is Verdict.NO_DATA
    ]
