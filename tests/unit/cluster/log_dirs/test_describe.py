"""Log directories of all brokers, whatever single brokers answer."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.cluster.log_dirs.describe import LogDirsReading, describe_log_dirs
from headroom.planning.log_dirs.broker_logs import ReplicaLog
from headroom.planning.reassignments.cluster_state import LogDirectory
from headroom.schemas.config import LogDirVolumes
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.unit.fakes.log_dir_brokers import LogDirBrokers, described

A, B = "/disk/a", "/disk/b"
ORDERS = TopicPartition("orders", 0)
NOT_AUTHORIZED, STORAGE_ERROR, SERVER_ERROR = 31, 56, -1
MOVING = [
    described(A, {("orders", 0): (900, 0, False)}, total_bytes=1000, usable_bytes=100),
    described(B, {("orders", 0): (200, 7, True), ("other", 3): (5, 0, False)}, total_bytes=2000, usable_bytes=300),
]


@pytest.fixture
def brokers() -> LogDirBrokers:
    fake = LogDirBrokers()
    fake.directories = dict.fromkeys((1, 2, 3), MOVING)
    return fake


def read(brokers: Any, *wanted: int, **options: Any) -> LogDirsReading:
    return describe_log_dirs(brokers, wanted or (1, 2, 3), 5.0, **options)


def test_a_broker_has_its_directories_its_logs_and_its_copies_under_way(brokers: LogDirBrokers) -> None:
    found = read(brokers, 1).brokers[1]
    assert found.directories == (
        LogDirectory(A, 1000, 100, logs_bytes=900, logs=1),
        LogDirectory(B, 2000, 300, logs_bytes=205, logs=2),
    )
    assert found.logs == {ORDERS: ReplicaLog(A, 900, 0), TopicPartition("other", 3): ReplicaLog(B, 5, 0)}
    assert found.futures == {ORDERS: ReplicaLog(B, 200, 7)}


def test_a_broker_that_hangs_costs_itself_alone(brokers: LogDirBrokers) -> None:
    brokers.hanging = {1}
    found = read(brokers)
    assert sorted(found.brokers) == [2, 3]
    assert str(found.errors[1]).startswith("broker 1: did not report its log directories (KafkaTimeoutError)")
    with pytest.raises(HeadroomError, match="broker 1: did not report"):
        found.require_all()


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_without_the_right_no_broker_is_taken_for_empty(brokers: LogDirBrokers, version: int) -> None:
    # Up to version 2 an answer has no error code: it is empty.
    brokers.version = version
    brokers.directories, brokers.errors = {2: MOVING}, {1: NOT_AUTHORIZED, 3: NOT_AUTHORIZED}
    found = read(brokers)
    assert sorted(found.brokers) == [2]
    with pytest.raises(HeadroomError, match=r"^broker 1, 3: .*Grant DESCRIBE on the cluster to this user\.$"):
        found.require_all()


def test_another_error_is_named(brokers: LogDirBrokers) -> None:
    brokers.errors = {2: SERVER_ERROR}
    assert "(UnknownError)" in str(read(brokers).errors[2])


@pytest.mark.parametrize("version", [1, 3])
def test_before_version_4_the_space_is_unknown_and_not_none_left(brokers: LogDirBrokers, version: int) -> None:
    brokers.version = version
    directories = read(brokers, 1).brokers[1].directories
    assert directories == (LogDirectory(A, logs_bytes=900, logs=1), LogDirectory(B, logs_bytes=205, logs=2))


@pytest.mark.parametrize(
    ("volumes", "names"),
    [
        (LogDirVolumes.ASSUMED, [None, None]),
        (LogDirVolumes.SEPARATE, [A, B]),
        (LogDirVolumes.SHARED, ["shared", "shared"]),
    ],
)
def test_directories_have_their_volumes_by_the_settings(
    brokers: LogDirBrokers, volumes: LogDirVolumes, names: list[str | None]
) -> None:
    directories = read(brokers, 1, volumes=volumes).brokers[1].directories
    assert [directory.volume for directory in directories] == names


def test_an_offline_directory_is_listed_without_logs(brokers: LogDirBrokers) -> None:
    brokers.directories[1] = [described(A, {}, error_code=STORAGE_ERROR), MOVING[1]]
    found = read(brokers, 1).brokers[1]
    assert [(d.path, d.offline) for d in found.directories] == [(A, True), (B, False)]
    assert ORDERS not in found.logs


def test_a_cordoned_directory_is_known_from_version_5(brokers: LogDirBrokers) -> None:
    brokers.directories[1] = [described(A, {}, is_cordoned=True)]
    assert read(brokers, 1).brokers[1].directories[0].cordoned
    brokers.version = 4
    assert not read(brokers, 1).brokers[1].directories[0].cordoned


def test_only_the_logs_of_some_partitions_are_asked_for(brokers: LogDirBrokers) -> None:
    read(brokers, 1, names=[ORDERS, TopicPartition("orders", 2), TopicPartition("a", 1)])
    ((_, request),) = brokers.requests
    assert [(topic.topic, topic.partitions) for topic in request.topics] == [("a", [1]), ("orders", [0, 2])]
    read(brokers, 1)
    assert brokers.requests[-1][1].topics is None


def test_no_broker_is_no_reading(brokers: LogDirBrokers) -> None:
    assert describe_log_dirs(brokers, (), 5.0) == LogDirsReading({}, {})  # type: ignore[arg-type]
    read(brokers).require_all()


def test_logs_are_counted_only_where_all_were_read(brokers: LogDirBrokers) -> None:
    # A and B have one log each, and B the copy of a move between both.
    assert [directory.logs for directory in read(brokers, 1).brokers[1].directories] == [1, 2]
    assert [d.logs for d in read(brokers, 1, names=[ORDERS]).brokers[1].directories] == [None, None]
