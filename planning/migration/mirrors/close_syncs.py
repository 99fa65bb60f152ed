"""Offset syncs that are kept close together, where consumer groups have yet to pass.

A reader continues at the last kept sync before it, and reads the records since then again. With a sync every 30 s these
are the records of 30 s. So all syncs are held for a while. Those that all groups have passed by then are dropped. Of
the others so many are kept that no two are more than ``CLOSE_OFFSETS`` apart, as far as MirrorMaker wrote them.

Nothing is linked to these syncs: the others make a chain without them, so each may be lost, or deleted, by itself.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from headroom.planning.migration.mirrors.sync_record import KeptSync, SyncRecord, is_apart

# Greatest distance between two kept syncs, in offsets of the origin. MirrorMaker writes one after 100 records.
CLOSE_OFFSETS = 200
# A group that is farther behind a sync does not count: it may have been given up long ago. So one that has stopped
# costs AHEAD_OFFSETS / CLOSE_OFFSETS syncs, or twice as many where no other one can be left out.
AHEAD_OFFSETS = 2_000_000
# Syncs of a partition that are kept between two starts of the collector, for groups that follow at a distance: those of
# 20,000,000 offsets.
MOST_KEPT = 100_000

# Returns the committed offsets of the groups at a partition on the origin, the least first; None if unknown.
PlacesOfGroups = Callable[[], Sequence[int] | None]


class _Held(NamedTuple):
    """A sync that is held.

    Attributes:
        record: the sync.
        leader_epoch: epoch of the topic's leader that it was read from; None if unknown.
        is_kept: whether it is kept anyway, as one of those that are 30 s apart.
    """

    record: SyncRecord
    leader_epoch: int | None
    is_kept: bool


class CloseSyncs:
    """Syncs of one partition since the last one that went back, or that may have been missed."""

    def __init__(self) -> None:
        self._held: deque[_Held] = deque()
        self._waiting: list[KeptSync] = []
        self._confirmed = 0
        # Offset on the origin of the last kept sync before those that are held; None without one.
        self._origin: int | None = None
        # Offset in the topic of the last one that is kept anyway.
        self._after: int | None = None

    def clear(self) -> None:
        """Drop all syncs: those before a break do not count."""
        self._held.clear()
        self._waiting = []
        self._origin = self._after = None

    def hold(self, record: SyncRecord, leader_epoch: int | None) -> None:
        """Add the newest sync."""
        self._held.append(_Held(record, leader_epoch, False))

    def limit(self, most_held: int) -> None:
        """Drop the oldest syncs that are held beyond a number. They were not decided: their groups stayed unknown."""
        while len(self._held) > most_held:
            self._held.popleft()

    def keep_newest_anyway(self) -> None:
        """Note that the newest sync is kept, with any groups."""
        self._held[-1] = self._held[-1]._replace(is_kept=True)

    def release(self, offsets: Collection[int]) -> None:
        """Note that of the syncs with these offsets in the topic only those are kept that a group needs."""
        self._held = deque(
            held._replace(is_kept=False) if held.record.offset in offsets else held for held in self._held
        )

    def waiting(self, most: int, most_held: int, now_ms: int, places: PlacesOfGroups) -> list[KeptSync]:
        """Return the syncs that are to be kept and are not confirmed yet, the oldest ones first.

        Args:
            most: longest result.
            most_held: most syncs that are held: beyond that the oldest ones are decided earlier. As many may wait, of
                which every other one is dropped then.
            now_ms: time now, epoch milliseconds.
            places: asked only if there is something to decide. While the groups are unknown nothing is.
        """
        own: Sequence[int] | None = None
        # Where the newest one is needed follows from the next.
        while len(self._held) > 1 and (
            len(self._held) > most_held or is_apart(self._held[0].record.written_ms, now_ms)
        ):
            record, leader_epoch, is_kept = self._held[0]
            next_origin = self._held[1].record.origin
            if is_kept:
                self._origin, self._after = record.origin, record.offset
            elif leader_epoch is not None and self._is_apart(next_origin):
                own = places() if own is None else own
                if own is None:
                    break
                if self._is_needed(record.origin, next_origin, own):
                    self._waiting.append(KeptSync(record, leader_epoch, self._after))
                    self._origin = record.origin
            self._held.popleft()
        while len(self._waiting) > most_held:
            self._waiting = self._waiting[::2]
        return self._waiting[:most]

    def confirm(self, offsets: Collection[int]) -> None:
        """Forget those of the syncs that wait with these offsets in the topic: they are kept now."""
        left = [sync for sync in self._waiting if sync.record.offset not in offsets]
        self._confirmed += len(self._waiting) - len(left)
        self._waiting = left

    def _is_needed(self, origin: int, next_origin: int, places: Sequence[int]) -> bool:
        """Return whether a group may stop between a sync and the next one."""
        nearest = bisect_left(places, origin - AHEAD_OFFSETS)
        is_to_pass = nearest < len(places) and places[nearest] < next_origin
        return is_to_pass and self._confirmed + len(self._waiting) < MOST_KEPT

    def _is_apart(self, next_origin: int) -> bool:
        """Return whether the next sync is too far from the last kept one to leave out those between."""
        return self._origin is None or next_origin - self._origin > CLOSE_OFFSETS
