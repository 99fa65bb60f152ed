"""The file in which Kafka's own tool takes elections (``kafka-leader-election --path-to-json-file``), and its size."""

from __future__ import annotations

import json
from collections.abc import Iterable


def request_json(partitions: Iterable[tuple[str, int]]) -> str:
    """Return the text of the file for these partitions, in one line.

    Source: Kafka 4.3.1, ``LeaderElectionCommand.parseReplicaElectionData``; what older clusters keep in ZooKeeper while
    they elect has the same form.
    """
    named = [{"topic": topic, "partition": partition} for topic, partition in partitions]
    return json.dumps({"partitions": named, "version": 1}, separators=(",", ":"))


# Of a file without partitions; the comma before a partition is counted with each, and the first has none.
EMPTY_BYTES = len(request_json(())) - len(",")
_ENTRY_BYTES = len(request_json([("", 0)])) - EMPTY_BYTES - len("0")
# A topic's name has at most 249 characters.
LARGEST_BYTES = len(request_json([("t" * 249, 2**31 - 1)]))


def entry_bytes(topic: str, partition: int) -> int:
    """Return by how many bytes a partition makes the file longer; characters of a topic's name are one byte each."""
    return _ENTRY_BYTES + len(topic) + len(str(partition))
