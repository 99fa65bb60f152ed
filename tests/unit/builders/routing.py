"""Two clusters in memory, with routers between them that follow their agreements only when a test lets them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from kafka import TopicPartition

from headroom.routing import RoutedConsumer, RoutedProducer
from headroom.routing.agreement import AgreementReader, AgreementWriter
from headroom.routing.producer import routed_producer
from headroom.schemas.migrations import MIGRATIONS_TOPIC, PartitionAgreement
from tests.unit.builders.agreements import TOPIC
from tests.unit.fakes.kafka_clients import FakeCluster, FakeConsumer, FakeProducer

P0 = TopicPartition(TOPIC, 0)


class Router:
    """A routed producer, with the producers that it uses."""

    def __init__(self, stage: Stage, name: str, instant: bool) -> None:
        self.origin = FakeProducer(stage.origin, instant)
        self.target = FakeProducer(stage.target, instant)
        # Reports are answered at once, whatever else is held back.
        self.target.instant_topics = {MIGRATIONS_TOPIC}
        self.routed = RoutedProducer(self.origin, self.target, stage.reader(), name, max_held_bytes=100)

    def end(self) -> None:
        """End the thread without a flush, as if the process died."""
        self.routed._closing.set()


class Stage:
    """The clusters "old" and "new", with the topic "orders" on both."""

    def __init__(self, partitions: int = 1, patch: pytest.MonkeyPatch | None = None) -> None:
        # The thread of a producer would follow at moments of its own.
        (patch or pytest.MonkeyPatch()).setattr(routed_producer, "_FOLLOW_S", 3600.0)
        self.origin = FakeCluster("old", {TOPIC: partitions, "other": 1})
        self.target = FakeCluster("new", {TOPIC: partitions, "other": 1, MIGRATIONS_TOPIC: 1})
        self.writer = AgreementWriter("move", FakeProducer(self.target, transactional_id="move"), self.reader())
        self.writer.open(1.0)
        self.routers: list[Router] = []

    def reader(self) -> AgreementReader:
        return AgreementReader(FakeConsumer(self.target))

    def agree(self, *agreements: PartitionAgreement) -> None:
        self.writer.write(agreements)

    def producer(self, name: str = "writer", instant: bool = False) -> Router:
        router = Router(self, name, instant)
        self.routers.append(router)
        return router

    def consumer(self, name: str = "group-reader", given: Iterable[TopicPartition] = (P0,), **config: Any) -> Consuming:
        return Consuming(self, name, given, config)

    def agreed(self) -> dict[str, int]:
        """Return the number of the agreement that each router reported."""
        reader = self.reader()
        reader.read_to_end(1.0)
        return {name: report.agreed["move"] for name, report in reader.reports.items() if "move" in report.agreed}

    def end(self) -> None:
        for router in self.routers:
            router.end()


class Consuming:
    """A routed consumer, with the consumers that it uses."""

    def __init__(self, stage: Stage, name: str, given: Iterable[TopicPartition], config: dict[str, Any]) -> None:
        config = {"group_id": "group", **config}
        self.origin = FakeConsumer(stage.origin, **config)
        self.target = FakeConsumer(stage.target, **config)
        reports = FakeProducer(stage.target, instant=True)
        self.routed = RoutedConsumer(self.origin, self.target, reports, stage.reader(), name)
        self.routed.subscribe([TOPIC])
        self.target.give(given)

    def read(self, max_records: int | None = None) -> list[tuple[int, bytes]]:
        """Return client offset and value of the records of one poll."""
        records = self.routed.poll(max_records=max_records)
        return [(record.offset, record.value) for found in records.values() for record in found]

    def read_all(self) -> list[tuple[int, bytes]]:
        """Return those of all polls, until three return none."""
        found: list[tuple[int, bytes]] = []
        empty = 0
        while empty < 3:
            new = self.read()
            empty = 0 if new else empty + 1
            found += new
        return found
