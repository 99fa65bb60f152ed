"""Brokers that speak Kafka's protocol and tell a made-up cluster's metadata: real bytes over a real connection.

``python -m benchmarks.paper_brokers BROKERS PARTITIONS`` prints its port and serves until its standard input closes; a
line ``topic partition`` there lets the partition's next replica lead. All brokers answer at the same port. Encoding is
kafka-python's own.
"""

from __future__ import annotations

import socketserver
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

from kafka.protocol.admin import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
)

from benchmarks.workload import Partition, SyntheticCluster, Workload, throttled_lists
from cluster.configs import FOLLOWER_LIST, LEADER_LIST, TOPIC

_UNKNOWN_TOPIC = 3
_PAGE_PARTITIONS = 2000
# A topic of an answer, and a partition of it.
_TOPIC = (MetadataResponse.MetadataResponseTopic, MetadataResponse.MetadataResponseTopic.MetadataResponsePartition)
_PAGED = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
_PAGED_TOPIC = (_PAGED, _PAGED.DescribeTopicPartitionsResponsePartition)


def workload(brokers: int, partitions: int) -> Workload:
    """Return the cluster: a hundred partitions a topic, one topic of a hundred moving, no switch of its own accord."""
    return Workload(
        brokers=brokers, topics=partitions // 100, partitions=partitions, moving_ratio=0.01, switches_per_minute=0
    )


class PaperCluster:
    """Answers requests about a made-up cluster.

    Args:
        cluster: the cluster.
        port: where its brokers answer.
    """

    def __init__(self, cluster: SyntheticCluster, port: int) -> None:
        self.port = port
        self._cluster = cluster
        self._lock = threading.Lock()
        self._topics = {topic: list(ps) for topic, ps in groupby(cluster.partitions, lambda p: p.topic)}
        self._answers: dict[Any, Callable[[Any], Any]] = {
            ApiVersionsRequest: self._versions,
            MetadataRequest: self._metadata,
            DescribeTopicPartitionsRequest: self._page,
            ListPartitionReassignmentsRequest: self._reassignments,
            DescribeConfigsRequest: self._configs,
        }
        self._by_key = {int(kind.API_KEY): kind for kind in self._answers}

    def switch(self, topic: str, partition: int) -> None:
        """Let the next replica of a partition lead."""
        with self._lock:
            self._cluster.switch(self._topics[topic][partition], 0)

    def answer(self, frame: bytes) -> bytes:
        """Return the framed answer to a request."""
        key, version, correlation_id = struct.unpack(">hhi", frame[:8])
        kind = self._by_key[key]
        with self._lock:
            response = self._answers[kind](kind.decode(frame, version=version, header=True))
        response.API_VERSION = version
        response.with_header(correlation_id)
        return bytes(response.encode(header=True, framed=True))

    def _versions(self, _request: Any) -> Any:
        keys = [
            ApiVersionsResponse.ApiVersion(api_key=key, min_version=0, max_version=kind.max_version)
            for key, kind in self._by_key.items()
        ]
        return ApiVersionsResponse(error_code=0, api_keys=keys, throttle_time_ms=0)

    def _metadata(self, request: Any) -> Any:
        names = self._topics if request.topics is None else [topic.name for topic in request.topics]
        brokers = [
            MetadataResponse.MetadataResponseBroker(node_id=b, host="127.0.0.1", port=self.port, rack=None)
            for b in range(1, self._cluster.workload.brokers + 1)
        ]
        topics = [_topic(_TOPIC, name, self._topics.get(name)) for name in names]
        return MetadataResponse(
            throttle_time_ms=0, brokers=brokers, cluster_id="paper", controller_id=1, topics=topics, error_code=0
        )

    def _page(self, request: Any) -> Any:
        kind = DescribeTopicPartitionsResponse
        first, begin = (
            ("", 0) if request.cursor is None else (request.cursor.topic_name, request.cursor.partition_index)
        )
        topics, after, left = [], None, min(_PAGE_PARTITIONS, request.response_partition_limit)
        for name in sorted(topic for topic in self._topics if topic >= first):
            start = begin if name == first else 0
            if left:
                told = self._topics[name][start : start + left]
                topics.append(_topic(_PAGED_TOPIC, name, told))
                left, start = left - len(told), start + len(told)
            if start < len(self._topics[name]):
                after = kind.Cursor(topic_name=name, partition_index=start)
                break
        return kind(throttle_time_ms=0, topics=topics, next_cursor=after)

    def _reassignments(self, _request: Any) -> Any:
        kind = ListPartitionReassignmentsResponse
        moving = {topic: [p for p in ps if p.adding is not None] for topic, ps in self._topics.items()}
        topics = [
            kind.OngoingTopicReassignment(name=topic, partitions=[_ongoing(kind, p) for p in ps])
            for topic, ps in moving.items()
            if ps
        ]
        return kind(throttle_time_ms=0, error_code=0, error_message=None, topics=topics)

    def _configs(self, request: Any) -> Any:
        kind = DescribeConfigsResponse
        results = [
            kind.DescribeConfigsResult(
                error_code=0,
                error_message=None,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=_lists(kind, self._topics[resource.resource_name]) if resource.resource_type == TOPIC else [],
            )
            for resource in request.resources
        ]
        return kind(throttle_time_ms=0, results=results)


def _topic(kinds: tuple[Any, Any], name: str, partitions: Sequence[Partition] | None) -> Any:
    of_topic, of_partition = kinds
    return of_topic(
        error_code=0 if partitions is not None else _UNKNOWN_TOPIC,
        name=name,
        topic_id=uuid5(NAMESPACE_DNS, name),
        is_internal=False,
        partitions=[_partition(of_partition, p) for p in partitions or ()],
    )


def _partition(kind: Any, p: Partition) -> Any:
    told = p.as_told()
    return kind(
        error_code=0,
        partition_index=told.partition,
        leader_id=told.leader,
        leader_epoch=told.leader_epoch,
        replica_nodes=list(told.replicas),
        isr_nodes=list(told.isr),
        offline_replicas=list(told.offline),
    )


def _ongoing(kind: Any, p: Partition) -> Any:
    told = p.as_told()
    return kind.OngoingTopicReassignment.OngoingPartitionReassignment(
        partition_index=told.partition,
        replicas=list(told.replicas),
        adding_replicas=list(told.adding),
        removing_replicas=list(told.removing),
    )


def _lists(kind: Any, partitions: Sequence[Partition]) -> list[Any]:
    told = throttled_lists([p for p in partitions if p.adding is not None])
    lists = {LEADER_LIST: told.leader_list, FOLLOWER_LIST: told.follower_list}
    return [
        kind.DescribeConfigsResult.DescribeConfigsResourceResult(
            name=name, value=text, read_only=False, config_source=1, is_sensitive=False, synonyms=[], documentation=None
        )
        for name, text in lists.items()
        if text
    ]


class _Handler(socketserver.BaseRequestHandler):
    """One connection: frames in, frames out."""

    def handle(self) -> None:
        """Answer until the client leaves."""
        while (head := self._take(4)) and (frame := self._take(struct.unpack(">i", head)[0])):
            self.request.sendall(self.server.paper.answer(frame))  # type: ignore[attr-defined]

    def _take(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self.request.recv(size - len(data))
            if not part:
                return b""
            data += part
        return bytes(data)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


@contextmanager
def serving(cluster: SyntheticCluster) -> Iterator[PaperCluster]:
    """Let brokers on paper answer for the length of the block."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        paper = PaperCluster(cluster, server.server_address[1])
        server.paper = paper  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield paper
        finally:
            server.shutdown()


def main() -> None:
    """Serve the cluster that the command line names."""
    brokers, partitions = map(int, sys.argv[1:3])
    with serving(SyntheticCluster(workload(brokers, partitions))) as paper:
        print(paper.port, flush=True)
        for line in sys.stdin:
            topic, partition = line.split()
            paper.switch(topic, int(partition))
            print("switched", flush=True)


if __name__ == "__main__":
    main()
