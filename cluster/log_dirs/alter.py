"""Puts replicas into log directories of their brokers: AlterReplicaLogDirs, with an answer for each replica."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import kafka.errors as kafka_errors
from kafka.errors import (
    ClusterAuthorizationFailedError,
    InvalidReplicationAssignmentError,
    KafkaError,
    KafkaStorageError,
    LogDirNotFoundError,
    ReplicaNotAvailableError,
)
from kafka.protocol.admin import AlterReplicaLogDirsRequest

from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.connection.each_broker import ask_each
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import ReplicaKey, TopicPartition
from headroom.schemas.text.amounts import join_names

_NAMED = 3
_AGAIN = "See that it is up, then run the same command again."
_OTHER = "Name another log directory of that broker."
_LOOK = "Run the same command again. If it is refused again, the log of that broker says why."


class DirectoryChange(str, Enum):
    """Answer of a broker to a replica's new directory.

    ACCEPTED: the replica is there, or is being copied there. KEPT: the broker has no such replica yet, and will create
    it there. It forgets this when it restarts.
    """

    ACCEPTED = "accepted"
    KEPT = "kept"


class UnansweredDirectoryError(HeadroomError):
    """A broker did not answer, so that the directory of a replica was perhaps changed."""


@dataclass(frozen=True)
class DirectoryChanges:
    """Answers of the brokers.

    Attributes:
        accepted: answer for each replica that was accepted.
        errors: error for each other replica.
    """

    accepted: Mapping[ReplicaKey, DirectoryChange]
    errors: Mapping[ReplicaKey, HeadroomError]

    def require_all(self) -> None:
        """Check that every replica was accepted.

        Raises:
            HeadroomError: replicas were not; names some of them with their reasons.
        """
        if not self.errors:
            return
        subjects = list(dict.fromkeys(error.subject for error in self.errors.values()))
        rules = "; ".join(dict.fromkeys(error.rule for error in self.errors.values()))
        remedies = " ".join(dict.fromkeys(error.remedy for error in self.errors.values()))
        raise HeadroomError(join_names(subjects, most=_NAMED), rules, remedies)


def alter_log_dirs(
    connection: AdminConnection, directories: Mapping[ReplicaKey, str], timeout_s: float
) -> DirectoryChanges:
    """Request the directory of each replica, and return every answer; brokers are asked in parallel.

    The request is idempotent. Asked for the directory that a replica is in, the broker ends a copy to another one, so
    this also cancels moves between directories.

    Args:
        connection: the admin connection.
        directories: absolute path of the directory by replica.
        timeout_s: longest wait for the answer of one broker, seconds.

    Source: Kafka 4.3.1, ``ReplicaManager.alterReplicaLogDirs``.
    """
    by_broker: dict[int, dict[ReplicaKey, str]] = defaultdict(dict)
    for replica, path in directories.items():
        by_broker[replica.broker][replica] = path
    each = ask_each(by_broker, lambda broker: _alter(connection, broker, by_broker[broker], timeout_s))
    answers = {replica: answer for changes in each.values() for replica, answer in changes.items()}
    return DirectoryChanges(
        {replica: answer for replica, answer in answers.items() if isinstance(answer, DirectoryChange)},
        {replica: answer for replica, answer in answers.items() if isinstance(answer, HeadroomError)},
    )


def _alter(
    connection: AdminConnection, broker: int, directories: Mapping[ReplicaKey, str], timeout_s: float
) -> dict[ReplicaKey, DirectoryChange | HeadroomError]:
    try:
        answer = connection.send(AlterReplicaLogDirsRequest(dirs=_dirs(directories)), broker, timeout_s)
    except KafkaError as error:
        rule = f"no answer ({type(error).__name__}), so the log directories were perhaps not changed"
        return dict.fromkeys(directories, UnansweredDirectoryError(f"broker {broker}", rule, _AGAIN))
    codes = {
        ReplicaKey(TopicPartition(topic.topic_name, p.partition_index), broker): p.error_code
        for topic in answer.results
        for p in topic.partitions
    }
    return {replica: _answer_of(replica, path, codes.get(replica)) for replica, path in directories.items()}


def _dirs(directories: Mapping[ReplicaKey, str]) -> list[Any]:
    kinds = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    by_path: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for replica, path in sorted(directories.items()):
        by_path[path][replica.name.topic].append(replica.name.partition)
    return [
        kinds(
            path=path,
            topics=[kinds.AlterReplicaLogDirTopic(name=topic, partitions=ps) for topic, ps in topics.items()],
        )
        for path, topics in by_path.items()
    ]


def _answer_of(replica: ReplicaKey, path: str, code: int | None) -> DirectoryChange | HeadroomError:
    subject = str(replica)
    if code is None:
        return HeadroomError(subject, "is missing in the broker's answer", _AGAIN)
    if code == 0:
        return DirectoryChange.ACCEPTED
    # The answer for a replica that does not exist, after the broker has noted its directory.
    if code == ReplicaNotAvailableError.errno:
        return DirectoryChange.KEPT
    rule, remedy = _REASONS.get(code, (f"was refused ({kafka_errors.for_code(code).__name__})", _LOOK))
    return HeadroomError(subject, rule.format(path=path), remedy)


_REASONS: Mapping[int, tuple[str, str]] = {
    ClusterAuthorizationFailedError.errno: (
        "may not be moved to another log directory by this user",
        "Grant ALTER on the cluster to this user.",
    ),
    LogDirNotFoundError.errno: ("cannot be in {path}: the broker has no log directory of that path", _OTHER),
    KafkaStorageError.errno: ("cannot be in {path}: that log directory, or the one it is in, is offline", _OTHER),
    # Source: Kafka 4.3.1, ReplicaManager: the answer for a cordoned directory.
    InvalidReplicationAssignmentError.errno: ("cannot be in {path}: that log directory is cordoned", _OTHER),
}
