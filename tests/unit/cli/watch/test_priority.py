"""CPU priority of a session."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headroom.cli.watch.priority import lower_session

pytestmark = pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="sessions have no share of their own")


@pytest.mark.parametrize("nice", [0, 10])
def test_only_the_childs_own_session_gets_less(nice: int) -> None:
    own = Path("/proc/self/autogroup").read_text(encoding="ascii")
    command = [sys.executable, "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as child:
        lower_session(child.pid, nice)
        assert Path(f"/proc/{child.pid}/autogroup").read_text(encoding="ascii").endswith(f" nice {nice}\n")
        assert child.stdin is not None
        child.stdin.close()
    assert Path("/proc/self/autogroup").read_text(encoding="ascii") == own


def test_a_session_that_has_ended_is_skipped() -> None:
    with subprocess.Popen([sys.executable, "-c", ""], start_new_session=True) as child:
        pass
    lower_session(child.pid, 10)
