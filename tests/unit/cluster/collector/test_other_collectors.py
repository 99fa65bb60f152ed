"""Two collectors of one cluster: the later one yields, and only if the other goes on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.cluster.collector.other_collectors import CollectorId, Rivals
from headroom.cluster.collector.publisher import SentMessages, TickTiming, tick_end
from headroom.cluster.collector.rows.encoder import encode_end

START_MS = 1_800_000_000_000
OWN = CollectorId(START_MS, "db-2", 77)
ELDER = CollectorId(START_MS - 3_600_000, "db-1", 4711)
YOUNGER = CollectorId(START_MS + 1000, "db-3", 5)


def end_of(collector: CollectorId | None, at_ms: int, cluster: str = "orders") -> bytes:
    end = tick_end(
        SentMessages({"brokers": 1}, 0, 1),
        TickTiming(at_ms, at_ms + 50, interval_ms=1000, rate_window_ms=10_000),
        collector=collector,
    )
    return encode_end(cluster, at_ms, 1, end).value


def heard(rivals: Rivals, collector: CollectorId | None, seconds: float, cluster: str = "orders") -> CollectorId | None:
    """Return the collector that is yielded to after some seconds with another one's ticks."""
    ticks = [rivals.yields_to(end_of(collector, START_MS + n * 1000, cluster), n) for n in range(int(seconds) + 1)]
    return ticks[-1]


@pytest.fixture
def rivals() -> Rivals:
    return Rivals("orders", OWN, 1.0)


def test_a_collector_yields_to_an_older_one_that_continues(rivals: Rivals) -> None:
    assert heard(rivals, ELDER, 3) == ELDER


def test_it_does_not_yield_to_what_is_left_of_one_that_ends(rivals: Rivals) -> None:
    assert heard(rivals, ELDER, 2) is None


def test_at_long_intervals_what_is_left_of_one_may_take_as_long() -> None:
    rivals = Rivals("orders", OWN, 10.0)
    assert rivals.yields_to(end_of(ELDER, START_MS), 0.0) is None
    assert rivals.yields_to(end_of(ELDER, START_MS), 10.0) is None
    assert rivals.yields_to(end_of(ELDER, START_MS), 20.0) == ELDER
    assert rivals.listen_s > 20.0


def test_it_does_not_yield_to_one_that_is_about_to_yield(rivals: Rivals) -> None:
    assert heard(rivals, YOUNGER, 8) is None


def test_it_yields_to_one_that_no_longer_checks_whatever_the_clocks_are(rivals: Rivals) -> None:
    assert heard(rivals, replace(YOUNGER, collector_started_ms=START_MS + 1), 11) is not None


def test_it_yields_to_one_whose_clock_was_set_back_since_its_start(rivals: Rivals) -> None:
    # Its ticks are of now, and its start is later than that of this one.
    assert heard(rivals, replace(ELDER, collector_started_ms=START_MS + 3_600_000), 3) is not None


@pytest.mark.parametrize("collector", [OWN, None])
def test_its_own_ticks_and_those_without_an_identity_are_no_others(
    rivals: Rivals, collector: CollectorId | None
) -> None:
    assert heard(rivals, collector, 20) is None


def test_collectors_of_other_clusters_are_no_rivals(rivals: Rivals) -> None:
    assert heard(rivals, ELDER, 20, cluster="payments") is None


@given(st.integers(-10_000, 10_000), st.sampled_from(["db-1", "db-2", "db-3"]), st.integers(1, 3))
def test_of_two_that_start_together_exactly_one_yields(later_ms: int, host: str, pid: int) -> None:
    one, two = CollectorId(START_MS, "db-2", 2), CollectorId(START_MS + later_ms, host, pid)
    if one == two:
        return
    yields = []
    for own, other in ((one, two), (two, one)):
        rivals = Rivals("orders", own, 1.0)
        at_ms = other.collector_started_ms
        yielded = [rivals.yields_to(end_of(other, at_ms + n * 1000), float(n)) for n in range(5)]
        yields.append(yielded[-1] is not None)
    assert sorted(yields) == [False, True]


@pytest.mark.parametrize(
    "end",
    [
        b"",
        b'"tick_end"',
        b'{"kind":"tick_end"',
        b'["tick_end"]',
        b'{"kind":"tick_end","cluster":"orders"}',
        b'"tick_end"\xff',
    ],
)
def test_messages_other_than_the_end_of_a_tick_are_skipped(rivals: Rivals, end: bytes) -> None:
    assert rivals.yields_to(end, 0.0) is None


@pytest.mark.parametrize("end", [{"collector_pid": "x"}, {"collector_started_ms": None}])
def test_an_invalid_collector_identity_is_ignored(end: dict[str, Any]) -> None:
    columns = ELDER.columns()
    assert CollectorId.of(columns) == ELDER
    assert CollectorId.of(columns | end) is None


def test_an_identity_is_printed_on_one_line() -> None:
    assert str(ELDER) == "pid 4711 on host db-1"
    assert str(replace(ELDER, collector_host="\x1b[2J\nroot")).isprintable()
