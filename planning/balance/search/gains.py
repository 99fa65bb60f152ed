"""Gains of possible actions: how far load outside of bands falls, and whether a hard goal refuses."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headroom.planning.balance.arrays import AnyArray, BoolArray, FloatArray, IntArray, percentile_hours
from headroom.planning.balance.model import TIMED, ClusterModel
from headroom.planning.balance.scoring.goal_set import GoalSet, with_topics
from headroom.planning.balance.scoring.loads import RESOURCES, ClusterLoads
from headroom.planning.balance.search.deltas import LoadDeltas, changed_loads, load_deltas

_KINDS = np.arange(len(TIMED))[:, None, None]


@dataclass(frozen=True, eq=False)
class Candidates:
    """N possible elections, or N possible moves.

    Attributes:
        partitions: partition, (N,).
        sources: broker that gives, (N,).
        targets: broker that takes, (N,).
        leads: whether the lead goes over, (N,).
        copies: whether replicas go over.
        bytes_copied: bytes that the plan copies more with it, (N,).
    """

    partitions: IntArray
    sources: IntArray
    targets: IntArray
    leads: BoolArray
    copies: bool
    bytes_copied: FloatArray

    def __len__(self) -> int:
        """Return their number."""
        return len(self.partitions)

    def subset(self, which: BoolArray | IntArray | list[int]) -> Candidates:
        """Return some of the candidates."""
        return Candidates(
            self.partitions[which],
            self.sources[which],
            self.targets[which],
            self.leads[which],
            self.copies,
            self.bytes_copied[which],
        )


class Gains:
    """Gains in a state that changes action by action.

    Attributes:
        outside: load of each broker outside of bands and beyond limits, in shares of the means by weight, (B,).
    """

    def __init__(self, loads: ClusterLoads, goals: GoalSet) -> None:
        self._loads, self._goals, self._model = loads, goals, loads.model
        brokers = len(self._model.brokers)
        # The percentile of a broker is a mean of two of its hours, or one of them.
        weights = percentile_hours(loads.hours[:, :1], self._model.percentile)[1]
        self._weights = weights.astype(np.float32)[:, None]
        # Where the rates of all partitions in these hours begin, for each of ``TIMED``.
        self._hours = np.zeros((len(TIMED), len(weights), brokers), dtype=np.int64)
        self.outside: FloatArray = np.zeros(brokers)
        self.update(np.arange(brokers))

    def update(self, brokers: IntArray) -> None:
        """Follow changes of the loads of brokers."""
        loads, model = self._loads, self._model
        at = percentile_hours(loads.hours.take(brokers, axis=1), model.percentile)[0].transpose(0, 2, 1)
        self._hours[:, :, brokers] = (at + _KINDS * loads.hours.shape[2]) * model.partitions
        self.outside[brokers] = self._goals.total_outside(loads.loads.take(brokers, axis=1), brokers)

    def moved_loads(self, partitions: IntArray, brokers: IntArray, leads: AnyArray, copies: bool) -> FloatArray:
        """Return what partitions add to the loads of brokers, to first order, (6, N).

        Args:
            partitions: partition of each action, (N,).
            brokers: broker at whose hours of the percentile rates count, (N,), or one for all, (1,).
            leads: whether the lead counts, (N,).
            copies: whether the replicas count.
        """
        own = self._model.rates_by_hour.take(self._hours.take(brokers, axis=2) + partitions)
        own *= self._weights
        return self._loads_of(own.sum(axis=1, dtype=np.float64), partitions, leads, copies)

    def _loads_of(self, rates: AnyArray, partitions: IntArray, leads: AnyArray, copies: bool) -> FloatArray:
        load = np.empty((RESOURCES, len(partitions)))
        load[:3], load[3], load[4], load[5] = rates, self._model.size.take(partitions), leads, copies
        load[1:3] *= leads
        if not copies:
            # A size need not be known.
            load[0:5:3] = 0.0
        return load

    def falls(self, moved: FloatArray, brokers: IntArray, sign: float) -> FloatArray:
        """Return the fall of load outside of bands where brokers take or give loads, (N,); -inf if a limit refuses.

        Args:
            moved: what each action moves, (6, N).
            brokers: broker of each, (N,), or one broker for all, (1,).
            sign: 1 if the brokers take, -1 if they give.
        """
        before = self._loads.loads.take(brokers, axis=1)
        return self._falls_to(before, before + moved if sign > 0 else before - moved, brokers)

    def _falls_to(self, before: FloatArray, after: FloatArray, brokers: IntArray) -> FloatArray:
        """Return the fall of load outside of bands if brokers have other loads, (N,); -inf if a limit refuses."""
        fall = self.outside.take(brokers) - self._goals.total_outside(after, brokers)
        fall[self._goals.beyond_limits(before, after, brokers)] = -np.inf
        return fall

    def first_order(self, candidates: Candidates) -> FloatArray:
        """Return the gains of candidates as if the hours of the percentile of each broker stayed the same, (N,)."""
        partitions, leads, brokers, first, at = _by_broker(candidates)
        moved = self.moved_loads(partitions, brokers, leads, candidates.copies)
        np.negative(moved[:, :first], out=moved[:, :first])
        fall = self.falls(moved, brokers, 1.0)
        gain: FloatArray = fall[:first].take(at)
        gain += fall[first:]
        return gain

    def may_gain(self, candidates: Candidates) -> BoolArray:
        """Return which candidates may gain, exactly or to first order, (N,).

        A percentile changes by no less than the lowest of the rates that go over, and by no more than the highest.
        """
        partitions, leads, brokers, first, at = _by_broker(candidates)
        edges = (rates.take(partitions, axis=1) for rates in self._model.rate_edges)
        low, high = (self._loads_of(rates, partitions, leads, candidates.copies) for rates in edges)
        low[:, :first], high[:, :first] = -high[:, :first], -low[:, :first]
        before = self._loads.loads.take(brokers, axis=1)
        most = self.outside.take(brokers) - self._goals.total_outside(before + low, brokers, before + high)
        # What is unknown may gain.
        hopeless: BoolArray = most[:first].take(at) + most[first:] <= 0.0
        return ~hopeless

    def exact(self, candidates: Candidates) -> FloatArray:
        """Return the gains of candidates, (N,); -inf if a hard goal refuses."""
        deltas = candidate_deltas(self._model, candidates)
        gain = self.of_deltas(deltas, candidates.sources, candidates.targets)
        return gain + self._own_gains(candidates, deltas) if self._goals.has_own_goals else gain

    def exact_in_turn(self, candidates: Candidates) -> FloatArray:
        """Return the gain of each candidate after all before it, (N,); all are between the same two brokers."""
        deltas = candidate_deltas(self._model, candidates).in_turn()
        total = self.of_deltas(deltas, candidates.sources, candidates.targets)
        with np.errstate(invalid="ignore"):
            gain: FloatArray = np.nan_to_num(np.diff(total, prepend=0.0), nan=-np.inf, posinf=-np.inf, neginf=-np.inf)
        return gain

    def of_topics(self, candidates: Candidates) -> FloatArray:
        """Return the fall of counts of topics outside of their bands, in shares of the mean by weight, (N,)."""
        own = self._model.topic[candidates.partitions]
        topics = np.concatenate([own, own])
        brokers = np.concatenate([candidates.sources, candidates.targets])
        replicas, leaders = (c[topics, brokers] for c in (self._loads.topic_replicas, self._loads.topic_leaders))
        leads = np.concatenate([candidates.leads * -1.0, candidates.leads])
        copies = np.repeat([-1.0, 1.0], len(own)) * candidates.copies
        before, after = self._goals.topic_outside(
            np.concatenate([topics, topics]),
            np.concatenate([replicas, replicas + copies]),
            np.concatenate([leaders, leaders + leads]),
        ).reshape(2, 2, -1)
        return before[0] - after[0] + before[1] - after[1]

    def of_deltas(self, deltas: LoadDeltas, sources: IntArray, targets: IntArray) -> FloatArray:
        """Return the fall of load outside of bands by loads that go over, (N,); -inf if a limit refuses."""
        brokers = np.concatenate([sources, targets])
        hours = np.concatenate([-deltas.hours, deltas.hours], axis=1)
        after = changed_loads(self._loads, brokers, hours, np.concatenate([-deltas.latest, deltas.latest], axis=1))
        given, taken = self._falls_to(self._loads.loads.take(brokers, axis=1), after, brokers).reshape(2, -1)
        gain: FloatArray = given + taken
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


def candidate_deltas(model: ClusterModel, candidates: Candidates) -> LoadDeltas:
    """Return what candidates move."""
    copies = np.full(len(candidates), candidates.copies)
    return load_deltas(model, candidates.partitions, copies, candidates.leads)


def _by_broker(candidates: Candidates) -> tuple[IntArray, BoolArray, IntArray, int, IntArray]:
    """Return partitions and leads for each broker that gives, then for each that takes, and these brokers.

    What goes to one of several brokers takes the same from its source, and stands together: it is there once. The
    others are the number of those that give, and the place of each candidate among them, (N,).
    """
    c = candidates
    new = np.ones(len(c), dtype=np.bool_)
    new[1:] = (c.partitions[1:] != c.partitions[:-1]) | (c.sources[1:] != c.sources[:-1])
    first = new.nonzero()[0]
    own, leads = (np.concatenate([values.take(first), values]) for values in (c.partitions, c.leads))
    return own, leads, np.concatenate([c.sources.take(first), c.targets]), len(first), new.cumsum() - 1
