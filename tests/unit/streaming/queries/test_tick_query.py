"""TickQuery: after which batches it is held back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import MagicMock

import pytest

from headroom.schemas.tables import THROTTLE_HEADROOM
from headroom.streaming.queries.batch_gate import BatchGate
from headroom.streaming.queries.idle_pace import IdlePace, NoActivity
from headroom.streaming.queries.tick_query import TickQuery
from headroom.streaming.queries.whole_ticks import CompleteTicks

TICK = ("c1", 1000)


class Reader:
    """Yields the ticks that a batch is said to have."""

    @contextmanager
    def read(self, batch: Any) -> Iterator[CompleteTicks]:
        yield CompleteTicks(MagicMock(), list(batch), (5, 8) if batch else (0, 0), False, {}, [])


class Query(TickQuery):
    """Writes nothing, and is settled as the test says."""

    name = "query"
    tables = (THROTTLE_HEADROOM,)
    max_offsets = 30
    settled = True

    def _write(self, complete: CompleteTicks) -> None:
        assert self.gate.batch_s is not None

    def _is_settled(self) -> bool:
        return self.settled


class Pace(IdlePace):
    """Records for what it is asked to hold a query."""

    def __init__(self, gates: list[BatchGate]) -> None:
        super().__init__(NoActivity(), 1.0)
        self.holds: list[tuple[int, int]] = []
        self._gates = gates

    def hold(self, began_s: float, end_offset: int, most_records: int, gate: BatchGate) -> None:
        # Others that wait for the batch, and a stop, need not wait for the hold.
        assert gate.batch_s is None
        assert self._gates == [gate]
        self.holds.append((end_offset, most_records))


def batches_of(query: Query, pace: Pace | None, *batches: list[tuple[str, int]]) -> None:
    query._reader = Reader()  # type: ignore[assignment]
    query._pace = pace
    run = query._with_pace(query.gate.wrap(query.write))
    for number, batch in enumerate(batches):
        run(batch, number)  # type: ignore[arg-type]


def new_query() -> Query:
    return Query(MagicMock(), MagicMock(), MagicMock(), "checkpoint", 1.0)


def test_it_is_held_after_complete_ticks_and_not_after_half_a_tick() -> None:
    query = new_query()
    pace = Pace([query.gate])
    batches_of(query, pace, [TICK], [], [TICK])
    assert pace.holds == [(8, 30), (8, 30)]
    assert query.gate.batches == 3


def test_it_is_not_held_while_more_is_to_be_expected() -> None:
    query = new_query()
    query.settled = False
    pace = Pace([query.gate])
    batches_of(query, pace, [TICK])
    assert pace.holds == []


def test_without_a_pace_each_commit_follows_the_trigger() -> None:
    query = new_query()
    batches_of(query, None, [TICK])
    assert query.gate.batches == 1


def test_a_batch_that_fails_is_not_held() -> None:
    query = new_query()
    pace = Pace([query.gate])
    query.gate.close()
    with pytest.raises(Exception, match="stopped"):
        batches_of(query, pace, [TICK])
    assert pace.holds == []
