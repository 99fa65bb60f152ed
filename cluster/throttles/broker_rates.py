"""Throttle rates as each broker reports its own: read once, or polled until a change is in force."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor

from kafka.errors import KafkaError
from kafka.protocol.admin import DescribeConfigsRequest

from headroom.cluster.admin.config_keys import (
    ALL_RATE_KEYS,
    BROKER,
    FOLLOWER_RATE,
    LEADER_RATE,
    LOG_DIRS_RATE,
    rates_of,
)
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.connection.failover import BrokerFailover, NoAnswerError
from headroom.cluster.metadata.snapshot_reader import read_broker_configs
from headroom.cluster.model import BrokerConfigs, BrokerThrottles

KEY_OF = {"leader": LEADER_RATE, "follower": FOLLOWER_RATE, "log_dirs": LOG_DIRS_RATE}
POLL_S = 0.2
_READ_S = 5.0
_MAX_PARALLEL = 16
# An answer during a change may be inconsistent (unknown); the next one is not.
_READS = 3
_UNKNOWN = BrokerThrottles(known=False)
Done = Callable[[int, BrokerThrottles], bool]


def rate_of(rates: BrokerThrottles, role: str) -> tuple[int | None, str | None]:
    """Return a broker's rate in a role and the entity it comes from.

    Args:
        rates: what the broker reported.
        role: leader, follower, or log_dirs for moves between its own log directories.

    Returns:
        Bytes per second, None if none is set; and broker, default or none, None if not known.
    """
    return getattr(rates, f"{role}_bytes_per_s"), getattr(rates, f"{role}_source")


def keys_from(rates: BrokerThrottles, *sources: str) -> tuple[str, ...]:
    """Return the configuration keys of the rates whose source is one of ``sources``: broker, default."""
    return tuple(key for role, key in KEY_OF.items() if rate_of(rates, role)[1] in sources)


def read_rates(connection: AdminConnection, brokers: Collection[int], timeout_s: float) -> dict[int, BrokerThrottles]:
    """Return the rates in force on each broker; ``known`` is false where a broker did not report them.

    Args:
        connection: the admin connection.
        brokers: broker ids, read in parallel.
        timeout_s: longest wait for one answer, seconds; 5 at most.
    """
    configs = read_configs(connection, brokers, timeout_s)
    return {broker: of_broker.throttles for broker, of_broker in configs.items()}


def read_configs(connection: AdminConnection, brokers: Collection[int], timeout_s: float) -> dict[int, BrokerConfigs]:
    """Return the configuration of each broker; everything is unknown where a broker did not report it.

    Args:
        connection: the admin connection.
        brokers: broker ids, read in parallel.
        timeout_s: longest wait for one answer, seconds; 5 at most.
    """
    wait_s = min(_READ_S, timeout_s)
    with ThreadPoolExecutor(_MAX_PARALLEL) as pool:
        return dict(zip(brokers, pool.map(lambda broker: _read(connection, broker, wait_s), brokers), strict=True))


def _read(connection: AdminConnection, broker: int, timeout_s: float) -> BrokerConfigs:
    configs = BrokerConfigs(_UNKNOWN)
    for attempt in range(_READS):
        time.sleep(POLL_S if attempt else 0)
        try:
            configs = read_broker_configs(connection, broker, timeout_s)
        except KafkaError:
            return BrokerConfigs(_UNKNOWN)
        if configs.throttles.known:
            break
    return configs


def read_default_rates(connection: AdminConnection, timeout_s: float) -> BrokerThrottles:
    """Return the cluster-wide default rates; ``known`` is false if no broker reported them.

    Source: Kafka 4.3.1, ``ConfigHelper.describeConfigs``: any broker has the entity whose name is empty, and reports
    only the keys that are set on it.
    """
    request = DescribeConfigsRequest(
        resources=[(BROKER, "", list(ALL_RATE_KEYS))], include_synonyms=True, min_version=1
    )
    try:
        result = BrokerFailover.for_command(connection, min(_READ_S, timeout_s)).send(request).answer.results[0]
    except NoAnswerError:
        return _UNKNOWN
    return _UNKNOWN if result.error_code else rates_of(result.configs)


def await_rates(
    connection: AdminConnection, brokers: Collection[int], done: Done, timeout_s: float, deadline_s: float
) -> dict[int, BrokerThrottles]:
    """Return the rates of the brokers whose change is in force; other brokers are missing.

    Args:
        connection: the admin connection.
        brokers: broker ids.
        done: returns whether a broker's rates are as requested.
        timeout_s: longest wait for one answer, seconds.
        deadline_s: longest wait for all, seconds.
    """
    give_up = time.monotonic() + deadline_s
    in_force: dict[int, BrokerThrottles] = {}
    while True:
        rates_by_broker = read_rates(connection, [b for b in sorted(brokers) if b not in in_force], timeout_s)
        in_force |= {broker: rates for broker, rates in rates_by_broker.items() if rates.known and done(broker, rates)}
        if len(in_force) == len(brokers) or time.monotonic() >= give_up:
            return in_force
        # A change reaches each broker with the metadata log, usually within some 10 ms.
        time.sleep(POLL_S)
