"""Which scenarios are played, how often, in which order, and which of them with the same watch."""

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
# An alert about the same leader that came back four times resolves after eight times as long as the first.
_MOST_IN_A_BATCH = 10


@dataclass(frozen=True)
class Play:
    """One scenario, played once.

    Attributes:
        scenario: the scenario.
        number: how many times it is played before; an even one has its fault while an alert begins to fire, an odd one
            while it resolves.
    """

    scenario: Scenario
    number: int

    @property
    def name(self) -> str:
        """Return what its record is known by."""
        return f"{self.scenario.name}-{self.number}"

    @property
    def fires(self) -> bool:
        """Return whether the alert is to fire in the midst of the fault; else it is to resolve."""
        return self.number % 2 == 0


def schedule(wanted: str = "", each: int = 2) -> list[Play]:
    """Return the plays of scenarios, all of them once before any again.

    Args:
        wanted: names of scenarios, separated by commas; empty: all.
        each: how often each is played.

    Raises:
        HeadroomError: there is no scenario of such a name.
    """
    by_name = {scenario.name: scenario for scenario in SCENARIOS}
    names = [name.strip() for name in wanted.split(",") if name.strip()] or list(by_name)
    for name in names:
        if name not in by_name:
            raise failure(f"BENCH_OUTAGES names {name!r}; there are {', '.join(by_name)}")
    return [Play(by_name[name], number) for number in range(each) for name in dict.fromkeys(names)]


def batches(plays: Sequence[Play]) -> list[list[Play]]:
    """Return plays by the watch that they share: of one arrangement, not too many, and none after one that has to be
    the last of its watch.

    Args:
        plays: in their order.
    """
    found: list[list[Play]] = []
    for arrangement in Arrangement:
        own = [play for play in plays if play.scenario.arrangement is arrangement]
        last = [play for play in own if play.scenario.fresh_after]
        others = [play for play in own if not play.scenario.fresh_after]
        # As few watches as both kinds allow, each with as many plays.
        count = max(len(last), -(-len(others) // (_MOST_IN_A_BATCH - bool(last)))) if own else 0
        for number in range(count):
            first, end = (len(others) * n // count for n in (number, number + 1))
            found.append([*others[first:end], *last[number : number + 1]])
    return found
