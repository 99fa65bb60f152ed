"""The publisher after the ticks topic was deleted, or created again with other partitions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from kafka.errors import KafkaTimeoutError

from headroom.cluster.collector import publisher as publishing
from headroom.cluster.collector.publisher import Publisher, PublishError
from headroom.cluster.collector.rows.encoder import Message
from headroom.schemas.config import ClusterSettings, Settings, TicksSettings
from headroom.schemas.errors import HeadroomError

TICK = [Message(kind, b"{}", b"{}") for kind in ("brokers", "leaders", "meters", "lags", "logs", "log_dirs")]


class Topic:
    """The ticks topic on a cluster.

    Attributes:
        partitions: number of its partitions; None: it does not exist.
        producers: the producers that were made.
        refusal: why it cannot be created; None if it can.
    """

    def __init__(self, partitions: int) -> None:
        self.partitions: int | None = partitions
        self.producers: list[Producer] = []
        self.refusal: HeadroomError | None = None

    def ensure(self, settings: Settings, **how_long: float) -> int:
        if self.partitions is None:
            if self.refusal is not None:
                raise self.refusal
            self.partitions = settings.ticks.partitions
        return self.partitions

    def producer(self, **options: Any) -> Producer:
        self.producers.append(Producer(self))
        return self.producers[-1]


class Producer:
    """A producer as kafka-python's: it waits in vain for a missing topic, and knows no partition that is gone."""

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        self._metadata = SimpleNamespace(config={"allow_auto_create_topics": True})
        self._sender = SimpleNamespace(force_close=self.close)
        self.written: set[int] = set()
        self.closed = False

    def partitions_for(self, topic: str) -> set[int]:
        if self._topic.partitions is None:
            raise KafkaTimeoutError("no metadata")
        return set(range(self._topic.partitions))

    def send(self, topic: str, key: bytes, value: bytes, partition: int) -> Any:
        if partition not in self.partitions_for(topic):
            raise ValueError(f"Unrecognized partition {partition}")
        self.written.add(partition)
        return SimpleNamespace(get=lambda timeout: SimpleNamespace(partition=partition, offset=1))

    def close(self, timeout_s: float = 0.0) -> None:
        self.closed = True


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    topic = Topic(4)
    monkeypatch.setattr(publishing, "KafkaProducer", topic.producer)
    monkeypatch.setattr(publishing, "ensure_topic", topic.ensure)
    return topic


@pytest.fixture
def publisher(topic: Topic) -> Publisher:
    settings = Settings(cluster=ClusterSettings(bootstrap_servers="b:1"), ticks=TicksSettings(partitions=4))
    publisher = Publisher(settings, 1.0)
    publisher.open()
    publisher.send(TICK)
    assert topic.producers[0].written == {0, 1, 2, 3}
    return publisher


# Kafka's clients repeat a send that too few replicas acknowledge until it is too late, and say only that.
def test_a_message_without_acknowledgement_names_the_topic_and_where_the_reason_is(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = SimpleNamespace(get=MagicMock(side_effect=KafkaTimeoutError()))
    monkeypatch.setattr(publisher, "_send", lambda message: never)
    expected = r"by topic headroom.ticks \(KafkaTimeoutError\). `headroom check` names what keeps the topic from being"
    with pytest.raises(PublishError, match=expected):
        publisher.send(TICK)


@pytest.mark.parametrize(("partitions", "written"), [(1, {0}), (2, {0, 1}), (8, {0, 1, 2, 3})])
def test_a_topic_that_was_created_again_gets_ticks_in_the_partitions_that_it_has(
    topic: Topic, publisher: Publisher, partitions: int, written: set[int]
) -> None:
    topic.partitions = partitions
    if partitions < 4:
        # This tick began for the topic of before.
        with pytest.raises(PublishError, match="was not sent"):
            publisher.send(TICK)
    topic.producers[-1].written.clear()
    publisher.send(TICK)
    assert topic.producers[-1].written == written


def test_a_topic_that_was_deleted_is_created_again(topic: Topic, publisher: Publisher) -> None:
    topic.partitions = None
    with pytest.raises(PublishError, match="was not sent"):
        publisher.send(TICK)
    publisher.send(TICK)
    assert (topic.partitions, topic.producers[-1].written) == (4, {0, 1, 2, 3})
    assert [producer.closed for producer in topic.producers] == [True, False]


def test_a_topic_that_may_not_be_created_is_the_reason_of_each_tick(topic: Topic, publisher: Publisher) -> None:
    topic.partitions, topic.refusal = None, HeadroomError("ticks.topic", "could not be made", "Grant Create on it.")
    for reason in ("was not sent", "Grant Create on it", "Grant Create on it"):
        with pytest.raises(PublishError, match=reason):
            publisher.send(TICK)
    topic.partitions = 4
    publisher.send(TICK)


def test_an_unexpected_error_costs_the_producer_too(topic: Topic, publisher: Publisher) -> None:
    topic.producers[-1].send = lambda *_, **__: 1 / 0  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError):
        publisher.send(TICK)
    assert topic.producers[-1].closed
    publisher.send(TICK)


def test_no_producer_lets_a_broker_create_the_topic(topic: Topic, publisher: Publisher) -> None:
    assert [p._metadata.config for p in topic.producers] == [{"allow_auto_create_topics": False}]
