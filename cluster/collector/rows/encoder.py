"""Encodes tick messages: many rows per message, no message larger than a broker's default limit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, Protocol

from headroom.cluster.collector.rows.columns import Columns
from headroom.schemas.tick_messages import ALERT_KINDS, COLUMNAR, COUNTED_KINDS, VERSION

# Rows per message: enough to make the envelope cheap, few enough to spread messages over partitions and tasks.
MAX_ROWS = 500
MAX_COLUMNAR_ROWS = 2000
# Below the default max.message.bytes of a topic (1,048,588).
MAX_BYTES = 800_000
# Most of a message that is filled: its rows may be longer than those before.
_FILLED_RATIO = 0.9
# A column with values in at most this share of the rows is one of few values.
_RARE_RATIO = 0.25
# The messages of the alert partition go first, so that the verdict waits for nothing else.
KIND_ORDER = (
    *("brokers", "moves", "migrations", "leaders", "topic_throttles", "meters", "lags", "logs"),
    *("broker_performance", "log_dirs", "replica_sizes", "migration_syncs"),
)
Rows = Sequence[dict[str, Any]]


class RowsByKind(Protocol):
    """The rows of a tick: a dict, or an object that creates the rows of a kind on demand."""

    def get(self, kind: str, default: Rows, /) -> Rows:
        """Return the rows of a kind, or the default if there are none."""
        ...


@dataclass(frozen=True)
class Message:
    """One message; ``key`` is its envelope and ``value`` the whole message, both JSON in UTF-8."""

    kind: str
    key: bytes
    value: bytes

    @property
    def for_alerts(self) -> bool:
        """Whether the message belongs to the alert partition."""
        return self.kind in ALERT_KINDS

    @property
    def is_counted(self) -> bool:
        """Whether it counts in ``lane_messages`` of the tick's end."""
        return self.kind in COUNTED_KINDS


def encode_rows(cluster: str, tick_ms: int, rows: RowsByKind) -> list[Message]:
    """Return the messages of a tick without its end, in sending order; ``seq`` starts at 0.

    There is always a message of kind brokers, even without rows.
    """
    messages: list[Message] = []
    for kind in KIND_ORDER:
        for count, text in _bodies(kind, rows.get(kind, ())):
            head = _envelope(cluster, tick_ms, kind, len(messages), count)
            messages.append(Message(kind, head.encode(), f"{head[:-1]},{text}}}".encode()))
    return messages


def encode_end(cluster: str, tick_ms: int, seq: int, end: dict[str, Any]) -> Message:
    """Return the ``tick_end`` message with the content of ``end``."""
    head = _envelope(cluster, tick_ms, "tick_end", seq, None)
    return Message("tick_end", head.encode(), f"{head[:-1]},{_json(end)[1:]}".encode())


def _envelope(cluster: str, tick_ms: int, kind: str, seq: int, row_count: int | None) -> str:
    head = {"version": VERSION, "cluster": cluster, "tick_ms": tick_ms, "kind": kind, "seq": seq}
    return _json(head if row_count is None else head | {"row_count": row_count})


def _bodies(kind: str, rows: Rows) -> Iterator[tuple[int, str]]:
    """Yield the number of rows and their JSON text for each message of a kind."""
    encode_body, max_rows = (_columns, MAX_COLUMNAR_ROWS) if kind in COLUMNAR else (_rows, MAX_ROWS)
    if kind in COLUMNAR and len(rows) > max_rows:
        rows = _rare_values_first(_as_columns(rows))
    if not rows and kind == "brokers":
        yield 0, encode_body(rows)
    start, count = 0, max_rows
    while start < len(rows):
        part = rows[start : start + count]
        text = encode_body(part)
        # As many rows as fit, if the next ones are about as long. To cut what is too long costs its encoding again.
        count = max(1, min(max_rows, int(_FILLED_RATIO * MAX_BYTES * len(part) / len(text))))
        if len(text) <= MAX_BYTES or len(part) == 1:
            yield len(part), text
            start += len(part)


def _rows(rows: Rows) -> str:
    return f'"rows":{_json(rows)}'


def _columns(rows: Rows) -> str:
    columns = _as_columns(rows).columns
    present = {name: column for name, column in columns.items() if column.count(None) < len(column)}
    return f'"columns":{_json(present)}'


def _as_columns(rows: Rows) -> Columns:
    return rows if isinstance(rows, Columns) else Columns({name: [row[name] for row in rows] for name in rows[0]})


def _rare_values_first(rows: Columns) -> Columns:
    """Return the rows with those first that have a value in a column of few values.

    Then few messages have these columns, because a message omits a column without values. The others are smaller, and
    a reader of such a column needs to parse only the few.
    """
    most = len(rows) * _RARE_RATIO
    rare = [column for column in rows.columns.values() if 0 < len(rows) - column.count(None) <= most]
    if not rare:
        return rows
    has_value = [values.count(None) < len(values) for values in zip(*rare, strict=True)]
    has_none = [not has for has in has_value]
    return Columns({name: [*compress(c, has_value), *compress(c, has_none)] for name, c in rows.columns.items()})


def _json(value: Any) -> str:
    # ASCII only, so that the length in characters is the length in bytes; NaN would be no JSON.
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
