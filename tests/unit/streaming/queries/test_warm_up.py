"""WarmUp: runs the last batch again only while idle, a limited number of times, and never delays the stop."""

from __future__ import annotations

import threading
import time

import pytest

from headroom.streaming.queries import warm_up as warm_up_module
from headroom.streaming.queries.warm_up import WarmUp
from tests.support.waiting import until


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_up_module, "_POLL_S", 0.001)
    monkeypatch.setattr(warm_up_module, "_ROUNDS", 3)


class Stage:
    """The batches that were run, and a settable idle time."""

    def __init__(self) -> None:
        self.idle_s = 10.0
        self.runs: list[str] = []
        self.warm_up = WarmUp(lambda: self.idle_s)

    def take(self, name: str) -> None:
        """Take a batch of this name."""
        self.warm_up.schedule(lambda: self.runs.append(name))

    def wait(self, rounds: int) -> None:
        """Wait for a number of rounds."""
        until(lambda: len(self.runs) >= rounds, poll_s=0.001)


def test_the_last_batch_is_played_so_many_times_and_no_more() -> None:
    stage = Stage()
    stage.idle_s = 0.0
    stage.take("first")
    stage.take("second")
    stage.idle_s = 10.0
    stage.wait(3)
    stage.take("third")
    time.sleep(0.05)
    assert stage.runs == ["second"] * 3


def test_nothing_is_played_while_ticks_come_in_quick_succession() -> None:
    stage = Stage()
    stage.idle_s = 0.9
    stage.take("first")
    time.sleep(0.05)
    stage.warm_up.stop()
    assert stage.runs == []


def test_one_that_fails_is_the_last() -> None:
    stage = Stage()

    def fail() -> None:
        stage.runs.append("failed")
        raise ValueError

    stage.warm_up.schedule(fail)
    stage.wait(1)
    time.sleep(0.05)
    assert stage.runs == ["failed"]


def test_a_stop_waits_for_the_round_that_is_under_way() -> None:
    stage, began = Stage(), threading.Event()

    def slow() -> None:
        began.set()
        # Goes on for a while after the stop is asked for, however late that is.
        stage.warm_up._task._stop.wait(60)
        time.sleep(0.05)
        stage.runs.append("done")

    stage.warm_up.schedule(slow)
    assert began.wait(60)
    stage.warm_up.stop()
    assert stage.runs == ["done"]
    time.sleep(0.05)
    assert stage.runs == ["done"]
