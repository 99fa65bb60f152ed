"""What the commands that run Spark jobs share: the pipeline's inputs, and the loop that looks after it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from alerts.engine import WatchedCluster
from alerts.metrics import MetricsState
from cli.config.load import load_settings
from cli.watch.printer import VerdictPrinter
from cli.watch.receivers import build_receivers
from cluster.collector.ticks_topic import ensure_topic
from cluster.secrets import secret
from schemas.config import KafkaSettings, Settings
from schemas.errors import HeadroomError
from schemas.tables import TABLES
from streaming.delta.locations import require_writable
from streaming.jobs.alert_path import Listeners, in_turn
from streaming.pipeline import Pipeline, PipelineConfig
from streaming.session import build_session


def ticks_cluster(settings: Settings) -> KafkaSettings:
    """Return how to reach the cluster that holds the ticks topic."""
    return settings.ticks if settings.ticks.bootstrap_servers.strip() else settings.cluster


@dataclass(frozen=True)
class ConfiguredClusters:
    """What a command that watches was clusters.

    Attributes:
        settings: of the first file; they hold for the pipeline.
        config: the first file; None: the default.
        others: further clusters.
    """

    settings: Settings
    config: str | None
    others: tuple[WatchedCluster, ...]

    @property
    def configs(self) -> list[tuple[str, str | None]]:
        """The name of each cluster and its file."""
        others = [(watched.settings.cluster.name, watched.config) for watched in self.others]
        return [(self.settings.cluster.name, self.config), *others]


def load_clusters(configs: Sequence[str]) -> ConfiguredClusters:
    """Return the settings of all files, the first of which leads; no file: the default one.

    Raises:
        HeadroomError: a file is not in order, two name the same cluster, or their ticks go to different topics.
    """
    first = configs[0] if configs else None
    settings = load_settings(first)
    others = tuple(WatchedCluster(load_settings(path), path) for path in configs[1:])
    names, home = {settings.cluster.name}, ticks_cluster(settings).bootstrap_servers
    for watched in others:
        name = watched.settings.cluster.name
        if name in names:
            raise HeadroomError(
                f"{watched.config}: cluster.name {name}",
                "must be that of no other file, for rows and alerts are told apart by it",
                "Give every cluster a name of its own.",
            )
        names.add(name)
        theirs = (ticks_cluster(watched.settings).bootstrap_servers, watched.settings.ticks.topic)
        if theirs != (home, settings.ticks.topic):
            raise HeadroomError(
                f"{watched.config}: [ticks]",
                f"must lead to the topic of {first}: {settings.ticks.topic} on {home}",
                f'Set bootstrap_servers = "{home}" and topic = "{settings.ticks.topic}" in its section [ticks].',
            )
    return ConfiguredClusters(settings, first, others)


def require_store(settings: Settings) -> None:
    """Check that the tables, and the checkpoints, can be written, as far as that is seen before Spark starts.

    Raises:
        HeadroomError: a place is a file, or this user may not write there.
    """
    folder = settings.store.path.rstrip("/")
    for place in (folder, settings.store.checkpoints(), *(f"{folder}/{table.path}" for table in TABLES)):
        require_writable(place)


def build_pipeline(clusters: ConfiguredClusters, app_name: str, *, prompt: bool = True) -> Pipeline:
    """Return the pipeline over a new Spark session, with the ticks topic made if it is not there.

    Args:
        clusters: settings.
        app_name: name that Spark shows.
        prompt: whether the alert path will run in it.

    Raises:
        HeadroomError: jars are missing, the tables cannot be written, or the ticks topic is out of reach.
    """
    settings = clusters.settings
    require_store(settings)
    home = ticks_cluster(settings)
    password = secret(home.sasl_password, home.sasl_password_file, "sasl_password_file")
    ensure_topic(settings)
    receivers = build_receivers(settings.notify) if prompt else []
    spark = build_session(settings.spark, app_name, prompt=prompt)
    return Pipeline(spark, PipelineConfig(settings, home, password, clusters.config, clusters.others, receivers))


def start_alert_output(pipeline: Pipeline, printer: VerdictPrinter, told: Listeners, live: MetricsState) -> None:
    """Start the alert path, and tell what it decides to people first and to metrics then.

    Args:
        pipeline: the jobs.
        printer: tells the alerts that a former run left firing.
        told: tells people of what comes.
        live: state behind the metrics.
    """
    live.follow(lambda: pipeline.batch_s, pipeline.deliveries, pipeline.quarantined)
    metrics = Listeners(live.on_tick, live.on_events, live.on_batch, live.on_collected, live.on_balances)
    pipeline.start_alert_path(in_turn([told, metrics]))
    standing = pipeline.desk.active()
    printer.standing(standing)
    live.restore(standing)


def supervise(checks: list[Callable[[], None]], stop: threading.Event, seconds: float | None) -> None:
    """Call the checks once a second until ``stop`` is set, or ``seconds`` have passed.

    Raises:
        HeadroomError: a check found that something has stopped.
    """
    end = None if seconds is None else time.monotonic() + seconds
    while end is None or time.monotonic() < end:
        for check in checks:
            check()
        if stop.wait(1.0 if end is None else max(0.0, min(1.0, end - time.monotonic()))):
            return
