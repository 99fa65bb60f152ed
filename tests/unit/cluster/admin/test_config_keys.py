"""Parsing of brokers' and topics' configuration answers."""

from __future__ import annotations

from types import SimpleNamespace as Answer
from typing import Any

import pytest

from headroom.cluster.admin.config_keys import (
    AUTO_REBALANCE,
    BROKER_KEYS,
    CHECK_INTERVAL,
    CLEANUP_POLICY,
    COMPRESSION,
    FOLLOWER_RATE,
    IMBALANCE_PERCENTAGE,
    LEADER_LIST,
    LEADER_RATE,
    LOG_DIRS_RATE,
    MIN_INSYNC,
    PROCESS_ROLES,
    REMOTE_STORAGE,
    TOPIC_KEYS,
    leader_rebalance_of,
    rates_of,
    replication_of,
    topic_config_of,
)
from headroom.cluster.model import BrokerThrottles, LeaderRebalanceConfig, ReplicationSettings, TopicConfig

# DescribeConfigsResponse.ConfigSource: of the broker, of all brokers, in the broker's file, and Kafka's own default.
OWN, DEFAULT, FILE, UNSET = 2, 3, 4, 5


def rate(name: str, source: int, *values: str) -> Any:
    """A rate and its synonyms, the one in force first."""
    return Answer(name=name, value=values[0], config_source=source, synonyms=[Answer(value=v) for v in values])


def setting(name: str, value: str | None, source: int = FILE) -> Any:
    return Answer(name=name, value=value, config_source=source, synonyms=[])


def test_a_rate_is_the_brokers_own_or_the_cluster_default() -> None:
    reported = rates_of([rate(LEADER_RATE, OWN, "5", "7"), rate(FOLLOWER_RATE, DEFAULT, "7")])
    assert reported == BrokerThrottles(True, 5, 7, "broker", "default", None, "none")


def test_a_rate_that_is_missing_or_unlimited_is_none() -> None:
    none = BrokerThrottles(True, None, None, "none", "none", None, "none")
    assert rates_of([rate(LEADER_RATE, DEFAULT, str(2**63 - 1))]) == none


@pytest.mark.parametrize("source", [FILE, UNSET, 0])
def test_a_rate_that_is_not_set_dynamically_is_not_in_force(source: int) -> None:
    # BrokerConfigHandler: the broker's own dynamic value, else that of all brokers, else no limit.
    reported = rates_of([rate(LEADER_RATE, source, "5"), rate(FOLLOWER_RATE, OWN, "7", "6")])
    in_file = (LEADER_RATE,) if source == FILE else ()
    assert reported == BrokerThrottles(True, None, 7, "none", "broker", None, "none", in_file)
    # Kafka has not validated the value in the file, so it may be no number.
    assert rates_of([rate(LOG_DIRS_RATE, FILE, "10 MB")]).log_dirs_bytes_per_s is None


def test_the_rate_between_log_directories_is_read_with_the_others() -> None:
    reported = rates_of([rate(LOG_DIRS_RATE, OWN, "6", "5")])
    assert (reported.log_dirs_bytes_per_s, reported.log_dirs_source) == (6, "broker")
    assert rates_of([rate(LOG_DIRS_RATE, DEFAULT, "5")]).log_dirs_source == "default"


@pytest.mark.parametrize("text", ["12.5", "1_000", "１２", "12,500", "5 MB", "-1", "1e6", "9" * 30])
def test_a_rate_that_is_no_number_as_a_whole_is_unknown(text: str) -> None:
    assert rates_of([rate(LEADER_RATE, OWN, text), rate(FOLLOWER_RATE, OWN, "7")]) == BrokerThrottles(known=False)


def test_an_answer_from_the_midst_of_a_change_is_unknown() -> None:
    # Seen on a broker whose own rate was being cleared: the old value under the entity that is left.
    config = Answer(name=LEADER_RATE, value="5", config_source=DEFAULT, synonyms=[Answer(value="7")])
    assert rates_of([config]) == BrokerThrottles(known=False)


def test_other_keys_of_the_same_answer_do_not_affect_the_rates() -> None:
    auto = Answer(name=AUTO_REBALANCE, value="true", config_source=DEFAULT, synonyms=[Answer(value="false")])
    assert rates_of([rate(LEADER_RATE, OWN, "5"), auto]) == BrokerThrottles(
        True, 5, None, "broker", "none", None, "none"
    )


def test_leader_balancing_is_as_the_broker_reports_it() -> None:
    reported = {AUTO_REBALANCE: "true", CHECK_INTERVAL: "300", IMBALANCE_PERCENTAGE: "15"}
    assert leader_rebalance_of(setting(n, v) for n, v in reported.items()) == LeaderRebalanceConfig(True, 300, 15)
    # A broker of Kafka 4 has no percentage.
    assert leader_rebalance_of([setting(AUTO_REBALANCE, "false")]) == LeaderRebalanceConfig(False, None, None)


@pytest.mark.parametrize(("source", "percentage"), [(OWN, 10), (DEFAULT, 10), (FILE, 10), (UNSET, None)])
def test_a_percentage_that_is_not_set_is_unknown(source: int, percentage: int | None) -> None:
    # Brokers of Kafka 3 report their default of 10 with the source DEFAULT_CONFIG.
    assert leader_rebalance_of([setting(IMBALANCE_PERCENTAGE, "10", source)]).percentage == percentage


@pytest.mark.parametrize(
    ("roles", "auto", "check_s"),
    [
        # In KRaft mode the controllers balance; a broker that is one too reports its own settings.
        ("broker", None, None),
        ("broker,controller", True, 300),
        ("controller, broker", True, 300),
        # ZooKeeper mode: the key is empty, or older brokers do not have it.
        ("", True, 300),
        (None, True, 300),
    ],
)
def test_balancing_is_known_from_controllers_alone(roles: str | None, auto: bool | None, check_s: int | None) -> None:
    reported = [setting(AUTO_REBALANCE, "true", UNSET), setting(CHECK_INTERVAL, "300", UNSET)]
    reported += [] if roles is None else [setting(PROCESS_ROLES, roles)]
    assert leader_rebalance_of([*reported, setting(IMBALANCE_PERCENTAGE, "20")]) == LeaderRebalanceConfig(
        auto, check_s, 20
    )


def test_how_a_broker_replicates_is_what_it_reports() -> None:
    # Kafka's defaults: https://kafka.apache.org/documentation/#brokerconfigs
    reported = {
        "replication.quota.window.num": "11",
        "replication.quota.window.size.seconds": "1",
        "replica.fetch.max.bytes": "1048576",
        "replica.fetch.response.max.bytes": "10485760",
        "num.replica.fetchers": "1",
        "replica.fetch.backoff.ms": "1000",
    }
    assert set(reported) <= set(BROKER_KEYS)
    settings = replication_of([setting(name, value, UNSET) for name, value in reported.items()])
    assert settings == ReplicationSettings(11, 1, 1_048_576, 10_485_760, 1, 1000)
    assert replication_of([]) == ReplicationSettings(None, None, None, None, None, None)


@pytest.mark.parametrize(
    ("reported", "remote_storage", "recompressed"),
    [
        ({REMOTE_STORAGE: "true", COMPRESSION: "producer"}, True, False),
        ({REMOTE_STORAGE: "false", COMPRESSION: "zstd"}, False, True),
        # uncompressed: the broker takes compressed batches apart.
        ({COMPRESSION: "uncompressed"}, False, True),
        # Brokers that have no tiered storage do not return the key.
        ({}, False, None),
    ],
)
def test_a_topic_config_has_remote_storage_and_recompression(
    reported: dict[str, str], remote_storage: bool, recompressed: bool | None
) -> None:
    config = topic_config_of([setting(name, value) for name, value in reported.items()])
    assert (config.remote_storage, config.recompressed) == (remote_storage, recompressed)
    assert {REMOTE_STORAGE, COMPRESSION} <= set(TOPIC_KEYS)


def test_a_topic_without_lists_has_none_and_may_be_compacted() -> None:
    policy = Answer(name=CLEANUP_POLICY, value="compact,delete")
    config = TopicConfig(None, None, compacted=True, remote_storage=False)
    assert topic_config_of([Answer(name=LEADER_LIST, value=""), policy]) == config
    assert topic_config_of([Answer(name=CLEANUP_POLICY, value="delete")]).compacted is False


def test_min_insync_replicas_is_a_number_or_unknown() -> None:
    assert topic_config_of([Answer(name=MIN_INSYNC, value="2")]).min_insync_replicas == 2
    assert topic_config_of([]).min_insync_replicas is None
