"""A deadline counts the time that the machine had for a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from headroom.cluster.embedded.patience import Patience, runnable_programs


class Machine:
    """A clock, and a number of threads that want to run, both set by the test."""

    def __init__(self, runnable: float) -> None:
        self.now_s, self.runnable = 1000.0, runnable

    def patience(self, deadline_s: float) -> Patience:
        return Patience(deadline_s, lambda: self.now_s, lambda: self.runnable, cores=2)

    def seconds_until_over(self, patience: Patience) -> float:
        began_s = self.now_s
        while not patience.is_over():
            self.now_s += 0.5
        return self.now_s - began_s


# Two cores: up to two threads wait for nothing, six are served in turn, three times as slowly; 1,000 reach the limit.
@pytest.mark.parametrize(("runnable", "waited_s"), [(0, 10), (2, 10), (6, 30), (1000, 80)])
def test_a_wait_is_as_much_longer_as_the_machine_is_slower(runnable: float, waited_s: float) -> None:
    machine = Machine(runnable)
    assert machine.seconds_until_over(machine.patience(10.0)) == pytest.approx(waited_s, abs=1.0)


def test_only_the_busy_part_of_a_wait_counts_less() -> None:
    machine = Machine(runnable=4)
    patience = machine.patience(10.0)
    for _ in range(8):
        assert not patience.is_over()
        machine.now_s += 1.0
    assert not patience.is_over()
    machine.runnable = 0
    # 8 s at half the speed are 4 s; 6 s are left.
    assert machine.seconds_until_over(patience) == pytest.approx(6, abs=1.0)


def test_of_a_pause_of_the_whole_process_little_counts() -> None:
    machine = Machine(runnable=1)
    patience = machine.patience(10.0)
    for _ in range(4):
        machine.now_s += 15.0
        assert not patience.is_over()
    # Of each pause 2 s count; 2 s are left.
    assert machine.seconds_until_over(patience) == pytest.approx(2, abs=1.0)
    assert str(patience) == "10 s"


def test_a_wait_whose_questions_take_long_grows_at_most_eightfold() -> None:
    machine = Machine(runnable=1000)
    patience = machine.patience(10.0)
    for _ in range(2):
        machine.now_s += 39.0
        assert not patience.is_over()
    machine.now_s += 3.0
    assert patience.is_over()


def test_an_error_says_how_busy_the_machine_was() -> None:
    quiet, busy = Machine(1), Machine(6)
    patience = quiet.patience(10.0)
    quiet.seconds_until_over(patience)
    assert str(patience) == "10 s"
    patience = busy.patience(10.0)
    busy.seconds_until_over(patience)
    assert str(patience) == "10 s (30 s by the clock: 6.0 threads wanted the 2 cores)"


def test_the_thread_that_asks_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "loadavg").write_text("0.50 0.40 0.30 4/512 12345\n")
    assert runnable_programs(tmp_path / "loadavg") == 3


def test_in_a_container_the_cores_of_its_limit_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headroom.cluster.embedded.patience.usable_cores", lambda: 1.5)
    machine = Machine(runnable=3)
    patience = Patience(10.0, lambda: machine.now_s, lambda: machine.runnable)
    assert machine.seconds_until_over(patience) == pytest.approx(20, abs=1.0)
    assert str(patience).endswith("3.0 threads wanted the 1.5 cores)")


def test_without_a_count_of_the_kernel_the_load_average_of_a_minute_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (2.5, 1.0, 0.5))
    assert runnable_programs(tmp_path / "none") == 2.5
