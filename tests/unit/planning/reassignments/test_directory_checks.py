"""Directories that a broker does not have, cannot use, or has no room in."""

from __future__ import annotations

import pytest

from headroom.planning.reassignments import directory_checks
from headroom.planning.reassignments.cluster_state import ClusterState, LogDirectory
from headroom.planning.reassignments.directory_moves import directory_moves
from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.schemas.errors import HeadroomError
from tests.unit.builders.log_dirs import BOTH, GB, A, B, cluster, placed, plan

# orders-0 has 1 GB on brokers 1 and 2; A has 40 GB free on every broker, B 10 GB.
TO_B = plan(("orders", 0, (1, 2), (B, A)))


def directory_errors(targets: ReassignmentPlan, state: ClusterState) -> tuple[HeadroomError, ...]:
    return directory_checks.directory_errors(directory_moves(targets, state), state)


def room_errors(targets: ReassignmentPlan, state: ClusterState) -> tuple[HeadroomError, ...]:
    return directory_checks.room_errors(targets, state)


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


def test_a_directory_needs_room_for_all_copies_that_go_there() -> None:
    # 3 x 4 GB to B, which has 10 GB free; one of them is new on broker 3.
    partitions = [placed(partition=number, size_bytes=4 * GB) for number in range(3)]
    state = cluster(*partitions)
    fits = plan(*(("orders", number, (1, 2), (B, A)) for number in range(2)))
    assert room_errors(fits, state) == ()
    (found,) = room_errors(plan(*(("orders", number, (1, 2), (B, A)) for number in range(3))), state)
    assert found.subject == f"log directory {B} of broker 1"
    assert "has 10,000,000,000 bytes free, and the plan copies 12,000,000,000 there" in found.rule
    (new,) = room_errors(plan(*(("orders", number, (1, 3), (A, B)) for number in range(3))), state)
    assert new.subject == f"log directory {B} of broker 3"


def test_where_the_broker_chooses_some_directory_needs_room_for_each_and_all_for_all() -> None:
    def wrong(*sizes: int) -> list[str]:
        partitions = [placed(partition=number, size_bytes=size * GB) for number, size in enumerate(sizes)]
        targets = plan(*(("orders", number, (1, 3), None) for number in range(len(sizes))))
        return [error.rule for error in room_errors(targets, cluster(*partitions))]

    assert wrong(40, 10) == []
    (largest,) = wrong(41)
    assert "has 40,000,000,000 bytes free in one log directory, and orders-0 has 41,000,000,000" in largest
    (together,) = wrong(30, 21)
    assert "has 50,000,000,000 bytes free, and the plan copies 51,000,000,000 there" in together


def test_directories_of_one_volume_count_once() -> None:
    one_volume = (LogDirectory(A, 100 * GB, 40 * GB), LogDirectory(B, 100 * GB, 40 * GB))
    partitions = [placed(partition=number, size_bytes=25 * GB) for number in range(2)]
    targets = plan(*(("orders", number, (1, 3), None) for number in range(2)))
    (found,) = room_errors(targets, cluster(*partitions, directories=one_volume))
    assert "has 40,000,000,000 bytes free, and the plan copies 50,000,000,000" in found.rule
    named = plan(("orders", 0, (1, 3), ("any", A)), ("orders", 1, (1, 3), ("any", B)))
    assert room_errors(named, cluster(*partitions, directories=one_volume)) != ()
    assert room_errors(named, cluster(*partitions, directories=(BOTH[0], LogDirectory(B, 99 * GB, 40 * GB)))) == ()


def test_what_is_unknown_is_no_error() -> None:
    big = placed(size_bytes=500 * GB)
    targets = plan(("orders", 0, (1, 3), (B, "any")))
    assert room_errors(targets, cluster(big, directories=(LogDirectory(A), LogDirectory(B)))) == ()
    assert room_errors(targets, cluster(placed(size_bytes=None))) == ()
    assert room_errors(plan(("orders", 0, (1, 9), None)), cluster(big)) == ()
