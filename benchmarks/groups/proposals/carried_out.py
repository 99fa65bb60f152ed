"""One proposal of ``headroom balance`` from the cluster before it to the loads after its last batch."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, failure
from benchmarks.fixtures.headroom_commands import HeadroomCommands
from benchmarks.fixtures.processes import busy_cores
from benchmarks.fixtures.throttled_move import ThrottledMove
from benchmarks.groups.proposals.arithmetic import batch_times, load_errors
from benchmarks.groups.proposals.cases import ProposalCase
from benchmarks.groups.reassign.following import follow_run
from benchmarks.groups.reassign.throttle_state import ThrottleValues

_DEADLINE_S = 300.0
# Longer than the rate window of 10 s, so that no copied byte counts as load.
_SETTLE_S = 14.0


def record_proposal(bench: BenchCluster, topic: str, case: ProposalCase, on_progress: OnProgress) -> dict[str, Any]:
    """Make a proposal, carry out its batches, and return what it promised beside what came.

    Raises:
        HeadroomError: a command failed, nothing was proposed, or a batch did not end.
    """
    commands, folder = HeadroomCommands(bench.config), bench.folder / f"{topic}-proposal"
    throttle = () if case.throttle_bytes_per_s is None else ("--throttle", str(round(case.throttle_bytes_per_s)))
    limits = throttle or ("--elections-only",)
    with busy_cores(case.busy), ThrottledMove(bench, topic, case.partitions):
        options = ("--goals", case.goals, "--topics", topic, "--dir", str(folder))
        proposal = commands.json("balance", "propose", *options, *limits)
        if not proposal["actions"]:
            raise failure(f"{case.name}: nothing is proposed: {proposal['warnings']}")
        before = _replicas(bench, topic)
        real_s = [_carry_out(bench, commands, folder, batch, throttle) for batch in proposal["batches"]]
        copied = sum(len(own - before[number]) for number, own in _replicas(bench, topic).items())
        time.sleep(_SETTLE_S)
        reached = commands.json("balance")
    errors, times = load_errors(proposal, reached), batch_times(proposal["batches"], real_s)
    took = ", ".join(f"{predicted:.1f} s, really {real:.1f} s" for predicted, real in times)
    on_progress(
        f"{case.name}: {len(proposal['actions'])} actions, {copied} replicas copied; loads off by at most "
        f"{max(errors.values()):.3f}; {took or 'nothing to copy'}"
    )
    return {
        "elections_only": case.throttle_bytes_per_s is None,
        "actions": len(proposal["actions"]),
        "copied_replicas": copied,
        "load_errors": errors,
        "batch_times": times,
    }


def _carry_out(
    bench: BenchCluster, commands: HeadroomCommands, folder: Path, batch: Mapping[str, Any], throttle: tuple[str, ...]
) -> float:
    """Run one batch as the proposal prints it, and return for how many seconds something moved."""
    plan = folder / f"batch-{batch['number']:02d}.json"
    rate = throttle if batch["kind"] == "copies" else ()
    command = ("reassign", "run", str(plan), *rate, "--execute", "--yes")
    followed = follow_run(bench, commands.start(*command, log=bench.folder / "runs.log"), ThrottleValues(), _DEADLINE_S)
    if followed.code:
        raise failure(f"batch {batch['number']} of {folder.name} ended with {followed.code}")
    return sum(followed.moved_s)


def _replicas(bench: BenchCluster, topic: str) -> dict[int, set[int]]:
    """Return the brokers of each partition of the topic."""
    partitions = bench.admin.describe_topics([topic])[0]["partitions"]
    return {int(p["partition_index"]): {int(b) for b in p["replica_nodes"]} for p in partitions}
