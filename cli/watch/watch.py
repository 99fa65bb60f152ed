"""``headroom watch``: collector, alert path and history in one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import click

from alerts.inputs.throttle_status import ThrottleStatus
from cli.common.child_process import ChildProcess, stop_when_orphaned
from cli.common.logs import log_to_stderr
from cli.common.options import configs_option, for_option, format_option
from cli.common.output import echo
from cli.watch.collect import stop_on_signals
from cli.watch.metrics_server import serving_metrics
from cli.watch.pipeline import build_pipeline, load_clusters, start_alert_output, supervise
from cli.watch.printer import VerdictPrinter
from cli.watch.restarting_pipeline import RestartingPipeline
from cli.watch.single_instance import exclusive_jobs
from schemas.errors import HeadroomError
from streaming.jobs.alert_path import Listeners
from streaming.session import submitted


@click.command()
@configs_option
@format_option
@for_option
@click.option("--without-collector", is_flag=True, help="Run only the Spark jobs: `headroom collect` runs elsewhere.")
@click.option("--with-parent", is_flag=True, help="Stop when the process that started this one ends.")
def watch(
    configs: tuple[str, ...], output_format: str, seconds: float | None, without_collector: bool, with_parent: bool
) -> None:
    """Watch one cluster or several: collect ticks, keep the Delta tables, tell verdicts and alerts.

    Prints the verdict on every broker whose throttle matters whenever it changes, and every alert when it fires and
    when it is resolved. A process of its own, at lower priority, writes the history (bronze, silver and gold tables),
    so that no alert waits for it.

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
    orphaned = [stop_when_orphaned(stop)] if with_parent else []
    printer = VerdictPrinter(output_format)
    # Before anything is started, for a store or a port that is taken may end the command.
    with exclusive_jobs(clusters.settings.store, ["alerts"]), serving_metrics(clusters) as live:
        collectors = [
            ChildProcess(f"collector of {name}", ["collect"], config)
            for name, config in clusters.configs
            if not without_collector
        ]
        history = HistoryProcess(clusters.config)
        try:
            echo("Starting the collector and Spark ...", err=True)
            told = Listeners(_first(history.allow, printer.tick), printer.events)
            pipeline = RestartingPipeline(
                lambda: build_pipeline(clusters, "headroom watch"),
                lambda built: start_alert_output(built, printer, told, live),
            )
            try:
                pipeline.start()
                checks = [pipeline.check, history.check, *(child.check for child in collectors), *orphaned]
                supervise(checks, stop, seconds)
            finally:
                history.ask_to_stop()
                pipeline.stop()
        finally:
            history.stop()
            for child in collectors:
                child.stop()


def _require_own_process() -> None:
    if submitted():
        raise HeadroomError(
            "headroom watch",
            "starts processes of its own, which cannot share the Spark of spark-submit",
            "Submit `run watch record`, and start `headroom collect` by itself.",
        )


class HistoryProcess:
    """The record and gold jobs in a process of their own, started once the first verdict is out.

    Args:
        config: configuration file; None: as found.
    """

    def __init__(self, config: str | None) -> None:
        self._config = config
        self._allowed = threading.Event()
        self._child: ChildProcess | None = None

    def allow(self) -> None:
        """Let it be started; called from any thread."""
        self._allowed.set()

    def check(self) -> None:
        """Start it if it is time, and again if it died."""
        if self._child is not None:
            self._child.check()
        elif self._allowed.is_set():
            self._child = ChildProcess("history", ["run", "gold", "record", "--nice", "10"], self._config)

    def ask_to_stop(self) -> None:
        """Ask it to end, and do not wait."""
        if self._child is not None:
            self._child.ask_to_stop()

    def stop(self) -> None:
        """End it."""
        if self._child is not None:
            self._child.stop()


def _first(
    before: Callable[[], None], listener: Callable[[str, int, Sequence[ThrottleStatus]], None]
) -> Callable[[str, int, Sequence[ThrottleStatus]], None]:
    """Return a listener of ticks that calls another function once it has told one."""

    def tell(cluster: str, tick_ms: int, sides: Sequence[ThrottleStatus]) -> None:
        listener(cluster, tick_ms, sides)
        before()

    return tell
