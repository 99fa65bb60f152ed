"""A mirror of one partition as MirrorMaker 2 works, which knows where on the target every record really is."""

from __future__ import annotations

from hypothesis import strategies as st

Sync = tuple[int, int]
Step = tuple[str, int]


class Mirror:
    """One partition of the origin, its copy, and the syncs that MirrorMaker writes for it.

    Source: Kafka 4.0, ``org.apache.kafka.connect.mirror.OffsetSyncWriter``, ``PartitionState.update``.

    Attributes:
        syncs: offsets on the origin and on the target, in topic order.
        origin: offset of the next record of the origin that is mirrored.
        end: end of the target's log.
        copies: offset on the origin by offset on the target, of records that are on both now.
    """

    def __init__(self, max_lag: int) -> None:
        self.syncs: list[Sync] = []
        self.origin = 0
        self.end = 0
        self.copies: dict[int, int] = {}
        self._max_lag = max_lag
        self._unsent: Sync | None = None
        self._synced: int | None = None
        self._before: Sync = (-1, -1)

    def copy(self, records: int) -> None:
        for _ in range(records):
            copied = (self.origin, self.end)
            self.copies[self.end] = self.origin
            self._unsent = copied
            if (
                self._synced is None
                or copied[1] - (self._synced + 1) >= self._max_lag
                or copied[0] != self._before[0] + 1
                or copied[1] < self._before[1]
            ):
                self._synced = copied[1]
                self.flush(1)
            self._before = copied
            self.origin += 1
            self.end += 1

    def flush(self, _: int) -> None:
        """Write the sync of the last record, as every minute."""
        if self._unsent is not None:
            self.syncs.append(self._unsent)
        self._unsent = None

    def leave_gap_on_target(self, offsets: int) -> None:
        """Leave offsets without a record: markers of transactions."""
        self.end += offsets

    def leave_gap_on_origin(self, offsets: int) -> None:
        """Leave offsets without a record: markers of transactions, and compacted records, with their copies."""
        gap = range(self.origin, self.origin + offsets)
        self.copies = {target: origin for target, origin in self.copies.items() if origin not in gap}
        self.origin += offsets

    def restart(self, back: int) -> None:
        """Start again at a committed offset, and mirror again what followed it."""
        self.origin = max(0, self.origin - back)
        self._synced, self._unsent = None, None

    def recreate_origin(self, _: int) -> None:
        """Delete the origin's topic and create it: its offsets are of other records."""
        self.copies.clear()
        self.origin = 0

    def lose_target(self, offsets: int) -> None:
        """Lose the end of the target's log, where the next record has a sync that shows it, and copy that record.

        A record that was copied twice counts as lost with its later copy.
        """
        end = max(0, self.end - offsets)
        if end >= self._before[1] or end in {target for _, target in self.syncs}:
            return
        lost = {origin for target, origin in self.copies.items() if target >= end}
        self.copies = {target: origin for target, origin in self.copies.items() if origin not in lost}
        self.end = end
        self.copy(1)

    def compact_target(self, every: int) -> None:
        """Remove some records of the target, with all their copies; the others keep their offsets."""
        self.copies = {target: origin for target, origin in self.copies.items() if origin % (every + 1)}


KEEPS_TARGET = ("copy", "copy", "flush", "leave_gap_on_target", "leave_gap_on_origin", "restart", "recreate_origin")
ANY = (*KEEPS_TARGET, "lose_target", "compact_target")


@st.composite
def mirrors(draw: st.DrawFn, kinds: tuple[str, ...] = ANY) -> Mirror:
    """Return a mirror after some steps."""
    mirror = Mirror(max_lag=draw(st.sampled_from([0, 1, 5, 20])))
    for kind, amount in draw(st.lists(st.tuples(st.sampled_from(kinds), st.integers(1, 12)), max_size=20)):
        getattr(mirror, kind)(amount)
    return mirror
