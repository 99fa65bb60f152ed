"""How long a copy takes under a throttle: the bursts worked out by hand, and laws."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.duration import COMPLETE_S, QUOTA_CYCLE_S, QUOTA_YIELD_RATIO, finish_s, throttle_for

MB = 1_000_000.0
_amounts = st.floats(0, 1e9)
_used = st.one_of(st.none(), _amounts)


# A window of 10.4 s in a cycle of 11.6 s that lets 0.98 of the throttle through; 2 s to apply; 1 s to complete.
@pytest.mark.parametrize(
    ("remaining_mb", "required_mb", "throttle_mb", "used_mb", "seconds"),
    [
        # No room at once: each cycle gains (0.98 x 6 - 4) x 11.6 = 21.808 MB. 21.8 MB need one, 21.9 MB two.
        (21.8, 4, 6, None, 1 * 11.6 + 1),
        (21.9, 4, 6, None, 2 * 11.6 + 1),
        # 10 cycles' gains: the bursts have spread, and the end is half a cycle later in the mean.
        (218.08, 4, 6, None, 10.5 * 11.6 + 1),
        # 3 of 9 MB/s were in use: in the 2 s to apply it (4 - 3) x 2 = 2 MB come; then 6 x 10.4 = 62.4 MB go at once.
        (60.0, 4, 9, 3, 1),
        # 62.6 + 2 leaves 2.2 MB over: one cycle more.
        (62.6, 4, 9, 3, 1 * 11.6 + 1),
        # Nothing is left to copy, whatever the throttle.
        (0, 4, 3, None, 0),
        # At what is required nothing is over, nor where 0.98 of the throttle is not; below it the lag grows.
        (1, 4, 4, None, None),
        (1, 4, 4.08, None, None),
        (1, 4, 3.9, 0, None),
    ],
)
def test_a_copy_ends_in_a_burst(
    remaining_mb: float, required_mb: float, throttle_mb: float, used_mb: float | None, seconds: float | None
) -> None:
    used = None if used_mb is None else used_mb * MB
    found = finish_s(remaining_mb * MB, required_mb * MB, throttle_mb * MB, used)
    assert found == (None if seconds is None else pytest.approx(seconds))


@given(st.floats(1, 1e12), _amounts, _amounts, _used)
def test_it_never_ends_just_where_a_cycle_gains_nothing(
    remaining: float, required: float, throttle: float, used: float | None
) -> None:
    found = finish_s(remaining, required, throttle, used)
    assert (found is None) == (throttle * QUOTA_YIELD_RATIO <= required)
    assert found is None or found >= COMPLETE_S


@given(st.floats(1, 1e12), _amounts, _amounts, st.floats(1, 1e9), _used)
def test_a_higher_throttle_never_takes_longer(
    remaining: float, required: float, throttle: float, more: float, used: float | None
) -> None:
    slow, fast = (finish_s(remaining, required, rate, used) for rate in (throttle, throttle + more))
    assert slow is None or (fast is not None and fast <= slow + QUOTA_CYCLE_S * 1e-9)


@given(st.floats(1, 1e9), st.floats(1, 1e9), _used, st.floats(13, 1e5))
def test_the_throttle_for_a_deadline_is_the_least_that_keeps_it(
    remaining: float, required: float, used: float | None, within: float
) -> None:
    throttle = throttle_for(remaining, required, used, within)
    kept = finish_s(remaining, required, throttle * (1 + 1e-6), used)
    assert kept is not None
    assert kept <= within * (1 + 1e-3)
    if throttle > max(required / QUOTA_YIELD_RATIO, used or 0.0) * 1.001:
        missed = finish_s(remaining, required, throttle * 0.999, used)
        assert missed is None or missed > within * 0.999


def test_what_nothing_ends_in_time_asks_for_an_endless_throttle() -> None:
    assert throttle_for(1, 1, 0.5, 0.5) == math.inf
    # Without room for a first burst the first gain is there after a cycle.
    assert throttle_for(1, 1, None, 11.0) == math.inf


@pytest.mark.parametrize("within", [0.0, -1.0, float("nan")])
def test_a_deadline_must_lie_ahead(within: float) -> None:
    with pytest.raises(ValueError, match="within_s must be positive"):
        throttle_for(1, 1, None, within)
