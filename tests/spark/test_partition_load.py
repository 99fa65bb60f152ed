"""Load of every partition by hour: rates of one hour, and the job that writes hours once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from headroom.schemas.tables import (
    BYTES_PER_SEC,
    LOG_END_OFFSETS,
    MESSAGES,
    PARTITION_LOAD,
    PARTITION_WRITE_RATE,
    REPLICA_SIZES,
    Table,
)
from headroom.streaming.jobs.loads.partition_load import PartitionLoadJob
from headroom.streaming.store.store import Store
from headroom.streaming.transforms.moves.write_rate import with_write_rate
from headroom.streaming.transforms.partition_load import BUCKET_MS, HOUR_MS, LoadHour, LoadInputs, partition_load
from tests.spark.support import counts, frame, rows_of, write_rows
from tests.spark.ticks import TICK_MS, log, move

# TICK_MS is 500,000 hours after the epoch.
HOUR = TICK_MS
EDGES = 13
# 300,000 records of 500 bytes in 300 s.
STEP, SIZE, RATE = 300_000, 500, 500_000.0
Row = dict[str, Any]
Reading = tuple[int, int] | None


def edge_ms(edge: int, hour_ms: int = HOUR) -> int:
    """The tick at an edge, some seconds after the 5 minutes begin."""
    return hour_ms + edge * BUCKET_MS + 3_000


def day(time_ms: int) -> date:
    return datetime.fromtimestamp(time_ms / 1000, timezone.utc).date()


def tick(time_ms: int, **more: Any) -> Row:
    return {"cluster": "c1", "tick_ms": time_ms, "date": day(time_ms), **more}


def end(time_ms: int, topic: str, reading: tuple[int, int], **more: Any) -> Row:
    broker, offset = reading
    row = {"topic": topic, "partition": 0, "broker": broker, "is_leader": True, "log_end_offset": offset}
    return tick(time_ms, **row) | more


def counters(time_ms: int, topic: str, broker: int, records: int, known_window: bool = True) -> list[Row]:
    """Both meters of a topic on a broker, of messages of 500 bytes; over the window before the edge 1,000 a second."""
    row = tick(time_ms, topic=topic, broker=broker)
    values = {"BytesInPerSec": (records * SIZE, RATE), "MessagesInPerSec": (records, RATE / SIZE)}
    return [
        row
        | {"meter": f"BrokerTopicMetrics.{name}", "count_total": total, "bytes_per_s": rate if known_window else None}
        for name, (total, rate) in values.items()
    ]


def steady(edge: int) -> Reading:
    return 1, edge * STEP


def switched(edge: int) -> Reading:
    """Broker 1 leads at the first six edges, then broker 2."""
    return (1 if edge < 6 else 2), edge * STEP


def burst(edge: int) -> Reading:
    """From edge 7 to 8 eleven times as many records, from 8 to 9 six times as many."""
    return 1, edge * STEP + (10 * STEP if edge > 7 else 0) + (5 * STEP if edge > 8 else 0)


# Topic to the reading at each edge: leader and log end offset.
READINGS: dict[str, Callable[[int], Reading]] = {
    "steady": steady,
    "idle": lambda edge: (1, 77),
    "switched": switched,
    "restarted": steady,
    "restarted unseen": steady,
    "one missing": lambda edge: None if edge == 4 else steady(edge),
    "gap": lambda edge: None if edge in (4, 5) else steady(edge),
    "truncated": lambda edge: (1, edge * STEP - (10 * STEP if edge > 6 else 0) + 10 * STEP),
    "retention": steady,
    "watched": steady,
    "watched briefly": steady,
    "burst": burst,
    "once": lambda edge: steady(edge) if edge == 3 else None,
    "new": lambda edge: steady(edge) if edge > 8 else None,
    "uncounted": steady,
}


def counted(topic: str, edge: int, reading: tuple[int, int]) -> list[Row]:
    """Counters of a topic at an edge."""
    broker, records = reading
    if topic.startswith("restarted"):
        # The broker counts from 0 again after edge 4.
        return counters(edge_ms(edge), topic, broker, records - (4 * STEP + 1 if edge > 4 else 0), topic == "restarted")
    return [] if topic == "uncounted" else counters(edge_ms(edge), topic, broker, records)


def silver(topics: Sequence[str] = tuple(READINGS)) -> tuple[list[Row], list[Row]]:
    """Rows of log ends and meters at all edges."""
    logs: list[Row] = []
    meters: list[Row] = []
    for topic in topics:
        for edge in range(EDGES):
            reading = READINGS[topic](edge)
            if reading is not None:
                # Retention deletes a segment between edges 5 and 6.
                sizes = {"size_bytes": 9_000 + edge if edge < 6 else 4_000 + edge} if topic == "retention" else {}
                logs.append(end(edge_ms(edge), topic, reading, **sizes))
                meters += counted(topic, edge, reading)
    # Rows that do not count: a follower's log, and the meters of the whole broker.
    logs.append(end(edge_ms(1), "steady", (2, 5)) | {"is_leader": False})
    meters.append(counters(edge_ms(1), "steady", 1, 7)[0] | {"topic": None})
    return logs, meters


def watched_rates() -> list[Row]:
    """Rates in gold: of a partition in the 5 minutes after edge 3 every minute, of another one for 1 minute."""
    row = {"partition": 0, "write_bytes_per_s": 4 * RATE}
    after = edge_ms(3)
    ticks = [tick(after + 60_000 * n, topic="watched", **row) for n in range(5)]
    ticks.append(tick(after + 60_000, topic="watched", partition=0, write_bytes_per_s=None))
    return ticks + [tick(after + 60_000 * n, topic="watched briefly", **row) for n in range(2)]


def whole_hour(messages: int = 26) -> LoadHour:
    return LoadHour("c1", HOUR, tuple(edge_ms(edge) for edge in range(EDGES)), messages, closed=True)


def table_frame(spark: SparkSession, rows: list[Row], table: Table) -> DataFrame:
    return spark.createDataFrame([{name: row.get(name) for name in table.names()} for row in rows], table.ddl())


def inputs(
    spark: SparkSession, logs: list[Row], meters: list[Row], rates: list[Row], sizes: Sequence[Row] = ()
) -> LoadInputs:
    tables = (
        (logs, LOG_END_OFFSETS),
        (meters, BYTES_PER_SEC),
        (rates, PARTITION_WRITE_RATE),
        (list(sizes), REPLICA_SIZES),
    )
    return LoadInputs(*(table_frame(spark, rows, table) for rows, table in tables))


@pytest.fixture(scope="module")
def load(spark: SparkSession) -> dict[str, Row]:
    logs, meters = silver()
    # Every row of logs and meters twice: a message was delivered a second time.
    rows = partition_load(inputs(spark, logs * 2, meters * 2, watched_rates()), whole_hour()).collect()
    assert len(rows) == len(READINGS)
    return {row["topic"]: row.asDict() for row in rows}


# Topic to mean, 95th percentile and peak, in units of RATE, and the share of the hour.
EXPECTED: dict[str, tuple[float | None, float | None, float | None, float]] = {
    "steady": (1, 1, 1, 1),
    "idle": (0, 0, 0, 1),
    # From edge 5 to 6 the counters are of two brokers, and the mean size comes from the window before edge 6.
    "switched": (1, 1, 1, 1),
    "restarted": (1, 1, 1, 1),
    # From edge 4 to 5 the counters fell, and no window tells the size.
    "restarted unseen": (1, 1, 1, 11 / 12),
    # 10 minutes from edge 3 to 5.
    "one missing": (1, 1, 1, 1),
    # 15 minutes from edge 3 to 6 are not seen.
    "gap": (1, 1, 1, 9 / 12),
    "truncated": (1, 1, 1, 11 / 12),
    "retention": (1, 1, 1, 1),
    # Eleven rates of 1 and one of 4: the percentile is at place 0.95 x 11 = 10.45 of 0 to 11, 45 % from 1 to 4.
    "watched": ((11 + 4) / 12, 1 + 0.45 * 3, 4, 1),
    # 1 of 5 minutes is too little to replace the growth of the log.
    "watched briefly": (1, 1, 1, 1),
    # Ten rates of 1, one of 6 and one of 11: 45 % from 6 to 11.
    "burst": ((10 + 6 + 11) / 12, 6 + 0.45 * 5, 11, 1),
    "once": (None, None, None, 0),
    "new": (1, 1, 1, 3 / 12),
    "uncounted": (None, None, None, 0),
}


@pytest.mark.parametrize("topic", EXPECTED)
def test_load_of_an_hour(load: dict[str, Row], topic: str) -> None:
    mean, p95, peak, observed = EXPECTED[topic]
    row = load[topic]
    found = [row[f"{name}_write_bytes_per_s"] for name in ("mean", "p95", "peak")]
    assert found == [None if rate is None else pytest.approx(rate * RATE) for rate in (mean, p95, peak)]
    assert row["observed_ratio"] == pytest.approx(observed)


def test_every_case_of_a_reading_has_an_expected_load() -> None:
    assert EXPECTED.keys() == READINGS.keys()


def test_the_size_is_the_last_one_that_was_read(load: dict[str, Row]) -> None:
    assert load["retention"]["size_bytes"] == 4_012
    assert load["steady"]["size_bytes"] is None


def apart(broker: int, topic: str, name: str, rate: float | None, first: int = 0, last: int = 119) -> list[Row]:
    """Readings of a counter of a topic on a broker every 30 s, the first one of the hour being number 0."""
    values = {"meter": f"BrokerTopicMetrics.{name}", "bytes_per_s": rate, "window_ms": 30_000}
    ticks = [HOUR + 4_000 + 30_000 * n for n in range(first, last + 1)]
    return [tick(time_ms, topic=topic, broker=broker, **values) for time_ms in ticks]


@pytest.fixture(scope="module")
def used(spark: SparkSession) -> dict[tuple[str, int], Row]:
    """Topic a has two partitions, the others one. Broker 1 leads all; after half an hour broker 2 leads those of a."""
    parts = [("a", 0), ("a", 1), ("b", 0), ("unused", 0)]
    logs = [
        end(edge_ms(edge), topic, (2 if topic == "a" and edge > 5 else 1, 77)) | {"partition": number}
        for topic, number in parts
        for edge in range(EDGES)
    ]
    meters = [
        *apart(1, "a", "BytesOutPerSec", 8_000.0, last=59),
        *apart(2, "a", "BytesOutPerSec", 4_000.0, first=60),
        *apart(1, "b", "BytesOutPerSec", 500.0),
        *apart(1, "b", "TotalProduceRequestsPerSec", 30.0),
        *apart(1, "b", "TotalFetchRequestsPerSec", 50.0),
        # The broker of topic b has restarted before its last reading.
        *apart(1, "b", "TotalFetchRequestsPerSec", None, first=120, last=120),
        # Another hour, and the broker as a whole.
        *[row | {"tick_ms": row["tick_ms"] - HOUR_MS} for row in apart(1, "b", "BytesOutPerSec", 9e9)],
        *[row | {"topic": None} for row in apart(1, "b", "BytesOutPerSec", 9e9)],
    ]
    described = [
        tick(edge_ms(edge), topic="a", partition=0, broker=broker, is_future=future, size_bytes=100 * broker + edge)
        for edge in (8, 11, 12)
        for broker, future in ((1, False), (2, False), (2, True))
    ]
    given = inputs(spark, logs, meters * 2, [], [row | {"log_dir": "/a"} for row in described * 2])
    rows = partition_load(given, whole_hour()).collect()
    return {(row["topic"], row["partition"]): row.asDict() for row in rows}


def test_reads_of_a_topic_are_divided_among_its_partitions_whoever_led(used: dict[tuple[str, int], Row]) -> None:
    found = {name: row["mean_read_bytes_per_s"] for name, row in used.items()}
    # 8,000 B/s for half of the hour and 4,000 for the other half, of two partitions.
    assert found == pytest.approx({("a", 0): 3_000.0, ("a", 1): 3_000.0, ("b", 0): 500.0, ("unused", 0): 0.0})


def test_requests_are_those_of_producers_and_fetchers(used: dict[tuple[str, int], Row]) -> None:
    assert used["b", 0]["mean_requests_per_s"] == pytest.approx(80.0)
    # Others report requests, so a topic without a counter has had none.
    assert used["a", 0]["mean_requests_per_s"] == 0.0


def test_the_size_of_the_leaders_log_comes_from_its_directory_where_no_tick_has_it(
    used: dict[tuple[str, int], Row],
) -> None:
    # Of broker 2, which led at the end, its log of now, at the last reading before the hour's end.
    assert used["a", 0]["size_bytes"] == 211
    assert used["a", 1]["size_bytes"] is None


def test_a_row_names_its_hour(load: dict[str, Row]) -> None:
    row = load["steady"]
    assert (row["cluster"], row["hour_ms"], row["date"], row["hour_messages"]) == ("c1", HOUR, day(HOUR), 26)


def test_the_rate_between_two_readings_is_that_of_a_moving_partition(spark: SparkSession) -> None:
    """The same readings as samples of a compacted log, which has no rate by bytes."""
    first, second = edge_ms(0), edge_ms(1)
    logs = [end(first, "t", (1, 1_000)), end(second, "t", (1, 81_000))]
    meters = counters(first, "t", 1, 500) + counters(second, "t", 1, 400_500)
    hour = LoadHour("c1", HOUR, (first, second), 4, closed=False)
    (row,) = partition_load(inputs(spark, logs, meters, []), hour).collect()
    sample = log(1, 81_000) | {"read_ms": second, "prev_read_ms": first, "prev_log_end_offset": 1_000}
    topic = {
        "read_ms": second,
        "bytes_in": 400_500 * SIZE,
        "messages_in": 400_500,
        "prev_read_ms": first,
        "prev_bytes_in": 500 * SIZE,
        "prev_messages_in": 500,
    }
    watched = move("t", 0, 1, [1]) | {"compacted": True, "logs": [sample], "topic_counters": topic}
    (moving,) = with_write_rate(frame(spark, "moves", [watched])).collect()
    # 80,000 records of 500 bytes in 300 s.
    assert moving["write_bytes_per_s"] == pytest.approx(80_000 * 500 / 300)
    assert row["mean_write_bytes_per_s"] == moving["write_bytes_per_s"]


def write_ticks(store: Store, cluster: str, ticks_ms: Sequence[int], partitions: int = 2) -> None:
    """Write ticks to silver: per tick a message of log ends, one of meters, and the end."""
    ledger: list[Row] = []
    logs: list[Row] = []
    meters: list[Row] = []
    for tick_ms in ticks_ms:
        kinds = ("logs", "meters", "tick_end")
        ledger += [tick(tick_ms, kind=kind, seq=seq) for seq, kind in enumerate(kinds)]
        # 1,000 records a second in each partition.
        offset = (tick_ms - HOUR) + HOUR_MS
        logs += [end(tick_ms, "t", (1, offset)) | {"partition": number} for number in range(partitions)]
        meters += counters(tick_ms, "t", 1, partitions * offset)
    for rows, table in ((logs, LOG_END_OFFSETS), (meters, BYTES_PER_SEC), (ledger, MESSAGES)):
        write_rows(store, table, [row | {"cluster": cluster} for row in rows])


def stored(store: Store) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in PARTITION_LOAD.names()) for row in rows_of(store, PARTITION_LOAD))


def edges(*numbers: int, hour_ms: int = HOUR) -> list[int]:
    return [edge_ms(number, hour_ms) for number in numbers]


AFTER_MS = HOUR + HOUR_MS + 60_000


@pytest.fixture
def store(spark: SparkSession, tmp_path: Path) -> Store:
    made = Store(spark, str(tmp_path))
    made.ensure(MESSAGES, LOG_END_OFFSETS, BYTES_PER_SEC)
    return made


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the job interpret its plans: to compile them takes longer than their few rows. One test does compile them."""
    monkeypatch.setattr("headroom.streaming.jobs.loads.partition_load.batch_session", SparkSession.newSession)


def job(store: Store) -> PartitionLoadJob:
    return PartitionLoadJob(store.spark, str(Path(store.location(MESSAGES)).parents[1]))


def written(hours: Sequence[LoadHour]) -> list[tuple[str, int]]:
    return [(hour.cluster, hour.hour_ms) for hour in hours]


def test_a_complete_hour_is_written_once_and_again_when_more_of_it_has_come(store: Store) -> None:
    name = "it's c1"
    assert job(store).run(AFTER_MS) == []
    # Ticks of 20 minutes are missing, and the hour after it has begun.
    write_ticks(store, name, edges(*range(4), *range(8, 14)))
    write_ticks(store, "c2", edges(*range(4)))
    # c2 may still get ticks: it has none after its hour, and 10 minutes are not over.
    assert written(job(store).run(AFTER_MS)) == [(name, HOUR)]
    first = stored(store)
    assert [row[PARTITION_LOAD.names().index("observed_ratio")] for row in first] == [pytest.approx(7 / 12)] * 2
    # Another process, or this one after a crash, finds nothing to do.
    assert job(store).run(AFTER_MS) == []
    later_ms = HOUR + HOUR_MS + 600_000
    assert written(job(store).run(later_ms)) == [("c2", HOUR)]
    # The missing ticks arrive, one of them twice.
    write_ticks(store, name, edges(*range(4, 8), 5))
    assert written(job(store).run(later_ms)) == [(name, HOUR)]
    assert counts(store, PARTITION_LOAD) == {PARTITION_LOAD.path: (4, 4)}
    again = {row[0]: row for row in stored(store)}
    # 36 messages of the hour, and 3 of the edge that closes it.
    seen = slice(*(PARTITION_LOAD.names().index(name) for name in ("observed_ratio", "mean_read_bytes_per_s")))
    # Nothing was read of consumers and requests.
    assert again[name][seen] == (1.0, 39)
    assert again["c2"][seen] == (0.25, 12)
    assert again[name][seen.stop :] == (None, None)
    assert job(store).run(later_ms) == []


@pytest.mark.usefixtures("interpreted")
def test_a_replay_gives_the_same_rows(spark: SparkSession, store: Store, tmp_path: Path) -> None:
    next_hour = HOUR + HOUR_MS
    write_ticks(store, "c1", edges(*range(13)))
    job(store).run(AFTER_MS)
    write_ticks(store, "c1", edges(*range(1, 14), hour_ms=next_hour))
    assert written(job(store).run(AFTER_MS + HOUR_MS)) == [("c1", next_hour)]
    replay = Store(spark, str(tmp_path / "replay"))
    replay.ensure(MESSAGES, LOG_END_OFFSETS, BYTES_PER_SEC)
    write_ticks(replay, "c1", [*edges(*range(13)), *edges(*range(1, 14), hour_ms=next_hour)])
    # The newest hour first.
    assert written(job(replay).run(AFTER_MS + HOUR_MS)) == [("c1", next_hour), ("c1", HOUR)]
    assert stored(replay) == stored(store)
    assert len(stored(store)) == 4


@pytest.mark.usefixtures("interpreted")
def test_two_processes_write_an_hour_once(store: Store) -> None:
    write_ticks(store, "c1", edges(*range(13)))
    jobs = [job(store), job(store)]
    store.ensure(PARTITION_LOAD)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda one: one.run(AFTER_MS), jobs))
    assert counts(store, PARTITION_LOAD) == {PARTITION_LOAD.path: (2, 2)}


@pytest.mark.usefixtures("interpreted")
def test_hours_long_ago_are_left_out(store: Store) -> None:
    write_ticks(store, "c1", edges(*range(13)))
    assert job(store).run(AFTER_MS + 49 * HOUR_MS) == []
    assert job(store).run(AFTER_MS + 47 * HOUR_MS) != []
