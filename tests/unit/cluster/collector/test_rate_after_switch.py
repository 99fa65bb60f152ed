"""The write rate that ticks after a leader switch lead to, beside steady producers and their backlog."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from headroom.cluster.collector.tick_builder import TickBuilder
from headroom.cluster.model import Broker, BrokerRead, LogReading, Metrics
from tests.unit.cluster.collector.test_tick_builder import LISTS, MOVING, ORDERS, RATES, snapshot, tick

WRITE_BYTES_PER_S, RECORD_BYTES = 1_010_000, 1_000
# Time from the death of a leader until the controllers fence it, in seconds: some after broker.session.timeout.ms.
FENCED_S = 8.0
MOST_ERROR_RATIO = 0.05


@dataclass(frozen=True)
class Producers:
    """Steady producers, which hold their records back while there is no leader.

    Attributes:
        linger_s: ``linger.ms`` in seconds.
        held_from_s: time from which they hold records back.
        held_until_s: time at which they send them again.
        drained_s: time at which all that they held is sent.
    """

    linger_s: float
    held_from_s: float
    held_until_s: float
    drained_s: float

    def records(self, at_s: float) -> int:
        """Return the records of the log."""
        if at_s <= self.held_from_s:
            made_s = at_s
        elif at_s <= self.held_until_s:
            made_s = self.held_from_s
        else:
            sent = min(1.0, (at_s - self.held_until_s) / max(self.drained_s - self.held_until_s, 1e-9))
            made_s = self.held_from_s + sent * (at_s - self.held_from_s)
        batches_s = made_s - made_s % self.linger_s if self.linger_s else made_s
        return 1_000 + int(batches_s * WRITE_BYTES_PER_S / RECORD_BYTES)


def rates_after_switch(seed: int, dies: bool, again: bool, returns: bool = False) -> Iterator[tuple[float, float]]:
    """Yield the seconds since the switch, and the write rate of each tick that shows the new leader.

    Args:
        seed: seed of intervals, times of readings, and of the producers.
        dies: whether the leader dies; otherwise another one is elected.
        again: whether another broker is elected some seconds later.
        returns: whether the dead leader comes back and leads again, because no other replica may.
    """
    draw = random.Random(seed)
    interval_s = draw.choice((1.0, 2.0, 5.0))
    window_s = max(10.0, 5 * interval_s)
    builder = TickBuilder(round(window_s * 1000), round(interval_s * 1000))
    lost_s = 60 + draw.uniform(0, interval_s)
    switch_s = lost_s + (FENCED_S if dies else 0.1)
    resumed_s = switch_s + draw.uniform(0.1, 1.5)
    producers = Producers(draw.uniform(0, 0.1), lost_s, resumed_s, resumed_s + (draw.uniform(0.3, 3) if dies else 0.1))
    next_s = switch_s + draw.uniform(3, 12) if again else 1e9
    number = 0
    while (at_s := number * interval_s) < switch_s + 3 * window_s:
        number += 1
        new = 1 if returns else 2
        leader = 1 if at_s < switch_s else new if at_s < next_s else 4
        is_away = dies and at_s >= lost_s and not (returns and at_s >= switch_s)
        answers = [2, 3, 4] if is_away else [1, 2, 3, 4]
        read = {
            b: BrokerRead(
                b, RATES, Metrics(7, {}, {}, (), {ORDERS: _log(producers, at_s + draw.uniform(0, 0.2))}), None
            )
            for b in answers
        }
        known = None if returns and is_away else leader
        partition = replace(MOVING, leader=known, replicas=(3, 1, 2, 4), isr=(2, 4), adding=(3,), removing=())
        metadata = replace(snapshot(partition, LISTS), brokers={b: Broker(b, "host", 9092, True) for b in (1, 2, 3, 4)})
        row = tick(builder, round(at_s * 1000), metadata, read)["moves"][0]
        if at_s >= switch_s:
            assert (row["previous_leader"] is None) == (leader == 1)
            logs = {log["broker"]: log for log in row["logs"]}
            log = row["before_log"] or logs[leader]
            grown = log["log_end_offset"] - log["prev_log_end_offset"]
            yield at_s - switch_s, grown * RECORD_BYTES * 1000 / (log["read_ms"] - log["prev_read_ms"])


def _log(producers: Producers, at_s: float) -> LogReading:
    records = producers.records(at_s)
    return LogReading(round(at_s * 1000), records, 0, records * RECORD_BYTES)


# What producers held back while there was no leader comes at once: a rate of the new leader that reaches back over that
# is no rate.
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(("dies", "returns"), [(False, False), (True, False), (True, True)])
def test_the_rate_after_a_leader_switch_is_that_of_steady_producers(dies: bool, again: bool, returns: bool) -> None:
    wrong = []
    for seed in range(40):
        rates = list(rates_after_switch(seed, dies, again, returns))
        assert rates[0][0] <= 5
        wrong += [
            (seed, round(at_s, 1), round(rate))
            for at_s, rate in rates
            if abs(rate / WRITE_BYTES_PER_S - 1) > MOST_ERROR_RATIO
        ]
    assert wrong == []
