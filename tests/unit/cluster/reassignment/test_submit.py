"""Reassignment requests: in parts, with the controller's reason for each partition."""

from __future__ import annotations

from types import SimpleNamespace as Answer
from typing import Any

import pytest
from kafka.protocol.admin import AlterPartitionReassignmentsRequest

from headroom.cluster.reassignment import submit
from headroom.cluster.reassignment.submit import submit_reassignments
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

NAMES = [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)]
NOT_CONTROLLER, NOT_AUTHORIZED, NO_REASSIGNMENT = 41, 31, 85


class Controller:
    """Brokers 1 and 2; answers as a controller does, and records the requests."""

    def __init__(self, error_code: int = 0, refused: dict[TopicPartition, int] | None = None) -> None:
        self.forwarding = self
        self.error_code = error_code
        self.refused = refused or {}
        self.silent: set[TopicPartition] = set()
        self.requests: list[Any] = []

    def nodes(self) -> list[int]:
        return [1, 2]

    def send(self, request: AlterPartitionReassignmentsRequest, node: int, timeout_s: float) -> Any:
        # What is sent over the wire is valid in both versions.
        for version in (0, 1):
            assert request.encode(version=version)  # type: ignore[attr-defined]
        self.requests.append(request)
        answers = [
            Answer(name=t.name, partitions=[self._answer(t.name, p) for p in t.partitions if self._speaks(t.name, p)])
            for t in request.topics
        ]
        return Answer(error_code=self.error_code, responses=answers)

    def _speaks(self, topic: str, partition: Any) -> bool:
        return (topic, partition.partition_index) not in self.silent

    def _answer(self, topic: str, partition: Any) -> Any:
        code = self.refused.get(TopicPartition(topic, partition.partition_index), 0)
        text = "Replica 9 is not alive." if code else None
        return Answer(partition_index=partition.partition_index, error_code=code, error_message=text)


def test_every_partition_that_is_refused_has_the_brokers_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submit, "_PARTITIONS_PER_REQUEST", 2)
    controller = Controller(refused={NAMES[1]: NO_REASSIGNMENT})
    controller.silent = {NAMES[2]}
    refused = submit_reassignments(controller, {NAMES[0]: (1, 2), NAMES[1]: None, NAMES[2]: (3,)}, 1.0)  # type: ignore[arg-type]
    assert refused == {NAMES[1]: "NoReassignmentInProgressError: Replica 9 is not alive.", NAMES[2]: "no answer"}
    sent = [
        [(t.name, [(p.partition_index, p.replicas) for p in t.partitions]) for t in r.topics]
        for r in controller.requests
    ]
    assert sent == [[("a", [(0, [1, 2]), (1, None)])], [("b", [(0, [3])])]]
    assert not any(request.allow_replication_factor_change for request in controller.requests)


def test_a_factor_may_change_only_where_the_plan_changes_it() -> None:
    controller = Controller()
    assert submit_reassignments(controller, {NAMES[0]: (1,)}, 1.0, change_factor=True) == {}  # type: ignore[arg-type]
    assert controller.requests[0].allow_replication_factor_change


@pytest.mark.parametrize(("code", "text"), [(NOT_AUTHORIZED, "Grant ALTER"), (7, "was taken by no broker")])
def test_a_request_that_is_refused_as_a_whole_is_an_error(code: int, text: str) -> None:
    with pytest.raises(HeadroomError, match=text):
        submit_reassignments(Controller(code), {NAMES[0]: (1,)}, 0.1)  # type: ignore[arg-type]
