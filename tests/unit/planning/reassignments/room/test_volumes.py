"""Which directories count as one volume, everywhere that room or capacity is counted."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.planning.reassignments.cluster_state import BrokerState, LogDirectory
from headroom.planning.reassignments.generation.broker_loads import DiskSpace
from headroom.planning.reassignments.room.volumes import assumption_notes, volumes_of, with_volumes
from headroom.schemas.config import LogDirVolumes
from tests.unit.builders.cluster_states import state_of

GB = 10**9
EMPTY = LogDirectory("/a", 4000 * GB, 4000 * GB)


def groups(*directories: LogDirectory) -> list[str]:
    return sorted("".join(path[1:] for path in sorted(volume.paths)) for volume in volumes_of(directories))


def other(directory: LogDirectory, **changes: object) -> LogDirectory:
    return replace(directory, **{"path": "/b", **changes})  # type: ignore[arg-type]


def test_equal_empty_disks_count_as_one_volume() -> None:
    assert groups(EMPTY, other(EMPTY)) == ["ab"]


def test_directories_whose_free_space_differs_by_a_few_writes_are_one_volume() -> None:
    assert groups(EMPTY, other(EMPTY, usable_bytes=4000 * GB - 4096)) == ["ab"]
    (volume,) = volumes_of([EMPTY, other(EMPTY, usable_bytes=4000 * GB - 4096)])
    assert (volume.total_bytes, volume.usable_bytes, volume.is_assumed) == (4000 * GB, 4000 * GB - 4096, True)


@pytest.mark.parametrize("differs", [{"total_bytes": 4000 * GB + 1}, {"usable_bytes": 3990 * GB}])
def test_other_sizes_or_free_bytes_are_those_of_another_volume(differs: dict[str, int]) -> None:
    assert groups(EMPTY, other(EMPTY, **differs)) == ["a", "b"]
    assert not any(volume.is_assumed for volume in volumes_of([EMPTY, other(EMPTY, **differs)]))


def test_logs_that_do_not_fit_together_into_the_used_bytes_are_on_volumes_of_their_own() -> None:
    # 1,000 GB are used of each: one volume would have the logs of both, 1,800 GB.
    used = LogDirectory("/a", 4000 * GB, 3000 * GB, logs_bytes=900 * GB)
    assert groups(used, other(used)) == ["a", "b"]
    # 450 GB each may be on one volume, with 100 GB of other files.
    half = replace(used, logs_bytes=450 * GB)
    assert groups(half, other(half)) == ["ab"]
    # A full disk of the same numbers beside two directories on one: it cannot be with either of them.
    assert groups(half, other(half), replace(used, path="/c")) == ["ab", "c"]


def test_unknown_numbers_are_a_volume_of_their_own() -> None:
    unknown = LogDirectory("/a")
    assert [(v.paths, v.total_bytes, v.usable_bytes) for v in volumes_of([unknown, EMPTY])] == [
        (("/a",), None, None),
        (("/a",), 4000 * GB, 4000 * GB),
    ]
    assert groups(unknown, other(unknown)) == ["a", "b"]


def test_the_settings_win_over_the_numbers() -> None:
    state = state_of([], {3: BrokerState(3, log_dirs=(EMPTY, other(EMPTY, usable_bytes=1000 * GB)))})
    shared = with_volumes(state, LogDirVolumes.SHARED).brokers[3].log_dirs
    (volume,) = volumes_of(shared)
    # What the datasets of one pool report: sizes and free bytes may differ.
    assert (volume.usable_bytes, volume.is_assumed) == (1000 * GB, False)
    equal = state_of([], {3: BrokerState(3, log_dirs=(EMPTY, other(EMPTY)))})
    assert groups(*with_volumes(equal, LogDirVolumes.SEPARATE).brokers[3].log_dirs) == ["a", "b"]
    assert with_volumes(equal, LogDirVolumes.ASSUMED) == equal


def test_an_assumed_volume_is_noted_once_for_all_brokers_with_these_directories() -> None:
    brokers = [BrokerState(broker, log_dirs=(EMPTY, other(EMPTY))) for broker in (3, 1, 2)]
    (note,) = assumption_notes(brokers)
    assert note.startswith("Log directories /a, /b of brokers 1, 2, 3 count as one volume")
    assert note.endswith('set cluster.log_dir_volumes = "separate".')
    assert list(assumption_notes([BrokerState(1, log_dirs=(EMPTY,))])) == []


def test_a_plan_that_is_made_counts_one_volume_once_and_needs_a_directory_with_room() -> None:
    one_volume = DiskSpace({3: BrokerState(3, log_dirs=(EMPTY, other(EMPTY)))}, [3])
    one_volume.take(3, 3000 * GB)
    assert (one_volume.fits(3, 1000 * GB), one_volume.fits(3, 1001 * GB)) == (True, False)
    two = DiskSpace({3: BrokerState(3, log_dirs=(EMPTY, other(EMPTY, usable_bytes=2000 * GB)))}, [3])
    assert (two.fits(3, 4000 * GB), two.fits(3, 4001 * GB)) == (True, False), "no directory has room for it"
    cordoned = DiskSpace(
        {3: BrokerState(3, log_dirs=(replace(EMPTY, cordoned=True), other(EMPTY, usable_bytes=GB)))}, [3]
    )
    assert not cordoned.fits(3, 2 * GB)


directories = st.builds(
    LogDirectory,
    st.sampled_from(["/a", "/b", "/c", "/d", "/e"]),
    st.sampled_from([None, 100 * GB, 200 * GB]),
    st.sampled_from([None, 50 * GB, 50 * GB + 4096, 51 * GB, 60 * GB]),
    logs_bytes=st.sampled_from([0, 10 * GB, 40 * GB]),
    volume=st.sampled_from([None, None, "x"]),
)


@given(st.lists(directories, unique_by=lambda directory: directory.path), st.randoms())
def test_every_directory_is_on_one_volume_in_whatever_order_they_are_listed(
    found: list[LogDirectory], chance: Random
) -> None:
    assert sorted(path for volume in volumes_of(found) for path in volume.paths) == sorted(d.path for d in found)
    shuffled = list(found)
    chance.shuffle(shuffled)
    assert groups(*shuffled) == groups(*found)
