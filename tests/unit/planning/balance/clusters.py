"""Small clusters for tests of load balance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from headroom.planning.balance.model import BalanceBroker, BrokerCapacity, ClusterModel, PartitionArrays, cluster_model

MIB = 1024**2


def brokers(count: int, racks: int = 0, **capacity: Any) -> list[BalanceBroker]:
    return [BalanceBroker(n + 1, f"r{n % racks}" if racks else None, BrokerCapacity(**capacity)) for n in range(count)]


def model_of(
    states: Sequence[BalanceBroker],
    replicas: Sequence[Sequence[int]],
    write: Sequence[float],
    *,
    read: Sequence[float] | None = None,
    size: Sequence[float] | None = None,
    topics: Sequence[str] | None = None,
    leaders: Sequence[int] | None = None,
    hours: int = 1,
) -> ClusterModel:
    """A cluster with constant rates; ids of brokers in ``replicas``, the first leads unless ``leaders`` are given."""
    count, slots = len(replicas), max(map(len, replicas))
    rates = np.tile(np.asarray(write, dtype=np.float64), (hours, 1))
    reads = np.zeros((hours, count)) if read is None else np.tile(np.asarray(read, dtype=np.float64), (hours, 1))
    names = ["t"] * count if topics is None else topics
    numbers = [list(names[:n]).count(name) for n, name in enumerate(names)]
    arrays = PartitionArrays(
        topics=names,
        partitions=np.array(numbers),
        replicas=np.array([[*row, *[-1] * (slots - len(row))] for row in replicas]),
        leaders=np.array([row[0] for row in replicas] if leaders is None else leaders),
        write=rates,
        read=reads,
        requests=np.zeros((hours, count)),
        sizes=np.full(count, 1e9) if size is None else np.asarray(size, dtype=np.float64),
    )
    return cluster_model(states, arrays)


@st.composite
def clusters(draw: st.DrawFn, hours: int = 3) -> tuple[list[BalanceBroker], PartitionArrays]:
    """Clusters of 3 to 8 brokers, with or without racks and capacities, skewed at random."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count, partitions = draw(st.integers(3, 8)), draw(st.integers(5, 120))
    replication = draw(st.integers(1, 3))
    racks = draw(st.sampled_from([0, 0, 3]))
    weights = random.dirichlet(np.full(count, 2.0))
    replicas = np.array([random.choice(count, replication, False, weights) for _ in range(partitions)]) + 1
    write = random.exponential(5 * MIB, (hours, partitions))
    sizes = random.exponential(2e9, partitions)
    capacity: dict[str, float] = {}
    if draw(st.booleans()):
        # Some brokers exceed their limit at the start, others have room.
        capacity = {
            "network_in_bytes_per_s": float(write.sum(axis=1).max()) * replication / count * 1.6,
            "disk_bytes": float(sizes.sum()) * replication / count * 1.6,
        }
    states = brokers(count, racks, **capacity)
    arrays = PartitionArrays(
        topics=[f"topic-{n // 10}" for n in range(partitions)],
        partitions=np.arange(partitions) % 10,
        replicas=replicas,
        leaders=replicas[:, 0],
        write=write,
        read=write * random.uniform(0, 3, partitions),
        requests=write / 1000,
        sizes=sizes,
    )
    return states, arrays
