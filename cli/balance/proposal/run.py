"""``headroom balance run``: carry out the batches of a proposal, and weigh what is left before each of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path

import click

from headroom.alerts.recommendations.commands import config_option_of
from headroom.cli.balance.loading import load_cluster
from headroom.cli.common.changing import execute_option_of, require_answer, require_execute
from headroom.cli.common.options import config_option, format_option
from headroom.cli.common.output import echo, print_json
from headroom.cli.common.stopping import stopping
from headroom.cli.config.load import load_settings
from headroom.cli.reassign.plan_run import (
    RunOptions,
    auto_option,
    cancel_option,
    carry_out,
    cleared_option,
    force_option,
)
from headroom.cli.throttle.rates import low_rate_option, require_low_rate
from headroom.cluster.reassignment.execution.control import IfCleared
from headroom.operations.balance.proposal_run import COMMAND, NextBatch, next_batch, weigh_rest
from headroom.operations.balance.written_proposal import WrittenProposal, read_own_proposal
from headroom.operations.reassignments.run_plan import RunRates
from headroom.planning.balance.reports.rest import RestOfProposal
from headroom.planning.elections.quiet_hours import DailyWindow
from headroom.planning.throttles.rate_options import LOW_RATE, rate_options
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text import shell_quoted

_WINDOW_POLL_S = 10.0


@dataclass(frozen=True)
class _BalanceRun(RunOptions):
    """Options of the command. The throttle is that of the proposal."""

    def again(self) -> str:
        """Return the command that goes on."""
        up_to = rate_options({"--auto-throttle-up-to": self.auto_up_to})
        return self.with_options(up_to + [LOW_RATE] * (self.low_rate and LOW_RATE not in up_to))


@click.command(short_help="Carry out the batches of a proposal, and weigh what is left before each.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
@config_option
@format_option
@auto_option
@cancel_option
@cleared_option
@low_rate_option
@force_option
@execute_option_of("Change the cluster; without it, only show what is next.")
@click.option("--yes", is_flag=True, help="With --execute: do not ask before the first batch.")
@click.option("--wait", is_flag=True, help="With --execute: wait for balance.window, instead of ending outside of it.")
def run(
    folder: Path,
    config: str | None,
    output_format: str,
    auto_up_to: int | None,
    cancel_on_stop: bool,
    if_cleared: IfCleared,
    low_rate: bool,
    force: bool,
    execute: bool,
    yes: bool,
    wait: bool,
) -> None:
    """Carry out the proposal in DIR, batch after batch, as headroom reassign run carries out a plan.

    Exactly what was proposed is run. Before each batch the cluster is read again. The command ends, with the reason, if
    partitions have replicas that no batch has left behind, a broker of the rest is gone or its metrics are unknown, or
    the rest gains nothing any more. Batches begin in balance.window, and reassign.pause_s apart.

    Run the same command again to go on after an error, Ctrl-C or a crash. Ctrl-C ends it after the batch at hand.

    \b
    Example:  headroom balance propose --dir balance
              headroom balance run balance
              headroom balance run balance --execute
              headroom balance run balance --execute --yes --wait    (for cron)
    """  # noqa: D301
    require_execute(execute, yes, wait)
    require_answer(execute, yes)
    settings = load_settings(config)
    proposal = read_own_proposal(folder, settings)
    throttle = proposal.throttle_bytes_per_s if any(proposal.copies) else None
    require_low_rate(low_rate, {"--auto-throttle-up-to": auto_up_to, "The throttle of the proposal": throttle})
    words = f"{COMMAND} {shell_quoted(str(folder))}"
    options = _BalanceRun(
        config, RunRates(None), auto_up_to, execute, yes, False, force, cancel_on_stop, if_cleared, low_rate, words
    )
    ran: list[int] = []
    weighed: RestOfProposal | None = None
    # In JSON there is one object on standard output, after the last batch.
    with redirect_stdout(sys.stderr) if output_format == "json" else nullcontext():
        # Read again before each batch, after any wait.
        while (following := next_batch(proposal, settings, folder)) is not None:
            _require_other(following, ran, folder, config)
            if execute and not following.begun and _has_waited(settings.balance.window, wait):
                continue
            weighed = _weigh(proposal, following, folder, config)
            if not execute:
                echo(f"Nothing was changed. To do it: {options.again()}")
                break
            _carry_out(proposal, following.number, replace(options, yes=yes or bool(ran)))
            ran.append(following.number)
            if set(following.left) - {following.number}:
                _pause(settings.reassign.pause_s)
        else:
            echo(f"All {len(proposal.batches)} batches are done.")
    if output_format == "json":
        print_json(
            {
                "proposal_id": proposal.proposal_id,
                "batches": len(proposal.batches),
                "ran": ran,
                "next_batch": None if following is None else following.number,
                "outside_before": None if weighed is None else weighed.outside_before,
                "outside_after": None if weighed is None else weighed.outside_after,
            }
        )


def _require_other(following: NextBatch, ran: Sequence[int], folder: Path, config: str | None) -> None:
    """Check that the next batch is another one than the last.

    Raises:
        HeadroomError: it is the same: its partitions do not have their target replicas.
    """
    if ran and following.number == ran[-1]:
        see = f"headroom reassignments{config_option_of(config)}"
        rule = f"batch {ran[-1]} has ended, and some of its partitions do not have their target replicas"
        raise HeadroomError(str(folder), rule, f"See which: {see}. Then propose again.")


def _weigh(proposal: WrittenProposal, following: NextBatch, folder: Path, config: str | None) -> RestOfProposal | None:
    """Print what is next, and return what the rest gains; None for a batch that was interrupted, which goes on.

    Raises:
        HeadroomError: the rest is not to be carried out.
    """
    name = f"Batch {following.number} of {len(proposal.batches)}"
    if following.begun:
        echo(f"{name} was interrupted, and goes on.")
        return None
    rest = weigh_rest(proposal, following, folder, load_cluster(config, None))
    echo(
        f"{name}: all that is left takes load outside of bands, in shares of the means, from {rest.outside_before:.3f} "
        f"to {rest.outside_after:.3f}."
    )
    return rest


def _carry_out(proposal: WrittenProposal, number: int, options: _BalanceRun) -> None:
    plan, fingerprint = proposal.batches[number - 1].plan, proposal.fingerprints[number - 1]
    options = replace(options, rates=RunRates(proposal.throttle_of(number)))
    carry_out([plan], options, "text", COMMAND, fingerprint)


def _has_waited(text: str, wait: bool) -> bool:
    """Return in the window, at once without one, and whether it had to be waited for.

    Raises:
        HeadroomError: it is outside of the window, and ``wait`` is false.
        Abort: a signal ended the wait.
    """
    window = DailyWindow.of(text) if text else None
    if window is None or window.contains(time.time()):
        return False
    if not wait:
        raise HeadroomError("balance.window", f"is {text}, and it is not that now", "Run it then, or with --wait.")
    echo(f"Waiting for balance.window ({text}) ...", err=True)
    with stopping() as stop:
        while not window.contains(time.time()):
            if stop.wait(_WINDOW_POLL_S):
                raise click.Abort
    return True


def _pause(seconds: float) -> None:
    with stopping() as stop:
        if stop.wait(seconds):
            raise click.Abort
