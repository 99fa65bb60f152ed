"""How far the origin's leaders were seen, by their epochs: what an earlier one had, no later reading shows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from headroom.cluster.migration.cluster_reader import ClusterReading
from headroom.planning.migration.agreement import EndsByEpoch
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import KEPT_EPOCHS, PartitionAgreement

_NO_ENDS: Mapping[int, int] = {}


@dataclass
class _SeenLog:
    """One log, by the epochs of its leaders.

    Attributes:
        topic_id: id of its topic; None if unknown.
        replicated: greatest high watermarks. What is below is acknowledged, whatever the acks.
        leader_ends: greatest log ends of the leaders, which may have more that is acknowledged, with acks below all.
        leaders: brokers that led.
    """

    topic_id: str | None
    replicated: dict[int, int] = field(default_factory=dict)
    leader_ends: dict[int, int] = field(default_factory=dict)
    leaders: dict[int, int] = field(default_factory=dict)

    def is_continued(self, epoch: int) -> bool:
        """Return whether the leader stayed in the next epoch, and was seen there: it lost nothing in between.

        Then no router reports the epoch: what was acknowledged in it counts under the next one.
        """
        leader = self.leaders.get(epoch)
        return leader is not None and leader == self.leaders.get(epoch + 1) and epoch + 1 in self.leader_ends


class SeenEnds:
    """Keeps the ends of the origin's logs by leader epoch, as long as something is agreed about them.

    A topic that was deleted and created again has other logs, whose epochs begin at 0 again.
    """

    def __init__(self) -> None:
        self._logs: dict[tuple[str, TopicPartition], _SeenLog] = {}

    def forget(self) -> None:
        """Forget everything, because nothing is agreed any more."""
        self._logs = {}

    def see(self, agreements: Collection[PartitionAgreement], reading: ClusterReading) -> None:
        """Add a reading of the origin.

        Args:
            agreements: partitions of the migrations; of others nothing is kept.
            reading: the reading.
        """
        kept = {}
        for own in agreements:
            name = own.name
            key = own.origin_cluster_id, name
            log = self._logs.get(key)
            if reading.cluster_id in (None, own.origin_cluster_id):
                log = _seen(log, name, reading)
            if log is not None:
                kept[key] = log
        self._logs = kept

    def replicated(self) -> EndsByEpoch:
        """Return how far the logs were replicated under each leader."""
        return {name: log.replicated for name, log in self._logs.items() if log.replicated}

    def unreported(self, reported: EndsByEpoch) -> EndsByEpoch:
        """Return the greatest log ends of leaders, of each epoch of which no router has reported as much.

        One router knows nothing of what was acknowledged to another one, which may have died before its report.

        Args:
            reported: offset after the last record that routers report as acknowledged.
        """
        return {
            name: {
                epoch: end
                for epoch, end in log.leader_ends.items()
                if end > reported.get(name, _NO_ENDS).get(epoch, -1) and not log.is_continued(epoch)
            }
            for name, log in self._logs.items()
        }


def _seen(before: _SeenLog | None, name: TopicPartition, reading: ClusterReading) -> _SeenLog | None:
    """Return what is known of a log with a reading; None if nothing is."""
    epoch, topic_id = reading.leader_epochs.get(name), reading.topic_ids.get(name.topic)
    if epoch is None:
        return before
    log = before
    if log is None or (topic_id is not None and log.topic_id is not None and topic_id != log.topic_id):
        log = _SeenLog(topic_id)
    log.topic_id = log.topic_id if topic_id is None else topic_id
    topic = reading.topics.get(name.topic)
    leader = None if topic is None else topic.leaders.get(name.partition)
    if leader is not None:
        log.leaders[epoch] = leader
        _drop_old(log.leaders)
    offsets, leader_end = reading.logs.get(name), reading.epoch_ends.get(name, _NO_ENDS).get(epoch)
    end = None if offsets is None else offsets.end
    # If the epoch is one of before, another leader may have replicated more. Then it ends before that.
    if end is None or leader_end is None or leader_end < end:
        return log
    for ends, now in ((log.replicated, end), (log.leader_ends, leader_end)):
        ends[epoch] = max(now, ends.get(epoch, 0))
        _drop_old(ends)
    return log


def _drop_old(by_epoch: dict[int, int]) -> None:
    while len(by_epoch) > KEPT_EPOCHS:
        del by_epoch[min(by_epoch)]
