"""``headroom watch``: collectors, alert path, and the record process for the tables."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import count

import click

from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.cli.common.child_process import ChildProcess
from headroom.cli.common.logs import log_to_stderr
from headroom.cli.common.options import configs_option, for_option, format_option, with_parent_option
from headroom.cli.common.output import echo
from headroom.cli.common.stopping import end_with_parent, stop_on_signals
from headroom.cli.config.several_files import load_clusters
from headroom.cli.watch.balance.worker import BalanceWorker
from headroom.cli.watch.heartbeat import BeatingProcess
from headroom.cli.watch.metrics_server import serving_metrics
from headroom.cli.watch.output.printer import VerdictPrinter
from headroom.cli.watch.output.relay import relayed_output
from headroom.cli.watch.pipeline import PrintingListener, build_pipeline, start_alert_output, supervise
from headroom.cli.watch.restarting_pipeline import RestartingPipeline
from headroom.schemas.errors import HeadroomError
from headroom.streaming.jobs.listener import AlertPathListener, CompositeListener
from headroom.streaming.session_profile import is_submitted
from headroom.streaming.store.single_instance import SHARED_S, exclusive_jobs


@click.command()
@configs_option
@format_option
@for_option
@click.option("--without-collector", is_flag=True, help="Do not start collectors: `headroom collect` runs elsewhere.")
@with_parent_option
def watch(
    configs: tuple[str, ...], output_format: str, seconds: float | None, without_collector: bool, with_parent: bool
) -> None:
    """Watch one or several clusters: collect ticks, write the Delta tables, print verdicts and alerts.

    Prints the verdict on every broker whose throttle matters whenever it changes, and every alert when it fires and
    when it resolves. A separate process with lower priority writes the bronze and silver tables, and most gold rows
    unless the tables are on a local disk, so that no alert waits for it.

    \b
    Example:  headroom watch
              headroom watch --config headroom.toml --for 600
              headroom watch --config orders.toml --config payments.toml
    """  # noqa: D301
    _require_own_process()
    log_to_stderr()
    clusters = load_clusters(configs)
    stop = threading.Event()
    stop_on_signals(stop)
    if with_parent:
        end_with_parent(stop)
    printer = VerdictPrinter(output_format)
    # Before anything is started, because a store or port in use ends the command.
    with (
        relayed_output(output_format),
        exclusive_jobs(clusters.settings.store, ["alerts"], SHARED_S) as locks,
        serving_metrics(clusters) as state,
    ):
        collectors = [
            BeatingProcess(f"collector of {name}", ["collect"], config)
            for name, config in clusters.configs
            if not without_collector
        ]
        files = [config for _, config in clusters.configs if config is not None]
        history = HistoryProcess(files, clusters.settings.spark.history_nice)
        worker = BalanceWorker(clusters)
        try:
            echo("Starting the collector and Spark ...", err=True)
            listener = CompositeListener([PrintingListener(printer), HistoryStarter(history)])
            starts = count()
            pipeline = RestartingPipeline(
                lambda handover: build_pipeline(
                    clusters, "headroom watch", is_restart=next(starts) > 0, handover=handover
                ),
                lambda built: start_alert_output(built, printer, listener, state, worker),
            )
            try:
                pipeline.start()
                checks = [
                    locks.check,
                    pipeline.check,
                    history.check,
                    worker.check,
                    *(child.check for child in collectors),
                ]
                supervise(checks, stop, seconds)
            finally:
                # Asked first and waited for last, because its batch ends while the alert path stops.
                history.ask_to_stop()
                worker.stop()
                pipeline.stop()
        finally:
            history.stop()
            for child in collectors:
                child.stop()


def _require_own_process() -> None:
    if is_submitted():
        raise HeadroomError(
            "headroom watch",
            "starts processes of its own, which cannot share the Spark of spark-submit",
            "Submit `run watch record`, and start `headroom collect` by itself.",
        )


class HistoryProcess:
    """Child process with the record and gold jobs, started after the first verdict was printed.

    Args:
        configs: settings file of each cluster, because ticks of clusters that no file names are rejected. Empty: all
            settings are in the environment.
        nice: niceness of the process.
    """

    def __init__(self, configs: Sequence[str], nice: int) -> None:
        self._configs = configs
        self._nice = nice
        self._allowed = threading.Event()
        self._child: ChildProcess | None = None

    def allow(self) -> None:
        """Permit the start; may be called from any thread."""
        self._allowed.set()

    def check(self) -> None:
        """Start the process once it is permitted, and restart it if it has ended."""
        if self._child is not None:
            self._child.check()
        elif self._allowed.is_set():
            # Not earlier: its JVM would compete for the CPU with the alert path, and delay the first verdict.
            files = (argument for config in self._configs for argument in ("--config", config))
            self._child = ChildProcess("history", ["run", "gold", "record", "--nice", str(self._nice), *files], None)

    def ask_to_stop(self) -> None:
        """Send SIGTERM to the process, without waiting."""
        if self._child is not None:
            self._child.ask_to_stop()

    def stop(self) -> None:
        """Stop the process and wait for its end."""
        if self._child is not None:
            self._child.stop()


class HistoryStarter(AlertPathListener):
    """Permits the start of the history process once a tick has been printed.

    Args:
        history: process of the history.
    """

    def __init__(self, history: HistoryProcess) -> None:
        self._history = history

    def on_tick(self, cluster: str, tick_ms: int, statuses: Sequence[ThrottleStatus]) -> None:
        """Permit the start."""
        self._history.allow()
