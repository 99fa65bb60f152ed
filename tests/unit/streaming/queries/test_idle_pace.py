"""IdlePace: how long a query is held back between two batches."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from headroom.streaming.queries import idle_pace
from headroom.streaming.queries.batch_gate import BatchGate
from headroom.streaming.queries.idle_pace import IdlePace, NoActivity

LONG_S, SHORT_S = 60.0, 0.05
END_OFFSET, MOST_RECORDS = 100, 50


class Ticks(NoActivity):
    """An alert partition whose state is set, and changes after some looks."""

    def __init__(self, quiet: bool, waiting: int | None, after_looks: Callable[[Ticks], None] | None = None) -> None:
        self.quiet = quiet
        self.waiting = waiting
        self._after_looks = after_looks
        self.looks = 0

    def is_quiet(self) -> bool:
        self.looks += 1
        if self._after_looks is not None and self.looks == 3:
            self._after_looks(self)
        return self.quiet

    def records_from(self, offset: int) -> int | None:
        assert offset == END_OFFSET
        return self.waiting


def held_s(ticks: NoActivity, idle_s: float, gate: BatchGate | None = None) -> float:
    """Seconds for which a query was held whose last batch has just begun."""
    began_s = time.monotonic()
    IdlePace(ticks, idle_s).hold(began_s, END_OFFSET, MOST_RECORDS, gate or BatchGate())
    return time.monotonic() - began_s


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_pace, "_LOOK_S", 0.001)


def test_while_nothing_moves_the_next_batch_begins_after_the_idle_time() -> None:
    assert held_s(Ticks(quiet=True, waiting=0), SHORT_S) >= SHORT_S


@pytest.mark.parametrize(
    "ticks",
    [Ticks(quiet=False, waiting=0), Ticks(quiet=True, waiting=None), Ticks(True, MOST_RECORDS), NoActivity()],
    ids=["a move", "unknown", "a full batch", "no activity known"],
)
def test_it_begins_at_once_if_something_moves_or_may_move_or_a_backlog_waits(ticks: NoActivity) -> None:
    assert held_s(ticks, LONG_S) < LONG_S / 2


def test_a_move_that_begins_meanwhile_ends_the_wait() -> None:
    def move(ticks: Ticks) -> None:
        ticks.quiet = False

    ticks = Ticks(quiet=True, waiting=0, after_looks=move)
    assert held_s(ticks, LONG_S) < LONG_S / 2
    assert ticks.looks == 3


def test_a_stop_ends_the_wait() -> None:
    gate = BatchGate()
    gate.close()
    assert held_s(Ticks(quiet=True, waiting=0), LONG_S, gate) < LONG_S / 2


def test_the_time_of_the_batch_itself_counts() -> None:
    ticks = Ticks(quiet=True, waiting=0)
    IdlePace(ticks, LONG_S).hold(time.monotonic() - LONG_S, END_OFFSET, MOST_RECORDS, BatchGate())
    assert ticks.looks == 0
