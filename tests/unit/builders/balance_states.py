"""Small saved clusters for tests of ``headroom balance``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headroom.operations.balance.saved_state import write_loads
from headroom.planning.balance.observation.loads import ObservedLoads
from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState, LogDirectory, PartitionPlacement

GB = 10**9
MB = 10**6


def broker(
    number: int, rack: str | None = None, total: int = 1000 * GB, free: int = 900 * GB, **more: Any
) -> BrokerState:
    return BrokerState(number, rack=rack, log_dirs=(LogDirectory("/kafka", total, free),), **more)


def topic(name: str, replicas: Sequence[Sequence[int]], size: int | None = GB, **more: Any) -> list[PartitionPlacement]:
    """Partitions in sync, led by their first replica; rates are those of the loads."""
    return [
        PartitionPlacement(name, n, **{"leader": r[0], "isr": tuple(r), **more}, replicas=tuple(r), size_bytes=size)
        for n, r in enumerate(replicas)
    ]


def state_of(brokers: Sequence[BrokerState], partitions: Sequence[PartitionPlacement], **more: Any) -> ClusterState:
    placed = {p.name: p for p in sorted(partitions, key=lambda p: p.name)}
    found: Mapping[str, Any] = {
        "topic_ids": {p.topic: f"id-{p.topic}" for p in partitions},
        "rates_from": "a test",
        **more,
    }
    return ClusterState("c", 1_795_564_800_000, {b.broker: b for b in brokers}, placed, **found)


def loads_of(
    state: ClusterState, write: float | Sequence[float] = 10.0 * MB, read: float = 10.0 * MB, requests: float = np.nan
) -> ObservedLoads:
    """Loads of one reading, the same for every partition unless a rate is given for each."""
    count = len(state.partitions)
    return ObservedLoads(
        0,
        (),
        np.broadcast_to(np.asarray(write, dtype=np.float64), (1, count)).copy(),
        np.full(count, read),
        np.full(count, requests),
        "a test",
    )


def saved(folder: Path, state: ClusterState, loads: ObservedLoads | None = None) -> str:
    file = folder / "state.json"
    write_loads(file, state, loads or loads_of(state))
    return str(file)


def skewed(**more: Any) -> ClusterState:
    """Three brokers: 1 leads and stores all of 6 partitions, 2 follows, 3 has nothing."""
    return state_of([broker(n, **more) for n in (1, 2, 3)], topic("orders", [[1, 2]] * 6, leader=1))
