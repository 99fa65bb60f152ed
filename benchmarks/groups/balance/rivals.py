"""Other ways to balance the same clusters, held against the same bands.

- Busiest partition first at any price, as AutoMQ's goals do it: each broker outside its band gives its busiest
  partitions to the brokers that score best, or takes the busiest of others.
- Goal by goal, as Cruise Control documents it: each goal in turn, and no later goal may undo an earlier one.
- Kafka's ``--generate``, which assigns every replica again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.groups.balance.scores import ActionScores
from headroom.planning.balance.arrays import IntArray
from headroom.planning.balance.goals.goal import BalanceGoal
from headroom.planning.balance.model import OF_LEADERS, ClusterModel, Resource
from headroom.planning.balance.scoring.goal_set import GoalSet
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.scoring.racks import keeps_racks

# The order of Cruise Control's default goals, as far as they have a counterpart.
GOAL_BY_GOAL = ("replicas", "disk", "network_in", "network_out", "requests", "leaders")
_LEAST = 1e-9


@dataclass(frozen=True)
class RivalResult:
    """What another planner copies.

    Attributes:
        bytes_copied: bytes.
        moves: replicas.
        outside: load outside of bands that is left, in shares of the means.
    """

    bytes_copied: float
    moves: int
    outside: float


def load_first(model: ClusterModel, goals: Sequence[BalanceGoal]) -> RivalResult:
    """Return what busiest partition first copies."""
    loads = ClusterLoads(model)
    return _settle(loads, GoalSet(goals, loads), None)


def goal_by_goal(model: ClusterModel, goals: Sequence[BalanceGoal]) -> RivalResult:
    """Return what one goal after another copies."""
    loads = ClusterLoads(model)
    every = GoalSet(goals, loads)
    by_name = {goal.name: goal for goal in goals}
    hard = [goal for goal in goals if goal.hard]
    copied, moves = 0.0, 0
    before: list[BalanceGoal] = []
    for name in GOAL_BY_GOAL:
        result = _settle(loads, GoalSet([*hard, by_name[name], *before], loads), name)
        copied, moves = copied + result.bytes_copied, moves + result.moves
        before.append(by_name[name])
    return RivalResult(copied, moves, _outside(every, loads))


def generated(model: ClusterModel, seed: int = 1) -> RivalResult:
    """Return what a new assignment of every replica copies, as ``kafka-reassign-partitions.sh --generate`` makes it.

    Source: Kafka 4.3, ``StripedReplicaPlacer`` and its predecessor ``AdminUtils.assignReplicasToBrokers``: a random
    first broker per topic, and followers at a shift that grows with every round over the brokers.
    """
    draw = np.random.default_rng(seed)
    brokers, slots = len(model.brokers), model.replicas.shape[1]
    first = draw.integers(brokers, size=len(model.topics))[model.topic]
    shift = draw.integers(brokers, size=len(model.topics))[model.topic] + model.partition // brokers
    leader = (first + model.partition) % brokers
    rows = [leader]
    for follower in range(slots - 1):
        rows.append((leader + 1 + (shift + follower) % (brokers - 1)) % brokers)
    target = np.stack(rows, axis=1)
    new = ~(target[:, :, None] == model.replicas[:, None, :]).any(axis=2)
    return RivalResult(float((new * model.size[:, None]).sum()), int(new.sum()), 0.0)


def _outside(goals: GoalSet, loads: ClusterLoads) -> float:
    return float(goals.outside(loads.loads, np.arange(len(loads.model.brokers))).sum())


def _settle(loads: ClusterLoads, goals: GoalSet, only: str | None) -> RivalResult:
    """Bring brokers into their bands, the busiest partitions first; return what that copies.

    Args:
        loads: the state; it is changed.
        goals: the goals.
        only: goal that is settled; the others may not get worse. None: all soft goals.
    """
    model, copied, moves = loads.model, 0.0, 0
    every = np.arange(len(model.brokers))
    rows = [n for n, goal in enumerate(goals.resource_goals) if not goal.hard and only in (None, goal.name)]
    scores = ActionScores(goals)
    moved = np.zeros(model.partitions, dtype=np.bool_)
    for row in rows:
        stuck: set[int] = set()
        while True:
            outside = goals.outside(loads.loads, every)[row]
            outside[list(stuck)] = 0.0
            broker = int(np.argmax(outside))
            if outside[broker] <= _LEAST:
                break
            taken = _one(loads, goals, scores, row, broker, moved, only is not None)
            if taken is None:
                stuck.add(broker)
            else:
                copied, moves = copied + taken, moves + (taken > 0)
    return RivalResult(copied, moves, _outside(goals, loads))


def _one(
    loads: ClusterLoads,
    goals: GoalSet,
    scores: ActionScores,
    row: int,
    broker: int,
    moved: np.ndarray,
    elect_first: bool,
) -> float | None:
    """Take the busiest partition that helps a broker; return the bytes copied, or None if there is none."""
    model, resource = loads.model, Resource(goals.resources[row])
    gives = bool(loads.loads[resource, broker] > goals.upper[row, broker])
    rate = {0: model.write, 1: model.sent_rate, 2: model.requests}.get(int(resource))
    weight = model.size if rate is None else rate.max(axis=1)
    has = (loads.replicas == broker).any(axis=1)
    of_leaders = resource in OF_LEADERS
    for elects in (True, False) if elect_first and of_leaders else (False,):
        if gives:
            usable = has & ~moved & ((loads.leader == broker) | (not of_leaders))
        else:
            usable = ~moved & (has & (loads.leader != broker) if elects else ~has)
        order = np.flatnonzero(usable)
        order = order[np.argsort(-weight[order], kind="stable")][:200]
        for partition in order.tolist():
            pair = _best(loads, scores, row, partition, broker, gives, elects, of_leaders)
            if pair is None:
                continue
            source, target = pair
            if elects:
                loads.elect(np.array([partition]), source, target)
                return 0.0
            loads.move(np.array([partition]), source, target)
            moved[partition] = True
            return float(model.size[partition])
    return None


def _best(
    loads: ClusterLoads,
    scores: ActionScores,
    row: int,
    partition: int,
    broker: int,
    gives: bool,
    elects: bool,
    of_leaders: bool,
) -> tuple[int, int] | None:
    """Return the source and target that score best for a partition; None if no action is accepted."""
    model, replicas = loads.model, loads.replicas[partition]
    every = np.arange(len(model.brokers))
    leader = int(loads.leader[partition])
    if gives:
        targets = replicas[replicas != broker].astype(np.int64) if elects else np.setdiff1d(every, replicas)
        sources: IntArray = np.full(len(targets), broker)
    else:
        sources = np.array([leader]) if elects or of_leaders else replicas.astype(np.int64)
        targets = np.full(len(sources), broker)
    if not elects:
        rows = np.repeat(replicas[None], len(targets), axis=0)
        fits = keeps_racks(model, rows, sources, targets)
        sources, targets = sources[fits], targets[fits]
    if not len(targets):
        return None
    leads = (sources == leader) | elects
    copies = np.full(len(targets), not elects)
    own = int(scores.group_of[row])
    settled = np.ones(len(scores.groups), dtype=np.bool_)
    settled[own] = False
    accepted, score = scores.accepted(loads, partition, sources, targets, leads, copies, own, settled)
    if not accepted.any():
        return None
    best = int(np.argmax(np.where(accepted, score, -np.inf)))
    return int(sources[best]), int(targets[best])
