"""Rows on their way to the gold tables: nobody waits for the disk; what it does not take is left to the gold job."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from headroom.schemas.keys import Tick
from headroom.schemas.tables import PARTITION_WRITE_RATE, THROTTLE_HEADROOM, Table
from headroom.streaming.store import tick_row_queue
from headroom.streaming.store.tick_row_queue import TickRowQueue, TickRows
from tests.support.waiting import until


class Panic(BaseException):
    """What the Delta library raises at times."""


class Disk:
    """Two tables in memory. Their disk hangs while ``works`` is not set, and fails with ``error``."""

    def __init__(self) -> None:
        self.commits: list[tuple[Table, list[Tick]]] = []
        self.works = threading.Event()
        self.works.set()
        self.error: BaseException | None = None

    def open(self) -> Mapping[Table, Any]:
        self.works.wait(10)
        if self.error is not None:
            raise self.error
        return {table: _Table(self, table) for table in (THROTTLE_HEADROOM, PARTITION_WRITE_RATE)}


class _Table:
    def __init__(self, disk: Disk, table: Table) -> None:
        self._disk, self._table = disk, table

    def append(self, rows: Mapping[Tick, Sequence[Mapping[str, Any]]]) -> None:
        self._disk.works.wait(10)
        if self._disk.error is not None:
            raise self._disk.error
        self._disk.commits.append((self._table, list(rows)))


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def queue(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> Iterator[TickRowQueue]:
    monkeypatch.setattr(tick_row_queue, "_HOLD_S", 0.3)
    made = TickRowQueue(disk.open)
    yield made
    disk.works.set()
    made.stop()


def tick(number: int) -> Tick:
    return "c1", number


def rows(number: int, urgent: bool = True, table: Table = THROTTLE_HEADROOM, count: int = 1) -> TickRows:
    return TickRows(table, tick(number), [{"broker": n} for n in range(count)], urgent)


class Moves:
    """Rows of moves of a tick, and how often what was kept for them is freed."""

    def __init__(self, number: int, error: Exception | None = None) -> None:
        self.number, self.error = number, error
        self.closed = 0

    def rows(self) -> Sequence[TickRows]:
        if self.error is not None:
            raise self.error
        return [rows(self.number, table=PARTITION_WRITE_RATE)]

    def close(self) -> None:
        self.closed += 1


def test_the_first_rows_of_a_start_and_those_of_moves_are_written_at_once(queue: TickRowQueue, disk: Disk) -> None:
    queue.put([rows(1, urgent=False)])
    until(lambda: disk.commits == [(THROTTLE_HEADROOM, [tick(1)])])
    queue.put([rows(2), rows(2, table=PARTITION_WRITE_RATE)])
    until(lambda: disk.commits[1:] == [(THROTTLE_HEADROOM, [tick(2)]), (PARTITION_WRITE_RATE, [tick(2)])])


def test_rows_of_which_nobody_waits_are_committed_together(
    queue: TickRowQueue, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So long that a pause between two puts commits none of them alone.
    monkeypatch.setattr(tick_row_queue, "_HOLD_S", 2.0)
    queue.put([rows(0)])
    until(lambda: disk.commits)
    began_s = time.monotonic()
    for number in (1, 2, 3):
        queue.put([rows(number, urgent=False)])
    until(lambda: len(disk.commits) == 2)
    assert time.monotonic() - began_s >= 2.0
    assert disk.commits[1] == (THROTTLE_HEADROOM, [tick(1), tick(2), tick(3)])
    # A move that begins takes along what waits: nothing else ends so long a wait.
    queue._hold_s = 600.0
    queue.put([rows(4, urgent=False)])
    queue.put([rows(5)])
    until(lambda: disk.commits[2:] == [(THROTTLE_HEADROOM, [tick(4), tick(5)])], lambda: disk.commits)


def test_a_stop_writes_what_waits(queue: TickRowQueue, disk: Disk) -> None:
    queue.put([rows(0)])
    until(lambda: disk.commits)
    queue.put([rows(1, urgent=False)])
    queue.stop()
    assert disk.commits[1:] == [(THROTTLE_HEADROOM, [tick(1)])]


def test_a_queue_that_never_got_rows_stops() -> None:
    TickRowQueue(dict).stop()


def test_a_disk_that_hangs_keeps_nobody_waiting_and_no_more_rows_than_there_is_room_for(
    queue: TickRowQueue, disk: Disk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tick_row_queue, "_MOST_ROWS", 25)
    disk.works.clear()
    queue.put([rows(0)])
    until(lambda: not queue._waiting)
    for number in range(1, 9):
        queue.put([rows(number, count=10)])
    disk.works.set()
    until(lambda: len(disk.commits) == 2)
    # The third to the eighth found no room; nor is the log full of them.
    assert disk.commits == [(THROTTLE_HEADROOM, [tick(0)]), (THROTTLE_HEADROOM, [tick(1), tick(2)])]
    assert [r.message for r in caplog.records] == [
        "rows of gold tables are left to the gold job: more rows wait than the disk takes"
    ]


@pytest.mark.parametrize("error", [OSError("No space left on device"), Panic("No space left on device")])
def test_rows_that_cannot_be_written_are_dropped_and_later_ones_are_written(
    queue: TickRowQueue, disk: Disk, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    disk.error = error
    for number in range(3):
        queue.put([rows(number)])
        until(lambda: not queue._waiting)
    until(lambda: caplog.records)
    disk.error = None
    queue.put([rows(7)])
    until(lambda: disk.commits)
    queue.put([rows(8)])
    until(lambda: disk.commits[-1] == (THROTTLE_HEADROOM, [tick(8)]))
    assert {r.message for r in caplog.records} == {
        "rows of gold tables are left to the gold job: No space left on device"
    }
    assert len(caplog.records) == 1


def test_computed_rows_are_committed_after_the_given_rows(queue: TickRowQueue, disk: Disk) -> None:
    disk.works.clear()
    queue.put([rows(0)], Moves(0))
    until(lambda: not queue._waiting)
    # Two more may wait; the thread is too slow for the others.
    for number in (1, 2, 3):
        queue.put([rows(number)], Moves(number))
    disk.works.set()
    until(lambda: len(disk.commits) == 5)
    assert disk.commits == [
        (THROTTLE_HEADROOM, [tick(0)]),
        (PARTITION_WRITE_RATE, [tick(0)]),
        (THROTTLE_HEADROOM, [tick(1), tick(2), tick(3)]),
        (PARTITION_WRITE_RATE, [tick(1)]),
        (PARTITION_WRITE_RATE, [tick(2)]),
    ]


def test_a_computation_that_fails_costs_no_rows_that_are_there(
    queue: TickRowQueue, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    queue.put([rows(0)], Moves(0, ValueError("no such column")))
    until(lambda: caplog.records)
    queue.put([rows(1)])
    until(lambda: len(disk.commits) == 2)
    assert disk.commits == [(THROTTLE_HEADROOM, [tick(0)]), (THROTTLE_HEADROOM, [tick(1)])]


def test_a_stop_computes_nothing_any_more(queue: TickRowQueue, disk: Disk) -> None:
    disk.works.clear()
    queue.put([rows(0)])
    until(lambda: not queue._waiting)
    queue.put([rows(1)], lambda: [rows(1, table=PARTITION_WRITE_RATE)])
    stopper = threading.Thread(target=queue.stop)
    stopper.start()
    until(lambda: not queue._computations)
    disk.works.set()
    stopper.join()
    assert disk.commits == [(THROTTLE_HEADROOM, [tick(0)]), (THROTTLE_HEADROOM, [tick(1)])]


def test_the_inputs_of_a_computation_are_freed_once_whether_it_runs_or_not(
    queue: TickRowQueue, disk: Disk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tick_row_queue, "_MOST_ROWS", 25)
    moves = [Moves(number, ValueError("no rows") if number == 1 else None) for number in range(7)]
    queue.put([rows(0)], moves[0])
    until(lambda: moves[0].closed)
    assert disk.commits == [(THROTTLE_HEADROOM, [tick(0)]), (PARTITION_WRITE_RATE, [tick(0)])]
    queue.put([rows(1)], moves[1])
    until(lambda: moves[1].closed)
    disk.works.clear()
    queue.put([rows(2)], moves[2])
    until(lambda: not queue._waiting)
    # Two may wait; the third is dropped, then there is no room for rows either.
    for number in (3, 4, 5):
        queue.put([rows(number)], moves[number])
    assert [one.closed for one in moves[2:6]] == [0, 0, 0, 1]
    queue.put([rows(6, count=30)], moves[6])
    assert moves[6].closed == 1
    disk.error = OSError("No space left on device")
    disk.works.set()
    until(lambda: all(one.closed for one in moves))
    assert [one.closed for one in moves] == [1] * 7
    assert len(caplog.records) == 3
