"""Child processes: one that ends is restarted, with a growing delay if it ends at once."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import pytest

from headroom.cli.common.child_process import ChildProcess


class Machine:
    """Starts fake processes with a given lifetime, and advances the clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, lasts_s: float) -> None:
        self.now_s, self.lasts_s, self.starts_s = 0.0, lasts_s, list[float]()
        monkeypatch.setattr("headroom.cli.common.child_process.time.monotonic", lambda: self.now_s)
        monkeypatch.setattr("headroom.cli.common.child_process.subprocess.Popen", lambda *_, **__: Process(self))
        self.child = ChildProcess("history", ["run", "gold"], None)

    def wait(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now_s += 1
            self.child.check()

    @property
    def pauses_s(self) -> list[float]:
        """Time from the start of each process to that of the next, in seconds."""
        return [after - before for before, after in pairwise(self.starts_s)]


class Process:
    """A process that ends at a given time after its start."""

    def __init__(self, machine: Machine) -> None:
        self._machine, self._end_s = machine, machine.now_s + machine.lasts_s
        machine.starts_s.append(machine.now_s)

    def poll(self) -> int | None:
        return 1 if self._machine.now_s >= self._end_s else None


def test_a_running_process_is_not_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, lasts_s=inf)
    machine.wait(1000)
    assert machine.starts_s == [0]


def test_a_process_that_ends_repeatedly_is_restarted_with_a_growing_delay(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    machine = Machine(monkeypatch, lasts_s=1)
    machine.wait(400)
    assert machine.pauses_s == [1, 6, 11, 21, 41, 61, 61, 61, 61, 61]
    assert "the history ended with code 1; it is started again in 5 s" in capfd.readouterr().err


def test_a_process_that_ran_long_is_restarted_at_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    machine = Machine(monkeypatch, lasts_s=1)
    machine.wait(30)
    machine.lasts_s = 40
    machine.wait(200)
    assert machine.pauses_s[:7] == [1, 6, 11, 21, 40, 40, 40]
    assert "the history ended with code 1; it is started again\n" in capfd.readouterr().err
