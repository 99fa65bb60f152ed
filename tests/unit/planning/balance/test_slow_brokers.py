"""Slow brokers by their log flush times."""

from __future__ import annotations

import pytest

from headroom.planning.balance.slow_brokers.slow_brokers import FlushTimes, advice, is_slow, slow_rounds

MIB = 1024.0**2
PEERS = [FlushTimes(n, 0.1, 10 * MIB) for n in (2, 3, 4)]


@pytest.mark.parametrize(
    ("times", "slow"),
    [
        # Peers flush in 0.1 s at 10 MiB/s.
        (FlushTimes(1, 1.1, 10 * MIB), True),
        (FlushTimes(1, 1.0, 10 * MIB), False),
        (FlushTimes(1, 2.0, 1.0 * MIB), False),
        # 11 times the flush time at 40 times the load: its ratio is not high.
        (FlushTimes(1, 1.1, 400 * MIB), False),
        (FlushTimes(1, None, 10 * MIB), False),
        (FlushTimes(1, 2.0, None), False),
    ],
)
def test_a_broker_is_slow_compared_with_its_peers(times: FlushTimes, slow: bool) -> None:
    assert is_slow(times, PEERS) is slow


def test_a_broker_is_slow_compared_with_its_past_though_its_peers_are_slow_too() -> None:
    peers = [FlushTimes(n, 2.0, 10 * MIB) for n in (2, 3)]
    now = FlushTimes(1, 4.0, 10 * MIB, own_flush_p90_s=1.0, own_ratio_p90=1.0 / (10 * MIB))
    assert is_slow(now, peers)
    # Exactly 3 times is not above it.
    assert not is_slow(FlushTimes(1, 3.0, 10 * MIB, 1.0, 1.0 / (10 * MIB)), peers)


def test_rounds_go_up_and_down_and_stay_while_values_are_unknown() -> None:
    rounds = slow_rounds({}, [FlushTimes(1, 2.0, 10 * MIB), *PEERS])
    assert rounds == {1: 1, 2: 0, 3: 0, 4: 0}
    assert slow_rounds({1: 4}, [FlushTimes(1, None, None), *PEERS])[1] == 4
    assert slow_rounds({1: 4}, [FlushTimes(1, 0.1, 10 * MIB), *PEERS])[1] == 3


def test_advice_begins_at_5_rounds_and_includes_replicas_at_50() -> None:
    every = dict.fromkeys(range(20), 0)
    assert not advice({**every, 1: 4}).take_nothing
    assert advice({**every, 1: 5}).take_nothing == {1}
    assert not advice({**every, 1: 49}).give_replicas
    assert advice({**every, 1: 50}).give_replicas == {1}
    # 2 of 20 are a tenth, 3 are more.
    assert not advice({**every, 1: 5, 2: 5}).too_many
    found = advice({**every, 1: 5, 2: 5, 3: 5})
    assert found.too_many
    assert not found.take_nothing
