"""One partition of a migration: which cluster has which client offset, and where each produced record belongs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from headroom.planning.migration.known import known_offset
from headroom.schemas.migrations import MigrationStatus

_STATUSES = {status.value: status for status in MigrationStatus}


@dataclass(frozen=True)
class Split:
    """Where a partition changes from the origin to the target.

    Attributes:
        end_offset: agreed end offset on the origin, exclusive; None if unknown.
        target_base_offset: offset on the target of the first record of the migration.
        status: status, also as plain text. Raises ValueError for others.
        ignore_origin: whether readers give up what they have not read on the origin.
        origin_up: whether the origin can be read.
        origin_end: end of an origin's log that lost records below the end offset, exclusive; None if it lost none.
        origin_closed: whether nothing more is written to the origin, also below the end offset.
        reopened_end: end offset with which the target was in use, while a nearer one is being agreed; None otherwise.
    """

    end_offset: int | None
    target_base_offset: int = 0
    status: str = MigrationStatus.MIGRATING
    ignore_origin: bool = False
    origin_up: bool = True
    origin_end: int | None = None
    origin_closed: bool = False
    reopened_end: int | None = None

    def __post_init__(self) -> None:
        # The lookup that an enum does by itself takes five times as long.
        object.__setattr__(self, "status", _STATUSES.get(self.status) or MigrationStatus(self.status))

    @property
    def is_in_use(self) -> bool:
        """Whether the target is in use, so that the end offset is fixed."""
        return self.status != MigrationStatus.PLANNED

    @property
    def is_origin_over(self) -> bool:
        """Whether the origin has nothing left for readers: it is aged or ignored."""
        return self.ignore_origin or self.status == MigrationStatus.AGED

    @property
    def origin_limit(self) -> int | None:
        """Offset from which on nothing is read on the origin; None if the end offset is unknown."""
        end, lost_from = known_offset(self.end_offset), known_offset(self.origin_end)
        return end if end is None or lost_from is None else min(end, lost_from)

    def kept_at(self, client_offset: int) -> Split:
        """Return the split that a reader keeps to at a client offset.

        Whoever has passed an end offset for which a nearer one is to be agreed keeps to it: the log has got so far, so
        that it holds in the end.

        Args:
            client_offset: where it is.
        """
        end = self.reopened_end
        if end is None or client_offset < end:
            return self
        return replace(self, end_offset=end, status=MigrationStatus.MIGRATING, reopened_end=None)

    @property
    def shift(self) -> int | None:
        """Client offset of a record on the target minus its offset there; None if the end or the base is unknown."""
        end, base = known_offset(self.end_offset), known_offset(self.target_base_offset)
        return None if end is None or base is None else end - base


@dataclass(frozen=True)
class Place:
    """Where a client offset is read.

    Attributes:
        side: cluster.
        offset: offset there.
        skipped: offsets that a reader misses by continuing there.
    """

    side: Literal["origin", "target"]
    offset: int
    skipped: int = 0


@dataclass(frozen=True)
class Routed:
    """Produced records by their route. Each is named by its index among the origin's answers, in their order.

    Attributes:
        kept: records that are read on the origin, and are acknowledged there.
        moved: records that are sent to the target, in this order, and are not acknowledged on the origin.
        held: records that go nowhere yet: their fate is unknown, or cannot be decided now.
    """

    kept: tuple[int, ...]
    moved: tuple[int, ...]
    held: tuple[int, ...]


def client_offset(split: Split, target_offset: int | None) -> int | None:
    """Return the client offset of a record on the target: clients count on from the origin's end offset.

    Args:
        split: partition.
        target_offset: offset on the target.

    Returns:
        Client offset; None if an offset is unknown, or the record is from before the migration.
    """
    offset = known_offset(target_offset)
    shift = None if offset is None else split.shift
    return None if offset is None or shift is None or offset < split.target_base_offset else offset + shift


def place(split: Split, client_offset: int | None) -> Place | None:
    """Return where a client offset is read.

    Below the end offset, readers continue at the target's first record if the origin will never give them another one:
    it is aged or ignored, or its log has lost the rest.

    Args:
        split: partition.
        client_offset: offset that a client asks for.

    Returns:
        Place; None if nothing may be read now, because the end offset is unknown, the origin is down, or the target is
        not in use yet.
    """
    end, offset = known_offset(split.end_offset), known_offset(client_offset)
    if end is None or offset is None:
        return None
    origin_end = known_offset(split.origin_end)
    lost = origin_end is not None and offset >= origin_end
    if offset < end and not (lost or split.is_origin_over):
        return Place("origin", offset) if split.origin_up else None
    base = known_offset(split.target_base_offset)
    if base is None or not split.is_in_use:
        return None
    return Place("target", base + max(0, offset - end), max(0, end - offset))


def route(split: Split, offsets: Iterable[int | None]) -> Routed:
    """Return where produced records belong: where ``place`` reads their offsets.

    A record of unknown fate is not moved, because it may be on the origin.

    Args:
        split: partition.
        offsets: the origin's answer to each record, in the order in which they were produced: its offset; None or -1 if
            its fate is unknown.
    """
    places = [place(split, offset) for offset in offsets]
    sides = [at and at.side for at in places]
    kept, moved, held = (
        tuple(index for index, side in enumerate(sides) if side == wanted) for wanted in ("origin", "target", None)
    )
    return Routed(kept, moved, held)
