"""What is read of one cluster of a migration: its topics with their settings, and the offsets of their logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

_COMPACT, _DELETE = "compact", "delete"
LOG_APPEND_TIME = "LogAppendTime"


@dataclass(frozen=True)
class TopicRules:
    """Settings of a topic that decide what it keeps and what a leader switch may lose; None: unknown.

    Attributes:
        cleanup_policy: ``delete``, ``compact`` or both, comma-separated.
        retention_ms: age at which records may be deleted; -1: none.
        retention_bytes: size of a partition above which its oldest records may be deleted; -1: none.
        min_insync_replicas: replicas that have a record before it is acknowledged with acks=all.
        unclean_elections: whether an out-of-sync replica may become the leader.
        timestamp_type: ``CreateTime``, or ``LogAppendTime`` if the broker sets the timestamps.
        remote_storage: whether segments are moved to remote storage.
    """

    cleanup_policy: str | None = None
    retention_ms: int | None = None
    retention_bytes: int | None = None
    min_insync_replicas: int | None = None
    unclean_elections: bool | None = None
    timestamp_type: str | None = None
    remote_storage: bool | None = None

    def compacts(self) -> bool:
        """Return whether records of which there is a newer one are removed."""
        return _COMPACT in _policies(self.cleanup_policy)

    def deletes(self) -> bool:
        """Return whether retention deletes records; it does if the policy is unknown."""
        return self.cleanup_policy is None or _DELETE in _policies(self.cleanup_policy)


# Thousands of partitions and groups ask for the same few.
@lru_cache(maxsize=64)
def _policies(cleanup_policy: str | None) -> frozenset[str]:
    return frozenset(part.strip() for part in (cleanup_policy or "").split(","))


@dataclass(frozen=True)
class MigratingTopic:
    """A topic on one cluster.

    Attributes:
        topic_id: id of the topic; None before Kafka 2.8.
        leaders: leader by partition; None if it has none.
        least_replicas: smallest number of replicas of a partition.
        leader_epochs: epoch of the leader by partition; those that are unknown are missing.
    """

    topic_id: str | None
    leaders: Mapping[int, int | None]
    least_replicas: int
    leader_epochs: Mapping[int, int] = field(default_factory=dict)


# Not frozen, and never changed: a tick has tens of thousands, and a frozen one takes five times as long to make.
@dataclass(slots=True, unsafe_hash=True)
class LogOffsets:
    """Offsets of a partition's log; None: unknown.

    Attributes:
        start: first offset that is not deleted.
        end: offset after the last record that all in-sync replicas have.
        stable: offset of the first record of an open transaction; the end without one.
        newest_ms: greatest timestamp in the log, epoch milliseconds; None also if the log is empty.
        newest_offset: offset of the record that has it.
    """

    start: int | None = None
    end: int | None = None
    stable: int | None = None
    newest_ms: int | None = None
    newest_offset: int | None = None

    def is_empty(self) -> bool | None:
        """Return whether the log has no record; None if unknown."""
        return None if self.start is None or self.end is None else self.start >= self.end


def growth_per_s(before: int | None, after: int | None, elapsed_s: float) -> float | None:
    """Return the growth of an offset per second; None if it is unknown, or if the offset fell.

    Args:
        before: offset at the earlier time.
        after: offset at the later time.
        elapsed_s: time between the two, seconds.
    """
    if before is None or after is None or not 0 <= before <= after or elapsed_s <= 0:
        return None
    return (after - before) / elapsed_s


def read_rate(offsets_per_s: float | None, active: bool | None) -> float | None:
    """Return the rate at which a group reads; None if it is unknown.

    A group with members may commit only now and then, so that an offset that has not grown is no sign of rest.

    Args:
        offsets_per_s: rate at which its committed offset grew, offsets per second; None if unknown.
        active: whether the group has members; None if unknown.
    """
    return None if offsets_per_s == 0 and active is not False else offsets_per_s
