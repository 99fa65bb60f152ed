"""Heartbeats: a child that hangs is killed and restarted; one that starts slowly or shares a pause is not."""

from __future__ import annotations

import os
import threading

import pytest

from headroom.cli.watch import heartbeat
from headroom.cli.watch.heartbeat import BeatingProcess, send_heartbeats


class Machine:
    """Starts fake processes that beat while they are told to, and advances the clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s, self.processes = 0.0, list[Process]()
        monkeypatch.setattr("headroom.cli.watch.heartbeat.time.monotonic", lambda: self.now_s)
        monkeypatch.setattr("headroom.cli.common.child_process.subprocess.Popen", self.start)
        self.child = BeatingProcess("collector", ["collect"], None)

    def start(self, command: list[str], pass_fds: tuple[int, ...], **_: object) -> Process:
        assert command[command.index("--heartbeat-fd") + 1] == str(pass_fds[0])
        self.processes.append(Process(pass_fds[0]))
        return self.processes[-1]

    def wait(self, seconds: int, beats: bool, step_s: float = 1.0) -> None:
        for _ in range(seconds):
            self.now_s += step_s
            if beats:
                os.write(self.processes[-1].fd, b"..")
            self.child.check()


class Process:
    """A process that runs until it is killed."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.code: int | None = None

    def poll(self) -> int | None:
        return self.code

    def kill(self) -> None:
        self.code = -9

    def wait(self, timeout: float) -> None:
        assert timeout < 1


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_a_process_that_beats_or_has_not_begun_to_is_left_alone(machine: Machine) -> None:
    machine.wait(60, beats=False)
    machine.wait(60, beats=True)
    assert len(machine.processes) == 1


def test_a_process_that_hangs_is_killed_and_another_one_started_at_once(
    machine: Machine, capfd: pytest.CaptureFixture[str]
) -> None:
    machine.wait(40, beats=True)
    machine.wait(3, beats=False)
    assert len(machine.processes) == 1
    machine.wait(1, beats=False)
    assert [process.code for process in machine.processes] == [-9, None]
    printed = capfd.readouterr().err
    assert "headroom: the collector hangs: no heartbeat for 3 s; it is killed" in printed
    assert "the collector ended with code -9; it is started again" in printed


def test_after_each_kill_a_longer_silence_is_tolerated(machine: Machine) -> None:
    ends_s = []
    for _ in range(6):
        machine.wait(40, beats=True)
        began_s, count = machine.now_s, len(machine.processes)
        while len(machine.processes) == count:
            machine.wait(1, beats=False)
        ends_s.append(machine.now_s - began_s)
    assert ends_s == [4, 7, 13, 25, 49, 61]


def test_silence_during_a_pause_of_the_whole_machine_proves_nothing(machine: Machine) -> None:
    machine.wait(40, beats=True)
    machine.wait(1, beats=False, step_s=600)
    machine.wait(2, beats=False)
    assert len(machine.processes) == 1


def test_heartbeats_arrive_and_outlive_a_broken_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "_EVERY_S", 0.001)
    reading, writing = os.pipe()
    send_heartbeats(writing)
    assert {os.read(reading, 1) for _ in range(3)} == {b"."}
    os.close(reading)
    thread = next(one for one in threading.enumerate() if one.name == "heartbeats")
    thread.join(0.05)
    assert thread.is_alive()
