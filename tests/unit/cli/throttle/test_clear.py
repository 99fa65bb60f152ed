"""``headroom throttle clear``: it removes only keys that are set."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from headroom.cluster.admin.config_keys import LEADER_LIST, LEADER_RATE, LOG_DIRS_RATE, RATE_KEYS
from headroom.cluster.model import TopicConfig
from headroom.operations.throttles.clear_plan import clear_notes, clear_plan, require_idle
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import Role
from tests.unit.builders.throttle_views import DEFAULT, MB, NONE, OWN, SILENT, STILL, FakeCluster, run, view_of

LOG_DIRS = replace(NONE, log_dirs_bytes_per_s=6 * MB, log_dirs_source="broker")
IDLE = (STILL,)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    fake = FakeCluster(view_of({1: OWN, 2: OWN}, partitions=IDLE))
    fake.install(monkeypatch)
    return fake


def test_only_what_is_set_is_cleared() -> None:
    view = view_of({1: OWN, 2: DEFAULT, 3: SILENT})
    both = clear_plan(view, None, cluster_default=False)
    assert (both.brokers, both.topics, both.cluster_default) == ((1,), ("t",), False)
    assert clear_plan(view, "lists", cluster_default=False).brokers == ()
    assert clear_plan(view, "rates", cluster_default=False).topics == ()
    assert clear_plan(view, None, cluster_default=True).brokers == (1, 2)
    assert clear_plan(view_of(configs={}), None, cluster_default=True).empty()


def test_only_keys_that_are_set_on_the_broker_or_topic_itself_are_cleared() -> None:
    half = replace(OWN, follower_bytes_per_s=7 * MB, follower_source="default")
    view = view_of({1: half, 2: LOG_DIRS, 3: OWN}, configs={"t": TopicConfig("*", None, False)})
    plan = clear_plan(view, None, cluster_default=False)
    assert plan.broker_keys == {1: (LEADER_RATE,), 2: (LOG_DIRS_RATE,), 3: RATE_KEYS}
    assert plan.topic_keys == {"t": (LEADER_LIST,)}
    assert plan.default_keys == ()


@pytest.mark.parametrize("only", [None, "rates"])
def test_the_rate_between_log_directories_goes_with_the_others(only: str | None) -> None:
    view = view_of({2: LOG_DIRS}, partitions=IDLE)
    plan = clear_plan(view, only, cluster_default=False)
    assert plan.brokers == (2,)
    assert any("between log directories" in note for note in clear_notes(view, plan))
    assert clear_plan(view, "lists", cluster_default=False).brokers == ()


def test_a_cluster_default_that_every_broker_overrides_is_cleared_too() -> None:
    view = view_of(dict.fromkeys((1, 2, 3, 4), OWN), default=DEFAULT)
    assert clear_plan(view, None, cluster_default=True).default_keys == (LEADER_RATE,)
    assert clear_plan(view, None, cluster_default=True).cluster_default
    assert not clear_plan(view, None, cluster_default=False).cluster_default


def test_what_stays_after_clearing_is_noted() -> None:
    view = view_of({2: DEFAULT, 3: SILENT})
    text = " ".join(clear_notes(view, clear_plan(view, None, cluster_default=False)))
    assert "Broker 3 did not report its rates" in text
    assert "--cluster-default" in text
    assert "A reassignment is running" in text


def test_clearing_waits_for_the_end_of_a_move_unless_forced() -> None:
    with pytest.raises(HeadroomError, match="t-0"):
        require_idle(view_of(), force=False)
    require_idle(view_of(), force=True)
    require_idle(view_of(partitions=IDLE), force=False)


def test_clear_with_execute_refuses_during_a_move(cluster: FakeCluster) -> None:
    cluster.view = view_of({1: OWN, 2: OWN})
    assert isinstance(run("clear", "--execute").exception, HeadroomError)
    assert cluster.changes == []
    assert run("clear", "--execute", "--force").exit_code == 0
    assert cluster.changes == [((1, 2), False), {"t": (Role.LEADER, Role.FOLLOWER)}]


def test_nothing_is_changed_without_execute(cluster: FakeCluster) -> None:
    cleared = run("clear", "--force")
    assert cleared.exit_code == 0
    assert "headroom throttle clear --force --execute" in cleared.stdout
    assert cluster.changes == []


def test_a_broker_that_is_down_keeps_its_rates_and_no_other(cluster: FakeCluster) -> None:
    cluster.view = view_of({1: OWN, 2: OWN}, partitions=IDLE, down=(3,))
    result = run("clear", "--execute", "--format", "json")
    assert result.exit_code == 0
    assert cluster.changes == [((1, 2), False), {"t": (Role.LEADER, Role.FOLLOWER)}]
    assert "Broker 3 is down" in result.stderr
    assert "in force when it returns" in result.stderr
    text = json.loads(result.stdout)
    assert text["passed_over"] == [{"broker": 3, "reason": "down"}]
    assert text["keys"]["brokers"][0] == {"broker": 1, "keys": list(RATE_KEYS)}


def test_a_broker_that_does_not_report_its_rates_is_the_error_at_the_end(cluster: FakeCluster) -> None:
    cluster.view = view_of({1: OWN, 2: SILENT}, partitions=IDLE)
    assert run("clear").exit_code == 0
    result = run("clear", "--execute")
    assert isinstance(result.exception, HeadroomError)
    assert result.exception.subject == "broker 2"
    assert cluster.changes == [((1,), False), {"t": (Role.LEADER, Role.FOLLOWER)}]


def test_a_broker_that_hangs_meanwhile_keeps_no_list_from_being_cleared(cluster: FakeCluster) -> None:
    cluster.hanging = {2}
    result = run("clear", "--execute", "--format", "json")
    assert isinstance(result.exception, HeadroomError)
    assert cluster.changes[-1] == {"t": (Role.LEADER, Role.FOLLOWER)}
    assert json.loads(result.stdout)["failed"]["rule"] == "no answer"


def test_with_nothing_to_clear_a_sentence_is_printed(cluster: FakeCluster) -> None:
    cluster.view = view_of(partitions=IDLE, configs={})
    result = run("clear", "--execute")
    assert (result.exit_code, result.stdout) == (0, "Nothing to clear.\n")
