"""Whole ticks of a micro-batch of the alert lane, kept in memory while they are worked on."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row

from alerts.metrics import Collected
from streaming.queries.caching import cached_frames
from streaming.sources.ticks_topic import TicksTopic
from streaming.transforms.decode import MESSAGE_KEYS, lane_messages
from streaming.transforms.prepared import Prepared
from streaming.transforms.tick_status import NOTHING_BESIDES, complete_ticks, in_ticks, tick_status

log = logging.getLogger(__name__)
_CUT = "it is not whole"


@dataclass(frozen=True)
class CompleteTicks:
    """The whole ticks of a micro-batch.

    Attributes:
        messages: their messages.
        ticks: (cluster, tick_ms) in order of time.
        last_offsets: where in the lane the last of them begins, and the offset behind it; of no tick, nowhere.
        any_moves: whether a partition moves, or is listed, in one of them.
        collected: of each how it was collected.
        status: of each its row of ``tick_status``.
    """

    messages: DataFrame
    ticks: list[tuple[str, int]]
    last_offsets: tuple[int, int]
    any_moves: bool
    collected: dict[tuple[str, int], Collected]
    status: Sequence[Row]


class CompleteTicksReader:
    """Reads whole ticks from micro-batches of the alert lane.

    The lane is one partition of the topic and a tick of it is small, so one task does it all without a shuffle.

    Args:
        topic: to read the beginning of a tick that came before a batch.
        besides: what to learn of each tick besides, as ``tick_status`` takes it.
    """

    def __init__(self, topic: TicksTopic, besides: Mapping[str, str] = NOTHING_BESIDES) -> None:
        self._topic = topic
        self._messages = Prepared(lane_messages)
        self._status = Prepared(lambda messages: tick_status(messages, besides))

    @contextmanager
    def whole(self, batch: DataFrame) -> Iterator[CompleteTicks]:
        """Give the whole ticks whose ``tick_end`` is in the batch; what came in earlier batches is read again.

        Args:
            batch: micro-batch of Kafka records.
        """
        with cached_frames() as hold:
            messages = hold(self._messages.on(batch.coalesce(1)))
            status = self._status.on(messages).collect()
            cut = [row for row in status if row["ended"] and not row["whole"] and self._doubt(row) is None]
            if cut:
                first, end = min(row["first_offset"] for row in cut), max(row["end_offset"] for row in cut)
                earlier = lane_messages(self._topic.alert_range(first, end + 1).coalesce(1))
                messages = hold(messages.unionByName(earlier).coalesce(1).dropDuplicates(MESSAGE_KEYS))
                status = self._status.on(messages).collect()
            whole = [row for row in status if self._is_good(row)]
            collected = {(row["cluster"], row["tick_ms"]): _collected(row) for row in whole}
            # Nearly always the batch is a tick and nothing else.
            kept = messages if len(whole) == len(status) else complete_ticks(messages).where(in_ticks(list(collected)))
            last = (whole[-1]["first_offset"], whole[-1]["end_offset"] + 1) if whole else (0, 0)
            yield CompleteTicks(kept, list(collected), last, any(row["any_moves"] for row in whole), collected, whole)

    def _is_good(self, row: Row) -> bool:
        """Return whether a tick is whole and believed; of one that ended and is not so, the log tells why."""
        why = self._doubt(row) if row["ended"] else None
        if row["ended"] and (why or not row["whole"]):
            log.warning("tick %s of cluster %s gives no verdict: %s", row["tick_ms"], row["cluster"], why or _CUT)
        return why is None and row["whole"]

    def _doubt(self, row: Row) -> str | None:
        return self._topic.trust.doubt(row["cluster"], row["tick_ms"], row["record_ms"])


def _collected(row: Row) -> Collected:
    took_s = None if row["collect_ms"] is None else max(0, row["collect_ms"]) / 1000
    return Collected(took_s, row["unanswered_brokers"], row["skipped_ticks"])
