"""Writer of ``gold/broker_load``: minutes of brokers and resources, from rows that the balance job has in hand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any

from pyspark.sql import Row, SparkSession

from headroom.planning.balance.broker_loads.loads import BrokerLoad, broker_loads
from headroom.planning.balance.broker_reading import BrokerReading, ByteCounter, mean_rate
from headroom.planning.balance.model import Resource
from headroom.planning.balance.slow_brokers.flush_history import FlushHistory
from headroom.planning.balance.slow_brokers.slow_brokers import advice
from headroom.schemas.config import BalanceSettings
from headroom.schemas.keys import Tick
from headroom.schemas.tables import BROKER_LOAD
from headroom.streaming.queries.written import Written
from headroom.streaming.store.followed_table import FollowedTable, newest_sql
from headroom.streaming.store.low_latency_table import LowLatencyTable
from headroom.streaming.store.store import Store

MINUTE_MS = 60_000
_DAY_MS = 24 * 3_600_000
# Resources with a counter of bytes.
_COUNTED = (Resource.NETWORK_IN, Resource.NETWORK_OUT)
_Counters = dict[tuple[int, Resource], ByteCounter]


@dataclass(frozen=True)
class BrokerLoadRow:
    """One row; the columns are those of ``schemas.tables.gold_load.BROKER_LOAD``."""

    cluster: str
    tick_ms: int
    date: date
    minute_ms: int
    broker: int
    alive: bool
    resource: str
    load: float | None
    unknown_reason: str | None
    capacity: float | None
    load_limit: float | None
    mean: float | None
    lower: float | None
    upper: float | None
    in_band: bool | None
    band_score: float | None
    limit_score: float | None
    flush_p999_s: float | None
    slow_rounds: int | None
    read_ms: int | None
    counter_bytes: int | None


@dataclass
class _ClusterState:
    """What the next minute of a cluster is compared with.

    Attributes:
        counters: counters of the last minute, by broker and resource.
        flushes: flush times of the past day.
    """

    counters: _Counters
    flushes: FlushHistory


class BrokerLoadWriter:
    """Writes the first complete tick of each minute, each minute once.

    All that a minute is compared with is in the table, so that the rows after a crash are those without one.

    Args:
        spark: session.
        store: tables.
        settings: section ``[balance]`` by cluster; other clusters have the defaults.
    """

    def __init__(self, spark: SparkSession, store: Store, settings: Mapping[str, BalanceSettings]) -> None:
        self._store = store
        self._settings = settings
        self._table = LowLatencyTable(spark, store, BROKER_LOAD)
        self._read = FollowedTable(spark, store, BROKER_LOAD)
        self._written = Written()
        self._states: dict[str, _ClusterState] = {}

    def prepare(self) -> None:
        """Create the table if it is missing, and read which minutes it has."""
        self._written.load(self._store, (BROKER_LOAD,))
        self._states = {}

    def append(self, rows: Iterable[Row]) -> None:
        """Append the minutes that are not in the table.

        Args:
            rows: rows of ``streaming.transforms.leaders.imbalance.broker_rows`` of complete ticks.
        """
        ticks: dict[Tick, list[Row]] = defaultdict(list)
        for row in rows:
            ticks[row["cluster"], row["tick_ms"]].append(row)
        due = self._due(sorted(ticks, key=lambda tick: (tick[1], tick[0])))
        if not due:
            return
        if not self._states:
            self._states = self._restore_states(min(tick_ms for _, tick_ms in due))
        states = {cluster: self._states.get(cluster) or _ClusterState({}, FlushHistory()) for cluster, _ in due}
        self._table.append([row for tick in due for row in _minute(tick, ticks[tick], states, self._settings)])
        self._states |= states
        self._written.add(due)

    def _due(self, ticks: Sequence[Tick]) -> list[Tick]:
        """Return the first tick of each minute that is not in the table.

        Args:
            ticks: complete ticks in order of time.
        """
        first: dict[Tick, Tick] = {}
        for cluster, tick_ms in ticks:
            if minute_of(tick_ms) != minute_of(self._written.last_tick.get(cluster, -MINUTE_MS)):
                first.setdefault((cluster, minute_of(tick_ms)), (cluster, tick_ms))
        if not first or not (self._written.first_batch or self._written.may_have(first.values())):
            return list(first.values())
        since_ms = min(minute_ms for _, minute_ms in first)
        written = {(name, minute_of(tick_ms)) for name, tick_ms in self._store.ticks_since(BROKER_LOAD, since_ms)}
        return [tick for minute, tick in first.items() if minute not in written]

    def _restore_states(self, before_ms: int) -> dict[str, _ClusterState]:
        """Return the states of all clusters from the newest rows in the table."""
        newest = self._read.query(newest_sql(before_ms - _DAY_MS))
        past = self._read.query(
            f"""SELECT cluster, tick_ms, broker, flush_p999_s, load FROM data
                WHERE tick_ms > {before_ms - _DAY_MS} AND resource = '{resource_name(Resource.NETWORK_IN)}'
                AND flush_p999_s IS NOT NULL AND load > 0 ORDER BY tick_ms"""
        )
        flushes: dict[str, dict[int, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
        for row in past:
            flushes[row["cluster"]][row["broker"]].append((row["flush_p999_s"], row["load"]))
        clusters = {row["cluster"] for row in newest}
        return {name: _state_of([row for row in newest if row["cluster"] == name], flushes[name]) for name in clusters}


def minute_of(tick_ms: int) -> int:
    """Return the start of the minute of a tick, epoch milliseconds."""
    return tick_ms - tick_ms % MINUTE_MS


def resource_name(resource: Resource) -> str:
    """Return the name of a resource in the table."""
    return resource.name.lower()


def _state_of(rows: Sequence[Mapping[str, Any]], past: Mapping[int, Sequence[tuple[float, float]]]) -> _ClusterState:
    counters = {
        (row["broker"], Resource[row["resource"].upper()]): ByteCounter(row["read_ms"], row["counter_bytes"])
        for row in rows
        if row["counter_bytes"] is not None
    }
    rounds = {row["broker"]: row["slow_rounds"] for row in rows if row["slow_rounds"] is not None}
    return _ClusterState(counters, FlushHistory(rounds, past))


def _minute(
    tick: Tick, rows: Sequence[Row], states: Mapping[str, _ClusterState], settings: Mapping[str, BalanceSettings]
) -> Iterator[BrokerLoadRow]:
    """Yield the rows of one minute, and bring the state of its cluster up to it."""
    cluster, tick_ms = tick
    state = states[cluster]
    counters = {(row["broker"], resource): c for row in rows for resource in _COUNTED if (c := _counter(row, resource))}
    readings = [_reading(row, state.counters, counters) for row in rows]
    rounds = state.flushes.add(readings)
    state.counters = counters
    flushes = {reading.broker: reading.flush_p999_s for reading in readings}
    alive = {reading.broker: reading.alive for reading in readings}
    slow = advice({reading.broker: rounds.get(reading.broker, 0) for reading in readings})
    for load in broker_loads(readings, settings.get(cluster, BalanceSettings()), slow):
        counter = counters.get((load.broker, load.resource))
        yield BrokerLoadRow(
            cluster=cluster,
            tick_ms=tick_ms,
            date=datetime.fromtimestamp(tick_ms / 1000, timezone.utc).date(),
            minute_ms=minute_of(tick_ms),
            broker=load.broker,
            alive=alive[load.broker],
            **_columns(load),
            flush_p999_s=flushes[load.broker],
            slow_rounds=rounds.get(load.broker),
            read_ms=None if counter is None else counter.read_ms,
            counter_bytes=None if counter is None else counter.total_bytes,
        )


def _columns(load: BrokerLoad) -> dict[str, Any]:
    return {
        "resource": resource_name(load.resource),
        "load": load.load,
        "unknown_reason": load.unknown,
        "capacity": load.capacity,
        "load_limit": load.limit,
        "mean": load.mean,
        "lower": load.lower,
        "upper": load.upper,
        "in_band": load.in_band,
        "band_score": load.band_score,
        "limit_score": load.limit_score,
    }


def _counter(row: Row, resource: Resource) -> ByteCounter | None:
    name = resource_name(resource)
    total, read_ms = row[f"{name}_bytes"], row[f"{name}_read_ms"]
    return None if total is None or read_ms is None else ByteCounter(read_ms, total)


def _reading(row: Row, before: _Counters, now: _Counters) -> BrokerReading:
    broker = row["broker"]
    loads: dict[Resource, float | None] = {
        resource: mean_rate(
            before.get((broker, resource)), now.get((broker, resource)), row[f"{resource_name(resource)}_bytes_per_s"]
        )
        for resource in _COUNTED
    }
    loads |= {
        Resource.REQUESTS: row["requests_per_s"],
        Resource.DISK: row["disk_bytes"],
        Resource.LEADERS: row["led_partitions"],
        Resource.REPLICAS: row["replicas"],
    }
    known = {resource: float(load) for resource, load in loads.items() if load is not None}
    return BrokerReading(broker, row["alive"], row["answered"], known, row["disk_capacity_bytes"], row["flush_p999_s"])
