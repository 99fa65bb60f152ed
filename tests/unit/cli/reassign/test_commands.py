"""The commands on a cluster in memory, with their journal in a real table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cli.config.load import load_settings
from cli.main import headroom
from cli.reassign import session as sessions
from cli.reassign.session import RunSession
from planning.reassignments.cluster_state import PartitionPlacement
from planning.reassignments.run.journal import JournalStep, StepKind, StepState, ThrottledList
from planning.reassignments.run.record import RecordedRun, RunState
from schemas.alerts import Role
from schemas.errors import HeadroomError
from schemas.keys import BrokerRole, TopicPartition
from tests.unit.fakes.reassigned_cluster import FakeReassignedCluster

BEFORE = {0: (1, 2), 1: (2, 3), 2: (3, 2, 1)}
AFTER = {0: [3, 2], 1: [2, 3], 2: [4, 2, 1]}


class Opened:
    """The fake cluster as a command opens it."""

    def __init__(self, cluster: FakeReassignedCluster) -> None:
        self._cluster = cluster

    def __call__(self, settings: object, topics: object = (), measured: bool = False, placed: object = ()) -> Opened:
        return self

    def __enter__(self) -> FakeReassignedCluster:
        return self._cluster

    def __exit__(self, *error: object) -> None:
        """Close."""


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeReassignedCluster:
    names = {n: TopicPartition("orders", n) for n in BEFORE}
    placements = {names[n]: PartitionPlacement("orders", n, r[0], r, r) for n, r in BEFORE.items()}
    fake = FakeReassignedCluster(placements, {1, 2, 3, 4}, rates={BrokerRole(2, Role.LEADER): 90_000_000}, looks=1)
    for module in ("run", "verify", "cancel", "clean"):
        monkeypatch.setattr(f"cli.reassign.{module}.LiveClusterControl", Opened(fake))
    monkeypatch.setenv("HEADROOM_CLUSTER__BOOTSTRAP_SERVERS", "broker1:9092")
    monkeypatch.setenv("HEADROOM_STORE__PATH", str(tmp_path / "store"))
    monkeypatch.setenv("HEADROOM_REASSIGN__PAUSE_S", "0")
    monkeypatch.setattr("cluster.reassignment.execution.moves._STALE_S", 0.0)
    monkeypatch.chdir(tmp_path)
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


def unfinished() -> RunSession:
    """Return a session whose journal has a run with a rate and an entry, as after a crash."""
    session = RunSession(load_settings(None), "reassign run")
    session.journal(RecordedRun("dead")).write(
        [
            JournalStep(StepKind.RUN, StepState.INTENDED, "another plan"),
            JournalStep(StepKind.RATE, StepState.INTENDED, "broker 1 as leader", None, "5000000"),
            JournalStep(StepKind.LIST, StepState.INTENDED, "topic orders as leader", None, "0:1"),
        ]
    )
    return session


def test_without_execute_the_steps_are_shown_and_nothing_is_changed(cluster: FakeReassignedCluster, plan: str) -> None:
    shown = run("run", plan, "--throttle", "10MB").stdout
    assert "3 partitions in 1 batch, a new run" in shown
    assert f"headroom reassign run {plan} --throttle 10000000 --execute" in shown
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


def test_only_the_plan_that_was_estimated_runs(cluster: FakeReassignedCluster, plan: str) -> None:
    fingerprint = of(run("run", plan, "--format", "json"))["fingerprint"]
    refused = run("run", plan, "--fingerprint", "0123", "--execute", "--yes", code=1)
    assert "is not what was estimated" in str(refused.exception)
    assert cluster.requests == []
    run("run", plan, "--fingerprint", fingerprint, "--execute", "--yes")
    assert replicas(cluster) == AFTER


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


def test_partitions_that_are_refused_are_named_and_end_with_code_1(cluster: FakeReassignedCluster, plan: str) -> None:
    cluster.refusing = {TopicPartition("orders", 2)}
    done = run("run", plan, "--throttle", "10MB", "--execute", "--yes", code=1)
    assert "Not at their target: orders-2 (InvalidReplicaAssignment)" in done.stdout
    assert "1 partitions are not at their target" in str(done.exception)
    assert replicas(cluster)[0] == AFTER[0]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"topic": "other"}, "other-2: is not in the cluster"),
        ({"replicas": [9, 2]}, "broker 9: is not in the cluster"),
        ({"log_dirs": ["/data", "any", "any"]}, "orders-2: names log directories"),
    ],
)
def test_a_plan_that_does_not_fit_the_cluster_is_refused(
    cluster: FakeReassignedCluster, plan: str, change: dict[str, object], text: str
) -> None:
    written = json.loads(Path(plan).read_text())
    written["partitions"][2] |= change
    Path(plan).write_text(json.dumps(written))
    assert text in str(run("run", plan, code=1).exception)


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


def test_wrong_usage(cluster: FakeReassignedCluster, plan: str) -> None:
    run("run", code=2)
    run("run", plan, "--execute", code=2)
    run("cancel", plan, "--all", code=2)
    run("cancel", code=2)
    assert "is not in the journal" in str(run("rollback", "nothing", code=1).exception)


def test_a_low_throttle_and_none_at_all_are_warned_of(cluster: FakeReassignedCluster, plan: str) -> None:
    assert "Below 1 MB/s" in run("run", plan, "--throttle", "500KB").stderr
    assert "as fast as brokers and network allow" in run("run", plan).stderr
    # The fake measures no write rates.
    assert "Write rates are unknown" in run("run", plan, "--throttle", "5MB").stderr


def test_outside_the_window_nothing_begins(
    cluster: FakeReassignedCluster, plan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADROOM_REASSIGN__WINDOW", "22:00-06:00")
    # 12:00 UTC.
    monkeypatch.setattr("cli.reassign.run.time.time", lambda: 12 * 3600.0)
    refused = run("run", plan, "--execute", "--yes", code=1)
    assert "it is not 22:00-06:00 now (reassign.window)" in str(refused.exception)
    assert (cluster.requests, RunSession(load_settings(None), "x").records) == ([], [])


def test_a_run_that_goes_on_says_so(cluster: FakeReassignedCluster, plan: str) -> None:
    fingerprint = of(run("run", plan, "--format", "json"))["fingerprint"]
    session = RunSession(load_settings(None), "reassign run")
    session.journal(RecordedRun("dead")).write([JournalStep(StepKind.RUN, StepState.INTENDED, fingerprint)])
    done = of(run("run", plan, "--throttle", "10MB", "--execute", "--yes", "--format", "json"))
    assert (done["resumes"], done["run_id"], done["state"]) == (True, "dead", "done")
    (record,) = RunSession(load_settings(None), "x").records
    assert replace(record, last_ms=None).state is RunState.DONE
