"""Adds entries to the throttled replica lists of topics, whatever else is in them, and reads them back."""

from __future__ import annotations

import time
from collections.abc import Mapping

from cluster.admin.alter_configs import Appended, ConfigChange, alter_configs
from cluster.admin.command_connection import DEADLINE_S, OnStep, open_connection, read_snapshot, timeout_s
from cluster.admin.config_keys import FOLLOWER_LIST, LEADER_LIST, TOPIC
from cluster.model import TopicConfig
from cluster.throttles.broker_rates import POLL_S
from planning.throttles.replica_lists import TopicLists, parse_replica_list
from schemas.config import Settings
from schemas.errors import HeadroomError


def append_lists(
    settings: Settings,
    entries: Mapping[str, TopicLists],
    on_step: OnStep = lambda text: None,
    deadline_s: float = DEADLINE_S,
) -> dict[str, TopicConfig]:
    """Add entries to the lists of topics, wait until they read back, and return the topics' configurations.

    Entries of others stay, also those that are added at the same time, because the controller applies the change to
    the list that it has then. A list of ``*`` is refused.

    Args:
        settings: the cluster.
        entries: entries to add by topic; None for a list that stays as it is.
        on_step: called with one line of text per step.
        deadline_s: longest wait until the entries read back, seconds.

    Raises:
        HeadroomError: a topic refused its entries, or did not read them back in time.

    Source: Kafka 4.3.1, ``ConfigurationControlManager.incrementalAlterConfigResource``.
    """
    changes = {
        topic: {key: Appended(text) for key, text in _by_key(lists).items() if text is not None}
        for topic, lists in sorted(entries.items())
    }
    requested = [ConfigChange(TOPIC, topic, values) for topic, values in changes.items() if values]
    if not requested:
        return {}
    with open_connection(settings.cluster) as connection:
        alter_configs(connection, requested, timeout_s(settings.cluster))
        topics = [change.name for change in requested]
        on_step(f"lists extended on {', '.join(topics)}; waiting until they read back")
        give_up = time.monotonic() + deadline_s
        while True:
            configs = read_snapshot(connection, settings.cluster).topic_configs
            late = [topic for topic in topics if not _contains(configs.get(topic), entries[topic])]
            if not late:
                return {topic: configs[topic] for topic in topics}
            if time.monotonic() >= give_up:
                rule = f"did not read its new list entries back within {deadline_s:.0f} s"
                remedy = "The change was accepted: look at the brokers' state, then read it again."
                raise HeadroomError(f"topic {', '.join(late)}", rule, remedy)
            time.sleep(POLL_S)


def _by_key(lists: TopicLists) -> dict[str, str | None]:
    return {LEADER_LIST: lists.leader, FOLLOWER_LIST: lists.follower}


def _contains(config: TopicConfig | None, wanted: TopicLists) -> bool:
    if config is None:
        return False
    pairs = ((config.leader_list, wanted.leader), (config.follower_list, wanted.follower))
    return all(_entries(entries) <= _entries(now) for now, entries in pairs)


def _entries(text: str | None) -> set[tuple[int, int]]:
    found = parse_replica_list(text)
    return set() if found is None else set(found.entries)
