"""Headers of a batch of records, with a summary: kinds, number of rows, oldest and newest ticks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headroom.streaming.transforms.decode import MESSAGE_KEYS


@dataclass(frozen=True)
class MessageHeaders:
    """The records of a batch with their headers, and a summary of these.

    Attributes:
        records: records of ``streaming.transforms.decode.with_headers``.
        any_rejected: whether a record has an invalid header.
        has_duplicates: whether a message was delivered twice.
        rows: number of rows by kind, from the headers; None if a header does not contain it.
        first_tick: oldest tick of each cluster, epoch milliseconds.
        last_tick: newest tick of each cluster, epoch milliseconds.
    """

    records: DataFrame
    any_rejected: bool
    has_duplicates: bool
    rows: Mapping[str, int | None]
    first_tick: Mapping[str, int]
    last_tick: Mapping[str, int]

    @property
    def valid(self) -> DataFrame:
        """The records with a valid header."""
        return self.records.where("reason IS NULL")

    def rows_of(self, kinds: Collection[str]) -> int | None:
        """Return the number of rows in messages of some kinds; None if a header does not contain it."""
        counts = [self.rows[kind] for kind in kinds]
        return None if None in counts else sum(count or 0 for count in counts)

    def has_rows(self, many: int) -> bool:
        """Return whether the messages have at least this many rows, or may have; tick_end has none."""
        count = self.rows_of(set(self.rows) - {"tick_end"})
        return count is None or count >= many


def headers_of(records: DataFrame) -> MessageHeaders:
    """Return the records with the summary of their headers; it takes one Spark job.

    Args:
        records: records of ``streaming.transforms.decode.with_headers``.
    """
    groups = [row.asDict() for row in _summary(records).collect()]
    valid = [group for group in groups if group["valid"]]
    return MessageHeaders(
        records=records,
        any_rejected=len(valid) < len(groups),
        has_duplicates=any(group["messages"] != group["distinct_messages"] for group in valid),
        rows={kind: _rows([g for g in valid if g["kind"] == kind]) for kind in {g["kind"] for g in valid}},
        first_tick=_by_cluster(valid, "first_tick", min),
        last_tick=_by_cluster(valid, "last_tick", max),
    )


def _summary(records: DataFrame) -> DataFrame:
    """Return one row per cluster and kind, and one for all rejected records."""
    named = records.selectExpr(
        "reason IS NULL AS valid",
        *[f"CASE WHEN reason IS NULL THEN header.{name} END AS {name}" for name in [*MESSAGE_KEYS, "row_count"]],
    )
    return named.groupBy("valid", "cluster", "kind").agg(
        F.expr("count(*) AS messages"),
        F.expr("count(DISTINCT tick_ms, seq) AS distinct_messages"),
        F.expr("count(row_count) AS counted"),
        F.expr("sum(row_count) AS row_sum"),
        F.expr("min(tick_ms) AS first_tick"),
        F.expr("max(tick_ms) AS last_tick"),
    )


def _rows(groups: list[dict[str, Any]]) -> int | None:
    if any(group["counted"] != group["messages"] for group in groups):
        return None
    return sum(group["row_sum"] for group in groups)


def _by_cluster(groups: list[dict[str, Any]], name: str, chosen: Any) -> dict[str, int]:
    clusters = {group["cluster"] for group in groups}
    return {cluster: chosen(g[name] for g in groups if g["cluster"] == cluster) for cluster in clusters}
