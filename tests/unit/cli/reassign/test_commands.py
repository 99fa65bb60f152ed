"""The commands on a cluster in memory, with their journal in a real table."""

from __future__ import annotations

import json
import os
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from headroom.cli.config.load import load_settings
from headroom.cli.main import headroom
from headroom.cli.reassign.plan_run import RunOptions, TextStream, carry_out
from headroom.cli.reassign.view import print_damaged_rows
from headroom.cluster.log_dirs.describe import LogDirsReading
from headroom.cluster.reassignment.execution.run_journal import RunJournal
from headroom.operations.journal import session as sessions
from headroom.operations.journal.session import RunSession
from headroom.operations.reassignments.plan_files import read_batches
from headroom.operations.reassignments.run import RunRequest
from headroom.operations.reassignments.run_plan import RunRates
from headroom.planning.reassignments.cluster_state import PartitionPlacement
from headroom.planning.reassignments.plan import BatchNumbers, parse_plan
from headroom.planning.reassignments.run.journal import JournalStep, StepKind, StepState, ThrottledList
from headroom.planning.reassignments.run.record import RecordedRun, RunState
from headroom.planning.reassignments.run.snapshot import cluster_state_of_run
from headroom.planning.reassignments.validation import require_possible
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import BrokerRole, ReplicaKey, Role, TopicPartition
from headroom.streaming.tables.journal import ActionJournal
from tests.unit.builders.live_commands import let_commands_open
from tests.unit.fakes.reassigned_cluster import FakeReassignedCluster, Killed

BEFORE = {0: (1, 2), 1: (2, 3), 2: (3, 2, 1)}
AFTER = {0: [3, 2], 1: [2, 3], 2: [4, 2, 1]}


def replica(number: int, broker: int) -> ReplicaKey:
    return ReplicaKey(TopicPartition("orders", number), broker)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeReassignedCluster:
    names = {n: TopicPartition("orders", n) for n in BEFORE}
    placements = {names[n]: PartitionPlacement("orders", n, r[0], r, r) for n, r in BEFORE.items()}
    fake = FakeReassignedCluster(placements, {1, 2, 3, 4}, rates={BrokerRole(2, Role.LEADER): 90_000_000}, looks=1)
    let_commands_open(fake, monkeypatch, tmp_path)
    return fake


@pytest.fixture
def plan(tmp_path: Path) -> str:
    rows = [{"topic": "orders", "partition": n, "replicas": r} for n, r in AFTER.items()]
    file = tmp_path / "move.json"
    file.write_text(json.dumps({"version": 1, "partitions": rows}))
    return str(file)


def run(*arguments: str, code: int | None = 0, answer: str | None = None) -> Result:
    result = CliRunner().invoke(headroom, ["reassign", *arguments], input=answer)
    if code is not None:
        assert result.exit_code == code, f"{result.output} {result.exception!r}"
    return result


def of(result: Result) -> Any:
    return json.loads(result.stdout)


def replicas(cluster: FakeReassignedCluster) -> dict[int, list[int]]:
    return {name.partition: list(p.replicas) for name, p in cluster.partitions.items()}


def unfinished(fingerprint: str = "another plan") -> RunSession:
    """Return a session whose journal has a run with a rate and an entry, as after a crash."""
    session = RunSession(load_settings(None), "reassign run")
    session.journal(RecordedRun("dead")).write(
        [
            JournalStep(StepKind.RUN, StepState.INTENDED, fingerprint),
            JournalStep(StepKind.RATE, StepState.INTENDED, "broker 1 as leader", None, "5000000"),
            JournalStep(StepKind.LIST, StepState.INTENDED, "topic orders as leader", None, "0:1"),
        ]
    )
    return session


def test_the_way_back_of_several_batches_has_these_batches_in_reverse(
    cluster: FakeReassignedCluster, tmp_path: Path
) -> None:
    files = []
    for number in (0, 2):
        rows = [{"topic": "orders", "partition": number, "replicas": AFTER[number]}]
        files.append(tmp_path / f"batch-{number}.json")
        files[-1].write_text(json.dumps({"version": 1, "partitions": rows}))
    done = of(run("run", *map(str, files), "--throttle", "10MB", "--execute", "--yes", "--format", "json"))
    assert replicas(cluster) == AFTER
    steps = of(run("rollback", done["run_id"], "--throttle", "10MB", "--format", "json"))
    assert [[move["partition"] for move in batch["submit"]] for batch in steps["batches"]] == [[2], [0]]
    back = of(run("rollback", done["run_id"], "--throttle", "10MB", "--execute", "--yes", "--format", "json"))
    assert (back["state"], back["batches_done"]) == ("done", 2)
    assert replicas(cluster) == {n: list(r) for n, r in BEFORE.items()}


def test_without_execute_the_steps_are_shown_and_nothing_is_changed(cluster: FakeReassignedCluster, plan: str) -> None:
    shown = run("run", plan, "--throttle", "10MB").stdout
    assert "3 partitions in 1 batch, a new run" in shown
    assert f"headroom reassign run {shlex.quote(plan)} --throttle 10000000 --execute" in shown
    steps = of(run("run", plan, "--throttle", "10MB", "--format", "json"))
    assert [row["partition"] for row in steps["batches"][0]["submit"]] == [0, 2]
    assert steps["batches"][0]["entries"][1] == {"topic": "orders", "role": "leader", "entries": "0:1,0:2,2:1,2:2,2:3"}
    # Broker 2 has a higher rate as leader.
    assert {(r["broker"], r["role"]) for r in steps["batches"][0]["rates"]} == {
        (1, "leader"),
        (3, "leader"),
        (3, "follower"),
        (4, "follower"),
    }
    assert (steps["executed"], cluster.requests, Path("store").exists()) == (False, [], False)


def test_rates_in_force_are_named_where_they_stay_or_change(cluster: FakeReassignedCluster, plan: str) -> None:
    cluster.rates[BrokerRole(4, Role.FOLLOWER)] = 5_000_000
    shown = run("run", plan, "--throttle", "10MB")
    assert "stay, so copies may be faster there: broker 2 as leader 90.00 MB/s." in shown.stderr
    assert "Rates in force that change: broker 4 as follower 5.00 MB/s -> 10.00 MB/s." in shown.stdout
    # A rate that is the throttle limits as asked for, and a broker without one gets it.
    assert "may be faster" not in run("run", plan, "--throttle", "90MB").stderr
    cluster.rates.clear()
    assert "Rates in force" not in run("run", plan, "--throttle", "10MB").stdout


def test_a_plan_is_run_listed_verified_and_rolled_back(cluster: FakeReassignedCluster, plan: str) -> None:
    assert of(run("verify", plan, "--format", "json", code=1))["counts"] == {
        "done": 1,
        "moving": 0,
        "moving_elsewhere": 0,
        "not_started": 2,
        "missing": 0,
    }
    done = of(run("run", plan, "--throttle", "10MB", "--execute", "--yes", "--format", "json"))
    assert (done["executed"], done["state"], done["refused"], done["error"]) == (True, "done", [], None)
    assert replicas(cluster) == AFTER
    assert (cluster.rates, cluster.lists) == ({BrokerRole(2, Role.LEADER): 90_000_000}, {})
    assert "3 partitions: 3 done." in run("verify", plan).stdout
    again = of(run("run", plan, "--throttle", "10MB", "--execute", "--yes", "--format", "json"))
    assert (again["executed"], again["error"]) == (False, None)
    (made,) = of(run("runs", "--format", "json"))["runs"]
    assert (made["run_id"], made["state"], made["submitted"]) == (done["run_id"], "done", 2)
    assert "done" in run("runs").stdout
    run("rollback", done["run_id"][:4], "--throttle", "10MB", "--execute", "--yes")
    assert replicas(cluster) == {n: list(r) for n, r in BEFORE.items()}
    assert "No run has left anything behind" in run("clean").stdout


@pytest.mark.usefixtures("cluster")
def test_without_its_store_it_is_unknown_what_runs_have_left_behind() -> None:
    """As in another folder than that of the run that was killed."""
    for arguments in (["runs"], ["clean"], ["clean", "--execute"]):
        error = of(run(*arguments, "--format", "json", code=1))
        assert (error["type"], error["rule"]) == ("error", "is not there")
        assert error["subject"].endswith("/store")
    unfinished()
    assert "1 list entries and 1 rates" in run("clean").stdout


def test_a_rollback_names_what_was_deleted_and_moves_the_others_back(cluster: FakeReassignedCluster, plan: str) -> None:
    other = TopicPartition("deleted", 0)
    cluster.partitions[other] = PartitionPlacement("deleted", 0, 1, (1, 2), (1, 2))
    written = json.loads(Path(plan).read_text())
    written["partitions"].append({"topic": "deleted", "partition": 0, "replicas": [3, 2], "log_dirs": ["/b", "any"]})
    Path(plan).write_text(json.dumps(written))
    run_id = of(run("run", plan, "--execute", "--yes", "--format", "json"))["run_id"]
    del cluster.partitions[other]
    assert "Partitions of the plan that do not exist: deleted-0." in run("rollback", run_id).stderr
    done = run("rollback", run_id, "--execute", "--yes", code=1)
    assert "Not at their target: deleted-0 (does not exist)" in done.stdout
    assert replicas(cluster) == {n: list(r) for n, r in BEFORE.items()}
    (_, back) = of(run("runs", "--format", "json"))["runs"]
    assert (back["state"], back["left_behind"]) == ("done", {"entries": [], "rates": []})
    # Of which nothing is left, it is refused.
    for name in list(cluster.partitions):
        del cluster.partitions[name]
    assert "orders-0 has no topic orders" in str(run("rollback", run_id, "--execute", "--yes", code=1).exception)


@pytest.mark.parametrize("then", ["end", "clean"])
def test_a_rate_that_others_have_changed_is_not_said_to_be_as_before(
    cluster: FakeReassignedCluster, plan: str, then: str
) -> None:
    name = BrokerRole(3, Role.LEADER)

    def change(fake: FakeReassignedCluster) -> None:
        if fake.left:
            fake.rates[name] = 80_000_000

    if then == "end":
        cluster.on_look = change
        ended = run("run", plan, "--throttle", "10MB", "--execute", "--yes")
        assert "are as before, except those that others have changed: broker 3 as leader 80.00 MB/s." in ended.stdout
        assert "Nothing of its throttle is left" not in ended.stdout
        return
    unfinished()
    cluster.rates[BrokerRole(1, Role.LEADER)] = 7_000_000
    cleaned = run("clean", "--execute").stdout
    assert "its rates are as before, except those that others have changed: broker 1 as leader 7.00 MB/s." in cleaned


def test_the_rates_that_stay_are_in_the_json_of_a_run(cluster: FakeReassignedCluster, plan: str) -> None:
    cluster.on_look = lambda fake: fake.rates.update({BrokerRole(3, Role.LEADER): 80_000_000} if fake.left else {})
    ended = of(run("run", plan, "--throttle", "10MB", "--execute", "--yes", "--format", "json"))
    assert ended["kept_rates"] == [{"broker": 3, "role": "leader", "bytes_per_s": 80_000_000}]
    assert ended["left_behind"] == {"entries": [], "rates": []}


def test_only_the_plan_that_was_estimated_runs(cluster: FakeReassignedCluster, plan: str) -> None:
    fingerprint = of(run("run", plan, "--format", "json"))["fingerprint"]
    refused = run("run", plan, "--fingerprint", "0123", "--execute", "--yes", code=1)
    assert "is not what was estimated" in str(refused.exception)
    assert cluster.requests == []
    run("run", plan, "--fingerprint", fingerprint, "--execute", "--yes")
    assert replicas(cluster) == AFTER


def test_a_plan_whose_replicas_have_changed_since_the_estimate_does_not_run(
    cluster: FakeReassignedCluster, plan: str
) -> None:
    fingerprint = of(run("run", plan, "--format", "json"))["fingerprint"]
    name = TopicPartition("orders", 0)
    before = cluster.partitions[name]
    cluster.partitions[name] = replace(before, replicas=(4, 2), isr=(4, 2), leader=4)
    refused = run("run", plan, "--fingerprint", fingerprint, "--execute", "--yes", code=1)
    assert "replicas have changed since the estimate" in str(refused.exception)
    assert cluster.requests == []
    # That of an earlier version, which is of the plan alone.
    run("run", plan, "--fingerprint", fingerprint.partition("-")[0])
    cluster.partitions[name] = before
    run("run", plan, "--fingerprint", fingerprint, "--execute", "--yes")
    # It may be repeated, although the run itself has changed the replicas.
    run("run", plan, "--fingerprint", fingerprint, "--execute", "--yes")
    assert replicas(cluster) == AFTER


def test_a_run_that_was_killed_goes_on_with_the_fingerprint_of_its_estimate(
    cluster: FakeReassignedCluster, plan: str
) -> None:
    shown = of(run("run", plan, "--format", "json"))
    cluster.looks = 10

    def kill(fake: FakeReassignedCluster) -> None:
        if len(fake.left) == 1:
            raise Killed

    cluster.looks, cluster.on_look = 3, kill
    slow = TopicPartition("orders", 2)
    first = lambda fake: fake.left.update({slow: 50} if slow in fake.left else {})  # noqa: E731
    cluster.on_look = lambda fake: (first(fake), kill(fake))[1]
    with pytest.raises(Killed):
        run("run", plan, "--fingerprint", shown["fingerprint"], "--execute", "--yes", code=None)
    assert replicas(cluster)[0] == AFTER[0]
    cluster.on_look = lambda fake: None
    cluster.left[slow] = 2
    done = of(run("run", plan, "--fingerprint", shown["fingerprint"], "--execute", "--yes", "--format", "json"))
    assert (done["resumes"], done["state"], done["fingerprint"]) == (True, "done", shown["fingerprint"])


def test_a_rollback_leaves_a_topic_that_was_made_again_as_it_is(cluster: FakeReassignedCluster, plan: str) -> None:
    other = TopicPartition("payments", 0)
    cluster.partitions[other] = PartitionPlacement(*other, 1, (1, 2), (1, 2))
    rows = json.loads(Path(plan).read_text())["partitions"]
    rows.append({"topic": "payments", "partition": 0, "replicas": [3, 2]})
    Path(plan).write_text(json.dumps({"version": 1, "partitions": rows}))
    run_id = of(run("run", plan, "--execute", "--yes", "--format", "json"))["run_id"]
    cluster.remade["payments"] = 1
    cluster.requests.clear()
    shown = run("rollback", run_id)
    assert "their topics were deleted, and others of the same names made: payments-0." in shown.stderr
    done = run("rollback", run_id, "--execute", "--yes", code=1)
    assert "Not at their target: payments-0 (is of another topic: its own was deleted)" in done.stdout
    assert {n: list(p.replicas) for n, p in cluster.partitions.items() if n.topic == "orders"} == {
        TopicPartition("orders", n): list(r) for n, r in BEFORE.items()
    }
    assert cluster.partitions[other].replicas == (3, 2)
    cluster.remade["orders"] = 1
    refused = run("rollback", run_id, "--execute", "--yes", code=1)
    assert "is of another topic: its own was deleted" in str(refused.exception)


def test_a_rollback_of_a_run_whose_journal_has_no_ids_says_so(cluster: FakeReassignedCluster, plan: str) -> None:
    before = [JournalStep(StepKind.RUN, StepState.INTENDED, "f"), JournalStep(StepKind.RUN, StepState.DONE, "f")]
    moved = JournalStep(StepKind.SUBMIT, StepState.INTENDED, "orders-0", "[3,2]", "[1,2]")
    RunSession(load_settings(None), "reassign run").journal(RecordedRun("old")).write([before[0], moved, before[1]])
    assert "Whether topics were made again since is unknown" in run("rollback", "old").stderr


def test_elections_that_fail_end_with_code_1_and_are_tried_by_the_same_command(
    cluster: FakeReassignedCluster, plan: str
) -> None:
    # Both orders give the lead to broker 2.
    targets = {0: [2, 1], 2: [2, 3, 1]}
    rows = [{"topic": "orders", "partition": n, "replicas": r} for n, r in targets.items()]
    Path(plan).write_text(json.dumps({"version": 1, "partitions": rows}))
    cluster.failing_elections = 3
    failed = run("run", plan, "--execute", "--yes", "--format", "json", code=1)
    assert "preferred leaders of orders-0, orders-2 were not elected" in of(failed)["error"]["rule"]
    assert [row["partition"] for row in of(failed)["unelected"]] == [0, 2]
    shown = run("run", plan)
    assert "Preferred leader elections of this run failed. They are tried again." in shown.stderr
    assert "To do it: headroom reassign run" in shown.stdout
    assert of(run("run", plan, "--execute", "--yes", "--format", "json"))["unelected"] == []
    assert [p.leader for p in cluster.partitions.values()] == [2, 2, 2]


def test_elections_that_are_left_out_end_with_code_1_and_their_reason(
    cluster: FakeReassignedCluster, plan: str
) -> None:
    rows = [{"topic": "orders", "partition": 0, "replicas": [2, 1]}]
    Path(plan).write_text(json.dumps({"version": 1, "partitions": rows}))
    cluster.left_out = {TopicPartition("orders", 0): "its preferred broker is not in sync"}
    failed = of(run("run", plan, "--execute", "--yes", "--format", "json", code=1))
    assert failed["error"]["rule"] == (
        "preferred leaders of orders-0 were not elected: its preferred broker is not in sync"
    )
    assert failed["unelected"] == [{"topic": "orders", "partition": 0, "reason": "its preferred broker is not in sync"}]


def test_a_plan_in_place_whose_leaders_were_replaced_elects_them(cluster: FakeReassignedCluster, plan: str) -> None:
    rows = [{"topic": "orders", "partition": 0, "replicas": [2, 1]}]
    Path(plan).write_text(json.dumps({"version": 1, "partitions": rows}))
    run("run", plan, "--execute", "--yes")
    name = TopicPartition("orders", 0)
    cluster.partitions[name] = replace(cluster.partitions[name], leader=1)
    shown = run("run", plan)
    assert "Preferred leaders are elected, because others lead: orders-0." in shown.stderr
    assert "Nothing was changed. To do it: " in shown.stdout
    assert run("run", plan, "--execute", "--yes").exit_code == 0
    assert cluster.partitions[name].leader == 2
    assert "To do it" not in run("run", plan).stdout


@pytest.mark.usefixtures("cluster")
def test_an_order_alone_copies_nothing_and_has_no_note_on_throttles(plan: str) -> None:
    rows = [{"topic": "orders", "partition": 0, "replicas": [2, 1]}]
    Path(plan).write_text(json.dumps({"version": 1, "partitions": rows}))
    for rates in ((), ("--throttle", "0.5MB", "--low-rate")):
        assert of(run("run", plan, *rates, "--format", "json"))["notes"] == []


def test_a_throttle_that_a_plan_calls_too_slow_is_named_before_the_run_and_in_its_progress(
    cluster: FakeReassignedCluster, plan: str
) -> None:
    # 12 partitions of 0.25 MB/s with one replica. 2.9 MB/s do not exceed 3, but whole responses pass, and so it gains.
    names = [TopicPartition("orders", number) for number in range(12)]
    cluster.partitions = {n: PartitionPlacement(*n, 1, (1,), (1,), write_bytes_per_s=250_000.0) for n in names}
    rows = [{"topic": "orders", "partition": name.partition, "replicas": [3]} for name in names]
    Path(plan).write_text(json.dumps({"version": 1, "partitions": rows}))
    note = (
        "Does not fit: at 2.90 MB/s the move is too slow; broker 1 as leader, broker 3 as follower require up to "
        "3.00 MB/s. Recommended: 3.60 MB/s."
    )
    assert of(run("run", plan, "--throttle", "2.9MB", "--format", "json"))["notes"] == [note]
    assert run("run", plan, "--throttle", "2.9MB", "--execute", "--yes").stderr.count(note) == 2
    assert replicas(cluster)[11] == [3]


@pytest.mark.usefixtures("cluster")
def test_a_batch_of_a_proposal_has_its_number_in_all_texts(plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = RunOptions(RunRequest(RunRates(None), numbers=BatchNumbers(2, 5)), "w", execute=True, yes=True)
    carry_out([parse_plan(Path(plan).read_text(), plan)], options, TextStream.STDOUT, "balance run")
    shown = capsys.readouterr()
    assert "partitions in batch 2 of 5, a new run" in shown.out
    assert re.search(r"^2 +orders", shown.out, re.MULTILINE)
    assert "Batch 2 of 5: ended" in shown.err


def test_another_unfinished_run_is_refused_until_it_is_cleaned(cluster: FakeReassignedCluster, plan: str) -> None:
    unfinished()
    cluster.rates[BrokerRole(1, Role.LEADER)] = 5_000_000
    cluster.lists[ThrottledList("orders", Role.LEADER)] = "0:1,9:9"
    refused = run("run", plan, "--execute", "--yes", code=1)
    assert "run dead: is unfinished" in str(refused.exception)
    assert "1 list entries and 1 rates" in run("clean").stdout
    run("clean", "dead", "--execute")
    assert cluster.rates == {BrokerRole(2, Role.LEADER): 90_000_000}
    assert cluster.lists == {ThrottledList("orders", Role.LEADER): "9:9"}
    run("run", plan, "--execute", "--yes")


def test_a_run_of_another_machine_is_left_alone_unless_forced(
    cluster: FakeReassignedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(sessions, "author", lambda: "anna@elsewhere")
        unfinished()
    assert "on host elsewhere" in str(run("clean", "--execute", code=1).exception)
    run("clean", "--execute", "--force")


def test_two_runs_at_once_are_refused(cluster: FakeReassignedCluster, plan: str) -> None:
    with RunSession(load_settings(None), "reassign run").alone():
        refused = run("run", plan, "--execute", "--yes", code=1)
    assert "two runs would take back each other's throttles" in str(refused.exception)
    assert cluster.requests == []


def test_a_store_that_cannot_be_written_is_refused_before_the_first_change(
    cluster: FakeReassignedCluster, plan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("file").write_text("")
    monkeypatch.setenv("HEADROOM_STORE__PATH", str(Path("file").absolute()))
    refused = run("run", plan, "--throttle", "10MB", "--execute", "--yes", code=1)
    assert isinstance(refused.exception, HeadroomError)
    assert cluster.requests == []


def test_cancelling_restores_the_order_where_the_journal_has_it(cluster: FakeReassignedCluster, plan: str) -> None:
    session = RunSession(load_settings(None), "reassign run")
    journal = session.journal()
    journal.write([JournalStep(StepKind.RUN, StepState.INTENDED, "plan")])
    journal.write([JournalStep(StepKind.SUBMIT, StepState.INTENDED, "orders-2", "[3,2,1]", "[4,2,1]")])
    for number in (0, 2):
        cluster._start(TopicPartition("orders", number), tuple(AFTER[number]))
    cluster.left = dict.fromkeys(cluster.left, 100)
    shown = run("cancel", plan)
    assert "Nothing was changed" in shown.stdout
    assert "not known of orders-0" in shown.stderr
    cancelled = of(run("cancel", "--all", "--execute", "--yes", "--format", "json"))
    assert {row["partition"]: row["restored"] for row in cancelled["cancelled"]} == {0: None, 2: [3, 2, 1]}
    assert replicas(cluster) == {0: [2, 1], 1: [2, 3], 2: [3, 2, 1]}
    assert cluster.left == {}


def test_a_cancel_that_was_killed_is_finished_by_the_next_one(cluster: FakeReassignedCluster, plan: str) -> None:
    name = TopicPartition("orders", 2)
    intended = JournalStep(StepKind.CANCEL, StepState.INTENDED, str(name), "[4,2,1,3]", "[3,2,1]")
    RunSession(load_settings(None), "reassign cancel").journal().write([intended])
    cluster._start(name, (2, 1, 3))
    shown = run("cancel", plan).stdout
    assert "orders-2" in shown
    assert "Nothing was changed. To do it: headroom reassign cancel" in shown
    finished = of(run("cancel", plan, "--execute", "--yes", "--format", "json"))
    assert (finished["cancelled"], finished["order_restored"]) == (
        [],
        [{"topic": "orders", "partition": 2, "restored": [3, 2, 1]}],
    )
    assert replicas(cluster)[2] == [3, 2, 1]
    assert "No such reassignment is running" in run("cancel", plan).stdout


def test_partitions_that_are_refused_are_named_and_end_with_code_1(cluster: FakeReassignedCluster, plan: str) -> None:
    cluster.refusing = {TopicPartition("orders", 2)}
    done = run("run", plan, "--throttle", "10MB", "--execute", "--yes", code=1)
    assert "Not at their target: orders-2 (InvalidReplicaAssignment)" in done.stdout
    assert "1 partitions are not at their target" in str(done.exception)
    assert replicas(cluster)[0] == AFTER[0]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"topic": "other"}, "other-2 has no topic other"),
        ({"replicas": [9, 2]}, "orders-2 is to have a replica on broker 9, which is not in the cluster"),
        ({"replicas": [5, 2]}, "orders-2 is to have a replica on broker 5, which is not in the cluster"),
        ({"log_dirs": ["/data", "any", "any"]}, "log directory /data of broker 4 does not exist"),
    ],
)
def test_run_and_plan_refuse_the_same_with_the_same_words(
    cluster: FakeReassignedCluster, plan: str, change: dict[str, object], text: str
) -> None:
    written = json.loads(Path(plan).read_text())
    written["partitions"][2] |= change
    Path(plan).write_text(json.dumps(written))
    refused = str(run("run", plan, code=1).exception)
    assert text in refused
    snapshot = cluster.read()
    state = cluster_state_of_run(snapshot, cluster.read_logs(sorted(snapshot.alive), None).brokers)
    with pytest.raises(HeadroomError) as planned:
        require_possible(read_batches([Path(plan)], None, print)[0], state, "the plan")
    assert str(planned.value) == refused
    assert cluster.requests == []


def test_a_destination_without_room_is_refused_by_a_run_too(cluster: FakeReassignedCluster, plan: str) -> None:
    # 1 MB for each of the copies on brokers 3 and 4.
    cluster.free_bytes = 900_000
    refused = str(run("run", plan, "--execute", "--yes", code=1).exception)
    assert "broker 3 has 900,000 bytes free in one log directory, and orders-0 has 1,000,000" in refused
    assert cluster.requests == []


def test_files_that_fill_a_disk_together_are_refused_as_one_file_is(cluster: FakeReassignedCluster) -> None:
    # Broker 4 has room for one copy of 600 bytes in each of its two directories.
    cluster.size_bytes, cluster.free_of = 600, {4: 1000 // 2 + 150}
    rows = [{"topic": "orders", "partition": n, "replicas": [4, 2]} for n in BEFORE]
    for name, batch in (("one", rows), ("first", rows[:1]), ("second", rows[1:2]), ("third", rows[2:])):
        Path(f"{name}.json").write_text(json.dumps({"version": 1, "partitions": batch}))
    said = "broker 4 has 1,300 bytes free, and the plan copies 1,800 there"
    assert f"{said} (orders-0, orders-1, orders-2)" in str(run("run", "one.json", code=1).exception)
    files = ("first.json", "second.json", "third.json")
    refused = str(run("run", *files, "--execute", "--yes", code=1).exception)
    assert f"{said} up to batch 3 (orders-0, orders-1, orders-2)" in refused
    assert cluster.requests == []
    run("run", *files[:2], "--execute", "--yes")


def test_a_moving_partition_of_the_plan_is_refused_unless_it_is_adopted(
    cluster: FakeReassignedCluster, plan: str
) -> None:
    cluster._start(TopicPartition("orders", 0), (3, 2))
    cluster.left[TopicPartition("orders", 0)] = 3
    assert "orders-0 is being reassigned already" in str(run("run", plan, code=1).exception)
    run("run", plan, "--adopt", "--execute", "--yes")
    assert replicas(cluster) == AFTER


@pytest.fixture
def directories(plan: str) -> str:
    """A plan that puts orders-1 into another directory of broker 2, and a new replica of orders-0 into one of 3."""
    written = json.loads(Path(plan).read_text())
    written["partitions"][0]["log_dirs"] = ["/b", "any"]
    written["partitions"][1]["log_dirs"] = ["/b", "any"]
    Path(plan).write_text(json.dumps(written))
    return plan


def test_a_plan_with_directories_is_shown_run_verified_and_rolled_back(
    cluster: FakeReassignedCluster, directories: str
) -> None:
    command = ("run", directories, "--throttle", "10MB", "--log-dirs-throttle", "2MB")
    shown = run(*command).stdout
    assert "Moves between log directories" in shown
    options = "--throttle 10000000 --log-dirs-throttle 2000000 --execute"
    assert f"headroom reassign run {shlex.quote(directories)} {options}" in shown
    assert "as fast as the disks allow" in run("run", directories, "--throttle", "10MB").stderr
    assert cluster.requests == []
    waiting = of(run("verify", directories, "--format", "json", code=1))["partitions"][1]
    assert waiting["status"] == "not_started"
    assert waiting["log_dirs"] == [
        {"broker": 2, "state": "elsewhere", "current": "/a", "target": "/b", "remaining_bytes": None}
    ]
    done = of(run(*command, "--execute", "--yes", "--format", "json"))
    (batch,) = done["batches"]
    assert [(p["topic"], p["partition"], p["broker"], p["before"], p["after"]) for p in batch["log_dirs"]] == [
        ("orders", 0, 1, "/a", None),
        ("orders", 0, 3, None, "/b"),
        ("orders", 1, 2, "/a", "/b"),
    ]
    (moved,) = batch["directory_moves"]
    assert (moved["broker"], moved["replicas"], moved["throttle_bytes_per_s"]) == (2, 1, 2_000_000)
    assert (2, "log_dirs") in {(rate["broker"], rate["role"]) for rate in batch["rates"]}
    assert cluster.paths[replica(1, 2)] == cluster.paths[replica(0, 3)] == "/b"
    assert cluster.rates == {BrokerRole(2, Role.LEADER): 90_000_000}
    assert "3 partitions: 3 done." in run("verify", directories).stdout
    run("rollback", done["run_id"], "--throttle", "10MB", "--log-dirs-throttle", "2MB", "--execute", "--yes")
    assert replicas(cluster) == {n: list(r) for n, r in BEFORE.items()}
    assert cluster.path_of(replica(1, 2)) == "/a"


def test_cancel_ends_copies_between_directories(cluster: FakeReassignedCluster, directories: str) -> None:
    cluster.futures = {replica(1, 2): ("/b", 100), replica(2, 3): ("/b", 100)}
    assert "Nothing was changed" in run("cancel", directories).stdout
    cancelled = of(run("cancel", directories, "--execute", "--yes", "--format", "json"))
    assert cancelled["log_dirs"] == [
        {"topic": "orders", "partition": 1, "broker": 2, "stays": "/a"},
        {"topic": "orders", "partition": 2, "broker": 3, "stays": "/a"},
    ]
    assert (cluster.futures, cluster.left) == ({}, {})
    assert "No such reassignment is running" in run("cancel", "--all").stdout


def test_brokers_that_do_not_report_their_directories_are_named(
    cluster: FakeReassignedCluster, plan: str, directories: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = {b: HeadroomError(f"broker {b}", "did not report its log directories", "Look.") for b in (2, 3)}
    monkeypatch.setattr(cluster, "read_logs", lambda brokers, names: LogDirsReading({}, silent))
    assert "unknown on brokers 2, 3, which did not report them" in run("cancel", "--all").stderr
    refused = str(run("run", directories, code=1).exception)
    assert "broker 2 did not report its log directories, and the plan puts orders-1 there" in refused
    rows = [{"topic": "orders", "partition": n, "replicas": r} for n, r in AFTER.items()]
    Path(plan).write_text(json.dumps({"version": 1, "partitions": rows}))
    assert "room for the copies was not checked: brokers 3, 4" in run("run", plan).stderr


def test_another_run_is_the_reason_and_not_its_moves(cluster: FakeReassignedCluster, plan: str) -> None:
    unfinished()
    cluster._start(TopicPartition("orders", 0), (4, 2))
    cluster.left[TopicPartition("orders", 0)] = 100
    assert "run dead: is unfinished" in str(run("run", plan, "--execute", "--yes", code=1).exception)


def test_the_command_that_resumes_a_run_is_in_the_journal(cluster: FakeReassignedCluster, plan: str) -> None:
    run("run", plan, "--throttle", "10MB", "--execute", "--yes")
    begun = next(r for r in ActionJournal("store").rows("kafka") if r.step == "run" and r.state == "intended")
    command = f"headroom reassign run {shlex.quote(plan)} --throttle 10000000 --execute"
    assert json.loads(begun.after or "")["command"] == command


def test_files_are_batches_and_no_partition_is_in_two(
    cluster: FakeReassignedCluster, plan: str, tmp_path: Path
) -> None:
    folder = tmp_path / "batches"
    folder.mkdir()
    for number, row in enumerate(json.loads(Path(plan).read_text())["partitions"], start=1):
        (folder / f"batch-{number:03}.json").write_text(json.dumps({"version": 1, "partitions": [row]}))
    steps = of(run("run", "--batches-dir", str(folder), "--format", "json"))
    assert [len(batch["submit"]) for batch in steps["batches"]] == [1, 0, 1]
    assert "is in more than one plan file" in str(run("run", plan, "--batches-dir", str(folder), code=1).exception)
    assert "has no file batch-*.json" in str(run("run", "--batches-dir", str(tmp_path), code=1).exception)


def test_batch_files_run_in_the_order_of_their_numbers(cluster: FakeReassignedCluster, plan: str) -> None:
    Path("out").mkdir()
    for number, row in zip((2, 10, 11), json.loads(Path(plan).read_text())["partitions"], strict=True):
        Path(f"out/batch-{number}.json").write_text(json.dumps({"version": 1, "partitions": [row]}))
    batches = read_batches([], Path("out"), print)
    assert [a.name.partition for batch in batches for a in batch] == [0, 1, 2]


def test_wrong_usage(cluster: FakeReassignedCluster, plan: str) -> None:
    run("run", code=2)
    run("run", plan, "--execute", code=2)
    run("cancel", plan, "--all", code=2)
    run("cancel", code=2)
    assert "is not in the journal" in str(run("rollback", "nothing", code=1).exception)


def test_a_low_throttle_and_none_at_all_are_warned_of(cluster: FakeReassignedCluster, plan: str) -> None:
    assert "Below 1 MB/s" in run("run", plan, "--throttle", "500KB", "--low-rate").stderr
    assert "as fast as brokers and network allow" in run("run", plan).stderr
    # The fake measures no write rates.
    assert "Write rates are unknown" in run("run", plan, "--throttle", "5MB").stderr


@pytest.mark.parametrize("option", ["--throttle", "--log-dirs-throttle", "--auto-throttle-up-to"])
def test_a_rate_below_what_kafka_keeps_needs_a_second_flag(
    cluster: FakeReassignedCluster, plan: str, option: str
) -> None:
    refused = run("run", plan, option, "500KB", code=2)
    assert f"{option} is 500 kB/s, and Kafka does not keep a rate below 1 MB/s accurately." in refused.stderr
    # The printed command has the unit where it needs one, and the flag.
    shown = run("run", plan, option, "6kB", "--low-rate").stdout
    assert f"headroom reassign run {shlex.quote(plan)} {option} 6000B --low-rate --execute" in shown


def test_outside_the_window_nothing_begins(
    cluster: FakeReassignedCluster, plan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADROOM_REASSIGN__WINDOW", "22:00-06:00")
    # 12:00 UTC.
    monkeypatch.setattr("headroom.operations.reassignments.run.time.time", lambda: 12 * 3600.0)
    refused = run("run", plan, "--execute", "--yes", code=1)
    assert "it is not 22:00-06:00 now (reassign.window)" in str(refused.exception)
    assert (cluster.requests, RunSession(load_settings(None), "x").records) == ([], [])


def test_a_resumed_run_says_so(cluster: FakeReassignedCluster, plan: str) -> None:
    fingerprint = of(run("run", plan, "--format", "json"))["fingerprint"]
    session = RunSession(load_settings(None), "reassign run")
    session.journal(RecordedRun("dead")).write([JournalStep(StepKind.RUN, StepState.INTENDED, fingerprint)])
    done = of(run("run", plan, "--throttle", "10MB", "--execute", "--yes", "--format", "json"))
    assert (done["resumes"], done["run_id"], done["state"]) == (True, "dead", "done")
    (record,) = RunSession(load_settings(None), "x").records
    assert replace(record, last_ms=None).state is RunState.DONE


def test_a_run_that_is_running_has_left_nothing_behind(cluster: FakeReassignedCluster, plan: str) -> None:
    fingerprint = of(run("run", plan, "--format", "json"))["fingerprint"]
    session = unfinished(fingerprint)
    here = f"pid {os.getpid()} on host {os.uname().nodename} since 2"
    with session.alone():
        listed, verified, cleaned = run("runs"), run("verify", plan, code=1), run("clean")
        (found,) = of(run("runs", "--format", "json"))["runs"]
        (of_plan,) = of(run("verify", plan, "--format", "json", code=1))["runs"]
        (to_clean,) = of(run("clean", "--format", "json"))["runs"]
    for shown in (listed, verified, cleaned):
        assert "running" in shown.stdout
        assert here in shown.stdout
        assert ": list topic orders as leader intended" in shown.stdout
        assert "clean --execute" not in shown.stdout
        assert "left throttles behind" not in shown.stdout
    for made in (found, of_plan, to_clean):
        assert (made["state"], made["status"], made["running"]["pid"]) == ("unfinished", "running", os.getpid())
    # Killed.
    (found,) = of(run("runs", "--format", "json"))["runs"]
    assert (found["status"], found["running"]) == ("unfinished", None)
    assert "To remove what is left behind: headroom reassign clean --execute" in run("runs").stdout
    assert "has left throttles behind" in run("verify", plan, code=1).stdout
    assert "To do it: headroom reassign clean --execute" in run("clean").stdout


@pytest.mark.usefixtures("cluster")
def test_commands_to_clean_name_the_settings_file(plan: str) -> None:
    """Without it they would clean the cluster of headroom.toml."""
    Path("b.toml").write_text('[cluster]\nbootstrap_servers = "broker1:9092"\n')
    unfinished(of(run("run", plan, "--format", "json"))["fingerprint"])
    shown = [run("runs", "--config", "b.toml").stdout, run("verify", plan, "--config", "b.toml", code=1).stdout]
    unfinished()
    refused = run("run", plan, "--throttle", "10MB", "--execute", "--yes", "--config", "b.toml", code=1)
    for text in (*shown, str(refused.exception)):
        assert "headroom reassign clean --config b.toml --execute" in text
        assert "clean --execute" not in text


def test_rows_that_are_damaged_are_compared_with_the_throttles_of_the_same_settings_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_damaged_rows([RecordedRun("r-1", damaged_rows=frozenset({2, 3}))], "b.toml")
    text = capsys.readouterr().out
    assert text.startswith("Run r-1: what its rows 2, 3 of the journal set is unknown")
    assert text.endswith("Compare with: headroom throttle show --config b.toml\n")


def test_a_run_whose_moves_were_cancelled_is_not_done(cluster: FakeReassignedCluster, plan: str) -> None:
    def cancel(fake: FakeReassignedCluster) -> None:
        for name in list(fake.left):
            fake._cancel(name)

    cluster.on_look = cancel
    run("run", plan, "--throttle", "10MB", "--execute", "--yes", code=1)
    (found,) = of(run("runs", "--format", "json"))["runs"]
    assert (found["state"], found["status"]) == ("done", "cancelled")
    assert "cancelled" in run("runs").stdout
    assert "of this plan is cancelled." in run("verify", plan, code=1).stdout


def left_behind(run_id: str, rate: int, before: int | None, at_ms: int, *steps: JournalStep, broker: int = 1) -> None:
    """Write a run that has left a rate behind: as if the broker had been down, or, with further steps, as if killed."""
    store = ActionJournal("store")
    journal = RunJournal(store, RecordedRun(run_id), "kafka", "reassign run", "anna@host1", lambda: at_ms)
    text = None if before is None else str(before)
    journal.write([JournalStep(StepKind.RUN, StepState.INTENDED, f"plan of {run_id}")])
    journal.write(
        [JournalStep(StepKind.RATE, StepState.INTENDED, f"broker {broker} as leader", text, str(rate)), *steps]
    )
    if not steps:
        journal.write([JournalStep(StepKind.RUN, StepState.DONE, f"plan of {run_id}")])


@pytest.mark.parametrize("order", [(), ("old",), ("new",), ("old", "new"), ("new", "old")])
def test_clean_leaves_no_rate_that_one_run_has_set_over_that_of_another(
    cluster: FakeReassignedCluster, order: tuple[str, ...]
) -> None:
    left_behind("old", 5_000_000, None, 1)
    left_behind("new", 7_000_000, 5_000_000, 2)
    cluster.rates[BrokerRole(1, Role.LEADER)] = 7_000_000
    for run_id in order:
        run("clean", run_id, "--execute")
    run("clean", "--execute")
    assert cluster.rates == {BrokerRole(2, Role.LEADER): 90_000_000}
    assert "No run has left anything behind" in run("clean").stdout


def test_clean_lifts_no_rate_that_limits_a_killed_run_which_still_moves(cluster: FakeReassignedCluster) -> None:
    name = TopicPartition("orders", 0)
    left_behind("old", 5_000_000, None, 1)
    # It found the rate of broker 1 to be enough, and has set that of broker 3.
    submitted = JournalStep(StepKind.SUBMIT, StepState.INTENDED, str(name), "[1,2]", "[3,2]")
    left_behind("new", 5_000_000, None, 2, submitted, broker=3)
    cluster.rates[BrokerRole(3, Role.LEADER)] = 5_000_000
    cluster.rates[BrokerRole(1, Role.LEADER)] = 5_000_000
    cluster._start(name, (3, 2))
    cluster.left[name] = 100
    for words in (("old",), ()):
        assert "orders-0: still moves, so its throttle stays" in str(
            run("clean", *words, "--execute", "--force", code=1).exception
        )
        assert cluster.rates[BrokerRole(1, Role.LEADER)] == 5_000_000
    cluster.left[name] = 1
    run("clean", "--execute", "--force")
    assert cluster.rates == {BrokerRole(2, Role.LEADER): 90_000_000}
