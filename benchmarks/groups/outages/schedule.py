"""Selection and order of scenarios, and the batches that share a watch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.faults.schedule import chosen_names
from benchmarks.groups.outages.record import RunRecord
from benchmarks.groups.outages.scenarios import brokers, clocks, disks, messages, networks, processes, topics, twice
from benchmarks.groups.outages.scenarios.scenario import Arrangement, Scenario

SCENARIOS: tuple[Scenario, ...] = (
    *processes.KILLS,
    *brokers.KILLS,
    *processes.HANGS,
    *brokers.HANGS,
    *networks.SCENARIOS,
    *disks.SCENARIOS,
    *topics.SCENARIOS,
    *clocks.SCENARIOS,
    *messages.SCENARIOS,
    *twice.SCENARIOS,
)
# The resolve time of an alert doubles each time it fires again, so a watch serves a limited number of runs.
_MOST_IN_A_BATCH = 10


@dataclass(frozen=True)
class Play:
    """One run of a scenario.

    Attributes:
        scenario: the scenario.
        number: number of the run, from 0. During the fault an alert begins to fire in even runs, and resolves in odd
            runs.
    """

    scenario: Scenario
    number: int

    @property
    def name(self) -> str:
        """Return the name of the record."""
        return f"{self.scenario.name}-{self.number}"

    @property
    def fires(self) -> bool:
        """Return whether the alert fires during the fault; otherwise it resolves."""
        return self.number % 2 == 0

    def new_record(self) -> RunRecord:
        """Return a record without anything measured."""
        return RunRecord(self.scenario.name, self.scenario.title, self.number, self.scenario.restarts_judging)


def schedule(wanted: str = "", each: int = 2) -> list[Play]:
    """Return the runs of scenarios, all scenarios once before any is repeated.

    Args:
        wanted: names of scenarios or of single runs (``kill_watch:1``), comma-separated; empty for all.
        each: number of runs per scenario. Single runs are not affected.

    Raises:
        HeadroomError: there is no such scenario.
    """
    by_name = {scenario.name: scenario for scenario in SCENARIOS}
    chosen = chosen_names(wanted, by_name, "scenario")
    runs = [(run, name) for name, number in chosen for run in (range(each) if number is None else [number])]
    return [Play(by_name[name], run) for run, name in dict.fromkeys(sorted(runs, key=lambda one: one[0]))]


def batches(plays: Sequence[Play]) -> list[list[Play]]:
    """Return batches of runs that share a watch.

    A batch has one arrangement and a limited number of runs. A run after which a new watch is needed comes last.

    Args:
        plays: runs in their order.
    """
    groups: list[list[Play]] = []
    for arrangement in Arrangement:
        own = [play for play in plays if play.scenario.arrangement is arrangement]
        last = [play for play in own if play.scenario.fresh_after]
        others = [play for play in own if not play.scenario.fresh_after]
        # As few watches as possible, each with the same number of runs.
        count = max(len(last), -(-len(others) // (_MOST_IN_A_BATCH - bool(last)))) if own else 0
        for number in range(count):
            first, end = (len(others) * n // count for n in (number, number + 1))
            groups.append([*others[first:end], *last[number : number + 1]])
    return groups
