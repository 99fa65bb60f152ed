"""The faults of the group ``precision``, in an order drawn with a fixed seed."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import psutil

from benchmarks.fixtures.bench_cluster import BenchCluster
from benchmarks.fixtures.preferred_leaders import PREFERRED
from benchmarks.fixtures.throttled_move import MovedPartition, ThrottledMove
from cli.common.watch_process import WatchProcess
from planning.throttles.replica_lists import TopicLists

ANY = ""
_MB = 1_000_000
# Fixed, so that a shorter run has the first faults of a longer one.
_SEED = 20_261
_MOVE_END_S = 180.0
_HEALTH_S = 90.0
# Further alert kinds that are true of a dead broker.
_DEAD_BROKER = frozenset({"no_data", "under_replicated", "isr_shrink_during_move", "reassignment_stalled"})


@dataclass(frozen=True)
class FaultContext:
    """Surroundings of a fault.

    Attributes:
        bench: cluster of the fault.
        watch: watch that should detect it.
        collector: process that collects its ticks. The watch did not start it, and does not restart it.
        move: topic under load.
    """

    bench: BenchCluster
    watch: WatchProcess
    collector: psutil.Process
    move: ThrottledMove

    def await_health(self) -> None:
        """Return once every broker and role of the running move is catching up."""

        def is_healthy() -> bool:
            return set((self.watch.verdicts() or {}).values()) == {"catching_up"}

        self.watch.wait(is_healthy, _HEALTH_S, f"a healthy move of {self.move.topic}")


@dataclass(frozen=True)
class Fault(ABC):
    """One fault with its brokers and its size. The first sentence of the docstring is its name.

    Attributes:
        a: broker that leads at first.
        b: another broker with the data.
        c: broker that gets the data.
        d: fourth broker.
        write_bytes_per_s: write rate of each partition.
        extent: 0 to 1: position between the bounds of the number that makes the fault.
    """

    a: int
    b: int
    c: int
    d: int
    write_bytes_per_s: float
    extent: float

    @property
    def name(self) -> str:
        """Return the name of the fault."""
        return (type(self).__doc__ or "").partition(".")[0]

    @property
    @abstractmethod
    def expects(self) -> Mapping[str, str]:
        """Return the kinds of alert of which one has to fire, with their subject or ``ANY``."""

    @property
    def also(self) -> frozenset[str]:
        """Return further kinds that may fire, because they are true as well."""
        return frozenset()

    @property
    def of_cluster(self) -> bool:
        """Return whether the fault is one of Kafka, so that Kafka's metrics can show it."""
        return True

    @abstractmethod
    def partitions(self) -> list[MovedPartition]:
        """Return the partitions of the topic."""

    def prepare(self, context: FaultContext) -> None:  # noqa: B027
        """Do the healthy part, before the fault."""

    @abstractmethod
    def inject(self, context: FaultContext) -> None:
        """Make the fault happen."""

    def revert(self, context: FaultContext) -> None:  # noqa: B027
        """Undo the fault, except for the move and its throttles, which end with the topic."""

    def between(self, low: float, high: float) -> float:
        """Return the number at this fault's extent between two bounds."""
        return low + (high - low) * self.extent


class ThrottleTooLow(Fault):
    """throttle too low from the start."""

    @property
    def expects(self) -> Mapping[str, str]:
        """The leader sends to its follower and to the new replica."""
        return {"throttle_below_leader_write": f"broker {self.a} as leader"}

    @property
    def also(self) -> frozenset[str]:
        """The destination has the same rate."""
        return frozenset({"throttle_below_inbound"})

    def partitions(self) -> list[MovedPartition]:
        """Return one partition."""
        return [MovedPartition((self.a, self.b), (self.a, self.c), self.write_bytes_per_s, 70 * _MB)]

    def inject(self, context: FaultContext) -> None:
        """Start a move whose throttle is between starving the new replica and just too low."""
        context.move.start_move(2 * self.write_bytes_per_s * self.between(0.35, 0.85))


class StarvingSwitch(Fault):
    """leader switch that starves."""

    @property
    def expects(self) -> Mapping[str, str]:
        """The new leader leads both partitions."""
        return {"throttle_below_leader_write": f"broker {self.b} as leader"}

    def partitions(self) -> list[MovedPartition]:
        """Return a partition led by each of two brokers."""
        history_bytes = round(18 * self.write_bytes_per_s)
        return [
            MovedPartition((self.a, self.b), (self.b, self.c), self.write_bytes_per_s, history_bytes),
            MovedPartition((self.b, self.a), (self.c, self.a), self.write_bytes_per_s, history_bytes),
        ]

    def prepare(self, context: FaultContext) -> None:
        """Start a move with a throttle for one partition per leader: 2 x the write rate."""
        context.move.start_move(self.write_bytes_per_s * self.between(2.5, 3.0))
        context.await_health()

    def inject(self, context: FaultContext) -> None:
        """Make one broker lead both partitions, which requires 4 x the write rate."""
        context.move.elect_preferred(0)


class InboundTooLow(Fault):
    """destination's rate too low."""

    @property
    def expects(self) -> Mapping[str, str]:
        """The destination receives both partitions."""
        return {"throttle_below_inbound": f"broker {self.c} as destination"}

    def partitions(self) -> list[MovedPartition]:
        """Return two partitions with one destination."""
        return [
            MovedPartition((self.a, self.b), (self.a, self.c), self.write_bytes_per_s, 40 * _MB),
            MovedPartition((self.b, self.a), (self.b, self.c), self.write_bytes_per_s, 40 * _MB),
        ]

    def inject(self, context: FaultContext) -> None:
        """Start a move with sufficient leader rates and a low rate of destinations."""
        inbound = 2 * self.write_bytes_per_s * self.between(0.4, 0.85)
        context.move.start_move(10 * self.write_bytes_per_s, inbound)


class DeadDestination(Fault):
    """destination dies."""

    @property
    def expects(self) -> Mapping[str, str]:
        """A dead destination copies nothing."""
        return {"reassignment_stalled": f"broker {self.d} as destination"}

    @property
    def also(self) -> frozenset[str]:
        """It also has replicas of the ticks topic."""
        return _DEAD_BROKER

    def partitions(self) -> list[MovedPartition]:
        """Return one partition."""
        return [MovedPartition((self.a, self.b), (self.a, self.d), self.write_bytes_per_s, 80 * _MB)]

    def prepare(self, context: FaultContext) -> None:
        """Start a move that would end in about a minute."""
        context.move.start_move(2.5 * self.write_bytes_per_s)
        context.await_health()

    def inject(self, context: FaultContext) -> None:
        """Kill the destination."""
        context.bench.kill(self.d)

    def revert(self, context: FaultContext) -> None:
        """Start the destination again."""
        _bring_back(context, self.d)


class LeavesThrottleBehind(Fault):
    """throttle left behind."""

    @property
    def expects(self) -> Mapping[str, str]:
        """The subject depends on what is left: rates, lists or both."""
        return {"throttle_left_behind": ANY}

    def partitions(self) -> list[MovedPartition]:
        """Return one small partition."""
        return [MovedPartition((self.a, self.b), (self.a, self.c), self.write_bytes_per_s, 10 * _MB)]

    def prepare(self, context: FaultContext) -> None:
        """Let a move finish."""
        context.move.start_move(10 * self.write_bytes_per_s)
        moving = context.move.moving
        context.watch.wait(lambda: not moving(), _MOVE_END_S, f"the end of the move of {context.move.topic}")

    def inject(self, context: FaultContext) -> None:
        """Clear only the rates, only the lists, or nothing."""
        if self.extent < 1 / 3:
            context.move.clear_rates()
        elif self.extent < 2 / 3:
            context.move.clear_lists()


class UnlistedLeader(Fault):
    """switch to a leader that is not listed."""

    @property
    def expects(self) -> Mapping[str, str]:
        """No throttle limits an unlisted leader."""
        return {"leader_unthrottled": ANY}

    @property
    def also(self) -> frozenset[str]:
        """The move may end during the fault."""
        return frozenset({"throttle_left_behind"})

    def partitions(self) -> list[MovedPartition]:
        """Return one partition."""
        return [MovedPartition((self.a, self.b), (self.b, self.c), self.write_bytes_per_s, 80 * _MB)]

    def prepare(self, context: FaultContext) -> None:
        """Start a move whose leader list has only the current leader. A slow destination keeps it running."""
        lists = {context.move.topic: TopicLists(f"0:{self.a}", f"0:{self.c}")}
        context.move.start_move(4 * self.write_bytes_per_s, 1.5 * self.write_bytes_per_s, lists)
        context.await_health()

    def inject(self, context: FaultContext) -> None:
        """Make the other broker the leader."""
        context.move.elect_preferred(0)


class DeadReplica(Fault):
    """broker with a replica dies."""

    @property
    def expects(self) -> Mapping[str, str]:
        """Outside of moves the first kind fires, during a move the second."""
        return {"under_replicated": ANY, "isr_shrink_during_move": ANY}

    @property
    def also(self) -> frozenset[str]:
        """Its metrics are missing too. If the move ends, its throttles are still set."""
        return _DEAD_BROKER | {"throttle_left_behind"}

    @property
    def _moves(self) -> bool:
        return self.extent >= 1 / 2

    def partitions(self) -> list[MovedPartition]:
        """Return one partition, which may move."""
        after = (self.a, self.d, self.c) if self._moves else (self.a, self.b, self.d)
        return [
            MovedPartition((self.a, self.b, self.d), after, self.write_bytes_per_s, (80 if self._moves else 10) * _MB)
        ]

    def prepare(self, context: FaultContext) -> None:
        """Start a move with a rate that is sufficient for all three followers, or none."""
        if self._moves:
            context.move.start_move(3.6 * self.write_bytes_per_s)
            context.await_health()

    def inject(self, context: FaultContext) -> None:
        """Kill the broker of a replica that the move keeps."""
        context.bench.kill(self.d)

    def revert(self, context: FaultContext) -> None:
        """Start the broker again."""
        _bring_back(context, self.d)


class StalledCollector(Fault):
    """collector is stalled."""

    @property
    def expects(self) -> Mapping[str, str]:
        """No tick arrives."""
        return {"no_data": "ticks"}

    @property
    def of_cluster(self) -> bool:
        """The collector is no process of Kafka."""
        return False

    def partitions(self) -> list[MovedPartition]:
        """Return one partition, which does not move."""
        return [MovedPartition((self.a, self.b), (self.a, self.b), self.write_bytes_per_s)]

    def inject(self, context: FaultContext) -> None:
        """Suspend the collector."""
        context.collector.suspend()

    def revert(self, context: FaultContext) -> None:
        """Resume the collector."""
        context.collector.resume()


_CLASSES: tuple[type[Fault], ...] = (
    ThrottleTooLow,
    StarvingSwitch,
    InboundTooLow,
    DeadDestination,
    LeavesThrottleBehind,
    UnlistedLeader,
    DeadReplica,
    StalledCollector,
)


def schedule(count: int) -> list[Fault]:
    """Return the first faults of a fixed order, in which every class comes once before any is repeated."""
    draw = random.Random(_SEED)
    faults: list[Fault] = []
    while len(faults) < count:
        faults += [_drawn(of, draw) for of in draw.sample(_CLASSES, len(_CLASSES))]
    return faults[:count]


def _drawn(of: type[Fault], draw: random.Random) -> Fault:
    # The fourth broker is no controller, so alerts about its death are about its replicas.
    a, b, c = draw.sample((1, 2, 3), 3)
    return of(a, b, c, 4, draw.choice((1.0, 1.5, 2.0)) * _MB, draw.random())


def _bring_back(context: FaultContext, broker: int) -> None:
    context.bench.restart(broker)
    # Preferred leaders of the ticks topic lead again, so that the next fault begins with a healthy cluster.
    ticks = context.bench.settings.ticks.topic
    context.watch.wait(
        lambda: bool(context.bench.admin.elect_leaders(PREFERRED, [ticks])), _HEALTH_S, f"preferred leaders of {ticks}"
    )
