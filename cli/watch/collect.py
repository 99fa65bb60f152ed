"""``headroom collect``: read the brokers and write ticks to the ticks topic."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click
from kafka.errors import KafkaError

from headroom.cli.common.logs import log_to_stderr
from headroom.cli.common.options import config_option, for_option, with_parent_option
from headroom.cli.common.output import echo
from headroom.cli.common.parameters import WholeNumber
from headroom.cli.common.stopping import end_with_parent, end_within, stop_on_signals
from headroom.cli.config.load import load_settings
from headroom.cli.watch.heartbeat import send_heartbeats
from headroom.cli.watch.output.relay import relayed_output
from headroom.cluster.collector.collector import Collector, TickReport
from headroom.cluster.collector.publisher import PublishError, SentMessages
from headroom.cluster.collector.rows.encoder import Message
from headroom.cluster.connection.failover import MetadataError
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError

log = logging.getLogger(__name__)

# A single tick delays no other one, and its connections are new.
_ONCE_S = 10.0
# A tick that is under way is written first, and connections are closed.
_STOP_GRACE_S = 30.0


@click.command()
@config_option
@for_option
@click.option("--once", is_flag=True, help="Collect one tick and stop.")
@click.option("--print", "print_ticks", is_flag=True, help="Print the messages as JSON lines instead of writing them.")
@click.option("--verbose", is_flag=True, help="Log every tick on stderr.")
@with_parent_option
@click.option(
    "--heartbeat-fd", type=WholeNumber(), hidden=True, help="File descriptor for heartbeats to the process above."
)
def collect(
    config: str | None,
    seconds: float | None,
    once: bool,
    print_ticks: bool,
    verbose: bool,
    with_parent: bool,
    heartbeat_fd: int | None,
) -> None:
    """Read metadata and metrics of all brokers at every interval, and write them to the ticks topic.

    \b
    Example:  headroom collect --config headroom.toml --verbose
              headroom collect --once --print
    """  # noqa: D301
    if heartbeat_fd is not None:
        send_heartbeats(heartbeat_fd)
    settings = load_settings(config)
    # The collector logs a broker that is down once; the clients would log every attempt.
    log_to_stderr(logging.INFO, logging.WARNING if verbose else logging.CRITICAL)
    stop = threading.Event()
    stop_on_signals(stop)
    end_within(stop, _STOP_GRACE_S)
    if with_parent:
        end_with_parent(stop)
    if once:
        # There is no next tick to make up for a broker that answers late.
        settings = with_time_for_one_tick(settings)
    # A relay drops lines that nobody reads, and another program may read the ticks.
    with relayed_output(stdout=not print_ticks):
        collector = Collector(settings, PrintSink() if print_ticks else None, _reporter(verbose))
        if once:
            collect_once(collector)
            return
        timer = threading.Timer(seconds, stop.set) if seconds is not None else None
        if timer is not None:
            timer.daemon = True
            timer.start()
        collector.run(stop)


def with_time_for_one_tick(settings: Settings) -> Settings:
    """Return the settings of a single tick: unless ``collect.broker_timeout_s`` is set, brokers have 10 s to answer."""
    timeout_s = settings.collect.broker_timeout_s or _ONCE_S
    return replace(settings, collect=replace(settings.collect, broker_timeout_s=timeout_s))


def collect_once(collector: Collector) -> None:
    """Collect and write one tick.

    Raises:
        HeadroomError: the tick could not be collected or written, or it has no rows of some broker.
    """
    try:
        collector.open()
        report = collector.tick()
    except (MetadataError, PublishError, KafkaError) as error:
        remedy = "See `headroom check`, which names the rights that are missing."
        raise HeadroomError("the tick", str(error) or type(error).__name__, remedy) from None
    finally:
        collector.close()
    if report.unanswered:
        rule = "; ".join(f"broker {row['broker']}: {row['reason']}" for row in report.unanswered)
        remedy = "All other rows were collected. See `headroom check`."
        raise HeadroomError("the tick", f"has no rows of {len(report.unanswered)} broker(s): {rule}", remedy)


class PrintSink:
    """Prints messages on standard output instead of writing them to the topic."""

    def open(self) -> None:
        """Do nothing: standard output is always open."""

    def send(self, messages: list[Message]) -> SentMessages:
        """Print the messages and return their counts by kind; offsets are 0, because no topic is written."""
        for message in messages:
            echo(message.value.decode())
        kinds = [message.kind for message in messages]
        return SentMessages({kind: kinds.count(kind) for kind in kinds}, 0, sum(m.for_alerts for m in messages))

    def send_end(self, cluster: str, tick_ms: int, seq: int, end: dict[str, Any]) -> None:
        """Print the tick's end message."""
        echo(json.dumps({"cluster": cluster, "tick_ms": tick_ms, "kind": "tick_end", "seq": seq, **end}))

    def close(self) -> None:
        """Do nothing: standard output stays open."""


def _reporter(verbose: bool) -> Callable[[TickReport], None]:
    unanswered: set[int] = set()

    def report(tick: TickReport) -> None:
        if tick.failed is None:
            _log_changes(unanswered, tick)
        if verbose and tick.failed is None:
            reasons = "".join(f"; broker {row['broker']}: {row['reason']}" for row in tick.unanswered)
            counts = " ".join(f"{kind}={count}" for kind, count in tick.rows.items())
            echo(f"tick {tick.tick_ms} in {tick.duration_s * 1000:.0f} ms: {counts}{reasons}", err=True)

    return report


def _log_changes(unanswered: set[int], tick: TickReport) -> None:
    """Log once each broker that stopped answering, with the reason, and each that answers again.

    Args:
        unanswered: brokers that did not answer in the previous tick; updated in place.
        tick: report of a tick that was written.
    """
    reasons = {int(row["broker"]): str(row["reason"]) for row in tick.unanswered}
    for broker in sorted(reasons.keys() - unanswered):
        log.warning("broker %d did not answer: %s", broker, reasons[broker])
    for broker in sorted(unanswered - reasons.keys()):
        log.info("broker %d answers again", broker)
    unanswered.clear()
    unanswered.update(reasons)
