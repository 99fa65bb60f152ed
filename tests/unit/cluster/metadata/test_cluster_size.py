"""The number of partitions of a cluster, or that it is unknown."""

from __future__ import annotations

import pytest

from headroom.cluster.metadata import cluster_size
from headroom.schemas.config import ClusterSettings
from tests.unit.fakes.admin_connection import ManyTopics


class Closing(ManyTopics):
    """A connection that notes its end."""

    closed = False

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Closing:
    made = Closing({"a": 3, "b": 40})
    monkeypatch.setattr(cluster_size, "AdminConnection", lambda settings: made)
    return made


def test_it_is_that_of_all_topics_by_one_request(connection: Closing) -> None:
    assert cluster_size.partition_count(ClusterSettings()) == 43
    assert connection.topics_asked() == ["whole"]
    assert connection.closed


def test_without_an_answer_it_is_unknown(connection: Closing) -> None:
    connection.silent = {"MetadataRequest"}
    assert cluster_size.partition_count(ClusterSettings()) is None
    assert connection.closed
