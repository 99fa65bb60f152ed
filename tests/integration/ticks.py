"""A collector in the test's own process whose ticks stay in memory."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from headroom.cluster.collector.collector import Collector, TickReport
from headroom.cluster.collector.publisher import SentMessages
from headroom.cluster.collector.rows.encoder import Message
from headroom.cluster.embedded import EmbeddedCluster, endpoint
from headroom.schemas.config import ClusterSettings, CollectSettings, Settings, Source, TicksSettings
from headroom.schemas.tick_messages import column_types
from tests.integration.support import wait_until

Row = dict[str, Any]


def settings_of(
    cluster: EmbeddedCluster, topic: str = "headroom.ticks", window_s: float = 3.0, source: Source = Source.JMX
) -> Settings:
    """Return settings that collect this cluster once a second over a short rate window."""
    endpoints = {str(broker.broker_id): endpoint(broker, source) for broker in cluster.brokers}
    return Settings(
        cluster=ClusterSettings(name="test", bootstrap_servers=cluster.bootstrap_servers),
        ticks=TicksSettings(topic=topic),
        collect=CollectSettings(
            interval_s=1.0, source=source, rate_window_s=window_s, endpoints=endpoints, topic_config_max_age_s=2.0
        ),
    )


class Tick:
    """One tick as it was handed to the sink."""

    def __init__(self, messages: list[Message], tick_ms: int, end: Row) -> None:
        self.tick_ms = tick_ms
        self.end = end
        self._messages = [json.loads(message.value) for message in messages]

    def rows(self, kind: str) -> list[Row]:
        """Return the rows of a kind."""
        return [row for message in self._messages if message["kind"] == kind for row in rows_of(message)]

    def broker(self, broker: int) -> Row:
        """Return the row of a broker."""
        return next(row for row in self.rows("brokers") if row["broker"] == broker)

    def move(self, topic: str, partition: int = 0) -> Row | None:
        """Return the row of a watched partition; None: it is not watched."""
        rows = (row for row in self.rows("moves") if (row["topic"], row["partition"]) == (topic, partition))
        return next(rows, None)

    def meter(self, broker: int, meter: str, topic: str | None = None) -> Row | None:
        """Return the row of a meter; None: there is none."""
        wanted = (broker, meter, topic)
        rows = (row for row in self.rows("meters") if (row["broker"], row["meter"], row["topic"]) == wanted)
        return next(rows, None)


def rows_of(message: Row) -> list[Row]:
    """Return the rows of a message, however they travelled; a column that was left out is null."""
    if "columns" not in message:
        return list(message["rows"])
    columns = dict.fromkeys(column_types(message["kind"])) | message["columns"]
    return [
        {name: None if column is None else column[i] for name, column in columns.items()}
        for i in range(message["row_count"])
    ]


class MemorySink:
    """Keeps ticks in memory."""

    def __init__(self) -> None:
        self.ticks: list[Tick] = []
        self._messages: list[Message] = []

    def open(self) -> None:
        """Need nothing."""

    def send(self, messages: list[Message]) -> SentMessages:
        """Keep the messages until the tick ends."""
        self._messages = messages
        return SentMessages({}, 0, 0)

    def send_end(self, cluster: str, tick_ms: int, seq: int, end: Row) -> None:
        """Keep the whole tick."""
        self.ticks.append(Tick(self._messages, tick_ms, end))

    def close(self) -> None:
        """Need nothing."""


class Running:
    """A collector that runs, and what it collected.

    Attributes:
        collector: the collector itself.
        ticks: whole ticks so far.
        reports: what became of every tick, whole or not.
    """

    def __init__(self, settings: Settings) -> None:
        self._sink = MemorySink()
        self.reports: list[TickReport] = []
        self.collector = Collector(settings, self._sink, self.reports.append)
        self.ticks = self._sink.ticks

    def tick_with(self, condition: Callable[[Tick], object], what: str, deadline_s: float = 60.0) -> Tick:
        """Return the first tick from now on for which the condition is true."""
        start = len(self.ticks)

        def found() -> Tick | None:
            return next((tick for tick in list(self.ticks)[start:] if condition(tick)), None)

        def last() -> object:
            return self.ticks[-1].rows("brokers") + self.ticks[-1].rows("moves") if self.ticks else "no tick"

        tick = wait_until(found, deadline_s, what, last)
        assert tick is not None
        return tick


def lacks_only(report: TickReport, broker: int) -> bool:
    """Return whether a tick was written that all brokers but this one answered for."""
    return report.failed is None and [row["broker"] for row in report.unanswered] == [broker]


@contextmanager
def collecting(settings: Settings) -> Iterator[Running]:
    """Run a collector for the length of the block."""
    running, stop = Running(settings), threading.Event()
    thread = threading.Thread(target=running.collector.run, args=(stop,), daemon=True)
    thread.start()
    try:
        running.tick_with(lambda tick: True, "the first tick")
        yield running
    finally:
        stop.set()
        # A tick that has begun ends first.
        wait_until(lambda: not thread.is_alive(), 60, "the collector stops")
