"""Proposals of load balance and their actions as tables, written without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headroom.schemas.tables import BALANCE_ACTION, BALANCE_PROPOSAL
from headroom.streaming.delta.query import table_url
from headroom.streaming.delta.small_table import append_or_error

_REMEDY = "Check store.path, the free space on its disk and its permissions."


@dataclass(frozen=True)
class BalanceProposalRow:
    """One proposal; the columns are those of ``schemas.tables.gold_balance.BALANCE_PROPOSAL``."""

    proposal_id: str
    cluster: str
    read_ms: int
    by: str
    goals: str
    lost_goals: str
    hours: int
    wanted_hours: int
    brokers: int
    partitions: int
    actions: int
    elections: int
    copied_replicas: int
    copied_bytes: int
    outside_before: float
    outside_after: float
    in_band_before: int
    in_band_after: int
    batches: int
    throttle_bytes_per_s: int | None
    duration_s: float | None


@dataclass(frozen=True)
class BalanceActionRow:
    """One action of a proposal; the columns are those of ``schemas.tables.gold_balance.BALANCE_ACTION``."""

    proposal_id: str
    cluster: str
    read_ms: int
    number: int
    batch: int
    kind: str
    topic: str
    partition: int
    from_broker: int
    to_broker: int
    leads: bool
    swapped_topic: str | None
    swapped_partition: int | None
    copied_bytes: int
    gain: float


def append_proposal(store_path: str, proposal: BalanceProposalRow, actions: Sequence[BalanceActionRow]) -> None:
    """Append a proposal and its actions; a proposal that is in its table has all its actions.

    Args:
        store_path: ``store.path``: a folder or URL.
        proposal: the proposal.
        actions: its actions.

    Raises:
        HeadroomError: a table cannot be written.
    """
    if actions:
        append_or_error(table_url(store_path, BALANCE_ACTION.path), actions, BALANCE_ACTION, _REMEDY)
    append_or_error(table_url(store_path, BALANCE_PROPOSAL.path), [proposal], BALANCE_PROPOSAL, _REMEDY)
