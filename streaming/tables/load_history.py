"""Rates of a cluster's partitions by hour, from ``gold/partition_load``, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headroom.planning.balance.observation.loads import LoadHistory, no_history
from headroom.schemas.config import Settings
from headroom.schemas.keys import TopicPartition
from headroom.schemas.tables import PARTITION_LOAD
from headroom.streaming.delta.query import sql_text
from headroom.streaming.delta.query_table import query, query_columns
from headroom.streaming.tables.partition_load import HOUR_MS, LEAST_OBSERVED_RATIO

_RATES = ("mean_write_bytes_per_s", "mean_read_bytes_per_s", "mean_requests_per_s")


def read_load_history(settings: Settings, now_ms: int) -> LoadHistory:
    """Return the hourly means of writes, reads and requests over the last complete hours of ``balance.history``.

    Hours of a partition of which less than half was seen are left out.

    Args:
        settings: settings with the cluster and the store.
        now_ms: time now, epoch milliseconds.

    Raises:
        HeadroomError: the table exists but cannot be read.
    """
    wanted = max(1, round(settings.balance.history * 1000 / HOUR_MS))
    until_ms = now_ms // HOUR_MS * HOUR_MS
    since_ms = until_ms - wanted * HOUR_MS
    own = f"""cluster = {sql_text(settings.cluster.name)} AND hour_ms >= {since_ms} AND hour_ms < {until_ms}
        AND observed_ratio >= {LEAST_OBSERVED_RATIO} AND mean_write_bytes_per_s IS NOT NULL"""
    named = f'SELECT DISTINCT topic, "partition" FROM data WHERE {own}'
    names = query(settings.store.path, PARTITION_LOAD.path, f'{named} ORDER BY topic, "partition"')
    if names is None:
        missing = f"{PARTITION_LOAD.path} does not exist yet; `headroom watch` writes it every hour"
        return no_history(wanted, missing)
    if not names:
        missing = f"{PARTITION_LOAD.path} has no hour of cluster {settings.cluster.name} in the last {wanted} hours"
        return no_history(wanted, missing)
    # Numbers instead of names: millions of rows as Python texts would take longer than everything else.
    rows = query_columns(
        settings.store.path,
        PARTITION_LOAD.path,
        f"""SELECT CAST(named.number AS BIGINT) AS number,
            CAST((data.hour_ms - {since_ms}) / {HOUR_MS} AS BIGINT) AS hour,
            {", ".join(f"CAST(coalesce({name}, 'NaN') AS DOUBLE) AS {name}" for name in _RATES)}
        FROM data JOIN (
            SELECT topic, "partition", row_number() OVER (ORDER BY topic, "partition") - 1 AS number FROM ({named})
        ) AS named ON data.topic = named.topic AND data."partition" = named."partition"
        WHERE {own}""",
    )
    if rows is None:
        return no_history(wanted, f"{PARTITION_LOAD.path} was removed while it was read")
    write, read, requests = (_by_hour(rows, name, (wanted, len(names))) for name in _RATES)
    hours = np.flatnonzero(np.isfinite(write).any(axis=1))
    return LoadHistory(
        wanted,
        [TopicPartition(row["topic"], row["partition"]) for row in names],
        tuple(since_ms + int(hour) * HOUR_MS for hour in hours),
        write[hours],
        read_bytes_per_s=read[hours],
        requests_per_s=requests[hours],
    )


def _by_hour(rows: Mapping[str, NDArray[Any]], name: str, shape: tuple[int, int]) -> NDArray[Any]:
    rates = np.full(shape, np.nan)
    rates[rows["hour"], rows["number"]] = rows[name]
    return rates
