"""Recorded moves: what a promise was made from and when the move was really done, to compare models without brokers.

``python -m benchmarks.promises [FOLDER]`` prints for every recorded move what is promised by the code as it is now.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from alerts.sides import SideState, side_state
from benchmarks.results import PARTS
from cli.output import print_table
from cli.tables import query
from planning.duration import APPLY_S, Earlier, Finish, finish
from planning.quota import WINDOW_S
from schemas.tables import REASSIGNMENT_PROGRESS, THROTTLE_HEADROOM

# As long as a quota remembers, and some more.
_BEFORE_MS = 16_000
_PROGRESS = "tick_ms, topic, partition, adding_replica, leader, remaining_bytes, write_bytes_per_s, in_sync"
_GOLD_S, _POLL_S = 60.0, 0.5
_Row = Mapping[str, Any]


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
    headroom: Sequence[_Row]
    progress: Sequence[_Row]

    @property
    def real_s(self) -> float:
        """Return seconds from the rate in force to the end of the move."""
        return (self.ended_ms - self.applied_ms) / 1000

    @property
    def delay_s(self) -> float:
        """Return seconds from the tick to the rate in force."""
        return (self.applied_ms - self.tick_ms) / 1000

    @cached_property
    def _ticks(self) -> dict[int, list[SideState]]:
        """Return what each tick showed of every broker and role, by its time."""
        ticks: dict[int, list[SideState]] = defaultdict(list)
        for row in self.headroom:
            # Both are named for people alone, and the file keeps them as other types.
            ticks[row["tick_ms"]].append(side_state({**row, "takeover": None, "lost": []}))
        return ticks

    def promise(self, applied_s: float = APPLY_S) -> Finish | None:
        """Return when the move is done, by what the tick of the recommendation and those before showed; None: unknown.

        Args:
            applied_s: seconds from that tick until the rate is in force.
        """
        limited = [s.demand for s in self._ticks.get(self.tick_ms, ()) if s.demand.limited_replicas]
        return finish(limited, self.throttle_bytes_per_s, self._earlier(), applied_s) if limited else None

    def _earlier(self) -> Earlier:
        before = sorted((tick_ms for tick_ms in self._ticks if tick_ms < self.tick_ms), reverse=True)
        young = sum(self.tick_ms - tick_ms <= WINDOW_S * 1000 for tick_ms in before)
        return [
            ((self.tick_ms - tick_ms) / 1000, {(s.broker, s.role): s.demand for s in self._ticks[tick_ms]})
            for tick_ms in before[: young + 1]
        ]


def write(move: Recorded, folder: Path) -> Path:
    """Return the file that a move was written to."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{move.applied_ms}.json.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump(asdict(move), file, default=str)
    return path


def read(folder: Path) -> Iterator[Recorded]:
    """Return the recorded moves in the order in which they were made."""
    for path in sorted(folder.rglob("*.json.gz"), key=lambda path: path.name):
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


def print_promises(moves: Sequence[Recorded]) -> None:
    """Print for every move what is promised for the time at which its throttle was applied, and what came."""
    header = ("move", "load", "applied after s", "printed s", "promised s", "from s", "to s", "real s", "error")
    print_table("", header, [_row(move) for move in moves])


def _row(move: Recorded) -> tuple[str, ...]:
    promise = move.promise(move.delay_s)
    known = (promise.middle_s, promise.low_s, promise.high_s) if promise else (None, None, None)
    error = move.real_s / promise.middle_s - 1 if promise and promise.middle_s else None
    amounts = (move.load_average, move.delay_s, move.promised.get("finish_s"), *known, move.real_s)
    return (
        move.name,
        *("unknown" if amount is None else f"{amount:.1f}" for amount in amounts),
        "unknown" if error is None else f"{error:+.2f}",
    )


if __name__ == "__main__":
    print_promises(list(read(Path(sys.argv[1]) if len(sys.argv) > 1 else PARTS / "finish")))
