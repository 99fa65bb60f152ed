from __future__ import annotations

import json
import time
from typing import Any

from click.testing import CliRunner
from kafka import KafkaAdminClient
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType

from headroom.cli.config.load import load_settings
from headroom.cli.main import headroom
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.embedded import BrokerOptions, EmbeddedCluster, write_config
from headroom.cluster.run_lock.group import CoordinatedGroup, LockTiming
from headroom.cluster.run_lock.holder import LockHolder
from headroom.cluster.run_lock.lock import RunLock
from headroom.cluster.throttles.replica_lists import apply_lists
from headroom.operations.check.run_lock import run_lock_checks
from headroom.planning.throttles.replica_lists import TopicLists
from tests.integration.conftest import StartCluster
from tests.integration.support import admin_of, create_topic, fill, partition, wait_until

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


def _run(cluster: EmbeddedCluster, *arguments: str) -> tuple[int, Any]:
    """Return the exit code and the JSON of a command."""
    config = str(write_config(cluster))
    result = CliRunner().invoke(headroom, [*arguments, "--config", config, "--format", "json"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return 1, result.exception
    return result.exit_code, json.loads(result.stdout)


def _answers(checks: list[dict[str, str]]) -> dict[str, str]:
    return {row["name"]: row["answer"] for row in checks}


def _deny(cluster: EmbeddedCluster, operation: ACLOperation, resource: ResourcePattern) -> None:
    """Take one right on a resource from everybody and leave the others; return when the broker knows."""

    def acl(which: ACLOperation, permission: ACLPermissionType) -> ACL:
        return ACL("User:ANONYMOUS", "*", which, permission, resource)

    with admin_of(cluster) as admin:
        admin.create_acls([acl(ACLOperation.ALL, ACLPermissionType.ALLOW), acl(operation, ACLPermissionType.DENY)])
        wait_until(lambda: operation.name not in _cluster_rights(admin), 30, f"{operation.name} denied")


def _cluster_rights(admin: KafkaAdminClient) -> list[str]:
    return list(admin.describe_cluster()["authorized_operations"])


def test_check_finds_everything_on_a_healthy_cluster(cluster: EmbeddedCluster) -> None:
    create_topic(cluster, "cli-check", {0: [1, 2, 3], 1: [2, 3, 4], 2: [3, 4, 1], 3: [4, 1, 2]})
    # A follower has its lag gauges once it has begun to fetch.
    checks: list[Any] = []

    def is_well() -> bool:
        code, checks[:] = _run(cluster, "check")
        return code == 0

    wait_until(is_well, 60, "a check without a no", lambda: checks)
    answers = _answers(checks)
    for broker in (1, 2, 3, 4):
        for what in ("throttle rates", "JMX", "Log MBeans", "FetcherLag MBeans"):
            assert answers[f"Broker {broker}: {what}"] == "ok"


def test_check_names_the_right_that_is_missing(start_cluster: StartCluster) -> None:
    # By default brokers wait for further members of a new group.
    cluster = start_cluster(1, BrokerOptions({**AUTHORIZER, "group.initial.rebalance.delay.ms": "3000"}))
    _deny(cluster, ACLOperation.DESCRIBE_CONFIGS, ResourcePattern(ResourceType.CLUSTER, "kafka-cluster"))
    code, checks = _run(cluster, "check")
    assert code == 1
    answers = _answers(checks)
    assert answers["Cluster: see reassignments"] == "ok"
    assert answers["Cluster: read throttle rates"] == "no"
    assert answers["Broker 1: throttle rates"] == "no"
    assert answers["Broker 1: JMX"] == "ok"
    [row] = [row for row in checks if row["name"] == "Run lock: see runs of other stores"]
    assert "not checked" in row["found"]
    _check_run_lock(cluster)


def _check_run_lock(cluster: EmbeddedCluster) -> None:
    """A user without READ on the group runs without the lock; with it, the delay of a new group costs no time."""
    _take_run_lock(cluster)
    settings = load_settings(str(write_config(cluster)), {})
    assert run_lock_checks(settings)[0].found == "READ is granted"
    began_s = time.monotonic()
    assert _take_run_lock(cluster) == []
    assert time.monotonic() - began_s < 2.0
    _deny(cluster, ACLOperation.READ, ResourcePattern(ResourceType.GROUP, "headroom-runs"))
    wait_until(lambda: "not granted" in run_lock_checks(settings)[0].found, 30, "READ denied")
    [note] = _take_run_lock(cluster)
    assert note.endswith("may not join the group headroom-runs. Grant READ on group headroom-runs to this user.")


def _take_run_lock(cluster: EmbeddedCluster) -> list[str]:
    """Take the run lock, leave it again, and return the notes."""
    settings = load_settings(str(write_config(cluster)), {})
    notes: list[str] = []
    timing = LockTiming()
    group = CoordinatedGroup(AdminConnection(settings.cluster), settings.reassign.lock_group, timing)
    lock = RunLock(group, settings.cluster.name, LockHolder("anna@here", 1), notes.append, timing)
    lock.take()
    lock.release()
    return notes


def test_a_throttle_is_seen_raised_and_cleared_around_a_real_move(cluster: EmbeddedCluster) -> None:
    topic = "cli-throttle"
    create_topic(cluster, topic, {0: [1, 2]})
    fill(cluster, topic, {0: 16_000_000})
    settings = load_settings(str(write_config(cluster)), {})
    apply_lists(settings, {topic: TopicLists("0:1,0:2", "0:3")})
    # A fetch of 1 MiB every 20 s: the move would take minutes.
    assert (
        _run(cluster, "throttle", "apply", "--rate", "50kB", "--low-rate", "--brokers", "1,2,3,4", "--execute")[0] == 0
    )
    _move(cluster, topic, [1, 2, 3])

    _, seen = _run(cluster, "throttle", "show")
    assert seen["moving"] == [{"topic": topic, "partition": 0, "adding": [3], "removing": []}]
    assert {b["leader_bytes_per_s"] for b in seen["brokers"]} == {50_000}
    code, error = _run(cluster, "throttle", "clear", "--execute")
    assert code == 1
    assert f"{topic}-0" in str(error)

    code, text = _run(cluster, "throttle", "apply", "--rate", "50MB", "--execute")
    assert code == 0
    assert [(b["broker"], b["after"]["follower_bytes_per_s"]) for b in text["brokers"]] == [
        (1, 50_000_000),
        (2, 50_000_000),
        (3, 50_000_000),
    ]
    wait_until(lambda: not _run(cluster, "throttle", "show")[1]["moving"], 60, "the end of the move")
    assert _run(cluster, "throttle", "clear", "--execute")[0] == 0

    def is_cleared() -> bool:
        _, seen = _run(cluster, "throttle", "show")
        return seen["topics"] == [] and {b["leader_bytes_per_s"] for b in seen["brokers"]} == {None}

    wait_until(is_cleared, 30, "no lists and no rates")


def _move(cluster: EmbeddedCluster, topic: str, replicas: list[int]) -> None:
    with admin_of(cluster) as admin:
        refused = admin.alter_partition_reassignments({partition(topic, 0): replicas})[partition(topic, 0)]
        assert refused is None
