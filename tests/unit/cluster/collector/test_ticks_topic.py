"""Creation of the ticks topic: transient errors are retried, others are reported with a remedy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import (
    BrokerNotAvailableError,
    InvalidReplicationFactorError,
    KafkaConnectionError,
    KafkaTimeoutError,
    NotControllerError,
    PolicyViolationError,
    RequestTimedOutError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
)

from headroom.cluster.collector import ticks_topic
from headroom.cluster.collector.ticks_topic import ensure_topic
from headroom.schemas.config import ClusterSettings, Settings, TicksSettings
from headroom.schemas.errors import HeadroomError

SETTINGS = Settings(cluster=ClusterSettings(bootstrap_servers="a:1"), ticks=TicksSettings(topic="ticks"))


class Cluster:
    """A cluster of two brokers without the ticks topic; each try to make it meets the next error, if any is left."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.topics: dict[str, Any] = {}
        self.links = self.closed = 0
        self.now_s = 0.0

    def connection(self, _kafka: object) -> Cluster:
        self.links += 1
        return self

    def client(self) -> Cluster:
        return self

    def close(self) -> None:
        self.closed += 1

    def list_topics(self) -> list[str]:
        return list(self.topics)

    def describe_cluster(self) -> dict[str, Any]:
        return {"brokers": [{}, {}]}

    def create_topics(self, topics: dict[str, Any]) -> None:
        self.now_s += 10
        if self.errors:
            raise self.errors.pop(0)
        self.topics |= topics

    def wait_for_topics(self, _names: list[str], timeout_ms: int) -> None:
        assert timeout_ms == SETTINGS.cluster.request_timeout_ms

    def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
        return [{"partitions": [0] * SETTINGS.ticks.partitions} for _ in names]

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def monotonic(self) -> float:
        return self.now_s


def ensured(monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> int:
    monkeypatch.setattr(ticks_topic, "AdminConnection", cluster.connection)
    monkeypatch.setattr(ticks_topic, "time", cluster)
    return ensure_topic(SETTINGS)


@pytest.mark.parametrize(
    "error",
    [
        RequestTimedOutError(),
        KafkaTimeoutError(),
        NotControllerError(),
        BrokerNotAvailableError(),
        KafkaConnectionError(),
        # kafka-python's own, when the controller it was sent to is none any more, twice.
        RuntimeError("Failed to find active controller id!"),
    ],
    ids=repr,
)
def test_while_a_controller_is_elected_the_topic_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    cluster = Cluster(error, error)
    assert ensured(monkeypatch, cluster) == SETTINGS.ticks.partitions
    assert cluster.topics["ticks"]["replication_factor"] == 2
    assert cluster.links == cluster.closed == 3


def test_a_cluster_that_never_answers_is_given_up_with_a_remedy_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(*[RequestTimedOutError() for _ in range(99)])
    with pytest.raises(HeadroomError) as caught:
        ensured(monkeypatch, cluster)
    # Tries of 10 s with 1 s between: the sixth ends at 65 s, the first one past the minute.
    assert caught.value.rule == "its cluster did not answer, or has no controller, for 65 s (RequestTimedOutError)"
    assert "start again" in caught.value.remedy
    assert "Grant" not in caught.value.remedy
    assert cluster.closed == 6


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (TopicAuthorizationFailedError(), "Grant Create and Describe"),
        (InvalidReplicationFactorError(), "ticks.replication_factor"),
        (PolicyViolationError(), "Create it beforehand"),
    ],
    ids=repr,
)
def test_a_refusal_is_reported_at_once_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, error: Exception, remedy: str
) -> None:
    cluster = Cluster(error)
    with pytest.raises(HeadroomError) as caught:
        ensured(monkeypatch, cluster)
    assert remedy in caught.value.remedy
    assert cluster.links == cluster.closed == 1


def test_a_topic_that_another_process_makes_at_the_same_time_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ensured(monkeypatch, Cluster(TopicAlreadyExistsError())) == SETTINGS.ticks.partitions


def test_a_consumer_is_at_the_end_of_the_alert_partition_and_creates_no_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    config: dict[str, bool] = {}

    def consumer(kind: Any, **options: Any) -> Any:
        calls.append(options["max_partition_fetch_bytes"])
        return SimpleNamespace(
            _client=SimpleNamespace(cluster=SimpleNamespace(config=config)),
            assign=lambda partitions: calls.append((partitions, dict(config))),
            seek_to_end=calls.append,
        )

    monkeypatch.setattr(ticks_topic, "new_client", consumer)
    _, partition = ticks_topic.alert_partition_consumer(SETTINGS, max_partition_fetch_bytes=7)
    assert partition == ("ticks", 0)
    assert calls == [7, ([partition], {"allow_auto_create_topics": False}), partition]
