"""The ticks that a running watch has just written, as a condition for queries of the gold tables."""

from __future__ import annotations

from schemas.config import Settings
from streaming.delta.query import sql_text
from streaming.delta.tick_table import day_of

# Gold tables follow the ticks within seconds, or within the idle interval while nothing moves. So an older tick means
# that no watch is running.
_FRESH_MS, _FRESH_INTERVALS = 60_000, 3


def is_recent(settings: Settings, at_ms: int) -> str:
    """Return the SQL condition of the ticks of the settings' cluster that a running watch has just written.

    Args:
        settings: settings of the cluster.
        at_ms: current time, epoch milliseconds.
    """
    fresh_ms = max(_FRESH_MS, round(_FRESH_INTERVALS * settings.spark.gold_idle_s() * 1000))
    since_ms = at_ms - fresh_ms
    cluster = sql_text(settings.cluster.name)
    # Clocks may differ, so a tick may also be a little ahead.
    until_ms = at_ms + _FRESH_MS
    return (
        f"date >= DATE '{day_of(since_ms)}' AND \"cluster\" = {cluster} AND tick_ms BETWEEN {since_ms} AND {until_ms}"
    )
