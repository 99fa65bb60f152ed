"""Random small clusters with leaders and write rates, shared by several test tiers."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from headroom.planning.elections import planner as elections
from headroom.schemas.keys import TopicPartition
from tests.support.random_clusters import BROKERS, subsets

# Multiples of 100 bytes per second, so that sums are exact.
_WRITE_RATES = tuple(hundreds * 100 for hundreds in (0, 0, 1, 2, 5))


@dataclass(frozen=True)
class PartitionState:
    """One partition.

    Attributes:
        topic: topic.
        partition: partition.
        leader: broker id of the leader; None if there is no leader.
        replicas: replicas; the first is the preferred leader.
        isr: in-sync replicas.
        moving: true while a reassignment of it is running.
        write_bytes_per_s: write rate, bytes per second.
        reported: true if its leader reported the growth of its log.
    """

    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    moving: bool
    write_bytes_per_s: int
    reported: bool


@dataclass(frozen=True)
class Broker:
    """One broker.

    Attributes:
        alive: true if it is registered.
        metered: true if it reports its own traffic.
        reads: read rate of consumers as a multiple of its write rate.
        percentage: its imbalance threshold in percent; None if not set.
    """

    alive: bool
    metered: bool
    reads: int
    percentage: int | None


@dataclass(frozen=True)
class Leadership:
    """Partitions and brokers of a cluster."""

    partitions: tuple[PartitionState, ...]
    brokers: dict[int, Broker]


def as_planned(cluster: Leadership) -> list[elections.PartitionState]:
    """Return the partitions as input of the planner, with all write rates known."""
    return [
        elections.PartitionState(
            TopicPartition(p.topic, p.partition),
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
    # Mostly the preferred leader, as in a real cluster.
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
        reported=draw(st.integers(0, 9)) > 0,
    )


@st.composite
def leaderships(draw: st.DrawFn) -> Leadership:
    """Draw up to twelve partitions of two topics on five brokers."""
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
