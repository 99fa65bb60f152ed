"""The history is a process that gives way to the alert path."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.cli.watch.watch import HistoryProcess
from headroom.schemas.config import SparkSettings


@pytest.mark.parametrize("nice", [SparkSettings().history_nice, 0])
@pytest.mark.parametrize("configs", [[], ["a.toml"], ["a.toml", "b.toml"]])
def test_it_starts_once_it_may_with_its_niceness_and_the_files_of_all_clusters(
    nice: int, configs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the file of a cluster it would reject that cluster's ticks."""
    started: list[list[str]] = []

    class Child:
        def __init__(self, name: str, command: list[str], config: Any) -> None:
            started.append(command)

        def check(self) -> None:
            pass

    monkeypatch.setattr("headroom.cli.watch.watch.ChildProcess", Child)
    history = HistoryProcess(configs, nice)
    history.check()
    assert started == []
    history.allow()
    history.check()
    history.check()
    files = {0: [], 1: ["--config", "a.toml"], 2: ["--config", "a.toml", "--config", "b.toml"]}[len(configs)]
    assert started == [["run", "gold", "record", "--nice", str(nice), *files]]


def test_by_default_its_priority_is_lower_but_not_so_low_that_it_starves() -> None:
    assert SparkSettings().history_nice == 5
