"""Export of an election plan: as JSON, and as files for ``kafka-leader-election``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cli.elections.text_view import ElectionView
from cluster.elections.executor import BatchResult
from planning.elections.election_file import request_json
from planning.elections.planner import Batch, Name
from schemas.errors import HeadroomError

_FILE = "batch-{:03d}.json"


def view_json(view: ElectionView) -> dict[str, Any]:
    """Return a plan as a JSON object; rates are bytes per second or null if unknown, ratios are 0 to 1."""
    after = {balance.broker: balance for balance in view.plan.after}
    partitions = view.leadership.partitions.values()
    read = _read_bytes_per_s((p.leader, p.read_bytes_per_s) for p in partitions)
    preferred_read = _read_bytes_per_s((p.replicas[0], p.read_bytes_per_s) for p in partitions if p.leader is not None)
    return {
        "cluster": view.settings.cluster.name,
        "cluster_write_bytes_per_s": view.leadership.traffic.cluster_written,
        "not_measured": [{"broker": b, "reason": why} for b, why in sorted(view.leadership.traffic.unmeasured.items())],
        "brokers": [
            {
                **vars(balance),
                "read_bytes_per_s": read.get(balance.broker, 0.0),
                "preferred_read_bytes_per_s": preferred_read.get(balance.broker, 0.0),
                "imbalance_ratio": balance.imbalance_ratio,
                "threshold_ratio": view.thresholds[balance.broker],
                "out_of_balance": view.over(balance),
                "imbalance_ratio_after": after[balance.broker].imbalance_ratio,
            }
            for balance in view.plan.before
        ],
        "batches": [_batch(number, batch) for number, batch in enumerate(view.plan.batches, start=1)],
        "left_out": [{**vars(skipped), "reason": skipped.reason.value} for skipped in view.plan.left_out],
        "raise_first": [
            {
                "broker": increase.broker_role[0],
                "role": increase.broker_role[1].value,
                "throttle_bytes_per_s": increase.throttle_bytes_per_s,
                "required_bytes_per_s": increase.required_bytes_per_s,
            }
            for increase in view.plan.raise_first
        ],
        "raise_command": view.raise_command(),
    }


def _read_bytes_per_s(partitions: Iterable[tuple[int | None, float | None]]) -> dict[int | None, float | None]:
    """Return the sum of each broker's read rates, in bytes per second; None if one of them is unknown."""
    sums: dict[int | None, float | None] = {}
    for broker, rate in partitions:
        before = sums.get(broker, 0.0)
        sums[broker] = None if before is None or rate is None else before + rate
    return sums


def result_json(result: BatchResult) -> dict[str, Any]:
    """Return the result of a batch as a JSON object; ``settled_s`` is null if the batch did not settle."""
    answers = result.answers
    return {
        "number": result.number,
        "elected": _names(answers.elected),
        "not_needed": _names(answers.not_needed),
        "refused": [{"topic": t, "partition": p, "error": error} for (t, p), error in answers.refused.items()],
        "settled_s": result.settled_s,
        "imbalance_ratios": _ratios(result.imbalance_ratios),
    }


def write_batches(folder: Path, batches: Sequence[Batch]) -> list[Path]:
    """Write one file per batch for ``kafka-leader-election --path-to-json-file``, and return the files.

    Raises:
        HeadroomError: the folder cannot be written to, or contains batches of another plan.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.glob("batch-*.json")):
            raise HeadroomError(str(folder), "contains batches already", "Remove them, or name another folder.")
        files = [folder / _FILE.format(number) for number in range(1, len(batches) + 1)]
        for file, batch in zip(files, batches, strict=True):
            file.write_text(request_json(batch.partitions) + "\n", encoding="utf-8")
    except OSError as error:
        raise HeadroomError(str(folder), f"cannot be written to ({error.strerror})", "Name another folder.") from None
    return files


def _batch(number: int, batch: Batch) -> dict[str, Any]:
    return {
        "number": number,
        "partitions": _names(batch.partitions),
        "write_bytes_per_s": batch.write_bytes_per_s,
        "unknown_rates": batch.unknown_rates,
        "imbalance_ratios": _ratios(batch.imbalance_ratios),
    }


def _names(names: Iterable[Name]) -> list[dict[str, Any]]:
    return [{"topic": topic, "partition": partition} for topic, partition in names]


def _ratios(ratios: Mapping[int, float]) -> list[dict[str, Any]]:
    return [{"broker": broker, "imbalance_ratio": ratio} for broker, ratio in sorted(ratios.items())]
