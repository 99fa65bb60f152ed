"""Tick messages as bytes: many rows in one message, no message larger than a broker takes by default."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cluster.collector.rows.columns import Columns
from schemas.tick_messages import ALERT_KINDS, COLUMNAR, VERSION

# Rows in a message: enough that its envelope costs nothing, few enough that messages spread over partitions and tasks.
MAX_ROWS = 500
MAX_COLUMNAR_ROWS = 2000
MAX_BYTES = 800_000
# The alert lane goes first: the verdict waits for nothing else.
KIND_ORDER = ("brokers", "moves", "leaders", "topic_throttles", "meters", "lags", "logs")
Rows = Sequence[dict[str, Any]]


class RowsByKind(Protocol):
    """The rows of a tick: a dict, or what makes the rows of a kind when they are asked for."""

    def get(self, kind: str, default: Rows, /) -> Rows:
        """Return the rows of a kind."""
        ...


@dataclass(frozen=True)
class Message:
    """One message; ``key`` is its envelope and ``value`` all of it, both JSON in UTF-8."""

    kind: str
    key: bytes
    value: bytes

    @property
    def alert_lane(self) -> bool:
        """Whether the message belongs on the alert lane."""
        return self.kind in ALERT_KINDS


def encode_rows(cluster: str, tick_ms: int, rows: RowsByKind) -> list[Message]:
    """Return the messages of a tick without its end, in the order to send them, ``seq`` counting from 0.

    There is always one of kind brokers, with the rows that there are.
    """
    messages: list[Message] = []
    for kind in KIND_ORDER:
        for count, text in _bodies(kind, rows.get(kind, ())):
            head = _envelope(cluster, tick_ms, kind, len(messages), count)
            messages.append(Message(kind, head.encode(), f"{head[:-1]},{text}}}".encode()))
    return messages


def encode_end(cluster: str, tick_ms: int, seq: int, end: dict[str, Any]) -> Message:
    """Return the ``tick_end`` message."""
    head = _envelope(cluster, tick_ms, "tick_end", seq, None)
    return Message("tick_end", head.encode(), f"{head[:-1]},{_json(end)[1:]}".encode())


def _envelope(cluster: str, tick_ms: int, kind: str, seq: int, row_count: int | None) -> str:
    head = {"version": VERSION, "cluster": cluster, "tick_ms": tick_ms, "kind": kind, "seq": seq}
    return _json(head if row_count is None else head | {"row_count": row_count})


def _bodies(kind: str, rows: Rows) -> Iterator[tuple[int, str]]:
    """Return how many rows, and their text, for each message of a kind."""
    body, most = (_columns, MAX_COLUMNAR_ROWS) if kind in COLUMNAR else (_rows, MAX_ROWS)
    for start in range(0, len(rows), most) if rows else range(kind == "brokers"):
        yield from _fitting(rows[start : start + most], body)


def _fitting(rows: Rows, body: Callable[[Rows], str]) -> Iterator[tuple[int, str]]:
    text = body(rows)
    if len(text) <= MAX_BYTES or len(rows) == 1:
        yield len(rows), text
        return
    half = len(rows) // 2
    yield from _fitting(rows[:half], body)
    yield from _fitting(rows[half:], body)


def _rows(rows: Rows) -> str:
    return f'"rows":{_json(rows)}'


def _columns(rows: Rows) -> str:
    made = rows if isinstance(rows, Columns) else Columns({name: [row[name] for row in rows] for name in rows[0]})
    told = {name: column for name, column in made.columns.items() if column.count(None) < len(column)}
    return f'"columns":{_json(told)}'


def _json(value: Any) -> str:
    # ASCII only, so that the length in characters is the length in bytes; NaN would be no JSON.
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
