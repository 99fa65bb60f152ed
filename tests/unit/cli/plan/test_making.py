"""``headroom plan`` makes a plan from a saved state, and cuts it into batches and their files."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner, Result

from headroom.cli.plan.command import plan as plan_command
from headroom.cluster.reassignment.execution.control import ClusterControl, RunOutput, RunPolicy
from headroom.cluster.reassignment.execution.run_journal import RunJournal
from headroom.cluster.reassignment.execution.throttling import RunThrottle
from headroom.dashboard.acting.allowed import PLAN_FILE, AllowedCommand, allowed_command
from headroom.operations.plans.state_file import write_state
from headroom.operations.reassignments.plan_files import read_batches, whole_plan
from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState, LogDirectory
from headroom.planning.reassignments.plan import plan_part
from headroom.planning.reassignments.run.changes import batch_changes
from headroom.planning.reassignments.run.orders_first import with_leads_given_up
from headroom.planning.reassignments.run.record import RecordedRun
from headroom.planning.reassignments.run.snapshot import RateInForce, RunSnapshot
from headroom.schemas.keys import BrokerRate, BrokerRole, Role
from tests.support.random_placements import cluster_state, placement

Plan = Callable[..., Result]


@pytest.fixture
def state() -> ClusterState:
    """Six partitions of 10 MB and 1 MB/s on brokers 0 and 1; brokers 2 and 3 are empty."""
    partitions = [placement("foo", n, [n % 2, 1 - n % 2], 10_000_000, 1e6) for n in range(6)]
    return cluster_state([0, 1, 2, 3], partitions)


@pytest.fixture
def plan(state: ClusterState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Runs the command with the state in an empty folder."""
    monkeypatch.chdir(tmp_path)
    write_state(Path("state.json"), state)

    def run(*options: str) -> Result:
        return CliRunner().invoke(plan_command, ["--state", "state.json", *options])

    return run


def json_of(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def files(folder: str = "out") -> dict[str, Any]:
    return {path.name: json.loads(path.read_text()) for path in sorted(Path(folder).iterdir())}


def test_a_drained_broker_gives_up_its_leads_in_a_batch_that_copies_nothing(plan: Plan) -> None:
    found = json_of(plan("--drain", "0", "--format", "json"))
    first, second = found["batches"]
    assert [first["leads_first"], first["throttle_bytes_per_s"], first["partitions"]] == [True, None, 3]
    assert {tuple(entry["replicas"]) for entry in first["plan"]["partitions"]} == {(1, 0)}
    assert [second["leads_first"], second["partitions"]] == [False, 6]
    assert all(0 not in entry["replicas"] for entry in second["plan"]["partitions"])
    assert found["copied_bytes"] == 60_000_000


def test_batches_fit_the_largest_throttle_and_have_files(plan: Plan) -> None:
    options = ("--drain", "0", "--max-throttle", "6MB", "--batches-dir", "out")
    found = json_of(plan(*options, "--format", "json"))
    copying = [batch for batch in found["batches"] if not batch["leads_first"]]
    # Broker 1 leads all six: 1 MB/s to two followers each, and 6 / 1.2 = 5 MB/s are two of them.
    assert [batch["partitions"] for batch in copying] == [2, 2, 2]
    assert {batch["required_bytes_per_s"] for batch in copying} == {4e6}
    assert {batch["throttle_bytes_per_s"] for batch in copying} == {6_000_000}
    assert [(option["batches"], option["fits"]) for option in found["batch_options"]] == [
        (1, False),
        (2, False),
        (3, True),
        (4, True),
        (6, True),
    ]
    written = files()
    assert list(written) == ["batch-01.json", "batch-02.json", "batch-03.json", "batch-04.json", "rollback.json"]
    assert [written[f"batch-0{batch['number']}.json"] for batch in found["batches"]] == [
        batch["plan"] for batch in found["batches"]
    ]
    assert written["rollback.json"] == found["rollback"]


def test_text_shows_batches_and_what_others_would_cost(plan: Plan) -> None:
    found = plan("--drain", "0", "--max-throttle", "6MB", "--window", "22:00-06:00 Europe/Berlin")
    assert found.exit_code == 0, found.output
    assert "The first batch copies nothing" in found.output
    assert "3 batches with copies:" in found.output
    assert "3 (chosen)" in found.output
    assert "Fewer and more batches" in found.output


def test_a_time_that_is_not_kept_is_said_with_a_throttle_that_would_be_enough(plan: Plan) -> None:
    found = plan("--drain", "0", "--max-throttle", "6MB", "--finish-within", "8s", "--batches", "auto")
    assert found.exit_code == 0, found.output
    assert "The time is not kept:" in found.output
    assert "would be enough for these" in found.output


def test_a_plan_file_is_cut_too(plan: Plan) -> None:
    json_of(plan("--to-brokers", "0,1,2,3", "--save-plan", "move.json", "--format", "json"))
    whole = json.loads(Path("move.json").read_text())["partitions"]
    found = json_of(plan("move.json", "--batches", "2", "--format", "json"))
    parts = [entry for batch in found["batches"] for entry in batch["plan"]["partitions"]]
    assert len(found["batches"]) == 2
    assert sorted(map(json.dumps, parts)) == sorted(map(json.dumps, whole))


def test_topics_come_from_a_file_too(plan: Plan) -> None:
    Path("topics.json").write_text('{"topics":[{"topic":"foo"}],"version":1}')
    by_file = json_of(plan("--topics-file", "topics.json", "--replication-factor", "3", "--format", "json"))
    assert by_file == json_of(plan("--topics", "foo", "--replication-factor", "3", "--format", "json"))
    assert by_file["partitions"] == 6


def test_a_topic_that_a_file_names_twice_is_refused(plan: Plan) -> None:
    Path("topics.json").write_text('{"topics":[{"topic":"foo"},{"topic":"foo"}],"version":1}')
    found = plan("--topics-file", "topics.json", "--replication-factor", "3")
    assert "topics.json: names foo more than once" in str(found.exception)


def test_what_was_written_and_the_command_that_carries_it_out_are_shown(plan: Plan) -> None:
    found = plan("--drain", "0", "--max-throttle", "6MB", "--batches-dir", "out dir", "--save-plan", "move.json")
    assert found.exit_code == 0, found.output
    lines = found.output.splitlines()
    assert "Wrote 4 batch files and rollback.json to out dir." in lines
    assert "Wrote the plan to move.json." in lines
    # The throttle is not enough for all of it at once, so the file of the whole plan has no command.
    (command,) = (line for line in lines if line.startswith("To carry it out"))
    assert command.endswith(": headroom reassign run --batches-dir 'out dir' --throttle 6000000 --execute")


def test_the_command_of_what_was_written_is_in_the_json(plan: Plan) -> None:
    found = json_of(plan("--drain", "0", "--max-throttle", "6MB", "--batches-dir", "out", "--format", "json"))
    assert found["next_commands"] == ["headroom reassign run --batches-dir out --throttle 6000000 --execute"]
    late = ("--max-throttle", "6MB", "--finish-within", "8s", "--batches", "auto", "--batches-dir", "late")
    assert json_of(plan("--drain", "0", *late, "--format", "json"))["next_commands"] == []
    # An order that changes copies nothing, and needs no throttle.
    order = json_of(plan("--reorder", "--topics", "foo", "--save-plan", "order.json", "--format", "json"))
    assert order["batches"] == [] or order["next_commands"] == ["headroom reassign run order.json --execute"]


def test_exit_codes_say_whether_it_fits_where_that_is_asked_for(plan: Plan, state: ClusterState) -> None:
    code = "--detailed-exitcode"
    assert plan("--drain", "0", code).exit_code == 0
    assert plan("--drain", "3", code).exit_code == 0
    late = ("--drain", "0", "--max-throttle", "6MB", "--finish-within", "8s", "--batches", "auto")
    assert (plan(*late).exit_code, plan(*late, code).exit_code) == (0, 4)
    assert plan("--drain", "0", "--finish-within", "8s", code).exit_code == 0
    unknown = {name: replace(p, write_bytes_per_s=None) for name, p in state.partitions.items()}
    write_state(Path("state.json"), replace(state, partitions=unknown))
    assert plan("--drain", "0", "--batches", "1", code).exit_code == 5
    made = json_of(plan("--drain", "0", "--batches", "1", "--batches-dir", "out", "--format", "json"))
    assert (made["fits"], made["next_commands"]) == (None, [])


def test_a_request_that_is_fulfilled_changes_nothing(plan: Plan) -> None:
    assert "nothing has to change" in plan("--drain", "3").output
    found = json_of(plan("--drain", "3", "--format", "json"))
    assert (found["batches"], found["rollback"]["partitions"]) == ([], [])
    assert (found["finish_s"], found["never_finishes"], found["fits"]) == (0.0, False, True)


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--drain", "0", "--in-flight"), 2, "Give a plan FILE"),
        (("--topics", "foo"), 2, "Say what is wanted"),
        (("--in-flight", "--batches", "2"), 2, "cannot be cut"),
        (("--replace", "0"), 2, "'0' is not OLD:NEW"),
        (("--replace", "0:2,0:3"), 2, "each old broker once"),
        (("--drain", "0", "--batches", "0"), 2, "at least 1, or auto"),
        (("--drain", "0", "--window", "22:00"), 2, "'22:00' is not a window of the day"),
        (("--drain", "0", "--topics", "bar"), 1, "topic bar: does not exist"),
        (("--drain", "9"), 1, "broker 9: does not exist"),
        (("--drain", "0", "--max-throttle", "2MB"), 1, "in a batch of its own"),
        (("--drain", "0", "--topics-file", "state.json"), 1, "not a list of topics"),
        (("--drain", "0", "--topics-file", "none.json"), 1, "cannot be read"),
        (("--drain", "0", "--save-plan", "state.json"), 1, "exists and is not a reassignment plan"),
    ],
)
def test_wrong_options_are_refused(plan: Plan, options: tuple[str, ...], code: int, said: str) -> None:
    found = plan(*options)
    assert (found.exit_code, said in found.output + str(found.exception)) == (code, True), found.output


def test_files_of_other_plans_are_kept(plan: Plan) -> None:
    """The rollback of a plan that is carried out already may be the only way back from it."""
    out = ("--batches-dir", "out")
    json_of(plan("--drain", "0", *out, "--batches", "3", "--format", "json"))
    json_of(plan("--drain", "0", *out, "--batches", "3", "--format", "json"))
    before = files()
    other = plan("--to-brokers", "0,1,2,3", "--batches", "4", *out)
    assert "rollback.json: restores the replicas of another plan" in str(other.exception)
    fewer = plan("--drain", "0", *out, "--batches", "2")
    assert "batch-04.json: is a batch of another plan" in str(fewer.exception)
    Path("out/batch-01.json").write_text("{}")
    assert "exists and is not a reassignment plan" in str(plan("--drain", "0", *out, "--batches", "3").exception)
    Path("out/batch-01.json").write_text(json.dumps(before["batch-01.json"]))
    assert files() == before


def test_the_result_is_written_as_json_beside_the_text(plan: Plan) -> None:
    options = ("--drain", "0", "--max-throttle", "6MB", "--batches-dir", "out")
    found = plan(*options, "--save-result", "result.json")
    assert found.exit_code == 0, found.output
    assert "To carry it out" in found.output
    assert json.loads(Path("result.json").read_text()) == json_of(plan(*options, "--format", "json"))
    # Once more replaces it, but no file of another kind.
    assert plan("--drain", "0", "--save-result", "result.json").exit_code == 0
    refused = plan("--drain", "0", "--save-result", "state.json")
    assert "state.json: exists and is not the result of a plan" in str(refused.exception)


def test_a_request_that_is_fulfilled_has_a_result_too(plan: Plan) -> None:
    assert plan("--topics", "foo", "--replication-factor", "2", "--save-result", "result.json").exit_code == 0
    result = json.loads(Path("result.json").read_text())
    assert (result["batches"], "next_commands" in result) == ([], False)


@pytest.mark.parametrize("rate", [("--throttle", "20MB"), ("--max-throttle", "6MB"), ()])
def test_what_the_page_makes_is_carried_out_as_the_plan_says(plan: Plan, tmp_path: Path, rate: tuple[str, ...]) -> None:
    command = allowed_command(" ".join(["headroom", "plan", "--drain", "0", *rate]), None)
    assert command is not None
    found = plan(*command.look(tmp_path)[1:])
    assert found.exit_code == 0, found.output
    result = json.loads((tmp_path / "result.json").read_text())
    change = command.change(tmp_path)
    assert change is not None
    run = " ".join(["headroom", *change[:-4]])
    assert f"{run} --execute" == result["next_commands"][0]
    assert change[-4:] == ["--fingerprint", result["fingerprint"], "--execute", "--yes"]
    if rate:
        assert f"--throttle {rate[1].replace('MB', '000000')}" in " ".join(change)
    # A reassignment run reads the batches as the plan that has this fingerprint.
    batches = read_batches((), tmp_path / "batches", print)
    assert plan_part(result["fingerprint"]) == whole_plan(batches).fingerprint({})


@pytest.mark.parametrize(
    ("options", "commands"),
    [
        (("--save-plan", "move.json"), ["headroom reassign run move.json --throttle 14400000 --execute"]),
        (
            ("--save-plan", "move.json", "--max-throttle", "20MB"),
            ["headroom reassign run move.json --throttle 20000000 --execute"],
        ),
        # Broker 0 as leader has to exceed 12 MB/s, and the largest throttle is lower: only the batches have a command.
        (("--save-plan", "move.json", "--max-throttle", "10MB"), []),
        (("--batches-dir", "out"), ["headroom reassign run --batches-dir out --throttle 4800000 --execute"]),
    ],
)
def test_a_run_accepts_the_throttle_of_the_command(plan: Plan, options: tuple[str, ...], commands: list[str]) -> None:
    """Broker 0 leads six partitions of 1 MB/s, and sends each to two followers meanwhile: 12 MB/s.

    Once it has given up its leads, brokers 1, 2 and 3 lead two each: 4 MB/s. The margin is 1.2.
    """
    partitions = [placement("foo", n, [0, 1 + n % 3], 10_000_000, 1e6) for n in range(6)]
    state = cluster_state([0, 1, 2, 3], partitions)
    write_state(Path("state.json"), state)
    assert json_of(plan("--drain", "0", *options, "--format", "json"))["next_commands"] == commands
    for command in commands:
        words = shlex.split(command)
        is_folder, throttle = "--batches-dir" in words, int(words[words.index("--throttle") + 1])
        batches = read_batches(() if is_folder else (Path("move.json"),), Path("out") if is_folder else None, print)
        rates: dict[BrokerRate, RateInForce] = {
            BrokerRole(broker, role): RateInForce() for broker in state.alive for role in Role
        }
        snapshot = with_leads_given_up(batches, RunSnapshot(state.partitions, state.alive, rates))
        changes = batch_changes(batches[-1], snapshot, RecordedRun("run"), throttle)
        # The check of a batch needs neither the cluster nor the journal.
        run = RunThrottle(cast(ClusterControl, None), cast(RunJournal, None), RunPolicy(throttle), RunOutput())
        assert run.rate_for(snapshot, changes) == throttle


def test_named_directories_are_in_the_files_of_batches(plan: Plan) -> None:
    # Six copies of 10 MB; the directory with the fewest logs has room for three.
    brokers = {b: BrokerState(b) for b in (0, 1)}
    disks = (LogDirectory("/a", 2 * 10**9, 10**9, logs=20), LogDirectory("/b", 10**9, 35_000_000, logs=10))
    brokers[2] = BrokerState(2, log_dirs=disks)
    partitions = [placement("foo", n, [n % 2], 10_000_000, 1e6) for n in range(6)]
    state = replace(cluster_state([0, 1, 2], partitions), brokers=brokers)
    write_state(Path("state.json"), state)
    found = json_of(plan("--to-brokers", "2", "--batches", "2", "--batches-dir", "out", "--format", "json"))
    assert any("The plan names log directories for new replicas on broker 2" in note for note in found["warnings"])
    entries = [entry for name, file in files().items() if name != "rollback.json" for entry in file["partitions"]]
    assert [entry["log_dirs"] for entry in entries] == [["/a"]] * 6


@pytest.mark.parametrize("options", [(), ("--throttle", "20MB"), ("--max-throttle", "6MB", "--batches", "auto")])
def test_a_plan_that_is_given_to_the_page_is_carried_out_as_it_was_priced(
    plan: Plan, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """A file names partitions that stay where they are, and one that only gets another order."""
    targets = {0: [2, 1], 1: [3, 0], 2: [0, 1], 3: [0, 1]}
    entries = [{"topic": "foo", "partition": n, "replicas": replicas} for n, replicas in targets.items()]
    (tmp_path / PLAN_FILE).write_text(json.dumps({"version": 1, "partitions": entries}))
    command = replace(offered(" ".join(["headroom", "plan", *options])), plan_digest="d")
    found = plan(*command.look(tmp_path)[1:])
    assert found.exit_code == 0, found.output
    result = json.loads((tmp_path / "result.json").read_text())
    change = command.change(tmp_path)
    assert change is not None
    assert f"{' '.join(['headroom', *change[:-4]])} --execute" == result["next_commands"][0]
    batches = read_batches((), tmp_path / "batches", print)
    assert plan_part(result["fingerprint"]) == whole_plan(batches).fingerprint({})


def offered(text: str) -> AllowedCommand:
    command = allowed_command(text, None)
    assert command is not None
    return command
