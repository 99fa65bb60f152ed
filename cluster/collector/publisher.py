"""Publishes ticks to their topic: the alert partition first, ``tick_end`` only after all else is acknowledged."""

from __future__ import annotations

import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaError, KafkaTimeoutError

from headroom.cluster.collector.other_collectors import CollectorId
from headroom.cluster.collector.rows.encoder import Message, encode_end
from headroom.cluster.collector.ticks_topic import ensure_topic
from headroom.cluster.connection.admin_connection import ticks_options
from headroom.cluster.connection.bootstrap import connect_to_first
from headroom.cluster.connection.new_client import create_no_topics
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.tick_messages import ALERT_PARTITION

# The first tick also waits for connections, and for leader elections of a new topic.
_FIRST_ACK_S = 10.0


class PublishError(Exception):
    """A message of a tick was not acknowledged; the text names its kind and the reason."""


@dataclass(frozen=True)
class SentMessages:
    """Messages of a tick that were acknowledged before its end.

    Attributes:
        messages: number of messages per kind.
        first_offset: offset of the first message in the alert partition.
        lane_messages: number of messages in the alert partition of the kinds that count there.
        ranges: first and end offset of the other messages, by partition.
    """

    messages: dict[str, int]
    first_offset: int
    lane_messages: int
    ranges: Mapping[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class TickTiming:
    """When a tick was collected.

    Attributes:
        started_ms: start of the collection, epoch milliseconds.
        ended_ms: time when all rows were acknowledged.
        interval_ms: interval of the collector's ticks.
        rate_window_ms: minimum time over which rates are measured.
        lateness_ms: delay of the start after its scheduled time.
        skipped_ticks: scheduled ticks that were skipped before this one.
    """

    started_ms: int
    ended_ms: int
    interval_ms: int
    rate_window_ms: int
    lateness_ms: int = 0
    skipped_ticks: int = 0


def tick_end(
    sent: SentMessages,
    timing: TickTiming,
    *,
    unanswered: Sequence[dict[str, Any]] = (),
    metadata_age_ms: int = 0,
    collector: CollectorId | None = None,
    is_none_migrating: bool = False,
) -> dict[str, Any]:
    """Return the content of a ``tick_end`` message, in the columns of ``schemas.tick_messages.TICK_END``.

    Args:
        sent: the acknowledged messages of the tick.
        timing: when it was collected.
        unanswered: brokers whose rows are missing, with the reason.
        metadata_age_ms: age of the oldest partition metadata at the tick.
        collector: writer of the tick; None leaves its columns out.
        is_none_migrating: whether it is known that no migration is agreed about.
    """
    ranges = [
        {"partition": partition, "first_offset": first, "end_offset": end}
        for partition, (first, end) in sorted(sent.ranges.items())
    ]
    return {
        **asdict(timing),
        "messages": ({"migrations": 0} if is_none_migrating else {}) | sent.messages,
        "unanswered": list(unanswered),
        "first_offset": sent.first_offset,
        "lane_messages": sent.lane_messages,
        "metadata_age_ms": metadata_age_ms,
        "ranges": ranges,
        **({} if collector is None else collector.columns()),
    }


class Publisher:
    """Producer of the ticks topic; creates the topic if it does not exist.

    Args:
        settings: location and configuration of the topic.
        ack_timeout_s: longest wait for the acknowledgements of one tick, seconds.
    """

    def __init__(self, settings: Settings, ack_timeout_s: float) -> None:
        self._settings = settings
        self._ack_timeout_s = ack_timeout_s
        self._producer: KafkaProducer | None = None
        self._partitions = 1
        self._last_partition = 0
        self._wait_s = max(ack_timeout_s, _FIRST_ACK_S)

    def open(self) -> None:
        """Create the topic if it does not exist, and connect.

        Raises:
            HeadroomError: the cluster of the ticks topic cannot be reached, or refuses.
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
        """Write a tick's messages and return their counts and offsets.

        Raises:
            PublishError: a message was not acknowledged in time.
        """
        deadline = time.monotonic() + self._wait_s
        try:
            self._follow_topic()
            futures = [(message, self._send(message)) for message in messages]
            records = [(message, self._await_ack(message, future, deadline)) for message, future in futures]
        except Exception:
            self._give_up()
            raise
        self._wait_s = self._ack_timeout_s
        alert_offsets = [record.offset for message, record in records if message.for_alerts]
        ranges = ranges_of(record for message, record in records if not message.for_alerts)
        # min(), because a retried message may be written after later ones.
        counts = dict(Counter(message.kind for message in messages))
        counted = sum(message.is_counted for message in messages)
        return SentMessages(counts, min(alert_offsets), counted, ranges)

    def send_end(self, cluster: str, tick_ms: int, seq: int, end: dict[str, Any]) -> None:
        """Write the ``tick_end`` message.

        Raises:
            PublishError: it was not acknowledged in time.
        """
        message = encode_end(cluster, tick_ms, seq, end)
        try:
            self._await_ack(message, self._send(message), time.monotonic() + self._ack_timeout_s)
        except Exception:
            self._give_up()
            raise

    def close(self, timeout_s: float = 1.0) -> None:
        """Disconnect; messages not acknowledged within ``timeout_s`` seconds are dropped."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with contextlib.suppress(KafkaError):
                producer.close(timeout_s)

    def _follow_topic(self) -> None:
        """Update the number of partitions if the producer is new: the topic may have been deleted or created again.

        Raises:
            PublishError: no broker could be reached, or the topic cannot be created.
        """
        if self._producer is not None:
            return
        topic = self._settings.ticks.topic
        try:
            producer = self._connect()
            try:
                self._partitions = len(producer.partitions_for(topic))
            except KafkaTimeoutError:
                # A broker was reached, so that the topic is missing.
                self._partitions = ensure_topic(self._settings, retry_for_s=0.0)
        except KafkaError as error:
            raise PublishError(f"topic {topic} could not be read ({type(error).__name__})") from None
        except HeadroomError as error:
            raise PublishError(str(error)) from None

    def _send(self, message: Message) -> Any:
        try:
            return self._connect().send(
                self._settings.ticks.topic,
                key=message.key,
                value=message.value,
                partition=self._partition_of(message),
            )
        # ValueError: the topic was created again with fewer partitions.
        except (KafkaError, ValueError) as error:
            raise PublishError(f"the message {message.kind} was not sent ({type(error).__name__})") from None

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
            create_no_topics(self._producer._metadata)
        return self._producer

    def _give_up(self) -> None:
        # A message that was not acknowledged in time must not be written later, among other ticks. A producer whose
        # batches expired while a leader was away does not find the new leader. So the next tick gets a new producer.
        producer, self._producer = self._producer, None
        if producer is not None:
            _discard(producer)
        # The new producer connects first, which on a busy machine may take the whole usual wait.
        self._wait_s = min(2 * self._wait_s, max(self._ack_timeout_s, _FIRST_ACK_S))

    def _partition_of(self, message: Message) -> int:
        if message.for_alerts or self._partitions == 1:
            return ALERT_PARTITION
        self._last_partition = self._last_partition % (self._partitions - 1) + 1
        return self._last_partition

    def _await_ack(self, message: Message, future: Any, deadline: float) -> Any:
        try:
            return future.get(timeout=max(0.001, deadline - time.monotonic()))
        except KafkaError as error:
            topic, why = self._settings.ticks.topic, type(error).__name__
            rule = f"the message {message.kind} was not acknowledged by topic {topic} ({why})"
            raise PublishError(f"{rule}. `headroom check` names what keeps the topic from being written") from None

    def _options(self) -> dict[str, Any]:
        timeout_ms = max(1000, int(self._ack_timeout_s * 1000))
        wait_ms = max(timeout_ms, int(self._wait_s * 1000))
        return ticks_options(self._settings) | {
            "acks": "all",
            "compression_type": "zstd",
            "linger_ms": 2,
            "batch_size": 262_144,
            "max_block_ms": wait_ms,
            "bootstrap_timeout_ms": wait_ms,
            "request_timeout_ms": max(2000, timeout_ms),
            "delivery_timeout_ms": max(5000, 3 * timeout_ms, wait_ms),
        }


def ranges_of(records: Iterable[Any]) -> dict[int, tuple[int, int]]:
    """Return the first and the end offset of acknowledged records, by partition."""
    offsets: dict[int, list[int]] = defaultdict(list)
    for record in records:
        offsets[record.partition].append(record.offset)
    return {partition: (min(acknowledged), max(acknowledged) + 1) for partition, acknowledged in offsets.items()}


def _discard(producer: KafkaProducer) -> None:
    producer._sender.force_close()
    with contextlib.suppress(KafkaError):
        producer.close(0)
