"""``headroom check``: connections, permissions and metrics, with a remedy for each problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import click
from rich.text import Text

from headroom.cli.common.options import config_option
from headroom.cli.common.outcome import CommandOutcome, with_format
from headroom.cli.common.output import echo, print_table
from headroom.cli.config.load import load_settings
from headroom.operations.check.result import Check, CheckStatus, unknown, with_timeout
from headroom.schemas.config import NotifySettings, Settings

_STYLES = {CheckStatus.OK: "green", CheckStatus.FAILED: "bold red", CheckStatus.UNKNOWN: "yellow"}


@click.command(short_help="Check connections, permissions and metrics; suggest a fix for each problem.")
@config_option
@with_format
def check(config: str | None) -> CommandOutcome:
    """Check everything that Headroom needs, and suggest a fix for each problem. Changes nothing.

    Checks Java, jars, memory, cores, the store, the receivers of alerts, the ticks topic and every broker's metrics.
    Connections to Kafka and permissions are checked with both clients that Headroom uses. No receiver is notified. Exit
    code 1 if a check answers no.

    \b
    Example:  headroom check --config headroom.toml
    """  # noqa: D301
    checks = list(run_checks(load_settings(config)))
    return CommandOutcome(
        lambda: [{**vars(row), "answer": row.answer.value} for row in checks],
        lambda: _print_text(checks),
        exit_code=any(row.answer is CheckStatus.FAILED for row in checks),
    )


def run_checks(settings: Settings) -> Iterator[Check]:
    """Yield every check; checks that need the cluster are unknown if it cannot be reached."""
    from headroom.operations.check import brokers as check_brokers
    from headroom.operations.check import kafka as check_kafka
    from headroom.operations.check import local as check_local
    from headroom.operations.check import spark as check_spark

    for name, local in check_local.checks(settings):
        yield from with_timeout(name, 30, local)
    yield from _receiver_checks(settings.notify)
    # The checks of the cluster send three requests, and each may take the whole request timeout.
    limit_s = 3 * settings.cluster.request_timeout_ms / 1000 + 5
    cluster = with_timeout("Kafka", limit_s, lambda: check_kafka.cluster_checks(settings))
    yield from cluster
    remote: list[tuple[str, Callable[[Settings], list[Check]]]] = [
        ("Ticks topic", check_kafka.ticks_checks),
        ("Spark's Kafka client", check_spark.spark_checks),
        ("Brokers", check_brokers.broker_checks),
    ]
    for name, checks in remote:
        # Without a connection, every further check would only wait for its time limit.
        if cluster[0].answer is CheckStatus.OK:
            yield from with_timeout(name, limit_s + 30, partial(checks, settings))
        else:
            yield unknown(name, "not tried, because Kafka could not be reached", "Fix the row Kafka first.")


def _receiver_checks(notify: NotifySettings) -> list[Check]:
    """Return the checks of the receivers, each of which sends up to two requests."""
    # Only here: the other commands need none of what notifies receivers.
    from headroom.cli.watch.receivers import build_receivers
    from headroom.operations.check.receivers import receiver_checks

    if not notify.receivers():
        return []
    limit_s = 2 * max(notify.slack.timeout_s, notify.alertmanager.timeout_s, notify.webhook.timeout_s) + 5
    return with_timeout("Receivers", limit_s, lambda: receiver_checks(build_receivers(notify)))


def _print_text(checks: list[Check]) -> None:
    rows = [(row.name, Text(row.answer.value, style=_STYLES[row.answer]), row.found, row.remedy) for row in checks]
    print_table("", ("what", "answer", "found", "remedy"), rows)
    count = {answer: sum(row.answer is answer for row in checks) for answer in CheckStatus}
    echo()
    echo(f"{count[CheckStatus.OK]} ok, {count[CheckStatus.FAILED]} no, {count[CheckStatus.UNKNOWN]} unknown.")
