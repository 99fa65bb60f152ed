"""Whether a query can continue in a topic where it stopped: records may have expired, or the topic may be another one.

Offsets alone do not show that a topic was created again: the new one may have grown beyond the old offset. Its records
are younger than the last read of the old one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headroom.schemas.bounds import TICK_OFF_S


@dataclass(frozen=True)
class PartitionOffsets:
    """What a partition has now.

    Attributes:
        earliest: first offset that is there.
        end: offset after its last record.
        last_read_ms: timestamp of the record before the query's position, epoch milliseconds; of its last record if
            it ends before that position. None if there is no such record.
    """

    earliest: int
    end: int
    last_read_ms: int | None = None


@dataclass(frozen=True)
class TopicPosition:
    """How far a query has read a topic.

    Attributes:
        offsets: partition to the offset that it reads next.
        planned: partition to the end offset of the last planned batch, which may be unfinished.
        read_ms: when the last finished batch was planned, epoch milliseconds; None if none is finished.
    """

    offsets: Mapping[int, int]
    planned: Mapping[int, int]
    read_ms: int | None

    def is_of_earlier_topic(self, partitions: Mapping[int, PartitionOffsets]) -> bool:
        """Return whether the topic was created again since it was read.

        Args:
            partitions: what the partitions have now.
        """
        return any(
            self._is_younger(state, max(offset, self.planned.get(number, 0)))
            for number, offset in self.offsets.items()
            if (state := partitions.get(number)) is not None
        )

    def _is_younger(self, state: PartitionOffsets, position: int) -> bool:
        is_shorter = state.end < position
        if state.last_read_ms is None or self.read_ms is None:
            return is_shorter
        # A leader that was behind when it was elected leaves out the newest records: those before them were read.
        # Otherwise clocks of the record's writer and of the reader may differ.
        skew_ms = 0 if is_shorter else TICK_OFF_S * 1000
        return state.last_read_ms > self.read_ms + skew_ms

    def lost(self, partitions: Mapping[int, PartitionOffsets]) -> dict[int, tuple[int, int]]:
        """Return the offsets that expired unread, by partition: first one, and end (exclusive).

        Args:
            partitions: what the partitions have now. One that the query has not seen yet is read from offset 0.
        """
        spans = {number: (self.offsets.get(number, 0), state.earliest) for number, state in partitions.items()}
        return _not_empty(spans)

    def lost_of_planned(self, partitions: Mapping[int, PartitionOffsets]) -> dict[int, tuple[int, int]]:
        """Return the offsets of the last planned batch that expired unread, by partition.

        Args:
            partitions: what the partitions have now.
        """
        lost = self.lost(partitions)
        return _not_empty({p: (first, min(end, self.planned.get(p, 0))) for p, (first, end) in lost.items()})

    def starts(self, partitions: Mapping[int, PartitionOffsets]) -> dict[int, int]:
        """Return the offset of each partition's next record that is there.

        Args:
            partitions: what the partitions have now.
        """
        return {number: max(self.offsets.get(number, 0), state.earliest) for number, state in partitions.items()}


def _not_empty(spans: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    return {number: span for number, span in sorted(spans.items()) if span[0] < span[1]}


def describe_lost(lost: Mapping[int, tuple[int, int]]) -> str:
    """Return a text of lost offsets: ``offsets 5 to 9 of partition 0 (5)``."""
    spans = (f"offsets {first} to {end - 1} of partition {p} ({end - first})" for p, (first, end) in lost.items())
    return ", ".join(spans)
