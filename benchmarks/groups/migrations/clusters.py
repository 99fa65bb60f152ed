"""Two clusters of three brokers, topics on both, and commands on them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaError

from benchmarks.fixtures.bench_cluster import BenchCluster, await_true, failure
from benchmarks.fixtures.migrations.brokers import BROKERS, OPTIONS
from benchmarks.fixtures.migrations.clients import agreement_reader, end_offsets
from benchmarks.fixtures.preferred_leaders import PREFERRED
from headroom.cli.common.child_process import headroom_command
from headroom.routing.agreement import create_migrations_topic
from headroom.schemas.migrations import PartitionAgreement

_NO_LEADER = -1
_READ_S, _TOPIC_S, _SWITCH_S, _STATUS_S = 60.0, 60.0, 180.0, 120.0


@dataclass(frozen=True)
class TwoClusters:
    """Two clusters of three brokers.

    Attributes:
        origin: the origin.
        target: the target, with an agreement topic.
        folder: folder for files of benchmarks.
        config: settings file of ``headroom migration``.
    """

    origin: BenchCluster
    target: BenchCluster
    folder: Path
    config: Path
    servers: tuple[str, str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "servers", (self.origin.bootstrap_servers, self.target.bootstrap_servers))

    def create(self, topic: str, replicas: Mapping[int, list[int]], min_insync_replicas: int) -> None:
        """Create a topic on both clusters, with these replicas of each partition, and wait for its leaders.

        Raises:
            HeadroomError: a partition had no leader in time.
        """
        for cluster in (self.origin, self.target):
            _create(cluster, topic, replicas, {"min.insync.replicas": str(min_insync_replicas)})

    def agreements(self, topic: str) -> dict[int, PartitionAgreement]:
        """Return what is agreed about each partition of a topic.

        Raises:
            HeadroomError: the agreement topic cannot be read.
        """
        with closing(agreement_reader(self.servers[1])) as reader:
            reader.read_to_end(_READ_S)
            return {name.partition: one for (_, name), one in reader.agreements.items() if name.topic == topic}

    def has_noted_leaders(self, router: str) -> bool:
        """Return whether a router has reported what leaders before the present ones had acknowledged.

        Raises:
            HeadroomError: the agreement topic cannot be read.
        """
        with closing(agreement_reader(self.servers[1])) as reader:
            reader.read_to_end(_READ_S)
            return router in reader.reports and bool(reader.reports[router].acknowledged)

    def client_ends(self, topic: str) -> dict[int, int]:
        """Return the client offset of the end of each partition of a migrated topic.

        Raises:
            HeadroomError: a partition is not migrated.
        """
        agreed, ends = self.agreements(topic), end_offsets(self.servers[1], topic)
        for one in agreed.values():
            if one.status != "migrated" or one.end_offset is None or one.target_base_offset is None:
                raise failure(f"{one.name} is {one.status}, not migrated")
        return {
            number: (agreed[number].end_offset or 0) + end - (agreed[number].target_base_offset or 0)
            for number, end in ends.items()
        }

    def run_command(self, topics: list[str], name: str, routers: list[str], *words: str) -> list[str]:
        """Return the command line of ``headroom migration run ... --execute`` of a routed migration."""
        named = [word for router in routers for word in ("--router", router)]
        given = ["--name", name, "--method", "routed", *named, *words, "--execute", "--config", str(self.config)]
        return headroom_command("migration", "run", *topics, *given)

    def status(self, name: str) -> dict[str, dict[str, Any]]:
        """Return what ``headroom migration status`` shows of each partition of a migration, by topic.

        Raises:
            HeadroomError: the command failed.
        """
        words = ("migration", "status", "--name", name, "--format", "json", "--config", str(self.config))
        ran = subprocess.run(headroom_command(*words), capture_output=True, text=True, timeout=_STATUS_S, check=False)
        try:
            return {one["topic"]: one for one in json.loads(ran.stdout)["partitions"]}
        except (json.JSONDecodeError, KeyError):
            raise failure(f"the status of {name} could not be read: {ran.stdout}{ran.stderr}") from None


def _create(cluster: BenchCluster, topic: str, replicas: Mapping[int, list[int]], settings: Mapping[str, str]) -> None:
    new = NewTopic(
        topic, -1, -1, replica_assignments={p: list(r) for p, r in replicas.items()}, topic_configs=dict(settings)
    )
    cluster.retry(lambda: cluster.admin.create_topics([new]))
    await_true(lambda: len(leaders(cluster, topic)) == len(replicas), _TOPIC_S, f"leaders of {topic}")


def leaders(cluster: BenchCluster, topic: str) -> dict[int, int]:
    """Return the leader of each partition of a topic that has one; none if the cluster does not answer."""
    with suppress(KafkaError):
        partitions = cluster.admin.describe_topics([topic])[0]["partitions"]
        return {one["partition_index"]: one["leader_id"] for one in partitions if one["leader_id"] >= 0}
    return {}


def switch_leader(cluster: BenchCluster, topic: str, partition: int) -> int:
    """Give a partition another leader, by an election after its replicas have got another order.

    Returns:
        The broker that leads it then.

    Raises:
        HeadroomError: it kept its leader, also after broker failures had passed.
    """
    name = TopicPartition(topic, partition)
    seen: list[int] = []
    with closing(cluster.connect()) as admin:

        def is_switched() -> bool:
            with suppress(KafkaError):
                found = _described(admin, name)
                leader = found["leader_id"]
                # While there is none, the one before may come back.
                if leader == _NO_LEADER:
                    return False
                seen.append(leader)
                others = [broker for broker in found["isr_nodes"] if broker != leader]
                if leader == seen[0] and others:
                    order = sorted(found["replica_nodes"], key=lambda broker: broker != others[0])
                    admin.alter_partition_reassignments({name: order})
                    admin.elect_leaders(PREFERRED, {topic: [partition]}, raise_errors=False)
            return bool(seen) and seen[-1] != seen[0]

        await_true(is_switched, _SWITCH_S, f"another leader of {topic}-{partition}")
    return seen[-1]


def _described(admin: KafkaAdminClient, name: TopicPartition) -> Mapping[str, Any]:
    partitions = admin.describe_topics([name.topic])[0]["partitions"]
    return next(one for one in partitions if one["partition_index"] == name.partition)


@contextmanager
def two_clusters(prepare_s: float) -> Iterator[TwoClusters]:
    """Yield two clusters whose migrations agree on end offsets that are some seconds ahead.

    Raises:
        HeadroomError: a broker could not be started.
    """
    with ExitStack() as stack:
        origin, target = (stack.enter_context(BenchCluster(BROKERS, OPTIONS)) for _ in range(2))
        create_migrations_topic(target.admin, BROKERS)
        target.add_section("migration.origin", {"name": "old", "bootstrap_servers": origin.bootstrap_servers})
        target.add_section("migration", {"prepare": prepare_s, "quiet_s": 3})
        folder = target.folder / "migrations"
        folder.mkdir()
        yield TwoClusters(origin, target, folder, target.config)
