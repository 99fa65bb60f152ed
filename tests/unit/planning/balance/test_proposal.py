"""Proposals: what is left out, limits, racks, and input that allows nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headroom.planning.balance.goals.catalogue import built_in_goals
from headroom.planning.balance.model import BalanceBroker, ClusterModel, PartitionArrays, cluster_model
from headroom.planning.balance.scoring.goal_set import GoalSet
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.search.actions import ActionKind, BalanceAction
from headroom.planning.balance.search.gains import Candidates, Gains
from headroom.planning.balance.search.limits import Exclusion, ProposalLimits
from headroom.planning.balance.search.ordering import order_actions
from headroom.planning.balance.search.proposal import excluded_partitions, propose
from headroom.planning.balance.slow_brokers.slow_brokers import SlowAdvice
from headroom.schemas.errors import HeadroomError
from tests.unit.planning.balance.clusters import MIB, brokers, model_of

GOALS = built_in_goals()
NAN = float("nan")


def skewed(**changes: object):  # type: ignore[no-untyped-def]
    """24 equal partitions on broker 1 of 3."""
    return model_of(brokers(3), [[1]] * 24, [10.0 * MIB] * 24, **changes)  # type: ignore[arg-type]


def test_a_skewed_cluster_is_evened_out_and_stays_so() -> None:
    model = skewed()
    proposal = propose(model, GOALS)
    # 80 MiB/s each, edges 72 and 88: 8 partitions each.
    assert proposal.loads_after[0].tolist() == [80.0 * MIB] * 3
    assert proposal.copied_bytes[-1] == 16e9
    state = proposal.state(len(proposal.actions))
    assert propose(replace(model, replicas=state.replicas, leader=state.leader), GOALS).actions == ()


def test_elections_come_before_copies_and_put_the_leader_first() -> None:
    model = model_of(brokers(2), [[1, 2]] * 8, [10.0 * MIB] * 8)
    proposal = propose(model, GOALS)
    assert {action.kind for action in proposal.actions} == {ActionKind.ELECT}
    assert proposal.copied_bytes[-1] == 0
    state = proposal.state(len(proposal.actions))
    assert (state.replicas[:, 0] == state.leader).all()
    assert np.bincount(state.leader).tolist() == [4, 4]


@pytest.mark.parametrize(("row", "kind"), [([1, 2], ActionKind.ELECT), ([1], ActionKind.MOVE)])
def test_what_helps_a_broker_is_proposed_however_much_others_have_outside(row: list[int], kind: ActionKind) -> None:
    """Broker 12 stores one large partition: nothing helps it, nor the others, far below their bands in disk."""
    # Broker 1 sends 130 MiB/s, broker 2 75, and the others 100. Of the mean of 1,205 / 12 = 100.4 broker 1 sends 0.19
    # too much, broker 2 0.15 too little. In disk 12 - 1.1 + 11 x 0.9 = 20.8 means are outside, of which 2 % are 0.42.
    rows = [*([broker] for broker in range(1, 13)), row]
    read = np.array([100.0, 75.0, *[100.0] * 10, 30.0]) * MIB
    model = model_of(brokers(12), rows, [0.0] * 13, read=read.tolist(), size=[*[0.0] * 11, 1e12, 0.0])
    goals = [goal for goal in GOALS if goal.name in ("disk", "network_out")]
    proposal = propose(model, goals)
    assert [(a.kind, a.partition, a.source, a.target) for a in proposal.actions] == [(kind, 12, 0, 1)]
    state = proposal.state(1)
    assert propose(replace(model, replicas=state.replicas, leader=state.leader), goals).actions == ()


def spared(model: ClusterModel, advice: SlowAdvice) -> ClusterModel:
    """The model with slow brokers that are to be spared."""
    states = tuple(
        replace(b, takes="slow" if advice.sheds(b.broker) else "", sheds=advice.sheds(b.broker)) for b in model.brokers
    )
    return replace(model, brokers=states)


# Every broker leads 4 partitions, and follows those of the 4 brokers before it.
EVEN = [[n + 1, (n + k) % 12 + 1] for n in range(12) for k in range(1, 5)]


def test_a_slow_broker_gives_its_leaders_away_and_copies_nothing() -> None:
    model = spared(model_of(brokers(12), EVEN, [10.0 * MIB] * 48), SlowAdvice(frozenset({3})))
    proposal = propose(model, GOALS, ProposalLimits(elections_only=True))
    assert {action.kind for action in proposal.actions} == {ActionKind.ELECT}
    led = np.bincount(proposal.state(len(proposal.actions)).leader, minlength=12)
    assert led[2] == 0
    # 48 leaders on 11 brokers.
    assert led.max() == 5


def test_a_broker_that_is_slow_for_long_gives_its_replicas_away_too() -> None:
    slow = SlowAdvice(frozenset({3}), frozenset({3}))
    proposal = propose(spared(model_of(brokers(12), EVEN, [10.0 * MIB] * 48), slow), GOALS)
    state = proposal.state(len(proposal.actions))
    assert not (state.replicas == 2).any()
    # 8 replicas of 1 GB, and at most one further copy for each to make the others even.
    assert 8e9 <= proposal.copied_bytes[-1] <= 16e9
    assert all(action.target != 2 for action in proposal.actions)


def test_a_replica_out_of_sync_is_not_elected() -> None:
    model = model_of(brokers(2), [[1, 2]] * 8, [10.0 * MIB] * 8)
    behind = model.in_sync.copy()
    behind[:, 1] = False
    proposal = propose(replace(model, in_sync=behind), GOALS, ProposalLimits(elections_only=True))
    assert proposal.actions == ()


@pytest.mark.parametrize(
    ("write", "size", "limits", "reason"),
    [
        (NAN, 1e9, ProposalLimits(), Exclusion.UNKNOWN_LOAD),
        (10.0 * MIB, NAN, ProposalLimits(), Exclusion.UNKNOWN_SIZE),
        (10.0 * MIB, 1e9, ProposalLimits(excluded_topics=frozenset({"x"})), Exclusion.TOPIC),
        (10.0 * MIB, 1e9, ProposalLimits(replication_bytes_per_s=12.0 * MIB), None),
        (10.1 * MIB, 1e9, ProposalLimits(replication_bytes_per_s=12.0 * MIB), Exclusion.OVER_THROTTLE),
    ],
)
def test_an_excluded_partition_has_its_reason(
    write: float, size: float, limits: ProposalLimits, reason: Exclusion | None
) -> None:
    rates, sizes = [10.0 * MIB] * 23 + [write], [1e9] * 23 + [size]
    model = model_of(brokers(3), [[1]] * 24, rates, size=sizes, topics=["t"] * 23 + ["x"])
    assert [(name.topic, reason) for name, reason in excluded_partitions(model, limits).items()] == (
        [] if reason is None else [("x", reason)]
    )
    moved = {a.partition for a in propose(model, GOALS, limits).actions}
    assert moved
    assert (23 in moved) is (reason is None) or reason is None


def test_a_load_of_0_is_no_unknown_load() -> None:
    model = model_of(brokers(2), [[1]] * 20, [0.0] * 20)
    # Nothing is written, so only counts and disks are uneven.
    assert len(propose(model, GOALS).actions) == 9


def test_brokers_that_must_not_take_or_are_unknown_take_nothing() -> None:
    for state in (BalanceBroker(3, takes="cordoned"), BalanceBroker(3, known=False), BalanceBroker(3, alive=False)):
        model = model_of([*brokers(2), state], [[1]] * 24, [10.0 * MIB] * 24)
        proposal = propose(model, GOALS)
        assert {a.target for a in proposal.actions} == {1}


def test_no_replica_moves_of_a_partition_with_one_on_a_dead_broker() -> None:
    """Partitions 0 to 11 have a replica on broker 4, which is down: their move could wait for it for ever."""
    model = model_of([*brokers(3), BalanceBroker(4, alive=False)], [[1, 4]] * 12 + [[1, 2]] * 24, [10.0 * MIB] * 36)
    limits = ProposalLimits()
    excluded = [(name.partition, reason) for name, reason in excluded_partitions(model, limits).items()]
    assert excluded == [(number, Exclusion.DEAD_REPLICA) for number in range(12)]
    moved = {action.partition for action in propose(model, GOALS, limits).actions if action.copies}
    assert moved
    assert min(moved) >= 12


def test_no_replica_moves_of_a_partition_with_one_out_of_sync() -> None:
    """Only one replica of partitions 0 to 11 is in sync. They are elected, and the others move."""
    model = model_of(brokers(3), [[1, 2]] * 36, [10.0 * MIB] * 36)
    behind = model.in_sync.copy()
    behind[:12, 1] = False
    proposal = propose(replace(model, in_sync=behind), GOALS)
    left_out = excluded_partitions(proposal.model, ProposalLimits())
    excluded = [(name.partition, reason) for name, reason in left_out.items()]
    assert excluded == [(number, Exclusion.OUT_OF_SYNC) for number in range(12)]
    assert min(action.partition for action in proposal.actions if action.copies) >= 12


def test_no_replica_moves_of_a_partition_without_a_leader() -> None:
    """Nothing can be copied of partitions 0 to 11, so a run would refuse their whole batch."""
    model = model_of(brokers(3), [[1, 2]] * 36, [10.0 * MIB] * 36, leaders=[-1] * 12 + [1] * 24)
    proposal = propose(model, GOALS)
    excluded = [(name.partition, reason) for name, reason in excluded_partitions(model, ProposalLimits()).items()]
    assert excluded == [(number, Exclusion.NO_LEADER) for number in range(12)]
    assert min(action.partition for action in proposal.actions) >= 12


def test_a_replica_goes_only_where_one_log_directory_has_room_for_it() -> None:
    states = brokers(3, volumes_free_bytes=(4e9,))
    sizes = [3e9, 5e9] * 12
    moves = [a for a in propose(model_of(states, [[1]] * 24, [10.0 * MIB] * 24, size=sizes), GOALS).actions if a.copies]
    # Nor do two go to one disk that has room for one, whether its limit is among the goals or not.
    assert [sizes[action.partition] for action in moves] == [3e9, 3e9]
    assert len({action.target for action in moves}) == 2


def test_on_a_single_disk_its_limit_is_the_room_and_not_what_was_free_before() -> None:
    """What leaves makes room there, so the next proposal, which sees it as free, would move more."""
    full, empty = (
        propose(model_of(states, [[1]] * 24, [10.0 * MIB] * 24, size=[3e9] * 24), GOALS).actions
        for states in (brokers(3, disk_bytes=100e9, volumes_free_bytes=(free,)) for free in (2e9, 90e9))
    )
    assert sum(action.copies for action in full) == 16
    assert full == empty


@pytest.mark.parametrize("sizes", [[3e9] * 24, [1e9, 3e9] * 12])
def test_all_new_replicas_of_a_broker_find_room_on_its_volumes(sizes: list[float]) -> None:
    """Brokers 2 and 3 have room for one replica of 3 GB, or for three of 1 GB, on each of two volumes."""
    states = brokers(3, volumes_free_bytes=(4e9, 3e9))
    model = model_of(states, [[1]] * 24, [10.0 * MIB] * 24, size=sizes)
    moves = [action for action in propose(model, GOALS).actions if action.copies]
    assert {action.target for action in moves} == {1, 2}
    for target in (1, 2):
        left = [4e9, 3e9]
        for action in moves:
            if action.target == target:
                left[left.index(max(left))] -= sizes[action.partition]
        assert min(left) >= 0


def test_a_move_that_finds_no_room_after_others_is_left_out_of_the_order() -> None:
    """Each replica fits broker 2 alone, and two of the three together."""
    states = brokers(2, volumes_free_bytes=(4e9, 4e9))
    loads = ClusterLoads(model_of(states, [[1]] * 6, [10.0 * MIB] * 6, size=[3e9] * 6))
    moves = [BalanceAction(ActionKind.MOVE, n, 0, 1, bytes_copied=3e9) for n in range(3)]
    ordered, _ = order_actions(loads, GoalSet(GOALS, loads), moves, 1e6)
    assert len(ordered) == 2


def test_a_broker_with_a_replica_of_unknown_load_takes_nothing() -> None:
    model = model_of(brokers(3), [[1]] * 24 + [[3]], [10.0 * MIB] * 24 + [NAN])
    assert {a.target for a in propose(model, GOALS).actions} == {1}


def test_a_leader_of_a_partition_of_unknown_rates_sends_no_copies_where_its_network_has_a_limit() -> None:
    """Broker 1 has all replicas, and what it sends is known in part only."""
    for capacity, senders in ((None, {0}), (1000.0 * MIB, set())):
        states = brokers(3, network_out_bytes_per_s=capacity)
        model = model_of(states, [[1]] * 24 + [[1]], [10.0 * MIB] * 24 + [NAN])
        assert {a.source for a in propose(model, GOALS).actions} == senders


@pytest.mark.parametrize("limits", [ProposalLimits(), ProposalLimits(elections_only=True)])
def test_a_partition_of_unknown_size_is_elected_and_does_not_move(limits: ProposalLimits) -> None:
    """The size of 4 of the 8 partitions that broker 1 leads is unknown, so broker 2 takes no replica, but leads."""
    model = model_of(brokers(2), [[1, 2]] * 8, [10.0 * MIB] * 8, size=[NAN, 1e9] * 4)
    assert (model.may_lead.tolist(), model.may_take.tolist()) == ([True, True], [False, False])
    proposal = propose(model, GOALS, limits)
    assert {action.kind for action in proposal.actions} == {ActionKind.ELECT}
    assert np.bincount(proposal.state(len(proposal.actions)).leader).tolist() == [4, 4]


def test_the_gain_of_an_election_does_not_depend_on_the_size() -> None:
    one = Candidates(np.zeros(1, int), np.zeros(1, int), np.ones(1, int), np.ones(1, np.bool_), False, np.zeros(1))
    gains = []
    for size in (1e9, NAN):
        loads = ClusterLoads(model_of(brokers(2), [[1, 2]] * 8, [10.0 * MIB] * 8, size=[size] + [1e9] * 7))
        gains.append(Gains(loads, GoalSet(GOALS, loads)).first_order(one).tolist())
    assert gains[0] == gains[1]
    assert gains[0] > [0.0]


def test_a_broker_with_a_replica_of_unknown_rates_takes_no_lead() -> None:
    model = model_of(brokers(3), [[1, 2, 3]] * 8 + [[1, 3, 2]], [10.0 * MIB] * 8 + [NAN])
    assert propose(model, GOALS, ProposalLimits(elections_only=True)).actions == ()


def test_limits_of_bytes_and_moves_hold() -> None:
    assert propose(skewed(), GOALS, ProposalLimits(max_bytes=3.5e9)).copied_bytes[-1] == 3e9
    assert propose(skewed(), GOALS, ProposalLimits(max_moves=5)).copied_replicas[-1] == 5


def test_repairs_of_racks_count_as_moves() -> None:
    """Both replicas of 5 partitions are on brokers 1 and 4 of rack r0, so 10 share a rack. Each move parts two."""
    model = model_of(brokers(6, 3), [[1, 4]] * 5, [10.0 * MIB] * 5)
    proposal = propose(model, GOALS, ProposalLimits(max_moves=2))
    assert proposal.copied_replicas[-1] == 2
    assert proposal.state(len(proposal.actions)).crowded.sum() == 6


def test_cheap_replicas_move_first() -> None:
    # 24 equal rates; 12 of the partitions are 100 times as large.
    sizes = [1e11, 1e9] * 12
    network = [goal for goal in GOALS if goal.name == "network_in"]
    proposal = propose(skewed(size=sizes), network)
    assert all(model_size == 1e9 for model_size in (a.bytes_copied for a in proposal.actions[:12]))


def test_internal_topics_come_last() -> None:
    topics = ["__consumer_offsets"] * 18 + ["t"] * 6
    proposal = propose(skewed(topics=topics), GOALS)
    internal = [proposal.model.name(a.partition).topic.startswith("__") for a in proposal.actions]
    assert internal == sorted(internal)
    assert set(internal) == {True, False}


def test_replicas_on_one_rack_are_spread() -> None:
    # Brokers 1 and 3 are on one rack.
    model = model_of(brokers(4, 2), [[1, 3], [2, 1], [4, 3], [2, 3]], [10.0 * MIB] * 4)
    assert ClusterLoads(model).crowded.tolist() == [1.0, 0.0, 1.0, 0.0]
    proposal = propose(model, GOALS)
    assert not proposal.state(len(proposal.actions)).crowded.any()


def test_fewer_racks_than_replicas_is_as_even_as_can_be() -> None:
    model = model_of(brokers(6, 2), [[1, 2, 3]] * 12, [10.0 * MIB] * 12)
    assert not ClusterLoads(model).crowded.any()
    state = propose(model, GOALS).state(10_000)
    assert not state.crowded.any()


def test_no_rack_has_too_few_replicas_as_long_as_another_has_more() -> None:
    """4 replicas on 3 racks are as even as can be with 2, 1 and 1."""
    model = model_of(brokers(6, 3), [[1, 4, 2, 5], [1, 4, 2, 3]] * 6, [10.0 * MIB] * 12)
    crowded = ClusterLoads(model).crowded
    # Racks r0 and r1, brokers 1, 4, 2 and 5, have more than one of each first partition, and r2 has none.
    assert crowded.tolist() == [6.0, 6.0, 0.0, 6.0, 6.0, 0.0]
    state = propose(model, GOALS).state(10_000)
    assert not state.crowded.any()
    assert all({0, 1, 2} == set(model.rack[row].tolist()) for row in state.replicas)


@pytest.mark.parametrize("change", [{"known": False}, {"alive": False}])
def test_a_rack_counts_although_its_brokers_are_unknown_or_down(change: dict[str, bool]) -> None:
    """With 3 racks for 3 replicas, no rack has two, although nothing can move to rack r2."""
    states = [replace(b, **change) if b.rack == "r2" else b for b in brokers(9, 3)]
    model = model_of(states, [[1, 2, 3]] * 4 + [[1, 2]] * 20 + [[1, 4, 2]], [10.0 * MIB] * 25)
    assert model.racks == 3
    assert ClusterLoads(model).crowded.tolist() == [1.0, 0, 0, 1.0, 0, 0, 0, 0, 0]
    state = propose(model, GOALS).state(10_000)
    assert all(len(set(model.rack[row[row >= 0]])) == (row >= 0).sum() for row in state.replicas[:24])
    # Without its brokers and without a replica, a rack does not exist.
    alone = model_of([replace(b, alive=b.rack != "r2") for b in states], [[1, 2]] * 4, [10.0 * MIB] * 4)
    assert alone.racks == 2


def test_a_broker_without_a_rack_takes_nothing_where_others_have_one() -> None:
    states = [*brokers(4, 2), BalanceBroker(5)]
    model = model_of(states, [[1, 2]] * 24, [10.0 * MIB] * 24)
    moves = [a for a in propose(model, GOALS).actions if a.kind is not ActionKind.ELECT]
    assert moves
    assert 4 not in {a.target for a in moves}


def test_a_partition_larger_than_any_free_disk_stays() -> None:
    states = brokers(2, disk_bytes=100e9)
    model = model_of(states, [[1]] * 3, [10.0 * MIB] * 3, size=[90e9, 1e9, 1e9])
    assert 0 not in {a.partition for a in propose(model, GOALS).actions}


def test_inputs_that_allow_nothing_are_errors_and_empty_loads_are_not() -> None:
    with pytest.raises(HeadroomError, match="fewer than two"):
        propose(model_of(brokers(1), [[1]], [1.0]), GOALS)
    with pytest.raises(HeadroomError, match="is unknown"):
        propose(skewed(), GOALS, ProposalLimits(topics=frozenset({"no"})))
    with pytest.raises(HeadroomError, match="excluded"):
        ProposalLimits(topics=frozenset({"t"}), excluded_topics=frozenset({"t"}))
    assert propose(model_of(brokers(2), [[1], [2]], [0.0, 0.0], size=[0.0, 0.0]), GOALS).actions == ()


def test_the_model_refuses_duplicates_unknown_brokers_and_negative_loads() -> None:
    arrays = PartitionArrays(
        ["t", "t"], np.array([0, 0]), np.array([[1], [2]]), np.array([1, 2]), *[np.zeros((1, 2))] * 3, np.zeros(2)
    )
    with pytest.raises(HeadroomError, match="t-0: the partition occurs twice"):
        cluster_model(brokers(2), arrays)
    once = replace(arrays, partitions=np.array([0, 1]))
    with pytest.raises(HeadroomError, match="broker 2: has replicas"):
        cluster_model(brokers(1), once)
    with pytest.raises(HeadroomError, match="negative or infinite"):
        cluster_model(brokers(2), replace(once, write=np.array([[-1.0, 0.0]])))
    with pytest.raises(HeadroomError, match="broker occurs twice"):
        cluster_model([*brokers(2), *brokers(2)], once)


def test_an_hour_that_no_source_reported_does_not_count() -> None:
    hours = np.array([[1.0, 2.0], [NAN, NAN], [3.0, 4.0]])
    arrays = PartitionArrays(
        ["t", "t"], np.array([0, 1]), np.array([[1], [2]]), np.array([1, 2]), hours, hours, hours, np.zeros(2)
    )
    model = cluster_model(brokers(2), arrays)
    assert model.write.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert model.rates_known.all()
