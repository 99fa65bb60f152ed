"""Adds entries to the throttled replica lists of topics, whatever else is in them, and reads them back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from cluster.admin.alter_configs import Appended, ConfigChange, alter_configs
from cluster.admin.command_connection import DEADLINE_S, OnStep, open_connection, timeout_s
from cluster.admin.config_keys import FOLLOWER_LIST, LEADER_LIST, TOPIC
from cluster.model import TopicConfig
from cluster.throttles.replica_lists import await_lists
from planning.reassignments.run.changes import listed_entries
from planning.throttles.replica_lists import TopicLists
from schemas.config import Settings


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
        is_in_force = {topic: partial(_contains, wanted=entries[topic]) for topic in topics}
        return await_lists(connection, settings.cluster, is_in_force, deadline_s, "its new list entries")


def _by_key(lists: TopicLists) -> dict[str, str | None]:
    return {LEADER_LIST: lists.leader, FOLLOWER_LIST: lists.follower}


def _contains(config: TopicConfig | None, wanted: TopicLists) -> bool:
    if config is None:
        return False
    pairs = ((config.leader_list, wanted.leader), (config.follower_list, wanted.follower))
    return all(_entries(entries) <= _entries(now) for now, entries in pairs)


def _entries(text: str | None) -> frozenset[tuple[int, int]]:
    return listed_entries(text) or frozenset()
