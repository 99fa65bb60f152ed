"""How new the origin's logs were as they got to their end offsets, which no later reading shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headroom.cluster.migration.cluster_reader import ClusterReading
from headroom.planning.migration.agreement import split_of
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import PartitionAgreement

# If more time than this is between the readings before and after it, the last record below E may be newer by that.
_APART_MS = 10_000


class _LastBelow(NamedTuple):
    """The last reading of a log that had nothing from its end on.

    Attributes:
        limit: its end for readers.
        read_ms: time of the reading, epoch milliseconds.
        newest_ms: greatest timestamp in the log, epoch milliseconds; None if unknown.
        is_passed: whether the log has gone on since, so that this stays.
    """

    limit: int
    read_ms: int
    newest_ms: int | None
    is_passed: bool = False


class PassedEnds:
    """Keeps the newest timestamp of each log from just before it went on behind its end offset."""

    def __init__(self) -> None:
        self._last: dict[TopicPartition, _LastBelow] = {}

    def see(self, agreements: Sequence[PartitionAgreement], reading: ClusterReading) -> None:
        """Add a reading of the origin.

        Args:
            agreements: partitions of the migrations; of others nothing is kept.
            reading: the reading.
        """
        now = {own.name: self._now(own, reading) for own in agreements}
        self._last = {name: last for name, last in now.items() if last is not None}

    def newest(self) -> dict[TopicPartition, int]:
        """Return the newest timestamps of the logs that are behind their end offsets, epoch milliseconds."""
        return {n: last.newest_ms for n, last in self._last.items() if last.is_passed and last.newest_ms is not None}

    def _now(self, own: PartitionAgreement, reading: ClusterReading) -> _LastBelow | None:
        last, limit, log = self._last.get(own.name), split_of(own).origin_limit, reading.logs.get(own.name)
        if limit is None or reading.cluster_id not in (None, own.origin_cluster_id):
            return None
        if log is None or log.end is None:
            return last
        if log.end <= limit:
            return _LastBelow(limit, reading.read_ms, log.newest_ms)
        if last is None or last.limit != limit:
            return None
        if last.is_passed:
            return last
        return last._replace(is_passed=True) if reading.read_ms - last.read_ms <= _APART_MS else None
