"""Processes of Headroom and receivers: killed with SIGKILL, or stopped with SIGSTOP and continued with SIGCONT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psutil

from benchmarks.fixtures.bench_cluster import failure
from benchmarks.fixtures.processes import jvms_of, kill_tree
from benchmarks.groups.outages.context import ScenarioContext
from benchmarks.groups.outages.scenarios.scenario import Scenario

Processes = Callable[[ScenarioContext], Sequence[psutil.Process]]
# A supervisor restarts an ended process after about a second.
_SUPERVISOR_S = 1.0
_RUNS_S = 120.0


@dataclass(frozen=True, kw_only=True)
class Kill(Scenario):
    """A process is killed with all its child processes.

    Attributes:
        kill: kills it, and returns the number of processes.
        awaited: returns the processes that have to run before; None if they always do.
    """

    kill: Callable[[ScenarioContext], int]
    awaited: Processes | None = None
    length_s: float = _SUPERVISOR_S

    def prepare(self, context: ScenarioContext) -> None:
        """Wait until the process runs, because an earlier fault may have ended it."""
        awaited = self.awaited
        if awaited is not None:
            context.await_true(lambda: awaited(context), _RUNS_S, f"the process to kill in {self.name}")

    def begin(self, context: ScenarioContext) -> None:
        """Kill the process.

        Raises:
            HeadroomError: it does not run.
        """
        count = self.kill(context)
        if not count:
            raise failure(f"{self.name}: it does not run")
        context.note(f"{count} process(es) killed")


@dataclass(frozen=True, kw_only=True)
class Hang(Scenario):
    """Processes hang.

    Attributes:
        processes: returns the processes.
    """

    processes: Processes
    length_s: float = 10.0

    def prepare(self, context: ScenarioContext) -> None:
        """Wait until the processes run."""
        self.processes(context)

    def begin(self, context: ScenarioContext) -> None:
        """Suspend the processes."""
        context.suspend(self.processes(context))


def _history_and_jvm(context: ScenarioContext) -> list[psutil.Process]:
    process = context.live.history()
    return [process, *process.children(recursive=True)]


def _history_jvms(context: ScenarioContext) -> list[psutil.Process]:
    return jvms_of(context.live.history())


KILLS: tuple[Scenario, ...] = (
    Kill(name="kill_collector", title="collector killed", kill=lambda s: kill_tree(s.live.collector())),
    Kill(
        name="kill_watch",
        title="watch killed with all its processes",
        kill=lambda s: s.live.kill(),
        restarts_judging=True,
    ),
    Kill(
        name="kill_watch_jvm",
        title="JVM of the watch killed",
        kill=lambda s: sum(map(kill_tree, s.live.evaluating()[1:])),
        restarts_judging=True,
    ),
    Kill(
        name="kill_history",
        title="history process killed",
        kill=lambda s: kill_tree(s.live.history()),
        awaited=lambda s: [s.live.history()],
    ),
    Kill(
        name="kill_history_jvm",
        title="JVM of the history process killed",
        kill=lambda s: sum(map(kill_tree, _history_jvms(s))),
        awaited=_history_jvms,
    ),
    Kill(name="kill_receivers", title="receivers killed", kill=lambda s: s.receivers.kill(), length_s=5.0),
)
HANGS: tuple[Scenario, ...] = (
    Hang(name="hang_collector", title="collector hangs for 10 s", processes=lambda s: [s.live.collector()]),
    Hang(name="hang_history", title="history process and its JVM hang for 10 s", processes=_history_and_jvm),
    Hang(
        name="hang_receivers",
        title="receivers hang for 12 s",
        processes=lambda s: [s.receivers.process()],
        # Longer than the timeout of a request to a receiver.
        length_s=12.0,
    ),
)
