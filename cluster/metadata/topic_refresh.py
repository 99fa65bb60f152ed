"""Reading the topics: few of them whole in every snapshot; of many, those that change first and the rest in turn.

A broker's answer about 200,000 partitions takes seconds to take apart. So each snapshot asks for the topics that it
must know (they move, or have throttled replica lists), then for those that changed lately or may have, and goes on
through all others in the order of their names, page by page, so fast that it is through in ``max_age_s``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from kafka.protocol.admin import DescribeTopicPartitionsRequest
from kafka.protocol.metadata import MetadataRequest

from cluster.connection.failover import BrokerFailover, MetadataError, UnsupportedRequestError
from cluster.metadata.topic_cache import TopicCache

log = logging.getLogger(__name__)
# Up to so many partitions are read whole, by one request, in some ten milliseconds.
WHOLE_PARTITIONS = 5000
# Of one request; no broker tells more on a page (max.request.partition.size.limit).
_REQUEST_PARTITIONS = 2000
# Of the time for a snapshot: for topics that changed lately, and again for the rest in turn.
_SHARE = 0.25
_WHAT = "metadata"


class TopicRefresh:
    """Keeps the known topics up to date.

    Args:
        brokers: who is asked.
        timeout_s: time for one snapshot's metadata, seconds.
        max_age_s: no topic is to be older than this, seconds.
        clock: monotonic seconds.

    Attributes:
        known: the topics.
    """

    def __init__(self, brokers: BrokerFailover, timeout_s: float, max_age_s: float, clock: Callable[[], float]) -> None:
        self.known = TopicCache()
        self._brokers = brokers
        self._timeout_s = timeout_s
        self._max_age_s = max_age_s
        self._clock = clock
        self._complete = False
        # DescribeTopicPartitions came with Kafka 3.7; older brokers tell topics by name, or all of them.
        self._pages = True
        self._next = ""
        self._unread = 0.0
        self._last_s: float | None = None

    def read(self, first: Collection[str]) -> Sequence[Any]:
        """Bring the known topics up to date and return the brokers that the metadata lists.

        Args:
            first: topics that must be read.

        Raises:
            MetadataError: no broker told what must be read, or the topics are not all read once yet.
        """
        began_s = self._clock()
        if not self._complete:
            brokers = self._read_first(began_s)
        elif len(self.known.partitions()) <= WHOLE_PARTITIONS:
            brokers = self._read_whole()
        else:
            brokers = self.read_named(first)
            self._mark_moved_stale(brokers)
            self._read_rest(first, began_s)
        self._last_s = began_s
        self._brokers.alive = [broker.node_id for broker in brokers]
        return brokers

    def read_named(self, topics: Collection[str]) -> Sequence[Any]:
        """Read these topics, and return the brokers that the metadata lists.

        Raises:
            MetadataError: no broker told them.
        """
        for names in self._by_request(topics):
            brokers = self._read_names(names)
        return brokers

    def mark_stale(self, topics: Collection[str]) -> None:
        """Take note of topics, known or not, that may have changed since they were read."""
        if len(self.known.partitions()) > WHOLE_PARTITIONS:
            self.known.mark_stale(topics)

    def _read_names(self, names: Sequence[str]) -> Sequence[Any]:
        asked_s = self._clock()
        wanted = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
        answer = self._brokers.send_to_any(_WHAT, MetadataRequest(topics=wanted, allow_auto_topic_creation=False))
        current = [self.known.put(topic, asked_s) for topic in answer.topics]
        self._note_current(all(current))
        return list(answer.brokers)

    def _note_current(self, current: bool) -> None:
        if not current:
            self._brokers.demote_last()

    def _by_request(self, topics: Collection[str]) -> Iterator[list[str]]:
        """Return the topics cut into requests; of no topics, one request without any."""
        names: list[str] = []
        partitions = 0
        for topic in topics:
            if names and partitions + self.known.count(topic) > _REQUEST_PARTITIONS:
                yield names
                names, partitions = [], 0
            names.append(topic)
            partitions += self.known.count(topic)
        yield names

    def _read_whole(self) -> Sequence[Any]:
        asked_s = self._clock()
        answer = self._brokers.send_to_any(_WHAT, MetadataRequest(topics=None, allow_auto_topic_creation=False))
        self._note_current(self.known.put_range("", None, [topic for topic in answer.topics if topic.name], asked_s))
        return list(answer.brokers)

    def _read_first(self, began_s: float) -> Sequence[Any]:
        """Read all topics for the first time, over several snapshots if there are so many."""
        try:
            while self._pages:
                self._read_page()
                if not self._next:
                    break
                if self._clock() >= began_s + self._timeout_s:
                    told = len(self.known.partitions())
                    raise MetadataError(f"the topics are being read for the first time: {told} partitions so far")
        except UnsupportedRequestError:
            self._pages = False
        brokers = self._read_names([]) if self._pages else self._read_whole()
        self._complete = True
        # Read for the first time is not changed.
        self.known.clear_stale()
        return brokers

    def _mark_moved_stale(self, brokers: Sequence[Any]) -> None:
        """When brokers came or went, leaders and in-sync replicas of what they hold change."""
        moved = set(self._brokers.alive).symmetric_difference(broker.node_id for broker in brokers)
        if moved:
            self.known.mark_stale(self.known.topics_on(moved))

    def _read_rest(self, first: Collection[str], began_s: float) -> None:
        try:
            self._read_stale(set(first))
            self._read_in_turn(began_s - (began_s if self._last_s is None else self._last_s))
        except MetadataError as error:
            log.warning("topics stay as last read: %s", error)

    def _read_stale(self, but: set[str]) -> None:
        deadline_s = self._clock() + _SHARE * self._timeout_s
        for names in self._by_request([topic for topic in self.known.stale_topics() if topic not in but]):
            if not names or self._clock() >= deadline_s:
                return
            self._read_names(names)

    def _read_in_turn(self, passed_s: float) -> None:
        """Go on through all topics as far as the time that passed since the last snapshot asks for."""
        if not self._pages:
            # Brokers that tell no pages tell new topics only with all others: all at once then, when it is time.
            if self._clock() + passed_s - self.known.oldest_s() >= self._max_age_s:
                self._read_whole()
            return
        deadline_s = self._clock() + _SHARE * self._timeout_s
        total = len(self.known.partitions())
        share = passed_s / self._max_age_s if passed_s < self._max_age_s else 1.0
        self._unread = min(total, self._unread + share * total)
        while self._unread > 0 and self._clock() < deadline_s:
            self._unread -= max(1, self._read_page())

    def _read_page(self) -> int:
        """Read the topics from the next one on, the last of the page to its end; return how many partitions."""
        asked_s, first = self._clock(), self._next
        told: dict[str, Any] = {}
        after = (first, 0)
        while True:
            at = after
            answer = self._brokers.send_to_any(_WHAT, _page_request(*at))
            for topic in answer.topics:
                whole = told.setdefault(topic.name, topic)
                if whole is not topic:
                    whole.partitions.extend(topic.partitions)
            cursor = answer.next_cursor
            after = ("", 0) if cursor is None else (cursor.topic_name, cursor.partition_index)
            if cursor is not None and after == at:
                raise MetadataError(f"metadata could not be read (no page after {at[0]}-{at[1]})")
            if not after[1]:
                break
        self._next = after[0]
        self._note_current(self.known.put_range(first, self._next or None, told.values(), asked_s))
        return sum(len(topic.partitions) for topic in told.values())


def _page_request(topic: str, partition: int) -> Any:
    cursor = DescribeTopicPartitionsRequest.Cursor(topic_name=topic, partition_index=partition) if topic else None
    return DescribeTopicPartitionsRequest(topics=[], response_partition_limit=_REQUEST_PARTITIONS, cursor=cursor)
