"""Incremental refresh of topic metadata: few topics are read completely, many in turn, changing topics first.

Parsing an answer with 200,000 partitions takes seconds. So each snapshot reads the topics that it needs (reassigned, or
with throttled replica lists), then the stale topics. It then continues through all others by name, page by page, fast
enough to finish a round in ``max_age_s``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from kafka.protocol.admin import DescribeTopicPartitionsRequest
from kafka.protocol.metadata import MetadataRequest

from headroom.cluster.connection.failover import BrokerFailover, MetadataError, UnsupportedRequestError
from headroom.cluster.metadata.topic_cache import TopicCache
from headroom.schemas.keys import TopicPartition

log = logging.getLogger(__name__)
# Up to this many partitions are read by one request, in some 10 ms.
WHOLE_PARTITIONS = 5000
# Partitions per request; a broker's own page limit is max.request.partition.size.limit.
_REQUEST_PARTITIONS = 2000
# Share of a snapshot's time for the stale topics, and the same share for the others.
_TIME_SHARE = 0.25
_SUBJECT = "metadata"
# Where the pages begin.
_FIRST = TopicPartition("", 0)


class TopicRefresh:
    """Keeps the cached topics up to date.

    Args:
        brokers: sends the requests.
        timeout_s: time for one snapshot's metadata, seconds.
        max_age_s: target maximum age of a topic, seconds.
        clock: monotonic seconds.

    Attributes:
        cache: the cached topics.
    """

    def __init__(self, brokers: BrokerFailover, timeout_s: float, max_age_s: float, clock: Callable[[], float]) -> None:
        self.cache = TopicCache()
        self._brokers = brokers
        self._timeout_s = timeout_s
        self._max_age_s = max_age_s
        self._clock = clock
        self._complete = False
        # DescribeTopicPartitions exists since Kafka 3.7; older brokers return topics by name, or all of them.
        self._pages = True
        self._next = ""
        self._unread = 0.0
        self._last_s: float | None = None

    def read(self, first: Collection[str]) -> Sequence[Any]:
        """Refresh the cached topics and return the brokers in the metadata.

        Args:
            first: topics to read in any case.

        Raises:
            MetadataError: no broker answered, or the first read of all topics is not complete.
        """
        began_s = self._clock()
        if not self._complete:
            brokers = self._read_first(began_s)
        elif len(self.cache.partitions()) <= WHOLE_PARTITIONS:
            brokers = self._read_all()
        else:
            brokers = self.read_named(first)
            # A broker that joined or left changes the leaders and ISRs of its topics.
            moved = set(self._brokers.alive).symmetric_difference(broker.node_id for broker in brokers)
            if moved:
                self.cache.mark_stale(self.cache.topics_on(moved))
            self._read_rest(first, began_s)
        self._last_s = began_s
        self._brokers.alive = [broker.node_id for broker in brokers]
        return brokers

    def read_named(self, topics: Collection[str]) -> Sequence[Any]:
        """Read these topics and return the brokers in the metadata.

        Raises:
            MetadataError: no broker answered.
        """
        for names in self._by_request(topics):
            brokers = self._read_names(names)
        return brokers

    def mark_stale(self, topics: Collection[str]) -> None:
        """Mark topics, cached or not, that may have changed since they were read."""
        if len(self.cache.partitions()) > WHOLE_PARTITIONS:
            self.cache.mark_stale(topics)

    def _read_names(self, names: Sequence[str]) -> Sequence[Any]:
        sent_s = self._clock()
        wanted = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
        answer = self._brokers.send_to_any(_SUBJECT, MetadataRequest(topics=wanted, allow_auto_topic_creation=False))
        current = [self.cache.put_topic(topic, sent_s) for topic in answer.topics]
        self._note_current(all(current))
        return list(answer.brokers)

    def _note_current(self, current: bool) -> None:
        if not current:
            self._brokers.demote_last()

    def _by_request(self, topics: Collection[str]) -> Iterator[list[str]]:
        """Yield the topics of each request; without topics, one empty request."""
        names: list[str] = []
        partitions = 0
        for topic in topics:
            if names and partitions + self.cache.count(topic) > _REQUEST_PARTITIONS:
                yield names
                names, partitions = [], 0
            names.append(topic)
            partitions += self.cache.count(topic)
        yield names

    def _read_all(self) -> Sequence[Any]:
        sent_s = self._clock()
        answer = self._brokers.send_to_any(_SUBJECT, MetadataRequest(topics=None, allow_auto_topic_creation=False))
        self._note_current(self.cache.put_range("", None, [topic for topic in answer.topics if topic.name], sent_s))
        return list(answer.brokers)

    def _read_first(self, began_s: float) -> Sequence[Any]:
        """Read all topics for the first time, over several snapshots if necessary."""
        try:
            while self._pages:
                self._read_page()
                if not self._next:
                    break
                if self._clock() >= began_s + self._timeout_s:
                    count = len(self.cache.partitions())
                    raise MetadataError(f"the topics are being read for the first time: {count} partitions so far")
        except UnsupportedRequestError:
            self._pages = False
        brokers = self._read_names([]) if self._pages else self._read_all()
        self._complete = True
        # New topics are marked stale, but the first read is no change.
        self.cache.clear_stale()
        return brokers

    def _read_rest(self, first: Collection[str], began_s: float) -> None:
        try:
            self._read_stale(set(first))
            self._read_in_turn(began_s - (began_s if self._last_s is None else self._last_s))
        except MetadataError as error:
            log.warning("topics stay as last read: %s", error)

    def _read_stale(self, excluded: set[str]) -> None:
        deadline_s = self._clock() + _TIME_SHARE * self._timeout_s
        for names in self._by_request([topic for topic in self.cache.stale_topics() if topic not in excluded]):
            if not names or self._clock() >= deadline_s:
                return
            self._read_names(names)

    def _read_in_turn(self, passed_s: float) -> None:
        """Read the next pages: as many partitions as the time since the last snapshot requires."""
        if not self._pages:
            # Without pages, new topics are found only by reading all topics at once, each ``max_age_s``.
            if self._clock() + passed_s - self.cache.oldest_s() >= self._max_age_s:
                self._read_all()
            return
        deadline_s = self._clock() + _TIME_SHARE * self._timeout_s
        total = len(self.cache.partitions())
        share = passed_s / self._max_age_s if passed_s < self._max_age_s else 1.0
        self._unread = min(total, self._unread + share * total)
        while self._unread > 0 and self._clock() < deadline_s:
            self._unread -= max(1, self._read_page())

    def _read_page(self) -> int:
        """Read one page from the next topic on, with its last topic completed; return the number of partitions."""
        sent_s, first = self._clock(), self._next
        by_name: dict[str, Any] = {}
        cursor_at = TopicPartition(first, 0)
        while True:
            requested = cursor_at
            answer = self._brokers.send_to_any(_SUBJECT, _page_request(requested))
            for topic in answer.topics:
                merged = by_name.setdefault(topic.name, topic)
                if merged is not topic:
                    merged.partitions.extend(topic.partitions)
            cursor_at = _FIRST
            if answer.next_cursor is not None:
                cursor_at = TopicPartition(answer.next_cursor.topic_name, answer.next_cursor.partition_index)
                if cursor_at == requested:
                    raise MetadataError(f"metadata could not be read (no page after {requested})")
            if not cursor_at.partition:
                break
        self._next = cursor_at.topic
        self._note_current(self.cache.put_range(first, self._next or None, by_name.values(), sent_s))
        return sum(len(topic.partitions) for topic in by_name.values())


def _page_request(start: TopicPartition) -> Any:
    cursor = DescribeTopicPartitionsRequest.Cursor(topic_name=start.topic, partition_index=start.partition)
    # Without a cursor, pages begin at the first topic.
    return DescribeTopicPartitionsRequest(
        topics=[], response_partition_limit=_REQUEST_PARTITIONS, cursor=cursor if start.topic else None
    )
