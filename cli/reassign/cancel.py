"""``headroom reassign cancel``: cancel running reassignments, and restore the order of their replicas."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from headroom.alerts.recommendations.commands import config_option_of
from headroom.cli.common.changing import execute_option, print_note, print_notes, print_nothing_changed, require_answer
from headroom.cli.common.options import config_option
from headroom.cli.common.outcome import CommandOutcome, in_text, with_format
from headroom.cli.common.output import echo, partition_json, print_table
from headroom.cli.config.load import load_settings
from headroom.cluster.live.live_control import LiveClusterControl
from headroom.operations.journal.session import RunSession
from headroom.operations.reassignments.cancelling import CancelPlan, execute_cancel, plan_cancel
from headroom.operations.reassignments.plan_files import read_batches, whole_plan
from headroom.planning.reassignments.run.conditions import partitions_text
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import ReplicaKey, TopicPartition
from headroom.schemas.text import shell_quoted

_MAX_ROWS = 40


@click.command(short_help="Cancel running reassignments, and restore the order of the replicas.")
@click.argument("plans", type=click.Path(path_type=Path, dir_okay=False), nargs=-1)
@config_option
@with_format
@click.option("--all", "every", is_flag=True, help="Cancel all running reassignments, whoever submitted them.")
@execute_option
@click.option("--yes", is_flag=True, help="With --execute: do not ask.")
def cancel(plans: tuple[Path, ...], config: str | None, every: bool, execute: bool, yes: bool) -> CommandOutcome:
    """Cancel the running reassignments of the partitions in PLANS, or all with --all.

    Kafka leaves the replicas of a cancelled reassignment in another order, so that another broker is the preferred
    leader: [3,2,1] on its way to [0,2,1] becomes [2,1,3]. The order from before is restored where the journal has it,
    which is for everything that headroom reassign run has submitted. If this command is killed, the next one restores
    the orders that it has not.

    Copies of these partitions between the log directories of a broker are ended too: the replicas stay where they are.

    Throttles stay; those of a run are removed by headroom reassign clean.

    \b
    Example:  headroom reassign cancel move.json
              headroom reassign cancel move.json --execute
              headroom reassign cancel --all --execute --yes
    """  # noqa: D301
    # Neither must not mean all, and both could cancel more than the plans name.
    if bool(plans) == every:
        raise click.UsageError("Name plan files, or give --all.")
    require_answer(execute, yes, "before it cancels")
    chosen = None if every else frozenset(whole_plan(read_batches(plans, None, print_note)).by_name)
    settings = load_settings(config)
    session = RunSession(settings, "reassign cancel")
    with LiveClusterControl(settings) as control:
        cancelled = plan_cancel(control, chosen, session.orders())
        # Before the question, because the operator decides by it.
        if in_text():
            _print(cancelled)
        print_notes(cancelled.notes())
        failed: dict[TopicPartition, str] = {}
        what = cancelled.text()
        if execute and what:
            # Asked on standard error, because standard output may be JSON for another program.
            if not yes and not click.confirm(f"Cancel {what}?", err=True):
                raise click.Abort
            failed = execute_cancel(control, session.journal(), cancelled, settings.reassign.settle_s)

    def print_end() -> None:
        if execute and what:
            done = "Cancelled" if not failed else "Cancelled, except for those below,"
            echo(f"{done} {what}. Throttles of a run: headroom reassign clean{config_option_of(config)}")
        elif what:
            words = "--all" if every else " ".join(shell_quoted(str(file)) for file in plans)
            print_nothing_changed(["reassign", "cancel", words], config)

    return CommandOutcome(
        lambda: {"cluster": session.cluster, "executed": execute, **_cancel_json(cancelled, failed)},
        print_end,
        error=_error(failed),
    )


def _error(failed: Mapping[TopicPartition, str]) -> HeadroomError | None:
    """Return why partitions were not cancelled; None if all were."""
    if not failed:
        return None
    reasons = "; ".join(sorted(set(failed.values())))
    remedy = "See the brokers' logs, then try again."
    return HeadroomError(partitions_text(failed), f"was not cancelled ({reasons})", remedy)


def _cancel_json(cancelled: CancelPlan, failed: Mapping[TopicPartition, str]) -> dict[str, object]:
    """Return what was cancelled as a JSON object, or what would be."""
    return {
        "cancelled": [_json(name, original) for name, original in cancelled.originals.items() if name not in failed],
        "order_restored": [
            _json(name, original) for name, original in cancelled.unrestored.items() if name not in failed
        ],
        "log_dirs": [
            {**partition_json(replica.name), "broker": replica.broker, "stays": path}
            for replica, path in cancelled.copies.items()
        ],
        "failed": [{**_json(name, None), "reason": reason} for name, reason in failed.items()],
    }


def _print(cancelled: CancelPlan) -> None:
    originals = {**cancelled.originals, **cancelled.unrestored}
    if not cancelled.text():
        echo("No such reassignment is running.")
        return
    _print_copies(cancelled.copies)
    if not originals:
        return
    header = ("partition", "replicas", "adding", "removing", "after cancelling")
    rows = []
    for name, original in list(originals.items())[:_MAX_ROWS]:
        partition = cancelled.snapshot.partitions[name]
        lists = (",".join(map(str, b)) for b in (partition.replicas, partition.adding, partition.removing))
        # Where the journal does not have the order, that which Kafka leaves stays.
        after = original if original is not None else partition.before
        rows.append((str(name), *lists, ",".join(map(str, after))))
    print_table("", header, rows)
    if len(originals) > _MAX_ROWS:
        echo(f"and {len(originals) - _MAX_ROWS} more; --format json shows all")


def _print_copies(copies: Mapping[ReplicaKey, str]) -> None:
    rows = [(str(replica.name), str(replica.broker), path) for replica, path in list(copies.items())[:_MAX_ROWS]]
    if rows:
        print_table("", ("copied between log directories", "broker", "stays in"), rows)
    if len(copies) > _MAX_ROWS:
        echo(f"and {len(copies) - _MAX_ROWS} more; --format json shows all")


def _json(name: TopicPartition, original: tuple[int, ...] | None) -> dict[str, object]:
    return {
        **partition_json(name),
        "restored": None if original is None else list(original),
    }
