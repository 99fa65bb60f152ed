"""Text of the time in which a recommended throttle finishes a move."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headroom.schemas.text.amounts import duration_range_text, duration_text


def finish_text(recommendation: Mapping[str, Any]) -> str | None:
    """Return the time to finish under a recommendation, such as ``50 to 60 s``; None if unknown or never.

    Args:
        recommendation: ``finish_s``, and ``finish_low_s`` and ``finish_high_s``, which older versions do not have.
    """
    middle_s, low_s, high_s = (recommendation.get(f"finish_{name}s") for name in ("", "low_", "high_"))
    if middle_s is None:
        return None
    return f"about {duration_text(middle_s)}" if low_s is None or high_s is None else duration_range_text(low_s, high_s)
