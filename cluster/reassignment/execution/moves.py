"""The reassignments of a run: submitted, followed to their end, or cancelled with the order of replicas restored."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from headroom.cluster.reassignment.execution.control import ClusterControl
from headroom.cluster.reassignment.execution.run_journal import RunJournal
from headroom.planning.reassignments.run.changes import changes_factor, is_left_of
from headroom.planning.reassignments.run.conditions import (
    is_moved_by_others,
    partitions_text,
    require_known_moves,
)
from headroom.planning.reassignments.run.journal import JournalStep, StepKind, StepState, replicas_text
from headroom.planning.reassignments.run.record import Submission
from headroom.planning.reassignments.run.snapshot import RunSnapshot
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

# A broker's metadata may be older than an answer of the controller by about this time.
STALE_S = 5.0
_POLL_S = 0.5


class RunMoves:
    """Reassignments of one run.

    Args:
        control: the cluster.
        journal: the journal of the run.
        settle_s: longest wait for a cancellation, seconds.
        clock: monotonic seconds.
        sleep: waits for the given seconds.
    """

    def __init__(
        self,
        control: ClusterControl,
        journal: RunJournal,
        settle_s: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._control = control
        self._journal = journal
        self._settle_s = settle_s
        self._clock = clock
        self._sleep = sleep
        # When a partition was first seen with other replicas than its target, although it does not move.
        self._elsewhere_s: dict[TopicPartition, float] = {}

    def submit(self, moves: Mapping[TopicPartition, Submission]) -> Mapping[TopicPartition, str]:
        """Submit reassignments, and return by partition why the controller refused it; the others are accepted.

        Raises:
            HeadroomError: no broker accepted the request, or the journal cannot be written.
        """
        if not moves:
            return {}
        self._journal.write(
            [
                JournalStep(
                    StepKind.SUBMIT,
                    StepState.INTENDED,
                    str(name),
                    replicas_text(move.before),
                    replicas_text(move.after),
                )
                for name, move in sorted(moves.items())
            ]
        )
        targets = {name: move.after for name, move in moves.items()}
        refused = self._control.reassign(targets, changes_factor(moves.values()))
        self._journal.write([_answer(name, move, refused.get(name)) for name, move in sorted(moves.items())])
        return refused

    def note_ended(self, snapshot: RunSnapshot) -> dict[TopicPartition, str]:
        """Write the reassignments that have ended since, and return those that ended with other replicas, with these.

        Metadata may be older than the end: what is not as it should be counts only if later looks, which read its topic
        again, show the same.

        Raises:
            HeadroomError: the journal cannot be written.
        """
        record, steps, elsewhere = self._journal.record, [], {}
        stale: set[str] = set()
        for name in sorted(record.unended_moves):
            partition, target = snapshot.partitions.get(name), record.submitted[name].after
            if self._is_unrestored(name, snapshot):
                continue
            if record.is_remade(name.topic, snapshot.topic_ids):
                partition = None
            elif partition is not None and partition.moving:
                self._elsewhere_s.pop(name, None)
                continue
            elif self._may_be_stale(name, () if partition is None else partition.replicas, target, snapshot):
                stale.add(name.topic)
                continue
            replicas = () if partition is None else partition.replicas
            state = StepState.DONE if replicas == target else StepState.FAILED
            steps.append(JournalStep(StepKind.FINISH, state, str(name), replicas_text(target), replicas_text(replicas)))
            if state is StepState.FAILED:
                elsewhere[name] = replicas_text(replicas) if replicas else "gone with the partition"
        if stale:
            self._control.refresh(stale)
        self._journal.write(steps)
        return elsewhere

    def _may_be_stale(
        self, name: TopicPartition, replicas: tuple[int, ...], target: tuple[int, ...], snapshot: RunSnapshot
    ) -> bool:
        # While no controller answers, the reassignments are those of the look before, perhaps from before a submission,
        # and the replicas are what brokers have heard of until then.
        if replicas == target or not snapshot.reassignments_read:
            self._elsewhere_s.pop(name, None)
            return replicas != target
        return self._clock() - self._elsewhere_s.setdefault(name, self._clock()) < STALE_S

    def cancel(self, originals: Mapping[TopicPartition, tuple[int, ...] | None]) -> dict[TopicPartition, str]:
        """Cancel reassignments, restore the order of their replicas, and return by partition why that failed.

        A cancelled reassignment leaves the replicas in another order, the target order first: another broker would be
        the preferred leader. Source: Kafka 4.3.1, ``PartitionReassignmentReplicas``.

        Args:
            originals: replicas before the reassignment, in their order; None if they are not known.

        Raises:
            HeadroomError: no controller answered, so that nothing was requested; no broker accepted a request, the
                cancellation did not end in time, or the journal cannot be written.
        """
        return self._cancel(originals, self._read_settled(originals)) if originals else {}

    def finish_cancellations(self, of_moving: bool) -> dict[TopicPartition, str]:
        """Finish own cancellations that a crash has interrupted, and return by partition why that failed.

        What others move meanwhile is cancelled already, and theirs.

        Args:
            of_moving: whether to cancel reassignments that still run; otherwise these go on, and only the orders of
                replicas are restored.

        Raises:
            HeadroomError: as for ``cancel``.
        """
        record = self._journal.record
        begun = {name: record.submitted[name].before for name in record.cancelling & record.unended_moves}
        if not begun:
            return {}
        snapshot = self._read_settled(begun)
        return self._cancel(
            {
                name: original
                for name, original in begun.items()
                if (of_moving or not snapshot.moves(name)) and not self._is_reordered_by_others(name, snapshot)
            },
            snapshot,
        )

    def finish_ended_cancellations(self, snapshot: RunSnapshot) -> frozenset[TopicPartition]:
        """Restore the order of replicas where an own cancellation has taken place, and nothing else has.

        Returns:
            partitions that the run has moved, and which now have the replicas from before.

        Raises:
            HeadroomError: as for ``cancel``.
        """
        begun = self._journal.record.cancelling & self._journal.record.unended_moves
        if any(self._is_unrestored(name, snapshot) for name in begun):
            self.finish_cancellations(of_moving=False)
        # It looks again, so that others may have ended meanwhile.
        return begun - self._journal.record.submitted.keys()

    def _is_unrestored(self, name: TopicPartition, snapshot: RunSnapshot) -> bool:
        """Return whether a partition has the replicas from before by an own cancellation, perhaps in another order."""
        record, partition = self._journal.record, snapshot.partitions.get(name)
        if partition is None or partition.moving or name not in record.cancelling & record.unended_moves:
            return False
        if self._is_remade(name, snapshot) or self._is_reordered_by_others(name, snapshot):
            return False
        return set(partition.replicas) == set(record.submitted[name].before)

    def _is_remade(self, name: TopicPartition, snapshot: RunSnapshot) -> bool:
        """Return whether a partition of the run is of another topic now; a command without a run knows none."""
        record = self._journal.record
        return name in record.unended_moves and record.is_remade(name.topic, snapshot.topic_ids)

    def _is_reordered_by_others(self, name: TopicPartition, snapshot: RunSnapshot) -> bool:
        """Return whether a resting partition has the replicas from before, in an order that no cancellation leaves."""
        partition, move = snapshot.partitions.get(name), self._journal.record.submitted[name]
        if partition is None or partition.moving or set(partition.replicas) != set(move.before):
            return False
        return not is_left_of(move, partition.replicas)

    def _read_settled(self, originals: Mapping[TopicPartition, tuple[int, ...] | None]) -> RunSnapshot:
        """Return the cluster once no reassignment seems to have ended, or to be of others, unless it seems so for long.

        The replicas of a look may be older than its reassignments: those of a cancelled one are then still there.

        Raises:
            HeadroomError: the cluster could not be read, or no controller answered.
        """
        give_up_s = self._clock() + STALE_S
        while True:
            snapshot = self._control.read()
            require_known_moves(snapshot)
            theirs = self._moved_by_others(originals, snapshot)
            unsettled = {n for n, original in originals.items() if n in theirs or _has_ended(n, original, snapshot)}
            if not unsettled or self._clock() >= give_up_s:
                return snapshot
            self._control.refresh({name.topic for name in unsettled})
            self._sleep(_POLL_S)

    def _moved_by_others(self, names: Iterable[TopicPartition], snapshot: RunSnapshot) -> frozenset[TopicPartition]:
        """Return the partitions that the run has moved, and others move now; a command without a run knows none."""
        record = self._journal.record
        return frozenset(n for n in names if n in record.unended_moves and is_moved_by_others(n, snapshot, record))

    def _cancel(
        self, requested: Mapping[TopicPartition, tuple[int, ...] | None], snapshot: RunSnapshot
    ) -> dict[TopicPartition, str]:
        theirs = self._moved_by_others(requested, snapshot)
        originals = {
            name: original
            for name, original in requested.items()
            if name not in theirs and not self._is_remade(name, snapshot)
        }
        if not originals:
            return {}
        self._journal.write([_cancellation(n, o, snapshot) for n, o in sorted(originals.items())])
        running = [name for name in originals if snapshot.moves(name)]
        refused = {n: "its reassignment has ended" for n, o in originals.items() if _has_ended(n, o, snapshot)}
        refused |= self._control.reassign(dict.fromkeys(running), False) if running else {}
        snapshot = self._await_end(originals, refused)
        order: dict[TopicPartition, tuple[int, ...] | None] = {
            name: original
            for name, original in originals.items()
            # After a cancellation a look may be older than the reassignment, and show the order from before.
            if original is not None
            and name not in refused
            and not self._is_remade(name, snapshot)
            and (_is_reordered(name, original, snapshot) or (name in running and name in snapshot.partitions))
        }
        refused |= self._control.reassign(order, False) if order else {}
        self._journal.write(
            [
                JournalStep(
                    StepKind.CANCEL,
                    StepState.FAILED if name in refused else StepState.DONE,
                    str(name),
                    None,
                    refused.get(name, None if original is None else replicas_text(original)),
                )
                for name, original in sorted(originals.items())
            ]
        )
        return refused

    def _await_end(
        self, originals: Mapping[TopicPartition, tuple[int, ...] | None], refused: Mapping[TopicPartition, str]
    ) -> RunSnapshot:
        """Return the cluster once a controller answers, no cancelled partition moves, and none has an added replica."""
        give_up_s = self._clock() + self._settle_s
        while True:
            snapshot = self._control.read()
            late = [n for n, o in originals.items() if n not in refused and _is_under_way(n, o, snapshot)]
            if snapshot.reassignments_read and not late:
                return snapshot
            if self._clock() >= give_up_s:
                names = partitions_text(late or originals)
                state = "still moves" if snapshot.reassignments_read else "may still move"
                rule = f"was cancelled, but {state} after {self._settle_s:g} s"
                raise HeadroomError(names, rule, "See that the controller is up, then try again.")
            self._sleep(_POLL_S)


def _answer(name: TopicPartition, move: Submission, refused: str | None) -> JournalStep:
    before = replicas_text(move.before)
    if refused is not None:
        return JournalStep(StepKind.SUBMIT, StepState.FAILED, str(name), before, refused)
    return JournalStep(StepKind.SUBMIT, StepState.DONE, str(name), before, replicas_text(move.after))


def _cancellation(name: TopicPartition, original: tuple[int, ...] | None, snapshot: RunSnapshot) -> JournalStep:
    partition = snapshot.partitions.get(name)
    before = None if partition is None else replicas_text(partition.replicas)
    after = None if original is None else replicas_text(original)
    return JournalStep(StepKind.CANCEL, StepState.INTENDED, str(name), before, after)


def _has_ended(name: TopicPartition, original: tuple[int, ...] | None, snapshot: RunSnapshot) -> bool:
    partition = snapshot.partitions.get(name)
    if partition is None or partition.moving:
        return partition is None
    return original is None or set(partition.replicas) != set(original)


def _is_under_way(name: TopicPartition, original: tuple[int, ...] | None, snapshot: RunSnapshot) -> bool:
    partition = snapshot.partitions.get(name)
    if partition is None:
        return False
    # The metadata of a broker may show the added replica a little longer than the controller.
    return partition.moving or (original is not None and set(partition.replicas) != set(original))


def _is_reordered(name: TopicPartition, original: tuple[int, ...], snapshot: RunSnapshot) -> bool:
    partition = snapshot.partitions.get(name)
    return partition is not None and partition.replicas != original and set(partition.replicas) == set(original)
