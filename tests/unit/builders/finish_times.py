"""The expected end of copies, for tests that compare times."""

from __future__ import annotations

from collections.abc import Sequence

from headroom.planning.finish.finish_time import Earlier, finish
from headroom.planning.quotas.load import ThrottleLoad


def finish_s(loads: Sequence[ThrottleLoad], throttle_bytes_per_s: float, earlier: Earlier = ()) -> float | None:
    """Return the middle of ``finish`` in seconds; None if never, or unknown."""
    found = finish(loads, throttle_bytes_per_s, earlier)
    return None if found is None else found.middle_s
