"""A planned move starts with its throttle in force and empty quotas, which have room for up to a whole window."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.planning.finish.finish_time import finish, planned_finish
from headroom.planning.quotas.load import CatchingUpReplica, ThrottleLoad
from headroom.schemas.keys import Role, TopicPartition

MB = 1_000_000


def loads(remaining_bytes: int, used_bytes_per_s: float | None = 0.0) -> list[ThrottleLoad]:
    """One copy from broker 1 to 3, without writes."""
    replica = CatchingUpReplica(TopicPartition("t", 0), 1, remaining_bytes, 0.0, (1, 3), (1, 3))
    leader = ThrottleLoad(1, Role.LEADER, 0.0, 0.0, 0.0, 1, 0, remaining_bytes, used_bytes_per_s=used_bytes_per_s)
    return [leader, replace(leader, broker=3, role=Role.FOLLOWER, catching_up=(replica,))]


def test_a_long_copy_takes_bytes_over_throttle() -> None:
    found = planned_finish(loads(600 * MB), lambda load: 5.0 * MB)
    assert found is not None
    assert found.middle_s == pytest.approx(120, rel=0.1)


def test_a_planned_move_is_throttled_from_the_start() -> None:
    """A running move without a rate copies at the speed of the network until its throttle is applied."""
    planned = planned_finish(loads(60 * MB), lambda load: 1.0 * MB)
    unlimited = [ThrottleLoad(**{**vars(load), "throttle_bytes_per_s": None}) for load in loads(60 * MB)]
    free = finish(unlimited, 1.0 * MB)
    assert planned is not None
    assert free is not None
    assert free.middle_s < 5 < 50 < planned.middle_s


def test_a_quota_that_was_idle_lets_a_window_through_at_once() -> None:
    """A destination's samples are up to 10 s old, so its range reaches from no burst to one of a whole window."""
    new, idle = (planned_finish(loads(60 * MB, used), lambda load: 2.0 * MB) for used in (None, 0.0))
    assert new is not None
    assert idle is not None
    # Without a burst, 60 MB take about 30 s.
    assert 20 < new.middle_s < 35
    assert idle.low_s + 5 < idle.middle_s < new.middle_s - 2


def test_each_broker_and_role_has_its_own_rate() -> None:
    found = planned_finish(loads(600 * MB), lambda load: (10.0 if load.role is Role.LEADER else 5.0) * MB)
    assert found is not None
    assert found.middle_s == pytest.approx(120, rel=0.1)


def test_unknown_bytes_have_no_end() -> None:
    unknown = [ThrottleLoad(**{**vars(load), "remaining_bytes": None}) for load in loads(MB)]
    assert planned_finish(unknown, lambda load: 5.0 * MB) is None
