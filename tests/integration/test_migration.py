"""A mirrored topic on two real clusters: plan, offsets of a group by syncs and by its next record, and verification.

The mirror is made by hand, as MirrorMaker 2 makes it: it was killed after 600 records, and began again 50 before.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError, NoError
from kafka.structs import OffsetAndMetadata

from headroom.cli.config.load import load_settings
from headroom.cluster.collector.clock import Clock
from headroom.cluster.collector.migration.sync_follower import SyncFollower
from headroom.cluster.embedded import EmbeddedCluster
from headroom.cluster.java import jar_folder, java_command
from headroom.cluster.migration.migration_cluster import MigrationCluster
from headroom.planning.migration.mirrors.sync_record import SyncReading
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition as TopicName
from tests.integration.support import admin_of, completed, create_topic, wait_until
from tests.support.migrations import printed_with, run_with

TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
SYNCS = "mm2-offset-syncs.new.internal"
RECORDS, KILLED, BACK = 1_000, 600, 50
# Retention by time would delete older ones.
BEGAN_MS = time.time_ns() // 1_000_000
# Of partition 0 and 1 of the origin.
READ = {0: 700, 1: RECORDS}

# One story: a mirror, and a group that moves to it.
pytestmark = pytest.mark.random_order(disabled=True)


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EmbeddedCluster, EmbeddedCluster]]:
    """The origin and the target, of one broker each, with the mirror and the group's offsets."""
    folder = tmp_path_factory.mktemp("migration")
    origin, target = (EmbeddedCluster(folder / name, 1) for name in ("old", "new"))
    try:
        origin.start()
        target.start()
        for cluster, topic in ((origin, "orders"), (target, "old.orders")):
            create_topic(cluster, topic, {0: [1], 1: [1]})
        create_topic(origin, SYNCS, {0: [1]})
        write(origin, "orders", {0: range(RECORDS), 1: range(RECORDS)})
        mirrored = [*range(KILLED), *range(KILLED - BACK, RECORDS)]
        write(target, "old.orders", {0: mirrored, 1: range(RECORDS)})
        # By partition, and by offset on the origin and on the target.
        write_syncs(origin, [(0, 0, 0), (0, KILLED - BACK, KILLED), (1, RECORDS - 1, RECORDS - 1)])
        wait_until(lambda: commit(origin, READ), 60, "the offsets of billing")
        yield origin, target
    finally:
        origin.stop()
        target.stop()


def commit(cluster: EmbeddedCluster, offsets: dict[int, int]) -> bool:
    """Return whether the offsets of the group were committed; a new cluster first creates the topic for them."""
    values = {TopicPartition("orders", p): OffsetAndMetadata(offset, "", None) for p, offset in offsets.items()}
    with suppress(KafkaError), admin_of(cluster) as admin:
        return set(admin.alter_group_offsets("billing", values).values()) == {NoError}
    return False


def write(cluster: EmbeddedCluster, topic: str, numbers: dict[int, Any]) -> None:
    """Write the records with these numbers to partitions, with keys, headers and timestamps that follow from them."""
    with closing(KafkaProducer(bootstrap_servers=cluster.bootstrap_servers)) as producer:
        for partition, own in numbers.items():
            for number in own:
                producer.send(
                    topic,
                    b"value %d" % number,
                    key=b"key %d" % (number % 7),
                    headers=[("number", b"%d" % number)],
                    partition=partition,
                    timestamp_ms=BEGAN_MS + number // 3,
                )
        producer.flush()


def write_syncs(cluster: EmbeddedCluster, syncs: list[tuple[int, int, int]]) -> None:
    with closing(KafkaProducer(bootstrap_servers=cluster.bootstrap_servers)) as producer:
        for partition, upstream, downstream in syncs:
            key = struct.pack(">h", 6) + b"orders" + struct.pack(">i", partition)
            producer.send(SYNCS, struct.pack(">qq", upstream, downstream), key=key)
        producer.flush()


@pytest.fixture(scope="module")
def config(clusters: tuple[EmbeddedCluster, EmbeddedCluster], tmp_path_factory: pytest.TempPathFactory) -> Path:
    origin, target = clusters
    folder = tmp_path_factory.mktemp("migration-settings")
    file = folder / "headroom.toml"
    file.write_text(
        f'[cluster]\nname = "new"\nbootstrap_servers = "{target.bootstrap_servers}"\n'
        f'[migration.origin]\nname = "old"\nbootstrap_servers = "{origin.bootstrap_servers}"\n'
        f'[migration]\nquiet_s = 2\n[collect]\nmeasure_s = 1\n[store]\npath = "{folder / "store"}"\n',
        encoding="utf-8",
    )
    return file


def test_the_plan_has_logs_settings_and_groups_of_both_clusters(config: Path) -> None:
    plan = printed_with(config, "plan", "orders", "--method", "mirrored")
    first, second = plan["partitions"]
    for partition in (first, second):
        assert partition["origin"]["start"] == 0
        assert partition["origin"]["end"] == partition["origin"]["stable"] == partition["end_offset"] == RECORDS
        assert (partition["write_offsets_per_s"], partition["switch_in_s"], partition["unstable_offsets"]) == (0, 0, 0)
    assert first["origin"]["newest_ms"] == BEGAN_MS + (RECORDS - 1) // 3
    assert (first["target"]["end"], second["target"]["end"]) == (RECORDS + BACK, RECORDS)
    assert [reader["left_offsets"] for reader in first["readers"]] == [RECORDS - READ[0]]
    assert first["readers"][0]["active"] is False
    (topic,) = plan["topics"]
    assert topic["target"]["topic"] == "old.orders"
    assert topic["origin"]["settings"]["retention_ms"] == 604_800_000
    assert topic["origin"]["topic_id"] != topic["target"]["topic_id"]
    # The records are some minutes old, and kept for a week. The group has no consumers, which may read them in time.
    assert 600_000 < first["readers"][0]["retention"]["kept_s"] < 604_800
    assert not plan["forbidden"]
    drained = run_with(config, "plan", "orders")
    assert (drained.exit_code, "not there" in drained.stdout) == (0, True)


def test_offsets_by_syncs_and_by_the_next_record(config: Path) -> None:
    first, second = printed_with(config, "translate", "--group", "billing", "orders")["partitions"]
    # The sync of 550 is at 600: 551 to 699 may be read again.
    assert (first["target_offset"], first["may_repeat"]) == (KILLED + 1, READ[0] - (KILLED - BACK) - 1)
    assert (second["target_offset"], second["may_repeat"]) == (RECORDS, 0)
    first, second = printed_with(config, "translate", "--group", "billing", "orders", "--exact")["partitions"]
    assert (first["target_offset"], first["basis"]) == (READ[0] + BACK, "next")
    assert (second["target_offset"], second["basis"]) == (RECORDS, "before")


def test_kafkas_tool_reads_the_file_of_offsets(
    config: Path, clusters: tuple[EmbeddedCluster, EmbeddedCluster], tmp_path: Path
) -> None:
    file = tmp_path / "billing.csv"
    printed_with(config, "offsets", "--group", "billing", "--exact", "--csv", str(file))
    assert file.read_text() == f"old.orders,0,{READ[0] + BACK}\nold.orders,1,{RECORDS}\n"
    done = completed(
        [
            *(java_command(), "-cp", f"{jar_folder('kafka')}/*", TOOL),
            *("--bootstrap-server", clusters[1].bootstrap_servers, "--group", "billing"),
            *("--reset-offsets", "--from-file", str(file), "--dry-run"),
        ],
        60,
    )
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["billing", "old.orders", "0", str(READ[0] + BACK)] in rows, done.stdout + done.stderr
    assert ["billing", "old.orders", "1", str(RECORDS)] in rows


def test_offsets_are_set_unless_the_group_is_active_and_then_no_record_is_read_twice(
    config: Path, clusters: tuple[EmbeddedCluster, EmbeddedCluster]
) -> None:
    options = {"bootstrap_servers": clusters[1].bootstrap_servers, "group_id": "billing", "enable_auto_commit": False}
    with closing(KafkaConsumer("old.orders", **options)) as consumer:
        wait_until(lambda: consumer.poll(timeout_ms=2_000) or consumer.assignment(), 60, "the group is active")
        refused = run_with(config, "offsets", "--group", "billing", "--exact", "--execute")
        assert refused.exit_code == 1
        assert "has consumers, or may have" in str(refused.exception)
    done = wait_until(
        lambda: (
            (ran := run_with(config, "offsets", "--group", "billing", "--exact", "--execute")).exit_code == 0 and ran
        ),
        60,
        "the group has no members any more",
    )
    assert "Committed on new, and read back: 2 offsets" in done.stdout
    numbers: list[int] = []
    with closing(KafkaConsumer("old.orders", auto_offset_reset="none", **options)) as consumer:

        def has_read_all() -> bool:
            # A join whose answers come between two polls is lost: so polls are longer than one takes on a busy machine.
            for records in consumer.poll(timeout_ms=10_000).values():
                numbers.extend(int(record.headers[0][1]) for record in records)
            return len(numbers) >= RECORDS - READ[0]

        wait_until(has_read_all, 60, "the rest of the records", lambda: len(numbers))
    assert numbers == list(range(READ[0], RECORDS))


def test_the_mirror_is_compared_record_by_record(
    config: Path, clusters: tuple[EmbeddedCluster, EmbeddedCluster]
) -> None:
    found = printed_with(config, "verify", "orders", code=1)
    first, second = (partition["counts"] for partition in found["partitions"])
    nothing = dict.fromkeys(("missing", "pending", "differing", "out_of_order", "foreign", "older", "deleted"), 0)
    assert first == {**nothing, "mirrored": RECORDS, "doubled": BACK}
    assert second == {**nothing, "mirrored": RECORDS, "doubled": 0}
    # Another record, which the mirror does not have yet.
    write(clusters[0], "orders", {1: [RECORDS]})
    assert printed_with(config, "verify", "orders", code=1)["total"]["pending"] == 1


def test_one_cluster_under_both_names_is_refused(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    same = config.read_text().split("[migration.origin]")[0].split('"')[3]
    monkeypatch.setenv("HEADROOM_MIGRATION__ORIGIN__BOOTSTRAP_SERVERS", same)
    assert "leads to the same cluster as cluster.bootstrap_servers" in str(run_with(config, "plan", "orders").exception)


def test_the_collector_follows_the_syncs_also_of_a_topic_that_was_created_again(
    config: Path, clusters: tuple[EmbeddedCluster, EmbeddedCluster]
) -> None:
    origin, _ = clusters
    settings = load_settings(str(config))
    names = frozenset(TopicName("orders", partition) for partition in (0, 1))
    with closing(
        SyncFollower(
            lambda: MigrationCluster(settings.migration.origin, "old"),
            lambda: MigrationCluster(settings.cluster, "new"),
            Clock(),
        )
    ) as follower:
        first = follower.read(names)
        found = [(record.name.partition, record.origin, record.target) for record in first.records]
        assert found == [(0, 0, 0), (0, KILLED - BACK, KILLED), (1, RECORDS - 1, RECORDS - 1)]
        assert (first.is_restart, first.is_all, first.begin, first.end) == (True, True, 0, 3)
        assert first.topic_id is not None
        assert first.leader_epoch is not None
        write_syncs(origin, [(0, RECORDS - 1, RECORDS + BACK - 1)])
        second = follower.read(names)
        assert [(record.offset, record.origin) for record in second.records] == [(3, RECORDS - 1)]
        assert (second.is_restart, second.topic_id) == (False, first.topic_id)
        with admin_of(origin) as admin:
            admin.delete_topics([SYNCS])
            wait_until(lambda: SYNCS not in admin.list_topics(), 60, "the topic is gone")
        create_topic(origin, SYNCS, {0: [1]})
        write_syncs(origin, [(0, number, number) for number in range(5)])

        def again() -> SyncReading | None:
            # While its leader is elected it cannot be read.
            with suppress(HeadroomError):
                reading = follower.read(names)
                return reading if reading.records else None
            return None

        third = wait_until(again, 60, "the syncs of the new topic")
        assert third is not None
        assert [record.origin for record in third.records] == [0, 1, 2, 3, 4]
        assert (third.is_restart, third.topic_id != first.topic_id) == (True, True)
