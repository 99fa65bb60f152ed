"""``headroom reassign runs``: the runs in the journal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from headroom.alerts.recommendations.commands import headroom_reassign_clean
from headroom.cli.common.options import config_option
from headroom.cli.common.outcome import CommandOutcome, with_format
from headroom.cli.common.output import echo, partition_json, print_table
from headroom.cli.config.load import read_settings
from headroom.cli.reassign.view import left_behind_json, print_damaged_rows, run_status, running_json, running_text
from headroom.operations.journal.session import RunSession
from headroom.planning.reassignments.run.record import RecordedRun
from headroom.schemas.text.amounts import moment_text
from headroom.streaming.delta.locations import require_present
from headroom.streaming.store.single_instance import JobProcess


@click.command(short_help="List the runs of plans in the journal.")
@config_option
@with_format
def runs(config: str | None) -> CommandOutcome:
    """List the runs of reassignment plans on the cluster, the oldest first, with what they have left behind.

    Reads the journal (table actions/journal) alone, not the cluster. A run is "running" while a process has its lock,
    which object stores lack, and "cancelled" if reassignments of it were cancelled.

    \b
    Example:  headroom reassign runs
    """  # noqa: D301
    settings = read_settings(config)
    # A mistyped store would read as one in which no plan was ever run.
    require_present(settings.store.path)
    session = RunSession(settings, "reassign runs")
    running = session.running()
    return CommandOutcome(
        lambda: {
            "cluster": session.cluster,
            "runs": [_json(record, running.get(record.run_id)) for record in session.records],
        },
        lambda: _print(session, running, settings.store.path, config),
    )


def _print(session: RunSession, running: Mapping[str, JobProcess], store: str, config: str | None) -> None:
    if not session.records:
        echo(f"Cluster {session.cluster}: no plan was run, by the journal in {store}.")
        return
    header = ("run", "begun", "by", "command", "state", "partitions", "ended", "refused", "left behind")
    print_table("", header, [_row(record, running.get(record.run_id)) for record in session.records])
    for record in session.records:
        if record.run_id in running:
            echo(f"Run {record.run_id} is running: {running_text(record, running[record.run_id])}.")
    print_damaged_rows(session.records, config)
    if any(record.leaves_behind and record.run_id not in running for record in session.records):
        echo(f"To remove what is left behind: {headroom_reassign_clean((), config)}")


def _json(record: RecordedRun, process: JobProcess | None) -> dict[str, Any]:
    return {
        "run_id": record.run_id,
        "began_ms": record.began_ms,
        "last_ms": record.last_ms,
        "by": record.by,
        "command": record.command,
        "fingerprint": record.fingerprint,
        "state": record.state.value,
        "status": run_status(record, process),
        "running": running_json(process),
        "last_step": record.last_step,
        "submitted": len(record.submitted),
        "finished": len(record.finished),
        "refused": [{**partition_json(name), "reason": reason} for name, reason in record.refused.items()],
        "left_behind": left_behind_json(record),
        "damaged_rows": sorted(record.damaged_rows),
    }


def _row(record: RecordedRun, process: JobProcess | None) -> tuple[str, ...]:
    entries, rates = sum(map(len, record.entries.values())), len(record.rates)
    left = f"{entries} list entries, {rates} rates" if record.leaves_behind else "nothing"
    # Its own run takes it back, and no clean should.
    left = left if process is None else "in use"
    counts = (str(len(record.submitted)), str(len(record.finished)), str(len(record.refused)))
    return (
        record.run_id,
        "unknown" if record.began_ms is None else moment_text(record.began_ms),
        record.by,
        record.command,
        run_status(record, process),
        *counts,
        left,
    )
