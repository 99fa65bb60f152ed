"""The input file of Kafka's own tool (``kafka-leader-election --path-to-json-file``), and its size."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.quantities import is_id
from headroom.schemas.text.json_text import parse_json


def request_json(partitions: Iterable[TopicPartition]) -> str:
    """Return the text of the file for these partitions, in one line.

    Source: Kafka 4.3.1, ``LeaderElectionCommand.parseReplicaElectionData``. Older clusters keep the same form in
    ZooKeeper during an election.
    """
    named = [{"topic": topic, "partition": partition} for topic, partition in partitions]
    return json.dumps({"partitions": named, "version": 1}, separators=(",", ":"))


def parse_request(text: str, subject: str) -> tuple[TopicPartition, ...]:
    """Return the partitions in the text of a file.

    Args:
        text: contents of the file.
        subject: name of the file, for errors.

    Raises:
        HeadroomError: the text is no such file, or names no partition, or one twice.
    """
    remedy = 'The format is that of kafka-leader-election: {"partitions":[{"topic":"foo","partition":1}]}.'
    try:
        document = parse_json(text)
    except ValueError as error:
        raise HeadroomError(subject, f"is not valid JSON ({error})", remedy) from None
    entries = document.get("partitions") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not entries or not all(map(_is_entry, entries)):
        raise HeadroomError(subject, "is not a list of partitions to elect", remedy)
    partitions = tuple(TopicPartition(entry["topic"], entry["partition"]) for entry in entries)
    twice = sorted(name for name, count in Counter(partitions).items() if count > 1)
    if twice:
        raise HeadroomError(subject, f"names {twice[0]} more than once", remedy)
    return partitions


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    topic = entry.get("topic")
    return isinstance(topic, str) and bool(topic) and is_id(entry.get("partition"))


# Without partitions. Every entry counts a comma before it, which the first entry does not have.
EMPTY_BYTES = len(request_json(())) - len(",")
_ENTRY_BYTES = len(request_json([TopicPartition("", 0)])) - EMPTY_BYTES - len("0")
# Kafka limits a topic name to 249 characters.
LARGEST_BYTES = len(request_json([TopicPartition("t" * 249, 2**31 - 1)]))


def entry_bytes(topic: str, partition: int) -> int:
    """Return the size of a partition's entry in the file, in bytes; characters of a topic name are one byte each."""
    return _ENTRY_BYTES + len(topic) + len(str(partition))
