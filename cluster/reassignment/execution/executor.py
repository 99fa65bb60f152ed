"""Carries out a plan batch by batch: throttle, submit, watch, next; in the end nothing of the run is left behind."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from headroom.cluster.reassignment.execution.control import ClusterControl, RunOutput, RunPolicy
from headroom.cluster.reassignment.execution.copy_progress import CopyProgress
from headroom.cluster.reassignment.execution.moves import STALE_S, RunMoves
from headroom.cluster.reassignment.execution.placement import RunPlacement
from headroom.cluster.reassignment.execution.retrying import Retrying
from headroom.cluster.reassignment.execution.run_journal import RunJournal
from headroom.cluster.reassignment.execution.throttling import RunThrottle
from headroom.planning.reassignments.batches.finish_times import plan_time_s
from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.planning.reassignments.room.checks import check_room
from headroom.planning.reassignments.run.changes import BatchChanges, batch_changes
from headroom.planning.reassignments.run.conditions import (
    electable_leads,
    foreign_moves,
    is_moved_by_others,
    leads_to_elect,
    lost_replicas,
    partitions_text,
    require_known_moves,
    require_known_rates,
    require_no_foreign_moves,
)
from headroom.planning.reassignments.run.directories import copying_of, remaining_bytes
from headroom.planning.reassignments.run.journal import (
    FIRST_ELECTIONS,
    LAST_ELECTIONS,
    JournalStep,
    StepKind,
    StepState,
    numbers_by_topic,
    rates_by_subject,
)
from headroom.planning.reassignments.run.orders_first import leads_to_give_up, orders_first, without_passed_orders
from headroom.planning.reassignments.run.record import RecordedRun, RunState
from headroom.planning.reassignments.run.snapshot import LostReplicas, RunSnapshot, cluster_state_of_run
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import BrokerRate, ReplicaKey, TopicPartition
from headroom.schemas.text.amounts import size_text
from headroom.schemas.text.names import broker_names

# Kafka deletes a removed replica file.delete.delay.ms after its move has ended, 60 s by default (Kafka 4.3.1,
# LogManager.deleteLogs). Until then its bytes are not free.
_DELETION_S, _ROOM_POLL_S = 90.0, 10.0
_SHOWN_ERRORS = 3
_ELECTION_TRIES = 3


@dataclass(frozen=True)
class RunOutcome:
    """Result of a run.

    Attributes:
        record: the run, as its journal has it.
        stopped: why it ended before its last batch; None if it did not.
        refused: partitions that are not at their target, with the reason.
        batches: number of batches that ended.
        kept_rates: rates of the run that stay, because others have changed them since; None for no rate.
        unelected: partitions whose preferred leaders were not elected in the end, with the reason.
    """

    record: RecordedRun
    stopped: str | None
    refused: Mapping[TopicPartition, str]
    batches: int
    kept_rates: Mapping[BrokerRate, int | None] = field(default_factory=dict)
    unelected: Mapping[TopicPartition, str] = field(default_factory=dict)


class ReassignmentExecutor:
    """Executes the batches of a plan, and resumes a run that was killed at any step.

    All that it does follows from the journal and from the cluster as it is. So after a crash the same run goes on where
    it was.

    Args:
        control: the running cluster.
        journal: the journal of the run; its record has what an earlier process did.
        batches: the plan, in parts that move one after the other.
        fingerprint: fingerprint of the whole plan.
        policy: throttle, conditions and waits.
        stop: once it is set, no further batch begins.
        output: where it reports to.
        clock: monotonic seconds.
        sleep: waits for the given seconds.
    """

    def __init__(
        self,
        control: ClusterControl,
        journal: RunJournal,
        batches: Sequence[ReassignmentPlan],
        fingerprint: str,
        policy: RunPolicy,
        stop: threading.Event,
        output: RunOutput | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._control = control
        self._journal = journal
        self._batches = batches
        self._again = dict(enumerate(orders_first(batches), start=policy.numbers.first))
        self._fingerprint = fingerprint
        self._policy = policy
        self._stop = stop
        self._output = output or RunOutput()
        self._clock = clock
        self._sleep = sleep
        self._throttle = RunThrottle(control, journal, policy, self._output)
        self._moves = RunMoves(control, journal, policy.settle_s, clock, sleep)
        self._retry = Retrying(policy.settle_s, policy.poll_s, self._output.note, clock, sleep).result
        self._placement = RunPlacement(control, journal, clock=clock)
        self._copies = CopyProgress(control, clock)
        self._refused: dict[TopicPartition, str] = {}
        self._done = 0
        self._kept_rates: dict[BrokerRate, int | None] = {}
        self._unelected: Mapping[TopicPartition, str] = {}
        self._lost_before = LostReplicas(frozenset(), frozenset())
        # What was noted of room so far, without the number of the batch.
        self._noted: set[str] = set()

    def run(self) -> RunOutcome:
        """Execute the batches, take back the throttle, and elect preferred leaders.

        Raises:
            HeadroomError: a batch could not begin, or the cluster or the journal failed for too long. If nothing of the
                run moves, its throttle is taken back; otherwise the same run goes on, or is cleaned.
        """
        # A run that goes on may find the cluster as disturbed as it left it; a new one says at once what is wrong.
        start = self._retry("the run", self._control.read) if self._began() else self._control.read()
        record = self._journal.record
        if not record.topic_ids:
            topics = {assignment.name.topic for batch in self._batches for assignment in batch}
            ids = {topic: start.topic_ids[topic] for topic in topics if topic in start.topic_ids}
            self._journal.record = record = replace(record, topic_ids=ids)
        if not record.rates_before:
            brokers = {broker for batch in self._batches for broker in self._brokers_of(batch, start)}
            rates = {name: rate.in_force for name, rate in start.rates.items() if name.broker in brokers}
            self._journal.record = record = replace(record, rates_before=rates)
        # What was lost before a crash, and since, counts against the cluster on which the run began.
        self._lost_before = (record.lost_before if self._began() else None) or start.lost
        if not self._policy.adopt and not self._began():
            require_no_foreign_moves(start, self._journal.record)
        try:
            # The batch that submits these partitions again may not begin before. What still moves goes on.
            self._retry("interrupted cancellations", partial(self._moves.finish_cancellations, of_moving=False))
            stopped = self._run_batches(start)
        except HeadroomError:
            if self._began():
                # The error of the batch is reported, not that of the attempt to end the run because of it.
                with suppress(HeadroomError):
                    self._end(self._watch(), StepState.UNDONE)
            raise
        if stopped is None and (record.elections_failed or electable_leads(self._batches, start, record)):
            self._begin()
        if self._began():
            self._end(self._watch(), StepState.DONE if stopped is None else StepState.UNDONE)
        return RunOutcome(
            self._journal.record, stopped, dict(self._refused), self._done, self._kept_rates, self._unelected
        )

    def _began(self) -> bool:
        return self._journal.record.state is RunState.UNFINISHED

    def _run_batches(self, start: RunSnapshot) -> str | None:
        """Execute the batches, and return why a batch did not begin; None if all of them ended."""
        for number, whole in enumerate(self._batches, start=self._policy.numbers.first):
            snapshot = self._complete(number, whole, start, self._retry(f"batch {number}", self._control.read))
            batch = without_passed_orders(whole, self._again[number], snapshot.partitions)
            changes = self._changes(batch, snapshot, self._policy.throttle_bytes_per_s)
            self._note_missing(changes, snapshot)
            if not changes.moves and not self._leads_to_give_up(number, batch, snapshot):
                self._done += 1
                continue
            if self._done and self._began():
                self._output.note(f"pause before batch {number}")
                self._stop.wait(self._policy.pause_s)
                snapshot = self._retry(f"batch {number}", self._control.read)
            snapshot, no_room = self._lack_of_room(number, batch, snapshot)
            read = partial(self._retry, f"batch {number}", self._control.read)
            snapshot, reason = self._lasting_reason(changes.moves.keys(), snapshot, read)
            reason = reason or no_room or self._reason_of_time(number, batch, snapshot)
            if reason is None and changes.moves:
                read = partial(self._read_complete, number, whole, batch, start)
                # The checks may have taken minutes, in which others change the cluster.
                snapshot, reason = self._lasting_reason(changes.moves.keys(), read(), read)
            if reason is not None:
                return f"batch {number} did not begin: {reason}"
            if changes.moves:
                self._run_batch(number, batch, snapshot)
            if (reason := self._reason_to_take_back()) is not None:
                return f"batch {number} was taken back: {reason}"
            self._give_up_leads(number, batch)
            self._done += 1
        return None

    def _complete(self, number: int, batch: ReassignmentPlan, start: RunSnapshot, snapshot: RunSnapshot) -> RunSnapshot:
        """Return the newest snapshot: a partition that one answer leaves out may be there all the same.

        It is missing if later answers leave it out too.
        """
        known = self._journal.record.topic_ids
        give_up_s = self._clock() + STALE_S
        while True:
            gone = {
                a.name.topic
                for a in batch
                if a.name not in snapshot.partitions and (a.name in start.partitions or a.name.topic in known)
            }
            if not gone or self._stop.is_set() or self._clock() >= give_up_s:
                return snapshot
            self._control.refresh(gone)
            self._sleep(self._policy.poll_s)
            snapshot = self._retry(f"batch {number}", self._control.read)

    def _note_missing(self, changes: BatchChanges, snapshot: RunSnapshot) -> None:
        for name in changes.missing:
            is_remade = name in snapshot.partitions
            self._refused[name] = "is of another topic: its own was deleted" if is_remade else "does not exist"

    def _leads_to_give_up(self, number: int, batch: ReassignmentPlan, snapshot: RunSnapshot) -> list[TopicPartition]:
        leads = leads_to_give_up(batch, self._again[number] & batch.by_name.keys(), snapshot.partitions)
        return [name for name in leads if not self._journal.record.is_remade(name.topic, snapshot.topic_ids)]

    def _give_up_leads(self, number: int, batch: ReassignmentPlan) -> None:
        """Elect the first replicas of partitions that a later batch copies, so that the copies leave from these.

        A failure does not stop the run: a later batch begins only if its throttle is enough for the leaders of then.
        """
        if not self._again[number] or self._stop.is_set():
            return
        snapshot = self._retry(f"batch {number}", self._control.read)
        names = self._leads_to_give_up(number, batch, snapshot)
        if not names:
            return
        self._begin()
        elected = len(names) - len(self._elect_all(FIRST_ELECTIONS, names))
        self._output.line(f"Batch {number}: {elected} of {len(names)} leads are given up before the copies")

    def _read_complete(
        self, number: int, whole: ReassignmentPlan, batch: ReassignmentPlan, start: RunSnapshot
    ) -> RunSnapshot:
        """Return the cluster now, with every partition of a batch, and the rates of all brokers that it throttles.

        Args:
            number: number of the batch.
            whole: the batch.
            batch: the same without the orders that have passed.
            start: the cluster when the run began.
        """
        snapshot = self._retry(f"batch {number}", self._control.read)
        return self._with_known_rates(number, batch, self._complete(number, whole, start, snapshot))

    def _lasting_reason(
        self, batch: Collection[TopicPartition], snapshot: RunSnapshot, read: Callable[[], RunSnapshot]
    ) -> tuple[RunSnapshot, str | None]:
        """Return the newest snapshot, and why no batch may begin; None if one may.

        A broker's metadata may say for some seconds after a move has ended that replicas are not in sync.

        Args:
            batch: partitions of the batch that move, or are to.
            snapshot: the cluster now.
            read: returns the cluster later.
        """
        give_up_s = self._clock() + STALE_S
        while (reason := self._reason_to_end(batch, snapshot)) is not None:
            if self._stop.is_set() or self._clock() >= give_up_s:
                break
            self._sleep(self._policy.poll_s)
            snapshot = read()
        return snapshot, reason

    def _reason_to_end(self, batch: Collection[TopicPartition], snapshot: RunSnapshot) -> str | None:
        """Return why a batch may not begin now; None if it may."""
        if self._stop.is_set():
            return self._policy.stopped_by()
        record = self._journal.record
        foreign = foreign_moves(snapshot, record)
        # After a crash: the current batch goes on, but takes nothing from others.
        copying = {replica.name for replica in copying_of(record, snapshot)}
        moving = {name for name in record.unended_moves if snapshot.moves(name)}.difference(foreign)
        is_at_hand = not (moving | copying).isdisjoint(batch)
        if is_at_hand:
            foreign = [name for name in foreign if name in batch]
        if foreign and not self._policy.adopt:
            return f"{partitions_text(foreign)} is being reassigned, but not by this run"
        if is_at_hand:
            return None
        return lost_replicas(self._lost_before, snapshot) or self._policy.blocked_reason(snapshot)

    def _lack_of_room(
        self, number: int, batch: ReassignmentPlan, snapshot: RunSnapshot
    ) -> tuple[RunSnapshot, str | None]:
        """Return the newest snapshot, and which log directories or brokers have no room for a batch; None if all have.

        Others may have used the room since the run was planned. What earlier batches have removed is deleted only some
        time after their end, which this waits for. A batch that goes on after a crash is not checked.
        """
        give_up_s = self._clock() + (_DELETION_S if self._done else 0)
        while True:
            changes = self._changes(batch, snapshot, None)
            if changes.moves.keys() != changes.submit.keys() or self._stop.is_set():
                return snapshot, None
            reason = self._room_now(number, batch, snapshot)
            if reason is None or self._clock() >= give_up_s:
                return snapshot, reason
            self._output.note(f"batch {number}: {reason}; waiting until removed replicas are deleted")
            self._sleep(_ROOM_POLL_S)
            snapshot = self._retry(f"batch {number}", self._control.read)

    def _reason_of_time(self, number: int, batch: ReassignmentPlan, snapshot: RunSnapshot) -> str | None:
        """Return why it is too late for a batch; None if it is not, or if it has begun.

        One whose time is unknown is not too late, but may overrun the window, which is reported.
        """
        rate, late_reason = self._policy.throttle_bytes_per_s, self._policy.late_reason
        if late_reason is None:
            return None
        changes = self._changes(batch, snapshot, rate)
        if changes.moves.keys() != changes.submit.keys():
            return None
        lasts_s = None if rate is None else self._time_s(batch, changes, rate, snapshot)
        if lasts_s is not None:
            return late_reason(snapshot, lasts_s)
        copies = any(set(move.after) - set(move.before) for move in changes.submit.values()) or bool(changes.places)
        if copies and (ends := self._policy.window_end(snapshot)) is not None:
            self._output.line(f"Batch {number}: its time is unknown, and {ends}: it may overrun the window")
        return None

    def _time_s(self, batch: ReassignmentPlan, changes: BatchChanges, rate: int, snapshot: RunSnapshot) -> float | None:
        """Return the time of what a batch submits, seconds; None if it is unknown."""
        reading = self._control.read_logs(self._brokers_of(batch, snapshot), None)
        plan = ReassignmentPlan(tuple(a for a in batch if a.name in changes.submit))
        state, capacity = cluster_state_of_run(snapshot, reading.brokers), self._policy.throttles.capacity_bytes_per_s
        return plan_time_s(plan, state, rate, capacity)

    def _brokers_of(self, batch: ReassignmentPlan, snapshot: RunSnapshot) -> list[int]:
        """Return the brokers that are up and have, or get, replicas of a batch."""
        targets = {broker for assignment in batch for broker in assignment.replicas}
        # Their leaders report the sizes.
        partitions = (snapshot.partitions[name] for name in batch.by_name if name in snapshot.partitions)
        present = {broker for partition in partitions for broker in partition.replicas}
        return sorted((targets | present) & snapshot.alive)

    def _room_now(self, number: int, batch: ReassignmentPlan, snapshot: RunSnapshot) -> str | None:
        """Return which log directories or brokers have no room for a batch now; None if all have."""
        brokers = set(self._brokers_of(batch, snapshot))
        # Copies of others to these brokers need room too: their leaders report how much.
        others = (p.leader for p in snapshot.partitions.values() if not brokers.isdisjoint(p.adding))
        sources = {leader for leader in others if leader is not None} & snapshot.alive
        reading = self._control.read_logs(sorted(brokers | sources), None)
        silent = sorted(reading.errors.keys() & brokers)
        if silent:
            names = broker_names(silent)
            self._output.line(f"Batch {number}: room is not checked on {names}: no log directories were reported")
        found = check_room([batch], cluster_state_of_run(snapshot, reading.brokers))
        for note in found.unknown_notes:
            if note not in self._noted:
                self._output.line(f"Batch {number}: {note}")
        self._noted.update(found.unknown_notes)
        return "; ".join(f"{error.subject} {error.rule}" for error in found.errors[:_SHOWN_ERRORS]) or None

    def _with_known_rates(self, number: int, batch: ReassignmentPlan, snapshot: RunSnapshot) -> RunSnapshot:
        """Return the newest snapshot with the rates of all brokers that the batch throttles.

        Raises:
            HeadroomError: a broker that is up has not reported them for longer than the policy allows.
        """

        def require_known(shown: RunSnapshot) -> RunSnapshot:
            require_known_rates(self._changes(batch, shown, self._policy.throttle_bytes_per_s))
            return shown

        with suppress(HeadroomError):
            return require_known(snapshot)
        return self._retry(f"batch {number}", lambda: require_known(self._control.read()))

    def _run_batch(self, number: int, batch: ReassignmentPlan, snapshot: RunSnapshot) -> None:
        """Throttle and submit a batch, and wait for its end."""
        changes = self._changes(batch, snapshot, self._policy.throttle_bytes_per_s)
        rate = self._throttle.rate_for(snapshot, changes)
        changes = self._changes(batch, snapshot, rate)
        self._note_missing(changes, snapshot)
        # An earlier batch may have left one where it was.
        self._refused = {name: reason for name, reason in self._refused.items() if name not in changes.moves}
        self._begin()
        self._throttle.apply(changes, snapshot)
        self._output.note(f"batch {number}: submitting {len(changes.submit)} partitions")
        not_placed = self._placement.request(changes.places)
        self._report_refused(number, "a broker", not_placed)
        # A replica that is not to be where the broker would put it is not to be made at all.
        submitted = {name: move for name, move in changes.submit.items() if name not in not_placed}
        self._report_refused(number, "the controller", self._moves.submit(submitted))
        of = f"{number} of {self._policy.numbers.total or len(self._batches)}"
        self._watch(f"batch {of}")
        ended = "ended" if self._reason_to_take_back() is None else "taken back"
        self._output.line(f"Batch {of}: {ended}, {len(changes.moves)} partitions")

    def _changes(self, batch: ReassignmentPlan, snapshot: RunSnapshot, rate: int | None) -> BatchChanges:
        return batch_changes(batch, snapshot, self._journal.record, rate, self._policy.log_dirs_bytes_per_s)

    def _report_refused(self, number: int, by: str, refused: Mapping[TopicPartition, str]) -> None:
        self._refused |= refused
        for reason in sorted(set(refused.values())):
            names = [name for name, why in refused.items() if why == reason]
            self._output.line(f"Batch {number}: refused by {by}: {partitions_text(names)} ({reason})")

    def _begin(self) -> None:
        """Write the beginning of the run, unless it goes on after a crash."""
        if self._began():
            return
        partitions = len({assignment.name for batch in self._batches for assignment in batch})
        options = {
            "throttle_bytes_per_s": self._policy.throttle_bytes_per_s,
            "batches": len(self._batches),
            "partitions": partitions,
            "log_dirs_bytes_per_s": self._policy.log_dirs_bytes_per_s,
            "command": self._policy.command,
            "topic_ids": dict(self._journal.record.topic_ids),
            "offline": numbers_by_topic(self._lost_before.offline),
            "under_replicated": numbers_by_topic(self._lost_before.under_replicated),
            "rates": rates_by_subject(self._journal.record.rates_before),
        }
        self._journal.write(
            [JournalStep(StepKind.RUN, StepState.INTENDED, self._fingerprint, None, json.dumps(options))]
        )

    def _watch(self, what: str = "the run") -> RunSnapshot:
        """Return the cluster once nothing of the run moves; what has ended leaves the throttle meanwhile.

        Raises:
            HeadroomError: the cluster or the journal failed for longer than the policy allows.
        """
        self._copies = CopyProgress(self._control, self._clock)
        while True:
            snapshot, moving, placing = self._retry(what, self._look)
            if not moving and not placing:
                return snapshot
            self._output.note(f"{what}: {self._progress(moving, placing, snapshot)}")
            self._sleep(self._policy.poll_s)

    def _progress(self, moving: Sequence[TopicPartition], placing: Sequence[ReplicaKey], snapshot: RunSnapshot) -> str:
        parts = []
        if moving:
            parts.append(f"{len(moving)} partitions are moving, such as {moving[0]}")
            awaited = sorted(ReplicaKey(name, broker) for name in moving for broker in snapshot.awaited_brokers(name))
            if awaited:
                down = broker_names(sorted({replica.broker for replica in awaited}))
                more = f" and {len(awaited) - 1} more" if len(awaited) > 1 else ""
                parts.append(f"waiting for {down}, down: the replica of {awaited[0].name}{more}")
            copied = self._copies.text(moving, snapshot)
            parts += [copied] * bool(copied)
        if placing:
            left_bytes = remaining_bytes(self._journal.record, snapshot)
            parts.append(f"{len(placing)} replicas are on their way to a log directory, such as {placing[0]}")
            dead = sorted({replica.broker for replica in placing} - snapshot.alive)
            parts += [f"waiting for {broker_names(dead)}, down"] * bool(dead)
            parts += [f"{size_text(left_bytes)} are left between log directories"] * bool(left_bytes)
        return "; ".join(parts)

    def _look(self) -> tuple[RunSnapshot, list[TopicPartition], list[ReplicaKey]]:
        """Write and release what has ended, care for the throttle, and return the cluster and what still moves."""
        snapshot = self._control.read()
        cancelled = self._moves.finish_ended_cancellations(snapshot)
        if self._reason_to_take_back() is None:
            for name in sorted(cancelled):
                self._refused[name] = "its cancellation had begun before the run went on, and took place since"
                self._output.line(f"{name} did not get its target replicas: {self._refused[name]}")
        elsewhere = self._moves.note_ended(snapshot)
        for name, replicas in elsewhere.items():
            self._refused[name] = f"cancelled or changed by others, its replicas are {replicas}"
            self._output.line(f"{name} did not get its target replicas: {self._refused[name]}")
        for replica, reason in self._placement.note_ended(snapshot).items():
            self._refused[replica.name] = f"broker {replica.broker}: {reason}, and not that of the plan"
            self._output.line(f"{replica} did not get its log directory: {reason}")
        self._throttle.release(snapshot)
        record = self._journal.record
        moving, placing = sorted(record.unended_moves), self._placement.awaited()
        if (moving or placing) and self._reason_to_take_back() is None:
            self._throttle.look(snapshot, moving, placing)
            self._placement.request_forgotten(snapshot)
        if (moving or placing) and self._reason_to_take_back() is not None:
            # What others have sent elsewhere is theirs to cancel.
            own = [name for name in moving if not is_moved_by_others(name, snapshot, record)]
            self._take_back(own, placing, snapshot)
        return snapshot, moving, placing

    def _reason_to_take_back(self) -> str | None:
        """Return why the current batch is to be cancelled; None if it is not."""
        if self._stop.is_set() and self._policy.cancel_on_stop:
            return self._policy.stopped_by()
        return self._throttle.cleared_reason

    def _take_back(
        self, moving: Sequence[TopicPartition], placing: Collection[ReplicaKey], snapshot: RunSnapshot
    ) -> None:
        if placing:
            self._output.line(f"Ending {len(placing)} copies to other log directories")
        failed = {str(replica): reason for replica, reason in self._placement.cancel(placing, snapshot).items()}
        if moving:
            require_known_moves(snapshot)
            self._output.line(f"Cancelling {len(moving)} partitions, and restoring the order of their replicas")
            submitted = self._journal.record.submitted
            cancelled = self._moves.cancel({name: submitted[name].before for name in moving})
            failed |= {str(name): reason for name, reason in sorted(cancelled.items())}
        for subject, reason in failed.items():
            self._output.line(f"{subject} was not cancelled: {reason}")

    def _end(self, snapshot: RunSnapshot, state: StepState) -> None:
        """Take back the throttle, elect preferred leaders after the last batch, and write the end of the run."""
        self._throttle.release(snapshot)
        self._kept_rates = self._throttle.restore(snapshot)
        if state is StepState.DONE and not self._journal.record.elected and not self._elect(snapshot):
            # The same command tries them again.
            state = StepState.UNDONE
        if self._journal.record.placing:
            # The same command follows what a broker may do once it is up.
            state = StepState.UNDONE
        self._journal.write([JournalStep(StepKind.RUN, state, self._fingerprint)])

    def _elect(self, snapshot: RunSnapshot) -> bool:
        """Elect preferred leaders of the plan's partitions, and return whether all of them lead."""
        for tries_left in range(_ELECTION_TRIES - 1, -1, -1):
            names = leads_to_elect(self._batches, snapshot, self._journal.record)
            # Leaders that have come by themselves since the elections failed settle it, too.
            tried = names or self._journal.record.elections_failed
            self._unelected = self._elect_all(LAST_ELECTIONS, names) if tried else {}
            if not self._unelected:
                break
            if not tries_left or self._stop.is_set():
                return False
            self._output.note("preferred leaders were not all elected; trying again")
            self._sleep(self._policy.pause_s)
            snapshot = self._retry("the elections", self._control.read)
        return True

    def _elect_all(self, subject: str, names: Sequence[TopicPartition]) -> Mapping[TopicPartition, str]:
        """Elect preferred leaders, and return by partition why its own was not elected."""
        self._journal.write([JournalStep(StepKind.ELECT, StepState.INTENDED, subject, None, str(len(names)))])
        try:
            # Elections have batches of their own.
            left_out = self._control.elect(names, lambda text: self._output.note(f"elections: {text}")) if names else {}
        except HeadroomError as error:
            left_out = dict.fromkeys(names, f"elections: {error.subject} {error.rule}")
        for reason in sorted(set(left_out.values())):
            without = partitions_text(name for name, why in left_out.items() if why == reason)
            self._output.line(f"Preferred leaders were not all elected: {without} ({reason})")
        state = StepState.FAILED if left_out else StepState.DONE
        reasons = "; ".join(sorted(set(left_out.values())))
        self._journal.write([JournalStep(StepKind.ELECT, state, subject, None, reasons or str(len(names)))])
        return left_out
