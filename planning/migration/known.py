"""Offsets and amounts as they are given, or None where they are not known."""

from __future__ import annotations

import math
from fractions import Fraction


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
    return Fraction(amount) if amount == int(amount) else Fraction(f"{amount:.15g}")


def known_float(amount: float | None) -> float | None:
    """Return ``known_amount`` as a float, which takes a tenth of the time: rates of thousands of logs are only shown.

    Raises:
        OverflowError: a whole number is too large for a float.
    """
    if amount is None or not math.isfinite(amount) or amount < 0:
        return None
    return float(amount) if amount == int(amount) else float(f"{amount:.15g}")
