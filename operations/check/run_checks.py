"""All checks of ``headroom check``, one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from headroom.operations.check import brokers, kafka, local, spark
from headroom.operations.check.receivers import receiver_checks
from headroom.operations.check.result import Check, CheckStatus, unknown, with_timeout
from headroom.operations.check.run_lock import run_lock_checks
from headroom.operations.receivers import build_receivers
from headroom.schemas.config import NotifySettings, Settings


def run_checks(settings: Settings) -> Iterator[Check]:
    """Yield every check; checks that need the cluster are unknown if it cannot be reached."""
    for name, own in local.checks(settings):
        yield from with_timeout(name, 30, own)
    yield from _receiver_checks(settings.notify)
    # The checks of the cluster send three requests, and each may take the whole request timeout.
    limit_s = 3 * settings.cluster.request_timeout_ms / 1000 + 5
    cluster = with_timeout("Kafka", limit_s, lambda: kafka.cluster_checks(settings))
    yield from cluster
    remote: list[tuple[str, Callable[[Settings], list[Check]]]] = [
        ("Run lock", run_lock_checks),
        ("Ticks topic", kafka.ticks_checks),
        ("Spark's Kafka client", spark.spark_checks),
        ("Brokers", brokers.broker_checks),
    ]
    for name, checks in remote:
        # Without a connection, every further check would only wait for its time limit.
        if cluster[0].answer is CheckStatus.OK:
            yield from with_timeout(name, limit_s + 30, partial(checks, settings))
        else:
            yield unknown(name, "not tried, because Kafka could not be reached", "Fix the row Kafka first.")


def _receiver_checks(notify: NotifySettings) -> list[Check]:
    """Return the checks of the receivers, each of which sends up to two requests."""
    if not notify.receivers():
        return []
    limit_s = 2 * max(notify.slack.timeout_s, notify.alertmanager.timeout_s, notify.webhook.timeout_s) + 5
    return with_timeout("Receivers", limit_s, lambda: receiver_checks(build_receivers(notify)))
