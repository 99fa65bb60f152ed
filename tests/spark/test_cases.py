"""Cases that share one run: each has its own result, and a case that fails fails alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.spark.cases import Cases, Results

SPARK: Any = None


class Doubling:
    """Doubles numbers, and fails on text; notes which cases ran together."""

    def __init__(self) -> None:
        self.runs: list[list[str]] = []

    def __call__(self, spark: Any, cases: Mapping[str, tuple[Any, ...]]) -> dict[str, int]:
        self.runs.append(list(cases))
        return {name: abs(number) * 2 for name, (number,) in cases.items()}


def results(run: Callable[..., dict[str, int]], **given: Any) -> Results[int]:
    cases = Cases(run)
    for name, number in given.items():
        cases.add(name, number)
    return cases.results(SPARK)


def test_all_cases_run_once_and_together_when_the_first_result_is_read() -> None:
    run = Doubling()
    found = results(run, one=1, two=2)
    assert run.runs == []
    assert (found["two"], found["one"], found["one"]) == (4, 2, 2)
    assert run.runs == [["one", "two"]]


def test_if_the_shared_run_fails_only_the_guilty_case_does() -> None:
    run = Doubling()
    found = results(run, one=1, guilty="text", two=2)
    assert (found["one"], found["two"], found["two"]) == (2, 4, 4)
    with pytest.raises(TypeError):
        found["guilty"]
    assert run.runs == [["one", "guilty", "two"], ["one"], ["guilty"], ["two"]]


def test_if_cases_fail_only_together_all_of_them_do() -> None:
    def run(spark: Any, cases: Mapping[str, tuple[Any, ...]]) -> dict[str, int]:
        assert len(cases) == 1, "together"
        return dict.fromkeys(cases, 0)

    found = results(run, one=1, two=2)
    for name in ("one", "two"):
        with pytest.raises(AssertionError, match="together"):
            found[name]


def test_a_name_belongs_to_one_case() -> None:
    cases = Cases(Doubling())
    cases.add("one", 1)
    with pytest.raises(ValueError, match="two cases are named one"):
        cases.add("one", 2)


def test_a_case_that_was_not_added_has_no_result() -> None:
    with pytest.raises(KeyError):
        results(Doubling(), one=1)["two"]
