"""What the batches that are left of a proposal still gain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headroom.planning.balance.goals.catalogue import built_in_goals
from headroom.planning.balance.goals.goal import BrokerUsage
from headroom.planning.balance.model import OF_LEADERS, BalanceBroker, BrokerCapacity, ClusterModel
from headroom.planning.balance.reports.rest import RestOfProposal, rest_of_proposal
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.unit.planning.balance.clusters import brokers, model_of

MB = 1e6
NAN = float("nan")


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


def test_brokers_that_take_nothing_now_and_are_to_get_a_replica_or_a_lead_are_named() -> None:
    first, second, third = brokers(3)
    cordoned = replace(third, takes="cordoned")
    assert rest(skewed([first, second, cordoned]), plan(p0=(3, 2))).closed == (cordoned,)
    # What a broker has stays there, and a lead needs no room.
    cordoned = replace(second, takes="cordoned")
    assert rest(skewed([first, cordoned, third]), plan(p0=(3, 2))).closed == ()
    assert rest(skewed([first, cordoned, third]), plan(p0=(2, 1))).closed == ()
    slow = replace(second, takes="slow", sheds=frozenset(OF_LEADERS))
    assert rest(skewed([first, slow, third]), plan(p0=(2, 1))).closed == (slow,)
    assert rest(skewed([first, slow, third]), plan(p0=(1, 3))).closed == ()


def test_limits_that_would_be_broken_are_named_although_load_outside_of_bands_falls() -> None:
    """Broker 1 has six partitions of 100 GB and broker 3 none; since the proposal its disk has become smaller."""

    def moved(disk_gb: float, last: Sequence[int] = (1, 2)) -> RestOfProposal:
        states = brokers(3, disk_bytes=2_000e9)
        states[2] = replace(states[2], capacity=BrokerCapacity(disk_bytes=disk_gb * 1e9))
        replicas = [[1, 2]] * 5 + [list(last)]
        model = model_of(states, replicas, [50 * MB] * 6, size=[100e9] * 6, topics=["t"] * 6)
        return rest(model, plan(p0=(3, 2), p1=(3, 2)))

    found = moved(240.0)
    assert (found.gains, found.breaking) == (True, (("disk_capacity", 3),))
    assert moved(260.0).breaking == ()
    # A broker that is beyond its limit already gets further beyond it.
    assert moved(100.0, (1, 3)).breaking == (("disk_capacity", 3),)


def test_racks_that_would_be_less_even_are_named_although_load_outside_of_bands_falls() -> None:
    """Broker 3 has come to rack b since the proposal."""
    states = [replace(b, rack=rack) for b, rack in zip(brokers(3), ("a", "b", "b"), strict=True)]
    found = rest(skewed(states), plan(p0=(3, 2)))
    assert (found.gains, found.breaking) == (True, (("racks", 2), ("racks", 3)))
    assert rest(skewed(states), plan(p0=(1, 3))).breaking == ()


def test_partitions_of_unknown_load_are_named_if_they_change() -> None:
    no_rate = model_of(brokers(3), [[1, 2], [1, 2]], [NAN, 50 * MB], topics=["t", "t"])
    no_size = model_of(brokers(3), [[1, 2], [1, 2]], [50 * MB] * 2, size=[NAN, 1e9], topics=["t", "t"])
    name = TopicPartition("t", 0)
    for model, targets, unweighed in (
        (no_rate, (3, 2), (name,)),
        (no_rate, (2, 1), (name,)),
        (no_rate, (1, 2), ()),
        (no_size, (3, 2), (name,)),
        # An election copies nothing.
        (no_size, (2, 1), ()),
    ):
        assert rest(model, plan(p0=targets, p1=(3, 2))).unweighed == unweighed


@pytest.mark.parametrize(
    ("holds", "rule"),
    [
        (lambda brokers: 1 / 0, "failed with ZeroDivisionError"),
        (lambda brokers: [True] * len(brokers) + [True], "not one truth value per broker"),
    ],
)
def test_a_goal_that_fails_stops_by_its_name(holds: Callable[[Any], Any], rule: str) -> None:
    class Odd:
        name, hard, weight, group = "odd", True, 1.0, "own"

        def bounds(self, model: ClusterModel, usage: BrokerUsage) -> None:
            """Compare with nothing."""

        def holds(self, bounds: None, usage: BrokerUsage) -> Any:
            return holds(usage.brokers)

        def score(self, bounds: None, usage: BrokerUsage) -> Any:
            return np.ones(len(usage.brokers))

    with pytest.raises(HeadroomError, match=rule) as failed:
        rest_of_proposal(skewed(), [*built_in_goals(), Odd()], [plan(p0=(3, 2))])
    assert failed.value.subject == "goal odd"
