"""The configuration keys of Kafka's replication throttles, and how their answers read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cluster.model import BrokerThrottles, TopicConfig

TOPIC = 2
BROKER = 4
_DYNAMIC_BROKER = 2

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LEADER_LIST = "leader.replication.throttled.replicas"
FOLLOWER_LIST = "follower.replication.throttled.replicas"
CLEANUP_POLICY = "cleanup.policy"
MIN_INSYNC = "min.insync.replicas"
# Of brokers before Kafka 4, which has it no more.
LEADER_IMBALANCE = "leader.imbalance.per.broker.percentage"
RATE_KEYS = (LEADER_RATE, FOLLOWER_RATE)
LIST_KEYS = (LEADER_LIST, FOLLOWER_LIST)
TOPIC_KEYS = (*LIST_KEYS, CLEANUP_POLICY, MIN_INSYNC)
# Kafka's own default: a rate that was never set.
_UNLIMITED = 2**63 - 1


def rates_of(configs: Iterable[Any]) -> BrokerThrottles:
    """Return the rates that a broker's answer holds; a key that is missing there is not set.

    Not known is an answer from the midst of a change, in which the value and the entity it comes from do not agree.
    """
    by_name = {config.name: config for config in configs}
    if any(config.synonyms and config.synonyms[0].value != config.value for config in by_name.values()):
        return BrokerThrottles(known=False)
    leader, leader_source = _rate(by_name.get(LEADER_RATE))
    follower, follower_source = _rate(by_name.get(FOLLOWER_RATE))
    return BrokerThrottles(True, leader, follower, leader_source, follower_source)


def _rate(config: Any) -> tuple[int | None, str]:
    if config is None or not config.value or int(config.value) == _UNLIMITED:
        return None, "none"
    return int(config.value), "broker" if config.config_source == _DYNAMIC_BROKER else "default"


def topic_config_of(configs: Iterable[Any]) -> TopicConfig:
    """Return the configuration that a topic's answer holds."""
    values = {config.name: config.value for config in configs}
    policy = {part.strip() for part in (values.get(CLEANUP_POLICY) or "").split(",")}
    lists = (values.get(LEADER_LIST) or None, values.get(FOLLOWER_LIST) or None)
    least = values.get(MIN_INSYNC)
    return TopicConfig(*lists, "compact" in policy, min_insync_replicas=int(least) if least else None)


def imbalance_ratio_of(configs: Iterable[Any]) -> float | None:
    """Return the share of leads elsewhere, 0 to 1, that a broker's answer allows it; None: it has no such setting."""
    value = next((config.value for config in configs if config.name == LEADER_IMBALANCE), None)
    return int(value) / 100 if value else None
