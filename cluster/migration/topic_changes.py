"""Creation and deletion of the topics of a migration."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kafka import KafkaAdminClient
from kafka.errors import KafkaError, TopicAlreadyExistsError, UnknownTopicOrPartitionError
from kafka.protocol.admin import DescribeConfigsRequest

from headroom.cluster.admin.config_keys import CLEANUP_POLICY, MIN_INSYNC, TOPIC
from headroom.cluster.connection.failover import BrokerFailover
from headroom.schemas.errors import HeadroomError

# Settings that the topic on the target takes from that on the origin.
_COPIED = (CLEANUP_POLICY, "retention.ms", "retention.bytes", "max.message.bytes", MIN_INSYNC)


@dataclass(frozen=True)
class NewMigrationTopic:
    """A topic to be created on the target.

    Attributes:
        name: its name.
        partitions: number of its partitions.
        replicas: number of replicas of each.
        settings: its settings by Kafka's key; others are the cluster's defaults.
    """

    name: str
    partitions: int
    replicas: int
    settings: Mapping[str, str]


def read_copied_settings(brokers: BrokerFailover, topics: Collection[str]) -> dict[str, dict[str, str]]:
    """Return the settings that a topic on the target takes over; a topic that this user may not read has none.

    Args:
        brokers: brokers of the origin.
        topics: names of topics there.

    Raises:
        MetadataError: no broker answered.
    """
    request = DescribeConfigsRequest(
        resources=[(TOPIC, name, list(_COPIED)) for name in sorted(topics)], include_synonyms=False
    )
    results = brokers.send_to_any("topic configurations", request).results
    return {
        result.resource_name: {config.name: config.value for config in result.configs if config.value is not None}
        for result in results
        if not result.error_code
    }


def create_topic(client: KafkaAdminClient, topic: NewMigrationTopic, subject: str) -> None:
    """Create a topic unless it exists, and wait for its leaders.

    Args:
        client: client of the cluster.
        topic: the topic.
        subject: the cluster, for errors.

    Raises:
        HeadroomError: it was not created.
    """
    terms = {
        "num_partitions": topic.partitions,
        "replication_factor": topic.replicas,
        "configs": dict(topic.settings),
    }
    try:
        client.create_topics({topic.name: terms}, wait_for_metadata=True)
    except TopicAlreadyExistsError:
        return
    # kafka-python raises a bare RuntimeError if the cluster has no controller.
    except (KafkaError, RuntimeError) as error:
        rule = f"was not created on the {subject} ({type(error).__name__})"
        remedy = "Grant CREATE on it to this user, or create it there; then run the command again."
        raise HeadroomError(f"topic {topic.name}", rule, remedy) from None


def delete_topic(client: KafkaAdminClient, name: str, subject: str) -> None:
    """Delete a topic unless it is gone.

    Args:
        client: client of the cluster.
        name: name of the topic.
        subject: the cluster, for errors.

    Raises:
        HeadroomError: it was not deleted.
    """
    try:
        client.delete_topics([name])
    except UnknownTopicOrPartitionError:
        return
    except (KafkaError, RuntimeError) as error:
        rule = f"was not deleted on the {subject} ({type(error).__name__})"
        remedy = "Grant DELETE on it to this user, and see delete.topic.enable there; then run the command again."
        raise HeadroomError(f"topic {name}", rule, remedy) from None
