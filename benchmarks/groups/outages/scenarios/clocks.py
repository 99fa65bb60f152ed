"""Wall clocks that somebody sets, and sets right again."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.groups.outages.scenarios.arrangement import Arrangement
from benchmarks.groups.outages.scenarios.scenario import Scenario
from benchmarks.groups.outages.stage.stage import ScenarioContext
from benchmarks.groups.outages.watching.live import ProcessName

_OFF_S = 600.0
_RIGHT: tuple[ProcessName, ...] = ("watch", "collector")


@dataclass(frozen=True, kw_only=True)
class ClockSet(Scenario):
    """A wall clock is set, and set right some seconds later.

    Attributes:
        process: whose.
        off_s: by how many seconds.
    """

    process: ProcessName
    off_s: float
    arrangement: Arrangement = Arrangement.OWN_CLOCKS

    def begin(self, context: ScenarioContext) -> None:
        """Set it."""
        context.live.set_clock(self.process, self.off_s)

    def end(self, context: ScenarioContext) -> None:
        """Set it right."""
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
