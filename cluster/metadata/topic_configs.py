"""Cache of topic configurations: throttled replica lists and the settings that the verdict needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from kafka.protocol.admin import DescribeConfigsRequest

from headroom.cluster.admin.config_keys import TOPIC, TOPIC_KEYS, topic_config_of
from headroom.cluster.connection.failover import BrokerFailover, MetadataError
from headroom.cluster.model import TopicConfig

# Limits the size of one answer.
_CONFIGS_PER_REQUEST = 500


class TopicConfigs:
    """Configuration of every topic, read as often as each topic needs it.

    Args:
        brokers: sends the requests.
        max_age_s: maximum age for a topic without lists and reassignments, seconds.
        clock: monotonic seconds.
    """

    def __init__(self, brokers: BrokerFailover, max_age_s: float, clock: Callable[[], float]) -> None:
        self._brokers = brokers
        self._max_age_s = max_age_s
        self._clock = clock
        self._ids: Mapping[str, str] = {}
        self._configs: dict[str, TopicConfig | None] = {}
        self._read_s: dict[str, float] = {}

    def read(self, topic_ids: Mapping[str, str], moving: Collection[str]) -> dict[str, TopicConfig]:
        """Return the configuration of all topics; a topic that could never be read is missing.

        Args:
            topic_ids: id of every topic.
            moving: topics to read now, because they are reassigned.

        Raises:
            MetadataError: no broker described a topic that was never read.
        """
        self._drop_removed(topic_ids)
        due_topics = [topic for topic in sorted(topic_ids) if topic in moving or self._is_due(topic)]
        for start in range(0, len(due_topics), _CONFIGS_PER_REQUEST):
            self._read(due_topics[start : start + _CONFIGS_PER_REQUEST])
        return {topic: config for topic in topic_ids if (config := self._configs.get(topic)) is not None}

    def listed_topics(self) -> set[str]:
        """Return the topics that had throttled replica lists when last read."""
        return {topic for topic, config in self._configs.items() if config is not None and config.has_throttled_list}

    def _is_due(self, topic: str) -> bool:
        config = self._configs.get(topic)
        if topic not in self._configs or (config is not None and (config.has_throttled_list or not config.current)):
            return True
        return self._clock() - self._read_s[topic] >= self._max_age_s

    def _read(self, topics: list[str]) -> None:
        request = DescribeConfigsRequest(
            resources=[(TOPIC, topic, list(TOPIC_KEYS)) for topic in topics], include_synonyms=False
        )
        try:
            results = self._brokers.send_to_any("topic configurations", request).results
        except MetadataError:
            if any(topic not in self._configs for topic in topics):
                raise
            results = []
        read = {r.resource_name: topic_config_of(r.configs) for r in results if not r.error_code}
        for index, topic in enumerate(topics):
            self._store(topic, read.get(topic), index / len(topics))

    def _store(self, topic: str, config: TopicConfig | None, share: float) -> None:
        # Spread the next reads of topics that were first read together.
        spread_s = 0.0 if topic in self._configs else share * self._max_age_s
        self._read_s[topic] = self._clock() - spread_s
        last = self._configs.get(topic)
        self._configs[topic] = config or (replace(last, current=False) if last is not None else None)

    def _drop_removed(self, topic_ids: Mapping[str, str]) -> None:
        """Drop topics that were deleted or recreated."""
        for topic in [t for t in self._configs if topic_ids.get(t) != self._ids.get(t, topic_ids.get(t))]:
            del self._configs[topic]
            self._read_s.pop(topic, None)
        self._ids = topic_ids
