"""``headroom throttle apply``: the rates it sets, raises and leaves, and its treatment of brokers that are down."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from headroom.cli.throttle.apply_view import apply_notes, change_text
from headroom.cluster.live.throttle_state import ThrottleState
from headroom.operations.throttles.apply_plan import RateAction, apply_plan, brokers_to_set
from headroom.schemas.config import ClusterSettings, Settings
from headroom.schemas.errors import HeadroomError
from tests.unit.builders.throttle_views import (
    DEFAULT,
    LISTED,
    MB,
    OWN,
    SILENT,
    STILL,
    UNLISTED,
    FakeCluster,
    run,
    view_of,
)

# To 9.6 MB/s: broker 1 leader from 5.6, follower stays at 50; broker 2 leader from the default of 7, follower has none.
UNEVEN = {1: replace(OWN, leader_bytes_per_s=5_600_000, follower_bytes_per_s=50 * MB), 2: DEFAULT}
RAISE = ("apply", "--rate", "9600000", "--raise-only")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    fake = FakeCluster(view_of({1: OWN, 2: OWN}))
    fake.install(monkeypatch)
    return fake


def notes(
    view: ThrottleState, rate_bytes_per_s: int, brokers: list[int], settings: Settings | None = None
) -> list[str]:
    return apply_notes(settings or Settings(), view, apply_plan(view, rate_bytes_per_s, brokers))


def test_the_brokers_of_running_moves_are_set_unless_others_are_named() -> None:
    assert brokers_to_set(view_of(), None) == ([1, 2, 3], {})
    assert brokers_to_set(view_of(down=(2,)), None) == ([1, 3], {2: "down"})
    assert brokers_to_set(view_of(), [4, 1, 4]) == ([1, 4], {})


def test_without_a_move_brokers_must_be_named() -> None:
    with pytest.raises(HeadroomError, match="--brokers"):
        brokers_to_set(view_of(partitions=(STILL,)), None)


def test_a_broker_that_is_down_is_skipped_and_the_others_are_set() -> None:
    assert brokers_to_set(view_of(down=(1,)), [1, 2, 3]) == ([2, 3], {1: "down"})


def test_if_none_of_the_brokers_is_up_all_is_refused() -> None:
    with pytest.raises(HeadroomError, match=r"broker 2: is not up\..*up are: 1, 3, 4"):
        brokers_to_set(view_of(down=(2,)), [2])
    with pytest.raises(HeadroomError, match=r"broker 1, 2, 3: is not up\..*up are: 4"):
        brokers_to_set(view_of(down=(1, 2, 3)), None)


def test_a_broker_that_nothing_names_is_refused_with_all_others() -> None:
    with pytest.raises(HeadroomError, match=r"broker 9: is not known.*up are: 1, 2, 3, 4"):
        brokers_to_set(view_of(), [1, 9])


def test_a_broker_that_only_a_partition_names_is_known() -> None:
    named = replace(STILL, removing=(9,))
    assert brokers_to_set(view_of(partitions=(named,)), [4, 9]) == ([4], {9: "down"})


def test_reasons_against_a_rate_are_noted() -> None:
    settings = Settings(cluster=ClusterSettings(replication_capacity=50e6))
    assert notes(view_of(), 20 * MB, [1, 2, 3], settings) == []
    assert "least" in notes(view_of(), 999_999, [1, 2, 3])[0]
    assert "50.00 MB/s" in notes(view_of(), 60 * MB, [1, 2, 3], settings)[0]
    assert "Brokers 2, 3" in notes(view_of(), 20 * MB, [1])[0]
    unlisted = view_of(configs={"t": UNLISTED, "still": UNLISTED})
    assert "limits nothing" in notes(unlisted, 20 * MB, [1, 2, 3])[0]
    assert notes(view_of({1: OWN}, configs={"still": UNLISTED}), 20 * MB, [1, 2, 3]) == []


def test_only_rates_in_force_that_are_lower_are_raised() -> None:
    plan = apply_plan(view_of(UNEVEN), 9_600_000, [1, 2], raise_only=True)
    assert [(c.broker, c.role, c.action) for c in plan.changes] == [
        (1, "leader", RateAction.RAISE),
        (1, "follower", RateAction.KEEP),
        (2, "leader", RateAction.RAISE),
        (2, "follower", RateAction.KEEP_UNLIMITED),
    ]
    assert plan.rates() == {(1, "leader"): 9_600_000, (2, "leader"): 9_600_000}
    assert [change_text(change) for change in plan.changes] == [
        "5.60 MB/s -> 9.60 MB/s",
        "keeps 50.00 MB/s",
        "7.00 MB/s -> 9.60 MB/s",
        "has none, stays so",
    ]


def test_a_rate_that_is_as_wanted_is_kept() -> None:
    assert apply_plan(view_of({1: OWN}), 5 * MB, [1], raise_only=True).rates() == {}


def test_an_unknown_rate_is_not_raised_for_it_may_be_higher_or_none() -> None:
    plan = apply_plan(view_of({1: OWN, 2: SILENT}), 9_600_000, [1, 2], raise_only=True)
    assert plan.unknown() == [2]
    assert {broker for broker, _ in plan.rates()} == {1}
    # Without --raise-only the rate is set, whatever it was.
    assert (2, "leader") in apply_plan(view_of({2: SILENT}), 9_600_000, [2]).rates()


def test_one_role_can_be_set_alone(cluster: FakeCluster) -> None:
    result = run("apply", "--rate", "9.6MB", "--brokers", "1", "--role", "follower", "--execute", "--format", "json")
    assert cluster.changes == [{(1, "follower"): 9_600_000}]
    (broker,) = json.loads(result.stdout)["brokers"]
    assert (broker["changes"]["leader"], broker["changes"]["follower"]["action"]) == (None, "set")


def test_both_roles_are_set_if_both_are_named_or_none(cluster: FakeCluster) -> None:
    command = ("apply", "--rate", "9.6MB", "--brokers", "1", "--execute")
    assert run(*command).exit_code == 0
    assert run(*command, "--role", "follower", "--role", "leader").exit_code == 0
    assert cluster.changes == [{(1, "leader"): 9_600_000, (1, "follower"): 9_600_000}] * 2


def test_the_command_of_an_alert_raises_what_is_lower(cluster: FakeCluster) -> None:
    cluster.view = view_of(UNEVEN)
    result = run(*RAISE, "--brokers", "1,2,3", "--execute")
    assert result.exit_code == 0
    assert cluster.changes == [{(1, "leader"): 9_600_000, (2, "leader"): 9_600_000}]
    # One row per broker, with the changes of its leader and follower rates.
    rows = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "1 5.60 MB/s -> 9.60 MB/s keeps 50.00 MB/s" in rows
    assert "2 7.00 MB/s -> 9.60 MB/s has none, stays so" in rows
    assert "3 has none, stays so has none, stays so" in rows
    assert "In force: 9.60 MB/s where it was lower, on brokers 1, 2" in result.stdout


def test_json_has_what_is_done_to_each_rate(cluster: FakeCluster) -> None:
    cluster.view = view_of(UNEVEN)
    text = json.loads(run(*RAISE, "--brokers", "1,2", "--format", "json").stdout)
    assert (text["executed"], text["rate_bytes_per_s"], text["raise_only"]) == (False, 9_600_000, True)
    assert [broker["changes"] for broker in text["brokers"]] == [
        {
            "leader": {"action": "raise", "from_bytes_per_s": 5_600_000, "to_bytes_per_s": 9_600_000},
            "follower": {"action": "keep", "from_bytes_per_s": 50 * MB, "to_bytes_per_s": 50 * MB},
        },
        {
            "leader": {"action": "raise", "from_bytes_per_s": 7 * MB, "to_bytes_per_s": 9_600_000},
            "follower": {"action": "keep_unlimited", "from_bytes_per_s": None, "to_bytes_per_s": None},
        },
    ]
    assert (text["passed_over"], text["failed"]) == ([], None)


@pytest.mark.parametrize("arguments", [(), ("--execute",)])
def test_if_no_rate_is_lower_a_sentence_is_printed_and_nothing_changed(
    cluster: FakeCluster, arguments: tuple[str, ...]
) -> None:
    result = run("apply", "--rate", "4MB", "--raise-only", *arguments)
    assert (result.exit_code, cluster.changes) == (0, [])
    assert "Nothing to raise: no rate in force on brokers 1, 2, 3 is lower than 4.00 MB/s." in result.stdout
    assert "To do it" not in result.stdout


def test_a_broker_that_is_down_is_noted_and_the_rest_is_done(cluster: FakeCluster) -> None:
    cluster.view = view_of({2: OWN, 3: OWN}, down=(1,))
    result = run(*RAISE, "--brokers", "1,2,3", "--execute", "--format", "json")
    assert result.exit_code == 0
    assert {broker for broker, _ in cluster.changes[0]} == {2, 3}  # type: ignore[attr-defined]
    assert "Broker 1 is down and is skipped" in result.stderr
    assert "Run the command again when it is up" in result.stderr
    text = json.loads(result.stdout)
    assert text["passed_over"] == [{"broker": 1, "reason": "down"}]
    assert [b["broker"] for b in text["brokers"]] == [2, 3]


def test_the_printed_command_includes_brokers_that_are_down(cluster: FakeCluster) -> None:
    cluster.view = view_of({2: OWN, 3: OWN}, down=(1,))
    shown = run(*RAISE, "--brokers", "1,2,3", "--role", "leader").stdout
    assert "throttle apply --rate 9600000 --brokers 1,2,3 --role leader --raise-only --execute" in shown


def test_a_broker_that_hangs_meanwhile_is_the_error_at_the_end(cluster: FakeCluster) -> None:
    cluster.hanging = {2}
    result = run(*RAISE, "--brokers", "1,2", "--execute", "--format", "json")
    assert isinstance(result.exception, HeadroomError)
    assert "2" in result.exception.subject
    text = json.loads(result.stdout)
    assert [(b["broker"], b["after"] is not None) for b in text["brokers"]] == [(1, True), (2, False)]
    assert text["failed"]["rule"] == "no answer"


def test_a_broker_of_unknown_rates_is_the_error_at_the_end(cluster: FakeCluster) -> None:
    cluster.view = view_of({1: OWN, 2: SILENT})
    dry, done = run(*RAISE, "--brokers", "1,2"), run(*RAISE, "--brokers", "1,2", "--execute")
    assert (dry.exit_code, "unknown, stays as it is" in dry.stdout) == (0, True)
    assert isinstance(done.exception, HeadroomError)
    assert done.exception.subject == "broker 2"
    assert cluster.changes == [{(1, "leader"): 9_600_000, (1, "follower"): 9_600_000}]


def test_nothing_is_changed_without_execute(cluster: FakeCluster) -> None:
    applied = run("apply", "--rate", "12.5MB")
    assert applied.exit_code == 0
    assert "headroom throttle apply --rate 12500000 --brokers 1,2,3 --execute" in applied.stdout
    assert cluster.changes == []


def test_the_command_that_is_printed_names_the_same_settings(cluster: FakeCluster, tmp_path: Path) -> None:
    file = tmp_path / "my headroom.toml"
    file.write_text("[cluster]\n")
    assert f"--config '{file}' --execute" in run("apply", "--rate", "12.5MB", "--config", str(file)).stdout


def test_apply_with_execute_sets_the_rate_and_has_before_and_after(cluster: FakeCluster) -> None:
    result = run("apply", "--rate", "12.5MB", "--brokers", "1,3", "--execute", "--format", "json")
    text = json.loads(result.stdout)
    assert text["executed"] is True
    assert [b["before"]["leader_bytes_per_s"] for b in text["brokers"]] == [5 * MB, None]
    assert [b["after"]["leader_bytes_per_s"] for b in text["brokers"]] == [12_500_000, 12_500_000]


def test_text_has_the_rate_before_and_after(cluster: FakeCluster) -> None:
    cluster.view = view_of({1: OWN, 3: SILENT}, configs={"t": LISTED})
    rows = [" ".join(line.split()) for line in run("apply", "--rate", "12.5MB").stdout.splitlines()]
    assert "1 5.00 MB/s -> 12.50 MB/s 5.00 MB/s -> 12.50 MB/s" in rows
    assert "2 none -> 12.50 MB/s none -> 12.50 MB/s" in rows
    assert "3 unknown -> 12.50 MB/s unknown -> 12.50 MB/s" in rows


@pytest.mark.parametrize(
    "arguments",
    [["--rate", "0"], ["--rate", "fast"], ["--rate", "5MB", "--brokers", "a"], ["--rate", "5MB", "--role", "all"], []],
)
def test_apply_used_wrongly_exits_2(cluster: FakeCluster, arguments: list[str]) -> None:
    assert run("apply", *arguments).exit_code == 2
