"""Wall clocks that somebody sets, and sets right again."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.groups.outages.scenarios.arrangement import Arrangement
from benchmarks.groups.outages.scenarios.scenario import Scenario
from benchmarks.groups.outages.stage.stage import Stage
from benchmarks.groups.outages.watching.live import Who

_OFF_S = 600.0
_RIGHT: tuple[Who, ...] = ("watch", "collector")


@dataclass(frozen=True, kw_only=True)
class ClockSet(Scenario):
    """A wall clock is set, and set right some seconds later.

    Attributes:
        who: whose.
        off_s: by how many seconds.
    """

    who: Who
    off_s: float
    arrangement: Arrangement = Arrangement.OWN_CLOCKS

    def begin(self, stage: Stage) -> None:
        """Set it."""
        stage.live.set_clock(self.who, self.off_s)

    def end(self, stage: Stage) -> None:
        """Set it right."""
        for who in _RIGHT:
            stage.live.set_clock(who, 0.0)
        super().end(stage)


SCENARIOS: tuple[Scenario, ...] = (
    ClockSet(
        name="collector_clock_forward",
        title="clock of the collector 600 s forward, and right again",
        who="collector",
        off_s=_OFF_S,
    ),
    ClockSet(
        name="collector_clock_back",
        title="clock of the collector 600 s back, and right again",
        who="collector",
        off_s=-_OFF_S,
    ),
    ClockSet(
        name="watch_clock_back", title="clock of the watch 600 s back, and right again", who="watch", off_s=-_OFF_S
    ),
)
