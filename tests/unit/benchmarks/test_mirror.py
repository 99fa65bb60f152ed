"""What groups read on a mirror, and offsets of random mirrors that are translated wrongly."""

from __future__ import annotations

import struct
from random import Random

import pytest

from benchmarks.groups.mirror import random_cases
from benchmarks.groups.mirror.continued import Continued, MirrorCheckpoint, continued, parse_checkpoint
from benchmarks.groups.mirror.random_cases import case_figures
from headroom.planning.migration import translate
from headroom.schemas.keys import TopicPartition

# Records 0 to 5 of the origin. After a restart, 3 and 4 were copied again.
MIRROR = [0, 1, 2, 3, 4, 3, 4, 5]


@pytest.mark.parametrize(
    ("committed", "offset", "expected"),
    [
        (4, 4, Continued(0, 1)),
        (4, 6, Continued(0, 0)),
        (4, 2, Continued(0, 3)),
        (4, 7, Continued(1, 0)),
        (6, 8, Continued(0, 0)),
        (0, 0, Continued(0, 0)),
    ],
)
def test_records_that_a_group_skips_and_reads_again(committed: int, offset: int, expected: Continued) -> None:
    assert continued(committed, 6, MIRROR, offset) == expected


def test_a_checkpoint_is_read_as_mirror_maker_writes_it() -> None:
    key = struct.pack(">h7sh10si", 7, b"billing", 10, b"old.orders", 3)
    value = struct.pack(">hqqh", 0, 700, 751, 0)
    assert parse_checkpoint(key, value) == MirrorCheckpoint("billing", TopicPartition("old.orders", 3), 700, 751)


@pytest.mark.parametrize(("shift", "wrong"), [(0, ()), (-1, ("behind",)), (1, ("past",))])
def test_offsets_that_are_translated_too_low_or_too_high_are_counted(
    shift: int, wrong: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def shifted(syncs: list[tuple[int, int]], offset: int) -> int | None:
        found = translate(syncs, offset)
        return None if found is None else found + shift

    monkeypatch.setattr(random_cases, "translate", shifted)
    behind, past = (figure.value for figure in case_figures(2_000, lambda _: None))
    assert (behind > 0, past > 0) == ("behind" in wrong, "past" in wrong)


def test_random_mirrors_are_the_same_each_time_and_differ() -> None:
    first, again = (
        [random_cases.random_mirror(chance, random_cases.ANY).syncs for _ in range(20)]
        for chance in (Random(1), Random(1))
    )
    assert first == again
    assert len({tuple(syncs) for syncs in first}) > 15
