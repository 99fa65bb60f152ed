"""Group ``crash_points``: does a run of a plan leave nothing behind, wherever it and what repairs it are killed?

The product's executor runs on a cluster in memory, with Kafka's rules of reassignments, cancellations and incremental
changes. A run is killed at every one of its steps: before and after each request, each read and each commit of the
journal. Then the same command continues it, `headroom reassign clean` ends it, or `headroom reassign cancel` cancels
it. That is killed at every one of its own steps too, and is repeated, and cleaned in the end. Runs are of two kinds:
moves in two batches, with other factors and orders, and moves between log directories. In some the operator stops the
run, which cancels its batch. In others a second operator clears the throttles, sets a lower or a higher rate, or moves
a partition of his own, at each look at the cluster. A batch of `headroom balance run` is such a run.

- `reassign_crash_points`: pairs of steps at which a run and what followed it were killed.
- `reassign_crash_points_left_behind`: rates, list entries, moves, and orders of replicas that in the end are neither
  those from before nor those of the plan.
- `reassign_crash_points_foreign_changed`: rates, lists and moves of the second operator that are not as he left them,
  and rates that were changed for a time after he had set them.
- `specification_states`: different states of a journal that these runs reached, by the specification in
  `tests/support/journal_specification.py`.
- `traces_checked`: journals of runs that were checked against it.
- `trace_violations`: rows in them that may not be where they are.

`--every N` kills at every Nth step only. Scenes are divided among `--processes`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from benchmarks.fixtures.bench_cluster import OnProgress
from benchmarks.options.fields import AT_LEAST_ONE, option
from benchmarks.results import Figure
from headroom.cluster.live.live_control import LiveClusterControl
from headroom.cluster.reassignment.execution.control import RunPolicy
from headroom.cluster.reassignment.execution.moves import RunMoves
from headroom.cluster.reassignment.execution.placement import end_copies
from headroom.cluster.reassignment.execution.run_journal import RunJournal
from headroom.operations.reassignments.cancelling import plan_cancel
from headroom.planning.reassignments.cluster_state import PartitionPlacement
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.run.journal import ThrottledList
from headroom.planning.reassignments.run.orders import known_orders
from headroom.planning.reassignments.run.record import RecordedRun, RunState
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import BrokerRate, BrokerRole, LogDirsRate, Role, TopicPartition
from tests.support.journal_specification import traces_of
from tests.unit.builders.run_stage import RunStage
from tests.unit.fakes.reassigned_cluster import Crash, FakeReassignedCluster, Killed

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


@dataclass(frozen=True)
class CrashPointOptions:
    """Options of the group ``crash_points``."""

    every: int = option(1, AT_LEAST_ONE, "Kill at every Nth step only.")
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
    """

    plan: _Plan
    act: str | None
    stop: bool
    look: int
    recovery: str

    def __str__(self) -> str:
        what = "between directories" if self.plan == _DIRECTORIES else "between brokers"
        return f"{what}, {self.act or ('stop' if self.stop else 'nothing')} at look {self.look}, then {self.recovery}"


class _Play:
    """One scene, played once, on a cluster of its own."""

    def __init__(self, scene: _Scene) -> None:
        self.scene = scene
        self.foreign = _Foreign()
        placed = {name: _placed(name, before) for name, (before, _, _) in scene.plan.items()}
        placed[_OTHERS] = _placed(_OTHERS, (1, 3))
        cluster = FakeReassignedCluster(placed, {1, 2, 3, 4}, rates=dict(_RATES), lists=dict(_LISTS))
        cluster.on_look = self._look
        assignments = [TargetAssignment(name, after, paths) for name, (_, after, paths) in scene.plan.items()]
        batches = [ReassignmentPlan((assignments[0],)), ReassignmentPlan(tuple(assignments[1:]))]
        policy = RunPolicy(_RATE, pause_s=0, adopt=True, cancel_on_stop=scene.stop, log_dirs_bytes_per_s=2 * _MB)
        self.stage = RunStage(cluster, batches, policy)
        self.looks = 0
        # Requests before the second operator acted.
        self._requests = 0
        self._cancels = 0

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

    def run(self, crash_at: int = 0) -> int:
        """Run the plan, and return the number of steps that were taken."""
        with suppress(Killed, HeadroomError):
            self.stage.run(crash_at)
        return self.stage.cluster.crash.steps

    def recover(self, crash_at: int = 0) -> int:
        """Continue or clean the run, and return the number of steps that were taken."""
        # Another process gets another signal.
        self.stage.stop.clear()
        if self.scene.recovery == "run" and self._is_open():
            return self.run(crash_at)
        with suppress(Killed, HeadroomError):
            if self.scene.recovery == "cancel":
                self._cancel(crash_at)
            else:
                self.stage.clean(crash_at)
        return self.stage.cluster.crash.steps

    def _cancel(self, crash_at: int) -> None:
        stage = self.stage
        stage.cluster.crash = stage.journal.crash = Crash(crash_at)
        # The fake cluster stands for the real one.
        control = cast(LiveClusterControl, stage.cluster)
        planned = plan_cancel(control, self.scene.plan.keys(), known_orders(stage.journal.kept))
        self._cancels += 1
        record = RecordedRun(f"cancel-{self._cancels}")
        clock_ms = lambda: int(stage.time.now_s * 1000)  # noqa: E731
        journal = RunJournal(stage.journal, record, "orders", "reassign cancel", "anna@host", clock_ms)
        moves = RunMoves(control, journal, 60, stage.time.clock, stage.time.sleep)
        moves.cancel({**planned.originals, **planned.unrestored})
        end_copies(control, journal, planned.copies)

    def _is_open(self) -> bool:
        return [record.state for record in self.stage.journal.records()] != [RunState.DONE]

    def end(self) -> None:
        """Repeat what followed the run, wait until nothing moves, and clean; the second operator's move ends last."""
        self.recover()
        cluster = self.stage.cluster
        for _ in range(2 * cluster.looks):
            cluster.advance()
        self.stage.clean()
        if _OTHERS in cluster.left:
            cluster.left[_OTHERS] = 1
            cluster.advance()

    def left_behind(self) -> list[str]:
        """Return what of the run is left in the end."""
        found = [f"record {record.run_id}" for record in self.stage.left_behind()]
        replicas = self.stage.cluster.partitions
        for name, (before, after, _) in self.scene.plan.items():
            if replicas[name].moving or replicas[name].replicas not in (before, after):
                found.append(f"{name} has {replicas[name].replicas}")
        if self.scene.recovery == "run" and not self.scene.stop:
            targets = {name: after for name, (_, after, _) in self.scene.plan.items()}
            found += [f"{name} is not moved" for name, after in targets.items() if replicas[name].replicas != after]
        found += [f"rate {name}" for name in self.stage.cluster.rates.keys() - self.foreign.rates.keys()]
        return found + [f"list {name}" for name in self.stage.cluster.lists.keys() - self.foreign.lists.keys()]

    def foreign_changed(self) -> list[str]:
        """Return what of the second operator is not as he left it."""
        cluster, foreign = self.stage.cluster, self.foreign
        changed = [f"rate {name}" for name, rate in foreign.rates.items() if cluster.rates.get(name) != rate]
        changed += [f"list {name}" for name, text in foreign.lists.items() if cluster.lists.get(name) != text]
        for kind, what in cluster.requests[self._requests :]:
            if kind == "rate":
                name, requested = cast(tuple[BrokerRate, int | None], what)
                if name in foreign.decided and requested != foreign.rates[name]:
                    changed.append(f"rate {name} was set to {requested}")
        if foreign.target and cluster.partitions[_OTHERS].replicas != foreign.target:
            changed.append(f"{_OTHERS} is not moved")
        return changed


@dataclass
class _Found:
    """What was found in all scenes."""

    points: int = 0
    left_behind: int = 0
    foreign_changed: int = 0
    traces: int = 0
    violations: int = 0
    states: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    def merge(self, other: _Found) -> None:
        """Add what was found in other scenes."""
        self.points += other.points
        self.left_behind += other.left_behind
        self.foreign_changed += other.foreign_changed
        self.traces += other.traces
        self.violations += other.violations
        self.states |= other.states

    def add(self, play: _Play, at: str) -> None:
        """Count the end of a play."""
        self.points += 1
        left, changed, traces = (
            play.left_behind(),
            play.foreign_changed(),
            traces_of(play.stage.journal.kept, self.states),
        )
        violations = [violation for trace in traces for violation in trace.violations]
        self.left_behind += len(left)
        self.foreign_changed += len(changed)
        self.traces += len(traces)
        self.violations += len(violations)
        if left or changed or violations:
            self.problems.append(f"{at}: left behind {left}, changed {changed}, violations {violations}")


def _placed(name: TopicPartition, replicas: tuple[int, ...]) -> PartitionPlacement:
    return PartitionPlacement(*name, replicas[0], replicas, replicas)


def _scenes() -> Iterator[_Scene]:
    for plan in (_MOVES, _DIRECTORIES):
        for recovery in ("run", "clean", "cancel"):
            yield _Scene(plan, None, False, 0, recovery)
            for look in range(1, _looks(plan) + 1):
                yield _Scene(plan, None, True, look, recovery)
                for act in _ACTS:
                    yield _Scene(plan, act, False, look, recovery)


def _looks(plan: _Plan) -> int:
    play = _Play(_Scene(plan, None, False, 0, "run"))
    play.run()
    return play.looks


def measure(on_progress: OnProgress, options: CrashPointOptions) -> list[Figure]:
    """Return the figures. Whatever is left behind or changed is reported with its scene and steps."""
    found = _Found()
    scenes = list(_scenes())
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
    found = _Found()
    for first in range(1, _Play(scene).run() + 1, every):
        killed = _Play(scene)
        killed.run(first)
        for second in range(0, killed.recover() + 1, every):
            play = _Play(scene)
            play.run(first)
            if second:
                play.recover(second)
            play.end()
            found.add(play, f"{scene}, killed at {first} and {second}")
    return found
