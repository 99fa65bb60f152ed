"""``headroom reassign rollback``: give the partitions of a run the replicas back that they had before it."""

from __future__ import annotations

import click

from headroom.cli.common.changing import execute_option_of, print_note
from headroom.cli.common.options import config_option
from headroom.cli.common.outcome import CommandOutcome, with_format
from headroom.cli.config.load import read_settings
from headroom.cli.reassign.plan_run import (
    RunOptions,
    adopt_option,
    auto_option,
    cancel_option,
    cleared_option,
    log_dirs_option,
    run_of_plan,
    throttle_option,
    yes_option,
)
from headroom.cli.throttle.rates import low_rate_option
from headroom.cluster.reassignment.execution.control import IfCleared
from headroom.operations.journal.session import RunSession
from headroom.operations.reassignments.plan_back import batches_back
from headroom.operations.reassignments.run import RunRequest
from headroom.operations.reassignments.run_plan import RunRates


@click.command(short_help="Move the partitions of a run back.")
@click.argument("run_id", metavar="RUN")
@config_option
@with_format
@throttle_option
@log_dirs_option
@auto_option
@execute_option_of("Change the cluster; without it, only show the steps.")
@yes_option
@adopt_option
@cancel_option
@cleared_option
@low_rate_option
@click.option("--force", is_flag=True, help="Run with a throttle that is too low.")
def rollback(
    run_id: str,
    config: str | None,
    throttle: int | None,
    log_dirs_throttle: int | None,
    auto_up_to: int | None,
    execute: bool,
    yes: bool,
    adopt: bool,
    cancel_on_stop: bool,
    if_cleared: IfCleared,
    low_rate: bool,
    force: bool,
) -> CommandOutcome:
    """Move the partitions of RUN back to the replicas, in their order and log directories, that they had before it.

    This is a run like any other: throttled, journalled, and resumed by the same command. Its batches are those of RUN,
    the last one first. The id of a run is listed by headroom reassign runs. Partitions that were deleted since, or are
    of a topic that was made again, are named, and the others are moved back.

    \b
    Example:  headroom reassign rollback 3f9a01c2 --throttle 50MB
              headroom reassign rollback 3f9a01c2 --throttle 50MB --execute
    """  # noqa: D301
    record = RunSession(read_settings(config), "reassign rollback").of_id(run_id)
    words = f"reassign rollback {record.run_id}"
    request = RunRequest(
        RunRates(throttle, log_dirs_throttle),
        auto_up_to_bytes_per_s=auto_up_to,
        adopt=adopt,
        force=force,
        cancel_on_stop=cancel_on_stop,
        if_cleared=if_cleared,
        # One topic that is gone must not bar the way back of the others.
        skip_missing=True,
        config=config,
        topic_ids=record.topic_ids,
    )
    options = RunOptions(request, words, execute=execute, yes=yes, low_rate=low_rate)
    if not record.topic_ids:
        print_note("Whether topics were made again since is unknown: the journal of this run does not have their ids.")
    return run_of_plan(batches_back(record), options, "reassign rollback")
