"""Checks before and after a batch of elections that the cluster still matches the plan."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from headroom.cluster.elections.leadership import LeadershipSnapshot
from headroom.planning.elections.planner import WHY, Batch, BatchLimits, PartitionState, plan_elections
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.text.amounts import join_names

RESUME = "See to it, then run the same command again: it plans from what is there then."
# Partitions that a text names; the others are counted.
_MAX_LISTED = 3
_OVER_CAPACITY_NOW = "with the others of its batch a broker or a throttle would have to carry more than it can"


def still_electable(
    batch: Batch, start: LeadershipSnapshot, now: LeadershipSnapshot, limits: BatchLimits
) -> tuple[TopicPartition, ...]:
    """Return the partitions of a batch that still need their election.

    Args:
        batch: the planned batch.
        start: the cluster when the plan was made.
        now: the cluster now.
        limits: limits that the plan was made with.

    Raises:
        HeadroomError: a partition can no longer be elected as planned, or a replica went out of sync since.
    """
    _require_replicas_in_sync(start, now)
    blocked = _blocking_reasons(batch.partitions, now, limits)
    for name in batch.partitions:
        changed = _deviation(start.partitions[name], now.partitions.get(name), blocked.get(name))
        if changed is not None:
            raise HeadroomError(list_partitions([name]), f"cannot be elected as planned: {changed}", RESUME)
    return tuple(name for name in batch.partitions if not is_led_by_preferred(now.partitions[name]))


def unsettled_reason(
    names: Collection[TopicPartition], start: LeadershipSnapshot, now: LeadershipSnapshot
) -> str | None:
    """Return why a batch has not settled: leaders that have not moved, or out-of-sync replicas; None if it has.

    Args:
        names: the partitions of the batch.
        start: the cluster when the plan was made.
        now: the cluster now.
    """
    away = [name for name in names if name in now.partitions and not is_led_by_preferred(now.partitions[name])]
    if away:
        return f"{len(away)} of {len(names)} are not led by their preferred broker: {list_partitions(away)}"
    under_replicated = now.under_replicated - start.under_replicated
    return (
        f"replicas of {len(under_replicated)} partitions are not in sync: {list_partitions(under_replicated)}"
        if under_replicated
        else None
    )


def require_preferred_kept(before: LeadershipSnapshot, now: LeadershipSnapshot) -> None:
    """Check that every partition that had its preferred leader before still has it.

    Raises:
        HeadroomError: a partition lost its preferred leader.
    """
    for name, led in before.partitions.items():
        then, current = is_led_by_preferred(led), now.partitions.get(name)
        if then and current is not None and current.replicas == led.replicas and not is_led_by_preferred(current):
            leader = "no broker" if current.leader is None else f"broker {current.leader}"
            raise HeadroomError(
                list_partitions([name]), f"went from broker {led.leader} to {leader}, which no election did", RESUME
            )


def is_led_by_preferred(led: PartitionState) -> bool:
    """Return whether a partition is led by its preferred leader."""
    return led.leader is not None and led.leader == led.replicas[0]


def list_partitions(names: Iterable[TopicPartition]) -> str:
    """Return a text with the first partitions and the number of the others."""
    ordered = sorted(names)
    return join_names([str(name) for name in ordered[:_MAX_LISTED]], len(ordered), _MAX_LISTED)


def _require_replicas_in_sync(start: LeadershipSnapshot, now: LeadershipSnapshot) -> None:
    under_replicated = now.under_replicated - start.under_replicated
    if under_replicated:
        rule = "have out-of-sync replicas that were in sync when the plan was made"
        raise HeadroomError(list_partitions(under_replicated), rule, RESUME)


def _blocking_reasons(
    names: Collection[TopicPartition], now: LeadershipSnapshot, limits: BatchLimits
) -> dict[TopicPartition, str]:
    """Return by partition why it cannot be elected in one batch now.

    The number of partitions and the write rate of a batch are not checked again; the plan has settled them.
    """
    single_batch = replace(limits, partitions=len(names), partitions_per_broker=len(names), write_bytes_per_s=None)
    constraints = replace(now.cluster_constraints(), internal=frozenset(), chosen_partitions=frozenset(names))
    new_plan = plan_elections(now.partitions.values(), single_batch, constraints)
    blocked = {left.name: WHY[left.reason] for left in new_plan.left_out}
    return blocked | {name: _OVER_CAPACITY_NOW for later in new_plan.batches[1:] for name in later.partitions}


def _deviation(then: PartitionState, now: PartitionState | None, blocked: str | None) -> str | None:
    """Return how a partition deviates from the plan; None if it does not, or needs no election any more."""
    if now is None:
        return "it is not there any more"
    if now.replicas != then.replicas:
        return "its replicas are others than those of the plan"
    if is_led_by_preferred(now):
        return None
    gone = sorted(set(then.isr) - set(now.isr))
    if gone:
        return f"no longer in sync: broker {', '.join(map(str, gone))}"
    return blocked
