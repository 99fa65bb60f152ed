"""Offset syncs in MirrorMaker's binary form: as Kafka writes them, and whole or refused."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.planning.migration import translate
from headroom.planning.migration.mirrors.sync_format import OffsetSync, parse_offset_sync
from headroom.schemas.keys import TopicPartition
from tests.unit.planning.migration.mirror import Mirror, mirrors

TOPICS = st.text(st.characters(codec="utf-8"), max_size=60)
LONGS = st.integers(-(2**63), 2**63 - 1)


def sync_bytes(topic: str, partition: int, origin: int, target: int) -> tuple[bytes, bytes]:
    """Kafka's Schema: a string is its length in two bytes and UTF-8; numbers are big-endian."""
    name = topic.encode()
    return struct.pack(">h", len(name)) + name + struct.pack(">i", partition), struct.pack(">qq", origin, target)


def test_a_sync_is_read_as_kafka_writes_it() -> None:
    """By hand: topic ``t`` of one byte, partition 3; offsets 5 and 258 (0x0102)."""
    key = bytes([0, 1]) + b"t" + bytes([0, 0, 0, 3])
    value = bytes(7) + bytes([5]) + bytes(6) + bytes([1, 2])
    assert parse_offset_sync(key, value) == OffsetSync(TopicPartition("t", 3), 5, 258)
    assert sync_bytes("t", 3, 5, 258) == (key, value)


@given(TOPICS, st.integers(0, 2**31 - 1), LONGS, LONGS)
def test_every_sync_is_read_as_it_was_written(topic: str, partition: int, origin: int, target: int) -> None:
    sync = parse_offset_sync(*sync_bytes(topic, partition, origin, target))
    assert sync == OffsetSync(TopicPartition(topic, partition), origin, target)


@given(st.binary(max_size=40), st.binary(max_size=24))
def test_other_bytes_are_refused_unless_they_are_the_bytes_of_a_sync(key: bytes, value: bytes) -> None:
    sync = None
    with suppress(ValueError):
        sync = parse_offset_sync(key, value)
    assert sync is None or sync_bytes(*sync.name, sync.origin, sync.target) == (key, value)


@given(st.data(), TOPICS)
def test_a_sync_that_was_cut_or_went_on_is_refused(data: st.DataObject, topic: str) -> None:
    key, value = sync_bytes(topic, 3, 5, 258)
    cut = data.draw(st.integers(0, len(key) - 1))
    for wrong in ((key[:cut], value), (key + b"\0", value), (key, value[:-1]), (key, value + b"\0"), (key, b"")):
        with pytest.raises(ValueError, match=r"its (key|value|topic|partition)"):
            parse_offset_sync(*wrong)


def test_a_tombstone_a_missing_key_and_a_negative_partition_are_refused() -> None:
    key, value = sync_bytes("t", 3, 5, 258)
    for wrong in ((key, None), (None, value)):
        with pytest.raises(ValueError, match="no key or no value"):
            parse_offset_sync(*wrong)
    with pytest.raises(ValueError, match="partition is -1"):
        parse_offset_sync(sync_bytes("t", -1, 0, 0)[0], value)
    with pytest.raises(ValueError, match="a topic of -1"):
        parse_offset_sync(b"\xff\xff" + bytes(4), value)
    with pytest.raises(ValueError, match="no UTF-8"):
        parse_offset_sync(bytes([0, 1]) + b"\xff" + bytes(4), value)


@given(mirrors())
def test_a_mirrors_syncs_translate_the_same_through_their_bytes(mirror: Mirror) -> None:
    read = [parse_offset_sync(*sync_bytes("t", 0, *sync)) for sync in mirror.syncs]
    pairs = [(sync.origin, sync.target) for sync in read]
    for offset in range(mirror.origin + 2):
        assert translate(pairs, offset) == translate(mirror.syncs, offset)
