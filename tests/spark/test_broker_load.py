"""Loads of brokers by minute: each minute once, whatever is delivered twice, and what the rows contain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from planning.elections.planner import BatchLimits
from schemas.config import BalanceSettings
from schemas.tables import BROKER_LOAD, LEADER_IMBALANCE
from streaming.jobs.broker_load import MINUTE_MS, minute_of
from streaming.jobs.leader_imbalance import BalanceConfig, LeaderImbalanceJob
from streaming.store.broker_load_follower import BrokerLoadFollower
from streaming.store.store import Store
from tests.spark.leaders import alert_partition, history
from tests.spark.support import Crash, DyingStore, MemoryStore, SpreadTopic, checkpoint, counts
from tests.spark.ticks import TICK_MS, WINDOW_MS, message, records
from tests.support.random_clusters import BROKERS
from tests.support.random_leaders import Broker, Leadership, PartitionState

Row = dict[str, Any]
LOG_FLUSH = "LogFlushStats.LogFlushRateAndTimeMs"
WELL = Broker(alive=True, metered=True, reads=1, percentage=None)
# The start of a minute, so that seconds after it are those of the minute.
START_MS = minute_of(TICK_MS)
MB = 1_000_000


def cluster() -> Leadership:
    """Broker 1 leads all partitions of topic a, of which broker 2 follows half; the other brokers have none."""
    led = [PartitionState("a", n, 1, (1, 2 + n % 2), (1, 2 + n % 2), False, 100, True) for n in range(8)]
    return Leadership(tuple(led), dict.fromkeys(BROKERS, WELL))


def counter(broker: int, name: str, rate: float, tick_ms: int) -> Row:
    """A counter that has grown by so many bytes per second for an hour before ``START_MS``, and since then."""
    total = round(rate * (tick_ms - START_MS + 3_600_000) / 1000)
    return {
        "broker": broker,
        "meter": f"BrokerTopicMetrics.{name}",
        "read_ms": tick_ms,
        "count_total": total,
        "prev_read_ms": tick_ms - WINDOW_MS,
        "prev_count_total": round(total - rate * WINDOW_MS / 1000),
    }


def gauge(broker: int, meter: str, value: float, tick_ms: int) -> Row:
    return {"broker": broker, "meter": meter, "read_ms": tick_ms, "gauge_value": value}


def meters(broker: int, mb_in: float, mb_out: float, tick_ms: int) -> list[Row]:
    """The meters of a broker with so many MB/s in and out, half of which is replication."""
    halves = [
        ("BytesInPerSec", mb_in),
        ("ReplicationBytesInPerSec", mb_in),
        ("BytesOutPerSec", mb_out),
        ("ReplicationBytesOutPerSec", mb_out),
    ]
    replicas = gauge(broker, "ReplicaManager.PartitionCount", 8.0, tick_ms)
    return [*[counter(broker, name, rate * MB / 2, tick_ms) for name, rate in halves], replicas]


def tick(
    second: int,
    rates: dict[int, tuple[float, float]],
    name: str = "c1",
    flush_ms: dict[int, float] | None = None,
    more: list[Row] | None = None,
) -> tuple[list[Row], list[Row]]:
    """A tick with these MB/s in and out of brokers, log flush times and further meters."""
    tick_ms = START_MS + 1000 * second
    rows = [row for broker, (mb_in, mb_out) in rates.items() for row in meters(broker, mb_in, mb_out, tick_ms)]
    rows += [gauge(broker, LOG_FLUSH, ms, tick_ms) for broker, ms in (flush_ms or {}).items()]
    sent = history(cluster(), name, tick_ms)
    sent[-1] = message("meters", sent[-1]["seq"], [*rows, *(more or [])], tick_ms) | {"cluster": name}
    return alert_partition(cluster(), name, tick_ms), sent


EVEN = {1: (10.0, 10.0), 2: (10.0, 10.0), 3: (10.0, 10.0)}


def topic(spark: SparkSession, *ticks: tuple[list[Row], list[Row]]) -> SpreadTopic:
    made = SpreadTopic(spark)
    for alert, sent in ticks:
        made.send(alert, sent)
    return made


def job(spark: SparkSession, source: SpreadTopic, store: Store, folder: Path, **settings: Any) -> LeaderImbalanceJob:
    path = folder / "balance"
    where = str(path) if path.exists() else checkpoint(folder, "balance")
    config = BalanceConfig(source, 0.1, BatchLimits(), {"c1": BalanceSettings(**settings)})  # type: ignore[arg-type]
    made = LeaderImbalanceJob(spark, source, store, where, 1.0, config)  # type: ignore[arg-type]
    made.prepare()
    return made


def run(
    spark: SparkSession, source: SpreadTopic, store: Store, folder: Path, size: int = 100, **settings: Any
) -> list[str]:
    """The rows after all of the alert partition, in batches of so many messages."""
    made = job(spark, source, store, folder, **settings)
    for number, first in enumerate(range(0, len(source.alert_partition), size)):
        made.write(records(spark, source.alert_partition[first : first + size], first), number)
    return rows(store)


def rows(store: Store) -> list[str]:
    return sorted(map(str, store.read(BROKER_LOAD).collect()))


def loads(store: Store, resource: str = "network_in") -> dict[tuple[int, int], float | None]:
    """By second and broker, the load in MB/s."""
    found = store.read(BROKER_LOAD).where(f"resource = '{resource}' AND load IS NOT NULL").collect()
    return {((r["tick_ms"] - START_MS) // 1000, r["broker"]): r["load"] / MB for r in found}


def test_the_first_tick_of_each_minute_has_a_row_for_every_broker_and_resource(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = topic(spark, *[tick(second, EVEN) for second in (5, 30, 59, 61, 62)])
    store = MemoryStore(spark)
    run(spark, source, store, tmp_path)
    found = store.read(BROKER_LOAD).collect()
    assert {(row["tick_ms"] - START_MS, row["minute_ms"] - START_MS) for row in found} == {
        (5_000, 0),
        (61_000, MINUTE_MS),
    }
    assert len(found) == 2 * len(BROKERS) * 6
    assert counts(store, BROKER_LOAD) == {"gold/broker_load": (len(found), len(found))}


def test_a_load_is_the_growth_of_the_counters_since_the_minute_before(spark: SparkSession, tmp_path: Path) -> None:
    # The window before 60 s shows 10 MB/s; over the whole minute the counters have grown as if by 25 MB/s.
    store = MemoryStore(spark)
    first, later = tick(0, EVEN), tick(60, {**EVEN, 1: (10.25, 10.0)})
    run(spark, topic(spark, first, later), store, tmp_path)
    # 3600 s at 10 MB/s, then 3660 s at 10.25 MB/s: (37,515 - 36,000) MB in 60 s.
    assert loads(store)[60, 1] == pytest.approx(25.25)
    assert loads(store)[0, 1] == pytest.approx(10.0)
    (row,) = (
        store.read(BROKER_LOAD).where(f"broker = 1 AND resource = 'network_in' AND minute_ms > {START_MS}").collect()
    )
    assert row["mean"] == pytest.approx((25.25 + 10 + 10) / 3 * MB)
    assert (row["in_band"], row["capacity"], row["unknown_reason"]) == (False, None, None)
    assert row["band_score"] < 1.0


def test_brokers_without_a_partition_are_there_and_unknown_loads_have_a_reason(
    spark: SparkSession, tmp_path: Path
) -> None:
    store = MemoryStore(spark)
    run(spark, topic(spark, tick(0, {1: (10.0, 10.0), 3: (0.0, 0.0)})), store, tmp_path)
    assert loads(store) == {(0, 1): 10.0, (0, 3): 0.0}
    found = store.read(BROKER_LOAD).where("broker = 2 AND load IS NULL").collect()
    assert {row["resource"] for row in found} == {"network_in", "network_out", "replicas", "disk", "requests"}
    assert all(row["unknown_reason"] for row in found)
    led = store.read(BROKER_LOAD).where("resource = 'leaders'").collect()
    assert {row["broker"]: row["load"] for row in led} == {b: 8.0 if b == 1 else 0.0 for b in BROKERS}


def test_capacities_of_the_settings_make_limits(spark: SparkSession, tmp_path: Path) -> None:
    store = MemoryStore(spark)
    run(spark, topic(spark, tick(0, {**EVEN, 1: (90.0, 10.0)})), store, tmp_path, network_in_capacity=100.0 * MB)
    (row,) = store.read(BROKER_LOAD).where("broker = 1 AND resource = 'network_in'").collect()
    assert (row["capacity"], row["load_limit"]) == (100 * MB, 80 * MB)
    assert row["limit_score"] < 1.0


@pytest.mark.parametrize("size", [1, 3])
def test_batches_of_any_size_give_the_same_rows(spark: SparkSession, tmp_path: Path, size: int) -> None:
    ticks = [tick(second, EVEN) for second in (0, 40, 60, 61, 130)]
    whole = run(spark, topic(spark, *ticks), MemoryStore(spark), tmp_path / "whole")
    assert run(spark, topic(spark, *ticks), MemoryStore(spark), tmp_path / "cut", size) == whole


def test_a_minute_that_is_delivered_twice_is_there_once(spark: SparkSession, tmp_path: Path) -> None:
    ticks = [tick(second, EVEN) for second in (0, 60)]
    source, store = topic(spark, *ticks), MemoryStore(spark)
    made = job(spark, source, store, tmp_path)
    every = records(spark, source.alert_partition)
    made.write(every, 0)
    once = rows(store)
    made.write(every, 0)
    # And by a process that does not know what the one before has written.
    job(spark, source, store, tmp_path).write(every, 0)
    assert rows(store) == once


def test_after_a_crash_between_two_parts_no_minute_is_missing_or_twice_and_rates_go_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each tick is a part of its own.
    monkeypatch.setattr("streaming.jobs.leader_imbalance._CHUNK_RECORDS", 1)
    ticks = [tick(0, EVEN), tick(60, {**EVEN, 1: (10.25, 10.0)}), tick(120, EVEN)]
    whole = MemoryStore(spark)
    straight = run(spark, topic(spark, *ticks), whole, tmp_path / "straight")
    assert {(second, broker) for second, broker in loads(whole)} == {(s, b) for s in (0, 60, 120) for b in EVEN}
    # After the loads of the first minute, after its imbalance, and after the loads of the second minute.
    for appends in (1, 2, 3):
        folder, store = tmp_path / str(appends), MemoryStore(spark)
        source = topic(spark, *ticks)
        with pytest.raises(Crash):
            run(spark, source, DyingStore(store, appends), folder)
        assert run(spark, source, store, folder) == straight
        assert counts(store, BROKER_LOAD, LEADER_IMBALANCE)["gold/leader_imbalance"][0] == 3


def test_slow_minutes_are_counted_and_the_count_goes_on_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    flush_ms = {1: 2500.0, 2: 100.0, 3: 100.0}
    source, store = topic(spark, *[tick(60 * n, EVEN, flush_ms=flush_ms) for n in range(3)]), MemoryStore(spark)
    per_tick = len(source.alert_partition) // 3
    for number in range(3):
        made = job(spark, source, store, tmp_path)
        first = number * per_tick
        made.write(records(spark, source.alert_partition[first : first + per_tick], first), number)
    found = store.read(BROKER_LOAD).where("resource = 'network_in' AND slow_rounds IS NOT NULL").collect()
    assert {((r["tick_ms"] - START_MS) // MINUTE_MS, r["broker"]): r["slow_rounds"] for r in found} == {
        (minute, broker): (minute + 1 if broker == 1 else 0) for minute in range(3) for broker in (1, 2, 3)
    }
    assert {r["flush_p999_s"] for r in found if r["broker"] == 1} == {2.5}


def test_the_job_writes_a_table_on_disk_that_the_follower_reads(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, str(tmp_path / "store"))
    source = topic(spark, *[tick(second, {**EVEN, 1: (30.0, 10.0)}) for second in (0, 60)])
    run(spark, source, store, tmp_path)
    received: list[Any] = []
    follower = BrokerLoadFollower(spark, store, lambda cluster, minute: received.append((cluster, minute)))
    follower.poll()
    ((name, minute),) = received
    assert (name, minute.tick_ms) == ("c1", START_MS + MINUTE_MS)
    assert minute.uneven == [1, 2, 3]
    # A new job knows the minutes of the table, and appends the next one.
    source.send(*tick(125, EVEN))
    run(spark, source, store, tmp_path)
    assert {r["minute_ms"] - START_MS for r in store.read(BROKER_LOAD).collect()} == {0, MINUTE_MS, 2 * MINUTE_MS}
    follower.poll()
    assert received[-1][1].tick_ms == START_MS + 125_000


def test_a_late_tick_of_a_minute_that_is_written_adds_nothing(spark: SparkSession, tmp_path: Path) -> None:
    ticks = [tick(second, EVEN) for second in (0, 60, 120, 30)]
    store = MemoryStore(spark)
    run(spark, topic(spark, *ticks), store, tmp_path, size=2)
    assert {(r["tick_ms"] - START_MS) // 1000 for r in store.read(BROKER_LOAD).collect()} == {0, 60, 120}


def test_other_clusters_have_the_default_settings(spark: SparkSession, tmp_path: Path) -> None:
    ticks = [tick(0, EVEN, name) for name in ("c1", "c2")]
    store = MemoryStore(spark)
    run(spark, topic(spark, *ticks), store, tmp_path, network_in_capacity=100.0 * MB)
    found = store.read(BROKER_LOAD).where("resource = 'network_in' AND broker = 1").collect()
    assert {row["cluster"]: row["capacity"] for row in found} == {"c1": 100 * MB, "c2": None}


def test_copies_of_a_reassignment_are_no_load(spark: SparkSession, tmp_path: Path) -> None:
    # 2 of the 5 MB/s of replication.
    copied = counter(1, "ReassignmentBytesInPerSec", 2.0 * MB, START_MS)
    store = MemoryStore(spark)
    run(spark, topic(spark, tick(0, EVEN, more=[copied])), store, tmp_path)
    assert loads(store)[0, 1] == pytest.approx(8.0)


def test_requests_and_disks_are_read_from_their_meters(spark: SparkSession, tmp_path: Path) -> None:
    names = ("TotalProduceRequestsPerSec", "TotalFetchRequestsPerSec")
    requests = [counter(1, name, rate, START_MS) for name, rate in zip(names, (300.0, 500.0), strict=True)]
    # Other files take 30 % of the volume of broker 1, and next to nothing of that of broker 2.
    sizes = {1: (2e12, 5e12, 10e12), 2: (2e12, 7.5e12, 10e12), 3: (2e12, None, 10e12)}
    disks = [
        gauge(broker, f"LogDirs.{name}", size, START_MS)
        for broker, found in sizes.items()
        for name, size in zip(("UsedBytes", "UsableBytes", "TotalBytes"), found, strict=True)
        if size is not None
    ]
    store = MemoryStore(spark)
    # Of broker 2 one of the two counters is unknown.
    half = [counter(2, names[0], 300.0, START_MS)]
    run(spark, topic(spark, tick(0, EVEN, more=[*requests, *half, *disks])), store, tmp_path)
    found = {(r["broker"], r["resource"]): r for r in store.read(BROKER_LOAD).collect()}
    assert found[1, "requests"]["load"] == pytest.approx(800.0)
    assert found[2, "requests"]["load"] is None
    assert [found[broker, "disk"]["load"] for broker in sizes] == [2e12] * 3
    assert [found[broker, "disk"]["capacity"] for broker in sizes] == [7e12, 10e12, 10e12]


def test_a_broker_that_is_down_is_there_without_loads(spark: SparkSession, tmp_path: Path) -> None:
    down = replace(cluster(), brokers={**cluster().brokers, 2: replace(WELL, alive=False)})
    tick_ms = START_MS
    _, sent = tick(0, {1: (10.0, 10.0)})
    store = MemoryStore(spark)
    run(spark, topic(spark, (alert_partition(down, "c1", tick_ms), sent)), store, tmp_path)
    found = store.read(BROKER_LOAD).where("broker = 2").collect()
    assert {(row["alive"], row["load"], row["unknown_reason"]) for row in found} == {
        (False, None, "the broker is down")
    }
