"""``headroom reassign run``: carry out a reassignment plan, batch by batch."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from alerts.recommendations.commands import headroom_apply
from cli.common.changing import print_notes, require_answer
from cli.common.options import config_option, format_option
from cli.common.output import console, echo, print_json
from cli.common.parameters import Rate
from cli.common.progress import ProgressView
from cli.common.stopping import stopping
from cli.config.load import load_settings
from cli.reassign.view import outcome_json, print_outcome, print_steps, steps_json
from cli.throttle.rates import low_rate_option, require_low_rate
from cluster.reassignment.execution.control import RunOutput, RunPolicy
from cluster.reassignment.execution.executor import ReassignmentExecutor, RunOutcome
from cluster.reassignment.execution.live_control import LiveClusterControl
from operations.reassignments.plan_files import read_batches, whole_plan
from operations.reassignments.run_plan import PlannedRun, RunRates, planned_run
from operations.reassignments.session import RunSession, config_option_of, require_this_host
from planning.elections.quiet_hours import DailyWindow, QuietPolicy
from planning.reassignments.plan import ReassignmentPlan
from planning.reassignments.run.conditions import require_only_run
from planning.reassignments.run.directories import named_partitions
from planning.reassignments.run.record import RecordedRun, RunState
from planning.reassignments.run.snapshot import RunSnapshot, cluster_state_of_run
from planning.throttles.rate_options import rate_options
from planning.throttles.recommendation import ThrottlePolicy
from schemas.config import Settings
from schemas.errors import HeadroomError
from schemas.text.amounts import rate_text


@dataclass(frozen=True)
class RunOptions:
    """Options of the commands that carry out a plan.

    Attributes:
        config: settings file; the default one if None.
        rates: rates of the throttles.
        auto_up_to: highest rate to which the run raises its throttle, bytes per second; None: it raises none.
        execute: whether to change the cluster.
        yes: whether not to ask before the first batch.
        adopt: whether to run beside reassignments of others.
        force: whether to run with a throttle that is too low, or to take over a run of another machine.
        cancel_on_stop: whether a stop takes back the batch at hand.
        low_rate: whether rates below 1 MB/s are accepted.
        words: words of the command after ``headroom``, for the command that goes on.
    """

    config: str | None
    rates: RunRates
    auto_up_to: int | None
    execute: bool
    yes: bool
    adopt: bool
    force: bool
    cancel_on_stop: bool
    low_rate: bool
    words: str

    def rate_of_option(self) -> dict[str, int | None]:
        """Return the rates of the command by option, bytes per second."""
        return {
            "--throttle": self.rates.throttle_bytes_per_s,
            "--log-dirs-throttle": self.rates.log_dirs_bytes_per_s,
            "--auto-throttle-up-to": self.auto_up_to,
        }

    def again(self) -> str:
        """Return the command that goes on."""
        return self.with_options(rate_options(self.rate_of_option()))

    def with_options(self, rates: Sequence[str]) -> str:
        """Return the command with these words for its rates."""
        flags = ["--adopt"] * self.adopt + ["--force"] * self.force + ["--cancel-on-stop"] * self.cancel_on_stop
        return f"headroom {' '.join([self.words, *rates, *flags])}{config_option_of(self.config)} --execute"


throttle_option = click.option(
    "--throttle",
    type=Rate(),
    metavar="RATE",
    help="Rate of the brokers that take part, e.g. 50MB. Higher rates in force stay.",
)
log_dirs_option = click.option(
    "--log-dirs-throttle",
    "log_dirs_throttle",
    type=Rate(),
    metavar="RATE",
    help="Rate of moves between the log directories of a broker. Higher rates in force stay.",
)
auto_option = click.option(
    "--auto-throttle-up-to",
    "auto_up_to",
    type=Rate(),
    metavar="RATE",
    help="Raise the throttle up to this rate where it is or becomes too low.",
)
yes_option = click.option("--yes", is_flag=True, help="With --execute: do not ask before the first batch.")
adopt_option = click.option("--adopt", is_flag=True, help="Run although other reassignments are running.")
force_option = click.option(
    "--force", is_flag=True, help="Run with a throttle that is too low, or go on with a run of another machine."
)
cancel_option = click.option(
    "--cancel-on-stop", is_flag=True, help="Ctrl-C cancels the batch at hand, instead of waiting for its end."
)


@click.command(short_help="Carry out a plan: throttle, submit, watch, and remove what was set.")
@click.argument("plans", type=click.Path(path_type=Path, dir_okay=False), nargs=-1)
@config_option
@format_option
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
@click.option("--execute", is_flag=True, help="Change the cluster; without it, only show the steps.")
@yes_option
@adopt_option
@cancel_option
@low_rate_option
@force_option
def run(
    plans: tuple[Path, ...],
    config: str | None,
    output_format: str,
    batches_dir: Path | None,
    throttle: int | None,
    log_dirs_throttle: int | None,
    auto_up_to: int | None,
    fingerprint: str | None,
    execute: bool,
    yes: bool,
    adopt: bool,
    cancel_on_stop: bool,
    low_rate: bool,
    force: bool,
) -> None:
    """Carry out the reassignment plans in PLANS, whose format is that of kafka-reassign-partitions.sh.

    Each file is a batch; a batch begins when the one before it has ended. For a batch the run appends its own entries
    to the throttled replica lists, raises lower and missing rates of its brokers to --throttle, and submits it. A
    partition that has ended leaves the lists at once. In the end the rates are what they were before, and preferred
    leaders are elected in the batches of headroom elections.

    Replicas get the log directories that a plan names ("any": the broker chooses). Moves between the directories of a
    broker are limited by --log-dirs-throttle.

    Every step is in the journal (table actions/journal) before it is taken. After a crash, run the same command again:
    it goes on where it was. To end such a run instead: headroom reassign clean.

    No further batch begins after a lost replica, a full disk, or outside reassign.window. Ctrl-C ends the run after the
    batch at hand, a second one at once.

    \b
    Example:  headroom reassign run move.json --throttle 50MB
              headroom reassign run move.json --throttle 50MB --execute
              headroom reassign run --batches-dir batches --throttle 50MB --execute --yes    (for cron)
    """  # noqa: D301
    if not plans and batches_dir is None:
        raise click.UsageError("Name a plan file, or a folder with --batches-dir.")
    files = [shlex.quote(str(file)) for file in plans]
    files += [f"--batches-dir {shlex.quote(str(batches_dir))}"] if batches_dir is not None else []
    words = " ".join(["reassign run", *files])
    rates = RunRates(throttle, log_dirs_throttle)
    options = RunOptions(config, rates, auto_up_to, execute, yes, adopt, force, cancel_on_stop, low_rate, words)
    carry_out(read_batches(plans, batches_dir), options, output_format, "reassign run", fingerprint)


def carry_out(
    batches: Sequence[ReassignmentPlan],
    options: RunOptions,
    output_format: str,
    command: str,
    fingerprint: str | None = None,
) -> None:
    """Show the steps of the batches and, with --execute, take them.

    Args:
        batches: the plan, in parts.
        options: options of the command.
        output_format: text or json.
        command: command as the journal names it.
        fingerprint: fingerprint that the plan must have; any if None.

    Raises:
        HeadroomError: the plan does not fit the cluster, another run is unfinished, or the run ended with an error.
    """
    require_low_rate(options.low_rate, options.rate_of_option())
    require_answer(options.execute, options.yes)
    settings = load_settings(options.config)
    session = RunSession(settings, command)
    plan = whole_plan(batches)
    topics, placed = {assignment.topic for assignment in plan}, named_partitions(plan)
    measured = options.rates != RunRates(None)
    with LiveClusterControl(settings, topics, measured, placed) as control:
        if not options.execute:
            planned = _planned(session, control, batches, options, fingerprint)
            _show(planned, session, options, output_format)
            return
        with session.alone():
            planned = _planned(session, control, batches, options, fingerprint)
            require_this_host(planned.record, options.force)
            if output_format == "text":
                print_steps(planned, session.cluster)
            print_notes(planned.notes())
            if not options.yes and not planned.empty and not click.confirm("Move these partitions?", err=True):
                raise click.Abort
            outcome, error = _execute(planned, session, control, settings, options)
    if output_format == "json":
        print_json({**steps_json(planned, session.cluster), **outcome_json(outcome, error)})
    elif outcome is not None:
        print_outcome(outcome)
    if error is not None:
        raise error


def _planned(
    session: RunSession,
    control: LiveClusterControl,
    batches: Sequence[ReassignmentPlan],
    options: RunOptions,
    expected: str | None,
) -> PlannedRun:
    snapshot, plan = control.read(), whole_plan(batches)
    fingerprint = plan.fingerprint(snapshot.topic_ids)
    if expected is not None and expected != fingerprint:
        rule = f"is {expected}, but that of the plan and its topics is {fingerprint}: it is not what was estimated"
        raise HeadroomError("--fingerprint", rule, "Estimate the plan again: headroom plan.")
    record = session.resumable(fingerprint) or session.journal().record
    if options.execute:
        # First, because its moves would be reasons to refuse the plan.
        require_only_run(session.records, record.run_id)
    logs = control.read_logs(sorted(snapshot.alive), sorted(plan.by_name.keys())).brokers
    state = cluster_state_of_run(snapshot, logs)
    return planned_run(batches, snapshot, state, record, fingerprint, options.rates, options.adopt)


def _show(planned: PlannedRun, session: RunSession, options: RunOptions, output_format: str) -> None:
    if output_format == "json":
        print_json({**steps_json(planned, session.cluster), **outcome_json(None, None)})
        return
    print_steps(planned, session.cluster)
    print_notes(planned.notes())
    if not planned.empty or planned.record.state is RunState.UNFINISHED:
        echo()
        echo(f"Nothing was changed. To do it: {options.again()}")


def _execute(
    planned: PlannedRun, session: RunSession, control: LiveClusterControl, settings: Settings, options: RunOptions
) -> tuple[RunOutcome | None, HeadroomError | None]:
    """Run the batches, and return the result and the error that ends the command, as far as there are any."""
    if planned.empty and planned.record.state is not RunState.UNFINISHED:
        return None, None
    progress = ProgressView(console(sys.stderr))
    again = options.again()
    output = RunOutput(
        progress.note, progress.print_line, lambda rate, brokers: f"$ {headroom_apply(rate, brokers, options.config)}"
    )
    journal = session.journal(planned.record)
    policy = _policy(settings, options)
    at_hand = "cancels" if options.cancel_on_stop else "ends after"
    first = f"Stopping: the run {at_hand} the batch at hand. Again ends it at once; then to go on: {again}"
    with stopping(first) as stop, progress.step(f"Run {journal.record.run_id}"):
        executor = ReassignmentExecutor(control, journal, planned.batches, planned.fingerprint, policy, stop, output)
        try:
            outcome = executor.run()
        except HeadroomError as error:
            return None, _with_command(error, journal.record, again)
    return outcome, _error_of(outcome, again)


def _policy(settings: Settings, options: RunOptions) -> RunPolicy:
    reassign = settings.reassign
    quiet = QuietPolicy(DailyWindow.of(reassign.window) if reassign.window else None, reassign.quiet_below)

    def blocked_reason(snapshot: RunSnapshot) -> str | None:
        written = snapshot.cluster_write_bytes_per_s
        if quiet.allows(time.time(), written):
            return None
        reasons = [f"it is not {reassign.window} now (reassign.window)"] * bool(reassign.window)
        if reassign.quiet_below is not None:
            limit = rate_text(reassign.quiet_below)
            reasons.append(f"producers write {rate_text(written)}, not less than {limit} (reassign.quiet_below)")
        return "; ".join(reasons)

    return RunPolicy(
        throttle_bytes_per_s=options.rates.throttle_bytes_per_s,
        auto_up_to_bytes_per_s=options.auto_up_to,
        throttles=ThrottlePolicy(settings.alerts.margin_ratio, None, settings.cluster.replication_capacity),
        blocked_reason=blocked_reason,
        adopt=options.adopt,
        force=options.force,
        cancel_on_stop=options.cancel_on_stop,
        settle_s=reassign.settle_s,
        pause_s=reassign.pause_s,
        log_dirs_bytes_per_s=options.rates.log_dirs_bytes_per_s,
        command=options.again(),
    )


def _with_command(error: HeadroomError, record: RecordedRun, again: str) -> HeadroomError:
    """Return the error with the command that goes on, if something of the run is still to be done or taken back."""
    if not record.leaves_behind:
        return error
    return HeadroomError(error.subject, error.rule, f"{error.remedy} To go on: {again}")


def _error_of(outcome: RunOutcome, again: str) -> HeadroomError | None:
    """Return the error that ends the command; None if every partition is at its target and nothing is left behind."""
    subject = f"run {outcome.record.run_id}"
    if outcome.stopped is not None:
        return HeadroomError(subject, f"ended early: {outcome.stopped}", f"To go on: {again}")
    if outcome.refused:
        rule = f"{len(outcome.refused)} partitions are not at their target"
        return HeadroomError(subject, rule, f"See the reasons above, then run it again: {again}")
    if outcome.record.leaves_behind:
        rule = "some of its throttle is still set"
        return HeadroomError(subject, rule, "When the brokers are up: headroom reassign clean --execute")
    return None
