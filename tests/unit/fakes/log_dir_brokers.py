"""A fake admin connection to brokers with log directories, which speaks the client's own messages."""

from __future__ import annotations

import threading
from typing import Any

from kafka.errors import KafkaTimeoutError
from kafka.protocol.admin import AlterReplicaLogDirsResponse, DescribeLogDirsResponse

Described = DescribeLogDirsResponse.DescribeLogDirsResult
_Topic = Described.DescribeLogDirsTopic
_AlteredTopic = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult


def described(path: str, logs: dict[tuple[str, int], tuple[int, int, bool]], **fields: Any) -> Described:
    """Return a directory with logs of (topic, partition): (bytes, offset lag, future)."""
    partitions: dict[str, list[Any]] = {}
    for (topic, number), (size, lag, future) in logs.items():
        partitions.setdefault(topic, []).append(
            _Topic.DescribeLogDirsPartition(
                partition_index=number, partition_size=size, offset_lag=lag, is_future_key=future
            )
        )
    return Described(
        error_code=fields.pop("error_code", 0),
        log_dir=path,
        topics=[_Topic(name=topic, partitions=found) for topic, found in partitions.items()],
        total_bytes=fields.pop("total_bytes", -1),
        usable_bytes=fields.pop("usable_bytes", -1),
        is_cordoned=fields.pop("is_cordoned", False),
    )


class LogDirBrokers:
    """Brokers that describe and alter log directories.

    Attributes:
        directories: directories by broker.
        errors: error code of a broker's whole answer.
        hanging: brokers that do not answer before all others have.
        codes: error code for a replica's directory, by (topic, partition, broker); 0 if missing.
        leaving_out: replicas that are missing in the answer.
        version: version of the messages.
        requests: broker and request of each call.
    """

    def __init__(self) -> None:
        self.directories: dict[int, list[Described]] = {}
        self.errors: dict[int, int] = {}
        self.hanging: set[int] = set()
        self.codes: dict[tuple[str, int, int], int] = {}
        self.leaving_out: set[tuple[str, int, int]] = set()
        self.version = 5
        self.requests: list[tuple[int, Any]] = []
        self._others = threading.Event()

    def client(self) -> None:
        """Connect."""

    def close(self) -> None:
        """Close."""

    def send(self, request: Any, node: int, timeout_s: float) -> Any:
        self.requests.append((node, request))
        if node in self.hanging:
            # If brokers were asked one after another, those behind this one would never be asked.
            assert self._others.wait(timeout_s), "the other brokers were not asked meanwhile"
            raise KafkaTimeoutError(f"after {timeout_s} s")
        answer = getattr(self, type(request).__name__)(request, node)
        self._others.set()
        return answer

    def DescribeLogDirsRequest(self, request: Any, node: int) -> Any:
        answer = DescribeLogDirsResponse(
            throttle_time_ms=0, error_code=self.errors.get(node, 0), results=self.directories.get(node, [])
        )
        return DescribeLogDirsResponse.decode(answer.encode(version=self.version), version=self.version)

    def AlterReplicaLogDirsRequest(self, request: Any, node: int) -> Any:
        named = [(t.name, p) for directory in request.dirs for t in directory.topics for p in t.partitions]
        results = [
            _AlteredTopic(
                topic_name=topic,
                partitions=[
                    _AlteredTopic.AlterReplicaLogDirPartitionResult(
                        partition_index=number, error_code=self.codes.get((topic, number, node), 0)
                    )
                ],
            )
            for topic, number in named
            if (topic, number, node) not in self.leaving_out
        ]
        answer = AlterReplicaLogDirsResponse(throttle_time_ms=0, results=results)
        return AlterReplicaLogDirsResponse.decode(answer.encode(version=2), version=2)
