"""Mean rate between two readings of a counter."""

from __future__ import annotations

from headroom.planning.balance.broker_reading import MOST_MS, ByteCounter, mean_rate


def test_the_rate_of_a_minute_is_the_growth_of_the_counter() -> None:
    before, now = ByteCounter(1_000, 500), ByteCounter(61_000, 60_500)
    assert mean_rate(before, now, 7.0) == 1000.0
    # The window counts after a restart, after a gap, and without a counter.
    assert mean_rate(now, ByteCounter(121_000, 10), 7.0) == 7.0
    assert mean_rate(before, ByteCounter(1_000 + MOST_MS + 1, 60_500), 7.0) == 7.0
    assert mean_rate(None, now, 7.0) == mean_rate(before, None, 7.0) == mean_rate(now, before, 7.0) == 7.0
    assert mean_rate(None, now, None) is None
