"""Execution of an election plan, with one line of output per batch."""

from __future__ import annotations

import threading

from cli.common.progress import ProgressView
from cluster.elections.executor import BatchResult, Cluster, ElectionExecutor, ExecutionPolicy
from operations.elections.result import ElectionRun, PlannedElections
from schemas.errors import HeadroomError


def run_plan(
    planned: PlannedElections, cluster: Cluster, policy: ExecutionPolicy, stop: threading.Event, progress: ProgressView
) -> ElectionRun:
    """Run the plan with one line of output per batch, and return the results."""
    results: list[BatchResult] = []
    batches, total = len(planned.plan.batches), planned.partitions()

    def note(text: str) -> None:
        progress.note(f"{ElectionRun(tuple(results), None).done()} of {total} done; {text}")

    execution = ElectionExecutor(cluster, planned.plan.batches, planned.leadership, policy, stop, note)
    stopped = None
    with progress.step(f"Electing {total} leaders in {batches} {'batch' if batches == 1 else 'batches'}"):
        try:
            for result in execution.run():
                results.append(result)
                progress.print_line(_line(result, batches))
        except HeadroomError as error:
            stopped = error
    return ElectionRun(tuple(results), stopped)


def _line(result: BatchResult, batches: int) -> str:
    answers = result.answers
    parts = [f"{len(answers.elected)} elected"]
    parts += [f"{len(answers.not_needed)} led by their preferred broker already"] * bool(answers.not_needed)
    parts += [f"{len(answers.refused)} refused"] * bool(answers.refused)
    parts.append("not settled" if result.settled_s is None else f"settled in {result.settled_s:.1f} s")
    return f"Batch {result.number} of {batches}: {', '.join(parts)}"
