"""A store with a day of ticks of a large move, without Spark: one tick, copied by the Delta library in time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable, QueryBuilder, write_deltalake

from benchmarks.fixtures.bench_cluster import OnProgress
from headroom.schemas.keys import Role
from headroom.schemas.tables import PARTITION_WRITE_RATE, REASSIGNMENT_PROGRESS, THROTTLE_HEADROOM, Table
from tests.unit.builders.dashboard_store import CLUSTER, DashboardStore, new_replica
from tests.unit.builders.throttle_status import partition, status

BROKERS = tuple(range(1, 13))
TICK_MS = 5_000
_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000
_PARTITIONS_OF_A_LEADER = 20
# In a full day each tick has other figures, so that no column is the same in all rows.
_CHANGING: Mapping[str, str] = {
    "required_bytes_per_s": "required_bytes_per_s * (1 + 0.1 * sin(s.value / 3600000.0))",
    "headroom_bytes_per_s": "throttle_bytes_per_s - required_bytes_per_s * (1 + 0.1 * sin(s.value / 3600000.0))",
    "quota_bytes_per_s": "quota_bytes_per_s * (1 + 0.1 * sin(s.value / 1800000.0))",
    "remaining_bytes": "CAST(remaining_bytes * (1.0 - (s.value - {first_ms}) / 90000000.0) AS BIGINT)",
    "eta_s": "eta_s * (1.0 - (s.value - {first_ms}) / 90000000.0)",
    "write_bytes_per_s": "write_bytes_per_s * (1 + 0.05 * sin(s.value / 600000.0))",
}


@dataclass(frozen=True)
class DayStore:
    """A store with a day of ticks.

    Attributes:
        path: folder.
        last_ms: newest tick, epoch milliseconds.
        partitions: number of moving partitions.
    """

    path: Path
    last_ms: int
    partitions: int

    def append_tick(self, tick_ms: int) -> None:
        """Append the newest tick again at another time, as the pipeline does: throttles last."""
        for table in (REASSIGNMENT_PROGRESS, PARTITION_WRITE_RATE, THROTTLE_HEADROOM):
            location = f"{self.path}/{table.path}"
            sql = _copies(table, f"(SELECT * FROM data WHERE tick_ms = {self.last_ms})", tick_ms, tick_ms + 1, tick_ms)
            rows = QueryBuilder().register("data", DeltaTable(location)).execute(sql)
            write_deltalake(location, rows, mode="append")


def make_day(folder: Path, last_ms: int, partitions: int, on_progress: OnProgress) -> DayStore:
    """Write a day of ticks, every 5 s until ``last_ms``, in one commit for each hour as after maintenance.

    Args:
        folder: new folder of the store.
        last_ms: newest tick, epoch milliseconds.
        partitions: moving partitions.
        on_progress: gets a line for each few hours.
    """
    single = DashboardStore(folder / "one-tick")
    single.throttles(*_statuses(), tick_ms=last_ms, cluster=CLUSTER)
    single.replicas(*(_replica(number) for number in range(partitions)), tick_ms=last_ms)
    single.rates(*(("t", n, _leader(n), 2e6, "log_size") for n in range(partitions)), tick_ms=last_ms)
    first_ms, store = last_ms - _DAY_MS + TICK_MS, folder / "store"
    for table in (REASSIGNMENT_PROGRESS, PARTITION_WRITE_RATE, THROTTLE_HEADROOM):
        location = f"{store}/{table.path}"
        DashboardStore(store).opened(table)
        for begin_ms in range(first_ms, last_ms + 1, _HOUR_MS):
            sql = _copies(table, "data", begin_ms, min(begin_ms + _HOUR_MS, last_ms + 1), first_ms)
            rows = QueryBuilder().register("data", DeltaTable(f"{single.path}/{table.path}")).execute(sql)
            write_deltalake(location, rows, mode="append")
        on_progress(f"wrote a day of {table.path}")
    return DayStore(store, last_ms, partitions)


def _copies(table: Table, rows: str, begin_ms: int, end_ms: int, first_ms: int) -> str:
    """Return the query of some rows at each tick of a range, its end excluded, with the columns of the table."""
    columns = []
    for column in table.columns:
        name = column.name
        changed = _CHANGING.get(name, f'd."{name}"').format(first_ms=first_ms)
        if name == "tick_ms":
            changed = "s.value"
        elif name == "date":
            changed = "CAST(to_timestamp_millis(s.value) AS DATE)"
        columns.append(f'{changed} AS "{name}"')
    ticks = f"generate_series({begin_ms}, {end_ms - 1}, {TICK_MS})"
    return f"SELECT {', '.join(columns)} FROM {rows} d CROSS JOIN {ticks} s"


def _leader(number: int) -> int:
    return BROKERS[number % len(BROKERS)]


def _statuses() -> list[Any]:
    parts = [partition(n) for n in range(_PARTITIONS_OF_A_LEADER)]
    return [status(broker, role, 60, 40, *parts) for broker in BROKERS for role in Role]


def _replica(number: int) -> Mapping[str, Any]:
    leader = _leader(number)
    adding = BROKERS[(number + 3) % len(BROKERS)]
    replicas = [adding, leader, BROKERS[(number + 1) % len(BROKERS)]]
    return new_replica(
        number, adding_replica=adding, leader=leader, replicas=replicas, removing=[leader], eta_s=600.0 + number
    )
