"""The log directories of a run: requested before the replicas exist, followed until these are there, or cancelled."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from headroom.cluster.reassignment.execution.control import ClusterControl
from headroom.cluster.reassignment.execution.run_journal import RunJournal
from headroom.planning.log_dirs.progress import DirectoryProgress, DirectoryState
from headroom.planning.reassignments.run.directories import requested_of, state_of_placement
from headroom.planning.reassignments.run.journal import JournalStep, StepKind, StepState
from headroom.planning.reassignments.run.record import DirectoryPlacement
from headroom.planning.reassignments.run.snapshot import RunSnapshot
from headroom.schemas.keys import ReplicaKey, TopicPartition

# The metadata may show a replica earlier, or a little longer, than its broker has its log.
PATIENCE_S = 5.0


class RunPlacement:
    """Log directories of the replicas of one run.

    Args:
        control: the cluster.
        journal: the journal of the run.
        patience_s: how long a replica may be elsewhere, and not on its way, before it is given up, seconds.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        control: ClusterControl,
        journal: RunJournal,
        patience_s: float = PATIENCE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._control = control
        self._journal = journal
        self._patience_s = patience_s
        self._clock = clock
        # When a replica was first seen elsewhere, although it is not on its way.
        self._elsewhere_s: dict[ReplicaKey, float] = {}
        self._requested_again: set[ReplicaKey] = set()
        self._unanswered: set[ReplicaKey] = set()
        # Those of them whose broker is down: once it is up, it may go on with their copies.
        self._lost: set[ReplicaKey] = set()

    def request(self, places: Mapping[ReplicaKey, DirectoryPlacement]) -> dict[TopicPartition, str]:
        """Request the directories of a batch, and return by partition why a broker refused one.

        A broker keeps the directory for a replica that does not exist yet, so this comes before the reassignment.

        Raises:
            HeadroomError: the journal cannot be written.

        Source: Kafka 4.3.1, ``ReplicaManager.alterReplicaLogDirs`` and ``LogManager.maybeUpdatePreferredLogDir``.
        """
        if not places:
            return {}
        self._journal.write(
            [
                JournalStep(StepKind.PLACE, StepState.INTENDED, str(replica), place.before, place.after)
                for replica, place in sorted(places.items())
            ]
        )
        answers = self._control.place(requested_of(places))
        # Without an answer it may be on its way, which later looks show.
        self._unanswered = (self._unanswered - places.keys()) | answers.unanswered.keys()
        self._journal.write(
            [_failed_step(replica, places[replica].before, why) for replica, why in sorted(answers.refused.items())]
        )
        return {replica.name: f"broker {replica.broker}: {why}" for replica, why in sorted(answers.failed.items())}

    def note_ended(self, snapshot: RunSnapshot) -> dict[ReplicaKey, str]:
        """Write the replicas that have arrived since, and return those that were given up, with the reason.

        Of a replica whose broker is down the journal has no end, because the copy may go on once that is up.

        Raises:
            HeadroomError: the journal cannot be written.
        """
        record, steps, given_up = self._journal.record, [], {}
        for replica in sorted(record.placing):
            place = record.placed[replica]
            state = state_of_placement(replica, place, snapshot)
            if state.state is not DirectoryState.UNKNOWN or replica.broker in snapshot.alive:
                self._lost.discard(replica)
            if state.state is DirectoryState.DONE:
                steps.append(JournalStep(StepKind.PLACE, StepState.DONE, str(replica), place.before, place.after))
            elif (reason := self._reason_to_give_up(replica, state, snapshot)) is not None:
                if state.state is not DirectoryState.UNKNOWN:
                    steps.append(_failed_step(replica, place.before, reason))
                elif replica in self._lost:
                    continue
                else:
                    self._lost.add(replica)
                given_up[replica] = reason
        self._journal.write(steps)
        return given_up

    def awaited(self) -> list[ReplicaKey]:
        """Return the replicas that are not known to be in their directory, without those that were given up."""
        return sorted(self._journal.record.placing - self._lost)

    def _reason_to_give_up(self, replica: ReplicaKey, state: DirectoryProgress, snapshot: RunSnapshot) -> str | None:
        """Return why a replica will not get to its directory; None if it is on its way, or that is unknown."""
        # Of a broker that is down and has not answered, nothing is known to be on its way.
        is_lost = replica in self._unanswered and replica.broker not in snapshot.alive
        if state.state is DirectoryState.MOVING or (state.state is DirectoryState.UNKNOWN and not is_lost):
            self._elsewhere_s.pop(replica, None)
            return None
        record, partition = self._journal.record, snapshot.partitions.get(replica.name)
        if state.state is DirectoryState.ABSENT:
            is_expected = replica.name in record.submitted and replica.name not in record.finished
            if partition is not None and (partition.moving or is_expected):
                return None
            reason = "its replica does not exist"
        else:
            reason = f"its log directory is {state.current}" if state.current else "its broker is down"
        first_s = self._elsewhere_s.setdefault(replica, self._clock())
        return reason if self._clock() - first_s >= self._patience_s else None

    def request_forgotten(self, snapshot: RunSnapshot) -> None:
        """Request the directories of new replicas that are elsewhere: their broker was restarted, and forgot them.

        Each is requested once. A replica that existed before is not: if it stays, others have ended its copy.

        Raises:
            HeadroomError: the journal cannot be written.
        """
        record = self._journal.record
        forgotten = {
            replica: record.placed[replica]
            for replica in record.placing - self._requested_again
            if record.placed[replica].before is None
            and state_of_placement(replica, record.placed[replica], snapshot).state is DirectoryState.ELSEWHERE
        }
        self._requested_again |= forgotten.keys()
        self.request(forgotten)

    def cancel(self, replicas: Collection[ReplicaKey], snapshot: RunSnapshot) -> dict[ReplicaKey, str]:
        """End copies between directories, so that the replicas stay where they are; return why that failed.

        Raises:
            HeadroomError: the journal cannot be written.
        """
        record = self._journal.record
        states = {replica: state_of_placement(replica, record.placed[replica], snapshot) for replica in replicas}
        copying = {
            r: s.current for r, s in states.items() if s.state is DirectoryState.MOVING and s.current is not None
        }
        failed = self._control.place(copying).failed if copying else {}
        ended = [r for r, s in sorted(states.items()) if s.state is not DirectoryState.UNKNOWN and r not in failed]
        self._journal.write(
            [
                JournalStep(StepKind.PLACE, StepState.UNDONE, str(r), record.placed[r].after, states[r].current)
                for r in ended
            ]
        )
        return failed


def end_copies(
    control: ClusterControl, journal: RunJournal, copies: Mapping[ReplicaKey, str]
) -> dict[TopicPartition, str]:
    """End copies between directories, whoever began them, and return by partition why that failed.

    Args:
        control: the cluster.
        journal: the journal of the command.
        copies: directory that each replica is in.

    Raises:
        HeadroomError: the journal cannot be written.
    """
    if not copies:
        return {}
    steps = {
        replica: JournalStep(StepKind.PLACE, StepState.INTENDED, str(replica), None, path)
        for replica, path in copies.items()
    }
    journal.write(list(steps.values()))
    refused = control.place(copies).failed
    journal.write([replace(step, state=StepState.DONE) for r, step in steps.items() if r not in refused])
    journal.write([_failed_step(replica, copies[replica], reason) for replica, reason in refused.items()])
    return {replica.name: f"broker {replica.broker}: {reason}" for replica, reason in refused.items()}


def _failed_step(replica: ReplicaKey, before: str | None, reason: str) -> JournalStep:
    return JournalStep(StepKind.PLACE, StepState.FAILED, str(replica), before, f"broker {replica.broker}: {reason}")
