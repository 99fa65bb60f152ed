"""One look at the whole cluster: metadata, then every broker, then the rows of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cluster.admin import MetadataReader
from cluster.brokers import BrokerReaders
from cluster.doubts import Doubts
from cluster.model import Snapshot
from cluster.ticks import Rows, TickBuilder, unanswered
from cluster.watched import Plans, watched_partitions


@dataclass(frozen=True)
class Seen:
    """What one look gave.

    Attributes:
        rows: by kind of message.
        unanswered: brokers whose rows are missing, with the reason.
        metadata_age_ms: how long before the look its oldest metadata was read, milliseconds.
    """

    rows: Rows
    unanswered: list[dict[str, Any]]
    metadata_age_ms: int


class Survey:
    """Looks at the cluster once per tick.

    Args:
        metadata: reads snapshots.
        readers: reads the brokers.
        builder: makes the rows.
        timeout_s: longest wait for the brokers, seconds.
    """

    def __init__(
        self, metadata: MetadataReader, readers: BrokerReaders, builder: TickBuilder, timeout_s: float
    ) -> None:
        self._metadata = metadata
        self._readers = readers
        self._builder = builder
        self._timeout_s = timeout_s
        self._plans = Plans()
        self._doubts = Doubts()

    def look(self, tick_ms: int) -> Seen:
        """Return what is seen of the cluster now.

        Raises:
            MetadataError: the cluster's metadata could not be read.
            HeadroomError: no broker could be reached at all.
        """
        snapshot = self._metadata.snapshot()
        watched = watched_partitions(snapshot)
        reads = self._readers.read(snapshot.brokers, self._plans.of(snapshot, watched), self._timeout_s)
        self._metadata.doubt(self._doubts.new_topics(snapshot, reads))
        rows = self._builder.rows(tick_ms, snapshot, reads, watched)
        return Seen(rows, unanswered(snapshot, reads), _oldest_ms(snapshot))


def _oldest_ms(snapshot: Snapshot) -> int:
    return max(snapshot.ages_ms.values(), default=0)
