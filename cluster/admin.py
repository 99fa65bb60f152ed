"""Snapshots of the cluster's metadata: topics, leaders, reassignments, lists and rates in force."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

import kafka.errors as kafka_errors
from kafka.errors import KafkaError
from kafka.protocol.admin import DescribeConfigsRequest, ListPartitionReassignmentsRequest
from kafka.protocol.metadata import MetadataRequest

from cluster.client import AdminLink
from cluster.configs import BROKER, RATE_KEYS, TOPIC, TOPIC_KEYS, rates_of, topic_config_of
from cluster.model import Broker, BrokerThrottles, Partition, Snapshot, TopicConfig, TopicPartition
from schemas.errors import HeadroomError

# Two tries in a tick must fit: one on a broker that hangs, one on another.
_TRIES = 2
_CONFIGS_PER_REQUEST = 500
_T = TypeVar("_T")


class MetadataError(Exception):
    """No broker told the cluster's metadata within the tick; the text says what each was asked and answered."""


class MetadataReader:
    """Reads a snapshot per tick from whichever broker answers, starting with the one that answered last.

    Args:
        link: the admin connection.
        timeout_s: longest wait for one snapshot's metadata, seconds.
        config_max_age_s: a topic without lists that does not move is asked for lists again after this long.
        clock: monotonic seconds.
    """

    def __init__(
        self, link: AdminLink, timeout_s: float, config_max_age_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._link = link
        self._timeout_s = timeout_s
        self._config_max_age_s = config_max_age_s
        self._clock = clock
        self._preferred: int | None = None
        self._last: Snapshot | None = None
        self._addresses: dict[int, Broker] = {}
        self._configs: dict[str, TopicConfig | None] = {}
        self._config_read_s: dict[str, float] = {}

    def snapshot(self) -> Snapshot:
        """Return the cluster as it is now.

        Raises:
            MetadataError: topics or reassignments could not be read.
            HeadroomError: no broker could be reached at all.
        """
        metadata = self._ask_any("metadata", MetadataRequest(topics=None, allow_auto_topic_creation=False))
        partitions = {p.name: p for topic in metadata.topics for p in _partitions_of(topic)}
        partitions = self._with_reassignments(partitions)
        topic_ids = {topic.name: str(topic.topic_id) for topic in metadata.topics if topic.name}
        self._forget_topics(topic_ids)
        configs = self._topic_configs(partitions)
        self._last = Snapshot(self._brokers(metadata, partitions), partitions, topic_ids, configs)
        return self._last

    def _ask_any(self, what: str, request: Any, link: AdminLink | None = None, share: float = 1.0) -> Any:
        timeout_s = share * self._timeout_s
        deadline = self._clock() + timeout_s
        failures = []
        for node in self._candidates():
            wait_s = min(timeout_s / _TRIES, deadline - self._clock())
            if wait_s <= 0.01:
                break
            try:
                answer = (link or self._link).ask(request, node, wait_s)
            except KafkaError as error:
                failures.append(f"broker {node}: {_short(error)}")
                continue
            self._preferred = node
            return answer
        raise MetadataError(f"{what} could not be read ({'; '.join(failures) or 'no broker is known'})")

    def _candidates(self) -> list[int]:
        known = dict.fromkeys(self._link.nodes())
        if self._last is not None:
            known |= dict.fromkeys(b.broker for b in self._last.brokers.values() if b.alive)
        return sorted(known, key=lambda node: node != self._preferred)

    def _brokers(self, metadata: Any, partitions: dict[TopicPartition, Partition]) -> dict[int, Broker]:
        alive = {b.node_id: Broker(b.node_id, b.host, b.port, True) for b in metadata.brokers}
        self._addresses |= alive
        named = {replica for p in partitions.values() for replica in p.replicas}
        gone = {
            b: replace(self._addresses.get(b, Broker(b, None, None, False)), alive=False) for b in named - set(alive)
        }
        return alive | gone

    def _with_reassignments(self, partitions: dict[TopicPartition, Partition]) -> dict[TopicPartition, Partition]:
        request = ListPartitionReassignmentsRequest(timeout_ms=int(self._timeout_s * 1000), topics=None)
        try:
            # Half the time: without an answer there is still what was last known, and brokers wait to be read.
            answer = self._ask_any("reassignments", request, self._link.forwarding, share=0.5)
            if answer.error_code:
                raise MetadataError(f"reassignments could not be read ({_error_name(answer.error_code)})")
        except (MetadataError, HeadroomError) as error:
            return self._carried_reassignments(partitions, str(error))
        moving = {
            TopicPartition(topic.name, p.partition_index): (tuple(p.adding_replicas), tuple(p.removing_replicas))
            for topic in answer.topics
            for p in topic.partitions
        }
        return {
            name: replace(p, adding=moving[name][0], removing=moving[name][1]) if name in moving else p
            for name, p in partitions.items()
        }

    def _carried_reassignments(
        self, partitions: dict[TopicPartition, Partition], reason: str
    ) -> dict[TopicPartition, Partition]:
        # While a new controller is elected nobody can tell the reassignments, and nobody can start or end one. Every
        # start and end changes the replicas, or has no adding ones: same replicas, same reassignment.
        if self._last is None:
            raise MetadataError(f"{reason}, and there is no earlier reading")
        carried = {}
        for name, partition in partitions.items():
            before = self._last.partitions.get(name)
            if before is None:
                raise MetadataError(f"{reason}, and {_text(name)} is new since they were read")
            if set(before.replicas) != set(partition.replicas):
                raise MetadataError(f"{reason}, and the replicas of {_text(name)} changed since they were read")
            carried[name] = replace(partition, adding=before.adding, removing=before.removing)
        return carried

    def _topic_configs(self, partitions: dict[TopicPartition, Partition]) -> dict[str, TopicConfig]:
        topics = sorted({name.topic for name in partitions})
        moving = {name.topic for name, p in partitions.items() if p.moving}
        wanted = [topic for topic in topics if topic in moving or self._config_due(topic)]
        for start in range(0, len(wanted), _CONFIGS_PER_REQUEST):
            self._read_configs(wanted[start : start + _CONFIGS_PER_REQUEST])
        return {topic: config for topic in topics if (config := self._configs.get(topic)) is not None}

    def _config_due(self, topic: str) -> bool:
        config = self._configs.get(topic)
        if topic not in self._configs or (config is not None and (config.listed or not config.current)):
            return True
        return self._clock() - self._config_read_s[topic] >= self._config_max_age_s

    def _read_configs(self, topics: list[str]) -> None:
        request = DescribeConfigsRequest(
            resources=[(TOPIC, topic, list(TOPIC_KEYS)) for topic in topics], include_synonyms=False
        )
        try:
            results = self._ask_any("topic configurations", request).results
        except MetadataError:
            if any(topic not in self._configs for topic in topics):
                raise
            results = []
        read = {r.resource_name: topic_config_of(r.configs) for r in results if not r.error_code}
        for place, topic in enumerate(topics):
            self._keep_config(topic, read.get(topic), place / len(topics))

    def _keep_config(self, topic: str, config: TopicConfig | None, share: float) -> None:
        # Topics first read together come up for their next reading one after the other, not together again.
        spread_s = 0.0 if topic in self._configs else share * self._config_max_age_s
        self._config_read_s[topic] = self._clock() - spread_s
        last = self._configs.get(topic)
        self._configs[topic] = config or (replace(last, current=False) if last is not None else None)

    def _forget_topics(self, topic_ids: dict[str, str]) -> None:
        last = {} if self._last is None else self._last.topic_ids
        for topic in [
            t for t in self._configs if topic_ids.get(t) != last.get(t, topic_ids.get(t)) or t not in topic_ids
        ]:
            del self._configs[topic]
            self._config_read_s.pop(topic, None)


def read_broker_throttles(link: AdminLink, broker: int, timeout_s: float) -> BrokerThrottles:
    """Return the throttle rates in force on a broker as that broker tells them.

    Raises:
        KafkaError: the broker did not answer in time, or refused.
    """
    request = DescribeConfigsRequest(
        resources=[(BROKER, str(broker), list(RATE_KEYS))], include_synonyms=True, min_version=1
    )
    result = link.ask(request, broker, timeout_s).results[0]
    if result.error_code:
        raise kafka_errors.for_code(result.error_code)(result.error_message)
    return rates_of(result.configs)


def _partitions_of(topic: Any) -> Iterable[Partition]:
    for p in topic.partitions:
        yield Partition(
            topic=topic.name,
            partition=p.partition_index,
            leader=p.leader_id if p.leader_id >= 0 else None,
            leader_epoch=p.leader_epoch if p.leader_epoch >= 0 else None,
            replicas=tuple(p.replica_nodes),
            isr=tuple(p.isr_nodes),
            offline=tuple(p.offline_replicas),
        )


def _text(name: TopicPartition) -> str:
    return f"{name.topic}-{name.partition}"


def _error_name(code: int) -> str:
    return str(kafka_errors.for_code(code).__name__)


def _short(error: KafkaError) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]
