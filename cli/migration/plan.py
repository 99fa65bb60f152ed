"""``headroom migration plan``: where partitions change to the target and when, and what forbids it."""

from __future__ import annotations

import click

from headroom.cli.common.logs import silence_clients
from headroom.cli.common.options import config_option
from headroom.cli.common.outcome import CommandOutcome, with_format
from headroom.cli.common.parameters import TopicName
from headroom.cli.config.load import load_settings
from headroom.cli.migration.options import progress_view
from headroom.cli.migration.plan_view import plan_json, print_plan
from headroom.operations.migration.clusters import migration_clusters
from headroom.operations.migration.plan import plan_migration
from headroom.operations.migration.running.changing import require_unshielded
from headroom.schemas.migrations import METHODS, MigrationMethod


@click.command(short_help="Show when partitions change to the target, who is left, and what forbids it.")
@click.argument("topic_names", metavar="TOPIC...", nargs=-1, required=True, type=TopicName())
@config_option
@with_format
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default=MigrationMethod.DRAINED.value,
    show_default=True,
    help="How the target gets its records: drained, none are copied, and producers are moved by hand; routed, by "
    "clients that use headroom.routing; mirrored, by MirrorMaker 2 or another mirror; linked, with the same offsets.",
)
def plan(topic_names: tuple[str, ...], config: str | None, method: str) -> CommandOutcome:
    """Show for each partition of the topics at which offset it changes to the target, and when.

    The end offset is the one that the log of the origin reaches in migration.prepare, at the rate that is measured now:
    collect.measure_s, or migration.quiet_s if a partition does not grow meanwhile. Records before it stay on the origin
    for those who have yet to read them. For each consumer group the plan has what is left to read, and whether
    retention deletes it first.

    Nothing is changed. The exit code is 1 if something forbids the migration.

    \b
    Example:  headroom migration plan orders payments
              headroom migration plan orders --method mirrored --format json
    """  # noqa: D301
    silence_clients()
    settings = load_settings(config)
    require_unshielded(settings, topic_names)
    with migration_clusters(settings) as clusters:
        result = plan_migration(clusters, settings, topic_names, MigrationMethod(method), progress_view())
    return CommandOutcome(
        lambda: plan_json(result), lambda: print_plan(result), exit_code=int(result.forecast.is_forbidden())
    )
