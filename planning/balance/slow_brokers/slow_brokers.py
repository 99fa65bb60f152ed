"""Slow brokers: those whose log flushes take long, compared with their own past or with their peers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from headroom.planning.balance.model import OF_LEADERS, Resource

SLOW_FLUSH_S = 1.0
LEAST_BYTES_PER_S = 1024.0**2
TIMES = 3.0
GIVES_LEADERS_AT, GIVES_REPLICAS_AT = 5, 50
MOST_RATIO = 0.1


@dataclass(frozen=True)
class FlushTimes:
    """Log flush times of one broker in one round.

    Attributes:
        broker: id.
        flush_p999_s: 99.9th percentile of its log flush times, seconds; None if unknown.
        bytes_in_per_s: bytes that it receives per second; None if unknown.
        own_flush_p90_s: 90th percentile of its own earlier values of ``flush_p999_s``; None without a history.
        own_ratio_p90: 90th percentile of its own earlier ratios of flush time to bytes in; None without a history.
    """

    broker: int
    flush_p999_s: float | None
    bytes_in_per_s: float | None
    own_flush_p90_s: float | None = None
    own_ratio_p90: float | None = None

    @property
    def ratio(self) -> float | None:
        """Return seconds of a flush per byte in per second; None if unknown, or if nothing comes in."""
        if self.flush_p999_s is None or not self.bytes_in_per_s:
            return None
        return self.flush_p999_s / self.bytes_in_per_s


@dataclass(frozen=True)
class SlowAdvice:
    """What slow brokers are to be spared.

    Attributes:
        take_nothing: brokers that take nothing and give leaders away.
        give_replicas: brokers of these that give replicas away too.
        too_many: true if more than a tenth of the brokers are slow at once: the cause is then not one broker, and no
            advice is given.
    """

    take_nothing: frozenset[int] = frozenset()
    give_replicas: frozenset[int] = frozenset()
    too_many: bool = False

    def sheds(self, broker: int) -> frozenset[Resource]:
        """Return the resources of which a broker is to carry nothing."""
        if broker in self.give_replicas:
            return frozenset(Resource)
        return frozenset(OF_LEADERS) if broker in self.take_nothing else frozenset()


NO_ADVICE = SlowAdvice()


def is_slow(times: FlushTimes, peers: Sequence[FlushTimes]) -> bool:
    """Return whether a broker is slow in one round.

    Its flush time must be above 1 s at more than 1 MiB/s in. Both the flush time and its ratio to bytes in must also be
    above 3 times their own 90th percentile, or above 3 times the median of the peers, which are all other brokers.
    """
    flush, ratio = times.flush_p999_s, times.ratio
    if flush is None or ratio is None or flush <= SLOW_FLUSH_S or (times.bytes_in_per_s or 0.0) <= LEAST_BYTES_PER_S:
        return False
    flushes = [p.flush_p999_s for p in peers if p.flush_p999_s is not None]
    ratios = [p.ratio for p in peers if p.ratio is not None]
    by_peers = bool(flushes and ratios) and flush > TIMES * median(flushes) and ratio > TIMES * median(ratios)
    if times.own_flush_p90_s is None or times.own_ratio_p90 is None:
        return by_peers
    return by_peers or (flush > TIMES * times.own_flush_p90_s and ratio > TIMES * times.own_ratio_p90)


def slow_rounds(before: Mapping[int, int], times: Iterable[FlushTimes]) -> dict[int, int]:
    """Return the number of slow rounds of each broker after one more round: one more if slow, one less if well.

    A broker whose flush time or bytes in are unknown keeps its number. Numbers are by broker id.
    """
    every = sorted(times, key=lambda t: t.broker)
    rounds_by_broker = {}
    for own in every:
        rounds = before.get(own.broker, 0)
        if own.flush_p999_s is not None and own.bytes_in_per_s is not None:
            slow = is_slow(own, [peer for peer in every if peer is not own])
            rounds = rounds + 1 if slow else max(0, rounds - 1)
        rounds_by_broker[own.broker] = rounds
    return rounds_by_broker


def advice(rounds: Mapping[int, int]) -> SlowAdvice:
    """Return what slow brokers are to be spared, by the number of slow rounds of all brokers."""
    slow = frozenset(broker for broker, count in rounds.items() if count >= GIVES_LEADERS_AT)
    if len(slow) > MOST_RATIO * len(rounds):
        return SlowAdvice(too_many=True)
    return SlowAdvice(slow, frozenset(b for b in slow if rounds[b] >= GIVES_REPLICAS_AT))
