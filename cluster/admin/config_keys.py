"""Configuration keys of Kafka's replication, throttles and leader balancing, and the parsers of their answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headroom.cluster.model import BrokerThrottles, LeaderRebalanceConfig, ReplicationSettings, TopicConfig
from headroom.schemas.quantities import QuantityError, parse_whole

# Kafka's ConfigResource.Type.
TOPIC = 2
BROKER = 4
# DescribeConfigsResponse.ConfigSource: dynamic on this broker or the cluster-wide default; static in the properties
# file; Kafka's default.
_DYNAMIC = {2: "broker", 3: "default"}
_STATIC_BROKER = 4
_DEFAULT_CONFIG = 5

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
# Rate of moves between a broker's own log directories (Kafka: QuotaConfig, ReplicationQuotaManager).
LOG_DIRS_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_LIST = "leader.replication.throttled.replicas"
FOLLOWER_LIST = "follower.replication.throttled.replicas"
CLEANUP_POLICY = "cleanup.policy"
MIN_INSYNC = "min.insync.replicas"
# Missing on brokers before tiered storage.
REMOTE_STORAGE = "remote.storage.enable"
COMPRESSION = "compression.type"
AUTO_REBALANCE = "auto.leader.rebalance.enable"
CHECK_INTERVAL = "leader.imbalance.check.interval.seconds"
# Missing on brokers of Kafka 4.
IMBALANCE_PERCENTAGE = "leader.imbalance.per.broker.percentage"
# Empty or missing in ZooKeeper mode.
PROCESS_ROLES = "process.roles"
# Key by attribute of ReplicationSettings.
REPLICATION_KEYS = {
    "quota_window_num": "replication.quota.window.num",
    "quota_window_size_s": "replication.quota.window.size.seconds",
    "replica_fetch_max_bytes": "replica.fetch.max.bytes",
    "replica_fetch_response_max_bytes": "replica.fetch.response.max.bytes",
    "num_replica_fetchers": "num.replica.fetchers",
    "replica_fetch_backoff_ms": "replica.fetch.backoff.ms",
}
RATE_KEYS = (LEADER_RATE, FOLLOWER_RATE)
ALL_RATE_KEYS = (*RATE_KEYS, LOG_DIRS_RATE)
BROKER_KEYS = (
    *ALL_RATE_KEYS,
    AUTO_REBALANCE,
    CHECK_INTERVAL,
    IMBALANCE_PERCENTAGE,
    PROCESS_ROLES,
    *REPLICATION_KEYS.values(),
)
LIST_KEYS = (LEADER_LIST, FOLLOWER_LIST)
TOPIC_KEYS = (*LIST_KEYS, CLEANUP_POLICY, MIN_INSYNC, REMOTE_STORAGE, COMPRESSION)
# Kafka's default of a rate that was never set.
_UNLIMITED = 2**63 - 1
_AS_PRODUCED = "producer"


def rates_of(configs: Iterable[Any]) -> BrokerThrottles:
    """Return the throttle rates in a broker's answer; a missing key is not set.

    An answer during a change, whose value and source contradict each other, is unknown. So is one with a rate that is
    no whole number.

    Kafka applies a rate only from the dynamic configuration of the broker or the cluster-wide default
    (``BrokerConfigHandler``). A rate in the broker's properties file is reported too, but is not in force.
    """
    by_name = {config.name: config for config in configs if config.name in ALL_RATE_KEYS}
    if any(config.synonyms and config.synonyms[0].value != config.value for config in by_name.values()):
        return BrokerThrottles(known=False)
    dynamic = [config for config in by_name.values() if config.config_source in _DYNAMIC and config.value]
    if any(_whole(config.value) is None for config in dynamic):
        return BrokerThrottles(known=False)
    leader, leader_source = _rate(by_name.get(LEADER_RATE))
    follower, follower_source = _rate(by_name.get(FOLLOWER_RATE))
    log_dirs, log_dirs_source = _rate(by_name.get(LOG_DIRS_RATE))
    in_file = tuple(key for key in ALL_RATE_KEYS if key in by_name and by_name[key].config_source == _STATIC_BROKER)
    return BrokerThrottles(True, leader, follower, leader_source, follower_source, log_dirs, log_dirs_source, in_file)


def _rate(config: Any) -> tuple[int | None, str]:
    source = None if config is None else _DYNAMIC.get(config.config_source)
    rate = _whole(config.value) if source is not None else None
    return (None, "none") if source is None or rate is None or rate == _UNLIMITED else (rate, source)


def leader_rebalance_of(configs: Iterable[Any]) -> LeaderRebalanceConfig:
    """Return the settings of Kafka's own leader balancing in a broker's answer; a missing key is unknown.

    In KRaft mode the active controller balances by its own configuration (``ControllerServer``), so the keys of a
    broker that is no controller are ignored. The percentage counts only if it is set explicitly, because brokers of
    Kafka 3 report Kafka's default too.
    """
    by_name = {config.name: config for config in configs}
    values = {name: config.value for name, config in by_name.items()}
    roles = {role.strip() for role in (values.get(PROCESS_ROLES) or "").split(",")} - {""}
    if roles and "controller" not in roles:
        values = {name: value for name, value in values.items() if name not in (AUTO_REBALANCE, CHECK_INTERVAL)}
    if IMBALANCE_PERCENTAGE in by_name and by_name[IMBALANCE_PERCENTAGE].config_source == _DEFAULT_CONFIG:
        del values[IMBALANCE_PERCENTAGE]
    auto = values.get(AUTO_REBALANCE)
    return LeaderRebalanceConfig(
        auto=None if auto is None else auto == "true",
        check_interval_s=_whole(values.get(CHECK_INTERVAL)),
        percentage=_whole(values.get(IMBALANCE_PERCENTAGE)),
    )


def replication_of(configs: Iterable[Any]) -> ReplicationSettings:
    """Return the replication settings in a broker's answer; a missing key is unknown."""
    values = {config.name: config.value for config in configs}
    return ReplicationSettings(**{name: _whole(values.get(key)) for name, key in REPLICATION_KEYS.items()})


def _whole(text: str | None) -> int | None:
    """Return the number of a value; None if there is none, or if the text as a whole is none."""
    try:
        return None if text is None else parse_whole(text)
    except QuantityError:
        return None


def topic_config_of(configs: Iterable[Any]) -> TopicConfig:
    """Return the topic configuration in an answer."""
    values = {config.name: config.value for config in configs}
    policy = {part.strip() for part in (values.get(CLEANUP_POLICY) or "").split(",")}
    lists = (values.get(LEADER_LIST) or None, values.get(FOLLOWER_LIST) or None)
    compression = values.get(COMPRESSION)
    return TopicConfig(
        *lists,
        "compact" in policy,
        min_insync_replicas=_whole(values.get(MIN_INSYNC)),
        remote_storage=values.get(REMOTE_STORAGE) == "true",
        # LogValidator keeps batches that already have the topic's codec; no metric shows their number.
        recompressed=None if compression is None else compression != _AS_PRODUCED,
    )
