"""Log directories that batches of a proposal name, because the broker would choose one without room."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.operations.balance.cluster import BalanceCluster
from headroom.operations.balance.proposal_result import ProposalResult, proposal_result
from headroom.operations.balance.requests import ProposalRequest
from headroom.planning.balance.observation.cluster import observed_cluster
from headroom.planning.reassignments.cluster_state import ClusterState, LogDirectory
from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.planning.reassignments.room.checks import RoomCheck, check_room
from headroom.schemas.config import Settings
from tests.unit.builders.balance_states import GB, broker, loads_of, state_of, topic


def uneven(free_a: int, logs_a: int = 1) -> ClusterState:
    """Broker 1 has all; brokers 2 and 3 have nothing of the topic, and 50 other logs in /b."""
    disks = (
        LogDirectory("/a", 1000 * GB, free_a * GB, volume="a", logs=logs_a),
        LogDirectory("/b", 1000 * GB, 900 * GB, volume="b", logs=50),
    )
    others = [replace(broker(number), log_dirs=disks) for number in (2, 3)]
    return state_of([broker(1), *others], topic("t", [[1]] * 12, size=30 * GB))


def proposed(state: ClusterState, first: int | None = None) -> ProposalResult:
    settings = Settings()
    loads = loads_of(state)
    observed = observed_cluster(state, loads, settings.balance)
    return proposal_result(BalanceCluster(settings, state, loads, observed, live=False), ProposalRequest(), first=first)


@pytest.mark.parametrize("logs_a", [1, 60])
def test_batches_name_directories_where_one_has_no_room_for_all_new_replicas(logs_a: int) -> None:
    """Numbers of logs change with every batch, so /a may come to have the fewest."""
    state = uneven(40, logs_a)
    for first in (None, 3):
        result = proposed(state, first)
        batches = [batch.batch for batch in result.batches]
        moves = [move for batch in batches for move in batch.moves]
        assert {move.target for move in moves} == {2, 3}
        assignments = [assignment for batch in batches for assignment in batch.assignments]
        named = {(a.name, broker): path for a in assignments for broker, path in a.named_log_dirs.items()}
        assert named == {(move.name, move.target): "/b" for move in moves if move.target in result.named_on}
        plans = [ReassignmentPlan(batch.assignments) for batch in batches]
        assert check_room(plans, state) == RoomCheck(())
    assert proposed(state).named_on == (2, 3)
    (note,) = [warning for warning in proposed(state).warnings() if "names log directories" in warning]
    assert note.startswith("The plan names log directories for new replicas on brokers 2, 3:")


def test_the_broker_chooses_where_every_directory_has_room() -> None:
    result = proposed(uneven(500))
    assert result.named_on == ()
    assert {a.log_dirs for batch in result.batches for a in batch.batch.assignments} == {None}
