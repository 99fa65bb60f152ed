"""Replicas that do not copy, or no longer do: what stands still in a move, and what lost its place in the ISR."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from alerts.inputs.throttle_status import Stall, ThrottleStatus
from alerts.recommendations.recommender import Recommender
from alerts.rules.evidence import broker_evidence, join_names, status_evidence, subject
from schemas.alerts import AlertKind, Finding, Role, Severity
from schemas.config import AlertSettings

# Of what a broker that is down brings about, the first of these is told for all; that its metrics are gone comes late,
# and that others lead in its place last.
_STALLED, _SHRINK, _LACK, NO_METRICS, NO_LEAD = range(5)

_WHY = {
    "destination_down": "the broker is down",
    "destination_disk": "the broker is up but the replica is offline: a log directory of it has failed, or is full",
    "no_leader": "the partition has no leader: every broker that could lead it is down",
    "not_fetching": "the broker does not fetch it",
    "unknown": "no throttle explains it",
}


# What makes all that lacks a leader one.
_NO_LEADER = "no leader"
_LOST_WHY = {
    "no_leader": "has replicas that nobody leads",
    "fallen_behind": "has fallen behind",
    "broker_down": "is down",
}
# Of several causes on one destination the last of these is named first.
_GRAVITY = ("unknown", "not_fetching", "no_leader", "offline")
# Causes of a stall that are the destination's own.
_BROKERS_OWN = ("destination_down", "destination_disk", "not_fetching")
# What a throttle that is too low may explain as well: the replica is left out of the fetches.
_THROTTLED = ("unknown", "not_fetching")


def stalled(
    sides: Sequence[ThrottleStatus],
    binding: Sequence[ThrottleStatus],
    settings: AlertSettings,
    recommender: Recommender,
) -> list[Finding]:
    """Return a finding for each destination where adding replicas copy nothing and no throttle explains it.

    Args:
        sides: every broker and role of a tick.
        binding: those whose throttle is below what is required.
        settings: section ``[alerts]``.
        recommender: makes recommendations.
    """
    leaders = {side.broker for side in binding if side.role is Role.LEADER}
    findings = []
    for side in sides:
        throttled = [s for s in side.stalls if s.cause in _THROTTLED and (side.binding or s.leader in leaders)]
        stalls = [s for s in side.stalls if not side.alive or s not in throttled]
        if side.role is Role.FOLLOWER and stalls:
            findings.append(_stalled(side, stalls, settings, recommender))
    return findings


def _stalled(
    side: ThrottleStatus, stalls: Sequence[Stall], settings: AlertSettings, recommender: Recommender
) -> Finding:
    worst = max(stalls, key=lambda stall: _GRAVITY.index(stall.cause)).cause
    own = [stall for stall in stalls if stall.cause == worst]
    count = sum(stall.replicas for stall in own)
    others = sum(stall.replicas for stall in stalls) - count
    cause = {"offline": "destination_disk"}.get(worst, worst)
    if not side.alive and cause != "no_leader":
        cause = "destination_down"
    which = join_names([name for stall in own for name in stall.partitions], count)
    more = f"; nor of {others} more, for other reasons" if others else ""
    return Finding(
        kind=AlertKind.REASSIGNMENT_STALLED,
        subject=subject(side),
        severity=Severity.WARNING,
        summary=f"The move stands still: {subject(side)} copies nothing of {which} ({_WHY[cause]}){more}",
        evidence=status_evidence(side, cause=cause),
        recommendation=recommender.restore_or_inspect_broker(side.broker, cause),
        hold_s=settings.stalled_s,
        cause=_stall_cause(side, cause, {stall.leader for stall in own}),
        continues=broker_causes(side.broker, side.alive) if cause in _BROKERS_OWN else (),
        precedence=_STALLED,
        affected=count + others,
    )


def _stall_cause(side: ThrottleStatus, cause: str, leaders: Collection[int | None]) -> str:
    """Return what makes the stalls of several destinations one; empty: nothing."""
    if cause == "no_leader":
        return _NO_LEADER
    if cause == "unknown":
        # What nothing explains must not pass for what an older alert of its broker is about; but of one leader alone
        # it may be the leader.
        return f"copies from broker {next(iter(leaders))}" if len(leaders) == 1 else ""
    return broker_cause(side.broker, side.alive)


def lost_replicas(sides: Sequence[ThrottleStatus], settings: AlertSettings, recommender: Recommender) -> list[Finding]:
    """Return a finding for each broker whose replicas, other than adding ones, are out of the ISR.

    Those that a move brings are out of it until they have copied everything: that is planned. They stand on the row of
    the broker that holds them, as follower.

    Args:
        sides: every broker and role of a tick.
        settings: section ``[alerts]``.
        recommender: makes recommendations.
    """
    followers = [side for side in sides if side.role is Role.FOLLOWER]
    return [finding for side in followers for finding in _lost(side, settings, recommender)]


def _lost(side: ThrottleStatus, settings: AlertSettings, recommender: Recommender) -> Iterable[Finding]:
    resting = side.lost_replicas - side.lost_moving_replicas
    leaderless_moving, leaderless_resting = _leaderless(side)
    for kind, moving, count, without_leader, precedence in (
        (AlertKind.ISR_SHRINK_DURING_MOVE, True, side.lost_moving_replicas, leaderless_moving, _SHRINK),
        (AlertKind.UNDER_REPLICATED, False, resting, leaderless_resting, _LACK),
    ):
        if not count:
            continue
        lost = [one for one in side.lost if one.moving is moving]
        what = "of partitions that are moving, " if moving else ""
        cause = _lost_cause(side, without_leader, count)
        leaderless = cause == "no_leader"
        yield Finding(
            kind=kind,
            subject=f"broker {side.broker}",
            severity=Severity.WARNING,
            summary=(
                f"Broker {side.broker} {_LOST_WHY[cause]}: {count} of its replicas, {what}none of them a new one, "
                f"out of the ISR ({join_names([one.name for one in lost], count)})"
            ),
            evidence=broker_evidence(side.broker, lost, alive=side.alive, lost_replicas=count, cause=cause),
            recommendation=recommender.restore_or_inspect_broker(
                side.broker, "no_leader" if leaderless else _remedy(side)
            ),
            hold_s=settings.under_replicated_s,
            # While nobody leads them that is told; a restart that puts it right is not another cause.
            hold_of=_NO_LEADER if leaderless else "",
            cause=_NO_LEADER if leaderless else broker_cause(side.broker, side.alive),
            continues=() if leaderless else broker_causes(side.broker, side.alive),
            precedence=precedence,
            affected=count,
        )


def _leaderless(side: ThrottleStatus) -> tuple[int, int]:
    """Return how many of the lost replicas are of partitions without a leader: of those that move, and of others."""
    every, moving = side.lost_leaderless_replicas, side.lost_leaderless_moving_replicas
    if every is not None and moving is not None:
        return moving, every - moving
    # A row of an older version has the names alone, and these are cut: of the others a leader is taken for granted.
    named_ones = [one.moving for one in side.lost if one.leader is None]
    return named_ones.count(True), named_ones.count(False)


def _lost_cause(side: ThrottleStatus, leaderless: int, count: int) -> str:
    """Return why replicas of a broker are out of the ISR, as the evidence has it."""
    if not side.alive:
        return "broker_down"
    return "no_leader" if leaderless == count else "fallen_behind"


def _remedy(side: ThrottleStatus) -> str:
    if side.alive:
        return "not_fetching"
    return "being_replaced" if side.lost_leaving_replicas == side.lost_replicas else "broker_down"


def broker_causes(broker: int, alive: bool) -> tuple[str, ...]:
    """Return the causes whose alert goes on: one that was down is behind until it has caught up."""
    down = broker_cause(broker, alive=False)
    return (broker_cause(broker, alive=True), down) if alive else (down,)


def broker_cause(broker: int, alive: bool) -> str:
    """Return what makes findings about one broker one: that it is down is another cause than that it falls behind."""
    return f"broker {broker}" if alive else f"broker {broker} down"
