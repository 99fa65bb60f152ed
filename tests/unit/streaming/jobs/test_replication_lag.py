"""The writer of replication lag on a local disk: the newest complete tick of each cluster, once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import FETCHER_LAG, LEADER_DISTRIBUTION, MESSAGES, REPLICATION_LAG
from headroom.streaming.delta.append import append
from headroom.streaming.jobs.loads.replication_lag import (
    ReplicationLagRow,
    ReplicationLagWriter,
    complete_ticks,
    replication_lags,
)
from tests.unit.builders.dashboard_store import CLUSTER, TICK_MS, DashboardStore


@pytest.fixture
def store(tmp_path: Path) -> DashboardStore:
    return DashboardStore(tmp_path / "store")


def messages(store: DashboardStore, tick_ms: int, *seqs: int, last: int | None = 3, cluster: str = CLUSTER) -> None:
    """Append messages of a tick by number; the number of its end is ``last``."""
    kinds = [(seq, "lags") for seq in seqs] + ([] if last is None else [(last, "tick_end")])
    tick = {"cluster": cluster, "tick_ms": tick_ms}
    store.rows(MESSAGES, *({**tick, "seq": seq, "kind": kind, "rows": 1} for seq, kind in kinds))


def gauges(
    store: DashboardStore, tick_ms: int, *rows: tuple[int, int, int, int | None], cluster: str = CLUSTER
) -> None:
    """Append gauges: follower, source, partition and offsets."""
    keys = ("broker", "source_broker", "partition", "lag_offsets")
    tick = {"cluster": cluster, "tick_ms": tick_ms, "topic": "t", "fetcher": "f"}
    store.rows(FETCHER_LAG, *({**tick, **dict(zip(keys, row, strict=True))} for row in rows))


def leaders(store: DashboardStore, tick_ms: int, *rows: tuple[int, int | None, list[int]]) -> None:
    """Append partitions: number, leader and replicas."""
    tick = {"cluster": CLUSTER, "tick_ms": tick_ms, "topic": "t"}
    keys = ("partition", "leader", "replicas")
    store.rows(LEADER_DISTRIBUTION, *({**tick, **dict(zip(keys, row, strict=True))} for row in rows))


Writer = tuple[ReplicationLagWriter, list[Sequence[ReplicationLagRow]]]


@pytest.fixture
def writer(store: DashboardStore) -> Callable[[], Writer]:
    """Returns a new writer, as of a process that has just started, with what it appends."""

    def make() -> Writer:
        appended: list[Sequence[ReplicationLagRow]] = []

        def write(rows: Sequence[ReplicationLagRow]) -> None:
            append(store.opened(REPLICATION_LAG), rows, REPLICATION_LAG)
            appended.append(rows)

        return ReplicationLagWriter(str(store.path), write, lambda: TICK_MS), appended

    return make


def test_a_tick_is_complete_with_all_messages_up_to_its_end(store: DashboardStore) -> None:
    messages(store, TICK_MS - 3000, 0, 1, 2)
    messages(store, TICK_MS - 2000, 0, 2)
    # Twice the same, and one that is missing.
    messages(store, TICK_MS - 1000, 0, 1, 1)
    messages(store, TICK_MS, 0, 1, 2, last=None)
    messages(store, TICK_MS - 5000, 0, last=1, cluster="other")
    assert complete_ticks(str(store.path), 0) == {CLUSTER: TICK_MS - 3000, "other": TICK_MS - 5000}
    assert complete_ticks(str(store.path), TICK_MS - 4000) == {CLUSTER: TICK_MS - 3000}


def test_replicas_are_counted_by_follower_and_source_with_those_that_have_no_gauge(store: DashboardStore) -> None:
    gauges(store, TICK_MS, (3, 1, 0, 5), (3, 1, 1, None), (3, 2, 2, 0), (4, 1, 0, 70))
    gauges(store, TICK_MS, (3, 1, 0, 5))
    gauges(store, TICK_MS - 1000, (3, 1, 0, 999))
    leaders(store, TICK_MS, (0, 1, [1, 3, 4]), (1, 1, [1, 3]), (2, 2, [2, 3, 5]), (3, None, [1, 2]), (4, 1, [1, 3]))
    rows = replication_lags(str(store.path), CLUSTER, TICK_MS)
    assert [
        (r.broker, r.source_broker, r.replicas, r.behind, r.unknown, r.missing, r.lag_offsets, r.greatest_lag_offsets)
        for r in rows
    ] == [
        (3, 1, 2, 1, 1, 1, 5, 5),
        (3, 2, 1, 0, 0, 0, 0, 0),
        (4, 1, 1, 1, 0, 0, 70, 70),
        # It has no gauge at all, as a broker that is down.
        (5, 2, 0, 0, 0, 1, 0, None),
    ]


def test_without_metadata_of_the_tick_it_is_unknown_how_many_have_no_gauge(store: DashboardStore) -> None:
    gauges(store, TICK_MS, (3, 1, 0, 5))
    (row,) = replication_lags(str(store.path), CLUSTER, TICK_MS)
    assert row.missing is None


def test_the_newest_complete_tick_of_each_cluster_is_written_once(
    store: DashboardStore, writer: Callable[[], Writer]
) -> None:
    own, appended = writer()
    own.write_newest()
    assert appended == []
    for tick_ms in (TICK_MS - 9000, TICK_MS - 4000):
        messages(store, tick_ms, 0, last=1)
        gauges(store, tick_ms, (3, 1, 0, 5))
    messages(store, TICK_MS - 5000, 0, last=1, cluster="other")
    gauges(store, TICK_MS - 5000, (3, 1, 0, 8), cluster="other")
    own.write_newest()
    own.write_newest()
    assert [(rows[0].cluster, rows[0].tick_ms) for rows in appended] == [
        ("other", TICK_MS - 5000),
        (CLUSTER, TICK_MS - 4000),
    ]
    # A process that has started again knows what is in the table.
    again, appended = writer()
    again.write_newest()
    assert appended == []
    messages(store, TICK_MS, 0, last=1)
    gauges(store, TICK_MS, (3, 1, 0, 6))
    again.write_newest()
    assert [(rows[0].cluster, rows[0].lag_offsets) for rows in appended] == [(CLUSTER, 6)]


@pytest.mark.parametrize("ahead_ms", [-3_600_000, 0, 3_600_000])
def test_the_clock_of_the_collector_may_be_another_one(
    store: DashboardStore, writer: Callable[[], Writer], ahead_ms: int
) -> None:
    messages(store, TICK_MS + ahead_ms, 0, last=1)
    gauges(store, TICK_MS + ahead_ms, (3, 1, 0, 5))
    own, appended = writer()
    own.write_newest()
    assert [rows[0].tick_ms for rows in appended] == [TICK_MS + ahead_ms]


def test_a_write_that_failed_is_done_by_the_next_call(store: DashboardStore) -> None:
    messages(store, TICK_MS, 0, last=1)
    gauges(store, TICK_MS, (3, 1, 0, 5))
    failures = [OSError("no space"), None]
    done: list[int] = []

    def write(rows: Sequence[ReplicationLagRow]) -> None:
        error = failures.pop(0)
        if error is not None:
            raise error
        done.append(len(rows))

    own = ReplicationLagWriter(str(store.path), write, lambda: TICK_MS)
    with pytest.raises(OSError, match="no space"):
        own.write_newest()
    own.write_newest()
    assert done == [1]


def test_a_table_that_cannot_be_read_is_an_error(store: DashboardStore, writer: Callable[[], Writer]) -> None:
    messages(store, TICK_MS, 0, last=1)
    for file in (store.path / MESSAGES.path).rglob("*.parquet"):
        file.write_bytes(b"PAR1")
    with pytest.raises(HeadroomError, match="silver/messages"):
        writer()[0].write_newest()
