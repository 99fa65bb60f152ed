"""Throttles whose rate is set but limits nothing: found by the observed rate, and not beside it."""

from __future__ import annotations

import pytest

from headroom.planning.throttles.effect import NoEffect, ObservedThrottle, far_above_text, none_limits, rates_text

MB = 1_000_000


@pytest.mark.parametrize(
    ("rate_mb", "observed_mb", "no_effect"),
    [
        # 5 GB/s in place of 5 MB/s, while the network carries 100 MB/s.
        (5_000, 100, NoEffect.FAR_ABOVE),
        (20, 1, NoEffect.FAR_ABOVE),
        (19.9, 1, None),
        # Kafka exceeds a rate a little: up to half of it, and a response per peer.
        (5, 5.4, None),
        (5, 8.5, None),
        (5, 8.6, NoEffect.EXCEEDED),
        # Below 1 MB/s no rate is kept.
        (0.9, 50, None),
        # Nothing observed says nothing.
        (5_000, 0, None),
        (5_000, None, None),
    ],
)
def test_the_observed_rate_tells_whether_a_throttle_has_an_effect(
    rate_mb: float, observed_mb: float | None, no_effect: NoEffect | None
) -> None:
    observed = None if observed_mb is None else observed_mb * MB
    assert ObservedThrottle(rate_mb * MB, observed).no_effect is no_effect


def test_each_peer_gets_its_responses_whatever_the_rate_is() -> None:
    # 1.5 x 5 MB/s and 1 MB/s for each of 4 peers.
    assert ObservedThrottle(5 * MB, 11.4 * MB, peers=4).no_effect is None
    assert ObservedThrottle(5 * MB, 11.6 * MB, peers=4).no_effect is NoEffect.EXCEEDED


def test_a_throttle_that_is_too_low_limits_though_in_sync_traffic_exceeds_it() -> None:
    assert ObservedThrottle(5 * MB, 50 * MB, below_required=True).no_effect is None


def test_one_throttle_with_an_effect_limits_the_move() -> None:
    high, exceeded = ObservedThrottle(5_000 * MB, 9 * MB), ObservedThrottle(5 * MB, 9 * MB)
    assert none_limits([high, exceeded])
    assert not none_limits([high, ObservedThrottle(9.6 * MB, 9 * MB)])
    assert not none_limits([high, ObservedThrottle(9.6 * MB, None)])
    assert not none_limits([])


def test_texts() -> None:
    assert rates_text(5 * MB, 12 * MB) == "rate in force 5.00 MB/s, observed 12.00 MB/s"
    assert rates_text(5 * MB, None, is_default=True) == "rate in force 5.00 MB/s (cluster default), observed unknown"
    assert "because it is 50 times what is observed" in far_above_text(5_000 * MB, 100 * MB)
