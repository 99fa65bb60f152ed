"""Replication lag between brokers: at one tick, and over a range of time."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import partial

from headroom.dashboard.data.moment import in_range
from headroom.dashboard.data.open_tables import OpenTables
from headroom.dashboard.data.timeline import TickRange, range_records
from headroom.schemas.records import record
from headroom.schemas.tables import REASSIGNMENT_PROGRESS, REPLICATION_LAG, THROTTLE_HEADROOM

# Most points of time of a heat map.
MOST_TIMES = 60


@dataclass(frozen=True)
class PairLag:
    """What one broker fetches from another at a tick; the columns are those of ``schemas.tables.gold_lag``."""

    broker: int
    source_broker: int
    replicas: int
    behind: int
    unknown: int
    missing: int | None
    lag_offsets: int
    greatest_lag_offsets: int | None


_SQL = """SELECT broker, source_broker, max(replicas) AS replicas, max(behind) AS behind, max(unknown) AS unknown,
        max(missing) AS missing, max(lag_offsets) AS lag_offsets, max(greatest_lag_offsets) AS greatest_lag_offsets
    FROM data WHERE {condition} GROUP BY broker, source_broker ORDER BY broker, source_broker"""


def pair_lags(tables: OpenTables, cluster: str, tick_ms: int) -> list[PairLag]:
    """Return the lag of each pair of brokers at a tick, by broker.

    Raises:
        HeadroomError: the table cannot be read, or a row of it cannot be used.
    """
    sql = _SQL.format(condition=in_range(cluster, tick_ms, tick_ms))
    return tables.records(REPLICATION_LAG, sql, partial(record, PairLag))


@dataclass(frozen=True)
class FollowerLag:
    """How far a broker was behind in a part of a range of time.

    Attributes:
        broker: the broker, as follower.
        at_ms: begin of the part, epoch milliseconds.
        greatest_lag_offsets: greatest known lag to any broker, offsets; None if none was known.
        unknown: most replicas whose gauge was -1, to one broker.
        missing: most replicas without a gauge, to one broker; None if none is known to be, and of a tick it is unknown.
    """

    broker: int
    at_ms: int
    greatest_lag_offsets: int | None
    unknown: int
    missing: int | None


_HISTORY_SQL = """SELECT broker, tick_ms - (tick_ms - {first_ms}) % {step_ms} AS at_ms,
        max(greatest_lag_offsets) AS greatest_lag_offsets, max(unknown) AS unknown,
        CASE WHEN max(missing) = 0 AND bool_or(missing IS NULL) THEN NULL ELSE max(missing) END AS missing
    FROM data WHERE {condition} GROUP BY 1, 2 ORDER BY 1, 2"""


def lag_history(tables: OpenTables, ticks: TickRange) -> list[FollowerLag]:
    """Return how far each broker was behind over a range, in at most ``MOST_TIMES`` parts, by broker and time.

    Raises:
        HeadroomError: the table cannot be read, or a row of it cannot be used.
    """
    sql = _HISTORY_SQL.format(condition=ticks.condition, first_ms=ticks.first_ms, step_ms=part_ms(ticks))
    return tables.records(REPLICATION_LAG, sql, partial(record, FollowerLag))


_FROZEN_SQL = """SELECT broker, tick_ms - (tick_ms - {first_ms}) % {step_ms} AS at_ms, max(frozen) AS frozen
    FROM (SELECT adding_replica AS broker, leader, tick_ms, count(*) AS frozen FROM data
        WHERE {condition} AND frozen AND lag_gauge_offsets IS NOT NULL GROUP BY adding_replica, leader, tick_ms)
    GROUP BY 1, 2"""


def frozen_history(tables: OpenTables, ticks: TickRange) -> dict[tuple[int, int], int]:
    """Return how many gauges of new replicas were frozen while the real lag changed, at most from one broker.

    Returns:
        Their number by broker and begin of a part of the range, as of ``lag_history``; a part without one is left out.

    Raises:
        HeadroomError: the table cannot be read.
    """
    sql = _FROZEN_SQL.format(condition=ticks.condition, first_ms=ticks.first_ms, step_ms=part_ms(ticks))
    rows = range_records(tables, ticks, REASSIGNMENT_PROGRESS, sql, dict)
    return {(row["broker"], row["at_ms"]): row["frozen"] for row in rows}


# The first tick with verdicts, and each that is followed by none for too long.
_ENDS_SQL = """SELECT tick_ms, before_ms, next_ms FROM (
        SELECT tick_ms, lag(tick_ms) OVER (ORDER BY tick_ms) AS before_ms,
            lead(tick_ms) OVER (ORDER BY tick_ms) AS next_ms
        FROM (SELECT DISTINCT tick_ms FROM data WHERE {condition}))
    WHERE before_ms IS NULL OR next_ms IS NULL OR next_ms - tick_ms > {fresh_ms}"""
_TICKS_SQL = "SELECT DISTINCT tick_ms FROM data WHERE {condition}"


def parts_without_verdicts(tables: OpenTables, ticks: TickRange, fresh_ms: int) -> frozenset[int]:
    """Return the parts of a range with a tick of lag of which no verdict says whether gauges were frozen.

    Args:
        tables: tables of the store.
        ticks: the range.
        fresh_ms: age up to which a verdict counts, milliseconds.

    Returns:
        Their begins, as of ``lag_history``.

    Raises:
        HeadroomError: a table cannot be read.
    """
    condition = replace(ticks, first_ms=ticks.first_ms - fresh_ms).condition
    sql = _ENDS_SQL.format(condition=condition, fresh_ms=fresh_ms)
    ends = sorted(range_records(tables, ticks, THROTTLE_HEADROOM, sql, dict), key=lambda end: end["tick_ms"])
    ends_ms = [end["tick_ms"] for end in ends]

    def is_known(tick_ms: int) -> bool:
        number = bisect_right(ends_ms, tick_ms)
        if number == 0:
            return False
        end_ms, next_ms = ends_ms[number - 1], ends[number - 1]["next_ms"]
        # The first tick may be followed by others, the last of which comes later.
        goes_on = next_ms is not None and (next_ms - end_ms <= fresh_ms or next_ms <= tick_ms)
        return goes_on or tick_ms - end_ms <= fresh_ms

    read_ms = range_records(
        tables, ticks, REPLICATION_LAG, _TICKS_SQL.format(condition=ticks.condition), lambda row: int(row["tick_ms"])
    )
    step_ms = part_ms(ticks)
    return frozenset(ms - (ms - ticks.first_ms) % step_ms for ms in read_ms if not is_known(ms))


def part_ms(ticks: TickRange) -> int:
    """Return the length of a part of a range, milliseconds."""
    return max(1, -(-(ticks.last_ms + 1 - ticks.first_ms) // MOST_TIMES))
