"""Consumer groups of a cluster: their committed offsets, whether they are active, and a commit in their place."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from kafka import KafkaAdminClient
from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    KafkaError,
    NoError,
    NotCoordinatorError,
)
from kafka.structs import OffsetAndMetadata

from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

# States of a group without members.
_INACTIVE = ("Dead", "Empty")
_SHARE = "share"
# A broker that has just become a coordinator, or has ceased to be one, is not one for some seconds.
_NOT_READY = (CoordinatorNotAvailableError, CoordinatorLoadInProgressError, NotCoordinatorError)
_PATIENCE_S, _PAUSE_S = 30.0, 0.5
_READ = "See that its brokers are up, and that this user has DESCRIBE on groups and topics; then run it again."
_T = TypeVar("_T")


def read_groups(connection: AdminConnection, subject: str) -> dict[str, bool | None]:
    """Return the groups of a cluster, with whether each has members now; None if unknown, as before Kafka 2.6.

    Share groups are left out, because they have no committed offsets. The list has groups of both protocols, while a
    description of a group of the newer one is refused as if there were none.

    Args:
        connection: the admin connection.
        subject: the cluster, for errors.

    Raises:
        HeadroomError: a broker did not answer, or refused.
    """
    groups = _ask(connection, subject, lambda client: client.list_groups())
    with_offsets = [group for group in groups if group.get("group_type", "").lower() != _SHARE]
    states = {group["group_id"]: group.get("group_state") or None for group in with_offsets}
    return {group: None if states[group] is None else states[group] not in _INACTIVE for group in sorted(states)}


def read_committed(
    connection: AdminConnection, subject: str, groups: Collection[str], names: Collection[TopicPartition] | None
) -> dict[str, dict[TopicPartition, int]]:
    """Return the committed offsets of groups by partition; partitions without one are missing.

    Args:
        connection: the admin connection.
        subject: the cluster, for errors.
        groups: the groups.
        names: the partitions; all if None.

    Raises:
        HeadroomError: a broker did not answer, or refused.
    """
    if not groups or (names is not None and not names):
        return {group: {} for group in groups}
    wanted = {group: None if names is None else list(names) for group in groups}
    answered = _ask(connection, subject, lambda client: client.list_group_offsets(wanted))
    # Kafka's -1: the group has committed nothing of the partition.
    return {
        group: {
            TopicPartition(*name): committed.offset
            for name, committed in answered.get(group, {}).items()
            if committed.offset >= 0
        }
        for group in groups
    }


def commit_offsets(
    connection: AdminConnection, subject: str, group: str, offsets: Mapping[TopicPartition, int]
) -> None:
    """Commit offsets in the place of a group, which must have no members.

    Args:
        connection: the admin connection.
        subject: the cluster, for errors.
        group: the group.
        offsets: offset by partition.

    Raises:
        HeadroomError: offsets were not committed; names the partitions.
    """
    values = {name: OffsetAndMetadata(offset, "", None) for name, offset in offsets.items()}
    answers = _ask(connection, subject, lambda client: client.alter_group_offsets(group, values))
    refused = {TopicPartition(*name): error for name, error in answers.items() if error is not NoError}
    missing = offsets.keys() - {TopicPartition(*name) for name in answers}
    if refused or missing:
        names = ", ".join(map(str, sorted({*refused, *missing})))
        why = ", ".join(sorted({error.__name__ for error in refused.values()})) or "no answer"
        rule = f"{len(refused) + len(missing)} of {len(offsets)} offsets were not committed ({names}: {why})"
        remedy = "Stop its consumers, and see that this user has READ on the group; then run it again."
        raise HeadroomError(f"group {group} on {subject}", rule, remedy)


def _ask(connection: AdminConnection, subject: str, ask: Callable[[KafkaAdminClient], _T]) -> _T:
    """Return an answer. A cluster that never had a group creates the topic of their offsets at the first request."""
    until_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return ask(connection.client())
        except KafkaError as error:
            # The next one to ask may be a collector, which keeps its connection.
            connection.forget_coordinators()
            if not isinstance(error, _NOT_READY) or time.monotonic() > until_s:
                raise HeadroomError(
                    f"groups of {subject}", f"could not be read ({type(error).__name__})", _READ
                ) from None
        time.sleep(_PAUSE_S)
