"""Nothing that a guardian has started outlives its owner, whatever the owner was doing when it ended."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import IO

import psutil
import pytest

from headroom.cluster.embedded import guardian
from headroom.cluster.embedded.processes import Guardian


def _sleep(mark: Path) -> list[str]:
    return [sys.executable, "-c", "import time; time.sleep(600)", str(mark)]


@pytest.mark.parametrize(
    "last_words", [pytest.param("spawn", id="while it asks"), pytest.param("half", id="half-asked")]
)
def test_processes_end_when_their_owner_ends_while_it_asks(last_words: str, tmp_path: Path) -> None:
    request = json.dumps({"spawn": _sleep(tmp_path), "log": str(tmp_path / "log")}) + "\n"
    with _start() as process:
        stdin, stdout = _pipes(process)
        print(request, end="", file=stdin, flush=True)
        first = psutil.Process(json.loads(stdout.readline())["pid"])
        # From here on nobody reads answers, as after the end of the owner.
        stdout.close()
        print(request if last_words == "spawn" else request[:20], end="", file=stdin, flush=True)
        stdin.close()
        process.wait(120)
    first.wait(120)
    assert not [p.pid for p in psutil.process_iter(["cmdline"]) if str(tmp_path) in str(p.info["cmdline"])]


def test_released_processes_go_on(tmp_path: Path) -> None:
    owner = Guardian()
    started = psutil.Process(owner.spawn(_sleep(tmp_path), tmp_path / "log"))
    try:
        owner.release()
        assert started.is_running()
    finally:
        started.kill()


def _start() -> subprocess.Popen[str]:
    command = [sys.executable, "-I", "-S", guardian.__file__]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def _pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout
