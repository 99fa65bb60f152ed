"""Messages in the ticks topic from a foreign producer."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from kafka import KafkaProducer

from benchmarks.groups.fuzz.made import record, tick
from benchmarks.groups.outages.context import ScenarioContext
from benchmarks.groups.outages.scenarios.scenario import Scenario
from headroom.schemas.tick_messages import ALERT_KINDS, ALERT_PARTITION

YEAR_10000_MS = 253_402_300_800_000
_HISTORY = 1
_ACK_S = 10.0
_TIMES = 5
_CLUSTERS = 30
_AHEAD_MS = 3_540_000
# The lowest and highest 64-bit numbers and their neighbours.
_ABSURD = (2**63 - 1, -(2**63), 2**63 - 2, -(2**63) + 1)
_SMALL = 1000
_NO_JSON = (b"", b"{", b"[]", b"null", b"\xff\xfe\x00", b"[" * 100_000, b"9" * 5000, b'{"version":1}')


class Forger:
    """A foreign producer to the ticks topic.

    Args:
        servers: bootstrap servers of the cluster.
        topic: name of the ticks topic.
    """

    def __init__(self, servers: str, topic: str) -> None:
        self._topic = topic
        self._producer = KafkaProducer(bootstrap_servers=servers, acks="all")

    def close(self) -> None:
        """Disconnect."""
        self._producer.close(_ACK_S)

    def write_tick(self, messages: list[dict[str, Any]], tick_ms: int, record_ms: int | None = None) -> None:
        """Write the messages of a tick. Like a collector's, the end of the tick has its first offset.

        Args:
            messages: messages of the tick, the end last.
            tick_ms: time of the tick, epoch milliseconds.
            record_ms: timestamp of the records, epoch milliseconds; now if None.
        """
        first: int | None = None
        for message in messages:
            is_alert_kind = message["kind"] in ALERT_KINDS
            if message["kind"] == "tick_end":
                message["first_offset"] = first
            made = record(message, tick_ms)
            offset = self.write(made.key, made.value, ALERT_PARTITION if is_alert_kind else _HISTORY, record_ms)
            first = offset if first is None and is_alert_kind else first

    def write(self, key: bytes | None, value: bytes | None, partition: int, record_ms: int | None = None) -> int:
        """Write one record, and return its offset."""
        sent = self._producer.send(self._topic, value, key=key, partition=partition, timestamp_ms=record_ms)
        offset: int = sent.get(timeout=_ACK_S).offset
        return offset


def absurd(value: Any) -> Any:
    """Return a message value with every number above 1000 replaced by one at the edges of 64 bits."""
    if isinstance(value, dict):
        return {name: absurd(one) for name, one in value.items()}
    if isinstance(value, list):
        return [absurd(one) for one in value]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return _ABSURD[int(value) % len(_ABSURD)] if is_number and value > _SMALL else value


def poisoned(cluster: str, tick_ms: int) -> list[dict[str, Any]]:
    """Return the messages of a tick with absurd numbers in its rows and a valid envelope."""
    messages = tick(cluster, tick_ms)
    return [
        {name: absurd(value) if name in ("rows", "columns") else value for name, value in message.items()}
        for message in messages
    ]


def write_poisoned(forger: Forger, cluster: str, now_ms: int) -> None:
    """Write ticks with absurd numbers, and ticks of the year 10000."""
    for number in range(_TIMES):
        forger.write_tick(poisoned(cluster, now_ms + number), now_ms + number)
        forger.write_tick(tick(cluster, YEAR_10000_MS + number), YEAR_10000_MS + number)


def write_ahead(forger: Forger, cluster: str, now_ms: int) -> None:
    """Write ticks almost an hour ahead, the most that a broker accepts. Some have records of that time too."""
    for number in range(_TIMES):
        ahead_ms = now_ms + _AHEAD_MS + number
        forger.write_tick(tick(cluster, ahead_ms), ahead_ms, ahead_ms if number % 2 else None)


def write_no_json(forger: Forger, cluster: str, now_ms: int) -> None:
    """Write bytes that are not valid JSON or no message, with valid keys and without."""
    end = tick(cluster, now_ms)[-1]
    key = record(end, now_ms).key
    for value in _NO_JSON:
        for of_record in (key, value, None):
            for partition in (ALERT_PARTITION, _HISTORY):
                forger.write(of_record, value, partition)
    # Half of a message.
    whole = json.dumps(end).encode()
    forger.write(key, whole[: len(whole) // 2], ALERT_PARTITION)
    forger.write(key, None, ALERT_PARTITION)


def write_unknown_clusters(forger: Forger, cluster: str, now_ms: int) -> None:
    """Write ticks of clusters that are not configured."""
    for number in range(_CLUSTERS):
        forger.write_tick(tick(f"{cluster}-{number}", now_ms), now_ms)


@dataclass(frozen=True, kw_only=True)
class Forged(Scenario):
    """A foreign producer writes to the ticks topic.

    Attributes:
        write: writes, given the producer, the name of the cluster and the time in epoch milliseconds.
    """

    write: Callable[[Forger, str, int], None]

    def begin(self, context: ScenarioContext) -> None:
        """Write the messages."""
        forger = Forger(context.bench.bootstrap_servers, context.ticks.name)
        with closing(forger):
            self.write(forger, context.bench.settings.cluster.name, time.time_ns() // 1_000_000)


SCENARIOS: tuple[Scenario, ...] = (
    Forged(name="poisoned_ticks", title="ticks with absurd numbers, and of the year 10000", write=write_poisoned),
    Forged(name="ticks_ahead", title="ticks of an hour ahead", write=write_ahead),
    Forged(name="no_json", title="bytes that are no message", write=write_no_json),
    Forged(name="unknown_clusters", title="ticks of thirty unknown clusters", write=write_unknown_clusters),
)
