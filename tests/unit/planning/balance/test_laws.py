"""Laws of proposals, on random clusters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headroom.planning.balance.arrays import hourly_percentile
from headroom.planning.balance.batches.batches import make_batches
from headroom.planning.balance.batches.numbering import CopyLimits
from headroom.planning.balance.goals.catalogue import built_in_goals
from headroom.planning.balance.model import BalanceBroker, PartitionArrays, Resource, cluster_model
from headroom.planning.balance.scoring.goal_set import GoalSet
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.search.actions import ActionKind
from headroom.planning.balance.search.ordering import stage_of
from headroom.planning.balance.search.proposal import Proposal, apply_actions, propose
from tests.unit.planning.balance.clusters import clusters

GOALS = built_in_goals()
Made = tuple[list[BalanceBroker], PartitionArrays]


def recount(proposal: Proposal, actions: int) -> ClusterLoads:
    """Loads of the placement after some actions, summed up from nothing."""
    state = proposal.state(actions)
    return ClusterLoads(replace(proposal.model, replicas=state.replicas, leader=state.leader))


def held(goals: GoalSet, loads: ClusterLoads) -> np.ndarray:
    limits = [n for n, goal in enumerate(goals.resource_goals) if goal.hard]
    own = loads.loads[goals.resources[limits]]
    return own <= goals.upper[limits] * (1 + 1e-9)


@settings(max_examples=25, deadline=None)
@given(clusters())
def test_every_prefix_keeps_every_hard_goal_and_its_loads_equal_a_recount(made: Made) -> None:
    proposal = propose(cluster_model(*made), GOALS)
    goals = proposal.goals
    every = np.arange(len(proposal.model.brokers))
    before = held(goals, recount(proposal, 0))
    crowded = recount(proposal, 0).crowded
    for actions in range(len(proposal.actions) + 1):
        again = recount(proposal, actions)
        np.testing.assert_allclose(proposal.state(actions).loads, again.loads, rtol=1e-9, atol=1e-3)
        outside = goals.outside(again.loads, every).sum()
        np.testing.assert_allclose(proposal.outside[actions], outside, rtol=1e-6, atol=1e-7)
        now = held(goals, again)
        assert (now | ~before).all()
        before = now
        assert again.crowded.sum() <= crowded.sum()
        crowded = again.crowded
    np.testing.assert_allclose(proposal.loads_after, recount(proposal, len(proposal.actions)).loads, rtol=1e-9)


@settings(max_examples=25, deadline=None)
@given(clusters(), st.sampled_from([None, 200e6]))
def test_no_moment_of_a_batch_breaks_a_hard_goal(made: Made, throttle: float | None) -> None:
    """Everything that a broker takes in a batch may be there before anything has left it."""
    proposal = propose(cluster_model(*made), GOALS)
    model, goals = proposal.model, proposal.goals
    state = ClusterLoads(model)
    limits = [n for n, goal in enumerate(goals.resource_goals) if goal.hard]
    batches = make_batches(state, goals, proposal.actions, CopyLimits(replication_bytes_per_s=throttle))
    for batch in batches:
        peak = state.copy()
        start = state.copy()
        apply_actions(state, batch.actions)
        for row in {a.partition for a in batch.actions}:
            # Old and new copies: what a broker has before or after.
            for broker in set(state.replicas[row]) - set(start.replicas[row]):
                peak.hours[0, broker] += model.write[row]
                peak.loads[3, broker] += model.size[row]
                peak.loads[5, broker] += 1
        peak.loads[0] = hourly_percentile(peak.hours[0], model.percentile)
        for row in limits:
            resource, upper = goals.resources[row], goals.upper[row] * (1 + 1e-9)
            broken = (start.loads[resource] <= upper) & (peak.loads[resource] > upper)
            assert not broken.any()
    assert [a for batch in batches for a in batch.actions if a.kind is ActionKind.ELECT] == [
        a for a in proposal.actions if a.kind is ActionKind.ELECT
    ]
    assert sorted(map(repr, (a for batch in batches for a in batch.actions))) == sorted(map(repr, proposal.actions))
    final = proposal.state(len(proposal.actions))
    np.testing.assert_array_equal(state.replicas, final.replicas)
    np.testing.assert_array_equal(state.leader, final.leader)


@settings(max_examples=15, deadline=None)
@given(clusters(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_changes_nothing(made: Made, random: object) -> None:
    states, arrays = made
    order = list(range(len(arrays.topics)))
    random.shuffle(order)  # type: ignore[attr-defined]
    mixed = PartitionArrays(
        [arrays.topics[n] for n in order],
        arrays.partitions[order],
        arrays.replicas[order],
        arrays.leaders[order],
        arrays.write[:, order],
        arrays.read[:, order],
        arrays.requests[:, order],
        arrays.sizes[order],
    )
    first = propose(cluster_model(states, arrays), GOALS)
    second = propose(cluster_model(states[::-1], mixed), GOALS)
    assert first.actions == second.actions
    np.testing.assert_array_equal(first.outside, second.outside)


@settings(max_examples=25, deadline=None)
@given(clusters())
def test_replicas_move_once_and_the_load_outside_of_bands_only_falls(made: Made) -> None:
    proposal = propose(cluster_model(*made), GOALS)
    copies = [action for action in proposal.actions if action.copies]
    for move in copies:
        # From where the partition is to where it is not: nothing returns, and nothing moves on.
        assert move.source in proposal.model.replicas[move.partition]
        assert move.target not in proposal.model.replicas[move.partition]
    assert len({(move.partition, move.target) for move in copies}) == len(copies)
    assert len({(move.partition, move.source) for move in copies}) == len(copies)
    assert proposal.outside[-1] <= proposal.outside[0] + 1e-9
    stages = [stage_of(proposal.model, action) for action in proposal.actions]
    # Where brokers have limits of the network, an action may have to wait for one that makes room.
    if all(broker.capacity.network_in_bytes_per_s is None for broker in proposal.model.brokers):
        assert stages == sorted(stages)
    for row, again in zip(proposal.model.replicas, proposal.state(len(proposal.actions)).replicas, strict=True):
        assert len(set(again.tolist())) == len(row)


@settings(max_examples=60, deadline=None)
@given(clusters())
def test_the_end_of_a_proposal_is_at_rest(made: Made) -> None:
    """From the end state, with the bands of that state, a new search finds nothing."""
    proposal = propose(cluster_model(*made), GOALS)
    state = proposal.state(len(proposal.actions))
    after = replace(proposal.model, replicas=state.replicas, leader=state.leader)
    # Where brokers start beyond a limit, no order of the whole difference may keep the limits.
    if all(broker.capacity.of(Resource.DISK) is None for broker in after.brokers):
        assert propose(after, GOALS).actions == ()


@settings(max_examples=40, deadline=None)
@given(clusters(), st.lists(st.sampled_from(["", "", "takes", "slow", "unknown", "gives"]), min_size=8, max_size=8))
def test_brokers_that_must_not_take_or_give_do_not_and_the_end_is_at_rest(made: Made, kinds: list[str]) -> None:
    leaders = frozenset({Resource.LEADERS, Resource.NETWORK_OUT, Resource.REQUESTS})
    changes = {
        "takes": {"takes": "cordoned"},
        "slow": {"takes": "slow", "sheds": leaders},
        "unknown": {"known": False},
        "gives": {"gives": "excluded"},
    }
    states = [replace(b, **changes.get(kind, {})) for b, kind in zip(made[0], kinds, strict=False)]
    model = cluster_model(states, made[1])
    assume(model.is_counted.sum() >= 2)
    proposal = propose(model, GOALS)
    for action in proposal.actions:
        assert model.may_take[action.target]
        assert model.may_give[action.source]
    # Where brokers start beyond a limit, no order of the whole difference may keep the limits.
    if all(b.capacity.of(Resource.DISK) is None for b in states):
        state = proposal.state(len(proposal.actions))
        assert propose(model.with_placement(state.replicas, state.leader), GOALS).actions == ()
