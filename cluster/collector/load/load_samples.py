"""The latest load of each broker with its earlier sample, and the rows of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from headroom.cluster.collector.rows.columns import Row
from headroom.cluster.collector.rows.message_rows import meter_columns
from headroom.cluster.collector.samples.history import EarlierSample
from headroom.cluster.collector.samples.restarts import Restarts
from headroom.cluster.collector.samples.sample_columns import SampleColumns
from headroom.cluster.metrics.load_meters import (
    FOLLOWER_FETCH_P99,
    HANDLER_IDLE,
    LOG_FLUSH_P999,
    PRODUCE_P99,
    fetch_requests,
    produce_requests,
)
from headroom.cluster.model import Meter, Metrics, Reading

# Bytes in of a broker: from producers, and from leaders.
_BYTES_IN = (Meter("BrokerTopicMetrics.BytesInPerSec"), Meter("BrokerTopicMetrics.ReplicationBytesInPerSec"))
# Meters of the broker as a whole that no tick reads.
_OWN_COUNTERS = (produce_requests(), fetch_requests())
_NS_PER_MS = 1e6
# An earlier sample is the reading before, which may come a little sooner than an interval ago.
_WINDOW_RATIO = 0.8


class LoadSamples:
    """Keeps the last two load readings of each broker.

    Args:
        interval_s: time from one reading of a broker to the next, seconds.
    """

    def __init__(self, interval_s: float) -> None:
        window_ms, interval_ms = int(interval_s * _WINDOW_RATIO * 1000), int(interval_s * 1000)
        self._topics: SampleColumns[Meter] = SampleColumns(window_ms, interval_ms)
        self._brokers: SampleColumns[Meter] = SampleColumns(window_ms, interval_ms)
        self._gauges: dict[int, Mapping[Meter, Reading]] = {}
        self._read_ms: dict[int, int] = {}
        self._restarts = Restarts()

    def add(self, broker: int, metrics: Metrics) -> None:
        """Add a reading of a broker."""
        if self._restarts.may_have_restarted(broker, metrics):
            # The broker has restarted, and its counters began at zero.
            self._topics.forget(broker)
            self._brokers.forget(broker)
        counters = metrics.counters.items()
        self._topics.add(broker, {meter: value for meter, value in counters if meter.topic is not None})
        self._brokers.add(broker, {meter: value for meter, value in counters if meter.topic is None})
        self._gauges[broker] = metrics.gauges
        values = (*metrics.counters.values(), *metrics.gauges.values())
        self._read_ms[broker] = max((value.read_ms for value in values), default=0)

    def keep_brokers(self, brokers: Collection[int]) -> None:
        """Drop the brokers that are not among the given ones."""
        self._topics.keep_brokers(brokers)
        self._brokers.keep_brokers(brokers)
        self._gauges = {broker: gauges for broker, gauges in self._gauges.items() if broker in brokers}
        self._read_ms = {broker: read_ms for broker, read_ms in self._read_ms.items() if broker in brokers}

    def drop_before(self, read_ms: int) -> None:
        """Drop the brokers whose last reading is older than a time, epoch milliseconds: their values are stale."""
        self.keep_brokers([broker for broker, at_ms in self._read_ms.items() if at_ms >= read_ms])

    @property
    def brokers(self) -> list[int]:
        """Ids of the brokers that have a reading, in order."""
        return sorted(self._read_ms)

    def shift(self, step_ms: int) -> None:
        """Shift the times of all samples after a clock step."""
        self._topics.shift(step_ms)
        self._brokers.shift(step_ms)
        self._read_ms = {broker: read_ms + step_ms for broker, read_ms in self._read_ms.items()}
        self._gauges = {
            broker: {meter: Reading(value.read_ms + step_ms, value.value) for meter, value in gauges.items()}
            for broker, gauges in self._gauges.items()
        }

    def meter_columns(self, answered: Collection[int], fresh: Collection[int]) -> Iterator[Mapping[str, Sequence[Any]]]:
        """Yield columns of the kind ``meters``: the latest values of each broker, and of topics of fresh brokers.

        Args:
            answered: brokers that answered the tick; others have none.
            fresh: brokers that were read since the last tick.
        """
        for broker in [broker for broker in self.brokers if broker in answered]:
            whole = self._brokers.latest(broker)
            counters = {meter: pair for meter in _OWN_COUNTERS if (pair := whole.of(meter)) is not None}
            idle = self._idle(broker)
            gauges = {**self._gauges[broker], **({} if idle is None else {HANDLER_IDLE: idle})}
            yield broker_meter_columns(broker, counters, gauges)
            if broker in fresh:
                yield meter_columns(broker, self._topics.latest(broker), {})

    def performance_row(self, broker: int, rack: str | None) -> Row | None:
        """Return the row of the kind ``broker_performance`` of a broker; None if it reported none of its values.

        Args:
            broker: id of a broker that was read.
            rack: its rack; None if it has none.
        """
        samples = self._brokers.latest(broker)
        pairs = {
            "bytes_in": _sum(samples.of(meter) for meter in _BYTES_IN),
            "produce_requests": samples.of(produce_requests()),
            "fetch_requests": samples.of(fetch_requests()),
            "handler_idle_ns": samples.of(HANDLER_IDLE),
        }
        known = [pair for pair in pairs.values() if pair is not None]
        gauges = self._gauges[broker]
        read_ms = [now.read_ms for now, _ in known] + [value.read_ms for value in gauges.values()]
        if not read_ms:
            return None
        before_ms = [before.read_ms for _, before in known if before is not None]
        values: dict[str, int | None] = {}
        for name, pair in pairs.items():
            now, before = pair if pair is not None else (None, None)
            values |= {name: _count(now), f"prev_{name}": _count(before)}
        return {
            "broker": broker,
            "rack": rack,
            "read_ms": read_ms[0],
            "prev_read_ms": before_ms[0] if before_ms else None,
            **values,
            "produce_p99_ms": _value(gauges.get(PRODUCE_P99)),
            "follower_fetch_p99_ms": _value(gauges.get(FOLLOWER_FETCH_P99)),
            "log_flush_p999_ms": _value(gauges.get(LOG_FLUSH_P999)),
        }

    def _idle(self, broker: int) -> Reading | None:
        """Return the share of time that a broker's request handlers were idle, 0 to 1; None without two readings."""
        pair = self._brokers.latest(broker).of(HANDLER_IDLE)
        now, before = pair if pair is not None else (None, None)
        if now is None or before is None or now.read_ms <= before.read_ms:
            return None
        idle_ns = (now.values[0] or 0) - (before.values[0] or 0)
        return Reading(now.read_ms, min(1.0, idle_ns / _NS_PER_MS / (now.read_ms - before.read_ms)))


_Pair = tuple[EarlierSample, EarlierSample | None]


def broker_meter_columns(
    broker: int, counters: Mapping[Meter, _Pair], gauges: Mapping[Meter, Reading]
) -> Mapping[str, Sequence[Any]]:
    """Return the columns of the kind ``meters`` of some counters and gauges of a broker as a whole."""
    meters, values, none = [*counters, *gauges], gauges.values(), [None] * len(gauges)
    before = [earlier for _, earlier in counters.values()]
    no_names = [None] * len(meters)
    return {
        "broker": [broker] * len(meters),
        "meter": [meter.meter for meter in meters],
        **dict.fromkeys(("topic", "fetcher", "source_broker"), no_names),
        "read_ms": [*(now.read_ms for now, _ in counters.values()), *(gauge.read_ms for gauge in values)],
        "count_total": [*(_count(now) for now, _ in counters.values()), *none],
        "prev_read_ms": [*(None if sample is None else sample.read_ms for sample in before), *none],
        "prev_count_total": [*map(_count, before), *none],
        "gauge_value": [*[None] * len(counters), *(float(gauge.value) for gauge in values)],
    }


def _sum(pairs: Iterable[_Pair | None]) -> _Pair | None:
    """Return the sum of counters and of their earlier samples; None if a counter was not read."""
    known = list(pairs)
    now = [None if pair is None else pair[0] for pair in known]
    total = _total(now)
    return None if total is None else (total, _total([None if pair is None else pair[1] for pair in known]))


def _total(samples: Sequence[EarlierSample | None]) -> EarlierSample | None:
    known = [sample for sample in samples if sample is not None]
    if len(known) < len(samples):
        return None
    return EarlierSample(known[0].read_ms, (sum(sample.values[0] or 0 for sample in known),))


def _count(sample: EarlierSample | None) -> int | None:
    return None if sample is None else sample.values[0]


def _value(gauge: Reading | None) -> float | None:
    return None if gauge is None else float(gauge.value)
