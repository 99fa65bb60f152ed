"""Collects loads and log directories apart from the ticks, and hands their rows to the tick after they were read."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from headroom.cluster.collector.clock import Clock
from headroom.cluster.collector.load.background_reads import BackgroundReads
from headroom.cluster.collector.load.load_samples import LoadSamples, broker_meter_columns
from headroom.cluster.collector.load.log_dir_rows import (
    REPLICA_SIZES,
    log_dir_gauges,
    log_dir_rows,
    replica_size_columns,
)
from headroom.cluster.collector.rows.columns import Columns, Row
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.log_dirs.describe import describe_broker_log_dirs
from headroom.cluster.metrics.mbeans import LOAD, ReadPlan
from headroom.cluster.metrics.missing_load import find_missing_load
from headroom.cluster.metrics.missing_metrics import describe_impossible, describe_missing
from headroom.cluster.metrics.source import MetricsSource
from headroom.cluster.model import Broker, Meter, Metrics, Reading, Snapshot
from headroom.planning.log_dirs.broker_logs import BrokerLogs
from headroom.schemas.config import CollectSettings, LogDirVolumes
from headroom.schemas.errors import HeadroomError

log = logging.getLogger(__name__)
# No tick waits for these reads, so that they may take longer than those of a tick.
_READ_S, _DESCRIBE_S = 10.0, 30.0
# Values are repeated in every tick until this many intervals have passed without another reading.
_STALE_INTERVALS = 3
# Rows of replicas in one tick; the other brokers follow in the next ones.
MOST_REPLICA_ROWS = 20_000


class LoadCollector:
    """Reads loads every ``collect.load_interval_s`` and log directories every ``collect.log_dirs_interval_s``.

    Args:
        collect: intervals and endpoints.
        source: source of the metrics, another one than that of the ticks.
        connection: admin connection of its own: a broker answers the requests of a connection in order, and takes long
            to describe many logs.
        clock: clock of ticks and readings.
        volumes: whether the log directories of a broker share a volume.
    """

    def __init__(
        self,
        collect: CollectSettings,
        source: MetricsSource,
        connection: AdminConnection,
        clock: Clock,
        volumes: LogDirVolumes = LogDirVolumes.ASSUMED,
    ) -> None:
        self._collect = collect
        self._source = source
        self._connection = connection
        self._clock = clock
        self._volumes = volumes
        self._connecting = threading.Lock()
        self._loads: BackgroundReads[Metrics] = BackgroundReads("loads", collect.load_interval_s)
        self._log_dirs: BackgroundReads[tuple[int, BrokerLogs]] = BackgroundReads(
            "log directories", collect.log_dirs_interval_s
        )
        self._samples = LoadSamples(collect.load_interval_s)
        self._described: dict[int, tuple[int, BrokerLogs]] = {}
        self._sizes: dict[int, dict[Meter, Reading]] = {}
        self._missing: dict[int, str | None] = {}

    def start_due(self, snapshot: Snapshot, plans: Mapping[int, ReadPlan]) -> None:
        """Start the reads that are due, without waiting for them.

        Args:
            snapshot: metadata of the tick.
            plans: what the tick has read of each broker that is up.
        """
        now_s, brokers = self._clock.elapsed_s(), sorted(plans)
        for broker in self._loads.due(brokers, now_s):
            self._loads.start(broker, now_s, self._load_read(snapshot.brokers[broker], plans[broker]))
        for broker in self._log_dirs.due(brokers, now_s):
            self._log_dirs.start(broker, now_s, self._log_dirs_read(broker))

    def rows(
        self, snapshot: Snapshot, answered: Collection[int]
    ) -> tuple[dict[str, Sequence[Row]], list[Mapping[str, Sequence[Any]]]]:
        """Return what was read since the last tick: rows by kind, and columns of the kind ``meters``.

        Args:
            snapshot: metadata of the tick.
            answered: brokers whose metrics the tick has. A broker that does not answer has no meters.
        """
        loads = self._loads.take()
        for broker, metrics in loads.items():
            self._samples.add(broker, metrics)
            self._note_missing(broker, metrics)
        alive = {broker for broker, registered in snapshot.brokers.items() if registered.alive}
        self._samples.keep_brokers(alive)
        now_ms = self._clock.now_ms()
        self._samples.drop_before(now_ms - int(_STALE_INTERVALS * 1000 * self._collect.load_interval_s))
        fresh = [broker for broker in self._samples.brokers if broker in loads]
        rows: dict[str, Sequence[Row]] = {}
        performance = [self._samples.performance_row(b, snapshot.brokers[b].rack) for b in fresh]
        if known := [row for row in performance if row is not None]:
            rows["broker_performance"] = known
        described = self._log_dirs.take()
        self._described |= described
        self._sizes |= {broker: log_dir_gauges(logs, read_ms) for broker, (read_ms, logs) in described.items()}
        rows |= self._log_dir_rows()
        return rows, [
            *self._samples.meter_columns(answered, fresh),
            *self._size_columns(answered, now_ms),
        ]

    def shift(self, step_ms: int) -> None:
        """Shift all kept times after the wall clock of this machine was set; what is being read is discarded."""
        self._samples.shift(step_ms)
        self._loads.discard_running()
        self._log_dirs.discard_running()
        self._described = {b: (read_ms + step_ms, logs) for b, (read_ms, logs) in self._described.items()}
        self._sizes = {
            broker: {meter: Reading(size.read_ms + step_ms, size.value) for meter, size in sizes.items()}
            for broker, sizes in self._sizes.items()
        }

    def close(self) -> None:
        """Close every connection."""
        self._source.stop()
        self._connection.close()

    def _load_read(self, broker: Broker, plan: ReadPlan) -> Callable[[], Metrics]:
        endpoint = self._collect.endpoint(broker.broker, broker.host) or f"broker {broker.broker}"
        load_plan = ReadPlan(plan.topics, (), (), plan.replicas, plan.follows, LOAD)
        return lambda: self._source.read(broker.broker, endpoint, load_plan, _READ_S)

    def _log_dirs_read(self, broker: int) -> Callable[[], tuple[int, BrokerLogs]]:
        def read() -> tuple[int, BrokerLogs]:
            # The client is made at first use, and several threads would each make one.
            with self._connecting:
                self._connection.client()
            try:
                logs = describe_broker_log_dirs(self._connection, broker, _DESCRIBE_S, self._volumes)
            except HeadroomError:
                raise
            except Exception:
                # A client whose I/O thread died would fail every time: reconnect.
                with contextlib.suppress(Exception):
                    self._connection.close()
                raise
            return self._clock.now_ms(), logs

        return read

    def _log_dir_rows(self) -> dict[str, Sequence[Row]]:
        """Return the rows of described brokers, as many as a tick carries."""
        directories: list[Row] = []
        sizes: list[Mapping[str, Sequence[Any]]] = []
        count = 0
        for broker, (read_ms, logs) in list(self._described.items()):
            own = len(logs.logs) + len(logs.futures)
            if count and count + own > MOST_REPLICA_ROWS:
                break
            del self._described[broker]
            count += own
            directories += log_dir_rows(logs, read_ms)
            sizes.append(replica_size_columns(logs, read_ms))
        if not directories:
            return {}
        return {"log_dirs": directories, "replica_sizes": Columns.concatenate(REPLICA_SIZES, sizes)}

    def _size_columns(self, answered: Collection[int], now_ms: int) -> Iterator[Mapping[str, Sequence[Any]]]:
        """Yield the latest sizes of log directories, as columns of the kind ``meters``."""
        oldest_ms = now_ms - int(_STALE_INTERVALS * 1000 * self._collect.log_dirs_interval_s)
        self._sizes = {
            broker: sizes
            for broker, sizes in self._sizes.items()
            if all(size.read_ms >= oldest_ms for size in sizes.values())
        }
        for broker, sizes in sorted(self._sizes.items()):
            if broker in answered:
                yield broker_meter_columns(broker, {}, sizes)

    def _note_missing(self, broker: int, metrics: Metrics) -> None:
        """Log the loads that a broker leaves out, if they are others than at its last read."""
        described = describe_missing(find_missing_load(metrics), self._collect.source)
        text = " ".join(part for part in (describe_impossible(metrics), described) if part) or None
        if text != self._missing.get(broker):
            log.warning("broker %d: %s", broker, text or "no loads are missing any more")
        self._missing[broker] = text
