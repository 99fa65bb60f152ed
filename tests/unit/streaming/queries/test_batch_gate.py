"""BatchGate: duration of the batch in progress, and the end of a batch that is broken off."""

from __future__ import annotations

import threading
import traceback
from typing import Any

import pytest

from headroom.streaming.queries import batch_gate as gates
from headroom.streaming.queries.batch_gate import BatchGate, StopRequested, wait_idle


def test_the_duration_of_the_current_batch_is_known_only_while_it_runs() -> None:
    gate, durations = BatchGate(), []

    def batch(rows: Any, batch_id: int) -> None:
        durations.append(gate.batch_s)
        raise ValueError(batch_id)

    assert gate.batch_s is None
    with pytest.raises(ValueError, match="7"):
        gate.wrap(batch)(None, 7)  # type: ignore[arg-type]
    assert durations[0] is not None
    assert durations[0] >= 0
    assert gate.batch_s is None


def test_a_cancelled_batch_raises_stop_requested_without_the_error_of_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "_LONGEST_BATCH_S", 0.01)
    gate = BatchGate()

    def batch(rows: Any, batch_id: int) -> None:
        gate.close()
        raise ValueError("at org.apache.spark.Something " * 10_000)

    with pytest.raises(StopRequested) as caught:
        gate.wrap(batch)(None, 7)  # type: ignore[arg-type]
    assert "org.apache.spark" not in "".join(traceback.format_exception(caught.value))


def test_only_completed_batches_report_their_duration() -> None:
    took: list[float] = []
    gate = BatchGate(took.append)

    def batch(rows: Any, batch_id: int) -> None:
        if batch_id == 7:
            raise ValueError(batch_id)

    with pytest.raises(ValueError, match="7"):
        gate.wrap(batch)(None, 7)  # type: ignore[arg-type]
    assert took == []
    gate.wrap(batch)(None, 8)  # type: ignore[arg-type]
    assert len(took) == 1
    assert took[0] >= 0


def busy(gate: BatchGate) -> tuple[threading.Thread, threading.Event]:
    """A thread whose batch is within until the event is set."""
    within, done = threading.Event(), threading.Event()

    def batch(rows: Any, batch_id: int) -> None:
        within.set()
        done.wait(10)

    thread = threading.Thread(target=gate.wrap(batch), args=(None, 1))
    thread.start()
    assert within.wait(10)
    return thread, done


def test_waiting_for_idle_ends_when_the_batches_are_done() -> None:
    gate = BatchGate()
    thread, done = busy(gate)
    threading.Timer(0.1, done.set).start()
    wait_idle([BatchGate(), gate], 10.0)
    assert done.is_set()
    thread.join()
    assert gate.batches == 1


def test_waiting_for_idle_ends_at_its_timeout() -> None:
    gate = BatchGate()
    thread, done = busy(gate)
    wait_idle([gate], 0.1)
    assert gate.batch_s is not None
    done.set()
    thread.join()
