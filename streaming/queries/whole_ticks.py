"""Complete ticks of a micro-batch of the alert partition, cached while a query works on them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row

from headroom.alerts.metrics import Collected
from headroom.streaming.queries.caching import cached_frames
from headroom.streaming.sources.ticks_topic import TicksTopic
from headroom.streaming.transforms.decode import MESSAGE_KEYS, ROW_KINDS, alert_messages
from headroom.streaming.transforms.prepared import Prepared
from headroom.streaming.transforms.tick_status import ExtraTickColumn, complete_ticks, in_ticks, tick_status

log = logging.getLogger(__name__)
_INCOMPLETE = "it is not complete"


@dataclass(frozen=True)
class CompleteTicks:
    """The complete ticks of a micro-batch.

    Attributes:
        messages: their messages.
        ticks: (cluster, tick_ms) in order of time.
        last_offsets: first offset of the last tick in the alert partition, and its end (exclusive); (0, 0) if there is
            no tick.
        any_moves: whether a partition moves, is listed or is under-replicated in one of them.
        collected: figures of its collection, by tick.
        status: rows of ``tick_status``, one per tick.
    """

    messages: DataFrame
    ticks: list[tuple[str, int]]
    last_offsets: tuple[int, int]
    any_moves: bool
    collected: dict[tuple[str, int], Collected]
    status: Sequence[Row]


class CompleteTicksReader:
    """Reads complete ticks from micro-batches of the alert partition.

    The rows of a tick there are few and in one partition, so one task does all of the work without a shuffle.

    Args:
        topic: source of the records of a tick that came before a batch.
        extra_columns: further columns of ``tick_status``.
        row_kinds: kinds whose rows are needed.
    """

    def __init__(
        self,
        topic: TicksTopic,
        extra_columns: Sequence[ExtraTickColumn] = (),
        row_kinds: Sequence[str] = ROW_KINDS,
    ) -> None:
        self._topic = topic
        self._row_kinds = row_kinds
        self._messages = Prepared(self._parse)
        self._status = Prepared(lambda messages: tick_status(messages, extra_columns))

    @contextmanager
    def read(self, batch: DataFrame) -> Iterator[CompleteTicks]:
        """Yield the complete ticks whose ``tick_end`` is in the batch; records of earlier batches are read again.

        Args:
            batch: micro-batch of Kafka records.
        """
        with cached_frames() as cache:
            messages = cache(self._messages.on(batch.coalesce(1)))
            status = self._status.on(messages).collect()
            partial = [row for row in status if row["ended"] and not row["whole"] and self._distrust(row) is None]
            if partial:
                first, end = min(row["first_offset"] for row in partial), max(row["end_offset"] for row in partial)
                earlier = self._parse(self._topic.alert_range(first, end + 1).coalesce(1))
                messages = cache(messages.unionByName(earlier).coalesce(1).dropDuplicates(MESSAGE_KEYS))
                status = self._status.on(messages).collect()
            valid = [row for row in status if self._is_valid(row)]
            collected = {(row["cluster"], row["tick_ms"]): _collection_of(row) for row in valid}
            # Nearly every batch is exactly one tick. Then no filter is needed.
            kept = messages if len(valid) == len(status) else complete_ticks(messages).where(in_ticks(list(collected)))
            last = (valid[-1]["first_offset"], valid[-1]["end_offset"] + 1) if valid else (0, 0)
            yield CompleteTicks(kept, list(collected), last, any(row["any_moves"] for row in valid), collected, valid)

    def _parse(self, records: DataFrame) -> DataFrame:
        return alert_messages(records, self._row_kinds)

    def _is_valid(self, row: Row) -> bool:
        """Return whether a tick is complete and trusted; log the reason if it ended and is not."""
        why = self._distrust(row) if row["ended"] else None
        if row["ended"] and (why or not row["whole"]):
            log.warning("tick %s of cluster %s has no verdict: %s", row["tick_ms"], row["cluster"], why or _INCOMPLETE)
        return why is None and row["whole"]

    def _distrust(self, row: Row) -> str | None:
        """Return why a tick is not trusted; None if it is."""
        return self._topic.trust.distrust(row["cluster"], row["tick_ms"], row["record_ms"])


def _collection_of(row: Row) -> Collected:
    took_s = None if row["collect_ms"] is None else max(0, row["collect_ms"]) / 1000
    return Collected(took_s, row["unanswered_brokers"], row["skipped_ticks"])
