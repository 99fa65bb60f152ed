"""A pipeline whose JVM ends is rebuilt, up to a limit."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest

from headroom.cli.watch.restarting_pipeline import RestartingPipeline
from headroom.schemas.errors import HeadroomError
from headroom.streaming.supervision.failure import JvmEnded


class Jobs:
    """A pipeline whose check raises a given error."""

    def __init__(self) -> None:
        self.error: HeadroomError | None = None
        self.left: object = None
        self.stopped = False

    def check(self) -> None:
        if self.error is not None:
            raise self.error

    def hand_over(self) -> object:
        return self.left

    def stop(self) -> None:
        self.stopped = True
        if isinstance(self.error, JvmEnded):
            raise self.error


class Machine:
    """Builds pipelines, and advances the clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s, self.built, self.started, self.forgotten = 0.0, list[Jobs](), list[Jobs](), 0
        self.in_the_way: HeadroomError | None = None
        self.handed_over: list[object] = []
        monkeypatch.setattr("headroom.streaming.session.forget_jvm", self.forget)
        self.kept = RestartingPipeline(self.build, self.started.append, lambda: self.now_s)  # type: ignore[arg-type]

    def forget(self) -> None:
        self.forgotten += 1

    def build(self, handover: object) -> Any:
        self.handed_over.append(handover)
        if self.in_the_way is not None:
            raise self.in_the_way
        self.built.append(Jobs())
        return self.built[-1]

    def wait(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now_s += 1
            self.kept.check()


def test_after_its_jvm_has_ended_another_one_is_built(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine(monkeypatch)
    machine.kept.start()
    machine.wait(3)
    machine.built[0].error = JvmEnded()
    machine.wait(4)
    assert (len(machine.built), machine.built[0].stopped, machine.forgotten) == (2, True, 1)
    assert machine.started == machine.built
    assert "headroom: Spark: its JVM has ended; it is started again in 2 s" in capsys.readouterr().err
    machine.wait(10)
    machine.kept.stop()
    assert (len(machine.built), machine.built[1].stopped) == (2, True)


def test_a_jvm_that_ends_again_and_again_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    machine.kept.start()
    for _ in range(3):
        machine.built[-1].error = JvmEnded()
        machine.wait(4)
    assert len(machine.built) == 4
    machine.built[-1].error = JvmEnded()
    with pytest.raises(JvmEnded):
        machine.wait(4)


def test_a_repeated_error_of_the_restart_is_printed_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine(monkeypatch)
    machine.kept.start()
    machine.built[0].error = JvmEnded()
    machine.wait(1)
    machine.in_the_way = HeadroomError("broker1:9092", "is out of reach", "Wait.")
    machine.wait(60)
    assert capsys.readouterr().err.count("is out of reach") == 1
    machine.in_the_way = None
    machine.wait(3)
    assert len(machine.built) == 2


def test_unstored_state_is_handed_over_until_a_pipeline_has_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(monkeypatch)
    machine.kept.start()
    machine.built[0].left, machine.built[0].error = MagicMock(), JvmEnded()
    machine.wait(1)
    machine.in_the_way = HeadroomError("broker1:9092", "is out of reach", "Wait.")
    machine.wait(10)
    machine.in_the_way = None
    machine.wait(3)
    assert machine.handed_over[0] is None
    assert len(machine.handed_over) > 2
    assert set(machine.handed_over[1:]) == {machine.built[0].left}
    machine.built[1].error = JvmEnded()
    machine.wait(4)
    assert machine.handed_over[-1] is None


def test_deliveries_that_wait_for_a_pipeline_are_stopped_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, left = Machine(monkeypatch), MagicMock()
    machine.kept.start()
    machine.built[0].left, machine.built[0].error = left, JvmEnded()
    machine.wait(1)
    machine.kept.stop()
    left.outbox.stop.assert_called_once_with()


def test_an_error_at_the_first_start_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    machine.in_the_way = HeadroomError("store", "cannot be written", "Set store.path.")
    with pytest.raises(HeadroomError):
        machine.kept.start()


def test_an_error_that_is_not_the_jvms_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    machine.kept.start()
    machine.built[0].error = HeadroomError("job gold", "has stopped 6 times", "See the log.")
    with pytest.raises(HeadroomError, match="job gold"):
        machine.wait(1)
