"""A query that is planned once gives what it gives when it is made anew, whatever rows it is run on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from headroom.streaming.transforms.decode import alert_messages
from headroom.streaming.transforms.gold import GoldQueries, headroom_rows
from headroom.streaming.transforms.prepared import Prepared
from headroom.streaming.transforms.tick_status import tick_status
from tests.spark.ticks import broker, log, move, records, tick

ROWS = [[("a", 1), ("b", 2)], [], [("a", 5), ("a", 7), (None, 1)], [("z", n) for n in range(500)]]


def frame(spark: SparkSession, rows: list[tuple[Any, ...]], columns: str = "k STRING, v INT") -> DataFrame:
    return spark.createDataFrame(rows, columns).coalesce(1)


class Query:
    """Joins a frame with itself and with another, and counts how often it is made."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, left: DataFrame, right: DataFrame) -> DataFrame:
        self.made += 1
        sums = left.where("v > 0").groupBy("k").agg({"v": "sum"}).withColumnRenamed("sum(v)", "total")
        most = left.selectExpr("k", "max(v) OVER (PARTITION BY k) AS most").distinct()
        return (
            sums.join(most, "k", "left").join(right, "k", "full_outer").selectExpr("k", "total * 2 AS t", "most", "w")
        )


def sorted_rows(rows: DataFrame) -> list[str]:
    return sorted(map(repr, rows.collect()))


def test_it_is_planned_once_and_gives_the_same_rows(spark: SparkSession) -> None:
    query, plain = Query(), Query()
    prepared = Prepared(query)
    others = [("a", 1.5), ("b", None), ("q", 0.0)]
    for number, rows in enumerate(ROWS):
        left, right = frame(spark, rows), frame(spark, others[: number % 3 + 1], "k STRING, w DOUBLE")
        assert sorted_rows(prepared.on(left, right)) == sorted_rows(plain(left, right)), rows
    assert (query.made, plain.made) == (1, len(ROWS))


def test_a_reused_plan_does_not_assume_properties_of_the_first_rows(spark: SparkSession) -> None:
    prepared = Prepared(lambda rows: rows.groupBy("k").agg({"v": "max"}))
    # Sorted, of one key, and none of them null.
    first = frame(spark, [("a", 1), ("a", 2)]).where("k = 'a'").sortWithinPartitions("k")
    assert [tuple(row) for row in prepared.on(first).collect()] == [("a", 2)]
    mixed = frame(spark, [("b", 1), ("a", 3), ("b", 4), (None, 5)])
    assert sorted(map(tuple, prepared.on(mixed).collect()), key=repr) == [("a", 3), ("b", 4), (None, 5)]


def test_rows_in_several_places_are_brought_together(spark: SparkSession) -> None:
    query = Prepared(lambda rows: rows.groupBy("k").count())
    one = frame(spark, [("a", 1)])
    assert [tuple(row) for row in query.on(one).collect()] == [("a", 1)]
    several = spark.createDataFrame([("a", n) for n in range(8)], "k STRING, v INT").repartition(4)
    assert [tuple(row) for row in query.on(several).collect()] == [("a", 8)]


def test_rows_in_several_places_are_planned_once_too(spark: SparkSession) -> None:
    query, plain = Query(), Query()
    prepared = Prepared(query)
    other = frame(spark, [("a", 1.5), ("b", None), ("q", 0.0)], "k STRING, w DOUBLE")
    expected = [sorted_rows(plain(frame(spark, rows), other)) for rows in ROWS]
    for parts in (1, 3, 5, 1, 2):
        for rows, plain_rows in zip(ROWS, expected, strict=True):
            left = spark.createDataFrame(rows, "k STRING, v INT").repartition(parts)
            assert sorted_rows(prepared.on(left, other)) == plain_rows, (parts, rows)
    # Once without shuffles, and once with them.
    assert query.made == 2
    assert prepared.works
    assert spark.conf.get("spark.sql.exchange.reuse") == "true"


def test_results_that_are_read_later_keep_their_own_rows(spark: SparkSession) -> None:
    prepared = Prepared(lambda rows: rows.groupBy("k").agg({"v": "max"}))
    results = [prepared.on(frame(spark, [("a", n)])) for n in range(3)]
    assert [tuple(row) for rows in results for row in rows.collect()] == [("a", 0), ("a", 1), ("a", 2)]


def test_a_persisted_frame_is_not_computed_again(spark: SparkSession) -> None:
    kept = frame(spark, ROWS[0]).selectExpr("k", "v + cast(rand() * 1e9 AS INT) AS v").persist()
    try:
        query = Prepared(lambda rows: rows.selectExpr("k", "v"))
        assert sorted_rows(query.on(kept)) == sorted_rows(query.on(kept)) == sorted_rows(kept.select("k", "v"))
    finally:
        kept.unpersist()


def _in_halves_twice(rows: DataFrame) -> DataFrame:
    halves = rows.repartition(2, "k")
    return halves.unionByName(halves)


def _most(rows: DataFrame) -> DataFrame:
    rows.createOrReplaceTempView("rows_of_a_batch")
    return rows.where("v = (SELECT max(v) FROM rows_of_a_batch)")


@pytest.mark.parametrize("make", [_in_halves_twice, _most])
def test_a_query_plan_that_would_keep_rows_of_the_first_batch_is_not_reused(
    spark: SparkSession, make: Callable[[DataFrame], DataFrame]
) -> None:
    prepared = Prepared(make)
    for rows in ROWS:
        assert sorted_rows(prepared.on(frame(spark, rows))) == sorted_rows(make(frame(spark, rows)))
    assert not prepared.works


def test_a_session_of_another_thread_takes_it_too(spark: SparkSession) -> None:
    prepared = Prepared(lambda rows: rows.groupBy("k").count())
    frames = [frame(session, ROWS[2]) for session in (spark, spark.newSession(), spark)]
    with ThreadPoolExecutor(1) as other:
        found = [
            sorted_rows(prepared.on(frames[0])),
            *other.map(lambda rows: sorted_rows(prepared.on(rows)), frames[1:]),
        ]
    assert found == [["Row(k='a', count=2)", "Row(k=None, count=1)"]] * 3
    assert prepared.works


def test_the_queries_of_every_tick_are_planned_once(spark: SparkSession) -> None:
    queries = GoldQueries()
    every = [Prepared(make) for make in (alert_messages, tick_status, headroom_rows)]
    messages, status, headroom = every
    for number in range(3):
        logs = [log(1, 9000, 2e6), log(2, 9000, 2e6), log(3, 1000, 1e6)]
        moves = [move("t", n, 1, [1, 2, 3], isr=[1, 2], adding=[3], logs=logs) for n in range(number)]
        alert_partition = messages.on(records(spark, tick([broker(1, 9_000_000, 9_000_000)], moves)).coalesce(1))
        assert sorted_rows(status.on(alert_partition)) == sorted_rows(tick_status(alert_partition))
        plain = sorted_rows(headroom_rows(alert_partition))
        assert sorted_rows(headroom.on(alert_partition)) == plain
        gold = queries.rows(alert_partition)
        assert [len(sorted_rows(rows)) for rows in (gold.headroom, gold.progress, gold.write_rate)] == [
            len(plain),
            number,
            number,
        ]
    assert all(query.works for query in (*every, *vars(queries).values()))


def test_without_the_internal_method_of_spark_every_query_is_planned_again(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def missing(*_: Any) -> Any:
        raise Py4JError("Method internalCreateDataFrame([...]) does not exist")

    monkeypatch.setattr("headroom.streaming.transforms.prepared._leaf", missing)
    query = Query()
    prepared = Prepared(query)
    right = frame(spark, [("a", 1.0)], "k STRING, w DOUBLE")
    with caplog.at_level(logging.INFO, "headroom.streaming.transforms.prepared"):
        for rows in ROWS[:2]:
            assert sorted_rows(prepared.on(frame(spark, rows), right)) == sorted_rows(
                Query()(frame(spark, rows), right)
            )
    assert query.made == 2
    assert len(caplog.messages) == 1
