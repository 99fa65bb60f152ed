"""Where brokers' metrics speak against the metadata: a topic that was made, deleted, grew, or changed its leader.

Brokers are read in every tick, metadata of very many partitions is not. A follower's lag gauge names the broker that it
fetches from, and a broker that does not hold a log has no gauge of it: both tell of a change before the metadata does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cluster.model import BrokerRead, Metrics, Snapshot, TopicPartition


class Contradiction(NamedTuple):
    """What one broker said against the metadata; ``leader`` None: it leads the partition, but has no log of it."""

    partition: TopicPartition
    broker: int
    leader: int | None


class StalenessDetector:
    """Remembers what the last tick's metrics said: the metadata is asked about it once, not for ever."""

    def __init__(self) -> None:
        self._last: set[Contradiction] = set()

    def contradicted_topics(self, snapshot: Snapshot, reads: Mapping[int, BrokerRead]) -> set[str]:
        """Return the topics about which a broker says something against the metadata that it did not say before."""
        answered = {broker: read.metrics for broker, read in reads.items() if read.metrics is not None}
        found = {*_by_lags(snapshot, answered), *_by_logs(snapshot, answered)}
        new = found - self._last
        self._last = found
        return {doubt.partition.topic for doubt in new}


def _by_lags(snapshot: Snapshot, answered: Mapping[int, Metrics]) -> Iterator[Contradiction]:
    for broker, metrics in answered.items():
        for lag in metrics.lags:
            known = snapshot.partitions.get(lag.partition)
            if known is None or known.leader != lag.source_broker:
                yield Contradiction(lag.partition, broker, lag.source_broker)


def _by_logs(snapshot: Snapshot, answered: Mapping[int, Metrics]) -> Iterator[Contradiction]:
    for name, partition in snapshot.partitions.items():
        metrics = answered.get(partition.leader) if partition.leader is not None else None
        if metrics is not None and name not in metrics.logs:
            yield Contradiction(name, partition.leader or 0, None)
