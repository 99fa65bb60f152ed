"""Loads of brokers by minute: each minute once, whatever is delivered twice, and what the rows contain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headroom.planning.elections.planner import BatchLimits
from headroom.schemas.config import BalanceSettings
from headroom.schemas.tables import BROKER_LOAD, LEADER_IMBALANCE
from headroom.streaming.jobs.leader_imbalance import BalanceConfig, LeaderImbalanceJob
from headroom.streaming.jobs.loads.broker_load import MINUTE_MS, minute_of
from headroom.streaming.store.broker_load_follower import BrokerLoadFollower
from headroom.streaming.store.store import Store
from tests.spark.cases import Cases, Results
from tests.spark.leaders import alert_partition, history
from tests.spark.support import Crash, DyingStore, MemoryStore, SpreadTopic, checkpoint, counts, rows_of
from tests.spark.ticks import TICK_MS, WINDOW_MS, message, records
from tests.support.random_clusters import BROKERS
from tests.support.random_leaders import Broker, Leadership, PartitionState

Row = dict[str, Any]
# Messages of the alert partition, and others.
Tick = tuple[list[Row], list[Row]]
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
    brokers: Leadership | None = None,
) -> Tick:
    """A tick with these MB/s in and out of brokers, log flush times, further meters, and other brokers if given."""
    tick_ms = START_MS + 1000 * second
    rows = [row for broker, (mb_in, mb_out) in rates.items() for row in meters(broker, mb_in, mb_out, tick_ms)]
    rows += [gauge(broker, LOG_FLUSH, ms, tick_ms) for broker, ms in (flush_ms or {}).items()]
    sent = history(cluster(), name, tick_ms)
    sent[-1] = message("meters", sent[-1]["seq"], [*rows, *(more or [])], tick_ms) | {"cluster": name}
    return alert_partition(brokers or cluster(), name, tick_ms), sent


EVEN = {1: (10.0, 10.0), 2: (10.0, 10.0), 3: (10.0, 10.0)}


# All other clusters have the default settings.
SETTINGS = {"limited": BalanceSettings(network_in_capacity=100.0 * MB)}


def topic(spark: SparkSession, *ticks: Tick) -> SpreadTopic:
    made = SpreadTopic(spark)
    for alert, sent in ticks:
        made.send(alert, sent)
    return made


def job(spark: SparkSession, source: SpreadTopic, store: Store, folder: Path) -> LeaderImbalanceJob:
    path = folder / "balance"
    where = str(path) if path.exists() else checkpoint(folder, "balance")
    config = BalanceConfig(source, 0.1, BatchLimits(), SETTINGS)  # type: ignore[arg-type]
    made = LeaderImbalanceJob(spark, source, store, where, 1.0, config)  # type: ignore[arg-type]
    made.prepare()
    return made


def run(spark: SparkSession, source: SpreadTopic, store: Store, folder: Path, size: int = 100) -> list[Row]:
    """The rows after all of the alert partition, in batches of so many messages."""
    made = job(spark, source, store, folder)
    for number, first in enumerate(range(0, len(source.alert_partition), size)):
        made.write(records(spark, source.alert_partition[first : first + size], first), number)
    return rows(store)


def rows(store: Store) -> list[Row]:
    return rows_of(store, BROKER_LOAD)


def matching(found: list[Row], **values: Any) -> list[Row]:
    """The rows that have these values."""
    return [row for row in found if row.items() >= values.items()]


def loads(found: list[Row], resource: str = "network_in") -> dict[tuple[int, int], float | None]:
    """By second and broker, the load in MB/s."""
    return {
        ((row["tick_ms"] - START_MS) // 1000, row["broker"]): row["load"] / MB
        for row in matching(found, resource=resource)
        if row["load"] is not None
    }


def rows_of_cases(spark: SparkSession, cases: Mapping[str, tuple[Tick, ...]]) -> dict[str, list[Row]]:
    """The rows that the job writes of the ticks of all cases in one batch; each case is a cluster."""
    source, store = SpreadTopic(spark), MemoryStore(spark)
    for name, ticks in cases.items():
        for tick_ in ticks:
            source.send(*([m | {"cluster": name} for m in messages] for messages in tick_))
    with TemporaryDirectory() as folder:
        run(spark, source, store, Path(folder))
    assert counts(store, BROKER_LOAD) == {"gold/broker_load": (len(rows(store)),) * 2}, "each row is there once"
    return {name: matching(rows(store), cluster=name) for name in cases}


CASES = Cases(rows_of_cases)


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Results[list[Row]]:
    return CASES.results(spark)


CASES.add("two minutes", *[tick(second, EVEN) for second in (5, 30, 59, 61, 62)])


def test_the_first_tick_of_each_minute_has_a_row_for_every_broker_and_resource(found: Results[list[Row]]) -> None:
    rows_of_minutes = found["two minutes"]
    assert {(row["tick_ms"] - START_MS, row["minute_ms"] - START_MS) for row in rows_of_minutes} == {
        (5_000, 0),
        (61_000, MINUTE_MS),
    }
    assert len(rows_of_minutes) == 2 * len(BROKERS) * 6


# The window before 60 s shows 10 MB/s; over the whole minute the counters have grown as if by 25 MB/s.
CASES.add("growth", tick(0, EVEN), tick(60, {**EVEN, 1: (10.25, 10.0)}))


def test_a_load_is_the_growth_of_the_counters_since_the_minute_before(found: Results[list[Row]]) -> None:
    # 3600 s at 10 MB/s, then 3660 s at 10.25 MB/s: (37,515 - 36,000) MB in 60 s.
    assert loads(found["growth"])[60, 1] == pytest.approx(25.25)
    assert loads(found["growth"])[0, 1] == pytest.approx(10.0)
    (row,) = matching(found["growth"], broker=1, resource="network_in", minute_ms=START_MS + MINUTE_MS)
    assert row["mean"] == pytest.approx((25.25 + 10 + 10) / 3 * MB)
    assert (row["in_band"], row["capacity"], row["unknown_reason"]) == (False, None, None)
    assert row["band_score"] < 1.0


CASES.add("two of five brokers", tick(0, {1: (10.0, 10.0), 3: (0.0, 0.0)}))


def test_brokers_without_a_partition_are_there_and_unknown_loads_have_a_reason(found: Results[list[Row]]) -> None:
    every = found["two of five brokers"]
    assert loads(every) == {(0, 1): 10.0, (0, 3): 0.0}
    unknown = matching(every, broker=2, load=None)
    assert {row["resource"] for row in unknown} == {"network_in", "network_out", "replicas", "disk", "requests"}
    assert all(row["unknown_reason"] for row in unknown)
    led = matching(every, resource="leaders")
    assert {row["broker"]: row["load"] for row in led} == {b: 8.0 if b == 1 else 0.0 for b in BROKERS}


CASES.add("limited", tick(0, {**EVEN, 1: (90.0, 10.0)}))
CASES.add("not limited", tick(0, EVEN))


def test_capacities_of_the_settings_make_limits(found: Results[list[Row]]) -> None:
    (row,) = matching(found["limited"], broker=1, resource="network_in")
    assert (row["capacity"], row["load_limit"]) == (100 * MB, 80 * MB)
    assert row["limit_score"] < 1.0


def test_other_clusters_have_the_default_settings(found: Results[list[Row]]) -> None:
    capacities = {
        name: [row["capacity"] for row in matching(found[name], resource="network_in", broker=1)]
        for name in ("limited", "not limited")
    }
    assert capacities == {"limited": [100 * MB], "not limited": [None]}


# 2 of the 5 MB/s of replication.
CASES.add("copies", tick(0, EVEN, more=[counter(1, "ReassignmentBytesInPerSec", 2.0 * MB, START_MS)]))


def test_copies_of_a_reassignment_are_no_load(found: Results[list[Row]]) -> None:
    assert loads(found["copies"])[0, 1] == pytest.approx(8.0)


# Other files take 30 % of the volume of broker 1, and next to nothing of that of broker 2. Used, usable and all bytes:
DISKS = {1: (2e12, 5e12, 10e12), 2: (2e12, 7.5e12, 10e12), 3: (2e12, None, 10e12)}
REQUEST_METERS = ("TotalProduceRequestsPerSec", "TotalFetchRequestsPerSec")
CASES.add(
    "requests and disks",
    tick(
        0,
        EVEN,
        more=[
            *[counter(1, name, rate, START_MS) for name, rate in zip(REQUEST_METERS, (300.0, 500.0), strict=True)],
            # Of broker 2 one of the two counters is unknown.
            counter(2, REQUEST_METERS[0], 300.0, START_MS),
            *[
                gauge(broker, f"LogDirs.{name}", size, START_MS)
                for broker, sizes in DISKS.items()
                for name, size in zip(("UsedBytes", "UsableBytes", "TotalBytes"), sizes, strict=True)
                if size is not None
            ],
        ],
    ),
)


def test_requests_and_disks_are_read_from_their_meters(found: Results[list[Row]]) -> None:
    by_resource = {(row["broker"], row["resource"]): row for row in found["requests and disks"]}
    assert by_resource[1, "requests"]["load"] == pytest.approx(800.0)
    assert by_resource[2, "requests"]["load"] is None
    assert [by_resource[broker, "disk"]["load"] for broker in DISKS] == [2e12] * 3
    assert [by_resource[broker, "disk"]["capacity"] for broker in DISKS] == [7e12, 10e12, 10e12]


BROKER_2_DOWN = replace(cluster(), brokers={**cluster().brokers, 2: replace(WELL, alive=False)})
CASES.add("a broker is down", tick(0, {1: (10.0, 10.0)}, brokers=BROKER_2_DOWN))


def test_a_broker_that_is_down_is_there_without_loads(found: Results[list[Row]]) -> None:
    down = matching(found["a broker is down"], broker=2)
    assert {(row["alive"], row["load"], row["unknown_reason"]) for row in down} == {(False, None, "the broker is down")}


FIVE_TICKS = [tick(second, EVEN) for second in (0, 40, 60, 61, 130)]
CASES.add("c1", *FIVE_TICKS)


@pytest.mark.parametrize("size", [1, 3])
def test_batches_of_any_size_give_the_same_rows(
    spark: SparkSession, tmp_path: Path, found: Results[list[Row]], size: int
) -> None:
    assert run(spark, topic(spark, *FIVE_TICKS), MemoryStore(spark), tmp_path, size) == found["c1"]


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


THREE_MINUTES = [tick(0, EVEN), tick(60, {**EVEN, 1: (10.25, 10.0)}), tick(120, EVEN)]
CASES.add("three minutes", *THREE_MINUTES)


def test_after_a_crash_between_two_parts_no_minute_is_missing_or_twice_and_rates_go_on(
    spark: SparkSession, tmp_path: Path, found: Results[list[Row]], monkeypatch: pytest.MonkeyPatch
) -> None:
    straight = [row | {"cluster": "c1"} for row in found["three minutes"]]
    # From here on each tick is a part of its own.
    monkeypatch.setattr("headroom.streaming.jobs.leader_imbalance._CHUNK_RECORDS", 1)
    assert {(second, broker) for second, broker in loads(straight)} == {(s, b) for s in (0, 60, 120) for b in EVEN}
    # After the loads of the first minute, after its imbalance, and after the loads of the second minute.
    for appends in (1, 2, 3):
        folder, store = tmp_path / str(appends), MemoryStore(spark)
        source = topic(spark, *THREE_MINUTES)
        with pytest.raises(Crash):
            run(spark, source, DyingStore(store, appends), folder)
        assert run(spark, source, store, folder) == straight
        assert counts(store, BROKER_LOAD, LEADER_IMBALANCE)["gold/leader_imbalance"][0] == 3


def test_slow_minutes_are_counted_and_the_count_continues_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    flush_ms = {1: 2500.0, 2: 100.0, 3: 100.0}
    source, store = topic(spark, *[tick(60 * n, EVEN, flush_ms=flush_ms) for n in range(3)]), MemoryStore(spark)
    per_tick = len(source.alert_partition) // 3
    for number in range(3):
        made = job(spark, source, store, tmp_path)
        first = number * per_tick
        made.write(records(spark, source.alert_partition[first : first + per_tick], first), number)
    counted = [row for row in matching(rows(store), resource="network_in") if row["slow_rounds"] is not None]
    assert {((r["tick_ms"] - START_MS) // MINUTE_MS, r["broker"]): r["slow_rounds"] for r in counted} == {
        (minute, broker): (minute + 1 if broker == 1 else 0) for minute in range(3) for broker in (1, 2, 3)
    }
    assert {r["flush_p999_s"] for r in counted if r["broker"] == 1} == {2.5}


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
    assert {r["minute_ms"] - START_MS for r in rows(store)} == {0, MINUTE_MS, 2 * MINUTE_MS}
    follower.poll()
    assert received[-1][1].tick_ms == START_MS + 125_000


def test_a_late_tick_of_a_minute_that_is_written_adds_nothing(spark: SparkSession, tmp_path: Path) -> None:
    ticks = [tick(second, EVEN) for second in (0, 60, 120, 30)]
    store = MemoryStore(spark)
    run(spark, topic(spark, *ticks), store, tmp_path, size=2)
    assert {(r["tick_ms"] - START_MS) // 1000 for r in rows(store)} == {0, 60, 120}
