"""Rates and list entries that no running move uses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from headroom.cli.throttle import command as throttle_commands
from headroom.cli.throttle.show import text_view
from headroom.cluster.admin.config_keys import FOLLOWER_LIST, FOLLOWER_RATE, LEADER_LIST, LEADER_RATE, LOG_DIRS_RATE
from headroom.cluster.live.throttle_state import ThrottleState
from headroom.cluster.log_dirs.describe import LogDirsReading
from headroom.cluster.model import TopicConfig
from headroom.operations.throttles.left_behind import LeftBehind, LeftList, LeftRate, left_behind
from headroom.planning.reassignments.run.owners import ThrottleOwner
from headroom.schemas.errors import HeadroomError
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
UNSET = {"run_id": None, "command": None, "process": None}


def left(view: ThrottleState, reading: LogDirsReading = NOTHING) -> LeftBehind:
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
        **UNSET,
    }
    assert found["lists"] == [{"topic": "t", "role": "leader", "key": LEADER_LIST, "entries": "9:2", **UNSET}]


def test_show_names_the_command_that_set_it(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCluster(view_of({4: OWN}, partitions=(STILL,))).install(monkeypatch)
    owners = {
        "broker 4 as leader": ThrottleOwner("r-1", "reassign run", "anna@host", runs_plan=True),
        "topic t as follower": ThrottleOwner("r-2", "throttle apply", "anna@host"),
    }
    monkeypatch.setattr(throttle_commands, "owners_or_none", lambda settings, on_note: owners)
    rows = [" ".join(line.split()) for line in run("show").stdout.splitlines()]
    assert "what key value set by" in rows
    assert f"broker 4 {LEADER_RATE} 5.00 MB/s r-1 (reassign run)" in rows
    assert f"broker 4 {FOLLOWER_RATE} 5.00 MB/s unknown" in rows
    assert f"topic t {FOLLOWER_LIST} 0:3 r-2 (throttle apply)" in rows


def test_a_journal_that_cannot_be_read_hides_nothing(monkeypatch: pytest.MonkeyPatch, store: Path) -> None:
    store.write_text("a file")
    FakeCluster(view_of({4: OWN}, partitions=(STILL,))).install(monkeypatch)
    result = run("show")
    assert (result.exit_code, "The runs that set the throttles are unknown" in result.stderr) == (0, True)
    assert "Left behind" in result.stdout


def test_show_without_leftovers_has_no_such_table(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCluster(view_of({1: OWN})).install(monkeypatch)
    assert "Left behind" not in run("show").stdout
    assert json.loads(run("show", "--format", "json").stdout)["left_behind"] == {"rates": [], "lists": []}


def test_what_a_run_in_its_pause_has_set_is_shown_as_that_of_a_running_process() -> None:
    owner = ThrottleOwner("r-1", "reassign run", "anna@host", True, True, None, "pid 7 on host h")
    found = left_behind(view_of({4: OWN}, configs=lists(None, None)), NOTHING, {"broker 4 as leader": owner})
    by_role = {rate.role: rate for rate in found.rates}
    assert (by_role["leader"].process, by_role["follower"].process) == ("pid 7 on host h", None)
    assert text_view._set_by(by_role["leader"]) == "r-1 (reassign run, running: pid 7 on host h)"
