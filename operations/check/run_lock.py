"""Check of the permission for the run lock, by which runs of several stores see each other; no member is left."""

from __future__ import annotations

from collections.abc import Collection

from kafka.admin import ACLOperation
from kafka.errors import GroupAuthorizationFailedError, KafkaError

from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.run_lock.group import CoordinatedGroup, LockTiming
from headroom.operations.check.result import Check, CheckStatus, ok, unknown
from headroom.schemas.config import Settings

_NAME = "Run lock: see runs of other stores"
_OFFSETS = "__consumer_offsets"


def run_lock_checks(settings: Settings) -> list[Check]:
    """Return whether this user may join the group of the run lock.

    Raises:
        HeadroomError: no broker could be reached.
    """
    name = settings.reassign.run_lock_group()
    if name is None:
        return [ok(_NAME, "off by reassign.lock_group")]
    connection = AdminConnection(settings.cluster)
    try:
        # The first question for a coordinator would create the topic.
        if _OFFSETS not in connection.client().list_topics():
            return [ok(_NAME, "not checked: the cluster has no consumer group yet")]
        return [of_operations(name, CoordinatedGroup(connection, name, LockTiming()).operations())]
    except GroupAuthorizationFailedError:
        return [of_operations(name, ())]
    except KafkaError as error:
        finding = f"no coordinator of group {name} answers ({type(error).__name__})"
        return [unknown(_NAME, finding, "Check again when its partition of __consumer_offsets has a leader.")]
    finally:
        connection.close()


def of_operations(group: str, granted: Collection[int] | None) -> Check:
    """Return whether the lock is available; ok if not, because only runs need it, and they begin without it.

    Args:
        group: id of the group.
        granted: Kafka's codes of the operations on it that this user may use; None if no broker reports them.
    """
    remedy = f"For `headroom reassign` and `headroom balance run`: grant READ on group {group} to this user."
    if granted is None:
        return unknown(_NAME, "the broker does not report permissions", f"If a run prints a note: {remedy}")
    if ACLOperation.READ in granted:
        return ok(_NAME, "READ is granted")
    finding = "not granted, and not needed: Headroom only recommends, and its runs do not see those of other stores"
    return Check(_NAME, CheckStatus.OK, finding, remedy)
