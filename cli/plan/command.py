"""``headroom plan``: estimate a planned reassignment before anything moves."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from headroom.cli.common.changing import print_note
from headroom.cli.common.logs import silence_clients
from headroom.cli.common.options import MAX_DURATION_S, config_option
from headroom.cli.common.outcome import CommandOutcome, with_format
from headroom.cli.common.output import console, echo
from headroom.cli.common.parameters import Duration, Rate
from headroom.cli.common.progress import ProgressView
from headroom.cli.config.load import load_settings, read_settings
from headroom.cli.plan.batching import BatchingOptions, batching_options
from headroom.cli.plan.json_view import nothing_json, result_json
from headroom.cli.plan.making import MakingOptions, making_options
from headroom.cli.plan.plot import write_plot
from headroom.cli.plan.text_view import print_result
from headroom.cli.plan.written import WrittenFiles, print_written, write_result, written_json
from headroom.operations.plans.batch_files import write_batch_files
from headroom.operations.plans.estimating import EstimateRequest, estimate_plan, made_notes
from headroom.operations.plans.live_state import read_live_state
from headroom.operations.plans.state_file import read_state, write_state
from headroom.operations.reassignments.plan_file import read_plan, write_plan_text
from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.planning.reassignments.generation.planner import make_plan
from headroom.planning.reassignments.plan import plan_text
from headroom.planning.reassignments.room.volumes import with_volumes
from headroom.planning.reassignments.validation import require_room
from headroom.planning.throttles.recommendation import ThrottlePolicy

# With --detailed-exitcode. Lower codes have meanings of their own.
DOES_NOT_FIT, UNKNOWN_WHETHER_IT_FITS = 4, 5
_EXIT_CODES = {True: 0, False: DOES_NOT_FIT, None: UNKNOWN_WHETHER_IT_FITS}


@click.command(short_help="Estimate a planned reassignment: throttle, time, and what would make it fail.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@config_option
@with_format
@making_options
@batching_options
@click.option("--in-flight", is_flag=True, help="Estimate the reassignments that run now, instead of a file.")
@click.option("--throttle", type=Rate(), metavar="RATE", help="Estimate for this throttle, such as 12.5MB.")
@click.option(
    "--log-dirs-throttle",
    type=Rate(),
    metavar="RATE",
    help="Estimate moves between the log directories of a broker for this rate.",
)
@click.option(
    "--finish-within",
    type=Duration(MAX_DURATION_S),
    metavar="DURATION",
    help="Recommend a throttle that finishes the move in this time, such as 2h.",
)
@click.option(
    "--save-state",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the state of the cluster that the plan rests on.",
)
@click.option(
    "--save-result",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the result as JSON, as --format json prints it.",
)
@click.option(
    "--state",
    "state_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Plan from a saved state, without a cluster.",
)
@click.option(
    "--detailed-exitcode",
    is_flag=True,
    help=f"Exit with {DOES_NOT_FIT} if the plan does not fit, and with {UNKNOWN_WHETHER_IT_FITS} if that is unknown.",
)
@click.option(
    "--plot", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.svg", help="Draw the time by throttle."
)
def plan(
    file: Path | None,
    config: str | None,
    in_flight: bool,
    throttle: int | None,
    log_dirs_throttle: int | None,
    finish_within: float | None,
    save_state: Path | None,
    save_result: Path | None,
    state_file: Path | None,
    detailed_exitcode: bool,
    plot: Path | None,
    making: MakingOptions,
    batching: BatchingOptions,
) -> CommandOutcome:
    """Estimate the reassignment in FILE, whose format is that of kafka-reassign-partitions.sh, before anything moves.

    Instead of FILE, say what is wanted (--to-brokers, --replication-factor, --drain, --replace, --reorder): the plan
    with the fewest copies is made. --batches, --max-throttle and --window cut a plan to fit the throttle and the night.

    The result has the throttle that every broker needs, as leader and as destination, the time that the move takes, its
    bottleneck, and the leader switches and lost brokers that would make the throttle too low. Nothing is changed.

    With --detailed-exitcode the exit code says whether the plan fits: 0 if it does, or if nothing has to change.

    Write rates come from two readings, 5 s apart. Margin and capacity: alerts.margin_ratio and
    cluster.replication_capacity.

    \b
    Example:  headroom plan move.json
              headroom plan move.json --finish-within 6h --plot move.svg
              headroom plan move.json --throttle 12.5MB --format json
              headroom plan move.json --save-state state.json
              headroom plan move.json --state state.json
              headroom plan --in-flight
              headroom plan --drain 3 --max-throttle 50MB --window "22:00-06:00 Europe/Berlin" --batches-dir drain3
              headroom plan --topics orders,payments --replication-factor 3 --save-plan move.json
              headroom plan --to-brokers 1,2,3,4,5 --batches 4
              headroom plan move.json --throttle 50MB --detailed-exitcode && echo it fits
    """  # noqa: D301
    request = making.request()
    if sum((file is not None, in_flight, request is not None)) != 1:
        raise click.UsageError("Give a plan FILE, or --in-flight, or what is wanted, such as --drain 3.")
    if in_flight and batching.is_given:
        raise click.UsageError("What runs already cannot be cut into batches.")
    # A saved state needs no cluster, so an estimate of it works on any machine.
    settings = load_settings(config) if state_file is None else read_settings(config)
    wanted = None if file is None else read_plan(file, print_note)
    if state_file is None:
        silence_clients()
        with ProgressView(console(sys.stderr)).step("Reading the cluster"):
            state = read_live_state(settings, wanted, every_partition=request is not None)
    else:
        # Brokers do not report which directories share a volume. The settings say it, so they may be corrected
        # afterwards.
        state = with_volumes(read_state(state_file), settings.cluster.log_dir_volumes)
    if save_state is not None:
        write_state(save_state, state)
    # Millions of objects that stay make every collection slow, and the process ends soon.
    gc.disable()
    made = None if request is None else make_plan(state, request)
    if made is not None and not made.plan.assignments:
        notes = made_notes(made)
        if save_result is not None:
            write_result(save_result, nothing_json(state, notes))
        return CommandOutcome(lambda: nothing_json(state, notes), lambda: _print_nothing(state, notes))
    policy = ThrottlePolicy(settings.alerts.margin_ratio, finish_within, settings.cluster.replication_capacity)
    asked = EstimateRequest(policy, throttle, log_dirs_throttle, batching if batching.is_given else None)
    result = estimate_plan(wanted if made is None else made, state, asked, "the plan" if file is None else str(file))
    if making.save_plan is not None:
        # Unlike the batches, the file is carried out in one go.
        require_room([result.plan], state, "the plan in one file")
        write_plan_text(making.save_plan, plan_text(result.plan))
    if batching.batches_dir is not None:
        write_batch_files(batching.batches_dir, result.batches, result.estimate.changes.rollback)
    if plot is not None:
        write_plot(plot, result.estimate.times)
    written = WrittenFiles(
        batching.batches_dir, making.save_plan, config, log_dirs_throttle, max_throttle=batching.max_throttle
    )

    def as_json() -> dict[str, Any]:
        return {**result_json(result), **written_json(written, result)}

    if save_result is not None:
        write_result(save_result, as_json())

    def print_text() -> None:
        print_result(result)
        print_written(written, result)

    exit_code = _EXIT_CODES[result.fits] if detailed_exitcode else 0
    return CommandOutcome(as_json, print_text, exit_code=exit_code)


def _print_nothing(state: ClusterState, notes: Sequence[str]) -> None:
    echo(f"Cluster {state.cluster}: nothing has to change.")
    for note in notes:
        echo(f"Note: {note}")
