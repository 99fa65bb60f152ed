"""What a producer notices of a switch, from the times of its records."""

from __future__ import annotations

import pytest

from benchmarks.groups.routed.switches import Answers


def test_delays_are_those_of_records_that_were_sent_within_the_time() -> None:
    answers = Answers([0.0, 1.0, 2.0, 3.0], {0: 0.1, 1: 1.5, 2: 2.2, 3: 3.1})
    assert answers.delays_s(1.0, 3.0) == pytest.approx([0.5, 0.2])


def test_a_pause_is_the_longest_time_between_two_acknowledgements() -> None:
    # The record of offset 1 is acknowledged after that of offset 2, as a moved one may be.
    answers = Answers([0.0, 0.1, 0.2, 0.3], {0: 0.2, 1: 1.4, 2: 0.4, 3: 1.5})
    assert answers.longest_pause_s(0.0, 2.0) == pytest.approx(1.0)
