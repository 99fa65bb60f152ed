"""A ticks topic that changes under the record job: each record that is there reaches bronze, and once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headroom.cluster.embedded import EmbeddedCluster
from headroom.schemas.config import KafkaSettings, SparkSettings
from headroom.schemas.tables import BRONZE_TICKS
from headroom.streaming.delta.query import rows
from headroom.streaming.queries.bronze_query import BronzeQuery
from headroom.streaming.session import build_session
from headroom.streaming.sources.kafka_options import kafka_options
from headroom.streaming.sources.ticks_topic import TicksTopic
from headroom.streaming.store.store import Store
from tests.integration.conftest import StartCluster
from tests.integration.support import TABLE_POLL_S, admin_of, wait_until

TOPIC = "changed.ticks"
DEADLINE_S = 180.0


class Scene:
    """The topic, and a bronze query over it."""

    def __init__(self, cluster: EmbeddedCluster, spark: SparkSession, folder: Path) -> None:
        self._cluster = cluster
        self._store = Store(spark, str(folder / "store"))
        self._store.ensure(BRONZE_TICKS)
        options = kafka_options(KafkaSettings(bootstrap_servers=cluster.bootstrap_servers), None)
        topic = TicksTopic(spark, TOPIC, options)
        # The second one lets few records wait.
        self._queries = [
            BronzeQuery(spark, topic, self._store, str(folder / "cp"), 0.5, idle_s) for idle_s in (0.0, 25.0)
        ]

    def create(self) -> None:
        """Create the topic, once an earlier one is gone."""
        with admin_of(self._cluster) as admin:
            wait_until(lambda: TOPIC not in admin.list_topics(), 60, "no topic")
            admin.create_topics({TOPIC: {"num_partitions": 2, "replication_factor": 1}})
            admin.wait_for_topics([TOPIC])

    def delete(self) -> None:
        """Delete the topic."""
        self._with_admin(lambda admin: admin.delete_topics([TOPIC]))

    def expire(self, partition: int, first: int) -> None:
        """Delete the records of a partition before an offset, as retention does."""
        self._with_admin(lambda admin: admin.delete_records({TopicPartition(TOPIC, partition): first}))

    def _with_admin(self, call: Callable[[KafkaAdminClient], object]) -> None:
        with admin_of(self._cluster) as admin:
            call(admin)

    def send(self, count: int, timestamp_ms: int | None = None) -> None:
        """Write some records to each partition."""
        producer = KafkaProducer(bootstrap_servers=self._cluster.bootstrap_servers)
        for number in range(2 * count):
            producer.send(TOPIC, b"{}", partition=number % 2, timestamp_ms=timestamp_ms).get(30)
        producer.close()

    def offsets(self) -> list[list[int]]:
        """Offsets in bronze, by partition."""
        found = rows({"t": self._store.location(BRONZE_TICKS)}, 'SELECT "partition", "offset" FROM t')
        return [sorted(row["offset"] for row in found if row["partition"] == number) for number in (0, 1)]

    @contextmanager
    def running(self, *, lets_wait: bool = False) -> Iterator[StreamingQuery]:
        """Run the query."""
        query = self._queries[lets_wait].start()
        try:
            yield query
        finally:
            query.stop()

    def read_until(self, offsets: list[list[int]]) -> None:
        """Run the query until bronze has these offsets."""
        with self.running() as query:
            self.wait(query, offsets)

    def wait(self, query: StreamingQuery, offsets: list[list[int]]) -> None:
        """Wait until bronze has these offsets."""
        wait_until(
            lambda: self.offsets() == offsets or not query.isActive,
            DEADLINE_S,
            "bronze",
            self.offsets,
            TABLE_POLL_S,
        )
        assert (self.offsets(), query.exception()) == (offsets, None)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = build_session(SparkSettings(master="local[2]", shuffle_partitions=1, driver_memory="1g"), "changed-topic")
    yield session
    session.stop()


def test_bronze_continues_after_records_expire_or_the_topic_is_created_again(
    start_cluster: StartCluster, spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    scene = Scene(start_cluster(1), spark, tmp_path)
    scene.create()
    scene.send(5)
    scene.read_until([[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]])
    # Records expire unread, before the start and while the query runs.
    scene.send(5)
    scene.expire(0, 8)
    expected = [[0, 1, 2, 3, 4, 8, 9], list(range(10))]
    scene.read_until(expected)
    assert "offsets 5 to 7 of partition 0 (3) expired before query bronze read them" in caplog.text
    # The next start finds nothing changed.
    caplog.clear()
    with scene.running(lets_wait=True) as query:
        scene.send(1)
        expected = [[*expected[0], 10], [*expected[1], 10]]
        scene.wait(query, expected)
        assert not [line for line in caplog.messages if TOPIC in line]
        scene.send(5)
        scene.expire(0, 14)
        wait_until(lambda: not query.isActive, DEADLINE_S, "the end of the query")
        assert "offset" in str(query.exception()).lower()
    expected = [[*expected[0], 14, 15], [*expected[1], 11, 12, 13, 14, 15]]
    scene.read_until(expected)
    assert "offsets 11 to 13 of partition 0 (3) expired before query bronze read them" in caplog.text
    # The topic is created again: shorter than before, and then one that has grown beyond the old offsets.
    scene.delete()
    scene.create()
    scene.send(2)
    expected = [sorted([*of_partition, 0, 1]) for of_partition in expected]
    scene.read_until(expected)
    assert f"topic {TOPIC} was created again since query bronze read it last" in caplog.text
    scene.delete()
    scene.create()
    scene.send(4, timestamp_ms=round((time.time() + 3600) * 1000))
    expected = [sorted([*of_partition, 0, 1, 2, 3]) for of_partition in expected]
    scene.read_until(expected)
