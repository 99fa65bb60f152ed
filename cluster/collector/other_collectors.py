"""Another collector of the same cluster, found by the ends of its ticks: who started later yields."""

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

from cluster.connection.admin_connection import ticks_options
from schemas.config import Settings
from schemas.errors import HeadroomError
from schemas.text import one_line
from schemas.tick_messages import ALERT_PARTITION

log = logging.getLogger(__name__)

# One whose watch was killed goes on for a tick; what goes on for longer than this is no remainder.
_REMAINS_S, _REMAINS_TICKS = 3.0, 2
_LISTENS_S, _LISTENS_TICKS = 10.0, 5
_POLL_MS = 500
# The envelope comes first, with the kind of the message; of a cluster with a long name the value is parsed in vain.
_HEAD_BYTES = 1000
_MOST_CHARACTERS = 100


@dataclass(frozen=True, order=True)
class CollectorId:
    """Which collector wrote a tick; the order is by start.

    Attributes:
        collector_started_ms: when it was started, by its own clock, epoch milliseconds.
        collector_host: name of its machine.
        collector_pid: its process there.
    """

    collector_started_ms: int
    collector_host: str
    collector_pid: int

    @classmethod
    def own(cls, now_ms: int) -> CollectorId:
        """Return that of this process."""
        return cls(now_ms, socket.gethostname(), os.getpid())

    @classmethod
    def of(cls, end: Mapping[str, Any]) -> CollectorId | None:
        """Return that of a tick by what its end says; None: it does not tell."""
        try:
            return cls(int(end["collector_started_ms"]), str(end["collector_host"]), int(end["collector_pid"]))
        except (KeyError, TypeError, ValueError, OverflowError):
            return None

    def columns(self) -> dict[str, Any]:
        """Return it in the columns of ``schemas.tick_messages.TICK_END``."""
        return asdict(self)

    def __str__(self) -> str:
        return one_line(f"pid {self.collector_pid} on host {self.collector_host}", _MOST_CHARACTERS)


class Rivals:
    """Decides from the ends of ticks whether another collector goes on.

    Args:
        cluster: name of the cluster.
        own: which collector this is.
        interval_s: time from tick to tick, seconds.
    """

    def __init__(self, cluster: str, own: CollectorId, interval_s: float) -> None:
        self._cluster = cluster
        self._own = own
        self._remains_s = max(_REMAINS_S, _REMAINS_TICKS * interval_s)
        self.listens_s = max(_LISTENS_S, _LISTENS_TICKS * interval_s)
        self._first_s: dict[CollectorId, float] = {}

    def yields_to(self, end: bytes, now_s: float) -> CollectorId | None:
        """Return the collector that this one has to leave the cluster to; None: there is none so far.

        Args:
            end: value of a record of the alert lane.
            now_s: when it came, seconds that pass evenly.
        """
        # Most of the lane is rows, and large.
        if b'"tick_end"' not in end[:_HEAD_BYTES]:
            return None
        try:
            told = json.loads(end)
        except (ValueError, RecursionError):
            return None
        if not isinstance(told, dict) or told.get("cluster") != self._cluster:
            return None
        other = CollectorId.of(told)
        if other is None or other == self._own:
            return None
        goes_on = now_s - self._first_s.setdefault(other, now_s) >= self._remains_s
        return other if goes_on and not self._is_later(other, told) else None

    def _is_later(self, other: CollectorId, end: Mapping[str, Any]) -> bool:
        """Return whether another one is as new as this one, and started later: that one is about to yield."""
        tick_ms = end.get("started_ms")
        is_new = isinstance(tick_ms, int) and tick_ms - other.collector_started_ms < self.listens_s * 1000
        return is_new and other > self._own


class OtherCollectors:
    """Listens to the alert lane for a while after the start, on a thread of its own.

    Args:
        settings: all settings.
        own: which collector this is.
        found: called once if another one goes on.
    """

    def __init__(self, settings: Settings, own: CollectorId, found: Callable[[], None]) -> None:
        self._settings = settings
        self._rivals = Rivals(settings.cluster.name, own, settings.collect.interval_s)
        self._found = found
        self._ended = threading.Event()
        self.other: CollectorId | None = None

    def start(self) -> None:
        """Begin to listen: to what comes from now on."""
        threading.Thread(target=self._listen, name="other-collectors", daemon=True).start()

    def stop(self) -> None:
        """Listen no more."""
        self._ended.set()

    def require_none(self) -> None:
        """Check that this one need not yield.

        Raises:
            HeadroomError: another collector of this cluster was found.
        """
        if self.other is not None:
            rule = f"another one writes its ticks: {self.other}"
            remedy = "One is enough. End that one first, or keep this one as a spare that is started now and then."
            raise HeadroomError(f"collector of cluster {self._settings.cluster.name}", rule, remedy)

    def _listen(self) -> None:
        try:
            options = ticks_options(self._settings)
            consumer = KafkaConsumer(**options, group_id=None, enable_auto_commit=False, auto_offset_reset="latest")
            with closing(consumer):
                self._follow(consumer)
        # A right to read is none that a collector needs.
        except (KafkaError, HeadroomError, OSError, ValueError) as error:
            log.debug("other collectors are not looked for: %s", type(error).__name__)

    def _follow(self, consumer: KafkaConsumer) -> None:
        lane = TopicPartition(self._settings.ticks.topic, ALERT_PARTITION)
        consumer.assign([lane])
        consumer.seek_to_end(lane)
        until_s = time.monotonic() + self._rivals.listens_s
        while time.monotonic() < until_s and not self._ended.is_set():
            for record in consumer.poll(timeout_ms=_POLL_MS).get(lane, ()):
                other = self._rivals.yields_to(record.value or b"", time.monotonic())
                if other is not None:
                    self.other = other
                    self._found()
                    return
