"""Base class of scenarios: one scripted fault on a live move, in an arrangement of the watch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from benchmarks.groups.outages.context import ScenarioContext
from headroom.schemas.alerts import AlertKind


class Arrangement(str, Enum):
    """Surroundings of the watch.

    Attributes:
        PLAIN: only brokers and receivers.
        PROXIED: proxies between the watch and Kafka, one Jolokia agent, and the receivers.
        OWN_DISK: the tables are on their own file system.
        OWN_CLOCKS: watch and collector are separate processes whose wall clocks can be set.
    """

    PLAIN = "plain"
    PROXIED = "proxied"
    OWN_DISK = "own_disk"
    OWN_CLOCKS = "own_clocks"


@dataclass(frozen=True, kw_only=True)
class Scenario(ABC):
    """One fault.

    Attributes:
        name: name in ``--scenarios``.
        title: short description.
        length_s: length of the fault, seconds.
        arrangement: arrangement of the watch.
        true_critical: kinds of critical alerts that are true, in addition to the one about the starving leader.
        restarts_judging: whether the watch or its JVM is killed, and has to restart before it can evaluate.
        fresh_after: whether the next scenario needs a new watch, new tables and a new ticks topic.
        loses_rows: whether rows of ``alerts/events`` are lost permanently.
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
        """Do the healthy part, before the fault.

        Raises:
            Void: this machine cannot provide what the scenario needs.
        """

    def excluded_leaders(self, context: ScenarioContext) -> Collection[int]:
        """Return the brokers that cannot starve, because the fault makes them unavailable."""
        return ()

    @abstractmethod
    def begin(self, context: ScenarioContext) -> None:
        """Make the fault happen."""

    def end(self, context: ScenarioContext) -> None:
        """End the fault, and recover."""
        context.recover()
