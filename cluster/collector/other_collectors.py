"""Detection of another collector of the same cluster by its ``tick_end`` messages; the later one yields."""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from headroom.cluster.collector.ticks_topic import alert_partition_consumer
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text import one_line

log = logging.getLogger(__name__)

# A collector whose watch process was killed runs on for one tick; one that runs longer than this is active.
_ACTIVE_AFTER_S, _ACTIVE_AFTER_TICKS = 3.0, 2
# Time after the start during which a collector checks for others.
_LISTEN_S, _LISTEN_TICKS = 10.0, 5
_POLL_MS = 500
# The envelope with the message kind is at the start; this is enough unless the cluster's name is very long.
_ENVELOPE_BYTES = 1000
_MOST_CHARACTERS = 100


@dataclass(frozen=True, order=True)
class CollectorId:
    """Identity of a collector process; ordered by start time.

    Attributes:
        collector_started_ms: start time by its own clock, epoch milliseconds.
        collector_host: host name of its machine.
        collector_pid: its process id there.
    """

    collector_started_ms: int
    collector_host: str
    collector_pid: int

    @classmethod
    def own(cls, now_ms: int) -> CollectorId:
        """Return the identity of this process; ``now_ms`` is its start time."""
        return cls(now_ms, socket.gethostname(), os.getpid())

    @classmethod
    def of(cls, end: Mapping[str, Any]) -> CollectorId | None:
        """Return the collector that a ``tick_end`` names; None if it names none."""
        try:
            return cls(int(end["collector_started_ms"]), str(end["collector_host"]), int(end["collector_pid"]))
        except (KeyError, TypeError, ValueError, OverflowError):
            return None

    def columns(self) -> dict[str, Any]:
        """Return the identity in the columns of ``schemas.tick_messages.TICK_END``."""
        return asdict(self)

    def __str__(self) -> str:
        return one_line(f"pid {self.collector_pid} on host {self.collector_host}", _MOST_CHARACTERS)


class Rivals:
    """Decides from ``tick_end`` messages whether another collector is active.

    Args:
        cluster: name of the cluster.
        own: identity of this collector.
        interval_s: time from tick to tick, seconds.
    """

    def __init__(self, cluster: str, own: CollectorId, interval_s: float) -> None:
        self._cluster = cluster
        self._own = own
        self._active_after_s = max(_ACTIVE_AFTER_S, _ACTIVE_AFTER_TICKS * interval_s)
        self.listen_s = max(_LISTEN_S, _LISTEN_TICKS * interval_s)
        self._first_s: dict[CollectorId, float] = {}

    def yields_to(self, end: bytes, now_s: float) -> CollectorId | None:
        """Return the collector that this one must yield to; None if there is none so far.

        Args:
            end: value of a record of the alert partition.
            now_s: arrival time of the record, monotonic seconds.
        """
        # Most records of the alert partition are large rows: skip them without parsing.
        if b'"tick_end"' not in end[:_ENVELOPE_BYTES]:
            return None
        try:
            tick = json.loads(end)
        except (ValueError, RecursionError):
            return None
        if not isinstance(tick, dict) or tick.get("cluster") != self._cluster:
            return None
        other = CollectorId.of(tick)
        if other is None or other == self._own:
            return None
        is_active = now_s - self._first_s.setdefault(other, now_s) >= self._active_after_s
        return other if is_active and not self._yields_to_us(other, tick) else None

    def _yields_to_us(self, other: CollectorId, end: Mapping[str, Any]) -> bool:
        """Return whether the other collector has just started, after this one: then it yields."""
        tick_ms = end.get("started_ms")
        # One whose clock was set back since its start has ticks from long before it.
        is_new = isinstance(tick_ms, int) and abs(tick_ms - other.collector_started_ms) < self.listen_s * 1000
        return is_new and other > self._own


class OtherCollectors:
    """Reads the alert partition for a while after the start, in a separate thread.

    Args:
        settings: all settings.
        own: identity of this collector.
        on_found: called once if another collector is active.
    """

    def __init__(self, settings: Settings, own: CollectorId, on_found: Callable[[], None]) -> None:
        self._settings = settings
        self._rivals = Rivals(settings.cluster.name, own, settings.collect.interval_s)
        self._on_found = on_found
        self._ended = threading.Event()
        self.other: CollectorId | None = None

    def start(self) -> None:
        """Start reading the records that arrive from now on."""
        threading.Thread(target=self._listen, name="other-collectors", daemon=True).start()

    def stop(self) -> None:
        """Stop reading."""
        self._ended.set()

    def require_none(self) -> None:
        """Check that this collector need not yield.

        Raises:
            HeadroomError: another collector of this cluster was found.
        """
        if self.other is not None:
            rule = f"another one writes its ticks: {self.other}"
            end = f"`kill {self.other.collector_pid}` there"
            remedy = f"One is enough. End that one first ({end}), or keep this one as a spare, started now and then."
            raise HeadroomError(f"collector of cluster {self._settings.cluster.name}", rule, remedy)

    def _listen(self) -> None:
        try:
            consumer, partition = alert_partition_consumer(self._settings)
            with closing(consumer):
                self._follow(consumer, partition)
        # The check is optional: a collector needs no read permission on the topic.
        except (KafkaError, HeadroomError, OSError, ValueError) as error:
            log.debug("the check for other collectors is skipped: %s", type(error).__name__)

    def _follow(self, consumer: KafkaConsumer, partition: TopicPartition) -> None:
        until_s = time.monotonic() + self._rivals.listen_s
        while time.monotonic() < until_s and not self._ended.is_set():
            for record in consumer.poll(timeout_ms=_POLL_MS).get(partition, ()):
                other = self._rivals.yields_to(record.value or b"", time.monotonic())
                if other is not None:
                    self.other = other
                    self._on_found()
                    return
