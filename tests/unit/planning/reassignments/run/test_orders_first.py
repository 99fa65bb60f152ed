from __future__ import annotations

import pytest

from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.run.orders_first import (
    require_orders_only,
    require_present_orders,
    with_leads_given_up,
    without_passed_orders,
)
from headroom.planning.reassignments.run.snapshot import RunSnapshot
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.unit.builders.cluster_states import placed, plan_of

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
ORDER, MOVE = plan_of({0: (2, 1), 1: (3, 1)}), plan_of({0: (2, 4), 1: (3, 4)})
AGAIN = frozenset({T0, T1})


def test_an_order_before_the_move_is_no_second_file_of_a_partition() -> None:
    require_orders_only([ORDER, MOVE])
    require_orders_only([ORDER, plan_of({0: (2, 4)}), plan_of({1: (3, 4)})])
    require_orders_only([plan_of({0: (1,)}), plan_of({1: (1,)})])


@pytest.mark.parametrize(
    "batches",
    [
        [MOVE, MOVE],
        # Two orders of the same replicas: a repeated command would make both again.
        [ORDER, plan_of({0: (1, 2)})],
        [ORDER, MOVE, plan_of({0: (2, 5)})],
        [ORDER, MOVE, plan_of({0: (1, 2)})],
        [ReassignmentPlan((TargetAssignment(TopicPartition("t", 0), (2, 1), ("/a", "any")),)), MOVE],
    ],
)
def test_any_other_second_file_is_refused(batches: list[ReassignmentPlan]) -> None:
    with pytest.raises(HeadroomError, match=r"t-0.*: is in more than one plan file"):
        require_orders_only(batches)


def test_the_order_has_to_be_one_of_the_present_replicas() -> None:
    here = placed(0, (1, 2)), placed(1, (1, 3))
    require_present_orders([ORDER, MOVE], {p.name: p for p in here})
    # One that has moved already, one on its way, and one that does not exist any more.
    require_present_orders([ORDER, MOVE], {T0: placed(0, (4, 2))})
    moving = placed(0, (2, 4, 1), adding=(4,), removing=(1,))
    require_present_orders([ORDER, MOVE], {T0: moving})
    with pytest.raises(HeadroomError, match="t-1: is in two plan files, and has other replicas"):
        require_present_orders([ORDER, MOVE], {T0: here[0], T1: placed(1, (5, 1))})


def test_an_order_is_passed_once_the_partition_moves_or_has_moved() -> None:
    here = {T0: placed(0, (1, 2)), T1: placed(1, (3, 1))}
    assert without_passed_orders(ORDER, AGAIN, here) == ORDER
    moving = {**here, T0: placed(0, (2, 4, 1), adding=(4,), removing=(1,))}
    assert list(without_passed_orders(ORDER, AGAIN, moving).by_name) == [T1]
    assert list(without_passed_orders(ORDER, AGAIN, {T0: placed(0, (2, 4)), T1: placed(1, (3, 4))})) == []
    # The run names what does not exist.
    assert list(without_passed_orders(ORDER, AGAIN, {}).by_name) == [T0, T1]


def test_later_batches_use_the_leaders_after_leads_are_given_up() -> None:
    snapshot = RunSnapshot({T0: placed(0, (1, 2)), T1: placed(1, (3, 4))}, frozenset({1, 2, 3, 4}))
    then = with_leads_given_up([ORDER, MOVE], snapshot).partitions
    assert [(then[name].replicas, then[name].leader) for name in (T0, T1)] == [((2, 1), 2), ((3, 4), 3)]
    assert with_leads_given_up([MOVE], snapshot) is snapshot
