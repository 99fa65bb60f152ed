"""Write rates of a cluster's partitions by hour, from ``gold/partition_load``, without Spark."""

from __future__ import annotations

import numpy as np

from planning.balance.observation.loads import WriteHistory, no_history
from schemas.config import Settings
from schemas.keys import TopicPartition
from schemas.tables import PARTITION_LOAD
from streaming.delta.query import sql_text
from streaming.delta.query_table import query, query_columns
from streaming.tables.partition_load import HOUR_MS, LEAST_OBSERVED_RATIO


def read_load_history(settings: Settings, now_ms: int) -> WriteHistory:
    """Return the hourly means of the write rates over the last complete hours of ``balance.history``.

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
            data.mean_write_bytes_per_s AS rate
        FROM data JOIN (
            SELECT topic, "partition", row_number() OVER (ORDER BY topic, "partition") - 1 AS number FROM ({named})
        ) AS named ON data.topic = named.topic AND data."partition" = named."partition"
        WHERE {own}""",
    )
    if rows is None:
        return no_history(wanted, f"{PARTITION_LOAD.path} was removed while it was read")
    rates = np.full((wanted, len(names)), np.nan)
    rates[rows["hour"], rows["number"]] = rows["rate"]
    hours = np.flatnonzero(np.isfinite(rates).any(axis=1))
    return WriteHistory(
        wanted,
        [TopicPartition(row["topic"], row["partition"]) for row in names],
        tuple(since_ms + int(hour) * HOUR_MS for hour in hours),
        rates[hours],
    )
