"""Route of the records that a producer writes to one partition in a migration."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from kafka import KafkaProducer, TopicPartition
from kafka.errors import KafkaError, KafkaTimeoutError

from headroom.planning.migration import MigrationStatus, Split, place
from headroom.routing.producer.futures import RoutedFuture, TargetFuture, failed
from headroom.schemas.migrations import AcknowledgedEnd

# From these on the origin has no offset below its end left.
_ORIGIN_IS_FULL = (MigrationStatus.MIGRATED, MigrationStatus.AGED)


# Value, key, headers, and time in epoch milliseconds, which is given because both clusters have to get the same.
RoutedRecord = tuple[bytes | None, bytes | None, list[tuple[str, bytes]] | None, int]


class UnknownFateError(KafkaError):
    """The origin stored the record, but did not report where; so it is neither acknowledged nor moved."""


class _Batch:
    """Records that the origin's producer sends together: it has all of them, in this order, or none.

    The answer to the first one shows which one is the last, and the answer to that one that all are answered. The
    future of the whole batch is not asked, because nobody is called back if kafka-python splits a batch.
    """

    __slots__ = ("_at_answer", "futures", "is_answered")

    def __init__(self, futures: list[RoutedFuture], at_answer: Callable[[_Batch], None]) -> None:
        self.futures = futures
        self.is_answered = False
        self._at_answer = at_answer

    def success(self, _: Any) -> None:
        """Note that a record is answered, either way."""
        self._at_answer(self)

    failure = success


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
        self._topic, self._partition = name
        self._origin = origin
        self._target = target
        self._at_new_epoch = at_new_epoch
        self._max_held_bytes = max_held_bytes
        self._max_block_s = origin.config["max_block_ms"] / 1000
        # Re-entrant, because a producer calls back at once if a future is done already.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._split: Split | None = None
        self._kept_below: float = math.inf
        self._sent: deque[_Batch] = deque()
        # kafka-python's future of the batch that is last in the queue and takes more records; None: of none.
        self._open: Any = None
        self._beyond: deque[RoutedFuture] = deque()
        self._waiting: deque[RoutedFuture] = deque()
        self._held_bytes = 0
        self._stopped = False
        self._has_moved = False
        self._closed = False
        # Outcome of what is not decided when the route ends; None until then.
        self._ended: Any = None
        self._epoch: int | None = None
        self._leader: int | None = None
        self._topic_id: Any = None
        self._acknowledged_end: int | None = None
        self.shift: int | None = None

    @property
    def split(self) -> Split | None:
        """Split that this route keeps to; None: all records stay on the origin."""
        return self._split

    @property
    def is_leaving(self) -> bool:
        """Whether the origin has lost records and is left, and something that was sent before is on its way there."""
        with self._lock:
            split = self._split
            return split is not None and split.origin_closed and split.is_in_use and bool(self._sent)

    @property
    def has_passed(self) -> bool:
        """Whether it has moved a record behind an end offset for which a nearer one is to be agreed now."""
        with self._lock:
            split = self._split
            return split is not None and split.reopened_end is not None and self._has_moved

    def send(
        self, value: bytes | None, key: bytes | None, headers: list[tuple[str, bytes]] | None, timestamp_ms: int
    ) -> RoutedFuture | TargetFuture:
        """Send a record; every one below the end offset comes through here.

        Args:
            value: value; None for a tombstone.
            key: key; None without.
            headers: headers; None without.
            timestamp_ms: time of the record, epoch milliseconds; the same on both clusters.

        Raises:
            KafkaTimeoutError: too much is held, and was so for the origin's max_block_ms.
            KafkaError: as the producer's ``send``.
        """
        # Not by ``with``, which takes twice as long.
        self._lock.acquire()
        try:
            if self._stopped:
                self._wait_for_room(len(key or b"") + len(value or b""))
                if self._stopped:
                    return self._hold((value, key, headers, timestamp_ms))
            answer = self._origin.send(self._topic, value, key, headers, self._partition, timestamp_ms)
            future = RoutedFuture((value, key, headers, timestamp_ms), answer)
            self._await(future)
            return future
        finally:
            self._lock.release()

    def sent_before(self, record: RoutedRecord, answer: Any) -> RoutedFuture:
        """Take over a record that was sent to the origin while this route was being made.

        Args:
            record: the record.
            answer: future of the origin's producer.
        """
        future = RoutedFuture(record, answer)
        with self._lock:
            # Alone, because records behind it in its batch may be known here already.
            self._open = None
            self._await(future)
            self._open = None
        return future

    def adopt(self, split: Split | None) -> None:
        """Keep to another split; None: to none, because the migration was withdrawn."""
        with self._changed:
            self._split = split
            self._kept_below = self._kept_limit()
            held, self._beyond = self._beyond, deque()
            kept: list[RoutedFuture] = []
            for future in held:
                (kept if future.answer.value.offset < self._kept_below else self._beyond).append(future)
            # Once the target is in use, what follows a moved record goes there too. What is held at a nearer end offset
            # follows none, and the origin has room for it if that is given up.
            self._stopped = (
                self._closed
                or bool(self._beyond)
                or _is_straight(split)
                or (self._has_moved and split is not None and split.is_in_use)
            )
            done = self._keep(kept)
            done += self._advance()
            self._changed.notify_all()
        _decide(done)

    def check_epoch(self) -> None:
        """Report what the leader before had acknowledged if there is a new one."""
        with self._changed:
            self._note_epoch()

    def flush(self, timeout_s: float | None) -> bool:
        """Wait until no record is held or on its way to the origin; return False if some are when time is up."""
        with self._changed:
            return self._changed.wait_for(lambda: not (self._sent or self._beyond or self._waiting), timeout_s)

    def end(self, why: str) -> None:
        """Fail the records that are held, because nothing will be agreed; those on their way are still answered.

        Args:
            why: reason, for people.
        """
        with self._changed:
            self._ended = failed(KafkaError(f"the cluster of this record was not decided ({self._name}): {why}"))
            self._closed = self._stopped = True
            left = [*self._beyond, *self._waiting]
            self._beyond.clear()
            self._waiting.clear()
            self._changed.notify_all()
        for future in left:
            future.decide(self._ended)

    def close(self) -> None:
        """Fail all records that are not decided."""
        error = failed(KafkaTimeoutError(f"closed before the cluster of this record was decided ({self._name})"))
        with self._changed:
            self._closed = self._stopped = True
            left = [future for batch in self._sent for future in batch.futures]
            left += [*self._beyond, *self._waiting]
            for queue in (self._sent, self._beyond, self._waiting):
                queue.clear()
            self._changed.notify_all()
        for future in left:
            future.decide(error)

    def _hold(self, record: RoutedRecord) -> RoutedFuture | TargetFuture:
        if self.shift is not None:
            # It became straight while this waited.
            return TargetFuture(self._to(self._target, record), self.shift)
        future = RoutedFuture(record)
        self._waiting.append(future)
        self._held_bytes += len(record[0] or b"") + len(record[1] or b"")
        return future

    def _to(self, producer: KafkaProducer, record: RoutedRecord) -> Any:
        value, key, headers, timestamp_ms = record
        return producer.send(self._topic, value, key, headers, self._partition, timestamp_ms)

    def _wait_for_room(self, size_bytes: int) -> None:
        deadline = time.monotonic() + self._max_block_s
        while self._stopped and self._waiting and self._held_bytes + size_bytes > self._max_held_bytes:
            if not self._changed.wait(deadline - time.monotonic()):
                raise KafkaTimeoutError(
                    f"{self._held_bytes} bytes for {self._name} wait for the migration to start, and no more are taken"
                )
        if self._closed:
            raise KafkaTimeoutError(f"the producer is closed ({self._name})")

    def _await(self, future: RoutedFuture) -> None:
        """Await the answer to a record that was just sent to the origin."""
        answer = future.answer
        if answer._produce_future is self._open:
            self._sent[-1].futures.append(future)
            return
        batch = _Batch([future], self._at_answer)
        self._sent.append(batch)
        self._open = answer._produce_future
        answer.chain(batch)

    def _at_answer(self, batch: _Batch) -> None:
        first, last = batch.futures[0].answer, batch.futures[-1].answer
        if not last.is_done and last._produce_future is first._produce_future:
            # Without the lock: while another thread sends, it would be waited for.
            last.chain(batch)
            return
        with self._lock:
            # Now nothing is on its way into the batch, and nothing will be.
            if self._sent and batch is self._sent[-1]:
                self._open = None
            last = batch.futures[-1].answer
            if last._produce_future is not first._produce_future:
                last = self._split_off(batch, first._produce_future)
            batch.is_answered = last.is_done
            done = self._settle() if batch.is_answered else []
            # Nothing is held otherwise, and nobody waits.
            may_advance = batch.is_answered and (self._stopped or not self._sent)
        if not batch.is_answered:
            last.chain(batch)
        # Before others are moved, whose callbacks would overtake these.
        _decide(done)
        if may_advance:
            with self._changed:
                failures = self._advance()
                self._changed.notify_all()
            _decide(failures)

    def _split_off(self, batch: _Batch, produced: Any) -> Any:
        """Make a batch of those records that kafka-python sends as another one; return the last answer of the others.

        It does so with batches that are too large for a broker.
        """
        others = [future for future in batch.futures if future.answer._produce_future is not produced]
        del batch.futures[-len(others) :]
        rest = _Batch(others, self._at_answer)
        if batch in self._sent:
            self._sent.insert(self._sent.index(batch) + 1, rest)
        others[0].answer.chain(rest)
        return batch.futures[-1].answer

    def _settle(self) -> list[RoutedFuture]:
        """Take answered batches off the first queue; return the decided records with their outcomes."""
        done: list[RoutedFuture] = []
        while self._sent and self._sent[0].is_answered:
            futures = self._sent.popleft().futures
            metadata = futures[-1].answer.value
            if metadata is not None and 0 <= metadata.offset < self._kept_below:
                done += self._keep(futures)
            else:
                for future in futures:
                    done += self._settle_one(future)
        return done

    def _settle_one(self, future: RoutedFuture) -> list[RoutedFuture]:
        answer = future.answer
        if answer.exception is not None:
            return [future]
        if answer.value.offset < 0:
            if self._split is None:
                # Acknowledged, as without the library.
                return [future]
            future.answer = failed(UnknownFateError(f"no offset was reported ({self._name})"))
            return [future]
        if answer.value.offset < self._kept_below:
            return self._keep([future])
        self._stopped = True
        if self._ended is not None:
            future.answer = self._ended
            return [future]
        self._beyond.append(future)
        return []

    def _keep(self, futures: list[RoutedFuture]) -> list[RoutedFuture]:
        """Acknowledge records that are below the end offset, with known offsets."""
        if futures:
            self._note_epoch()
            self._acknowledged_end = futures[-1].answer.value.offset + 1
        return futures

    def _advance(self) -> list[RoutedFuture]:
        """Send held records on as far as possible; return those that failed, with their errors."""
        done: list[RoutedFuture] = []
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
                self.shift, self._has_moved = shift, True
        self._held_bytes = self._held_bytes if self._waiting else 0
        return done

    def _send_held(self, future: RoutedFuture) -> list[RoutedFuture]:
        try:
            future.answer = self._to(self._origin, future.record)
        except Exception as error:  # of one record; the others must not wait for it
            future.answer = failed(error)
            return [future]
        self._await(future)
        return []

    def _move(self, future: RoutedFuture, shift: int) -> list[RoutedFuture]:
        self._has_moved = True
        try:
            future.answer = TargetFuture(self._to(self._target, future.record), shift)
        except Exception as error:  # as above
            future.answer = failed(error)
            return [future]
        # At once, because records behind it may be answered as soon as the route is straight.
        future.decide(future.answer)
        return []

    def _kept_limit(self) -> float:
        """Return the offset up to which records are read on the origin, exclusive; infinite without a migration."""
        if self._split is None:
            return math.inf
        end = self._split.origin_limit
        last = None if end is None else place(self._split, end - 1)
        # Where the last one is read, all before it are.
        return end if end is not None and last is not None and last.side == "origin" else 0

    def _shift_in_use(self) -> int | None:
        return self._split.shift if self._split is not None and self._split.is_in_use else None

    def _note_epoch(self) -> None:
        metadata = self._origin._metadata
        epoch = metadata.leader_epoch_for_partition(self._name)
        if epoch is None:
            # Whoever does not know the partition has no id of its topic either.
            return
        topic_id = metadata.topic_id(self._topic)
        # Newer metadata has another object. The same one is the usual case, and equal ids take longer to compare.
        if topic_id is not None and topic_id is not self._topic_id:
            if self._topic_id is not None and topic_id != self._topic_id:
                if metadata.leader_epoch_for_partition(self._name) != epoch:
                    # Metadata was replaced in between, and the epoch may be of the topic before.
                    return
                # It was recreated. No migration needs what the leaders of the topic before had acknowledged.
                self._epoch = self._leader = self._acknowledged_end = None
            self._topic_id = topic_id
        if epoch < 0 or (self._epoch is not None and epoch <= self._epoch):
            # A broker that is behind shows an earlier leader, which has acknowledged nothing of what came since.
            return
        leader = metadata.leader_for_partition(self._name)
        if metadata.leader_epoch_for_partition(self._name) != epoch:
            # Metadata was replaced in between, and who leads in this epoch is unknown.
            leader = None
        # With a smaller ISR or other replicas the epoch rises too. That leader has lost nothing, and acknowledged in
        # both epochs; with two steps at once there may have been another one in between.
        is_next = self._epoch is not None and epoch == self._epoch + 1
        is_same_leader = is_next and leader is not None and leader == self._leader
        if self._epoch is not None and self._acknowledged_end is not None and not is_same_leader:
            self._at_new_epoch(self._note(self._epoch, self._acknowledged_end))
        self._epoch, self._leader = epoch, leader

    def _note(self, epoch: int, end: int) -> AcknowledgedEnd:
        # The id of a topic is unique. A report may have thousands of notes.
        cluster_id = self._origin._metadata.cluster_id if self._topic_id is None else None
        topic_id = None if self._topic_id is None else str(self._topic_id)
        return AcknowledgedEnd(self._topic, self._partition, epoch, end, cluster_id, topic_id)


def _is_straight(split: Split | None) -> bool:
    """Return whether nothing is to be written to the origin, also before it has answered."""
    if split is None or not split.is_in_use:
        return False
    is_over = split.ignore_origin or split.origin_closed or split.origin_end is not None
    return is_over or split.status in _ORIGIN_IS_FULL


def _decide(futures: list[RoutedFuture]) -> None:
    """Call back outside the lock, because a caller's callback may send."""
    for future in futures:
        future.decide(future.answer)
