"""``headroom migration run``: agree on the end offsets, start, seal, and delete the origin's topics in the end."""

from __future__ import annotations

from typing import Any

import click

from headroom.cli.common.changing import error_json, execute_option_of, print_note, print_nothing_changed
from headroom.cli.common.logs import silence_clients
from headroom.cli.common.options import config_option, option_group, with_parent_option
from headroom.cli.common.outcome import CommandOutcome, with_format
from headroom.cli.common.output import echo
from headroom.cli.common.parameters import TopicName
from headroom.cli.common.stopping import end_with_parent, stopping
from headroom.cli.config.load import load_settings
from headroom.cli.migration.options import name_option, progress_view
from headroom.cli.migration.running.run_options import RUN_OPTIONS, MigrationRunOptions
from headroom.cli.migration.running.run_view import preview_json, print_preview, print_run, run_json
from headroom.operations.migration.running.clusters import running_clusters
from headroom.operations.migration.running.run import preview_run, run_migration
from headroom.operations.migration.running.under_way import noted_run, require_none_under_way, run_under_way
from headroom.operations.migration.running.watch import MigrationWatch

_STOPPING = "Ending after this step. Run the command again to continue."


@click.command(short_help="Agree on the end offsets, start, seal, and delete the origin's topics in the end.")
@click.argument("topic_names", metavar="TOPIC...", nargs=-1, required=True, type=TopicName())
@config_option
@with_format
@name_option
@option_group(RUN_OPTIONS, MigrationRunOptions, "given")
@execute_option_of("Change both clusters; without it, only show what would be done.")
@with_parent_option
def run(
    topic_names: tuple[str, ...],
    config: str | None,
    name: str,
    given: MigrationRunOptions,
    execute: bool,
    with_parent: bool,
) -> CommandOutcome:
    """Migrate TOPICS from the origin to the target, step by step, and follow them until they are there.

    \b
    1. The topic headroom.migrations, and topics that the target does not have, are created: with the partitions and
       the retention of the origin, and as many replicas as both clusters allow.
    2. An end offset is agreed for each partition. routed: the one that the log reaches in migration.prepare; all
       --router names have to agree before it starts, and another one is agreed if the log gets there first. Other
       methods: the log end, once no producer has written for migration.quiet_s.
    3. The target is in use (migrating). Once the origin's last stable offset is at the end offset: migrated. Once
       retention has deleted all before it: aged.

    All state is in headroom.migrations. After a crash, run the same command again: it continues. A second run of the
    same name ends the first; without --execute the command says whether one is under way. Each change is in the
    journal.

    With --ignore-origin, readers give up an origin that is down: what they have not read there is lost to them. With
    --accept-loss, they continue on the target where a log has come back shorter than the end offset, once all --router
    names have left the origin. Both are for good, because offsets of clients never jump back.

    With --end-here, a partition whose producers write no more, or much less, gets a nearer end offset, as long as
    nothing is on the target. All --router names have to agree to it: leave out processes that do not run any more.

    Nothing is changed without --execute. Ctrl-C ends the run; the migration stays as it is.

    \b
    Example:  headroom migration run orders --name move --method routed --router shop-1 --router billing-1
              headroom migration run orders --name move --method routed --router shop-1 --router billing-1 --execute
              headroom migration run orders --name move --method routed --end-here --execute
              headroom migration run orders --name move --method drained --execute
              headroom migration run orders --name move --method drained --until aged --drop --execute
    """  # noqa: D301
    given.require_consistent()
    silence_clients()
    settings = load_settings(config)
    request = given.request(topic_names, name, settings)
    with running_clusters(settings) as clusters, stopping(_STOPPING if execute else "") as stop:
        if with_parent:
            end_with_parent(stop)
        watch = MigrationWatch(settings, clusters.origin, clusters.target)
        if execute:
            with noted_run(settings, name, given.unless_running, print_note):
                result = run_migration(clusters, settings, request, watch, progress_view(), stop, print_note)
            # A signal has ended it: no error, but a script must not take the rest for done.
            error: Exception | None = click.Abort() if result.stopped else result.error
            failed = error_json(result.error)
            return CommandOutcome(
                lambda: {**run_json(result), "executed": True, "failed": failed}, lambda: print_run(result), error=error
            )
        if given.unless_running:
            require_none_under_way(settings, name)
        preview = preview_run(clusters, settings, request, watch, progress_view(), stop)
    under_way = run_under_way(settings, name)
    forbidden = preview.preparation.plan is not None and preview.preparation.plan.forecast.is_forbidden()

    def print_text() -> None:
        print_preview(preview, request)
        if under_way is not None:
            echo(f"A run of this migration is under way: {under_way}. A second one ends it at its next change.")
        if not forbidden:
            print_nothing_changed(given.words(topic_names, name), config)

    def as_json() -> dict[str, Any]:
        return {**preview_json(preview, request), "under_way": under_way, "executed": False, "failed": None}

    return CommandOutcome(as_json, print_text, exit_code=int(forbidden))
