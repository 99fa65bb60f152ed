"""Plans that tests share belong to queries that are made from the same code and the same values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.spark.shared_plans import identity

LIMIT = 3


@dataclass(frozen=True)
class Nested:
    limit: int
    inner: dict[str, list[int]] = field(default_factory=dict)
    session: Any = None


class Reader:
    def __init__(self, kinds: Any, session: Any) -> None:
        self._kinds = kinds
        self._session = session

    def parsed(self, rows: Any) -> Any:
        return self._chosen(rows)

    def _chosen(self, rows: Any) -> Any:
        return rows, self._kinds

    def new(self, rows: Any) -> Any:
        return self._session, rows


def query(value: Any) -> Callable[..., Any]:
    def make(rows: Any) -> Any:
        return rows, value

    return as_of_streaming(make)


def with_limit(rows: Any) -> Any:
    return rows, LIMIT


def as_of_streaming(make: Any) -> Any:
    make.__module__ = "headroom.streaming.transforms.of_this_test"
    return make


def method(reader: Reader, name: str) -> Any:
    as_of_streaming(getattr(Reader, name))
    return getattr(reader, name)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        (1, True),
        (["a"], ["b"]),
        (Nested(1), Nested(2)),
        (Nested(1, {"a": [1]}), Nested(1, {"a": [2]})),
        ((Nested(1),), (Nested(2),)),
        (lambda: 1, lambda: 2),
        (query(1), query(2)),
    ],
)
def test_equal_code_with_other_values_is_another_query(one: Any, other: Any) -> None:
    assert identity(query(one)) is not None
    assert identity(query(one)) == identity(query(one))
    assert identity(query(one)) != identity(query(other))


def test_a_query_that_cannot_be_compared_shares_no_plan() -> None:
    assert identity(query([object()])) is None
    assert identity(query((object(),))) is None
    assert identity(method(Reader((), object()), "new")) is None
    assert identity(lambda rows: rows) is None


def test_a_method_is_known_by_the_values_of_its_object_and_not_by_what_it_does_not_use() -> None:
    queries = [method(Reader(kinds, object()), "parsed") for kinds in (("a",), ("a",), ("b",))]
    first, same, other = map(identity, queries)
    assert first is not None
    assert first == same != other
    # An object that has one is shared as long as the query does not use it.
    assert identity(query(Nested(1, session=object()))) == identity(query(Nested(1, session=object()))) is not None


def test_a_value_of_the_module_that_a_test_replaces_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = identity(as_of_streaming(with_limit))
    monkeypatch.setitem(globals(), "LIMIT", 4)
    assert before is not None
    assert identity(with_limit) != before
