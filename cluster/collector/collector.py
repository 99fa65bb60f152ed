"""The collector: observes the cluster once per interval and publishes each observation as a tick."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from headroom.cluster.collector.clock import Clock
from headroom.cluster.collector.load.load_collector import LoadCollector
from headroom.cluster.collector.migration.migration_collector import MigrationCollector
from headroom.cluster.collector.observation import Observer
from headroom.cluster.collector.other_collectors import CollectorId, OtherCollectors
from headroom.cluster.collector.pacing import FixedRateSchedule, ScheduledTick
from headroom.cluster.collector.publisher import Publisher, PublishError, SentMessages, TickTiming, tick_end
from headroom.cluster.collector.rows.encoder import Message, encode_rows
from headroom.cluster.collector.tick_builder import TickBuilder
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.connection.failover import MetadataError
from headroom.cluster.metadata.snapshot_reader import SnapshotReader
from headroom.cluster.metrics.broker_reads import BrokerMetricsReader
from headroom.cluster.metrics.factory import metrics_sources
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError

log = logging.getLogger(__name__)
# The first rates are over this time at least. Over one second the write rate of a producer that sends in batches was
# seen at 2.5 times its mean just after a start, and alerts and advice with it.
_FIRST_SPAN_S = 2.5
# Interval of the log line with the tick counters.
_LOG_EVERY_S = 60.0


class TickSink(Protocol):
    """Destination of ticks: the ticks topic, or a test double."""

    def open(self) -> None:
        """Connect. Raises HeadroomError."""

    def send(self, messages: list[Message]) -> SentMessages:
        """Write a tick's messages and return what was acknowledged. Raises PublishError."""
        ...

    def send_end(self, cluster: str, tick_ms: int, seq: int, end: dict[str, Any]) -> None:
        """Write the ``tick_end`` message. Raises PublishError."""

    def close(self) -> None:
        """Disconnect."""


@dataclass(frozen=True)
class TickReport:
    """Result of one tick.

    Attributes:
        tick_ms: time of the tick, epoch milliseconds.
        duration_s: time to collect and publish it, seconds.
        messages: messages written, by kind.
        rows: rows written, by kind.
        unanswered: brokers whose rows are missing, with the reason.
        failed: error text; None if the tick was written completely.
    """

    tick_ms: int
    duration_s: float
    messages: dict[str, int]
    rows: dict[str, int]
    unanswered: list[dict[str, Any]]
    failed: str | None


class Collector:
    """Collects ticks and writes them to a sink.

    Args:
        settings: all settings.
        sink: destination of ticks; None: the ticks topic.
        on_tick: called with the report of every tick.
        clock: source of the ticks' times; None: this machine's clock.
    """

    def __init__(
        self,
        settings: Settings,
        sink: TickSink | None = None,
        on_tick: Callable[[TickReport], None] | None = None,
        clock: Clock | None = None,
    ) -> None:
        collect = settings.collect
        self._settings = settings
        self._window_ms = int(collect.window_s() * 1000)
        self._interval_ms = int(collect.interval_s * 1000)
        self._connection = AdminConnection(settings.cluster)
        self._source, load_source = metrics_sources(collect)
        metadata = SnapshotReader(
            self._connection,
            collect.timeout_s(),
            collect.topic_config_max_age_s,
            metadata_max_age_s=collect.metadata_max_age_s,
        )
        broker_reader = BrokerMetricsReader(self._connection, self._source, collect)
        builder = TickBuilder(self._window_ms, self._interval_ms)
        self._clock = clock or Clock()
        admin, volumes = AdminConnection(settings.cluster), settings.cluster.log_dir_volumes
        self._load = LoadCollector(collect, load_source, admin, self._clock, volumes)
        has_origin = bool(settings.migration.origin.bootstrap_servers)
        self._migrations = MigrationCollector(settings, self._clock) if has_origin else None
        self._observer = Observer(
            metadata, broker_reader, builder, collect.timeout_s(), self._clock, self._load, self._migrations
        )
        # A tick that cannot be written must not delay the next observation by much more than one interval.
        self._sink = sink or Publisher(settings, max(1.0, 0.8 * collect.interval_s))
        # None before ``open``.
        self._id: CollectorId | None = None
        self._is_alone = sink is not None
        self._on_tick = on_tick or (lambda report: None)

    def open(self) -> None:
        """Connect to the cluster, start the metrics source and open the sink.

        Raises:
            HeadroomError: the cluster or the ticks topic cannot be reached, or Java is missing.
        """
        self._connection.client()
        self._source.start()
        self._sink.open()
        # Others take it for new from its first tick on, and not from before it could write one.
        self._id = CollectorId.own(self._clock.now_ms())

    def run(self, stop: threading.Event) -> None:
        """Collect ticks until ``stop`` is set; this method sets it if another collector serves the cluster.

        Raises:
            HeadroomError: the cluster or the ticks topic cannot be reached at the start, Java is missing, or another
                collector writes ticks of this cluster.
        """
        try:
            self.open()
            assert self._id is not None, "open() has set it"
            others = OtherCollectors(self._settings, self._id, stop.set)
            try:
                if not self._is_alone:
                    others.start()
                interval_s = self._settings.collect.interval_s
                run_paced(interval_s, self._tick_or_report, stop, second_after_s=_FIRST_SPAN_S)
                others.require_none()
            finally:
                others.stop()
        finally:
            self.close()

    def close(self) -> None:
        """Close every connection, and stop the gateway JVM if the source is JMX."""
        self._source.stop()
        self._load.close()
        if self._migrations is not None:
            self._migrations.close()
        self._sink.close()
        self._connection.close()

    def tick(self, lateness_ms: int = 0, skipped_ticks: int = 0) -> TickReport:
        """Collect and write one tick and return its report.

        Raises:
            MetadataError: the cluster's metadata could not be read; nothing was written.
            PublishError: a message was not acknowledged; there is no ``tick_end``.
            HeadroomError: no broker could be reached at all.
        """
        began_s = self._clock.elapsed_s()
        observation = self._observer.observe(self._clock.now_ms())
        tick_ms = observation.tick_ms
        messages = encode_rows(self._settings.cluster.name, tick_ms, observation.rows)
        sent = self._sink.send(messages)
        # The end is by elapsed time, because the wall clock may have been set since the tick began.
        ended_ms = tick_ms + int((self._clock.elapsed_s() - began_s) * 1000)
        end = tick_end(
            sent,
            TickTiming(tick_ms, ended_ms, self._interval_ms, self._window_ms, lateness_ms, skipped_ticks),
            unanswered=observation.unanswered,
            metadata_age_ms=observation.metadata_age_ms,
            collector=self._id,
            is_none_migrating=observation.is_none_migrating,
        )
        self._sink.send_end(self._settings.cluster.name, tick_ms, len(messages), end)
        if self._migrations is not None:
            self._migrations.confirm_sync_rows()
        counts = {kind: len(of_kind) for kind, of_kind in observation.rows.items()}
        duration_s = self._clock.elapsed_s() - began_s
        return TickReport(tick_ms, duration_s, sent.messages, counts, observation.unanswered, None)

    def _tick_or_report(self, scheduled: ScheduledTick, lateness_s: float) -> bool:
        start = time.monotonic()
        try:
            report = self.tick(int(lateness_s * 1000), scheduled.skipped)
        except (MetadataError, PublishError, HeadroomError) as error:
            log.error("tick left out: %s", error)
            report = self._failed_tick(start, str(error))
        except Exception as error:  # costs this tick only; the next one may succeed
            log.exception("tick left out")
            report = self._failed_tick(start, f"unexpected {type(error).__name__}: {error}")
            # A client whose I/O thread died would fail every tick: reconnect.
            with contextlib.suppress(Exception):
                self._connection.close()
        self._on_tick(report)
        return report.failed is None

    def _failed_tick(self, start_s: float, reason: str) -> TickReport:
        return TickReport(self._clock.now_ms(), time.monotonic() - start_s, {}, {}, [], reason)


def run_paced(
    interval_s: float,
    tick: Callable[[ScheduledTick, float], bool],
    stop: threading.Event,
    clock: Callable[[], float] = time.monotonic,
    second_after_s: float = 0.0,
) -> None:
    """Run ticks at a fixed rate until ``stop`` is set.

    Args:
        interval_s: time from tick to tick, seconds.
        tick: called with the scheduled tick and its lateness in seconds; returns whether it was written.
        stop: ends the loop.
        clock: monotonic seconds.
        second_after_s: least time from the first tick to the second, seconds.
    """
    schedule = FixedRateSchedule(clock(), interval_s, second_after_s)
    counters = TickCounters(clock())
    while not stop.is_set():
        scheduled = schedule.next(clock())
        if stop.wait(max(0.0, scheduled.at_s - clock())):
            return
        began = clock()
        written = tick(scheduled, max(0.0, began - scheduled.at_s))
        counters.count(written, scheduled.skipped, clock() - began)
        counters.report(clock())


class TickCounters:
    """Counts ticks and logs the counts once a minute."""

    def __init__(self, now_s: float) -> None:
        self._reset(now_s)

    def _reset(self, now_s: float) -> None:
        self._since_s = now_s
        self._written = self._failed = self._skipped = 0
        self._longest_s = 0.0

    def count(self, written: bool, skipped: int, duration_s: float) -> None:
        """Count one tick and the ticks skipped before it; ``duration_s`` is its run time in seconds."""
        self._written += written
        self._failed += not written
        self._skipped += skipped
        self._longest_s = max(self._longest_s, duration_s)

    def report(self, now_s: float) -> None:
        """Log and reset the counts if a minute has passed."""
        if now_s - self._since_s < _LOG_EVERY_S:
            return
        log.info(
            "%d ticks written, %d failed, %d skipped; longest %.2f s",
            self._written,
            self._failed,
            self._skipped,
            self._longest_s,
        )
        self._reset(now_s)
