"""``headroom migration translate``: where a consumer group continues on the target, and what that rests on."""

from __future__ import annotations

import click

from headroom.cli.common.changing import print_note
from headroom.cli.common.logs import silence_clients
from headroom.cli.common.options import config_option
from headroom.cli.common.outcome import CommandOutcome, with_format
from headroom.cli.common.parameters import TopicName
from headroom.cli.config.load import load_settings
from headroom.cli.migration.offsets_view import print_translation, translation_json
from headroom.cli.migration.options import copied_option, exact_option, group_option, progress_view
from headroom.operations.migration.clusters import migration_clusters
from headroom.operations.migration.kept_syncs import kept_syncs
from headroom.operations.migration.running.changing import require_unshielded
from headroom.operations.migration.translation import TranslationRequest, translate_offsets
from headroom.schemas.migrations import MigrationMethod


@click.command(short_help="Show where a group continues on the target, and what that rests on.")
@click.argument("topic", metavar="TOPIC", type=TopicName())
@config_option
@with_format
@group_option
@copied_option
@exact_option
def translate(topic: str, config: str | None, group: str, method: str, exact: bool) -> CommandOutcome:
    """Show for each partition of TOPIC the offset at which a consumer group continues on the target.

    Without --exact it is that of MirrorMaker's nearest offset sync at or before the committed offset, from where no
    record is skipped, but some may be read again. A sync from before a rewind of either cluster is not used. With
    --exact the group's next record is looked for; where it is not found, the sync is used, and the reason shown.

    Nothing is changed. The exit code is 1 if a partition has no offset on the target.

    \b
    Example:  headroom migration translate --group billing orders
              headroom migration translate --group billing orders --exact
    """  # noqa: D301
    silence_clients()
    settings = load_settings(config)
    request = TranslationRequest(group, (topic,), MigrationMethod(method), exact)
    require_unshielded(settings, (topic,))
    with migration_clusters(settings) as clusters:
        result = translate_offsets(clusters, request, progress_view(), print_note, kept_syncs(settings))
    return CommandOutcome(
        lambda: translation_json(result), lambda: print_translation(result), exit_code=int(bool(result.unknown()))
    )
