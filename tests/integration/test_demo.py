"""The demo passes on real brokers, and leaves nothing behind, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil

from tests.integration.support import living, output_of, wait_until

# Three minutes on an idle machine of two cores.
_DEADLINE_S = 600


def start_demo(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "cli.main", "demo", "--dir", str(folder)]
    # In a session of its own, so that the signal of a test comes to it alone, as from a shell.
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def working_in(folder: Path) -> list[str]:
    """Return the command lines of the processes that name the folder."""
    found = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        if process.pid != os.getpid() and any(str(folder) in word for word in words):
            found.append(f"{process.pid}: {' '.join(words)[-200:]}")
    return found


def nothing_works_in(folder: Path) -> bool:
    return not working_in(folder)


def test_all_of_the_demo_comes_true_and_nothing_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    demo = start_demo(folder)
    try:
        output, _ = output_of(demo, _DEADLINE_S)
    finally:
        demo.terminate()
    assert demo.returncode == 0, output
    assert "[FIRING] warning throttle_below_leader_write" in output
    assert "[RESOLVED] warning throttle_below_leader_write" in output
    # Times are those of the machine, and benchmarks measure them.
    assert "All checks passed." in output or "All of it came true" in output
    wait_until(lambda: nothing_works_in(folder), 30, "processes of the demo ended", lambda: working_in(folder))
    assert not folder.exists()


def children(pid: int) -> list[int]:
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def interrupted(folder: Path, number: signal.Signals) -> int:
    demo = start_demo(folder)
    try:
        log = folder / "watch.log"
        # Four brokers, the guardian, headroom watch, its collector and the JVMs of both.
        wait_until(lambda: log.exists() and len(children(demo.pid)) >= 9, 180, "brokers and watch run")
        pids = children(demo.pid)
        demo.send_signal(number)
        output_of(demo, 60)
        wait_until(lambda: not living(pids), 90, "children of the demo ended", lambda: living(pids))
        wait_until(lambda: nothing_works_in(folder), 30, "processes of the demo ended", lambda: working_in(folder))
        return demo.returncode
    finally:
        demo.kill()


def test_ctrl_c_leaves_nothing_running_and_nothing_behind(tmp_path: Path) -> None:
    assert interrupted(tmp_path / "demo", signal.SIGINT) == 130
    assert not (tmp_path / "demo").exists()


def test_sigterm_leaves_nothing_running_and_nothing_behind(tmp_path: Path) -> None:
    assert interrupted(tmp_path / "demo", signal.SIGTERM) == 130
    assert not (tmp_path / "demo").exists()


def test_kill_leaves_nothing_running(tmp_path: Path) -> None:
    assert interrupted(tmp_path / "demo", signal.SIGKILL) == -signal.SIGKILL
