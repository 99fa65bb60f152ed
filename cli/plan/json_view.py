"""JSON output of ``headroom plan``: rates in bytes per second, times in seconds, null if unknown or never."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from headroom.cli.common.output import partition_json
from headroom.operations.plans.result import PlanResult
from headroom.planning.log_dirs.duration import DirectoryEstimate
from headroom.planning.reassignments.batches.batching import BatchOption
from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.planning.reassignments.estimate import MoveEstimate, ThrottleNeed
from headroom.planning.reassignments.plan import ReassignmentPlan, plan_json
from headroom.planning.reassignments.timing import TimeEstimate
from headroom.planning.reassignments.what_if import WhatIf
from headroom.schemas.keys import BrokerRole

_NO_TIME = {"finish_s": 0.0, "finish_low_s": 0.0, "finish_high_s": 0.0, "never_finishes": False, "bottleneck": None}


def result_json(result: PlanResult) -> dict[str, Any]:
    """Return the result as a JSON object."""
    estimate, state = result.estimate, result.state
    changes, recommendation = estimate.changes, estimate.recommendation
    return {
        "cluster": state.cluster,
        "read_ms": state.read_ms,
        "rates_from": state.rates_from,
        "in_flight": result.in_flight,
        "partitions": len(result.plan),
        "gaining_partitions": len(changes.gaining),
        "copied_bytes": estimate.copied_bytes,
        "brokers": _brokers(changes.added, changes.removed),
        "exempt": [
            {"reason": reason.value, "partitions": [partition_json(name) for name in names]}
            for reason, names in changes.exempt.items()
        ],
        "lists": {
            topic: {"leader": entries.leader, "follower": entries.follower} for topic, entries in estimate.lists.items()
        },
        # Brokers in one role: the older name of the key stays, because scripts read it.
        "sides": [_need(need) for need in estimate.needs],
        "throttle_bytes_per_s": estimate.throttle_bytes_per_s,
        "recommended_bytes_per_s": None if recommendation is None else recommendation.throttle_bytes_per_s,
        "must_exceed_bytes_per_s": None if recommendation is None else recommendation.smallest_bytes_per_s,
        "usual_rule_bytes_per_s": estimate.usual_rule_bytes_per_s,
        "is_enough": estimate.is_enough,
        "fits": result.fits,
        "would_fit": None if result.would_fit is None else dict(vars(result.would_fit)),
        **_time_of_plan(result),
        "times": [{"throttle_bytes_per_s": time.throttle_bytes_per_s, **_time(time)} for time in estimate.times],
        "expected_switches": [
            {**partition_json(s.partition), "leader": s.leader, "next_leader": s.next_leader}
            for s in estimate.expected_switches
        ],
        "what_if": _what_if(estimate),
        "directory_moves": [directory_json(moves) for moves in result.directories],
        "unknown_rates": [partition_json(name) for name in estimate.unknown_rates],
        "unknown_sizes": [partition_json(name) for name in estimate.unknown_sizes],
        "waits_for": [
            {
                "broker": awaited.broker,
                "partitions": [partition_json(name) for name in awaited.partitions],
                "certain": awaited.is_certain,
            }
            for awaited in result.awaited_brokers
        ],
        "warnings": result.warnings(),
        "batches": [_batch(number, batch, result) for number, batch in enumerate(result.batches, start=1)],
        "batch_options": [] if result.cut is None else [option_json(option) for option in result.cut.options],
        "rollback": plan_json(changes.rollback),
        # With topic ids and present replicas: a run that is given it refuses the plan once one of them has changed.
        "fingerprint": result.plan.fingerprint(
            state.topic_ids, {name: state.partitions[name].before for name in result.plan.by_name}
        ),
    }


def _batch(number: int, batch: ReassignmentPlan, result: PlanResult) -> dict[str, Any]:
    if result.cut is None:
        # The whole plan, as it was estimated.
        finish_s = _time_of_plan(result)["finish_s"]
        needs = [need.required_bytes_per_s for need in result.estimate.needs]
        known = [rate for rate in needs if rate is not None]
        figures = {
            "throttle_bytes_per_s": result.estimate.throttle_bytes_per_s,
            "finish_s": finish_s,
            # A need that is unknown may be the greatest.
            "required_bytes_per_s": max(known, default=0.0) if len(known) == len(needs) else None,
        }
    else:
        own = result.cut.batches[number - 1]
        figures = {
            "throttle_bytes_per_s": own.throttle_bytes_per_s,
            "finish_s": _finite(result.cut.durations_s[number - 1]),
            "required_bytes_per_s": None if own.unknown_rates else own.smallest_bytes_per_s,
        }
    # Such a batch only reorders replicas: drained brokers give up their leads before anything is copied.
    gives_up = result.cut is not None and result.cut.leads_first and number == 1
    return {"number": number, "partitions": len(batch), **figures, "leads_first": gives_up, "plan": plan_json(batch)}


def directory_json(moves: DirectoryEstimate) -> dict[str, Any]:
    """Return the moves between the log directories of a broker as a JSON object."""
    time = moves.time
    return {
        "broker": moves.broker,
        "replicas": moves.replicas,
        "copied_bytes": moves.size_bytes,
        "throttle_bytes_per_s": moves.rate_bytes_per_s,
        "finish_s": None if time is None else time.middle_s,
        "finish_low_s": None if time is None else time.low_s,
        "finish_high_s": None if time is None else time.high_s,
        "never_finishes": time is not None and time.middle_s is None,
    }


def option_json(option: BatchOption) -> dict[str, Any]:
    """Return the cost of a number of batches as a JSON object."""
    return {
        "batches": option.batches,
        "needed_bytes_per_s": option.needed_bytes_per_s,
        "throttle_bytes_per_s": option.throttle_bytes_per_s,
        "total_s": _finite(option.total_s),
        "longest_s": _finite(option.longest_s),
        "windows": option.windows,
        "fits": option.fits,
    }


def nothing_json(state: ClusterState, notes: Sequence[str]) -> dict[str, Any]:
    """Return the JSON object for a request that is fulfilled already."""
    nothing = ReassignmentPlan(())
    return {
        "cluster": state.cluster,
        "read_ms": state.read_ms,
        "partitions": 0,
        "copied_bytes": 0,
        "fits": True,
        "would_fit": None,
        **_NO_TIME,
        "warnings": list(notes),
        "batches": [],
        "rollback": plan_json(nothing),
        "fingerprint": nothing.fingerprint(state.topic_ids, {}),
    }


def _brokers(added: Mapping[int, int], removed: Mapping[int, int]) -> list[dict[str, Any]]:
    return [
        {"broker": broker, "added": added.get(broker, 0), "removed": removed.get(broker, 0)}
        for broker in sorted(added.keys() | removed.keys())
    ]


def _need(need: ThrottleNeed) -> dict[str, Any]:
    return {
        **_role(need.broker_role),
        "in_sync_bytes_per_s": need.in_sync_bytes_per_s,
        "required_bytes_per_s": need.required_bytes_per_s,
        "known_required_bytes_per_s": need.known_required_bytes_per_s,
        "recommended_bytes_per_s": need.recommended_bytes_per_s,
        "in_force_bytes_per_s": need.in_force_bytes_per_s,
        "copies": need.copies,
        "remaining_bytes": need.remaining_bytes,
        "alone_s": _finite(need.alone_s),
    }


def _time_of_plan(result: PlanResult) -> dict[str, Any]:
    """Return the time of the whole plan. One that copies nothing at all takes none, unless it waits for a broker."""
    copies = result.estimate.changes.gaining or result.directories
    return _time(result.estimate.time) if copies or not result.fits else dict(_NO_TIME)


def _time(time: TimeEstimate | None) -> dict[str, Any]:
    finish = None if time is None else time.finish
    bottleneck = None if time is None or time.bottleneck is None else time
    return {
        "finish_s": None if finish is None else finish.middle_s,
        "finish_low_s": None if finish is None else finish.low_s,
        "finish_high_s": None if finish is None else finish.high_s,
        "never_finishes": time is not None and time.known and finish is None,
        "bottleneck": None
        if bottleneck is None or bottleneck.bottleneck is None
        else {**_role(bottleneck.bottleneck), "alone_s": _finite(bottleneck.bottleneck_s)},
    }


def _what_if(estimate: MoveEstimate) -> dict[str, Any]:
    what_if: WhatIf = estimate.what_if
    throttle = estimate.throttle_bytes_per_s
    return {
        "switches": what_if.switches,
        "unknown_switches": what_if.unknown_switches,
        "short_switches": what_if.short_switches,
        "worst_switches": [
            {
                **partition_json(case.partition),
                "leader": case.leader,
                "next_leader": case.next_leader,
                **_role(case.broker_role),
                "required_bytes_per_s": case.required_bytes_per_s,
                "short_by_bytes_per_s": _short_by(case.required_bytes_per_s, throttle),
            }
            for case in what_if.worst_switches
        ],
        "losses": [
            {
                "lost_broker": case.broker,
                "stopped_copies": case.stopped_copies,
                "leaderless_partitions": case.leaderless,
                **({"broker": None, "role": None} if case.broker_role is None else _role(case.broker_role)),
                "required_bytes_per_s": case.required_bytes_per_s if case.broker_role is not None else None,
                "short_by_bytes_per_s": _short_by(case.required_bytes_per_s, throttle),
            }
            for case in what_if.losses
        ],
        "returns": [
            {
                "returned_broker": case.broker,
                **_role(case.broker_role),
                "required_bytes_per_s": case.required_bytes_per_s,
                "short_by_bytes_per_s": _short_by(case.required_bytes_per_s, throttle),
            }
            for case in what_if.returns
        ],
        "must_exceed_bytes_per_s": what_if.required_bytes_per_s,
        "survives_bytes_per_s": estimate.survives_bytes_per_s,
    }


def _short_by(required: float, throttle: int | None) -> float | None:
    return None if throttle is None else max(0.0, required - throttle)


def _finite(seconds: float | None) -> float | None:
    # JSON has no infinity.
    return seconds if seconds is not None and math.isfinite(seconds) else None


def _role(broker_role: BrokerRole) -> dict[str, Any]:
    return {"broker": broker_role.broker, "role": broker_role.role.value}
