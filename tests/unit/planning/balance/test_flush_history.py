"""Slow rounds of brokers over time."""

from __future__ import annotations

from headroom.planning.balance.broker_reading import BrokerReading
from headroom.planning.balance.slow_brokers.flush_history import FlushHistory
from tests.unit.builders.broker_load import reading

PEERS = [reading(n, 10, flush_p999_s=0.1) for n in (2, 3, 4)]


def after(history: FlushHistory, minutes: int, *readings: BrokerReading) -> dict[int, int]:
    for _ in range(minutes):
        found = history.add(readings)
    return found


def test_rounds_are_counted_up_and_down_within_bounds() -> None:
    history = FlushHistory()
    slow = reading(1, 10, flush_p999_s=2.0)
    assert after(history, 4, slow, *PEERS) == {1: 4, 2: 0, 3: 0, 4: 0}
    # However long it was slow, it is well again after less than an hour.
    assert after(history, 96, slow, *PEERS)[1] == 50
    assert after(history, 50, reading(1, 10, flush_p999_s=0.1), *PEERS)[1] == 0


def test_a_broker_without_flush_times_has_no_rounds() -> None:
    assert FlushHistory().add([reading(1, 10), reading(2, 10)]) == {}


def test_rounds_and_past_go_on_after_a_restart() -> None:
    # All brokers flush in 2 s: compared with its peers none is slow, compared with its past broker 1 is.
    past = {1: [(0.2, 10e6)] * 60}
    readings = [reading(n, 10, flush_p999_s=2.0) for n in (1, 2, 3)]
    assert FlushHistory({1: 4}, past).add(readings)[1] == 5
    # Less than an hour of the past is not enough to compare with.
    assert FlushHistory({1: 4}, {1: past[1][:59]}).add(readings)[1] == 3


def test_a_broker_that_is_gone_is_forgotten() -> None:
    history = FlushHistory()
    after(history, 3, reading(1, 10, flush_p999_s=2.0), *PEERS)
    history.add(PEERS)
    assert history.add([reading(1, 10, flush_p999_s=0.1), *PEERS])[1] == 0
