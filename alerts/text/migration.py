"""Migrations as text: partitions, offsets, and rates in offsets."""

from __future__ import annotations

from collections.abc import Sequence


def offsets_text(offsets: int | None) -> str:
    """Return a number of offsets such as ``1,200 offsets``; ``an unknown number of offsets`` for None."""
    if offsets is None:
        return "an unknown number of offsets"
    return f"{offsets:,} offset{'' if offsets == 1 else 's'}"


def offset_rate_text(offsets_per_s: float | None) -> str:
    """Return a rate such as ``2,000.0 offsets/s``; ``an unknown rate`` for None."""
    return "an unknown rate" if offsets_per_s is None else f"{offsets_per_s:,.1f} offsets/s"


def share_text(affected: Sequence[object], every: Sequence[object]) -> str:
    """Return how many of the partitions of a migration are affected, such as ``3 of 20 partitions``."""
    return f"{len(affected)} of {len(every)} partition{'' if len(every) == 1 else 's'}"
