"""Execution of an election plan with progress output, and its results."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from cli.common.output import echo, print_table
from cli.common.progress import ProgressView
from cli.elections.text_view import ElectionView, percent
from cli.watch.collect import stop_on_signals
from cluster.elections.executor import BatchResult, Cluster, ElectionExecutor, ExecutionPolicy
from schemas.errors import HeadroomError

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True)
class ElectionRun:
    """Results of executing a plan.

    Attributes:
        results: results of the batches that were started.
        stopped: the deviation from the plan that stopped the run; None if there was none.
    """

    results: tuple[BatchResult, ...]
    stopped: HeadroomError | None

    def elected(self) -> int:
        """Return the number of elected leaders."""
        return sum(len(result.answers.elected) for result in self.results)

    def done(self) -> int:
        """Return how many of the plan's partitions have their preferred leader now."""
        return self.elected() + sum(len(result.answers.not_needed) for result in self.results)


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """Yield an event that the first Ctrl-C or SIGTERM sets; a second signal ends the process at once."""
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    stop = threading.Event()
    stop_on_signals(stop)
    try:
        yield stop
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def run_plan(
    view: ElectionView, cluster: Cluster, policy: ExecutionPolicy, stop: threading.Event, progress: ProgressView
) -> ElectionRun:
    """Run the plan with one line of output per batch, and return the results."""
    results: list[BatchResult] = []
    batches, total = len(view.plan.batches), view.partitions()

    def note(text: str) -> None:
        progress.note(f"{ElectionRun(tuple(results), None).done()} of {total} done; {text}")

    execution = ElectionExecutor(cluster, view.plan.batches, view.leadership, policy, stop, note)
    stopped = None
    with progress.step(f"Electing {total} leaders in {batches} {'batch' if batches == 1 else 'batches'}"):
        try:
            for result in execution.run():
                results.append(result)
                progress.print_line(_line(result, batches))
        except HeadroomError as error:
            stopped = error
    return ElectionRun(tuple(results), stopped)


def print_run(view: ElectionView, run: ElectionRun) -> None:
    """Print elected and remaining leaders, and the brokers' imbalance next to the predicted one."""
    left = view.partitions() - run.done()
    echo()
    echo(f"{run.elected()} leaders elected; {left} of {view.partitions()} are left.")
    settled = [result for result in run.results if result.settled_s is not None]
    if settled:
        print_table("", ("broker", "imbalance before", "predicted", "now"), _ratio_rows(view, settled))
    if left:
        echo("Run the same command again for the remaining partitions: it makes a new plan.")


def _line(result: BatchResult, batches: int) -> str:
    answers = result.answers
    parts = [f"{len(answers.elected)} elected"]
    parts += [f"{len(answers.not_needed)} led by their preferred broker already"] * bool(answers.not_needed)
    parts += [f"{len(answers.refused)} refused"] * bool(answers.refused)
    parts.append("not settled" if result.settled_s is None else f"settled in {result.settled_s:.1f} s")
    return f"Batch {result.number} of {batches}: {', '.join(parts)}"


def _ratio_rows(view: ElectionView, settled: Sequence[BatchResult]) -> list[tuple[str, ...]]:
    last = settled[-1]
    predicted = view.plan.batches[last.number - 1].imbalance_ratios
    return [
        (
            str(balance.broker),
            percent(balance.imbalance_ratio),
            percent(predicted[balance.broker]),
            percent(last.imbalance_ratios[balance.broker]),
        )
        for balance in view.plan.before
        if balance.broker in predicted and balance.broker in last.imbalance_ratios
    ]
