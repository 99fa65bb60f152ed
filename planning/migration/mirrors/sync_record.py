"""Offset syncs of MirrorMaker 2 with their places in their topic, as they are read and as they are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headroom.schemas.keys import TopicPartition

# Least time between two kept syncs of a partition, by the times at which they were written, without any group.
APART_MS = 30_000


class SyncRecord(NamedTuple):
    """An offset sync with its place in the topic of the syncs.

    Attributes:
        offset: its offset in that topic.
        name: partition, by its name on the origin.
        origin: offset of a record on the origin.
        target: offset of its copy on the target.
        written_ms: when it was written, epoch milliseconds.
    """

    offset: int
    name: TopicPartition
    origin: int
    target: int
    written_ms: int

    @property
    def is_valid(self) -> bool:
        """Whether it says anything: negative offsets do not."""
        return self.origin >= 0 and self.target >= 0


@dataclass(frozen=True)
class SyncReading:
    """Part of the topic of the syncs.

    Attributes:
        names: partitions that are followed.
        topic_id: id of the topic; None before Kafka 2.8.
        leader_epoch: epoch of its leader, the same before and after the reading; None if unknown.
        is_restart: whether it does not continue the reading before: the first one, or the topic has another log.
        begin: offset at which it began.
        end: offset at which it ended.
        is_all: whether that was the end of the log.
        records: all syncs there, also of other partitions, in the order of the topic.
    """

    names: frozenset[TopicPartition]
    topic_id: str | None
    leader_epoch: int | None
    is_restart: bool
    begin: int
    end: int
    is_all: bool
    records: Sequence[SyncRecord]


class KeptSync(NamedTuple):
    """An offset sync to keep.

    Attributes:
        record: the sync.
        leader_epoch: epoch of the topic's leader that it was read from; None if unknown.
        after: offset in the topic of a kept sync before it, if none in between went back or can have been missed.
            None: earlier syncs do not count.
    """

    record: SyncRecord
    leader_epoch: int | None
    after: int | None


def is_apart(before_ms: int, after_ms: int) -> bool:
    """Return whether two times are far enough apart; if the clock was set back they are."""
    return not 0 <= after_ms - before_ms < APART_MS
