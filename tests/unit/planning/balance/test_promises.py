"""Leads and replicas that a proposal promises, beside those that come when its batches are carried out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headroom.planning.balance.batches.batches import make_batches
from headroom.planning.balance.batches.numbering import CopyLimits
from headroom.planning.balance.goals.catalogue import built_in_goals
from headroom.planning.balance.model import ClusterModel
from headroom.planning.balance.reports.rest import rest_of_proposal
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.search.proposal import Proposal, apply_actions, propose
from headroom.planning.balance.what_if import with_preferred_leaders
from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.schemas.keys import TopicPartition
from tests.unit.planning.balance.clusters import MIB, brokers, model_of

GOALS = built_in_goals()
Placement = dict[TopicPartition, tuple[tuple[int, ...], int]]


def random_cluster(seed: int) -> ClusterModel:
    """6 brokers of unequal load; a third of the partitions is not led by its preferred leader, a tenth not in sync."""
    draw = np.random.default_rng(seed)
    count, weights = int(draw.integers(40, 90)), draw.dirichlet(np.full(6, 2.0))
    replicas = [(draw.choice(6, 3, False, weights) + 1).tolist() for _ in range(count)]
    leaders = [row[int(draw.choice(3, p=[0.66, 0.17, 0.17]))] for row in replicas]
    write = draw.exponential(5.0 * MIB, count)
    model = model_of(
        brokers(6),
        replicas,
        write,
        read=write * draw.uniform(0, 3, count),
        size=draw.exponential(2e9, count),
        leaders=leaders,
    )
    behind = (draw.random(model.replicas.shape) < 0.1) & (model.replicas != model.leader[:, None])
    return replace(model, in_sync=~behind)


def carried_out(model: ClusterModel, proposal: Proposal, rebalances: bool) -> Placement:
    """What Kafka does: a run elects the first replicas of its plan, and Kafka those of all partitions if it rebalances.

    New replicas are in sync when a batch ends.
    """
    names = [model.name(row) for row in range(model.partitions)]
    ids = [broker.broker for broker in model.brokers]
    now = {
        name: (model.broker_ids(row), ids[lead])
        for name, row, lead in zip(names, model.replicas, model.leader, strict=True)
    }
    behind = {
        (name, ids[broker])
        for name, row, in_sync in zip(names, model.replicas, model.in_sync, strict=True)
        for broker in row[~in_sync]
    }

    def elect(some: list[TopicPartition]) -> None:
        for name in some:
            replicas, leader = now[name]
            now[name] = (replicas, leader if (name, replicas[0]) in behind else replicas[0])

    for batch in make_batches(ClusterLoads(proposal.model), proposal.goals, proposal.actions, CopyLimits()):
        for target in batch.assignments:
            now[target.name] = (target.replicas, now[target.name][1])
        elect(names if rebalances else [target.name for target in batch.assignments])
    if rebalances:
        elect(names)
    return now


def test_the_leads_and_replicas_that_are_promised_come() -> None:
    for seed in range(8):
        found = random_cluster(seed)
        for rebalances in (False, True):
            model = with_preferred_leaders(found) if rebalances else found
            proposal = propose(model, GOALS)
            assert proposal.actions
            state = proposal.state(len(proposal.actions))
            ids = [broker.broker for broker in model.brokers]
            promised = {
                model.name(row): (model.broker_ids(state.replicas[row]), ids[state.leader[row]])
                for row in range(model.partitions)
            }
            assert carried_out(found, proposal, rebalances) == promised


def test_kafka_gives_leads_back_to_preferred_leaders_that_are_alive_and_in_sync() -> None:
    states = [replace(broker, alive=broker.broker != 4) for broker in brokers(4)]
    model = model_of(states, [[1, 2], [1, 2], [4, 2], [2, 1]], [MIB] * 4, leaders=[2, 2, 2, 2])
    in_sync = model.in_sync.copy()
    in_sync[1, 0] = False
    given_back = with_preferred_leaders(replace(model, in_sync=in_sync))
    assert [states[index].broker for index in given_back.leader] == [1, 2, 2, 2]
    assert ClusterLoads(given_back).loads[4].tolist() == [1.0, 3.0, 0.0, 0.0]


def test_what_was_proposed_while_a_broker_is_down_is_carried_out() -> None:
    """Partitions with a replica on broker 1 are led by others; it keeps these replicas."""
    for seed in range(8):
        model = random_cluster(seed)
        down = model.replicas == 0
        usable = model.in_sync & ~down
        heirs = model.replicas[np.arange(model.partitions), usable.argmax(axis=1)]
        leader = np.where(model.leader == 0, np.where(usable.any(axis=1), heirs, -1), model.leader).astype(np.int32)
        states = tuple(replace(broker, alive=broker.broker != 1) for broker in model.brokers)
        model = replace(model, brokers=states, leader=leader, in_sync=usable)
        proposal = propose(model, GOALS)
        loads = ClusterLoads(model)
        batches = make_batches(loads, proposal.goals, proposal.actions, CopyLimits())
        plans = [ReassignmentPlan(batch.assignments) for batch in batches]
        for number, batch in enumerate(batches):
            rest = rest_of_proposal(model.with_placement(loads.replicas, loads.leader), GOALS, plans[number:])
            assert (rest.gone, rest.unknown, rest.is_worth_it) == ((), (), True)
            apply_actions(loads, batch.actions)
