"""Rates and list entries that no running move uses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import QueryBuilder, write_deltalake

from cli.throttle import command as throttle_commands
from cli.throttle.show.journal_runs import runs_by_subject
from cli.throttle.show.left_behind import LeftBehind, LeftList, LeftRate, left_behind
from cli.throttle.view import ThrottleView
from cluster.admin.config_keys import FOLLOWER_LIST, FOLLOWER_RATE, LEADER_LIST, LEADER_RATE, LOG_DIRS_RATE
from cluster.log_dirs.describe import LogDirsReading
from cluster.model import TopicConfig
from schemas.config import ClusterSettings, Settings, StoreSettings
from schemas.errors import HeadroomError
from tests.unit.builders import log_dirs
from tests.unit.builders.throttle_views import (
    DEFAULT,
    LISTED,
    MB,
    NONE,
    OWN,
    SILENT,
    STILL,
    UNLISTED,
    FakeCluster,
    run,
    view_of,
)

LOG_DIRS = replace(NONE, log_dirs_bytes_per_s=6 * MB, log_dirs_source="broker")
NOTHING = LogDirsReading({}, {})


def left(view: ThrottleView, reading: LogDirsReading = NOTHING) -> LeftBehind:
    return left_behind(view, reading, {})


def lists(leader: str | None, follower: str | None) -> dict[str, TopicConfig]:
    return {"t": TopicConfig(leader, follower, compacted=False), "still": UNLISTED}


def test_without_a_move_every_rate_of_a_broker_and_every_list_is_left_behind() -> None:
    found = left(view_of({1: OWN, 2: SILENT}, partitions=(STILL,), configs={"still": LISTED}))
    assert found.rates == (LeftRate(1, "leader", LEADER_RATE, 5 * MB), LeftRate(1, "follower", FOLLOWER_RATE, 5 * MB))
    assert found.lists == (
        LeftList("still", "leader", LEADER_LIST, "0:1,0:2"),
        LeftList("still", "follower", FOLLOWER_LIST, "0:3"),
    )


def test_a_rate_is_in_use_where_a_move_takes_part() -> None:
    # t-0 moves on brokers 1 to 3; broker 4 has no part in it.
    found = left(view_of(dict.fromkeys((1, 2, 3, 4), OWN)))
    assert [(rate.broker, rate.role) for rate in found.rates] == [(4, "leader"), (4, "follower")]
    assert found.lists == ()


def test_entries_of_partitions_that_do_not_move_are_left_behind() -> None:
    found = left(view_of(configs=lists("0:1,0:2,7:1,8:2", "0:3")))
    assert found.lists == (LeftList("t", "leader", LEADER_LIST, "7:1,8:2"),)


def test_a_list_of_every_replica_is_in_use_as_long_as_its_topic_moves() -> None:
    assert left(view_of(configs=lists("*", None))).lists == ()
    resting = {"t": UNLISTED, "still": TopicConfig("*", None, compacted=False)}
    assert left(view_of(configs=resting)).lists == (LeftList("still", "leader", LEADER_LIST, "*"),)


def test_the_cluster_default_is_left_behind_only_together_with_lists() -> None:
    rates = dict.fromkeys((1, 2, 3, 4), DEFAULT)
    assert left(view_of(rates, partitions=(STILL,), configs={"still": UNLISTED}, default=DEFAULT)).rates == ()
    found = left(view_of(rates, partitions=(STILL,), configs={"still": LISTED}, default=DEFAULT))
    assert found.rates == (LeftRate(None, "leader", LEADER_RATE, 7 * MB),)


def test_the_rate_between_log_directories_is_in_use_while_a_log_is_copied() -> None:
    view = view_of({1: LOG_DIRS, 2: LOG_DIRS, 3: LOG_DIRS})
    moving = log_dirs.logs(1, {log_dirs.ORDERS: ("/a", 9)}, {log_dirs.ORDERS: ("/b", 2)})
    silent = HeadroomError("broker 3", "did not report its log directories", "Look.")
    found = left(view, LogDirsReading({1: moving, 2: log_dirs.logs(2, {log_dirs.ORDERS: ("/a", 9)})}, {3: silent}))
    # Of broker 3 nothing is known.
    assert found.rates == (LeftRate(2, "log_dirs", LOG_DIRS_RATE, 6 * MB),)


def test_show_names_what_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCluster(view_of({4: OWN}, configs=lists("0:1,9:2", "0:3"))).install(monkeypatch)
    rows = [" ".join(line.split()) for line in run("show").stdout.splitlines()]
    assert "Left behind: no running move uses" in rows
    assert f"broker 4 {LEADER_RATE} 5.00 MB/s" in rows
    assert f"topic t {LEADER_LIST} 9:2" in rows
    found = json.loads(run("show", "--format", "json").stdout)["left_behind"]
    assert found["rates"][0] == {
        "broker": 4,
        "role": "leader",
        "key": LEADER_RATE,
        "bytes_per_s": 5 * MB,
        "run_id": None,
    }
    assert found["lists"] == [{"topic": "t", "role": "leader", "key": LEADER_LIST, "entries": "9:2", "run_id": None}]


def journal(store: Path, *steps: tuple[str, str, str, str]) -> Settings:
    """Write steps of (run, subject, step, state), one a second, and return settings that name the store."""
    rows = ", ".join(
        f"('{run_id}', {seq}, 'orders', '{step}', '{state}', '{subject}', {seq * 1000})"
        for seq, (run_id, subject, step, state) in enumerate(steps)
    )
    names = 'run_id, seq, "cluster", step, state, subject, at_ms'
    made = QueryBuilder().execute(f"SELECT * FROM (VALUES {rows}) AS t({names})").read_all()
    write_deltalake(str(store / "actions/journal"), made)
    return Settings(cluster=ClusterSettings(name="orders"), store=StoreSettings(path=str(store)))


def test_the_journal_names_the_newest_run_that_has_not_taken_its_change_back(tmp_path: Path) -> None:
    settings = journal(
        tmp_path,
        ("old", "broker 1 as leader", "rate", "done"),
        ("old", "broker 2 as leader", "rate", "done"),
        ("old", "topic t as leader", "list", "intended"),
        ("new", "broker 2 as leader", "rate", "intended"),
        ("new", "broker 2 as leader", "rate", "done"),
        # What the newer run has added to the list it has removed; the entries of the older one are still there.
        ("new", "topic t as leader", "list", "done"),
        ("new", "topic t as leader", "list", "undone"),
        ("old", "broker 1 as leader", "rate", "undone"),
        ("new", "t-0", "submit", "done"),
        ("new", "broker 3 as leader", "rate", "failed"),
    )
    assert runs_by_subject(settings) == {"broker 2 as leader": "new", "topic t as leader": "old"}
    assert runs_by_subject(Settings(store=settings.store)) == {}
    assert runs_by_subject(Settings(store=StoreSettings(path=str(tmp_path / "none")))) == {}


def test_show_names_the_run_that_set_it(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCluster(view_of({4: OWN}, partitions=(STILL,))).install(monkeypatch)
    runs = {"broker 4 as leader": "r-1", "topic t as follower": "r-2"}
    monkeypatch.setattr(throttle_commands, "runs_by_subject", lambda settings: runs)
    rows = [" ".join(line.split()) for line in run("show").stdout.splitlines()]
    assert "what key value set by run" in rows
    assert f"broker 4 {LEADER_RATE} 5.00 MB/s r-1" in rows
    assert f"broker 4 {FOLLOWER_RATE} 5.00 MB/s unknown" in rows
    assert f"topic t {FOLLOWER_LIST} 0:3 r-2" in rows


def test_a_journal_that_cannot_be_read_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(settings: Settings) -> dict[str, str]:
        raise HeadroomError("the journal", "cannot be read", "Look.")

    FakeCluster(view_of({4: OWN}, partitions=(STILL,))).install(monkeypatch)
    monkeypatch.setattr(throttle_commands, "runs_by_subject", broken)
    result = run("show")
    assert (result.exit_code, "The runs that set the throttles are unknown" in result.stderr) == (0, True)
    assert "Left behind" in result.stdout


def test_show_without_leftovers_has_no_such_table(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCluster(view_of({1: OWN})).install(monkeypatch)
    assert "Left behind" not in run("show").stdout
    assert json.loads(run("show", "--format", "json").stdout)["left_behind"] == {"rates": [], "lists": []}
