"""What the leaders of partitions had acknowledged to a router, as much of it as fits into its report."""

from __future__ import annotations

import json
from collections.abc import Iterable

from headroom.schemas.migrations import KEPT_EPOCHS, AcknowledgedEnd

# Topic, partition, and ids of the origin: a recreated topic has other epochs.
_Log = tuple[str, int, str | None, str | None]


class LeaderNotes:
    """Keeps the newest note on each leader of a partition. Not thread-safe.

    Of a partition the newest leaders count. Notes on earlier leaders stay: what one has lost no later one brings.

    Attributes:
        size_bytes: length of all notes in the record.
    """

    def __init__(self) -> None:
        # In the order in which they came, each with its length.
        self._notes: dict[tuple[_Log, int], tuple[AcknowledgedEnd, int]] = {}
        self._epochs: dict[_Log, set[int]] = {}
        self.size_bytes = 0

    def ends(self) -> tuple[AcknowledgedEnd, ...]:
        """Return all notes."""
        return tuple(end for end, _ in self._notes.values())

    def add(self, end: AcknowledgedEnd) -> None:
        """Add a note, or replace the one on the same leader.

        Args:
            end: the note.
        """
        log = end.topic, end.partition, end.origin_cluster_id, end.origin_topic_id
        epochs = self._epochs.setdefault(log, set())
        epochs.add(end.leader_epoch)
        before = self._notes.get((log, end.leader_epoch))
        size_bytes = len(json.dumps(end.values(), separators=(",", ":"))) + 1
        self._notes[log, end.leader_epoch] = end, size_bytes
        self.size_bytes += size_bytes - (0 if before is None else before[1])
        if len(epochs) > KEPT_EPOCHS:
            self._drop(log, min(epochs))

    def inherit(self, ends: Iterable[AcknowledgedEnd]) -> None:
        """Add older notes, which replace none.

        Args:
            ends: notes of an earlier process, in their order.
        """
        own, self._notes, self._epochs, self.size_bytes = self.ends(), {}, {}, 0
        for end in (*ends, *own):
            self.add(end)

    def fit(self, most_bytes: int) -> bool:
        """Drop the oldest notes on earlier leaders, and then the oldest others, until the rest fits.

        Args:
            most_bytes: longest length of all notes in the record.

        Returns:
            Whether any was dropped.
        """
        if self.size_bytes <= most_bytes:
            return False
        newest = {log: max(epochs) for log, epochs in self._epochs.items()}
        for log, epoch in sorted(self._notes, key=lambda key: key[1] == newest[key[0]]):
            if self.size_bytes <= most_bytes:
                break
            self._drop(log, epoch)
        return True

    def _drop(self, log: _Log, epoch: int) -> None:
        _, size_bytes = self._notes.pop((log, epoch))
        self.size_bytes -= size_bytes
        epochs = self._epochs[log]
        epochs.discard(epoch)
        if not epochs:
            del self._epochs[log]
