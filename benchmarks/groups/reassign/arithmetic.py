"""Arithmetic of the group ``reassign``: errors of estimates, and figures over the records of its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.results import Figure, percentile

# Shares of the bytes copied at which the average of the whole run is asked for the rest.
SHARES = (0.25, 0.5, 0.75)
Record = Mapping[str, Any]


def error_ratio(predicted_s: float, real_s: float) -> float:
    """Return the distance of the real time from the predicted one, as a share of the predicted one."""
    return abs(real_s / predicted_s - 1)


def run_average_errors(samples: Sequence[tuple[float, float, float]], real_s: float) -> dict[str, float]:
    """Return the errors of the average of the whole run at shares of the bytes copied, by percentage.

    The average says that the rest takes ``(total - done) / (done / elapsed)``. A share that no sample reached, because
    the copy ended within one interval of samples, has no error.

    Args:
        samples: seconds from the beginning, bytes done, and bytes in total, in the order of time.
        real_s: seconds from the beginning to the end.
    """
    errors = {}
    for share in SHARES:
        reached = [s for s in samples if s[2] and s[1] / s[2] >= share]
        if not reached:
            continue
        elapsed_s, done, total = reached[0]
        rest_s = (total - done) / (done / elapsed_s) if elapsed_s else 0.0
        if rest_s > 0 and real_s > elapsed_s:
            errors[f"{share * 100:.0f}"] = error_ratio(rest_s, real_s - elapsed_s)
    return errors


def move_figures(records: Sequence[Record]) -> list[Figure]:
    """Return the errors of estimates of moves, and those of the run's average during them."""
    errors = [error_ratio(r["predicted_s"], r["real_s"]) for r in records]
    figures = [
        Figure("plan_error_ratio_median", percentile(errors, 0.5), "ratio", len(errors)),
        Figure("plan_error_ratio_max", max(errors), "ratio", len(errors)),
        Figure("plan_range_hit_ratio", sum(map(_is_in_range, records)) / len(records), "ratio", len(records)),
    ]
    averages = [run_average_errors([(s, d, t) for s, d, t in r["samples"]], r["real_s"]) for r in records]
    for share in SHARES:
        name = f"{share * 100:.0f}"
        known = [errors_of[name] for errors_of in averages if name in errors_of]
        if known:
            figures.append(
                Figure(f"run_average_error_ratio_median_{name}", percentile(known, 0.5), "ratio", len(known))
            )
    return figures


def _is_in_range(move: Record) -> bool:
    low_s, high_s = move["range_s"]
    return bool(low_s <= move["real_s"] <= high_s)


def batched_figures(records: Sequence[Record]) -> list[Figure]:
    """Return the greatest error of the time that all batches of a plan move."""
    errors = [error_ratio(sum(r["predicted_s"]), sum(r["real_s"])) for r in records]
    return [Figure("batched_error_ratio_max", max(errors), "ratio", len(errors))]


def smallest_figures(records: Sequence[Record]) -> list[Figure]:
    """Return the greatest ratio of the recommended throttle to the smallest that trials found enough."""
    ratios = [r["recommended_bytes_per_s"] / r["smallest_bytes_per_s"] for r in records]
    return [Figure("plan_recommended_over_smallest_ratio_max", max(ratios), "ratio", len(ratios))]


def switch_figures(records: Sequence[Record]) -> list[Figure]:
    """Return the time from a leader switch to a throttle that is enough again."""
    seconds = [float(s) for r in records for s in r["seconds"]]
    return [
        Figure("switch_to_throttle_s_median", percentile(seconds, 0.5), "s", len(seconds)),
        Figure("switch_to_throttle_s_max", max(seconds), "s", len(seconds)),
    ]


def kill_figures(records: Sequence[Record]) -> list[Figure]:
    """Return what killed runs have left behind or not finished, once the same command has ended."""
    kills = sum(len(r["kills"]) for r in records)
    return [
        Figure("reassign_kill_left_behind", sum(r["left_behind"] for r in records), "rates and entries", kills),
        Figure("reassign_kill_unfinished", sum(r["unfinished"] for r in records), "partitions and runs", kills),
    ]


def foreign_figures(records: Sequence[Record]) -> list[Figure]:
    """Return how many rates and entries of others the runs have changed; n is the number of those that there were."""
    changed, checked = (sum(r[name] for r in records) for name in ("foreign_changed", "foreign"))
    return [Figure("reassign_foreign_changed", changed, "rates and entries", checked)]


def trace_figures(records: Sequence[Record]) -> list[Figure]:
    """Return how many journals of runs were checked against their specification, and how many rows violate it."""
    # Records from before these checks do not have them.
    checked, violations = (sum(r.get(name, 0) for r in records) for name in ("traces", "trace_violations"))
    if not checked:
        return []
    return [
        Figure("reassign_traces_checked", checked, "journals", checked),
        Figure("reassign_trace_violations", violations, "rows", checked),
    ]


def clean_figures(records: Sequence[Record]) -> list[Figure]:
    """Return the longest time from the last replica in sync to the last throttle gone."""
    seconds = [float(r["clean_s"]) for r in records if r["clean_s"] is not None]
    return [Figure("reassign_clean_s_max", max(seconds), "s", len(seconds))] if seconds else []
