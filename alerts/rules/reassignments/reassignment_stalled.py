"""Rules ``reassignment_stalled``, ``isr_shrink_during_move`` and ``under_replicated``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from alerts.inputs.throttle_status import Stall, ThrottleStatus
from alerts.recommendations.recommender import Recommender
from alerts.rules.evidence import broker_evidence, join_names, status_evidence, subject
from schemas.alerts import AlertKind, Finding, Role, Severity
from schemas.config import AlertSettings

# Precedence among the findings that one broker causes: the first represents the others. Missing metrics and lost
# leadership are consequences, so they come last.
_STALLED, _ISR_SHRINK, _UNDER_REPLICATED, NO_METRICS, NOT_LEADING = range(5)

_STALL_REASONS = {
    "destination_down": "the broker is down",
    "destination_disk": "the broker is up but the replica is offline: a log directory of it has failed, or is full",
    "no_leader": "the partition has no leader: every broker that could lead it is down",
    "not_fetching": "the broker does not fetch it",
    "unknown": "no throttle explains it",
}
# One group for all partitions without a leader.
_NO_LEADER = "no leader"
_ISR_REASONS = {
    "no_leader": "has replicas that nobody leads",
    "fallen_behind": "has fallen behind",
    "broker_down": "is down",
}
# If a destination has several causes, the alert names the last of these.
_GRAVITY = ("unknown", "not_fetching", "no_leader", "offline")
# Stall causes on the destination itself.
_CAUSED_BY_DESTINATION = ("destination_down", "destination_disk", "not_fetching")
# Stall causes that a throttle may explain too: the leader leaves a throttled replica out of its responses.
_THROTTLED = ("unknown", "not_fetching")


def stalled_findings(
    statuses: Sequence[ThrottleStatus],
    below_required: Sequence[ThrottleStatus],
    settings: AlertSettings,
    recommender: Recommender,
) -> list[Finding]:
    """Return a finding for each destination where adding replicas copy nothing and no throttle explains it.

    Args:
        statuses: every broker and role of a tick.
        below_required: statuses whose throttle is below the required rate.
        settings: section ``[alerts]``.
        recommender: makes recommendations.
    """
    leaders = {status.broker for status in below_required if status.role is Role.LEADER}
    findings = []
    for status in statuses:
        throttled = [
            s for s in status.stalls if s.cause in _THROTTLED and (status.below_required or s.leader in leaders)
        ]
        stalls = [s for s in status.stalls if not status.alive or s not in throttled]
        if status.role is Role.FOLLOWER and stalls:
            findings.append(_stalled(status, stalls, settings, recommender))
    return findings


def _stalled(
    status: ThrottleStatus, stalls: Sequence[Stall], settings: AlertSettings, recommender: Recommender
) -> Finding:
    worst = max(stalls, key=lambda stall: _GRAVITY.index(stall.cause)).cause
    own = [stall for stall in stalls if stall.cause == worst]
    count = sum(stall.replicas for stall in own)
    others = sum(stall.replicas for stall in stalls) - count
    cause = {"offline": "destination_disk"}.get(worst, worst)
    if not status.alive and cause != "no_leader":
        cause = "destination_down"
    which = join_names([name for stall in own for name in stall.partitions], count)
    more = f"; nor of {others} more, for other reasons" if others else ""
    return Finding(
        kind=AlertKind.REASSIGNMENT_STALLED,
        subject=subject(status),
        severity=Severity.WARNING,
        summary=f"The move stands still: {subject(status)} copies nothing of {which} ({_STALL_REASONS[cause]}){more}",
        evidence=status_evidence(status, cause=cause),
        recommendation=recommender.restore_or_inspect_broker(status.broker, cause),
        hold_s=settings.stalled_s,
        cause=_stall_cause(status, cause, {stall.leader for stall in own}),
        continues=broker_causes(status.broker, status.alive) if cause in _CAUSED_BY_DESTINATION else (),
        precedence=_STALLED,
        affected=count + others,
    )


def _stall_cause(status: ThrottleStatus, cause: str, leaders: Collection[int | None]) -> str:
    """Return the group of a stall, shared with other destinations; empty if there is none."""
    if cause == "no_leader":
        return _NO_LEADER
    if cause == "unknown":
        # An unexplained stall must not join an older alert on its broker. If all copies have one leader, that leader
        # may be the cause.
        return f"copies from broker {next(iter(leaders))}" if len(leaders) == 1 else ""
    return broker_cause(status.broker, status.alive)


def out_of_sync_findings(
    statuses: Sequence[ThrottleStatus], settings: AlertSettings, recommender: Recommender
) -> list[Finding]:
    """Return a finding for each broker with out-of-sync replicas, other than adding replicas.

    Adding replicas are out of sync until they have copied everything, as planned.

    Args:
        statuses: every broker and role of a tick.
        settings: section ``[alerts]``.
        recommender: makes recommendations.
    """
    followers = [status for status in statuses if status.role is Role.FOLLOWER]
    return [finding for status in followers for finding in _out_of_sync_findings(status, settings, recommender)]


def _out_of_sync_findings(
    status: ThrottleStatus, settings: AlertSettings, recommender: Recommender
) -> Iterable[Finding]:
    resting = status.lost_replicas - status.lost_moving_replicas
    leaderless_moving, leaderless_resting = _leaderless(status)
    for kind, moving, count, without_leader, precedence in (
        (AlertKind.ISR_SHRINK_DURING_MOVE, True, status.lost_moving_replicas, leaderless_moving, _ISR_SHRINK),
        (AlertKind.UNDER_REPLICATED, False, resting, leaderless_resting, _UNDER_REPLICATED),
    ):
        if not count:
            continue
        lost = [one for one in status.lost if one.moving is moving]
        what = "of partitions that are moving, " if moving else ""
        cause = _out_of_sync_cause(status, without_leader, count)
        leaderless = cause == "no_leader"
        yield Finding(
            kind=kind,
            subject=f"broker {status.broker}",
            severity=Severity.WARNING,
            summary=(
                f"Broker {status.broker} {_ISR_REASONS[cause]}: {count} of its replicas, {what}none of them a new one, "
                f"out of the ISR ({join_names([one.name for one in lost], count)})"
            ),
            evidence=broker_evidence(status.broker, lost, alive=status.alive, lost_replicas=count, cause=cause),
            recommendation=recommender.restore_or_inspect_broker(
                status.broker, "no_leader" if leaderless else _remedy(status)
            ),
            hold_s=settings.under_replicated_s,
            # The time without a leader is a pending time of its own; a restart that ends it is the same cause.
            hold_of=_NO_LEADER if leaderless else "",
            cause=_NO_LEADER if leaderless else broker_cause(status.broker, status.alive),
            continues=() if leaderless else broker_causes(status.broker, status.alive),
            precedence=precedence,
            affected=count,
        )


def _leaderless(status: ThrottleStatus) -> tuple[int, int]:
    """Return how many out-of-sync replicas have no leader: of moving partitions, and of others."""
    every, moving = status.lost_leaderless_replicas, status.lost_leaderless_moving_replicas
    if every is not None and moving is not None:
        return moving, every - moving
    # Rows of older versions have only a truncated list of names: the rest is assumed to have a leader.
    named_ones = [one.moving for one in status.lost if one.leader is None]
    return named_ones.count(True), named_ones.count(False)


def _out_of_sync_cause(status: ThrottleStatus, leaderless: int, count: int) -> str:
    """Return why replicas of a broker are out of sync, as a cause in the evidence."""
    if not status.alive:
        return "broker_down"
    return "no_leader" if leaderless == count else "fallen_behind"


def _remedy(status: ThrottleStatus) -> str:
    if status.alive:
        return "not_fetching"
    return "being_replaced" if status.lost_leaving_replicas == status.lost_replicas else "broker_down"


def broker_causes(broker: int, alive: bool) -> tuple[str, ...]:
    """Return the causes whose alert continues: a broker that was down stays out of sync until it has caught up."""
    down = broker_cause(broker, alive=False)
    return (broker_cause(broker, alive=True), down) if alive else (down,)


def broker_cause(broker: int, alive: bool) -> str:
    """Return the group of findings on one broker; being down and being out of sync are different causes."""
    return f"broker {broker}" if alive else f"broker {broker} down"
