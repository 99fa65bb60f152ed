"""Which hours are written, and with which ticks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.streaming.jobs.loads.partition_load import due_hours, hours_of
from headroom.streaming.transforms.partition_load import BUCKET_MS, HOUR_MS, LoadHour

HOUR = 500_000 * HOUR_MS


def bucket(number: int, messages: int = 10, edge: bool = True, cluster: str = "c1") -> dict[str, Any]:
    """5 minutes since HOUR with messages; the first tick that has ended comes 3 s after their start, in 4 messages."""
    start_ms = HOUR + number * BUCKET_MS
    ended = (start_ms + 3_000, 4) if edge else (None, None)
    return {"cluster": cluster, "bucket_ms": start_ms, "messages": messages} | dict(
        zip(("edge_ms", "edge_messages"), ended, strict=True)
    )


def edge_ms(number: int) -> int:
    return HOUR + number * BUCKET_MS + 3_000


def test_an_hour_has_its_edges_and_the_one_that_closes_it() -> None:
    (hour,) = hours_of(bucket(number) for number in range(13))
    # 12 x 10 messages, and 4 of the first tick after the hour.
    assert hour == LoadHour("c1", HOUR, tuple(edge_ms(n) for n in range(13)), 124, closed=True)


def test_an_hour_with_gaps_has_the_edges_that_are_left() -> None:
    (hour,) = hours_of([bucket(0), bucket(5, edge=False), bucket(7)])
    # The messages of a tick that has not ended yet count: more of them may come.
    assert hour == LoadHour("c1", HOUR, (edge_ms(0), edge_ms(7)), 30, closed=False)


@pytest.mark.parametrize("ledger", [[], [bucket(3)], [bucket(3), bucket(4, edge=False)], [bucket(11), bucket(24)]])
def test_an_hour_without_two_edges_has_no_rates(ledger: list[dict[str, Any]]) -> None:
    assert hours_of(ledger) == []


def test_hours_and_clusters_are_apart() -> None:
    ledger = [bucket(n, cluster=cluster) for cluster in ("c2", "c1") for n in range(24)]
    assert [(hour.cluster, hour.hour_ms) for hour in hours_of(ledger)] == [
        ("c1", HOUR),
        ("c1", HOUR + HOUR_MS),
        ("c2", HOUR),
        ("c2", HOUR + HOUR_MS),
    ]


def hour_of(cluster: str = "c1", number: int = 0, messages: int = 100, closed: bool = True) -> LoadHour:
    return LoadHour(cluster, HOUR + number * HOUR_MS, (1, 2), messages, closed)


AFTER_MS = HOUR + HOUR_MS + 10 * 60_000


@pytest.mark.parametrize(
    ("hour", "now_ms", "due"),
    [
        (hour_of(closed=True), HOUR + HOUR_MS, True),
        (hour_of(closed=False), AFTER_MS - 1, False),
        (hour_of(closed=False), AFTER_MS, True),
    ],
)
def test_an_hour_is_due_once_it_is_closed_or_ten_minutes_are_over(hour: LoadHour, now_ms: int, due: bool) -> None:
    assert bool(due_hours([hour], {}, now_ms)) == due


@pytest.mark.parametrize(("before", "due"), [(99, True), (100, False), (101, False)])
def test_an_hour_is_written_again_only_when_silver_has_more_of_it(before: int, due: bool) -> None:
    assert bool(due_hours([hour_of()], {("c1", HOUR): before}, AFTER_MS)) == due


def test_the_newest_hour_comes_first() -> None:
    hours = [hour_of("c2"), hour_of("c1"), hour_of("c1", 1)]
    assert due_hours(hours, {}, AFTER_MS + HOUR_MS) == [hour_of("c1", 1), hour_of("c1"), hour_of("c2")]


@given(
    st.dictionaries(st.integers(0, 47), st.tuples(st.integers(1, 99), st.booleans())),
    st.permutations(range(48)),
)
def test_written_hours_are_not_due_whatever_the_order_of_ticks(
    ticks: dict[int, tuple[int, bool]], order: list[int]
) -> None:
    ledger = [bucket(number, *ticks[number]) for number in sorted(ticks)]
    hours = hours_of(ledger)
    assert hours_of([bucket(number, *ticks[number]) for number in order if number in ticks]) == hours
    now_ms = HOUR + 5 * HOUR_MS
    due = due_hours(hours, {}, now_ms)
    assert sorted(due, key=lambda hour: hour.hour_ms) == hours
    assert due_hours(hours, {(hour.cluster, hour.hour_ms): hour.messages for hour in due}, now_ms) == []
