"""What a run has set and not yet taken back, from its journal: the base of resuming, undoing and cleaning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

from headroom.planning.reassignments.run.journal import (
    FIRST_ELECTIONS,
    Entry,
    JournalRow,
    StepKind,
    StepState,
    ThrottledList,
    in_time_order,
    list_of_subject,
    options_of,
    partition_of_subject,
    partitions_of_numbers,
    rate_of_subject,
    rates_of_subjects,
    replica_of_subject,
    replicas_of_text,
)
from headroom.planning.reassignments.run.snapshot import LostReplicas
from headroom.planning.throttles.replica_lists import parse_replica_list
from headroom.schemas.keys import BrokerRate, ReplicaKey, TopicPartition


class RunState(str, Enum):
    """State of a run.

    Attributes:
        UNFINISHED: started and not ended: it is running, or was killed.
        DONE: ended after its last batch.
        ENDED: ended before its last batch, or without its elections.
    """

    UNFINISHED = "unfinished"
    DONE = "done"
    ENDED = "ended"


_Add = Callable[[JournalRow, StepState], None]
# Commands whose changes are no run: they are made in one go.
_IN_ONE_GO = frozenset({"throttle", "elections", "migration"})
_STATES = {
    StepState.INTENDED: RunState.UNFINISHED,
    StepState.DONE: RunState.DONE,
    StepState.UNDONE: RunState.ENDED,
    StepState.FAILED: RunState.ENDED,
}


@dataclass(frozen=True)
class OwnRate:
    """A throttle rate that a run has set, or was about to set.

    Attributes:
        before: the broker's own rate before the run, bytes per second; None if none was set.
        own: every rate that the run set, or was about to set.
        confirmed: whether the broker has read one of them back, in this part of the run.
    """

    before: int | None
    own: frozenset[int]
    confirmed: bool = False


@dataclass(frozen=True)
class Submission:
    """A reassignment that a run has submitted, or was about to submit.

    Attributes:
        before: replicas before, in their order.
        after: target replicas.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True)
class Interrupted:
    """A cancellation that was begun, and after which the order of the replicas was not restored.

    Attributes:
        before: replicas before the reassignment, in their order; empty if it was unknown.
        left: the same, in the order that Kafka leaves.
    """

    before: tuple[int, ...]
    left: tuple[int, ...]


@dataclass(frozen=True)
class DirectoryPlacement:
    """The log directory of a replica of a run.

    Attributes:
        before: path before; None if the plan adds the replica, or if it was unknown.
        after: path that the run has requested, or was about to request; None if the plan removes the replica.
    """

    before: str | None
    after: str | None


@dataclass(frozen=True)
class RecordedRun:
    """A run as its journal has it.

    Attributes:
        run_id: id of the run.
        cluster: name of the cluster.
        command: command that began it.
        fingerprint: fingerprint of the plan.
        by: user and host that began it, or resumed it last.
        began_ms: time of its first row, epoch milliseconds; None without rows.
        last_ms: time of its last row, epoch milliseconds.
        state: state of the run.
        entries: entries of throttled replica lists that the run has appended and not removed.
        rates: rates that it has set and not restored.
        submitted: its reassignments, cancelled ones left out.
        cancelling: partitions whose cancellation has begun and not ended.
        finished: partitions whose reassignment has ended.
        refused: partitions that the controller refused, or that ended elsewhere, with the reason.
        cancelled: partitions whose reassignment was cancelled, by the run or by others, and not submitted again.
        placed: log directories of the replicas of partitions for which the plan names any.
        placing: replicas of these that are not known to be in their directory yet.
        elected: whether the elections at the end are done.
        elections_failed: whether they failed, so that the same command is to try them again.
        last_step: step, subject and state of its last row: ``finish orders-0 done``.
        rows: number of its rows, which is the number of the last one.
        damaged_rows: numbers of its rows that cannot be understood, or that a disk has lost: what they set is unknown.
        topic_ids: ids of the plan's topics when the run began; empty if they are unknown.
        lost_before: partitions with lost replicas when the run began, or went on after an early end; None if unknown.
        rates_before: rates in force then on the brokers of the plan, bytes per second, None for none; an unknown one is
            missing, and all are if the run has ended.
        interrupted: interrupted cancellations of all commands, for a run that is about to begin or to go on.
        requests: number of the request that submitted each partition last, in the order of time: one for each batch, or
            more after an interruption.
    """

    run_id: str
    cluster: str = ""
    command: str = ""
    fingerprint: str = ""
    by: str = ""
    began_ms: int | None = None
    last_ms: int | None = None
    state: RunState = RunState.ENDED
    entries: Mapping[ThrottledList, frozenset[Entry]] = field(default_factory=dict)
    rates: Mapping[BrokerRate, OwnRate] = field(default_factory=dict)
    submitted: Mapping[TopicPartition, Submission] = field(default_factory=dict)
    cancelling: frozenset[TopicPartition] = frozenset()
    finished: frozenset[TopicPartition] = frozenset()
    refused: Mapping[TopicPartition, str] = field(default_factory=dict)
    cancelled: frozenset[TopicPartition] = frozenset()
    placed: Mapping[ReplicaKey, DirectoryPlacement] = field(default_factory=dict)
    placing: frozenset[ReplicaKey] = frozenset()
    elected: bool = False
    elections_failed: bool = False
    last_step: str = ""
    rows: int = 0
    damaged_rows: frozenset[int] = frozenset()
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    lost_before: LostReplicas | None = None
    rates_before: Mapping[BrokerRate, int | None] = field(default_factory=dict)
    interrupted: Mapping[TopicPartition, Interrupted] = field(default_factory=dict)
    requests: Mapping[TopicPartition, int] = field(default_factory=dict)

    @property
    def leaves_behind(self) -> bool:
        """Whether something that the run has set is still to be taken back."""
        return bool(self.entries or self.rates or self.cancelling)

    @cached_property
    def unended_moves(self) -> frozenset[TopicPartition]:
        """Partitions whose reassignment by the run is, or may be, running: submitted, and without an end so far.

        A later reassignment of the same partition is not of the run.
        """
        return frozenset(self.submitted.keys() - self.finished)

    def is_remade(self, topic: str, topic_ids: Mapping[str, str]) -> bool:
        """Return whether a topic was deleted since the run began, and another one of its name was made.

        Args:
            topic: name of the topic.
            topic_ids: id of each topic now.
        """
        known, now = self.topic_ids.get(topic), topic_ids.get(topic)
        return known is not None and now is not None and known != now

    def after(self, rows: Iterable[JournalRow]) -> RecordedRun:
        """Return the record after further rows of this run, in their order."""
        fold = _Fold(self)
        for row in rows:
            fold.add(row)
        return fold.record()


def run_records(rows: Iterable[JournalRow]) -> list[RecordedRun]:
    """Return the runs in a journal, the oldest first; rows of commands that run no plan are left out.

    Args:
        rows: rows of one cluster, in any order.
    """
    by_run: dict[str, list[JournalRow]] = {}
    for row in rows:
        by_run.setdefault(row.run_id, []).append(row)
    in_order = [sorted(of_run, key=lambda row: row.seq) for of_run in by_run.values()]
    of_plans = [of_run for of_run in in_order if _is_of_plan(of_run)]
    bases = _rates_before_all(row for of_run in of_plans for row in of_run)
    runs = [_at_start(of_run[0]).after(map(bases, of_run)) for of_run in of_plans]
    return sorted(runs, key=lambda record: (record.began_ms or 0, record.run_id))


def _rates_before_all(rows: Iterable[JournalRow]) -> Callable[[JournalRow], JournalRow]:
    """Return what gives a row, as the rate from before, that from before all runs whose rates were in force then.

    Another run may have left a rate behind, which it takes back itself, or gives up because it is changed. Restored by
    the later run, it would be a rate that no journal knows.

    Args:
        rows: rows of runs of plans.
    """
    befores: dict[tuple[str, int], str | None] = {}
    # By rate and run: what the run has set, and what was before it.
    in_force: dict[str, dict[str, tuple[set[str], str | None]]] = {}
    for row in in_time_order(rows):
        if row.step != StepKind.RATE.value:
            continue
        of_runs = in_force.setdefault(row.subject, {})
        if row.state == StepState.UNDONE.value:
            of_runs.pop(row.run_id, None)
        elif row.state == StepState.INTENDED.value and row.after is not None:
            others = [base for run, (own, base) in of_runs.items() if run != row.run_id and row.before in own]
            before = others[-1] if others else row.before
            own, base = of_runs.setdefault(row.run_id, (set(), before))
            own.add(row.after)
            befores[row.run_id, row.seq] = base

    def with_base(row: JournalRow) -> JournalRow:
        before = befores.get((row.run_id, row.seq), row.before)
        return row if before == row.before else replace(row, before=before)

    return with_base


def _is_of_plan(rows: Sequence[JournalRow]) -> bool:
    """Return whether rows, in order, are of a run of a plan, also where a disk has lost its first ones."""
    if any(row.step == StepKind.RUN.value for row in rows):
        return True
    return rows[0].seq > 1 and rows[0].command.partition(" ")[0] not in _IN_ONE_GO


def _at_start(first: JournalRow) -> RecordedRun:
    """Return the record before the first row that is there."""
    if first.seq == 1:
        return RecordedRun(first.run_id)
    # The first row makes the others known as lost.
    return RecordedRun(first.run_id, first.cluster, first.command, by=first.by, state=RunState.UNFINISHED)


# A number that a disk has changed may be any.
_MOST_LOST = 10_000
# Beginning and end of the text of a step that is about to submit a partition.
_SUBMITTING = (f"{StepKind.SUBMIT.value} ", f" {StepState.INTENDED.value}")


class _Fold:
    """A record that rows are added to; the collections are copied once, not for every row."""

    def __init__(self, start: RecordedRun) -> None:
        self._record = start
        self._entries = {name: set(entries) for name, entries in start.entries.items()}
        self._rates = dict(start.rates)
        self._submitted = dict(start.submitted)
        self._requests = dict(start.requests)
        self._latest = max(start.requests.values(), default=0)
        self._request_goes_on = False
        self._cancelling = set(start.cancelling)
        self._finished = set(start.finished)
        self._refused = dict(start.refused)
        self._cancelled = set(start.cancelled)
        self._placed = dict(start.placed)
        self._placing = set(start.placing)
        self._damaged_rows = set(start.damaged_rows)

    def record(self) -> RecordedRun:
        return replace(
            self._record,
            entries={name: frozenset(entries) for name, entries in self._entries.items() if entries},
            rates=self._rates,
            submitted=self._submitted,
            requests=self._requests,
            cancelling=frozenset(self._cancelling),
            finished=frozenset(self._finished),
            refused=self._refused,
            cancelled=frozenset(self._cancelled),
            placed=self._placed,
            placing=frozenset(self._placing),
            damaged_rows=frozenset(self._damaged_rows),
        )

    def add(self, row: JournalRow) -> None:
        began_ms = row.at_ms if self._record.began_ms is None else self._record.began_ms
        # The partitions of one request are in rows that follow one another.
        last = self._record.last_step
        self._request_goes_on = last.startswith(_SUBMITTING[0]) and last.endswith(_SUBMITTING[1])
        # Its rows are numbered without gaps.
        self._damaged_rows |= set(range(self._record.rows + 1, min(row.seq, self._record.rows + _MOST_LOST)))
        self._record = replace(
            self._record,
            rows=max(self._record.rows, row.seq),
            began_ms=began_ms,
            last_ms=row.at_ms,
            last_step=f"{row.step} {row.subject} {row.state}",
        )
        # A newer version of Headroom may write steps that are not known here; they set nothing that is known here.
        known: dict[str, _Add] = {
            StepKind.RUN.value: self._add_run,
            StepKind.LIST.value: self._add_list,
            StepKind.RATE.value: self._add_rate,
            StepKind.SUBMIT.value: self._add_submit,
            StepKind.FINISH.value: self._add_finish,
            StepKind.CANCEL.value: self._add_cancel,
            StepKind.PLACE.value: self._add_place,
            StepKind.ELECT.value: self._add_elections,
        }
        if row.step not in known:
            return
        try:
            known[row.step](row, StepState(row.state))
        # Texts that no version writes. The rest of the run is needed all the same, to take back what it has set.
        except (ValueError, TypeError, AttributeError):
            self._damaged_rows.add(row.seq)

    def _add_run(self, row: JournalRow, state: StepState) -> None:
        self._record = replace(self._record, state=_STATES[state], rates_before={})
        self._rates = {name: replace(own, confirmed=False) for name, own in self._rates.items()}
        if state is StepState.INTENDED:
            self._record = replace(
                self._record, cluster=row.cluster, command=row.command, fingerprint=row.subject, by=row.by
            )
            options = options_of(row)
            # A journal of an older version has none of these.
            if "topic_ids" in options:
                self._record = replace(self._record, topic_ids=dict(options["topic_ids"]))
            offline, out_of_sync = options.get("offline"), options.get("under_replicated")
            if offline is not None and out_of_sync is not None:
                lost = LostReplicas(partitions_of_numbers(offline), partitions_of_numbers(out_of_sync))
                self._record = replace(self._record, lost_before=lost)
            self._record = replace(self._record, rates_before=rates_of_subjects(options.get("rates") or {}))

    def _add_list(self, row: JournalRow, state: StepState) -> None:
        name, listed = list_of_subject(row.subject), parse_replica_list(row.after)
        if name is None or listed is None:
            return
        own = self._entries.setdefault(name, set())
        if state is StepState.UNDONE:
            own.difference_update(listed.entries)
        elif state is StepState.INTENDED:
            own.update(listed.entries)

    def _add_rate(self, row: JournalRow, state: StepState) -> None:
        name = rate_of_subject(row.subject)
        if name is None:
            return
        if state is StepState.UNDONE:
            self._rates.pop(name, None)
        elif state is StepState.DONE and name in self._rates:
            self._rates[name] = replace(self._rates[name], confirmed=True)
        elif state is StepState.INTENDED and row.after is not None:
            before = None if row.before is None else int(row.before)
            earlier = self._rates.get(name, OwnRate(before, frozenset()))
            self._rates[name] = replace(earlier, own=earlier.own | {int(row.after)})

    def _add_submit(self, row: JournalRow, state: StepState) -> None:
        name = partition_of_subject(row.subject)
        if state is StepState.INTENDED:
            self._submitted[name] = Submission(replicas_of_text(row.before), replicas_of_text(row.after))
            self._latest += 0 if self._request_goes_on else 1
            self._requests[name] = self._latest
            self._finished.discard(name)
            self._cancelling.discard(name)
            self._cancelled.discard(name)
            self._refused.pop(name, None)
        elif state is StepState.FAILED:
            self._submitted.pop(name, None)
            self._refused[name] = row.after or "refused"

    def _add_finish(self, row: JournalRow, state: StepState) -> None:
        name = partition_of_subject(row.subject)
        self._finished.add(name)
        self._cancelling.discard(name)
        if state is StepState.FAILED:
            self._refused[name] = f"its replicas are {row.after}"
            submitted = self._submitted.get(name)
            if submitted is not None and set(replicas_of_text(row.after)) == set(submitted.before):
                self._cancelled.add(name)

    def _add_cancel(self, row: JournalRow, state: StepState) -> None:
        name = partition_of_subject(row.subject)
        if state is StepState.INTENDED:
            self._cancelling.add(name)
            return
        self._cancelling.discard(name)
        if state is StepState.DONE:
            self._submitted.pop(name, None)
            self._finished.discard(name)
            self._cancelled.add(name)

    def _add_place(self, row: JournalRow, state: StepState) -> None:
        replica = replica_of_subject(row.subject)
        if replica is None:
            return
        if state is StepState.INTENDED:
            # Requested again after a crash, it may be on its way: what counts is the directory from before the run.
            earlier = self._placed.get(replica)
            before = row.before if earlier is None else earlier.before
            self._placed[replica] = DirectoryPlacement(before, row.after)
            self._refused.pop(replica.name, None)
            if row.after is not None:
                self._placing.add(replica)
            return
        self._placing.discard(replica)
        if state is not StepState.DONE:
            self._placed.pop(replica, None)
        if state is StepState.FAILED:
            self._refused[replica.name] = row.after or "refused"

    def _add_elections(self, row: JournalRow, state: StepState) -> None:
        if row.subject != FIRST_ELECTIONS:
            failed = state is StepState.FAILED
            self._record = replace(self._record, elected=state is StepState.DONE, elections_failed=failed)
