"""The input file of Kafka's own tool (``kafka-leader-election --path-to-json-file``), and its size."""

from __future__ import annotations

import json
from collections.abc import Iterable

from schemas.keys import TopicPartition


def request_json(partitions: Iterable[TopicPartition]) -> str:
    """Return the text of the file for these partitions, in one line.

    Source: Kafka 4.3.1, ``LeaderElectionCommand.parseReplicaElectionData``. Older clusters keep the same form in
    ZooKeeper during an election.
    """
    named = [{"topic": topic, "partition": partition} for topic, partition in partitions]
    return json.dumps({"partitions": named, "version": 1}, separators=(",", ":"))


# Without partitions. Every entry counts a comma before it, which the first entry does not have.
EMPTY_BYTES = len(request_json(())) - len(",")
_ENTRY_BYTES = len(request_json([TopicPartition("", 0)])) - EMPTY_BYTES - len("0")
# Kafka limits a topic name to 249 characters.
LARGEST_BYTES = len(request_json([TopicPartition("t" * 249, 2**31 - 1)]))


def entry_bytes(topic: str, partition: int) -> int:
    """Return the size of a partition's entry in the file, in bytes; characters of a topic name are one byte each."""
    return _ENTRY_BYTES + len(topic) + len(str(partition))
