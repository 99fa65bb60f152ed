"""Processes killed with SIGKILL."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import psutil

from benchmarks.fixtures.bench_cluster import failure
from benchmarks.fixtures.processes import kill_tree
from benchmarks.groups.outages.scenarios.scenario import Scenario
from benchmarks.faults.brokers import DESTINATION, TICKS_LEADER
from benchmarks.groups.outages.context import ScenarioContext
from benchmarks.faults.live_watch import jvms_of

Victim = Callable[[ScenarioContext], int]
# Controllers fence a broker after 9 s, and may have to elect an active controller first. The broker stays down until
# others lead its partitions.
DOWN_S = 12.0
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

    kill: Victim
    awaited: Callable[[ScenarioContext], Sequence[psutil.Process]] | None = None
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
class BrokerKill(Scenario):
    """A broker is killed, and restarted once others lead its partitions.

    Attributes:
        broker: returns the broker.
    """

    broker: Victim
    length_s: float = DOWN_S

    def excluded_leaders(self, context: ScenarioContext) -> Collection[int]:
        """Return the broker, because no rate can be set on it."""
        return (self.broker(context),)

    def begin(self, context: ScenarioContext) -> None:
        """Kill the broker."""
        broker_id = self.broker(context)
        context.note(f"broker {broker_id} is killed")
        context.brokers.kill(broker_id)


def _kill_all(processes: Iterable[psutil.Process]) -> int:
    return sum(kill_tree(process) for process in processes)


def _history_jvms(context: ScenarioContext) -> list[psutil.Process]:
    return jvms_of(context.live.history())


def active_controller(context: ScenarioContext) -> int:
    """Return the active controller."""
    return context.brokers.controller()


SCENARIOS: tuple[Scenario, ...] = (
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
        kill=lambda s: _kill_all(s.live.evaluating()[1:]),
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
        kill=lambda s: _kill_all(_history_jvms(s)),
        awaited=_history_jvms,
    ),
    Kill(name="kill_receivers", title="receivers killed", kill=lambda s: s.receivers.kill(), length_s=5.0),
    BrokerKill(
        name="kill_ticks_leader",
        title="broker killed that leads partition 0 of the ticks",
        broker=lambda s: TICKS_LEADER,
    ),
    BrokerKill(name="kill_destination", title="destination killed", broker=lambda s: DESTINATION),
    BrokerKill(name="kill_controller", title="active controller killed", broker=active_controller),
)
