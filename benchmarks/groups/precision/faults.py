"""The faults of the group ``precision``, in an order drawn with a fixed seed."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import psutil

from benchmarks.faults.schedule import in_rounds
from benchmarks.fixtures.bench_cluster import BenchCluster
from benchmarks.fixtures.preferred_leaders import PREFERRED
from benchmarks.fixtures.throttled_move import MovedPartition, ThrottledMove
from headroom.cli.common.watch_process import WatchProcess
from headroom.planning.throttles.replica_lists import TopicLists

ANY = ""
_MB = 1_000_000
# Fixed, so that a shorter run has the first faults of a longer one.
_SEED = 20_261
_MOVE_END_S = 180.0
_HEALTH_S = 90.0


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

    # Kinds of alert of which one has to fire, with their subject or ``ANY``. A letter in braces is a broker.
    subjects: ClassVar[Mapping[str, str]]
    # Further kinds that may fire, because they are true as well.
    also: ClassVar[frozenset[str]] = frozenset()
    # Whether the fault is one of Kafka, so that Kafka's metrics can show it.
    of_cluster: ClassVar[bool] = True

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
    def expects(self) -> Mapping[str, str]:
        """Return the kinds of alert of which one has to fire, with their subject or ``ANY``."""
        return {kind: subject.format(**vars(self)) for kind, subject in self.subjects.items()}

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

    def partition(self, before: str, after: str, history_bytes: int = 0) -> MovedPartition:
        """Return a partition at the write rate; letters name its brokers before and after the move."""
        replicas = [tuple(getattr(self, letter) for letter in letters) for letters in (before, after)]
        return MovedPartition(replicas[0], replicas[1], self.write_bytes_per_s, history_bytes)


class ThrottleTooLow(Fault):
    """throttle too low from the start."""

    # The leader sends to its follower and to the new replica. The destination has the same rate.
    subjects: ClassVar[Mapping[str, str]] = {"throttle_below_leader_write": "broker {a} as leader"}
    also: ClassVar[frozenset[str]] = frozenset({"throttle_below_inbound"})

    def partitions(self) -> list[MovedPartition]:
        """Return one partition."""
        return [self.partition("ab", "ac", 70 * _MB)]

    def inject(self, context: FaultContext) -> None:
        """Start a move whose throttle is between starving the new replica and just too low."""
        context.move.start_move(2 * self.write_bytes_per_s * self.between(0.35, 0.85))


class StarvingSwitch(Fault):
    """leader switch that starves."""

    # The new leader leads both partitions.
    subjects: ClassVar[Mapping[str, str]] = {"throttle_below_leader_write": "broker {b} as leader"}

    def partitions(self) -> list[MovedPartition]:
        """Return a partition led by each of two brokers."""
        history_bytes = round(18 * self.write_bytes_per_s)
        return [self.partition("ab", "bc", history_bytes), self.partition("ba", "ca", history_bytes)]

    def prepare(self, context: FaultContext) -> None:
        """Start a move with a throttle for one partition per leader: 2 x the write rate."""
        context.move.start_move(self.write_bytes_per_s * self.between(2.5, 3.0))
        context.await_health()

    def inject(self, context: FaultContext) -> None:
        """Make one broker lead both partitions, which requires 4 x the write rate."""
        context.move.elect_preferred(0)


class InboundTooLow(Fault):
    """destination's rate too low."""

    # The destination receives both partitions.
    subjects: ClassVar[Mapping[str, str]] = {"throttle_below_inbound": "broker {c} as destination"}

    def partitions(self) -> list[MovedPartition]:
        """Return two partitions with one destination."""
        return [self.partition("ab", "ac", 40 * _MB), self.partition("ba", "bc", 40 * _MB)]

    def inject(self, context: FaultContext) -> None:
        """Start a move with sufficient leader rates and a low rate of destinations."""
        inbound = 2 * self.write_bytes_per_s * self.between(0.4, 0.85)
        context.move.start_move(10 * self.write_bytes_per_s, inbound)


class DeadBroker(Fault):
    """the fourth broker dies. It also has replicas of the ticks topic."""

    also: ClassVar[frozenset[str]] = frozenset(
        {"no_data", "under_replicated", "isr_shrink_during_move", "reassignment_stalled"}
    )

    def inject(self, context: FaultContext) -> None:
        """Kill the broker."""
        context.bench.kill(self.d)

    def revert(self, context: FaultContext) -> None:
        """Start the broker again, and elect preferred leaders of the ticks topic for the next fault."""
        context.bench.restart(self.d)
        bench, ticks = context.bench, context.bench.settings.ticks.topic
        context.watch.wait(
            lambda: bool(bench.admin.elect_leaders(PREFERRED, [ticks])), _HEALTH_S, f"preferred leaders of {ticks}"
        )


class DeadDestination(DeadBroker):
    """destination dies."""

    # A dead destination copies nothing.
    subjects: ClassVar[Mapping[str, str]] = {"reassignment_stalled": "broker {d} as destination"}

    def partitions(self) -> list[MovedPartition]:
        """Return one partition."""
        return [self.partition("ab", "ad", 80 * _MB)]

    def prepare(self, context: FaultContext) -> None:
        """Start a move that would end in about a minute."""
        context.move.start_move(2.5 * self.write_bytes_per_s)
        context.await_health()


class LeavesThrottleBehind(Fault):
    """throttle left behind."""

    # The subject depends on what is left: rates, lists or both.
    subjects: ClassVar[Mapping[str, str]] = {"throttle_left_behind": ANY}

    def partitions(self) -> list[MovedPartition]:
        """Return one small partition."""
        return [self.partition("ab", "ac", 10 * _MB)]

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

    # No throttle limits an unlisted leader. The move may end during the fault.
    subjects: ClassVar[Mapping[str, str]] = {"leader_unthrottled": ANY}
    also: ClassVar[frozenset[str]] = frozenset({"throttle_left_behind"})

    def partitions(self) -> list[MovedPartition]:
        """Return one partition."""
        return [self.partition("ab", "bc", 80 * _MB)]

    def prepare(self, context: FaultContext) -> None:
        """Start a move whose leader list has only the current leader. A slow destination keeps it running."""
        lists = {context.move.topic: TopicLists(f"0:{self.a}", f"0:{self.c}")}
        context.move.start_move(4 * self.write_bytes_per_s, 1.5 * self.write_bytes_per_s, lists)
        context.await_health()

    def inject(self, context: FaultContext) -> None:
        """Make the other broker the leader."""
        context.move.elect_preferred(0)


class DeadReplica(DeadBroker):
    """broker with a replica dies."""

    # Outside of moves the first kind fires, during a move the second. If the move ends, its throttles are still set.
    subjects: ClassVar[Mapping[str, str]] = {"under_replicated": ANY, "isr_shrink_during_move": ANY}
    also: ClassVar[frozenset[str]] = DeadBroker.also | {"throttle_left_behind"}

    @property
    def _moves(self) -> bool:
        return self.extent >= 1 / 2

    def partitions(self) -> list[MovedPartition]:
        """Return one partition, which may move. The move keeps the replica on the broker that dies."""
        return [self.partition("abd", "adc", 80 * _MB) if self._moves else self.partition("abd", "abd", 10 * _MB)]

    def prepare(self, context: FaultContext) -> None:
        """Start a move with a rate that is sufficient for all three followers, or none."""
        if self._moves:
            context.move.start_move(3.6 * self.write_bytes_per_s)
            context.await_health()


class StalledCollector(Fault):
    """collector is stalled."""

    # No tick arrives. The collector is no process of Kafka.
    subjects: ClassVar[Mapping[str, str]] = {"no_data": "ticks"}
    of_cluster: ClassVar[bool] = False

    def partitions(self) -> list[MovedPartition]:
        """Return one partition, which does not move."""
        return [self.partition("ab", "ab")]

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
    return [_draw_fault(of, draw) for of in islice(in_rounds(_CLASSES, draw), count)]


def _draw_fault(of: type[Fault], draw: random.Random) -> Fault:
    # The fourth broker is no controller, so alerts about its death are about its replicas.
    a, b, c = draw.sample((1, 2, 3), 3)
    return of(a, b, c, 4, draw.choice((1.0, 1.5, 2.0)) * _MB, draw.random())
