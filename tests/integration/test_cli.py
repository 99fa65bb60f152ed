from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner
from kafka import KafkaAdminClient
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType

from headroom.cli.config.load import load_settings
from headroom.cli.main import headroom
from headroom.cluster.embedded import BrokerOptions, EmbeddedCluster, write_config
from headroom.cluster.throttles.replica_lists import apply_lists
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
    cluster = start_cluster(1, BrokerOptions(AUTHORIZER))
    _deny(cluster, ACLOperation.DESCRIBE_CONFIGS, ResourcePattern(ResourceType.CLUSTER, "kafka-cluster"))
    code, checks = _run(cluster, "check")
    assert code == 1
    answers = _answers(checks)
    assert answers["Cluster: see reassignments"] == "ok"
    assert answers["Cluster: read throttle rates"] == "no"
    assert answers["Broker 1: throttle rates"] == "no"
    assert answers["Broker 1: JMX"] == "ok"


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
