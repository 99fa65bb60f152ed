"""Rules on throttles that are missing, left behind by a move, or too low after the next leader switch."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from alerts.inputs.throttle_status import ThrottleStatus
from alerts.recommendations.recommender import Recommender
from alerts.rules.evidence import EMPTY_EVIDENCE, join_names, status_evidence, subject
from alerts.text.formatting import format_rate
from schemas.alerts import AlertKind, Finding, Role, Severity, Verdict
from schemas.config import AlertSettings


def leader_unthrottled(
    statuses: Sequence[ThrottleStatus], settings: AlertSettings, recommender: Recommender
) -> list[Finding]:
    """Return a finding for each leader that sends to new replicas without a limit although the move is throttled.

    Either the leader throttled list does not contain the broker, as after a switch to a new replica, or the broker has
    no rate.

    Args:
        statuses: every broker and role of a tick.
        settings: section ``[alerts]``.
        recommender: makes recommendations.
    """
    if not any(status.load.limited_replicas for status in statuses):
        return []
    leaders = [status for status in statuses if status.role is Role.LEADER and status.verdict is not Verdict.NO_DATA]
    return [
        _unthrottled(status, statuses, settings, recommender) for status in leaders if _unlimited_partitions(status)
    ]


def _unlimited_partitions(status: ThrottleStatus) -> int:
    """Return how many moving partitions with unlimited out-of-sync replicas the broker leads."""
    return status.free_partitions + (status.limited_partitions if status.load.throttle_bytes_per_s is None else 0)


def _unthrottled(
    status: ThrottleStatus, statuses: Sequence[ThrottleStatus], settings: AlertSettings, recommender: Recommender
) -> Finding:
    rateless = status.load.throttle_bytes_per_s is None and status.limited_partitions > 0
    count = _unlimited_partitions(status)
    which = [p for p in status.partitions if p.moving and (not p.followers or rateless)]
    why = "it has no rate" if rateless else "the leader throttled list does not name it"
    switched = [p for p in which if p.previous_leader is not None and p.leader == status.broker]
    since = f" since the leader switch of {join_names([p.name for p in switched])}" if switched else ""
    return Finding(
        kind=AlertKind.LEADER_UNTHROTTLED,
        subject=subject(status),
        severity=Severity.INFO,
        summary=(
            f"{subject(status).capitalize()} sends {join_names([p.name for p in which], count)} to new replicas "
            "without a "
            f"limit{since}: the move is throttled, but {why}"
        ),
        evidence=status_evidence(
            status,
            cause="no_rate" if rateless else "not_listed",
            switch_tick_ms=max((p.switch_tick_ms for p in switched if p.switch_tick_ms is not None), default=None),
        ),
        recommendation=(
            _set_rate_recommendation(status.broker, statuses, recommender)
            if rateless
            else recommender.list_leader(status.broker, which, count)
        ),
        hold_s=settings.hold_s,
        cause="unthrottled leader",
        weight=sum(p.write_bytes_per_s or 0.0 for p in which),
        affected=count,
    )


def _set_rate_recommendation(
    broker: int, statuses: Sequence[ThrottleStatus], recommender: Recommender
) -> dict[str, Any]:
    """Return the recommendation that sets a rate for both roles of a broker."""
    rates = [status.load.throttle_bytes_per_s for status in statuses if status.load.throttle_bytes_per_s is not None]
    required = [status.load.required_bytes_per_s for status in statuses if status.broker == broker]
    must = None if None in required else max(r for r in required if r is not None)
    return recommender.set_rate(max(rates, default=None), broker, must)


def reassignment_without_throttle(
    statuses: Sequence[ThrottleStatus], settings: AlertSettings, recommender: Recommender
) -> list[Finding]:
    """Return a finding if partitions move and no throttled replica list contains any of them.

    Args:
        statuses: every broker and role of a tick.
        settings: section ``[alerts]``.
        recommender: makes recommendations.
    """
    free = [status for status in statuses if status.load.free_replicas and status.moving_partitions]
    leaders = [status for status in free if status.role is Role.LEADER]
    if not leaders or any(status.load.limited_replicas for status in statuses) or has_unknown_status(statuses):
        return []
    count = sum(status.moving_partitions for status in leaders)
    needs = [status.moving_bytes_per_s for status in free]
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
                **EMPTY_EVIDENCE,
                "broker_id": worst.broker if worst is not None else None,
                "required_bytes_per_s": need,
                "moving_partitions": count,
            },
            recommendation=recommender.no_throttle_change(
                f"{unless}: a throttle must exceed {format_rate(need)}, what broker {worst.broker} {does}"
                if worst is not None
                else f"{unless}; what a throttle would have to exceed is not known"
            ),
            hold_s=settings.hold_s,
        )
    ]


def has_unknown_status(statuses: Sequence[ThrottleStatus]) -> bool:
    """Return whether the verdict of any broker and role is unknown."""
    return any(status.verdict is Verdict.NO_DATA for status in statuses)


def throttle_at_risk(
    statuses: Sequence[ThrottleStatus],
    too_low: Sequence[ThrottleStatus],
    settings: AlertSettings,
    recommender: Recommender,
) -> list[Finding]:
    """Return a finding for each broker whose throttle would be too low if it led one more moving partition.

    Every in-sync replica may become the leader of its partition. There is no finding while a throttle is too low or a
    required rate is unknown.

    Args:
        statuses: every broker and role of a tick.
        too_low: statuses whose throttle is too low.
        settings: section ``[alerts]``.
        recommender: makes recommendations.
    """
    if too_low or has_unknown_status(statuses):
        return []
    leaders = {status.broker: status for status in statuses if status.role is Role.LEADER}
    risks = []
    for status in statuses:
        leader = leaders.get(status.broker)
        if status.takeover is None or leader is None:
            continue
        throttle, required = leader.load.throttle_bytes_per_s, leader.load.required_bytes_per_s
        if throttle is not None and required is not None and throttle <= required + status.takeover.bytes_per_s:
            risks.append((status, leader, required + status.takeover.bytes_per_s))
    if not risks:
        return []
    enough = max(need for _, _, need in risks)
    recommendation = recommender.raise_to(
        statuses, enough, "not urgent: the move goes on as long as no leader switches"
    )
    return [_risk(status, leader, need, recommendation, settings) for status, leader, need in risks]


def _risk(
    status: ThrottleStatus,
    leader: ThrottleStatus,
    need_bytes_per_s: float,
    recommendation: Mapping[str, Any],
    settings: AlertSettings,
) -> Finding:
    assert status.takeover is not None, "throttle_at_risk() passes statuses with a leadership risk only"
    takeover, throttle = status.takeover, leader.load.throttle_bytes_per_s or 0.0
    more = math.ceil(need_bytes_per_s - throttle)
    return Finding(
        kind=AlertKind.THROTTLE_AT_RISK,
        subject=subject(leader),
        severity=Severity.INFO,
        summary=(
            f"If broker {status.broker} came to lead {takeover.topic}-{takeover.partition}, its throttle of "
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


def throttle_left_behind(
    statuses: Sequence[ThrottleStatus], settings: AlertSettings, recommender: Recommender
) -> list[Finding]:
    """Return a finding if nothing moves and rates or throttled replica lists are still set.

    Together they slow down the next replica that has to catch up, as after a broker restart. One without the other
    limits nothing. A cluster-wide default rate alone is not a leftover, because no move sets it.

    Args:
        statuses: every broker and role of a tick.
        settings: section ``[alerts]``.
        recommender: makes recommendations.
    """
    if any(status.moving_partitions for status in statuses):
        return []
    listed = _resting_lists(statuses)
    rated = [status for status in statuses if status.load.throttle_bytes_per_s is not None]
    rated = [status for status in rated if listed or status.throttle_source != "default"]
    if not rated and not listed:
        return []
    brokers = sorted({status.broker for status in rated})
    names = sorted({p.name for status in statuses for p in status.partitions if p.followers and not p.moving})
    found = []
    if rated:
        rates = sorted({status.load.throttle_bytes_per_s or 0.0 for status in rated})
        span = format_rate(rates[0]) if len(rates) == 1 else f"{format_rate(rates[0])} to {format_rate(rates[-1])}"
        found.append(f"a throttle of {span} on broker(s) {join_names([str(b) for b in brokers], most=10)}")
    if listed:
        # A list may contain only replicas that do not fetch now, as those of a broker that is down.
        entries = (
            f"that name {join_names(names, _resting_count(statuses, names))}"
            if names
            else f"of {join_names(sorted(listed))}"
        )
        found.append(f"throttled replica lists {entries}")
    return [
        Finding(
            kind=AlertKind.THROTTLE_LEFT_BEHIND,
            subject="throttles",
            severity=Severity.WARNING,
            summary=f"No reassignment is running, but there is still {' and '.join(found)}",
            evidence={
                **EMPTY_EVIDENCE,
                "brokers": brokers,
                "cluster_default": any(status.throttle_source == "default" for status in rated),
                "throttle_bytes_per_s": max((s.load.throttle_bytes_per_s or 0.0 for s in rated), default=None),
                "listed_partitions": names,
                "listed_partition_count": _resting_count(statuses, names),
                "listed_topics": sorted(listed),
                "listed_topic_count": max((status.resting_topic_count for status in statuses), default=0),
                "log_dirs_throttle_brokers": _log_dirs_rates(statuses),
            },
            recommendation=clear_throttle_recommendation(
                statuses,
                recommender,
                "remove what is left, or replicas that fall behind later catch up no faster than this"
                if rated and listed
                else "remove what is left: it limits nothing as it is, but together with what a later move sets",
            ),
            hold_s=settings.left_behind_s,
        )
    ]


def clear_throttle_recommendation(
    statuses: Sequence[ThrottleStatus], recommender: Recommender, reason: str
) -> dict[str, Any]:
    """Return the recommendation that removes throttles while nothing moves.

    Args:
        statuses: every broker and role of a tick.
        recommender: makes recommendations.
        reason: why they should be removed.
    """
    keys: dict[int, list[str]] = defaultdict(list)
    for status in statuses:
        if status.load.throttle_bytes_per_s is not None and status.throttle_source != "default":
            keys[status.broker].append(f"{status.role.value}.replication.throttled.rate")
    for broker in _log_dirs_rates(statuses):
        keys[broker].append("replica.alter.log.dirs.io.max.bytes.per.second")
    lists = _resting_lists(statuses)
    # If the list of topics is truncated, commands for these topics alone would leave the others behind.
    whole = all(status.resting_topic_count == len(status.resting_topics) for status in statuses)
    return recommender.clear_throttle(keys, lists, reason) if whole else recommender.clear_throttle({}, {}, reason)


def _resting_lists(statuses: Sequence[ThrottleStatus]) -> dict[str, set[Role]]:
    """Return the roles by topic whose throttled lists contain partitions that do not move."""
    lists: dict[str, set[Role]] = defaultdict(set)
    for status in statuses:
        for topic in status.resting_topics:
            lists[topic].add(status.role)
    return dict(lists)


def _resting_count(statuses: Sequence[ThrottleStatus], names: Sequence[str]) -> int:
    """Return the number of listed partitions that do not move."""
    # Counted on leaders, because each partition has one leader and a follower list may contain only some replicas.
    led = sum(status.resting_listed_partitions for status in statuses if status.role is Role.LEADER)
    return max(led, len(names), *(status.resting_listed_partitions for status in statuses), 0)


def _log_dirs_rates(statuses: Sequence[ThrottleStatus]) -> list[int]:
    """Return the brokers with a broker-level throttle for moves between log directories."""
    return sorted(
        {status.broker for status in statuses if status.log_dirs.bytes_per_s and status.log_dirs.source == "broker"}
    )


def has_unread_rates(statuses: Sequence[ThrottleStatus]) -> bool:
    """Return whether nothing moves and the rate of a live broker is unknown."""
    unread = [s for s in statuses if s.throttle_source is None and s.load.throttle_bytes_per_s is None]
    return any(status.alive for status in unread) and not any(status.moving_partitions for status in statuses)
