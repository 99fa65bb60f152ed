"""Slow rounds of brokers in the newest minute of ``gold/broker_load``, without Spark."""

from __future__ import annotations

from headroom.schemas.config import Settings
from headroom.schemas.tables import BROKER_LOAD
from headroom.streaming.delta.query import sql_text
from headroom.streaming.delta.query_table import query

# What is older says nothing of the disk now.
_MOST_MS = 15 * 60_000


def read_slow_rounds(settings: Settings, now_ms: int) -> dict[int, int]:
    """Return the slow rounds of the brokers of the settings' cluster; empty if they are unknown or old.

    Args:
        settings: settings with the cluster and the store.
        now_ms: time now, epoch milliseconds.

    Raises:
        HeadroomError: the table exists but cannot be read.
    """
    recent = f"cluster = {sql_text(settings.cluster.name)} AND tick_ms > {now_ms - _MOST_MS}"
    rows = query(
        settings.store.path,
        BROKER_LOAD.path,
        f"""SELECT broker, coalesce(max(slow_rounds), 0) AS rounds FROM data
            WHERE {recent} AND tick_ms = (SELECT max(tick_ms) FROM data WHERE {recent}) GROUP BY broker""",
    )
    return {row["broker"]: row["rounds"] for row in rows or ()}
