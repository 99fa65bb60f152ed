"""Translation of offsets by syncs: by hand, against a model of Kafka's own, and against where records really are."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.planning.migration import translate
from tests.unit.planning.migration.kafka_sync_store import KafkaSyncStore
from tests.unit.planning.migration.mirror import KEEPS_TARGET, Mirror, Sync, mirrors

SYNCS = [(100, 200), (150, 251), (180, 290)]


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (0, None),
        (99, None),
        (100, 200),
        (101, 201),
        (149, 201),
        (150, 251),
        (151, 252),
        (179, 252),
        (180, 290),
        (181, 291),
        (2**62, 291),
        (None, None),
        (-1, None),
    ],
)
def test_the_nearest_sync_at_or_before_the_offset_is_used(offset: int | None, expected: int | None) -> None:
    assert translate(SYNCS, offset) == expected


def test_without_a_sync_there_is_no_translation() -> None:
    assert translate([], 100) is None
    assert translate([(-1, 5), (5, -1)], 100) is None
    assert translate(iter(SYNCS), 150) == 251


def test_of_two_syncs_of_a_record_that_was_mirrored_twice_the_later_is_used() -> None:
    assert [translate([(100, 200), (100, 230)], offset) for offset in (99, 100, 101)] == [None, 230, 231]


@pytest.mark.parametrize(
    ("rewound", "expected"),
    [
        # By offsets 99, 100, 149, 150, 200, 300. First the origin, then the target, then both.
        ((120, 300), [None, None, 301, 301, 301, 301]),
        ((149, 300), [None, None, 300, 301, 301, 301]),
        ((200, 10), [None, None, None, None, 10, 11]),
        ((200, 250), [None, None, None, None, 250, 251]),
        ((99, 10), [10, 11, 11, 11, 11, 11]),
        # No rewind: the sync of a record, again.
        ((150, 251), [None, 200, 201, 251, 252, 252]),
    ],
)
def test_a_rewind_of_either_cluster_voids_earlier_syncs(rewound: Sync, expected: list[int | None]) -> None:
    syncs = [(100, 200), (150, 251), rewound]
    assert [translate(syncs, offset) for offset in (99, 100, 149, 150, 200, 300)] == expected


def test_syncs_after_a_rewind_are_compared_with_each_other_alone() -> None:
    syncs = [(100, 200), (150, 10), (160, 30)]
    assert [translate(syncs, offset) for offset in (149, 150, 155, 160, 170)] == [None, 10, 11, 30, 31]


def test_syncs_do_not_show_that_the_target_lost_its_last_record_alone() -> None:
    """A limit: record 2 was at offset 2 of the target, where record 3 is now. MirrorMaker writes no sync for that."""
    mirror = Mirror(max_lag=100)
    mirror.copy(3)
    mirror.flush(1)
    mirror.end = 2
    mirror.copy(3)
    mirror.flush(1)
    assert mirror.syncs == [(0, 0), (2, 2), (5, 4)]
    assert mirror.copies[2] == 3
    assert translate(mirror.syncs, 3) == 3


@given(mirrors())
def test_a_reader_that_continues_there_skips_no_record(mirror: Mirror) -> None:
    last_copies = {origin: target for target, origin in sorted(mirror.copies.items())}
    for offset in range(mirror.origin + 2):
        # From the mirror's position on, all records are still to come, at the end of the target.
        ahead = [target for origin, target in last_copies.items() if offset <= origin < mirror.origin]
        found = translate(mirror.syncs, offset)
        assert found is None or found <= min(ahead, default=mirror.end)


@given(mirrors())
def test_a_later_offset_is_not_translated_to_an_earlier_one(mirror: Mirror) -> None:
    answers = [translate(mirror.syncs, offset) for offset in range(mirror.origin + 2)]
    known = [answer for answer in answers if answer is not None]
    assert answers == [None] * (len(answers) - len(known)) + sorted(known)


def kafka(syncs: list[Sync]) -> KafkaSyncStore:
    store = KafkaSyncStore()
    for origin, target in syncs:
        store.add(origin, target)
    return store


def is_behind(ours: int | None, kafkas: int | None) -> bool:
    """Return whether Kafka has an answer, and ours is none or an earlier offset."""
    return kafkas not in (None, -1) and (ours is None or ours < kafkas)


@given(mirrors(KEEPS_TARGET))
def test_the_answer_is_never_behind_kafkas(mirror: Mirror) -> None:
    store = kafka(mirror.syncs)
    for offset in range(mirror.origin + 2):
        assert not is_behind(translate(mirror.syncs, offset), store.translate(offset))
    # Kafka's answer by the latest sync is the same.
    if mirror.syncs:
        assert translate(mirror.syncs, mirror.syncs[-1][0]) == store.translate(mirror.syncs[-1][0])
        assert translate(mirror.syncs, 10**6) == store.translate(10**6)


@given(
    st.lists(st.tuples(st.integers(0, 55).flatmap(lambda bits: st.integers(1, 2**bits)), st.integers(0, 100))),
    st.data(),
)
def test_the_answer_is_never_behind_kafkas_over_large_distances(steps: list[Sync], data: st.DataObject) -> None:
    syncs = [(0, 0)]
    for step, gap in steps:
        syncs.append((syncs[-1][0] + step, syncs[-1][1] + step + gap))
    near = data.draw(st.sampled_from(syncs))[0]
    for offset in (near - 1, near, near + 1, data.draw(st.integers(0, syncs[-1][0] + 1))):
        assert not is_behind(translate(syncs, offset), kafka(syncs).translate(offset))


def test_kafka_still_uses_syncs_of_a_target_that_was_rewound() -> None:
    """Records 151 to 199 are at offsets 0 to 9 of the new target, at most. Kafka leads a reader of them past all."""
    syncs = [(100, 200), (150, 251), (200, 10)]
    assert kafka(syncs).translate(160) == 252
    assert translate(syncs, 160) is None


def test_the_model_of_kafka_answers_as_its_own_tests_expect() -> None:
    """Source: Kafka 4.0, ``OffsetSyncStoreTest``: testOffsetTranslation and testPastOffsetTranslation."""
    assert kafka([]).translate(0) is None
    assert kafka([(100, 200)]).translate(150) == 201
    assert [kafka([(100, 200), (150, 251)]).translate(offset) for offset in (5, 150)] == [-1, 251]
    assert kafka([(100, 200), (150, 251), (200, 10), (20, 20)]).translate(20) == 20
    store = kafka([(offset, offset) for offset in range(0, 1_001, 10)])
    check_sparse(store, [0, 480, 720])
    check_sparse(store, [990, 1_000])
    for offset in range(1_000, 10_001, 10):
        store.add(offset, offset)
    check_sparse(store, [0, 3_840, 7_680, 8_640, 9_120, 9_600, 9_840, 9_900, 9_960, 9_990, 10_000])
    store = kafka([(offset, offset) for offset in range(1_000, 10_001, 10)])
    check_sparse(store, [1_000, 4_840, 6_760, 8_680, 9_160, 9_640, 9_880, 9_940, 9_970, 9_990, 10_000])
    store.add(1_500, 11_000)
    assert [store.translate(offset) for offset in (1_499, 1_500, 2_000)] == [-1, 11_000, 11_001]


def check_sparse(store: KafkaSyncStore, kept: list[int]) -> None:
    """Check that between each kept sync and the next there is no other."""
    for before, offset in pairwise(kept):
        assert store.translate(offset - 1) == before + 1
        assert [store.translate(offset + step) for step in (0, 1, 2)] == [offset, offset + 1, offset + 1]
