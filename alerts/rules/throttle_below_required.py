"""From the sides of one tick to findings: what is wrong, for whom, with the evidence and what puts it right."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from alerts.grouping import THROTTLE, THROTTLE_KIND
from alerts.inputs.leader_balance import LeaderBalance
from alerts.inputs.throttle_status import LeaderSwitch, ThrottleStatus
from alerts.recommendations.recommender import Recommender
from alerts.rules import leader_imbalance as balancing
from alerts.rules.evidence import join_names, status_evidence, subject
from alerts.rules.reassignment_stalled import NO_METRICS, broker_cause, broker_causes, lost_replicas, stalled
from alerts.rules.throttle_missing import (
    at_risk,
    clear_throttle_recommendation,
    has_unknown_status,
    has_unread_rates,
    leader_unthrottled,
    left_behind,
    reassignment_without_throttle,
)
from alerts.text.formatting import format_rate
from planning.throttles.recommendation import ThrottlePolicy
from schemas.alerts import AlertKind, Finding, Role, Severity, Verdict
from schemas.config import AlertSettings

Subject = tuple[AlertKind, str]

_SEVERITY = {Verdict.STARVED: Severity.CRITICAL, Verdict.LOSING: Severity.WARNING, Verdict.SLOW: Severity.INFO}
_FATE = {
    Verdict.STARVED: "get nothing",
    Verdict.LOSING: "fall further behind",
    Verdict.SLOW: "gain only by the responses that no quota cuts",
}


@dataclass(frozen=True)
class Assessment:
    """What one tick says.

    Attributes:
        findings: what is wrong.
        held: subjects neither wrong nor right, within the exit margin or unknown: their alerts stay as they are.
        held_for_down: throttles, bytes/s, that are enough only while brokers are down: their alerts stay as they are
            unless the throttle is more than they asked for.
    """

    findings: list[Finding] = field(default_factory=list)
    held: set[Subject] = field(default_factory=set)
    held_for_down: dict[Subject, float] = field(default_factory=dict)


def assess(
    sides: Sequence[ThrottleStatus],
    settings: AlertSettings,
    recommender: Recommender,
    balances: Sequence[LeaderBalance] = (),
) -> Assessment:
    """Return what is wrong in one tick of one cluster.

    Args:
        sides: every broker and role of the tick.
        settings: section ``[alerts]``.
        recommender: makes recommendations and their commands.
        balances: every broker that is preferred for anything, of this tick or one shortly before.
    """
    short = [side for side in sides if side.short]
    findings = [
        *_short_throttles(sides, short, settings, recommender),
        *stalled(sides, [side for side in sides if side.binding], settings, recommender),
        *lost_replicas(sides, settings, recommender),
        *_no_data(sides, settings, recommender),
        *leader_unthrottled(sides, settings, recommender),
        *reassignment_without_throttle(sides, settings, recommender),
        *at_risk(sides, short, settings, recommender),
        *left_behind(sides, settings, recommender),
        *balancing.imbalanced(balances, settings, recommender),
        *balancing.unavailable(balances, sides, settings, recommender),
    ]
    held = _held(sides, short, settings, recommender.wish) | balancing.keep_firing(balances, settings)
    return Assessment(findings, held, _held_for_down(sides))


def _held(
    sides: Sequence[ThrottleStatus], short: Sequence[ThrottleStatus], settings: AlertSettings, wish: ThrottlePolicy
) -> set[Subject]:
    """Return what is unknown, and what is enough by less than the exit margin."""
    held = {(THROTTLE_KIND[side.role], subject(side)) for side in sides if _is_held(side, settings, wish)}
    if short:
        # Those that only take long are told when nothing else is wrong with a throttle.
        held.update((THROTTLE_KIND[side.role], subject(side)) for side in sides if side.verdict is Verdict.SLOW)
    blind = has_unknown_status(sides)
    for side in sides:
        if side.verdict is Verdict.NO_DATA:
            held.add((AlertKind.REASSIGNMENT_STALLED, subject(side)))
        if side.role is Role.LEADER and (blind or short):
            # What might come is nobody's worry while a throttle is too low as it is.
            held.update((kind, subject(side)) for kind in (AlertKind.THROTTLE_AT_RISK, AlertKind.LEADER_UNTHROTTLED))
    if blind:
        held.add((AlertKind.REASSIGNMENT_WITHOUT_THROTTLE, "moves"))
    if has_unread_rates(sides):
        held.add((AlertKind.THROTTLE_LEFT_BEHIND, "throttles"))
    return held


def _is_held(side: ThrottleStatus, settings: AlertSettings, wish: ThrottlePolicy) -> bool:
    """Return whether the side is unknown, or enough by less than the exit margin, or its destination is down.

    Where a broker carries less than the exit margin asks for, what would be recommended is enough.
    """
    if side.verdict is Verdict.NO_DATA:
        return True
    if side.verdict is Verdict.IDLE and side.down_replicas:
        # Nobody fetches for the moment: that puts no throttle right.
        return True
    throttle, required = side.demand.throttle_bytes_per_s, side.demand.required_bytes_per_s
    if side.verdict is not Verdict.CATCHING_UP or throttle is None or required is None:
        return False
    return throttle < min(required * settings.exit_ratio, wish.above(required) or math.inf)


def _held_for_down(sides: Sequence[ThrottleStatus]) -> dict[Subject, float]:
    """Return the throttles that are enough only because replicas on brokers that are down fetch nothing."""
    found = {}
    for side in sides:
        throttle, required = side.demand.throttle_bytes_per_s, side.demand.required_bytes_per_s
        down = side.down_required_bytes_per_s or 0.0
        if side.verdict is not Verdict.CATCHING_UP or throttle is None or required is None or not down:
            continue
        if throttle <= required + down:
            found[THROTTLE_KIND[side.role], subject(side)] = throttle
    return found


def _short_throttles(
    sides: Sequence[ThrottleStatus], short: Sequence[ThrottleStatus], settings: AlertSettings, recommender: Recommender
) -> list[Finding]:
    # What only takes long is nobody's worry while something never ends.
    low = short or [side for side in sides if side.binding]
    if not low:
        return []
    recommendation: Mapping[str, Any]
    if any(side.moving_partitions for side in sides):
        recommendation = recommender.raise_throttle(sides)
    else:
        # What a move left behind holds back replicas that fell behind for another reason.
        recommendation = clear_throttle_recommendation(
            sides, recommender, "no reassignment is running: remove what one has left behind"
        )
    return [_throttle_finding(side, settings, recommendation) for side in low]


def _throttle_finding(side: ThrottleStatus, settings: AlertSettings, recommendation: Mapping[str, Any]) -> Finding:
    switches = _causing_switches(side)
    demand = side.demand
    return Finding(
        kind=THROTTLE_KIND[side.role],
        subject=subject(side),
        severity=_SEVERITY[side.verdict],
        summary=_throttle_summary(side, switches),
        evidence=status_evidence(side, switches),
        recommendation=recommendation,
        hold_s=0.0 if switches and side.short else settings.hold_s,
        # The leaders that one broker gave away may be several; a rate that is too low is so on many brokers.
        cause=f"switch from broker {switches[0].previous_leader}" if switches else THROTTLE,
        # A move that is throttled too low altogether is told by what its leaders must send.
        precedence=int(side.role is Role.FOLLOWER),
        weight=(demand.required_bytes_per_s or side.known_required_bytes_per_s) - (demand.throttle_bytes_per_s or 0.0),
        # While another alert stands, a throttle that was lowered is news, and so is traffic beyond what it advised for.
        joins=False,
    )


def _causing_switches(side: ThrottleStatus) -> list[LeaderSwitch]:
    """Return the switches of the last rate window that made the throttle too small, greatest first; none: none did."""
    throttle, required = side.demand.throttle_bytes_per_s, side.demand.required_bytes_per_s
    if side.role is not Role.LEADER or throttle is None or required is None or not side.switches:
        return []
    came = sorted(side.switches, key=lambda switch: switch.bytes_per_s, reverse=True)
    return came if throttle > required - sum(switch.bytes_per_s for switch in came) else []


def _throttle_summary(side: ThrottleStatus, switches: Sequence[LeaderSwitch]) -> str:
    demand = side.demand
    what = "its leaders must send" if side.role is Role.LEADER else "it must receive"
    moves = side.moving_partitions > 0
    fails, whom = ("The move", "new replicas") if moves else ("Catching up", "replicas out of sync")
    fate = f"{whom} {_FATE[side.verdict]}"
    cause = ""
    if switches:
        names = [f"{name} ({switch.previous_leader} to {side.broker})" for switch in switches for name in switch.names]
        cause = f" since the leader switch of {join_names(names, sum(switch.partitions for switch in switches))}"
    required = format_rate(demand.required_bytes_per_s)
    if demand.required_bytes_per_s is None:
        required = f"at least {format_rate(side.known_required_bytes_per_s)}"
    ends = "takes long" if side.verdict is Verdict.SLOW else "will not finish"
    return (
        f"{fails} {ends}: {subject(side)} is throttled to {format_rate(demand.throttle_bytes_per_s)}, "
        f"but {what} {required}{cause}; {fate}"
    )


def _no_data(sides: Sequence[ThrottleStatus], settings: AlertSettings, recommender: Recommender) -> list[Finding]:
    return [
        Finding(
            kind=AlertKind.NO_DATA,
            subject=subject(side),
            severity=Severity.WARNING,
            summary=f"No verdict on {subject(side)}, which takes part in a move: {side.reason or 'unknown'}",
            evidence=status_evidence(side),
            recommendation=recommender.nothing(f"unknown: {side.reason or 'no data'}"),
            # A broker that is down is a cause of its own, and a restart takes longer than a reading that fails.
            hold_s=settings.no_data_s if side.alive else max(settings.no_data_s, settings.stalled_s),
            cause="no data" if side.alive else broker_cause(side.broker, alive=False),
            # One that was down just now takes a while to answer.
            continues=broker_causes(side.broker, side.alive),
            precedence=NO_METRICS,
        )
        for side in sides
        if side.verdict is Verdict.NO_DATA
    ]
