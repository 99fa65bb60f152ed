"""Group ``crash_points``: does a run of a plan leave nothing behind, wherever it and what repairs it are killed?

The product's executor runs on a cluster in memory, with Kafka's rules of reassignments, cancellations and incremental
changes. A run is killed at every one of its steps: before and after each request, each read and each commit of the
journal. Then the same command continues it, `headroom reassign clean` ends it, or `headroom reassign cancel` cancels
it. That is killed at every one of its own steps too, and is repeated, and cleaned in the end. Runs are of two kinds:
moves in two batches, with other factors and orders, and moves between log directories. In some the operator stops the
run, which cancels its batch. In others a second operator clears the throttles, sets a lower or a higher rate, or moves
a partition of his own, at each look at the cluster. A batch of `headroom balance run` is such a run.

In further runs one request is not answered as usual, each in turn: its answer is lost; it is refused, also if it is
sent again; the next looks show the replicas from before it; or no controller answers these looks. Whoever gets an
error repeats the command.

A kill leaves only the cluster and the journal, so a copy of both at a step is what a kill there leaves: the step need
not be reached again. Where kills leave the same, in the cluster, the journal and the specification, one end is played
for all of them.

- `reassign_crash_points`: pairs of steps at which a run and what followed it were killed.
- `reassign_crash_points_left_behind`: rates, list entries, moves, and orders of replicas that in the end are neither
  those from before nor those of the plan; and what moves although the journal has the end of the run.
- `reassign_crash_points_foreign_changed`: rates, lists and moves of the second operator that are not as he left them,
  and rates that were changed for a time after he had set them.
- `specification_states`: different states of a journal that these runs reached, by the specification in
  `tests/support/journal_specification.py`.
- `traces_checked`: journals of runs that were checked against it.
- `trace_violations`: rows in them that may not be where they are.

`--every N` kills at every Nth step only, and `--scenes-every N` plays every Nth scene only. Scenes are divided among
`--processes`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast

from benchmarks.fixtures.bench_cluster import OnProgress
from benchmarks.options.fields import AT_LEAST_ONE, option
from benchmarks.results import Figure
from headroom.cluster.live.live_control import LiveClusterControl
from headroom.cluster.reassignment.execution.control import RunPolicy
from headroom.cluster.reassignment.execution.run_journal import RunJournal
from headroom.operations.reassignments.cancelling import execute_cancel, plan_cancel
from headroom.planning.reassignments.cluster_state import PartitionPlacement
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.run.journal import ThrottledList
from headroom.planning.reassignments.run.orders import known_orders
from headroom.planning.reassignments.run.record import RecordedRun, RunState
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import BrokerRate, BrokerRole, LogDirsRate, Role, TopicPartition
from tests.support.journal_specification import JournalTrace, TraceState
from tests.unit.builders.run_stage import RunStage
from tests.unit.fakes.reassigned_cluster import Answer, Crash, Disturbance, FakeJournal, FakeReassignedCluster

_MB = 1_000_000
_RATE = 10 * _MB
# Partition: replicas before, replicas after, log directories after.
_Plan = dict[TopicPartition, tuple[tuple[int, ...], tuple[int, ...], tuple[str, ...] | None]]
_MOVES: _Plan = {
    TopicPartition("a", 0): ((1, 2), (4, 2), None),
    TopicPartition("a", 1): ((2, 3), (3, 2), None),
    TopicPartition("b", 0): ((3, 2), (2, 1, 3), None),
}
_DIRECTORIES: _Plan = {
    TopicPartition("a", 0): ((1, 2), (1, 2), ("/b", "any")),
    TopicPartition("b", 0): ((2, 3), (2, 4), ("/a", "/b")),
}
# Of the second operator.
_OTHERS = TopicPartition("z", 0)
_RATES: dict[BrokerRate, int] = {
    BrokerRole(1, Role.LEADER): 4 * _MB,
    BrokerRole(2, Role.LEADER): 40 * _MB,
    LogDirsRate(1): 1 * _MB,
}
_LISTS = {ThrottledList("a", Role.LEADER): "0:1,7:7", ThrottledList("z", Role.FOLLOWER): "*"}
_LOWER, _HIGHER = 2 * _MB, 90 * _MB
_LONG = 10_000
# While no controller is elected, it refuses for longer than metadata may be stale. Whoever gets an error tries again.
_REFUSED_REQUESTS = 4
_REPEATS = 6
# A move is to last longer than looks are out of date: otherwise there is nothing to cancel any more.
_LATE_LOOKS, _LOOKS_OF_LATE = 4, 8
_MORE_REQUESTS = 4
_NAMES_REST = "could not be taken back"


@dataclass(frozen=True)
class CrashPointOptions:
    """Options of the group ``crash_points``."""

    every: int = option(1, AT_LEAST_ONE, "Kill at every Nth step only.")
    scenes_every: int = option(1, AT_LEAST_ONE, "Play every Nth scene only.")
    processes: int = option(
        os.cpu_count() or 1, AT_LEAST_ONE, "Processes that play scenes; default: one for each core."
    )


@dataclass
class _Foreign:
    """What the second operator has set, and what was there before: it is to be there in the end.

    Attributes:
        rates: own rates of brokers.
        lists: throttled replica lists.
        target: target replicas of his own move; none if empty.
        decided: rates that he has set during the run.
    """

    rates: dict[BrokerRate, int] = field(default_factory=lambda: dict(_RATES))
    lists: dict[ThrottledList, str] = field(default_factory=lambda: dict(_LISTS))
    target: tuple[int, ...] = ()
    decided: set[BrokerRate] = field(default_factory=set)

    def fork(self) -> _Foreign:
        """Return a copy that goes on by itself."""
        return replace(self, rates=dict(self.rates), lists=dict(self.lists), decided=set(self.decided))


Act = Callable[[FakeReassignedCluster, _Foreign], None]


def _clear(cluster: FakeReassignedCluster, foreign: _Foreign) -> None:
    cluster.rates, cluster.lists = {}, {}
    foreign.rates, foreign.lists = {}, {}


def _set_rate(rate: int, cluster: FakeReassignedCluster, foreign: _Foreign) -> None:
    for name in (BrokerRole(1, Role.LEADER), BrokerRole(2, Role.LEADER)):
        cluster.rates[name] = foreign.rates[name] = rate
        foreign.decided.add(name)


def _move(cluster: FakeReassignedCluster, foreign: _Foreign) -> None:
    foreign.target = (4, 3)
    cluster.reassign({_OTHERS: foreign.target}, change_factor=False)
    cluster.left[_OTHERS] = _LONG


_ACTS: dict[str, Act] = {
    "clear": _clear,
    "lower": partial(_set_rate, _LOWER),
    "raise": partial(_set_rate, _HIGHER),
    "move": _move,
}


@dataclass(frozen=True)
class _Scene:
    """A run, and what disturbs it.

    Attributes:
        plan: partitions with replicas before and after.
        act: what the second operator does; nothing if None.
        stop: whether the operator stops the run, which cancels its batch.
        look: look of the run at the cluster at which that happens, from 1.
        recovery: what follows the killed run: ``run``, ``clean`` or ``cancel``.
        answer: what becomes of a request; None: all are answered.
        request: number of that request, from 1.
    """

    plan: _Plan
    act: str | None
    stop: bool
    look: int
    recovery: str
    answer: Answer | None = None
    request: int = 0

    def __str__(self) -> str:
        what = "between directories" if self.plan == _DIRECTORIES else "between brokers"
        happens = f"{self.act or ('stop' if self.stop else 'nothing')} at look {self.look}"
        answered = f", request {self.request} {self.answer.value}" if self.answer is not None else ""
        return f"{what}, {happens}{answered}, then {self.recovery}"


class _Play:
    """One scene, played once, on a cluster of its own."""

    def __init__(self, scene: _Scene, states: set[TraceState] | None = None) -> None:
        self.scene = scene
        self.foreign = _Foreign()
        placed = {name: _placed(name, before) for name, (before, _, _) in scene.plan.items()}
        placed[_OTHERS] = _placed(_OTHERS, (1, 3))
        cluster = FakeReassignedCluster(placed, {1, 2, 3, 4}, rates=dict(_RATES), lists=dict(_LISTS))
        if scene.answer in (Answer.LATE, Answer.UNREAD):
            cluster.looks = _LOOKS_OF_LATE
        cluster.on_look = self._look
        if scene.answer is not None:
            requests = _REFUSED_REQUESTS if scene.answer is Answer.REFUSED else 1
            cluster.disturbance = Disturbance(scene.answer, scene.request, requests, _LATE_LOOKS)
        assignments = [TargetAssignment(name, after, paths) for name, (_, after, paths) in scene.plan.items()]
        batches = [ReassignmentPlan((assignments[0],)), ReassignmentPlan(tuple(assignments[1:]))]
        policy = RunPolicy(_RATE, pause_s=0, adopt=True, cancel_on_stop=scene.stop, log_dirs_bytes_per_s=2 * _MB)
        # Rows that may not be where they are become a figure.
        journal = FakeJournal(trace=JournalTrace(states=states), is_strict=False)
        self.stage = RunStage(cluster, batches, policy, journal)
        self.looks = 0
        # Whether what was done last is to be done again.
        self.failed = False
        # Whether the run, played last, has said that every partition is at its target.
        self.said_done = False
        # What moved after the end.
        self.after_end: list[str] = []
        # Requests before the second operator acted.
        self._requests = 0
        self._cancels = 0

    def fork(self) -> _Play:
        """Return the play as a kill at this moment leaves it; it goes on from here by itself."""
        forked = copy(self)
        forked.stage, forked.foreign = self.stage.fork(), self.foreign.fork()
        forked.failed = forked.said_done = False
        forked.stage.cluster.on_look = forked._look
        return forked

    def state(self) -> object:
        """Return all that its future depends on."""
        stage = self.stage
        return stage.cluster.state(), len(stage.journal.kept), stage.time.now_s, self.looks, self._cancels

    def key(self) -> object:
        """Return all that the end of the play depends on, whatever way led here: equal keys have equal ends."""
        cluster, journal, orders = self.stage.cluster, self.stage.journal, known_orders(self.stage.journal.kept)
        changing = (cluster.rates, cluster.lists, cluster.left, cluster.paths, cluster.futures, cluster.kept)
        disturbance, (stale_looks, shown) = cluster.disturbance, cluster._shown
        return (
            repr(cluster.partitions),
            tuple(frozenset(items.items()) for items in changing),
            None if disturbance is None else disturbance.seen,
            # A look at nothing out of date shows what is.
            (stale_looks, repr(shown), cluster._out_of_date) if stale_looks > 0 else None,
            tuple(map(_record_key, journal.records())),
            (frozenset(orders.submitted.items()), frozenset(orders.interrupted.items())),
            tuple(trace.key() for trace in journal.trace.traces()),
            min(self.looks, self.scene.look),
            (frozenset(self.foreign.rates.items()), frozenset(self.foreign.lists.items()), self.foreign.target),
            (frozenset(self.foreign.decided), tuple(self._rates_taken())),
        )

    def _look(self, cluster: FakeReassignedCluster) -> None:
        self.looks += 1
        if self.looks != self.scene.look:
            return
        # These are no steps of the run.
        crash, cluster.crash = cluster.crash, Crash()
        if self.scene.act is not None:
            _ACTS[self.scene.act](cluster, self.foreign)
            self._requests = len(cluster.requests)
            if not self.stage.journal.kept:
                # Rates from before the run are raised to its own, and set back.
                self.foreign.decided.clear()
        if self.scene.stop:
            self.stage.stop.set()
        cluster.crash = crash

    def run(self) -> None:
        """Run the plan."""
        with self._noting_failure():
            outcome = self.stage.run()
            self.failed = bool(outcome.refused)
            self.said_done = not self.failed and outcome.stopped is None

    def recover(self) -> None:
        """Continue, clean or cancel the run."""
        # Another process gets another signal.
        self.stage.stop.clear()
        if self.scene.recovery == "run" and self._is_open():
            self.run()
        elif self.scene.recovery == "cancel":
            with self._noting_failure():
                self._cancel()
        else:
            self.clean()

    def clean(self) -> None:
        """Clean all runs."""
        with self._noting_failure():
            self.stage.lines.clear()
            self.stage.clean_all()
            # It names rates that a broker has refused. What is left without a word is not tried again.
            self.failed = any(_NAMES_REST in line for line in self.stage.lines)

    @contextmanager
    def _noting_failure(self) -> Iterator[None]:
        self.failed = False
        try:
            yield
        except HeadroomError:
            self.failed = True

    def _cancel(self) -> None:
        stage = self.stage
        stage.cluster.crash = stage.journal.crash = Crash(on_step=stage.on_step)
        # The fake cluster stands for the real one.
        control = cast(LiveClusterControl, stage.cluster)
        time, orders = stage.time, known_orders(stage.journal.kept)
        planned = plan_cancel(control, self.scene.plan.keys(), orders, time.clock, time.sleep)
        if not planned.text():
            return
        self._cancels += 1
        record = RecordedRun(f"cancel-{self._cancels}")
        journal = RunJournal(stage.journal, record, "orders", "reassign cancel", "anna@host", stage.clock_ms)
        self.failed = bool(execute_cancel(control, journal, planned, 60, time.clock, time.sleep))

    def _is_open(self) -> bool:
        records = self.stage.journal.records()
        return not records or any(record.state is not RunState.DONE or record.refused for record in records)

    def end(self) -> None:
        """Repeat what followed the run, wait until nothing moves, and clean; the second operator's move ends last.

        Whoever gets an error repeats the command.
        """
        cluster = self.stage.cluster
        self._repeat(self.recover)
        if all(record.state is not RunState.UNFINISHED for record in self.stage.journal.records()):
            moving = (cluster.left.keys() & self.scene.plan.keys()) | cluster.futures.keys()
            self.after_end = [str(name) for name in moving]
        for _ in range(2 * cluster.looks):
            cluster.advance()
        self._repeat(self.clean)
        if _OTHERS in cluster.left:
            cluster.left[_OTHERS] = 1
            cluster.advance()

    def _repeat(self, command: Callable[[], None]) -> None:
        for _ in range(_REPEATS):
            command()
            if not self.failed:
                return

    def left_behind(self) -> list[str]:
        """Return what of the run is left in the end."""
        found = [f"record {record.run_id}" for record in self.stage.left_behind()]
        found += [f"{name} moves after the end" for name in self.after_end]
        replicas = self.stage.cluster.partitions
        for name, (before, after, _) in self.scene.plan.items():
            if replicas[name].moving or replicas[name].replicas not in (before, after):
                found.append(f"{name} has {replicas[name].replicas}")
        if self.scene.recovery == "run" and (self.said_done or not self.scene.stop):
            targets = {name: after for name, (_, after, _) in self.scene.plan.items()}
            found += [f"{name} is not moved" for name, after in targets.items() if replicas[name].replicas != after]
        found += [f"rate {name}" for name in self.stage.cluster.rates.keys() - self.foreign.rates.keys()]
        return found + [f"list {name}" for name in self.stage.cluster.lists.keys() - self.foreign.lists.keys()]

    def foreign_changed(self) -> list[str]:
        """Return what of the second operator is not as he left it."""
        cluster, foreign = self.stage.cluster, self.foreign
        changed = [f"rate {name}" for name, rate in foreign.rates.items() if cluster.rates.get(name) != rate]
        changed += [f"list {name}" for name, text in foreign.lists.items() if cluster.lists.get(name) != text]
        changed += self._rates_taken()
        if foreign.target and cluster.partitions[_OTHERS].replicas != foreign.target:
            changed.append(f"{_OTHERS} is not moved")
        return changed

    def _rates_taken(self) -> list[str]:
        """Return the rates of the second operator that were changed for a time after he had set them."""
        taken = []
        for kind, what in self.stage.cluster.requests[self._requests :] if self.foreign.decided else ():
            if kind == "rate":
                name, requested = cast(tuple[BrokerRate, int | None], what)
                if name in self.foreign.decided and requested != self.foreign.rates[name]:
                    taken.append(f"rate {name} was set to {requested}")
        return taken


def _record_key(record: RecordedRun) -> object:
    """Return all of a run that what follows depends on: neither its times nor the number of its rows."""
    return (
        (record.run_id, record.state, record.elected, record.elections_failed, record.lost_before),
        tuple(
            frozenset(mapping.items())
            for mapping in (record.entries, record.rates, record.submitted, record.refused, record.placed)
        ),
        (record.cancelling, record.finished, record.cancelled, record.placing, record.damaged_rows),
        (frozenset(record.topic_ids.items()), frozenset(record.rates_before.items())),
        frozenset(record.interrupted.items()),
    )


@dataclass
class _Killed:
    """What a kill leaves at each of some steps that follow one another, and between which nothing changes."""

    play: _Play
    state: object
    steps: list[int]


def _kills(play: _Play, command: Callable[[_Play], None], every: int) -> list[_Killed]:
    """Return what a kill at each Nth step of a command leaves; the play itself does not go on.

    A kill ends a process in the middle of a step, and leaves only the cluster and the journal. So a copy of both, while
    the command goes on, is what a kill would have left.
    """
    kills: list[_Killed] = []
    going = play.fork()

    def keep() -> None:
        step = going.stage.cluster.crash.steps
        if (step - 1) % every:
            return
        state = going.state()
        if kills and kills[-1].state == state:
            kills[-1].steps.append(step)
        else:
            kills.append(_Killed(going.fork(), state, [step]))

    going.stage.on_step = keep
    command(going)
    return kills


@dataclass
class _Found:
    """What was found in all scenes."""

    points: int = 0
    left_behind: int = 0
    foreign_changed: int = 0
    traces: int = 0
    violations: int = 0
    states: set[TraceState] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    def merge(self, other: _Found) -> None:
        """Add what was found in other scenes."""
        self.points += other.points
        self.left_behind += other.left_behind
        self.foreign_changed += other.foreign_changed
        self.traces += other.traces
        self.violations += other.violations
        self.states |= other.states

    def add(self, end: _End, points: int, at: str) -> None:
        """Count the end of plays.

        Args:
            end: the end.
            points: number of pairs of steps at which kills lead to it.
            at: the first of them, as text.
        """
        self.points += points
        self.left_behind += len(end.left) * points
        self.foreign_changed += len(end.changed) * points
        self.traces += end.traces * points
        self.violations += len(end.violations) * points
        if end.left or end.changed or end.violations:
            what = f"left behind {end.left}, changed {end.changed}, violations {end.violations}"
            self.problems.append(f"{at}: {what}")


@dataclass(frozen=True)
class _End:
    """What is found at the end of a play.

    Attributes:
        left: what is left behind.
        changed: what of the second operator is not as he left it.
        violations: rows that may not be where they are.
        traces: number of journals of runs.
    """

    left: list[str]
    changed: list[str]
    violations: list[str]
    traces: int


class _Ends:
    """Ends of the plays of one scene; equal ways to an end are played once."""

    def __init__(self) -> None:
        self._known: dict[object, _End] = {}

    def of(self, play: _Play) -> _End:
        """Return the end of a play, which goes on until then unless its end is known."""
        key = play.key()
        if key not in self._known:
            play.end()
            trace = play.stage.journal.trace
            left, changed = play.left_behind(), play.foreign_changed()
            self._known[key] = _End(left, changed, trace.violations(), len(trace.traces()))
        return self._known[key]


def _placed(name: TopicPartition, replicas: tuple[int, ...]) -> PartitionPlacement:
    return PartitionPlacement(*name, replicas[0], replicas, replicas)


def _scenes() -> Iterator[_Scene]:
    for plan in (_MOVES, _DIRECTORIES):
        looks = _undisturbed(_Scene(plan, None, False, 0, "run")).looks
        for recovery in ("run", "clean", "cancel"):
            yield _Scene(plan, None, False, 0, recovery)
            for look in range(1, looks + 1):
                yield _Scene(plan, None, True, look, recovery)
                for act in _ACTS:
                    yield _Scene(plan, act, False, look, recovery)
            for stop in (False, True):
                for answer in Answer:
                    # In the middle of the run, while something moves.
                    scene = _Scene(plan, None, stop, looks // 2 if stop else 0, recovery, answer, _LONG)
                    ended = _undisturbed(scene).stage.cluster.disturbance
                    # What follows a kill makes requests, too.
                    for request in range(1, (ended.seen if ended else 0) + _MORE_REQUESTS + 1):
                        yield replace(scene, request=request)


def _undisturbed(scene: _Scene) -> _Play:
    play = _Play(scene)
    play.run()
    return play


def measure(on_progress: OnProgress, options: CrashPointOptions) -> list[Figure]:
    """Return the figures. Whatever is left behind or changed is reported with its scene and steps."""
    found = _Found()
    scenes = list(_scenes())[:: options.scenes_every]
    play = partial(_played, options.every)
    with ProcessPoolExecutor(options.processes) if options.processes > 1 else nullcontext() as pool:
        for number, one in enumerate((map if pool is None else pool.map)(play, scenes), start=1):
            found.merge(one)
            for problem in one.problems:
                on_progress(problem)
            on_progress(f"scene {number} of {len(scenes)}: {found.points} pairs of steps so far")
    return [
        Figure("reassign_crash_points", found.points, "pairs of steps", found.points),
        Figure("reassign_crash_points_left_behind", found.left_behind, "rates, entries and moves", found.points),
        Figure("reassign_crash_points_foreign_changed", found.foreign_changed, "rates, lists and moves", found.points),
        Figure("specification_states", len(found.states), "states", found.traces),
        Figure("traces_checked", found.traces, "journals", found.traces),
        Figure("trace_violations", found.violations, "rows", found.traces),
    ]


def _played(every: int, scene: _Scene) -> _Found:
    """Return what was found at all pairs of steps of a scene."""
    found, ends = _Found(), _Ends()
    for first in _kills(_Play(scene, found.states), _Play.run, every):
        at = f"{scene}, killed at {first.steps[0]}"
        found.add(ends.of(first.play.fork()), len(first.steps), at)
        for second in _kills(first.play, _Play.recover, every):
            points = len(first.steps) * len(second.steps)
            found.add(ends.of(second.play), points, f"{at} and {second.steps[0]}")
    return found
