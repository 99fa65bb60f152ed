"""Topics of a migration: the settings that one takes over, its creation, and its deletion."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka.errors import (
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)

from headroom.cluster.connection.failover import BrokerFailover
from headroom.cluster.migration.topic_changes import (
    NewMigrationTopic,
    create_topic,
    delete_topic,
    read_copied_settings,
)
from headroom.schemas.errors import HeadroomError

TOPIC = NewMigrationTopic("orders", 2, 3, {"retention.ms": "1000"})


class _Client:
    """Answers each change with an error, if it has one."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error
        self.asked: list[Any] = []

    def create_topics(self, topics: Any, wait_for_metadata: bool) -> None:
        self._answer((topics, wait_for_metadata))

    def delete_topics(self, names: Any) -> None:
        self._answer(names)

    def _answer(self, asked: Any) -> None:
        self.asked.append(asked)
        if self._error is not None:
            raise self._error


def test_a_topic_is_created_with_its_settings_and_waited_for() -> None:
    client = _Client()
    create_topic(cast(Any, client), TOPIC, "cluster new")
    terms = {"num_partitions": 2, "replication_factor": 3, "configs": {"retention.ms": "1000"}}
    assert client.asked == [({"orders": terms}, True)]


def test_a_topic_that_is_there_or_gone_already_is_as_wanted() -> None:
    create_topic(cast(Any, _Client(TopicAlreadyExistsError())), TOPIC, "cluster new")
    delete_topic(cast(Any, _Client(UnknownTopicOrPartitionError())), "orders", "cluster old")


@pytest.mark.parametrize("error", [TopicAuthorizationFailedError(), RuntimeError("no controller")])
def test_a_refusal_names_the_topic_and_what_to_do(error: Exception) -> None:
    with pytest.raises(HeadroomError, match=r"topic orders: was not created on the cluster new .*Grant CREATE"):
        create_topic(cast(Any, _Client(error)), TOPIC, "cluster new")
    with pytest.raises(HeadroomError, match=r"topic orders: was not deleted on the cluster old .*Grant DELETE"):
        delete_topic(cast(Any, _Client(error)), "orders", "cluster old")


def test_settings_are_taken_over_from_topics_that_may_be_read() -> None:
    def result(name: str, error: int, **values: str | None) -> SimpleNamespace:
        configs = [SimpleNamespace(name=key.replace("_", "."), value=value) for key, value in values.items()]
        return SimpleNamespace(resource_name=name, error_code=error, configs=configs)

    class _Brokers:
        def send_to_any(self, subject: str, request: Any) -> SimpleNamespace:
            self.resources = request.resources
            return SimpleNamespace(
                results=[result("orders", 0, retention_ms="1000", cleanup_policy=None), result("secret", 29)]
            )

    brokers = _Brokers()
    assert read_copied_settings(cast(BrokerFailover, brokers), ["secret", "orders"]) == {
        "orders": {"retention.ms": "1000"}
    }
    assert len(brokers.resources) == 2
