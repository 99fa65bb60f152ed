"""How far a consumer has read one partition in a migration, and what of its records counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kafka.consumer.fetcher import ConsumerRecord

from headroom.planning.migration import Place, Split, place


@dataclass
class RoutedPartition:
    """One partition.

    Attributes:
        split: split of the partition; None without a migration.
        next_offset: client offset of the next record.
        cluster: "origin" or "target"; None while nothing may be read.
        skipped: offsets that were missed by continuing on the target.
        is_passed: whether the end offset was committed on the origin.
        on_origin: offset that is committed on the origin; None if none is known to be.
        kept_s: when that was last committed, or looked at, monotonic seconds.
    """

    split: Split | None
    next_offset: int
    cluster: str | None = None
    skipped: int = 0
    is_passed: bool = False
    on_origin: int | None = None
    kept_s: float = 0.0

    def place(self, offset: int) -> Place | None:
        """Return where a client offset is read; None: nowhere now."""
        return Place("origin", offset) if self.split is None else place(self.split, offset)

    def end_in_use(self) -> int | None:
        """Return the end offset once the target is in use, and it is fixed; None before."""
        return self.split.end_offset if self.split is not None and self.split.is_in_use else None

    def origin_limit(self) -> int | None:
        """Return the client offset up to which the origin is read, exclusive; None: without a limit."""
        return None if self.split is None else self.split.origin_limit

    def of_origin(self, records: list[Any]) -> list[Any]:
        """Return those of the origin's records that count, and note that they were read."""
        limit = self.origin_limit()
        if limit is not None and records[-1].offset >= limit:
            records = [record for record in records if record.offset < limit]
        if records:
            self.next_offset = records[-1].offset + 1
        return records

    def of_target(self, records: list[Any]) -> list[Any]:
        """Return the target's records with client offsets, and note that they were read."""
        shift = self._shift()
        if shift:
            # Four times as fast as a named tuple's ``_replace``.
            new = tuple.__new__
            records = [
                new(ConsumerRecord, (t, p, epoch, offset + shift, ms, kind, key, value, headers, crc, ks, vs, hs))
                for t, p, epoch, offset, ms, kind, key, value, headers, crc, ks, vs, hs in records
            ]
        self.next_offset = records[-1].offset + 1
        return records

    def client_position(self, target_offset: int) -> int:
        """Return the client offset of an offset on the target."""
        return target_offset + self._shift()

    def _shift(self) -> int:
        return (None if self.split is None else self.split.shift) or 0
