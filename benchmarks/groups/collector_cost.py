"""Group ``metadata``: cost of a tick for the collector itself, on clusters with 20,000 and 200,000 partitions.

Simulated brokers answer in Kafka's protocol from a process of their own: metadata, throttled replica lists and rates.
The ticks go to a real broker. Metrics are prepared in advance and handed over as parsed values, so that reading and
parsing them is not part of the figures. Leaders switch between ticks.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from statistics import median

from kafka.protocol.metadata import MetadataRequest

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, failure
from benchmarks.fixtures.synthetic.fake_brokers import workload
from benchmarks.fixtures.synthetic.synthetic_ticks import RECORD_BYTES, SyntheticCluster, SyntheticPartition
from benchmarks.options.fields import NoOptions
from benchmarks.results import Figure
from headroom.cluster.collector.observation import Observer
from headroom.cluster.collector.publisher import Publisher
from headroom.cluster.collector.rows.encoder import encode_rows
from headroom.cluster.collector.tick_builder import Rows, TickBuilder
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.metadata.snapshot_reader import SnapshotReader
from headroom.cluster.metadata.topic_cache import TopicCache
from headroom.cluster.metrics.broker_reads import BrokerMetricsReader
from headroom.cluster.metrics.mbeans import ReadPlan, topic_bytes, topic_messages
from headroom.cluster.model import LogReading, Meter, Metrics, Reading
from headroom.schemas.config import ClusterSettings, CollectSettings
from headroom.schemas.keys import TopicPartition

_INTERVAL_S = 10.0
# Measured ticks after the first: enough that every topic is read again.
_TICKS = {20_000: 3, 200_000: 8}
_SWITCHES_PER_TICK = 10
# Metrics of followers show a switch in one tick, and the metadata is read again in the next.
_VISIBLE_WITHIN_TICKS = 2
_CLIENT_TIMEOUT_S = 60.0
_ACK_S = 30.0


@dataclass
class TickTimes:
    """Times of the ticks of one size, seconds each, and the age of their metadata."""

    observe_s: list[float] = field(default_factory=list)
    encode_s: list[float] = field(default_factory=list)
    publish_s: list[float] = field(default_factory=list)
    tick_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    age_s: list[float] = field(default_factory=list)
    visible_after_ticks: list[int] = field(default_factory=list)
    full_read_s: float = 0.0


class CannedMetrics:
    """A metrics source with values prepared in advance.

    Args:
        cluster: synthetic cluster of the metrics.
    """

    def __init__(self, cluster: SyntheticCluster) -> None:
        self._cluster = cluster
        self._prepared: dict[int, Metrics] = {}

    def start(self) -> None:
        """Do nothing: the values are prepared by ``prepare``."""

    def stop(self) -> None:
        """Do nothing: there is no connection."""

    def prepare(self, at_s: float) -> None:
        """Prepare the metrics of every broker for a time, seconds since the first tick."""
        read_ms, at_ms = int(time.time() * 1000), int(at_s * 1000)
        logs: dict[int, dict[TopicPartition, LogReading]] = defaultdict(dict)
        written: dict[tuple[int, str], int] = defaultdict(int)
        for p in self._cluster.partitions:
            size = p.size(at_ms)
            start, size_bytes = (0, size) if p.added else (None, None)
            for broker in (*p.replicas, *p.added) if p.added else (p.leader,):
                logs[broker][p.name] = LogReading(read_ms, size // RECORD_BYTES, start, size_bytes)
            written[p.leader, p.topic] += size
        lags = self._cluster.lags()
        counters = {b: _readings(self._cluster.counts(b, at_ms), read_ms) for b in lags}
        for (broker, topic), size in written.items():
            counted = {topic_bytes(topic): size, topic_messages(topic): size // RECORD_BYTES}
            counters[broker] |= _readings(counted, read_ms)
        gauges = _readings({Meter("ReplicaManager.UnderReplicatedPartitions"): 0}, read_ms)
        self._prepared = {b: Metrics(1, counters[b], gauges, tuple(lags[b]), logs[b]) for b in lags}

    def read(self, broker: int, endpoint: str, plan: ReadPlan, timeout_s: float) -> Metrics:
        """Return the prepared metrics of a broker."""
        return self._prepared[broker]


def _readings(values: Mapping[Meter, int], read_ms: int) -> dict[Meter, Reading]:
    return {meter: Reading(read_ms, value) for meter, value in values.items()}


class FakeBrokers:
    """The process of simulated brokers, and a copy of their cluster in this process."""

    def __init__(self, brokers: int, partitions: int) -> None:
        self.cluster = SyntheticCluster(workload(brokers, partitions))
        command = [sys.executable, "-m", "benchmarks.fixtures.synthetic.fake_brokers", str(brokers), str(partitions)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self._read_line())

    def switch(self, partition: SyntheticPartition) -> None:
        """Make the next replica of a partition its leader, in both copies of the cluster."""
        assert self._process.stdin is not None
        self.cluster.switch(partition, 0)
        print(partition.topic, partition.partition, file=self._process.stdin, flush=True)
        self._read_line()

    def close(self) -> None:
        """Stop the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)

    def _read_line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise failure("the simulated brokers ended")
        return line


def measure(on_progress: OnProgress, _options: NoOptions) -> list[Figure]:
    """Return the cost of ticks with 20,000 and 200,000 partitions, and the age of their metadata.

    Raises:
        HeadroomError: a leader switch was not visible in time.
    """
    figures = []
    with BenchCluster(1) as bench:
        for size, ticks in _TICKS.items():
            figures += _figures(size, _run(bench, size, ticks, on_progress))
    return figures


def _figures(size: int, cost: TickTimes) -> list[Figure]:
    name = f"{size // 1000}k"
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return [
        Figure(f"collector_tick_s_{name}", median(cost.tick_s), "s", len(cost.tick_s)),
        Figure(f"collector_tick_s_max_{name}", max(cost.tick_s), "s", len(cost.tick_s)),
        Figure(
            f"collector_core_ratio_{name}", sum(cost.cpu_s) / len(cost.cpu_s) / _INTERVAL_S, "ratio", len(cost.cpu_s)
        ),
        Figure(f"collector_look_s_{name}", median(cost.observe_s), "s", len(cost.observe_s)),
        Figure(f"collector_encode_s_{name}", median(cost.encode_s), "s", len(cost.encode_s)),
        Figure(f"collector_publish_s_{name}", median(cost.publish_s), "s", len(cost.publish_s)),
        # Includes the prepared metrics of one tick.
        Figure(f"collector_peak_memory_bytes_{name}", peak_bytes, "bytes", 1),
        Figure(f"metadata_whole_s_{name}", cost.full_read_s, "s", 1),
        Figure(f"metadata_age_s_max_{name}", max(cost.age_s), "s", len(cost.age_s)),
        Figure(
            f"metadata_switch_seen_ticks_max_{name}",
            max(cost.visible_after_ticks),
            "ticks",
            len(cost.visible_after_ticks),
        ),
    ]


def _run(bench: BenchCluster, size: int, ticks: int, on_progress: OnProgress) -> TickTimes:
    cost = TickTimes()
    with closing(FakeBrokers(max(6, min(100, size // 2000)), size)) as fake:
        watched = ClusterSettings(bootstrap_servers=f"127.0.0.1:{fake.port}", name="paper")
        settings = replace(
            bench.settings,
            cluster=watched,
            ticks=replace(bench.settings.ticks, bootstrap_servers=bench.bootstrap_servers),
            collect=CollectSettings(interval_s=_INTERVAL_S),
        )
        with closing(AdminConnection(watched)) as link, closing(Publisher(settings, _ACK_S)) as publisher:
            cost.full_read_s = _full_read_s(link, size)
            publisher.open()
            source = CannedMetrics(fake.cluster)
            observer = _observer(link, source, settings.collect)
            _ticks(fake, source, observer, publisher, ticks, cost)
    on_progress(
        f"{size} partitions: tick {median(cost.tick_s):.2f} s (look {median(cost.observe_s):.2f}, encode "
        f"{median(cost.encode_s):.2f}, publish {median(cost.publish_s):.2f}), {median(cost.cpu_s):.2f} s of a core; "
        f"metadata whole {cost.full_read_s:.2f} s, at most {max(cost.age_s):.0f} s old; "
        f"switches seen after {max(cost.visible_after_ticks)} ticks"
    )
    return cost


def _full_read_s(link: AdminConnection, size: int) -> float:
    """Return the seconds to read all topics in one response: the cost of a tick without incremental metadata."""
    began_s, known = time.monotonic(), TopicCache()
    answer = link.send(MetadataRequest(topics=None, allow_auto_topic_creation=False), 1, _CLIENT_TIMEOUT_S)
    known.put_range("", None, answer.topics, began_s)
    if len(known.partitions()) != size:
        raise failure(f"{len(known.partitions())} partitions were returned, not {size}")
    return time.monotonic() - began_s


def _observer(link: AdminConnection, source: CannedMetrics, collect: CollectSettings) -> Observer:
    metadata = SnapshotReader(
        link, collect.timeout_s(), collect.topic_config_max_age_s, metadata_max_age_s=collect.metadata_max_age_s
    )
    builder = TickBuilder(int(collect.window_s() * 1000), int(_INTERVAL_S * 1000))
    return Observer(metadata, BrokerMetricsReader(link, source, collect), builder, collect.timeout_s())


def _ticks(
    fake: FakeBrokers, source: CannedMetrics, observer: Observer, publisher: Publisher, count: int, cost: TickTimes
) -> None:
    chance = random.Random(1)
    pending: dict[TopicPartition, tuple[int, int]] = {}
    began_s = time.monotonic()
    for number in range(count + 1):
        source.prepare(number * _INTERVAL_S)
        time.sleep(max(0.0, began_s + number * _INTERVAL_S - time.monotonic()))
        # The first tick connects and reads everything, so it does not count.
        rows = _tick(observer, publisher, cost if number else TickTimes())
        _note_visible(rows, number, pending, cost)
        for p in chance.sample(fake.cluster.partitions, _SWITCHES_PER_TICK):
            fake.switch(p)
            pending[p.name] = (number, p.leader)


def _tick(observer: Observer, publisher: Publisher, cost: TickTimes) -> Rows:
    tick_ms = int(time.time() * 1000)
    with _timed(cost.tick_s), _timed(cost.cpu_s, time.process_time):
        with _timed(cost.observe_s):
            observation = observer.observe(tick_ms)
        with _timed(cost.encode_s):
            messages = encode_rows("paper", tick_ms, observation.rows)
        with _timed(cost.publish_s):
            publisher.send(messages)
    cost.age_s.append(observation.metadata_age_ms / 1000)
    return observation.rows


@contextmanager
def _timed(into: list[float], clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    began_s = clock()
    yield
    into.append(clock() - began_s)


def _note_visible(rows: Rows, number: int, pending: dict[TopicPartition, tuple[int, int]], cost: TickTimes) -> None:
    """Record the number of ticks until each switch was visible."""
    leaders = {TopicPartition(row["topic"], row["partition"]): row["leader"] for row in rows["leaders"]}
    for name, (switched, leader) in list(pending.items()):
        if leaders[name] == leader:
            cost.visible_after_ticks.append(number - switched)
            del pending[name]
        elif number - switched >= _VISIBLE_WITHIN_TICKS:
            raise failure(
                f"the new leader {leader} of {name.topic}-{name.partition} was not seen in "
                f"{_VISIBLE_WITHIN_TICKS} ticks"
            )
