"""Processor time of a tick with a large migration: from readings of both clusters to alerts and metrics."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable
from statistics import median
from typing import TypeVar

from benchmarks.fixtures.bench_cluster import OnProgress, failure
from benchmarks.groups.migration_watch.made_migration import MadeMigration
from benchmarks.results import Figure
from headroom.alerts.engine import AlertEngine
from headroom.alerts.metrics.migration_samples import migration_samples
from headroom.cluster.collector.migration.rows import migration_rows
from headroom.cluster.collector.rows.encoder import encode_rows
from headroom.planning.migration.progress.judgement import migration_progress
from headroom.planning.migration.progress.message_row import readings_of_rows
from headroom.planning.migration.progress.progress import MigrationProgress, MigrationVerdict
from headroom.schemas.config import ClusterSettings, Settings
from headroom.streaming.transforms.migrations import paused_garbage_collection

T = TypeVar("T")
_CLUSTER, _KIND = "made", "migrations"
_BEGIN_MS = 1_800_000_000_000
_FIRST_S = 30.0
# The first tick fills caches.
_WARM = 1


class _Stages:
    """Processor seconds of the stages of a tick, in order."""

    def __init__(self) -> None:
        self.took_s: dict[str, float] = {}

    def run(self, stage: str, call: Callable[[], T]) -> T:
        """Return what a call returns; its time is added to that of the stage."""
        began_s = time.process_time()
        result = call()
        self.took_s[stage] = self.took_s.get(stage, 0.0) + time.process_time() - began_s
        return result


def cost_figures(partitions: int, ticks: int, on_progress: OnProgress) -> list[Figure]:
    """Return the processor time of a tick, and of its stages.

    Args:
        partitions: number of migrating partitions.
        ticks: number of measured ticks.
        on_progress: prints the progress.

    Raises:
        HeadroomError: a partition was not judged, or not as it is.
    """
    migration = MadeMigration(partitions, _BEGIN_MS)
    engine = AlertEngine(Settings(cluster=ClusterSettings(name=_CLUSTER)), lambda: _BEGIN_MS)
    by_stage: dict[str, list[float]] = defaultdict(list)
    for number in range(_WARM + ticks):
        stages = _tick(migration, engine, _FIRST_S + number)
        if number >= _WARM:
            for stage, took_s in stages.took_s.items():
                by_stage[stage].append(took_s)
    all_s = [sum(of_tick) for of_tick in zip(*by_stage.values(), strict=True)]
    text = ", ".join(f"{stage} {median(took):.2f}" for stage, took in by_stage.items())
    on_progress(f"{partitions} migrating partitions: {median(all_s):.2f} s of a core a tick ({text})")
    name = f"{partitions // 1000}k"
    return [
        Figure(f"migration_tick_s_{name}", median(all_s), "s", ticks),
        *(Figure(f"migration_tick_{stage}_s_{name}", median(s), "s", ticks) for stage, s in by_stage.items()),
        Figure(f"migration_judge_us_{name}", 1e6 * median(by_stage["judge"]) / partitions, "µs", ticks),
    ]


def _tick(migration: MadeMigration, engine: AlertEngine, at_s: float) -> _Stages:
    """Do what is done for a tick, as the collector and the alert path do it."""
    facts, tick_ms = migration.facts(at_s), _BEGIN_MS + round(1000 * at_s)
    stages = _Stages()
    rows = stages.run("rows", lambda: migration_rows(facts))
    messages = stages.run("encode", lambda: encode_rows(_CLUSTER, tick_ms, {_KIND: rows}))
    progress: list[MigrationProgress] = []
    with paused_garbage_collection():
        for message in messages:
            if message.kind == _KIND:
                # One message after the other, so that not all rows of a tick are in memory.
                parsed = stages.run("parse", lambda value=message.value: json.loads(value)["rows"])  # type: ignore[misc]
                progress += stages.run("judge", lambda own=parsed: _judged(own, tick_ms))  # type: ignore[misc]
    engine.evaluate(_CLUSTER, tick_ms, ())
    events = stages.run("alerts", lambda: engine.evaluate_migrations(_CLUSTER, tick_ms, progress))
    stages.run("metrics", lambda: list(migration_samples(_CLUSTER, progress)))
    on_plan = sum(one.verdict is MigrationVerdict.ON_PLAN for one in progress)
    if on_plan != migration.partitions or events:
        raise failure(f"{on_plan} of {migration.partitions} partitions are on plan, with {len(events)} events")
    return stages


def _judged(rows: list[dict[str, object]], tick_ms: int) -> list[MigrationProgress]:
    return [migration_progress(reading) for reading in readings_of_rows(rows, tick_ms) if reading is not None]
