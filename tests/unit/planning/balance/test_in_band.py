"""The cheapest prefix that brings chosen brokers into their bands."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from headroom.planning.balance.goals.catalogue import built_in_goals
from headroom.planning.balance.model import BalanceBroker, PartitionArrays, Resource, cluster_model
from headroom.planning.balance.reports.in_band import prefix_in_band
from headroom.planning.balance.reports.scorecard import scorecard
from headroom.planning.balance.search.proposal import Proposal, propose
from headroom.schemas.errors import HeadroomError
from tests.unit.planning.balance.clusters import MIB, brokers, clusters, model_of

_COUNTED = ("network_in", "network_out", "requests", "disk")


def is_met(proposal: Proposal, actions: int, broker: int) -> bool:
    """By a recount of the whole state."""
    card = scorecard(proposal.goals, proposal.state(actions))
    rows = [n for n, g in enumerate(card.goals) if g.name in _COUNTED or g.name.endswith("_capacity")]
    at = [b.broker for b in proposal.model.brokers].index(broker)
    return bool(card.met[rows, at].all())


def test_it_takes_no_action_more_than_needed() -> None:
    # Broker 1 has four partitions of 10 MiB/s more than the others.
    replicas = [[1]] * 6 + [[2]] * 2 + [[3]] * 2 + [[4]] * 2
    model = model_of(brokers(4), replicas, [10.0 * MIB] * len(replicas))
    proposal = propose(model, built_in_goals())
    assert proposal.actions
    found = {b: prefix_in_band(proposal, [b]) for b in (1, 2, 3, 4)}
    for broker, prefix in found.items():
        assert prefix is not None
        assert is_met(proposal, prefix, broker)
        assert not any(is_met(proposal, n, broker) for n in range(prefix))
    assert prefix_in_band(proposal, [1, 2, 3, 4]) == max(n for n in found.values() if n is not None)


def test_a_broker_that_is_in_band_needs_nothing_and_one_that_cannot_get_there_has_no_prefix() -> None:
    even = propose(model_of(brokers(2), [[1], [2]], [10.0 * MIB] * 2), built_in_goals())
    assert prefix_in_band(even, [1, 2]) == 0
    # One partition cannot be divided.
    single = propose(model_of(brokers(2), [[1]], [10.0 * MIB]), built_in_goals())
    assert prefix_in_band(single, [1]) is None


def test_an_unknown_broker_is_an_error() -> None:
    proposal = propose(model_of(brokers(2), [[1], [2]], [1.0, 1.0]), built_in_goals())
    with pytest.raises(HeadroomError, match="broker 7"):
        prefix_in_band(proposal, [7])


@settings(max_examples=10)
@given(clusters())
def test_it_is_the_first_prefix_by_a_recount(drawn: tuple[list[BalanceBroker], PartitionArrays]) -> None:
    states, arrays = drawn
    proposal = propose(cluster_model(states, arrays), built_in_goals())
    for state in states[:2]:
        found = prefix_in_band(proposal, [state.broker])
        upto = len(proposal.actions) + 1 if found is None else found
        assert not any(is_met(proposal, n, state.broker) for n in range(upto) if not _on_an_edge(proposal, n))
        if found is not None and not _on_an_edge(proposal, found):
            assert is_met(proposal, found, state.broker)


def _on_an_edge(proposal: Proposal, actions: int) -> bool:
    """Whether a load is so near an edge that sums in another order decide."""
    card = scorecard(proposal.goals, proposal.state(actions))
    for resource in (Resource.NETWORK_IN, Resource.NETWORK_OUT, Resource.REQUESTS, Resource.DISK):
        band, limit = card.band(resource), card.limit(resource)
        edges = [e for e in (band and band.reachable_lower, band and band.reachable_upper, limit) if e is not None]
        if any(np.isclose(card.loads[resource], edge, rtol=1e-6).any() for edge in edges):
            return True
    return False
