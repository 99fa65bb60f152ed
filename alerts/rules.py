"""From the sides of one tick to findings: what is wrong, for whom, with the evidence and what puts it right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from alerts.recommend import Recommender
from alerts.sides import PartitionEvidence, SideState
from alerts.units import rate
from schemas.config import AlertSettings
from schemas.findings import Finding, Kind, Role, Severity, Verdict

Subject = tuple[Kind, str]

_THROTTLE_KIND = {Role.LEADER: Kind.THROTTLE_BELOW_LEADER_WRITE, Role.FOLLOWER: Kind.THROTTLE_BELOW_INBOUND}


@dataclass(frozen=True)
class Assessment:
    """What one tick says.

    Attributes:
        findings: what is wrong.
        held: subjects neither wrong nor right, within the exit margin or unknown: their alerts stay as they are.
    """

    findings: list[Finding] = field(default_factory=list)
    held: set[Subject] = field(default_factory=set)


def assess(sides: Sequence[SideState], settings: AlertSettings, recommender: Recommender) -> Assessment:
    """Return what is wrong in one tick of one cluster.

    Args:
        sides: every broker and role of the tick.
        settings: section ``[alerts]``.
        recommender: makes recommendations and their commands.
    """
    assessment = Assessment()
    short = [side for side in sides if side.short]
    recommendation = recommender.raise_throttle(sides) if short else {}
    for side in sides:
        if side.short:
            assessment.findings.append(_throttle_finding(side, settings, recommendation))
        elif _is_held(side, settings):
            assessment.held.add((_THROTTLE_KIND[side.role], subject(side)))
        if side.verdict is Verdict.NO_DATA:
            assessment.held.add((Kind.REASSIGNMENT_STALLED, subject(side)))
    assessment.findings.extend(_stalled(sides, short, settings, recommender))
    assessment.findings.extend(_no_data(sides, settings, recommender))
    return assessment


def subject(side: SideState) -> str:
    """Return whom an alert of this side is about."""
    return f"broker {side.broker} as {'leader' if side.role is Role.LEADER else 'destination'}"


def _is_held(side: SideState, settings: AlertSettings) -> bool:
    """Return whether the side is unknown, or enough by less than the exit margin."""
    if side.verdict is Verdict.NO_DATA:
        return True
    throttle, required = side.demand.throttle_bytes_per_s, side.demand.required_bytes_per_s
    return side.verdict is Verdict.CATCHING_UP and (throttle or 0) < (required or 0) * settings.exit_ratio


def _throttle_finding(side: SideState, settings: AlertSettings, recommendation: dict[str, Any]) -> Finding:
    switched = _switched(side)
    starved = side.verdict is Verdict.STARVED
    return Finding(
        kind=_THROTTLE_KIND[side.role],
        subject=subject(side),
        severity=Severity.CRITICAL if starved else Severity.WARNING,
        summary=_throttle_summary(side, switched),
        evidence=_evidence(side, switched),
        recommendation=recommendation,
        hold_s=0.0 if switched else settings.hold_s,
    )


def _switched(side: SideState) -> list[PartitionEvidence]:
    """Return the partitions whose switch to this leader made the throttle too small; none: no switch did."""
    throttle, required = side.demand.throttle_bytes_per_s, side.demand.required_bytes_per_s
    came = [p for p in side.partitions if p.previous_leader is not None and p.leader == side.broker]
    if side.role is not Role.LEADER or throttle is None or required is None or not came:
        return []
    brought = sum((p.write_bytes_per_s or 0.0) * p.followers for p in came)
    return came if throttle > required - brought else []


def _throttle_summary(side: SideState, switched: list[PartitionEvidence]) -> str:
    demand = side.demand
    what = "its leaders must send" if side.role is Role.LEADER else "it must receive"
    fate = "new replicas get nothing" if side.verdict is Verdict.STARVED else "new replicas fall further behind"
    cause = ""
    if switched:
        names = ", ".join(f"{p.name} ({p.previous_leader} to {p.leader})" for p in switched[:3])
        more = f" and {len(switched) - 3} more" if len(switched) > 3 else ""
        cause = f" since the leader switch of {names}{more}"
    return (
        f"The move will not finish: {subject(side)} is throttled to {rate(demand.throttle_bytes_per_s)}, "
        f"but {what} {rate(demand.required_bytes_per_s)}{cause}; {fate}"
    )


def _evidence(side: SideState, switched: Sequence[PartitionEvidence] = ()) -> dict[str, Any]:
    demand = side.demand
    return {
        "broker_id": side.broker,
        "role": side.role.value,
        "verdict": side.verdict.value,
        "throttle_bytes_per_s": demand.throttle_bytes_per_s,
        "in_sync_bytes_per_s": demand.in_sync_bytes_per_s,
        "required_bytes_per_s": demand.required_bytes_per_s,
        "quota_bytes_per_s": demand.used_bytes_per_s,
        "remaining_bytes": demand.remaining_bytes,
        "moving_replicas": demand.limited_replicas + demand.free_replicas,
        "stalled_replicas": side.stalled_replicas,
        "partitions": [asdict(p) for p in side.partitions],
        "switch_tick_ms": max((p.switch_tick_ms for p in switched if p.switch_tick_ms is not None), default=None),
        "reason": side.reason,
    }


def _stalled(
    sides: Sequence[SideState], short: Sequence[SideState], settings: AlertSettings, recommender: Recommender
) -> list[Finding]:
    """Return a finding for each destination where adding replicas copy nothing and no throttle explains it."""
    throttled = {(p.topic, p.partition) for side in short for p in side.partitions}
    findings = []
    for side in sides:
        stalled = [p for p in side.partitions if p.stalled and (p.topic, p.partition) not in throttled]
        if side.role is Role.LEADER or not stalled or side.short:
            continue
        names = ", ".join(p.name for p in stalled[:3]) + (f" and {len(stalled) - 3} more" if len(stalled) > 3 else "")
        leaderless = [p.name for p in stalled if p.leader is None]
        why = side.reason or (f"{', '.join(leaderless[:3])} has no leader" if leaderless else "no throttle explains it")
        findings.append(
            Finding(
                kind=Kind.REASSIGNMENT_STALLED,
                subject=subject(side),
                severity=Severity.WARNING,
                summary=f"The move stands still: {subject(side)} copies nothing of {names} ({why})",
                evidence=_evidence(side),
                recommendation=recommender.look_at(side),
                hold_s=settings.stalled_s,
            )
        )
    return findings


def _no_data(sides: Sequence[SideState], settings: AlertSettings, recommender: Recommender) -> list[Finding]:
    return [
        Finding(
            kind=Kind.NO_DATA,
            subject=subject(side),
            severity=Severity.WARNING,
            summary=f"No verdict on {subject(side)}, which takes part in a move: {side.reason or 'unknown'}",
            evidence=_evidence(side),
            recommendation=recommender.nothing(f"unknown: {side.reason or 'no data'}"),
            hold_s=settings.no_data_s,
        )
        for side in sides
        if side.verdict is Verdict.NO_DATA
    ]
