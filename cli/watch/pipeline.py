"""Shared by commands that run Spark jobs: configured clusters, start of the pipeline, and its supervision."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from headroom.alerts.engine import AlertEngine
from headroom.alerts.inputs.broker_load import BalanceAdvice
from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.alerts.metrics import MetricsState
from headroom.alerts.watched_cluster import WatchedCluster
from headroom.cli.config.load import DEFAULT_FILE, load_file
from headroom.cli.config.several_files import settings_in_force
from headroom.cli.config.sources import env_name
from headroom.cli.watch.output.printer import VerdictPrinter
from headroom.cluster.collector.activity import AlertPartitionActivity
from headroom.cluster.collector.ticks_topic import ensure_topic
from headroom.cluster.metadata.cluster_size import partition_count
from headroom.cluster.secrets import sasl_password
from headroom.operations.receivers import build_receivers
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.quantities import parse_addresses
from headroom.schemas.tables import TABLES
from headroom.streaming.delta.damage import LAYER, log_damages
from headroom.streaming.delta.locations import require_writable
from headroom.streaming.jobs.listener import AlertPathListener, CompositeListener
from headroom.streaming.session_profile import SessionProfile, is_submitted

if TYPE_CHECKING:
    from headroom.streaming.handover import Handover
    from headroom.streaming.pipeline import Pipeline

_SERVERS = ("cluster", "bootstrap_servers")


@dataclass(frozen=True)
class ConfiguredClusters:
    """Settings of all clusters that a command watches.

    Attributes:
        settings: settings of the first file, which configure the pipeline.
        config: absolute path of the first file; None if there is none, and all settings are in the environment.
        others: further clusters, with the settings that are in force for them.
    """

    settings: Settings
    config: str | None
    others: tuple[WatchedCluster, ...]

    @property
    def configs(self) -> list[tuple[str, str | None]]:
        """Name and settings file of each cluster."""
        others = [(watched.settings.cluster.name, watched.config) for watched in self.others]
        return [(self.settings.cluster.name, self.config), *others]


def load_clusters(configs: Sequence[str]) -> ConfiguredClusters:
    """Return the settings of all files; those of the default file if none is given.

    Raises:
        HeadroomError: a file is invalid, two files name the same cluster or the same broker, their ticks go to
            different topics, a maintenance window names another cluster, or a further file sets what only the first one
            decides to another value.
    """
    first = configs[0] if configs else None
    loaded = load_file(first)
    settings = loaded.settings
    others = tuple(
        WatchedCluster(settings_in_force(loaded, load_file(path)), os.path.abspath(path)) for path in configs[1:]
    )
    names, ticks_kafka = {settings.cluster.name}, settings.ticks_cluster().bootstrap_servers
    brokers = _brokers(settings)
    for watched in others:
        name = watched.settings.cluster.name
        if name in names:
            raise HeadroomError(
                f"{watched.config}: cluster.name {name}",
                "must not be used by another file, because it identifies rows and alerts",
                "Give every cluster a name of its own.",
            )
        names.add(name)
        same = brokers & _brokers(watched.settings)
        if same:
            # A variable would set the brokers of every file.
            raise HeadroomError(
                f"{watched.config}: cluster.bootstrap_servers",
                f"names {min(same)}, as another file does, so one cluster would be watched under two names",
                f"Name the brokers of {name}, and leave {env_name(_SERVERS)} out of the environment.",
            )
        brokers |= _brokers(watched.settings)
        theirs = (watched.settings.ticks_cluster().bootstrap_servers, watched.settings.ticks.topic)
        if theirs != (ticks_kafka, settings.ticks.topic):
            raise HeadroomError(
                f"{watched.config}: [ticks]",
                f"must lead to the topic of {first}: {settings.ticks.topic} on {ticks_kafka}",
                f'Set bootstrap_servers = "{ticks_kafka}" and topic = "{settings.ticks.topic}" in its section [ticks].',
            )
    for window in settings.alerts.maintenance:
        for name in sorted(set(window.clusters) - names):
            raise HeadroomError(
                "alerts.maintenance",
                f"has a window for the cluster {name}, which none of the settings files names",
                f"Name one of these: {', '.join(sorted(names))}.",
            )
    # Absolute, because recommended commands name it: in another folder headroom.toml may be that of another cluster.
    file = first or (DEFAULT_FILE if os.path.exists(DEFAULT_FILE) else None)
    return ConfiguredClusters(settings, file and os.path.abspath(file), others)


def _brokers(settings: Settings) -> set[str]:
    return set(parse_addresses(settings.cluster.bootstrap_servers.lower()))


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
