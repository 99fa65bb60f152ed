"""The wall clock of this machine, in the unit of ticks and events."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Return the time now, epoch milliseconds."""
    return time.time_ns() // 1_000_000
