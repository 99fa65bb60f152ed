"""What a process sees of the alert partition on a real broker, without Spark: moves, and how far the ticks are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headroom.cluster.collector.activity import AlertPartitionActivity
from headroom.cluster.collector.publisher import Publisher
from headroom.cluster.collector.rows.encoder import encode_rows
from headroom.cluster.embedded import EmbeddedCluster
from headroom.schemas.config import Settings
from tests.integration.conftest import StartCluster
from tests.integration.support import wait_until
from tests.integration.ticks import settings_of

# A broker elects leaders and creates topics within seconds, on a busy machine within a minute.
DEADLINE_S = 60.0


@pytest.fixture
def broker(start_cluster: StartCluster) -> EmbeddedCluster:
    return start_cluster(1)


@pytest.fixture
def publisher(broker: EmbeddedCluster) -> Iterator[tuple[Settings, Publisher]]:
    settings = settings_of(broker)
    publisher = Publisher(settings, ack_timeout_s=DEADLINE_S)
    publisher.open()
    yield settings, publisher
    publisher.close()


def publish(publisher: Publisher, tick_ms: int, moves: bool) -> int:
    """Publish a tick; the offset of its first record in the alert partition."""
    rows = {"brokers": [{"broker": 1}], "moves": [{"topic": "t", "partition": 0}] if moves else []}
    messages = encode_rows("test", tick_ms, rows)
    sent = publisher.send(messages)
    publisher.send_end("test", tick_ms, len(messages), {})
    return sent.first_offset


def test_a_move_ends_the_quiet_at_once_and_ticks_of_before_the_start_do_not_count(
    publisher: tuple[Settings, Publisher], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Longer than any wait: a move of before the start that counted would never be over.
    monkeypatch.setattr("headroom.cluster.collector.activity._QUIET_AFTER_S", 86_400.0)
    settings, sink = publisher
    publish(sink, 1000, moves=True)
    activity = AlertPartitionActivity(settings)
    activity.start()
    try:
        assert (activity.is_quiet(), activity.records_from(0)) == (False, None)
        ticks = iter(range(2000, 1_000_000, 1000))

        def is_quiet_after_a_tick() -> bool:
            publish(sink, next(ticks), moves=False)
            return activity.is_quiet()

        # The first ticks may come before the follower has found the partition's end.
        wait_until(is_quiet_after_a_tick, DEADLINE_S, "quiet ticks to be seen")
        first = publish(sink, next(ticks), moves=False)
        # Its brokers and its end.
        wait_until(lambda: activity.records_from(first) == 2, DEADLINE_S, "the whole tick")
        publish(sink, next(ticks), moves=True)
        wait_until(lambda: not activity.is_quiet(), DEADLINE_S, "the move")
        # Brokers, moves and end of another tick.
        wait_until(lambda: activity.records_from(first) == 5, DEADLINE_S, "the tick with the move")
    finally:
        activity.stop()
