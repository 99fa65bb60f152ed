"""Offset syncs of MirrorMaker 2, read from their topic to its end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from headroom.cluster.migration.records import RecordReader
from headroom.planning.migration.mirrors.sync_format import parse_offset_sync
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.text import one_line


def read_syncs(
    reader: RecordReader, topic: TopicPartition, begin: int, end: int, names: Collection[TopicPartition]
) -> dict[TopicPartition, list[tuple[int, int]]]:
    """Return the offsets on the origin and on the target of partitions, in the order of the topic.

    Args:
        reader: reads the cluster with the topic.
        topic: partition of the syncs; their topic has only one.
        begin: its log start.
        end: its log end: a rewind that is not read yet would void what was.
        names: partitions, by their names on the origin.

    Raises:
        HeadroomError: the topic could not be read to its end, or one of its records is no offset sync.
    """
    syncs: dict[TopicPartition, list[tuple[int, int]]] = defaultdict(list)
    for record in reader.read(topic, begin, end):
        try:
            sync = parse_offset_sync(record.key, record.value)
        except ValueError as error:
            rule = one_line(f"its record at offset {record.offset} is no offset sync: {error}", 200)
            remedy = (
                "It may have replaced a rewind, so no sync is used. See who else writes there; --exact needs no sync."
            )
            raise HeadroomError(topic.topic, rule, remedy) from None
        if sync.name in names:
            syncs[sync.name].append((sync.origin, sync.target))
    return dict(syncs)
