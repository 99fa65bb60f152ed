"""What the batches that are left of a proposal still gain, and which of their brokers can no longer take part."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headroom.planning.balance.goals.goal import BalanceGoal
from headroom.planning.balance.model import NO_BROKER, BalanceBroker, ClusterModel, Resource
from headroom.planning.balance.scoring.goal_set import GoalSet, goal_holds, goal_score
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.schemas.keys import TopicPartition

# Load outside of bands below this is rounding.
_NOTHING = 1e-9


@dataclass(frozen=True)
class RestOfProposal:
    """The batches that are left, weighed again.

    Attributes:
        outside_before: load outside of bands now, in shares of the means.
        outside_after: the same after all batches that are left.
        broken_before: number of hard goals that a broker does not hold now, each broker by itself, and of replicas on
            a rack with too many of their partition.
        broken_after: the same after all batches that are left.
        gone: brokers that are to get replicas, or to lead, and are not alive.
        unknown: brokers that are alive, whose replicas they change, and whose metrics are unknown or stale.
        copies: whether they copy any replica.
        closed: brokers that are to get replicas and take nothing now, or that are to lead and give leads away now.
        unweighed: partitions that are to move, or to be elected, and of which a load that goes with that is unknown.
        breaking: hard goals that a broker does not hold after all batches that are left, and holds now or holds less
            then: name of the goal, and id of the broker.
    """

    outside_before: float
    outside_after: float
    broken_before: int
    broken_after: int
    gone: tuple[int, ...]
    unknown: tuple[int, ...]
    copies: bool
    closed: tuple[BalanceBroker, ...] = ()
    unweighed: tuple[TopicPartition, ...] = ()
    breaking: tuple[tuple[str, int], ...] = ()

    @property
    def gains(self) -> bool:
        """Whether less load is outside of bands after them, or more hard goals hold."""
        return self.outside_after < self.outside_before - _NOTHING or self.broken_after < self.broken_before

    @property
    def is_worth_it(self) -> bool:
        """Whether they gain; or copy nothing, and do no harm."""
        is_harmless = self.outside_after <= self.outside_before + _NOTHING and self.broken_after <= self.broken_before
        return self.gains or (not self.copies and is_harmless)


def rest_of_proposal(
    model: ClusterModel, goals: Sequence[BalanceGoal], plans: Sequence[ReassignmentPlan]
) -> RestOfProposal:
    """Return what the plans of the batches that are left gain in a cluster.

    Each partition of them, which exists, has its last target replicas then, and is led by the first of these.

    Raises:
        HeadroomError: a goal fails.
    """
    targets = {target.name: target.replicas for plan in plans for target in plan}
    final = {row: targets[name] for row in range(model.partitions) if (name := model.name(row)) in targets}
    at = {broker.broker: index for index, broker in enumerate(model.brokers)}
    before = ClusterLoads(model)
    bands = GoalSet(goals, before)
    outside, broken = _weight(bands, before)
    new = {row: set(target).difference(model.broker_ids(model.replicas[row])) for row, target in final.items()}
    copies = any(new.values())
    # A replica on a broker that is down may stay there, but not lead.
    needed = {broker for row, target in final.items() for broker in (target[0], *new[row])}
    gone = needed - {broker.broker for broker in model.brokers if broker.alive}
    if gone:
        return RestOfProposal(outside, outside, broken, broken, tuple(sorted(gone)), (), copies)
    more = max(0, max(map(len, final.values()), default=0) - model.replicas.shape[1])
    replicas = np.pad(model.replicas, ((0, 0), (0, more)), constant_values=NO_BROKER)
    in_sync, leader = np.pad(model.in_sync, ((0, 0), (0, more))), model.leader.copy()
    changed: set[int] = set()
    for row, brokers in final.items():
        target = [at[broker] for broker in brokers]
        if int(leader[row]) != target[0]:
            changed |= {int(leader[row]), target[0]}
        changed |= set(replicas[row].tolist()) ^ set(target)
        replicas[row], in_sync[row] = NO_BROKER, False
        replicas[row, : len(target)], in_sync[row, : len(target)] = target, True
        leader[row] = target[0]
    changed.discard(NO_BROKER)
    states = [model.brokers[index] for index in changed if not model.is_counted[index]]
    unknown = sorted(state.broker for state in states if state.alive)
    then = ClusterLoads(replace(model, replicas=replicas, in_sync=in_sync, leader=leader))
    outside_after, broken_after = _weight(bands, then)
    return RestOfProposal(
        outside,
        outside_after,
        broken,
        broken_after,
        (),
        tuple(unknown),
        copies,
        tuple(_closed(model, final, new)),
        tuple(_unweighed(model, final, new)),
        tuple(_breaking(bands, before, then)),
    )


def _closed(
    model: ClusterModel, final: Mapping[int, Sequence[int]], new: Mapping[int, Collection[int]]
) -> Iterator[BalanceBroker]:
    """Yield the brokers that take nothing now and are to get replicas, and those that shed leads and are to get some.

    Args:
        model: the cluster.
        final: replicas that partitions, by index, are to have, as ids.
        new: those of them that they do not have yet.
    """
    arriving = {broker for brokers in new.values() for broker in brokers}
    elected = {brokers[0] for row, brokers in final.items() if not _leads(model, row, brokers[0])}
    for broker in model.brokers:
        sheds_leads = broker.broker in elected and Resource.LEADERS in broker.sheds
        if sheds_leads or (broker.broker in arriving and broker.takes):
            yield broker


def _unweighed(
    model: ClusterModel, final: Mapping[int, Sequence[int]], new: Mapping[int, Collection[int]]
) -> Iterator[TopicPartition]:
    """Yield the partitions that are to move or to be elected without it being known what goes over; see ``_closed``."""
    for row, brokers in final.items():
        is_known = bool(model.rates_known[row]) and (not new[row] or bool(np.isfinite(model.size[row])))
        if not is_known and (new[row] or not _leads(model, row, brokers[0])):
            yield model.name(row)


def _leads(model: ClusterModel, partition: int, broker: int) -> bool:
    """Return whether a broker, by id, leads a partition."""
    leader = int(model.leader[partition])
    return leader != NO_BROKER and model.brokers[leader].broker == broker


def _breaking(bands: GoalSet, before: ClusterLoads, then: ClusterLoads) -> Iterator[tuple[str, int]]:
    """Yield the hard goals that a broker no longer holds then, or holds still less, with the id of the broker."""
    every = np.arange(len(before.model.brokers))
    usages = before.usage(every), then.usage(every)
    for goal, bounds in zip(bands.goals, bands.bounds, strict=True):
        if not goal.hard:
            continue
        held, holds = (goal_holds(goal, bounds, usage) for usage in usages)
        score, score_then = (goal_score(goal, bounds, usage) for usage in usages)
        for broker in np.flatnonzero(~holds & (held | (score_then < score - _NOTHING))).tolist():
            yield goal.name, before.model.brokers[broker].broker


def _weight(bands: GoalSet, loads: ClusterLoads) -> tuple[float, int]:
    """Return the load outside of bands, and the hard goals that do not hold."""
    every = np.arange(len(loads.model.brokers))
    usage = loads.usage(every)
    hard = [(goal, bounds) for goal, bounds in zip(bands.goals, bands.bounds, strict=True) if goal.hard]
    broken = sum(int((~goal_holds(goal, bounds, usage)).sum()) for goal, bounds in hard) + int(loads.crowded.sum())
    return float(bands.outside(loads.loads, every).sum()), broken
