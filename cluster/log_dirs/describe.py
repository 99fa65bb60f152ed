"""Reads the log directories of all brokers in parallel, with the logs in them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import kafka.errors as kafka_errors
from kafka.errors import ClusterAuthorizationFailedError, KafkaError
from kafka.protocol.admin import DescribeLogDirsRequest

from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.connection.each_broker import ask_each
from headroom.planning.log_dirs.broker_logs import BrokerLogs, ReplicaLog
from headroom.planning.reassignments.cluster_state import LogDirectory
from headroom.planning.reassignments.room.volumes import with_volume
from headroom.schemas.config import LogDirVolumes
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

_RETRY = "See that it is up, then try again."
_RIGHT = "Grant DESCRIBE on the cluster to this user."


@dataclass(frozen=True)
class LogDirsReading:
    """Log directories of several brokers.

    Attributes:
        brokers: logs of each broker that reported them.
        errors: error of each broker that did not.
    """

    brokers: Mapping[int, BrokerLogs]
    errors: Mapping[int, HeadroomError]

    def require_all(self) -> None:
        """Check that every broker reported its directories.

        Raises:
            HeadroomError: a broker did not; names all of them with their reasons.
        """
        if not self.errors:
            return
        brokers = ", ".join(map(str, sorted(self.errors)))
        rules = "; ".join(dict.fromkeys(error.rule for error in self.errors.values()))
        remedies = " ".join(dict.fromkeys(error.remedy for error in self.errors.values()))
        raise HeadroomError(f"broker {brokers}", rules, remedies)


def describe_log_dirs(
    connection: AdminConnection,
    brokers: Collection[int],
    timeout_s: float,
    names: Collection[TopicPartition] | None = None,
    volumes: LogDirVolumes = LogDirVolumes.ASSUMED,
) -> LogDirsReading:
    """Return the log directories of brokers that are up, and the error of each broker that did not report them.

    A broker that hangs costs the others nothing, and all together cost one timeout.

    Args:
        connection: the admin connection.
        brokers: broker ids.
        timeout_s: longest wait for the answer of one broker, seconds.
        names: partitions whose logs are read; None: all. The directories are complete in any case.
        volumes: whether the directories of a broker share a volume.
    """
    request = DescribeLogDirsRequest(topics=None if names is None else _by_topic(names))
    counted = names is None
    by_broker = ask_each(brokers, lambda broker: _describe(connection, broker, request, timeout_s, volumes, counted))
    return LogDirsReading(
        {broker: answer for broker, answer in by_broker.items() if isinstance(answer, BrokerLogs)},
        {broker: answer for broker, answer in by_broker.items() if isinstance(answer, HeadroomError)},
    )


def describe_broker_log_dirs(
    connection: AdminConnection, broker: int, timeout_s: float, volumes: LogDirVolumes = LogDirVolumes.ASSUMED
) -> BrokerLogs:
    """Return the log directories of one broker with all logs in them, on the thread of the caller.

    Args:
        connection: the admin connection.
        broker: broker id.
        timeout_s: longest wait for the answer, seconds.
        volumes: whether the directories of a broker share a volume.

    Raises:
        HeadroomError: the broker did not report them.
    """
    answer = _describe(connection, broker, DescribeLogDirsRequest(topics=None), timeout_s, volumes, counted=True)
    if isinstance(answer, HeadroomError):
        raise answer
    return answer


def _by_topic(names: Collection[TopicPartition]) -> list[Any]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(names):
        topics.setdefault(topic, []).append(partition)
    return [DescribeLogDirsRequest.DescribableLogDirTopic(topic=t, partitions=ps) for t, ps in topics.items()]


def _describe(
    connection: AdminConnection, broker: int, request: Any, timeout_s: float, volumes: LogDirVolumes, counted: bool
) -> BrokerLogs | HeadroomError:
    subject = f"broker {broker}"
    try:
        answer = connection.send(request, broker, timeout_s)
    except KafkaError as error:
        return HeadroomError(subject, f"did not report its log directories ({type(error).__name__})", _RETRY)
    # Before version 3 an answer has no error of its own.
    error_code = getattr(answer, "error_code", None) or 0
    if error_code == ClusterAuthorizationFailedError.errno:
        return HeadroomError(subject, "does not show its log directories to this user", _RIGHT)
    if error_code:
        reason = kafka_errors.for_code(error_code).__name__
        return HeadroomError(subject, f"did not report its log directories ({reason})", _RETRY)
    if not answer.results:
        # Every broker has a log directory. Brokers before Kafka 3.2 answer like this if the right is missing.
        return HeadroomError(subject, "reported no log directory, as without the right to see them", _RIGHT)
    return _logs_of(broker, answer.results, volumes, counted)


def _logs_of(broker: int, results: Any, volumes: LogDirVolumes, counted: bool) -> BrokerLogs:
    logs: dict[TopicPartition, ReplicaLog] = {}
    futures: dict[TopicPartition, ReplicaLog] = {}
    for result in results:
        path = result.log_dir
        for topic in result.topics:
            name = topic.name
            for p in topic.partitions:
                kept = futures if p.is_future_key else logs
                kept[TopicPartition(name, p.partition_index)] = ReplicaLog(path, p.partition_size, p.offset_lag)
    directories = sorted(
        (with_volume(_directory(result, counted), volumes) for result in results),
        key=lambda directory: directory.path,
    )
    return BrokerLogs(broker, tuple(directories), logs, futures)


def _directory(result: Any, counted: bool) -> LogDirectory:
    # KAFKA_STORAGE_ERROR is the answer for an offline directory; any other error makes it as unusable.
    return LogDirectory(
        result.log_dir,
        _bytes(getattr(result, "total_bytes", None)),
        _bytes(getattr(result, "usable_bytes", None)),
        offline=result.error_code != 0,
        cordoned=bool(getattr(result, "is_cordoned", False)),
        logs_bytes=sum(p.partition_size for topic in result.topics for p in topic.partitions),
        logs=sum(len(topic.partitions) for topic in result.topics) if counted else None,
    )


def _bytes(value: int | None) -> int | None:
    """Return a number of bytes; None if the broker did not report it: before version 4, or -1."""
    return None if value is None or value < 0 else value
