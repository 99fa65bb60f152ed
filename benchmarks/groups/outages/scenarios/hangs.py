"""Processes that hang: stopped with SIGSTOP, and let go on with SIGCONT some ten seconds later."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

import psutil

from benchmarks.groups.outages.scenarios.kills import active_controller
from benchmarks.groups.outages.scenarios.scenario import Scenario
from benchmarks.groups.outages.stage.brokers import DESTINATION, TICKS_LEADER
from benchmarks.groups.outages.stage.stage import Stage

_HANGS_S = 10.0
# Longer than a request to a receiver may take, so that its answer is given up.
_RECEIVER_HANGS_S = 12.0


@dataclass(frozen=True, kw_only=True)
class Hang(Scenario):
    """Processes hang.

    Attributes:
        who: says which ones.
    """

    who: Callable[[Stage], Iterable[psutil.Process]]
    length_s: float = _HANGS_S

    def prepare(self, stage: Stage) -> None:
        """Wait until they run."""
        list(self.who(stage))

    def begin(self, stage: Stage) -> None:
        """Let them hang."""
        stage.suspend(self.who(stage))


@dataclass(frozen=True, kw_only=True)
class BrokerHang(Scenario):
    """A broker hangs: its connections stay open, and nothing answers.

    Attributes:
        which: says which one.
    """

    which: Callable[[Stage], int]
    length_s: float = _HANGS_S

    def spared(self, stage: Stage) -> Collection[int]:
        """The broker cannot be given a rate."""
        return (self.which(stage),)

    def begin(self, stage: Stage) -> None:
        """Let it hang."""
        broker = self.which(stage)
        stage.note(f"broker {broker} hangs")
        stage.brokers.pause(broker)


def _history(stage: Stage) -> list[psutil.Process]:
    process = stage.live.history()
    return [process, *process.children(recursive=True)]


SCENARIOS: tuple[Scenario, ...] = (
    Hang(name="hang_collector", title="collector hangs for 10 s", who=lambda s: [s.live.collector()]),
    Hang(name="hang_history", title="history process and its JVM hang for 10 s", who=_history),
    Hang(
        name="hang_receivers",
        title="receivers hang for 12 s",
        who=lambda s: [s.receivers.process()],
        length_s=_RECEIVER_HANGS_S,
    ),
    BrokerHang(
        name="hang_ticks_leader",
        title="broker hangs for 10 s that leads partition 0 of the ticks",
        which=lambda s: TICKS_LEADER,
    ),
    BrokerHang(name="hang_destination", title="destination hangs for 10 s", which=lambda s: DESTINATION),
    BrokerHang(name="hang_controller", title="active controller hangs for 10 s", which=active_controller),
)
