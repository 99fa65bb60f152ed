"""The configuration keys of Kafka's replication throttles and leader balancing, and how their answers read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cluster.model import Balancing, BrokerThrottles, TopicConfig

TOPIC = 2
BROKER = 4
_DYNAMIC_BROKER = 2

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
# How fast a broker moves replicas between its own log directories (Kafka: QuotaConfig, ReplicationQuotaManager).
LOG_DIRS_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_LIST = "leader.replication.throttled.replicas"
FOLLOWER_LIST = "follower.replication.throttled.replicas"
CLEANUP_POLICY = "cleanup.policy"
MIN_INSYNC = "min.insync.replicas"
AUTO_REBALANCE = "auto.leader.rebalance.enable"
CHECK_INTERVAL = "leader.imbalance.check.interval.seconds"
# Brokers of Kafka 4 have none.
IMBALANCE_PERCENTAGE = "leader.imbalance.per.broker.percentage"
RATE_KEYS = (LEADER_RATE, FOLLOWER_RATE)
ALL_RATE_KEYS = (*RATE_KEYS, LOG_DIRS_RATE)
BROKER_KEYS = (*ALL_RATE_KEYS, AUTO_REBALANCE, CHECK_INTERVAL, IMBALANCE_PERCENTAGE)
LIST_KEYS = (LEADER_LIST, FOLLOWER_LIST)
TOPIC_KEYS = (*LIST_KEYS, CLEANUP_POLICY, MIN_INSYNC)
# Kafka's own default: a rate that was never set.
_UNLIMITED = 2**63 - 1


def rates_of(configs: Iterable[Any]) -> BrokerThrottles:
    """Return the rates that a broker's answer holds; a key that is missing there is not set.

    Not known is an answer from the midst of a change, in which the value and the entity it comes from do not agree.
    """
    by_name = {config.name: config for config in configs if config.name in ALL_RATE_KEYS}
    if any(config.synonyms and config.synonyms[0].value != config.value for config in by_name.values()):
        return BrokerThrottles(known=False)
    leader, leader_source = _rate(by_name.get(LEADER_RATE))
    follower, follower_source = _rate(by_name.get(FOLLOWER_RATE))
    log_dirs, log_dirs_source = _rate(by_name.get(LOG_DIRS_RATE))
    return BrokerThrottles(True, leader, follower, leader_source, follower_source, log_dirs, log_dirs_source)


def _rate(config: Any) -> tuple[int | None, str]:
    if config is None or not config.value or int(config.value) == _UNLIMITED:
        return None, "none"
    return int(config.value), "broker" if config.config_source == _DYNAMIC_BROKER else "default"


def balancing_of(configs: Iterable[Any]) -> Balancing:
    """Return what a broker's answer says of Kafka's own balancing of leaders; a key that is missing is not known."""
    values = {config.name: config.value for config in configs}
    auto = values.get(AUTO_REBALANCE)
    return Balancing(
        auto=None if auto is None else auto == "true",
        check_interval_s=_whole(values.get(CHECK_INTERVAL)),
        percentage=_whole(values.get(IMBALANCE_PERCENTAGE)),
    )


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None else None


def topic_config_of(configs: Iterable[Any]) -> TopicConfig:
    """Return the configuration that a topic's answer holds."""
    values = {config.name: config.value for config in configs}
    policy = {part.strip() for part in (values.get(CLEANUP_POLICY) or "").split(",")}
    lists = (values.get(LEADER_LIST) or None, values.get(FOLLOWER_LIST) or None)
    return TopicConfig(*lists, "compact" in policy, min_insync_replicas=_whole(values.get(MIN_INSYNC)))
