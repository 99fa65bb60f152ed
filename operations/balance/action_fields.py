"""Fields of an action of a proposal, for its table and for JSON."""

from __future__ import annotations

from typing import Any

from headroom.planning.balance.model import ClusterModel
from headroom.planning.balance.search.actions import BalanceAction


def action_fields(action: BalanceAction, model: ClusterModel) -> dict[str, Any]:
    """Return an action: what goes from which broker to which, and what is copied."""
    name = model.name(action.partition)
    return {
        "kind": action.kind.value,
        "topic": name.topic,
        "partition": name.partition,
        "from_broker": model.brokers[action.source].broker,
        "to_broker": model.brokers[action.target].broker,
        "leads": action.leads,
        # Earlier versions proposed swaps.
        "swapped_topic": None,
        "swapped_partition": None,
        "copied_bytes": float(action.bytes_copied),
    }
