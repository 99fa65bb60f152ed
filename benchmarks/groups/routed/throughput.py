"""How much longer routed clients take than those of kafka-python for the same records, on either side of the switch."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

from kafka import KafkaConsumer, KafkaProducer

from benchmarks.fixtures.bench_cluster import OnProgress, failure
from benchmarks.fixtures.migrations.clients import plain_consumer
from benchmarks.groups.routed.routed_topics import PARTITIONS, RoutedTopics, partitions_of
from benchmarks.results import Figure, percentile

PLAIN, BELOW, BEYOND = "plain", "below", "beyond"
# End offsets that no record reaches, and that all have reached.
_NEVER, _AT_ONCE = 10**12, 0
_VALUE = bytes(1_000)
_POLL_MS, _READ_S = 500, 120.0
_ADOPTED_S = 1.0
# Longer than a broker keeps a fetch waiting.
_FETCH_S = 0.6


@dataclass(frozen=True)
class _Pair:
    """Times of one round: the same with kafka-python, and routed.

    Attributes:
        plain_s: with kafka-python, seconds.
        routed_s: routed, seconds.
    """

    plain_s: float
    routed_s: float

    @property
    def ratio(self) -> float:
        """Records per second when routed, divided by those of kafka-python."""
        return self.plain_s / self.routed_s


def throughput_figures(topics: RoutedTopics, records: int, rounds: int, on_progress: OnProgress) -> list[Figure]:
    """Return the ratios of writing and reading.

    Args:
        topics: two clusters.
        records: records of each measurement.
        rounds: measurements of each kind; the order within a round changes each time.
        on_progress: gets a line about each round.
    """
    for topic, end in ((PLAIN, None), (BELOW, _NEVER), (BEYOND, _AT_ONCE)):
        topics.create(topic)
        if end is not None:
            topics.start(topics.plan(topic, dict.fromkeys(range(PARTITIONS), end)))
    written = _write(topics, records, rounds, on_progress)
    read = _read(topics, records, rounds, on_progress)
    figures = []
    for what, by_side in (("write", written), ("read", read)):
        medians = {side: percentile([pair.ratio for pair in pairs], 0.5) for side, pairs in by_side.items()}
        figures += [
            Figure(f"routed_{what}_ratio", min(medians.values()), "ratio", rounds),
            *(Figure(f"routed_{what}_ratio_{side}", value, "ratio", rounds) for side, value in medians.items()),
        ]
    return figures


def _write(topics: RoutedTopics, records: int, rounds: int, on_progress: OnProgress) -> dict[str, list[_Pair]]:
    with ExitStack() as stack:
        routed = stack.enter_context(topics.producer("writer"))
        plain = {
            side: stack.enter_context(closing(KafkaProducer(bootstrap_servers=servers)))
            for side, servers in ((BELOW, topics.origin), (BEYOND, topics.target))
        }
        time.sleep(_ADOPTED_S)

        def write(producer: Any, topic: str) -> float:
            began_s = time.perf_counter()
            for _ in range(records):
                producer.send(topic, _VALUE)
            producer.flush()
            return time.perf_counter() - began_s

        def measure(side: str, plain_first: bool) -> _Pair:
            return _pair(lambda: write(plain[side], PLAIN), lambda: write(routed, side), plain_first)

        return _rounds(measure, "written", records, rounds, on_progress)


def _read(topics: RoutedTopics, records: int, rounds: int, on_progress: OnProgress) -> dict[str, list[_Pair]]:
    with ExitStack() as stack:
        reports = stack.enter_context(closing(KafkaProducer(bootstrap_servers=topics.target)))
        routed = {side: stack.enter_context(topics.consumer(f"reader-{side}", reports)) for side in (BELOW, BEYOND)}
        plain = {
            side: stack.enter_context(closing(plain_consumer(servers, f"plain-{side}")))
            for side, servers in ((BELOW, topics.origin), (BEYOND, topics.target))
        }
        for side in (BELOW, BEYOND):
            plain[side].assign(partitions_of(side))
            routed[side].assign(partitions_of(side))
            _poll(routed[side], 1)

        def from_start(consumer: KafkaConsumer | Any, side: str) -> float:
            # A fetch may still wait behind the last record, and the next one is sent only once it is answered.
            time.sleep(_FETCH_S)
            began_s = time.perf_counter()
            for name in partitions_of(side):
                consumer.seek(name, 0)
            _poll(consumer, records)
            return time.perf_counter() - began_s

        def measure(side: str, plain_first: bool) -> _Pair:
            return _pair(lambda: from_start(plain[side], side), lambda: from_start(routed[side], side), plain_first)

        return _rounds(measure, "read", records, rounds, on_progress)


def _poll(consumer: Any, records: int) -> None:
    """Read at least this many records.

    Raises:
        HeadroomError: they did not come in time.
    """
    left, give_up_s = records, time.monotonic() + _READ_S
    while left > 0:
        left -= sum(map(len, consumer.poll(timeout_ms=_POLL_MS).values()))
        if time.monotonic() > give_up_s:
            raise failure(f"{left} of {records} records were not read within {_READ_S:.0f} s")


def _pair(plain: Callable[[], float], routed: Callable[[], float], plain_first: bool) -> _Pair:
    if plain_first:
        plain_s = plain()
        return _Pair(plain_s, routed())
    routed_s = routed()
    return _Pair(plain(), routed_s)


def _rounds(
    measure: Callable[[str, bool], _Pair], what: str, records: int, rounds: int, on_progress: OnProgress
) -> dict[str, list[_Pair]]:
    pairs: dict[str, list[_Pair]] = {BELOW: [], BEYOND: []}
    for number in range(rounds + 1):
        for side, own in pairs.items():
            pair = measure(side, number % 2 == 0)
            # The first round warms up: connections, metadata, and the brokers' code.
            if number:
                own.append(pair)
                on_progress(
                    f"{records:,} records {what} {side} the end offset: {pair.plain_s:.2f} s with kafka-python, "
                    f"{pair.routed_s:.2f} s routed"
                )
    return pairs
