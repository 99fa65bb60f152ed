"""What a scenario is: one scripted fault on a live move."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass

from benchmarks.groups.outages.scenarios.arrangement import Arrangement
from benchmarks.groups.outages.stage.stage import ScenarioContext
from schemas.alerts import AlertKind


@dataclass(frozen=True, kw_only=True)
class Scenario(ABC):
    """One fault.

    Attributes:
        name: as ``BENCH_OUTAGES`` names it.
        title: what happens, in short.
        length_s: how long it lasts before it is ended, seconds.
        arrangement: what is around the watch.
        true_critical: kinds of critical alerts that are true in it, besides that of the leader that starves.
        restarts_judging: whether the watch or its JVM is killed, and has to start again before it can evaluate.
        fresh_after: whether what it leaves behind is not to be put right while the watch goes on: the next scenario
            begins with new tables and a new ticks topic.
        loses_rows: whether rows of ``alerts/events`` are lost for good.
    """

    name: str
    title: str
    length_s: float = 8.0
    arrangement: Arrangement = Arrangement.PLAIN
    true_critical: frozenset[AlertKind] = frozenset()
    restarts_judging: bool = False
    fresh_after: bool = False
    loses_rows: bool = False

    def prepare(self, context: ScenarioContext) -> None:  # noqa: B027
        """Do what is healthy still.

        Raises:
            Void: what it needs is not to be had on this machine.
        """

    def excluded_leaders(self, context: ScenarioContext) -> Collection[int]:
        """Return the brokers that may not starve meanwhile, for the fault takes them away."""
        return ()

    @abstractmethod
    def begin(self, context: ScenarioContext) -> None:
        """Make it go wrong."""

    def end(self, context: ScenarioContext) -> None:
        """Put it right."""
        context.recover()
