"""Offsets and amounts as they are given."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.planning.migration.known import known_amount, known_float

AMOUNTS = st.one_of(st.none(), st.integers(-5, 2**62), st.floats())


@given(AMOUNTS)
def test_a_known_float_is_the_exact_amount_as_a_float(amount: float | None) -> None:
    exact = known_amount(amount)
    assert known_float(amount) == (None if exact is None else float(exact))


@pytest.mark.parametrize("unknown", [None, math.nan, math.inf, -math.inf, -1, -0.5])
def test_what_is_no_amount_is_unknown(unknown: float | None) -> None:
    assert known_float(unknown) is None


def test_a_float_counts_as_its_first_15_digits() -> None:
    # 0.1 x 3 is 0.30000000000000004.
    assert known_float(0.1 * 3) == 0.3
    assert known_float(2**62 + 1) == float(2**62)
