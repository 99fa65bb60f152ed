"""One observation of the cluster: reads the metadata, then every broker, and builds the rows of a tick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from headroom.cluster.collector.clock import Clock, ClockSteps, on_one_clock
from headroom.cluster.collector.load.load_collector import LoadCollector
from headroom.cluster.collector.migration.migration_collector import MigrationCollector
from headroom.cluster.collector.migration.throttled import add_throttles
from headroom.cluster.collector.tick_builder import Rows, TickBuilder, unanswered_brokers
from headroom.cluster.metadata.snapshot_reader import SnapshotReader
from headroom.cluster.metadata.staleness import StalenessDetector
from headroom.cluster.metadata.throttled_partitions import watched_partitions
from headroom.cluster.metrics.broker_reads import BrokerMetricsReader
from headroom.cluster.metrics.read_planner import ReadPlanner
from headroom.cluster.model import BrokerRead

_CLOCK = Clock()


@dataclass(frozen=True)
class Observation:
    """Result of one observation.

    Attributes:
        tick_ms: time of the tick, epoch milliseconds; shifted if the clock was set meanwhile.
        rows: rows by kind of message.
        unanswered: brokers whose rows are missing, with the reason.
        metadata_age_ms: age of its oldest metadata, milliseconds.
        is_none_migrating: whether it is known that no migration is agreed about; false if that was not read.
    """

    tick_ms: int
    rows: Rows
    unanswered: list[dict[str, Any]]
    metadata_age_ms: int
    is_none_migrating: bool = False


class Observer:
    """Observes the cluster once per tick.

    Args:
        metadata: reads snapshots of the metadata.
        readers: reads the brokers' metrics and rates.
        builder: builds the rows.
        timeout_s: longest wait for the brokers, seconds.
        clock: clock of ticks and readings.
        load: collects loads apart from the ticks; None: they are not collected.
        migrations: reads the clusters of migrations apart from the ticks; None: there is no origin.
    """

    def __init__(
        self,
        metadata: SnapshotReader,
        readers: BrokerMetricsReader,
        builder: TickBuilder,
        timeout_s: float,
        clock: Clock = _CLOCK,
        load: LoadCollector | None = None,
        migrations: MigrationCollector | None = None,
    ) -> None:
        self._metadata = metadata
        self._readers = readers
        self._builder = builder
        self._timeout_s = timeout_s
        self._plans = ReadPlanner()
        self._staleness = StalenessDetector()
        self._clock = clock
        self._load = load
        self._migrations = migrations
        self._steps = ClockSteps(clock)

    def observe(self, tick_ms: int) -> Observation:
        """Read the cluster now and return the rows of a tick.

        Raises:
            MetadataError: the cluster's metadata could not be read.
            HeadroomError: no broker could be reached at all.
        """
        self._follow_clock()
        if self._migrations is not None:
            # Beside the reads of the tick, so that this tick may have them.
            self._migrations.start_due()
        snapshot = self._metadata.snapshot()
        watched = watched_partitions(snapshot)
        began_s = self._clock.elapsed_s()
        plans = self._plans.of(snapshot, watched)
        reads = self._readers.read(snapshot.brokers, plans, self._timeout_s)
        step_ms = self._follow_clock()
        if step_ms:
            tick_ms += step_ms
            reads = self._on_one_clock(reads, began_s, step_ms)
        self._metadata.mark_stale(self._staleness.contradicted_topics(snapshot, reads))
        answered = {broker for broker, read in reads.items() if read.metrics is not None}
        load_rows, load_meters = self._load.rows(snapshot, answered) if self._load is not None else ({}, [])
        rows = self._builder.rows(tick_ms, snapshot, reads, watched, load_meters) | load_rows
        if self._migrations is not None and (migrating := self._migrations.rows()):
            add_throttles(migrating, snapshot)
            rows["migrations"] = migrating
            if syncs := self._migrations.sync_rows():
                rows["migration_syncs"] = syncs
        if self._load is not None:
            # Not together with the reads of the tick, which would have to share the brokers' time with these.
            self._load.start_due(snapshot, plans)
        oldest_ms = max(snapshot.ages_ms.values(), default=0)
        is_none_migrating = self._migrations is not None and self._migrations.is_none_agreed
        return Observation(tick_ms, rows, unanswered_brokers(snapshot, reads), oldest_ms, is_none_migrating)

    def _follow_clock(self) -> int:
        """Shift all kept times if the clock was set since the last call; return the step in milliseconds."""
        step_ms = self._steps.step_ms()
        if step_ms:
            self._builder.shift(step_ms)
            self._readers.discard_late()
            if self._load is not None:
                self._load.shift(step_ms)
            if self._migrations is not None:
                self._migrations.shift()
        return step_ms

    def _on_one_clock(self, reads: Mapping[int, BrokerRead], began_s: float, step_ms: int) -> dict[int, BrokerRead]:
        # One millisecond of tolerance at each end, because times are truncated to milliseconds.
        until_ms = self._clock.now_ms() + 1
        from_ms = until_ms - int((self._clock.elapsed_s() - began_s) * 1000) - 2
        return {
            broker: read
            if read.metrics is None
            else replace(read, metrics=on_one_clock(read.metrics, from_ms, until_ms, step_ms))
            for broker, read in reads.items()
        }
