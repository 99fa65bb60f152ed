"""A store with an hour of replication lag of a large cluster: one tick in silver, summed as the pipeline does."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headroom.schemas.tables import FETCHER_LAG, LEADER_DISTRIBUTION, MESSAGES, REPLICATION_LAG
from headroom.streaming.delta.append import append
from headroom.streaming.jobs.loads.replication_lag import EVERY_S, replication_lags
from tests.unit.builders.dashboard_store import CLUSTER, DashboardStore

_BROKERS, _OF_TOPIC = 30, 100
_HOUR_MS = 3_600_000
# Messages of a tick besides its end.
_MESSAGES = 200


@dataclass(frozen=True)
class LagStore:
    """A store with an hour of lag.

    Attributes:
        path: folder.
        summed_s: time in which one tick was summed, seconds.
    """

    path: Path
    summed_s: float


def make_hour(folder: Path, last_ms: int, partitions: int) -> LagStore:
    """Write a tick of all followers, and its sums for an hour.

    Args:
        folder: new folder of the store.
        last_ms: newest tick, epoch milliseconds.
        partitions: partitions of RF 3 on 30 brokers.
    """
    store = DashboardStore(folder)
    tick = {"cluster": CLUSTER, "tick_ms": last_ms}
    kinds = ["lags"] * _MESSAGES + ["tick_end"]
    store.rows(LEADER_DISTRIBUTION, *({**tick, **row} for row in _leaders(partitions)))
    store.rows(FETCHER_LAG, *({**tick, **row} for row in _lags(partitions)))
    store.rows(MESSAGES, *({**tick, "kind": kind, "seq": seq, "rows": 1} for seq, kind in enumerate(kinds)))
    began_s = time.monotonic()
    sums = replication_lags(str(folder), CLUSTER, last_ms)
    summed_s = time.monotonic() - began_s
    every_ms = round(EVERY_S * 1000)
    hour = [replace(row, tick_ms=last_ms - age_ms) for age_ms in range(0, _HOUR_MS, every_ms) for row in sums]
    append(store.opened(REPLICATION_LAG), hour, REPLICATION_LAG)
    return LagStore(folder, summed_s)


def _partition(number: int) -> tuple[str, int, list[int]]:
    """Return topic, partition and replicas, the leader first."""
    spread = number // _BROKERS
    leader = number % _BROKERS
    # The second replica is 1 to 14 brokers on, the third 15 to 29.
    replicas = [leader, (leader + 1 + spread % 14) % _BROKERS, (leader + 15 + spread % 15) % _BROKERS]
    return f"t{number // _OF_TOPIC}", number % _OF_TOPIC, replicas


def _leaders(partitions: int) -> Iterator[Mapping[str, Any]]:
    for number in range(partitions):
        topic, partition, replicas = _partition(number)
        yield {"topic": topic, "partition": partition, "leader": replicas[0], "replicas": replicas}


def _lags(partitions: int) -> Iterator[Mapping[str, Any]]:
    for number in range(partitions):
        topic, partition, (leader, *followers) = _partition(number)
        for broker in followers:
            of_replica = {"broker": broker, "source_broker": leader, "fetcher": "f", "lag_offsets": number % 7}
            yield {"topic": topic, "partition": partition, **of_replica}
