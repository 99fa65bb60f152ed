"""Room for the copies of a plan: in one go, and batch after batch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headroom.planning.reassignments.cluster_state import (
    BrokerState,
    ClusterState,
    LogDirectory,
    PartitionPlacement,
)
from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.planning.reassignments.room import checks
from headroom.planning.reassignments.room.volumes import with_volumes
from headroom.schemas.config import LogDirVolumes
from headroom.schemas.errors import HeadroomError
from tests.unit.builders.cluster_states import MB, plan_of, state_of
from tests.unit.builders.cluster_states import placed as in_t
from tests.unit.builders.log_dirs import BOTH, GB, A, B, cluster, placed, plan


def room_errors(targets: ReassignmentPlan, state: ClusterState) -> tuple[HeadroomError, ...]:
    return checks.check_room([targets], state).errors


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
    said = f"has 40,000,000,000 bytes free (count as one volume: {A}, {B}), and the plan copies 50,000,000,000 there"
    assert said in found.rule
    assert found.remedy.endswith('set cluster.log_dir_volumes = "separate".')
    named = plan(("orders", 0, (1, 3), ("any", A)), ("orders", 1, (1, 3), ("any", B)))
    (found,) = room_errors(named, cluster(*partitions, directories=one_volume))
    assert (found.subject, said in found.rule) == (f"log directories {A}, {B} of broker 3", True)
    assert room_errors(named, cluster(*partitions, directories=(BOTH[0], LogDirectory(B, 99 * GB, 40 * GB)))) == ()


def test_named_directories_on_one_volume_are_counted_together_beside_another_disk() -> None:
    # 25 GB each to A and B, which share 40 GB; C on another disk has room for all.
    directories = (
        LogDirectory(A, 100 * GB, 40 * GB),
        LogDirectory(B, 100 * GB, 40 * GB),
        LogDirectory("/disk/c", 900 * GB, 500 * GB),
    )
    partitions = [placed(partition=number, size_bytes=25 * GB) for number in range(2)]
    named = plan(("orders", 0, (1, 3), ("any", A)), ("orders", 1, (1, 3), ("any", B)))
    (found,) = room_errors(named, cluster(*partitions, directories=directories))
    assert found.subject == f"log directories {A}, {B} of broker 3"


@pytest.mark.parametrize(("volumes", "fits"), [("separate", True), ("shared", False), ("assumed", False)])
def test_5_tb_fit_onto_two_empty_disks_of_4_tb_if_the_settings_say_so(volumes: str, fits: bool) -> None:
    empty = (LogDirectory(A, 4000 * GB, 4000 * GB), LogDirectory(B, 4000 * GB, 4000 * GB))
    partitions = [placed(partition=number, size_bytes=1000 * GB) for number in range(5)]
    state = with_volumes(cluster(*partitions, directories=empty), LogDirVolumes(volumes))
    targets = plan(*(("orders", number, (1, 3), None) for number in range(5)))
    assert (room_errors(targets, state) == ()) is fits


def test_unknown_sizes_space_or_brokers_are_no_error() -> None:
    big = placed(size_bytes=500 * GB)
    targets = plan(("orders", 0, (1, 3), (B, "any")))
    assert room_errors(targets, cluster(big, directories=(LogDirectory(A), LogDirectory(B)))) == ()
    assert room_errors(targets, cluster(placed(size_bytes=None))) == ()
    assert room_errors(plan(("orders", 0, (1, 9), None)), cluster(big)) == ()


def with_disk(*sizes: int, free: int = 1000 * MB, on_3: tuple[int, ...] = ()) -> ClusterState:
    """Return partitions on broker 1, then some on broker 3, all in /a; broker 3 has one disk."""
    first = [in_t(number, (1,), size_bytes=size, log_dirs={1: "/a"}) for number, size in enumerate(sizes)]
    second = [in_t(len(sizes) + n, (3,), size_bytes=size, log_dirs={3: "/a"}) for n, size in enumerate(on_3)]
    return state_of([*first, *second], {3: BrokerState(3, log_dirs=(LogDirectory("/a", 10**12, free),))})


def rules(state: ClusterState, *batches: dict[int, tuple[int, ...]]) -> list[str]:
    return [f"{error.subject} {error.rule}" for error in checks.check_room(list(map(plan_of, batches)), state).errors]


def test_what_earlier_batches_copy_to_a_disk_counts_in_later_ones() -> None:
    # 2 x 600 MB onto 1,000 MB, as one batch or as two.
    state = with_disk(600 * MB, 600 * MB, 300 * MB)
    said = "broker 3 has 1,000,000,000 bytes free, and the plan copies 1,200,000,000 there"
    assert rules(state, {0: (3,), 1: (3,)}) == [f"{said} (t-0, t-1)"]
    assert rules(state, {0: (3,)}, {1: (3,)}) == [f"{said} up to batch 2 (t-0, t-1)"]
    # Once for a broker, however many batches follow.
    assert rules(state, {0: (3,)}, {1: (3,)}, {2: (3,)}) == [f"{said} up to batch 2 (t-0, t-1)"]
    assert rules(state, {0: (3,)}, {2: (3,)}) == []


def test_what_earlier_batches_remove_makes_room_for_later_ones() -> None:
    state = with_disk(600 * MB, 600 * MB, on_3=(250 * MB,))
    away, to_3 = {2: (1,)}, {0: (3,), 1: (3,)}
    assert rules(state, away, to_3) == [], "1,000 + 250 MB free, 1,200 copied"
    # In the same batch, or later, it is too late.
    assert len(rules(state, {**away, **to_3})) == len(rules(state, to_3, away)) == 1
    larger = with_disk(600 * MB, 700 * MB, on_3=(250 * MB,))
    assert rules(larger, away, to_3) == [
        "broker 3 has 1,000,000,000 bytes free and gets 250,000,000 more from earlier batches, and the plan copies "
        "1,300,000,000 there up to batch 2 (t-0, t-1)"
    ]


def test_a_replica_that_changes_its_directory_makes_room_in_the_one_that_it_left() -> None:
    leaving = placed(partition=1, size_bytes=8 * GB, log_dirs={1: B, 2: B})
    leave_b, to_b = plan(("orders", 1, (1, 2), (A, "any"))), plan(("orders", 0, (1, 2), (B, "any")))
    # 10 GB are free in B.
    (found,) = checks.check_room([leave_b, to_b], cluster(placed(size_bytes=30 * GB), leaving)).errors
    assert found.subject == f"log directory {B} of broker 1"
    assert "has 10,000,000,000 bytes free and gets 8,000,000,000 more from earlier batches" in found.rule
    assert checks.check_room([leave_b, to_b], cluster(placed(size_bytes=17 * GB), leaving)).errors == ()


@pytest.mark.parametrize("lost", [{"offline": True}, {"cordoned": True}])
def test_a_replica_that_leaves_an_offline_or_cordoned_directory_frees_no_room(lost: dict[str, bool]) -> None:
    directories = (LogDirectory(A, 100 * GB, 10 * GB, **lost), LogDirectory(B, 100 * GB, 5 * GB))
    leaving = placed(partition=1, size_bytes=8 * GB, replicas=(3,), isr=(3,), leader=3, log_dirs={3: A})
    state = cluster(placed(size_bytes=6 * GB), leaving, directories=directories)
    batches = [plan(("orders", 1, (1,), None)), plan(("orders", 0, (1, 3), None))]
    assert "broker 3" in [error.subject for error in checks.check_room(batches, state).errors]


def test_a_named_copy_leaves_less_for_one_whose_directory_the_broker_chooses() -> None:
    # 30 GB to A leave 10 GB there, and B has 25 GB: no directory has room for 28 GB, although both together have.
    directories = (LogDirectory(A, 100 * GB, 40 * GB), LogDirectory(B, 99 * GB, 25 * GB))
    partitions = [placed(partition=number, size_bytes=size * GB) for number, size in enumerate((30, 28))]
    targets = plan(("orders", 0, (1, 3), ("any", A)), ("orders", 1, (1, 3), None))
    (found,) = room_errors(targets, cluster(*partitions, directories=directories))
    assert "has 25,000,000,000 bytes free in one log directory, and orders-1 has 28,000,000,000" in found.rule


def test_a_running_copy_needs_room_for_its_remaining_bytes_only() -> None:
    running = placed(size_bytes=12 * GB, replicas=(1, 2, 3), adding=(3,), copied_bytes={3: 7 * GB})
    directories = (LogDirectory(A, 100 * GB, 6 * GB),)
    targets = plan(("orders", 0, (1, 3), None))
    assert room_errors(targets, cluster(running, directories=directories)) == ()
    unknown = placed(size_bytes=12 * GB, replicas=(1, 2, 3), adding=(3,))
    assert room_errors(targets, cluster(unknown, directories=directories)) != ()


def test_a_new_replica_needs_no_room_for_what_is_in_remote_storage() -> None:
    targets = plan(("orders", 0, (1, 3), None))
    assert room_errors(targets, cluster(placed(size_bytes=60 * GB)))
    assert room_errors(targets, cluster(placed(size_bytes=60 * GB, untiered_bytes=4 * GB))) == ()


def test_a_move_to_another_directory_copies_the_whole_log() -> None:
    targets = plan(("orders", 0, (1, 2), (B, A)))
    (found,) = room_errors(targets, cluster(placed(size_bytes=60 * GB, untiered_bytes=4 * GB)))
    assert "copies 60,000,000,000" in found.rule


def test_a_broker_whose_directories_are_all_cordoned_needs_room_all_the_same() -> None:
    directories = (LogDirectory(A, 1000 * GB, 10 * GB, cordoned=True),)
    state = cluster(placed(size_bytes=600 * GB), directories=directories)
    (found,) = room_errors(plan(("orders", 0, (1, 3), None)), state)
    assert "has 10,000,000,000 bytes free in one log directory, and orders-0 has 600,000,000,000" in found.rule


def beside(*running: PartitionPlacement, free: int, directories: tuple[LogDirectory, ...] = ()) -> ClusterState:
    """Return a partition of 400 GB, moves of others that run, and the free bytes of the only directory."""
    found = directories or (LogDirectory(A, 2000 * GB, free),)
    return cluster(placed(size_bytes=400 * GB), *running, directories=found)


def test_what_others_still_copy_to_a_broker_needs_its_room_too() -> None:
    # 1,000 GB, 350 of them copied: 650 are left, and 650 + 400 = 1,050.
    other = placed("other", size_bytes=1000 * GB, replicas=(1, 2, 3), adding=(3,), copied_bytes={3: 350 * GB})
    targets = plan(("orders", 0, (1, 3), None))
    for number, running in enumerate((other, replace(other, log_dirs={1: A, 2: A, 3: A}))):
        assert room_errors(targets, beside(running, free=1050 * GB)) == (), number
        (found,) = room_errors(targets, beside(running, free=950 * GB))
        assert found.subject == "broker 3", number
        assert "reassignments that run already copy 650,000,000,000 more there" in found.rule, number
    # What is part of the plan counts once, and what others copy to another broker not at all.
    both = plan(("orders", 0, (1, 3), None), ("other", 0, (1, 2, 3), None))
    assert room_errors(both, beside(other, free=1050 * GB)) == ()
    elsewhere = replace(other, replicas=(1, 3, 2), adding=(2,), copied_bytes={})
    assert room_errors(targets, beside(elsewhere, free=400 * GB)) == ()


def test_what_others_copy_to_a_named_directory_leaves_less_there() -> None:
    other = placed("other", size_bytes=30 * GB, replicas=(1, 2, 3), adding=(3,), log_dirs={1: A, 2: A, 3: B})
    directories = (LogDirectory(A, 900 * GB, 500 * GB), LogDirectory(B, 800 * GB, 410 * GB))
    to_b, to_a = (plan(("orders", 0, (1, 3), ("any", path))) for path in (B, A))
    (found,) = room_errors(to_b, beside(other, free=0, directories=directories))
    assert found.subject == f"log directory {B} of broker 3"
    assert found.rule.endswith("(orders-0); reassignments that run already copy 30,000,000,000 more there")
    assert room_errors(to_a, beside(other, free=0, directories=directories)) == ()


def test_copies_of_others_whose_size_is_unknown_are_noted() -> None:
    other = placed("other", size_bytes=None, replicas=(1, 2, 3), adding=(3,))
    found = checks.check_room([plan(("orders", 0, (1, 3), None))], beside(other, free=500 * GB))
    (note,) = found.notes
    assert found.errors == ()
    assert "that are being copied there is unknown: other-0. Room for these copies" in note
    # Broker 2 gets no replica of the plan.
    assert checks.check_room([plan(("orders", 0, (1, 2), None))], beside(other, free=500 * GB)).notes == ()


def uneven(*sizes: int, free_b: int = 50, **b: Any) -> ClusterState:
    """Return partitions of some GB, and brokers with 1,000 GB in /a, which has 200 logs, and little in /b."""
    directories = (LogDirectory("/a", 2000 * GB, 1000 * GB, logs=200), LogDirectory("/b", 900 * GB, free_b * GB, **b))
    partitions = [placed(partition=n, size_bytes=size * GB, log_dirs={1: "/a"}) for n, size in enumerate(sizes)]
    return cluster(*partitions, directories=directories)


def to_3(number: int, log_dirs: tuple[str, ...] | None = None) -> ReassignmentPlan:
    return plan(*(("orders", n, (1, 3), log_dirs) for n in range(number)))


def test_a_directory_that_gets_a_copy_because_it_has_the_fewest_logs_needs_room_for_it() -> None:
    state = uneven(100, logs=190)
    (found,) = room_errors(to_3(1), state)
    assert found.subject == "log directory /b of broker 3"
    assert found.rule == (
        "has 50,000,000,000 bytes free, and the broker puts at least 1 of the plan's new replicas there, "
        "100,000,000,000 bytes or more, because it has the fewest logs"
    )
    assert "Name log_dirs" in found.remedy
    assert room_errors(to_3(1, ("any", "/a")), state) == ()
    # It has room, gets none, or the numbers of logs are unknown.
    for roomy in (uneven(100, free_b=100, logs=190), uneven(100, logs=201), uneven(100)):
        assert checks.check_room([to_3(1)], roomy) == checks.RoomCheck(())


def test_a_directory_that_may_get_the_larger_copy_is_noted() -> None:
    # Each directory gets one of both: 30 GB fit into /b, 60 GB do not.
    found = checks.check_room([to_3(2)], uneven(30, 60, logs=200))
    assert found.errors == ()
    assert found.notes == (
        "/b of broker 3 has 50.0 GB free. Up to 1 new replicas, 60.0 GB, may go there, because the broker chooses the "
        "directory with the fewest logs. To be sure, name log_dirs.",
    )
    # Of two batches it gets one, or both.
    (orders_0, orders_1) = (plan(("orders", n, (1, 3), None)) for n in (0, 1))
    later = checks.check_room([orders_0, orders_1], uneven(1, 60, logs=199))
    assert (later.errors, len(later.notes)) == ((), 1)


def test_all_copies_to_a_cordoned_broker_go_into_one_directory() -> None:
    directories = tuple(replace(d, cordoned=True, logs=1) for d in BOTH)
    state = cluster(*(placed(partition=n, size_bytes=22 * GB) for n in range(2)), directories=directories)
    # 40 and 10 GB are free: together enough for 44, but none alone.
    (found,) = room_errors(to_3(2), state)
    assert "has 40,000,000,000 bytes free in one log directory. All of them are cordoned" in found.rule
