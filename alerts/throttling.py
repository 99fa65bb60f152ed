"""Throttles that are not too low, and wrong all the same: missing, forgotten, or too low after the next switch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from alerts.evidence import NOTHING, named, side_evidence, subject
from alerts.recommend import Recommender
from alerts.sides import SideState
from alerts.units import rate
from schemas.config import AlertSettings
from schemas.findings import Finding, Kind, Role, Severity, Verdict


def unthrottled_leaders(sides: Sequence[SideState], settings: AlertSettings, recommender: Recommender) -> list[Finding]:
    """Return a finding for each leader that sends to new replicas without a limit though the move is throttled.

    Either the leader list does not name it, as after a switch to a broker that came in by the move; or it does, and the
    broker has no rate.

    Args:
        sides: every broker and role of a tick.
        settings: section ``[alerts]``.
        recommender: makes recommendations.
    """
    listed = any(side.demand.limited_replicas for side in sides)
    rates = [side.demand.throttle_bytes_per_s for side in sides if side.demand.throttle_bytes_per_s is not None]
    return [
        _unthrottled(side, settings, recommender, max(rates, default=None))
        for side in sides
        if listed and side.role is Role.LEADER and side.verdict is not Verdict.NO_DATA and _unlimited(side)
    ]


def _unlimited(side: SideState) -> bool:
    rateless = side.demand.limited_replicas > 0 and side.demand.throttle_bytes_per_s is None
    return rateless or (side.demand.free_replicas > 0 and any(p.moving and not p.followers for p in side.partitions))


def _unthrottled(
    side: SideState, settings: AlertSettings, recommender: Recommender, throttle_bytes_per_s: float | None
) -> Finding:
    rateless = side.demand.throttle_bytes_per_s is None and side.demand.limited_replicas > 0
    which = [p for p in side.partitions if p.moving and (rateless or not p.followers)]
    switched = [p for p in which if p.previous_leader is not None and p.leader == side.broker]
    why = "it has no rate" if rateless else "the leader throttled list does not name it"
    since = f" since the leader switch of {named([p.name for p in switched])}" if switched else ""
    return Finding(
        kind=Kind.LEADER_UNTHROTTLED,
        subject=subject(side),
        severity=Severity.INFO,
        summary=(
            f"{subject(side).capitalize()} sends {named([p.name for p in which])} to new replicas without a limit"
            f"{since}: the move is throttled, but {why}"
        ),
        evidence=side_evidence(side, switched, cause="no_rate" if rateless else "not_listed"),
        recommendation=(
            recommender.set_rate(throttle_bytes_per_s, side.broker)
            if rateless
            else recommender.list_leader(side.broker, which)
        ),
        hold_s=settings.hold_s,
        cause="unthrottled leader",
        weight=sum(p.write_bytes_per_s or 0.0 for p in which),
    )


def without_throttle(sides: Sequence[SideState], settings: AlertSettings, recommender: Recommender) -> list[Finding]:
    """Return a finding if partitions move and no throttled replica list names any of them.

    Args:
        sides: every broker and role of a tick.
        settings: section ``[alerts]``.
        recommender: makes recommendations.
    """
    leaders = [side for side in sides if side.role is Role.LEADER and side.demand.free_replicas and _moves(side)]
    if not leaders or any(side.demand.limited_replicas for side in sides) or _unknown(sides):
        return []
    count = sum(side.moving_partitions for side in leaders)
    needs = [_need_bytes_per_s(side) for side in leaders]
    need = max(needs) if None not in needs else None  # type: ignore[type-var]
    worst = leaders[needs.index(need)] if need is not None else None
    takes = f"; to limit it, take more than {rate(need)}" if need is not None else ""
    return [
        Finding(
            kind=Kind.REASSIGNMENT_WITHOUT_THROTTLE,
            subject="moves",
            severity=Severity.INFO,
            summary=f"{count} partition(s) move without a throttle, as fast as brokers and network go{takes}",
            evidence={
                **NOTHING,
                "broker_id": worst.broker if worst is not None else None,
                "required_bytes_per_s": need,
                "moving_partitions": count,
            },
            recommendation=recommender.nothing(
                f"nothing has to be done; a throttle must exceed {rate(need)}, what broker {worst.broker} sends at most"
                if worst is not None
                else "nothing has to be done; what a throttle would have to exceed is not known yet"
            ),
            hold_s=settings.hold_s,
        )
    ]


def _moves(side: SideState) -> bool:
    return any(p.moving for p in side.partitions)


def _unknown(sides: Sequence[SideState]) -> bool:
    return any(side.verdict is Verdict.NO_DATA for side in sides)


def _need_bytes_per_s(side: SideState) -> float | None:
    """Return what a leader would have to send to all followers of what moves; None: unknown, or the list is cut."""
    moving = [p for p in side.partitions if p.moving]
    rates = [p.write_bytes_per_s * (len(p.replicas) - 1) for p in moving if p.write_bytes_per_s is not None]
    return sum(rates) if len(rates) == side.moving_partitions else None


def at_risk(
    sides: Sequence[SideState], short: Sequence[SideState], settings: AlertSettings, recommender: Recommender
) -> list[Finding]:
    """Return a finding for each broker whose throttle is enough until it leads one moving partition more.

    Every in-sync replica may come to lead its partition. Where a throttle is too low as it is, that comes first.

    Args:
        sides: every broker and role of a tick.
        short: those whose throttle is not enough.
        settings: section ``[alerts]``.
        recommender: makes recommendations.
    """
    if short:
        return []
    leaders = {side.broker: side for side in sides if side.role is Role.LEADER}
    risks = []
    for side in sides:
        leader = leaders.get(side.broker)
        if side.takeover is None or leader is None:
            continue
        throttle, required = leader.demand.throttle_bytes_per_s, leader.demand.required_bytes_per_s
        if throttle is not None and required is not None and throttle <= required + side.takeover.bytes_per_s:
            risks.append((side, leader, required + side.takeover.bytes_per_s))
    if not risks:
        return []
    enough = max(need for _, _, need in risks)
    advice = recommender.raise_to(sides, enough, "not urgent: the move goes on as long as no leader switches")
    return [_risk(side, leader, need, advice, settings) for side, leader, need in risks]


def _risk(
    side: SideState,
    leader: SideState,
    need_bytes_per_s: float,
    recommendation: dict[str, Any],
    settings: AlertSettings,
) -> Finding:
    assert side.takeover is not None, "at_risk() passes sides with a take-over only"
    takeover, throttle = side.takeover, leader.demand.throttle_bytes_per_s or 0.0
    more = math.ceil(need_bytes_per_s - throttle)
    return Finding(
        kind=Kind.THROTTLE_AT_RISK,
        subject=subject(leader),
        severity=Severity.INFO,
        summary=(
            f"If broker {side.broker} came to lead {takeover.topic}-{takeover.partition}, its throttle of "
            f"{rate(throttle)} would be {rate(more)} too low: it would have to send {rate(need_bytes_per_s)}"
        ),
        evidence=side_evidence(
            leader,
            takeover={"topic": takeover.topic, "partition": takeover.partition, "leader": takeover.leader},
            takeover_bytes_per_s=takeover.bytes_per_s,
            required_then_bytes_per_s=need_bytes_per_s,
        ),
        recommendation=recommendation,
        hold_s=settings.hold_s,
        cause="throttle at risk",
        weight=need_bytes_per_s - throttle,
    )


def left_behind(sides: Sequence[SideState], settings: AlertSettings, recommender: Recommender) -> list[Finding]:
    """Return a finding if nothing moves and rates or throttled replica lists are still set.

    They slow down the next replica that has to catch up, as after a restart of its broker.

    Args:
        sides: every broker and role of a tick.
        settings: section ``[alerts]``.
        recommender: makes recommendations.
    """
    if any(side.moving_partitions for side in sides):
        return []
    rated = [side for side in sides if side.demand.throttle_bytes_per_s is not None]
    resting = {(p.topic, p.name) for side in sides for p in side.partitions if p.followers and not p.moving}
    listed = sorted(name for _, name in resting)
    count = max((side.resting_listed_partitions for side in sides), default=0)
    if not rated and not count:
        return []
    brokers = sorted({side.broker for side in rated})
    found = []
    if rated:
        rates = sorted({side.demand.throttle_bytes_per_s or 0.0 for side in rated})
        span = rate(rates[0]) if len(rates) == 1 else f"{rate(rates[0])} to {rate(rates[-1])}"
        found.append(f"a throttle of {span} on broker(s) {named([str(b) for b in brokers], most=10)}")
    if listed:
        found.append(f"throttled replica lists that name {named(listed)}")
    default = any(side.throttle_source == "default" for side in rated)
    return [
        Finding(
            kind=Kind.THROTTLE_LEFT_BEHIND,
            subject="throttles",
            severity=Severity.WARNING,
            summary=f"No reassignment is running, but there is still {' and '.join(found)}",
            evidence={
                **NOTHING,
                "brokers": brokers,
                "cluster_default": default,
                "throttle_bytes_per_s": max((s.demand.throttle_bytes_per_s or 0.0 for s in rated), default=None),
                "listed_partitions": listed,
            },
            recommendation=recommender.clear_throttle(
                sorted({side.broker for side in rated if side.throttle_source != "default"}),
                sorted({topic for topic, _ in resting}),
                default,
            ),
            hold_s=settings.left_behind_s,
        )
    ]
