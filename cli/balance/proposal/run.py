"""``headroom balance run``: carry out the batches of a proposal, and weigh what is left before each of them."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import click

from headroom.cli.balance.loading import load_cluster
from headroom.cli.common.changing import execute_option_of, require_answer, require_execute
from headroom.cli.common.options import config_option
from headroom.cli.common.outcome import CommandOutcome, in_text, with_format
from headroom.cli.common.output import echo
from headroom.cli.common.stopping import stopping
from headroom.cli.config.load import load_settings
from headroom.cli.reassign.plan_run import (
    RunOptions,
    TextStream,
    auto_option,
    cancel_option,
    carry_out,
    cleared_option,
    force_option,
)
from headroom.cli.throttle.rates import low_rate_option, require_low_rate
from headroom.cluster.reassignment.execution.control import IfCleared
from headroom.operations.balance.cluster import BalanceCluster
from headroom.operations.balance.proposal_run import COMMAND, NextBatch, run_proposal
from headroom.operations.balance.written_proposal import WrittenProposal, read_own_proposal
from headroom.operations.reassignments.run import RunRequest
from headroom.operations.reassignments.run_plan import RunRates
from headroom.planning.balance.reports.rest import RestOfProposal
from headroom.planning.elections.quiet_hours import DailyWindow
from headroom.planning.reassignments.plan import BatchNumbers
from headroom.planning.reassignments.run.conditions import partitions_text
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text import shell_quoted
from headroom.schemas.text.amounts import duration_text

_WINDOW_POLL_S = 10.0


@click.command(short_help="Carry out the batches of a proposal, and weigh what is left before each.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
@config_option
@with_format
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
    auto_up_to: int | None,
    cancel_on_stop: bool,
    if_cleared: IfCleared,
    low_rate: bool,
    force: bool,
    execute: bool,
    yes: bool,
    wait: bool,
) -> CommandOutcome:
    """Carry out the proposal in DIR, batch after batch, as headroom reassign run carries out a plan.

    Exactly what was proposed is run. Before each batch the cluster is read again. The command ends, with the reason, if
    partitions have replicas that no batch has left behind, a broker of the rest is gone or its metrics are unknown, or
    the rest gains nothing any more. Batches begin in balance.window, and reassign.pause_s apart.

    Run the same command again to go on after an error, Ctrl-C or a crash. Ctrl-C ends it after the current batch.

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
    # Where nothing is copied, the throttle limits nothing and may be low.
    throttle = min((rate for rate in proposal.throttles_bytes_per_s if rate is not None), default=None)
    require_low_rate(low_rate, {"--auto-throttle-up-to": auto_up_to, "The throttle of the proposal": throttle})
    words = f"{COMMAND} {shell_quoted(str(folder))}"
    # Each batch has its own rate: that of the proposal, or what brokers have room for.
    request = RunRequest(
        RunRates(None),
        auto_up_to_bytes_per_s=auto_up_to,
        force=force,
        cancel_on_stop=cancel_on_stop,
        if_cleared=if_cleared,
        config=config,
    )
    options = RunOptions(request, words, execute=execute, yes=yes, low_rate=low_rate, rates_are_given=False)
    # In JSON there is one object on standard output, after the last batch.
    steps = _Steps(proposal, settings, options, wait, TextStream.STDOUT if in_text() else TextStream.STDERR)
    done = run_proposal(proposal, settings, folder, steps, config)
    if done.following is None:
        count = len(proposal.batches)
        steps.echo("The only batch is done." if count == 1 else f"All {count} batches are done.")
    return CommandOutcome(
        lambda: {
            "proposal_id": proposal.proposal_id,
            "batches": len(proposal.batches),
            "ran": done.ran,
            "next_batch": None if done.following is None else done.following.number,
            "outside_before": None if done.rest is None else done.rest.outside_before,
            "outside_after": None if done.rest is None else done.rest.outside_after,
        },
        None,
    )


class _Steps:
    """Waits for the window, prints what is next, and carries out a batch as ``headroom reassign run`` does."""

    def __init__(
        self, proposal: WrittenProposal, settings: Settings, options: RunOptions, wait: bool, text: TextStream
    ) -> None:
        self._proposal = proposal
        self._settings = settings
        self._options = options
        self._wait = wait
        self._text = text

    def echo(self, text: str) -> None:
        echo(text, err=self._text.err)

    def may_begin(self, number: int) -> bool:
        lasts_s = self._proposal.times_s[number - 1]
        # After a wait the next batch is chosen again: meanwhile somebody may have moved its partitions.
        return not self._options.execute or not _has_waited(self._settings.balance.window, self._wait, number, lasts_s)

    def read_cluster(self) -> BalanceCluster:
        return load_cluster(self._options.request.config, None)

    def on_next(self, following: NextBatch, rest: RestOfProposal | None) -> None:
        name = f"Batch {following.number} of {len(self._proposal.batches)}"
        if rest is None:
            self.echo(f"{name} was interrupted, and goes on.")
            return
        whole, part = self._proposal.batches[following.number - 1].plan, following.left[following.number]
        if len(part) < len(whole):
            passed = partitions_text(whole.by_name.keys() - part.by_name.keys())
            self.echo(f"{name}: later batches have moved {passed} further already, so it leaves them out.")
        self.echo(
            f"{name}: all that is left takes load outside of bands, in shares of the means, from "
            f"{rest.outside_before:.3f} to {rest.outside_after:.3f}."
        )

    def carry_out(self, number: int) -> bool:
        if not self._options.execute:
            self.echo(f"Nothing was changed. To do it: {self._options.again()}")
            return False
        plan, fingerprint = self._proposal.batches[number - 1].plan, self._proposal.fingerprints[number - 1]
        request = replace(
            self._options.request,
            rates=RunRates(self._proposal.throttle_of(number)),
            numbers=BatchNumbers(number, len(self._proposal.batches)),
            later=self._proposal.later_targets(number),
        )
        options = replace(self._options, request=request)
        carried_out = carry_out([plan], options, self._text, COMMAND, fingerprint)
        if carried_out.error is not None:
            raise carried_out.error
        # The answer to the question before the first batch is that for all.
        self._options = replace(self._options, yes=True)
        return True

    def pause(self) -> None:
        with stopping() as stop:
            if stop.wait(self._settings.reassign.pause_s):
                raise click.Abort


def _has_waited(text: str, wait: bool, number: int, lasts_s: float | None) -> bool:
    """Return when a batch may begin, at once without a window, and whether it had to be waited for.

    Args:
        text: the window; empty if there is none.
        wait: whether to wait for it.
        number: number of the batch.
        lasts_s: expected time of the batch, seconds; None if unknown.

    Raises:
        HeadroomError: the batch may not begin now, and ``wait`` is false.
        Abort: a signal ended the wait.
    """
    window = DailyWindow.of(text) if text else None
    if window is None or (reason := _reason_to_wait(window, number, lasts_s)) is None:
        return False
    if not wait:
        raise HeadroomError("balance.window", f"is {text}, and {reason}", "Run it then, or with --wait.")
    echo(f"Waiting for balance.window ({text}): {reason} ...", err=True)
    with stopping() as stop:
        while _reason_to_wait(window, number, lasts_s) is not None:
            if stop.wait(_WINDOW_POLL_S):
                raise click.Abort
    return True


def _reason_to_wait(window: DailyWindow, number: int, lasts_s: float | None) -> str | None:
    """Return why a batch may not begin now; None if it may. One that is shorter than the window ends in it, too."""
    now_s = time.time()
    if not window.contains(now_s):
        return "it is not that now"
    # A batch of unknown length may begin in the window: otherwise none such ever would.
    if lasts_s is None or not window.ends_too_early(now_s, lasts_s):
        return None
    return f"batch {number} takes about {duration_text(lasts_s)}, but it ends in {duration_text(window.left_s(now_s))}"
