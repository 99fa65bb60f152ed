"""Random small clusters as leaders see them, with what is written to each partition. Several tiers share them."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from planning.elections import planner as elections
from tests.support.random_clusters import BROKERS, subsets

# Whole hundreds of bytes per second: their sums are exact.
_WRITE_RATES = tuple(hundreds * 100 for hundreds in (0, 0, 1, 2, 5))


@dataclass(frozen=True)
class PartitionState:
    """One partition.

    Attributes:
        topic: topic.
        partition: partition.
        leader: leading broker; None: none.
        replicas: the first is preferred.
        isr: those in sync.
        moving: whether a reassignment of it is running.
        write_bytes_per_s: what is written to it.
        told: whether its leader told the growth of its log.
    """

    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    moving: bool
    write_bytes_per_s: int
    told: bool


@dataclass(frozen=True)
class Broker:
    """One broker.

    Attributes:
        alive: whether it is registered.
        metered: whether it tells its own traffic.
        reads: how many times what is written to it consumers read of it.
        percentage: its threshold; None: it has none.
    """

    alive: bool
    metered: bool
    reads: int
    percentage: int | None


@dataclass(frozen=True)
class Leadership:
    """A cluster: every partition, every broker."""

    partitions: tuple[PartitionState, ...]
    brokers: dict[int, Broker]


def as_planned(cluster: Leadership) -> list[elections.PartitionState]:
    """Its partitions as elections are planned of, with all that is written known."""
    return [
        elections.PartitionState(
            p.topic,
            p.partition,
            p.leader,
            p.replicas,
            p.isr,
            p.moving,
            min_insync_replicas=1,
            write_bytes_per_s=float(p.write_bytes_per_s),
        )
        for p in cluster.partitions
    ]


@st.composite
def _partitions(draw: st.DrawFn, number: int) -> PartitionState:
    replicas = tuple(draw(st.lists(st.sampled_from(BROKERS), min_size=1, max_size=3, unique=True)))
    # Mostly as preferred, as in a real cluster.
    leader = draw(st.sampled_from((replicas[0], *replicas, *replicas, None)))
    in_sync = draw(subsets(replicas)) | ({leader} if leader is not None else set())
    return PartitionState(
        topic=draw(st.sampled_from("ab")),
        partition=number,
        leader=leader,
        replicas=replicas,
        isr=tuple(sorted(in_sync)),
        moving=draw(st.integers(0, 3)) == 0,
        write_bytes_per_s=draw(st.sampled_from(_WRITE_RATES)) if leader is not None else 0,
        told=draw(st.integers(0, 9)) > 0,
    )


@st.composite
def leaderships(draw: st.DrawFn) -> Leadership:
    """Up to twelve partitions of two topics on five brokers."""
    count = draw(st.integers(1, 12))
    brokers = {
        b: Broker(
            alive=draw(st.integers(0, 5)) > 0,
            metered=draw(st.integers(0, 9)) > 0,
            reads=draw(st.integers(0, 2)),
            percentage=draw(st.sampled_from((None, None, 0, 25))),
        )
        for b in BROKERS
    }
    return Leadership(tuple(draw(_partitions(number)) for number in range(count)), brokers)
