"""Scores of actions by AutoMQ's rule, by which the rivals choose: the worst of both brokers after it and before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from headroom.planning.balance.arrays import BoolArray, FloatArray, IntArray
from headroom.planning.balance.goals.bands import LoadBounds
from headroom.planning.balance.goals.goal import BrokerUsage
from headroom.planning.balance.goals.resource_goals import CapacityLimit, ResourceBand
from headroom.planning.balance.scoring.goal_set import GoalSet, goal_holds, goal_score, with_topics
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.search.deltas import changed_loads, load_deltas


class ActionScores:
    """Scores of actions between two brokers each.

    Args:
        bands: the goals with their bounds.

    Attributes:
        groups: names of the groups of goals in their order.
        group_of: index of the group of each resource goal, (K,).
    """

    def __init__(self, bands: GoalSet) -> None:
        self._bands, goals = bands, bands.goals
        self.groups = tuple(dict.fromkeys(goal.group for goal in goals))
        self.group_of = np.array([self.groups.index(goal.group) for goal in bands.resource_goals])
        self._weights = np.zeros((len(self.groups), len(goals)))
        for number, goal in enumerate(goals):
            self._weights[self.groups.index(goal.group), number] = goal.weight
        self._weights /= self._weights.sum(axis=1, keepdims=True)
        kinds = (ResourceBand, CapacityLimit)
        self._rows = [number for number, goal in enumerate(goals) if isinstance(goal, kinds)]

    def accepted(
        self,
        loads: ClusterLoads,
        partition: int,
        sources: IntArray,
        targets: IntArray,
        leads: BoolArray,
        copies: BoolArray,
        group: int,
        settled: BoolArray,
    ) -> tuple[BoolArray, FloatArray]:
        """Return which actions with a partition are accepted for a group, and their scores in it, (N,) each.

        An action must score above 0 in the group and not below 0 in a settled one, and no hard goal may refuse it.
        """
        own = np.full(len(sources), partition)
        deltas, topics = load_deltas(loads.model, own, copies, leads), loads.model.topic[own].astype(np.int64)
        before, after = [], []
        for brokers, sign in ((sources, -1.0), (targets, 1.0)):
            usage = with_topics(loads.usage(brokers), loads, topics)
            before.append(usage)
            after.append(
                replace(
                    usage,
                    loads=changed_loads(loads, brokers, sign * deltas.hours, sign * deltas.latest),
                    topic_replicas=usage.topic_replicas + sign * copies,
                    topic_leaders=usage.topic_leaders + sign * leads,
                )
            )
        changes = np.minimum(*map(self._scores, after)) - np.minimum(*map(self._scores, before))
        hard = np.flatnonzero([goal.hard for goal in self._bands.goals])
        held, hold = ([self._holds(usage)[hard] for usage in usages] for usages in (before, after))
        broken = (held[0] & ~hold[0]) | (held[1] & ~hold[1])
        still = (~held[0] & ~hold[0]) | (~held[1] & ~hold[1])
        refused = (broken | (still & (changes[hard] < 0))).any(axis=0)
        by_group = self._weights @ changes
        return ~refused & (by_group[group] > 0) & (by_group[settled] >= 0).all(axis=0), by_group[group]

    def _scores(self, usage: BrokerUsage) -> FloatArray:
        bands, own = self._bands, usage.brokers
        scores = np.ones((len(bands.goals), len(own)))
        lengths = [bands.bounds[number].length for number in self._rows]
        for row, number in enumerate(self._rows):
            edges = bands.lower[row, own], bands.upper[row, own]
            bounds = LoadBounds(*edges, bands.mean[row, own], lengths[row][own], *edges, float(bands.detect_below[row]))
            scores[number] = bounds.score(usage.loads[bands.resources[row]])
        for number in self._others():
            scores[number] = goal_score(bands.goals[number], bands.bounds[number], usage)
        return scores

    def _holds(self, usage: BrokerUsage) -> BoolArray:
        bands = self._bands
        held = np.ones((len(bands.goals), len(usage.brokers)), dtype=np.bool_)
        held[self._rows] = usage.loads[bands.resources] <= bands.upper[:, usage.brokers]
        for number in self._others():
            if bands.goals[number].hard:
                held[number] = goal_holds(bands.goals[number], bands.bounds[number], usage)
        return held

    def _others(self) -> Sequence[int]:
        return [number for number in range(len(self._bands.goals)) if number not in self._rows]
