"""Throttles that are not too low, and wrong all the same: missing, forgotten, or too low after the next switch."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from alerts.inputs.throttle_status import ThrottleStatus
from alerts.recommendations.recommender import Recommender
from alerts.rules.evidence import NOTHING, join_names, status_evidence, subject
from alerts.text.formatting import format_rate
from schemas.alerts import AlertKind, Finding, Role, Severity, Verdict
from schemas.config import AlertSettings


def leader_unthrottled(
    sides: Sequence[ThrottleStatus], settings: AlertSettings, recommender: Recommender
) -> list[Finding]:
    """Return a finding for each leader that sends to new replicas without a limit though the move is throttled.

    Either the leader list does not name it, as after a switch to a broker that came in by the move; or it does, and the
    broker has no rate.

    Args:
        sides: every broker and role of a tick.
        settings: section ``[alerts]``.
        recommender: makes recommendations.
    """
    if not any(side.demand.limited_replicas for side in sides):
        return []
    leaders = [side for side in sides if side.role is Role.LEADER and side.verdict is not Verdict.NO_DATA]
    return [_unthrottled(side, sides, settings, recommender) for side in leaders if _unlimited(side)]


def _unlimited(side: ThrottleStatus) -> int:
    """Return how many moving partitions it leads with replicas out of sync that nothing limits."""
    return side.free_partitions + (side.limited_partitions if side.demand.throttle_bytes_per_s is None else 0)


def _unthrottled(
    side: ThrottleStatus, sides: Sequence[ThrottleStatus], settings: AlertSettings, recommender: Recommender
) -> Finding:
    rateless = side.demand.throttle_bytes_per_s is None and side.limited_partitions > 0
    count = _unlimited(side)
    which = [p for p in side.partitions if p.moving and (not p.followers or rateless)]
    why = "it has no rate" if rateless else "the leader throttled list does not name it"
    switched = [p for p in which if p.previous_leader is not None and p.leader == side.broker]
    since = f" since the leader switch of {join_names([p.name for p in switched])}" if switched else ""
    return Finding(
        kind=AlertKind.LEADER_UNTHROTTLED,
        subject=subject(side),
        severity=Severity.INFO,
        summary=(
            f"{subject(side).capitalize()} sends {join_names([p.name for p in which], count)} to new replicas "
            "without a "
            f"limit{since}: the move is throttled, but {why}"
        ),
        evidence=status_evidence(
            side,
            cause="no_rate" if rateless else "not_listed",
            switch_tick_ms=max((p.switch_tick_ms for p in switched if p.switch_tick_ms is not None), default=None),
        ),
        recommendation=(
            _rate_for(side.broker, sides, recommender)
            if rateless
            else recommender.list_leader(side.broker, which, count)
        ),
        hold_s=settings.hold_s,
        cause="unthrottled leader",
        weight=sum(p.write_bytes_per_s or 0.0 for p in which),
        affected=count,
    )


def _rate_for(broker: int, sides: Sequence[ThrottleStatus], recommender: Recommender) -> dict[str, Any]:
    """Return how a broker gets a rate, which holds for both its roles."""
    rates = [side.demand.throttle_bytes_per_s for side in sides if side.demand.throttle_bytes_per_s is not None]
    required = [side.demand.required_bytes_per_s for side in sides if side.broker == broker]
    must = None if None in required else max(r for r in required if r is not None)
    return recommender.set_rate(max(rates, default=None), broker, must)


def reassignment_without_throttle(
    sides: Sequence[ThrottleStatus], settings: AlertSettings, recommender: Recommender
) -> list[Finding]:
    """Return a finding if partitions move and no throttled replica list names any of them.

    Args:
        sides: every broker and role of a tick.
        settings: section ``[alerts]``.
        recommender: makes recommendations.
    """
    free = [side for side in sides if side.demand.free_replicas and side.moving_partitions]
    leaders = [side for side in free if side.role is Role.LEADER]
    if not leaders or any(side.demand.limited_replicas for side in sides) or has_unknown_status(sides):
        return []
    count = sum(side.moving_partitions for side in leaders)
    needs = [side.moving_bytes_per_s for side in free]
    need = max(needs) if None not in needs else None  # type: ignore[type-var]
    worst = free[needs.index(need)] if need is not None else None
    does = "sends" if worst in leaders else "receives"
    unless = "nothing, unless it is too fast"
    takes = f"; to limit it, take more than {format_rate(need)}" if need is not None else ""
    return [
        Finding(
            kind=AlertKind.REASSIGNMENT_WITHOUT_THROTTLE,
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
                f"{unless}: a throttle must exceed {format_rate(need)}, what broker {worst.broker} {does}"
                if worst is not None
                else f"{unless}; what a throttle would have to exceed is not known"
            ),
            hold_s=settings.hold_s,
        )
    ]


def has_unknown_status(sides: Sequence[ThrottleStatus]) -> bool:
    """Return whether something that the verdict on a side needs is not known."""
    return any(side.verdict is Verdict.NO_DATA for side in sides)


def at_risk(
    sides: Sequence[ThrottleStatus], short: Sequence[ThrottleStatus], settings: AlertSettings, recommender: Recommender
) -> list[Finding]:
    """Return a finding for each broker whose throttle is enough until it leads one moving partition more.

    Every in-sync replica may come to lead its partition. Where a throttle is too low as it is, that comes first; and
    where a need is unknown no number can be told.

    Args:
        sides: every broker and role of a tick.
        short: those whose throttle is not enough.
        settings: section ``[alerts]``.
        recommender: makes recommendations.
    """
    if short or has_unknown_status(sides):
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
    side: ThrottleStatus,
    leader: ThrottleStatus,
    need_bytes_per_s: float,
    recommendation: Mapping[str, Any],
    settings: AlertSettings,
) -> Finding:
    assert side.takeover is not None, "at_risk() passes sides with a take-over only"
    takeover, throttle = side.takeover, leader.demand.throttle_bytes_per_s or 0.0
    more = math.ceil(need_bytes_per_s - throttle)
    return Finding(
        kind=AlertKind.THROTTLE_AT_RISK,
        subject=subject(leader),
        severity=Severity.INFO,
        summary=(
            f"If broker {side.broker} came to lead {takeover.topic}-{takeover.partition}, its throttle of "
            f"{format_rate(throttle)} would be {format_rate(more)} too low: "
            f"it would have to send {format_rate(need_bytes_per_s)}"
        ),
        evidence=status_evidence(
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


def left_behind(sides: Sequence[ThrottleStatus], settings: AlertSettings, recommender: Recommender) -> list[Finding]:
    """Return a finding if nothing moves and rates or throttled replica lists are still set.

    Together they slow down the next replica that has to catch up, as after a restart of its broker. One without the
    other limits nothing; so a rate for the whole cluster alone, which no move sets, is no remains of one.

    Args:
        sides: every broker and role of a tick.
        settings: section ``[alerts]``.
        recommender: makes recommendations.
    """
    if any(side.moving_partitions for side in sides):
        return []
    listed = _resting_lists(sides)
    rated = [side for side in sides if side.demand.throttle_bytes_per_s is not None]
    rated = [side for side in rated if listed or side.throttle_source != "default"]
    if not rated and not listed:
        return []
    brokers = sorted({side.broker for side in rated})
    names = sorted({p.name for side in sides for p in side.partitions if p.followers and not p.moving})
    found = []
    if rated:
        rates = sorted({side.demand.throttle_bytes_per_s or 0.0 for side in rated})
        span = format_rate(rates[0]) if len(rates) == 1 else f"{format_rate(rates[0])} to {format_rate(rates[-1])}"
        found.append(f"a throttle of {span} on broker(s) {join_names([str(b) for b in brokers], most=10)}")
    if listed:
        # A list may name replicas alone that do not fetch just now, as those of a broker that is down.
        whom = (
            f"that name {join_names(names, _resting_count(sides, names))}"
            if names
            else f"of {join_names(sorted(listed))}"
        )
        found.append(f"throttled replica lists {whom}")
    return [
        Finding(
            kind=AlertKind.THROTTLE_LEFT_BEHIND,
            subject="throttles",
            severity=Severity.WARNING,
            summary=f"No reassignment is running, but there is still {' and '.join(found)}",
            evidence={
                **NOTHING,
                "brokers": brokers,
                "cluster_default": any(side.throttle_source == "default" for side in rated),
                "throttle_bytes_per_s": max((s.demand.throttle_bytes_per_s or 0.0 for s in rated), default=None),
                "listed_partitions": names,
                "listed_partition_count": _resting_count(sides, names),
                "listed_topics": sorted(listed),
                "listed_topic_count": max((side.resting_topic_count for side in sides), default=0),
                "log_dirs_throttle_brokers": _log_dirs_rates(sides),
            },
            recommendation=clear_throttle_recommendation(
                sides,
                recommender,
                "remove what is left, or replicas that fall behind later catch up no faster than this"
                if rated and listed
                else "remove what is left: it limits nothing as it is, but together with what a later move sets",
            ),
            hold_s=settings.left_behind_s,
        )
    ]


def clear_throttle_recommendation(
    sides: Sequence[ThrottleStatus], recommender: Recommender, reason: str
) -> dict[str, Any]:
    """Return how the throttles go where nothing moves.

    Args:
        sides: every broker and role of a tick.
        recommender: makes recommendations.
        reason: why they should.
    """
    keys: dict[int, list[str]] = defaultdict(list)
    for side in sides:
        if side.demand.throttle_bytes_per_s is not None and side.throttle_source != "default":
            keys[side.broker].append(f"{side.role.value}.replication.throttled.rate")
    for broker in _log_dirs_rates(sides):
        keys[broker].append("replica.alter.log.dirs.io.max.bytes.per.second")
    lists = _resting_lists(sides)
    # Half of the topics would leave the other half behind.
    whole = all(side.resting_topic_count == len(side.resting_topics) for side in sides)
    return recommender.clear_throttle(keys, lists, reason) if whole else recommender.clear_throttle({}, {}, reason)


def _resting_lists(sides: Sequence[ThrottleStatus]) -> dict[str, set[Role]]:
    """Return the topics whose lists name partitions that do not move, with the roles whose list does."""
    lists: dict[str, set[Role]] = defaultdict(set)
    for side in sides:
        for topic in side.resting_topics:
            lists[topic].add(side.role)
    return dict(lists)


def _resting_count(sides: Sequence[ThrottleStatus], names: Sequence[str]) -> int:
    """Return how many partitions at rest lists name: each has one leader, and a follower list may name only some."""
    led = sum(side.resting_listed_partitions for side in sides if side.role is Role.LEADER)
    return max(led, len(names), *(side.resting_listed_partitions for side in sides), 0)


def _log_dirs_rates(sides: Sequence[ThrottleStatus]) -> list[int]:
    """Return the brokers that have a throttle of their own for moves between log directories."""
    return sorted({side.broker for side in sides if side.log_dirs.bytes_per_s and side.log_dirs.source == "broker"})


def has_unread_rates(sides: Sequence[ThrottleStatus]) -> bool:
    """Return whether nothing moves, and a broker that is up does not tell whether it has a rate."""
    unread = [s for s in sides if s.throttle_source is None and s.demand.throttle_bytes_per_s is None]
    return any(side.alive for side in unread) and not any(side.moving_partitions for side in sides)
