"""Restarts of brokers, with and without a start time."""

from __future__ import annotations

import pytest

from headroom.cluster.collector.samples.restarts import Restarts
from headroom.cluster.metrics.mbeans import topic_bytes
from headroom.cluster.model import Meter, Metrics, Reading

BYTES = Meter("BrokerTopicMetrics.BytesInPerSec")
READ_MS = 1_800_000_000_000


def metrics(count: float | None, at_s: float = 0.0, started_ms: int | None = None, of_topic: float = 0.0) -> Metrics:
    read_ms = READ_MS + int(at_s * 1000)
    counters = {topic_bytes("t"): Reading(read_ms, of_topic)}
    if count is not None:
        counters[BYTES] = Reading(read_ms, count)
    return Metrics(started_ms, counters, {}, (), {})


@pytest.mark.parametrize(
    ("before", "now", "restarted"),
    [
        (metrics(9, started_ms=1), metrics(5, 5, started_ms=1), False),
        (metrics(5, started_ms=1), metrics(9, 5, started_ms=2), True),
        (metrics(5, started_ms=1), metrics(9, 5), True),
        # Without a start time the counts tell.
        (metrics(5), metrics(9, 5), False),
        (metrics(5), metrics(5, 5), False),
        (metrics(9), metrics(5, 5), True),
        # A topic's count falls when its leader has moved away and back.
        (metrics(5, of_topic=9), metrics(9, 5, of_topic=1), False),
        # It may have counted further than before meanwhile.
        (metrics(5), metrics(9, 121), True),
        # Nothing to compare: unknown is no run.
        (metrics(None), metrics(None, 5), True),
    ],
)
def test_a_restart_is_another_start_time_or_without_one_a_count_that_falls(
    before: Metrics, now: Metrics, restarted: bool
) -> None:
    restarts = Restarts()
    assert restarts.may_have_restarted(1, before)
    assert restarts.may_have_restarted(1, now) == restarted
    assert restarts.may_have_restarted(2, now)
