"""A topic that a real MirrorMaker 2 copies: a group's offsets on the target, and the comparison of both topics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from kafka import KafkaProducer, TopicPartition
from kafka.errors import KafkaError, NoError
from kafka.structs import OffsetAndMetadata

from benchmarks.groups.mirror.mirror_maker import MirroredCluster, MirrorMaker
from headroom.cli.main import headroom
from headroom.cluster.embedded import EmbeddedCluster
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
