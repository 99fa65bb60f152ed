"""One look at the whole cluster: metadata, then every broker, then the rows of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cluster.collector.clock import Clock, ClockSteps, on_one_clock
from cluster.collector.tick_builder import Rows, TickBuilder, unanswered
from cluster.metadata.snapshot_reader import SnapshotReader
from cluster.metadata.staleness import StalenessDetector
from cluster.metadata.throttled_partitions import ReadPlanner, watched_partitions
from cluster.metrics.broker_reads import BrokerMetricsReader
from cluster.model import BrokerRead, Snapshot

_CLOCK = Clock()


@dataclass(frozen=True)
class Observation:
    """What one look gave.

    Attributes:
        tick_ms: its time; another than was given if the clock was set meanwhile.
        rows: by kind of message.
        unanswered: brokers whose rows are missing, with the reason.
        metadata_age_ms: how long before the look its oldest metadata was read, milliseconds.
    """

    tick_ms: int
    rows: Rows
    unanswered: list[dict[str, Any]]
    metadata_age_ms: int


class Observer:
    """Looks at the cluster once per tick.

    Args:
        metadata: reads snapshots.
        readers: reads the brokers.
        builder: makes the rows.
        timeout_s: longest wait for the brokers, seconds.
        clock: by which ticks and readings have their times.
    """

    def __init__(
        self,
        metadata: SnapshotReader,
        readers: BrokerMetricsReader,
        builder: TickBuilder,
        timeout_s: float,
        clock: Clock = _CLOCK,
    ) -> None:
        self._metadata = metadata
        self._readers = readers
        self._builder = builder
        self._timeout_s = timeout_s
        self._plans = ReadPlanner()
        self._staleness = StalenessDetector()
        self._clock = clock
        self._steps = ClockSteps(clock)

    def observe(self, tick_ms: int) -> Observation:
        """Return what is seen of the cluster now.

        Raises:
            MetadataError: the cluster's metadata could not be read.
            HeadroomError: no broker could be reached at all.
        """
        self._follow_clock()
        snapshot = self._metadata.snapshot()
        watched = watched_partitions(snapshot)
        began_s = self._clock.elapsed_s()
        reads = self._readers.read(snapshot.brokers, self._plans.of(snapshot, watched), self._timeout_s)
        step_ms = self._follow_clock()
        if step_ms:
            tick_ms += step_ms
            reads = self._on_one_clock(reads, began_s, step_ms)
        self._metadata.mark_stale(self._staleness.contradicted_topics(snapshot, reads))
        rows = self._builder.rows(tick_ms, snapshot, reads, watched)
        return Observation(tick_ms, rows, unanswered(snapshot, reads), _oldest_ms(snapshot))

    def _follow_clock(self) -> int:
        """Move what is kept along if the clock was set since the last call; return by how much, milliseconds."""
        step_ms = self._steps.step_ms()
        if step_ms:
            self._builder.shift(step_ms)
        return step_ms

    def _on_one_clock(self, reads: Mapping[int, BrokerRead], began_s: float, step_ms: int) -> dict[int, BrokerRead]:
        # Times are cut to whole milliseconds, and to begin a reading takes less than one.
        until_ms = self._clock.now_ms() + 1
        from_ms = until_ms - int((self._clock.elapsed_s() - began_s) * 1000) - 2
        return {
            broker: read
            if read.metrics is None
            else replace(read, metrics=on_one_clock(read.metrics, from_ms, until_ms, step_ms))
            for broker, read in reads.items()
        }


def _oldest_ms(snapshot: Snapshot) -> int:
    return max(snapshot.ages_ms.values(), default=0)
