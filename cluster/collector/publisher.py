"""Writing ticks to their topic: alert lane first, tick_end only after everything else was acknowledged."""

from __future__ import annotations

import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaError

from cluster.collector.other_collectors import CollectorId
from cluster.collector.rows.encoder import Message, encode_end
from cluster.collector.ticks_topic import ensure_topic
from cluster.connection.admin_connection import ticks_options
from cluster.connection.bootstrap import connect_to_first
from schemas.config import Settings
from schemas.errors import HeadroomError
from schemas.tick_messages import ALERT_PARTITION

# The first tick also pays for connecting, and for leaders of a topic that was made just now.
_FIRST_ACK_S = 10.0


class PublishError(Exception):
    """A tick, or its end, was not acknowledged; the text says which message and why."""


@dataclass(frozen=True)
class SentMessages:
    """What was written of a tick before its end.

    Attributes:
        messages: messages per kind.
        first_offset: offset of the first one in the alert lane.
        lane_messages: how many are in the alert lane.
        ranges: by partition, first offset and end of the others.
    """

    messages: dict[str, int]
    first_offset: int
    lane_messages: int
    ranges: Mapping[int, tuple[int, int]] = field(default_factory=dict)


def tick_end(
    sent: SentMessages,
    *,
    started_ms: int,
    ended_ms: int,
    interval_ms: int,
    rate_window_ms: int,
    lateness_ms: int = 0,
    skipped_ticks: int = 0,
    unanswered: Sequence[dict[str, Any]] = (),
    metadata_age_ms: int = 0,
    collector: CollectorId | None = None,
) -> dict[str, Any]:
    """Return what ``tick_end`` says of a tick, in the columns of ``schemas.tick_messages.TICK_END``."""
    return {
        "interval_ms": interval_ms,
        "started_ms": started_ms,
        "ended_ms": ended_ms,
        "lateness_ms": lateness_ms,
        "skipped_ticks": skipped_ticks,
        "rate_window_ms": rate_window_ms,
        "messages": sent.messages,
        "unanswered": list(unanswered),
        "first_offset": sent.first_offset,
        "lane_messages": sent.lane_messages,
        "metadata_age_ms": metadata_age_ms,
        "ranges": [
            {"partition": partition, "first_offset": first, "end_offset": end}
            for partition, (first, end) in sorted(sent.ranges.items())
        ],
        **({} if collector is None else collector.columns()),
    }


class Publisher:
    """The producer of ticks. The topic is made at first use when it is not there.

    Args:
        settings: where the topic is, and how it is made.
        ack_timeout_s: longest wait for the acknowledgements of one tick, seconds.
    """

    def __init__(self, settings: Settings, ack_timeout_s: float) -> None:
        self._settings = settings
        self._ack_timeout_s = ack_timeout_s
        self._producer: KafkaProducer | None = None
        self._partitions = 1
        self._turn = 0
        self._patience_s = max(ack_timeout_s, _FIRST_ACK_S)

    def open(self) -> None:
        """Make the topic when it is not there, and connect.

        Raises:
            HeadroomError: the cluster of the ticks topic is out of reach, or refuses.
        """
        if self._producer is None:
            self._partitions = ensure_topic(self._settings)
            try:
                self._connect()
            except KafkaError as error:
                raise HeadroomError(
                    f"ticks.topic {self._settings.ticks.topic}",
                    f"no broker could be reached ({type(error).__name__})",
                    "Check that the brokers are up.",
                ) from None

    def send(self, messages: Sequence[Message]) -> SentMessages:
        """Write a tick's messages and return what was acknowledged.

        Raises:
            PublishError: one of them was not acknowledged in time.
        """
        deadline = time.monotonic() + self._patience_s
        try:
            futures = [(message, self._send(message)) for message in messages]
            records = [(message, self._acknowledged(message, future, deadline)) for message, future in futures]
        except PublishError:
            self._give_up()
            raise
        self._patience_s = self._ack_timeout_s
        lane = [record.offset for message, record in records if message.alert_lane]
        ranges = ranges_of(record for message, record in records if not message.alert_lane)
        # What is sent again after an error may come to lie behind what was sent later.
        return SentMessages(dict(Counter(m.kind for m in messages)), min(lane), len(lane), ranges)

    def send_end(self, cluster: str, tick_ms: int, seq: int, end: dict[str, Any]) -> None:
        """Write the ``tick_end`` message.

        Raises:
            PublishError: it was not acknowledged in time.
        """
        message = encode_end(cluster, tick_ms, seq, end)
        try:
            self._acknowledged(message, self._send(message), time.monotonic() + self._ack_timeout_s)
        except PublishError:
            self._give_up()
            raise

    def close(self, timeout_s: float = 1.0) -> None:
        """Give up what is not acknowledged within ``timeout_s`` seconds, and disconnect."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with contextlib.suppress(KafkaError):
                producer.close(timeout_s)

    def _send(self, message: Message) -> Any:
        try:
            return self._connect().send(
                self._settings.ticks.topic,
                key=message.key,
                value=message.value,
                partition=self._lane(message),
            )
        except KafkaError as error:
            raise PublishError(f"{message.kind} was not sent ({type(error).__name__})") from None

    def _connect(self) -> KafkaProducer:
        if self._producer is None:
            options = self._options()
            servers = options.pop("bootstrap_servers")
            self._producer = connect_to_first(
                servers,
                lambda server: KafkaProducer(bootstrap_servers=[server], **options),
                _discard,
                options["bootstrap_timeout_ms"] / 1000,
            )
        return self._producer

    def _give_up(self) -> None:
        # What was not acknowledged in time must not be written later, among other ticks; and a producer whose batches
        # expired while a leader was away does not find the new one. So the next tick gets a producer of its own.
        producer, self._producer = self._producer, None
        if producer is not None:
            _discard(producer)
        # It has to connect first: on a machine with much to do that may take all of the usual time, each time.
        self._patience_s = min(2 * self._patience_s, max(self._ack_timeout_s, _FIRST_ACK_S))

    def _lane(self, message: Message) -> int:
        if message.alert_lane or self._partitions == 1:
            return ALERT_PARTITION
        self._turn = self._turn % (self._partitions - 1) + 1
        return self._turn

    def _acknowledged(self, message: Message, future: Any, deadline: float) -> Any:
        try:
            return future.get(timeout=max(0.001, deadline - time.monotonic()))
        except KafkaError as error:
            raise PublishError(f"{message.kind} was not acknowledged ({type(error).__name__})") from None

    def _options(self) -> dict[str, Any]:
        timeout_ms = max(1000, int(self._ack_timeout_s * 1000))
        patience_ms = max(timeout_ms, int(self._patience_s * 1000))
        return ticks_options(self._settings) | {
            "acks": "all",
            "compression_type": "zstd",
            "linger_ms": 2,
            "batch_size": 262_144,
            "max_block_ms": patience_ms,
            "bootstrap_timeout_ms": patience_ms,
            "request_timeout_ms": max(2000, timeout_ms),
            "delivery_timeout_ms": max(5000, 3 * timeout_ms, patience_ms),
        }


def ranges_of(records: Iterable[Any]) -> dict[int, tuple[int, int]]:
    """Return by partition the first offset of acknowledged records and the one behind their last."""
    offsets: dict[int, list[int]] = defaultdict(list)
    for record in records:
        offsets[record.partition].append(record.offset)
    return {partition: (min(found), max(found) + 1) for partition, found in offsets.items()}


def _discard(producer: KafkaProducer) -> None:
    producer._sender.force_close()
    with contextlib.suppress(KafkaError):
        producer.close(0)
