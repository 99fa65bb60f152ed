"""Model of the offset syncs that MirrorMaker 2 keeps in memory, and of its translation of offsets.

Source: Kafka 4.0, ``org.apache.kafka.connect.mirror.OffsetSyncStore``, of one partition, once its
syncs topic was read to the end.
"""

from __future__ import annotations

KEPT = 64

Sync = tuple[int, int]


def _long(number: int) -> int:
    """Return a number as Java's long, which overflows."""
    return (number + 2**63) % 2**64 - 2**63


def _recent(newer: Sync, older: Sync, i: int, j: int) -> bool:
    """Return whether a sync is near enough to the one before it to be kept at index j (invariant B)."""
    bound = _long(older[0] + _long(1 << j) - _long(1 << i))
    return newer is older or bound < 0 or newer[0] <= bound


def _apart(newer: Sync, older: Sync, i: int) -> bool:
    """Return whether a sync is far enough from the one at index i to be kept after it (invariant C)."""
    bound = _long(older[0] + (1 << max(i - 2, 0)))
    return newer is older or (bound >= 0 and newer[0] >= bound)


class KafkaSyncStore:
    """Syncs of one partition, the latest first; an index may repeat the sync before it."""

    def __init__(self) -> None:
        self.kept: list[Sync] = []

    def add(self, origin: int, target: int) -> None:
        # A list keeps one object per sync: Kafka compares them by identity.
        sync = (origin, target)
        if not self.kept or origin < self.kept[0][0]:
            self.kept = [sync] * KEPT
            return
        old, self.kept = self.kept, [sync, *self.kept[1:]]
        self._restore(old, sync)

    def _restore(self, old: list[Sync], replacement: Sync) -> None:
        """Restore the invariants after a new sync at index 0: an old one moves to a later index, or goes."""
        kept, taken = self.kept, 0
        for i in range(1, KEPT):
            while True:
                candidate = old[taken]
                apart = _apart(kept[i - 1], candidate, i - 1)
                apart_from_next = i + 1 >= KEPT or _apart(candidate, kept[i + 1], i)
                promoted = _recent(kept[i - 1], candidate, i - 1, i) and apart and apart_from_next
                skipped = not apart or (taken + 1 < KEPT and candidate is old[taken + 1])
                if promoted:
                    replacement = candidate
                taken += promoted or skipped
                if taken >= i or not skipped:
                    break
            if _recent(kept[i - 1], kept[i], i - 1, i):
                return
            kept[i] = replacement

    def translate(self, offset: int) -> int | None:
        """Return Kafka's answer: -1 if all syncs are after the offset, None if there is none."""
        if not self.kept:
            return None
        origin, target = next((sync for sync in self.kept if sync[0] <= offset), self.kept[-1])
        return -1 if origin > offset else target + (origin < offset)
