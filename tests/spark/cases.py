"""Cases of a module that share one run in Spark.

Spark takes longer to plan a query than to run it on the few rows of a test. So the inputs of all tests of a module go
into one frame, each as a cluster of its own. The query runs once, and each test reads the rows of its own case::

    CASES = Cases(statuses_of)


    @pytest.fixture(scope="module")
    def statuses(spark: SparkSession) -> Results[Statuses]:
        return CASES.results(spark)


    CASES.add("no moves", tick([broker(1, None, None)], []))


    def test_a_broker_without_moves_is_idle(statuses: Results[Statuses]) -> None:
        assert statuses["no moves"][1, "leader"]["verdict"] == "idle"
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from pyspark.sql import DataFrame, Row, SparkSession

from tests.spark.ticks import RECORDS_DDL, Record, record_rows

Given = tuple[Any, ...]
Result = TypeVar("Result")
Run = Callable[[SparkSession, Mapping[str, Given]], Mapping[str, Result]]


class Cases(Generic[Result]):
    """Inputs by name.

    Args:
        run: evaluates inputs, and returns for each name what its input gave. A name is meant as that of a cluster.
    """

    def __init__(self, run: Run[Result]) -> None:
        self._run = run
        self._given: dict[str, Given] = {}

    def add(self, name: str, *given: Any) -> None:
        """Add a case: the arguments of the run under its name."""
        if name in self._given:
            raise ValueError(f"two cases are named {name}")
        self._given[name] = given

    def results(self, spark: SparkSession) -> Results[Result]:
        """Return what the cases give; nothing runs before the first one is read."""
        return Results(lambda given: self._run(spark, given), self._given)


class Results(Generic[Result]):
    """What each case gives, by name.

    All cases run together. If that fails, each runs alone, so that only the tests of the guilty cases fail. If none of
    them fails alone, the tests of all cases fail.
    """

    def __init__(self, run: Callable[[Mapping[str, Given]], Mapping[str, Result]], given: Mapping[str, Given]) -> None:
        self._run = run
        self._given = given
        self._found: dict[str, Result] = {}
        self._errors: dict[str, Exception] = {}

    def __getitem__(self, name: str) -> Result:
        if not self._found and not self._errors:
            self._run_all()
        if name in self._errors:
            raise self._errors[name]
        return self._found[name]

    def _run_all(self) -> None:
        try:
            self._found = dict(self._run(self._given))
        except Exception as error:
            for name, given in self._given.items():
                self._run_alone(name, given)
            self._errors = self._errors or dict.fromkeys(self._given, error)

    def _run_alone(self, name: str, given: Given) -> None:
        try:
            self._found[name] = self._run({name: given})[name]
        except Exception as error:
            self._errors[name] = error


def records_of(spark: SparkSession, cases: Mapping[str, Given]) -> DataFrame:
    """Kafka records of cases that are messages; each case is a cluster with offsets of its own.

    Args:
        spark: session.
        cases: name, which becomes the cluster of the messages, to the messages and the first offset, if it is not 0.
    """
    return spark.createDataFrame([row for name, given in cases.items() for row in _rows(name, *given)], RECORDS_DDL)


def _rows(name: str, messages: Sequence[dict[str, Any]], first_offset: int = 0) -> list[Record]:
    return record_rows([m | {"cluster": name} for m in messages], first_offset)


def by_case(rows: Iterable[Row], cases: Iterable[str]) -> dict[str, list[Row]]:
    """The rows of each case, of which some may have none."""
    found: dict[str, list[Row]] = {name: [] for name in cases}
    for row in rows:
        found[row["cluster"]].append(row)
    return found
