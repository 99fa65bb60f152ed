"""Checks of the watched cluster and of the ticks topic: connection and permissions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import AuthorizationError, KafkaError

from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.connection.refusal import NO_ANSWER, no_answer
from headroom.operations.check.result import Check, CheckStatus, failure, ok, unknown
from headroom.schemas.config import KafkaSettings, Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text.names import broker_names


def cluster_checks(settings: Settings) -> list[Check]:
    """Return whether the watched cluster answers, and which permissions this user has there.

    Raises:
        HeadroomError: no broker could be reached, or a broker did not answer.
    """
    return _with_client(settings.cluster, lambda client: _cluster(settings, client))


def ticks_checks(settings: Settings) -> list[Check]:
    """Return whether the ticks topic exists or may be created, and whether this user may write and read it now.

    Raises:
        HeadroomError: no broker of the topic's cluster could be reached.
    """
    kafka = settings.ticks_cluster()
    return _with_client(kafka, lambda client: _ticks(settings.ticks.topic, client))


def rights(name: str, resource: str, granted: Iterable[str] | None, needed: dict[str, str]) -> list[Check]:
    """Return one check per operation that is needed on a resource.

    Args:
        name: prefix of the checks' names.
        resource: resource on which an administrator grants the operation, as text.
        granted: operations that the broker reports as authorized; None if it reports none.
        needed: operation -> purpose.
    """
    checks = []
    for operation, purpose in needed.items():
        title = f"{name}: {purpose}"
        remedy = f"Grant {operation} on {resource} to this user."
        if granted is None:
            checks.append(unknown(title, "the broker does not report permissions", f"If it fails: {remedy}"))
        elif operation in granted:
            checks.append(ok(title, f"{operation} is granted"))
        else:
            checks.append(failure(title, f"{operation} is not granted", remedy))
    return checks


def may_alter(granted: Iterable[str] | None) -> Check:
    """Return whether this user may change throttle rates; ok if not, because only ``headroom throttle`` needs it."""
    name = "Cluster: change throttle rates"
    if granted is not None and "ALTER_CONFIGS" not in granted:
        finding = "not granted, and not needed: Headroom only recommends"
        return Check(
            name, CheckStatus.OK, finding, "For `headroom throttle`: grant ALTER_CONFIGS on the cluster to this user."
        )
    return rights("Cluster", "the cluster", granted, {"ALTER_CONFIGS": "change throttle rates"})[0]


def _with_client(kafka: KafkaSettings, checks: Callable[[KafkaAdminClient], list[Check]]) -> list[Check]:
    connection = AdminConnection(kafka)
    try:
        return checks(connection.client())
    except NO_ANSWER:
        refusal = no_answer(kafka.request_timeout_ms / 1000)
        raise HeadroomError("Kafka", refusal.rule, f"{refusal.remedy} The next try may reach another broker.") from None
    finally:
        connection.close()


def _cluster(settings: Settings, client: KafkaAdminClient) -> list[Check]:
    described = client.describe_cluster()
    ids = sorted(b["broker_id"] for b in described["brokers"] if not b.get("is_fenced"))
    protocol = settings.cluster.security_protocol.value
    reached = f"{settings.cluster.bootstrap_servers} by {protocol}: brokers {', '.join(map(str, ids))}"
    needed = {"DESCRIBE": "see reassignments", "DESCRIBE_CONFIGS": "read throttle rates"}
    granted = described.get("authorized_operations")
    return [
        ok("Kafka", reached),
        *rights("Cluster", "the cluster", granted, needed),
        may_alter(granted),
        _reassignments(client),
        *_topics(settings.ticks.topic, client),
    ]


def _reassignments(client: KafkaAdminClient) -> Check:
    try:
        reassignments = client.list_partition_reassignments()
    except AuthorizationError:
        return failure("Reassignments", "not authorized", "Grant DESCRIBE on the cluster to this user.")
    except KafkaError as error:
        return failure("Reassignments", f"{type(error).__name__}: {error}", "See the controller's log.")
    return ok("Reassignments", f"{len(reassignments)} partitions are moving")


def _topics(ticks_topic: str, client: KafkaAdminClient) -> list[Check]:
    topics = [topic for topic in client.describe_topics() if topic["name"] != ticks_topic]
    if not topics:
        remedy = "If the cluster has topics, grant DESCRIBE and DESCRIBE_CONFIGS on all topics to this user."
        return [unknown("Topics", "none is shown: there are none, or they are hidden from this user", remedy)]
    hidden = [t["name"] for t in topics if "DESCRIBE_CONFIGS" not in (t.get("authorized_operations") or [])]
    if hidden:
        shown = ", ".join(hidden[:3]) + (" ..." if len(hidden) > 3 else "")
        remedy = "Grant DESCRIBE_CONFIGS on all topics to this user: throttled replica lists stand there."
        return [failure("Topics", f"configuration of {len(hidden)} of {len(topics)} is hidden: {shown}", remedy)]
    return [ok("Topics", f"{len(topics)} shown, with their configuration")]


def ticks_in_sync(topic: str, partitions: Sequence[Mapping[str, Any]], min_in_sync: int | None) -> Check:
    """Return whether enough replicas of the ticks topic are in sync for a tick to be written.

    Args:
        topic: name of the topic.
        partitions: its partitions, as kafka-python describes them.
        min_in_sync: min.insync.replicas of the topic; None if this user may not read it.
    """
    name, needed = "Ticks topic: replicas in sync", min_in_sync or 1
    short = [p for p in partitions if p["leader_id"] < 0 or len(p["isr_nodes"]) < needed]
    if not short:
        least = min((len(p["isr_nodes"]) for p in partitions), default=0)
        return ok(name, f"{least} or more in each partition, {needed} needed")
    first = short[0]
    away = sorted({b for p in short for b in p["replica_nodes"] if b not in p["isr_nodes"]} or first["replica_nodes"])
    finding = (
        f"no tick can be written: {len(short)} of {len(partitions)} partitions have fewer than {needed}, such as "
        f"{topic}-{first['partition_index']} with {len(first['isr_nodes'])}"
    )
    return failure(name, finding, f"Bring {broker_names(away)} back, or set a lower min.insync.replicas until then.")


def _min_in_sync(topic: str, client: KafkaAdminClient) -> int | None:
    try:
        configs = client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])["topic"][topic]
        return int(configs["min.insync.replicas"]["value"])
    # On a cluster of its own the topic needs no DESCRIBE_CONFIGS.
    except (KafkaError, KeyError, TypeError, ValueError):
        return None


def _ticks(name: str, client: KafkaAdminClient) -> list[Check]:
    topic: dict[str, Any] = client.describe_topics([name])[0]
    if topic["error_code"] == 0:
        check = ok("Ticks topic", f"{name} has {len(topic['partitions'])} partitions")
        in_sync = ticks_in_sync(name, topic["partitions"], _min_in_sync(name, client))
        needed = {"WRITE": "send ticks", "READ": "read ticks"}
        return [check, in_sync, *rights("Ticks topic", f"topic {name}", topic.get("authorized_operations"), needed)]
    granted = client.describe_cluster().get("authorized_operations")
    absent = f"{name} is not there (or hidden)"
    if granted is None:
        return [unknown("Ticks topic", absent, f"Grant CREATE on topic {name} to this user, or create it.")]
    if "CREATE" in granted:
        return [ok("Ticks topic", f"{absent}; `headroom watch` will make it")]
    # CREATE may be granted on the topic alone, but a broker reports that only for topics that exist.
    return [
        unknown("Ticks topic", f"{absent}; CREATE is not granted on the cluster", f"Create {name}, or grant CREATE.")
    ]
