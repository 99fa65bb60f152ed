"""``headroom balance status``: how far the batches of a proposal are, and the command for the next one."""

from __future__ import annotations

from pathlib import Path

import click

from headroom.cli.balance.proposal.files import batch_files, run_all_command, run_command
from headroom.cli.common.logs import silence_clients
from headroom.cli.common.options import config_option
from headroom.cli.common.outcome import CommandOutcome, with_format
from headroom.cli.common.output import echo, partition_json
from headroom.cli.config.load import load_settings
from headroom.operations.balance.written_proposal import WrittenProposal, current_partitions, read_own_proposal
from headroom.planning.balance.reports.progress import ProposalProgress, proposal_progress
from headroom.planning.reassignments.run.conditions import partitions_text


@click.command(short_help="Show how far the batches of a proposal are, and the next command.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
@config_option
@with_format
def status(folder: Path, config: str | None) -> CommandOutcome:
    """Compare the proposal in DIR with the cluster: which batches are done, and the command for the next one.

    It is an error if a partition has replicas that no batch has left behind: then the proposal is older than the
    assignment, and its prices and limits are no longer true. Run this before each batch.

    \b
    Example:  headroom balance propose --dir balance
              headroom balance status balance
    """  # noqa: D301
    settings = load_settings(config)
    silence_clients()
    proposal = read_own_proposal(folder, settings)
    progress = proposal_progress(proposal.batches, current_partitions(settings), str(folder))
    command = _command(progress, proposal, folder, config)
    return CommandOutcome(
        lambda: {
            "proposal_id": proposal.proposal_id,
            "batches": len(proposal.batches),
            "done": list(progress.done),
            "next_batch": progress.next_batch,
            "moving": [partition_json(name) for name in progress.moving],
            "not_led": [partition_json(name) for name in progress.unled],
            "command": command,
        },
        lambda: _print(proposal, progress, command),
    )


def _print(proposal: WrittenProposal, progress: ProposalProgress, command: str | None) -> None:
    echo(f"Proposal {proposal.proposal_id}: {len(progress.done)} of {len(proposal.batches)} batches are done.")
    if progress.unled:
        echo(f"Not led by their first replica: {partitions_text(progress.unled)}. The run of their batch elects it.")
    if progress.moving:
        echo(f"{len(progress.moving):,} of its partitions are being reassigned, such as {progress.moving[0]}.")
    elif command is not None:
        echo(f"Next: $ {command}")


def _command(progress: ProposalProgress, proposal: WrittenProposal, folder: Path, config: str | None) -> str | None:
    """Return the command that runs the next batch; None if all are done."""
    if progress.next_batch is None:
        return None
    number = progress.next_batch
    count = len(proposal.batches)
    files = batch_files(folder, number, count)
    if len(progress.left[number]) < len(proposal.batches[number - 1].plan):
        # Its file would move back what later batches have moved further.
        return run_all_command(files, map(proposal.throttle_of, range(1, count + 1)), config)
    return run_command(files.plan, proposal.throttle_of(number), config, proposal.fingerprints[number - 1])
