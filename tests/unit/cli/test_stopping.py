"""A process ends with the one that started it, also while it does something else."""

from __future__ import annotations

import subprocess
import sys
import time

import psutil
import pytest

_CHILD = """
import threading, time
from cli.common import stopping
stopping._ORPHAN_GRACE_S = {grace_s}
stop = threading.Event()
stopping.end_with_parent(stop)
print("started", flush=True)
{then}
"""
_SLOW = f"""
import time
time.sleep(1.5)
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
        child = psutil.Process(int(parent.stdout.readline()))
        assert parent.stdout.readline() == "started\n"
        time.sleep(1.0)
        assert child.is_running()
        parent.kill()
        child.wait(timeout=20)


def test_a_parent_that_was_killed_while_it_imported_its_modules_ends_it_too() -> None:
    command = [sys.executable, "-c", _PARENT, _SLOW]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stderr is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
        child.wait(timeout=20)
        assert b"started by one that has ended since" in parent.stderr.read()
        assert b"started\n" not in parent.stdout.read()
