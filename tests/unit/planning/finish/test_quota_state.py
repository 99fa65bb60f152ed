"""Samples of a quota, estimated from ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.planning.finish.quota_state import Guess, at_quantile, guesses
from headroom.planning.quotas.load import ThrottleLoad
from headroom.planning.quotas.samples import QuotaSamples
from headroom.schemas.keys import Role

MB = 1_000_000.0
PHASES, COPY_TIMES = (0.1, 0.3, 0.5, 0.7, 0.9), (0.25, 0.75)


def load(
    used_mb: float | None, remaining_mb: float = 50, role: Role = Role.LEADER, in_sync_mb: float = 2
) -> ThrottleLoad:
    """Return the load of a broker with one new replica, to which 2 MB/s are written."""
    return ThrottleLoad(
        broker=1,
        role=role,
        throttle_bytes_per_s=3 * MB,
        in_sync_bytes_per_s=in_sync_mb * MB,
        required_bytes_per_s=(in_sync_mb + 2) * MB,
        limited_replicas=1,
        free_replicas=0,
        remaining_bytes=round(remaining_mb * MB),
        used_bytes_per_s=None if used_mb is None else used_mb * MB,
    )


def before(now: ThrottleLoad, used_mb: float | None = 0.0) -> ThrottleLoad:
    """Return the load of the same broker before the move."""
    used = None if used_mb is None else used_mb * MB
    return replace(
        now,
        in_sync_bytes_per_s=0.0,
        required_bytes_per_s=0.0,
        limited_replicas=0,
        remaining_bytes=0,
        used_bytes_per_s=used,
    )


def begun(now: ThrottleLoad, means_mb: Sequence[float], idle_s: int = 8) -> list[tuple[float, ThrottleLoad]]:
    """Return one tick per second, youngest first: with these means, then before the move; without copied bytes."""
    moving = [
        (
            float(age),
            replace(now, used_bytes_per_s=mean * MB, remaining_bytes=round((now.remaining_bytes or 0) - 2 * age * MB)),
        )
        for age, mean in enumerate(means_mb, 1)
    ]
    return moving + [(len(moving) + 1.0 + age, before(now)) for age in range(idle_s)]


def likeliest(now: ThrottleLoad, earlier: Sequence[tuple[float, ThrottleLoad]]) -> QuotaSamples:
    return guesses(now, earlier, PHASES, COPY_TIMES)[0].window


def left_bytes(window: QuotaSamples, after_s: float) -> float:
    """Return the amount that still counts some seconds later, in MB."""
    window.elapsed_s(after_s)
    return round(window.total_bytes / MB, 1)


def test_traffic_at_the_start_of_the_move_expires_with_its_sample() -> None:
    # 3 MB/s over about 11.5 s: 34.5 MB, of which in-sync followers fetched 2 x 3 in the last three seconds.
    window = likeliest(load(3), begun(load(3), (2.8, 2.6)))
    assert window.total_bytes == pytest.approx(34.5 * MB, rel=0.05)
    assert left_bytes(window, 7.0) == pytest.approx(34.5, rel=0.05)
    # The move started 2 to 3 s ago; its sample expires 11 s after that.
    assert left_bytes(window, 9.5) <= 6.5


def test_a_quota_that_had_no_gauge_before_counts_since_then_only() -> None:
    now = load(3)
    earlier = [(1.0, load(2.5, 48)), (2.0, load(2.0, 46)), (3.0, before(now, None)), (4.0, before(now, None))]
    window = likeliest(now, earlier)
    # Between two and three seconds at 3 MB/s.
    assert 6 * MB <= window.total_bytes <= 9 * MB
    assert 2.0 <= window.elapsed_s(0.0) <= 3.0


def test_a_fresh_quota_without_any_mean_has_no_room() -> None:
    window = likeliest(load(None), [])
    assert window.total_bytes / window.elapsed_s(0.0) == pytest.approx(3 * MB)


def test_traffic_between_two_ticks_is_counted_between_them() -> None:
    # 2 MB/s were written for 5 s and the lag fell by 10 MB: 20 MB were copied, and in-sync followers fetched 10 MB.
    window = likeliest(load(4, 40), [(5.0, load(2, 50)), (10.0, load(2, 40)), (15.0, load(2, 30))])
    # The earliest copy was 5 s ago: after 6 s everything since then counts.
    assert window.total_bytes == pytest.approx(44 * MB, rel=0.06)
    # Also the in-sync traffic in the sample of that time.
    assert left_bytes(window, 5.9) == pytest.approx(32, rel=0.08)
    assert left_bytes(window, 13.0) == 0.0


def test_unknown_earlier_rates_are_the_current_ones() -> None:
    now = load(3)
    unknown = {"in_sync_bytes_per_s": None, "required_bytes_per_s": None}
    known = begun(now, (2.8, 2.6))
    first = [(age, replace(d, **unknown) if d.limited_replicas else d) for age, d in known]
    assert likeliest(now, first).total_bytes == pytest.approx(likeliest(now, known).total_bytes)
    assert left_bytes(likeliest(now, first), 9.5) == left_bytes(likeliest(now, known), 9.5)


def test_without_earlier_ticks_the_traffic_was_steady() -> None:
    window = likeliest(load(2.4), [])
    assert left_bytes(window, 0.0) == pytest.approx(2.4 * 11.5, rel=0.05)
    # In 6 s, traffic older than 5 or 6 s expires.
    assert left_bytes(window, 6.0) == pytest.approx(2.4 * 5.5, rel=0.1)


def test_means_show_since_when_an_idle_destination_counts() -> None:
    # One burst of 12 MB and no traffic after it, because the mean falls: 12 MB in 4, 5, 6, 7 and now 8 s.
    now = load(1.5, 36, Role.FOLLOWER, in_sync_mb=0)
    window = likeliest(now, begun(now, (12 / 7, 12 / 6, 12 / 5, 12 / 4)))
    assert window.elapsed_s(0.0) == pytest.approx(8.0, abs=0.3)
    assert window.total_bytes == pytest.approx(12 * MB, rel=0.05)
    # The same mean, but constant: the window is full, and idle samples are reset one after the other.
    window = likeliest(now, begun(now, (1.5, 1.5, 1.5, 1.5)))
    assert window.elapsed_s(0.0) == pytest.approx(10.5, abs=0.6)


def test_means_show_how_much_of_a_leaders_window_has_passed() -> None:
    # A leader's responses count always, so its samples follow each other: 2 MB/s more in each second raise the mean by
    # 2 / 11.5, and the burst is what remains.
    now = load(3.82, 36)
    window = likeliest(now, begun(now, (3.63, 3.44, 3.25, 3.08)))
    assert 11.0 <= window.elapsed_s(0.0) <= 12.0
    assert window.total_bytes == pytest.approx(3.82 * window.elapsed_s(0.0) * MB, rel=0.001)


def test_a_guess_that_disagrees_with_the_ticks_weighs_little() -> None:
    now = load(1.5, 36, Role.FOLLOWER, in_sync_mb=0)
    found = guesses(now, begun(now, (12 / 7, 12 / 6, 12 / 5, 12 / 4)), PHASES, COPY_TIMES)
    assert sum(guess.weight for guess in found) == pytest.approx(1.0)
    assert found[0].weight > 100 * found[-1].weight


def test_a_quantile_goes_by_the_weights() -> None:
    likely, unlikely = likeliest(load(2), []), likeliest(load(1), [])
    found = [Guess(likely, 0.8), Guess(unlikely, 0.2)]
    totals = [at_quantile(found, quantile).total_bytes for quantile in (0.1, 0.79, 0.81, 1.0)]
    assert totals == [likely.total_bytes] * 2 + [unlikely.total_bytes] * 2


def test_a_simulation_does_not_change_the_guess() -> None:
    found = guesses(load(2), [], PHASES, COPY_TIMES)
    at_quantile(found, 0.1).record(1.0, 5 * MB)
    assert found[0].window.total_bytes < 25 * MB


@given(
    used=st.floats(0.01, 50), role=st.sampled_from(list(Role)), interval=st.sampled_from([1.0, 5.0]),
    lags=st.lists(st.floats(0, 200), min_size=1, max_size=13), idle=st.booleans(),
)  # fmt: skip
def test_the_mean_of_every_guess_is_the_measured_one(
    used: float, role: Role, interval: float, lags: list[float], idle: bool
) -> None:
    now = load(used, lags[0], role)
    earlier = [(age * interval, load(used, lag, role)) for age, lag in enumerate(lags[1:], 1)]
    if idle:
        earlier += [((len(lags) + age) * interval, before(now)) for age in range(3)]
    for guess in guesses(now, earlier, PHASES[:2], COPY_TIMES[:1]):
        assert guess.window.total_bytes / guess.window.elapsed_s(0.0) == pytest.approx(used * MB, rel=1e-6)
