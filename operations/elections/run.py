"""Execution of an election plan, with one line of progress per batch."""

from __future__ import annotations

import threading
from dataclasses import replace

from headroom.cluster.elections.executor import BatchResult, Cluster, ElectionExecutor, ExecutionPolicy
from headroom.operations.elections.result import ElectionRun, PlannedElections
from headroom.operations.journal.journalled_change import make_journalled_change
from headroom.operations.progress import OnText, ProgressReceiver
from headroom.planning.reassignments.run.journal import JournalStep, StepKind, StepState
from headroom.schemas.errors import HeadroomError


def run_plan(
    planned: PlannedElections,
    cluster: Cluster,
    policy: ExecutionPolicy,
    stop: threading.Event,
    progress: ProgressReceiver,
    on_note: OnText,
) -> ElectionRun:
    """Run the plan with one line of progress per batch, journal it, and return the results.

    Args:
        planned: the plan.
        cluster: the running cluster.
        policy: limits and waits.
        stop: ends the run after the current batch.
        progress: gets the steps.
        on_note: gets a sentence if the run is not in the journal.
    """
    total = planned.partitions()
    executor = ElectionExecutor(cluster, planned.plan.batches, planned.leadership, policy, stop)
    step = JournalStep(StepKind.ELECT, StepState.INTENDED, "preferred leaders", None, str(total))
    return make_journalled_change(
        planned.settings,
        "elections",
        [step],
        lambda: _run(planned, executor, progress),
        on_note,
        lambda run: run.done() < total,
    )


def _run(planned: PlannedElections, executor: ElectionExecutor, progress: ProgressReceiver) -> ElectionRun:
    results: list[BatchResult] = []
    batches, total = len(planned.plan.batches), planned.partitions()

    def note(text: str) -> None:
        progress.note(f"{ElectionRun(tuple(results), None).done()} of {total} done; {text}")

    stopped = None
    with progress.step(f"Electing {total} leaders in {batches} {'batch' if batches == 1 else 'batches'}"):
        try:
            for result in replace(executor, on_step=note).run():
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
