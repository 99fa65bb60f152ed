"""Group ``sources``: time to read one broker's metrics of a tick from each source, and the CPU cost for the broker.

The same for its loads, which are read apart from the ticks, and the time of a tick while they are read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import psutil
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic
from kafka.errors import KafkaError

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, failure
from benchmarks.options.fields import AT_LEAST_ONE, CommaSeparated, option
from benchmarks.results import Figure, percentile
from headroom.cli.common.output import print_table
from headroom.cluster.embedded import BrokerOptions, endpoint
from headroom.cluster.metrics.factory import metrics_sources
from headroom.cluster.metrics.mbeans import LOAD, ReadPlan
from headroom.cluster.metrics.source import MetricsError
from headroom.cluster.model import Metrics
from headroom.schemas.config import CollectSettings, Source
from headroom.schemas.keys import TopicPartition

_PARTITIONS_PER_TOPIC = 100
# One replica in 100 takes part in a move.
_MOVING_RATIO = 0.01
_CREATE_TOPICS = 5
# Measured time and minimum number of reads. The warm-up reads do not count, because the JVMs still compile.
_READ_S = 10.0
_LEAST_READS = 5
_WARM_UP_READS = 5
# Ten times the usual waits, for a machine that is busy with something else.
_TIMEOUT_S = 300.0
_TICK_S, _LOAD_S = 10.0, CollectSettings().load_interval_s
_CORE_RATIO_AT = 4000
# JVM options of Kafka's own script; embedded brokers run with less. Indexes of 64 kB suffice for logs of one record.
_JVM = ("-Xmx1500m", "-XX:-UseSerialGC", "-XX:+UseG1GC", "-XX:TieredStopAtLevel=4")
_PROPERTIES = {"log.index.size.max.bytes": "65536", "num.io.threads": "2", "num.network.threads": "2"}
_BROKER = 1
_Read = Callable[[ReadPlan], Metrics]


@dataclass(frozen=True)
class SourceCost:
    """Cost of one source at one size.

    Attributes:
        source: source of the metrics.
        replicas: replicas on the broker.
        read_s: median time to read and parse the metrics of a tick.
        core_ratio: share of one core that the broker spends on a read every 10 s.
        reads: number of measured reads.
        load_s: median time to read and parse the loads.
        load_core_ratio: share of one core that the broker spends on reads of loads at their default interval.
        during_load_s: median time of a tick's read while loads are read all the time.
    """

    source: Source
    replicas: int
    read_s: float
    core_ratio: float
    reads: int
    load_s: float
    load_core_ratio: float
    during_load_s: float


@dataclass(frozen=True)
class SourcesOptions:
    """Options of the group ``sources``."""

    replicas: tuple[int, ...] = option(
        (1000, 4000, 10_000), CommaSeparated(AT_LEAST_ONE), "Replicas on a broker, comma-separated."
    )


def measure(on_progress: OnProgress, options: SourcesOptions) -> list[Figure]:
    """Return time and cost of each source, for each number of replicas.

    Raises:
        HeadroomError: the replicas were not ready in time, or a read failed or was incomplete.
    """
    sizes = sorted(options.replicas)
    broker_options = BrokerOptions(_PROPERTIES, java_options=dict.fromkeys((1, 2), _JVM), agents=True)
    costs: list[SourceCost] = []
    with BenchCluster(2, broker_options) as bench:
        for size in sizes:
            plan = _grow(bench, size, on_progress)
            costs += [_cost(bench, source, plan, on_progress) for source in Source]
    _print(costs)
    return [figure for size in sizes for figure in _figures([cost for cost in costs if cost.replicas == size])]


def _figures(costs: list[SourceCost]) -> list[Figure]:
    """Return the figures of one size. A name without a source is that of the fastest source."""
    best = min(costs, key=lambda cost: cost.read_s)
    size = best.replicas
    figures = [Figure(f"collect_{size}_replicas_s", best.read_s, "s", best.reads)]
    figures += [Figure(f"collect_{size}_replicas_{c.source.value}_s", c.read_s, "s", c.reads) for c in costs]
    for c in costs:
        figures.append(Figure(f"load_{size}_replicas_{c.source.value}_s", c.load_s, "s", c.reads))
        figures.append(Figure(f"collect_{size}_replicas_during_load_{c.source.value}_s", c.during_load_s, "s", c.reads))
    if size == _CORE_RATIO_AT:
        figures += [
            Figure(f"load_broker_core_ratio_{c.source.value}", c.load_core_ratio, "ratio", c.reads) for c in costs
        ]
        figures.append(Figure("collect_broker_core_ratio", best.core_ratio, "ratio", best.reads))
        figures += [
            Figure(f"collect_broker_core_ratio_{c.source.value}", c.core_ratio, "ratio", c.reads) for c in costs
        ]
    return figures


def _grow(bench: BenchCluster, replicas: int, on_progress: OnProgress) -> ReadPlan:
    """Create topics until a broker has the given replicas, and return its read plan. It leads every second one."""
    began = time.monotonic()
    topics = [f"sources-{number:03}" for number in range(-(-replicas // _PARTITIONS_PER_TOPIC))]
    there = set(bench.admin.list_topics())
    missing = [topic for topic in topics if topic not in there]
    for start in range(0, len(missing), _CREATE_TOPICS):
        _create(bench.admin, missing[start : start + _CREATE_TOPICS])
    names = [TopicPartition(topic, p) for topic in topics for p in range(_PARTITIONS_PER_TOPIC)][:replicas]
    _write_one_each(bench, [name for name in names if name.topic in missing])
    # The brokers' internal topics add a few replicas.
    plan = ReadPlan(
        topics,
        [name for name in names if _leader(name.partition) == _BROKER],
        names[: max(1, int(replicas * _MOVING_RATIO))],
        replicas + _PARTITIONS_PER_TOPIC,
        follows=True,
    )
    _await_complete(bench, plan)
    on_progress(f"{replicas} replicas on broker {_BROKER} after {time.monotonic() - began:.0f} s")
    return plan


def _leader(partition: int) -> int:
    return 1 + partition % 2


def _create(admin: KafkaAdminClient, topics: list[str]) -> None:
    replicas = {p: [_leader(p), 3 - _leader(p)] for p in range(_PARTITIONS_PER_TOPIC)}
    admin.create_topics([NewTopic(topic, -1, -1, replica_assignments=replicas) for topic in topics])


def _write_one_each(bench: BenchCluster, names: list[TopicPartition]) -> None:
    """Write one record to each partition, because a topic without records has no meters."""
    deadline = time.monotonic() + _TIMEOUT_S
    patience_ms = int(_TIMEOUT_S * 1000)
    producer = KafkaProducer(
        bootstrap_servers=bench.bootstrap_servers,
        linger_ms=50,
        max_block_ms=patience_ms,
        delivery_timeout_ms=patience_ms,
    )
    try:
        for name in names:
            producer.send(name.topic, bytes(100), partition=name.partition)
        producer.flush(timeout=max(1.0, deadline - time.monotonic()))
    except KafkaError as error:
        raise failure(f"the partitions could not be written ({type(error).__name__})") from error
    finally:
        producer.close(timeout=5)


def _await_complete(bench: BenchCluster, plan: ReadPlan) -> None:
    """Return once every source returns all metrics."""
    for source in Source:
        with _reading(bench, source) as (read, _):
            deadline = time.monotonic() + _TIMEOUT_S
            while (missing := _missing_readings(read, plan)) is not None:
                if time.monotonic() > deadline:
                    raise failure(f"{source.value}: incomplete: {missing}")
                time.sleep(1)


def _missing_readings(read: _Read, plan: ReadPlan) -> str | None:
    """Return what a read is missing as text; None if it is complete."""
    try:
        metrics = read(plan)
    except MetricsError as error:
        return str(error)
    followed = {name.partition for name in metrics.lags}
    logs = len({*plan.leads, *plan.watched} - metrics.logs.keys())
    meters = len(set(plan.topics) - {meter.topic for meter in metrics.counters})
    lags = len(plan.leads) - len(followed)
    # The broker follows as many partitions as it leads, apart from internal topics.
    return f"{logs} logs, {meters} topics, {lags} lags missing" if logs or meters or lags > 0 else None


@contextmanager
def _reading(bench: BenchCluster, source: Source) -> Iterator[tuple[_Read, _Read]]:
    """Yield two functions that read the broker from a source, of which neither waits for the other."""
    collect = replace(bench.settings.collect, source=source, broker_timeout_s=_TIMEOUT_S)
    first, second = metrics_sources(collect)
    address = endpoint(bench.broker(_BROKER), source)
    first.start()
    try:
        yield (
            lambda plan: first.read(_BROKER, address, plan, _TIMEOUT_S),
            lambda plan: second.read(_BROKER, address, plan, _TIMEOUT_S),
        )
    finally:
        first.stop()
        second.stop()


def _cost(bench: BenchCluster, source: Source, plan: ReadPlan, on_progress: OnProgress) -> SourceCost:
    process = psutil.Process(bench.broker(_BROKER).pid)
    load = ReadPlan(plan.topics, (), (), plan.replicas, scope=LOAD)
    with _reading(bench, source) as (read, read_load):
        for _ in range(_WARM_UP_READS):
            read(plan)
            read_load(load)
        idle = _cpu_ratio(process, lambda: time.sleep(_READ_S))[0]
        tick_s, tick_core_s = _measure(process, idle, read, plan)
        load_s, load_core_s = _measure(process, idle, read_load, load)
        during_s = _times_during(read, plan, lambda: read_load(load))
    replicas = len(plan.leads) * 2
    cost = SourceCost(
        source,
        replicas,
        percentile(tick_s, 0.5),
        tick_core_s / _TICK_S,
        len(tick_s),
        percentile(load_s, 0.5),
        load_core_s / _LOAD_S,
        percentile(during_s, 0.5),
    )
    on_progress(
        f"{replicas} replicas by {source.value}: {cost.read_s:.3f} s, broker {tick_core_s:.3f} core seconds a read"
        f" (idle {idle:.3f} of a core); loads {cost.load_s:.3f} s, {load_core_s:.3f} core seconds;"
        f" a tick meanwhile {cost.during_load_s:.3f} s"
    )
    return cost


def _measure(process: psutil.Process, idle: float, read: _Read, plan: ReadPlan) -> tuple[list[float], float]:
    """Return the seconds of each read, and the core seconds that the broker spends on one."""
    times: list[float] = []
    busy, took_s = _cpu_ratio(process, lambda: times.extend(_times(read, plan)))
    return times, (busy - idle) * took_s / len(times)


def _times_during(read: _Read, plan: ReadPlan, other: Callable[[], object]) -> list[float]:
    """Return the seconds of each read while another thread reads without a pause."""
    ended = threading.Event()

    def work() -> None:
        while not ended.is_set():
            other()

    thread = threading.Thread(target=work, name="loads")
    thread.start()
    try:
        return list(_times(read, plan))
    finally:
        ended.set()
        thread.join()


def _times(read: _Read, plan: ReadPlan) -> Iterator[float]:
    """Yield the seconds of each read."""
    began, reads = time.monotonic(), 0
    while reads < _LEAST_READS or time.monotonic() - began < _READ_S:
        start = time.monotonic()
        read(plan)
        reads += 1
        yield time.monotonic() - start


def _cpu_ratio(process: psutil.Process, work: Callable[[], None]) -> tuple[float, float]:
    """Run work, and return the share of one core that a process used meanwhile, and the seconds that it took."""
    began, before = time.monotonic(), process.cpu_times()
    work()
    took_s, after = time.monotonic() - began, process.cpu_times()
    return (after.user + after.system - before.user - before.system) / took_s, took_s


def _print(costs: list[SourceCost]) -> None:
    rows = [
        (
            *(str(c.replicas), c.source.value, f"{c.read_s:.3f}", f"{c.core_ratio * _TICK_S:.3f}"),
            *(f"{c.core_ratio:.4f}", f"{c.load_s:.3f}", f"{c.load_core_ratio:.5f}", f"{c.during_load_s:.3f}"),
        )
        for c in costs
    ]
    header = ("replicas", "source", "read s", "broker CPU s a read", "of a core at 10 s")
    print_table("", (*header, "loads s", "of a core at 30 s", "read s meanwhile"), rows)
