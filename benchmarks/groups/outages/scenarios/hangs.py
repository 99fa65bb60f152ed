"""Hanging processes: stopped with SIGSTOP, and continued with SIGCONT about ten seconds later."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

import psutil

from benchmarks.groups.outages.scenarios.processes import active_controller
from benchmarks.groups.outages.scenarios.scenario import Scenario
from benchmarks.faults.brokers import DESTINATION, TICKS_LEADER
from benchmarks.groups.outages.context import ScenarioContext

_HANGS_S = 10.0
# Longer than the timeout of a request to a receiver.
_RECEIVER_HANGS_S = 12.0


@dataclass(frozen=True, kw_only=True)
class Hang(Scenario):
    """Processes hang.

    Attributes:
        processes: returns the processes.
    """

    processes: Callable[[ScenarioContext], Iterable[psutil.Process]]
    length_s: float = _HANGS_S

    def prepare(self, context: ScenarioContext) -> None:
        """Wait until the processes run."""
        list(self.processes(context))

    def begin(self, context: ScenarioContext) -> None:
        """Suspend the processes."""
        context.suspend(self.processes(context))


@dataclass(frozen=True, kw_only=True)
class BrokerHang(Scenario):
    """A broker hangs: its connections stay open without any response.

    Attributes:
        broker: returns the broker.
    """

    broker: Callable[[ScenarioContext], int]
    length_s: float = _HANGS_S

    def excluded_leaders(self, context: ScenarioContext) -> Collection[int]:
        """Return the broker, because no rate can be set on it."""
        return (self.broker(context),)

    def begin(self, context: ScenarioContext) -> None:
        """Suspend the broker."""
        broker_id = self.broker(context)
        context.note(f"broker {broker_id} hangs")
        context.brokers.pause(broker_id)


def _history(context: ScenarioContext) -> list[psutil.Process]:
    process = context.live.history()
    return [process, *process.children(recursive=True)]


SCENARIOS: tuple[Scenario, ...] = (
    Hang(name="hang_collector", title="collector hangs for 10 s", processes=lambda s: [s.live.collector()]),
    Hang(name="hang_history", title="history process and its JVM hang for 10 s", processes=_history),
    Hang(
        name="hang_receivers",
        title="receivers hang for 12 s",
        processes=lambda s: [s.receivers.process()],
        length_s=_RECEIVER_HANGS_S,
    ),
    BrokerHang(
        name="hang_ticks_leader",
        title="broker hangs for 10 s that leads partition 0 of the ticks",
        broker=lambda s: TICKS_LEADER,
    ),
    BrokerHang(name="hang_destination", title="destination hangs for 10 s", broker=lambda s: DESTINATION),
    BrokerHang(name="hang_controller", title="active controller hangs for 10 s", broker=active_controller),
)
