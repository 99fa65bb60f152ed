"""Status of the ticks in a micro-batch, and the selection of complete ones.

Only complete ticks have verdicts, because a sum over half a tick would give a false one. A micro-batch may end in the
middle of a tick. A tick belongs to the batch with its ``tick_end``, which contains the offset in the alert partition
where the tick begins. Records of earlier batches are read again from that offset. So no state is kept between batches,
a restart loses nothing, and a replay gives the same rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from headroom.schemas.keys import Tick
from headroom.schemas.tick_messages import COUNTED_KINDS
from headroom.streaming.transforms.decode import MIGRATIONS, with_headers
from headroom.streaming.transforms.steps import aggregate_by, literal, named_expressions

TICK = ["cluster", "tick_ms"]
# Messages that ``lane_messages`` counts. Those of migrations do not, because earlier readers do not know them.
_COUNTED = f"kind IN ({', '.join(map(literal, COUNTED_KINDS))})"
# Over the messages of a tick, of which only tick_end has most of the columns.
_AGGREGATES = {
    # Offset of its first record in the alert partition.
    "first_offset": "max(first_offset)",
    # Offset of its tick_end there; null if it was not read.
    "end_offset": "max(CASE WHEN kind = 'tick_end' THEN record_offset END)",
    # Time of the record of its tick_end, epoch milliseconds.
    "record_ms": "max(CASE WHEN kind = 'tick_end' THEN record_ms END)",
    # Messages in the alert partition that were read, of the kinds that count.
    "messages": f"count_if({_COUNTED})",
    # The same that were sent; null if tick_end was not read.
    "lane_messages": "max(lane_messages)",
    # Whether it has a message of the kind moves.
    "any_moves": "bool_or(kind = 'moves')",
    # Ticks that the collector skipped before this one.
    "skipped_ticks": "max(skipped_ticks)",
    # Time that the collector took, milliseconds.
    "collect_ms": "max(collect_ms)",
    # Brokers that did not report everything.
    "unanswered_brokers": "max(unanswered_brokers)",
}
# The columns of ``tick_status``.
_STATUS = {
    "first_offset": "first_offset",
    "end_offset": "end_offset",
    "record_ms": "record_ms",
    "ended": "lane_messages IS NOT NULL",
    "whole": "coalesce(messages = lane_messages, false)",
    "any_moves": "any_moves",
    "skipped_ticks": "coalesce(skipped_ticks, 0)",
    "collect_ms": "collect_ms",
    "unanswered_brokers": "greatest(unanswered_brokers, 0)",
}


@dataclass(frozen=True)
class ExtraTickColumn:
    """Further column in the status of a tick, for a query that needs more of its ``tick_end``.

    Attributes:
        name: name of the column.
        aggregate: its value, as SQL over the tick's rows of ``streaming.transforms.decode.alert_messages``.
    """

    name: str
    aggregate: str


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


def tick_status(messages: DataFrame, extra_columns: Sequence[ExtraTickColumn] = ()) -> DataFrame:
    """Return one row per tick, in order of time.

    Args:
        messages: rows of ``streaming.transforms.decode.alert_messages``.
        extra_columns: further columns.

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
    aggregates = {**_AGGREGATES, **{column.name: column.aggregate for column in extra_columns}}
    status = {**_STATUS, **{column.name: column.name for column in extra_columns}}
    by_tick = aggregate_by(messages, TICK, aggregates)
    return by_tick.selectExpr(*TICK, *named_expressions(status)).orderBy("tick_ms", "cluster")


def ended_ticks(records: DataFrame) -> DataFrame:
    """Return one row per tick whose ``tick_end`` is among some records, from their keys; rows are not read.

    Args:
        records: Kafka records of the alert partition.

    Returns:
        ``cluster``, ``tick_ms``, ``end_offset`` (of its ``tick_end``) and ``may_move``: whether it has a message of the
        kind ``moves``, or one that is not among the records, and ``may_migrate``: whether it has one of ``migrations``.
    """
    sent = "CASE WHEN kind = 'tick_end' THEN from_json(CAST(value AS STRING), 'lane_messages INT').lane_messages END"
    aggregates = {
        "end_offset": "max(CASE WHEN kind = 'tick_end' THEN offset END)",
        "may_move": f"bool_or(kind = 'moves') OR NOT count_if({_COUNTED}) <=> max(lane_messages)",
        "may_migrate": f"bool_or(kind = {literal(MIGRATIONS)})",
    }
    valid = with_headers(records).where("reason IS NULL")
    named_as_rows = valid.selectExpr("header.cluster", "header.tick_ms", "kind", "offset", f"{sent} AS lane_messages")
    return aggregate_by(named_as_rows, TICK, aggregates).where("end_offset IS NOT NULL")


def complete_ticks(messages: DataFrame) -> DataFrame:
    """Return the messages of the ticks that were read from the first message to ``tick_end``.

    Args:
        messages: rows of ``streaming.transforms.decode.alert_messages``.
    """
    in_tick = Window.partitionBy(*TICK)
    counted = messages.withColumns(
        {
            "_sent": F.max("lane_messages").over(in_tick),
            "_read": F.sum(F.expr(f"CAST({_COUNTED} AS INT)")).over(in_tick),
        }
    )
    return counted.where("_sent = _read").drop("_sent", "_read")


def rows_of(messages: DataFrame, kind: str) -> DataFrame:
    """Return the rows of the alert messages of one kind, with ``cluster`` and ``tick_ms``.

    All alert kinds share one schema, so the columns of the other kinds are null.
    """
    return messages.where(f"kind = '{kind}'").selectExpr(*TICK, "inline(rows)")
