"""Orders of replicas that a run makes before it copies: a drained broker gives up its leads first.

A partition is then in two batches: an earlier one only reorders its replicas, and a later one moves it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from headroom.planning.reassignments.cluster_state import PartitionPlacement
from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.planning.reassignments.run.conditions import partitions_text
from headroom.planning.reassignments.run.snapshot import RunSnapshot
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

_Partitions = Mapping[TopicPartition, PartitionPlacement]


def orders_first(batches: Sequence[ReassignmentPlan]) -> list[frozenset[TopicPartition]]:
    """Return by batch the partitions that a later batch has again."""
    again: list[frozenset[TopicPartition]] = []
    later: frozenset[TopicPartition] = frozenset()
    for batch in reversed(batches):
        again.append(later & batch.by_name.keys())
        later |= batch.by_name.keys()
    return again[::-1]


def require_orders_only(batches: Sequence[ReassignmentPlan]) -> None:
    """Check that a partition is in a second batch only if the first one gives it another order, and no directory.

    Raises:
        HeadroomError: a partition is in more than two batches, or in two that give it the same replicas in any order,
            or the first of two names a log directory.
    """
    first: dict[TopicPartition, frozenset[int]] = {}
    wrong: set[TopicPartition] = set()
    for batch, again in zip(batches, orders_first(batches), strict=True):
        for name, assignment in batch.by_name.items():
            same = first.get(name) == frozenset(assignment.replicas)
            if same or (name in again and (name in first or assignment.named_log_dirs)):
                wrong.add(name)
        first |= {name: frozenset(batch.by_name[name].replicas) for name in again}
    if wrong:
        raise HeadroomError(partitions_text(wrong), "is in more than one plan file", "Name it in one file only.")


def require_present_orders(batches: Sequence[ReassignmentPlan], partitions: _Partitions) -> None:
    """Check that the first of two batches only reorders the replicas that a partition has, unless it has moved already.

    Args:
        batches: the plan, in parts.
        partitions: every partition, as it is now.

    Raises:
        HeadroomError: a partition has neither these replicas nor those of the later batch.
    """
    final = {name: assignment for batch in batches for name, assignment in batch.by_name.items()}
    wrong = [
        name
        for batch, again in zip(batches, orders_first(batches), strict=True)
        for name in again
        if (p := partitions.get(name)) is not None
        and set(p.before) != set(batch.by_name[name].replicas)
        and set(p.target) != set(final[name].replicas)
    ]
    if wrong:
        rule = "is in two plan files, and has other replicas than the first of them reorders"
        raise HeadroomError(partitions_text(wrong), rule, "Make the plan again, or name it in one file only.")


def without_passed_orders(
    batch: ReassignmentPlan, again: frozenset[TopicPartition], partitions: _Partitions
) -> ReassignmentPlan:
    """Return a batch without the orders of partitions that the later batch has begun to move.

    Args:
        batch: the batch.
        again: its partitions that a later batch has again.
        partitions: every partition, as it is now.
    """
    if not again:
        return batch
    return ReassignmentPlan(
        tuple(
            a
            for a in batch
            if a.name not in again or a.name not in partitions or set(partitions[a.name].replicas) == set(a.replicas)
        )
    )


def leads_to_give_up(
    batch: ReassignmentPlan, again: frozenset[TopicPartition], partitions: _Partitions
) -> list[TopicPartition]:
    """Return the partitions whose order is in place, and whose first replica is in sync and does not lead.

    Args:
        batch: the batch.
        again: its partitions that a later batch has again.
        partitions: every partition, as it is now.
    """
    return sorted(
        name
        for name in again
        if (p := partitions.get(name)) is not None
        and p.replicas == batch.by_name[name].replicas
        and p.leader != p.replicas[0]
        and p.replicas[0] in p.isr
    )


def with_leads_given_up(batches: Sequence[ReassignmentPlan], snapshot: RunSnapshot) -> RunSnapshot:
    """Return the cluster as it will be once all orders that come first are in place, and their first replicas lead."""
    changed = {}
    for batch, again in zip(batches, orders_first(batches), strict=True):
        for name, assignment in without_passed_orders(batch, again, snapshot.partitions).by_name.items():
            if name in again and name in snapshot.partitions:
                partition = snapshot.partitions[name]
                changed[name] = replace(partition, replicas=assignment.replicas, leader=assignment.replicas[0])
    return replace(snapshot, partitions={**snapshot.partitions, **changed}) if changed else snapshot
