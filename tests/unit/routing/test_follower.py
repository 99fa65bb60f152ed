"""What a router knows of its migrations."""

from __future__ import annotations

from typing import Any, cast

from headroom.routing.agreement import AgreementReader, AgreementWriter
from headroom.routing.follower import AgreementFollower
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MIGRATIONS_TOPIC
from tests.unit.builders.agreements import agreement
from tests.unit.fakes.kafka_clients import FakeCluster, FakeConsumer, FakeProducer


class _Reporter:
    def check_name(self, reports: Any) -> None:
        """Keep the name."""


def test_a_partition_without_an_end_offset_is_in_no_migration_until_its_target_is_in_use() -> None:
    cluster = FakeCluster("new", {MIGRATIONS_TOPIC: 1})
    reader = AgreementReader(FakeConsumer(cluster))
    writer = AgreementWriter(
        "move", FakeProducer(cluster, transactional_id="move"), AgreementReader(FakeConsumer(cluster))
    )
    writer.open(1.0)
    follower = AgreementFollower(reader, cast(Any, _Reporter()), ("old", "new"))
    planned = {"end_offset": None, "target_base_offset": None, "method": "drained", "routers": ()}
    writer.write([agreement(**planned), agreement(partition=1, **planned)])
    follower.read()
    assert follower.splits() == {}
    started = {**planned, "target_base_offset": 0, "status": "migrating"}
    writer.write([agreement(**{**started, "end_offset": 7}), agreement(partition=1, **started)])
    follower.read()
    splits = follower.splits()
    assert splits[TopicPartition("orders", 0)].end_offset == 7
    # In use without a known end: nothing may be read.
    assert splits[TopicPartition("orders", 1)].end_offset is None
