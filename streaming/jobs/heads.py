"""What the heads of a batch of records say: which kinds are there, how many rows, since which tick."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streaming.transforms.decode import MESSAGE_KEYS


@dataclass(frozen=True)
class MessageHeaders:
    """The records of a batch with their heads, and a summary of these.

    Attributes:
        records: of ``streaming.transforms.decode.with_headers``.
        any_rejected: whether the head of one is a reason to reject it.
        doubled: whether a message is there twice.
        rows: rows that the messages of each kind say they have; None: one of them does not say.
        first_tick: oldest tick of each cluster.
        last_tick: newest tick of each cluster.
    """

    records: DataFrame
    any_rejected: bool
    doubled: bool
    rows: Mapping[str, int | None]
    first_tick: Mapping[str, int]
    last_tick: Mapping[str, int]

    @property
    def valid(self) -> DataFrame:
        """The records whose head is in order."""
        return self.records.where("reason IS NULL")

    def rows_of(self, kinds: Collection[str]) -> int | None:
        """Return how many rows the messages of some kinds say they have; None: not all of them say it."""
        counts = [self.rows[kind] for kind in kinds]
        return None if None in counts else sum(count or 0 for count in counts)

    def has_rows(self, many: int) -> bool:
        """Return whether the messages have so many rows in all, or do not say how many; the end of a tick has none."""
        count = self.rows_of(set(self.rows) - {"tick_end"})
        return count is None or count >= many


def headers_of(records: DataFrame) -> MessageHeaders:
    """Return the records with the summary of their heads, one Spark job.

    Args:
        records: of ``streaming.transforms.decode.with_headers``.
    """
    groups = [row.asDict() for row in _summary(records).collect()]
    valid = [group for group in groups if group["valid"]]
    return MessageHeaders(
        records=records,
        any_rejected=len(valid) < len(groups),
        doubled=any(group["messages"] != group["distinct_messages"] for group in valid),
        rows={kind: _rows([g for g in valid if g["kind"] == kind]) for kind in {g["kind"] for g in valid}},
        first_tick=_by_cluster(valid, "first_tick", min),
        last_tick=_by_cluster(valid, "last_tick", max),
    )


def _summary(records: DataFrame) -> DataFrame:
    """Return one row per cluster and kind, and one for all that is rejected."""
    named = records.selectExpr(
        "reason IS NULL AS valid",
        *[f"CASE WHEN reason IS NULL THEN head.{name} END AS {name}" for name in [*MESSAGE_KEYS, "row_count"]],
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
