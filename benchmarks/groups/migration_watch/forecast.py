"""How far the forecast of a switch at half time is from the switch."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from statistics import median

from kafka import KafkaProducer

from benchmarks.fixtures.bench_cluster import OnProgress, await_true, failure
from benchmarks.groups.migration_watch.scoring import SwitchForecast, forecast_at
from benchmarks.groups.migration_watch.watched_clusters import START_S, WatchedClusters, watched_clusters
from benchmarks.results import Figure
from headroom.schemas.tables import MIGRATION_PROGRESS
from headroom.streaming.delta.query_table import query

_TOPIC, _MIGRATION = "switching", "forecast"
_VALUE = bytes(100)
_STEP_S = 0.05
_PER_S = 60.0
_RECORDED_S, _LATE_S = 120.0, 60.0


def _wave(share: float, at_s: float) -> float:
    return 1 + 0.3 * math.sin(2 * math.pi * at_s / 5)


# Rate by the share of the time that is over and the time in seconds, as a factor. What changes at once does so well
# before half time: nothing can forecast a later change.
_PROFILES: tuple[Callable[[float, float], float], ...] = (
    lambda share, at_s: 1.0,
    _wave,
    lambda share, at_s: 1.0 if share < 0.25 else 0.5,
    lambda share, at_s: 1.0 if share < 0.25 else 2.0,
    lambda share, at_s: 1.0 + 0.1 * share,
    lambda share, at_s: 1.0 - 0.1 * share,
)
# Each profile at two rates.
_SIZES = (1.0, 3.0)
_RATES = tuple((profile, size * _PER_S) for size in _SIZES for profile in _PROFILES)


def forecast_figures(prepare_s: float, on_progress: OnProgress) -> list[Figure]:
    """Return the errors of forecasts of twelve switches.

    Args:
        prepare_s: about how far ahead the end offsets are, seconds.
        on_progress: prints the progress.

    Raises:
        HeadroomError: a partition did not switch, or has no forecast.
    """
    ends = {number: expected_offsets(*_RATES[number], prepare_s) for number in range(len(_RATES))}
    with watched_clusters(1, 1) as clusters, clusters.target.watch() as watch, clusters.writer(_MIGRATION) as writer:
        clusters.create(_TOPIC, [[1]] * len(_RATES))
        watch.wait(lambda: watch.verdicts() is not None, START_S, "the first verdicts")
        writer.write(clusters.agreed(_MIGRATION, _TOPIC, ends))
        began_s, switched_s = _written_until(clusters, ends, prepare_s)
        offset_s = time.time() - time.monotonic()
        wanted_ms = round(1000 * (max(switched_s.values()) + offset_s))
        await_true(lambda: _newest_ms(clusters) >= wanted_ms, _RECORDED_S, "the last ticks are recorded")
        forecasts = _forecasts(clusters, offset_s)
    errors = []
    for number, at_s in sorted(switched_s.items()):
        half = forecast_at(forecasts.get(number, ()), (began_s + at_s) / 2)
        if half is None:
            raise failure(f"there is no forecast of {_TOPIC}-{number}")
        errors.append(half.error_ratio(at_s))
        on_progress(f"switch {number + 1} after {at_s - began_s:.1f} s: forecast off by {100 * errors[-1]:.1f} %")
    return [
        Figure("switch_forecast_error_ratio_median", median(errors), "ratio", len(errors)),
        Figure("switch_forecast_error_ratio_max", max(errors), "ratio", len(errors)),
    ]


def expected_offsets(profile: Callable[[float, float], float], offsets_per_s: float, over_s: float) -> int:
    """Return how many offsets are written at a changing rate.

    Args:
        profile: factor of the rate, by the share of the time that is over and the time in seconds.
        offsets_per_s: the rate, offsets per second.
        over_s: the time, seconds.
    """
    steps = round(over_s / _STEP_S)
    return round(sum(profile(step / steps, step * _STEP_S) for step in range(steps)) * offsets_per_s * _STEP_S)


def _written_until(
    clusters: WatchedClusters, ends: Mapping[int, int], prepare_s: float
) -> tuple[float, dict[int, float]]:
    """Write until all partitions are at their end offsets; return the monotonic times of the start and the switches."""
    switched_s: dict[int, float] = {}
    done = threading.Event()

    def note(number: int, metadata: object) -> None:
        if metadata.offset == ends[number] - 1:  # type: ignore[attr-defined]
            switched_s[number] = time.monotonic()
            if len(switched_s) == len(ends):
                done.set()

    with closing(KafkaProducer(bootstrap_servers=clusters.origin.bootstrap_servers)) as producer:
        began_s = time.monotonic()
        sent = [0.0] * len(ends)
        at_s = 0.0
        while not done.is_set():
            # By the clock, so that a busy machine changes no rate; what is late comes with the next step.
            now_s = time.monotonic() - began_s
            if now_s > prepare_s + _LATE_S:
                raise failure(f"{len(ends) - len(switched_s)} partitions did not get to their end offsets")
            while at_s < now_s:
                for number, (profile, per_s) in enumerate(_RATES):
                    before = int(sent[number])
                    sent[number] += profile(min(1.0, at_s / prepare_s), at_s) * per_s * _STEP_S
                    for _ in range(int(sent[number]) - before):
                        producer.send(_TOPIC, _VALUE, partition=number).add_callback(note, number)
                at_s += _STEP_S
            time.sleep(_STEP_S)
    return began_s, switched_s


def _newest_ms(clusters: WatchedClusters) -> int:
    rows = query(clusters.target.store, MIGRATION_PROGRESS.path, "SELECT max(tick_ms) AS tick_ms FROM data") or []
    return max((row["tick_ms"] or 0 for row in rows), default=0)


def _forecasts(clusters: WatchedClusters, offset_s: float) -> dict[int, Sequence[SwitchForecast]]:
    """Return the forecasts of each partition, with monotonic times."""
    sql = "SELECT tick_ms, partition, switch_eta_s FROM data WHERE switch_eta_s > 0"
    by_partition: dict[int, list[SwitchForecast]] = {}
    for row in query(clusters.target.store, MIGRATION_PROGRESS.path, sql) or []:
        forecast = SwitchForecast(row["tick_ms"] / 1000 - offset_s, row["switch_eta_s"])
        by_partition.setdefault(row["partition"], []).append(forecast)
    return dict(by_partition)
