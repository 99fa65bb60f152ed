"""Detection of stale metadata: topics whose partitions or leaders contradict the brokers' metrics.

Brokers are read in every tick, but the metadata of very many partitions is not. A follower's lag gauge names the broker
that it fetches from, and a broker without a log has no gauge of it. Both show a change before the metadata does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from headroom.cluster.model import BrokerRead, Metrics, Snapshot
from headroom.schemas.keys import TopicPartition


class Contradiction(NamedTuple):
    """Metrics of a broker that contradict the metadata.

    Attributes:
        partition: the partition.
        broker: id of the broker with the metrics.
        leader: leader by the lag gauge; None if the broker is the leader by the metadata but has no log.
    """

    partition: TopicPartition
    broker: int
    leader: int | None


class StalenessDetector:
    """Compares metrics with metadata; reports each contradiction once, so that a permanent one costs one read."""

    def __init__(self) -> None:
        self._last: set[Contradiction] = set()

    def contradicted_topics(self, snapshot: Snapshot, reads: Mapping[int, BrokerRead]) -> set[str]:
        """Return the topics with a contradiction that the last tick did not have."""
        answered = {broker: read.metrics for broker, read in reads.items() if read.metrics is not None}
        contradictions = {*_from_lags(snapshot, answered), *_from_logs(snapshot, answered)}
        new = contradictions - self._last
        self._last = contradictions
        return {contradiction.partition.topic for contradiction in new}


def _from_lags(snapshot: Snapshot, answered: Mapping[int, Metrics]) -> Iterator[Contradiction]:
    for broker, metrics in answered.items():
        for lag in metrics.lags:
            known = snapshot.partitions.get(lag.partition)
            if known is None or known.leader != lag.source_broker:
                yield Contradiction(lag.partition, broker, lag.source_broker)


def _from_logs(snapshot: Snapshot, answered: Mapping[int, Metrics]) -> Iterator[Contradiction]:
    for name, partition in snapshot.partitions.items():
        metrics = answered.get(partition.leader) if partition.leader is not None else None
        if metrics is not None and name not in metrics.logs:
            yield Contradiction(name, partition.leader or 0, None)
