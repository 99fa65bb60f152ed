"""A replica that moves between log directories of its broker: every source reads the current log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from headroom.cluster.admin.alter_configs import ConfigChange, alter_configs
from headroom.cluster.admin.config_keys import BROKER, LOG_DIRS_RATE, TOPIC
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.embedded import BrokerOptions, EmbeddedCluster
from headroom.cluster.throttles.replica_lists import apply_lists
from headroom.planning.throttles.replica_lists import TopicLists
from headroom.schemas.config import Source
from tests.integration.support import RECORD_BYTES, admin_of, create_topic, fill, wait_until
from tests.integration.ticks import Tick, collecting, settings_of

RECORDS = 3000
# A fetch of 1 MiB goes through at once, and another whenever the window of 11 s has forgotten it: minutes of copying.
RATE_BYTES_PER_S = 2000
# The rule for logs of jmx_exporter's kafka-0-8-2.yml, which takes the key of the copy into the partition's label.
EXPORTER = """
lowercaseOutputName: true
includeObjectNames: ["java.lang:type=Runtime", "kafka.log:type=Log,*", "kafka.server:*"]
rules:
  - pattern: "kafka.log<type=Log, name=(.+), topic=(.+), partition=(.+)><>Value"
    name: "kafka_log_$1"
    labels: {topic: "$2", partition: "$3"}
  - pattern: ".*"
"""


@pytest.fixture(scope="module")
def moving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """A broker with two log directories and both agents, which moves orders-0 from one directory to the other."""
    folder = tmp_path_factory.mktemp("directories")
    folders = [folder / "first", folder / "second"]
    (folder / "exporter.yml").write_text(EXPORTER)
    options = BrokerOptions(
        properties={"log.dirs": ",".join(map(str, folders))}, agents=True, exporter_config=folder / "exporter.yml"
    )
    with EmbeddedCluster(folder / "cluster", 1, options=options) as cluster:
        create_topic(cluster, "orders", {0: [1], 1: [1]})
        fill(cluster, "orders", {0: RECORDS * RECORD_BYTES})
        with closing(AdminConnection(settings_of(cluster).cluster)) as link:
            alter_configs(link, [ConfigChange(TOPIC, "orders", {"compression.type": "gzip"})], 10)
            alter_configs(link, [ConfigChange(BROKER, "1", {LOG_DIRS_RATE: str(RATE_BYTES_PER_S)})], 10)
        apply_lists(settings_of(cluster), {"orders": TopicLists("*", "*")})
        _move(cluster, folders)
        yield cluster


def _move(cluster: EmbeddedCluster, folders: list[Path]) -> None:
    with admin_of(cluster) as admin:

        def logs() -> dict[bool, str]:
            """Return the directory of the log of orders-0, and of its copy."""
            return {
                partition["is_future_key"]: log_dir["log_dir"]
                for log_dir in admin.describe_log_dirs()[0]["log_dirs"]
                for topic in log_dir["topics"]
                if topic["name"] == "orders"
                for partition in topic["partitions"]
                if partition["partition_index"] == 0
            }

        target = next(str(folder) for folder in folders if str(folder) != logs()[False])
        admin.alter_replica_log_dirs({("orders", 0, 1): target})
        wait_until(lambda: True in logs(), 30, "the copy of orders-0", logs)


def is_whole(tick: Tick) -> bool:
    """Return whether the broker answered in time, and both partitions are watched."""
    moves = (tick.move("orders", partition) for partition in (0, 1))
    return not tick.end["unanswered"] and bool(tick.broker(1)["throttles_known"]) and all(moves)


@pytest.mark.parametrize("source", Source)
def test_a_future_log_is_not_read_as_the_current_log(moving: EmbeddedCluster, source: Source) -> None:
    with collecting(settings_of(moving, source=source)) as running:
        tick = running.tick_with(is_whole, "both partitions")
    assert tick.end["unanswered"] == []
    logs = {partition: (tick.move("orders", partition) or {})["logs"][0] for partition in (0, 1)}
    assert [logs[partition]["log_end_offset"] for partition in (0, 1)] == [RECORDS, 0]
    assert logs[0]["log_start_offset"] == 0
    assert logs[0]["size_bytes"] >= RECORDS * RECORD_BYTES
    ends = {(row["topic"], row["partition"]): row["log_end_offset"] for row in tick.rows("logs")}
    assert (ends["orders", 0], ends["orders", 1]) == (RECORDS, 0)


def test_a_tick_has_the_settings_that_shape_copies(moving: EmbeddedCluster) -> None:
    with collecting(settings_of(moving)) as running:
        tick = running.tick_with(is_whole, "orders watched")
    broker, move = tick.broker(1), tick.move("orders")
    assert move is not None
    assert (broker["log_dirs_throttle_bytes_per_s"], broker["log_dirs_throttle_source"]) == (RATE_BYTES_PER_S, "broker")
    # Kafka's defaults: https://kafka.apache.org/documentation/#brokerconfigs
    assert (broker["quota_window_num"], broker["quota_window_size_s"]) == (11, 1)
    assert (broker["replica_fetch_max_bytes"], broker["replica_fetch_response_max_bytes"]) == (1 << 20, 10 << 20)
    assert (broker["num_replica_fetchers"], broker["replica_fetch_backoff_ms"]) == (1, 1000)
    assert (move["remote_storage"], move["recompressed"]) == (False, True)
