"""A topic that a real MirrorMaker copies while records are written, and groups that stop anywhere in it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from random import Random
from types import TracebackType

from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaPartition

from benchmarks.fixtures.bench_cluster import BenchCluster, await_true, failure
from benchmarks.groups.mirror.continued import parse_checkpoint
from benchmarks.groups.mirror.mirror_maker import MirroredCluster, MirrorMaker
from headroom.cluster.migration.migration_cluster import MigrationCluster
from headroom.schemas.config import ClusterSettings, MigrationSettings, OriginSettings, Settings
from headroom.schemas.keys import TopicPartition

ORIGIN, TARGET, TOPIC = "old", "new", "orders"
MIRROR = f"{ORIGIN}.{TOPIC}"
_CHECKPOINTS = f"{ORIGIN}.checkpoints.internal"
# Records of each partition that are there before the mirror begins, and those that are written a second.
_BACKLOG, _PER_S = 3_000, 200
# MirrorMaker writes its syncs as batches are acknowledged, at most ten at a time: with small records some are left out.
_RECORD_BYTES = 1_000
_STEP_S, _READ_S, _POLL_MS = 0.05, 60.0, 500
_MIRRORED_S = 120.0
# Of the groups, this many have read all when they stop.
_AT_END_RATIO = 0.2


class NumberedWriter:
    """Writes records to all partitions of the topic from one thread; each has its offset as its value, padded.

    Args:
        bootstrap_servers: brokers of the origin.
        partitions: number of partitions.
    """

    def __init__(self, bootstrap_servers: str, partitions: int) -> None:
        self._producer = KafkaProducer(bootstrap_servers=bootstrap_servers, acks="all", linger_ms=10)
        self._partitions = partitions
        self._written = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="numbered-writer", daemon=True)

    def write(self, records: int) -> None:
        """Write this many records to each partition."""
        for number in range(self._written, self._written + records):
            for partition_number in range(self._partitions):
                key = b"key %d" % (number % 7)
                self._producer.send(TOPIC, (b"%d" % number).ljust(_RECORD_BYTES), key=key, partition=partition_number)
        self._written += records

    def start(self) -> None:
        """Write from now on."""
        self._thread.start()

    def stop(self) -> int:
        """Write no more, and return the number of records of each partition."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        self._producer.flush()
        return self._written

    def __enter__(self) -> NumberedWriter:
        """Return this writer."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop writing, and close the connection."""
        self.stop()
        self._producer.close()

    def _run(self) -> None:
        began_s, before = time.monotonic(), self._written
        while not self._ended.wait(_STEP_S):
            self.write(max(0, before + round((time.monotonic() - began_s) * _PER_S) - self._written))


@dataclass
class MirroredTopic:
    """The topic on both clusters, and what copies it.

    Attributes:
        settings: settings of both clusters, for the use cases.
        partitions: number of partitions.
        writer: writes the topic.
        maker: copies it.
        origin: the origin.
        committed: committed offsets of each group that has stopped, by partition.
    """

    settings: Settings
    partitions: int
    writer: NumberedWriter
    maker: MirrorMaker
    origin: MigrationCluster
    committed: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)

    def stop_groups(self, groups: int, chance: Random) -> None:
        """Let further groups stop, each at random places before the log ends, or there."""
        ends = self.origin.log_ends({TOPIC: self.origin.topics().topics[TOPIC]})[0]
        for _ in range(groups):
            group = f"group-{len(self.committed):02d}"
            offsets = {
                name: end if chance.random() < _AT_END_RATIO else chance.randint(0, end) for name, end in ends.items()
            }
            self.origin.commit(group, offsets)
            self.committed[group] = offsets

    def mirror_ends(self) -> list[int]:
        """Return the log end of each partition of the mirror; none if it is not there yet."""
        with closing(KafkaConsumer(bootstrap_servers=self.settings.cluster.bootstrap_servers)) as consumer:
            if MIRROR not in consumer.topics():
                return []
            found = consumer.end_offsets([KafkaPartition(MIRROR, number) for number in range(self.partitions)])
        return [found[name] for name in sorted(found)]

    def await_mirrored(self, records: int) -> None:
        """Return once the mirror has this many records of each partition.

        Raises:
            HeadroomError: MirrorMaker has ended, or did not copy them in time.
        """

        def has_all() -> bool:
            self.maker.require_alive()
            ends = self.mirror_ends()
            return bool(ends) and min(ends) >= records

        await_true(has_all, _MIRRORED_S, f"{records} records of each partition of {MIRROR}")

    def mirror(self) -> list[list[int]]:
        """Return the offset on the origin of the record at each offset of each partition of the mirror.

        Raises:
            HeadroomError: an offset of the mirror has no record.
        """
        values = self._values(MIRROR, range(self.partitions))
        return [[int(value) for _, value in values[number]] for number in range(self.partitions)]

    def checkpoints(self) -> Mapping[tuple[str, TopicPartition], tuple[int, int]]:
        """Return the last checkpoint of each group and partition of the origin, as offsets on origin and target."""
        found = {}
        for key, value in self._values(_CHECKPOINTS, [0])[0]:
            one = parse_checkpoint(key, value)
            if one.name.topic == MIRROR:
                found[one.group, TopicPartition(TOPIC, one.name.partition)] = (one.origin, one.target)
        return found

    def _values(self, topic: str, numbers: range | list[int]) -> dict[int, list[tuple[bytes, bytes]]]:
        """Return keys and values of all records of a topic of the target, by partition."""
        names = [KafkaPartition(topic, number) for number in numbers]
        options = {"bootstrap_servers": self.settings.cluster.bootstrap_servers, "enable_auto_commit": False}
        found: dict[int, list[tuple[bytes, bytes]]] = {name.partition: [] for name in names}
        with closing(KafkaConsumer(**options)) as consumer:
            ends = consumer.end_offsets(names)
            consumer.assign(names)
            consumer.seek_to_beginning()
            give_up_s = time.monotonic() + _READ_S
            while any(consumer.position(name) < ends[name] for name in names):
                if time.monotonic() > give_up_s:
                    raise failure(f"{topic} was not read within {_READ_S:.0f} s")
                for name, records in consumer.poll(timeout_ms=_POLL_MS, max_records=5_000).items():
                    for record in records:
                        if topic == MIRROR and record.offset != len(found[name.partition]):
                            raise failure(f"{topic} has no record before offset {record.offset}")
                        found[name.partition].append((record.key, record.value))
        return found


@contextmanager
def mirrored_topic(partitions: int) -> Iterator[MirroredTopic]:
    """Yield a topic with a backlog that is being copied, and written.

    Raises:
        HeadroomError: set-up has not fetched MirrorMaker, or a process could not be started.
    """
    with ExitStack() as stack:
        origin, target = (stack.enter_context(BenchCluster(1)) for _ in range(2))
        settings = Settings(
            cluster=ClusterSettings(name=TARGET, bootstrap_servers=target.bootstrap_servers),
            migration=MigrationSettings(
                origin=OriginSettings(name=ORIGIN, bootstrap_servers=origin.bootstrap_servers),
            ),
        )
        origin.admin.create_topics(
            {TOPIC: {"assignments": {number: [1] for number in range(partitions)}}}, wait_for_metadata=True
        )
        writer = stack.enter_context(NumberedWriter(origin.bootstrap_servers, partitions))
        writer.write(_BACKLOG)
        from_cluster = MirroredCluster(ORIGIN, origin.bootstrap_servers)
        to_cluster = MirroredCluster(TARGET, target.bootstrap_servers)
        maker = stack.enter_context(MirrorMaker(target.folder, from_cluster, to_cluster, TOPIC))
        cluster = stack.enter_context(MigrationCluster(settings.migration.origin, ORIGIN))
        writer.start()
        yield MirroredTopic(settings, partitions, writer, maker, cluster)
