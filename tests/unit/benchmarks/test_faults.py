"""The kit of faults: brokers are repaired in order, and runs are chosen by name and number."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from kafka.errors import KafkaError

from benchmarks.faults import brokers as module
from benchmarks.faults.brokers import BrokerFaults
from benchmarks.faults.schedule import chosen_names, in_rounds
from headroom.schemas.errors import HeadroomError


class FakeBench:
    """A cluster that notes what is done to it. Its admin client is itself, and fails at first.

    Attributes:
        done: what was done.
        leaders: leaders of the two partitions of the ticks topic.
    """

    def __init__(self, folder: Path) -> None:
        self.done: list[str] = []
        self.leaders = [2, 2]
        self.admin = self
        self.settings: Any = self
        self.ticks: Any = self
        self.topic = "ticks"
        self._folder = folder
        self._fails = True

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.done.append(" ".join([name, *map(str, arguments)]))

    def log_dir(self, broker: int, second: bool = False) -> Path:
        return self._folder / f"{'second' if second else 'first'}-{broker}"

    def describe_topics(self, topics: list[str]) -> list[dict[str, Any]]:
        if self._fails:
            self._fails = False
            raise KafkaError
        found = [
            {"partition_index": n, "leader_id": leader, "isr_nodes": [1, 2], "replica_nodes": [2 - n, 1 + n]}
            for n, leader in enumerate(self.leaders)
        ]
        return [{"partitions": found}]

    def elect_leaders(self, kind: int, partitions: dict[str, list[int]]) -> None:
        self.done.append(f"elect {partitions}")
        self.leaders = [2, 1]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeBench:
    monkeypatch.setattr(module, "_ELECT_EVERY_S", 0.0)
    return FakeBench(tmp_path)


def test_all_brokers_are_back_and_preferred_leaders_lead_after_a_repair(bench: Any) -> None:
    faults = BrokerFaults(bench)
    bench.log_dir(1, second=True).mkdir()
    faults.kill(3)
    faults.stop(2)
    faults.pause(4)
    faults.fail_second_log_dir(1)
    assert (faults.down, faults.hanging) == ({2, 3}, {4})
    assert not bench.log_dir(1, second=True).exists()
    bench.done.clear()
    faults.repair()
    # The first answer about leaders is an error, so the client is replaced; then an election is needed.
    restarts = ["restart 1", "restart 2", "restart 3"]
    assert bench.done == ["resume 4", *restarts, "reconnect", "reconnect", "elect {'ticks': [0, 1]}"]
    assert (faults.down, faults.hanging) == (set(), set())
    assert bench.log_dir(1, second=True).exists()


def test_without_damage_there_is_nothing_to_repair(bench: Any) -> None:
    BrokerFaults(bench).repair()
    assert bench.done == []


def test_runs_are_chosen_by_name_and_number() -> None:
    known = ["large", "near"]
    assert chosen_names("", known, "X") == [("large", None), ("near", None)]
    assert chosen_names("near:2, large", known, "X") == [("near", 2), ("large", None)]
    for wrong in ("nearly", "near:x"):
        with pytest.raises(HeadroomError, match=f"no X '{wrong}'; there are large, near, and large:2 for one run"):
            chosen_names(wrong, known, "X")


def test_a_round_has_each_item_once() -> None:
    drawn = list(islice(in_rounds("abc", random.Random(1)), 9))
    assert all(sorted(drawn[at : at + 3]) == ["a", "b", "c"] for at in (0, 3, 6))
