"""The alert path of a small cluster to which 2,000 partitions migrate."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from statistics import median

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, failure
from benchmarks.fixtures.synthetic.synthetic_producer import PreparedTick, TickProducer
from benchmarks.groups.migration_watch.made_migration import MadeMigration
from benchmarks.groups.scale.group import START_S, Schedule, alert_path_started, prepared
from benchmarks.results import Figure
from headroom.cli.common.watch_process import WatchProcess
from headroom.cluster.collector.migration.rows import migration_rows
from headroom.cluster.collector.rows.encoder import Message, encode_rows
from headroom.schemas.tables import MIGRATION_PROGRESS
from headroom.streaming.delta.query_table import query

_SIZE, _DRIVER_MEMORY = 2000, "2g"
# All are sent at their interval: the alert path keeps up with it from the first one on.
_SCHEDULE = Schedule(warm=20, at_once=0, paced=8, interval_s=5.0)
_RECORDED_S, _POLL_S = 120.0, 0.2
_KIND = "migrations"


def path_figures(on_progress: OnProgress) -> list[Figure]:
    """Return the times from ticks to their verdicts on throttles, and to the gold rows of their migrations.

    Raises:
        HeadroomError: ticks were not evaluated or recorded in time.
    """
    with BenchCluster(1) as bench:
        bench.configure(_SCHEDULE.interval_s, {"driver_memory": _DRIVER_MEMORY})
        count, interval_s = _SCHEDULE.every, _SCHEDULE.interval_s
        # Half of the first ticks are older than the watch, which takes about as long to start.
        plain = prepared(_SIZE, bench, count, now=_SCHEDULE.warm // 2, interval_s=interval_s)
        migration = MadeMigration(_SIZE, plain[0].tick_ms - 60_000)
        ticks = [_migrating(tick, migration, bench.settings.cluster.name) for tick in plain]
        with (
            closing(TickProducer(bench.settings, bench.settings.cluster.name)) as producer,
            bench.watch(options=["--without-collector"]) as watch,
        ):
            watch.wait(lambda: alert_path_started(bench), START_S, "the alert path to start")
            measured = ticks[_SCHEDULE.warm :]
            recorded_s = _send_paced(bench, watch, producer, ticks, {tick.tick_ms for tick in measured})
            printed = {line.fields["tick_ms"]: line.at_s for line in watch.lines if line.fields["type"] == "verdicts"}
            ended_s = producer.ended_s
    alert_s = [printed[t.tick_ms] - ended_s[t.tick_ms] for t in measured if t.tick_ms in printed]
    if not alert_s:
        raise failure("no verdict on a throttle was printed")
    gold_s = [recorded_s[t.tick_ms] - ended_s[t.tick_ms] for t in measured]
    on_progress(
        f"{_SIZE} migrating partitions: verdicts on throttles {median(alert_s):.2f} s, rows {median(gold_s):.2f} s"
    )
    return [
        Figure("alert_path_migrating_s_2k", median(alert_s), "s", len(alert_s)),
        Figure("migration_verdict_s_2k", median(gold_s), "s", len(gold_s)),
    ]


def _migrating(tick: PreparedTick, migration: MadeMigration, cluster: str) -> PreparedTick:
    """Return a tick with the messages of a migration, behind those of the alert partition that it has."""
    rows = migration_rows(migration.facts((tick.tick_ms - migration.begin_ms) / 1000))
    made: list[Message] = [m for m in encode_rows(cluster, tick.tick_ms, {_KIND: rows}) if m.kind == _KIND]
    alerts = [message for message in tick.messages if message.for_alerts]
    others = [message for message in tick.messages if not message.for_alerts]
    return replace(tick, messages=[*alerts, *_renumbered(made, len(tick.messages)), *others])


def _renumbered(messages: list[Message], first: int) -> list[Message]:
    """Return messages with numbers that no other message of the tick has."""
    numbered = []
    for number, message in enumerate(messages, first):
        own = message.key.rpartition(b'"seq":')[2].split(b",")[0]
        before, after = b'"seq":' + own + b",", b'"seq":%d,' % number
        numbered.append(
            replace(message, key=message.key.replace(before, after, 1), value=message.value.replace(before, after, 1))
        )
    return numbered


def _send_paced(
    bench: BenchCluster, watch: WatchProcess, producer: TickProducer, ticks: list[PreparedTick], wanted: set[int]
) -> dict[int, float]:
    """Send ticks at their interval, and return when the rows of migrations of each were in gold, monotonic seconds.

    Args:
        bench: cluster that gets the ticks.
        watch: process that evaluates and records them.
        producer: producer of the ticks.
        ticks: ticks to send.
        wanted: times of the ticks that are waited for, epoch milliseconds.

    Raises:
        HeadroomError: ticks were not recorded in time.
    """
    recorded: dict[int, float] = {}

    def note() -> bool:
        now_s = time.monotonic()
        rows = query(bench.store, MIGRATION_PROGRESS.path, "SELECT DISTINCT tick_ms FROM data") or []
        for row in rows:
            recorded.setdefault(row["tick_ms"], now_s)
        return wanted <= recorded.keys()

    began_s = time.monotonic()
    for number, tick in enumerate(ticks):
        while time.monotonic() < began_s + number * _SCHEDULE.interval_s:
            note()
            time.sleep(_POLL_S)
        producer.send(tick)
    watch.wait(note, _RECORDED_S, "the rows of migrations", poll_s=_POLL_S)
    return recorded
