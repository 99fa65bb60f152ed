"""JSON output of ``headroom elections``: the plan, the batch files, and the results of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headroom.cli.common.changing import error_json
from headroom.cli.common.output import partition_json
from headroom.cluster.elections.executor import BatchResult
from headroom.operations.elections.result import ElectionRun, ElectionsResult, PlannedElections
from headroom.planning.elections.planner import Batch


def result_json(result: ElectionsResult) -> dict[str, Any]:
    """Return the result as a JSON object; what was run is in it only if ``executed`` is true."""
    return {
        **_plan_json(result.planned),
        "batch_files": [str(file) for file in result.batch_files],
        "batch_commands": result.batch_commands(),
        **({"executed": False} if result.run is None else _run_json(result.run, result.left_partitions())),
    }


def _run_json(run: ElectionRun, left_partitions: int) -> dict[str, Any]:
    return {
        "executed": True,
        "results": [_batch_result(result) for result in run.results],
        "stopped": error_json(run.stopped),
        "left_partitions": left_partitions,
    }


def _plan_json(planned: PlannedElections) -> dict[str, Any]:
    """Return a plan as a JSON object; rates are bytes per second or null if unknown, ratios are 0 to 1."""
    after = {balance.broker: balance for balance in planned.plan.after}
    partitions, traffic = planned.leadership.partitions.values(), planned.leadership.traffic
    read = _read_bytes_per_s((p.leader, p.read_bytes_per_s) for p in partitions)
    preferred_read = _read_bytes_per_s((p.replicas[0], p.read_bytes_per_s) for p in partitions if p.leader is not None)
    return {
        "cluster": planned.settings.cluster.name,
        "cluster_write_bytes_per_s": traffic.cluster_written,
        "not_measured": [{"broker": b, "reason": why} for b, why in sorted(traffic.unmeasured.items())],
        "brokers": [
            {
                **vars(balance),
                "read_bytes_per_s": read.get(balance.broker, 0.0),
                "preferred_read_bytes_per_s": preferred_read.get(balance.broker, 0.0),
                "imbalance_ratio": balance.imbalance_ratio,
                "threshold_ratio": planned.thresholds[balance.broker],
                "out_of_balance": planned.over(balance),
                "not_electable": planned.not_electable(balance),
                "imbalance_ratio_after": after[balance.broker].imbalance_ratio,
            }
            for balance in planned.plan.before
        ],
        "batches": [_batch(number, batch) for number, batch in enumerate(planned.plan.batches, start=1)],
        "left_out": [
            {**partition_json(left.name), "preferred": left.preferred, "reason": left.reason.value}
            for left in planned.plan.left_out
        ],
        "raise_first": [
            {
                "broker": increase.broker_role[0],
                "role": increase.broker_role[1].value,
                "throttle_bytes_per_s": increase.throttle_bytes_per_s,
                "required_bytes_per_s": increase.required_bytes_per_s,
            }
            for increase in planned.plan.raise_first
        ],
        "raise_command": planned.raise_command(),
    }


def _read_bytes_per_s(partitions: Iterable[tuple[int | None, float | None]]) -> dict[int | None, float | None]:
    """Return the sum of each broker's read rates, in bytes per second; None if one of them is unknown."""
    sums: dict[int | None, float | None] = {}
    for broker, rate in partitions:
        before = sums.get(broker, 0.0)
        # Unknown stays unknown: what is known of the others would read as the whole.
        sums[broker] = None if before is None or rate is None else before + rate
    return sums


def _batch_result(result: BatchResult) -> dict[str, Any]:
    """Return the result of a batch as a JSON object; ``settled_s`` is null if the batch did not settle."""
    answers = result.answers
    return {
        "number": result.number,
        "elected": [partition_json(name) for name in answers.elected],
        "not_needed": [partition_json(name) for name in answers.not_needed],
        "refused": [{"topic": t, "partition": p, "error": error} for (t, p), error in answers.refused.items()],
        "settled_s": result.settled_s,
        "imbalance_ratios": _ratios(result.imbalance_ratios),
    }


def _batch(number: int, batch: Batch) -> dict[str, Any]:
    return {
        "number": number,
        "partitions": [partition_json(name) for name in batch.partitions],
        "write_bytes_per_s": batch.write_bytes_per_s,
        "unknown_rates": batch.unknown_rates,
        "imbalance_ratios": _ratios(batch.imbalance_ratios),
    }


def _ratios(ratios: Mapping[int, float]) -> list[dict[str, Any]]:
    return [{"broker": broker, "imbalance_ratio": ratio} for broker, ratio in sorted(ratios.items())]
