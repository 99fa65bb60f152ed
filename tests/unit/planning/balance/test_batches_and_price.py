"""Batches under their limits, and what they cost."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from headroom.planning.balance.batches.batches import BalanceBatch, make_batches
from headroom.planning.balance.batches.numbering import CopyLimits
from headroom.planning.balance.goals.catalogue import built_in_goals
from headroom.planning.balance.model import BalanceBroker, ClusterModel
from headroom.planning.balance.pricing.price import (
    BatchRun,
    batch_price,
    duration_s,
)
from headroom.planning.balance.pricing.simulated_times import ceilings_of, simulated_times_s
from headroom.planning.balance.scoring.goal_set import GoalSet
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.search.actions import ActionKind, BalanceAction
from headroom.planning.balance.search.proposal import apply_actions
from headroom.planning.finish.finish_time import COMPLETE_S
from headroom.planning.reassignments.changes import plan_changes
from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState, PartitionPlacement
from headroom.planning.reassignments.estimate import estimate
from headroom.planning.reassignments.plan import ReassignmentPlan, parse_plan, plan_text
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import BrokerRole, Role, TopicPartition
from tests.unit.planning.balance.clusters import brokers, model_of

MB = 1e6


def move(model: ClusterModel, partition: int, source: int, target: int) -> BalanceAction:
    """A move between brokers given by index."""
    leads = bool(model.leader[partition] == source)
    return BalanceAction(ActionKind.MOVE, partition, source, target, float(model.size[partition]), leads)


def batches(model: ClusterModel, actions: list[BalanceAction], limits: CopyLimits | None = None) -> list[BalanceBatch]:
    loads = ClusterLoads(model)
    return make_batches(loads, GoalSet(built_in_goals(), loads), actions, limits or CopyLimits(topic_ratio=1.0))


def test_at_most_half_of_a_topic_moves_at_a_time_but_one_partition_always_may() -> None:
    model = model_of(brokers(3), [[1, 2]] * 5, [MB] * 5, topics=["a"] * 4 + ["b"])
    found = batches(model, [move(model, p, 0, 2) for p in range(5)], CopyLimits())
    assert [[m.name for m in batch.moves] for batch in found] == [
        [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)],
        [TopicPartition("a", 2), TopicPartition("a", 3)],
    ]


def test_counts_of_brokers_start_again_in_each_batch() -> None:
    model = model_of(brokers(3), [[1, 2]] * 5, [MB] * 5)
    found = batches(model, [move(model, p, 0, 2) for p in range(5)], CopyLimits(1.0, moves_per_broker=2))
    assert [len(batch.moves) for batch in found] == [2, 2, 1]
    many = model_of(brokers(5), [[n, 5] for n in (1, 2, 3)], [MB] * 3)
    found = batches(many, [move(many, n, 4, 3) for n in range(2)], CopyLimits(1.0, sources_per_target=1))
    assert [len(batch.moves) for batch in found] == [1, 1]


def test_a_full_disk_is_emptied_before_it_is_filled() -> None:
    # Limit 80 of 100: broker 2 holds 70. It gives 40 and takes 30, which do not both fit while the old copy is there.
    states = brokers(3, disk_bytes=100.0)
    model = model_of(states, [[2], [2], [1]], [MB] * 3, size=[40.0, 30.0, 30.0])
    out, into = move(model, 0, 1, 2), move(model, 2, 0, 1)
    assert [batch.actions for batch in batches(model, [out, into])] == [(out,), (into,)]
    # Nothing else may take the room that it waits for, but what goes elsewhere runs at once.
    other = move(model, 1, 1, 0)
    assert [batch.actions for batch in batches(model, [out, into, other])] == [(out, other), (into,)]


def test_a_leader_that_copies_nothing_itself_sends_to_one_follower_more_until_the_move_ends() -> None:
    # Broker 1 sends 4 x 5 MB/s. A move from broker 2 to 3 requires 10 MB/s of it, with the margin a throttle of 12.
    # That and the 15 of the others fit the limit of 27.2; two moves at once, which need 24 beside 10, do not.
    states = brokers(3, network_out_bytes_per_s=34 * MB)
    model = model_of(states, [[1, 2]] * 4, [5 * MB] * 4)
    found = batches(model, [move(model, p, 1, 2) for p in range(4)])
    assert [len(batch.moves) for batch in found] == [1, 1, 1, 1]
    assert [batch.room.most_bytes_per_s for batch in found] == [pytest.approx(12.2 * MB)] * 4
    less = model_of(brokers(3, network_out_bytes_per_s=33 * MB), [[1, 2]] * 4, [5 * MB] * 4)
    with pytest.raises(HeadroomError, match="batch of its own"):
        batches(less, [move(less, 0, 1, 2)])


def test_a_batch_copies_with_a_throttle_that_brokers_have_room_for() -> None:
    # Broker 1 sends 4 x 5 MB/s and may send 80, broker 3 receives nothing. What broker 1 sends of two partitions counts
    # against the throttle: 80 - 10 are left for it. The two batches that half of the topic makes are alike.
    model = model_of(brokers(3, network_out_bytes_per_s=100 * MB), [[1, 2]] * 4, [5 * MB] * 4)
    found = batches(model, [move(model, p, 1, 2) for p in range(4)], CopyLimits())
    assert [(batch.room.most_bytes_per_s, batch.room.limited_by) for batch in found] == [
        (pytest.approx(70 * MB), 0)
    ] * 2
    assert (found[0].throttle(1e9), found[0].throttle(30 * MB)) == (found[0].room.most_bytes_per_s, 30 * MB)
    assert run_of(*found).rough_s(1e9) == run_of(*found).rough_s(70 * MB)
    # It receives up to the throttle, whatever is written: 48 - 0, and at the next batch 48 - 10.
    model = model_of(brokers(3, network_in_bytes_per_s=60 * MB), [[1, 2]] * 4, [5 * MB] * 4)
    found = batches(model, [move(model, p, 1, 2) for p in range(4)], CopyLimits())
    assert [batch.room.most_bytes_per_s for batch in found] == [pytest.approx(48 * MB), pytest.approx(38 * MB)]
    assert all(batch.room.limited_by == 2 for batch in found)


def test_a_broker_beyond_its_limit_does_not_limit_the_throttle_of_copies_that_relieve_it() -> None:
    # Broker 1 sends 20 MB/s, and may send 18.
    model = model_of(brokers(3, network_out_bytes_per_s=22.5 * MB), [[1, 2]] * 4, [5 * MB] * 4)
    (batch,) = batches(model, [move(model, p, 0, 2) for p in range(3)])
    assert (batch.room.most_bytes_per_s, batch.room.beyond) == (float("inf"), {0})


def test_a_leader_beyond_its_limit_sends_the_copies_that_take_its_leads_and_no_others() -> None:
    # Broker 1 sends 20 MB/s, and may send 18.
    model = model_of(brokers(3, network_out_bytes_per_s=22.5 * MB), [[1, 2]] * 4, [5 * MB] * 4)
    (batch,) = batches(model, [move(model, p, 0, 2) for p in range(3)])
    assert len(batch.moves) == 3
    with pytest.raises(HeadroomError, match="batch of its own"):
        batches(model, [move(model, 0, 1, 2)])


def test_a_batch_fits_the_throttle_with_the_usual_margin() -> None:
    # Each requires 1 MB/s x 2 followers on the leader; 2 partitions need 4 x 1.2 = 4.8 MB/s.
    model = model_of(brokers(3), [[1, 2]] * 4, [MB] * 4)
    actions = [move(model, p, 1, 2) for p in range(4)]
    for throttle, sizes in ((4.8 * MB, [2, 2]), (4.7 * MB, [1, 1, 1, 1]), (9.7 * MB, [4])):
        found = batches(model, actions, CopyLimits(1.0, replication_bytes_per_s=throttle))
        assert [len(batch.moves) for batch in found] == sizes
        assert max(batch_price(batch).throttle_bytes_per_s or 0 for batch in found) <= throttle
    with pytest.raises(HeadroomError, match="batch of its own"):
        batches(model, actions, CopyLimits(1.0, replication_bytes_per_s=2.0 * MB))


def test_a_batch_has_a_plan_that_kafka_reads_a_rollback_and_elections() -> None:
    model = model_of(brokers(3), [[1, 2], [2, 1]], [MB, MB])
    elect = BalanceAction(ActionKind.ELECT, 1, 1, 0)
    first, second = batches(model, [elect, move(model, 0, 0, 2)])
    assert json.loads(plan_text(first.assignments))["partitions"] == [
        {"topic": "t", "partition": 1, "replicas": [1, 2]}
    ]
    assert first.elections == (TopicPartition("t", 1),)
    assert not first.moves
    assert [a.replicas for a in second.assignments] == [(3, 2)]
    assert [a.replicas for a in second.rollback] == [(1, 2)]
    assert parse_plan(plan_text(second.rollback), "rollback").by_name[TopicPartition("t", 0)].replicas == (1, 2)
    state = ClusterLoads(model)
    apply_actions(state, [elect])
    assert model.broker_ids(state.replicas[1]) == (1, 2)


def run_of(*found: BalanceBatch) -> BatchRun:
    return BatchRun(found, [{}] * len(found))


def one_batch() -> BalanceBatch:
    """Two partitions led by broker 1, with followers on 2; both get a replica on 3 instead of 2."""
    model = model_of(brokers(3), [[1, 2], [1, 2]], [MB, 2 * MB], size=[30 * MB, 60 * MB])
    (batch,) = batches(model, [move(model, p, 1, 2) for p in range(2)])
    return batch


def test_the_price_is_bytes_throttle_and_the_worst_leader_switch() -> None:
    price = batch_price(one_batch())
    assert (price.bytes_copied, price.replicas_copied) == (90 * MB, 2)
    # Leader 1 sends 1 MB/s and 2 MB/s to two followers each: 6 MB/s. Destination 3 receives 3 MB/s.
    assert price.required_bytes_per_s == 6 * MB
    assert price.throttle_bytes_per_s == 7.2 * MB
    # After a switch, broker 2 leads the larger one and sends 4 MB/s: less than 6, which leader 1 required before.
    assert price.required_after_switch_bytes_per_s == 6 * MB
    assert price.taken_bytes == {3: 90 * MB}


def test_a_leader_switch_can_require_more_than_before() -> None:
    model = model_of(brokers(4), [[1, 2], [2, 1]], [MB, MB])
    (batch,) = batches(model, [move(model, 0, 1, 2), move(model, 1, 0, 3)])
    price = batch_price(batch)
    # Each leader sends 2 MB/s; if one takes over the other's partition, 4 MB/s.
    assert (price.required_bytes_per_s, price.required_after_switch_bytes_per_s) == (2 * MB, 4 * MB)
    assert price.throttle_after_switch_bytes_per_s == 4.8 * MB


def test_the_duration_is_that_of_the_slowest_broker_and_role() -> None:
    batch = one_batch()
    # Leader: 90 MB / (15 - 6) MB/s = 10 s. Destination: 90 / (15 - 3) = 7.5 s.
    assert duration_s(batch.moves, 15 * MB) == pytest.approx(10 + COMPLETE_S)
    assert duration_s(batch.moves, 6 * MB) is None
    assert run_of(batch, batch).rough_s(15 * MB) == (2, pytest.approx(20 + 2 * COMPLETE_S))
    assert run_of(batch, batch).rough_s(6 * MB) == (2, None)
    assert run_of(batch).throttle_within(10 + COMPLETE_S) == pytest.approx(15 * MB, rel=0.002)
    assert run_of(batch).throttle_within(COMPLETE_S) == float("inf")


@pytest.mark.parametrize("write", [0.0, 1.0])
def test_a_deadline_of_copies_to_which_next_to_nothing_is_written_has_a_throttle(write: float) -> None:
    model = model_of(brokers(3), [[1, 2]] * 2, [write] * 2, size=[250e9] * 2)
    (batch,) = batches(model, [move(model, p, 1, 2) for p in range(2)])
    assert run_of(batch).throttle_within(10_000 + COMPLETE_S) == pytest.approx(50 * MB, rel=0.002)


def test_a_run_reads_before_each_batch_and_pauses_between_two() -> None:
    batch = one_batch()
    run = BatchRun([batch] * 3, [{}] * 3, readings_s=10.0, pause_s=7.0)
    assert run.rough_s(15 * MB) == (3, pytest.approx(3 * (10 + COMPLETE_S + 10) + 2 * 7))
    assert run.rough_s(15 * MB, 0) == (0, 0.0)
    assert run.throttle_within(3 * (10 + COMPLETE_S + 10) + 2 * 7) == pytest.approx(15 * MB, rel=0.002)
    # No throttle shortens readings and pauses.
    assert run.throttle_within(44.0) == float("inf")


def test_other_replication_leaves_less_of_the_capacity() -> None:
    # Broker 1 leads partitions 0 and 1, whose replicas on 2 move to 3, and partition 2, which stays: 6 MB/s to 3.
    model = model_of(brokers(3), [[1, 2], [1, 2], [1, 3]], [MB, 2 * MB, 6 * MB], size=[30 * MB, 60 * MB, MB])
    found = batches(model, [move(model, p, 1, 2) for p in range(2)])
    placements = [
        PartitionPlacement("t", n, 1, model.broker_ids(model.replicas[n]), model.broker_ids(model.replicas[n]))
        for n in range(3)
    ]
    state = replace(cluster_of(model), partitions={p.name: p for p in placements})
    (ceilings,) = ceilings_of(model, found, state, 21.0 * MB)
    assert {ceilings[BrokerRole(1, Role.LEADER)], ceilings[BrokerRole(3, Role.FOLLOWER)]} == {15 * MB}
    # The followers that partitions 0 and 1 have are in no follower list.
    assert ceilings[BrokerRole(2, Role.FOLLOWER)] == 18 * MB
    run = BatchRun(found, [ceilings])
    assert run.rough_s(100 * MB) == run_of(*found).rough_s(15 * MB)
    assert simulated_times_s(run, 100 * MB, cluster_of(model)) == simulated_times_s(
        run_of(*found), 15 * MB, cluster_of(model)
    )
    # 5 MB/s are left of 11 on leader 1, which has to send 6.
    late = BatchRun(found, ceilings_of(model, found, state, 11.0 * MB))
    assert (late.rough_s(100 * MB), late.throttle_within(1e9)) == ((1, None), float("inf"))
    assert ceilings_of(model, found, state, None) == [{}]


def cluster_of(model: ClusterModel, unused: frozenset[Role] = frozenset()) -> ClusterState:
    states = {broker.broker: BrokerState(broker.broker, unused_quotas=unused) for broker in model.brokers}
    return ClusterState("c", 0, states, {})


def test_the_simulation_is_near_the_closed_form_for_a_long_copy() -> None:
    model = model_of(brokers(3), [[1, 2]] * 4, [MB] * 4, size=[1e9] * 4)
    (batch,) = batches(model, [move(model, p, 1, 2) for p in range(4)])
    closed, (simulated,) = (
        duration_s(batch.moves, 40 * MB),
        simulated_times_s(run_of(batch), 40 * MB, cluster_of(model)),
    )
    assert closed is not None
    assert simulated == pytest.approx(closed, rel=0.15)
    assert batch_price(batch).required_bytes_per_s == 8 * MB


def test_a_batch_takes_as_long_as_a_plan_of_its_moves() -> None:
    """Proposals and ``headroom plan`` price the same moves the same way."""
    model = model_of(brokers(3), [[1, 2]] * 2, [0.1 * MB] * 2, size=[26 * MB] * 2)
    (batch,) = batches(model, [move(model, p, 1, 2) for p in range(2)])
    state = cluster_of(model, frozenset(Role))
    placements = [
        PartitionPlacement(
            m.name.topic, m.name.partition, m.leader, m.replicas, m.replicas, (), (), 26_000_000, 0.1 * MB
        )
        for m in batch.moves
    ]
    state = replace(state, partitions={p.name: p for p in placements})
    changes = plan_changes(ReassignmentPlan(batch.assignments), state)
    policy = ThrottlePolicy()
    planned = estimate(changes, state, policy, throttle_bytes_per_s=4_000_000).time
    assert planned is not None
    assert planned.finish is not None
    assert simulated_times_s(run_of(batch), 4 * MB, state) == [planned.finish.middle_s]


def test_quotas_have_room_for_a_burst_once_a_batch_has_used_them() -> None:
    model = model_of(brokers(3), [[1, 2]] * 2, [0.1 * MB] * 2, size=[26 * MB] * 2)
    found = batches(model, [move(model, p, 1, 2) for p in range(2)], CopyLimits(1.0, moves_per_broker=1))
    fresh, second = simulated_times_s(run_of(*found), 4 * MB, cluster_of(model, frozenset(Role)))
    (rested, _) = simulated_times_s(run_of(*found), 4 * MB, cluster_of(model))
    assert fresh is not None
    assert second == rested
    assert rested is not None
    assert rested < fresh
    # An election copies nothing.
    assert simulated_times_s(run_of(BalanceBatch((), (), (), (), ())), 4 * MB, cluster_of(model)) == [0.0]


def test_nothing_is_priced_without_a_size() -> None:
    model = model_of(brokers(3), [[1, 2]], [MB], size=[float("nan")])
    (batch,) = batches(model, [move(model, 0, 1, 2)])
    with pytest.raises(HeadroomError, match="size is unknown"):
        batch_price(batch)


def test_brokers_without_capacity_limit_no_batch() -> None:
    model = model_of([BalanceBroker(n) for n in range(3)], [[0, 1]] * 60, [MB] * 60)
    assert [len(b.moves) for b in batches(model, [move(model, p, 0, 2) for p in range(60)])] == [50, 10]
    assert np.isnan(model.capacities(model_resource())).all()


def model_resource():  # type: ignore[no-untyped-def]
    from headroom.planning.balance.model import Resource

    return Resource.DISK
