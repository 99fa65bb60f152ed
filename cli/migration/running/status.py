"""``headroom migration status``: where each partition is, when it switches, and what could be lost."""

from __future__ import annotations

import time

import click

from headroom.cli.common.logs import silence_clients
from headroom.cli.common.options import config_option
from headroom.cli.common.outcome import CommandOutcome, with_format
from headroom.cli.common.parameters import TopicName
from headroom.cli.config.load import load_settings
from headroom.cli.migration.options import progress_view
from headroom.cli.migration.running.status_view import print_status, status_json
from headroom.operations.migration.running.clusters import running_clusters
from headroom.operations.migration.running.status import migration_status
from headroom.planning.migration.progress.progress import MigrationVerdict
from headroom.streaming.clock import now_ms

# Records are lost, or will be unless something is done.
_BAD = (MigrationVerdict.LOST, MigrationVerdict.NEVER, MigrationVerdict.OVERTAKEN, MigrationVerdict.DIVERGED)


@click.command(short_help="Show where each partition is, when it switches, and what could be lost.")
@click.argument("topic_names", metavar="[TOPIC]...", nargs=-1, type=TopicName())
@config_option
@with_format
@click.option("--name", metavar="NAME", help="Only the partitions of this migration.")
def status(topic_names: tuple[str, ...], config: str | None, name: str | None) -> CommandOutcome:
    """Show every partition of the migrations to this cluster: its end offset, and when its log gets there by the clock.

    Rates are measured for collect.measure_s. For each partition it shows who has yet to read the origin, what could be
    lost, and a verdict with its reason; for each router its acks, and whether it has agreed. What is not known is
    shown as unknown. The origin is not called for partitions that are shielded.

    Nothing is changed. The exit code is 1 if records are lost or will be, or if an end offset is never reached.

    \b
    Example:  headroom migration status
              headroom migration status orders --format json
              headroom migration status --name move
    """  # noqa: D301
    silence_clients()
    settings = load_settings(config)
    with running_clusters(settings) as clusters:
        result = migration_status(clusters, settings, topic_names, name, progress_view(), time.sleep, now_ms)
    bad = any(evaluated.progress.verdict in _BAD for evaluated in result.partitions)
    return CommandOutcome(lambda: status_json(result), lambda: print_status(result, config), exit_code=int(bad))
