"""A migration on two real clusters: routed clients pass it while its run is killed with -9, again and again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from benchmarks.fixtures.migrations.clients import routed_consumer, routed_producer
from headroom.cluster.embedded import EmbeddedCluster
from headroom.routing.agreement import create_migrations_topic
from headroom.schemas.keys import TopicPartition as Name
from headroom.schemas.migrations import MIGRATIONS_TOPIC, PartitionAgreement
from tests.integration.support import admin_of, create_topic, wait_until
from tests.support.migrations import agreement_reader_of, printed_with
from tests.support.paths import REPOSITORY

TOPIC, PARTITIONS = "orders", 2
# How often a run is killed, and how long it may live before, seconds.
KILLS, LIVES_S = 8, (1.0, 6.0)
ROUTED = ("--name", "move", "--method", "routed", "--router", "writer", "--router", "reader")

pytestmark = pytest.mark.random_order(disabled=True)


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EmbeddedCluster, EmbeddedCluster]]:
    folder = tmp_path_factory.mktemp("migration-run")
    origin, target = (EmbeddedCluster(folder / name, 1) for name in ("old", "new"))
    try:
        origin.start()
        target.start()
        for topic in (TOPIC, "payments", "events", "moved", "stopped"):
            create_topic(origin, topic, {partition: [1] for partition in range(PARTITIONS)})
        yield origin, target
    finally:
        origin.stop()
        target.stop()


@pytest.fixture(scope="module")
def config(clusters: tuple[EmbeddedCluster, EmbeddedCluster], tmp_path_factory: pytest.TempPathFactory) -> Path:
    origin, target = clusters
    folder = tmp_path_factory.mktemp("migration-run-settings")
    file = folder / "headroom.toml"
    file.write_text(
        f'[cluster]\nname = "new"\nbootstrap_servers = "{target.bootstrap_servers}"\n'
        f'[migration.origin]\nname = "old"\nbootstrap_servers = "{origin.bootstrap_servers}"\n'
        f'[migration]\nprepare = "5s"\nquiet_s = 3\n[collect]\nmeasure_s = 1\n[store]\npath = "{folder / "store"}"\n',
        encoding="utf-8",
    )
    return file


def begun(config: Path, *words: str) -> subprocess.Popen[str]:
    """Return a process of ``headroom migration run ... --execute``."""
    command = [
        sys.executable,
        "-m",
        "headroom.cli.main",
        "migration",
        "run",
        *words,
        "--execute",
        "--config",
        str(config),
    ]
    return subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def agreed(target: EmbeddedCluster, topic: str) -> dict[Name, PartitionAgreement]:
    """Return what is agreed about a topic; nothing before there is a topic for it."""
    with admin_of(target) as admin:
        if MIGRATIONS_TOPIC not in admin.list_topics():
            return {}
    reader = agreement_reader_of(target)
    try:
        reader.read_to_end(30)
        return {name: one for (_, name), one in reader.agreements.items() if name.topic == topic}
    finally:
        reader.close()


class Clients:
    """A routed producer that writes 200 numbers a second, and a routed consumer; they begin once a topic is there."""

    def __init__(self, origin: EmbeddedCluster, target: EmbeddedCluster, topic: str = TOPIC, end: str = "") -> None:
        self._clusters = (origin, target)
        self._topic, self._end = topic, end
        self.stop = threading.Event()
        self.paused = threading.Event()
        self.sent: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self.read: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self.errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._guarded, args=(of,)) for of in (self._write, self._poll)]

    def __enter__(self) -> Clients:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        for thread in self._threads:
            thread.join(60)

    def _guarded(self, work: Any) -> None:
        try:
            work()
        except BaseException as error:
            self.errors.append(error)

    def _write(self) -> None:
        origin, target = self._clusters
        servers = origin.bootstrap_servers, target.bootstrap_servers
        with routed_producer(*servers, f"writer{self._end}", linger_ms=5) as producer:
            number, waiting = 0, []
            while not self.stop.wait(0.05):
                for _ in range(0 if self.paused.is_set() else 10):
                    partition = number % PARTITIONS
                    waiting.append((partition, number, producer.send(self._topic, b"%d" % number, partition=partition)))
                    number += 1
            producer.flush(60)
            for partition, value, future in waiting:
                future.get(30)
                self.sent[partition].append(value)

    def _poll(self) -> None:
        origin, target = self._clusters
        reports = KafkaProducer(bootstrap_servers=target.bootstrap_servers)
        servers = origin.bootstrap_servers, target.bootstrap_servers
        names = f"readers{self._end}", f"reader{self._end}"
        with closing(reports), routed_consumer(*servers, *names, reports) as consumer:
            consumer.subscribe([self._topic])
            quiet = 0
            while quiet < 30:
                found = consumer.poll(timeout_ms=200)
                quiet = 0 if found or not self.stop.is_set() else quiet + 1
                for partition, records in found.items():
                    self.read[partition.partition] += [int(record.value) for record in records]
            consumer.commit()


@contextmanager
def with_agreement_topic(config: Path, target: EmbeddedCluster) -> Iterator[None]:
    """Let a run create the topics, which have to be there before the clients are."""
    run = begun(config, TOPIC, *ROUTED)
    try:
        wait_until(lambda: agreed(target, TOPIC), 120, "the agreement", lambda: run.poll())
    finally:
        os.kill(run.pid, signal.SIGKILL)
        run.communicate()
    yield


def test_routed_clients_pass_a_migration_whose_run_is_killed_again_and_again(
    config: Path, clusters: tuple[EmbeddedCluster, EmbeddedCluster]
) -> None:
    origin, target = clusters
    chance = random.Random(41)
    with with_agreement_topic(config, target), Clients(origin, target) as clients:
        fixed: dict[Name, PartitionAgreement] = {}
        for _ in range(KILLS):
            run = begun(config, TOPIC, *ROUTED)
            try:
                run.wait(chance.uniform(*LIVES_S))
            except subprocess.TimeoutExpired:
                os.kill(run.pid, signal.SIGKILL)
            run.communicate()
            # What is in use never changes its end.
            now = agreed(target, TOPIC)
            for name, one in fixed.items():
                assert (now[name].end_offset, now[name].target_base_offset) == (one.end_offset, one.target_base_offset)
            fixed = {name: one for name, one in now.items() if one.status != "planned"}
        run = begun(config, TOPIC, *ROUTED)
        output = run.communicate(timeout=240)[0]
        assert run.returncode == 0, output
        assert {one.status for one in agreed(target, TOPIC).values()} == {"migrated"}
        status = printed_with(config, "status", TOPIC)
        assert {partition["status"] for partition in status["partitions"]} == {"migrated"}
        assert {router["router"]: router["missing"] for router in status["routers"]} == {
            "writer": False,
            "reader": False,
        }
        # Some records on the target, too.
        with closing(KafkaConsumer(bootstrap_servers=target.bootstrap_servers, group_id=None)) as consumer:
            names = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
            wait_until(lambda: min(consumer.end_offsets(names).values()) > 100, 60, "records on the target")
    assert clients.errors == []
    assert all(clients.sent)
    assert clients.read == clients.sent


def test_producers_that_stop_below_the_end_get_a_nearer_one_while_its_run_is_killed_again_and_again(
    config: Path, clusters: tuple[EmbeddedCluster, EmbeddedCluster]
) -> None:
    """E is ten minutes ahead. They stop, write again while the nearer end is agreed, and stop again."""
    origin, target = clusters
    chance = random.Random(5)
    far = config.with_name("far.toml")
    far.write_text(config.read_text(encoding="utf-8").replace('prepare = "5s"', 'prepare = "10m"'), encoding="utf-8")
    create_topic(target, "stopped", {partition: [1] for partition in range(PARTITIONS)})
    with admin_of(target) as admin:
        create_migrations_topic(admin, 1)
    words = ("stopped", "--name", "far", "--method", "routed")
    routers = ("--router", "writer-2", "--router", "reader-2")
    with Clients(origin, target, "stopped", "-2") as clients:
        wait_until(lambda: len(clients.read[0]) > 100, 120, "records that are read", lambda: clients.errors)
        started = begun(far, *words, *routers, "--until", "started")
        output = started.communicate(timeout=240)[0]
        assert started.returncode == 0, output
        ends = {name: one.end_offset or 0 for name, one in agreed(target, "stopped").items()}
        clients.paused.set()
        opened = 0
        for number in range(KILLS):
            run = begun(config, *words, "--end-here")
            try:
                run.wait(chance.uniform(3.0, 9.0))
            except subprocess.TimeoutExpired:
                os.kill(run.pid, signal.SIGKILL)
            run.communicate()
            opened += any(one.reopened_end is not None for one in agreed(target, "stopped").values())
            # Every other time they write for a while.
            (clients.paused.clear if number % 2 else clients.paused.set)()
        clients.paused.set()
        last = begun(config, *words, "--end-here")
        output = last.communicate(timeout=240)[0]
        assert last.returncode == 0, output
        found = agreed(target, "stopped")
        assert {one.status for one in found.values()} == {"migrated"}
        assert all((one.end_offset or 0) < ends[name] for name, one in found.items()), (found, opened)
        clients.paused.clear()
        with closing(KafkaConsumer(bootstrap_servers=target.bootstrap_servers, group_id=None)) as consumer:
            names = [TopicPartition("stopped", partition) for partition in range(PARTITIONS)]
            wait_until(lambda: min(consumer.end_offsets(names).values()) > 100, 60, "records on the target")
    assert clients.errors == []
    assert all(clients.sent)
    assert clients.read == clients.sent


def test_a_second_run_ends_the_first(config: Path, clusters: tuple[EmbeddedCluster, EmbeddedCluster]) -> None:
    words = ("payments", "--name", "second", "--method", "routed", "--router", "writer-of-payments")
    first = begun(config, *words)
    wait_until(lambda: agreed(clusters[1], "payments"), 120, "the agreement of the first", lambda: first.poll())
    # Nothing is written to payments, so that both wait for routers. The first would agree on its own again.
    second = begun(config, *words, "--router", "another")
    try:
        assert "another writer of this migration has taken over" in first.communicate(timeout=120)[0]
        assert first.returncode == 1
        assert {one.routers for one in agreed(clusters[1], "payments").values()} == {("writer-of-payments", "another")}
        assert second.poll() is None
    finally:
        for process in (first, second):
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                process.communicate()
    shielded = printed_with(config, "shield", "--name", "second", "--execute")
    assert len(shielded["changed"]) == PARTITIONS
    assert {one["verdict"] for one in printed_with(config, "status", "payments")["partitions"]} == {"shielded"}
    printed_with(config, "shield", "--name", "second", "--off", "--execute")
    assert len(printed_with(config, "cancel", "--name", "second", "--execute")["changed"]) == PARTITIONS
    assert agreed(clusters[1], "payments") == {}


def test_a_drained_topic_is_migrated_aged_and_deleted(
    config: Path, clusters: tuple[EmbeddedCluster, EmbeddedCluster]
) -> None:
    origin, target = clusters
    with closing(KafkaProducer(bootstrap_servers=origin.bootstrap_servers)) as producer:
        for number in range(100):
            producer.send("events", b"%d" % number, partition=number % PARTITIONS)
        producer.flush()
    words = ("events", "--name", "events", "--method", "drained")
    ran = printed_with(config, "run", *words, "--execute")
    assert {one["end_offset"] for one in ran["partitions"]} == {50}
    refused = printed_with(config, "cancel", "--name", "events", "--execute", code=1)
    assert len(refused["refused"]) == PARTITIONS
    with closing(KafkaAdminClient(bootstrap_servers=origin.bootstrap_servers)) as admin:
        names = [TopicPartition("events", partition) for partition in range(PARTITIONS)]
        # As retention does.
        admin.delete_records(dict.fromkeys(names, 50))
    dropped = printed_with(config, "run", *words, "--until", "aged", "--drop", "--execute")
    assert ({one["status"] for one in dropped["partitions"]}, dropped["dropped"]) == ({"aged"}, ["events"])
    with admin_of(origin) as admin:
        wait_until(lambda: "events" not in admin.list_topics(), 60, "the deletion of events")
    with admin_of(target) as admin:
        assert "events" in admin.list_topics()
    # And again: nothing is left to do.
    assert printed_with(config, "run", *words, "--until", "aged", "--drop", "--execute")["dropped"] == []


def test_a_recreated_topic_ends_the_run(config: Path, clusters: tuple[EmbeddedCluster, EmbeddedCluster]) -> None:
    origin, _ = clusters
    words = ("run", "moved", "--name", "moved", "--method", "drained")
    printed_with(config, *words, "--until", "started", "--execute")
    with admin_of(origin) as admin:
        admin.delete_topics(["moved"])
        wait_until(lambda: "moved" not in admin.list_topics(), 60, "the deletion of moved")
    create_topic(origin, "moved", {partition: [1] for partition in range(PARTITIONS)})
    ran = printed_with(config, *words, "--until", "aged", "--execute", code=1)
    assert "was recreated on the cluster old" in ran["failed"]["rule"]
