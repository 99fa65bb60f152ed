"""One broker and role over a range of ticks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from headroom.dashboard.data.open_tables import OpenTables
from headroom.dashboard.data.timeline import TickRange, range_records
from headroom.schemas.keys import BrokerRole
from headroom.schemas.records import record
from headroom.schemas.tables import THROTTLE_HEADROOM


@dataclass(frozen=True)
class ThrottlePoint:
    """A throttle over one or more ticks that follow each other, each value the worst of them.

    Attributes:
        tick_ms: the first of the ticks, epoch milliseconds.
        ticks: number of the ticks.
        throttle_bytes_per_s: the lowest throttle in force; None if there was none, or unknown.
        in_sync_bytes_per_s: greatest traffic of in-sync followers; None if unknown.
        required_bytes_per_s: greatest traffic of all followers; None if unknown.
        quota_bytes_per_s: greatest measured traffic; None if unknown.
        verdict: verdict of the last tick.
        remaining_bytes: bytes left to copy at the last tick; None if unknown.
    """

    tick_ms: int
    ticks: int
    throttle_bytes_per_s: float | None
    in_sync_bytes_per_s: float | None
    required_bytes_per_s: float | None
    quota_bytes_per_s: float | None
    verdict: str
    remaining_bytes: int | None


_SQL = """SELECT min(tick_ms) AS tick_ms, count(*) AS ticks, min(throttle_bytes_per_s) AS throttle_bytes_per_s,
        max(in_sync_bytes_per_s) AS in_sync_bytes_per_s, max(required_bytes_per_s) AS required_bytes_per_s,
        max(quota_bytes_per_s) AS quota_bytes_per_s, last_value(verdict ORDER BY tick_ms) AS verdict,
        last_value(remaining_bytes ORDER BY tick_ms) AS remaining_bytes
    FROM data WHERE {condition} AND broker = {broker} AND role = '{role}'
    GROUP BY tick_ms - tick_ms % {step_ms}"""


def throttle_history(
    tables: OpenTables, ticks: TickRange, broker_role: BrokerRole, step_ms: int | None = None
) -> list[ThrottlePoint]:
    """Return the throttle of a broker and role over a range, in at most ``MOST_POINTS`` points or one more.

    Args:
        tables: tables of the store.
        ticks: the range.
        broker_role: the broker and role.
        step_ms: time that one point covers, milliseconds; None: that of the range.

    Raises:
        HeadroomError: the table cannot be read, or a row of it cannot be used.
    """
    sql = _SQL.format(
        condition=ticks.condition,
        broker=broker_role.broker,
        role=broker_role.role.value,
        step_ms=step_ms or ticks.step_ms,
    )
    points = range_records(tables, ticks, THROTTLE_HEADROOM, sql, partial(record, ThrottlePoint))
    return sorted(points, key=lambda point: point.tick_ms)
