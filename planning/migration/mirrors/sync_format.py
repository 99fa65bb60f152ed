"""Binary form of the offset syncs that MirrorMaker 2 writes to ``mm2-offset-syncs.<alias>.internal``.

Source: Kafka 4.0, ``org.apache.kafka.connect.mirror.OffsetSync``. Unlike heartbeats and checkpoints, syncs have no
version before them.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from headroom.schemas.keys import TopicPartition

_LENGTH, _PARTITION, _OFFSETS = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">qq")


class OffsetSync(NamedTuple):
    """An offset sync.

    Attributes:
        name: partition, by its name on the origin.
        origin: offset of a record on the origin.
        target: offset of its copy on the target.
    """

    name: TopicPartition
    origin: int
    target: int


def parse_offset_sync(key: bytes | None, value: bytes | None) -> OffsetSync:
    """Return the sync in a record.

    Raises:
        ValueError: the bytes as a whole are none.
    """
    if key is None or value is None:
        raise ValueError("it has no key or no value")
    if len(key) < _LENGTH.size + _PARTITION.size:
        raise ValueError(f"its key has {len(key)} bytes")
    (length,) = _LENGTH.unpack_from(key)
    if length < 0 or len(key) != _LENGTH.size + length + _PARTITION.size:
        raise ValueError(f"its key has {len(key)} bytes, and a topic of {length}")
    if len(value) != _OFFSETS.size:
        raise ValueError(f"its value has {len(value)} bytes, not {_OFFSETS.size}")
    try:
        topic = key[_LENGTH.size : _LENGTH.size + length].decode()
    except UnicodeDecodeError:
        raise ValueError("its topic is no UTF-8") from None
    (partition,) = _PARTITION.unpack_from(key, _LENGTH.size + length)
    if partition < 0:
        raise ValueError(f"its partition is {partition}")
    return OffsetSync(TopicPartition(topic, partition), *_OFFSETS.unpack(value))
