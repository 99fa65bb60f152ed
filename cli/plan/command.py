"""``headroom plan``: estimate a planned reassignment before anything moves."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence, Set
from dataclasses import replace
from pathlib import Path

import click

from cli.common.logs import silence_clients
from cli.common.options import MAX_DURATION_S, config_option, format_option
from cli.common.output import console, echo, print_json
from cli.common.parameters import Duration, Rate
from cli.common.progress import ProgressView
from cli.config.load import load_settings, read_settings
from cli.plan.batching import BatchingOptions, batching_options, write_batch_files
from cli.plan.json_view import nothing_json, result_json
from cli.plan.making import MakingOptions, made_notes, making_options
from cli.plan.plot import write_plot
from cli.plan.text_view import print_result
from cluster.log_dirs.describe import describe_log_dirs
from cluster.reassignment.state_reader import ClusterStateReader
from operations.plans.rates import busy_hour_rates, known_rates, with_busy_hour
from operations.plans.result import PlanResult
from operations.plans.state_file import read_state, write_state
from operations.reassignments.plan_file import read_plan, write_plan_text
from planning.log_dirs.broker_logs import with_log_dirs
from planning.log_dirs.directory_moves import directory_moves
from planning.log_dirs.duration import DirectoryEstimate, directory_estimates
from planning.reassignments.batches.batching import cut_into_batches
from planning.reassignments.batches.finish_times import finish_times
from planning.reassignments.changes import plan_changes
from planning.reassignments.cluster_state import ClusterState
from planning.reassignments.estimate import estimate, running_plan
from planning.reassignments.generation.planner import make_plan
from planning.reassignments.plan import ReassignmentPlan, TargetAssignment, plan_text
from planning.reassignments.validation import plan_notes, require_possible
from planning.throttles.recommendation import ThrottlePolicy
from schemas.config import Settings
from schemas.errors import HeadroomError
from schemas.keys import TopicPartition


@click.command(short_help="Estimate a planned reassignment: throttle, time, and what would make it fail.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@config_option
@format_option
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
    "--state",
    "state_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Plan from a saved state, without a cluster.",
)
@click.option(
    "--plot", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.svg", help="Draw the time by throttle."
)
def plan(
    file: Path | None,
    config: str | None,
    output_format: str,
    in_flight: bool,
    throttle: int | None,
    log_dirs_throttle: int | None,
    finish_within: float | None,
    save_state: Path | None,
    state_file: Path | None,
    plot: Path | None,
    making: MakingOptions,
    batching: BatchingOptions,
) -> None:
    """Estimate the reassignment in FILE, whose format is that of kafka-reassign-partitions.sh, before anything moves.

    Instead of FILE, say what is wanted (--to-brokers, --replication-factor, --drain, --replace, --reorder): the plan
    with the fewest copies is made. --batches, --max-throttle and --window cut a plan to fit the throttle and the night.

    The result has the throttle that every broker needs, as leader and as destination, the time that the move takes, its
    bottleneck, and the leader switches and lost brokers that would make the throttle too low. Nothing is changed.

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
    """  # noqa: D301
    request = making.request()
    if sum((file is not None, in_flight, request is not None)) != 1:
        raise click.UsageError("Give a plan FILE, or --in-flight, or what is wanted, such as --drain 3.")
    if in_flight and batching.given:
        raise click.UsageError("What runs already cannot be cut into batches.")
    settings = load_settings(config) if state_file is None else read_settings(config)
    wanted = None if file is None else read_plan(file)
    if state_file is not None:
        state = read_state(state_file)
    else:
        state = _live_state(settings, wanted, every_partition=request is not None)
    if save_state is not None:
        write_state(save_state, state)
    # Millions of objects that stay make every collection slow, and the process ends soon.
    gc.disable()
    made = None if request is None else make_plan(state, request)
    if made is not None and not made.plan.assignments:
        _report_nothing(state, made_notes(made), output_format)
        return
    wanted = wanted if made is None else made.plan
    policy = ThrottlePolicy(settings.alerts.margin_ratio, finish_within, settings.cluster.replication_capacity)
    result = plan_result(wanted, state, policy, throttle, "the plan" if file is None else str(file))
    result = replace(result, directories=_directories(result, log_dirs_throttle))
    if made is not None:
        result = replace(result, made=True, notes=[*made_notes(made), *result.notes])
    if batching.given or (made is not None and made.leads_first):
        result = _with_batches(result, batching, throttle, () if made is None else made.leads_first)
    if making.save_plan is not None:
        write_plan_text(making.save_plan, plan_text(result.plan))
    if batching.batches_dir is not None:
        write_batch_files(batching.batches_dir, result.batches, result.estimate.changes.rollback)
    if plot is not None:
        write_plot(plot, result.estimate.times)
    if output_format == "json":
        print_json(result_json(result))
    else:
        print_result(result)


def _with_batches(
    result: PlanResult, batching: BatchingOptions, throttle: int | None, leads_first: Sequence[TargetAssignment]
) -> PlanResult:
    policy = result.policy
    limits = batching.policy(policy.margin_ratio, throttle, policy.finish_within_s, policy.capacity_bytes_per_s)
    times = finish_times(result.state, leads_first, policy.capacity_bytes_per_s)
    cut = cut_into_batches(result.state, result.plan, limits, leads_first, times)
    batches = [ReassignmentPlan(batch.assignments) for batch in cut.batches]
    return replace(result, cut=cut, batches=batches)


def _report_nothing(state: ClusterState, notes: Sequence[str], output_format: str) -> None:
    if output_format == "json":
        print_json(nothing_json(state, notes))
        return
    echo(f"Cluster {state.cluster}: nothing has to change.")
    for note in notes:
        echo(f"Note: {note}")


def plan_result(
    wanted: ReassignmentPlan | None, state: ClusterState, policy: ThrottlePolicy, throttle: int | None, subject: str
) -> PlanResult:
    """Return the result of the command.

    Args:
        wanted: the plan; the reassignments that run now if None.
        state: the cluster.
        policy: margin, deadline and capacity.
        throttle: throttle of the estimate, bytes per second; the recommended one if None.
        subject: name of the plan, for errors.

    Raises:
        HeadroomError: the plan cannot be carried out, or nothing runs.
    """
    in_flight = wanted is None
    found = running_plan(state) if wanted is None else wanted
    if in_flight and not found.assignments:
        raise HeadroomError("the cluster", "has no running reassignment", "Name a plan file to estimate it.")
    changes = plan_changes(found, state) if in_flight else require_possible(found, state, subject)
    notes = plan_notes(found, changes, state)
    move = estimate(changes, state, policy, throttle, in_flight)
    return PlanResult(found, (found,), state, policy, move, notes, in_flight)


def _directories(result: PlanResult, log_dirs_throttle: int | None) -> tuple[DirectoryEstimate, ...]:
    """Return the estimates of the moves between log directories, by broker."""
    rates = {broker: found.log_dirs_bytes_per_s for broker, found in result.state.brokers.items()}
    return directory_estimates(directory_moves(result.plan, result.state), rates, log_dirs_throttle)


def _live_state(settings: Settings, wanted: ReassignmentPlan | None, every_partition: bool) -> ClusterState:
    silence_clients()
    progress = ProgressView(console(sys.stderr))
    with progress.step("Reading the cluster"), ClusterStateReader(settings) as reader:
        if wanted is None and not every_partition:
            # What runs now writes at the rates of now.
            return _with_log_dirs(reader.read(None), reader, settings)
        busy_hour = busy_hour_rates(settings)
        names: Set[TopicPartition] = frozenset() if wanted is None else wanted.by_name.keys()
        if every_partition:
            # A plan that is yet to be made may change any of them.
            names = reader.partitions()
        if names <= busy_hour.write_bytes_per_s.keys():
            return _with_log_dirs(reader.read(names, known_rates(busy_hour)), reader, settings)
        return _with_log_dirs(with_busy_hour(reader.read(names), busy_hour), reader, settings)


def _with_log_dirs(state: ClusterState, reader: ClusterStateReader, settings: Settings) -> ClusterState:
    """Return the state with the log directories of the brokers that report them; the output names the others."""
    timeout_s = settings.cluster.request_timeout_ms / 1000
    return with_log_dirs(state, describe_log_dirs(reader.connection, sorted(state.alive), timeout_s).brokers)
