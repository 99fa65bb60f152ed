"""Parts ``moves``, ``batched`` and ``smallest``: estimates of ``headroom plan`` beside the real moves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, failure
from benchmarks.fixtures.headroom_commands import HeadroomCommands
from benchmarks.fixtures.processes import busy_cores
from benchmarks.fixtures.throttled_move import ThrottledMove
from benchmarks.groups.reassign.arithmetic import error_ratio, run_average_errors
from benchmarks.groups.reassign.cases import PlannedCase
from benchmarks.groups.reassign.following import follow_move, follow_run
from benchmarks.groups.reassign.throttle_state import ThrottleValues
from benchmarks.groups.smallest_throttle import smallest_enough
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment, plan_text
from headroom.planning.throttles.replica_lists import TopicLists
from headroom.schemas.keys import TopicPartition

_DEADLINE_S = 300.0
_BATCHES = 3
# Of what the throttle has to exceed: below it a replica falls behind.
_TOO_LOW_RATIO = 0.9


def record_move(bench: BenchCluster, topic: str, case: PlannedCase, on_progress: OnProgress) -> dict[str, Any]:
    """Estimate a move, carry it out under the throttle and the lists of the estimate, and return both times."""
    with busy_cores(case.busy), ThrottledMove(bench, topic, case.partitions) as move:
        planned = _plan(bench, move, case)
        throttle, predicted_s = planned["throttle_bytes_per_s"], planned["finish_s"]
        if predicted_s is None:
            raise failure(f"{case.name}: no time was estimated: {planned['warnings']}")
        move.start_move(throttle, lists=_lists(planned))
        real_s, samples = follow_move(bench, move, case.name, _DEADLINE_S)
    averages = " ".join(f"{at} %: {error:.2f}" for at, error in run_average_errors(samples, real_s).items())
    on_progress(
        f"{case.name}: {throttle / 1e6:.2f} MB/s, predicted {predicted_s:.1f} s, really {real_s:.1f} s, "
        f"error {error_ratio(predicted_s, real_s):.2f}; of the run's average at {averages}"
    )
    return {
        "throttle_bytes_per_s": throttle,
        "predicted_s": predicted_s,
        "range_s": [planned["finish_low_s"], planned["finish_high_s"]],
        "real_s": real_s,
        "samples": samples,
    }


def record_batched(bench: BenchCluster, topic: str, case: PlannedCase, on_progress: OnProgress) -> dict[str, Any]:
    """Cut a plan into three batches, run them, and return the predicted and real time of each."""
    commands, folder = HeadroomCommands(bench.config), bench.folder / f"{topic}-batches"
    throttle = str(round(case.throttle_bytes_per_s or 0))
    with busy_cores(case.busy), ThrottledMove(bench, topic, case.partitions) as move:
        file = _plan_file(bench, move)
        options = ("--batches", str(_BATCHES), "--max-throttle", throttle, "--batches-dir", str(folder))
        planned = commands.json("plan", str(file), *options)
        predicted_s = [batch["finish_s"] for batch in planned["batches"]]
        run = ("reassign", "run", "--batches-dir", str(folder), "--throttle", throttle, "--execute", "--yes")
        followed = follow_run(bench, commands.start(*run, log=_log(bench)), ThrottleValues(), 3 * _DEADLINE_S)
    if followed.code or len(followed.spans) != _BATCHES:
        raise failure(f"{case.name}: the run ended with {followed.code} after {len(followed.spans)} moves")
    predicted, real = (", ".join(f"{s:.1f}" for s in seconds) for seconds in (predicted_s, followed.moved_s))
    on_progress(
        f"{case.name}: predicted {predicted} s, really {real} s, "
        f"error {error_ratio(sum(predicted_s), sum(followed.moved_s)):.2f}; clean after {followed.clean_s} s"
    )
    return {"predicted_s": predicted_s, "real_s": followed.moved_s, "clean_s": followed.clean_s}


def record_smallest(bench: BenchCluster, topic: str, case: PlannedCase, on_progress: OnProgress) -> dict[str, Any]:
    """Estimate a move, and return the recommended throttle and the smallest that trials find enough."""
    with ThrottledMove(bench, topic, case.partitions) as move:
        planned = _plan(bench, move, case)
        recommended = float(planned["recommended_bytes_per_s"])
        too_low = _TOO_LOW_RATIO * float(planned["must_exceed_bytes_per_s"])
        move.start_move(too_low, lists=_lists(planned))
        smallest = smallest_enough(move, too_low, recommended, on_progress)
    on_progress(
        f"{case.name}: recommended {recommended / 1e6:.2f} MB/s, smallest found enough {smallest / 1e6:.2f} MB/s, "
        f"ratio {recommended / smallest:.2f}"
    )
    return {"recommended_bytes_per_s": recommended, "smallest_bytes_per_s": smallest}


def _plan(bench: BenchCluster, move: ThrottledMove, case: PlannedCase) -> dict[str, Any]:
    throttle = () if case.throttle_bytes_per_s is None else ("--throttle", str(round(case.throttle_bytes_per_s)))
    plan: dict[str, Any] = HeadroomCommands(bench.config).json("plan", str(_plan_file(bench, move)), *throttle)
    return plan


def _plan_file(bench: BenchCluster, move: ThrottledMove) -> Path:
    assignments = (
        TargetAssignment(TopicPartition(move.topic, n), moved.after) for n, moved in enumerate(move.partitions)
    )
    file = bench.folder / f"{move.topic}.json"
    file.write_text(plan_text(ReassignmentPlan(tuple(assignments))), encoding="utf-8")
    return file


def _lists(planned: dict[str, Any]) -> dict[str, TopicLists]:
    return {topic: TopicLists(own["leader"], own["follower"]) for topic, own in planned["lists"].items()}


def _log(bench: BenchCluster) -> Path:
    return bench.folder / "runs.log"
