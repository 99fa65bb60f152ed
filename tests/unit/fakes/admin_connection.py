"""A fake admin connection to a cluster of many topics, and a clock."""

from __future__ import annotations

from types import SimpleNamespace as Answer
from typing import Any

from kafka.errors import IncompatibleBrokerVersion, KafkaTimeoutError

from headroom.cluster.admin.config_keys import BROKER, LEADER_LIST

UNKNOWN_TOPIC, NOT_AUTHORIZED, SERVER_ERROR = 3, 29, -1


class Clock:
    """Monotonic clock that the test advances."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class ManyTopics:
    """Brokers that return all topics, topics by name, or pages of ``page`` partitions; records the requests.

    Attributes:
        sizes: partitions of each topic; each has the replicas 1 and 2.
        leaders: leader of a (topic, partition), 1 if it is not among them.
        epochs: leader epoch of a (topic, partition), 0 if it is not among them.
        isrs: in-sync replicas of a (topic, partition), both replicas if it is not among them.
        ids: id of a topic, its name if it is not among them.
        errors: error code by topic.
        moving: (topic, partition) that a reassignment moves to broker 3.
        pages: whether the brokers know DescribeTopicPartitions.
        silent: kinds of request that are not answered.
        settings: what every broker reports of its own configuration.
        setting_source: where that comes from, of DescribeConfigsResponse.ConfigSource.
        known: brokers that the connection knows.
        nodes_asked: the broker of each request.
    """

    def __init__(self, sizes: dict[str, int], page: int = 4) -> None:
        self.forwarding = self
        self.sizes = sizes
        self.page = page
        self.alive = [1, 2, 3]
        self.leaders: dict[tuple[str, int], int] = {}
        self.epochs: dict[tuple[str, int], int] = {}
        self.isrs: dict[tuple[str, int], list[int]] = {}
        self.ids: dict[str, str | None] = {}
        self.errors: dict[str, int] = {}
        self.moving: list[tuple[str, int]] = []
        self.lists: dict[str, str] = {}
        self.pages = True
        self.silent: set[str] = set()
        self.asked: list[str] = []
        self.settings: dict[str, str] = {}
        self.setting_source = 4
        self.known = [1]
        self.nodes_asked: list[int] = []

    def nodes(self) -> list[int]:
        return self.known

    def send(self, request: Any, node: int, timeout_s: float) -> Any:
        kind = type(request).__name__
        self.nodes_asked.append(node)
        if kind in self.silent:
            raise KafkaTimeoutError(f"after {timeout_s} s")
        return getattr(self, kind)(request)

    def topics_asked(self) -> list[str]:
        """Return the topic requests since the last call: names, ``whole``, or ``page`` with its start."""
        asked, self.asked = self.asked, []
        return asked

    def MetadataRequest(self, request: Any) -> Any:
        wanted = sorted(self.sizes) if request.topics is None else [topic.name for topic in request.topics]
        self.asked += ["whole"] if request.topics is None else sorted(wanted)
        return Answer(
            brokers=[Answer(node_id=b, host="h", port=9092, rack=None) for b in self.alive],
            topics=list(map(self._topic, wanted)),
        )

    def DescribeTopicPartitionsRequest(self, request: Any) -> Any:
        if not self.pages:
            raise IncompatibleBrokerVersion("a broker from before the request")
        first, partition = ("", 0)
        if request.cursor is not None:
            first, partition = request.cursor.topic_name, request.cursor.partition_index
        self.asked.append(f"page {first}-{partition}")
        topics, left = [], self.page
        for name in sorted(topic for topic in self.sizes if topic >= first):
            begin = partition if name == first else 0
            if left == 0:
                return Answer(topics=topics, next_cursor=Answer(topic_name=name, partition_index=0))
            topics.append(self._topic(name, begin, begin + left))
            count = len(topics[-1].partitions)
            left -= count
            if begin + count < self.sizes[name]:
                return Answer(topics=topics, next_cursor=Answer(topic_name=name, partition_index=begin + count))
        return Answer(topics=topics, next_cursor=None)

    def _topic(self, name: str, begin: int = 0, end: int = 10_000) -> Any:
        error = self.errors.get(name, 0 if name in self.sizes else UNKNOWN_TOPIC)
        numbers = range(begin, min(end, self.sizes.get(name, 0))) if not error else ()
        partitions = [self._partition(name, number) for number in numbers]
        return Answer(error_code=error, name=name, topic_id=self.ids.get(name, name), partitions=partitions)

    def _partition(self, topic: str, number: int) -> Any:
        return Answer(
            partition_index=number,
            leader_id=self.leaders.get((topic, number), 1),
            leader_epoch=self.epochs.get((topic, number), 0),
            replica_nodes=[1, 2, 3] if (topic, number) in self.moving else [1, 2],
            isr_nodes=self.isrs.get((topic, number), [1, 2]),
            offline_replicas=[],
        )

    def ListPartitionReassignmentsRequest(self, request: Any) -> Any:
        topics = [
            Answer(name=t, partitions=[Answer(partition_index=p, adding_replicas=[3], removing_replicas=[])])
            for t, p in self.moving
        ]
        return Answer(error_code=0, topics=topics)

    def DescribeConfigsRequest(self, request: Any) -> Any:
        results = []
        for kind, name, keys in request.resources:
            values = self.settings if kind == BROKER else {LEADER_LIST: self.lists.get(name)}
            configs = [
                Answer(name=key, value=value, config_source=self.setting_source, synonyms=())
                for key, value in values.items()
                if key in keys
            ]
            results.append(Answer(error_code=0, resource_name=name, configs=configs))
        return Answer(results=results)
