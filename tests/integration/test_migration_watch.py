"""A watch of the target follows a migration: its tables, and an alert on what the origin gets after the switch."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any

from kafka import KafkaProducer

from benchmarks.fixtures.migrations.clients import agreement_writer
from headroom.cli.common.watch_process import WatchProcess
from headroom.cli.config.load import load_settings
from headroom.cluster.embedded import EmbeddedCluster, write_config
from headroom.routing.agreement import (
    create_migrations_topic,
)
from headroom.schemas.alerts import AlertKind
from headroom.schemas.migrations import PartitionAgreement
from headroom.schemas.tables import MIGRATION_OFFSETS, MIGRATION_PROGRESS, Table
from headroom.streaming.delta.query_table import query
from tests.integration.conftest import StartCluster
from tests.integration.support import TABLE_POLL_S, admin_of, create_topic
from tests.support.migrations import printed_with

TOPIC, END = "orders", 300
PATIENCE_S = 180


def cluster_id(cluster: EmbeddedCluster) -> str:
    with admin_of(cluster) as admin:
        return str(admin.describe_cluster()["cluster_id"])


def write(cluster: EmbeddedCluster, records: int) -> None:
    with closing(KafkaProducer(bootstrap_servers=cluster.bootstrap_servers)) as producer:
        for number in range(records):
            producer.send(TOPIC, b"%d" % number, partition=0)
        producer.flush(30)


def test_a_watch_follows_a_migration_and_a_dead_origin(start_cluster: StartCluster) -> None:
    origin, target = start_cluster(1), start_cluster(1)
    for cluster in (origin, target):
        create_topic(cluster, TOPIC, {0: [1]})
    write(origin, 100)
    with admin_of(target) as admin:
        create_migrations_topic(admin, 1)
    config = write_config(target)
    with config.open("a", encoding="utf-8") as file:
        file.write(f'\n[migration.origin]\nname = "old"\nbootstrap_servers = "{origin.bootstrap_servers}"\n')
    store = load_settings(str(config)).store
    planned = PartitionAgreement(
        "move", 1, cluster_id(origin), cluster_id(target), TOPIC, 0, end_offset=END, routers=("writer",)
    )

    def newest(table: Table, condition: str) -> dict[str, Any] | None:
        sql = f"SELECT * FROM data WHERE topic = '{TOPIC}' AND {condition} ORDER BY tick_ms DESC LIMIT 1"
        rows = query(store.path, table.path, sql) or []
        return rows[0] if rows else None

    with ExitStack() as stack:
        writer = stack.enter_context(agreement_writer(target.bootstrap_servers, "move"))
        writer.write([planned])
        watch = stack.enter_context(WatchProcess(config, target.folder / "watch.log"))
        is_read = f"left_offsets = {END - 100}"
        first = watch.wait(lambda: newest(MIGRATION_PROGRESS, is_read), PATIENCE_S, "progress", TABLE_POLL_S)
        assert (first["status"], first["end_offset"], first["missing_routers"]) == ("planned", END, ["writer"])
        writer.write([replace(planned, status="migrating", target_base_offset=0)])

        def is_reported() -> bool:
            # Somebody who does not know of the migration writes on, beyond the end offset.
            write(origin, 50)
            return AlertKind.MIGRATION_UNROUTED_WRITES in {line.fields.get("kind") for line in watch.lines}

        watch.wait(is_reported, PATIENCE_S, "an alert on records beyond the end offset", TABLE_POLL_S)

        def bytes_per_s() -> dict[str, Any] | None:
            write(origin, 50)
            return newest(MIGRATION_PROGRESS, "write_bytes_per_s > 0")

        watch.wait(bytes_per_s, PATIENCE_S, "the clients' write rate in bytes", TABLE_POLL_S)
        # The history begins to be written later.
        is_sized = "side = 'origin' AND size_bytes IS NOT NULL"
        sized = watch.wait(lambda: newest(MIGRATION_OFFSETS, is_sized), PATIENCE_S, "sizes", TABLE_POLL_S)
        # A record has some bytes of its own, and its batch has more.
        assert sized["size_bytes"] > sized["log_end_offset"]
        # The command reads and judges as the watch does.
        (shown,) = printed_with(config, "status")["partitions"]
        assert (shown["status"], shown["beyond_offsets"] > 0, shown["origin_up"]) == ("migrating", True, True)
        assert shown["write_bytes_per_s"] is not None
        origin.stop()
        # Before the first reading the origin was unknown too.
        of_origin = f"side = 'origin' AND log_end_offset IS NULL AND tick_ms > {sized['tick_ms']}"
        gone = watch.wait(lambda: newest(MIGRATION_OFFSETS, of_origin), PATIENCE_S, "a gap", TABLE_POLL_S)
        assert gone["error"]
        on_target = newest(MIGRATION_OFFSETS, f"side = 'target' AND tick_ms = {gone['tick_ms']}")
        assert on_target is not None
        assert on_target["log_end_offset"] == 0
        watch.wait(lambda: newest(MIGRATION_PROGRESS, "verdict = 'no_data'"), PATIENCE_S, "no data", TABLE_POLL_S)
