"""The commands of the README, run unchanged."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.support import completed

REPOSITORY = Path(__file__).resolve().parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
_TESTED = re.compile(r"<!-- tested -->\n```sh\n(.*?)```", re.DOTALL)
_DEADLINE_S = 600


def blocks_to_run() -> list[str]:
    return _TESTED.findall(README)


def shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script with this checkout's ``headroom`` first on the PATH; it ends at the first command that fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = ["bash", "-exuo", "pipefail", "-c", script]
    return completed(command, _DEADLINE_S, cwd=folder, env={**os.environ, "PATH": path}, stderr=subprocess.STDOUT)


@pytest.mark.parametrize("block", blocks_to_run(), ids=lambda block: block.split("\n")[0])
def test_the_commands_of_the_readme_run_as_they_stand(block: str, tmp_path: Path) -> None:
    try:
        done = shell(block, tmp_path)
    finally:
        for folder in tmp_path.iterdir():
            shell(f"headroom cluster down --dir {folder.name}", tmp_path)
    assert done.returncode == 0, done.stdout
    assert "Traceback" not in done.stdout


def test_there_are_commands_to_run() -> None:
    assert blocks_to_run()


def test_init_writes_settings_as_in_the_readme(tmp_path: Path) -> None:
    command = next(line for line in README.splitlines() if line.startswith("headroom init"))
    done = shell(command, tmp_path)
    assert done.returncode == 0, done.stdout
    assert 'bootstrap_servers = "broker1:9092,broker2:9092"' in (tmp_path / "headroom.toml").read_text(encoding="utf-8")
