"""Single entries of throttled replica lists: appended and removed by the controller, so that others' entries stay."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping

import kafka.errors as kafka_errors
from kafka.protocol.admin import DescribeConfigsRequest

from headroom.cluster.admin.alter_configs import Appended, ConfigChange, Subtracted, alter_configs
from headroom.cluster.admin.config_keys import FOLLOWER_LIST, LEADER_LIST, LIST_KEYS, TOPIC
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.connection.failover import BrokerFailover, MetadataError
from headroom.planning.reassignments.run.changes import listed_entries
from headroom.planning.reassignments.run.journal import Entry, ThrottledList
from headroom.planning.throttles.replica_lists import format_replica_list
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import Role

_KEY_OF = {Role.LEADER: LEADER_LIST, Role.FOLLOWER: FOLLOWER_LIST}
ROLE_OF_KEY = {key: role for role, key in _KEY_OF.items()}
# Limits the size of one answer.
_TOPICS_PER_REQUEST = 500
_POLL_S = 0.2
# DescribeConfigsResponse.ConfigSource of a value that is set on the topic itself.
_TOPIC_CONFIG = 1


class ThrottledListEntries:
    """Entries of throttled replica lists on one admin connection.

    Args:
        connection: the admin connection.
        timeout_s: longest wait for one answer, seconds.
        deadline_s: longest wait until a change reads back, seconds.
        sleep: waits for the given seconds.
    """

    def __init__(
        self,
        connection: AdminConnection,
        timeout_s: float,
        deadline_s: float,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._connection = connection
        self._brokers = BrokerFailover.for_command(connection, timeout_s)
        self._timeout_s = timeout_s
        self._deadline_s = deadline_s
        self._sleep = sleep

    def read(self, topics: Collection[str]) -> dict[ThrottledList, str]:
        """Return the lists that are set on the topics, as text, emptied ones included; missing topics have none.

        Raises:
            HeadroomError: no broker answered, or the lists of an existing topic may not be read.
        """
        lists: dict[ThrottledList, str] = {}
        names = sorted(topics)
        for start in range(0, len(names), _TOPICS_PER_REQUEST):
            lists |= self._read(names[start : start + _TOPICS_PER_REQUEST])
        return lists

    def _read(self, topics: list[str]) -> dict[ThrottledList, str]:
        request = DescribeConfigsRequest(
            resources=[(TOPIC, topic, list(LIST_KEYS)) for topic in topics], include_synonyms=False, min_version=1
        )
        try:
            results = self._brokers.send_to_any("throttled replica lists", request).results
        except MetadataError as error:
            raise HeadroomError("the throttled replica lists", str(error), "See that the brokers are up.") from None
        lists: dict[ThrottledList, str] = {}
        for result in results:
            refusal = kafka_errors.for_code(result.error_code)
            if refusal not in (kafka_errors.NoError, kafka_errors.UnknownTopicOrPartitionError):
                rule = f"its throttled replica lists could not be read ({refusal.__name__})"
                raise HeadroomError(f"topic {result.resource_name}", rule, "Grant DESCRIBE_CONFIGS on it to this user.")
            for config in result.configs if refusal is kafka_errors.NoError else ():
                if config.name in ROLE_OF_KEY and config.config_source == _TOPIC_CONFIG:
                    lists[ThrottledList(result.resource_name, ROLE_OF_KEY[config.name])] = config.value or ""
        return lists

    def append(self, entries: Mapping[ThrottledList, Collection[Entry]]) -> None:
        """Append entries, and wait until they read back; the controller drops those that are listed already.

        Raises:
            HeadroomError: a topic refused, or did not read them back in time.
        """
        self._change({name: Appended(format_replica_list(added)) for name, added in entries.items()})
        self._await_lists(
            entries, lambda name, text: (now := listed_entries(text)) is None or frozenset(entries[name]) <= now
        )

    def subtract(self, entries: Mapping[ThrottledList, Collection[Entry]]) -> None:
        """Remove entries as far as they are listed, delete lists that are empty then, and wait until both read back.

        Raises:
            HeadroomError: a topic refused, or did not read the change back in time.
        """
        lists = self.read({name.topic for name in entries})
        present = {
            name: frozenset(removed) & listed
            for name, removed in entries.items()
            if (listed := listed_entries(lists.get(name))) is not None
        }
        # Subtracting from a list that is not set would set an empty one.
        self._change({n: Subtracted(format_replica_list(removed)) for n, removed in present.items() if removed})
        lists = self._await_lists(present, lambda name, text: not present[name] & (listed_entries(text) or frozenset()))
        # An emptied list is still set, and shown as set.
        emptied = [name for name in present if not lists.get(name, "*").strip()]
        self._change(dict.fromkeys(emptied))
        self._await_lists(emptied, lambda _, text: text is None or bool(text.strip()))

    def replace(self, lists: Mapping[ThrottledList, str | None]) -> None:
        """Set whole lists, or clear those that are None, and wait until they read back.

        What others have listed is lost; ``append`` and ``subtract`` leave it.

        Raises:
            HeadroomError: a topic refused, or did not read its list back in time.
        """
        self._change(lists)
        self._await_lists(lists, lambda name, text: text == lists[name])

    def _change(self, values: Mapping[ThrottledList, str | None]) -> None:
        by_topic: dict[str, dict[str, str | None]] = {}
        for name, value in sorted(values.items()):
            by_topic.setdefault(name.topic, {})[_KEY_OF[name.role]] = value
        changes = [ConfigChange(TOPIC, topic, keys) for topic, keys in by_topic.items()]
        alter_configs(self._connection, changes, self._timeout_s)

    def _await_lists(
        self, names: Iterable[ThrottledList], is_in_force: Callable[[ThrottledList, str | None], bool]
    ) -> dict[ThrottledList, str]:
        """Return the lists of the topics once all those that are named are as wanted.

        Args:
            names: lists that were changed.
            is_in_force: returns whether a list has the change, by its text; None: it is not set.
        """
        wanted = sorted(names)
        give_up_s = time.monotonic() + self._deadline_s
        while True:
            lists = self.read({name.topic for name in wanted})
            late = [name for name in wanted if not is_in_force(name, lists.get(name))]
            if not late:
                return lists
            if time.monotonic() >= give_up_s:
                topics = ", ".join(dict.fromkeys(name.topic for name in late))
                rule = f"did not read the change back within {self._deadline_s:.0f} s"
                remedy = "Check the brokers' state, then run the command again."
                raise HeadroomError(f"topic {topics}", rule, remedy)
            self._sleep(_POLL_S)
