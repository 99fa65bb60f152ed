"""Replication throttles of a cluster: read them, set them, clear them, and see that they are in force."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from kafka.errors import KafkaError

from cluster.admin import MetadataReader, read_broker_configs, read_whole
from cluster.alter import Change, alter_configs
from cluster.client import AdminLink
from cluster.configs import BROKER, FOLLOWER_LIST, FOLLOWER_RATE, LEADER_LIST, LEADER_RATE, RATE_KEYS, TOPIC
from cluster.model import BrokerThrottles, Snapshot, TopicConfig
from planning.lists import TopicLists
from schemas.config import ClusterSettings, Settings
from schemas.errors import HeadroomError

ROLES = ("leader", "follower")
DEADLINE_S = 15.0
_POLL_S = 0.2
_RATE_OF = {"leader": LEADER_RATE, "follower": FOLLOWER_RATE}
_CLUSTER_DEFAULT = ""
OnStep = Callable[[str], None]
_T = TypeVar("_T")


@dataclass(frozen=True)
class ThrottleState:
    """All throttles of a cluster.

    Attributes:
        rates: rates in force per registered broker; ``known`` false where the broker did not tell.
        lists: topics with a throttled replica list.
        snapshot: the metadata they were read with: partitions, leaders and running reassignments.
    """

    rates: dict[int, BrokerThrottles]
    lists: dict[str, TopicConfig]
    snapshot: Snapshot


def read_throttles(settings: Settings) -> ThrottleState:
    """Return the rates and lists in force.

    Raises:
        HeadroomError: no broker could be reached, or none told the metadata.
    """
    with _link(settings.cluster) as link:
        snapshot = _snapshot(link, settings.cluster)
        rates = {b: _rates_or_unknown(link, b, settings.cluster) for b, seen in snapshot.brokers.items() if seen.alive}
        lists = {topic: config for topic, config in snapshot.topic_configs.items() if config.listed}
        return ThrottleState(rates, lists, snapshot)


def apply_rates(
    settings: Settings,
    rates: Mapping[int, int],
    roles: Collection[str] = ROLES,
    on_step: OnStep = lambda text: None,
    deadline_s: float = DEADLINE_S,
) -> dict[int, BrokerThrottles]:
    """Set a rate on each broker, wait until every one of them reads it back, and return what is in force.

    Args:
        settings: the cluster.
        rates: bytes per second by broker id.
        roles: leader, follower or both.
        on_step: told what is being done, one line a step.
        deadline_s: longest wait for the brokers to take the rates over, seconds.

    Raises:
        HeadroomError: a rate is not positive, a broker refused its rate, or did not read it back in time.
    """
    _check_rates(rates)
    keys = [_RATE_OF[role] for role in roles]
    changes = [Change(BROKER, str(b), {key: str(rate) for key in keys}) for b, rate in sorted(rates.items())]
    with _link(settings.cluster) as link:
        alter_configs(link, changes, _timeout_s(settings.cluster))
        on_step(f"rates set on {_names(rates)}; waiting until they are in force")

        def in_force(broker: int, now: BrokerThrottles) -> bool:
            wanted = (rates[broker], "broker")
            of_role = {"leader": _leader(now), "follower": _follower(now)}
            return all(of_role[role] == wanted for role in roles)

        return _await_rates(link, sorted(rates), in_force, settings.cluster, deadline_s)


def clear_rates(
    settings: Settings,
    brokers: Collection[int],
    cluster_default: bool = False,
    on_step: OnStep = lambda text: None,
    deadline_s: float = DEADLINE_S,
) -> dict[int, BrokerThrottles]:
    """Clear both rates of the brokers, wait until they are gone, and return what is in force then.

    Args:
        settings: the cluster.
        brokers: broker ids.
        cluster_default: clear the cluster-wide default too; else a broker without its own rate falls back to it.
        on_step: told what is being done, one line a step.
        deadline_s: longest wait for the brokers to take it over, seconds.

    Raises:
        HeadroomError: a broker refused, or still has its rates at the deadline.
    """
    names = [str(b) for b in sorted(brokers)] + ([_CLUSTER_DEFAULT] if cluster_default else [])
    with _link(settings.cluster) as link:
        changes = [Change(BROKER, name, dict.fromkeys(RATE_KEYS)) for name in names]
        alter_configs(link, changes, _timeout_s(settings.cluster))
        on_step(f"rates cleared on {_names(brokers)}; waiting until they are gone")
        left = {"broker", "default"} if cluster_default else {"broker"}

        def gone(_broker: int, now: BrokerThrottles) -> bool:
            return not left & {now.leader_source, now.follower_source}

        return _await_rates(link, sorted(brokers), gone, settings.cluster, deadline_s)


def apply_lists(
    settings: Settings,
    lists: Mapping[str, TopicLists],
    on_step: OnStep = lambda text: None,
    deadline_s: float = DEADLINE_S,
) -> dict[str, TopicConfig]:
    """Set the throttled replica lists of topics, wait until they read back, and return what they are then.

    A list of None is cleared.

    Raises:
        HeadroomError: a topic refused its lists, or did not read them back in time.
    """
    if not lists:
        return {}
    wanted = {topic: (of_topic.leader, of_topic.follower) for topic, of_topic in lists.items()}
    changes = [Change(TOPIC, t, {LEADER_LIST: ours[0], FOLLOWER_LIST: ours[1]}) for t, ours in sorted(wanted.items())]
    with _link(settings.cluster) as link:
        alter_configs(link, changes, _timeout_s(settings.cluster))
        on_step(f"lists set on {', '.join(sorted(lists))}; waiting until they read back")

        def read() -> dict[str, TopicConfig]:
            configs = _snapshot(link, settings.cluster).topic_configs
            return {topic: configs[topic] for topic in lists if topic in configs}

        def same(topic: str, now: TopicConfig | None) -> bool:
            return now is not None and (now.leader_list, now.follower_list) == wanted[topic]

        return _poll(read, lambda now: [t for t in lists if not same(t, now.get(t))], "topic", deadline_s)


def clear_lists(
    settings: Settings,
    topics: Collection[str],
    on_step: OnStep = lambda text: None,
    deadline_s: float = DEADLINE_S,
) -> dict[str, TopicConfig]:
    """Clear both lists of the topics, wait until they are gone, and return what the topics have then.

    Raises:
        HeadroomError: a topic refused, or still has its lists at the deadline.
    """
    return apply_lists(settings, dict.fromkeys(topics, TopicLists(None, None)), on_step, deadline_s)


def _await_rates(
    link: AdminLink,
    brokers: list[int],
    done: Callable[[int, BrokerThrottles], bool],
    cluster: ClusterSettings,
    deadline_s: float,
) -> dict[int, BrokerThrottles]:
    def read() -> dict[int, BrokerThrottles]:
        return {broker: _rates_or_unknown(link, broker, cluster) for broker in brokers}

    def missing(now: dict[int, BrokerThrottles]) -> list[int]:
        return [broker for broker in brokers if not (now[broker].known and done(broker, now[broker]))]

    return _poll(read, missing, "broker", deadline_s)


def _poll(read: Callable[[], _T], missing: Callable[[_T], list], what: str, deadline_s: float) -> _T:  # type: ignore[type-arg]
    deadline = time.monotonic() + deadline_s
    while True:
        now = read()
        late = missing(now)
        if not late:
            return now
        if time.monotonic() >= deadline:
            raise HeadroomError(
                f"{what} {', '.join(str(name) for name in late)}",
                f"did not read the change back within {deadline_s:.0f} s",
                "The change was accepted: look at the brokers' state, then read it again.",
            )
        # A change reaches each broker with the metadata log, usually within some ten milliseconds.
        time.sleep(_POLL_S)


@contextmanager
def _link(cluster: ClusterSettings) -> Iterator[AdminLink]:
    link = AdminLink(cluster)
    try:
        link.client()
        yield link
    finally:
        link.close()


def _snapshot(link: AdminLink, cluster: ClusterSettings) -> Snapshot:
    return read_whole(MetadataReader(link, _timeout_s(cluster), 0.0))


def _rates_or_unknown(link: AdminLink, broker: int, cluster: ClusterSettings) -> BrokerThrottles:
    try:
        return read_broker_configs(link, broker, min(5.0, _timeout_s(cluster))).throttles
    except KafkaError:
        return BrokerThrottles(known=False)


def _check_rates(rates: Mapping[int, int]) -> None:
    for broker, rate in rates.items():
        if rate <= 0:
            raise HeadroomError(f"broker {broker}", f"a throttle of {rate} bytes/s is none", "Give a rate above zero.")


def _leader(now: BrokerThrottles) -> tuple[int | None, str | None]:
    return now.leader_bytes_per_s, now.leader_source


def _follower(now: BrokerThrottles) -> tuple[int | None, str | None]:
    return now.follower_bytes_per_s, now.follower_source


def _names(brokers: Collection[int]) -> str:
    return f"broker{'s' if len(brokers) > 1 else ''} {', '.join(str(b) for b in sorted(brokers))}"


def _timeout_s(cluster: ClusterSettings) -> float:
    return cluster.request_timeout_ms / 1000
