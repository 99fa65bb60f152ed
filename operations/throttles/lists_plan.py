"""Entries that running moves are missing in the throttled replica lists, for ``headroom throttle apply --lists``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headroom.cluster.live.throttle_state import ThrottleState
from headroom.cluster.model import Partition, TopicConfig
from headroom.planning.reassignments.run.journal import JournalStep, StepKind, StepState, ThrottledList
from headroom.planning.throttles.replica_lists import (
    Move,
    TopicLists,
    format_replica_list,
    lists_of_plan,
    parse_replica_list,
)
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import Role

_UNREAD_NAMED = 5


@dataclass(frozen=True)
class ListsPlan:
    """Changes of the throttled replica lists.

    Attributes:
        entries: entries to add by topic; a list of None is complete already.
        every: roles by topic whose list is ``*``, which stays.
        partitions: number of partitions that gain a replica.
        before: lists by topic that gets entries, as they are now.
    """

    entries: Mapping[str, TopicLists]
    every: Mapping[str, tuple[str, ...]]
    partitions: int
    before: Mapping[str, TopicLists] = field(default_factory=dict)

    def steps(self) -> list[JournalStep]:
        """Return the entries to add as steps of the journal, with the list from before."""
        none = TopicLists(None, None)
        return [
            JournalStep(StepKind.LIST, StepState.INTENDED, str(ThrottledList(topic, role)), before, added)
            for topic, lists in sorted(self.entries.items())
            for now in [self.before.get(topic, none)]
            for role, before, added in (
                (Role.LEADER, now.leader, lists.leader),
                (Role.FOLLOWER, now.follower, lists.follower),
            )
            if added is not None
        ]


def lists_plan(view: ThrottleState) -> ListsPlan:
    """Return the entries that the lists need so that the throttles limit all running moves.

    They are those of Kafka's own tool: the leader list gets the replicas before the move, the follower list the adding
    ones. Partitions that gain no replica are left out, because their in-sync traffic would only use up the throttle.

    Args:
        view: moves and lists now.

    Raises:
        HeadroomError: no move adds a replica, or the lists of a moving topic could not be read.
    """
    gaining = [p for p in view.moving() if p.adding]
    if not gaining:
        rule = "sets the lists of running moves, and no running reassignment adds a replica"
        raise HeadroomError("--lists", rule, "Start the move first, or leave --lists out.")
    topics = {p.topic for p in gaining}
    unread = [topic for topic in view.unread_topics() if topic in topics]
    if unread:
        remedy = "See that the brokers are up and that this user may DescribeConfigs on it, then try again."
        raise HeadroomError(f"topic {', '.join(unread[:_UNREAD_NAMED])}", "its lists could not be read", remedy)
    configs = {topic: view.snapshot.topic_configs[topic] for topic in sorted(topics)}
    wanted = lists_of_plan(_move_of(p) for p in gaining)
    missing = {
        topic: TopicLists(
            _not_in(wanted[topic].leader, config.leader_list), _not_in(wanted[topic].follower, config.follower_list)
        )
        for topic, config in configs.items()
    }
    return ListsPlan(
        {topic: lists for topic, lists in missing.items() if lists != TopicLists(None, None)},
        {topic: roles for topic, config in configs.items() if (roles := _every(config))},
        len(gaining),
        {topic: TopicLists(config.leader_list, config.follower_list) for topic, config in configs.items()},
    )


def lists_json(plan: ListsPlan) -> list[dict[str, Any]]:
    """Return the changes as a JSON array, one object per topic; null for a list to which nothing is added."""
    none = TopicLists(None, None)
    return [
        {
            "topic": topic,
            "leader_added": plan.entries.get(topic, none).leader,
            "follower_added": plan.entries.get(topic, none).follower,
            "every_replica": list(plan.every.get(topic, ())),
        }
        for topic in sorted({*plan.entries, *plan.every})
    ]


def _move_of(partition: Partition) -> Move:
    """Return the move of a partition, whose replicas include the adding ones."""
    after = tuple(dict.fromkeys((*partition.target, *partition.adding)))
    return Move(partition.name, partition.before, after)


def _not_in(wanted: str | None, now: str | None) -> str | None:
    """Return the entries that a list does not have; None if there are none, or if the list is ``*``."""
    entries, present = parse_replica_list(wanted), parse_replica_list(now)
    if entries is None or (present is not None and present.every):
        return None
    known = set() if present is None else set(present.entries)
    return format_replica_list(entry for entry in entries.entries if entry not in known) or None


def _every(config: TopicConfig) -> tuple[str, ...]:
    lists = {"leader": config.leader_list, "follower": config.follower_list}
    parsed = {role: parse_replica_list(text) for role, text in lists.items()}
    return tuple(role for role, replica_list in parsed.items() if replica_list is not None and replica_list.every)
