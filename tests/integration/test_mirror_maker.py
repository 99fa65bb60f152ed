"""A topic that a real MirrorMaker 2 copies: a group's offsets on the target, and the comparison of both topics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from click.testing import CliRunner, Result
from kafka import KafkaProducer, TopicPartition
from kafka.errors import KafkaError, NoError
from kafka.structs import OffsetAndMetadata

from benchmarks.groups.mirror.mirror_maker import MirroredCluster, MirrorMaker
from headroom.cli.config.load import load_settings
from headroom.cli.main import headroom
from headroom.cluster.collector.clock import Clock
from headroom.cluster.collector.migration.sync_follower import SyncFollower
from headroom.cluster.embedded import EmbeddedCluster
from headroom.cluster.migration.migration_cluster import MigrationCluster
from headroom.planning.migration.mirrors.close_syncs import CLOSE_OFFSETS
from headroom.planning.migration.mirrors.sync_record import APART_MS
from headroom.planning.migration.mirrors.sync_trail import SyncTrails
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition as Name
from headroom.streaming.clock import now_ms
from tests.integration.support import admin_of, create_topic, wait_until

RECORDS = 300
READ = {0: 250, 1: RECORDS}


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[tuple[EmbeddedCluster, EmbeddedCluster]]:
    """The origin and the target, of one broker each, with a MirrorMaker that copies the topic."""
    origin, target = (EmbeddedCluster(tmp_path / name, 1) for name in ("old", "new"))
    try:
        origin.start()
        target.start()
        create_topic(origin, "orders", {0: [1], 1: [1]})
        write(origin, "orders", RECORDS)
        known = [
            MirroredCluster(alias, cluster.bootstrap_servers) for alias, cluster in (("old", origin), ("new", target))
        ]
        with MirrorMaker(tmp_path, known[0], known[1], "orders"):
            yield origin, target
    finally:
        origin.stop()
        target.stop()


@pytest.fixture
def config(clusters: tuple[EmbeddedCluster, EmbeddedCluster], tmp_path: Path) -> Path:
    origin, target = clusters
    file = tmp_path / "headroom.toml"
    file.write_text(
        f'[cluster]\nname = "new"\nbootstrap_servers = "{target.bootstrap_servers}"\n'
        f'[migration.origin]\nname = "old"\nbootstrap_servers = "{origin.bootstrap_servers}"\n'
        f'[store]\npath = "{tmp_path / "store"}"\n',
        encoding="utf-8",
    )
    return file


def write(cluster: EmbeddedCluster, topic: str, records: int) -> None:
    """Write this many records to each of two partitions."""
    with closing(KafkaProducer(bootstrap_servers=cluster.bootstrap_servers)) as producer:
        for number in range(records):
            for partition in (0, 1):
                producer.send(topic, b"value %d" % number, key=b"key %d" % (number % 7), partition=partition)
        producer.flush()


def commit(cluster: EmbeddedCluster) -> bool:
    """Return whether the offsets of the group were committed; a new cluster first creates the topic for them."""
    values = {TopicPartition("orders", p): OffsetAndMetadata(offset, "", None) for p, offset in READ.items()}
    with suppress(KafkaError), admin_of(cluster) as admin:
        return set(admin.alter_group_offsets("billing", values).values()) == {NoError}
    return False


def run(config: Path, *words: str) -> Result:
    return CliRunner().invoke(headroom, ["migration", *words, "--config", str(config), "--format", "json"])


def total(result: Result) -> dict[str, Any]:
    counts: dict[str, Any] = json.loads(result.stdout)["total"]
    return counts


def test_a_group_moves_to_a_mirror_and_a_record_that_only_the_target_has_is_found(
    config: Path, clusters: tuple[EmbeddedCluster, EmbeddedCluster]
) -> None:
    origin, target = clusters
    wait_until(lambda: commit(origin), 60, "the offsets of billing")

    def is_mirrored() -> Result | None:
        found = run(config, "verify", "orders")
        return found if found.exit_code == 0 and not total(found)["pending"] else None

    verified = wait_until(is_mirrored, 120, "all records are on the target", lambda: run(config, "verify", "orders"))
    assert total(verified)["mirrored"] == 2 * RECORDS

    translated = run(config, "translate", "--group", "billing", "orders")
    assert translated.exit_code == 0, (translated.output, translated.exception)
    for partition, read in zip(json.loads(translated.stdout)["partitions"], READ.values(), strict=True):
        assert read - partition["may_repeat"] == partition["target_offset"] <= read

    done = run(config, "offsets", "--group", "billing", "--exact", "--execute")
    assert done.exit_code == 0, (done.output, done.exception)
    with admin_of(target) as admin:
        committed = admin.list_group_offsets({"billing": None})["billing"]
    assert {name.partition: found.offset for name, found in committed.items() if name.topic == "old.orders"} == READ

    with closing(KafkaProducer(bootstrap_servers=target.bootstrap_servers)) as producer:
        producer.send("old.orders", b"of the target alone", partition=1)
        producer.flush()
    different = run(config, "verify", "orders")
    assert (different.exit_code, total(different)["foreign"]) == (1, 1)


def test_of_the_syncs_of_a_real_mirror_those_that_a_group_needs_are_kept_close_together(
    config: Path, clusters: tuple[EmbeddedCluster, EmbeddedCluster]
) -> None:
    """Records come 25 at a time, so that MirrorMaker keeps up, and billing has stopped at 250."""
    origin, _ = clusters
    settings = load_settings(str(config))
    both = (settings.migration.origin, settings.cluster)
    follower = SyncFollower(*(partial(MigrationCluster, one, one.name) for one in both), Clock())
    name, trails, written = Name("orders", 0), SyncTrails(), {}

    def read_on() -> bool:
        with suppress(HeadroomError):
            reading = follower.read(frozenset({name}))
            trails.add(reading)
            written.update({sync.offset: sync.origin for sync in reading.records if sync.name == name})
        return len(written) > 0

    try:
        wait_until(read_on, 120, "the first offset sync")
        begins = RECORDS
        for _ in range(120):
            write(origin, "orders", 25)
            read_on()
        ends = begins + 120 * 25
        wait_until(lambda: read_on() and max(written.values()) > ends - 400, 120, "the last syncs", lambda: written)
    finally:
        follower.close()
    # Half a minute later, when it is decided which ones are kept; and what is kept anyway.
    later_ms = now_ms() + 2 * APART_MS
    places = [READ[0]]
    kept = [*trails.between(name, 1_000, later_ms, lambda: places), *trails.waiting(name, 1_000, later_ms)]
    at = sorted({sync.record.origin for sync in kept})
    assert all(sync.record.origin == written[sync.record.offset] for sync in kept)
    assert at[-1] - at[0] > ends - begins - 800, at
    # Where the group has yet to pass, two are farther apart only if MirrorMaker wrote none between them.
    for before, after in pairwise(offset for offset in at if offset >= READ[0] - CLOSE_OFFSETS // 2):
        between = [offset for offset in written.values() if before < offset < after]
        assert after - before <= CLOSE_OFFSETS or not between, (before, after, between)
    gaps = [after - before for before, after in pairwise(at)]
    assert median(gaps) <= CLOSE_OFFSETS, gaps
