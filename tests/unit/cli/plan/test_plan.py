"""``headroom plan`` from a saved state: views, options, errors."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from hypothesis import given

from headroom.cli.plan.json_view import result_json
from headroom.operations.plans.estimating import EstimateRequest, estimate_plan
from headroom.operations.plans.state_file import read_state, state_json, state_of_json, write_state
from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState, LogDirectory
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment, plan_text
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.planning.throttles.replica_lists import TopicLists
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.support.paths import REPOSITORY
from tests.unit.builders.cluster_states import MB, placed, plan_of, state_of, states_and_plans
from tests.unit.builders.commands import json_of, run_headroom, succeed

EXAMPLES = REPOSITORY / "docs" / "examples"
MOVE, STATE = str(EXAMPLES / "plan_move.json"), str(EXAMPLES / "plan_state.json")
KEYS = (
    "lists",
    "sides",
    "throttle_bytes_per_s",
    "usual_rule_bytes_per_s",
    "finish_s",
    "bottleneck",
    "expected_switches",
    "what_if",
    "batches",
    "rollback",
    "fingerprint",
)


@pytest.fixture(autouse=True)
def _without_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> Result:
    return run_headroom("plan", *arguments)


def output(*arguments: str) -> str:
    return succeed("plan", *arguments).output


def found(*arguments: str) -> dict[str, Any]:
    return json_of("plan", *arguments)


def test_the_first_line_is_the_verdict() -> None:
    lines = output(MOVE, "--state", STATE).splitlines()
    assert lines[0].startswith("It fits: at 9.60 MB/s on every broker the move is done in ")
    assert lines[0].endswith("bottleneck: broker 2 as leader.")
    text = "\n".join(lines)
    assert "because they gain no replica (reordered): payments-0" in text
    assert "highest write rate of a broker: 6.00 MB/s, which is not enough here" in text
    assert "Kafka switches the leader of orders-0 from broker 1 to 2" in text
    assert "A throttle of 12.00 MB/s survives any single one." in text


def test_the_json_has_the_keys_of_the_contract() -> None:
    values = found(MOVE, "--state", STATE)
    assert set(KEYS) <= set(values)
    assert values["throttle_bytes_per_s"] == 9_600_000
    assert values["bottleneck"]["broker"] == 2
    assert values["bottleneck"]["role"] == "leader"
    assert values["lists"] == {"orders": {"leader": "0:1,0:2,1:1,1:2,2:1,2:2", "follower": "0:4,1:4,2:3"}}
    assert values["rollback"]["partitions"][0] == {"topic": "orders", "partition": 0, "replicas": [1, 2]}
    (batch,) = values["batches"]
    assert batch["plan"] == json.loads(Path(MOVE).read_text(encoding="utf-8"))
    assert {row["required_bytes_per_s"] for row in values["sides"]} == {1e6, 4e6, 6e6, 8e6}


def test_a_throttle_that_is_too_low_is_no_error_but_does_not_fit() -> None:
    text = output(MOVE, "--state", STATE, "--throttle", "6.5MB")
    assert text.startswith("Does not fit: at 6.50 MB/s the move will not finish; broker 2 as leader requires 8.00 MB/s")
    assert "Recommended: 9.60 MB/s." in text


def test_a_throttle_below_what_kafka_keeps() -> None:
    assert "Kafka does not keep a throttle below 1.00 MB/s" in output(MOVE, "--state", STATE, "--throttle", "0.5MB")


def test_the_capacity_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "headroom.toml").write_text('[cluster]\nreplication_capacity = "7MB"\n')
    text = output(MOVE, "--state", STATE)
    assert "Does not fit: a throttle has to exceed 8.00 MB/s, and cluster.replication_capacity is 7.00 MB/s" in text


def test_a_deadline() -> None:
    assert found(MOVE, "--state", STATE, "--finish-within", "1h")["finish_s"] <= 3600


def test_a_plan_that_copies_nothing(tmp_path: Path) -> None:
    move = tmp_path / "move.json"
    move.write_text('{"partitions": [{"topic": "payments", "partition": 0, "replicas": [3, 2]}]}')
    assert output(str(move), "--state", STATE).startswith("Nothing is copied: no partition gains a replica")
    values = found(str(move), "--state", STATE)
    assert (values["finish_s"], values["finish_high_s"], values["never_finishes"]) == (0.0, 0.0, False)
    assert values["batches"][0]["finish_s"] == 0.0


def test_a_smaller_factor_that_waits_for_a_dead_broker_has_no_end(tmp_path: Path) -> None:
    file, move = tmp_path / "state.json", tmp_path / "move.json"
    write_state(file, state_of([placed(0, (1, 2, 3), isr=(1, 2))], {3: BrokerState(3, alive=False)}))
    move.write_text(plan_text(plan_of({0: (1, 3)})))
    values = found(str(move), "--state", str(file))
    assert (values["finish_s"], values["fits"], values["would_fit"]) == (None, False, None)
    assert output(str(move), "--state", str(file)).startswith(
        "Does not fit: it ends only when broker 3 is back (see the notes)."
    )
    assert run(str(move), "--state", str(file), "--detailed-exitcode").exit_code == 4
    # Where a replica is added, it depends on the version of Kafka.
    move.write_text(plan_text(plan_of({0: (1, 4, 3)})))
    assert found(str(move), "--state", str(file))["fits"] is None
    assert (
        " Before Kafka 4.3 it ends only when broker 3 is back (see the notes)."
        in output(str(move), "--state", str(file)).splitlines()[0]
    )
    assert run(str(move), "--state", str(file), "--detailed-exitcode").exit_code == 5


def test_a_plan_that_does_not_fit_names_what_would(tmp_path: Path) -> None:
    """Two partitions require 4 MB/s each at the destination and at their leaders: 8 MB/s together."""
    file, move, settings = tmp_path / "state.json", tmp_path / "move.json", tmp_path / "headroom.toml"
    large = [placed(n, (1, 2), write_bytes_per_s=2.0 * MB) for n in (0, 1)]
    write_state(file, state_of(large))
    move.write_text(plan_text(plan_of({0: (1, 3), 1: (1, 3)})))
    settings.write_text('[cluster]\nreplication_capacity = "7MB"\n')
    text = output(str(move), "--state", str(file))
    assert text.startswith("Does not fit: a throttle has to exceed 8.00 MB/s, and cluster.replication_capacity is 7.00")
    assert "In 2 batches it fits (--batches 2): at 7.00 MB/s they take " in text.splitlines()[0]
    values = found(str(move), "--state", str(file))
    assert (values["fits"], values["would_fit"]["batches"]) == (False, 2)
    # That is what it says.
    cut = found(str(move), "--state", str(file), "--batches", "2")
    assert (cut["fits"], cut["would_fit"]) == (True, None)
    settings.write_text('[cluster]\nreplication_capacity = "4MB"\n')
    assert "No number of batches would: move it when less is written." in output(str(move), "--state", str(file))
    # One batch that a broker cannot carry never ends.
    one = found(str(move), "--state", str(file), "--batches", "1")
    assert (one["fits"], one["batch_options"][0]["fits"]) == (False, False)


def test_a_deadline_that_is_missed_does_not_fit() -> None:
    late = ("--throttle", "9.6MB", "--finish-within", "1h")
    text = output(MOVE, "--state", STATE, *late)
    assert text.startswith("Does not fit: at 9.60 MB/s the move is done in 3 h 49 min to ")
    assert ", not within 1 h; bottleneck: broker 2 as leader. Recommended: " in text.splitlines()[0]
    assert run(MOVE, "--state", STATE, *late, "--detailed-exitcode").exit_code == 4


def test_the_return_of_a_dead_broker_is_shown(tmp_path: Path) -> None:
    file, move = tmp_path / "state.json", tmp_path / "move.json"
    write_state(file, state_of([placed(0, (1, 2, 3), isr=(1, 2))], {3: BrokerState(3, alive=False)}))
    move.write_text(plan_text(plan_of({0: (1, 2, 4)})))
    text = output(str(move), "--state", str(file))
    # 1 MB/s each to brokers 2 and 4, and to 3 once it is back: 3 MB/s, with the margin 3.6.
    assert "So does the return of broker 3. A throttle of 3.60 MB/s survives any single one." in text
    assert "Brokers whose return makes the throttle too low" in text
    (case,) = found(str(move), "--state", str(file))["what_if"]["returns"]
    assert (case["returned_broker"], case["broker"], case["required_bytes_per_s"]) == (3, 1, 3e6)


def test_a_chart(tmp_path: Path) -> None:
    chart = tmp_path / "move.svg"
    output(MOVE, "--state", STATE, "--plot", str(chart))
    assert "Time of the move by throttle" in chart.read_text(encoding="utf-8")


@pytest.mark.parametrize("arguments", [(), (MOVE, "--in-flight")])
def test_a_file_or_what_runs(arguments: tuple[str, ...]) -> None:
    assert run(*arguments, "--state", STATE).exit_code == 2


def test_nothing_runs() -> None:
    assert "has no running reassignment" in str(run("--in-flight", "--state", STATE).exception)


def test_in_flight_estimates_the_running_moves(tmp_path: Path) -> None:
    moving = placed(0, (3, 2, 1), leader=1, isr=(1, 2), adding=(3,), removing=(1,))
    brokers = {b: BrokerState(b, leader_bytes_per_s=5 * MB, follower_bytes_per_s=5 * MB) for b in (1, 2, 3)}
    file = tmp_path / "state.json"
    write_state(file, state_of([moving], brokers, lists={"t": TopicLists("0:1,0:2", "0:3")}))
    text = output("--in-flight", "--state", str(file))
    assert text.startswith("It fits: at 5.00 MB/s")
    assert "1 partitions being reassigned" in text


def test_unknown_rates_cost_the_recommendation(tmp_path: Path) -> None:
    file, move = tmp_path / "state.json", tmp_path / "move.json"
    state = state_of([placed(0, (1, 2), write_bytes_per_s=None), placed(1, (1, 2))])
    write_state(file, state)
    move.write_text(plan_text(plan_of({0: (1, 3), 1: (1, 3)})))
    text = output(str(move), "--state", str(file))
    assert text.startswith("Unknown whether it fits: write rates are unknown")
    assert "a throttle has to exceed at least 2.00 MB/s" in text
    assert "The write rate of 1 copying partitions is unknown, such as t-0" in text
    assert found(str(move), "--state", str(file))["throttle_bytes_per_s"] is None


def test_what_never_ends_by_itself_is_in_the_first_line_and_in_the_json(tmp_path: Path) -> None:
    file, move, smaller = tmp_path / "state.json", tmp_path / "move.json", tmp_path / "smaller.json"
    down = {4: BrokerState(4, alive=False)}
    state = state_of([placed(0, (1, 2, 4), isr=(1, 2)), placed(1, (1, 2))], down, waits_for_kept=True)
    write_state(file, state)
    move.write_text(plan_text(plan_of({0: (1, 3, 4), 1: (1, 3)})))
    smaller.write_text(plan_text(plan_of({0: (1, 4)})))
    verdict = output(str(move), "--state", str(file)).splitlines()[0]
    assert verdict == "Does not fit: it ends only when broker 4 is back (see the notes)."
    waits_for = [{"broker": 4, "partitions": [{"topic": "t", "partition": 0}], "certain": True}]
    assert found(str(move), "--state", str(file))["waits_for"] == waits_for
    # Since Kafka 4.3 the one ends without broker 4, and the other does not.
    write_state(file, replace(state, waits_for_kept=False))
    assert "ends only" not in output(str(move), "--state", str(file))
    assert found(str(move), "--state", str(file))["waits_for"] == []
    text = output(str(smaller), "--state", str(file))
    assert text.startswith("Does not fit: it ends only when broker 4 is back")
    assert "headroom plan --drain 4 --topics t --save-plan without-4.json" in text


def test_the_saved_state_is_complete(tmp_path: Path) -> None:
    state = ClusterState(
        "c",
        7,
        {1: BrokerState(1, False, "r", False, 1, 2, 3, (LogDirectory("/a", 10, 5, True),)), 2: BrokerState(2)},
        {p.name: p for p in [placed(0, (1, 2), adding=(2,), log_dirs={1: "/a"}, copied_bytes={2: 5}, leader=None)]},
        {"t": "id"},
        {"t": TopicLists("*", None)},
        True,
        "somewhere",
        True,
    )
    write_state(tmp_path / "state.json", state)
    assert read_state(tmp_path / "state.json") == state


@given(states_and_plans())
def test_a_saved_state_is_the_live_one(drawn: tuple[ClusterState, ReassignmentPlan]) -> None:
    state, _ = drawn
    assert state_of_json(json.loads(json.dumps(state_json(state))), "state.json") == state


def test_a_saved_state_gives_the_same_result() -> None:
    state = state_of([placed(0, (1, 2)), placed(1, (2, 1), size_bytes=None)], auto_leader_rebalance=True)
    saved = state_of_json(json.loads(json.dumps(state_json(state))), "state.json")
    plan = plan_of({0: (2, 3), 1: (2, 1, 4)})
    results = [
        result_json(estimate_plan(plan, used, EstimateRequest(ThrottlePolicy()), "move.json"))
        for used in (state, saved)
    ]
    assert json.dumps(results[0]) == json.dumps(results[1])


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("{", "is not valid JSON"),
        ("[]", "is not a saved state of version 1"),
        ('{"version": 2}', "is not a saved state of version 1"),
        ('{"version": 1, "partitions": []}', "brokers"),
        ('{"version": 1, "brokers": [], "partitions": [{"topic": "t"}]}', "partitions.0.partition"),
        (
            '{"version": 1, "brokers": [], "partitions":'
            ' [{"topic": "t", "partition": 0, "leader": 1, "replicas": [1], "isr": [1]}]}',
            "t-0 has a replica on broker 1, which is not among its brokers",
        ),
    ],
)
def test_files_that_are_no_state(tmp_path: Path, text: str, rule: str) -> None:
    file = tmp_path / "state.json"
    file.write_text(text)
    with pytest.raises(HeadroomError, match=rule):
        read_state(file)


@pytest.mark.parametrize(
    ("table", "wrong", "rule"),
    [
        ("partitions", {"replicas": [1.0, 2]}, "partitions.0.replicas.0"),
        ("partitions", {"replicas": ["1", 2]}, "partitions.0.replicas.0"),
        ("partitions", {"replicas": [True, 2]}, "partitions.0.replicas.0"),
        ("partitions", {"replicas": [1, 1]}, "t-0 names a replica more than once"),
        ("partitions", {"partition": "0"}, "partitions.0.partition"),
        ("partitions", {"partition": -1}, "t--1 has a negative number"),
        ("partitions", {"size_bytes": "1GB"}, "partitions.0.size_bytes"),
        ("partitions", {"write_bytes_per_s": True}, "partitions.0.write_bytes_per_s"),
        ("partitions", {"write_bytes_per_s": -1.0}, "t-0 has a negative number"),
        ("brokers", {"broker": 1.0}, "brokers.0.broker"),
        ("brokers", {"leader_bytes_per_s": "5MB"}, "brokers.0.leader_bytes_per_s"),
    ],
)
def test_amounts_and_ids_of_a_state_are_numbers_of_json(
    tmp_path: Path, table: str, wrong: dict[str, Any], rule: str
) -> None:
    found = state_json(state_of([placed(0, (1, 2))]))
    found[table][0].update(wrong)
    file = tmp_path / "state.json"
    file.write_text(json.dumps(found))
    with pytest.raises(HeadroomError, match=rule):
        read_state(file)


@pytest.mark.parametrize(("table", "rule"), [("partitions", "names partition t-0"), ("brokers", "names broker 1")])
def test_a_state_names_a_partition_or_broker_once(tmp_path: Path, table: str, rule: str) -> None:
    found = state_json(state_of([placed(0, (1, 2))]))
    found[table].append(found[table][0])
    file = tmp_path / "state.json"
    file.write_text(json.dumps(found))
    with pytest.raises(HeadroomError, match=f"{rule} more than once"):
        read_state(file)


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(HeadroomError, match="cannot be read"):
        read_state(tmp_path / "none.json")
    with pytest.raises(HeadroomError, match="cannot be written"):
        write_state(tmp_path / "none" / "state.json", state_of([]))
    with pytest.raises(HeadroomError, match=r"cannot be read .it is a device"):
        read_state(Path("/dev/zero"))


def test_a_saved_state_replaces_no_file_of_another_kind(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    for _ in range(2):
        write_state(file, state_of([]))
        assert read_state(file) == state_of([])
    for text in ('{"version":1,"partitions":[]}', "[cluster]", "[1]", ""):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(HeadroomError, match="exists and is not a saved state"):
            write_state(file, state_of([]))
        assert file.read_text(encoding="utf-8") == text
    with pytest.raises(HeadroomError, match="exists and is not a saved state"):
        write_state(tmp_path, state_of([]))
    assert "cannot be read" in str(run(str(tmp_path / "none.json"), "--state", STATE).exception)


def test_moves_between_log_directories_are_estimated_and_their_rollback_names_the_directories(tmp_path: Path) -> None:
    directories = (LogDirectory("/a", 10**12, 10**11), LogDirectory("/b", 10**12 + 1, 10**11))
    # 100 MB at 10 MB/s; nothing is written meanwhile.
    resting = placed(0, (1, 2), log_dirs={1: "/a", 2: "/a"}, write_bytes_per_s=0.0)
    state = state_of([resting], {1: BrokerState(1, log_dirs=directories)})
    write_state(tmp_path / "state.json", state)
    named = ReassignmentPlan((TargetAssignment(TopicPartition("t", 0), (1, 2), ("/b", "any")),))
    (tmp_path / "move.json").write_text(plan_text(named))
    arguments = ("move.json", "--state", "state.json", "--batches-dir", "batches")
    lines = output(*arguments, "--log-dirs-throttle", "10MB").splitlines()
    assert lines[0] == "Nothing is copied between brokers: no partition gains a replica, so no throttle is needed."
    assert "Moves between log directories" in lines
    (moved,) = found(*arguments, "--log-dirs-throttle", "10MB")["directory_moves"]
    assert (moved["broker"], moved["replicas"], moved["copied_bytes"]) == (1, 1, 100 * MB)
    assert moved["finish_low_s"] <= 10 <= moved["finish_high_s"]
    back = json.loads((tmp_path / "batches" / "rollback.json").read_text())
    assert back["partitions"][0]["log_dirs"] == ["/a", "/a"]
    free = found(*arguments)
    assert free["directory_moves"][0]["finish_s"] is None
    assert any("No throttle limits moves between log directories on brokers 1" in text for text in free["warnings"])


def test_room_is_checked_for_the_batches_and_for_the_plan_in_one_file() -> None:
    # t-0 (600 MB) leaves broker 3, which has 1,000 MB; t-1 and t-2 bring 1,300.
    log_dirs = (LogDirectory("/a", 10**12, 1000 * MB),)
    partitions = [
        placed(0, (3,), size_bytes=600 * MB, log_dirs={3: "/a"}),
        placed(1, (1,), size_bytes=500 * MB),
        placed(2, (1,), size_bytes=800 * MB),
    ]
    write_state(Path("s.json"), state_of(partitions, {3: BrokerState(3, log_dirs=log_dirs)}))
    Path("move.json").write_text(plan_text(plan_of({0: (1,), 1: (3,), 2: (3,)})))
    said = "broker 3 has 1,000,000,000 bytes free, and the plan copies 1,300,000,000 there (t-1, t-2)"
    assert said in str(run("move.json", "--state", "s.json").exception)
    assert said in str(run("move.json", "--state", "s.json", "--batches", "1").exception)
    batches = found("move.json", "--state", "s.json", "--batches", "3", "--batches-dir", "out")["batches"]
    names = [[(e["partition"], e["replicas"]) for e in batch["plan"]["partitions"]] for batch in batches]
    assert names == [[(0, [1])], [(1, [3])], [(2, [3])]]


def test_what_is_in_remote_storage_is_named_and_not_copied() -> None:
    write_state(Path("s.json"), state_of([placed(0, (1, 2), size_bytes=800 * MB, untiered_bytes=100 * MB)]))
    Path("move.json").write_text(plan_text(plan_of({0: (1, 3)})))
    result = found("move.json", "--state", "s.json")
    assert result["copied_bytes"] == 100 * MB
    (note,) = [text for text in result["warnings"] if "remote storage" in text]
    assert note.startswith("Of 800.0 MB on the leaders' disks (1 partition), new replicas copy only the 100.0 MB ")


def test_a_move_that_waits_for_its_leader_is_not_known_to_fit() -> None:
    Path("move.json").write_text(plan_text(plan_of({0: (1, 3)})))
    for awaits, fits in ((False, True), (True, None)):
        state = state_of([placed(0, (1, 2), size_bytes=8 * MB, untiered_bytes=8 * MB, awaits_leader=awaits)])
        write_state(Path("s.json"), state)
        result = found("move.json", "--state", "s.json", "--throttle", "50MB")
        assert result["fits"] is fits
        assert any("copy nothing yet" in text for text in result["warnings"]) is awaits
        (verdict,) = [
            line
            for line in output("move.json", "--state", "s.json", "--throttle", "50MB").splitlines()[:20]
            if "It fits" in line
        ]
        assert verdict.endswith("Copies of 1 partition wait for their leaders (see the notes).") is awaits
