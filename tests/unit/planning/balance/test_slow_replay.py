"""Slow rounds over the past hours are those that the rule gives round by round."""

from __future__ import annotations

import time

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planning.balance.arrays import FloatArray
from planning.balance.slow_brokers.replay import LEAST_ROUNDS, FlushReadings, no_flush_readings, slow_rounds_of
from planning.balance.slow_brokers.slow_brokers import GIVES_REPLICAS_AT, FlushTimes, slow_rounds

MIB = 1024.0**2
RATE = 10 * MIB


def readings(flush_s: FloatArray, bytes_in: FloatArray | None = None) -> FlushReadings:
    brokers = range(1, flush_s.shape[1] + 1)
    return FlushReadings(list(brokers), flush_s, np.full(flush_s.shape, RATE) if bytes_in is None else bytes_in)


def one_by_one(found: FlushReadings) -> dict[int, int]:
    """Return the rounds by the rule for one round."""
    rounds = dict.fromkeys(found.brokers, 0)
    for flushes, rates in zip(found.flush_s.tolist(), found.bytes_in_per_s.tolist(), strict=True):
        values = zip(found.brokers, flushes, rates, strict=True)
        rounds = slow_rounds(rounds, [FlushTimes(b, _known(flush), _known(rate)) for b, flush, rate in values])
        rounds = {b: min(count, GIVES_REPLICAS_AT) for b, count in rounds.items()}
    return rounds


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


@given(st.integers(0, 2**32 - 1))
def test_replayed_rounds_equal_those_one_by_one(seed: int) -> None:
    random = np.random.default_rng(seed)
    # Fewer rounds than a comparison with a broker's own past needs.
    shape = (LEAST_ROUNDS - 1, 4)
    found = readings(random.choice([0.1, 0.5, 1.2, 4.0, np.nan], shape), random.choice([0.0, MIB, RATE, np.nan], shape))
    assert slow_rounds_of(found) == one_by_one(found)


def test_rounds_have_a_maximum_and_fall_again() -> None:
    flush_s = np.full((100, 3), 0.1)
    flush_s[:80, 1] = 5.0
    # Of 80 slow rounds 50 count, less 20 since.
    assert slow_rounds_of(readings(flush_s)) == {1: 0, 2: GIVES_REPLICAS_AT - 20, 3: 0}


def test_a_broker_that_is_slower_than_ever_is_slow_though_its_peers_are_slow_too() -> None:
    flush_s = np.full((LEAST_ROUNDS + 5, 3), 2.0)
    flush_s[:LEAST_ROUNDS, 0] = 0.2
    # 2 s against its own 0.2 s; the peers flush in 2 s, as ever.
    assert slow_rounds_of(readings(flush_s)) == {1: 5, 2: 0, 3: 0}
    assert slow_rounds_of(readings(flush_s[1:])) != {1: 5, 2: 0, 3: 0}


def test_without_a_reading_no_broker_is_slow() -> None:
    assert slow_rounds_of(no_flush_readings("why")) == {}


def test_a_day_of_two_hundred_brokers_takes_a_fraction_of_a_second() -> None:
    random = np.random.default_rng(1)
    began = time.process_time()
    slow_rounds_of(readings(random.uniform(0, 1.002, (1440, 200))))
    assert time.process_time() - began < 5
