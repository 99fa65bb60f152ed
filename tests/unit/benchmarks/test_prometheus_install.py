"""Location of the programs of Prometheus, and the errors if there are none."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from benchmarks.fixtures import prometheus_install as prometheus_tools
from benchmarks.fixtures.prometheus_install import ToolNotFound, tool


def program(file: Path, does: str = "") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{does}\n")
    file.chmod(0o755)
    return file


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the only programs that are on the PATH."""
    monkeypatch.setattr(prometheus_tools, "TOOLS", tmp_path / "tools")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


def test_a_program_on_the_path_is_used(machine: Path) -> None:
    there = program(machine / "promtool")
    assert tool("promtool") == there


def test_an_unpacked_program_is_not_downloaded_again(machine: Path) -> None:
    unpacked = program(prometheus_tools.TOOLS / "prometheus" / "usr" / "bin" / "promtool")
    assert tool("promtool") == unpacked


def test_a_package_that_two_ask_for_at_the_same_time_is_downloaded_once(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    both = threading.Barrier(2)

    def download(package: str) -> None:
        asked.append(package)
        time.sleep(0.2)
        program(prometheus_tools.TOOLS / package / "usr" / "bin" / "promtool")

    def ask() -> None:
        both.wait()
        tool("promtool")

    monkeypatch.setattr(prometheus_tools, "_download", download)
    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert asked == ["prometheus"]


def test_a_machine_without_debians_tools_is_an_error_with_the_reason(machine: Path) -> None:
    with pytest.raises(ToolNotFound, match="no apt-get"):
        tool("amtool")


def test_a_failed_download_is_an_error_with_the_reason_and_is_not_used(machine: Path) -> None:
    program(machine / "apt-get", "echo 'E: Unable to locate package'; exit 100")
    program(machine / "dpkg-deb")
    for _ in range(2):
        with pytest.raises(ToolNotFound, match=r"prometheus is not on the PATH.*Unable to locate package"):
            tool("promtool")
