"""``headroom reassign verify``: where each partition of a plan is on its way to its target replicas."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from headroom.alerts.recommendations.commands import headroom_reassign_clean
from headroom.cli.common.changing import print_note
from headroom.cli.common.options import config_option
from headroom.cli.common.outcome import CommandOutcome, with_format
from headroom.cli.common.output import echo, partition_json, print_table
from headroom.cli.config.load import load_settings
from headroom.cli.reassign.view import left_behind_json, run_status, running_json, running_text
from headroom.cluster.live.live_control import LiveClusterControl
from headroom.operations.journal.session import RunSession
from headroom.operations.reassignments.plan_files import read_batches, whole_plan
from headroom.planning.log_dirs.progress import DirectoryProgress, DirectoryState
from headroom.planning.reassignments.plan import plan_part
from headroom.planning.reassignments.run.directories import named_partitions
from headroom.planning.reassignments.run.record import RecordedRun
from headroom.planning.reassignments.run.verification import AssignmentStatus, VerifiedAssignment, verify_plan
from headroom.schemas.text.amounts import UNKNOWN, size_text
from headroom.streaming.store.single_instance import JobProcess

_MAX_ROWS = 40


@click.command(short_help="Show where each partition of a plan is.")
@click.argument("plans", type=click.Path(path_type=Path, dir_okay=False), nargs=-1, required=True)
@config_option
@with_format
def verify(plans: tuple[Path, ...], config: str | None) -> CommandOutcome:
    """Show where each partition of the plans in PLANS is: done, moving, not started, or moving elsewhere.

    Nothing is changed: unlike kafka-reassign-partitions.sh --verify, this removes no throttle. The exit code is 0 only
    if every partition has its target replicas, in the log directories that the plan names.

    \b
    Example:  headroom reassign verify move.json
    """  # noqa: D301
    plan = whole_plan(read_batches(plans, None, print_note))
    settings = load_settings(config)
    with LiveClusterControl(settings, {a.name.topic for a in plan}, placed=named_partitions(plan)) as control:
        snapshot = control.read()
    assignments = verify_plan(plan, snapshot)
    fingerprint = plan.fingerprint(snapshot.topic_ids)
    session = RunSession(settings, "reassign verify")
    # By the part of the fingerprint without the replicas, which the run itself has changed.
    runs, running = [r for r in session.records if plan_part(r.fingerprint) == fingerprint], session.running()
    counts = Counter(v.status for v in assignments)

    def print_text() -> None:
        _print(assignments, counts)
        for record in runs:
            echo(_run_text(record, running.get(record.run_id), config))

    return CommandOutcome(
        lambda: {
            "cluster": settings.cluster.name,
            "fingerprint": fingerprint,
            "counts": {status.value: counts[status] for status in AssignmentStatus},
            "partitions": [_json(verified) for verified in assignments],
            "runs": [_run_json(record, running.get(record.run_id)) for record in runs],
        },
        print_text,
        # No error message: the output names the partitions, and a script needs only the code.
        exit_code=counts[AssignmentStatus.DONE] < len(assignments),
    )


def _json(verified: VerifiedAssignment) -> dict[str, object]:
    return {
        **partition_json(verified.name),
        "status": verified.status.value,
        "replicas": list(verified.replicas),
        "target": list(verified.target),
        "missing": list(verified.missing),
        "log_dirs": [_directory_json(progress) for progress in verified.directories],
    }


def _directory_json(progress: DirectoryProgress) -> dict[str, object]:
    return {
        "broker": progress.broker,
        "state": progress.state.value,
        "current": progress.current,
        "target": progress.destination,
        "remaining_bytes": progress.remaining_bytes,
    }


def _run_json(record: RecordedRun, process: JobProcess | None) -> dict[str, object]:
    return {
        "run_id": record.run_id,
        "state": record.state.value,
        "status": run_status(record, process),
        "running": running_json(process),
        "left_behind": left_behind_json(record),
    }


def _run_text(record: RecordedRun, process: JobProcess | None, config: str | None) -> str:
    clean = headroom_reassign_clean((), config)
    left = f", and has left throttles behind: {clean}" if record.leaves_behind else ""
    end = left if process is None else f": {running_text(record, process)}"
    return f"Run {record.run_id} of this plan is {run_status(record, process)}{end}."


def _print(assignments: list[VerifiedAssignment], counts: Counter[AssignmentStatus]) -> None:
    listed = ", ".join(f"{counts[s]} {s.value.replace('_', ' ')}" for s in AssignmentStatus if counts[s])
    echo(f"{len(assignments)} partitions: {listed or 'none'}.")
    open_ = [verified for verified in assignments if verified.status is not AssignmentStatus.DONE]
    if open_:
        echo()
        header = ("partition", "status", "replicas", "target", "not in sync")
        print_table("", header, [_row(verified) for verified in open_[:_MAX_ROWS]])
    _print_directories(open_)
    if len(open_) > _MAX_ROWS:
        echo(f"and {len(open_) - _MAX_ROWS} more; --format json shows all")


def _print_directories(open_: list[VerifiedAssignment]) -> None:
    rows = [
        (str(p.name), str(p.broker), p.state.value, p.current or UNKNOWN, p.destination, size_text(p.remaining_bytes))
        for verified in open_
        for p in verified.directories
        if p.state is not DirectoryState.DONE
    ]
    if rows:
        echo()
        header = ("partition", "broker", "status", "log directory", "target", "left to copy")
        print_table("", header, rows[:_MAX_ROWS])


def _row(verified: VerifiedAssignment) -> tuple[str, ...]:
    lists = (",".join(map(str, brokers)) for brokers in (verified.replicas, verified.target, verified.missing))
    return (str(verified.name), verified.status.value.replace("_", " "), *lists)
