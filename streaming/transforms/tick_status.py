"""Whole ticks only: a sum over half a tick would be a false verdict.

A micro-batch may end in the middle of a tick. Nothing is held back between batches: a tick counts in the batch that has
its ``tick_end``, which says at which offset of the lane the tick begins; what came in an earlier batch is read again
from there. So no state is kept, a restart loses nothing, and a replay gives the same rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from types import MappingProxyType

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

# Cluster and time, epoch milliseconds.
Tick = tuple[str, int]

TICK = ["cluster", "tick_ms"]
NOTHING_BESIDES: Mapping[str, str] = MappingProxyType({})


def in_ticks(ticks: Sequence[Tick], under: str = "") -> Column:
    """Return the condition that a row is of one of these ticks.

    Args:
        ticks: ticks.
        under: what stands before the names of its columns, such as the struct that they are in, with its dot.
    """
    # As text: a number stands in the code that is compiled for a plan, and every tick would have it compiled anew.
    times: dict[str, list[str]] = defaultdict(list)
    for cluster, tick_ms in ticks:
        times[cluster].append(str(tick_ms))
    of_clusters = [
        (F.col(f"{under}cluster") == cluster) & F.col(f"{under}tick_ms").cast("string").isin(*times_ms)
        for cluster, times_ms in times.items()
    ]
    return reduce(or_, of_clusters, F.lit(False))


def tick_status(messages: DataFrame, besides: Mapping[str, str] = NOTHING_BESIDES) -> DataFrame:
    """Return one row per tick, by time.

    Columns: ``ended`` (its ``tick_end`` is there), ``first_offset``, ``end_offset`` and ``record_ms`` (where it begins
    and ends in the lane, and the time of the record that ends it), ``whole``, ``any_moves``, and of its ``tick_end``
    ``skipped_ticks``, ``collect_ms`` and ``unanswered_brokers`` (0, null and 0 if not told).

    Args:
        messages: of ``streaming.transforms.decode.lane_messages``.
        besides: further columns: what to aggregate, by name.
    """
    return (
        messages.groupBy(*TICK)
        .agg(
            F.expr("max(first_offset) AS first_offset"),
            F.expr("max(CASE WHEN kind = 'tick_end' THEN record_offset END) AS end_offset"),
            F.expr("max(CASE WHEN kind = 'tick_end' THEN record_ms END) AS record_ms"),
            F.expr("count_if(kind != 'tick_end') AS messages"),
            F.expr("max(lane_messages) AS lane_messages"),
            F.expr("bool_or(kind = 'moves') AS any_moves"),
            F.expr("max(skipped_ticks) AS skipped_ticks"),
            F.expr("max(collect_ms) AS collect_ms"),
            F.expr("max(unanswered_brokers) AS unanswered_brokers"),
            *[F.expr(f"{what} AS {name}") for name, what in besides.items()],
        )
        .selectExpr(
            *TICK,
            "first_offset",
            "end_offset",
            "record_ms",
            "lane_messages IS NOT NULL AS ended",
            "coalesce(messages = lane_messages, false) AS whole",
            "any_moves",
            "coalesce(skipped_ticks, 0) AS skipped_ticks",
            "collect_ms",
            "greatest(unanswered_brokers, 0) AS unanswered_brokers",
            *besides,
        )
        .orderBy("tick_ms", "cluster")
    )


def complete_ticks(messages: DataFrame) -> DataFrame:
    """Return the messages of the ticks that are there from the first message to ``tick_end``.

    Args:
        messages: of ``streaming.transforms.decode.lane_messages``.
    """
    in_tick = Window.partitionBy(*TICK)
    counted = messages.withColumns(
        {
            "_sent": F.max("lane_messages").over(in_tick),
            "_there": F.sum(F.expr("CAST(kind != 'tick_end' AS INT)")).over(in_tick),
        }
    )
    return counted.where("_sent = _there").drop("_sent", "_there")


def rows_of(messages: DataFrame, kind: str) -> DataFrame:
    """Return the rows of the lane's messages of one kind, with ``cluster`` and ``tick_ms``.

    The lane's schema has the columns of all its kinds: those of the others are null.
    """
    return messages.where(f"kind = '{kind}'").selectExpr(*TICK, "inline(rows)")
