"""Group ``smallest``: the recommended throttle divided by the smallest throttle that trials find sufficient.

A run can be made in parts. Situations measured with the same code count and are not repeated.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, failure
from benchmarks.fixtures.move_cases import SITUATIONS, MoveCase
from benchmarks.fixtures.throttled_move import LoadSettings, ThrottledMove
from benchmarks.options.fields import COUNT, option
from benchmarks.results import Figure, parts, percentile
from headroom.planning.finish.finish_time import QUOTA_CYCLE_S

_RESOLUTION_RATIO = 0.05
_SAMPLE_S = 0.4
_MEASURED_CYCLES = 3


@dataclass(frozen=True)
class SmallestOptions:
    """Options of the group ``smallest``."""

    situations: int = option(len(SITUATIONS), COUNT, "Situations of this run; 0 measures nothing.")
    first_situation: int = option(0, COUNT, "Number of the first of them, from 0.")


def measure(on_progress: OnProgress, options: SmallestOptions) -> list[Figure]:
    """Measure the situations that are left, and return the ratios over all that were measured with this code.

    Raises:
        HeadroomError: an alert did not fire, or no throttle near the recommended one was sufficient.
    """
    situations = SITUATIONS[options.first_situation :][: options.situations]
    folder = parts("smallest", __name__)
    folder.mkdir(parents=True, exist_ok=True)
    with BenchCluster(4) as bench:
        for number, case in enumerate(situations):
            path = folder / f"{case.name}.json"
            if not path.exists():
                path.write_text(json.dumps(_ratio(bench, number, case, on_progress)), encoding="utf-8")
    ratios = [float(json.loads(path.read_text(encoding="utf-8"))) for path in folder.glob("*.json")]
    return [
        Figure("recommended_over_smallest_ratio_max", max(ratios), "ratio", len(ratios)),
        Figure("recommended_over_smallest_ratio_median", percentile(ratios, 0.5), "ratio", len(ratios)),
        Figure("recommended_over_smallest_ratio_min", min(ratios), "ratio", len(ratios)),
    ]


def _ratio(bench: BenchCluster, number: int, case: MoveCase, on_progress: OnProgress) -> float:
    with ThrottledMove(bench, f"smallest-{number}", case.partitions, LoadSettings(case.record_bytes)) as move:
        move.start_move(case.throttle_bytes_per_s)
        recommended = _recommended_throttle(bench, number, case)
        on_progress(f"{case.name}: recommended {recommended / 1e6:.2f} MB/s")
        smallest = smallest_enough(move, case.throttle_bytes_per_s, recommended, on_progress)
    on_progress(f"{case.name}: smallest found enough {smallest / 1e6:.2f} MB/s, ratio {recommended / smallest:.2f}")
    return recommended / smallest


def _recommended_throttle(bench: BenchCluster, number: int, case: MoveCase) -> float:
    # New tables, because those of the previous situation have an alert that is still firing.
    with bench.watch(bench.folder / f"store-{number}") as watch:
        alert = watch.wait(
            lambda: watch.last_recommendation(), 180, f"{case.name}: an alert that recommends a throttle"
        )
        return float(alert.fields["recommendation"]["throttle_bytes_per_s"])


def smallest_enough(move: ThrottledMove, too_low: float, recommended: float, on_progress: OnProgress) -> float:
    """Return the smallest sufficient throttle, bytes/s, found by bisection.

    Args:
        move: a running move, with a history that outlasts the trials.
        too_low: throttle that is known to be too low.
        recommended: throttle that is tried first.
        on_progress: gets the result of each trial.

    Raises:
        HeadroomError: the move ended within the trials, or no throttle up to twice the recommended one was enough.
    """
    enough = recommended
    while not _is_enough(move, enough, on_progress):
        too_low, enough = enough, enough * 1.15
        if enough > 2 * recommended:
            raise failure(f"no throttle up to {enough:.0f} bytes/s was enough")
    while (enough - too_low) / enough > _RESOLUTION_RATIO:
        middle = (too_low + enough) / 2
        if _is_enough(move, middle, on_progress):
            enough = middle
        else:
            too_low = middle
    return enough


def _is_enough(move: ThrottledMove, throttle_bytes_per_s: float, on_progress: OnProgress) -> bool:
    """Return whether the real lag falls under a throttle, from the first measured quota cycle to the last.

    The copy comes in bursts, one per cycle, so only means of whole cycles are compared.
    """
    move.throttle(throttle_bytes_per_s)
    # Until then the quota window has bytes from under the previous throttle.
    time.sleep(QUOTA_CYCLE_S)
    means = [_mean_lag_bytes(move) for _ in range(_MEASURED_CYCLES)]
    if not move.moving():
        raise failure("the move finished within the trials: its history is too small")
    text = ", ".join(f"{mean / 1e6:.1f}" for mean in means)
    falls = means[-1] < means[0]
    on_progress(
        f"  {throttle_bytes_per_s / 1e6:.2f} MB/s: mean lag per cycle {text} MB: {'enough' if falls else 'too low'}"
    )
    return falls


def _mean_lag_bytes(move: ThrottledMove) -> float:
    end_s = time.monotonic() + QUOTA_CYCLE_S
    samples: list[int] = []
    while (left_s := end_s - time.monotonic()) > 0:
        samples.append(move.missing_bytes())
        time.sleep(min(_SAMPLE_S, left_s))
    return sum(samples) / len(samples)
