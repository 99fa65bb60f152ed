"""Status of the ticks in a micro-batch, and the selection of complete ones.

Only complete ticks have verdicts, because a sum over half a tick would give a false one. A micro-batch may end in the
middle of a tick. A tick belongs to the batch with its ``tick_end``, which contains the offset in the alert partition
where the tick begins. Records of earlier batches are read again from that offset. So no state is kept between batches,
a restart loses nothing, and a replay gives the same rows.
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
NO_EXTRA_COLUMNS: Mapping[str, str] = MappingProxyType({})


def in_ticks(ticks: Sequence[Tick], prefix: str = "") -> Column:
    """Return the condition that a row belongs to one of these ticks.

    Args:
        ticks: ticks.
        prefix: prefix of the two column names, such as a struct's name and a dot.
    """
    # As text: a number would be part of the code that is compiled for a plan, so every tick would compile it again.
    times: dict[str, list[str]] = defaultdict(list)
    for cluster, tick_ms in ticks:
        times[cluster].append(str(tick_ms))
    of_clusters = [
        (F.col(f"{prefix}cluster") == cluster) & F.col(f"{prefix}tick_ms").cast("string").isin(*times_ms)
        for cluster, times_ms in times.items()
    ]
    return reduce(or_, of_clusters, F.lit(False))


def tick_status(messages: DataFrame, extra_columns: Mapping[str, str] = NO_EXTRA_COLUMNS) -> DataFrame:
    """Return one row per tick, in order of time.

    Args:
        messages: rows of ``streaming.transforms.decode.alert_messages``.
        extra_columns: further aggregates: name to expression.

    Returns:
        ``cluster``, ``tick_ms`` and these columns:

        - ``ended``: whether the tick's ``tick_end`` was read.
        - ``first_offset``, ``end_offset``: offsets of its first and last record in the alert partition.
        - ``record_ms``: time of its last record, epoch milliseconds.
        - ``whole``: whether all of its messages were read.
        - ``any_moves``: whether it has a message of the kind ``moves``.
        - ``skipped_ticks``, ``collect_ms``, ``unanswered_brokers``: values of ``tick_end``; 0, null and 0 without them.
        - the extra columns.
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
            *[F.expr(f"{aggregate} AS {name}") for name, aggregate in extra_columns.items()],
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
            *extra_columns,
        )
        .orderBy("tick_ms", "cluster")
    )


def complete_ticks(messages: DataFrame) -> DataFrame:
    """Return the messages of the ticks that were read from the first message to ``tick_end``.

    Args:
        messages: rows of ``streaming.transforms.decode.alert_messages``.
    """
    in_tick = Window.partitionBy(*TICK)
    counted = messages.withColumns(
        {
            "_sent": F.max("lane_messages").over(in_tick),
            "_read": F.sum(F.expr("CAST(kind != 'tick_end' AS INT)")).over(in_tick),
        }
    )
    return counted.where("_sent = _read").drop("_sent", "_read")


def rows_of(messages: DataFrame, kind: str) -> DataFrame:
    """Return the rows of the alert messages of one kind, with ``cluster`` and ``tick_ms``.

    All alert kinds share one schema, so the columns of the other kinds are null.
    """
    return messages.where(f"kind = '{kind}'").selectExpr(*TICK, "inline(rows)")
