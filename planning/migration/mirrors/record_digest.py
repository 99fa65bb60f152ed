"""Digest of a record: what tells it from other records, in little memory."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

_BYTES = 8


class RecordDigest(NamedTuple):
    """Digests of the parts of a record, of 64 bits each. Two different records agree in all by a chance of 2^-64.

    Attributes:
        key: of its key.
        value: of its value.
        headers: of its headers, in their order.
        timestamp_ms: its timestamp, epoch milliseconds.
    """

    key: int
    value: int
    headers: int
    timestamp_ms: int


def record_digest(
    key: bytes | None, value: bytes | None, headers: Iterable[tuple[str, bytes | None]], timestamp_ms: int
) -> RecordDigest:
    """Return the digest of a record; no key is not an empty one, and a tombstone no empty value.

    Args:
        key: key; None without one.
        value: value; None for a tombstone.
        headers: names and values, in their order.
        timestamp_ms: timestamp, epoch milliseconds.
    """
    parts = b"".join(_part(name.encode()) + _part(own) for name, own in headers)
    return RecordDigest(_digest(_part(key)), _digest(_part(value)), _digest(parts), timestamp_ms)


def _part(data: bytes | None) -> bytes:
    """Return bytes with their length before them, so that no two lists of parts give the same bytes."""
    return b"-" if data is None else b"%d:" % len(data) + data


def _digest(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=_BYTES).digest(), "big")
