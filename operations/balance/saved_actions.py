"""Actions of a proposal in a saved state, so that they can be explained without another search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from headroom.planning.balance.goals.catalogue import GOAL_NAMES
from headroom.planning.balance.goals.goal import BalanceGoal
from headroom.planning.balance.model import ClusterModel
from headroom.planning.balance.search.actions import BalanceAction
from headroom.planning.balance.search.limits import ProposalLimits
from headroom.planning.balance.search.proposal import Proposal

_ACTIONS = TypeAdapter(list[BalanceAction])


@dataclass(frozen=True)
class SavedActions:
    """Actions that were proposed for a state.

    Attributes:
        inputs: digest of all that they rest on; see ``inputs_digest``.
        actions: the actions in their order.
    """

    inputs: str
    actions: tuple[BalanceAction, ...]


def saved_actions(proposal: Proposal, limits: ProposalLimits) -> SavedActions | None:
    """Return the actions of a proposal with the digest of their inputs; None if a goal is not built in."""
    inputs = inputs_digest(proposal.model, proposal.goals.goals, limits)
    return None if inputs is None else SavedActions(inputs, proposal.actions)


def inputs_digest(model: ClusterModel, goals: Sequence[BalanceGoal], limits: ProposalLimits) -> str | None:
    """Return a digest of all that a proposal depends on; None if a goal is not built in, because it may depend on more.

    Args:
        model: the cluster.
        goals: goals in their order.
        limits: limits of the proposal.
    """
    if any(goal.name not in GOAL_NAMES for goal in goals):
        return None
    # Sets have another order in every process.
    limited = {name: sorted(v) if isinstance(v, frozenset) else v for name, v in asdict(limits).items()}
    brokers = [{**vars(broker), "sheds": sorted(broker.sheds)} for broker in model.brokers]
    digest = sha256(repr((brokers, model.topics, model.percentile, goals, limited)).encode())
    for values in (getattr(model, own.name) for own in fields(ClusterModel)):
        if isinstance(values, np.ndarray):
            digest.update(values.tobytes())
    return digest.hexdigest()


def actions_json(saved: SavedActions) -> dict[str, Any]:
    """Return saved actions as a JSON object; partitions and brokers are numbers in their order by name and id."""
    return {"inputs": saved.inputs, "actions": _ACTIONS.dump_python(list(saved.actions), mode="json")}


def actions_of_json(document: Any) -> SavedActions | None:
    """Return the saved actions in a JSON object; None if it is not one of them, as in a state of another version."""
    try:
        return SavedActions(str(document["inputs"]), tuple(_ACTIONS.validate_python(document["actions"])))
    except (KeyError, TypeError, ValidationError):
        return None
