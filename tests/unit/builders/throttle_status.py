"""Throttle statuses for tests of rules."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from headroom.alerts.finding import Finding
from headroom.alerts.inputs.throttle_status import (
    LeaderSwitch,
    MovingPartition,
    PartitionEvidence,
    Stall,
    ThrottleStatus,
)
from headroom.alerts.recommendations.recommender import Recommender
from headroom.alerts.rules.catalogue import evaluate_rules
from headroom.alerts.rules.rule import Assessment, RuleInputs
from headroom.planning.quotas.load import ThrottleLoad
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.alerts import AlertKind, Verdict
from headroom.schemas.config import AlertSettings
from headroom.schemas.keys import Role

MB = 1_000_000.0
TICK_MS = 1_800_000_000_000
SETTINGS = AlertSettings(hold_s=3, stalled_s=30, no_data_s=15, exit_ratio=1.05)
# Evidence keys of every finding.
EVIDENCE_KEYS = {
    "broker_id",
    "role",
    "throttle_bytes_per_s",
    "in_sync_bytes_per_s",
    "required_bytes_per_s",
    "partitions",
    "switch_tick_ms",
}


def partition(number: int = 0, **more: Any) -> PartitionEvidence:
    """Return a partition of topic ``t`` with 2 MB/s that moves from 2, 1 to 3, 2 and is led by broker 1."""
    fields: dict[str, Any] = {
        "topic": "t",
        "partition": number,
        "write_bytes_per_s": 2 * MB,
        "followers": 2,
        "in_sync_followers": 1,
        "leader": 1,
        "previous_leader": None,
        "switch_tick_ms": None,
        "moving": True,
        "replicas": (3, 2, 1),
        "target": (3, 2),
        "stalled": False,
    }
    return PartitionEvidence(**fields | more)


def status(
    broker: int,
    role: Role,
    throttle_mb: float | None,
    required_mb: float | None,
    *partitions: PartitionEvidence,
    in_sync_mb: float | None = 2.0,
    limited: int = 1,
    **more: Any,
) -> ThrottleStatus:
    """Return a status with one limited replica; verdict and sums follow from its load and partitions."""
    load = ThrottleLoad(
        broker=broker,
        role=role,
        throttle_bytes_per_s=None if throttle_mb is None else throttle_mb * MB,
        in_sync_bytes_per_s=None if in_sync_mb is None else in_sync_mb * MB,
        required_bytes_per_s=None if required_mb is None else required_mb * MB,
        limited_replicas=limited,
        free_replicas=more.pop("free", 0),
        remaining_bytes=more.pop("remaining_bytes", 10_000_000),
        throttle_known=more.pop("throttle_known", True),
        used_bytes_per_s=more.pop("used_bytes_per_s", None),
        down_required_bytes_per_s=more.pop("down_required_bytes_per_s", 0.0),
    )
    fields: dict[str, Any] = {
        "load": load,
        "verdict": load.verdict,
        "reason": "write rate unknown of 1 partition(s)" if load.verdict is Verdict.NO_DATA else None,
        "eta_s": None,
        "stalled_replicas": sum(p.stalled for p in partitions),
        "partitions": partitions,
        "moving_partitions": sum(p.moving for p in partitions),
        "known_in_sync_bytes_per_s": load.in_sync_bytes_per_s or 0.0,
        "known_required_bytes_per_s": load.required_bytes_per_s or 0.0,
        **_sums(broker, role, partitions, more.get("stall")),
    }
    return ThrottleStatus(**fields | more)


def _sums(broker: int, role: Role, partitions: Sequence[PartitionEvidence], stall: str | None) -> dict[str, Any]:
    """Return the fields that sum over partitions."""
    moving = [p for p in partitions if p.moving]
    resting = sorted({p.topic for p in partitions if p.followers and not p.moving})
    leads = role is Role.LEADER
    rates = [(p.write_bytes_per_s, len(p.replicas) - 1 if leads else 1) for p in moving]
    return {
        "moving_bytes_per_s": None if any(w is None for w, _ in rates) else sum((w or 0.0) * n for w, n in rates),
        "counting_partitions": len(partitions),
        "limited_partitions": sum(p.followers > p.in_sync_followers for p in moving),
        "free_partitions": sum(not p.followers for p in moving),
        "stalls": () if leads else _stalls(partitions, stall or "unknown"),
        "switches": _switches(broker, partitions) if leads else (),
        "moves": tuple(MovingPartition(p.topic, p.partition, p.target) for p in moving),
        "resting_topics": tuple(resting),
        "resting_topic_count": len(resting),
    }


def _stalls(partitions: Sequence[PartitionEvidence], cause: str) -> tuple[Stall, ...]:
    leaders = dict.fromkeys(p.leader for p in partitions if p.stalled)
    names = {leader: [p.name for p in partitions if p.stalled and p.leader == leader] for leader in leaders}
    return tuple(Stall(cause, leader, len(found), tuple(found[:3])) for leader, found in names.items())


def _switches(broker: int, partitions: Sequence[PartitionEvidence]) -> tuple[LeaderSwitch, ...]:
    came = [p for p in partitions if p.previous_leader is not None and p.leader == broker and p.followers]
    by_leader: dict[int, list[PartitionEvidence]] = {}
    for p in came:
        by_leader.setdefault(p.previous_leader or 0, []).append(p)
    return tuple(
        LeaderSwitch(
            before,
            len(found),
            sum((p.write_bytes_per_s or 0.0) * p.followers for p in found),
            max(p.switch_tick_ms or 0 for p in found),
            tuple(p.name for p in found[:3]),
        )
        for before, found in by_leader.items()
    )


def assessment_of(*statuses: ThrottleStatus, policy: ThrottlePolicy | None = None) -> Assessment:
    """Return the assessment of a tick with these statuses, without ``eta_slipping``, which compares ticks."""
    recommender = Recommender(policy or ThrottlePolicy(), "broker1:9092")
    assessment = evaluate_rules(RuleInputs(statuses, SETTINGS, recommender))
    assessment.keep_firing.discard((AlertKind.ETA_SLIPPING, "moves"))
    return assessment


def found(*statuses: ThrottleStatus, kind: AlertKind | None = None, policy: ThrottlePolicy | None = None) -> Finding:
    """Return the only finding, or the only one of a kind, after a check of its evidence keys."""
    (finding,) = [f for f in assessment_of(*statuses, policy=policy).findings if kind in (None, f.kind)]
    assert set(finding.evidence_json()) >= EVIDENCE_KEYS
    json.dumps([finding.evidence_json(), finding.recommendation.to_json()])
    return finding


def kinds(*statuses: ThrottleStatus) -> set[AlertKind]:
    """Return the kinds of the findings."""
    return {finding.kind for finding in assessment_of(*statuses).findings}
