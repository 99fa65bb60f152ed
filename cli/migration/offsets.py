"""``headroom migration offsets``: offsets of a consumer group on the target, for Kafka's tool or set at once."""

from __future__ import annotations

from pathlib import Path

import click

from headroom.alerts.recommendations.commands import kafka_reset_offsets
from headroom.cli.common.changing import error_json, execute_option_of, print_note, print_nothing_changed
from headroom.cli.common.logs import silence_clients
from headroom.cli.common.options import config_option
from headroom.cli.common.outcome import CommandOutcome, with_format
from headroom.cli.common.output import echo
from headroom.cli.common.parameters import TopicName
from headroom.cli.config.load import load_settings
from headroom.cli.migration.offsets_view import print_translation, translation_json
from headroom.cli.migration.options import copied_option, exact_option, group_option, progress_view
from headroom.operations.migration.clusters import migration_clusters
from headroom.operations.migration.kept_syncs import kept_syncs
from headroom.operations.migration.running.changing import require_unshielded
from headroom.operations.migration.set_offsets import commit_translated, write_offsets
from headroom.operations.migration.translation import TranslationRequest, translate_offsets
from headroom.schemas.errors import HeadroomError
from headroom.schemas.migrations import MigrationMethod
from headroom.schemas.text import shell_quoted


@click.command(short_help="Show, write or set the offsets of a group on the target.")
@click.argument("topic_names", metavar="[TOPIC]...", nargs=-1, type=TopicName())
@config_option
@with_format
@group_option
@copied_option
@exact_option
@click.option(
    "--csv",
    "csv_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the offsets for kafka-consumer-groups.sh --reset-offsets --from-file.",
)
@execute_option_of("Set the offsets on the target; without it, only show them.")
def offsets(
    topic_names: tuple[str, ...],
    config: str | None,
    group: str,
    method: str,
    exact: bool,
    csv_file: Path | None,
    execute: bool,
) -> CommandOutcome:
    """Show the offsets at which a consumer group continues on the target, write them to a file, or set them.

    Offsets are those of headroom migration translate, for all topics of which the group has committed offsets on the
    origin, or for some. With --execute they are committed on the target in the place of the group, which must have no
    consumers there. Nothing is written or set if a partition has no offset, because consumers would begin there by
    their auto.offset.reset. Stop the group's consumers on the origin first: what they read later is read again.

    \b
    Example:  headroom migration offsets --group billing
              headroom migration offsets --group billing --exact --csv billing.csv
              headroom migration offsets --group billing --exact --execute
    """  # noqa: D301
    silence_clients()
    settings = load_settings(config)
    request = TranslationRequest(group, topic_names, MigrationMethod(method), exact)
    error: HeadroomError | None = None
    require_unshielded(settings, topic_names)
    with migration_clusters(settings) as clusters:
        result = translate_offsets(clusters, request, progress_view(), print_note, kept_syncs(settings))
        try:
            if csv_file is not None:
                write_offsets(csv_file, result)
            if execute:
                commit_translated(settings, clusters, result, print_note)
        # After the offsets, which show what it is about.
        except HeadroomError as failed:
            error = failed
    is_done = error is None and execute

    def print_text() -> None:
        print_translation(result)
        if error is None:
            echo()
            if csv_file is not None:
                servers = settings.alerts.bootstrap_servers or settings.cluster.bootstrap_servers
                echo(f"Written: {csv_file}. Kafka's own tool sets them by:")
                echo(kafka_reset_offsets(group, str(csv_file), servers))
            if execute:
                echo(f"Committed on {result.target}, and read back: {len(result.known())} offsets of group {group}.")
            else:
                print_nothing_changed(_words(request), config)

    return CommandOutcome(
        lambda: {**translation_json(result), "executed": is_done, "failed": error_json(error)},
        print_text,
        error=error,
        exit_code=int(bool(result.unknown())),
    )


def _words(request: TranslationRequest) -> list[str]:
    """Return the words of the command that sets the offsets."""
    words = ["migration", "offsets", *request.topics, "--group", shell_quoted(request.group)]
    words += ["--method", request.method.value] if request.method is not MigrationMethod.MIRRORED else []
    return words + ["--exact"] * request.exact
