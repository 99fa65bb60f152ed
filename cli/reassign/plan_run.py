"""What the commands that carry out plans share: their options, and the output of the steps and the result."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import click

from headroom.alerts.recommendations.commands import changing_command, headroom_apply
from headroom.cli.common.changing import print_note, print_notes, require_answer
from headroom.cli.common.outcome import CommandOutcome, in_text
from headroom.cli.common.output import console, echo
from headroom.cli.common.parameters import Rate
from headroom.cli.common.progress import ProgressView
from headroom.cli.common.stopping import stopping
from headroom.cli.config.load import load_settings
from headroom.cli.reassign.view import outcome_json, print_outcome, print_steps, steps_json
from headroom.cli.throttle.rates import require_low_rate
from headroom.cluster.reassignment.execution.control import IfCleared
from headroom.operations.reassignments.run import PlanRunner, RunRequest, RunResult, is_finished
from headroom.operations.reassignments.run_plan import PlannedRun
from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.planning.throttles.rate_options import LOW_RATE, rate_options
from headroom.schemas.errors import HeadroomError

_AUTO_UP_TO = "--auto-throttle-up-to"


class TextStream(Enum):
    """Where the text of a run is printed."""

    STDOUT = auto()
    STDERR = auto()
    NONE = auto()

    @property
    def err(self) -> bool:
        """Whether it is standard error."""
        return self is TextStream.STDERR


@dataclass(frozen=True)
class RunOptions:
    """Options of the commands that carry out a plan.

    Attributes:
        request: how the plan is to be run.
        words: words of the command after ``headroom``, for the command that goes on.
        execute: whether to change the cluster.
        yes: whether not to ask before the first batch.
        low_rate: whether rates below 1 MB/s are accepted.
        rates_are_given: whether the rates are options of the command, and not those of a proposal.
    """

    request: RunRequest
    words: str
    execute: bool = False
    yes: bool = False
    low_rate: bool = False
    rates_are_given: bool = True

    def rate_of_option(self) -> dict[str, int | None]:
        """Return the rates of the command by option, bytes per second."""
        return {
            "--throttle": self.request.rates.throttle_bytes_per_s,
            "--log-dirs-throttle": self.request.rates.log_dirs_bytes_per_s,
            _AUTO_UP_TO: self.request.auto_up_to_bytes_per_s,
        }

    def again(self) -> str:
        """Return the command that goes on."""
        if self.rates_are_given:
            rates = rate_options(self.rate_of_option())
        else:
            rates = rate_options({_AUTO_UP_TO: self.request.auto_up_to_bytes_per_s})
            # The rate of the proposal may need it, too.
            rates += [LOW_RATE] * (self.low_rate and LOW_RATE not in rates)
        asked = self.request
        flags = ["--adopt"] * asked.adopt + ["--force"] * asked.force + ["--cancel-on-stop"] * asked.cancel_on_stop
        if asked.if_cleared is not IfCleared.RESTORE:
            flags += ["--if-cleared", asked.if_cleared.value]
        return changing_command([self.words, *rates, *flags], asked.config)


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
    _AUTO_UP_TO,
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
    "--cancel-on-stop", is_flag=True, help="Ctrl-C cancels the current batch, instead of waiting for its end."
)

cleared_option = click.option(
    "--if-cleared",
    type=click.Choice([choice.value for choice in IfCleared]),
    default=IfCleared.RESTORE.value,
    show_default=True,
    callback=lambda _context, _parameter, value: IfCleared(value),
    help="When others clear the throttle while partitions move: set it again, cancel the current batch and end, or "
    "leave it until the next batch.",
)


@dataclass(frozen=True)
class CarriedOut:
    """What became of a plan.

    Attributes:
        planned: what its run changes.
        cluster: name of the cluster.
        result: what became of the run; None if it was only shown.
    """

    planned: PlannedRun
    cluster: str
    result: RunResult | None

    @property
    def error(self) -> HeadroomError | None:
        """Why the run did not reach its end; None if it did, or was only shown."""
        return None if self.result is None else self.result.error

    def as_json(self) -> dict[str, Any]:
        """Return the steps and the outcome as a JSON object."""
        outcome = None if self.result is None else self.result.outcome
        return {**steps_json(self.planned, self.cluster), **outcome_json(outcome, self.error)}


def run_of_plan(
    batches: Sequence[ReassignmentPlan], options: RunOptions, command: str, fingerprint: str | None = None
) -> CommandOutcome:
    """Carry out a plan as a command, whose text is printed while it runs."""
    # A run may take days, so its text is printed meanwhile; JSON is one object at the end.
    carried_out = carry_out(batches, options, TextStream.STDOUT if in_text() else TextStream.NONE, command, fingerprint)
    return CommandOutcome(carried_out.as_json, None, error=carried_out.error)


def carry_out(
    batches: Sequence[ReassignmentPlan],
    options: RunOptions,
    text: TextStream,
    command: str,
    fingerprint: str | None = None,
) -> CarriedOut:
    """Show the steps of the batches and, with --execute, take them.

    Args:
        batches: the plan, in parts.
        options: options of the command.
        text: where steps and outcome are printed as text.
        command: command as the journal names it.
        fingerprint: fingerprint that the plan must have; any if None.

    Raises:
        HeadroomError: the plan does not fit the cluster, or another run is unfinished.
    """
    # What the options alone show to be wrong is refused before the cluster is read.
    require_low_rate(options.low_rate, options.rate_of_option())
    require_answer(options.execute, options.yes)
    settings = load_settings(options.request.config)
    with PlanRunner(settings, command, batches, options.request) as runner:
        if not options.execute:
            planned = runner.plan_run(fingerprint, to_execute=False)
            _print_planned(planned, runner.cluster, text)
            if text is not TextStream.NONE and not is_finished(planned):
                echo(err=text.err)
                echo(f"Nothing was changed. To do it: {options.again()}", err=text.err)
            return CarriedOut(planned, runner.cluster, None)
        # Planned and asked under the lock, so that no other run changes anything between the answer and the first step.
        with runner.alone(print_note):
            planned = runner.plan_run(fingerprint, to_execute=True)
            _print_planned(planned, runner.cluster, text)
            question = "Elect these leaders?" if planned.empty else "Move these partitions?"
            asks = not options.yes and (planned.to_elect or not planned.empty)
            if asks and not click.confirm(question, err=True):
                raise click.Abort
            result = RunResult() if is_finished(planned) else _execute(planned, runner, options)
    if text is not TextStream.NONE and result.outcome is not None:
        print_outcome(result.outcome, options.request.config, text.err)
    return CarriedOut(planned, runner.cluster, result)


def _print_planned(planned: PlannedRun, cluster: str, text: TextStream) -> None:
    if text is not TextStream.NONE:
        print_steps(planned, cluster, text.err)
    print_notes(planned.notes())


def _execute(planned: PlannedRun, runner: PlanRunner, options: RunOptions) -> RunResult:
    again = options.again()
    first_stop = "Cancelling" if options.request.cancel_on_stop else "Stopping after"
    first = f"{first_stop} the current batch. Press Ctrl-C again to stop now. To continue: {again}"
    progress = ProgressView(console(sys.stderr))
    with stopping(first) as stop:
        return runner.execute(
            planned,
            again,
            stop,
            progress,
            lambda rate, brokers: f"$ {headroom_apply(rate, brokers, options.request.config)}",
        )
