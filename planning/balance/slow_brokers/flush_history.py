"""Flush times of a cluster's brokers over the past day, and the number of their slow rounds."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from headroom.planning.balance.broker_reading import BrokerReading
from headroom.planning.balance.model import Resource
from headroom.planning.balance.slow_brokers.slow_brokers import GIVES_REPLICAS_AT, SLOW_FLUSH_S, FlushTimes, slow_rounds

# A day of minutes. Fewer than an hour of them say little of what is usual.
_ROUNDS, _LEAST_ROUNDS = 1440, 60
_SHARE = 0.9


class FlushHistory:
    """Compares each minute's flush times with those of the day before it.

    Args:
        rounds: slow rounds by broker, as counted before.
        past: flush time (seconds) and bytes in per second of earlier minutes by broker, the oldest first.
    """

    def __init__(
        self,
        rounds: Mapping[int, int] = MappingProxyType({}),
        past: Mapping[int, Sequence[tuple[float, float]]] = MappingProxyType({}),
    ) -> None:
        self._rounds = dict(rounds)
        self._past: dict[int, deque[tuple[float, float]]] = defaultdict(lambda: deque(maxlen=_ROUNDS))
        for broker, values in past.items():
            self._past[broker].extend(values)

    def add(self, readings: Iterable[BrokerReading]) -> dict[int, int]:
        """Return the slow rounds of all brokers after one more minute; one without a flush time ever is missing."""
        times = [self._times(reading) for reading in readings]
        counted = slow_rounds(self._rounds, times)
        # A broker that is well again is spared for less than an hour, however long it was slow.
        self._rounds = {broker: min(rounds, GIVES_REPLICAS_AT) for broker, rounds in counted.items()}
        for one in times:
            if one.flush_p999_s is not None and one.bytes_in_per_s:
                self._past[one.broker].append((one.flush_p999_s, one.bytes_in_per_s))
        for broker in self._past.keys() - self._rounds.keys():
            del self._past[broker]
        return {broker: rounds for broker, rounds in self._rounds.items() if rounds or self._past[broker]}

    def _times(self, reading: BrokerReading) -> FlushTimes:
        flush_s, bytes_in = reading.flush_p999_s, reading.loads.get(Resource.NETWORK_IN)
        past = self._past[reading.broker]
        # Only a long flush is compared with the past, so that other brokers cost nothing.
        if flush_s is None or flush_s <= SLOW_FLUSH_S or len(past) < _LEAST_ROUNDS:
            return FlushTimes(reading.broker, flush_s, bytes_in)
        flushes, ratios = [flush for flush, _ in past], [flush / rate for flush, rate in past]
        return FlushTimes(reading.broker, flush_s, bytes_in, _percentile(flushes), _percentile(ratios))


def _percentile(values: Sequence[float]) -> float:
    """Return the 90th percentile by nearest rank."""
    return sorted(values)[math.ceil(_SHARE * len(values)) - 1]
