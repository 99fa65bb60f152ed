"""Result of ``headroom balance``: scores of brokers, and the same after changes of the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headroom.operations.balance.cluster import BalanceCluster
from headroom.operations.balance.requests import ClusterChange
from headroom.planning.balance.broker_loads.capacity_risk import CapacityRisk
from headroom.planning.balance.broker_loads.risks import capacity_risks
from headroom.planning.balance.goals.catalogue import configured_goals, find_goals
from headroom.planning.balance.goals.goal import BalanceGoal
from headroom.planning.balance.model import ClusterModel, Resource
from headroom.planning.balance.reports.scorecard import BrokenGoal, Scorecard, scorecard_of
from headroom.planning.balance.what_if import brokers_missing
from headroom.schemas.errors import HeadroomError


@dataclass(frozen=True, eq=False)
class ChangedCluster:
    """A cluster after changes.

    Attributes:
        changes: the changes as they were given.
        card: scores after them.
        broken_limits: hard goals that a broker no longer meets, and met before.
        leaderless: number of partitions that lost their leader.
        missing: number of brokers that are missing to carry all loads within the limits.
        unplaced_reads_bytes_per_s: bytes that consumers read, as the closest replica, from brokers that have no replica
            left. Who sends them then is unknown, so they count in no load after the changes.
    """

    changes: tuple[str, ...]
    card: Scorecard
    broken_limits: tuple[BrokenGoal, ...]
    leaderless: int
    missing: int
    unplaced_reads_bytes_per_s: float


@dataclass(frozen=True, eq=False)
class ScoreResult:
    """Result of the command.

    Attributes:
        cluster: the cluster.
        card: scores of its brokers.
        risks: brokers that the loss of one broker or rack takes over their limit.
        changed: the cluster after changes; None if none was asked for.
    """

    cluster: BalanceCluster
    card: Scorecard
    risks: tuple[CapacityRisk, ...] = ()
    changed: ChangedCluster | None = None


def chosen_goals(cluster: BalanceCluster, names: Sequence[str] | None) -> tuple[BalanceGoal, ...]:
    """Return the goals that can be scored.

    Args:
        cluster: the cluster.
        names: goals that were asked for; None: those of ``balance.goals``. Of these, goals that are lost are left out.

    Raises:
        HeadroomError: a goal is unknown or cannot be loaded, or one that was asked for is lost.
    """
    settings = cluster.settings.balance
    chosen = list(names) if names is not None else configured_goals(settings)
    return cluster.observed.known_goals(find_goals(chosen, settings.detect_below), names or ())


def score_result(cluster: BalanceCluster, goals: Sequence[str] | None, changes: Sequence[ClusterChange]) -> ScoreResult:
    """Return the scores of a cluster, and those after changes one after another.

    Args:
        cluster: the cluster.
        goals: names of goals; None: those of the settings.
        changes: changes in their order; none if empty.

    Raises:
        HeadroomError: a goal fails, or a change is not possible.
    """
    chosen = chosen_goals(cluster, goals)
    before = cluster.observed.model
    card = scorecard_of(before, chosen)
    # If what brokers send is unknown, the lost goals give the reason.
    is_unknown = Resource.NETWORK_OUT in cluster.observed.unknown
    risks = () if is_unknown else tuple(capacity_risks(before))
    if not changes:
        return ScoreResult(cluster, card, risks)
    after = before
    for change in changes:
        after = _apply_change(after, change)
    return ScoreResult(cluster, card, risks, _effects([change.text for change in changes], card, after, chosen))


def _apply_change(model: ClusterModel, change: ClusterChange) -> ClusterModel:
    changed = change.apply(model)
    if not changed.is_counted.any():
        raise HeadroomError(f"--what-if {change.text}", "leaves no broker", "Leave at least one broker alive.")
    return changed


def _effects(
    texts: Sequence[str], before: Scorecard, model: ClusterModel, goals: Sequence[BalanceGoal]
) -> ChangedCluster:
    after = scorecard_of(model, goals)
    already = {(broken.goal, broken.broker) for broken in before.broken()}
    broken = [b for b in after.broken() if b.hard and (b.goal, b.broker) not in already]
    lost = int(np.count_nonzero(model.leader < 0) - np.count_nonzero(before.model.leader < 0))
    reads, reads_after = (sum(b.follower_reads_bytes_per_s for b in m.brokers) for m in (before.model, model))
    return ChangedCluster(tuple(texts), after, tuple(broken), max(0, lost), brokers_missing(model), reads - reads_after)
