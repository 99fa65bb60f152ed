"""End offset and the time until it is reached, computed by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.planning.migration import end_offset, reached_in_s

UNKNOWN = (None, math.nan, math.inf, -math.inf, -1.0)
OFFSETS = st.integers(0, 2**62)
AMOUNTS = st.floats(0.0, 1e12)


def test_the_end_is_what_the_origin_will_have_after_the_preparation() -> None:
    # 2,000 a second for 5 minutes are 600,000.
    assert end_offset(100_000, 2_000, 300) == 700_000
    assert end_offset(100_000, 2_000.0, 300.0) == 700_000
    assert end_offset(0, 1, 1) == 1


@pytest.mark.parametrize(
    ("offsets_per_s", "prepare_s", "offsets"),
    [
        # 0.25 and 1.0000001 are rounded up.
        (0.5, 0.5, 1),
        (1.0000001, 1.0, 2),
        (5e-324, 1.0, 1),
        # In floats 11.000000000000002 and 3.0000000000000004; as a fraction the float 0.1 is more than a tenth.
        (1.1, 10, 11),
        (0.1 * 3, 10, 3),
        (0.1, 30, 3),
        (1 / 3, 3, 1),
        (2**53 + 2.0, 1, 2**53 + 2),
        (0.0, 300.0, 0),
        (2_000.0, 0.0, 0),
        (-0.0, 300.0, 0),
    ],
)
def test_offsets_are_rounded_up_and_noise_of_floats_is_not(
    offsets_per_s: float, prepare_s: float, offsets: int
) -> None:
    assert end_offset(7, offsets_per_s, prepare_s) == 7 + offsets


def test_an_offset_that_kafka_does_not_have_is_no_end() -> None:
    assert end_offset(2**63 - 2, 1.0, 1.0) == 2**63 - 1
    assert end_offset(2**63 - 2, 1.0, 1.1) is None
    assert end_offset(0, 1e308, 1e308) is None


def test_large_offsets_are_exact() -> None:
    # A float has 53 bits.
    assert end_offset(2**62 + 1, 2_000.0, 300.0) == 2**62 + 600_001
    assert end_offset(2**62 + 1, 0.0, 300.0) == 2**62 + 1
    assert end_offset(1, 2**55 + 1, 1) == 2**55 + 2


@pytest.mark.parametrize("unknown", UNKNOWN)
def test_an_unknown_rate_or_time_gives_no_end(unknown: float | None) -> None:
    assert end_offset(100, unknown, 300.0) is None
    assert end_offset(100, 2_000.0, unknown) is None


@pytest.mark.parametrize("unknown", [None, -1])
def test_an_unknown_position_gives_no_end(unknown: int | None) -> None:
    assert end_offset(unknown, 2_000.0, 300.0) is None
    assert reached_in_s(unknown, 2_000.0, 700_000) is None
    assert reached_in_s(100, 2_000.0, unknown) is None


@given(OFFSETS, st.integers(0, 10**9), st.integers(0, 10**7))
def test_the_end_is_the_first_offset_that_is_not_below_the_growth(position: int, thousandths: int, tenths: int) -> None:
    end = end_offset(position, thousandths / 1000, tenths / 10)
    assert end is not None
    growth = thousandths * tenths
    assert (end - position - 1) * 10_000 < growth <= (end - position) * 10_000


@given(OFFSETS, AMOUNTS, AMOUNTS, AMOUNTS)
def test_the_end_is_not_lower_at_a_higher_rate_or_after_a_longer_time(
    position: int, rate: float, other_rate: float, prepare_s: float
) -> None:
    low, high = sorted((rate, other_rate))
    # Beyond the greatest offset of Kafka there is none.
    for terms in (((low, prepare_s), (high, prepare_s)), ((prepare_s, low), (prepare_s, high))):
        first, second = (end if end is not None else 2**63 for end in (end_offset(position, *of) for of in terms))
        assert position <= first <= second


def test_the_end_is_reached_when_the_rate_has_filled_what_is_left() -> None:
    assert reached_in_s(100_000, 2_000.0, 700_000) == 300.0
    assert reached_in_s(699_999, 2.0, 700_000) == 0.5


@pytest.mark.parametrize("rate", [*UNKNOWN, 0.0, 2_000.0])
def test_at_the_end_there_is_nothing_to_wait_for(rate: float | None) -> None:
    assert reached_in_s(700_000, rate, 700_000) == 0.0
    assert reached_in_s(700_001, rate, 700_000) == 0.0
    assert reached_in_s(0, rate, 0) == 0.0


@pytest.mark.parametrize("rate", [*UNKNOWN, 0.0, -0.0, 5e-324])
def test_without_a_rate_the_end_is_never_reached(rate: float | None) -> None:
    assert reached_in_s(100_000, rate, 700_000) is None


@given(st.integers(0, 10**12), st.floats(0.001, 1e9), st.floats(0.0, 1e6))
def test_the_end_is_reached_after_the_preparation_and_at_most_one_offset_later(
    position: int, rate: float, prepare_s: float
) -> None:
    seconds = reached_in_s(position, rate, end_offset(position, rate, prepare_s))
    assert seconds is not None
    assert prepare_s * (1 - 1e-9) <= seconds <= (prepare_s + 1 / rate) * (1 + 1e-9)
