"""Rates of the origin's logs, and which are quiet."""

from __future__ import annotations

from headroom.planning.migration.run.growth import LogGrowth
from headroom.schemas.keys import TopicPartition

NAME = TopicPartition("orders", 0)


def grown(*ends: int | None, measure_s: float = 2.0, quiet_s: float = 4.0) -> LogGrowth:
    """One reading a second."""
    growth = LogGrowth(measure_s, quiet_s)
    for at_s, end in enumerate(ends):
        found = {} if end is None else {NAME: end}
        growth.add(float(at_s), found, found)
    return growth


def test_a_rate_is_that_of_the_measured_time() -> None:
    assert grown(0, 10).offsets_per_s(NAME) is None
    # 30 more in 2 s.
    assert grown(0, 100, 110, 130).offsets_per_s(NAME) == 15.0


def test_a_rate_of_zero_takes_the_quiet_time() -> None:
    assert grown(5, 5, 5, 5).offsets_per_s(NAME) is None
    assert grown(5, 5, 5, 5, 5).offsets_per_s(NAME) == 0.0
    # One record in 4 s.
    assert grown(4, 5, 5, 5, 5).offsets_per_s(NAME) == 0.25


def test_a_log_is_quiet_once_it_has_not_grown_for_so_long() -> None:
    assert not grown(5, 5, 5, 5).is_quiet(NAME)
    assert grown(5, 5, 5, 5, 5).is_quiet(NAME)
    assert not grown(5, 5, 5, 6, 6, 6, 6).is_quiet(NAME)


def test_a_log_without_an_answer_or_that_got_shorter_is_neither_quiet_nor_has_a_rate() -> None:
    silent = grown(5, 5, 5, 5, 5, None)
    assert (silent.is_quiet(NAME), silent.offsets_per_s(NAME)) == (False, None)
    shorter = grown(5, 5, 5, 5, 5, 3)
    assert (shorter.is_quiet(NAME), shorter.offsets_per_s(NAME)) == (False, None)
    assert not grown(5, 5, None, 5, 5, 5).is_quiet(NAME)


def test_a_log_is_quiet_only_for_as_long_as_all_replicas_have_it() -> None:
    """The leader has 8, of which a follower that hangs has 5; from 6 s on it has all."""
    growth = LogGrowth(2.0, 4.0)
    for at_s in range(6):
        growth.add(float(at_s), {NAME: 8}, {NAME: 5})
    assert not growth.is_quiet(NAME)
    assert growth.offsets_per_s(NAME) == 0.0
    for at_s in range(6, 10):
        growth.add(float(at_s), {NAME: 8}, {NAME: 8})
        assert not growth.is_quiet(NAME)
    growth.add(10.0, {NAME: 8}, {NAME: 8})
    assert growth.is_quiet(NAME)
    growth.add(11.0, {}, {NAME: 8})
    assert not growth.is_quiet(NAME)


def test_old_readings_are_forgotten() -> None:
    growth = grown(*range(100))
    assert len(growth._readings) <= 6
    assert growth.offsets_per_s(NAME) == 1.0
