from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from cli import throttle_commands
from cli.throttle_plan import apply_warnings, brokers_to_set, check_rate, clear_plan, clear_warnings, require_idle
from cli.throttle_view import ThrottleView, remarks, view_json, view_rows
from cluster.model import Broker, BrokerThrottles, Partition, Snapshot, TopicConfig
from schemas.config import ClusterSettings, Settings
from schemas.errors import HeadroomError

NONE = BrokerThrottles(True, None, None, "none", "none")
OWN = BrokerThrottles(True, 5_000_000, 5_000_000, "broker", "broker")
DEFAULT = BrokerThrottles(True, 7_000_000, None, "default", "none")
SILENT = BrokerThrottles(known=False)
STILL = Partition("still", 0, 4, 0, (4, 3), (4, 3), ())
MOVING = Partition("t", 0, 1, 0, (1, 2, 3), (1, 2), (), adding=(3,))
LISTED = TopicConfig("0:1,0:2", "0:3", compacted=False)
UNLISTED = TopicConfig(None, None, compacted=False)


def _view(
    rates: dict[int, BrokerThrottles] | None = None,
    partitions: tuple[Partition, ...] = (STILL, MOVING),
    configs: dict[str, TopicConfig] | None = None,
    down: tuple[int, ...] = (),
) -> ThrottleView:
    rates = dict.fromkeys((1, 2, 3, 4), NONE) | (rates or {})
    brokers = {b: Broker(b, f"broker{b}", 9092, b not in down) for b in rates}
    configs = {"t": LISTED, "still": UNLISTED} if configs is None else configs
    return ThrottleView(Snapshot(brokers, {p.name: p for p in partitions}, {}, configs), rates)


class FakeCluster:
    """A cluster whose throttles can be read and changed."""

    def __init__(self, view: ThrottleView) -> None:
        self.view = view
        self.changes: list[object] = []

    def read_view(self, settings: Settings) -> ThrottleView:
        return self.view

    def apply_rates(self, settings: Settings, rates: dict[int, int], on_step: object) -> dict[int, BrokerThrottles]:
        self.changes.append(rates)
        return {b: BrokerThrottles(True, rate, rate, "broker", "broker") for b, rate in rates.items()}

    def clear_rates(self, settings: Settings, brokers: tuple[int, ...], default: bool, on_step: object) -> None:
        self.changes.append((brokers, default))

    def clear_lists(self, settings: Settings, topics: tuple[str, ...], on_step: object) -> None:
        self.changes.append(topics)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    fake = FakeCluster(_view({1: OWN, 2: OWN}))
    for name in ("read_view", "apply_rates", "clear_rates", "clear_lists"):
        monkeypatch.setattr(throttle_commands, name, getattr(fake, name))
    monkeypatch.setenv("HEADROOM_CLUSTER__BOOTSTRAP_SERVERS", "broker1:9092")
    return fake


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(throttle_commands.throttle, arguments)


def test_a_rate_is_whole_bytes_per_second() -> None:
    assert check_rate(12_500_000.4) == 12_500_000


@pytest.mark.parametrize("rate", [0.0, -1.0, 5.0, float("nan"), float("inf"), 2e12])
def test_an_absurd_rate_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        check_rate(rate)


def test_the_brokers_of_running_moves_are_set_unless_others_are_named() -> None:
    assert brokers_to_set(_view(), None) == [1, 2, 3]
    assert brokers_to_set(_view(down=(2,)), None) == [1, 3]
    assert brokers_to_set(_view(), [4, 1, 4]) == [1, 4]


def test_without_a_move_brokers_must_be_named() -> None:
    with pytest.raises(HeadroomError, match="--brokers"):
        brokers_to_set(_view(partitions=(STILL,)), None)


def test_a_broker_that_is_down_or_unknown_cannot_be_set() -> None:
    with pytest.raises(HeadroomError, match=r"broker 9.*up are: 1, 2, 3, 4"):
        brokers_to_set(_view(), [1, 9])
    with pytest.raises(HeadroomError, match=r"broker 2.*up are: 1, 3, 4"):
        brokers_to_set(_view(down=(2,)), [2])


def test_what_speaks_against_a_rate_is_told() -> None:
    settings = Settings(cluster=ClusterSettings(replication_capacity=50e6))
    assert apply_warnings(settings, _view(), 20_000_000, [1, 2, 3]) == []
    assert "least" in apply_warnings(settings, _view(), 999_999, [1, 2, 3])[0]
    assert "50.00 MB/s" in apply_warnings(settings, _view(), 60_000_000, [1, 2, 3])[0]
    assert "Brokers 2, 3" in apply_warnings(settings, _view(), 20_000_000, [1])[0]
    unlisted = _view(configs={"t": UNLISTED, "still": UNLISTED})
    assert "limits nothing" in apply_warnings(settings, unlisted, 20_000_000, [1, 2, 3])[0]


def test_lists_that_could_not_be_read_are_not_called_missing() -> None:
    view = _view({1: OWN}, configs={"still": UNLISTED})
    assert apply_warnings(Settings(), view, 20_000_000, [1, 2, 3]) == []
    assert any("Unknown" in remark for remark in remarks(view))
    assert not any("limits nothing" in remark for remark in remarks(view))
    assert ("topic t", "unknown", "unknown", "1 partition") in view_rows(view)


def test_only_what_is_set_is_cleared() -> None:
    view = _view({1: OWN, 2: DEFAULT, 3: SILENT})
    both = clear_plan(view, None, cluster_default=False)
    assert (both.brokers, both.topics, both.cluster_default) == ((1,), ("t",), False)
    assert clear_plan(view, "lists", cluster_default=False).brokers == ()
    assert clear_plan(view, "rates", cluster_default=False).topics == ()
    assert clear_plan(view, None, cluster_default=True).brokers == (1, 2)
    assert clear_plan(_view(configs={}), None, cluster_default=True).empty()


def test_what_stays_after_clearing_is_told() -> None:
    view = _view({2: DEFAULT, 3: SILENT})
    said = " ".join(clear_warnings(view, clear_plan(view, None, cluster_default=False)))
    assert "brokers 3" in said
    assert "--cluster-default" in said
    assert "A reassignment is running" in said


def test_clearing_waits_for_the_end_of_a_move_unless_forced() -> None:
    with pytest.raises(HeadroomError, match="t-0"):
        require_idle(_view(), force=False)
    require_idle(_view(), force=True)
    require_idle(_view(partitions=(STILL,)), force=False)


def test_an_unknown_rate_is_told_as_unknown_and_never_as_none() -> None:
    rows = view_rows(_view({1: OWN, 2: DEFAULT, 3: SILENT}))
    assert rows[:4] == [
        ("broker 1", "5.00 MB/s (broker)", "5.00 MB/s (broker)", "leads 1"),
        ("broker 2", "7.00 MB/s (cluster default)", "none", ""),
        ("broker 3", "unknown", "unknown", "receives 1"),
        ("broker 4", "none", "none", ""),
    ]
    assert view_json(_view({3: SILENT}))["brokers"][2]["known"] is False


def test_throttles_left_behind_are_told() -> None:
    left = _view({1: OWN}, partitions=(STILL,))
    assert any("left behind" in remark for remark in remarks(left))
    clean = _view(partitions=(STILL,), configs={"still": UNLISTED})
    assert remarks(clean) == ["Nothing is moving."]


def test_nothing_is_changed_without_execute(cluster: FakeCluster) -> None:
    applied, cleared = _run("apply", "--rate", "12.5MB"), _run("clear", "--force")
    assert (applied.exit_code, cleared.exit_code) == (0, 0)
    assert "headroom throttle apply --rate 12500000 --brokers 1,2,3 --execute" in applied.stdout
    assert "headroom throttle clear --force --execute" in cleared.stdout
    assert cluster.changes == []


def test_the_command_that_is_told_names_the_same_settings(cluster: FakeCluster, tmp_path: object) -> None:
    file = f"{tmp_path}/my headroom.toml"
    with open(file, "w") as output:
        output.write("[cluster]\n")
    assert f"--config '{file}' --execute" in _run("apply", "--rate", "12.5MB", "--config", file).stdout


def test_apply_with_execute_sets_the_rate_and_tells_before_and_after(cluster: FakeCluster) -> None:
    result = _run("apply", "--rate", "12.5MB", "--brokers", "1,3", "--execute", "--format", "json")
    assert cluster.changes == [{1: 12_500_000, 3: 12_500_000}]
    said = json.loads(result.stdout)
    assert said["executed"] is True
    assert [b["before"]["leader_bytes_per_s"] for b in said["brokers"]] == [5_000_000, None]
    assert [b["after"]["leader_bytes_per_s"] for b in said["brokers"]] == [12_500_000, 12_500_000]


def test_clear_with_execute_refuses_during_a_move(cluster: FakeCluster) -> None:
    assert isinstance(_run("clear", "--execute").exception, HeadroomError)
    assert cluster.changes == []
    assert _run("clear", "--execute", "--force").exit_code == 0
    assert cluster.changes == [((1, 2), False), ("t",)]


@pytest.mark.parametrize("arguments", [["--rate", "0"], ["--rate", "fast"], ["--rate", "5MB", "--brokers", "a"], []])
def test_apply_used_wrongly_exits_2(cluster: FakeCluster, arguments: list[str]) -> None:
    assert _run("apply", *arguments).exit_code == 2
