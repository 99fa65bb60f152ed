"""``headroom run JOB...``: Spark jobs in a process of their own, also with ``spark-submit``."""

from __future__ import annotations

import os
import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from headroom.alerts.metrics import MetricsState
from headroom.cli.common.child_process import STOP_S
from headroom.cli.common.logs import log_to_stderr
from headroom.cli.common.options import configs_option, for_option, format_option, with_parent_option
from headroom.cli.common.parameters import WholeNumber
from headroom.cli.common.stopping import end_with_parent, stop_on_signals
from headroom.cli.config.several_files import load_clusters
from headroom.cli.watch.balance.worker import BalanceWorker
from headroom.cli.watch.metrics_server import serving_metrics
from headroom.cli.watch.output.printer import VerdictPrinter
from headroom.cli.watch.output.relay import relayed_output
from headroom.cli.watch.pipeline import PrintingListener, build_pipeline, start_alert_output, supervise
from headroom.cli.watch.priority import lower_session
from headroom.streaming.session_profile import is_submitted
from headroom.streaming.store.single_instance import SHARED_S, exclusive_jobs

if TYPE_CHECKING:
    from headroom.streaming.pipeline import Pipeline

# Jobs that include the alert path.
_ALERTING = {"watch", "alerts"}
_PARTS = {"watch": ("alerts", "gold")}


@click.command()
@click.argument("jobs", nargs=-1, required=True, type=click.Choice(["watch", "alerts", "gold", "record"]))
@configs_option
@format_option
@for_option
@click.option("--nice", type=WholeNumber(most=19), default=0, help="Run at lower priority: 0 to 19.")
@with_parent_option
def run(
    jobs: tuple[str, ...],
    configs: tuple[str, ...],
    output_format: str,
    seconds: float | None,
    nice: int,
    with_parent: bool,
) -> None:
    """Run one or several Spark jobs in this process.

    \b
    alerts   evaluates ticks and raises alerts; on a local disk also writes most gold rows
    gold     writes the gold tables, or what is missing in them
    watch    alerts and gold
    record   writes the bronze and silver tables, and maintains all tables

    `headroom collect` has to run too, here or on another machine. With spark-submit, Spark's settings come from it.

    \b
    Example:  headroom run watch --config headroom.toml
              headroom run watch record
    """  # noqa: D301
    os.nice(nice)
    if os.getsid(0) == os.getpid():
        # Only a child process of `watch` has its own session; the priority of an operator's shell must not change.
        lower_session(os.getpid(), nice)
    log_to_stderr()
    clusters = load_clusters(configs)
    stop = threading.Event()
    stop_on_signals(stop)
    if with_parent:
        end_with_parent(stop)
    alerting = bool(_ALERTING & set(jobs))
    parts = sorted({part for job in jobs for part in _PARTS.get(job, (job,))})
    printer = VerdictPrinter(output_format)
    # After a watch was killed, its record process ends within seconds; the one of the next watch waits for that.
    with (
        relayed_output(output_format),
        exclusive_jobs(clusters.settings.store, parts, STOP_S if with_parent else SHARED_S, stop) as locks,
        serving_metrics(clusters) if alerting else nullcontext() as state,
    ):
        pipeline = build_pipeline(clusters, f"headroom {' '.join(jobs)}", with_alerts=alerting)
        worker = BalanceWorker(clusters)
        # Where Spark's cluster runs the driver, this installation may not be there to start commands of.
        checks = [locks.check, pipeline.check, *([worker.check] if alerting and not is_submitted() else [])]
        try:
            _start(pipeline, set(jobs), printer, state, worker)
            supervise(checks, stop, seconds)
        finally:
            worker.stop()
            pipeline.stop()


def _start(
    pipeline: Pipeline, jobs: set[str], printer: VerdictPrinter, state: MetricsState | None, worker: BalanceWorker
) -> None:
    if state is not None:
        start_alert_output(pipeline, printer, PrintingListener(printer), state, worker)
    if jobs & {"watch", "gold"}:
        pipeline.start_gold()
    if "record" in jobs:
        pipeline.start_record()
