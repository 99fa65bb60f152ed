"""What the features of brokers say about the release of the controllers."""

from __future__ import annotations

from types import SimpleNamespace as Answer
from typing import Any, cast

import pytest
from kafka.errors import KafkaTimeoutError

from headroom.cluster.admin.features import read_waits_for_kept
from headroom.cluster.connection.admin_connection import AdminConnection


class FakeConnection:
    """Brokers 1 and 2, of which the first may be silent."""

    def __init__(self, supported: int | None, finalized: int | None, silent: frozenset[int] = frozenset()) -> None:
        self._silent = silent
        self._answer = Answer(
            error_code=0,
            supported_features=[
                Answer(name="group.version", min_version=0, max_version=1),
                *([] if supported is None else [Answer(name="metadata.version", min_version=7, max_version=supported)]),
            ],
            finalized_features=(
                []
                if finalized is None
                else [Answer(name="metadata.version", min_version_level=finalized, max_version_level=finalized)]
            ),
        )

    def nodes(self) -> list[int]:
        return [1, 2]

    def send(self, request: Any, node: int, timeout_s: float) -> Any:
        if node in self._silent:
            raise KafkaTimeoutError("no answer")
        return self._answer


def waits(connection: FakeConnection) -> bool | None:
    return read_waits_for_kept(cast(AdminConnection, connection), 1)


@pytest.mark.parametrize(
    ("supported", "finalized", "expected"),
    [
        # Levels of Kafka 4.3 and 4.2.
        (30, 30, False),
        (31, 30, False),
        (29, 29, True),
        (29, 21, True),
        # The software of the broker is new; that of the controllers may not be.
        (30, 29, None),
        (30, None, None),
        # ZooKeeper mode.
        (None, None, True),
    ],
)
def test_a_finalized_level_tells_the_release_of_all_controllers(
    supported: int | None, finalized: int | None, expected: bool | None
) -> None:
    assert waits(FakeConnection(supported, finalized)) is expected


def test_another_broker_is_asked_and_no_answer_is_unknown() -> None:
    assert waits(FakeConnection(30, 30, silent=frozenset({1}))) is False
    assert waits(FakeConnection(30, 30, silent=frozenset({1, 2}))) is None
