"""JSON output of ``headroom balance``: rates per second, sizes in bytes, null if unknown."""

from __future__ import annotations

import math
from typing import Any

from headroom.cli.balance.amounts import finite
from headroom.operations.balance.cluster import BalanceCluster
from headroom.operations.balance.score import ChangedCluster, ScoreResult
from headroom.planning.balance.goals.resource_goals import TopicBand
from headroom.planning.balance.model import Resource
from headroom.planning.balance.reports.scorecard import BrokenGoal, Scorecard


def score_json(result: ScoreResult) -> dict[str, Any]:
    """Return the scores as a JSON object."""
    return {
        **cluster_json(result.cluster),
        **card_json(result.card, result.cluster),
        "at_risk": [dict(vars(risk)) for risk in result.risks],
        "what_if": None if result.changed is None else _changed_json(result.changed, result.cluster),
    }


def cluster_json(cluster: BalanceCluster) -> dict[str, Any]:
    """Return what the loads rest on, and what is not known."""
    loads = cluster.loads
    return {
        "cluster": cluster.state.cluster,
        "read_ms": cluster.state.read_ms,
        "partitions": cluster.observed.model.partitions,
        "loads_from": loads.source,
        "percentile": cluster.settings.balance.percentile,
        "hours": {"wanted": loads.wanted_hours, "seen": len(loads.hours_ms)},
        "lost_goals": [
            {"goal": goal.name, "reason": goal.reason, "remedy": goal.remedy} for goal in cluster.observed.lost_goals
        ],
        "notes": list(cluster.observed.notes),
    }


def card_json(card: Scorecard, cluster: BalanceCluster) -> dict[str, Any]:
    """Return scores, loads, bands and capacities by broker, and the goals."""
    counted = card.model.is_counted
    return {
        "brokers_counted": int(counted.sum()),
        "brokers_in_band": int((card.is_balanced() & counted).sum()),
        "goals": [
            {
                "goal": goal.name,
                "hard": goal.hard,
                "group": goal.group,
                "weight": goal.weight,
                "met_by": int((card.met[number] & counted).sum()),
                "of_topics": isinstance(goal, TopicBand),
            }
            for number, goal in enumerate(card.goals)
        ],
        "brokers": [_broker_json(card, cluster, number) for number in range(len(card.model.brokers))],
    }


def broken_json(broken: BrokenGoal) -> dict[str, Any]:
    """Return a goal that a broker does not meet."""
    return {"goal": broken.goal, "broker": broken.broker, "load": broken.load, "edge": broken.edge}


def _broker_json(card: Scorecard, cluster: BalanceCluster, broker: int) -> dict[str, Any]:
    state, observed = card.model.brokers[broker], cluster.observed
    # By id, because a change may have added or removed brokers.
    seen = {b.broker: float(ratio) for b, ratio in zip(observed.model.brokers, observed.seen_ratio, strict=True)}
    return {
        "broker": state.broker,
        "rack": state.rack,
        "alive": state.alive,
        "counted": bool(card.model.is_counted[broker]),
        "takes_nothing": state.takes or None,
        "seen_ratio": finite(seen.get(state.broker, math.nan)),
        "loads": {
            resource.name.lower(): _load_json(card, resource, broker, resource in observed.unknown)
            for resource in Resource
        },
        "goals": {
            goal.name: {"score": finite(float(card.scores[n, broker])), "met": bool(card.met[n, broker])}
            for n, goal in enumerate(card.goals)
        },
    }


def _load_json(card: Scorecard, resource: Resource, broker: int, unknown: bool) -> dict[str, Any]:
    band, limit = card.band(resource), card.limit(resource)
    return {
        "load": None if unknown else card.load(resource, broker),
        "part_unknown": unknown or bool(card.model.has_unknown_part[resource, broker]),
        "mean": None if band is None else float(band.mean[broker]),
        "lower": None if band is None else finite(float(band.reachable_lower[broker])),
        "upper": None if band is None else finite(float(band.reachable_upper[broker])),
        "capacity": card.model.brokers[broker].capacity.of(resource),
        "limit": None if limit is None else finite(float(limit[broker])),
    }


def _changed_json(changed: ChangedCluster, cluster: BalanceCluster) -> dict[str, Any]:
    return {
        "changes": list(changed.changes),
        "broken_limits": [broken_json(broken) for broken in changed.broken_limits],
        "leaderless_partitions": changed.leaderless,
        "brokers_missing": changed.missing,
        "unplaced_reads_bytes_per_s": changed.unplaced_reads_bytes_per_s,
        **card_json(changed.card, cluster),
    }
