"""Replicas that do not copy, or no longer do: what stands still in a move, and what lost its place in the ISR."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from alerts.evidence import broker_evidence, named, side_evidence, subject
from alerts.recommend import Recommender
from alerts.sides import SideState
from schemas.config import AlertSettings
from schemas.findings import Finding, Kind, Role, Severity

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


def stalled(
    sides: Sequence[SideState], short: Sequence[SideState], settings: AlertSettings, recommender: Recommender
) -> list[Finding]:
    """Return a finding for each destination where adding replicas copy nothing and no throttle explains it.

    Args:
        sides: every broker and role of a tick.
        short: those whose throttle is not enough.
        settings: section ``[alerts]``.
        recommender: makes recommendations.
    """
    throttled = {(p.topic, p.partition) for side in short for p in side.partitions}
    findings = []
    for side in sides:
        told = [p for p in side.partitions if p.stalled]
        names = [p.name for p in told if (p.topic, p.partition) not in throttled]
        # The evidence is cut: of what it leaves out is known only that no throttle explains it if none is too low.
        count = len(names) + (0 if short else side.stalled_replicas - len(told))
        if side.role is Role.LEADER or not count or side.short:
            continue
        cause, which = _stall_cause(side), named(names, count)
        findings.append(
            Finding(
                kind=Kind.REASSIGNMENT_STALLED,
                subject=subject(side),
                severity=Severity.WARNING,
                summary=f"The move stands still: {subject(side)} copies nothing of {which} ({_WHY[cause]})",
                evidence=side_evidence(side, cause=cause),
                recommendation=recommender.unblock(side.broker, cause),
                hold_s=settings.stalled_s,
                # One that nothing explains must not pass for what an older alert of its broker is about.
                cause={"no_leader": "no leader", "unknown": ""}.get(cause, _cause(side)),
                precedence=_STALLED,
            )
        )
    return findings


def _stall_cause(side: SideState) -> str:
    if not side.alive:
        return "destination_down"
    return "destination_disk" if side.stall == "offline" else side.stall or "unknown"


def lost_replicas(sides: Sequence[SideState], settings: AlertSettings, recommender: Recommender) -> list[Finding]:
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


def _lost(side: SideState, settings: AlertSettings, recommender: Recommender) -> Iterable[Finding]:
    resting = side.lost_replicas - side.lost_moving_replicas
    for kind, moving, count, precedence in (
        (Kind.ISR_SHRINK_DURING_MOVE, True, side.lost_moving_replicas, _SHRINK),
        (Kind.UNDER_REPLICATED, False, resting, _LACK),
    ):
        if not count:
            continue
        lost = [one for one in side.lost if one.moving is moving]
        what = "of partitions that are moving, " if moving else ""
        why = "has fallen behind" if side.alive else "is down"
        yield Finding(
            kind=kind,
            subject=f"broker {side.broker}",
            severity=Severity.WARNING,
            summary=(
                f"Broker {side.broker} {why}: {count} of its replicas, {what}none of them a new one, "
                f"out of the ISR ({named([one.name for one in lost], count)})"
            ),
            evidence=broker_evidence(side.broker, lost, alive=side.alive, lost_replicas=count),
            recommendation=recommender.unblock(side.broker, "not_fetching" if side.alive else "broker_down"),
            hold_s=settings.under_replicated_s,
            cause=_cause(side),
            precedence=precedence,
        )


def _cause(side: SideState) -> str:
    return f"broker {side.broker}"
