"""Proposals of load balance and their actions as tables, written without Spark."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from schemas.errors import HeadroomError
from schemas.tables import BALANCE_ACTION, BALANCE_PROPOSAL, Table
from streaming.delta.query import table_url
from streaming.delta.small_table import append_durably
from streaming.supervision.failure import cause_of

logger = logging.getLogger(__name__)

_REMEDY = "Look at store.path, the room on its disk and the rights on it."


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
        _append(store_path, BALANCE_ACTION, actions)
    _append(store_path, BALANCE_PROPOSAL, [proposal])


def _append(store_path: str, table: Table, rows: Sequence[object]) -> None:
    location = table_url(store_path, table.path)
    try:
        append_durably(location, rows, table)
    except HeadroomError:
        raise
    # The library raises its own errors, OSError and bare Exceptions for problems of the storage.
    except Exception as error:
        logger.debug("writing %s", location, exc_info=True)
        raise HeadroomError(location, f"cannot be written ({cause_of(error)})", _REMEDY) from error
