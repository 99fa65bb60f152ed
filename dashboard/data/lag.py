"""Replication lag between brokers at one tick, from the gauges of all fetching followers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from headroom.dashboard.data.moment import in_range
from headroom.dashboard.data.open_tables import OpenTables
from headroom.schemas.records import record
from headroom.schemas.tables import FETCHER_LAG


@dataclass(frozen=True)
class PairLag:
    """What one broker fetches from another at a tick.

    Attributes:
        broker: broker of the followers.
        source_broker: broker that they fetch from.
        replicas: number of the followers.
        behind: number of those that lag.
        unknown: number of those whose gauge was -1.
        lag_offsets: sum of the known lags.
        greatest_lag_offsets: greatest of the known lags; None if none is known.
    """

    broker: int
    source_broker: int
    replicas: int
    behind: int
    unknown: int
    lag_offsets: int
    greatest_lag_offsets: int | None


# A message that was delivered twice has its rows twice.
_SQL = """SELECT broker, source_broker, count(*) AS replicas,
        sum(CASE WHEN lag_offsets > 0 THEN 1 ELSE 0 END) AS behind,
        sum(CASE WHEN lag_offsets IS NULL THEN 1 ELSE 0 END) AS unknown,
        coalesce(sum(lag_offsets), 0) AS lag_offsets, max(lag_offsets) AS greatest_lag_offsets
    FROM (SELECT DISTINCT broker, source_broker, topic, partition, lag_offsets FROM data WHERE {condition})
    GROUP BY broker, source_broker ORDER BY broker, source_broker"""


def pair_lags(tables: OpenTables, cluster: str, tick_ms: int) -> list[PairLag]:
    """Return the lag of each pair of brokers at a tick, by broker.

    Raises:
        HeadroomError: the table cannot be read, or a row of it cannot be used.
    """
    sql = _SQL.format(condition=in_range(cluster, tick_ms, tick_ms))
    return tables.records(FETCHER_LAG, sql, partial(record, PairLag))
