"""The history is a process that gives way to the alert path."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.cli.watch.watch import HistoryProcess
from headroom.schemas.config import SparkSettings


@pytest.mark.parametrize("nice", [SparkSettings().history_nice, 0])
def test_it_starts_once_it_may_with_its_niceness(nice: int, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    class Child:
        def __init__(self, name: str, command: list[str], config: Any) -> None:
            started.append(command)

        def check(self) -> None:
            pass

    monkeypatch.setattr("headroom.cli.watch.watch.ChildProcess", Child)
    history = HistoryProcess("headroom.toml", nice)
    history.check()
    assert started == []
    history.allow()
    history.check()
    history.check()
    assert started == [["run", "gold", "record", "--nice", str(nice)]]


def test_by_default_its_priority_is_lower_but_not_so_low_that_it_starves() -> None:
    assert SparkSettings().history_nice == 5
