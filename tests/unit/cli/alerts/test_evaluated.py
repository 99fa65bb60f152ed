"""``headroom alerts`` says when a cluster was last evaluated: a watch that ended must not read as all clear."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headroom.cli.alerts.command import EXIT_NOT_CURRENT, alerts
from headroom.operations.evaluation import fresh_ms, read_evaluations
from headroom.schemas.config import Settings, SparkSettings, StoreSettings
from headroom.schemas.tables import THROTTLE_HEADROOM
from headroom.streaming.clock import now_ms
from headroom.streaming.delta import append as delta_append
from headroom.streaming.delta.tick_table import TickTable
from headroom.streaming.store.single_instance import exclusive_jobs
from tests.unit.builders.gold_rows import gold_row
from tests.unit.cli.alerts.test_command import _event, _written
from tests.unit.streaming.store.test_single_instance import holder

DAY_MS = 86_400_000


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADROOM_STORE__PATH", str(tmp_path))
    monkeypatch.setenv("HEADROOM_CLUSTER__NAME", "orders")
    return tmp_path


def evaluated(store: Path, *ticks: tuple[str, int]) -> None:
    """Let the gold table have ticks of clusters, as a watch writes them."""
    path = str(store / THROTTLE_HEADROOM.path)
    delta_append.create(path, THROTTLE_HEADROOM)
    TickTable(path, THROTTLE_HEADROOM).append({tick: [gold_row(THROTTLE_HEADROOM, tick)] for tick in ticks})


def run(*arguments: str) -> Result:
    return CliRunner().invoke(alerts, arguments, catch_exceptions=False)


def test_while_a_watch_runs_the_first_line_says_how_old_the_answer_is(store: Path) -> None:
    _written(store, _event("a", "resolved", 1))
    evaluated(store, ("orders", now_ms() - 4000), ("orders", now_ms() - 9000))
    done = run()
    first, second = done.stdout.splitlines()
    assert first in [f"Cluster orders: last evaluated {n} s ago." for n in (4, 5, 6)]
    assert (second[:35], done.exit_code) == ("No alert is pending or firing; 1 in", 0)


def test_a_watch_that_ended_is_no_all_clear(store: Path) -> None:
    _written(store, _event("a", "resolved", 1))
    evaluated(store, ("orders", now_ms() - 780_000))
    done = run()
    assert done.exit_code == EXIT_NOT_CURRENT
    assert done.stdout.startswith("NOT EVALUATED for 13 min: the last verdict on cluster orders is of 20")
    assert "No `headroom watch` writes to this store" in done.stdout.splitlines()[0]
    structured = run("--format", "json")
    assert (json.loads(structured.stdout), structured.exit_code) == ([], EXIT_NOT_CURRENT)
    assert structured.stderr.startswith("NOT EVALUATED for 13 min")


def test_a_watch_that_was_killed_is_no_all_clear_from_that_moment_on(store: Path) -> None:
    _written(store, _event("a", "firing", 1))
    evaluated(store, ("orders", now_ms() - 4000))
    with holder(StoreSettings(path=str(store)), "alerts") as watch:
        assert run().exit_code == 0
    done, structured = run(), run("--format", "json")
    assert (done.exit_code, structured.exit_code) == (EXIT_NOT_CURRENT, EXIT_NOT_CURRENT)
    first = done.stdout.splitlines()[0]
    assert first.startswith("NOT EVALUATED for ")
    assert f"The process that evaluated it has ended (pid {watch.pid} on host " in first
    assert "No `headroom watch` writes to this store" in first
    assert [one["is_current"] for one in json.loads(structured.stdout)] == [False]


# Its cluster is out of reach, and it says so by an alert: who reads that it is dead starts a second one.
@pytest.mark.parametrize("ticks", [(), (("orders", 780_000),)])
def test_a_watch_that_runs_without_ticks_is_not_called_dead(store: Path, ticks: Sequence[tuple[str, int]]) -> None:
    evaluated(store, *((cluster, now_ms() - age_ms) for cluster, age_ms in ticks))
    with exclusive_jobs(StoreSettings(path=str(store)), ["alerts"]):
        first = run().stdout.splitlines()[0]
    assert f"A watch runs (pid {os.getpid()} on host " in first
    assert "gets no ticks of this cluster, or cannot write here: see `headroom check`" in first
    assert ("Is `headroom watch` running" in first, "No `headroom watch` writes" in first) == (False, False)
    assert "A watch runs" not in run().stdout


def test_a_store_without_verdicts_is_no_all_clear(store: Path) -> None:
    done = run()
    assert done.exit_code == EXIT_NOT_CURRENT
    assert done.stdout.startswith("NOT EVALUATED: there is no verdict on cluster orders in this store.")


@pytest.mark.parametrize("option", [(), ("--undelivered",)])
def test_without_the_table_of_events_nothing_is_known_while_a_watch_evaluates(
    store: Path, option: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADROOM_NOTIFY__LOG", "true")
    evaluated(store, ("orders", now_ms()))
    done, structured = run(*option), run(*option, "--format", "json")
    assert "No alert is known:" in done.stdout
    assert "Every receiver has every event" not in done.stdout
    assert "No alert is known:" in structured.stderr
    assert json.loads(structured.stdout) == []
    assert (done.exit_code, structured.exit_code) == (EXIT_NOT_CURRENT, EXIT_NOT_CURRENT)


def test_each_alert_says_whether_it_is_that_of_now(store: Path) -> None:
    at_ms = now_ms()
    _written(store, _event("a", "firing", at_ms), _event("b", "resolved", 1) | {"cluster": "gone"})
    evaluated(store, ("orders", at_ms), ("gone", at_ms - 3 * DAY_MS))
    done = run("--all", "--format", "json")
    shown = {one["alert_id"]: (one["evaluated_ms"], one["is_current"]) for one in json.loads(done.stdout)}
    # Of a cluster that nobody watches any more nothing is active, and nothing is asked.
    assert (shown, done.exit_code) == ({"a": (at_ms, True), "b": (None, None)}, 0)


def test_an_active_alert_of_another_cluster_that_nobody_evaluates_is_not_that_of_now(store: Path) -> None:
    at_ms = now_ms()
    _written(store, _event("a", "firing", 5) | {"cluster": "payments"})
    evaluated(store, ("orders", at_ms), ("payments", at_ms - 3 * DAY_MS))
    done = run()
    assert done.exit_code == EXIT_NOT_CURRENT
    assert "NOT EVALUATED for 72 h: the last verdict on cluster payments" in done.stdout
    assert "Cluster orders: last evaluated" in done.stdout


def test_a_verdict_from_the_future_shows_that_a_clock_is_wrong(store: Path) -> None:
    evaluated(store, ("orders", now_ms() + 3_600_000))
    done = run()
    assert done.exit_code == EXIT_NOT_CURRENT
    assert "UNKNOWN when cluster orders was last evaluated: its last verdict is 1 h ahead" in done.stdout


def test_a_verdict_is_current_for_as_long_as_an_idle_watch_may_wait_to_write_it(store: Path) -> None:
    slow = Settings(store=StoreSettings(path=str(store)), spark=SparkSettings(gold_idle_trigger_s=100.0))
    assert (fresh_ms(Settings()), fresh_ms(slow)) == (60_000, 300_000)
    evaluated(store, ("orders", 1_000_000_000))
    for age_ms, is_current in ((300_000, True), (300_001, False), (-60_000, True), (-60_001, False)):
        (found,) = read_evaluations(slow, ["orders"], 1_000_000_000 + age_ms)
        assert (found.tick_ms, found.is_current) == (1_000_000_000, is_current)
