"""Group ``tiered``: bytes of plans for topics with remote storage, beside those that new replicas really copied.

Brokers keep uploaded segments in a folder, by Kafka's own storage manager for tests. Each of five topics is written
until all of its segments but the active ones are uploaded, and the oldest are deleted locally. ``headroom plan`` counts
the bytes of a move to new brokers, then the move is carried out, once with ``follower.fetch.last.tiered.offset.enable``
and once without it.

``tiered_bytes_error_ratio_max`` is the greatest distance of the bytes in the logs of new replicas from those of the
plan, divided by those of the plan. Logs have 1 to 3 partitions and segments of 1 to 4 MiB. In two of the topics sizes
of records vary by a factor of three; a plan assumes that they are about the same all over a log.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from kafka import KafkaProducer

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, await_true, failure
from benchmarks.fixtures.headroom_commands import HeadroomCommands
from benchmarks.fixtures.throttled_move import replica_logs
from benchmarks.options.fields import NoOptions
from benchmarks.results import Figure
from headroom.cluster.embedded import BrokerOptions
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment, plan_text
from headroom.schemas.keys import TopicPartition
from tests.support.remote_storage import (
    LEAST_SEGMENT_BYTES,
    TieredLog,
    keep_local,
    remote_storage,
    set_skips_uploaded,
    skips_uploaded,
    tiered_topic,
)

_BROKERS = 3
_MB = 1_000_000
_SETTING_S, _TIERED_S, _MOVE_S = 30.0, 120.0, 120.0
# Batches of small records are full, as those of a busy producer.
_LINGER_MS = 50


@dataclass(frozen=True)
class TieredCase:
    """A topic with remote storage, and its move.

    Attributes:
        name: its name.
        written_bytes: bytes of the values written to each partition.
        segment_bytes: size of its segments.
        local_bytes: ``local.retention.bytes``.
        record_bytes: least and greatest size of a record's value.
        before: replicas of every partition, the leader first.
        after: replicas of every partition after the move.
    """

    name: str
    written_bytes: tuple[int, ...]
    segment_bytes: int
    local_bytes: int
    record_bytes: tuple[int, int] = (10_000, 10_000)
    before: tuple[int, ...] = (1,)
    after: tuple[int, ...] = (2,)


CASES = (
    TieredCase("small", (8 * _MB,), LEAST_SEGMENT_BYTES, 3 * LEAST_SEGMENT_BYTES),
    TieredCase("large-segments", (19 * _MB,), 4 * LEAST_SEGMENT_BYTES, 6 * LEAST_SEGMENT_BYTES),
    TieredCase(
        "unequal-logs",
        (9 * _MB, 14 * _MB, 23 * _MB),
        2 * LEAST_SEGMENT_BYTES,
        5 * LEAST_SEGMENT_BYTES,
        before=(1, 2),
        after=(1, 3),
    ),
    TieredCase("unequal-records", (12 * _MB,), 2 * LEAST_SEGMENT_BYTES, 4 * LEAST_SEGMENT_BYTES, (1_000, 3_000)),
    TieredCase(
        "unequal-both",
        (7 * _MB, 16 * _MB),
        2 * LEAST_SEGMENT_BYTES,
        3 * LEAST_SEGMENT_BYTES,
        (5_000, 15_000),
        after=(3,),
    ),
)


def measure(on_progress: OnProgress, _options: NoOptions) -> list[Figure]:
    """Return the greatest error over all moves.

    Raises:
        HeadroomError: set-up has not fetched the storage manager, a topic was not uploaded, or a move did not end.
    """
    errors = []
    with TemporaryDirectory(prefix="headroom-remote-") as remote:
        options = BrokerOptions(properties=remote_storage(Path(remote)))
        with BenchCluster(_BROKERS, options) as bench:
            for skips in (True, False):
                _set_skips_uploaded(bench, skips)
                errors += [_error(bench, case, skips, on_progress) for case in CASES]
    return [Figure("tiered_bytes_error_ratio_max", max(errors), "ratio", len(errors))]


def _set_skips_uploaded(bench: BenchCluster, skips: bool) -> None:
    set_skips_uploaded(bench.settings, skips)
    known = lambda: all(skips_uploaded(bench.admin, b) == skips for b in bench.brokers)  # noqa: E731
    await_true(known, _SETTING_S, "the setting of new replicas")


def _error(bench: BenchCluster, case: TieredCase, skips: bool, on_progress: OnProgress) -> float:
    topic = f"{case.name}-{'on' if skips else 'off'}"
    _write_tiered(bench, topic, case)
    targets = tuple(TargetAssignment(TopicPartition(topic, n), case.after) for n in range(len(case.written_bytes)))
    file = bench.folder / f"{topic}.json"
    file.write_text(plan_text(ReassignmentPlan(targets)), encoding="utf-8")
    planned = HeadroomCommands(bench.config).json("plan", str(file))["copied_bytes"]
    if not planned:
        raise failure(f"{topic}: no bytes are planned: {planned}")
    refused = bench.admin.alter_partition_reassignments({t.name: list(t.replicas) for t in targets})
    if any(refused.values()):
        raise failure(f"{topic}: the move was refused: {refused}")
    await_true(lambda: not bench.admin.list_partition_reassignments(), _MOVE_S, f"{topic}: the end of its move")
    logs = replica_logs(bench.admin.describe_log_dirs(), topic)
    copied = sum(log["partition_size"] for broker, _, log in logs if broker not in case.before)
    error: float = abs(copied / planned - 1)
    on_progress(f"{topic}: {planned / 1e6:.2f} MB planned, {copied / 1e6:.2f} MB copied, error {error:.3f}")
    return error


def _write_tiered(bench: BenchCluster, topic: str, case: TieredCase) -> None:
    """Write a topic, and return once nothing more of it is uploaded or deleted."""
    assignments = {number: list(case.before) for number in range(len(case.written_bytes))}
    configs = tiered_topic(case.segment_bytes, case.local_bytes)
    bench.admin.create_topics({topic: {"assignments": assignments, "configs": configs}}, wait_for_metadata=True)
    with closing(KafkaProducer(bootstrap_servers=bench.bootstrap_servers, linger_ms=_LINGER_MS)) as producer:
        for partition, total in enumerate(case.written_bytes):
            for value in _values(total, case.record_bytes, Random(partition)):
                producer.send(topic, value, partition=partition)
        producer.flush()
    data = bench.log_dir(case.before[0])
    for partition in assignments:
        log = TieredLog(TopicPartition(topic, partition), data, case.local_bytes)
        await_true(partial(log.is_tiered, bench.admin), _TIERED_S, f"{log.name} is uploaded")
    keep_local(bench.settings, topic)


def _values(total_bytes: int, record_bytes: tuple[int, int], chance: Random) -> Iterator[bytes]:
    while total_bytes > 0:
        value = chance.randbytes(chance.randint(*record_bytes))
        total_bytes -= len(value)
        yield value
