"""Offsets and amounts as they are given, or None where they are not known."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache


def known_offset(offset: int | None) -> int | None:
    """Return an offset; None if it is unknown or negative, as Kafka's -1 is."""
    return None if offset is None or offset < 0 else offset


def known_amount(amount: float | None) -> Fraction | None:
    """Return an amount as an exact number; None if it is unknown, NaN, infinite or negative.

    A float counts as its first 15 decimal digits, which are all that it holds without noise: otherwise 1.1 per second
    for 10 s, or 0.1 x 3 per second, would be rounded up to one offset too many. Whole numbers are exact in all digits.
    """
    if amount is None or not math.isfinite(amount) or amount < 0:
        return None
    return _exact(amount)


# The same times and rates are asked for again for each group of a partition, and reading digits takes microseconds.
@lru_cache(maxsize=4096)
def _exact(amount: float) -> Fraction:
    return Fraction(amount) if amount == int(amount) else Fraction(f"{amount:.15g}")
