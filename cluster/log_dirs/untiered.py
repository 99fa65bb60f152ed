"""What a new replica copies of a topic with remote storage: the records that its leader has not uploaded yet.

Without ``follower.fetch.last.tiered.offset.enable`` a new replica copies all that the leader has on its disks, and
with it (since Kafka 4.3) only from the first record on that is still to be uploaded. Compacted topics are copied whole.
So is a log whose leader still has the record with offset 0, where a new replica begins: only the error that this record
is gone makes it ask what is uploaded (seen on brokers of Kafka 4.3.1).

A new replica that skips uploaded records begins with what remote storage knows of the record before. If that is not
there, because nothing was uploaded yet or all of it has expired, it tries again every second until a segment is
uploaded. So it does, until a record is written, if the leader has no record that is not uploaded: a leader does not
answer with an offset that no record has yet.

Source: Kafka 4.3.1, ``ReplicaFetcherThread.shouldFetchFromLastTieredOffset``,
``AbstractFetcherThread.fetchEarliestPendingUploadOffset``, ``UnifiedLog.fetchEarliestPendingUploadOffset``,
``TierStateMachine.buildRemoteLogAuxState``, ``ReplicaManager.fetchOffset``.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kafka.errors import KafkaError
from kafka.protocol.admin import DescribeConfigsRequest

from headroom.cluster.admin.config_keys import BROKER
from headroom.cluster.admin.list_offsets import END, FIRST_LOCAL, LAST_UPLOADED, START, WITH_ALL, list_offsets
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.connection.each_broker import ask_each
from headroom.cluster.model import Snapshot
from headroom.planning.log_dirs.broker_logs import BrokerLogs
from headroom.schemas.keys import TopicPartition

_SKIPS_UPLOADED = "follower.fetch.last.tiered.offset.enable"


@dataclass(frozen=True, slots=True)
class _Uploads:
    """What a leader has uploaded of a log.

    Attributes:
        left_ratio: share of its local log that is not uploaded, 0 to 1.
        awaits_leader: whether a new replica waits for the leader's next upload, or for its next record.
    """

    left_ratio: float
    awaits_leader: bool


def with_untiered_bytes(
    connection: AdminConnection, snapshot: Snapshot, logs: Mapping[int, BrokerLogs], timeout_s: float
) -> dict[int, BrokerLogs]:
    """Return the logs with the bytes that are not uploaded yet, of leaders' logs of which new replicas copy only these.

    They name those of which new replicas wait for the leader's next upload or record.

    Nothing is known to be uploaded where a leader does not say so. If the brokers differ, or one does not report its
    setting, new replicas may copy all.

    Args:
        connection: the admin connection.
        snapshot: the metadata.
        logs: logs by broker.
        timeout_s: longest wait for the answer of one broker, seconds.
    """
    names = _tiered_partitions(snapshot, logs)
    alive = [broker for broker, info in snapshot.brokers.items() if info.alive]
    if not names or not all(ask_each(alive, lambda broker: _skips_uploaded(connection, broker, timeout_s)).values()):
        return dict(logs)
    uploads = ask_each(names, lambda broker: _uploads(connection, broker, names[broker], timeout_s))
    return {broker: _with_uploads(own, uploads.get(broker, {})) for broker, own in logs.items()}


def _tiered_partitions(snapshot: Snapshot, logs: Mapping[int, BrokerLogs]) -> dict[int, list[TopicPartition]]:
    """Return by leader the partitions with remote storage whose leader's log was read."""
    topics = {
        topic
        for topic, config in snapshot.topic_configs.items()
        if config.remote_storage is True and not config.compacted
    }
    names: dict[int, list[TopicPartition]] = defaultdict(list)
    for broker, own in logs.items() if topics else ():
        for name in own.logs:
            if name.topic in topics and name in snapshot.partitions and snapshot.partitions[name].leader == broker:
                names[broker].append(name)
    return dict(names)


def _skips_uploaded(connection: AdminConnection, broker: int, timeout_s: float) -> bool:
    """Return whether a broker's new replicas skip what is uploaded; false if it has no such setting, or if unknown."""
    request = DescribeConfigsRequest(resources=[(BROKER, str(broker), [_SKIPS_UPLOADED])], include_synonyms=False)
    try:
        result = connection.send(request, broker, timeout_s).results[0]
    except KafkaError:
        return False
    return not result.error_code and any(c.name == _SKIPS_UPLOADED and c.value == "true" for c in result.configs)


def _uploads(
    connection: AdminConnection, leader: int, names: Iterable[TopicPartition], timeout_s: float
) -> dict[TopicPartition, _Uploads]:
    """Return what a leader has uploaded of its logs; missing are those of which it is unknown or that are copied whole.

    Log ends are read last, so that the share is not too small.
    """
    which = (LAST_UPLOADED, START, FIRST_LOCAL, END)
    try:
        last, start, first, end = (_offsets(connection, leader, names, one, timeout_s) for one in which)
    except KafkaError:
        return {}
    known = last.keys() & start.keys() & first.keys() & end.keys()
    uploads = {name: _uploads_of(last[name], start[name], first[name], end[name]) for name in known}
    return {name: own for name, own in uploads.items() if own is not None}


def _uploads_of(last: int, start: int, first: int, end: int) -> _Uploads | None:
    """Return what is uploaded of a log; None if that is unknown, or if a new replica copies all of it.

    Args:
        last: its last offset in remote storage; -1 if there is none, or if its leader does not know yet.
        start: its first offset, in remote storage or on the leader's disk.
        first: its first offset on the leader's disk.
        end: offset of its next record.
    """
    if min(start, end) < 0 or first <= 0 or (last < 0 and first > start):
        return None
    pending = max(last + 1, start)
    local, left = end - first, end - max(pending, first)
    ratio = min(1.0, max(0, left) / local) if local > 0 else 0.0
    return _Uploads(ratio, awaits_leader=pending <= start or pending >= end)


def _offsets(
    connection: AdminConnection, leader: int, names: Iterable[TopicPartition], which: int, timeout_s: float
) -> dict[TopicPartition, int]:
    """Return an offset of each partition, -1 if it has none; those that the broker does not lead are missing."""
    times = dict.fromkeys(names, which)
    listed = list_offsets(connection, leader, times, timeout_s, min_version=WITH_ALL)
    return {name: one.offset for name, one in listed.items()}


def _with_uploads(logs: BrokerLogs, uploads: Mapping[TopicPartition, _Uploads]) -> BrokerLogs:
    untiered = {name: math.ceil(logs.logs[name].size_bytes * own.left_ratio) for name, own in uploads.items()}
    awaiting = frozenset(name for name, own in uploads.items() if own.awaits_leader)
    return replace(logs, untiered_bytes=untiered, awaiting_leader=awaiting) if untiered else logs
