"""``headroom reassign clean``: remove exactly what runs have set and not taken back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from headroom.alerts.recommendations.commands import changing_command
from headroom.cli.common.changing import execute_option, print_note, print_notes, print_nothing_changed, print_step
from headroom.cli.common.options import config_option
from headroom.cli.common.outcome import CommandOutcome, with_format
from headroom.cli.common.output import echo, partition_json
from headroom.cli.config.load import load_settings
from headroom.cli.reassign.view import (
    kept_rates_json,
    left_behind_json,
    print_damaged_rows,
    restored_rates_text,
    run_status,
    running_json,
    running_text,
)
from headroom.cluster.reassignment.execution.cleaning import CleanOutcome
from headroom.operations.journal.session import RunSession
from headroom.operations.reassignments.cleaning import clean_runs, notes_on_others, runs_to_clean
from headroom.planning.reassignments.run.conditions import partitions_text
from headroom.planning.reassignments.run.record import RecordedRun
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.streaming.delta.locations import require_present
from headroom.streaming.store.single_instance import JobProcess


@click.command(short_help="Remove what a killed run has set, exactly.")
@click.argument("run_ids", metavar="[RUN]...", nargs=-1)
@config_option
@with_format
@execute_option
@click.option("--force", is_flag=True, help="Also a run of another machine, whose process has ended.")
def clean(run_ids: tuple[str, ...], config: str | None, execute: bool, force: bool) -> CommandOutcome:
    """Remove the list entries and rates that runs have set and not taken back, and end these runs.

    The rates are those of leaders and followers, and those of moves between log directories.

    Entries and rates of others stay. A rate that was changed since the run set it stays too, and is listed. A throttle
    is never lifted while something of its run moves: then the command names the partitions, and ends with exit code 1.

    \b
    Example:  headroom reassign clean
              headroom reassign clean --execute
              headroom reassign clean 3f9a01c2 --execute
    """  # noqa: D301
    settings = load_settings(config)
    # Without the journal a run that was killed would read as one that has left nothing behind.
    require_present(settings.store.path)
    session = RunSession(settings, "reassign clean")

    def notes() -> None:
        print_notes(notes_on_others(settings, print_step, config))

    if not execute:
        records, running = runs_to_clean(session, run_ids), session.running()
        runs = [_json(CleanOutcome(record, ()), running.get(record.run_id)) for record in records]
        return CommandOutcome(
            lambda: {"cluster": session.cluster, "executed": False, "runs": runs},
            lambda: _print_left(records, running, session, settings, config, run_ids),
            notes,
        )
    # Listed under the lock: a run that holds it may still take back what it has set.
    with session.alone(print_note):
        outcomes = clean_runs(settings, session, runs_to_clean(session, run_ids), force, print_step, config)
    return CommandOutcome(
        lambda: {"cluster": session.cluster, "executed": True, "runs": [_json(o, None) for o in outcomes]},
        lambda: _print_cleaned(outcomes, session, settings, config),
        notes,
        _error(outcomes, config),
    )


def _print_cleaned(
    outcomes: Sequence[CleanOutcome], session: RunSession, settings: Settings, config: str | None
) -> None:
    for outcome in outcomes:
        if not outcome.moving and not outcome.record.leaves_behind:
            rates = restored_rates_text(outcome.kept_rates)
            echo(f"Run {outcome.record.run_id}: its list entries are removed, and its {rates}.")
    if not outcomes:
        _print_nothing_left(settings)
    print_damaged_rows(session.records, config)


def _error(outcomes: Sequence[CleanOutcome], config: str | None) -> HeadroomError | None:
    """Return why not everything is removed; None if it is."""
    moving = [name for outcome in outcomes for name in outcome.moving]
    if moving:
        remedy = f"Go on with its command, or cancel: {changing_command(['reassign cancel --all'], config)}"
        return HeadroomError(partitions_text(moving), "still moves, so its throttle stays", remedy)
    if any(outcome.record.leaves_behind for outcome in outcomes):
        return HeadroomError("the throttle", "is not all removed, see above", "Run the command again.")
    return None


def _print_left(
    records: Sequence[RecordedRun],
    running: Mapping[str, JobProcess],
    session: RunSession,
    settings: Settings,
    config: str | None,
    run_ids: Sequence[str],
) -> None:
    for record in records:
        entries, process = sum(map(len, record.entries.values())), running.get(record.run_id)
        end = "" if process is None else f" It removes them itself: {running_text(record, process)}."
        status = run_status(record, process)
        echo(f"Run {record.run_id} ({status}): {entries} list entries and {len(record.rates)} rates.{end}")
    # The lock of a run that is running refuses it.
    if running:
        echo("Nothing was changed.")
    elif records:
        print_nothing_changed(["reassign", "clean", *run_ids], config)
    else:
        _print_nothing_left(settings)
    print_damaged_rows(session.records, config)


def _print_nothing_left(settings: Settings) -> None:
    cluster, store = settings.cluster.name, settings.store.path
    echo(f"No run has left anything behind, by the journal of cluster {cluster} in {store}.")


def _json(outcome: CleanOutcome, process: JobProcess | None) -> dict[str, object]:
    return {
        "run_id": outcome.record.run_id,
        "state": outcome.record.state.value,
        "status": run_status(outcome.record, process),
        "running": running_json(process),
        "moving": [partition_json(name) for name in outcome.moving],
        "left_behind": left_behind_json(outcome.record),
        "kept_rates": kept_rates_json(outcome.kept_rates),
    }
