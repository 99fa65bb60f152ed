from __future__ import annotations

import json
import shlex
import signal
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from headroom.cli.common import changing
from headroom.cli.elections import command as elections_command
from headroom.cli.elections.text_view import notes, print_plan
from headroom.cluster.elections.leadership import LeadershipSnapshot
from headroom.cluster.elections.traffic import Traffic
from headroom.cluster.model import LeaderRebalanceConfig
from headroom.operations.elections.plan import blocked_reason_of, quiet_policy
from headroom.operations.elections.result import PlannedElections
from headroom.planning.elections.limits import limits_of
from headroom.planning.elections.planner import (
    Balance,
    Batch,
    BatchLimits,
    ElectionPlan,
    Reason,
    RequiredThrottleIncrease,
    SkippedPartition,
)
from headroom.schemas.config import AlertSettings, ClusterSettings, ElectionSettings, Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import Role, TopicPartition
from tests.unit.builders.leadership import FakeCluster, away, home

EMPTY = ElectionPlan((), (), (), (), ())


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeCluster:
    """Broker 1 leads one of its four preferred partitions; broker 2 leads its only one."""
    fake = FakeCluster(away("t", 0), away("t", 1), away("t", 2), home("t", 3), home("u", 0, 2))
    monkeypatch.setattr(elections_command, "LiveCluster", lambda settings: fake)
    monkeypatch.setattr(changing, "at_terminal", lambda: True)
    monkeypatch.setenv("HEADROOM_CLUSTER__BOOTSTRAP_SERVERS", "broker1:9092")
    monkeypatch.setenv("HEADROOM_STORE__PATH", str(tmp_path / "store"))
    monkeypatch.setenv("HEADROOM_ELECTIONS__BATCH_PARTITIONS", "2")
    monkeypatch.setenv("HEADROOM_ELECTIONS__PAUSE_S", "0")
    return fake


def _run(*arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(elections_command.elections, arguments, input=answer)


def _view(
    plan: ElectionPlan,
    leadership: LeadershipSnapshot | None = None,
    settings: Settings | None = None,
    threshold: float = 0.1,
) -> PlannedElections:
    brokers = {balance.broker for balance in (*plan.before, *plan.after)}
    leadership = leadership or LeadershipSnapshot({}, frozenset(), frozenset())
    return PlannedElections(settings or Settings(), None, leadership, plan, dict.fromkeys(brokers, threshold))


def test_without_execute_the_plan_is_printed_and_nothing_is_changed(cluster: FakeCluster) -> None:
    result = _run("--topics", "t", "--brokers", "1")
    assert result.exit_code == 0, result.output
    assert "3 of 5 partitions are led by another broker than their preferred one; 1 of 2 brokers" in result.stdout
    # 3 of 4 are not led by their preferred leader.
    assert "75 %, too high" in result.stdout
    assert "headroom elections --execute --topics t --brokers 1" in result.stdout
    assert cluster.asked == []


def test_a_broker_that_is_down_is_said_to_be_not_electable_and_not_both_balanced_and_not(cluster: FakeCluster) -> None:
    cluster.alive = frozenset({2, 3})
    text = " ".join(_run().stdout.split())
    assert "0 of 2 brokers are out of balance; 1 above the limit: not electable, broker 1 is down." in text
    assert "75 %, not electable, broker 1 is down" in text
    brokers = json.loads(_run("--format", "json").stdout)["brokers"]
    assert [broker["not_electable"] for broker in brokers] == ["not electable, broker 1 is down", None]


@pytest.mark.parametrize(
    ("balance", "reason"),
    [
        # 9 of 10 away: all wait for the move, all are out of sync, one is electable (10 %, which is allowed).
        (Balance(1, 10, 9, 0, 9), "not electable, its partitions wait for the move"),
        (Balance(1, 10, 9, 0, 0), "not electable, its replicas are out of sync"),
        (Balance(1, 10, 9, 1, 8), "only 1 of 9 partitions electable"),
        (Balance(1, 10, 1, 0, 1), None),
        (Balance(1, 10, 9, 9, 0), None),
    ],
)
def test_why_a_broker_above_its_limit_is_not_out_of_balance(balance: Balance, reason: str | None) -> None:
    leadership = LeadershipSnapshot({}, frozenset({1}), frozenset())
    assert _view(replace(EMPTY, before=(balance,)), leadership).not_electable(balance) == reason


def test_json_has_the_whole_plan(cluster: FakeCluster) -> None:
    message = json.loads(_run("--format", "json").stdout)
    assert message["executed"] is False
    assert message["brokers"][0] == {
        "broker": 1,
        "preferred_partitions": 4,
        "non_preferred_partitions": 3,
        "electable_now": 3,
        "waiting_for_move": 0,
        # It leads t-3, with 10 bytes/s, and is the preferred leader of four such partitions.
        "write_bytes_per_s": 10.0,
        "preferred_write_bytes_per_s": 40.0,
        "read_bytes_per_s": None,
        "preferred_read_bytes_per_s": None,
        "imbalance_ratio": 0.75,
        "threshold_ratio": 0.1,
        "out_of_balance": True,
        "not_electable": None,
        "imbalance_ratio_after": 0.0,
    }
    assert [len(batch["partitions"]) for batch in message["batches"]] == [2, 1]
    assert message["batches"][0]["imbalance_ratios"] == [
        {"broker": 1, "imbalance_ratio": 0.25},
        {"broker": 2, "imbalance_ratio": 0.0},
    ]
    assert message["cluster_write_bytes_per_s"] == 100.0


def test_json_has_the_read_rates_now_and_with_preferred_leaders(cluster: FakeCluster) -> None:
    for name, read_bytes_per_s in ((("t", 0), 5.0), (("t", 1), 0.0), (("t", 2), 1.0), (("t", 3), 2.0), (("u", 0), 4.0)):
        cluster.set(*name, read_bytes_per_s=read_bytes_per_s)
    brokers = json.loads(_run("--format", "json").stdout)["brokers"]
    # Broker 2 leads all of t but t-3 now, and would lead u-0 alone.
    assert [(b["read_bytes_per_s"], b["preferred_read_bytes_per_s"]) for b in brokers] == [(2.0, 8.0), (10.0, 4.0)]


def test_a_brokers_own_threshold_wins(cluster: FakeCluster) -> None:
    cluster.balancing = {1: LeaderRebalanceConfig(percentage=80), 2: LeaderRebalanceConfig()}
    message = json.loads(_run("--format", "json").stdout)
    assert [(b["threshold_ratio"], b["out_of_balance"]) for b in message["brokers"]] == [(0.8, False), (0.1, False)]


def test_batches_are_written_as_kafkas_tool_takes_them(cluster: FakeCluster, tmp_path: Path) -> None:
    folder = tmp_path / "my batches"
    result = _run("--batches-dir", str(folder))
    assert [file.name for file in sorted(folder.iterdir())] == ["batch-001.json", "batch-002.json"]
    first = json.loads((folder / "batch-001.json").read_text())
    assert first["partitions"][0].keys() == {"topic", "partition"}
    assert len(first["partitions"]) == 2
    assert (
        "kafka-leader-election.sh --bootstrap-server broker1:9092 --election-type preferred "
        f"--path-to-json-file '{folder}/batch-001.json'" in result.stdout
    )


def test_json_has_the_command_of_each_file(cluster: FakeCluster, tmp_path: Path) -> None:
    message = json.loads(_run("--batches-dir", str(tmp_path), "--format", "json").stdout)
    assert message["batch_files"] == [str(tmp_path / f"batch-00{number}.json") for number in (1, 2)]
    for file, command in zip(message["batch_files"], message["batch_commands"], strict=True):
        assert command.startswith("kafka-leader-election.sh --bootstrap-server broker1:9092 --election-type preferred ")
        assert command.endswith(f"--path-to-json-file {shlex.quote(file)}")


def test_batches_of_another_plan_are_not_mixed_with_these(cluster: FakeCluster, tmp_path: Path) -> None:
    (tmp_path / "batch-009.json").touch()
    error = _run("--batches-dir", str(tmp_path)).exception
    assert isinstance(error, HeadroomError)
    assert error.rule == "contains batches already"


def test_a_folder_that_cannot_be_written_to_is_an_error(cluster: FakeCluster, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert isinstance(_run("--batches-dir", str(tmp_path / "file")).exception, HeadroomError)


def test_execute_asks_first_and_a_no_changes_nothing(cluster: FakeCluster) -> None:
    result = _run("--execute", answer="n\n")
    assert result.exit_code == 0
    assert "Elect 3 leaders in 2 batches?" in result.stderr
    assert "Nothing was changed" in result.stdout
    assert cluster.asked == []


def test_execute_elects_batch_by_batch_and_prints_the_results(cluster: FakeCluster) -> None:
    result = _run("--execute", answer="y\n")
    assert result.exit_code == 0, result.output
    assert [len(asked) for asked in cluster.asked] == [2, 1]
    assert "Batch 2 of 2: 1 elected, settled in" in result.stderr
    assert "3 leaders elected; 0 of 3 are left." in result.stdout


def test_execute_prints_json_of_every_batch(cluster: FakeCluster) -> None:
    message = json.loads(_run("--execute", "--yes", "--format", "json").stdout)
    assert (message["executed"], message["stopped"], message["left_partitions"]) == (True, None, 0)
    assert [len(result["elected"]) for result in message["results"]] == [2, 1]
    assert message["results"][1]["imbalance_ratios"][0] == {"broker": 1, "imbalance_ratio": 0.0}


def test_the_error_that_stops_a_run_is_printed_with_the_remaining_partitions(cluster: FakeCluster) -> None:
    cluster.refused = dict.fromkeys(cluster.partitions, "PREFERRED_LEADER_NOT_AVAILABLE")
    result = _run("--execute", "--yes", "--format", "json")
    assert isinstance(result.exception, HeadroomError)
    message = json.loads(result.stdout)
    assert message["left_partitions"] == 3
    assert "PREFERRED_LEADER_NOT_AVAILABLE" in message["stopped"]["rule"]
    text = _run("--execute", "--yes")
    assert "0 leaders elected; 3 of 3 are left." in text.stdout
    assert "for the remaining partitions" in text.stdout


def test_a_stopped_run_continues_when_it_is_run_again(cluster: FakeCluster) -> None:
    cluster.refused = {("t", 2): "PREFERRED_LEADER_NOT_AVAILABLE"}
    assert isinstance(_run("--execute", "--yes").exception, HeadroomError)
    cluster.refused = {}
    assert _run("--execute", "--yes").exit_code == 0
    assert {cluster.leader("t", n) for n in range(4)} == {1}
    assert "All balanced: nothing to elect." in _run("--execute", "--yes").stdout


def test_ctrl_c_ends_a_run_after_the_current_batch(cluster: FakeCluster) -> None:
    cluster.then = lambda: signal.raise_signal(signal.SIGINT)
    result = CliRunner().invoke(elections_command.elections, ["--execute", "--yes"], standalone_mode=False)
    assert isinstance(result.exception, click.Abort)
    assert len(cluster.asked) == 1
    assert "2 leaders elected; 1 of 3 are left." in result.stdout


@pytest.mark.parametrize("arguments", [["--yes"], ["--wait"], ["--topics", "a,,b"], ["--brokers", "a"]])
def test_wrong_use_exits_2(cluster: FakeCluster, arguments: list[str]) -> None:
    assert _run(*arguments).exit_code == 2


def test_without_a_terminal_execute_needs_yes(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changing, "at_terminal", lambda: False)
    result = _run("--execute")
    assert result.exit_code == 2
    assert "give --yes too" in result.stderr
    assert cluster.asked == []


@pytest.mark.parametrize(("option", "value"), [("--topics", "orders"), ("--brokers", "9")])
def test_an_unknown_topic_or_broker_is_refused(cluster: FakeCluster, option: str, value: str) -> None:
    error = _run(option, value).exception
    assert isinstance(error, HeadroomError)
    assert error.rule == "is not in the cluster"


def test_at_a_busy_time_nothing_is_asked_or_changed(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADROOM_ELECTIONS__QUIET_BELOW", "50")
    result = _run("--execute")
    assert isinstance(result.exception, HeadroomError)
    assert "quiet time" in result.exception.rule
    assert "Elect 3" not in result.stderr
    assert cluster.asked == []


def test_with_wait_the_plan_is_made_once_it_is_quiet(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADROOM_ELECTIONS__QUIET_BELOW", "50")
    rates = iter([100.0, *[10.0] * 9])
    monkeypatch.setattr(
        cluster,
        "leadership_with_traffic",
        lambda watched=(): replace(cluster.leadership(), traffic=Traffic(cluster_written=next(rates))),
    )
    monkeypatch.setattr("headroom.cluster.elections.executor._QUIET_POLL_S", 0.0)
    assert _run("--execute", "--yes", "--wait").exit_code == 0
    assert len(cluster.asked) == 2


def test_limits_and_quiet_time_come_from_the_settings() -> None:
    settings = ElectionSettings(7, 3, 1e6, 2e6, 3e6, "01:00-05:00")
    assert limits_of(settings) == BatchLimits(7, 3, 1e6, capacity_bytes_per_s=2e6)
    assert quiet_policy(settings).below_bytes_per_s == 3e6
    assert quiet_policy(settings).window is not None
    assert quiet_policy(ElectionSettings()).allows(0, None)


def test_why_it_is_not_quiet_names_time_rate_and_settings() -> None:
    settings = ElectionSettings(quiet_below=3e6, window="01:00-05:00")
    quiet, noon_s = quiet_policy(settings), 12 * 3600.0
    message = blocked_reason_of(settings, quiet, 5e6, noon_s)
    assert message == (
        "it is not 01:00-05:00 now (elections.window); "
        "producers write 5.00 MB/s, not less than 3.00 MB/s (elections.quiet_below)"
    )
    assert "an unknown rate" in (blocked_reason_of(settings, quiet, None, noon_s) or "")
    assert blocked_reason_of(settings, quiet, 2e6, noon_s) is None


def _balance(broker: int, away_count: int = 0, **values: float) -> Balance:
    return Balance(broker, 10, away_count, away_count, 0, **values)


def test_of_a_large_cluster_the_worst_brokers_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    balances = tuple(_balance(b, 9 if b == 77 else 1) for b in range(1, 101))
    batches = tuple(Batch((("t", n),), 1.0, {1: 0.1}) for n in range(50))
    print_plan(_view(replace(EMPTY, before=balances, batches=batches, after=balances)))
    message = capsys.readouterr().out
    assert "and 80 more" in message
    assert "and 30 more" in message
    assert "90 %, too high" in message
    assert len(message.splitlines()) < 70


def test_what_is_left_out_is_counted_by_reason_with_the_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    left = tuple(
        SkippedPartition(TopicPartition("t", n), 1, Reason.MOVING if n else Reason.PREFERRED_DOWN) for n in range(6)
    )
    print_plan(_view(replace(EMPTY, left_out=left)))
    message = capsys.readouterr().out
    assert "t-1, t-2, t-3 and 2 more" in message
    assert "Start the broker." in message
    assert "Nothing to elect now." in message


def test_every_reason_has_words_and_a_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    for reason in Reason:
        print_plan(_view(replace(EMPTY, left_out=(SkippedPartition(TopicPartition("t", 0), 1, reason),))))
    assert capsys.readouterr().out.count("t-0") == len(Reason)


def _short_of(*raises: RequiredThrottleIncrease) -> ElectionPlan:
    return replace(EMPTY, raise_first=raises)


def test_one_command_raises_all_throttles_that_come_first_and_lowers_none() -> None:
    raises = (
        RequiredThrottleIncrease((2, Role.LEADER), 5e6, 8e6),
        RequiredThrottleIncrease((3, Role.LEADER), 5e6, 6e6),
    )
    throttles = {(2, Role.LEADER): 5e6, (2, Role.FOLLOWER): 5e6, (3, Role.LEADER): 5e6, (3, Role.FOLLOWER): None}
    leadership = LeadershipSnapshot({}, frozenset(), frozenset(), throttles=throttles)
    # 8 MB/s x 1.2; a higher rate, or none, stays as it is.
    command = "headroom throttle apply --rate 9600000 --brokers 2,3 --raise-only --execute"
    assert _view(_short_of(*raises), leadership).raise_command() == command
    higher = replace(leadership, throttles={**throttles, (3, Role.FOLLOWER): 20e6})
    assert _view(_short_of(*raises), higher).raise_command() == command


def test_if_no_throttle_is_enough_none_is_recommended(capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings(cluster=ClusterSettings(replication_capacity=7e6), alerts=AlertSettings())
    view = _view(_short_of(RequiredThrottleIncrease((2, Role.LEADER), 5e6, 8e6)), settings=settings)
    assert view.raise_command() is None
    print_plan(view)
    assert "No throttle would do" in capsys.readouterr().out


def test_unmeasured_brokers_are_shown_with_the_consequence() -> None:
    leadership = LeadershipSnapshot(
        {}, frozenset(), frozenset(), traffic=Traffic(unmeasured={3: "refused", 2: "JMX a:1: refused."})
    )
    message = next(notes(_view(EMPTY, leadership)))
    assert "broker 2 and of 1 more (JMX a:1: refused.)" in message
    assert "use only known rates" in message


def test_unknown_rates_are_not_shown_as_zero(capsys: pytest.CaptureFixture[str]) -> None:
    batches = (Batch((("t", 0),), 0.0, {}, unknown_rates=1), Batch((("t", 1), ("t", 2)), 2e6, {}, unknown_rates=1))
    print_plan(_view(replace(EMPTY, batches=batches)))
    message = capsys.readouterr().out
    assert "0.000 MB/s" not in message
    assert "2.00 MB/s or more" in message


def test_brokers_with_automatic_rebalance_are_shown() -> None:
    leadership = LeadershipSnapshot(
        {},
        frozenset(),
        frozenset(),
        balancing={1: LeaderRebalanceConfig(True, 300), 2: LeaderRebalanceConfig(False), 3: LeaderRebalanceConfig()},
    )
    assert "broker 1 (auto.leader.rebalance.enable)" in next(notes(_view(EMPTY, leadership)))


def test_brokers_that_stay_out_of_balance_are_shown() -> None:
    plan = replace(EMPTY, batches=(Batch((("t", 0),), 1.0, {}),), after=(_balance(1), _balance(2, 5)))
    assert list(notes(_view(plan))) == ["Out of balance even then: broker 2."]


def test_only_the_partitions_of_a_file(cluster: FakeCluster, tmp_path: Path) -> None:
    file = tmp_path / "elections.json"
    file.write_text('{"partitions":[{"topic":"t","partition":1}],"version":1}')
    message = json.loads(_run("--file", str(file), "--format", "json").stdout)
    (batch,) = message["batches"]
    assert [(p["topic"], p["partition"]) for p in batch["partitions"]] == [("t", 1)]
    assert f"headroom elections --execute --file {shlex.quote(str(file))}" in _run("--file", str(file)).stdout
    file.write_text('{"partitions":[{"topic":"t","partition":9}]}')
    assert "t-9: is not in the cluster" in str(_run("--file", str(file)).exception)
    assert "cannot be read" in str(_run("--file", str(tmp_path / "missing.json")).exception)
