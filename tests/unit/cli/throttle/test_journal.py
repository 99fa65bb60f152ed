"""Changes of throttles in the journal; without one they are made all the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cli.throttle.clear_plan import clear_plan, clear_steps
from streaming.tables.journal import ActionJournal
from tests.unit.builders.throttle_views import OWN, FakeCluster, run, view_of


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    fake = FakeCluster(view_of({1: replace(OWN, leader_bytes_per_s=5_600_000), 2: OWN}))
    fake.install(monkeypatch)
    return fake


def test_apply_writes_each_rate_with_the_one_before(cluster: FakeCluster, store: Path) -> None:
    assert run("apply", "--rate", "9.6MB", "--brokers", "1", "--role", "leader", "--execute").exit_code == 0
    rows = ActionJournal(str(store)).rows("kafka")
    assert [(row.command, row.step, row.state, row.subject, row.before, row.after) for row in rows] == [
        ("throttle apply", "rate", state, "broker 1 as leader", "5600000", "9600000") for state in ("intended", "done")
    ]


def test_a_store_that_cannot_be_written_stops_no_throttle(cluster: FakeCluster, store: Path) -> None:
    store.write_text("a file")
    result = run("apply", "--rate", "9.6MB", "--brokers", "1", "--execute")
    assert (result.exit_code, "Note: The change is not in the journal" in result.stderr) == (0, True)


def test_clear_has_every_rate_and_list_that_it_removes() -> None:
    view = view_of({1: OWN})
    steps = clear_steps(view, clear_plan(view, None, cluster_default=False))
    assert [(step.subject, step.before) for step in steps] == [
        ("broker 1 as leader", "5000000"),
        ("broker 1 as follower", "5000000"),
        ("topic t as leader", "0:1,0:2"),
        ("topic t as follower", "0:3"),
    ]
