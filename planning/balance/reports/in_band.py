"""The cheapest prefix of a proposal that brings chosen brokers into their bands."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from headroom.planning.balance.arrays import BoolArray, FloatArray
from headroom.planning.balance.goals.bands import LoadBounds
from headroom.planning.balance.goals.resource_goals import CapacityLimit, ResourceBand
from headroom.planning.balance.model import COUNTS
from headroom.planning.balance.search.proposal import Proposal
from headroom.planning.balance.search.trajectory import load_events

# Sums in another order differ in their last digits.
_ROUNDING = 1e-9


def prefix_in_band(proposal: Proposal, brokers: Collection[int]) -> int | None:
    """Return the fewest actions after which brokers, by id, are within their limits and the bands of their loads.

    Counts of leaders and replicas have limits, but their bands do not count here: alone they do no harm.

    Returns:
        0 if they are there already; None if no prefix brings all of them there.

    Raises:
        HeadroomError: a broker is unknown.
    """
    rows = [proposal.model.index_of(broker) for broker in brokers]
    count = len(proposal.actions)
    met = np.ones(count + 1, dtype=np.bool_)
    events = load_events(proposal.start, proposal.actions)
    for broker in rows:
        own = events.brokers == broker
        actions, after = events.actions[own], events.after[:, own]
        # Of the events of one action, the last one has what is left after it.
        last = np.r_[actions[1:] != actions[:-1], True] if len(actions) else np.zeros(0, dtype=np.bool_)
        since = np.r_[0, actions[last] + 1]
        loads = np.concatenate([proposal.loads_before[:, [broker]], after[:, last]], axis=1)
        place = np.searchsorted(since, np.arange(1, count + 2)) - 1
        met &= _is_met(proposal, broker, loads)[place]
    prefixes = np.flatnonzero(met)
    return int(prefixes[0]) if len(prefixes) else None


def _is_met(proposal: Proposal, broker: int, loads: FloatArray) -> BoolArray:
    """Return in which states a broker meets the bands of its loads and its limits, by its loads there, (6, N)."""
    met = np.ones(loads.shape[1], dtype=np.bool_)
    for goal, bounds in zip(proposal.goals.goals, proposal.goals.bounds, strict=True):
        if not isinstance(goal, (CapacityLimit, ResourceBand)) or not isinstance(bounds, LoadBounds):
            continue
        if goal.resource in COUNTS and isinstance(goal, ResourceBand):
            continue
        load, own = loads[goal.resource], bounds.of(np.array([broker]))
        lower, upper = own.reachable_lower, own.reachable_upper
        room_below, room_above = _ROUNDING * abs(lower), _ROUNDING * abs(upper)
        met &= own.is_quiet(load) | ((load >= lower - room_below) & (load <= upper + room_above))
    return met
