"""The order of replicas from before reassignments, by the journal of all commands: what a cancellation restores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headroom.planning.reassignments.cluster_state import PartitionPlacement
from headroom.planning.reassignments.run.journal import (
    JournalRow,
    StepKind,
    StepState,
    in_time_order,
    partition_of_subject,
    replicas_of_text,
)
from headroom.planning.reassignments.run.record import Interrupted, Submission
from headroom.schemas.keys import TopicPartition


@dataclass(frozen=True)
class KnownOrders:
    """Orders of replicas that the journal has.

    Attributes:
        submitted: reassignments of runs that have no end in the journal.
        interrupted: cancellations that were begun, and after which the order was not restored.
    """

    submitted: Mapping[TopicPartition, Submission] = field(default_factory=dict)
    interrupted: Mapping[TopicPartition, Interrupted] = field(default_factory=dict)

    def before(self, partition: PartitionPlacement) -> tuple[int, ...] | None:
        """Return the replicas of a moving partition before its reassignment, in their order; None if it is unknown.

        A run that has ended, or has moved the partition to other replicas, does not know it.
        """
        known = self.submitted.get(partition.name)
        if known is None or not (_is_shown(known, partition) or _is_shown_late(known, partition)):
            return None
        return known.before

    def may_be_shown_late(self, partition: PartitionPlacement) -> bool:
        """Return whether an interrupted cancellation may have ended although a broker shows the added replicas."""
        known = self.interrupted.get(partition.name)
        if known is None or not known.before or partition.moving:
            return False
        return set(known.before) < set(partition.replicas)

    def to_restore(self, partition: PartitionPlacement) -> tuple[int, ...] | None:
        """Return the order that an interrupted cancellation has not restored; None if there is none, or others have."""
        known = self.interrupted.get(partition.name)
        if known is None or partition.moving or partition.replicas != known.left or known.left == known.before:
            return None
        return known.before


def _is_shown(move: Submission, partition: PartitionPlacement) -> bool:
    return partition.target == move.after and set(partition.before) == set(move.before)


def _is_shown_late(move: Submission, partition: PartitionPlacement) -> bool:
    """Return whether a move is that of a partition, of which a broker still shows the replicas from before."""
    added, removed = set(move.after) - set(move.before), set(move.before) - set(move.after)
    return partition.replicas == move.before and (set(partition.adding), set(partition.removing)) == (added, removed)


def known_orders(rows: Iterable[JournalRow]) -> KnownOrders:
    """Return the orders of replicas in a journal; of every partition the last rows count.

    Args:
        rows: rows of one cluster, in any order.
    """
    submitted: dict[TopicPartition, Submission] = {}
    interrupted: dict[TopicPartition, Interrupted] = {}
    for row in in_time_order(rows):
        try:
            _add(row, submitted, interrupted)
        # A damaged row costs only itself, as in the record of a run.
        except (ValueError, TypeError, AttributeError):
            continue
    return KnownOrders(submitted, interrupted)


def _add(
    row: JournalRow, submitted: dict[TopicPartition, Submission], interrupted: dict[TopicPartition, Interrupted]
) -> None:
    if row.step not in (StepKind.SUBMIT.value, StepKind.FINISH.value, StepKind.CANCEL.value):
        return
    name, state = partition_of_subject(row.subject), StepState(row.state)
    if row.step == StepKind.SUBMIT.value:
        interrupted.pop(name, None)
        if state is StepState.INTENDED:
            submitted[name] = Submission(replicas_of_text(row.before), replicas_of_text(row.after))
        elif state is StepState.FAILED:
            submitted.pop(name, None)
    elif row.step == StepKind.FINISH.value:
        submitted.pop(name, None)
        if state is StepState.DONE:
            interrupted.pop(name, None)
    elif state is StepState.DONE:
        submitted.pop(name, None)
        interrupted.pop(name, None)
    elif state is StepState.INTENDED:
        before, shown, move = replicas_of_text(row.after), replicas_of_text(row.before), submitted.get(name)
        if move is not None and shown == before == move.before:
            # A broker still showed them as before the move: the target replicas come first.
            shown = (*move.after, *before)
        # Kafka leaves the replicas as they are, without those that were added.
        interrupted[name] = Interrupted(before, tuple(dict.fromkeys(b for b in shown if b in before)))
