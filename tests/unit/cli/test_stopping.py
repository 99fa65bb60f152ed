"""A process ends with the one that started it, also while it does something else."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import psutil
import pytest

_CHILD = """
import threading, time
from headroom.cli.common import stopping
stopping._ORPHAN_GRACE_S = {grace_s}
stop = threading.Event()
stopping.end_with_parent(stop)
print("started", flush=True)
{then}
"""
# Comes to its modules when its parent has ended, however long that takes.
_SLOW = f"""
import os, time
while os.getppid() == int(os.environ["HEADROOM_STARTED_BY"]): time.sleep(0.02)
{_CHILD.format(grace_s=60, then="stop.wait()")}
"""
_PARENT = """
import os, subprocess, sys
environment = os.environ | {'HEADROOM_STARTED_BY': str(os.getpid())}
child = subprocess.Popen([sys.executable, '-c', sys.argv[1]], env=environment)
print(child.pid, flush=True)
input()
"""


@pytest.mark.parametrize(
    ("grace_s", "then"),
    [
        pytest.param(60, "stop.wait()", id="it looks at the event"),
        pytest.param(0.2, "time.sleep(600)", id="it is busy"),
    ],
)
def test_it_ends_soon_after_its_parent(grace_s: float, then: str) -> None:
    command = [sys.executable, "-c", _PARENT, _CHILD.format(grace_s=grace_s, then=then)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        # Both write to the same pipe: the child may be first.
        pid, started = sorted(parent.stdout.readline() for _ in range(2))
        child = psutil.Process(int(pid))
        assert started == "started\n"
        time.sleep(1.0)
        assert child.is_running()
        parent.kill()
        child.wait(timeout=120)


def test_a_parent_that_was_killed_while_it_imported_its_modules_ends_it_too() -> None:
    command = [sys.executable, "-c", _PARENT, _SLOW]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stderr is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
        child.wait(timeout=120)
        assert b"started by one that has ended since" in parent.stderr.read()
        assert b"started\n" not in parent.stdout.read()


_STUCK = """
import threading, time
from headroom.cli.common.stopping import end_within, stop_on_signals
stop = threading.Event()
stop_on_signals(stop)
end_within(stop, {grace_s})
print("started", flush=True)
def stuck():
    {then}
stuck()
"""


def signalled(grace_s: float, then: str) -> tuple[int, str]:
    """Exit code and standard error of a process that is asked to end."""
    command = [sys.executable, "-c", _STUCK.format(grace_s=grace_s, then=then)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.terminate()
        return process.wait(timeout=60), process.communicate()[1]


def test_a_process_that_does_not_end_is_ended_and_says_what_it_was_doing() -> None:
    code, error = signalled(0.2, "time.sleep(600)")
    assert code == 1
    assert "has not ended 0.2 s after it was asked to, and is ended now" in error
    assert "in stuck" in error


def test_a_process_that_does_not_end_is_ended_though_nobody_reads_what_it_says() -> None:
    # Standard error is a full pipe.
    fill = "import os; os.set_blocking(2, False)\n    try:\n        while True: os.write(2, b'x' * 4096)\n"
    fill += "    except BlockingIOError: os.set_blocking(2, True)\n    time.sleep(600)"
    command = [sys.executable, "-c", _STUCK.format(grace_s=0.2, then=fill)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        time.sleep(0.5)
        process.terminate()
        assert process.wait(timeout=60) == 1


def test_a_process_that_looks_at_the_event_ends_by_itself() -> None:
    assert signalled(60, "stop.wait()") == (0, "")


def test_a_signal_during_a_wait_does_not_block_it() -> None:
    # The signal comes while the lock of the event is held.
    then = "stop._cond.__enter__(); signal.raise_signal(15); stop._cond.__exit__(None, None, None); stop.wait()"
    command = [sys.executable, "-c", "import signal\n" + _STUCK.format(grace_s=600, then=then)]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60).returncode == 0


_HANGS_UP = """
import os, signal, sys, threading
from headroom.cli.common.stopping import stop_on_signals
# As it is inherited: these tests may run with nohup too.
signal.signal(signal.SIGHUP, signal.{inherited})
stop = threading.Event()
stop_on_signals(stop, "Stopping")
for _ in range(2):
    os.kill(os.getpid(), signal.SIGHUP)
sys.exit(0 if stop.wait({wait_s}) else 7)
"""


def test_a_terminal_that_goes_away_asks_for_the_end_as_sigterm_does() -> None:
    """Its signal comes twice, and standard error may be gone by then."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-c", _HANGS_UP.format(inherited="SIG_DFL", wait_s=60)]
    assert subprocess.run(command, stderr=writing, timeout=120).returncode == 0
    os.close(writing)


def test_with_nohup_a_process_outlives_its_terminal() -> None:
    command = [sys.executable, "-c", _HANGS_UP.format(inherited="SIG_IGN", wait_s=0.5)]
    assert subprocess.run(command, timeout=120).returncode == 7
