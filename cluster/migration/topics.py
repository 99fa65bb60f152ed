"""Topics of a migration on one cluster, and their settings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from kafka.errors import UnknownTopicOrPartitionError
from kafka.protocol.admin import DescribeConfigsRequest
from kafka.protocol.metadata import MetadataRequest

from headroom.cluster.admin.config_keys import CLEANUP_POLICY, MIN_INSYNC, REMOTE_STORAGE, TOPIC
from headroom.cluster.connection.failover import BrokerFailover
from headroom.planning.migration.readings import MigratingTopic, TopicRules
from headroom.schemas.quantities import QuantityError, parse_whole

_RETENTION_MS, _RETENTION_BYTES = "retention.ms", "retention.bytes"
_UNCLEAN, _TIMESTAMP_TYPE = "unclean.leader.election.enable", "message.timestamp.type"
_KEYS = [CLEANUP_POLICY, MIN_INSYNC, _RETENTION_MS, _RETENTION_BYTES, _UNCLEAN, _TIMESTAMP_TYPE, REMOTE_STORAGE]
_TOPICS_PER_REQUEST = 500
# Of brokers before Kafka 2.8.
_NO_IDS = ("None", "00000000-0000-0000-0000-000000000000")
_UNLIMITED = -1


class ClusterTopics(NamedTuple):
    """Topics of a cluster.

    Attributes:
        cluster_id: id of the cluster; None if the broker does not report it.
        topics: topics by name; those that do not exist are missing.
        names: names of all topics of the cluster, or of those among the ones that were asked for.
    """

    cluster_id: str | None
    topics: dict[str, MigratingTopic]
    names: frozenset[str]


def read_topics(brokers: BrokerFailover, names: Collection[str] | None = None) -> ClusterTopics:
    """Return topics of a cluster.

    Args:
        brokers: the cluster.
        names: topics, a few; None: all.

    Raises:
        MetadataError: no broker answered.
    """
    answer = _metadata(brokers, names)
    topics = {topic.name: _topic(topic) for topic in answer.topics if topic.name and not topic.error_code}
    return ClusterTopics(getattr(answer, "cluster_id", None), topics, frozenset(topics))


def read_absent(brokers: BrokerFailover, names: Collection[str]) -> frozenset[str]:
    """Return those of some topics that a cluster says it does not have: not those that this user may not see.

    Args:
        brokers: the cluster.
        names: topics, a few.

    Raises:
        MetadataError: no broker answered.
    """
    absent = UnknownTopicOrPartitionError.errno
    return frozenset(topic.name for topic in _metadata(brokers, names).topics if topic.error_code == absent)


def _metadata(brokers: BrokerFailover, names: Collection[str] | None) -> Any:
    wanted = None if names is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    return brokers.send_to_any("topics", MetadataRequest(topics=wanted, allow_auto_topic_creation=False))


def _topic(topic: Any) -> MigratingTopic:
    topic_id = str(getattr(topic, "topic_id", None))
    leaders = {p.partition_index: p.leader_id if p.leader_id >= 0 else None for p in topic.partitions}
    least = min((len(p.replica_nodes) for p in topic.partitions), default=0)
    # Missing before Kafka 2.1, and -1 without one.
    epochs = {p.partition_index: getattr(p, "leader_epoch", None) for p in topic.partitions}
    known = {partition: epoch for partition, epoch in epochs.items() if epoch is not None and epoch >= 0}
    return MigratingTopic(None if topic_id in _NO_IDS else topic_id, leaders, least, known)


def read_rules(brokers: BrokerFailover, topics: Collection[str]) -> dict[str, TopicRules]:
    """Return the settings of topics; a topic whose settings this user may not read is missing.

    Raises:
        MetadataError: no broker answered.
    """
    rules: dict[str, TopicRules] = {}
    for names in _parts(sorted(topics)):
        request = DescribeConfigsRequest(resources=[(TOPIC, name, _KEYS) for name in names], include_synonyms=False)
        results = brokers.send_to_any("topic configurations", request).results
        rules |= {result.resource_name: rules_of(result.configs) for result in results if not result.error_code}
    return rules


def _parts(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), _TOPICS_PER_REQUEST):
        yield names[start : start + _TOPICS_PER_REQUEST]


def rules_of(configs: Any) -> TopicRules:
    """Return the settings in an answer; a missing key, and a value that is none of its kind, is unknown."""
    values = {config.name: config.value for config in configs}
    unclean = values.get(_UNCLEAN)
    return TopicRules(
        values.get(CLEANUP_POLICY),
        _limit(values.get(_RETENTION_MS)),
        _limit(values.get(_RETENTION_BYTES)),
        _limit(values.get(MIN_INSYNC)),
        None if unclean is None else unclean == "true",
        values.get(_TIMESTAMP_TYPE),
        # Missing before Kafka 3.6, which has no remote storage; other answers have the policy.
        values.get(REMOTE_STORAGE) == "true" if CLEANUP_POLICY in values else None,
    )


def _limit(text: str | None) -> int | None:
    try:
        return None if text is None else _UNLIMITED if text == str(_UNLIMITED) else parse_whole(text)
    except QuantityError:
        return None
