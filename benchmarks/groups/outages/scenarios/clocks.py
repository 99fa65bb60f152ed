"""Wall clocks that are set wrong, and right again."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.faults.live_watch import ProcessName
from benchmarks.groups.outages.context import ScenarioContext
from benchmarks.groups.outages.scenarios.scenario import Arrangement, Scenario

_OFF_S = 600.0
_RIGHT: tuple[ProcessName, ...] = ("watch", "collector")


@dataclass(frozen=True, kw_only=True)
class ClockSet(Scenario):
    """A wall clock is set wrong, and right again some seconds later.

    Attributes:
        process: process of the clock.
        off_s: offset in seconds.
    """

    process: ProcessName
    off_s: float
    arrangement: Arrangement = Arrangement.OWN_CLOCKS

    def begin(self, context: ScenarioContext) -> None:
        """Set the clock wrong."""
        context.live.set_clock(self.process, self.off_s)

    def end(self, context: ScenarioContext) -> None:
        """Set the clock right."""
        for process in _RIGHT:
            context.live.set_clock(process, 0.0)
        super().end(context)


SCENARIOS: tuple[Scenario, ...] = (
    ClockSet(
        name="collector_clock_forward",
        title="clock of the collector 600 s forward, and right again",
        process="collector",
        off_s=_OFF_S,
    ),
    ClockSet(
        name="collector_clock_back",
        title="clock of the collector 600 s back, and right again",
        process="collector",
        off_s=-_OFF_S,
    ),
    ClockSet(
        name="watch_clock_back", title="clock of the watch 600 s back, and right again", process="watch", off_s=-_OFF_S
    ),
)
