"""Complete ticks of a batch that may begin and end in the middle of one."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from headroom.alerts.metrics import Collected
from headroom.streaming.queries.whole_ticks import CompleteTicksReader
from headroom.streaming.transforms.decode import alert_messages
from headroom.streaming.transforms.tick_status import complete_ticks, rows_of, tick_status
from tests.spark.support import ListTopic
from tests.spark.ticks import TICK_MS, broker, move, records, tick

Ticks = list[tuple[str, int]]


def alert_partition(*numbers: int, cluster: str = "c1") -> list[dict[str, Any]]:
    """The alert_partition with ticks, a second apart, each of three messages, from offset 0 on."""
    ticks = [
        tick([broker(1, 5, None)], [move("t", 0, 1, [1])], TICK_MS + n * 1000, first_offset=3 * place)
        for place, n in enumerate(numbers)
    ]
    return [m | {"cluster": cluster} for messages in ticks for m in messages]


def at(number: int, cluster: str = "c1") -> tuple[str, int]:
    return cluster, TICK_MS + number * 1000


def of_batch(spark: SparkSession, messages: list[dict[str, Any]], first: int, end: int, kept_from: int = 0) -> Ticks:
    """Ticks of the batch of the records from ``first`` up to, not including, ``end``, each with its messages."""
    batch = records(spark, messages[first:end], first)
    with CompleteTicksReader(ListTopic(spark, messages, kept_from)).read(batch) as whole:  # type: ignore[arg-type]
        counts = {(row["cluster"], row["tick_ms"]): row["count"] for row in _counted(whole.messages)}
        assert {t: counts.get(t) for t in whole.ticks} == dict.fromkeys(whole.ticks, 3)
        assert set(counts) == set(whole.ticks)
        return whole.ticks


def _counted(messages: Any) -> list[Any]:
    return messages.groupBy("cluster", "tick_ms").count().collect()


def test_a_batch_gives_its_whole_ticks_in_order_of_time(spark: SparkSession) -> None:
    assert of_batch(spark, alert_partition(2, 0, 1), 0, 9) == [at(0), at(1), at(2)]


def test_a_tick_cut_by_a_batch_counts_in_the_batch_of_its_end(spark: SparkSession) -> None:
    messages = alert_partition(0, 1, 2)
    # Records 0 to 4: all of tick 0, two of three messages of tick 1. Then its end, and tick 2.
    assert of_batch(spark, messages, 0, 5) == [at(0)]
    assert of_batch(spark, messages, 5, 9) == [at(1), at(2)]


def test_a_tick_has_the_time_errors_and_skipped_ticks_of_its_collection(spark: SparkSession) -> None:
    first, second = alert_partition(0, 1)[:3], alert_partition(0, 1)[3:]
    silent = [{"broker": 3, "reason": "refused"}, {"broker": 4, "reason": "refused"}]
    first[-1] |= {"started_ms": 5_000, "ended_ms": 5_250, "unanswered": silent, "skipped_ticks": 7}
    messages = [*first, *second]
    with CompleteTicksReader(ListTopic(spark, messages, 0)).read(records(spark, messages)) as whole:  # type: ignore[arg-type]
        # One that tells nothing of it has failed at nothing.
        assert whole.collected == {at(0): Collected(0.25, 2, 7), at(1): Collected(None, 0, 0)}


def test_a_batch_that_holds_no_end_gives_nothing(spark: SparkSession) -> None:
    assert of_batch(spark, alert_partition(0), 0, 2) == []
    assert of_batch(spark, alert_partition(0), 0, 0) == []


def test_a_tick_whose_beginning_is_gone_gives_nothing(spark: SparkSession) -> None:
    assert of_batch(spark, alert_partition(0, 1), 2, 6, kept_from=1) == [at(1)]


def test_a_second_delivery_within_a_batch_counts_once(spark: SparkSession) -> None:
    messages = alert_partition(0, 0)
    assert of_batch(spark, messages, 0, 6) == [at(0)]
    # The end of the second delivery alone: its own beginning is read again.
    assert of_batch(spark, messages, 5, 6) == [at(0)]


def test_clusters_that_share_an_alert_partition_are_kept_separate(spark: SparkSession) -> None:
    one, other = alert_partition(0), [m | {"cluster": "c2"} for m in alert_partition(0)]
    # Interleaved, c2 first; both begin at offset 0 and c2's end is missing.
    mixed = [m for pair in zip(other, one, strict=True) for m in pair]
    messages = [m for m in mixed if (m["cluster"], m["kind"]) != ("c2", "tick_end")]
    assert of_batch(spark, messages, 0, 5) == [at(0)]


def test_the_status_of_a_tick_and_its_rows(spark: SparkSession) -> None:
    half = [m for m in alert_partition(1) if m["kind"] != "moves"]
    messages = alert_messages(records(spark, [*alert_partition(0), *half, *alert_partition(2)[:2]]))
    status = [
        (row["tick_ms"], row["ended"], row["first_offset"], row["end_offset"], row["whole"])
        for row in tick_status(messages).collect()
    ]
    assert status == [
        (TICK_MS, True, 0, 2, True),
        (TICK_MS + 1000, True, 0, 4, False),
        (TICK_MS + 2000, False, None, None, False),
    ]
    whole = complete_ticks(messages)
    (row,) = rows_of(whole, "brokers").collect()
    assert (row["cluster"], row["tick_ms"], row["broker"], row["leader_throttle_bytes_per_s"]) == ("c1", TICK_MS, 1, 5)
