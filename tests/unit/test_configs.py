"""What brokers' and topics' configuration answers mean."""

from __future__ import annotations

from types import SimpleNamespace as Answer
from typing import Any

from cluster.configs import (
    AUTO_REBALANCE,
    CHECK_INTERVAL,
    CLEANUP_POLICY,
    FOLLOWER_RATE,
    IMBALANCE_PERCENTAGE,
    LEADER_LIST,
    LEADER_RATE,
    LOG_DIRS_RATE,
    MIN_INSYNC,
    balancing_of,
    rates_of,
    topic_config_of,
)
from cluster.model import Balancing, BrokerThrottles, TopicConfig

OWN, DEFAULT = 2, 3


def rate(name: str, source: int, *values: str) -> Any:
    """A rate and its synonyms, the one in force first."""
    return Answer(name=name, value=values[0], config_source=source, synonyms=[Answer(value=v) for v in values])


def test_a_rate_is_the_brokers_own_or_the_cluster_default() -> None:
    told = rates_of([rate(LEADER_RATE, OWN, "5", "7"), rate(FOLLOWER_RATE, DEFAULT, "7")])
    assert told == BrokerThrottles(True, 5, 7, "broker", "default", None, "none")


def test_a_rate_that_is_missing_or_unlimited_is_none() -> None:
    none = BrokerThrottles(True, None, None, "none", "none", None, "none")
    assert rates_of([rate(LEADER_RATE, DEFAULT, str(2**63 - 1))]) == none


def test_the_rate_between_log_directories_is_read_with_the_others() -> None:
    seen = rates_of([rate(LOG_DIRS_RATE, OWN, "6", "5")])
    assert (seen.log_dirs_bytes_per_s, seen.log_dirs_source) == (6, "broker")
    assert rates_of([rate(LOG_DIRS_RATE, DEFAULT, "5")]).log_dirs_source == "default"


def test_an_answer_from_the_midst_of_a_change_is_unknown() -> None:
    # Seen on a broker whose own rate was being cleared: the old value under the entity that is left.
    config = Answer(name=LEADER_RATE, value="5", config_source=DEFAULT, synonyms=[Answer(value="7")])
    assert rates_of([config]) == BrokerThrottles(known=False)


def test_other_keys_of_the_same_answer_say_nothing_of_the_rates() -> None:
    auto = Answer(name=AUTO_REBALANCE, value="true", config_source=DEFAULT, synonyms=[Answer(value="false")])
    assert rates_of([rate(LEADER_RATE, OWN, "5"), auto]) == BrokerThrottles(
        True, 5, None, "broker", "none", None, "none"
    )


def test_how_a_broker_balances_leaders_is_what_it_tells() -> None:
    told = {AUTO_REBALANCE: "true", CHECK_INTERVAL: "300", IMBALANCE_PERCENTAGE: "10"}
    assert balancing_of(Answer(name=n, value=v) for n, v in told.items()) == Balancing(True, 300, 10)
    # A broker of Kafka 4 has no percentage.
    assert balancing_of([Answer(name=AUTO_REBALANCE, value="false")]) == Balancing(False, None, None)


def test_a_topic_without_lists_has_none_and_may_be_compacted() -> None:
    policy = Answer(name=CLEANUP_POLICY, value="compact,delete")
    assert topic_config_of([Answer(name=LEADER_LIST, value=""), policy]) == TopicConfig(None, None, compacted=True)
    assert topic_config_of([Answer(name=CLEANUP_POLICY, value="delete")]).compacted is False


def test_what_a_topic_needs_in_sync_is_a_number_or_not_told() -> None:
    assert topic_config_of([Answer(name=MIN_INSYNC, value="2")]).min_insync_replicas == 2
    assert topic_config_of([]).min_insync_replicas is None
