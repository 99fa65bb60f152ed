"""Order of actions where room is scarce, on random clusters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headroom.planning.balance.goals.catalogue import built_in_goals
from headroom.planning.balance.model import NO_BROKER, BrokerCapacity, ClusterModel
from headroom.planning.balance.scoring.goal_set import GoalSet
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.search.actions import ActionKind, BalanceAction
from headroom.planning.balance.search.net_actions import net_actions
from headroom.planning.balance.search.ordering import order_actions
from headroom.planning.balance.search.proposal import apply_actions
from headroom.planning.balance.search.trajectory import breaks_limits, load_events
from tests.unit.planning.balance.clusters import MIB, brokers, model_of

GOALS = built_in_goals()


def full_cluster(draw: np.random.Generator) -> ClusterModel:
    """4 brokers with 30 to 60 partitions of 2 replicas, whose disks and network hardly have room for one more."""
    count = int(draw.integers(30, 61))
    replicas = [(draw.choice(4, 2, False) + 1).tolist() for _ in range(count)]
    write, size = draw.exponential(5.0 * MIB, count), draw.exponential(1e9, count)
    model = model_of(brokers(4), replicas, write, read=write, size=size)
    loads = ClusterLoads(model).loads
    # A limit is 80 % of the capacity.
    capacity = BrokerCapacity(
        network_in_bytes_per_s=loads[0].max() * 1.27,
        network_out_bytes_per_s=loads[1].max() * 1.27,
        disk_bytes=loads[3].max() * 1.27,
    )
    return replace(model, brokers=tuple(replace(broker, capacity=capacity) for broker in model.brokers))


def random_actions(model: ClusterModel, draw: np.random.Generator) -> list[BalanceAction]:
    """Half of the partitions get a random replica for one of theirs, or another leader, or both."""
    replicas, leader = model.replicas.copy(), model.leader.copy()
    for partition in np.flatnonzero(draw.random(model.partitions) < 0.5):
        row = replicas[partition]
        if draw.random() < 0.7:
            row[draw.integers(2)] = draw.choice([broker for broker in range(4) if broker not in row])
        leader[partition] = draw.choice(row)
    return net_actions(model, replicas, leader)


def test_the_actions_of_a_partition_stay_or_are_left_out_together_and_every_prefix_is_possible() -> None:
    left_out = 0
    for seed in range(12):
        draw = np.random.default_rng(seed)
        model = full_cluster(draw)
        start, actions = ClusterLoads(model), random_actions(model, draw)
        goals = GoalSet(GOALS, start)
        ordered, _ = order_actions(start, goals, actions, 0.0)
        taken = {action.partition for action in ordered}
        assert sorted(map(repr, ordered)) == sorted(repr(a) for a in actions if a.partition in taken)
        left_out += len(actions) - len(ordered)
        state = start.copy()
        for action in ordered:
            assert not breaks_limits(goals, load_events(state, [action])).any()
            row, leads = state.replicas[action.partition], state.leader[action.partition]
            assert action.source in row
            assert bool(leads == action.source) is action.leads
            assert (action.target in row) == (action.kind is ActionKind.ELECT)
            apply_actions(state, [action])
        assert (state.leader != NO_BROKER).all()
    assert left_out
