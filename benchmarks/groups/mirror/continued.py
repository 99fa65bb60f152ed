"""What a consumer group reads on a mirror from an offset on, compared with what it had read on the origin."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from headroom.schemas.keys import TopicPartition

_LENGTH, _PARTITION, _OFFSETS = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">hqq")


class Continued(NamedTuple):
    """Records of one partition, of a group that continues on the target.

    Attributes:
        skipped: records that it has read on neither cluster.
        read_twice: records that it has read on the origin, and reads again; each copy counts.
    """

    skipped: int
    read_twice: int


class MirrorCheckpoint(NamedTuple):
    """A checkpoint of MirrorMaker.

    Attributes:
        group: consumer group.
        name: partition, by its name on the target.
        origin: committed offset on the origin.
        target: the offset that it stands for on the target.
    """

    group: str
    name: TopicPartition
    origin: int
    target: int


def continued(committed: int, end: int, mirror: Sequence[int], offset: int) -> Continued:
    """Return what a group reads of a partition from an offset of the target on.

    Args:
        committed: its committed offset on the origin.
        end: log end of the origin; there is a record at each offset below.
        mirror: offset on the origin of the record at each offset of the target.
        offset: offset on the target.
    """
    read = mirror[offset:]
    return Continued(len(set(range(committed, end)) - set(read)), sum(origin < committed for origin in read))


def parse_checkpoint(key: bytes, value: bytes) -> MirrorCheckpoint:
    """Return the checkpoint in a record of ``<alias>.checkpoints.internal``.

    Source: Kafka 4.0, ``org.apache.kafka.connect.mirror.Checkpoint``.
    """
    group, at = _text(key, 0)
    topic, at = _text(key, at)
    _, origin, target = _OFFSETS.unpack_from(value)
    return MirrorCheckpoint(group, TopicPartition(topic, *_PARTITION.unpack_from(key, at)), origin, target)


def _text(content: bytes, at: int) -> tuple[str, int]:
    """Return the text at a place, and the place behind it."""
    (length,) = _LENGTH.unpack_from(content, at)
    begin = at + _LENGTH.size
    return content[begin : begin + length].decode(), begin + length
