"""JSON output of ``headroom balance propose``: bytes per second, seconds, null if unknown or never."""

from __future__ import annotations

from typing import Any

from headroom.cli.balance.score_json import card_json, cluster_json
from headroom.cli.common.output import partition_json
from headroom.operations.balance.action_fields import action_fields
from headroom.operations.balance.proposal_result import PricedBatch, ProposalResult
from headroom.planning.balance.reports.prefixes import PrefixPrice
from headroom.planning.balance.search.limits import WHY_EXCLUDED
from headroom.planning.reassignments.plan import plan_json


def proposal_json(result: ProposalResult) -> dict[str, Any]:
    """Return the result as a JSON object."""
    proposal, throttle = result.proposal, result.throttle
    values = (proposal.gains, proposal.outside[1:], proposal.copied_bytes[1:])
    columns = proposal.actions, *(column.tolist() for column in values)
    return {
        **cluster_json(result.cluster),
        "proposal_id": result.proposal_id,
        "asked_goals": None if result.asked_goals is None else list(result.asked_goals),
        "actions": [
            {
                "number": number,
                **action_fields(action, proposal.model),
                "gain": gain,
                "outside_after": outside,
                "copied_bytes_after": copied_bytes,
            }
            for number, (action, gain, outside, copied_bytes) in enumerate(zip(*columns, strict=True), start=1)
        ],
        "outside_before": float(proposal.outside[0]),
        "chosen_actions": result.chosen,
        "until_in_band": None
        if result.in_band is None
        else {"brokers": sorted(result.in_band), "reached": result.reaches_band},
        "prefixes": [_prefix_json(row) for row in result.rows],
        "throttle_bytes_per_s": throttle.bytes_per_s,
        "throttle_from": throttle.source.value,
        "misses_deadline": throttle.misses_deadline,
        "duration_s": result.duration_s,
        "batches": [
            _batch_json(number, batch, result.throttle_of(batch))
            for number, batch in enumerate(result.batches, start=1)
        ],
        "before": card_json(result.before, result.cluster),
        "after": card_json(result.after, result.cluster),
        "left_out": [
            {
                "reason": left.reason.value,
                "text": WHY_EXCLUDED[left.reason],
                "partitions": left.count,
                "first": partition_json(left.first),
            }
            for left in result.left_out
        ],
        "warnings": result.warnings(),
    }


def _prefix_json(row: PrefixPrice) -> dict[str, Any]:
    return {
        "actions": row.actions,
        "gain_ratio": row.gain_ratio,
        "copied_bytes": row.copied_bytes,
        "copied_replicas": row.copied_replicas,
        "batches": row.batches,
        "duration_s": row.duration_s,
    }


def _batch_json(number: int, batch: PricedBatch, throttle_bytes_per_s: int | None) -> dict[str, Any]:
    price = batch.price
    return {
        "number": number,
        "kind": "copies" if batch.batch.moves else "elections",
        "actions": len(batch.batch.actions),
        "copied_bytes": price.bytes_copied,
        "copied_replicas": price.replicas_copied,
        "required_bytes_per_s": price.required_bytes_per_s,
        "throttle_bytes_per_s": price.throttle_bytes_per_s,
        "run_throttle_bytes_per_s": throttle_bytes_per_s,
        "required_after_switch_bytes_per_s": price.required_after_switch_bytes_per_s,
        "throttle_after_switch_bytes_per_s": price.throttle_after_switch_bytes_per_s,
        "peak_disk": [{"broker": broker, "bytes": taken} for broker, taken in sorted(price.taken_bytes.items())],
        "duration_s": batch.duration_s,
        "fingerprint": batch.fingerprint,
        "plan": plan_json(batch.batch.assignments),
        "rollback": plan_json(batch.batch.rollback),
        "elections": [partition_json(name) for name in batch.batch.elections],
    }
