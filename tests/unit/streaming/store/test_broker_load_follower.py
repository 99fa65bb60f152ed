"""The table of broker loads on a local disk, followed: the newest minute of each cluster, once."""

from __future__ import annotations

import logging
import shutil
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from headroom.alerts.inputs.broker_load import MinuteLoads
from headroom.schemas.tables import BROKER_LOAD
from headroom.streaming.delta.small_table import append_durably
from headroom.streaming.jobs.loads.broker_load import BrokerLoadRow, minute_of
from headroom.streaming.store.broker_load_follower import BrokerLoadFollower
from headroom.streaming.store.store import Store
from tests.unit.builders.throttle_status import TICK_MS


def row(cluster: str, tick_ms: int, broker: int, **more: Any) -> BrokerLoadRow:
    made = BrokerLoadRow(
        cluster=cluster,
        tick_ms=tick_ms,
        date=datetime.fromtimestamp(tick_ms / 1000, timezone.utc).date(),
        minute_ms=minute_of(tick_ms),
        broker=broker,
        alive=True,
        resource="network_in",
        load=30e6,
        unknown_reason=None,
        capacity=None,
        load_limit=None,
        mean=20e6,
        lower=18e6,
        upper=22e6,
        in_band=False,
        band_score=0.9,
        limit_score=1.0,
        flush_p999_s=None,
        slow_rounds=None,
        read_ms=tick_ms,
        counter_bytes=7,
    )
    return replace(made, **more)


class Followed:
    """A store with the table, and what a follower of it passed on."""

    def __init__(self, folder: Path) -> None:
        self.received: list[tuple[str, MinuteLoads]] = []
        no_spark: Any = None
        store = Store(no_spark, str(folder))
        self.location = store.location(BROKER_LOAD)
        take = lambda cluster, loads: self.received.append((cluster, loads))  # noqa: E731
        self.follower = BrokerLoadFollower(no_spark, store, take, lambda: TICK_MS)

    def write(self, *rows: BrokerLoadRow) -> None:
        append_durably(self.location, rows, BROKER_LOAD)

    def polled(self) -> list[tuple[str, int, list[int]]]:
        """Poll once and return what is passed on: cluster, milliseconds after the first tick, brokers."""
        before = len(self.received)
        self.follower.poll()
        return [
            (cluster, loads.tick_ms - TICK_MS, sorted(loads.by_broker)) for cluster, loads in self.received[before:]
        ]


@pytest.fixture
def followed(tmp_path: Path) -> Followed:
    return Followed(tmp_path)


def test_the_newest_minute_of_each_cluster_is_passed_on_once(followed: Followed) -> None:
    assert followed.polled() == []
    followed.write(row("a", TICK_MS, 1), row("a", TICK_MS + 60_000, 1), row("a", TICK_MS + 60_000, 2))
    followed.write(row("b", TICK_MS, 3))
    assert sorted(followed.polled()) == [("a", 60_000, [1, 2]), ("b", 0, [3])]
    assert followed.polled() == []
    followed.write(row("b", TICK_MS + 60_000, 3))
    assert followed.polled() == [("b", 60_000, [3])]


def test_a_state_has_the_values_of_its_row(followed: Followed) -> None:
    followed.write(row("a", TICK_MS, 1, in_band=None, load=None, unknown_reason="the broker is down", slow_rounds=4))
    followed.polled()
    (state,) = followed.received[0][1].states
    assert (state.load, state.in_band, state.unknown_reason) == (None, None, "the broker is down")
    assert (state.upper, state.slow_rounds, state.resource) == (22e6, 4, "network_in")


def test_a_table_that_cannot_be_read_is_reported_once_and_read_again(
    followed: Followed, caplog: pytest.LogCaptureFixture
) -> None:
    followed.write(row("a", TICK_MS, 1))
    assert followed.polled() == [("a", 0, [1])]
    shutil.rmtree(f"{followed.location}/_delta_log")
    Path(f"{followed.location}/_delta_log").write_text("")
    with caplog.at_level(logging.WARNING):
        assert followed.polled() == followed.polled() == []
    assert len([r for r in caplog.records if "the load of brokers is unknown" in r.message]) <= 1
    shutil.rmtree(followed.location)
    followed.write(row("a", TICK_MS + 60_000, 2))
    assert followed.polled() == [("a", 60_000, [2])]
