"""A plain greedy search, as a rival: the worst broker takes the election or move with the most exact gain per byte.

It keeps the same bands, limits and racks as a proposal, and a partition gains at most one replica.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.groups.balance.rivals import RivalResult
from headroom.planning.balance.arrays import BoolArray, FloatArray, IntArray, hourly_percentile
from headroom.planning.balance.goals.goal import BalanceGoal
from headroom.planning.balance.model import NO_BROKER, ClusterModel
from headroom.planning.balance.scoring.goal_set import GoalSet
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.scoring.racks import keeps_racks
from headroom.planning.balance.search.limits import MOVE_OVERHEAD_BYTES

_LEAST = 1e-9


def greedy(model: ClusterModel, goals: Sequence[BalanceGoal]) -> RivalResult:
    """Return what the search copies, and what it leaves outside of the bands of its end state."""
    loads = ClusterLoads(model)
    bands, moved = GoalSet(goals, loads), np.zeros(model.partitions, dtype=np.bool_)
    every, stuck = np.arange(len(model.brokers)), np.zeros(len(model.brokers), dtype=np.bool_)
    copied, moves = 0.0, 0
    while True:
        worst = np.where(stuck, 0.0, bands.outside(loads.loads, every).sum(axis=0))
        broker = int(np.argmax(worst))
        if worst[broker] <= _LEAST:
            return RivalResult(copied, moves, GoalSet(goals, loads).start_outside)
        partitions, sources, targets, copies = _candidates(loads, broker, moved)
        leads = loads.leader[partitions] == sources
        gain = _gain(loads, bands, partitions, sources, targets, copies, leads)
        worth = gain / (np.where(copies, model.size[partitions], 0.0) + MOVE_OVERHEAD_BYTES)
        if not len(worth) or worth.max() * MOVE_OVERHEAD_BYTES <= _LEAST:
            stuck[broker] = True
            continue
        stuck[:] = False
        best = int(np.argmax(worth))
        own, source, target = partitions[[best]], int(sources[best]), int(targets[best])
        if copies[best]:
            loads.move(own, source, target)
            moved[own], copied, moves = True, copied + float(model.size[own[0]]), moves + 1
        else:
            loads.elect(own, source, target)


def _candidates(loads: ClusterLoads, broker: int, moved: BoolArray) -> tuple[IntArray, IntArray, IntArray, BoolArray]:
    """Return the elections and moves from and to a broker: partitions, sources, targets, and which are moves."""
    replicas, leader = loads.replicas, loads.leader.astype(np.int64)
    every = np.arange(len(loads.model.brokers))
    row, slot = np.nonzero((replicas != NO_BROKER) & ~moved[:, None])
    holder = replicas[row, slot].astype(np.int64)
    away, there = row[holder == broker], row[holder != broker]
    moves = (
        np.concatenate([np.repeat(away, len(every)), there]),
        np.concatenate([np.full(len(away) * len(every), broker), holder[holder != broker]]),
        np.concatenate([np.tile(every, len(away)), np.full(len(there), broker)]),
    )
    rows = replicas[moves[0]]
    fits = (rows != moves[2][:, None]).all(axis=1) & keeps_racks(loads.model, rows, moves[1], moves[2])
    # A replica that has moved does not lead before its copy ends.
    in_elections = (holder != leader[row]) & ((leader[row] == broker) | (holder == broker))
    elected = row[in_elections], leader[row[in_elections]], holder[in_elections]
    partitions, sources, targets = (np.concatenate([e, m[fits]]) for e, m in zip(elected, moves, strict=True))
    copies = np.arange(len(partitions)) >= len(elected[0])
    usable = loads.model.may_give[sources] & loads.model.may_take[targets]
    return partitions[usable], sources[usable], targets[usable], copies[usable]


def _gain(
    loads: ClusterLoads,
    bands: GoalSet,
    partitions: IntArray,
    sources: IntArray,
    targets: IntArray,
    copies: BoolArray,
    leads: BoolArray,
) -> FloatArray:
    """Return the exact fall of load outside of bands; 0 where a limit would be broken."""
    model, gain = loads.model, np.zeros(len(partitions))
    hours = np.stack(
        [
            model.write[partitions] * copies[:, None],
            model.sent_rate[partitions] * leads[:, None],
            model.requests[partitions] * leads[:, None],
        ]
    )
    latest = np.stack([model.size[partitions] * copies, leads * 1.0, copies * 1.0])
    limits = np.array([goal.hard for goal in bands.resource_goals])
    for brokers, sign in ((sources, -1.0), (targets, 1.0)):
        before, after = loads.loads[:, brokers], np.empty((6, len(brokers)))
        after[:3] = hourly_percentile(loads.hours[:, brokers] + sign * hours, model.percentile)
        after[3:] = before[3:] + sign * latest
        gain += (bands.outside(before, brokers) - bands.outside(after, brokers)).sum(axis=0)
        own = bands.resources[limits]
        beyond = (after[own] > bands.upper[limits][:, brokers]) & (after[own] > before[own])
        gain[beyond.any(axis=0)] = -np.inf
    return np.where(np.isfinite(gain), gain, 0.0)
