"""Producer of an application, which passes the switch of its partitions to another cluster."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from types import TracebackType
from typing import Any

from kafka import KafkaProducer, TopicPartition
from kafka.errors import IllegalStateError, KafkaError, KafkaTimeoutError

from headroom.routing.agreement import AgreementReader
from headroom.routing.clients import renew_producer_id, require_options, require_two_clusters, require_version
from headroom.routing.follower import AgreementFollower
from headroom.routing.producer.futures import TargetFuture
from headroom.routing.producer.partition_route import PartitionRoute, RoutedRecord
from headroom.routing.reporter import Reporter
from headroom.schemas.errors import HeadroomError

log = logging.getLogger(__name__)
# Between two looks at the agreements, and longest time of one, seconds: a look ends as soon as something is new.
_FOLLOW_S, _LOOK_S = 0.02, 0.1
# Limit of a flush between reading an agreement and reporting it, seconds.
_FLUSH_S = 5.0
# The leader of a partition may change unseen by a producer that writes nothing, and its epoch by any. kafka-python asks
# every five minutes.
_METADATA_S = 5.0
# Wait after an error, seconds.
_AGAIN_S = 1.0
# A record that is held has to be the bytes that its sender saw, and both clusters have to get the same.
_NEEDED = {"transactional_id": None, "key_serializer": None, "value_serializer": None}
_ACKS = {-1: "all", 0: "0", 1: "1"}

_Routes = dict[str, dict[int, PartitionRoute]]


class RoutedProducer:
    """Writes to the origin up to the end offset of each partition, and then to the target.

    Used as a ``KafkaProducer``, from any thread. Offsets of metadata are client offsets. Topics without a migration go
    to the origin as they are, and their futures are the origin's own.
    """

    def __init__(
        self,
        origin: KafkaProducer,
        target: KafkaProducer,
        reader: AgreementReader,
        name: str,
        key_serializer: Callable[[Any], bytes] | None = None,
        value_serializer: Callable[[Any], bytes] | None = None,
        max_held_bytes: int = 4 * 1024 * 1024,
    ) -> None:
        """Read what is agreed, and keep to it.

        Args:
            origin: producer of the origin, with acks 1 or "all" and without serializers. Its partitioner is used.
            target: producer of the target, likewise.
            reader: reader of the agreement topic, for this producer alone.
            name: name of this process among all routers.
            key_serializer: returns the bytes of a key; None: keys are bytes.
            value_serializer: returns the bytes of a value; None: values are bytes.
            max_held_bytes: limit of keys and values per partition that wait for a start; then ``send`` waits.

        Raises:
            HeadroomError: a client has another option, the clusters are one, or the agreements cannot be read.
        """
        require_version()
        for cluster, producer in (("origin", origin), ("target", target)):
            require_options(f"producer of the {cluster}", producer.config, _NEEDED)
            if producer.config["acks"] == 0:
                rule = "acks is 0, so that the offset of a record is unknown"
                raise HeadroomError(f"producer of the {cluster}", rule, 'Set acks to "all", or to 1.')
        if hasattr(origin.config["partitioner"], "on_new_batch"):
            rule = "its partitioner needs to know batches, which are not known for both clusters"
            raise HeadroomError("producer of the origin", rule, "Set partitioner to a DefaultPartitioner.")
        clusters = require_two_clusters(origin._metadata, target._metadata)
        self._origin = origin
        self._target = target
        self._reader = reader
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        self._max_held_bytes = max_held_bytes
        self._partition = origin.config["partitioner"].partition
        self._reporter = Reporter(name, "producer", _ACKS[origin.config["acks"]], target)
        self._follower = AgreementFollower(reader, self._reporter, clusters)
        # Replaced as a whole, never changed: ``send`` reads it without a lock.
        self._routes: _Routes = {}
        # Topics of which the origin has nothing that counts: it may have been deleted there.
        self._left: frozenset[str] = frozenset()
        self._failure: Exception | None = None
        self._is_adopted = False
        self._is_guarded = True
        self._next_metadata_s = 0.0
        self._following = threading.Lock()
        self._closing = threading.Event()
        self.follow()
        self._thread = threading.Thread(target=self._run, name=f"routed-producer-{name}", daemon=True)
        self._thread.start()

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: list[tuple[str, bytes]] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Any:
        """Send a record, and return the future of its metadata; the arguments are those of ``KafkaProducer.send``.

        Raises:
            HeadroomError: the agreements cannot be read any more, so nothing is written.
            KafkaError: as ``KafkaProducer.send``; also KafkaTimeoutError if too much is held.
        """
        if self._failure is not None:
            raise self._failure
        if self._key_serializer is not None and key is not None:
            key = self._key_serializer(key)
        if self._value_serializer is not None and value is not None:
            value = self._value_serializer(value)
        routes = self._routes
        by_partition = routes.get(topic)
        if by_partition is not None:
            if partition is None:
                metadata = (self._target if topic in self._left else self._origin)._metadata
                partition = self._partition(topic, key, key, value, value, metadata)
            route = by_partition.get(partition)
            if route is not None:
                if key is None and value is None:
                    raise ValueError("Need at least one: key or value")
                if (shift := route.shift) is not None:
                    # Without the lock and without a record of ours, because this is how it stays after the switch.
                    answer = self._target.send(topic, value, key, headers, partition, timestamp_ms)
                    return TargetFuture(answer, shift)
                if timestamp_ms is None:
                    timestamp_ms = int(time.time() * 1000)
                return route.send(value, key, headers, timestamp_ms)
        answer = self._origin.send(topic, value, key, headers, partition, timestamp_ms)
        # Whoever replaced the routes before this line may not have waited for this record.
        if self._routes is not routes:
            if timestamp_ms is None:
                timestamp_ms = int(time.time() * 1000)
            return self._guard(answer, topic, (value, key, headers, timestamp_ms))
        return answer

    def flush(self, timeout: float | None = None) -> None:
        """Wait until every record that was sent is acknowledged or has failed.

        Args:
            timeout: longest wait, seconds; None: no limit.

        Raises:
            KafkaTimeoutError: some are not, for example because their migration has not started.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        self._origin.flush(_left(deadline))
        for route in self._all_routes():
            if not route.flush(_left(deadline)):
                raise KafkaTimeoutError("records are held until their migration starts, or wait for the origin")
        self._target.flush(_left(deadline))

    def close(self, timeout: float | None = None) -> None:
        """Flush, and close both producers and the reader; records that are still held fail.

        Args:
            timeout: longest wait for the flush, seconds; None: no limit.
        """
        if self._closing.is_set():
            return
        try:
            self.flush(timeout)
        except KafkaTimeoutError:
            log.warning("closed with records whose cluster is not decided")
        self._closing.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._failure = self._failure or IllegalStateError("the producer is closed")
        for route in self._all_routes():
            route.close()
        self._origin.close(timeout)
        self._target.close(timeout)
        self._reader.close()

    def __enter__(self) -> RoutedProducer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def partitions_for(self, topic: str) -> set[int] | None:
        """Return the partitions of a topic, which are the same on both clusters."""
        producer = self._target if topic in self._left else self._origin
        partitions: set[int] | None = producer.partitions_for(topic)
        return partitions

    def follow(self, wait_s: float = 0.0) -> None:
        """Adopt what is newly agreed, and report it; the producer's own thread does so all the time.

        Args:
            wait_s: longest wait for something that is new, seconds.

        Raises:
            HeadroomError: the agreements cannot be read, or another process has taken the name.
            KafkaError: a cluster did not answer.
        """
        with self._following:
            if self._follower.read(wait_s):
                self._is_adopted = False
            self._follower.require_same(self._origin._metadata, self._target._metadata)
            if not self._is_adopted:
                self._adopt()
                self._is_adopted = True
            for route in self._all_routes():
                route.check_epoch()
            self._ask_for_leaders()
            if not self._is_guarded:
                # Records sent before the routes were there have to be answered: they are acknowledged wherever they
                # land.
                self._origin.flush(_FLUSH_S)
                self._is_guarded = True
            # What is on its way to an origin that is left may land below its end offset. Of other partitions nothing is
            # waited for: one without a leader would hold up all.
            # And whoever has moved records behind an end offset keeps to that one: none of them may be on its way yet.
            if not any(route.is_leaving or route.has_passed for route in self._all_routes()):
                self._follower.report()

    def _run(self) -> None:
        wait_s = _FOLLOW_S
        while not self._closing.wait(wait_s):
            wait_s = _FOLLOW_S
            for producer in (self._origin, self._target):
                if renew_producer_id(producer):
                    log.warning("records have expired, and the producer asks for another id")
            try:
                self.follow(_LOOK_S)
            except (KafkaError, HeadroomError) as error:
                if self._follower.is_final(error):
                    log.error("nothing is written any more: %s", error)
                    self._failure = error
                    for route in self._all_routes():
                        route.end(str(error))
                    return
                # What is not known here has not started: it waits for this router.
                log.warning("agreements are read again later: %s", error)
                wait_s = _AGAIN_S

    def _ask_for_leaders(self) -> None:
        """Ask for newer metadata of the origin now and then, while records may be written there."""
        now_s = time.monotonic()
        if now_s >= self._next_metadata_s:
            self._next_metadata_s = now_s + _METADATA_S
            if any(route.shift is None for route in self._all_routes()):
                self._origin._metadata.request_update()

    def _adopt(self) -> None:
        splits = self._follower.splits()
        needed = {name.topic for name, split in splits.items() if not (split.is_in_use and split.is_origin_over)}
        self._left = frozenset(name.topic for name in splits) - needed
        refused = self._refused_topics(needed)
        new = [
            name
            for name in splits
            if name.topic not in refused and name.partition not in self._routes.get(name.topic, {})
        ]
        if new:
            routes = {topic: dict(by_partition) for topic, by_partition in self._routes.items()}
            for name in new:
                route = PartitionRoute(
                    TopicPartition(*name),
                    self._origin,
                    self._target,
                    self._reporter.acknowledged,
                    self._max_held_bytes,
                )
                route.adopt(splits[name])
                routes.setdefault(name.topic, {})[name.partition] = route
            self._is_guarded = False
            self._routes = routes
        for topic, by_partition in self._routes.items():
            for partition, route in by_partition.items():
                split = splits.get(TopicPartition(topic, partition))
                if split != route.split:
                    route.adopt(split)
        for error in refused.values():
            raise error

    def _refused_topics(self, needed: Collection[str]) -> dict[str, HeadroomError]:
        """Return the topics that have other partitions on the target than on the origin, with the errors.

        It looks up all topics, so that no later ``send`` has to wait for them.

        Args:
            needed: topics that are still written to the origin, or read there.
        """
        refused = {}
        for topic in sorted(needed):
            on_origin, on_target = self._origin.partitions_for(topic), self._target.partitions_for(topic)
            if on_origin != on_target:
                rule = f"the origin has {len(on_origin or ())} partitions, the target {len(on_target or ())}"
                remedy = "Give both the same number before you agree on a migration."
                refused[topic] = HeadroomError(f"topic {topic}", rule, remedy)
        for topic in sorted(self._left):
            self._target.partitions_for(topic)
        return refused

    def _guard(self, answer: Any, topic: str, record: RoutedRecord) -> Any:
        route = self._routes.get(topic, {}).get(answer._produce_future.topic_partition.partition)
        return answer if route is None else route.sent_before(record, answer)

    def _all_routes(self) -> list[PartitionRoute]:
        return [route for by_partition in self._routes.values() for route in by_partition.values()]


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())
