"""Search: what one action more or less allows, and the actions between two placements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from headroom.planning.balance.arrays import BoolArray, FloatArray, IntArray
from headroom.planning.balance.goals.catalogue import built_in_goals, find_goals
from headroom.planning.balance.model import Resource, cluster_model
from headroom.planning.balance.scoring.goal_set import GoalSet
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.search.actions import ActionKind, BalanceAction
from headroom.planning.balance.search.gains import Candidates
from headroom.planning.balance.search.limits import ProposalLimits
from headroom.planning.balance.search.net_actions import net_actions
from headroom.planning.balance.search.proposal import apply_actions, placement, propose
from headroom.planning.balance.search.search import BalanceSearch
from tests.unit.planning.balance.clusters import MIB, brokers, clusters, model_of

GOALS = built_in_goals()
ELECT, MOVE = ActionKind.ELECT, ActionKind.MOVE


def test_a_broker_full_of_busy_replicas_gets_the_many_small_ones_that_it_misses() -> None:
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


@pytest.mark.parametrize("hours", [1, 6])
def test_the_edge_of_a_band_is_in_it(hours: int) -> None:
    """Rates of 130, 100 and 70: one move of 20 ends at 110, 100 and 90, the edges of the band around 100."""
    rates = [20.0] * 6 + [10.0] + [20.0] * 8 + [10.0]
    write = [rate * MIB for rate in rates]
    model = model_of(brokers(3), [[1]] * 7 + [[2]] * 5 + [[3]] * 4, write, size=write, hours=hours)
    proposal = propose(model, find_goals(["network_in", "disk"]))
    assert proposal.copied_bytes[-1] == 20 * MIB
    assert proposal.loads_after[Resource.NETWORK_IN].tolist() == [110 * MIB, 100 * MIB, 90 * MIB]
    assert proposal.outside[-1] == 0


def test_replicas_are_replaced_on_their_own_rack() -> None:
    """Indices 0 and 2 are on one rack, 1 and 3 on the other: after no move are both replicas on one of them."""
    model = model_of(brokers(4, 2), [[1, 2]], [1.0])
    for end, leader in (([3, 2], 3), ([2, 3], 3), ([2, 3], 2)):
        found = net_actions(model, np.array([end], dtype=np.int32), np.array([leader], dtype=np.int32))
        assert {(a.source, a.target) for a in found if a.copies} == {(0, 2), (1, 3)}
        state = ClusterLoads(model)
        apply_actions(state, found)
        assert state.leader.tolist() == [leader]


@settings(max_examples=20, deadline=None)
@given(clusters())
def test_elections_are_of_leaders_and_go_to_replicas_in_sync(made) -> None:  # type: ignore[no-untyped-def]
    proposal = propose(cluster_model(*made), GOALS)
    leader, in_sync = proposal.model.leader.copy(), [set(row.tolist()) for row in proposal.model.replicas]
    for action in proposal.actions:
        partition, source, target = action.partition, action.source, action.target
        if action.kind is ELECT:
            assert leader[partition] == source
            assert target in in_sync[partition]
            leader[partition] = target
        else:
            assert action.leads is bool(leader[partition] == source)
            leader[partition] = target if action.leads else leader[partition]
            # Its copy has ended before the next action of this partition.
            in_sync[partition] = in_sync[partition] - {source} | {target}


@settings(max_examples=20, deadline=None)
@given(clusters())
def test_the_actions_between_two_placements_lead_from_one_to_the_other(made) -> None:  # type: ignore[no-untyped-def]
    model = cluster_model(*made)
    loads = ClusterLoads(model)
    search = BalanceSearch(loads, GoalSet(GOALS, ClusterLoads(model)), ProposalLimits(), np.inf, np.inf)
    search.run()
    after = ClusterLoads(model)
    apply_actions(after, net_actions(model, search.slots, loads.leader))
    np.testing.assert_array_equal(np.sort(after.replicas, axis=1), np.sort(search.slots, axis=1))
    np.testing.assert_array_equal(after.leader, loads.leader)
    np.testing.assert_allclose(after.loads, loads.loads, rtol=1e-9, atol=1e-3)


@settings(max_examples=10, deadline=None)
@given(clusters())
def test_the_placement_after_each_prefix_is_that_of_its_actions(made) -> None:  # type: ignore[no-untyped-def]
    proposal = propose(cluster_model(*made), GOALS)
    for count in range(len(proposal.actions) + 1):
        replicas, leader = placement(proposal.model, proposal.actions[:count])
        after = ClusterLoads(proposal.model)
        apply_actions(after, proposal.actions[:count])
        np.testing.assert_array_equal(replicas, after.replicas)
        np.testing.assert_array_equal(leader, after.leader)
        np.testing.assert_array_equal(proposal.state(count).loads, after.loads)
    np.testing.assert_array_equal(proposal.start.loads, ClusterLoads(proposal.model).loads)


def test_a_new_replica_takes_over_the_lead_of_the_old_one_or_is_elected_after_its_copy() -> None:
    model = model_of(brokers(4), [[1, 2]] * 5, [MIB] * 5, size=[1e9] * 5)
    replicas, leader = model.replicas.copy(), model.leader.copy()
    # With the lead of the old leader; without a lead; in the place of a follower; both new; only elected.
    replicas[0], leader[0] = (2, 1), 2
    replicas[1] = (0, 3)
    replicas[2], leader[2] = (0, 3), 3
    replicas[3], leader[3] = (2, 3), 3
    leader[4] = 1
    assert net_actions(model, replicas, leader) == [
        BalanceAction(ELECT, 4, 0, 1),
        BalanceAction(MOVE, 0, 0, 2, 1e9, True),
        BalanceAction(MOVE, 1, 1, 3, 1e9, False),
        BalanceAction(MOVE, 2, 1, 3, 1e9, False),
        BalanceAction(MOVE, 3, 0, 3, 1e9, True),
        BalanceAction(MOVE, 3, 1, 2, 1e9, False),
        BalanceAction(ELECT, 2, 0, 3),
    ]


def test_a_broker_that_takes_nothing_leads_nothing_for_a_while_either() -> None:
    """Broker 3 is slow and gives its replicas away; those that are new then lead."""
    states = [replace(b, takes="slow", sheds=frozenset(Resource)) if b.broker == 3 else b for b in brokers(6)]
    model = model_of(states, [[n % 2 + 1, 3] for n in range(24)], [10.0 * MIB] * 24)
    proposal = propose(model, GOALS)
    assert all(action.target != 2 for action in proposal.actions)
    state = proposal.state(len(proposal.actions))
    assert not (state.replicas == 2).any()
    assert propose(replace(model, replicas=state.replicas, leader=state.leader), GOALS).actions == ()


class TopicsOutweigh:
    """Gains of three candidates: the first order misses that the first one gains, and topics outweigh that."""

    def first_order(self, candidates: Candidates) -> FloatArray:
        return np.array([-0.1, -0.2, -0.3])[: len(candidates)]

    def may_gain(self, candidates: Candidates) -> BoolArray:
        return np.ones(len(candidates), dtype=np.bool_)

    def exact(self, candidates: Candidates) -> FloatArray:
        return np.array([0.1, -0.2, -0.3])[candidates.partitions]

    def exact_in_turn(self, candidates: Candidates) -> FloatArray:
        return np.array([0.1, -0.1, -0.1])[candidates.partitions]

    def of_topics(self, candidates: Candidates) -> FloatArray:
        return np.full(len(candidates), -1.0)

    def update(self, brokers: IntArray) -> None:
        """Follow nothing."""


def test_nothing_that_harms_is_taken_with_an_action_that_topics_outweigh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the 128 replicas of a broker, up to 4 are taken at a time."""
    loads = ClusterLoads(model_of(brokers(2), [[1]] * 128, [MIB] * 128))
    search = BalanceSearch(loads, GoalSet(GOALS, loads), ProposalLimits(), np.inf, np.inf)
    monkeypatch.setattr(search, "_gains", TopicsOutweigh())
    leads = np.ones(3, dtype=np.bool_)
    moves = Candidates(np.arange(3), np.zeros(3, dtype=np.int64), np.ones(3, dtype=np.int64), leads, True, np.ones(3))
    assert search._take_best(moves)
    assert np.flatnonzero(search.slots[:, 0] == 1).tolist() == [0]
