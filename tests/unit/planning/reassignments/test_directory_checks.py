"""Directories that a broker does not have, or cannot use."""

from __future__ import annotations

import pytest

from headroom.planning.reassignments import directory_checks
from headroom.planning.reassignments.cluster_state import ClusterState, LogDirectory
from headroom.planning.reassignments.directory_moves import directory_moves
from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.schemas.errors import HeadroomError
from tests.unit.builders.log_dirs import BOTH, A, B, cluster, placed, plan

# orders-0 has 1 GB on brokers 1 and 2; A has 40 GB free on every broker, B 10 GB.
TO_B = plan(("orders", 0, (1, 2), (B, A)))


def directory_errors(targets: ReassignmentPlan, state: ClusterState) -> tuple[HeadroomError, ...]:
    return directory_checks.directory_errors(directory_moves(targets, state), state)


def errors(directories: tuple[LogDirectory, ...], targets: ReassignmentPlan = TO_B) -> list[str]:
    return [str(error) for error in directory_errors(targets, cluster(directories=directories))]


def test_a_directory_that_can_be_used_is_no_error() -> None:
    assert errors(BOTH) == []


def test_a_directory_that_the_broker_does_not_have_is_named_with_those_it_has() -> None:
    (found,) = errors(BOTH, plan(("orders", 0, (1, 2), ("/disk/b/", A))))
    assert found.startswith("log directory /disk/b/ of broker 1: does not exist, and the plan puts orders-0 there.")
    assert "It has /disk/a, /disk/b." in found


@pytest.mark.parametrize(("wrong", "word"), [({"offline": True}, "offline"), ({"cordoned": True}, "cordoned")])
def test_a_directory_that_takes_no_replica_is_an_error(wrong: dict[str, bool], word: str) -> None:
    directories = (LogDirectory(A), LogDirectory(B, **wrong))
    (found,) = errors(directories)
    assert f"log directory {B} of broker 1: is {word}" in found
    # It is none for the replicas that are there already, or that stay away from it.
    assert errors(directories, plan(("orders", 0, (1, 2), (A, A)))) == []


def test_a_broker_that_did_not_report_its_directories_is_an_error_with_the_right_it_needs() -> None:
    (found,) = errors(())
    assert found.startswith("broker 1: did not report its log directories")
    assert "Describe the cluster" in found


def test_one_error_names_all_partitions_of_a_directory() -> None:
    partitions = [placed(partition=number) for number in range(5)]
    targets = plan(*(("orders", number, (1, 2), ("/c", "any")) for number in range(5)))
    (found,) = directory_errors(targets, cluster(*partitions))
    assert "orders-0, orders-1, orders-2 and 2 more" in found.rule
