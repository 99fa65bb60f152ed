"""Files of a proposal: for each batch its plan, its rollback and its elections, in the formats of Kafka's own tools."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from headroom.alerts.recommendations.commands import (
    changing_command,
    config_option_of,
    headroom_reassign_run,
    kafka_elect,
)
from headroom.cli.balance.proposal.json_view import proposal_json
from headroom.cli.common.output import with_schema_version
from headroom.operations.balance.proposal_result import ProposalResult
from headroom.operations.balance.written_proposal import PROPOSAL_FILE
from headroom.operations.files import replace_file
from headroom.planning.elections.election_file import request_json
from headroom.planning.reassignments.plan import plan_text
from headroom.planning.throttles.rate_options import LOW_RATE, is_low
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text import printable_json, shell_quoted

_OWN_FILE = re.compile(r"(batch|rollback|elections)-\d+\.json")


@dataclass(frozen=True)
class BatchFiles:
    """Files of one batch.

    Attributes:
        plan: target replicas.
        rollback: replicas before.
        elections: partitions to elect; None if there are none.
    """

    plan: Path
    rollback: Path
    elections: Path | None


def batch_files(folder: Path, number: int, batches: int, elections: bool = False) -> BatchFiles:
    """Return the files of a batch.

    Args:
        folder: their folder.
        number: number of the batch, from 1.
        batches: number of batches of the proposal.
        elections: whether leaders change.
    """
    # So that sorting by name is sorting by number, in a shell and in a listing.
    digits = max(2, len(str(batches)))
    named = f"{number:0{digits}d}.json"
    elected = folder / f"elections-{named}" if elections else None
    return BatchFiles(folder / f"batch-{named}", folder / f"rollback-{named}", elected)


def write_files(folder: Path, result: ProposalResult) -> list[BatchFiles]:
    """Write the files of all batches, and ``proposal.json``, and return those of each batch.

    Files of the same proposal are replaced. Files of another one stay, because its rollback may be the only way back.

    Raises:
        HeadroomError: the folder has files of another proposal, and nothing is written; or it cannot be written to.
    """
    count = len(result.batches)
    files = [
        batch_files(folder, number, count, bool(batch.batch.elections))
        for number, batch in enumerate(result.batches, start=1)
    ]
    texts: dict[Path, str] = {}
    # The way back is written before anything that could be carried out.
    for own, batch in zip(files, result.batches, strict=True):
        texts[own.rollback] = plan_text(batch.batch.rollback)
    for own, batch in zip(files, result.batches, strict=True):
        texts[own.plan] = plan_text(batch.batch.assignments)
        if own.elections is not None:
            texts[own.elections] = request_json(batch.batch.elections) + "\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _require_own(folder, texts)
        for path, text in texts.items():
            replace_file(path, text)
        content = json.dumps(with_schema_version(proposal_json(result)), indent=1, ensure_ascii=False)
        replace_file(folder / PROPOSAL_FILE, printable_json(content) + "\n")
    except OSError as error:
        raise HeadroomError(str(folder), f"cannot be written to ({error.strerror})", "Name another folder.") from None
    return files


def run_command(
    plan: Path, throttle_bytes_per_s: int | None, config: str | None, fingerprint: str | None = None
) -> str:
    """Return the command that carries out a plan file, and elects the leaders that it changes.

    Args:
        plan: plan or rollback of a batch.
        throttle_bytes_per_s: throttle; None if nothing is copied.
        config: settings file as given on the command line.
        fingerprint: fingerprint that the plan must have; None: any.
    """
    rates = {"--throttle": throttle_bytes_per_s}
    return headroom_reassign_run(shell_quoted(str(plan)), rates, config, fingerprint)


def run_all_command(files: BatchFiles, throttles: Iterable[int | None], config: str | None) -> str:
    """Return the command that carries out all batches of a proposal.

    Args:
        files: files of one of the batches.
        throttles: throttle of each batch; None if it copies nothing.
        config: settings file as given on the command line.
    """
    low = any(rate is not None and is_low(rate) for rate in throttles)
    return changing_command(["balance run", shell_quoted(str(files.plan.parent)), *[LOW_RATE] * low], config)


def status_command(files: BatchFiles, config: str | None) -> str:
    """Return the command that compares the proposal with the cluster."""
    return f"headroom balance status {shell_quoted(str(files.plan.parent))}{config_option_of(config)}"


def elect_commands(files: BatchFiles, result: ProposalResult, config: str | None) -> list[str]:
    """Return the commands that elect the leaders of a batch, Headroom's and Kafka's; none if it elects none."""
    if files.elections is None:
        return []
    settings = result.cluster.settings
    servers = settings.alerts.bootstrap_servers or settings.cluster.bootstrap_servers
    own = changing_command(["elections --file", shell_quoted(str(files.elections))], config)
    return [own, kafka_elect(str(files.elections), servers)] if servers else [own]


def _require_own(folder: Path, texts: Mapping[Path, str]) -> None:
    """Check that a folder has no files of another proposal.

    Raises:
        HeadroomError: it has.
        OSError: a file cannot be read.
    """
    for path in sorted(path for path in folder.iterdir() if _OWN_FILE.fullmatch(path.name)):
        # The same proposal may be written again: then every file has the text that it would get.
        if texts.get(path) != path.read_text(encoding="utf-8", errors="replace"):
            raise HeadroomError(str(path), "belongs to another proposal", "Name another folder, or remove it.")
