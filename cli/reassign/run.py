"""``headroom reassign run``: carry out a reassignment plan, batch by batch."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from headroom.cli.common.changing import execute_option_of, print_note
from headroom.cli.common.options import config_option
from headroom.cli.common.outcome import CommandOutcome, with_format
from headroom.cli.reassign.plan_run import (
    RunOptions,
    adopt_option,
    auto_option,
    cancel_option,
    cleared_option,
    force_option,
    log_dirs_option,
    run_of_plan,
    throttle_option,
    yes_option,
)
from headroom.cli.throttle.rates import low_rate_option
from headroom.cluster.reassignment.execution.control import IfCleared
from headroom.operations.reassignments.plan_files import read_batches
from headroom.operations.reassignments.run import RunRequest
from headroom.operations.reassignments.run_plan import RunRates


@click.command(short_help="Carry out a plan: throttle, submit, watch, and remove what was set.")
@click.argument("plans", type=click.Path(path_type=Path, dir_okay=False), nargs=-1)
@config_option
@with_format
@click.option(
    "--batches-dir",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Run the files batch-*.json of this folder, one after the other.",
)
@throttle_option
@log_dirs_option
@auto_option
@click.option("--fingerprint", metavar="TEXT", help="Run only if the plan has this fingerprint (headroom plan).")
@execute_option_of("Change the cluster; without it, only show the steps.")
@yes_option
@adopt_option
@cancel_option
@cleared_option
@low_rate_option
@force_option
def run(
    plans: tuple[Path, ...],
    config: str | None,
    batches_dir: Path | None,
    throttle: int | None,
    log_dirs_throttle: int | None,
    auto_up_to: int | None,
    fingerprint: str | None,
    execute: bool,
    yes: bool,
    adopt: bool,
    cancel_on_stop: bool,
    if_cleared: IfCleared,
    low_rate: bool,
    force: bool,
) -> CommandOutcome:
    """Carry out the reassignment plans in PLANS, whose format is that of kafka-reassign-partitions.sh.

    Each file is a batch; a batch begins when the one before it has ended. For a batch the run appends its own entries
    to the throttled replica lists, raises lower and missing rates of its brokers to --throttle, and submits it. A
    partition that has ended leaves the lists at once. In the end the rates are what they were before, and preferred
    leaders are elected in the batches of headroom elections. If a batch only reorders partitions that a later one
    moves, elections follow at once: a drained broker gives up its leads before the copies.

    Replicas get the log directories that a plan names ("any": the broker chooses). Moves between the directories of a
    broker are limited by --log-dirs-throttle.

    Every step is in the journal (table actions/journal) before it is taken. After a crash, run the same command again:
    it goes on where it was. To end such a run instead: headroom reassign clean.

    No further batch begins after a lost replica, a full disk, or outside reassign.window. Ctrl-C ends the run after the
    current batch, a second one at once.

    \b
    Example:  headroom reassign run move.json --throttle 50MB
              headroom reassign run move.json --throttle 50MB --execute
              headroom reassign run --batches-dir batches --throttle 50MB --execute --yes    (for cron)
    """  # noqa: D301
    if not plans and batches_dir is None:
        raise click.UsageError("Name a plan file, or a folder with --batches-dir.")
    # The command that goes on names the files in the same order, because each is a batch.
    files = [shlex.quote(str(file)) for file in plans]
    files += [f"--batches-dir {shlex.quote(str(batches_dir))}"] if batches_dir is not None else []
    words = " ".join(["reassign run", *files])
    request = RunRequest(
        RunRates(throttle, log_dirs_throttle),
        auto_up_to_bytes_per_s=auto_up_to,
        adopt=adopt,
        force=force,
        cancel_on_stop=cancel_on_stop,
        if_cleared=if_cleared,
        config=config,
    )
    options = RunOptions(request, words, execute=execute, yes=yes, low_rate=low_rate)
    return run_of_plan(read_batches(plans, batches_dir, print_note), options, "reassign run", fingerprint)
