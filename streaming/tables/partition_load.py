"""Write rates of a cluster's busy hour, from ``gold/partition_load``, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headroom.schemas.config import Settings
from headroom.schemas.keys import TopicPartition
from headroom.schemas.tables import PARTITION_LOAD
from headroom.schemas.text.amounts import moment_text
from headroom.streaming.delta.query import sql_text
from headroom.streaming.delta.query_table import query

HOUR_MS = 3_600_000
# An hour of which less was seen may have been busier than its mean.
LEAST_OBSERVED_RATIO = 0.5


@dataclass(frozen=True)
class BusyHourRates:
    """Write rates of the busy hour of a cluster's partitions, or why there are none.

    Attributes:
        write_bytes_per_s: percentile of each partition's hourly means, bytes per second. A partition without an hour of
            which at least half was seen is missing.
        percentile: the percentile.
        from_ms: start of the earliest hour that they rest on, epoch milliseconds; None if there are no rates.
        until_ms: end of the latest hour that they rest on, epoch milliseconds; None if there are no rates.
        hours: number of hours that they rest on; a single partition may have fewer.
        missing: why there are no rates; None if there are.
    """

    percentile: float
    write_bytes_per_s: Mapping[TopicPartition, float] = field(default_factory=dict)
    from_ms: int | None = None
    until_ms: int | None = None
    hours: int = 0
    missing: str | None = None

    def __str__(self) -> str:
        """Return what the rates are and which time they rest on, or why there are none."""
        if self.from_ms is None or self.until_ms is None:
            return self.missing or "no rates"
        span = f"{moment_text(self.from_ms)} to {moment_text(self.until_ms)}"
        return f"percentile {self.percentile:g} of the hourly means from {span} ({self.hours} hours seen)"


def read_busy_hour(settings: Settings, now_ms: int) -> BusyHourRates:
    """Return the write rates of the busy hour of the settings' cluster.

    They are the ``reassign.rate_percentile`` of ``mean_write_bytes_per_s`` over the last ``reassign.rate_hours``
    complete hours, by nearest rank, so each is the mean of a real hour. The hourly means count, and not the peaks,
    because a copy that falls behind in a burst catches up in the rest of the hour.

    Args:
        settings: settings with the cluster and the store.
        now_ms: time now, epoch milliseconds.

    Raises:
        HeadroomError: the table exists but cannot be read.
    """
    percentile = settings.reassign.rate_percentile
    until_ms = now_ms // HOUR_MS * HOUR_MS
    since_ms = until_ms - settings.reassign.rate_hours * HOUR_MS
    own_hours = f"""cluster = {sql_text(settings.cluster.name)} AND hour_ms < {until_ms}"""
    rows = query(settings.store.path, PARTITION_LOAD.path, _rates_sql(own_hours, since_ms, percentile))
    if rows is None:
        missing = f"{PARTITION_LOAD.path} does not exist yet; `headroom watch` writes it every hour"
        return BusyHourRates(percentile, missing=missing)
    if not rows:
        return BusyHourRates(percentile, missing=_why_none(settings, own_hours))
    return BusyHourRates(
        percentile,
        {TopicPartition(row["topic"], row["partition"]): row["write_bytes_per_s"] for row in rows},
        min(row["first_ms"] for row in rows),
        max(row["last_ms"] for row in rows) + HOUR_MS,
        max(row["hours"] for row in rows),
    )


def _rates_sql(own_hours: str, since_ms: int, percentile: float) -> str:
    """Return the query of one row per partition: its rate, its hours, and the first and the last of them."""
    # Of 24 hours and 95 % the 23rd in ascending order: ceil(22.8).
    rank = f"greatest(1, CAST(ceil(count(*) * {float(percentile)!r} / 100.0) AS BIGINT))"
    return f"""SELECT topic, "partition",
            array_sort(array_agg(mean_write_bytes_per_s))[{rank}] AS write_bytes_per_s,
            count(*) AS hours, min(hour_ms) AS first_ms, max(hour_ms) AS last_ms
        FROM data
        WHERE {own_hours} AND hour_ms >= {since_ms}
            AND observed_ratio >= {LEAST_OBSERVED_RATIO} AND mean_write_bytes_per_s IS NOT NULL
        GROUP BY topic, "partition" """


def _why_none(settings: Settings, own_hours: str) -> str:
    """Return why the table has no hour of the cluster to use."""
    newest = f"SELECT max(hour_ms) AS last_ms FROM data WHERE {own_hours}"
    rows = query(settings.store.path, PARTITION_LOAD.path, newest)
    last_ms = rows[0]["last_ms"] if rows else None
    if last_ms is None:
        return f"{PARTITION_LOAD.path} has no complete hour of cluster {settings.cluster.name}"
    return (
        f"{PARTITION_LOAD.path} has no hour of cluster {settings.cluster.name} in the last "
        f"{settings.reassign.rate_hours} hours of which at least half was seen; its last hour began "
        f"{moment_text(last_ms)}"
    )
