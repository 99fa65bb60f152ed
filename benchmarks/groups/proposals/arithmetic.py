"""Arithmetic of the group ``proposals``: errors of promised loads and times, and figures over the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.results import Figure, percentile

_RESOURCES = ("network_in", "network_out", "disk")
# Loads below this share of the mean are left out: a few bytes of Kafka's own would be a large error of them.
_LEAST_RATIO = 0.1
Record = Mapping[str, Any]


def load_errors(proposal: Mapping[str, Any], reached: Mapping[str, Any]) -> dict[str, float]:
    """Return the distance of each broker's measured load from the promised one, as a share of the promised one.

    What was written since the proposal is added to the promised disk: the promised bytes in per second, for the time
    between both readings.

    Args:
        proposal: JSON of ``headroom balance propose``.
        reached: JSON of ``headroom balance`` after it was carried out.

    Returns:
        Errors by ``resource of broker N``.
    """
    elapsed_s = (reached["read_ms"] - proposal["read_ms"]) / 1000
    measured = {broker["broker"]: broker["loads"] for broker in reached["brokers"]}
    promised = {broker["broker"]: broker["loads"] for broker in proposal["after"]["brokers"]}
    errors: dict[str, float] = {}
    for resource in _RESOURCES:
        added_s = elapsed_s if resource == "disk" else 0.0
        loads = {b: own[resource]["load"] + added_s * own["network_in"]["load"] for b, own in promised.items()}
        mean = sum(loads.values()) / len(loads)
        errors |= {
            f"{resource} of broker {broker}": abs(measured[broker][resource]["load"] / load - 1)
            for broker, load in loads.items()
            if load > _LEAST_RATIO * mean
        }
    return errors


def batch_times(batches: Sequence[Mapping[str, Any]], real_s: Sequence[float]) -> list[tuple[float, float]]:
    """Return the promised and the real seconds of each batch that copies.

    Args:
        batches: batches in the JSON of ``headroom balance propose``.
        real_s: seconds for which something moved, of each batch.
    """
    both = zip(batches, real_s, strict=True)
    return [(batch["duration_s"], real) for batch, real in both if batch["kind"] == "copies"]


def figures(records: Sequence[Record]) -> list[Figure]:
    """Return the figures over the records of proposals under load; none without any."""
    if not records:
        return []
    loads = [float(error) for record in records for error in record["load_errors"].values()]
    times = [abs(real / promised - 1) for record in records for promised, real in record["batch_times"]]
    elections = [record for record in records if record["elections_only"]]
    copied = sum(record["copied_replicas"] for record in elections)
    return [
        *_errors("balance_load_error_ratio", loads),
        *_errors("balance_duration_error_ratio", times),
        Figure("balance_elections_copied_replicas", copied, "replicas", len(elections)),
        Figure("balance_proposals", len(records), "proposals", len(records)),
    ]


def promise_figures(records: Sequence[Record]) -> list[Figure]:
    """Return the figure over the records of runs whose leads and replicas were compared; none without any."""
    differences = sum(len(record["differences"]) for record in records)
    return [Figure("balance_promise_differs", differences, "differences", len(records))] if records else []


def _errors(name: str, errors: Sequence[float]) -> list[Figure]:
    if not errors:
        return []
    median = Figure(f"{name}_median", percentile(errors, 0.5), "ratio", len(errors))
    return [median, Figure(f"{name}_max", max(errors), "ratio", len(errors))]
