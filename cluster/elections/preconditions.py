"""Whether a batch of elections is still as planned, before it and after it: the first thing that is not, in words."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from cluster.elections.leadership import LeadershipSnapshot
from planning.elections.planner import WHY, Batch, BatchLimits, Name, PartitionState, plan_elections
from schemas.errors import HeadroomError

RESUME = "See to it, then run the same command again: it plans from what is there then."
_NAMED = 3
_TOO_MANY = "with the others of its batch a broker or a throttle would have to carry more than it can"


def to_elect(batch: Batch, start: LeadershipSnapshot, now: LeadershipSnapshot, limits: BatchLimits) -> tuple[Name, ...]:
    """Return the partitions of a batch that still need their election.

    Args:
        batch: as planned.
        start: the cluster when the plan was made.
        now: the cluster now.
        limits: with which the plan was made.

    Raises:
        HeadroomError: a partition cannot be elected as planned any more, or one of the cluster lacks a replica since.
    """
    _require_none_lacking(start, now)
    held_back = _held_back(batch.partitions, now, limits)
    for name in batch.partitions:
        changed = _changed(start.partitions[name], now.partitions.get(name), held_back.get(name))
        if changed is not None:
            raise HeadroomError(list_partitions([name]), f"cannot be elected as planned: {changed}", RESUME)
    return tuple(name for name in batch.partitions if not by_preferred(now.partitions[name]))


def unsettled(names: Collection[Name], start: LeadershipSnapshot, now: LeadershipSnapshot) -> str | None:
    """Return what a batch still lacks: leaders that have not moved, or replicas that are not in sync; None: nothing.

    Args:
        names: the partitions of the batch.
        start: the cluster when the plan was made.
        now: the cluster now.
    """
    away = [name for name in names if name in now.partitions and not by_preferred(now.partitions[name])]
    if away:
        return f"{len(away)} of {len(names)} are not led by their preferred broker: {list_partitions(away)}"
    lacking = now.lacking - start.lacking
    return f"replicas of {len(lacking)} partitions are not in sync: {list_partitions(lacking)}" if lacking else None


def require_none_lost(before: LeadershipSnapshot, now: LeadershipSnapshot) -> None:
    """Check that no partition that its preferred broker led before is led by another now.

    Raises:
        HeadroomError: one is.
    """
    for name, led in before.partitions.items():
        then, found = by_preferred(led), now.partitions.get(name)
        if then and found is not None and found.replicas == led.replicas and not by_preferred(found):
            leader = "nobody" if found.leader is None else f"broker {found.leader}"
            raise HeadroomError(
                list_partitions([name]), f"went from broker {led.leader} to {leader}, which no election did", RESUME
            )


def by_preferred(led: PartitionState) -> bool:
    """Return whether its preferred broker leads a partition."""
    return led.leader is not None and led.leader == led.replicas[0]


def list_partitions(names: Iterable[Name]) -> str:
    """Return the first of some partitions in words, and how many more there are."""
    ordered = sorted(names)
    shown = ", ".join(f"{topic}-{partition}" for topic, partition in ordered[:_NAMED])
    return f"{shown} and {len(ordered) - _NAMED} more" if len(ordered) > _NAMED else shown


def _require_none_lacking(start: LeadershipSnapshot, now: LeadershipSnapshot) -> None:
    lacking = now.lacking - start.lacking
    if lacking:
        rule = "lack replicas in sync that they had when the plan was made"
        raise HeadroomError(list_partitions(lacking), rule, RESUME)


def _held_back(names: Collection[Name], now: LeadershipSnapshot, limits: BatchLimits) -> dict[Name, str]:
    """Return why partitions cannot be elected in one batch by now: what later batches would make room for is not yet.

    How many partitions and how much of writes a batch has was settled with the plan.
    """
    one = replace(limits, partitions=len(names), partitions_per_broker=len(names), write_bytes_per_s=None)
    alone = replace(now.cluster_constraints(), internal=frozenset(), chosen_partitions=frozenset(names))
    fresh = plan_elections(now.partitions.values(), one, alone)
    held_back = {(left.topic, left.partition): WHY[left.reason] for left in fresh.left_out}
    return held_back | {name: _TOO_MANY for later in fresh.batches[1:] for name in later.partitions}


def _changed(then: PartitionState, now: PartitionState | None, held_back: str | None) -> str | None:
    """Return what is not as planned of a partition; None: all is, or it needs no election any more."""
    if now is None:
        return "it is not there any more"
    if now.replicas != then.replicas:
        return "its replicas are others than those of the plan"
    if by_preferred(now):
        return None
    gone = sorted(set(then.isr) - set(now.isr))
    if gone:
        return f"no longer in sync: broker {', '.join(map(str, gone))}"
    return held_back
