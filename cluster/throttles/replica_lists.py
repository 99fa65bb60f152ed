"""Throttled replica lists of topics: sets and clears them, and reads them back."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from functools import partial

from cluster.admin.alter_configs import ConfigChange, alter_configs
from cluster.admin.command_connection import DEADLINE_S, OnStep, open_connection, read_snapshot, timeout_s
from cluster.admin.config_keys import FOLLOWER_LIST, LEADER_LIST, LIST_KEYS, TOPIC
from cluster.connection.admin_connection import AdminConnection
from cluster.model import TopicConfig
from cluster.throttles.broker_rates import POLL_S
from planning.throttles.replica_lists import TopicLists
from schemas.config import ClusterSettings, Settings
from schemas.errors import HeadroomError


def apply_lists(
    settings: Settings,
    lists: Mapping[str, TopicLists],
    on_step: OnStep = lambda text: None,
    deadline_s: float = DEADLINE_S,
) -> dict[str, TopicConfig]:
    """Set the throttled replica lists of topics, wait until they read back, and return the topics' configurations.

    A list of None is cleared. ``on_step`` gets one line of text per step; ``deadline_s`` is the longest wait, seconds.

    Raises:
        HeadroomError: a topic refused its lists, or did not read them back in time.
    """
    changes = {
        t: {LEADER_LIST: topic_lists.leader, FOLLOWER_LIST: topic_lists.follower} for t, topic_lists in lists.items()
    }
    return _change_lists(settings, changes, "set", on_step, deadline_s)


def clear_lists(
    settings: Settings,
    topics: Collection[str],
    on_step: OnStep = lambda text: None,
    deadline_s: float = DEADLINE_S,
    keys: Mapping[str, Collection[str]] | None = None,
) -> dict[str, TopicConfig]:
    """Clear the lists of the topics, wait until they are gone, and return the topics' configurations.

    Args:
        settings: the cluster.
        topics: names of topics.
        on_step: called with one line of text per step.
        deadline_s: longest wait for the lists to be gone, seconds.
        keys: keys of the lists to clear, by topic; None: both lists of each topic.

    Raises:
        HeadroomError: a topic refused, or still has its lists at the deadline.
    """
    changes = {topic: dict.fromkeys(LIST_KEYS if keys is None else keys[topic]) for topic in topics}
    return _change_lists(settings, changes, "cleared", on_step, deadline_s)


def _change_lists(
    settings: Settings, changes: Mapping[str, Mapping[str, str | None]], verb: str, on_step: OnStep, deadline_s: float
) -> dict[str, TopicConfig]:
    if not changes:
        return {}
    with open_connection(settings.cluster) as connection:
        requested = [ConfigChange(TOPIC, topic, values) for topic, values in sorted(changes.items())]
        alter_configs(connection, requested, timeout_s(settings.cluster))
        on_step(f"lists {verb} on {', '.join(sorted(changes))}; waiting until they read back")
        is_in_force = {topic: partial(_is_in_force, wanted=wanted) for topic, wanted in changes.items()}
        return await_lists(connection, settings.cluster, is_in_force, deadline_s)


def await_lists(
    connection: AdminConnection,
    cluster: ClusterSettings,
    is_in_force: Mapping[str, Callable[[TopicConfig | None], bool]],
    deadline_s: float,
    change: str = "the change",
) -> dict[str, TopicConfig]:
    """Wait until the lists of all topics are in force, and return the topics' configurations.

    Args:
        connection: the admin connection.
        cluster: settings of the cluster.
        is_in_force: by topic, whether its configuration (None: it was not reported) has the change.
        deadline_s: longest wait, seconds.
        change: what has to read back, for the error.

    Raises:
        HeadroomError: a topic did not read its change back in time.
    """
    give_up = time.monotonic() + deadline_s
    while True:
        configs = read_snapshot(connection, cluster).topic_configs
        late = [topic for topic, is_done in sorted(is_in_force.items()) if not is_done(configs.get(topic))]
        if not late:
            return {topic: configs[topic] for topic in is_in_force}
        if time.monotonic() >= give_up:
            raise HeadroomError(
                f"topic {', '.join(late)}",
                f"did not read {change} back within {deadline_s:.0f} s",
                "The change was accepted: look at the brokers' state, then read it again.",
            )
        time.sleep(POLL_S)


def _is_in_force(config: TopicConfig | None, wanted: Mapping[str, str | None]) -> bool:
    if config is None:
        return False
    now = {LEADER_LIST: config.leader_list, FOLLOWER_LIST: config.follower_list}
    return all(now[key] == value for key, value in wanted.items())
