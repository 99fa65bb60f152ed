"""A cluster in memory that carries out reassignments, and a journal in memory; both crash at a chosen step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from headroom.cluster.log_dirs.describe import LogDirsReading
from headroom.cluster.reassignment.execution.control import PlaceAnswers
from headroom.planning.log_dirs.broker_logs import BrokerLogs, ReplicaLog
from headroom.planning.reassignments.cluster_state import LogDirectory, PartitionPlacement
from headroom.planning.reassignments.run.changes import listed_entries
from headroom.planning.reassignments.run.journal import Entry, JournalRow, ThrottledList
from headroom.planning.reassignments.run.record import RecordedRun, run_records
from headroom.planning.reassignments.run.snapshot import RateInForce, RunSnapshot
from headroom.planning.throttles.replica_lists import format_replica_list
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import BrokerRate, BrokerRole, LogDirsRate, ReplicaKey, Role, TopicPartition
from tests.support.journal_specification import JournalTrace

# The log directories of every broker.
PATHS = ("/a", "/b")


class Killed(BaseException):
    """The process was killed: no handler of the product catches it."""


@dataclass
class Crash:
    """Kills the process at one of its steps, counted from 1; never if it is 0.

    Attributes:
        at: the step.
        steps: steps so far.
        on_step: called at every step at which the process is not killed.
    """

    at: int = 0
    steps: int = 0
    on_step: Callable[[], None] | None = None

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.at:
            raise Killed(f"at step {self.at}")
        if self.on_step is not None:
            self.on_step()


class Answer(str, Enum):
    """What becomes of a request and its answer.

    Attributes:
        LOST: the request is carried out, and no answer comes.
        REFUSED: the request is not carried out: no controller is elected.
        LATE: the request is carried out. For some looks brokers show the replicas from before, but the controller its
            reassignments.
        UNREAD: the request is carried out. For some looks no controller answers, and all is shown as before.
    """

    LOST = "lost"
    REFUSED = "refused"
    LATE = "late"
    UNREAD = "unread"


@dataclass
class Disturbance:
    """Requests, counted from 1, whose answer is not as usual.

    Attributes:
        answer: what becomes of them.
        at: the first of them; late answers and those without a controller count reassignments only.
        requests: number of them.
        looks: looks that are out of date after one.
        seen: requests so far.
    """

    answer: Answer
    at: int = 1
    requests: int = 1
    looks: int = 2
    seen: int = 0

    def of_next(self, is_reassignment: bool = False) -> Answer | None:
        """Return what becomes of the next request; None: all is as usual."""
        if self.answer in (Answer.LATE, Answer.UNREAD) and not is_reassignment:
            return None
        self.seen += 1
        return self.answer if self.at <= self.seen < self.at + self.requests else None


@dataclass
class FakeReassignedCluster:
    """Brokers, partitions and throttles, with Kafka's rules of reassignments and of incremental changes.

    Attributes:
        partitions: every partition.
        alive: brokers that are up.
        rates: own rates by broker and role.
        defaults: cluster-wide default by role.
        lists: throttled replica lists that are set.
        looks: looks that a new replica needs to be in sync.
        refusing: partitions whose reassignment the controller refuses.
        refusing_rates: brokers that refuse rates.
        silent: looks for which a broker that is up does not report its rates.
        failing: number of reads that fail from now on.
        crash: kills the process at a step.
        on_look: called at every look.
        stale: looks after each reassignment request that still show the partitions from before it.
        unread: whether these looks have not read the reassignments, because no controller answers.
        offline: partitions with an offline replica.
        disturbance: requests whose answer is not as usual.
        requests: changes that were requested.
        left: looks until the reassignment of a partition ends.
        elected: partitions whose preferred leader was elected.
        paths: log directory of each replica that is not in the first one.
        futures: directory that a replica is copied to, and looks until it is there.
        kept: directories that brokers keep for replicas that do not exist yet.
        refusing_paths: directories that every broker refuses.
        free_bytes: free bytes of every directory.
        free_of: free bytes of every directory of a broker, where they differ.
        size_bytes: size of every log.
        hidden_topics: topics that looks leave out.
        remade: number of times that a topic was deleted and made again.
        caches_ends: whether looks show a partition at its end as it was before, until its topic is read again.
        refreshed: topics that the next look was asked to read again.
        failing_elections: number of elections that fail from now on.
        left_out: partitions whose elections are left out, with the reason.
        auto_leader_rebalance: whether brokers say that Kafka gives leads to preferred leaders by itself.
        waits_for_kept: whether a reassignment ends only once all its target replicas are up, as before Kafka 4.3.
    """

    partitions: dict[TopicPartition, PartitionPlacement]
    alive: set[int]
    rates: dict[BrokerRate, int] = field(default_factory=dict)
    defaults: dict[str, int] = field(default_factory=dict)
    lists: dict[ThrottledList, str] = field(default_factory=dict)
    looks: int = 2
    refusing: set[TopicPartition] = field(default_factory=set)
    refusing_rates: set[int] = field(default_factory=set)
    silent: dict[int, int] = field(default_factory=dict)
    failing: int = 0
    offline: set[TopicPartition] = field(default_factory=set)
    crash: Crash = field(default_factory=Crash)
    on_look: Callable[[FakeReassignedCluster], None] = lambda cluster: None
    requests: list[tuple[str, object]] = field(default_factory=list)
    left: dict[TopicPartition, int] = field(default_factory=dict)
    elected: list[TopicPartition] = field(default_factory=list)
    stale: int = 0
    unread: bool = False
    paths: dict[ReplicaKey, str] = field(default_factory=dict)
    futures: dict[ReplicaKey, tuple[str, int]] = field(default_factory=dict)
    kept: dict[ReplicaKey, str] = field(default_factory=dict)
    refusing_paths: set[str] = field(default_factory=set)
    free_bytes: int = 10**12
    free_of: dict[int, int] = field(default_factory=dict)
    size_bytes: int = 1_000_000
    auto_leader_rebalance: bool | None = False
    waits_for_kept: bool = False
    hidden_topics: set[str] = field(default_factory=set)
    remade: dict[str, int] = field(default_factory=dict)
    caches_ends: bool = False
    refreshed: list[str] = field(default_factory=list)
    failing_elections: int = 0
    left_out: dict[TopicPartition, str] = field(default_factory=dict)
    disturbance: Disturbance | None = None
    _cached: dict[TopicPartition, PartitionPlacement] = field(default_factory=dict)
    _shown: tuple[int, dict[TopicPartition, PartitionPlacement]] = (0, {})
    _out_of_date: Answer | None = None

    def read(self) -> RunSnapshot:
        self.crash.step()
        self.on_look(self)
        self.advance()
        self.silent = {broker: looks - 1 for broker, looks in self.silent.items() if looks > 0}
        if self.failing:
            self.failing -= 1
            raise HeadroomError("the cluster", "did not answer", "Wait.")
        looks, before = self._shown
        self._shown = (looks - 1, before)
        if looks <= 0:
            return self.snapshot(self.partitions)
        if self._out_of_date is Answer.LATE:
            return self.snapshot({name: self._with_reassignment(name, before.get(name)) for name in self.partitions})
        is_unread = self.unread or self._out_of_date is Answer.UNREAD
        return replace(self.snapshot(before), reassignments_read=not is_unread)

    def _with_reassignment(self, name: TopicPartition, before: PartitionPlacement | None) -> PartitionPlacement:
        """Return the replicas from before with the reassignment of now, as one who asks a broker and the controller."""
        now = self.partitions[name]
        return now if before is None else replace(before, adding=now.adding, removing=now.removing)

    def snapshot(self, partitions: Mapping[TopicPartition, PartitionPlacement]) -> RunSnapshot:
        shown = {n: p for n, p in {**partitions, **self._cached}.items() if n.topic not in self.hidden_topics}
        return RunSnapshot(
            shown,
            frozenset(self.alive),
            {role: self._rate(role) for role in self._roles()},
            dict(self.lists),
            {name.topic: f"id-{name.topic}" + "'" * self.remade.get(name.topic, 0) for name in shown},
            frozenset(self.offline),
            logs=self.read_logs(sorted(self.alive), None).brokers,
            auto_leader_rebalance=self.auto_leader_rebalance,
            waits_for_kept=self.waits_for_kept,
        )

    def refresh(self, topics: Collection[str]) -> None:
        self.refreshed += sorted(topics)
        self._cached = {name: p for name, p in self._cached.items() if name.topic not in topics}

    def _roles(self) -> list[BrokerRate]:
        reporting = sorted(self.alive - self.silent.keys())
        replication: list[BrokerRate] = [BrokerRole(broker, role) for broker in reporting for role in Role]
        return replication + [LogDirsRate(broker) for broker in reporting]

    def _rate(self, name: BrokerRate) -> RateInForce:
        own = self.rates.get(name)
        return RateInForce(own, None if own is not None else self.defaults.get(name.role.value))

    def path_of(self, replica: ReplicaKey) -> str:
        return self.paths.get(replica, PATHS[0])

    def read_logs(self, brokers: Collection[int], names: Collection[TopicPartition] | None) -> LogDirsReading:
        return LogDirsReading({broker: self._logs(broker) for broker in brokers if broker in self.alive}, {})

    def _logs(self, broker: int) -> BrokerLogs:
        replicas = [ReplicaKey(n, broker) for n, p in self.partitions.items() if broker in p.replicas]
        free_bytes = self.free_of.get(broker, self.free_bytes)
        return BrokerLogs(
            broker,
            tuple(LogDirectory(path, 10**12 + number, free_bytes) for number, path in enumerate(PATHS)),
            {r.name: ReplicaLog(self.path_of(r), self._size_of(r), 0) for r in replicas},
            {r.name: ReplicaLog(self.futures[r][0], self.size_bytes // 2, 1) for r in replicas if r in self.futures},
        )

    def _size_of(self, replica: ReplicaKey) -> int:
        """Return the size of a log; that of a new replica grows at every look."""
        if replica.broker not in self.partitions[replica.name].adding:
            return self.size_bytes
        return self.size_bytes * max(0, self.looks - self.left[replica.name]) // max(1, self.looks)

    def _of_next(self, is_reassignment: bool = False) -> Answer | None:
        return None if self.disturbance is None else self.disturbance.of_next(is_reassignment)

    def place(self, directories: Mapping[ReplicaKey, str]) -> PlaceAnswers:
        answer, refused = self._of_next(), {}
        if answer is Answer.REFUSED:
            return PlaceAnswers(dict.fromkeys(directories, "was refused (KafkaStorageError)"))
        for replica, path in sorted(directories.items()):
            self.crash.step()
            partition = self.partitions.get(replica.name)
            if path in self.refusing_paths:
                refused[replica] = f"cannot be in {path}"
            elif partition is None or replica.broker not in partition.replicas:
                self.kept[replica] = path
            elif self.path_of(replica) == path:
                self.futures.pop(replica, None)
            elif self.futures.get(replica, ("", 0))[0] != path:
                self.futures[replica] = (path, self.looks)
            self.requests.append(("place", (replica, path)))
        self.crash.step()
        if answer is Answer.LOST:
            return PlaceAnswers(unanswered=dict.fromkeys(directories, "no answer (KafkaTimeoutError)"))
        return PlaceAnswers(refused)

    def advance(self) -> None:
        """Let a look's time pass: new replicas of live brokers come closer, and reassignments end."""
        for name in list(self.left):
            partition = self.partitions[name]
            if not self._may_end(partition):
                continue
            self.left[name] -= 1
            if self.left[name] <= 0:
                self._finish(name)
        for replica, (path, looks) in list(self.futures.items()):
            if replica.broker in self.alive:
                self.futures[replica] = (path, looks - 1)
                if looks <= 1:
                    self.paths[replica] = path
                    del self.futures[replica]

    def _may_end(self, partition: PartitionPlacement) -> bool:
        is_smaller = len(partition.adding) < len(partition.removing)
        awaited = partition.target if self.waits_for_kept or is_smaller else partition.adding
        return set(awaited) <= self.alive

    def _finish(self, name: TopicPartition) -> None:
        partition, target = self.partitions[name], self.partitions[name].target
        leader = partition.leader if partition.leader in target else target[0]
        self._remove_logs(name, target)
        if self.caches_ends:
            self._cached[name] = replace(partition, adding=(), removing=())
        self.partitions[name] = _placed(name, target, leader)
        del self.left[name]

    def _remove_logs(self, name: TopicPartition, kept: tuple[int, ...]) -> None:
        for broker in self.partitions[name].replicas:
            if broker not in kept:
                self.paths.pop(ReplicaKey(name, broker), None)
                self.futures.pop(ReplicaKey(name, broker), None)

    def append_entries(self, entries: Mapping[ThrottledList, Collection[Entry]]) -> None:
        answer = self._of_next()
        if answer is Answer.REFUSED:
            raise _unanswered("the throttled replica lists", "NotControllerError")
        for name, added in sorted(entries.items()):
            self.crash.step()
            listed = listed_entries(self.lists.get(name))
            assert listed is not None, "entries beside * are refused"
            self.lists[name] = format_replica_list({*listed, *added})
            self.requests.append(("append", name))
        self.crash.step()
        if answer is Answer.LOST:
            raise _unanswered("the throttled replica lists", "KafkaTimeoutError")

    def subtract_entries(self, entries: Mapping[ThrottledList, Collection[Entry]]) -> None:
        answer = self._of_next()
        if answer is Answer.REFUSED:
            raise _unanswered("the throttled replica lists", "NotControllerError")
        for name, removed in sorted(entries.items()):
            self.crash.step()
            listed = listed_entries(self.lists.get(name))
            if listed is None:
                continue
            if name in self.lists and listed & set(removed):
                # Kafka leaves an emptied list as an empty text.
                self.lists[name] = format_replica_list(listed - set(removed))
            self.crash.step()
            # Without an answer the emptied list is not deleted.
            if self.lists.get(name) == "" and answer is not Answer.LOST:
                del self.lists[name]
        self.crash.step()
        if answer is Answer.LOST:
            raise _unanswered("the throttled replica lists", "KafkaTimeoutError")

    def set_rates(self, rates: Mapping[BrokerRate, int | None]) -> Mapping[int, str]:
        answer = self._of_next()
        if answer is Answer.REFUSED:
            return {name.broker: "NotControllerError" for name in rates}
        for broker_role, rate in sorted(rates.items()):
            self.crash.step()
            assert broker_role.broker in self.alive, "only the broker itself takes its rate"
            if broker_role.broker in self.refusing_rates:
                continue
            self.rates.pop(broker_role, None)
            if rate is not None:
                self.rates[broker_role] = rate
            self.requests.append(("rate", (broker_role, rate)))
        self.crash.step()
        if answer is Answer.LOST:
            return {name.broker: "accepted, but did not read the change back" for name in rates}
        return {role.broker: "refused" for role in rates if role.broker in self.refusing_rates}

    def reassign(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None], change_factor: bool
    ) -> Mapping[TopicPartition, str]:
        self.crash.step()
        answer = self._of_next(is_reassignment=True)
        if answer is Answer.REFUSED:
            raise _unanswered("the reassignment", "NotControllerError")
        self._shown, self._out_of_date = (self.stale, dict(self.partitions)), None
        if answer in (Answer.LATE, Answer.UNREAD) and self.disturbance is not None:
            self._shown, self._out_of_date = (self.disturbance.looks, dict(self.partitions)), answer
        refused = {}
        # The controller takes the partitions of a request together, so a crash finds all or none.
        for name, target in sorted(targets.items()):
            partition = self.partitions.get(name)
            if name in self.refusing or partition is None:
                refused[name] = "InvalidReplicaAssignment"
            elif target is None:
                if not partition.moving:
                    refused[name] = "NoReassignmentInProgress"
                else:
                    self._cancel(name)
            elif not change_factor and len(target) != len(partition.replicas) - len(partition.adding):
                refused[name] = "InvalidReplicationFactor"
            else:
                self._start(name, target)
        self.requests.append(("reassign", dict(targets)))
        self.crash.step()
        if answer is Answer.LOST:
            raise _unanswered("the reassignment", "KafkaTimeoutError")
        return refused

    def _start(self, name: TopicPartition, target: tuple[int, ...]) -> None:
        partition = self.partitions[name]
        before = partition.before
        adding = tuple(broker for broker in target if broker not in before)
        removing = tuple(broker for broker in before if broker not in target)
        if (partition.adding, partition.removing) == (adding, removing) and partition.target == target:
            return
        leader = partition.leader
        if not adding and not removing:
            self.partitions[name] = _placed(name, target, leader)
            return
        placed = _placed(name, (*target, *removing), leader)
        self.partitions[name] = PartitionPlacement(
            placed.topic, placed.partition, leader, placed.replicas, partition.isr, adding, removing
        )
        for broker in adding:
            replica = ReplicaKey(name, broker)
            self.paths[replica] = self.kept.pop(replica, PATHS[0])
        self.left[name] = self.looks if adding else 1

    def _cancel(self, name: TopicPartition) -> None:
        partition = self.partitions[name]
        replicas = partition.before
        self._remove_logs(name, replicas)
        self.partitions[name] = _placed(name, replicas, partition.leader)
        del self.left[name]

    def elect(self, names: Collection[TopicPartition], on_step: Callable[[str], None]) -> Mapping[TopicPartition, str]:
        self.crash.step()
        answer = self._of_next()
        if answer is Answer.REFUSED:
            raise _unanswered("the elections", "NotControllerError")
        if self.failing_elections:
            self.failing_elections -= 1
            raise HeadroomError("batch 1", "has not settled within 60 s", "Run it again.")
        for name in [name for name in names if name not in self.left_out]:
            partition = self.partitions[name]
            self.partitions[name] = _placed(name, partition.replicas, partition.replicas[0])
            self.elected.append(name)
        self.crash.step()
        if answer is Answer.LOST:
            raise _unanswered("the elections", "KafkaTimeoutError")
        return {name: self.left_out[name] for name in names if name in self.left_out}

    def fork(self) -> FakeReassignedCluster:
        """Return a cluster that goes on from here by itself; no step kills its process, and no look is watched."""
        return FakeReassignedCluster(**{**self.state(), "crash": Crash(), "on_look": lambda cluster: None})

    def state(self) -> dict[str, Any]:
        """Return all that the future of this cluster depends on; it does not change with the cluster."""
        return {name: copy(value) for name, value in vars(self).items() if name not in ("crash", "on_look")}


def _unanswered(subject: str, error: str) -> HeadroomError:
    return HeadroomError(subject, f"was taken by no broker (broker 1: {error})", "Run the same command again.")


def _placed(name: TopicPartition, replicas: tuple[int, ...], leader: int | None) -> PartitionPlacement:
    return PartitionPlacement(name.topic, name.partition, leader, replicas, replicas)


@dataclass
class FakeJournal:
    """A journal in memory, whose commits are atomic.

    Attributes:
        kept: rows of all commits.
        crash: kills the process before or after a commit.
        failing: number of commits that fail from now on.
        trace: what the specification says of the rows.
        is_strict: whether a commit that breaks the specification fails the test.
    """

    kept: list[JournalRow] = field(default_factory=list)
    crash: Crash = field(default_factory=Crash)
    failing: int = 0
    trace: JournalTrace = field(default_factory=JournalTrace)
    is_strict: bool = True
    # The runs, and the rows that they are of.
    _known: tuple[list[JournalRow], int, list[RecordedRun]] = field(default_factory=lambda: ([], 0, []))

    def append(self, rows: Sequence[JournalRow]) -> None:
        self.crash.step()
        if self.failing:
            self.failing -= 1
            raise HeadroomError("actions/journal", "cannot be written", "Look at store.path.")
        if self.trace.rows != len(self.kept):
            # A test has given it other rows.
            self.trace = JournalTrace()
            self.trace.add(self.kept)
        self.kept.extend(rows)
        self.trace.add(rows)
        if self.is_strict:
            assert self.trace.violations() == []
        self.crash.step()

    def records(self) -> list[RecordedRun]:
        of, count, records = self._known
        rows = self.kept[count:]
        if of is not self.kept or count > len(self.kept) or len(records) != 1:
            records = run_records(self.kept)
        elif {row.run_id for row in rows} - {records[0].run_id}:
            # Rates from before one run may be those of another.
            records = run_records(self.kept)
        elif rows:
            records = [records[0].after(rows)]
        self._known = (self.kept, len(self.kept), records)
        return list(records)

    def fork(self) -> FakeJournal:
        """Return a journal that goes on from here by itself; no step kills its process."""
        kept = list(self.kept)
        known = (kept, *self._known[1:]) if self._known[0] is self.kept else ([], 0, [])
        return replace(self, kept=kept, crash=Crash(), trace=self.trace.fork(), _known=known)


@dataclass
class SteppedTime:
    """A clock that only sleeping advances."""

    now_s: float = 0.0

    def clock(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
