"""Log flush times of a cluster's brokers by minute, from ``silver/broker_performance``, without Spark."""

from __future__ import annotations

import numpy as np

from planning.balance.slow_brokers.replay import FlushReadings, no_flush_readings
from schemas.config import Settings
from schemas.tables import BROKER_PERFORMANCE
from streaming.delta.query import sql_text
from streaming.delta.query_table import query_columns

_MINUTE_MS = 60_000


def read_flush_history(settings: Settings, now_ms: int) -> FlushReadings:
    """Return the last log flush time and bytes in of each broker and minute over the last ``balance.history``.

    Args:
        settings: settings with the cluster and the store.
        now_ms: time now, epoch milliseconds.

    Raises:
        HeadroomError: the table exists but cannot be read.
    """
    path, name = BROKER_PERFORMANCE.path, settings.cluster.name
    since_ms = now_ms - round(settings.balance.history * 1000)
    rows = query_columns(
        settings.store.path,
        path,
        f"""SELECT CAST(broker AS BIGINT) AS broker,
            CAST((tick_ms - {since_ms}) / {_MINUTE_MS} AS BIGINT) AS minute,
            log_flush_p999_ms, bytes_in_per_s
        FROM data
        WHERE cluster = {sql_text(name)} AND tick_ms >= {since_ms} AND tick_ms <= {now_ms}
            AND log_flush_p999_ms IS NOT NULL AND bytes_in_per_s IS NOT NULL
        ORDER BY tick_ms""",
    )
    if rows is None:
        return no_flush_readings(f"{path} does not exist yet; `headroom watch` writes it")
    if not len(rows["broker"]):
        return no_flush_readings(f"{path} has no log flush times of cluster {name}")
    brokers, at = np.unique(rows["broker"], return_inverse=True)
    minutes, number = np.unique(rows["minute"], return_inverse=True)
    flush_s, bytes_in = (np.full((len(minutes), len(brokers)), np.nan) for _ in range(2))
    # Of several readings in a minute the last one remains, because rows are in the order of time.
    flush_s[number, at] = rows["log_flush_p999_ms"] / 1000
    bytes_in[number, at] = rows["bytes_in_per_s"]
    return FlushReadings([int(broker) for broker in brokers], flush_s, bytes_in)
