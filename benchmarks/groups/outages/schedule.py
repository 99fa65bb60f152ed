"""Selection and order of scenarios, and the batches that share a watch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.fixtures.bench_cluster import failure
from benchmarks.groups.outages.scenarios import clocks, disks, hangs, kills, messages, networks, topics, twice
from benchmarks.groups.outages.scenarios.arrangement import Arrangement
from benchmarks.groups.outages.scenarios.scenario import Scenario

SCENARIOS: tuple[Scenario, ...] = (
    *kills.SCENARIOS,
    *hangs.SCENARIOS,
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


def schedule(wanted: str = "", each: int = 2) -> list[Play]:
    """Return the runs of scenarios, all scenarios once before any is repeated.

    Args:
        wanted: names of scenarios, comma-separated; empty for all.
        each: number of runs per scenario.

    Raises:
        HeadroomError: there is no such scenario.
    """
    by_name = {scenario.name: scenario for scenario in SCENARIOS}
    names = [name.strip() for name in wanted.split(",") if name.strip()] or list(by_name)
    for name in names:
        if name not in by_name:
            raise failure(f"there is no scenario {name!r}; there are {', '.join(by_name)}")
    return [Play(by_name[name], number) for number in range(each) for name in dict.fromkeys(names)]


def batches(plays: Sequence[Play]) -> list[list[Play]]:
    """Return batches of runs that share a watch.

    A batch has one arrangement and a limited number of runs. A run after which a new watch is needed comes last.

    Args:
        plays: runs in their order.
    """
    found: list[list[Play]] = []
    for arrangement in Arrangement:
        own = [play for play in plays if play.scenario.arrangement is arrangement]
        last = [play for play in own if play.scenario.fresh_after]
        others = [play for play in own if not play.scenario.fresh_after]
        # As few watches as possible, each with the same number of runs.
        count = max(len(last), -(-len(others) // (_MOST_IN_A_BATCH - bool(last)))) if own else 0
        for number in range(count):
            first, end = (len(others) * n // count for n in (number, number + 1))
            found.append([*others[first:end], *last[number : number + 1]])
    return found
