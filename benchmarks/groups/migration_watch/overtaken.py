"""Which readers that retention overtakes an alert names, and how long before."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from benchmarks.fixtures.bench_cluster import OnProgress, failure
from benchmarks.groups.migration_watch.scoring import overtaken_at, reader_score
from benchmarks.groups.migration_watch.watched_clusters import (
    START_S,
    OriginLog,
    WatchedClusters,
    watched_clusters,
)
from benchmarks.results import Figure
from headroom.cli.common.watch_process import WatchProcess
from headroom.cluster.embedded import BrokerOptions
from headroom.schemas.alerts import AlertKind

_TOPIC, _MIGRATION = "aging", "overtaken"
_PARTITION = TopicPartition(_TOPIC, 0)
_VALUE = bytes(100)
_PER_S = 200.0
_STEP_S, _COMMIT_S = 0.05, 1.0
# The end offset is reached after this many times the retention. Then the last reader that loses nothing is as fast as
# 3 / (3 + 1) of the writes.
_RETENTIONS = 3.0
_DOOMED, _SAFE = (0.2, 0.6), (0.9, 1.6)
_READERS_OF_A_KIND = 10
# After the end offset, because records before it are still read and deleted.
_AFTER_RETENTIONS = 1.0
_SETTINGS = {"log.retention.check.interval.ms": "500", "log.initial.task.delay.ms": "100"}


def speeds() -> dict[str, float]:
    """Return the speed of each group, as a ratio of the writes."""
    return {
        f"{kind}-{number}": low + (high - low) * number / (_READERS_OF_A_KIND - 1)
        for kind, (low, high) in (("doomed", _DOOMED), ("safe", _SAFE))
        for number in range(_READERS_OF_A_KIND)
    }


def overtaken_figures(retention_s: float, on_progress: OnProgress) -> list[Figure]:
    """Return precision, recall and notice of the alerts on 20 groups.

    Args:
        retention_s: retention of the origin by age, seconds.
        on_progress: prints the progress.

    Raises:
        HeadroomError: no group was named in time.
    """
    end = round(_RETENTIONS * retention_s * _PER_S)
    settings = {"retention.ms": f"{round(1000 * retention_s)}", "segment.ms": "1000"}
    options = BrokerOptions(broker_properties={1: _SETTINGS})
    with ExitStack() as stack:
        clusters = stack.enter_context(watched_clusters(1, 1, options))
        watch = stack.enter_context(clusters.target.watch())
        writer = stack.enter_context(clusters.writer(_MIGRATION))
        clusters.create(_TOPIC, [[1]], settings)
        watch.wait(lambda: watch.verdicts() is not None, START_S, "the first verdicts")
        writer.write(clusters.agreed(_MIGRATION, _TOPIC, {0: end}))
        log = stack.enter_context(OriginLog(clusters.origin, _PARTITION))
        readers = stack.enter_context(_Readers(clusters, end))
        readers.run((_RETENTIONS + _AFTER_RETENTIONS) * retention_s)
        named_s = _named_s(watch)
        lost = {g: overtaken_at(log.readings, positions) for g, positions in readers.positions.items()}
    lost_s = {group: at_s for group, at_s in lost.items() if at_s is not None}
    score = reader_score(named_s, lost_s)
    for group, at_s in sorted(lost_s.items(), key=lambda one: one[1]):
        notice = f"named {at_s - named_s[group]:.0f} s before" if group in named_s else "not named"
        on_progress(f"{group} lost its first record, {notice}")
    on_progress(f"{len(named_s)} groups named, {len(lost_s)} lost records, named: {', '.join(sorted(named_s))}")
    if score.notice_s_min is None:
        raise failure("no group was named before it lost a record")
    return [
        Figure("overtaken_precision", score.precision, "ratio", len(named_s)),
        Figure("overtaken_recall", score.recall, "ratio", len(lost_s)),
        Figure("overtaken_notice_s_min", score.notice_s_min, "s", len(lost_s)),
    ]


class _Readers:
    """A producer, and groups whose committed offsets grow at their speeds.

    The groups commit without reading: what decides is their offsets.

    Args:
        clusters: both clusters.
        end: end offset; nothing is written or read beyond it.

    Attributes:
        positions: monotonic time and offset of each commit, by group.
    """

    def __init__(self, clusters: WatchedClusters, end: int) -> None:
        self.positions: dict[str, list[tuple[float, int]]] = defaultdict(list)
        self._end = end
        self._servers = clusters.origin.bootstrap_servers
        self._stack = ExitStack()
        self._written = 0

    def __enter__(self) -> _Readers:
        """Connect."""
        self._producer = self._stack.enter_context(closing(KafkaProducer(bootstrap_servers=self._servers)))
        self._consumers = {group: self._consumer(group) for group in speeds()}
        return self

    def __exit__(self, *_: object) -> None:
        """Disconnect."""
        self._stack.close()

    def _consumer(self, group: str) -> KafkaConsumer:
        consumer = KafkaConsumer(bootstrap_servers=self._servers, group_id=group, enable_auto_commit=False)
        consumer.assign([_PARTITION])
        return self._stack.enter_context(closing(consumer))

    def run(self, for_s: float) -> None:
        """Write and commit for a time, seconds."""
        began_s = time.monotonic()
        ended = threading.Event()
        committing = threading.Thread(target=self._commit, args=(began_s, ended), daemon=True)
        committing.start()
        while (now_s := time.monotonic() - began_s) < for_s:
            while self._written < min(self._end, now_s * _PER_S):
                self._producer.send(_TOPIC, _VALUE, partition=0)
                self._written += 1
            time.sleep(_STEP_S)
        ended.set()
        committing.join()

    def _commit(self, began_s: float, ended: threading.Event) -> None:
        while not ended.wait(_COMMIT_S):
            for group, speed in speeds().items():
                offset = min(self._end, self._written, round((time.monotonic() - began_s) * _PER_S * speed))
                before = self.positions[group][-1][1] if self.positions[group] else 0
                offset = max(before, offset)
                self._consumers[group].commit({_PARTITION: OffsetAndMetadata(offset)})
                self.positions[group].append((time.monotonic(), offset))


def _named_s(watch: WatchProcess) -> Mapping[str, float]:
    """Return when an alert first named each group, monotonic seconds."""
    named: dict[str, float] = {}
    for line in watch.firing_events():
        if line.fields["kind"] == AlertKind.MIGRATION_READER_OVERTAKEN.value:
            readers: Sequence[Mapping[str, str]] = line.fields["evidence"]["readers"]
            for reader in readers:
                named.setdefault(reader["group"], line.at_s)
    return named
