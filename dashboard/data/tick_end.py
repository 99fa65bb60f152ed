"""What the collector says of a tick at its end, which only bronze has: who did not answer, and how late it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headroom.dashboard.data.open_tables import OpenTables
from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import BRONZE_TICKS
from headroom.schemas.text import one_line
from headroom.schemas.text.json_text import parse_json
from headroom.schemas.tick_messages import ALERT_PARTITION
from headroom.streaming.delta.tick_table import day_of

# Bronze follows the ticks by up to a minute; what is older says nothing of now.
_PAST_MS = 600_000
# Clocks may differ.
AHEAD_MS = 60_000
# What an end may have is not bounded where it is read.
_LONGEST_REASON, _GREATEST = 200, 2**53
_KIND = "tick_end"
# A message itself is read once it is known where it is. Other programs may have written keys that are no text.
_KEYS_SQL = """SELECT "offset", TRY_CAST(key AS VARCHAR) AS key FROM data WHERE {condition}
        AND TRY_CAST(key AS VARCHAR) LIKE '%{kind}%' ORDER BY "offset" DESC LIMIT {most}"""
_VALUE_SQL = 'SELECT CAST(value AS VARCHAR) AS value FROM data WHERE {condition} AND "offset" = {offset} LIMIT 1'
_MOST = 1000


@dataclass(frozen=True)
class TickCollection:
    """What the collector says of a tick.

    Attributes:
        tick_ms: the tick, epoch milliseconds.
        collect_ms: time that collecting took; None if not reported, as the next ones.
        lateness_ms: delay against its schedule.
        skipped_ticks: ticks that were skipped before it.
        unanswered: reason by broker that did not answer.
        collector: host and process of the collector.
    """

    tick_ms: int
    collect_ms: int | None
    lateness_ms: int | None
    skipped_ticks: int | None
    unanswered: Mapping[int, str]
    collector: str | None


def tick_end(tables: OpenTables, cluster: str, at_ms: int, ahead_ms: int = 0) -> TickCollection | None:
    """Return the end of the newest tick in bronze of the ten minutes up to a moment; None if there is none.

    Args:
        tables: tables of the store.
        cluster: name of the cluster.
        at_ms: the moment, epoch milliseconds.
        ahead_ms: how far a tick may be ahead of it, milliseconds.

    Raises:
        HeadroomError: the table cannot be read.
    """
    first_ms, last_ms = at_ms - _PAST_MS, at_ms + ahead_ms
    condition = (
        f""""partition" = {ALERT_PARTITION} AND date BETWEEN DATE '{day_of(first_ms)}' AND DATE '{day_of(last_ms)}' """
        f"""AND "timestamp" BETWEEN to_timestamp_millis({first_ms}) AND to_timestamp_millis({last_ms + AHEAD_MS})"""
    )
    rows = tables.rows(BRONZE_TICKS, _KEYS_SQL.format(condition=condition, kind=_KIND, most=_MOST)) or []
    offsets = {_tick_of(_parse(row["key"]), cluster): row["offset"] for row in rows}
    newest_ms = max((tick_ms for tick_ms in offsets if tick_ms is not None and tick_ms <= last_ms), default=None)
    if newest_ms is None:
        return None
    message = tables.rows(BRONZE_TICKS, _VALUE_SQL.format(condition=condition, offset=offsets[newest_ms]))
    return _end_of(newest_ms, _parse(message[0]["value"] if message else None))


def _tick_of(key: Mapping[str, Any], cluster: str) -> int | None:
    """Return the tick of a key; None if it is no end of a tick of the cluster."""
    tick_ms = key.get("tick_ms")
    is_own = key.get("cluster") == cluster and key.get("kind") == _KIND
    return tick_ms if is_own and isinstance(tick_ms, int) else None


def _parse(text: str | None) -> Mapping[str, Any]:
    try:
        content = parse_json(text or "")
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _end_of(tick_ms: int, message: Mapping[str, Any]) -> TickCollection:
    try:
        started_ms, ended_ms = message.get("started_ms"), message.get("ended_ms")
        host, pid = message.get("collector_host"), message.get("collector_pid")
        return TickCollection(
            tick_ms,
            None if started_ms is None or ended_ms is None else _amount(ended_ms - started_ms),
            _number(message, "lateness_ms"),
            _number(message, "skipped_ticks"),
            {
                int(one["broker"] + 0): one_line(str(one["reason"]), _LONGEST_REASON)
                for one in message.get("unanswered") or ()
            },
            None if host is None else f"{host}, process {pid}",
        )
    except (TypeError, LookupError, AttributeError, ValueError, OverflowError):
        remedy = "No version of Headroom writes that; see the table silver/quarantine."
        raise HeadroomError(
            f"tick {tick_ms} in {BRONZE_TICKS.path}", "has an end that cannot be used", remedy
        ) from None


def _number(message: Mapping[str, Any], key: str) -> int | None:
    """Return a number of a message. Raises TypeError."""
    value = message.get(key)
    return None if value is None else _amount(value + 0)


def _amount(value: float) -> int | None:
    """Return an amount; None for one that none can be."""
    return int(value) if 0 <= value < _GREATEST else None
