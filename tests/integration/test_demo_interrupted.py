"""A demo that is interrupted ends, and leaves nothing running."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil

from tests.integration.demo_process import nothing_works_in, start_demo, working_in
from tests.integration.support import living, output_of, wait_until


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
        output_of(demo, 120)
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
