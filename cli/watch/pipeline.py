"""Shared by commands that run Spark jobs: start of the pipeline, and its supervision."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from headroom.alerts.engine import AlertEngine
from headroom.alerts.inputs.broker_load import BalanceAdvice
from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.alerts.metrics import MetricsState
from headroom.cli.config.several_files import ConfiguredClusters
from headroom.cli.watch.output.printer import VerdictPrinter
from headroom.cluster.collector.activity import AlertPartitionActivity
from headroom.cluster.collector.ticks_topic import ensure_topic
from headroom.cluster.metadata.cluster_size import partition_count
from headroom.cluster.secrets import sasl_password
from headroom.operations.receivers import build_receivers
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import TABLES
from headroom.streaming.delta.damage import LAYER, log_damages
from headroom.streaming.delta.locations import require_writable
from headroom.streaming.jobs.listener import AlertPathListener, CompositeListener
from headroom.streaming.session_profile import SessionProfile, is_submitted

if TYPE_CHECKING:
    from headroom.streaming.handover import Handover
    from headroom.streaming.pipeline import Pipeline


def require_store(settings: Settings, *, on_read_only_disk: bool = False) -> None:
    """Check that tables and checkpoints are writable, as far as this can be checked before Spark starts.

    Args:
        settings: all settings.
        on_read_only_disk: accept a file system that is read-only.

    Raises:
        HeadroomError: a folder is a file, or this user may not write there.
    """
    folder = settings.store.path.rstrip("/")
    for location in (folder, settings.store.checkpoints()):
        require_writable(location, on_read_only_disk=on_read_only_disk)
    for table in TABLES:
        try:
            require_writable(f"{folder}/{table.path}", on_read_only_disk=on_read_only_disk)
        except HeadroomError:
            # Alerts do not wait for the repair of a damaged table, but they need the folder of all of them.
            if all(damage.file == LAYER for damage in log_damages(f"{folder}/{table.path}")):
                raise


def build_pipeline(
    clusters: ConfiguredClusters,
    app_name: str,
    *,
    with_alerts: bool = True,
    is_restart: bool = False,
    handover: Handover | None = None,
) -> Pipeline:
    """Return a pipeline over a new Spark session, and create the ticks topic if it does not exist.

    Args:
        clusters: settings of all clusters.
        app_name: name of the Spark application.
        with_alerts: whether the alert path will run in the pipeline. It needs receivers, and a session of low latency.
            It also runs while the disk of the store is full or read-only.
        is_restart: whether this process has built a pipeline before. The store is no wrong setting then, and the alert
            path runs whatever has happened to it.
        handover: what the pipeline before this one has passed on; None if there was none.

    Raises:
        HeadroomError: jars are missing, the tables cannot be written, or the ticks topic cannot be reached.
    """
    # Only here, because commands that run no job answer faster without Spark's modules.
    from headroom.streaming.pipeline import Pipeline, PipelineConfig
    from headroom.streaming.session import build_session

    settings = clusters.settings
    if not (with_alerts and is_restart):
        require_store(settings, on_read_only_disk=with_alerts)
    ticks_kafka = settings.ticks_cluster()
    ensure_topic(settings)
    receivers = build_receivers(settings.notify) if with_alerts else []
    profile = SessionProfile.LOW_LATENCY if with_alerts else _throughput(clusters)
    spark = build_session(settings.spark, app_name, profile)
    config = PipelineConfig(
        settings,
        ticks_kafka,
        partial(sasl_password, ticks_kafka),
        clusters.config,
        clusters.others,
        receivers,
        activity=AlertPartitionActivity(settings),
    )
    return Pipeline(spark, config, handover)


def _throughput(clusters: ConfiguredClusters) -> SessionProfile:
    """Return the profile of a session without alerts: that of small clusters if all of them are known to be small."""
    # Then the JVM runs already, and no profile changes it.
    if is_submitted():
        return SessionProfile.THROUGHPUT
    partitions, most = 0, clusters.settings.spark.small_cluster_partitions
    for settings in (clusters.settings, *(watched.settings for watched in clusters.others)):
        counted = partition_count(settings.cluster)
        # A cluster that cannot be asked may be large, and the profile of small ones would be too little for it.
        if counted is None:
            return SessionProfile.THROUGHPUT
        partitions += counted
    return SessionProfile.SMALL_THROUGHPUT if partitions <= most else SessionProfile.THROUGHPUT


class PrintingListener(AlertPathListener):
    """Prints verdicts and events of the alert path.

    Args:
        printer: prints them.
    """

    def __init__(self, printer: VerdictPrinter) -> None:
        self._printer = printer

    def on_tick(self, cluster: str, tick_ms: int, statuses: Sequence[ThrottleStatus]) -> None:
        """Print the verdicts of a tick if they have changed."""
        self._printer.print_tick(cluster, tick_ms, statuses)

    def on_events(self, events: Sequence[AlertEvent]) -> None:
        """Print events."""
        self._printer.print_events(events)


class EngineFollower(Protocol):
    """Gets the engine of each pipeline that is built."""

    def follow(self, engine: AlertEngine, on_proposal: Callable[[str, BalanceAdvice], None]) -> None:
        """Serve an engine from now on, and pass on each proposal with the name of its cluster."""


def start_alert_output(
    pipeline: Pipeline,
    printer: VerdictPrinter,
    listener: AlertPathListener,
    state: MetricsState,
    worker: EngineFollower | None = None,
) -> None:
    """Start the alert path, and pass its results to the terminal first and to the metrics then.

    Args:
        pipeline: the Spark jobs.
        printer: prints the alerts that are still firing from an earlier run.
        listener: prints the results of the alert path.
        state: state behind the metrics.
        worker: gets the engine; None if there is none.
    """
    state.follow(lambda: pipeline.batch_s, pipeline.deliveries, pipeline.quarantined_messages)
    pipeline.start_alert_path(CompositeListener([listener, state]))
    if worker is not None:
        worker.follow(pipeline.engine, state.on_proposal)
    active = pipeline.engine.active()
    printer.print_active(active)
    state.restore(active)


def supervise(checks: list[Callable[[], None]], stop: threading.Event, seconds: float | None) -> None:
    """Call all checks once a second until ``stop`` is set or ``seconds`` have passed.

    Raises:
        HeadroomError: a check found that a job or process has stopped.
    """
    end = None if seconds is None else time.monotonic() + seconds
    while end is None or time.monotonic() < end:
        for check in checks:
            check()
        if stop.wait(1.0 if end is None else max(0.0, min(1.0, end - time.monotonic()))):
            return
