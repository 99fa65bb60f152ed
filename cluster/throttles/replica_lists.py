"""Throttled replica lists of topics, for commands: sets, extends and clears them on a connection of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from headroom.cluster.admin.command_connection import DEADLINE_S, OnStep, open_connection, timeout_s
from headroom.cluster.throttles.list_entries import ThrottledListEntries
from headroom.planning.reassignments.run.changes import listed_entries
from headroom.planning.reassignments.run.journal import ThrottledList
from headroom.planning.throttles.replica_lists import TopicLists
from headroom.schemas.config import Settings
from headroom.schemas.keys import Role


def apply_lists(settings: Settings, lists: Mapping[str, TopicLists], deadline_s: float = DEADLINE_S) -> None:
    """Set the throttled replica lists of topics, and wait until they read back. A list of None is cleared.

    Args:
        settings: the cluster.
        lists: new lists by topic.
        deadline_s: longest wait, seconds.

    Raises:
        HeadroomError: a topic refused its lists, or did not read them back in time.
    """
    with _entries(settings, deadline_s) as entries:
        entries.replace(_by_list(lists))


def append_lists(
    settings: Settings,
    added: Mapping[str, TopicLists],
    on_step: OnStep = lambda text: None,
    deadline_s: float = DEADLINE_S,
) -> list[str]:
    """Add entries to the lists of topics, wait until they read back, and return the topics, sorted.

    Entries of others stay, also those that are added at the same time, because the controller applies the change to
    the list that it has then. A list of ``*`` is refused.

    Args:
        settings: the cluster.
        added: entries to add by topic; None for a list that stays as it is.
        on_step: called with one line of text per step.
        deadline_s: longest wait until the entries read back, seconds.

    Raises:
        HeadroomError: a topic refused its entries, or did not read them back in time.

    Source: Kafka 4.3.1, ``ConfigurationControlManager.incrementalAlterConfigResource``.
    """
    by_list = {name: listed_entries(text) or frozenset() for name, text in _by_list(added).items() if text is not None}
    topics = sorted({name.topic for name in by_list})
    if topics:
        with _entries(settings, deadline_s) as entries:
            on_step(f"extending the lists of {', '.join(topics)}; waiting until they read back")
            entries.append(by_list)
    return topics


def clear_lists(
    settings: Settings,
    roles: Mapping[str, Collection[Role]] | Collection[str],
    on_step: OnStep = lambda text: None,
    deadline_s: float = DEADLINE_S,
) -> None:
    """Clear lists of topics, and wait until they are gone.

    Args:
        settings: the cluster.
        roles: roles whose lists are cleared, by topic; or topics whose lists are all cleared.
        on_step: called with one line of text per step.
        deadline_s: longest wait for the lists to be gone, seconds.

    Raises:
        HeadroomError: a topic refused, or still has its lists at the deadline.
    """
    by_topic = roles if isinstance(roles, Mapping) else dict.fromkeys(roles, tuple(Role))
    cleared: dict[ThrottledList, str | None] = {
        ThrottledList(topic, role): None for topic, of_topic in by_topic.items() for role in of_topic
    }
    if cleared:
        with _entries(settings, deadline_s) as entries:
            on_step(f"clearing the lists of {', '.join(sorted(by_topic))}; waiting until they read back")
            entries.replace(cleared)


@contextmanager
def _entries(settings: Settings, deadline_s: float) -> Iterator[ThrottledListEntries]:
    with open_connection(settings.cluster) as connection:
        yield ThrottledListEntries(connection, timeout_s(settings.cluster), deadline_s)


def _by_list(lists: Mapping[str, TopicLists]) -> dict[ThrottledList, str | None]:
    return {
        ThrottledList(topic, role): text
        for topic, of_topic in lists.items()
        for role, text in ((Role.LEADER, of_topic.leader), (Role.FOLLOWER, of_topic.follower))
    }
