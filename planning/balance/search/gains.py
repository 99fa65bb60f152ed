"""Gains of possible actions: how far load outside of bands falls, and whether a hard goal refuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from headroom.planning.balance.arrays import AnyArray, BoolArray, FloatArray, IntArray, percentile_position
from headroom.planning.balance.model import TIMED
from headroom.planning.balance.scoring.goal_set import GoalSet, with_topics
from headroom.planning.balance.scoring.loads import RESOURCES, ClusterLoads
from headroom.planning.balance.search.deltas import LoadDeltas, changed_loads, load_deltas


@dataclass(frozen=True, eq=False)
class Candidates:
    """N possible elections or moves.

    Attributes:
        partitions: partition, (N,).
        sources: broker that gives, (N,).
        targets: broker that takes, (N,).
        leads: whether the lead goes over, (N,).
        copies: whether a replica goes over, (N,).
        bytes_copied: bytes that the plan copies more with it, (N,).
    """

    partitions: IntArray
    sources: IntArray
    targets: IntArray
    leads: BoolArray
    copies: BoolArray
    bytes_copied: FloatArray

    def __len__(self) -> int:
        """Return their number."""
        return len(self.partitions)

    def subset(self, which: BoolArray | IntArray) -> Candidates:
        """Return some of the candidates."""
        return Candidates(
            self.partitions[which],
            self.sources[which],
            self.targets[which],
            self.leads[which],
            self.copies[which],
            self.bytes_copied[which],
        )


def join_candidates(parts: Sequence[Candidates]) -> Candidates:
    """Return the candidates of all parts."""
    return Candidates(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Candidates)))


class Gains:
    """Gains in a state that changes action by action.

    Attributes:
        outside: load of each broker outside of bands and beyond limits, in shares of the means by weight, (B,).
    """

    def __init__(self, loads: ClusterLoads, goals: GoalSet) -> None:
        self._loads, self._goals, self._model = loads, goals, loads.model
        brokers, hours = len(self._model.brokers), self._model.write.shape[1]
        below, share = percentile_position(hours, self._model.percentile)
        # The percentile of a broker is a mean of two of its hours.
        self._places = [(below, 1.0 - share), (below + 1, share)] if share else [(below, 1.0)]
        self._hours = np.zeros((len(TIMED), len(self._places), brokers), dtype=np.int64)
        self.outside: FloatArray = np.zeros(brokers)
        self.update(np.arange(brokers))

    def update(self, brokers: IntArray) -> None:
        """Follow changes of the loads of brokers."""
        order = np.argsort(self._loads.hours[:, brokers], axis=2, kind="stable")
        for number, (place, _) in enumerate(self._places):
            self._hours[:, number, brokers] = order[:, :, place]
        self.outside[brokers] = self._goals.total_outside(self._loads.loads[:, brokers], brokers)

    def moved_loads(self, partitions: IntArray, brokers: IntArray, leads: AnyArray, copies: AnyArray) -> FloatArray:
        """Return what partitions add to the loads of brokers, to first order, (6, N).

        Args:
            partitions: partition of each action, (N,).
            brokers: broker at whose hours of the percentile rates count, (N,), or one for all, (1,).
            leads: whether the lead counts, (N,).
            copies: whether the replica counts, (N,).
        """
        load = np.empty((RESOURCES, len(partitions)))
        for number, rates in enumerate(self._model.rates_by_hour):
            load[number] = 0.0
            for place, (_, weight) in enumerate(self._places):
                hours = self._hours[number, place, brokers]
                own = rates[hours[0]].take(partitions) if len(brokers) == 1 else rates[hours, partitions]
                load[number] += weight * own
        load[3], load[4], load[5] = self._model.size[partitions], 1.0, 1.0
        load[[1, 2, 4]] *= leads
        load[[0, 3, 5]] *= copies
        return load

    def falls(self, moved: FloatArray, brokers: IntArray, sign: float) -> FloatArray:
        """Return the fall of load outside of bands where brokers take or give loads, (N,); -inf if a limit refuses.

        Args:
            moved: what each action moves, (6, N).
            brokers: broker of each, (N,), or one for all, (1,).
            sign: 1 if the brokers take, -1 if they give.
        """
        return self._falls_to(self._loads.loads[:, brokers] + sign * moved, brokers)

    def _falls_to(self, after: FloatArray, brokers: IntArray) -> FloatArray:
        """Return the fall of load outside of bands if brokers have other loads, (N,); -inf if a limit refuses."""
        fall = self.outside[brokers] - self._goals.total_outside(after, brokers)
        fall[self._goals.beyond_limits(self._loads.loads[:, brokers], after, brokers)] = -np.inf
        return fall

    def first_order(self, candidates: Candidates) -> FloatArray:
        """Return the gains of candidates as if the hours of the percentile of each broker stayed the same, (N,)."""
        gain = np.zeros(len(candidates))
        for own, sign in ((candidates.sources, -1.0), (candidates.targets, 1.0)):
            brokers = own[:1] if len(own) and (own == own[0]).all() else own
            gain += self.falls(
                self.moved_loads(candidates.partitions, brokers, candidates.leads, candidates.copies), brokers, sign
            )
        return gain

    def exact(self, candidates: Candidates) -> FloatArray:
        """Return the gains of candidates, (N,); -inf if a hard goal refuses."""
        deltas = load_deltas(self._model, candidates.partitions, candidates.copies, candidates.leads)
        gain = self.of_deltas(deltas, candidates.sources, candidates.targets)
        return gain + self._own_gains(candidates, deltas) if self._goals.has_own_goals else gain

    def exact_in_turn(self, candidates: Candidates) -> FloatArray:
        """Return the gain of each candidate after all before it, (N,); all are between the same two brokers."""
        deltas = load_deltas(self._model, candidates.partitions, candidates.copies, candidates.leads).in_turn()
        total = self.of_deltas(deltas, candidates.sources, candidates.targets)
        with np.errstate(invalid="ignore"):
            gain: FloatArray = np.nan_to_num(np.diff(total, prepend=0.0), nan=-np.inf, posinf=-np.inf, neginf=-np.inf)
        return gain

    def of_topics(self, candidates: Candidates) -> FloatArray:
        """Return the fall of counts of topics outside of their bands, in shares of the mean by weight, (N,)."""
        topics = self._model.topic[candidates.partitions]
        gain = np.zeros(len(candidates))
        for brokers, sign in ((candidates.sources, -1.0), (candidates.targets, 1.0)):
            replicas, leaders = (c[topics, brokers] for c in (self._loads.topic_replicas, self._loads.topic_leaders))
            gain += self._goals.topic_outside(topics, replicas, leaders)
            gain -= self._goals.topic_outside(
                topics, replicas + sign * candidates.copies, leaders + sign * candidates.leads
            )
        return gain

    def of_deltas(self, deltas: LoadDeltas, sources: IntArray, targets: IntArray) -> FloatArray:
        """Return the fall of load outside of bands by loads that go over, (N,); -inf if a limit refuses."""
        gain = np.zeros(len(sources))
        for brokers, sign in ((sources, -1.0), (targets, 1.0)):
            after = changed_loads(self._loads, brokers, sign * deltas.hours, sign * deltas.latest)
            gain += self._falls_to(after, brokers)
        return gain

    def _own_gains(self, candidates: Candidates, deltas: LoadDeltas) -> FloatArray:
        """Return what goals of others take off the gains, (N,); -inf if a hard one refuses."""
        topics = self._model.topic[candidates.partitions].astype(np.int64)
        total = np.zeros(len(candidates))
        for brokers, sign in ((candidates.sources, -1.0), (candidates.targets, 1.0)):
            before = with_topics(self._loads.usage(brokers), self._loads, topics)
            after = replace(
                before,
                loads=changed_loads(self._loads, brokers, sign * deltas.hours, sign * deltas.latest),
                topic_replicas=before.topic_replicas + sign * candidates.copies,
                topic_leaders=before.topic_leaders + sign * candidates.leads,
            )
            total += self._goals.own_gains(before, after)
        return np.minimum(total, 0.0)
