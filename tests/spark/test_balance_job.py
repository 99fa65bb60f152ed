"""The balance job: each tick's rows once, whatever is cut, lost, delivered twice or done again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headroom.planning.elections.planner import BatchLimits
from headroom.planning.elections.summary import ElectionPlanSummary
from headroom.schemas.tables import ELECTION_PLAN, LEADER_IMBALANCE, Table
from headroom.streaming.jobs.leader_imbalance import BalanceConfig, LeaderImbalanceJob
from headroom.streaming.store.leader_balance_follower import LeaderBalanceFollower
from headroom.streaming.store.store import Store
from headroom.streaming.transforms.prepared import Prepared
from tests.spark.leaders import alert_partition, history
from tests.spark.support import Crash, DyingStore, MemoryStore, SpreadTopic, checkpoint, counts, rows_of
from tests.spark.ticks import TICK_MS, records
from tests.support.random_clusters import BROKERS
from tests.support.random_leaders import Broker, Leadership, PartitionState

WELL = Broker(alive=True, metered=True, reads=1, percentage=None)


def cluster(away: int) -> Leadership:
    """Four partitions prefer broker 1, of which broker 2 leads some; four prefer broker 2."""
    ones = [PartitionState("a", n, 2 if n < away else 1, (1, 2), (1, 2), False, 100, True) for n in range(4)]
    twos = [PartitionState("a", n, 2, (2, 1), (1, 2), False, 100, True) for n in range(4, 8)]
    return Leadership((*ones, *twos), dict.fromkeys(BROKERS, WELL))


def topic(spark: SparkSession, ticks: int = 3, names: tuple[str, ...] = ("c1",)) -> SpreadTopic:
    """Ticks a second apart; in each broker 1 lacks one lead more than in the one before."""
    made = SpreadTopic(spark)
    for number in range(ticks):
        for name in names:
            at = TICK_MS + 1000 * number
            made.send(alert_partition(cluster(number), name, at), history(cluster(number), name, at, cut=3))
    return made


def job(spark: SparkSession, source: SpreadTopic, store: Store, folder: Path) -> LeaderImbalanceJob:
    """The job as it is after its start."""
    path = folder / "balance"
    where = str(path) if path.exists() else checkpoint(folder, "balance")
    made = LeaderImbalanceJob(spark, source, store, where, 1.0, BalanceConfig(source, 0.1, BatchLimits()))  # type: ignore[arg-type]
    made.prepare()
    return made


def run(spark: SparkSession, source: SpreadTopic, store: Store, folder: Path, size: int = 100) -> list[dict[str, Any]]:
    """The rows after all of the alert_partition, in batches of so many messages."""
    made = job(spark, source, store, folder)
    for number, first in enumerate(range(0, len(source.alert_partition), size)):
        made.write(records(spark, source.alert_partition[first : first + size], first), number)
    return rows(store)


def rows(store: Store, *clusters: str, table: Table = LEADER_IMBALANCE) -> list[dict[str, Any]]:
    """The rows of some clusters, or of all if none is given."""
    return [row for row in rows_of(store, table) if not clusters or row["cluster"] in clusters]


def electable(store: Store, *clusters: str) -> dict[tuple[str, int], int]:
    """By cluster and second, what an election would give back to broker 1."""
    return {tick_of(row): row["electable_now"] for row in rows(store, *clusters) if row["broker"] == 1}


def planned(store: Store, *clusters: str) -> dict[tuple[str, int], int]:
    """By cluster and second, how many elections were planned."""
    return {tick_of(row): row["elections"] for row in rows(store, *clusters, table=ELECTION_PLAN)}


def tick_of(row: dict[str, Any]) -> tuple[str, int]:
    """Cluster and second."""
    return row["cluster"], (row["tick_ms"] - TICK_MS) // 1000


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> MemoryStore:
    """The tables after one batch with all ticks of several clusters."""
    source, store = topic(spark, names=("c1", "c2")), MemoryStore(spark)
    send_one_without_ranges(source, "older collector")
    run(spark, source, store, tmp_path_factory.mktemp("whole"))
    return store


def send_one_without_ranges(source: SpreadTopic, name: str) -> None:
    """Two ticks, of which the first one does not say where its messages are."""
    older: dict[str, Any] = {"ranges": None}
    source.send(alert_partition(cluster(1), name), history(cluster(1), name), **older)
    at = TICK_MS + 1000
    source.send(alert_partition(cluster(2), name, at), history(cluster(2), name, at))


def test_elections_are_planned_for_the_newest_tick_of_a_cluster_that_is_out_of_balance(whole: MemoryStore) -> None:
    assert planned(whole, "c1", "c2") == {("c1", 2): 2, ("c2", 2): 2}
    (row,) = rows(whole, "c1", table=ELECTION_PLAN)
    assert (row["batches"], [tuple(p.values()) for p in row["first_batch"]]) == (1, [("a", 0), ("a", 1)])
    assert [tuple(o.values()) for o in row["outlooks"]] == [(1, 0, 0), (2, 0, 0)]


def test_every_tick_gives_the_rows_of_its_own_time(whole: MemoryStore) -> None:
    assert electable(whole, "c1") == {("c1", second): second for second in range(3)}
    # Two brokers are preferred: six rows of c1 and of c2, and two of the cluster with an older collector.
    assert len(rows(whole, "c1")) == 6
    assert counts(whole, LEADER_IMBALANCE) == {"gold/leader_imbalance": (14, 14)}


def test_clusters_that_share_a_topic_keep_apart(whole: MemoryStore) -> None:
    assert electable(whole, "c1", "c2") == {(name, second): second for name in ("c1", "c2") for second in range(3)}


def test_ticks_without_offset_ranges_are_skipped(whole: MemoryStore) -> None:
    assert electable(whole, "older collector") == {("older collector", 1): 2}


def test_elections_are_planned_again_when_leaders_change_and_otherwise_every_minute(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, store = SpreadTopic(spark), MemoryStore(spark)
    for second, away in ((0, 2), (10, 3), (69, 3), (70, 3), (80, 0)):
        at = TICK_MS + 1000 * second
        source.send(alert_partition(cluster(away), tick_ms=at), history(cluster(away), tick_ms=at))
    run(spark, source, store, tmp_path, size=2)
    # At 80 s nothing is out of balance.
    assert planned(store) == {("c1", 0): 2, ("c1", 10): 3, ("c1", 70): 3}


def test_if_elections_cannot_be_planned_the_imbalance_is_stored_and_the_reason_logged(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # A process of its own runs this, and has no such module: as an executor that lacks Headroom.
    def failing(*of_tick: Any) -> None:
        raise ModuleNotFoundError("No module named 'planning'")

    monkeypatch.setattr("headroom.streaming.transforms.leaders.election_plan.plan_of_tick", failing)
    monkeypatch.setattr(failing, "__module__", "__main__")
    store = MemoryStore(spark)
    run(spark, topic(spark), store, tmp_path, size=2)
    assert electable(store) == {("c1", second): second for second in range(3)}
    assert planned(store) == {}
    (message,) = [r.message for r in caplog.records if "elections" in r.message]
    assert message.startswith("no elections are planned: ")
    assert "No module named 'planning'" in message


@pytest.mark.parametrize("size", [1, 3])
def test_batches_of_any_size_give_the_same_rows(
    spark: SparkSession, tmp_path: Path, whole: MemoryStore, size: int
) -> None:
    assert run(spark, topic(spark), MemoryStore(spark), tmp_path, size) == rows(whole, "c1")


def test_rows_are_stored_once_whatever_is_repeated(spark: SparkSession, tmp_path: Path, whole: MemoryStore) -> None:
    source, store = topic(spark), MemoryStore(spark)
    first, second = records(spark, source.alert_partition[:4]), records(spark, source.alert_partition[4:], 4)
    with pytest.raises(Crash):
        job(spark, source, DyingStore(store, 0), tmp_path).write(first, 0)
    made = job(spark, source, store, tmp_path)
    made.write(first, 0)
    made.write(first, 0)
    again = job(spark, source, store, tmp_path)
    again.write(first, 0)
    again.write(second, 1)
    assert rows(store) == rows(whole, "c1")
    queries = [query for query in vars(again).values() if isinstance(query, Prepared)]
    assert queries
    assert all(query.works for query in queries)


def test_a_crash_between_two_parts_of_a_batch_leaves_no_row_out_or_twice(
    spark: SparkSession, tmp_path: Path, whole: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A tick of history: three messages of leaders, one of logs, one of meters. Each is a part.
    monkeypatch.setattr("headroom.streaming.jobs.leader_imbalance._CHUNK_RECORDS", 5)
    source, store = topic(spark), MemoryStore(spark)
    with pytest.raises(Crash):
        run(spark, source, DyingStore(store, 5), tmp_path)
    # Loads come with the first tick, which is in balance; of each other one the plan is appended first.
    assert set(electable(store)) == {("c1", 0), ("c1", 1)}
    assert set(planned(store)) == {("c1", 1), ("c1", 2)}
    assert run(spark, source, store, tmp_path) == rows(whole, "c1")
    assert counts(store, ELECTION_PLAN) == {"gold/election_plan": (2, 2)}


def test_a_tick_that_lacks_a_message_of_leaders_gives_no_row(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source, store = topic(spark, 2), MemoryStore(spark)
    # The first message of history, of leaders.
    source.lose(1, 0)
    run(spark, source, store, tmp_path)
    assert electable(store) == {("c1", 1): 1}
    (message,) = [r.message for r in caplog.records if "incomplete" in r.message]
    assert f"leaders of tick {TICK_MS} of cluster c1 are incomplete" in message


def test_a_message_that_is_delivered_twice_counts_once(spark: SparkSession, tmp_path: Path) -> None:
    source, store = SpreadTopic(spark), MemoryStore(spark)
    source.send(alert_partition(cluster(2), "twice"), history(cluster(2), "twice", cut=3))
    # Messages 0, 2, 4 of history in partition 1, 1 and 3 in partition 2: leaders and meters, leaders and logs.
    source.repeat(1, 2)
    source.repeat(2, 1)
    source.send(alert_partition(cluster(2), "once"), history(cluster(2), "once", cut=3))
    run(spark, source, store, tmp_path)
    found = rows(store, "twice")
    assert [row | {"cluster": "once"} for row in found] == rows(store, "once")
    assert len(found) == 2
    assert len(rows(store)) == 4


def test_rows_of_a_real_table_are_what_the_follower_reads(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, str(tmp_path / "store"))
    run(spark, topic(spark), store, tmp_path)
    received: list[tuple[str, int, dict[int, int]]] = []
    plans: list[tuple[str, ElectionPlanSummary]] = []

    def take(name: str, tick_ms: int, balances: Any) -> None:
        received.append((name, tick_ms, {state.broker: state.balance.electable_now for state in balances}))

    def update_election_plan(name: str, plan: ElectionPlanSummary) -> None:
        plans.append((name, plan))

    for location in (str(tmp_path / "store"), f"file://{tmp_path}/store"):
        LeaderBalanceFollower(spark, Store(spark, location), take, update_election_plan).poll()
    by_spark = LeaderBalanceFollower(spark, store, take, update_election_plan)
    by_spark._path = None
    by_spark.poll()
    assert received == [("c1", TICK_MS + 2000, {1: 2, 2: 0})] * 3
    assert [(name, plan.tick_ms, plan.first_batch) for name, plan in plans] == [
        ("c1", TICK_MS + 2000, (("a", 0), ("a", 1)))
    ] * 3
    assert plans[0] == plans[1] == plans[2]
