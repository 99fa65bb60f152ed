"""Loads after each action of a sequence, computed for all actions at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headroom.planning.balance.arrays import BoolArray, FloatArray, IntArray
from headroom.planning.balance.model import ClusterModel
from headroom.planning.balance.scoring.goal_set import GoalSet
from headroom.planning.balance.scoring.loads import RESOURCES, ClusterLoads
from headroom.planning.balance.search.actions import ActionKind, BalanceAction
from headroom.planning.balance.search.deltas import LoadDeltas, changed_loads, load_deltas


@dataclass(frozen=True, eq=False)
class LoadEvents:
    """Changes of brokers by a sequence of actions, sorted by broker, then by action, with what arrives first.

    An election or move has two events (E in all), a swap four.

    Attributes:
        actions: index of the action, (E,).
        brokers: broker whose load changes, (E,).
        before: loads before the event, (6, E).
        after: loads after it, (6, E).
    """

    actions: IntArray
    brokers: IntArray
    before: FloatArray
    after: FloatArray

    def totals(self, start: float, changes: FloatArray, actions: int) -> FloatArray:
        """Return a total at the start and after each action, (N + 1,).

        Args:
            start: total at the start.
            changes: change of the total by each event, (E,).
            actions: number of actions.
        """
        per_action = np.bincount(self.actions, weights=changes, minlength=actions)
        totals: FloatArray = start + np.concatenate([[0.0], np.cumsum(per_action)])
        return totals


def action_deltas(model: ClusterModel, actions: Sequence[BalanceAction]) -> LoadDeltas:
    """Return what each action takes from its source and gives to its target; for a swap, the difference."""
    partitions = np.array([a.partition for a in actions], dtype=np.int64)
    copies = np.array([a.kind is not ActionKind.ELECT for a in actions], dtype=np.bool_)
    leads = np.array([a.leads for a in actions], dtype=np.bool_)
    deltas = load_deltas(model, partitions, copies, leads)
    swaps = np.array([n for n, a in enumerate(actions) if a.kind is ActionKind.SWAP], dtype=np.int64)
    if len(swaps):
        others = np.array([actions[n].swapped for n in swaps], dtype=np.int64)
        lead = np.array([actions[n].swapped_leads for n in swaps], dtype=np.bool_)
        back = load_deltas(model, others, np.ones(len(swaps), dtype=np.bool_), lead)
        deltas.hours[:, swaps] -= back.hours
        deltas.latest[:, swaps] -= back.latest
    return deltas


def load_events(loads: ClusterLoads, actions: Sequence[BalanceAction]) -> LoadEvents:
    """Return the loads of the brokers of each action before and after each change.

    Args:
        loads: state before the first action; it is not changed.
        actions: actions in their order.
    """
    # A swap counts as two moves, both of which arrive before anything leaves.
    halves = [
        half
        for number, a in enumerate(actions)
        for half in (
            (number, a.partition, a.source, a.target, a.leads, a.kind is not ActionKind.ELECT),
            (number, a.swapped, a.target, a.source, a.swapped_leads, True),
        )[: max(1, a.copies)]
    ]
    number, partitions, sources, targets, leads, copies = np.array(halves, dtype=np.int64).reshape(-1, 6).T
    deltas = load_deltas(loads.model, partitions, copies.astype(np.bool_), leads.astype(np.bool_))
    rows = np.tile(np.arange(len(halves)), 2)
    brokers = np.concatenate([targets, sources])
    sign = np.repeat([1.0, -1.0], len(halves))
    order = np.lexsort((-sign, number[rows], brokers))
    rows, brokers, sign = rows[order], brokers[order], sign[order]
    first = np.flatnonzero(np.r_[True, brokers[1:] != brokers[:-1]]) if len(order) else np.zeros(0, dtype=np.int64)
    hours = _sums(deltas.hours[:, rows] * sign[:, None], first)
    latest = _sums(deltas.latest[:, rows] * sign, first)
    after = changed_loads(loads, brokers, hours, latest)
    before = np.concatenate([np.zeros((RESOURCES, 1)), after[:, :-1]], axis=1) if len(order) else after
    before[:, first] = loads.loads[:, brokers[first]]
    return LoadEvents(number[rows], brokers, before, after)


def _sums(values: FloatArray, first: IntArray) -> FloatArray:
    """Return running sums over the second axis that start again at each of the places ``first``."""
    total = np.cumsum(values, axis=1)
    if len(first) < 2:
        return total
    lengths = np.diff(np.r_[first, values.shape[1]])
    offsets = np.concatenate([np.zeros_like(total[:, :1]), total[:, first[1:] - 1]], axis=1)
    sums: FloatArray = total - np.repeat(offsets, lengths, axis=1)
    return sums


def breaks_limits(goals: GoalSet, events: LoadEvents) -> BoolArray:
    """Return which events take a broker beyond a limit, or further beyond one, (E,)."""
    return goals.beyond_limits(events.before, events.after, events.brokers)
