"""Revision of plans: a broker at the edge of one band, and outside another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings

from headroom.planning.balance.goals.catalogue import built_in_goals
from headroom.planning.balance.model import Resource, cluster_model
from headroom.planning.balance.scoring.goal_set import GoalSet
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.search.actions import ActionKind, BalanceAction
from headroom.planning.balance.search.candidates import CandidateFinder
from headroom.planning.balance.search.limits import ProposalLimits
from headroom.planning.balance.search.proposal import propose
from headroom.planning.balance.search.state import SearchState
from tests.unit.planning.balance.clusters import MIB, brokers, clusters, model_of

GOALS = built_in_goals()


def state_of(model, known=()):  # type: ignore[no-untyped-def]
    start = ClusterLoads(model)
    frozen = np.zeros(len(model.brokers), dtype=np.bool_)
    return SearchState(GoalSet(GOALS, start), start, start.copy(), ProposalLimits(), frozen, known)


def test_a_move_that_goes_back_to_its_source_leaves_the_plan_and_the_loads_as_they_were() -> None:
    model = model_of(brokers(3), [[1]] * 6, [10.0 * MIB] * 6)
    state = state_of(model)
    finder = CandidateFinder(state.loads, state.goals, 0.0, state.electable, state.movable)
    state.apply(finder.between(np.array([4]), np.array([0]), np.array([1])))
    state.redirect(0, 2)
    # A to B to C is one move from A to C.
    assert [(a.source, a.target) for a in state.actions] == [(0, 2)]
    assert state.loads.loads[Resource.REPLICAS].tolist() == [5.0, 0.0, 1.0]
    state.redirect(0, 0)
    assert state.actions == []
    assert state.movable.all()
    np.testing.assert_array_equal(state.loads.replicas, model.replicas)
    np.testing.assert_array_equal(state.loads.loads, ClusterLoads(model).loads)


def test_a_saved_state_is_restored_in_place() -> None:
    state = state_of(model_of(brokers(2), [[1, 2]] * 4, [10.0 * MIB] * 4))
    finder = CandidateFinder(state.loads, state.goals, 0.0, state.electable, state.movable)
    loads, saved, before = state.loads, state.save(), state.loads.loads.copy()
    state.apply(finder.elections(0, True).subset(np.array([0])))
    assert not np.array_equal(state.loads.loads, before)
    state.restore(saved)
    assert state.loads is loads
    assert state.actions == []
    assert state.electable.all()
    np.testing.assert_array_equal(state.loads.loads, before)


def test_a_partition_whose_lead_moved_with_a_replica_is_not_elected() -> None:
    model = model_of(brokers(3), [[1, 2]] * 4, [10.0 * MIB] * 4)
    moved = BalanceAction(ActionKind.MOVE, 0, 0, 2, -1, 1e9, True)
    followed = BalanceAction(ActionKind.MOVE, 1, 1, 2, -1, 1e9, False)
    state = state_of(model, (moved, followed))
    assert state.admit(np.ones(4, dtype=np.bool_))
    assert state.electable.tolist() == [False, True, True, True]
    assert state.movable.tolist() == [False, False, True, True]


def test_no_election_goes_to_a_replica_that_the_plan_copies() -> None:
    state = state_of(model_of(brokers(3), [[1, 2]] * 4, [10.0 * MIB] * 4))
    finder = CandidateFinder(state.loads, state.goals, 0.0, state.electable, state.movable)
    state.apply(finder.between(np.array([3]), np.array([1]), np.array([2])))
    found = finder.elections(0, True)
    assert found.partitions.tolist() == [0, 1, 2]
    assert set(found.targets.tolist()) == {1}


def test_a_broker_full_of_busy_replicas_makes_room_for_the_many_small_ones_that_it_misses() -> None:
    """Broker 4 is empty. 40 busy partitions of 10 MiB/s and 1 GB, 360 idle ones of 10 MB, on brokers 1 to 3."""
    replicas = [[n % 3 + 1] for n in range(400)]
    busy = [n < 40 for n in range(400)]
    write = [10.0 * MIB if b else 1024.0 for b in busy]
    sizes = [1e9 if b else 1e7 for b in busy]
    model = model_of(brokers(4), replicas, write, size=sizes, topics=["busy" if b else "idle" for b in busy])
    proposal = propose(model, GOALS)
    # 400 / 4 = 100 partitions each, band 90 to 110; 43.6 GB / 4 = 10.9 GB each.
    counts = proposal.loads_after[Resource.REPLICAS]
    assert counts.min() >= 90
    assert counts.max() <= 110
    assert proposal.outside[-1] < 1e-9
    state = proposal.state(len(proposal.actions))
    assert propose(replace(model, replicas=state.replicas, leader=state.leader), GOALS).actions == ()


@settings(max_examples=10, deadline=None)
@given(clusters())
def test_elections_are_of_leaders_and_go_to_replicas_in_sync_at_the_start(made) -> None:  # type: ignore[no-untyped-def]
    proposal = propose(cluster_model(*made), GOALS)
    model = proposal.model
    for action in proposal.actions:
        if action.kind is ActionKind.ELECT:
            assert int(model.leader[action.partition]) == action.source
            assert action.target in model.replicas[action.partition]
