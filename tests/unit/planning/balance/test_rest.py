"""What the batches that are left of a proposal still gain."""

from __future__ import annotations

from dataclasses import replace

from headroom.planning.balance.goals.catalogue import built_in_goals
from headroom.planning.balance.model import BalanceBroker, ClusterModel
from headroom.planning.balance.reports.rest import RestOfProposal, rest_of_proposal
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.schemas.keys import TopicPartition
from tests.unit.planning.balance.clusters import brokers, model_of

MB = 1e6


def plan(**targets: tuple[int, ...]) -> ReassignmentPlan:
    """Target replicas of partitions ``p0``, ``p1``, ..."""
    return ReassignmentPlan(
        tuple(TargetAssignment(TopicPartition("t", int(name[1:])), r) for name, r in targets.items())
    )


def skewed(states: list[BalanceBroker] | None = None) -> ClusterModel:
    """Brokers 1 and 2 have both partitions, broker 3 has none."""
    return model_of(states or brokers(3), [[1, 2], [1, 2]], [50 * MB, 50 * MB], topics=["t", "t"])


def rest(model: ClusterModel, *plans: ReassignmentPlan) -> RestOfProposal:
    return rest_of_proposal(model, built_in_goals(), plans)


def test_the_gain_of_the_remaining_batches_is_that_of_their_final_replicas() -> None:
    found = rest(skewed(), plan(p0=(3, 2)), plan(p0=(3, 1)))
    assert found.gains
    assert (found.gone, found.unknown) == ((), ())
    assert found == rest(skewed(), plan(p0=(3, 1)))
    # What is there already, and what makes it worse.
    assert not rest(skewed(), plan(p0=(1, 2))).gains
    better = model_of(brokers(2), [[1], [2]], [50 * MB, 50 * MB], topics=["t", "t"])
    assert not rest(better, plan(p0=(2,))).gains


def test_a_lead_alone_is_a_gain() -> None:
    found = rest(skewed(), plan(p0=(2, 1)))
    assert found.outside_after < found.outside_before


def test_brokers_that_are_gone_or_unknown_are_named() -> None:
    states = brokers(3)
    gone = rest(skewed([*states[:2], replace(states[2], alive=False)]), plan(p0=(3, 2)))
    assert (gone.gone, gone.gains) == ((3,), False)
    assert rest(skewed(states[:2]), plan(p0=(3, 2))).gone == (3,)
    assert rest(skewed([*states[:2], replace(states[2], known=False)]), plan(p0=(3, 2))).unknown == (3,)
    # Broker 2 keeps what it has.
    assert rest(skewed([states[0], replace(states[1], known=False), states[2]]), plan(p0=(3, 2))).unknown == ()


def test_a_replica_on_a_broker_that_is_down_may_stay_there() -> None:
    down = [*brokers(3)[:2], replace(brokers(3)[2], alive=False)]
    model = model_of(down, [[1, 2, 3], [1, 2, 3]], [50 * MB, 50 * MB], topics=["t", "t"])
    found = rest(model, plan(p0=(2, 1, 3)))
    assert (found.gone, found.unknown, found.gains) == ((), (), True)
    # But it cannot lead, and one that is replaced is no reason to wait.
    assert rest(model, plan(p0=(3, 1, 2))).gone == (3,)
    more = model_of([*down, BalanceBroker(4)], [[1, 2, 3], [1, 2, 3]], [50 * MB, 50 * MB], topics=["t", "t"])
    replaced = rest(more, plan(p0=(4, 2, 1)))
    assert (replaced.gone, replaced.unknown) == ((), ())


def test_elections_alone_are_worth_it_unless_they_do_harm() -> None:
    # One of two leads each: to exchange them gains nothing, and to give both to one broker does harm.
    even = model_of(brokers(2), [[1, 2], [2, 1]], [50 * MB, 50 * MB], topics=["t", "t"])
    exchanged = rest(even, plan(p0=(2, 1), p1=(1, 2)))
    assert (exchanged.gains, exchanged.copies, exchanged.is_worth_it) == (False, False, True)
    assert not rest(even, plan(p0=(2, 1))).is_worth_it
    # A copy has to gain.
    moved = rest(model_of(brokers(3), [[1], [2], [3]], [50 * MB] * 3, topics=["t"] * 3), plan(p0=(2,), p1=(1,)))
    assert (moved.gains, moved.copies, moved.is_worth_it) == (False, True, False)


def test_racks_that_are_spread_in_part_are_a_gain() -> None:
    """Brokers 1 and 2 share a rack: two partitions are on both, and one of them is spread."""
    states = [replace(b, rack=rack) for b, rack in zip(brokers(3), ("a", "a", "b"), strict=True)]
    model = model_of(states, [[1, 2], [1, 2]], [0.1 * MB] * 2, topics=["t", "t"])
    found = rest(model, plan(p0=(1, 3)))
    assert found.broken_after < found.broken_before
    assert found.gains


def test_racks_that_are_spread_are_a_gain_even_if_no_load_is() -> None:
    states = [replace(b, rack=rack) for b, rack in zip(brokers(3), ("a", "a", "b"), strict=True)]
    found = rest(model_of(states, [[1, 2]], [0.1 * MB], topics=["t"]), plan(p0=(1, 3)))
    assert found.broken_after < found.broken_before
    assert found.gains


def test_a_partition_may_get_more_replicas_than_any_has() -> None:
    assert rest(skewed(), plan(p0=(1, 2, 3))).unknown == ()
