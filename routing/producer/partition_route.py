"""Route of the records that a producer writes to one partition in a migration."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from kafka import KafkaProducer, TopicPartition
from kafka.errors import KafkaError, KafkaTimeoutError

from headroom.planning.migration import MigrationStatus, Split, place
from headroom.routing.producer.futures import RoutedFuture, TargetFuture, shifted
from headroom.schemas.migrations import AcknowledgedEnd

# From these on the origin has no offset below its end left.
_ORIGIN_IS_FULL = (MigrationStatus.MIGRATED, MigrationStatus.AGED)


class UnknownFateError(KafkaError):
    """The origin stored the record, but did not report where; so it is neither acknowledged nor moved."""


class RoutedRecord(NamedTuple):
    """A record as it is sent.

    Attributes:
        value: value; None for a tombstone.
        key: key; None without.
        headers: headers; None without.
        timestamp_ms: time of the record, epoch milliseconds; the same on both clusters.
    """

    value: bytes | None
    key: bytes | None
    headers: list[tuple[str, bytes]] | None
    timestamp_ms: int

    @property
    def size_bytes(self) -> int:
        """Bytes of key and value."""
        return len(self.key or b"") + len(self.value or b"")


class _Entry:
    """A record that is not decided yet. answer: the origin's metadata or error; None if there is none yet."""

    __slots__ = ("answer", "future", "record")

    def __init__(self, record: RoutedRecord) -> None:
        self.record = record
        self.future = RoutedFuture()
        self.answer: Any = None


class PartitionRoute:
    """Sends records to the origin until one lands at or beyond the end offset, and then all to the target.

    Answers are settled in the order in which the records were sent. Three queues follow each other: records on their
    way to the origin, records that landed at or beyond the end offset, and records that have not been sent yet. While
    the migration is planned the second and the third wait. If the end offset is moved on they are acknowledged, or
    sent to the origin; when the migration starts they go to the target, in this order. Then the route is straight.

    Attributes:
        shift: client offset minus offset on the target, once all records go straight there, and for good; else None.
    """

    def __init__(
        self,
        name: TopicPartition,
        origin: KafkaProducer,
        target: KafkaProducer,
        at_new_epoch: Callable[[AcknowledgedEnd], None],
        max_held_bytes: int,
    ) -> None:
        """Describe a route that keeps all records on the origin until ``adopt``.

        Args:
            name: topic and partition.
            origin: producer of the origin.
            target: producer of the target.
            at_new_epoch: called with what the leader before had acknowledged.
            max_held_bytes: limit of keys and values that are not sent yet; then ``send`` waits, as long as the origin's
                producer would (max_block_ms).
        """
        self._name = name
        self._origin = origin
        self._target = target
        self._at_new_epoch = at_new_epoch
        self._max_held_bytes = max_held_bytes
        self._max_block_s = origin.config["max_block_ms"] / 1000
        # Re-entrant, because a producer calls back at once if a future is done already.
        self._changed = threading.Condition()
        self._split: Split | None = None
        self._sent: deque[_Entry] = deque()
        self._beyond: deque[_Entry] = deque()
        self._waiting: deque[_Entry] = deque()
        self._held_bytes = 0
        self._stopped = False
        self._closed = False
        self._epoch: int | None = None
        self._acknowledged_end: int | None = None
        self.shift: int | None = None

    @property
    def split(self) -> Split | None:
        """Split that this route keeps to; None: all records stay on the origin."""
        return self._split

    def send(self, record: RoutedRecord) -> RoutedFuture | TargetFuture:
        """Send a record.

        Raises:
            KafkaTimeoutError: too much is held, and was so for the origin's max_block_ms.
            KafkaError: as the producer's ``send``.
        """
        with self._changed:
            self._wait_for_room(record.size_bytes)
            if self.shift is None:
                return self._accept(record)
        # It became straight while this waited.
        return TargetFuture(self._to(self._target, record), self.shift)

    def sent_before(self, record: RoutedRecord, answer: Any) -> RoutedFuture:
        """Take over a record that was sent to the origin while this route was being made.

        Args:
            record: the record.
            answer: future of the origin's producer.
        """
        entry = _Entry(record)
        with self._changed:
            self._follow(entry, answer)
        return entry.future

    def adopt(self, split: Split | None) -> None:
        """Keep to another split; None: to none, because the migration was withdrawn."""
        with self._changed:
            self._split = split
            held, self._beyond = self._beyond, deque()
            decided: list[_Entry] = []
            for entry in held:
                is_kept = self._cluster_of(entry.answer.offset) == "origin"
                (decided if is_kept else self._beyond).append(entry)
            # Once the target is in use, what follows a moved record goes there too.
            self._stopped = (
                bool(self._beyond) or _is_straight(split) or (self._stopped and split is not None and split.is_in_use)
            )
            done = [(entry.future.success, entry.answer) for entry in decided]
            self._acknowledge(decided)
            done += self._advance()
        _call(done)

    def check_epoch(self) -> None:
        """Report what the leader before had acknowledged if there is a new one."""
        with self._changed:
            self._note_epoch()

    def flush(self, timeout_s: float | None) -> bool:
        """Wait until no record is held or on its way to the origin; return False if some are when time is up."""
        with self._changed:
            return self._changed.wait_for(lambda: not (self._sent or self._beyond or self._waiting), timeout_s)

    def close(self) -> None:
        """Fail all records that are not decided."""
        with self._changed:
            self._closed = True
            left = [*self._sent, *self._beyond, *self._waiting]
            for queue in (self._sent, self._beyond, self._waiting):
                queue.clear()
            self._changed.notify_all()
        error = KafkaTimeoutError(f"closed before the cluster of this record was decided ({self._name})")
        _call([(entry.future.failure, error) for entry in left])

    def _accept(self, record: RoutedRecord) -> RoutedFuture:
        entry = _Entry(record)
        if self._stopped:
            self._waiting.append(entry)
            self._held_bytes += record.size_bytes
        else:
            self._follow(entry, self._to(self._origin, record))
        return entry.future

    def _wait_for_room(self, size_bytes: int) -> None:
        deadline = time.monotonic() + self._max_block_s
        while self._stopped and self._waiting and self._held_bytes + size_bytes > self._max_held_bytes:
            if not self._changed.wait(deadline - time.monotonic()):
                raise KafkaTimeoutError(
                    f"{self._held_bytes} bytes for {self._name} wait for the migration to start, and no more are taken"
                )
        if self._closed:
            raise KafkaTimeoutError(f"the producer is closed ({self._name})")

    def _to(self, producer: KafkaProducer, record: RoutedRecord) -> Any:
        topic, partition = self._name
        return producer.send(topic, record.value, record.key, record.headers, partition, record.timestamp_ms)

    def _follow(self, entry: _Entry, answer: Any) -> None:
        self._sent.append(entry)
        answer.add_both(partial(self._answered, entry))

    def _answered(self, entry: _Entry, answer: Any) -> None:
        with self._changed:
            entry.answer = answer
            done = self._settle()
            done += self._advance()
        _call(done)

    def _settle(self) -> list[tuple[Callable[[Any], object], Any]]:
        """Take answered records off the first queue; return the futures that are decided, with their results."""
        done: list[tuple[Callable[[Any], object], Any]] = []
        kept: list[_Entry] = []
        while self._sent and self._sent[0].answer is not None:
            entry = self._sent.popleft()
            if isinstance(entry.answer, BaseException):
                done.append((entry.future.failure, entry.answer))
            elif entry.answer.offset < 0 and self._split is not None:
                done.append((entry.future.failure, UnknownFateError(f"no offset was reported ({self._name})")))
            elif self._cluster_of(entry.answer.offset) == "origin":
                kept.append(entry)
                done.append((entry.future.success, entry.answer))
            else:
                self._stopped = True
                self._beyond.append(entry)
        self._acknowledge(kept)
        return done

    def _advance(self) -> list[tuple[Callable[[Any], object], Any]]:
        """Send held records on as far as possible; return the futures that failed, with their errors."""
        done: list[tuple[Callable[[Any], object], Any]] = []
        if not self._stopped:
            # One that is answered at once may be at the end offset.
            while self._waiting and not self._stopped:
                done += self._send_held(self._waiting.popleft())
        elif (shift := self._shift_in_use()) is not None:
            while self._beyond:
                done += self._move(self._beyond.popleft(), shift)
            # Behind an unanswered record that may have to be moved too, nothing goes to the target.
            if not self._sent:
                while self._waiting:
                    done += self._move(self._waiting.popleft(), shift)
                self.shift = shift
        self._held_bytes = self._held_bytes if self._waiting else 0
        self._changed.notify_all()
        return done

    def _send_held(self, entry: _Entry) -> list[tuple[Callable[[Any], object], Any]]:
        try:
            self._follow(entry, self._to(self._origin, entry.record))
        except Exception as error:  # of one record; the others must not wait for it
            return [(entry.future.failure, error)]
        return []

    def _move(self, entry: _Entry, shift: int) -> list[tuple[Callable[[Any], object], Any]]:
        try:
            answer = self._to(self._target, entry.record)
        except Exception as error:  # as above
            return [(entry.future.failure, error)]
        answer.add_callback(lambda metadata: entry.future.success(shifted(metadata, shift)))
        answer.add_errback(entry.future.failure)
        return []

    def _cluster_of(self, offset: int) -> str | None:
        if self._split is None:
            return "origin"
        found = place(self._split, offset)
        return None if found is None else found.side

    def _shift_in_use(self) -> int | None:
        return self._split.shift if self._split is not None and self._split.is_in_use else None

    def _acknowledge(self, entries: list[_Entry]) -> None:
        if entries:
            self._note_epoch()
            self._acknowledged_end = entries[-1].answer.offset + 1

    def _note_epoch(self) -> None:
        epoch = self._origin._metadata.leader_epoch_for_partition(self._name)
        if epoch is None or epoch < 0:
            return
        if self._epoch is not None and epoch > self._epoch and self._acknowledged_end is not None:
            self._at_new_epoch(
                AcknowledgedEnd(self._name.topic, self._name.partition, self._epoch, self._acknowledged_end)
            )
        self._epoch = epoch


def _is_straight(split: Split | None) -> bool:
    """Return whether nothing is to be written to the origin, also before it has answered."""
    if split is None or not split.is_in_use:
        return False
    return split.status in _ORIGIN_IS_FULL or split.ignore_origin or split.origin_end is not None


def _call(done: list[tuple[Callable[[Any], object], Any]]) -> None:
    """Call outside the lock, because a caller's callback may send."""
    for resolve, result in done:
        resolve(result)
