"""Storage of a proposal in the Delta tables, if there is a store."""

from __future__ import annotations

from pathlib import Path

from headroom.operations.balance.action_fields import action_fields
from headroom.operations.balance.proposal_result import ProposalResult
from headroom.operations.journal.session import author
from headroom.planning.balance.search.actions import ActionKind, BalanceAction
from headroom.schemas.errors import HeadroomError
from headroom.streaming.delta.locations import local_path
from headroom.streaming.tables.balance_proposals import BalanceActionRow, BalanceProposalRow, append_proposal


def store_proposal(result: ProposalResult) -> list[str]:
    """Append a proposal for a running cluster to its tables, and return why that was not possible, as notes.

    A folder that does not exist is not made: a command that only reads must not leave a store behind.

    Args:
        result: the proposal.
    """
    if not result.cluster.live or not result.chosen:
        return []
    store_path = result.cluster.settings.store.path
    folder = local_path(store_path)
    if folder is not None and not Path(folder).is_dir():
        return [f"The proposal was not stored: {folder} does not exist (store.path)."]
    try:
        batches = {action: number for number, b in enumerate(result.batches, start=1) for action in b.batch.actions}
        gains = result.proposal.gains.tolist()
        chosen = enumerate(result.proposal.actions[: result.chosen], start=1)
        rows = [_action_row(result, number, action, batches[action], gains[number - 1]) for number, action in chosen]
        append_proposal(store_path, _proposal_row(result), rows)
    except HeadroomError as error:
        return [f"The proposal was not stored: {error}"]
    return []


def _proposal_row(result: ProposalResult) -> BalanceProposalRow:
    proposal, cluster = result.proposal, result.cluster
    chosen = proposal.actions[: result.chosen]
    counted = result.before.model.is_counted
    return BalanceProposalRow(
        proposal_id=result.proposal_id,
        cluster=cluster.state.cluster,
        read_ms=cluster.state.read_ms,
        by=author(),
        goals=",".join(goal.name for goal in proposal.goals.goals),
        lost_goals=",".join(goal.name for goal in cluster.observed.lost_goals),
        hours=len(cluster.loads.hours_ms),
        wanted_hours=cluster.loads.wanted_hours,
        brokers=int(counted.sum()),
        partitions=proposal.model.partitions,
        actions=result.chosen,
        elections=sum(action.kind is ActionKind.ELECT for action in chosen),
        copied_replicas=int(proposal.copied_replicas[result.chosen]),
        copied_bytes=round(float(proposal.copied_bytes[result.chosen])),
        outside_before=float(proposal.outside[0]),
        outside_after=float(proposal.outside[result.chosen]),
        in_band_before=int((result.before.is_balanced() & counted).sum()),
        in_band_after=int((result.after.is_balanced() & counted).sum()),
        batches=len(result.batches),
        throttle_bytes_per_s=result.throttle.bytes_per_s,
        duration_s=result.duration_s,
    )


def _action_row(
    result: ProposalResult, number: int, action: BalanceAction, batch: int, gain: float
) -> BalanceActionRow:
    fields = action_fields(action, result.proposal.model)
    return BalanceActionRow(
        proposal_id=result.proposal_id,
        cluster=result.cluster.state.cluster,
        read_ms=result.cluster.state.read_ms,
        number=number,
        batch=batch,
        **{**fields, "copied_bytes": round(action.bytes_copied)},
        gain=gain,
    )
