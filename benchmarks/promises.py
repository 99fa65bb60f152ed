"""Recorded moves: what a promise was made from and when the move was really done, to compare models without brokers."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.results import CHECKOUT
from cli.tables import query
from schemas.tables import REASSIGNMENT_PROGRESS, THROTTLE_HEADROOM

FOLDER = CHECKOUT / "build" / "finish"
# As long as a quota remembers, and some more.
_BEFORE_MS = 16_000
_PROGRESS = "tick_ms, topic, partition, adding_replica, leader, remaining_bytes, write_bytes_per_s, in_sync"
_GOLD_S, _POLL_S = 60.0, 0.5


@dataclass(frozen=True)
class Recorded:
    """One move as it went.

    Attributes:
        name: of its case.
        busy: processes that kept a core busy beside it.
        load_average: of the machine over the last minute, when the move was done.
        throttle_bytes_per_s: the rate that was applied.
        tick_ms: the tick that the recommendation was made from, epoch milliseconds.
        applied_ms: when the rate was set on all brokers.
        ended_ms: when the move was done.
        promised: ``finish_s`` and whatever else the recommendation says of the end.
        headroom: rows of ``gold/throttle_headroom`` from before that tick to the end.
        progress: rows of ``gold/reassignment_progress`` of the same time.
    """

    name: str
    busy: int
    load_average: float
    throttle_bytes_per_s: float
    tick_ms: int
    applied_ms: int
    ended_ms: int
    promised: Mapping[str, float | None]
    headroom: Sequence[Mapping[str, Any]]
    progress: Sequence[Mapping[str, Any]]

    @property
    def real_s(self) -> float:
        """Return seconds from the rate in force to the end of the move."""
        return (self.ended_ms - self.applied_ms) / 1000


def write(move: Recorded, folder: Path = FOLDER) -> Path:
    """Return the file that a move was written to."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{move.applied_ms}.json.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump(asdict(move), file, default=str)
    return path


def read(folder: Path = FOLDER) -> Iterator[Recorded]:
    """Return the recorded moves in the order in which they were made."""
    for path in sorted(folder.glob("*.json.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            yield Recorded(**json.load(file))


def gold_rows(store: str, topic: str, from_ms: int, to_ms: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of throttle headroom and of reassignment progress of a move, once the last tick is there.

    Args:
        store: ``store.path``.
        topic: the topic that moves.
        from_ms: tick that the recommendation was made from, epoch milliseconds.
        to_ms: when the move was done.
    """
    give_up = time.monotonic() + _GOLD_S
    between = f"tick_ms BETWEEN {from_ms - _BEFORE_MS} AND {to_ms}"
    while time.monotonic() < give_up and not query(
        store, THROTTLE_HEADROOM.path, f"SELECT tick_ms FROM data WHERE tick_ms >= {to_ms} LIMIT 1"
    ):
        time.sleep(_POLL_S)
    headroom = query(store, THROTTLE_HEADROOM.path, f"SELECT * FROM data WHERE {between} ORDER BY tick_ms")
    progress = query(
        store, REASSIGNMENT_PROGRESS.path, f"SELECT {_PROGRESS} FROM data WHERE {between} AND topic = '{topic}'"
    )
    return headroom or [], progress or []
