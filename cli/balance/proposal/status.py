"""``headroom balance status``: how far the batches of a proposal are, and the command for the next one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from cli.balance.proposal.files import PROPOSAL_FILE, batch_files, run_command
from cli.common.logs import silence_clients
from cli.common.options import config_option, format_option
from cli.common.output import echo, partition_json, print_json
from cli.config.load import load_settings
from cluster.elections.live_leadership import LiveLeadership
from operations.files import read_json
from planning.balance.reports.progress import CurrentReplicas, ProposalProgress, ProposedBatch, proposal_progress
from planning.reassignments.plan import parse_plan
from schemas.config import Settings
from schemas.errors import HeadroomError
from schemas.keys import TopicPartition

_REMEDY = "Name the folder of headroom balance propose --dir."


@dataclass(frozen=True)
class WrittenProposal:
    """A proposal that was written to a folder.

    Attributes:
        proposal_id: its id.
        cluster: name of its cluster.
        batches: its batches.
        fingerprints: fingerprint of the plan of each batch.
        throttle_bytes_per_s: throttle of its batches; None if nothing is copied.
        copies: whether each batch copies.
        goals: names of the goals that were asked for; None: those of the settings.
    """

    proposal_id: str
    cluster: str
    batches: tuple[ProposedBatch, ...]
    fingerprints: tuple[str, ...]
    throttle_bytes_per_s: int | None
    copies: tuple[bool, ...]
    goals: tuple[str, ...] | None

    def throttle_of(self, number: int) -> int | None:
        """Return the throttle of a batch, by its number from 1, bytes per second; None if it copies nothing."""
        return self.throttle_bytes_per_s if self.copies[number - 1] else None


@click.command(short_help="Show how far the batches of a proposal are, and the next command.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
@config_option
@format_option
def status(folder: Path, config: str | None, output_format: str) -> None:
    """Compare the proposal in DIR with the cluster: which batches are done, and the command for the next one.

    It is an error if a partition has replicas that no batch has left behind: then the proposal is older than the
    assignment, and its prices and limits are no longer true. Run this before each batch.

    \b
    Example:  headroom balance propose --dir balance
              headroom balance status balance
    """  # noqa: D301
    settings = load_settings(config)
    proposal = read_own_proposal(folder, settings)
    progress = proposal_progress(proposal.batches, current_replicas(settings), str(folder))
    command = _command(progress, proposal, folder, config)
    if output_format == "json":
        print_json(
            {
                "proposal_id": proposal.proposal_id,
                "batches": len(proposal.batches),
                "done": list(progress.done),
                "next_batch": progress.next_batch,
                "moving": [partition_json(name) for name in progress.moving],
                "command": command,
            }
        )
        return
    echo(f"Proposal {proposal.proposal_id}: {len(progress.done)} of {len(proposal.batches)} batches are done.")
    if progress.moving:
        echo(f"{len(progress.moving):,} of its partitions are being reassigned, such as {progress.moving[0]}.")
    elif command is not None:
        echo(f"Next: $ {command}")


def read_own_proposal(folder: Path, settings: Settings) -> WrittenProposal:
    """Return the proposal in a folder.

    Raises:
        HeadroomError: the folder has none, or it is for another cluster.
    """
    file = folder / PROPOSAL_FILE
    found = read_json(file, _REMEDY, unreadable=_REMEDY)
    try:
        proposal = _written(found, str(file))
    except (KeyError, TypeError) as error:
        raise HeadroomError(str(file), f"is no proposal ({type(error).__name__}: {error})", _REMEDY) from None
    if proposal.cluster != settings.cluster.name:
        rule = f"is for cluster {proposal.cluster}, and these settings are for {settings.cluster.name}"
        raise HeadroomError(str(folder), rule, "Name the settings of that cluster with --config.")
    return proposal


def _written(found: Any, subject: str) -> WrittenProposal:
    batches = found["batches"]
    return WrittenProposal(
        str(found["proposal_id"]),
        str(found["cluster"]),
        tuple(_batch(batch, subject) for batch in batches),
        tuple(str(batch["fingerprint"]) for batch in batches),
        _throttle(found["throttle_bytes_per_s"], subject),
        tuple(bool(batch["copied_replicas"]) for batch in batches),
        # Proposals of earlier versions do not name them.
        None if found.get("asked_goals") is None else tuple(map(str, found["asked_goals"])),
    )


def _throttle(value: Any, subject: str) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    raise HeadroomError(subject, "has a throttle_bytes_per_s that is no number of bytes", _REMEDY)


def _batch(found: Mapping[str, Any], subject: str) -> ProposedBatch:
    plan, rollback = (parse_plan(json.dumps(found[name]), subject) for name in ("plan", "rollback"))
    if plan.by_name.keys() != rollback.by_name.keys():
        raise HeadroomError(subject, "has a batch whose plan and rollback differ in their partitions", _REMEDY)
    return ProposedBatch(plan, rollback)


def current_replicas(settings: Settings) -> dict[TopicPartition, CurrentReplicas]:
    """Return the replicas of all partitions of the running cluster."""
    silence_clients()
    with LiveLeadership(settings) as cluster:
        partitions = cluster.leadership().partitions
    return {name: CurrentReplicas(p.replicas, p.moving) for name, p in partitions.items()}


def _command(progress: ProposalProgress, proposal: WrittenProposal, folder: Path, config: str | None) -> str | None:
    """Return the command that runs the next batch; None if all are done."""
    if progress.next_batch is None:
        return None
    number = progress.next_batch
    files = batch_files(folder, number, len(proposal.batches))
    return run_command(files.plan, proposal.throttle_of(number), config, proposal.fingerprints[number - 1])
