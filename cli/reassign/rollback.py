"""``headroom reassign rollback``: give the partitions of a run the replicas back that they had before it."""

from __future__ import annotations

import click

from cli.common.options import config_option, format_option
from cli.config.load import read_settings
from cli.reassign.run import (
    RunOptions,
    adopt_option,
    auto_option,
    cancel_option,
    carry_out,
    throttle_option,
    yes_option,
)
from cli.reassign.session import RunSession
from planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from planning.reassignments.run.record import RecordedRun
from schemas.errors import HeadroomError


@click.command(short_help="Move the partitions of a run back.")
@click.argument("run_id", metavar="RUN")
@config_option
@format_option
@throttle_option
@auto_option
@click.option("--execute", is_flag=True, help="Change the cluster; without it, only show the steps.")
@yes_option
@adopt_option
@cancel_option
@click.option("--force", is_flag=True, help="Run with a throttle that is too low.")
def rollback(
    run_id: str,
    config: str | None,
    output_format: str,
    throttle: int | None,
    auto_up_to: int | None,
    execute: bool,
    yes: bool,
    adopt: bool,
    cancel_on_stop: bool,
    force: bool,
) -> None:
    """Move the partitions of RUN back to the replicas, and the order of them, that they had before it.

    This is a run like any other: throttled, journalled, and resumed by the same command. The id of a run is listed by
    headroom reassign runs.

    \b
    Example:  headroom reassign rollback 3f9a01c2 --throttle 50MB
              headroom reassign rollback 3f9a01c2 --throttle 50MB --execute
    """  # noqa: D301
    record = RunSession(read_settings(config), "reassign rollback").of_id(run_id)
    words = f"reassign rollback {record.run_id}"
    options = RunOptions(config, throttle, auto_up_to, execute, yes, adopt, force, cancel_on_stop, words)
    carry_out([plan_back(record)], options, output_format, "reassign rollback")


def plan_back(record: RecordedRun) -> ReassignmentPlan:
    """Return the plan that undoes a run.

    Raises:
        HeadroomError: the run has moved nothing.
    """
    if not record.submitted:
        raise HeadroomError(f"run {record.run_id}", "has moved nothing", "There is nothing to roll back.")
    return ReassignmentPlan(
        tuple(TargetAssignment(*name, move.before) for name, move in sorted(record.submitted.items()))
    )
