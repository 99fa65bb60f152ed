"""``headroom migration run``, ``shield`` and ``cancel``: what they print, their JSON, and their exit codes."""

from __future__ import annotations

import json
import os
import socket
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from headroom.cli.config.load import load_settings
from headroom.cli.migration import verify as verify_command
from headroom.cli.migration.running import run as run_command
from headroom.cli.migration.running import status as status_command
from headroom.cli.migration.running.run_view import print_run
from headroom.operations.migration import verification
from headroom.operations.migration.running import changing
from headroom.operations.migration.running.status import migration_status
from headroom.operations.migration.running.under_way import noted_run, run_under_way
from headroom.operations.migration.running.watch import MigrationWatch
from headroom.planning.migration.run.next_step import RunGoal
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MIGRATIONS_TOPIC, AcknowledgedEnd, RouterReport
from tests.support.migrations import run, set_both_clusters
from tests.unit.fakes.kafka_clients import Stored
from tests.unit.fakes.migration_clusters import clusters_of
from tests.unit.fakes.migration_stage import BEGAN_MS, ORDERS, MigrationStage, StageStop

ROUTED = ("run", "orders", "--name", "move", "--method", "routed", "--router", "writer", "--router", "reader")


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> MigrationStage:
    stage = MigrationStage().connect(monkeypatch)

    @contextmanager
    def clusters(settings: Any) -> Any:
        yield stage.running()

    @contextmanager
    def stopping(first: str) -> Any:
        yield StageStop(stage)

    watch = partial(MigrationWatch, clock_s=lambda: stage.now_s, clock_ms=lambda: BEGAN_MS + round(stage.now_s * 1000))
    for name, value in {"running_clusters": clusters, "stopping": stopping, "MigrationWatch": watch}.items():
        monkeypatch.setattr(run_command, name, value)
    monkeypatch.setattr(status_command, "running_clusters", clusters)
    status = partial(migration_status, sleep=stage.go_on, clock_ms=lambda: BEGAN_MS + round(stage.now_s * 1000))
    monkeypatch.setattr(status_command, "migration_status", lambda *given: status(*given[:5]))
    monkeypatch.setattr(changing, "MigrationCluster", lambda kafka, name: stage.target)
    monkeypatch.chdir(tmp_path)
    set_both_clusters(monkeypatch, MIGRATION__PREPARE="20")
    return stage


def printed(*words: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(run(*words, "--format", "json").stdout)
    return values


def words_of(result: Result) -> str:
    return " ".join(result.stdout.split())


def test_without_execute_a_run_shows_the_plan_and_changes_nothing(stage: MigrationStage) -> None:
    stage.origin.kafka_settings["orders"] = {"retention.ms": "1000"}
    result = run(*ROUTED)
    assert result.exit_code == 0, result.output
    text = words_of(result)
    assert "orders: 2 partitions, from old to new, routed." in text
    assert "Creates orders on the target: 2 partitions, 3 replicas, retention.ms=1000." in text
    assert "Starts once these have agreed: writer, reader." in text
    assert "Runs until the origin has reached its end offsets." in text
    command = " ".join(["headroom migration", *ROUTED, "--execute"])
    assert f"Nothing was changed. To do it: {command}" in text
    assert (stage.target.created, stage.agreed(), stage.rows) == ([], {}, [])
    values = printed(*ROUTED)
    assert values["creates"] == [
        {"name": "orders", "partitions": 2, "replicas": 3, "settings": {"retention.ms": "1000"}}
    ]
    assert (values["executed"], values["partitions"], values["plan"]["forbidden"]) == (False, [], False)


def test_what_forbids_it_is_shown_and_is_exit_code_1(stage: MigrationStage) -> None:
    stage.origin.stables = dict.fromkeys(ORDERS, 90)
    result = run(*ROUTED)
    assert result.exit_code == 1
    assert "Something forbids the migration." in result.stdout
    assert "To do it" not in result.stdout


def test_with_execute_it_runs_to_its_goal(stage: MigrationStage) -> None:
    result = run(*ROUTED, "--execute")
    assert result.exit_code == 0, result.output
    text = words_of(result)
    assert "orders-0 migrated 350 0 1 0 yes" in text
    assert "2 of 2 partitions are there: the origin has reached its end offsets." in text
    again = printed(*ROUTED, "--execute")
    assert (again["executed"], again["failed"], again["stopped"]) == (True, None, False)
    first = again["partitions"][0]
    assert (first["status"], first["end_offset"], first["left_offsets"], first["switch_in_s"]) == (
        "migrated",
        350,
        0,
        0,
    )


def test_with_its_parent_it_ends_when_that_does(stage: MigrationStage, monkeypatch: pytest.MonkeyPatch) -> None:
    stops: list[Any] = []
    monkeypatch.setattr(run_command, "end_with_parent", stops.append)
    assert run(*ROUTED).exit_code == 0
    assert stops == []
    assert run(*ROUTED, "--with-parent").exit_code == 0
    assert isinstance(stops[0], StageStop)


def test_a_run_that_is_under_way_is_named_and_refuses_others_that_ask_for_that(stage: MigrationStage) -> None:
    other = ("run", "orders", "--name", "other", "--method", "routed", "--router", "writer")
    with noted_run(load_settings(None), "move", False, print):
        first = f"pid {os.getpid()} on host {socket.gethostname()} since "
        result = run(*ROUTED)
        assert result.exit_code == 0, result.output
        assert f"A run of this migration is under way: {first}" in words_of(result)
        assert "A second one ends it at its next change." in words_of(result)
        assert printed(*ROUTED)["under_way"].startswith(first)
        assert printed(*other)["under_way"] is None
        for words in (("--unless-running",), ("--unless-running", "--execute")):
            refused = run(*ROUTED, *words)
            assert isinstance(refused.exception, HeadroomError)
            assert f"a run of it is under way, {first}" in str(refused.exception)
        assert stage.agreed() == {}
        result = run(*ROUTED, "--execute")
        assert result.exit_code == 0, result.output
        assert "Note: Another run of migration move is under way, and ends at its next change" in result.stderr
    assert printed(*ROUTED)["under_way"] is None
    result = run(*ROUTED, "--unless-running", "--execute")
    assert (result.exit_code, "under way" in result.output) == (0, False)
    assert "--unless-running --execute" in words_of(run(*ROUTED, "--unless-running"))


def test_a_run_is_named_while_it_lasts(stage: MigrationStage) -> None:
    seen: list[str | None] = []
    stage.before_wait = lambda at: seen.append(run_under_way(load_settings(None), "move"))
    assert run(*ROUTED, "--execute").exit_code == 0
    assert seen
    assert all(f"pid {os.getpid()} " in str(process) for process in seen)


def test_what_was_agreed_is_shown_with_its_next_step(stage: MigrationStage) -> None:
    stage.run(goal=RunGoal.STARTED)
    result = run(*ROUTED, "--until", "aged", "--drop")
    assert result.exit_code == 0, result.output
    text = words_of(result)
    assert "Agreed in the migration move" in text
    assert "waits for" in text
    assert "Then deletes on the origin: orders, once all groups have passed." in text
    assert "--until aged --drop --execute" in text
    assert "waits for" in printed(*ROUTED)["partitions"][0]["next"]


def test_a_run_that_ends_before_its_goal_shows_where_it_is_and_fails(stage: MigrationStage) -> None:
    stage.run()
    stage.origin.ends, stage.offsets_per_s = dict.fromkeys(ORDERS, 340), 0.0
    result = run(*ROUTED, "--until", "aged", "--execute")
    assert isinstance(result.exception, HeadroomError)
    assert "has lost 10 records on the origin" in str(result.exception)
    assert "orders-0 migrated 350 0 1 10 unknown" in words_of(result)
    assert printed(*ROUTED, "--until", "aged", "--execute")["failed"]["subject"] == "orders-0"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("run", "orders", "--name", "move"), "Missing option '--method'"),
        (("run", "orders", "--method", "drained"), "Missing option '--name'"),
        (("run", "--name", "move", "--method", "drained"), "Missing argument"),
        (("run", "orders", "--name", "move", "--method", "drained", "--router", "a"), "--router has no effect"),
        (("run", "orders", "--name", "move", "--method", "drained", "--drop"), "give --until aged too"),
        (("run", "orders", "--name", "move", "--method", "drained", "--end-here"), "--end-here has no effect"),
        ((*ROUTED, "--end-here", "--until", "started"), "--until started ends before that"),
        (("shield",), "Missing option '--name'"),
        (("cancel",), "Missing option '--name'"),
    ],
)
def test_wrong_arguments_are_a_usage_error(words: tuple[str, ...], expected: str) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert expected in result.stderr


def test_a_shield_is_set_and_cleared_without_a_call_to_the_origin(stage: MigrationStage) -> None:
    stage.run(goal=RunGoal.STARTED)
    stage.origin.calls = 0
    result = run("shield", "--name", "move")
    assert result.exit_code == 0, result.output
    assert "To do it: headroom migration shield --name move --execute" in result.stdout
    assert not any(one.shielded for one in stage.agreed().values())
    result = run("shield", "--name", "move", "--execute")
    assert "Changed: 2 of 2 partitions." in result.stdout
    assert all(one.shielded for one in stage.agreed().values())
    assert "Nothing is to be changed." in run("shield", "--name", "move", "--execute").stdout
    assert printed("shield", "--name", "move", "--off", "--execute")["executed"]
    assert not any(one.shielded for one in stage.agreed().values())
    assert stage.origin.calls == 0
    assert [row.command for row in stage.rows[-1:]] == ["migration shield"]


def test_planned_partitions_are_withdrawn_and_others_are_refused(stage: MigrationStage) -> None:
    stop = StageStop(stage)
    stop.is_stopped = False

    def stop_late(at: MigrationStage) -> None:
        stop.is_stopped = bool(at.agreed())

    stage.before_wait, stage.routers = stop_late, ()
    stage.run(routers=("writer",), stop=stop)
    assert len(stage.agreed()) == 2
    assert printed("cancel", "--name", "move")["changed"] == [
        {"topic": "orders", "partition": 0},
        {"topic": "orders", "partition": 1},
    ]
    assert len(stage.agreed()) == 2
    result = run("cancel", "--name", "move", "--execute")
    assert result.exit_code == 0, result.output
    assert (stage.agreed(), stage.rows[-1].after, stage.rows[-1].command) == ({}, None, "migration cancel")
    stage.before_wait, stage.routers = lambda at: None, ("writer",)
    stage.target.logs = {name: log for name, log in stage.target.logs.items() if name.topic == MIGRATIONS_TOPIC}
    stage.run(goal=RunGoal.STARTED)
    before = stage.agreed()
    result = run("cancel", "--name", "move", "--execute")
    assert "their offsets count on from there" in str(result.exception)
    assert stage.agreed() == before


def test_other_commands_do_not_call_an_origin_that_is_shielded(stage: MigrationStage) -> None:
    stage.run(goal=RunGoal.STARTED)
    run("shield", "--name", "move", "--execute")
    stage.origin.calls = 0
    for words in (("plan", "orders"), ("verify", "orders"), ("offsets", "--group", "billing")):
        assert "is shielded: its origin is not called" in str(run(*words).exception)
    result = run("status")
    assert result.exit_code == 0, result.output
    assert "shielded" in result.stdout
    assert stage.origin.calls == 0


def test_the_status_has_each_partition_with_its_reason_and_each_router(stage: MigrationStage) -> None:
    assert "No partition of these topics is in a migration" in run("status").stdout
    stage.run(goal=RunGoal.STARTED)
    stage.origin.group_states, stage.origin.offsets = {"billing": True}, {"billing": {ORDERS[0]: 50}}
    result = run("status", "--name", "move")
    assert result.exit_code == 0, result.output
    text = words_of(result)
    position = stage.origin.end_of(ORDERS[0])
    left = 350 - position
    assert f"orders-0 migrating routed 350 {position} {left} 10.0/s" in text
    assert "on_plan" in text
    assert "move reader producer all agreed, 1" in text
    values = printed("status", "orders")
    first = values["partitions"][0]
    assert (first["verdict"], first["end_offset"], first["removable"]) == ("on_plan", 350, False)
    assert first["groups"][0]["group"] == "billing"
    assert [router["missing"] for router in values["routers"]] == [False, False]
    assert printed("status", "payments")["partitions"] == []
    stage.origin.down = True
    down = printed("status")["partitions"][0]
    assert (down["origin_up"], down["left_offsets"], down["verdict"]) == (False, None, "no_data")


def test_a_log_that_never_gets_to_its_end_gets_a_nearer_one_by_the_command_of_the_status(
    stage: MigrationStage,
) -> None:
    stage.run(goal=RunGoal.STARTED)
    assert "--end-here" not in run("status").stdout
    stage.offsets_per_s = 0.0
    stage.go_on(1.0)
    result = run("status")
    assert result.exit_code == 1
    command = "headroom migration run orders --name move --method routed --end-here"
    assert f"$ {command}" in result.stdout
    assert "\\n" not in result.stdout
    position = stage.origin.end_of(ORDERS[0])
    ended = run(*command.split()[2:], "--execute")
    assert ended.exit_code == 0, ended.output
    assert f"end offset {position:,} is to be agreed instead of 350, agreement 2" in ended.stderr
    assert {(one.status, one.end_offset) for one in stage.agreed().values()} == {("migrated", position)}


def test_an_end_that_is_open_again_is_shown_and_not_withdrawn(
    stage: MigrationStage, capsys: pytest.CaptureFixture[str]
) -> None:
    stage.run(goal=RunGoal.STARTED)
    stage.offsets_per_s, stop = 0.0, StageStop(stage)

    def stop_when_open(at: MigrationStage) -> None:
        stop.is_stopped = at.agreed()[ORDERS[0]].reopened_end is not None
        at.routers = () if stop.is_stopped else at.routers

    stage.before_wait = stop_when_open
    stage.run(end_here=True, stop=stop, routers=("writer",))
    before = stage.agreed()
    assert {(one.status, one.reopened_end) for one in before.values()} == {("planned", 350)}
    result = run("cancel", "--name", "move", "--execute")
    assert "is planned again: clients may have passed its end offset" in str(result.exception)
    assert stage.agreed() == before
    first = printed("run", "orders", "--name", "move", "--method", "routed")["partitions"][0]
    assert (first["reopened_end"], first["next"]) == (350, "waits for routers to agree: writer")
    status = words_of(run("status"))
    assert "until a run goes on, producers hold what lands from" in status
    assert "If no run is under way: $ headroom migration run orders --name move --method routed" in status
    assert "--end-here" not in status
    # A run that goes on with it, and is ended again.
    again = StageStop(stage)
    stage.before_wait = lambda at: setattr(again, "is_stopped", True)
    capsys.readouterr()
    print_run(stage.run(stop=again, routers=("writer",)))
    text = capsys.readouterr().out
    assert "Do not leave it like this: until a run has put their nearer end offsets in force" in text
    assert "orders-0, orders-1" in text


def test_the_status_shows_what_a_leader_switch_has_lost_or_would(stage: MigrationStage) -> None:
    stage.run(goal=RunGoal.STARTED)
    stage.offsets_per_s = 1.0
    # No rate of a leader's log end, so that nothing is known of what only the leader has.
    assert printed("status")["partitions"][0]["could_lose"] is None
    stage.origin.leader_epochs = dict.fromkeys(ORDERS, 4)
    first = printed("status")["partitions"][0]
    assert (first["at_risk_offsets"], first["could_lose"]) == (0, 0)
    # Epoch 3 acknowledged up to 120, and the log of the new leader has it up to 110.
    end = AcknowledgedEnd("orders", 0, 3, 120)
    report = RouterReport("writer", "writer", "producer", "1", agreed={"move": 1}, acknowledged=(end,))
    stage.topic.logs[TopicPartition(MIGRATIONS_TOPIC, 0)].append(Stored(report.key(), report.value()))
    stage.routers, stage.origin.ended = ("reader",), {ORDERS[0]: {3: 110}}
    result = run("status", "orders")
    assert result.exit_code == 1
    assert "orders-0 lost The origin's log no longer has 10 acknowledged offsets below E 350." in words_of(result)
    assert "move writer producer 1 agreed, 1" in words_of(result)
    assert printed("status")["partitions"][0]["could_lose"] == 10


def test_verify_looks_on_the_target_for_what_landed_behind_the_end(
    stage: MigrationStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def clusters(settings: Any) -> Any:
        yield clusters_of(stage.origin, stage.target)

    monkeypatch.setattr(verify_command, "migration_clusters", clusters)
    monkeypatch.setattr(verification, "_MOVED_S", 0.0)
    stage.run()
    assert {one.end_offset for one in stage.agreed().values()} == {350}
    stage.origin.ends.clear()
    for name in ORDERS:
        stage.origin.fill(name.topic, name.partition, range(355))
        stage.target.fill(name.topic, name.partition, [900, *range(350, 355)])
    assert run("verify", "orders").exit_code == 0
    assert "10 records of the origin from the end offsets on are on the target, each once." in words_of(
        run("verify", "orders")
    )
    # A client that is none of the routers wrote these.
    stage.origin.fill("orders", 1, range(357))
    result = run("verify", "orders")
    assert result.exit_code == 1
    assert "orders-1 5 2 0" in words_of(result)
    assert "Not all are moved: 2 missing; 10 records of the origin from the end offsets on are on the target." in (
        words_of(result)
    )
    values = printed("verify", "orders")
    assert (values["from_end_offset"], values["whole"], values["total"]["missing"]) == (True, False, 2)
    assert values["partitions"][0]["origin"] == {"begin": 350, "end": 355}


def test_an_unknown_migration_is_an_error(stage: MigrationStage) -> None:
    for command in ("shield", "cancel"):
        assert "has no partitions in headroom.migrations" in str(run(command, "--name", "other").exception)


@pytest.mark.parametrize("words", [("--name", ""), ("--name", " "), ("--router", ""), ("--router", "a\nb")])
def test_a_name_that_is_none_is_a_usage_error(stage: MigrationStage, words: tuple[str, str]) -> None:
    """Such a router would be waited for, and never come."""
    result = run(*ROUTED, *words, "--execute")
    assert result.exit_code == 2
    assert "is not a name" in result.stderr
    assert stage.agreed() == {}


@pytest.mark.parametrize("option", ["--accept-loss", "--ignore-origin"])
def test_what_may_be_given_up_is_shown_beforehand_also_once_the_goal_is_reached(
    stage: MigrationStage, option: str
) -> None:
    stage.run()
    stage.origin.ends |= dict.fromkeys(ORDERS, 340)
    stage.offsets_per_s = 0.0
    first = printed(*ROUTED, option)["partitions"][0]
    expected = {"--ignore-origin": "becomes aged", "--accept-loss": "waits for the origin's log"}[option]
    assert first["next"].startswith(expected)
