"""What the commands that carry out plans share: their options, and the output of the steps and the result."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import click

from headroom.alerts.recommendations.commands import config_option_of, headroom_apply
from headroom.cli.common.changing import print_notes, require_answer
from headroom.cli.common.output import console, echo, print_json
from headroom.cli.common.parameters import Rate
from headroom.cli.common.progress import ProgressView
from headroom.cli.common.stopping import stopping
from headroom.cli.config.load import load_settings
from headroom.cli.reassign.view import outcome_json, print_outcome, print_steps, steps_json
from headroom.cli.throttle.rates import require_low_rate
from headroom.cluster.reassignment.execution.control import IfCleared
from headroom.operations.reassignments.run import PlanRunner, RunRequest, RunResult, is_finished
from headroom.operations.reassignments.run_plan import PlannedRun, RunRates
from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.planning.throttles.rate_options import rate_options


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
        if_cleared: what to do when others clear the throttle while partitions move.
        low_rate: whether rates below 1 MB/s are accepted.
        words: words of the command after ``headroom``, for the command that goes on.
        skip_missing: whether partitions of the plan that do not exist are left out, and named.
    """

    config: str | None
    rates: RunRates
    auto_up_to: int | None
    execute: bool
    yes: bool
    adopt: bool
    force: bool
    cancel_on_stop: bool
    if_cleared: IfCleared
    low_rate: bool
    words: str
    skip_missing: bool = False

    def request(self) -> RunRequest:
        """Return how the plan is to be run."""
        return RunRequest(
            self.rates,
            self.auto_up_to,
            self.adopt,
            self.force,
            self.cancel_on_stop,
            self.if_cleared,
            self.skip_missing,
            self.config,
        )

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
        if self.if_cleared is not IfCleared.RESTORE:
            flags += ["--if-cleared", self.if_cleared.value]
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

cleared_option = click.option(
    "--if-cleared",
    type=click.Choice([choice.value for choice in IfCleared]),
    default=IfCleared.RESTORE.value,
    show_default=True,
    callback=lambda _context, _parameter, value: IfCleared(value),
    help="When others clear the throttle while partitions move: set it again, cancel the batch at hand and end, or "
    "leave it until the next batch.",
)


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
    with PlanRunner(settings, command, batches, options.request()) as runner:
        if not options.execute:
            _show(runner.plan_run(fingerprint, to_execute=False), runner.cluster, options, output_format)
            return
        # Planned and asked under the lock, so that no other run changes anything between the answer and the first step.
        with runner.alone():
            planned = runner.plan_run(fingerprint, to_execute=True)
            if output_format == "text":
                print_steps(planned, runner.cluster)
            print_notes(planned.notes())
            if not options.yes and not planned.empty and not click.confirm("Move these partitions?", err=True):
                raise click.Abort
            result = RunResult() if is_finished(planned) else _execute(planned, runner, options)
    if output_format == "json":
        print_json({**steps_json(planned, runner.cluster), **outcome_json(result.outcome, result.error)})
    elif result.outcome is not None:
        print_outcome(result.outcome, options.config)
    if result.error is not None:
        raise result.error


def _show(planned: PlannedRun, cluster: str, options: RunOptions, output_format: str) -> None:
    if output_format == "json":
        print_json({**steps_json(planned, cluster), **outcome_json(None, None)})
        return
    print_steps(planned, cluster)
    print_notes(planned.notes())
    if not is_finished(planned):
        echo()
        echo(f"Nothing was changed. To do it: {options.again()}")


def _execute(planned: PlannedRun, runner: PlanRunner, options: RunOptions) -> RunResult:
    again = options.again()
    at_hand = "cancels" if options.cancel_on_stop else "ends after"
    first = f"Stopping: the run {at_hand} the batch at hand. Again ends it at once; then to go on: {again}"
    progress = ProgressView(console(sys.stderr))
    with stopping(first) as stop:
        return runner.execute(
            planned, again, stop, progress, lambda rate, brokers: f"$ {headroom_apply(rate, brokers, options.config)}"
        )
