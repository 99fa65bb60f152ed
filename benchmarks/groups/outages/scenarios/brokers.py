"""Brokers killed with SIGKILL, or stopped with SIGSTOP and continued with SIGCONT."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from benchmarks.groups.outages.brokers import DESTINATION, TICKS_LEADER
from benchmarks.groups.outages.context import ScenarioContext
from benchmarks.groups.outages.scenarios.scenario import Scenario

# Controllers fence a broker after 9 s, and may have to elect an active controller first. The broker stays down until
# others lead its partitions.
_DOWN_S = 12.0
_HANGS_S = 10.0


@dataclass(frozen=True, kw_only=True)
class BrokerOutage(Scenario):
    """A broker is killed, and restarted once others lead its partitions.

    Attributes:
        broker: returns the broker.
        hangs: whether it hangs instead: its connections stay open without any response.
    """

    broker: Callable[[ScenarioContext], int]
    length_s: float = _DOWN_S
    hangs: bool = False

    def excluded_leaders(self, context: ScenarioContext) -> Collection[int]:
        """Return the broker, because no rate can be set on it."""
        return (self.broker(context),)

    def begin(self, context: ScenarioContext) -> None:
        """Kill or suspend the broker."""
        broker_id = self.broker(context)
        context.note(f"broker {broker_id} {'hangs' if self.hangs else 'is killed'}")
        if self.hangs:
            context.brokers.pause(broker_id)
        else:
            context.brokers.kill(broker_id)


# Name, title with a place for what happens to it, and the broker.
_BROKERS: tuple[tuple[str, str, Callable[[ScenarioContext], int]], ...] = (
    ("ticks_leader", "broker {} that leads partition 0 of the ticks", lambda s: TICKS_LEADER),
    ("destination", "destination {}", lambda s: DESTINATION),
    ("controller", "active controller {}", lambda s: s.brokers.controller()),
)
KILLS: tuple[Scenario, ...] = tuple(
    BrokerOutage(name=f"kill_{name}", title=title.format("killed"), broker=broker) for name, title, broker in _BROKERS
)
HANGS: tuple[Scenario, ...] = tuple(
    BrokerOutage(
        name=f"hang_{name}", title=title.format("hangs for 10 s"), broker=broker, hangs=True, length_s=_HANGS_S
    )
    for name, title, broker in _BROKERS
)
