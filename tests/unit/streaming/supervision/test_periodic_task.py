"""PeriodicTask: calls with pauses, until it is stopped, also by its own call."""

from __future__ import annotations

import logging
import threading

import pytest

from headroom.streaming.supervision.periodic_task import PeriodicTask

_DEADLINE_S = 60.0


def test_the_first_call_comes_after_its_own_pause_and_the_others_after_theirs() -> None:
    calls, third = [0], threading.Event()

    def call() -> None:
        calls[0] += 1
        if calls[0] == 3:
            third.set()

    task = PeriodicTask("test", call, 0.001, first_s=0.0)
    task.start()
    task.start()
    assert third.wait(_DEADLINE_S)
    task.stop(_DEADLINE_S)
    last = calls[0]
    late = PeriodicTask("test", call, 0.001, first_s=2 * _DEADLINE_S)
    late.start()
    late.stop(_DEADLINE_S)
    assert calls[0] == last


def test_a_call_may_stop_its_own_task() -> None:
    calls: list[int] = []

    def call() -> None:
        calls.append(1)
        if len(calls) == 2:
            task.stop()

    task = PeriodicTask("test", call, 0.001)
    task.start()
    task._thread.join(_DEADLINE_S)
    assert calls == [1, 1]


def test_a_task_that_never_began_stops_at_once() -> None:
    PeriodicTask("test", lambda: None, 0.001).stop(_DEADLINE_S)


class Panic(BaseException):
    """An error as of the Delta library, which is no Exception."""


def test_an_error_ends_no_task_and_is_logged_when_it_is_another_one(caplog: pytest.LogCaptureFixture) -> None:
    errors: list[BaseException | None] = [ValueError("a"), ValueError("a"), None, ValueError("a"), Panic("b")]

    def call() -> None:
        if not errors:
            task.stop()
            return
        error = errors.pop(0)
        if error is not None:
            raise error

    task = PeriodicTask("loads", call, 0.001)
    with caplog.at_level(logging.ERROR):
        task.start()
        task._thread.join(_DEADLINE_S)
    assert errors == []
    assert caplog.messages == [f"loads failed, and is tried again: {cause}" for cause in ("a", "a", "b")]
