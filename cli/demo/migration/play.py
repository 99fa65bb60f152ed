"""Set-up of the migration's demo: two clusters, the watch of the target, and the page."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from headroom.cli.common.watch_process import WatchProcess
from headroom.cli.config.load import load_settings
from headroom.cli.demo.beside import page_beside
from headroom.cli.demo.migration.outcome import MigrationOutcome
from headroom.cli.demo.migration.scenario import (
    BROKERS,
    ORIGIN,
    SURVIVING,
    TARGET,
    MigrationKafka,
    config_sections,
)
from headroom.cli.demo.migration.story import MigrationStory
from headroom.cli.demo.set_up import demo_config, demo_progress, running_cluster
from headroom.cluster.embedded import EmbeddedCluster


def run_migration_demo(folder: Path) -> MigrationOutcome:
    """Play the migration's demo in an empty folder, and return its measurements.

    The target has the folder, as the only cluster of the other demo has, and the origin a folder in it.

    Raises:
        HeadroomError: a step of it did not happen in time, or a broker, the watch or the run ended.
    """
    progress = demo_progress()
    clusters = (EmbeddedCluster(folder / ORIGIN, BROKERS, options=SURVIVING), EmbeddedCluster(folder, BROKERS))
    texts = [f"Starting {BROKERS} Kafka brokers of the cluster {name} on this machine" for name in (ORIGIN, TARGET)]
    with (
        running_cluster(clusters[0], progress, texts[0]) as origin,
        running_cluster(clusters[1], progress, texts[1]) as target,
    ):
        config = demo_config(target, config_sections(origin.bootstrap_servers), TARGET)
        settings = load_settings(str(config))
        with (
            closing(MigrationKafka(settings)) as kafka,
            page_beside(config, folder / "dashboard.log", progress.print_line),
            WatchProcess(config, folder / "watch.log", subject="demo") as watch,
        ):
            return MigrationStory(origin, kafka, watch, progress, settings, config).play()
