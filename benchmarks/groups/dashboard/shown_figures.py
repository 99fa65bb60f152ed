"""Figures of the API beside the same figures of the tables, read by a query of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from deltalake import DeltaTable, QueryBuilder

from headroom.dashboard.address import View
from headroom.schemas.tables import (
    ACTION_JOURNAL,
    ALERT_DELIVERIES,
    ALERT_EVENTS,
    LEADER_IMBALANCE,
    MIGRATION_PROGRESS,
    REASSIGNMENT_PROGRESS,
    REPLICATION_LAG,
    THROTTLE_HEADROOM,
    Table,
)

# Returns the answer to a request of the API, by its path.
Get = Callable[[str], bytes]
_MOST_ROWS = 5000
_OF_TICK = "SELECT * FROM data WHERE tick_ms = {tick_ms}"
_OF_PARTITION = "SELECT *, topic || '-' || \"partition\" AS name FROM data WHERE tick_ms = {tick_ms}"


class Compared(NamedTuple):
    """A table of a view, and where its figures are from.

    Attributes:
        view: the view.
        table: its table in the API.
        source: table of the store.
        sql: query over it as ``data``, with ``{tick_ms}``, whose columns have the names of the API.
        keys: columns that name a row.
        columns: columns that are compared.
        is_part: whether the API has rows of other tables too.
    """

    view: View
    table: str
    source: Table
    sql: str
    keys: Sequence[str]
    columns: Sequence[str]
    is_part: bool = False


_MOVES = Compared(
    View.MOVES,
    "replicas",
    REASSIGNMENT_PROGRESS,
    _OF_PARTITION,
    ("name",),
    ("remaining_bytes", "lag_offsets", "catch_up_bytes_per_s", "write_bytes_per_s", "eta_s", "leader"),
)
_THROTTLES = Compared(
    View.THROTTLES,
    "throttles",
    THROTTLE_HEADROOM,
    "SELECT *, 'broker ' || broker || CASE role WHEN 'leader' THEN ' as leader' ELSE ' as destination' END AS subject "
    "FROM data WHERE tick_ms = {tick_ms}",
    ("subject",),
    ("throttle_bytes_per_s", "in_sync_bytes_per_s", "required_bytes_per_s", "headroom_bytes_per_s", "eta_s"),
)
# Those of a store with a day of a large move.
OF_MOVE = (_MOVES, _THROTTLES)
OF_ALL_VIEWS = (
    *OF_MOVE,
    Compared(
        View.LEADERS,
        "leaders",
        LEADER_IMBALANCE,
        _OF_TICK,
        ("broker",),
        (
            "preferred_partitions",
            "non_preferred_partitions",
            "electable_now",
            "leader_partitions",
            "imbalance_ratio",
            "write_bytes_per_s",
        ),
    ),
    Compared(
        View.LAG,
        "lag",
        REPLICATION_LAG,
        "SELECT broker, source_broker, replicas, behind, unknown, missing, greatest_lag_offsets, "
        "CASE WHEN greatest_lag_offsets IS NOT NULL THEN lag_offsets END AS lag_offsets "
        "FROM data WHERE tick_ms = {tick_ms}",
        ("broker", "source_broker"),
        ("replicas", "behind", "unknown", "missing", "greatest_lag_offsets", "lag_offsets"),
    ),
    Compared(
        View.MIGRATION,
        "migration",
        MIGRATION_PROGRESS,
        _OF_PARTITION,
        ("name",),
        ("verdict", "status", "end_offset", "left_offsets", "lost_offsets", "at_risk_offsets", "migration"),
    ),
    Compared(
        View.ALERTS,
        "ended",
        ALERT_EVENTS,
        "SELECT * FROM data WHERE state = 'resolved' AND tick_ms <= {tick_ms}",
        ("subject",),
        ("tick_ms", "severity", "kind", "summary"),
    ),
    Compared(
        View.ALERTS,
        "deliveries",
        ALERT_DELIVERIES,
        "SELECT * FROM data WHERE delivery_ms <= {tick_ms}",
        ("alert_id", "attempt"),
        ("delivery_ms", "receiver", "state", "answer"),
    ),
    Compared(
        View.TIMELINE,
        "progress",
        REASSIGNMENT_PROGRESS,
        "SELECT tick_ms, count(*) AS replicas, count(CASE WHEN in_sync THEN 1 END) AS in_sync, "
        "count(CASE WHEN state = 'never' THEN 1 END) AS never, "
        "CASE WHEN count(CASE WHEN in_sync THEN 0 ELSE remaining_bytes END) = count(*) "
        "THEN sum(CASE WHEN in_sync THEN 0 ELSE remaining_bytes END) END AS remaining_bytes "
        "FROM data WHERE tick_ms BETWEEN {tick_ms} - 3600000 AND {tick_ms} GROUP BY tick_ms",
        ("tick_ms",),
        ("replicas", "in_sync", "never", "remaining_bytes"),
    ),
    Compared(
        View.RUNS,
        "runs",
        ACTION_JOURNAL,
        "SELECT run_id, min(at_ms) AS began_ms, max(at_ms) AS last_ms, count(*) AS steps, "
        "count(CASE WHEN state = 'failed' THEN 1 END) AS failed FROM data WHERE at_ms <= {tick_ms} GROUP BY run_id",
        ("run_id",),
        ("began_ms", "last_ms", "steps", "failed"),
    ),
    *(
        Compared(
            View.HEALTH,
            "tables",
            source,
            f"SELECT '{source.path}' AS \"table\", max(tick_ms) AS tick_ms FROM data WHERE tick_ms <= {{tick_ms}}",
            ("table",),
            ("tick_ms",),
            is_part=True,
        )
        for source in (THROTTLE_HEADROOM, REASSIGNMENT_PROGRESS, LEADER_IMBALANCE, REPLICATION_LAG)
    ),
)


def wrong_figures(store: Path, get: Get, compared: Compared, tick_ms: int) -> int:
    """Return how many columns of a table differ in any row at a tick; all of them if a row is missing or too many.

    Args:
        store: folder of the store.
        get: returns answers of a page that shows the store.
        compared: what is compared.
        tick_ms: the tick, epoch milliseconds.
    """
    answer = json.loads(get(f"/api/v1/{compared.view.value}?at={tick_ms}&rows={_MOST_ROWS}"))
    builder = QueryBuilder().register("data", DeltaTable(str(store / compared.source.path)))
    rows = list(builder.execute(compared.sql.format(tick_ms=tick_ms)).read_all().to_struct_array().to_pylist())
    stored = _by_key(rows, compared)
    shown = _by_key(answer[compared.table]["rows"], compared)
    if compared.is_part:
        shown = {key: row for key, row in shown.items() if key in stored}
    if not stored or shown.keys() != stored.keys():
        return len(compared.columns)
    return sum(any(shown[key][column] != row[column] for key, row in stored.items()) for column in compared.columns)


def _by_key(rows: Sequence[Mapping[str, Any]], compared: Compared) -> dict[tuple[Any, ...], Mapping[str, Any]]:
    return {tuple(row[key] for key in compared.keys): row for row in rows}
