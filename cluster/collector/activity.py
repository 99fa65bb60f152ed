"""Follows the alert partition by the keys of its records: whether something moves, and how far the partition has grown.

The record and gold jobs commit seldom while nothing moves. They read with Spark, where a look at the partition costs as
much as a batch. Reading the keys of some records each tick costs next to nothing.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

from headroom.cluster.collector.ticks_topic import alert_partition_consumer
from headroom.schemas.config import Settings

log = logging.getLogger(__name__)

# A cluster is quiet after this time without a partition that moves, is listed or is under-replicated. A restarted
# broker's partitions get their leaders back within it, or by Kafka's own balancing 5 minutes later.
_QUIET_AFTER_S = 60.0
_POLL_MS, _RETRY_S = 1000, 5.0
# Without a record for this long a new consumer takes over. A consumer reports no error when all brokers that it knows
# are gone, and what was seen before would pass for the state of now.
_SILENCE_S, _SILENT_TICKS = 120.0, 5
# The broker answers at once when a record comes, so the wait delays nothing.
_FETCH_WAIT_MS = 5000
# Only the keys are of interest.
_FETCH_BYTES = 262_144


class RecordedActivity:
    """What the records of the alert partition show.

    Args:
        now_s: monotonic seconds.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._end_offset: int | None = None
        self._moved_s: float | None = None
        self._has_tick = False

    def add(self, offset: int, key: bytes | None) -> None:
        """Note a record.

        Args:
            offset: its offset.
            key: its key: the envelope of the message, or just its kind.
        """
        kind = _kind(key)
        if kind == "moves":
            self._moved_s = self._now_s()
        self._has_tick = self._has_tick or kind == "tick_end"
        self._end_offset = offset + 1

    def forget(self) -> None:
        """Forget everything, because records may have been missed."""
        self._end_offset, self._moved_s, self._has_tick = None, None, False

    def is_quiet(self) -> bool:
        """Return whether nothing has moved for a minute; false before the first tick."""
        moved_s = self._moved_s
        return self._has_tick and (moved_s is None or self._now_s() - moved_s >= _QUIET_AFTER_S)

    def records_from(self, offset: int) -> int | None:
        """Return how many records there are from an offset on; None if unknown."""
        end_offset = self._end_offset
        return None if end_offset is None else max(0, end_offset - offset)


def _kind(key: bytes | None) -> str | None:
    """Return the kind of a message by its key; None if the key does not show it."""
    try:
        envelope: Any = json.loads(key or b"")
    except (ValueError, RecursionError):
        return None if key is None else key.decode(errors="replace")
    return envelope.get("kind") if isinstance(envelope, dict) else None


class AlertPartitionActivity:
    """Follows the alert partition on a thread of its own, from its end on.

    Args:
        settings: all settings.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._seen = RecordedActivity()
        self._silence_s = max(_SILENCE_S, _SILENT_TICKS * settings.collect.interval_s)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ticks-activity", daemon=True)

    def start(self) -> None:
        """Start to follow; a second call does nothing."""
        if self._thread.ident is None:
            self._thread.start()

    def stop(self) -> None:
        """Stop following, without waiting."""
        self._ended.set()

    def is_quiet(self) -> bool:
        """Return whether nothing has moved for a minute; false if unknown."""
        return self._seen.is_quiet()

    def records_from(self, offset: int) -> int | None:
        """Return how many records the partition has from an offset on; None if unknown."""
        return self._seen.records_from(offset)

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self._follow()
            # Whatever it is: without it, commits follow their triggers.
            except Exception as error:
                log.debug("the alert partition is not followed at the moment: %s", type(error).__name__)
            self._seen.forget()
            self._ended.wait(_RETRY_S)

    def _follow(self) -> None:
        consumer, partition = alert_partition_consumer(
            self._settings,
            fetch_max_wait_ms=min(_FETCH_WAIT_MS, self._settings.ticks_cluster().request_timeout_ms // 2),
            max_partition_fetch_bytes=_FETCH_BYTES,
        )
        with closing(consumer):
            heard_s = time.monotonic()
            while not self._ended.is_set() and time.monotonic() - heard_s < self._silence_s:
                for record in consumer.poll(timeout_ms=_POLL_MS).get(partition, ()):
                    self._seen.add(record.offset, record.key)
                    heard_s = time.monotonic()
