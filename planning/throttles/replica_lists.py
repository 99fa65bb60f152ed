"""Throttled replica lists: parsing, formatting, and the lists that Kafka's own tool builds for a plan."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.quantities import QuantityError, parse_id, quote, strip

EVERY_REPLICA = "*"
_ENTRY = re.compile(r"([0-9]+):([0-9]+)")


class ReplicaListError(HeadroomError, ValueError):
    """A throttled replica list that cannot be read as a whole; nothing of it is known.

    Args:
        entry: the entry that is none.
    """

    def __init__(self, entry: str) -> None:
        super().__init__(
            "a throttled replica list",
            f"has the entry {quote(entry)}, which is not partition:broker",
            "See it with headroom throttle show, and correct it with kafka-configs.sh.",
        )


@dataclass(frozen=True)
class ReplicaList:
    """One throttled replica list of a topic.

    Attributes:
        every: true if the list is ``*``, which means every replica of every partition.
        entries: (partition, broker) pairs in the order of the text; empty if ``every`` is true.
    """

    every: bool
    entries: tuple[tuple[int, int], ...]

    def brokers(self, partition: int, replicas: Sequence[int]) -> tuple[int, ...]:
        """Return the brokers in the list for a partition; for ``*``, its replicas."""
        if self.every:
            return tuple(replicas)
        return tuple(dict.fromkeys(broker for listed, broker in self.entries if listed == partition))

    def partitions(self) -> frozenset[int]:
        """Return the partitions in the list; empty for ``*``, which contains no partition numbers."""
        return frozenset(partition for partition, _ in self.entries)


class Move(NamedTuple):
    """The planned reassignment of one partition.

    Attributes:
        name: topic and number of the partition.
        before: replicas before the reassignment, without adding replicas of a running one.
        after: replicas after the reassignment.
    """

    name: TopicPartition
    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True)
class TopicLists:
    """Leader and follower list of one topic as text; None if not set."""

    leader: str | None
    follower: str | None


def parse_replica_list(text: str | None) -> ReplicaList | None:
    """Return the parsed list of a topic's configuration; None if it is empty.

    Raises:
        ReplicaListError: the text as a whole is neither ``*`` nor ``partition:broker,...``.

    Source: Kafka 4.3.1, ``ThrottledReplicaListValidator``, which allows empty entries.
    """
    given = strip(text or "")
    if not given:
        return None
    if given == EVERY_REPLICA:
        return ReplicaList(every=True, entries=())
    return ReplicaList(every=False, entries=tuple(_entry(part) for part in given.split(",") if strip(part)))


def _entry(text: str) -> tuple[int, int]:
    match = _ENTRY.fullmatch(strip(text))
    if match is None:
        raise ReplicaListError(text)
    try:
        return parse_id(match[1]), parse_id(match[2])
    except QuantityError:
        raise ReplicaListError(text) from None


def format_replica_list(entries: Iterable[tuple[int, int]]) -> str:
    """Return the text of a list, with entries sorted as strings like in Kafka's own tool."""
    return ",".join(sorted({f"{partition}:{broker}" for partition, broker in entries}))


def lists_of_plan(moves: Iterable[Move]) -> dict[str, TopicLists]:
    """Return the lists that ``kafka-reassign-partitions --execute --throttle`` sets for a plan, by topic.

    The leader list contains every replica before the move, because any of them may become the leader. The follower list
    contains the destinations that were no replicas before.

    Source: Kafka 4.3.1, ``ReassignPartitionsCommand.calculateLeaderThrottles`` and ``calculateFollowerThrottles``.
    """
    entries: dict[str, tuple[list[str], list[str]]] = {}
    for (topic, partition), before, after in moves:
        leaders, followers = entries.setdefault(topic, ([], []))
        # Texts at once, because a plan may have a million replicas.
        leaders += [f"{partition}:{broker}" for broker in before]
        followers += [f"{partition}:{broker}" for broker in after if broker not in before]
    return {
        topic: TopicLists(",".join(sorted(set(leaders))) or None, ",".join(sorted(set(followers))) or None)
        for topic, (leaders, followers) in entries.items()
    }
