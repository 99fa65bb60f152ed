"""Setting and clearing rates while some brokers are down, hang or refuse."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.cluster.admin.config_keys import FOLLOWER_RATE, LEADER_RATE, LOG_DIRS_RATE
from headroom.cluster.model import BrokerThrottles
from headroom.cluster.throttles.broker_rates import read_default_rates
from headroom.cluster.throttles.rate_change import RatesError
from headroom.cluster.throttles.rates import apply_rates, clear_rates
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from tests.unit.fakes.config_brokers import ConfigBrokers

MB = 1_000_000
BOTH = {LEADER_RATE: "2000000", FOLLOWER_RATE: "2000000"}


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> ConfigBrokers:
    fake = ConfigBrokers()
    monkeypatch.setattr("headroom.cluster.admin.command_connection.AdminConnection", lambda cluster: fake)
    monkeypatch.setattr("headroom.cluster.throttles.broker_rates.POLL_S", 0)
    return fake


def apply(rates: Any, **options: Any) -> dict[int, BrokerThrottles]:
    return apply_rates(Settings(), rates, deadline_s=0.0, **options)


def clear(brokers: list[int], cluster_default: bool = False) -> dict[int, BrokerThrottles]:
    return clear_rates(Settings(), brokers, cluster_default, deadline_s=0.0)


def test_one_rate_is_set_on_both_roles_or_on_those_that_are_named(brokers: ConfigBrokers) -> None:
    assert apply({1: 2 * MB})[1] == BrokerThrottles(True, 2 * MB, 2 * MB, "broker", "broker", None, "none")
    assert apply({2: 3 * MB}, roles=["follower"])[2].leader_source == "none"
    assert brokers.requests == [("1", BOTH), ("2", {FOLLOWER_RATE: "3000000"})]


def test_each_role_of_each_broker_can_have_its_own_rate_in_one_request_per_broker(brokers: ConfigBrokers) -> None:
    after = apply({(1, "leader"): 2 * MB, (1, "follower"): 3 * MB, (2, "leader"): 4 * MB})
    assert [(r.leader_bytes_per_s, r.follower_bytes_per_s) for r in after.values()] == [
        (2 * MB, 3 * MB),
        (4 * MB, None),
    ]
    assert sorted(brokers.requests) == [
        ("1", {LEADER_RATE: "2000000", FOLLOWER_RATE: "3000000"}),
        ("2", {LEADER_RATE: "4000000"}),
    ]


def test_a_step_is_given_once_the_brokers_have_accepted_and_names_them(brokers: ConfigBrokers) -> None:
    steps: list[str] = []
    brokers.hanging = {2}
    with pytest.raises(RatesError):
        apply({1: 2 * MB, 2: 2 * MB, 3: 2 * MB}, on_step=steps.append)
    assert steps == ["rates set on brokers 1, 3; waiting until they are in force"]


def test_a_rate_of_nothing_is_refused_before_anything_is_changed(brokers: ConfigBrokers) -> None:
    with pytest.raises(HeadroomError, match="broker 2"):
        apply({(1, "leader"): MB, (2, "follower"): 0})
    assert brokers.requests == []


@pytest.mark.parametrize("wrong", ["down", "hanging", "refusing", "deaf"])
def test_a_broker_that_fails_keeps_no_other_from_being_set_and_read_back(brokers: ConfigBrokers, wrong: str) -> None:
    getattr(brokers, wrong).add(2)
    with pytest.raises(RatesError, match=r"^broker 2: .*; the others were changed\.") as raised:
        apply({1: 2 * MB, 2: 2 * MB, 3: 2 * MB})
    assert brokers.configs["1"] == brokers.configs["3"] == BOTH
    assert {broker: rates.leader_bytes_per_s for broker, rates in raised.value.in_force.items()} == {
        1: 2 * MB,
        3: 2 * MB,
    }


def test_several_brokers_that_fail_are_all_named_each_with_its_reason(brokers: ConfigBrokers) -> None:
    brokers.down, brokers.refusing, brokers.deaf = {1}, {2}, {3}
    with pytest.raises(RatesError) as raised:
        apply(dict.fromkeys((1, 2, 3), 2 * MB))
    error = raised.value
    assert error.subject == "broker 1, broker 2, broker 3"
    for reason in ("KafkaConnectionError", "InvalidRequestError: No", "did not read the change back"):
        assert reason in error.rule
    assert (error.in_force, "others" in error.rule) == ({}, False)


def test_a_change_without_an_answer_is_in_force_if_it_reads_back(brokers: ConfigBrokers) -> None:
    brokers.losing = {2}
    assert apply({1: 2 * MB, 2: 2 * MB})[2].leader_bytes_per_s == 2 * MB


def test_only_keys_that_are_set_on_the_broker_itself_are_cleared(brokers: ConfigBrokers) -> None:
    brokers.configs["1"] = {LEADER_RATE: "5", LOG_DIRS_RATE: "6"}
    brokers.configs[""] = {FOLLOWER_RATE: "7"}
    after = clear([1, 2])
    assert brokers.requests == [("1", {LEADER_RATE: None, LOG_DIRS_RATE: None})]
    assert after[1] == after[2] == BrokerThrottles(True, None, 7, "none", "default", None, "none")


def test_the_cluster_default_goes_with_the_keys_that_it_has(brokers: ConfigBrokers) -> None:
    brokers.configs["1"] = {LEADER_RATE: "5"}
    # Broker 1 does not show the default, which its own rate hides.
    brokers.configs[""] = {LEADER_RATE: "7"}
    assert clear([1], cluster_default=True)[1].leader_source == "none"
    assert sorted(brokers.requests) == [("", {LEADER_RATE: None}), ("1", {LEADER_RATE: None})]


def test_a_broker_that_cannot_be_cleared_is_named_and_the_others_are(brokers: ConfigBrokers) -> None:
    brokers.configs |= {"1": dict(BOTH), "2": dict(BOTH), "3": {LOG_DIRS_RATE: "6"}}
    brokers.hanging = {2}
    with pytest.raises(RatesError, match=r"^broker 2: no answer") as raised:
        clear([1, 2, 3])
    assert (brokers.configs["1"], brokers.configs["3"]) == ({}, {})
    assert sorted(raised.value.in_force) == [1, 3]


def test_a_rate_between_log_directories_that_does_not_go_is_an_error(brokers: ConfigBrokers) -> None:
    brokers.configs["3"] = {LOG_DIRS_RATE: "6"}
    brokers.deaf = {3}
    with pytest.raises(RatesError, match=r"broker 3: .*did not read the change back"):
        clear([3])


def test_the_default_is_what_any_broker_reports_of_it(brokers: ConfigBrokers) -> None:
    brokers.configs |= {"1": dict(BOTH), "": {LEADER_RATE: "7"}}
    brokers.down = {1}
    default = read_default_rates(brokers, 5.0)  # type: ignore[arg-type]
    assert default == BrokerThrottles(True, 7, None, "default", "none", None, "none")
    brokers.hanging = {2, 3, 4}
    assert not read_default_rates(brokers, 5.0).known  # type: ignore[arg-type]
