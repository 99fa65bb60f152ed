"""Syncs that are kept close together: where groups have yet to pass, in bounded number."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from headroom.planning.migration.mirrors import close_syncs, sync_trail
from headroom.planning.migration.mirrors.close_syncs import AHEAD_OFFSETS, CLOSE_OFFSETS, CloseSyncs, PlacesOfGroups
from headroom.planning.migration.mirrors.sync_record import APART_MS, SyncReading, SyncRecord
from headroom.planning.migration.mirrors.sync_trail import SyncTrails, linked_to
from headroom.planning.migration.offset_syncs import translate
from headroom.schemas.keys import TopicPartition

NAME = TopicPartition("orders", 0)
MUCH = 10_000


def held(*origins: int, every_ms: int = 0, first: int = 0) -> CloseSyncs:
    """Syncs of these offsets on the origin; the first one is kept anyway."""
    syncs = CloseSyncs()
    for at, origin in enumerate(origins):
        syncs.hold(SyncRecord(first + at, NAME, origin, origin, at * every_ms), 3)
        if at == 0:
            syncs.keep_newest_anyway()
    return syncs


def kept(syncs: CloseSyncs, places: Sequence[int] | None, now_ms: int = APART_MS, most_held: int = MUCH) -> list[int]:
    return [one.record.origin for one in syncs.waiting(MUCH, most_held, now_ms, lambda: places)]


def test_syncs_that_a_group_has_yet_to_pass_are_kept_at_most_200_offsets_apart() -> None:
    """A sync is left out if those before and after it are close enough; MirrorMaker left out the one at 700."""
    syncs = held(0, 100, 200, 310, 420, 540, 600, 800, 900)
    assert kept(syncs, [0]) == [200, 310, 420, 600, 800]
    # Where the newest one is needed follows from the next one.
    syncs.hold(SyncRecord(9, NAME, 1_050, 1_050, 0), 3)
    assert kept(syncs, [0]) == [200, 310, 420, 600, 800, 900]


def test_syncs_that_all_groups_have_passed_are_dropped() -> None:
    assert kept(held(0, 200, 400, 600, 800), [500, 900]) == [400, 600]
    assert kept(held(0, 200, 400, 600, 800), [800]) == []
    assert kept(held(0, 200, 400, 600, 800), []) == []


def test_a_group_has_the_time_between_two_commits_to_pass_a_sync() -> None:
    syncs = held(0, 200, 400, 600, every_ms=10_000)
    assert kept(syncs, [100], APART_MS - 1) == []
    assert kept(syncs, [100], APART_MS) == []
    # The sync of 10 s is due, and it has not passed it; after 20 s it has.
    assert kept(syncs, [100], APART_MS + 10_000) == [200]
    assert kept(syncs, [600], APART_MS + 20_000) == [200]


def test_while_the_groups_are_unknown_nothing_is_decided() -> None:
    syncs = held(0, 200, 400, 600)
    assert kept(syncs, None) == []
    assert kept(syncs, [0]) == [200, 400]


def test_a_group_that_has_stopped_long_ago_keeps_only_what_is_near_it() -> None:
    far = AHEAD_OFFSETS + 1_000
    assert kept(held(0, 200, 400, far, far + 300, far + 600), [150]) == [200, 400]


def test_each_sync_is_linked_to_the_last_one_that_is_kept_anyway() -> None:
    syncs = held(0, 200, 400, 600, first=5)
    syncs.keep_newest_anyway()
    syncs.hold(SyncRecord(9, NAME, 900, 900, 0), 3)
    syncs.hold(SyncRecord(10, NAME, 1_200, 1_200, 0), 3)
    waiting = syncs.waiting(MUCH, MUCH, APART_MS, lambda: [0])
    assert [(one.record.offset, one.after, one.leader_epoch) for one in waiting] == [(6, 5, 3), (7, 5, 3), (9, 8, 3)]


def test_what_is_confirmed_is_kept_and_the_rest_is_sent_again() -> None:
    syncs = held(0, 200, 400, 600, 800)
    assert [one.record.offset for one in syncs.waiting(2, MUCH, APART_MS, lambda: [0])] == [1, 2]
    syncs.confirm({1, 2, 7})
    assert kept(syncs, [0]) == [600]


def test_their_number_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the number that is held the oldest ones are decided at once; without a decision they are dropped."""
    origins = [CLOSE_OFFSETS * at for at in range(20)]
    early = held(*origins, every_ms=1)
    assert kept(early, [0], 100, most_held=8) == origins[1:12][::2]
    late = held(*origins, every_ms=1)
    late.limit(8)
    assert kept(late, [0], 1_000_000) == origins[12:19]
    monkeypatch.setattr(close_syncs, "MOST_KEPT", 5)
    few = held(*origins)
    assert kept(few, [0]) == origins[1:6]
    few.confirm(range(1, 4))
    for at in range(20, 30):
        few.hold(SyncRecord(at, NAME, CLOSE_OFFSETS * at, 0, 0), 3)
    assert kept(few, [0]) == origins[4:6]


def test_the_number_of_all_partitions_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The groups of 200 partitions are unknown for a while: 100 syncs of each would be 20,000."""
    monkeypatch.setattr(sync_trail, "_MOST_CLOSE", 1_000)
    monkeypatch.setattr(sync_trail, "_MOST_OF_MANY", 5_000)
    names = [TopicPartition("orders", partition) for partition in range(200)]
    trails = SyncTrails()
    for part in range(11):
        every = range(10 * part, 10 * (part + 1)) if part < 10 else range(0)
        records = [SyncRecord(0, name, 300 * at, 300 * at, at) for name in names for at in every]
        trails.add(SyncReading(frozenset(names), "s", 1, part == 0, 0, 0, True, records))
        assert trails.between(names[0], MUCH, 10 * APART_MS, lambda: None) == []
    # The newest one waits for the next.
    assert [len(trails.between(name, MUCH, 10 * APART_MS, group_at(0))) for name in names] == [24] * 200


def test_a_sync_of_an_unknown_leader_is_not_kept_because_it_cannot_be_stored() -> None:
    syncs = held(0)
    syncs.hold(SyncRecord(1, NAME, 300, 300, 0), None)
    syncs.hold(SyncRecord(2, NAME, 600, 600, 0), 3)
    syncs.hold(SyncRecord(3, NAME, 900, 900, 0), 3)
    assert kept(syncs, [0]) == [600]


def group_at(place: int) -> PlacesOfGroups:
    return lambda: [place]


@pytest.mark.parametrize("per_s", [200, 2_000])
def test_a_group_that_stopped_behind_the_compacted_topic_reads_at_most_200_records_again(per_s: int) -> None:
    """It stops after 50 s, and the mirror goes on for four minutes, with a sync for every 100 records."""
    trails = SyncTrails()
    stored: list[tuple[int, int | None, int, int]] = []
    stopped = 50 * per_s + 77
    for now_s in range(300):
        first, end = now_s * per_s // 100, (now_s + 1) * per_s // 100
        records = [SyncRecord(at, NAME, 100 * at, 100 * at, now_s * 1_000) for at in range(first, end)]
        trails.add(SyncReading(frozenset({NAME}), "s", 1, now_s == 0, first, end, True, records))
        # It commits every 5 s, and is a second behind.
        place = min(stopped, max(0, (now_s // 5 * 5 - 1) * per_s))
        now_ms = (now_s + 1) * 1_000
        sent = [*trails.waiting(NAME, 256, now_ms), *trails.between(NAME, 256, now_ms, group_at(place))]
        trails.confirm({NAME: {one.record.offset for one in sent}})
        stored += [(one.record.offset, one.after, one.record.origin, one.record.target) for one in sent]
    # Compaction has left the last of them.
    syncs = linked_to(stored, max(offset for offset, *_ in stored))
    continued = translate(syncs, stopped)
    assert continued is not None
    assert 0 <= stopped - continued <= CLOSE_OFFSETS
    # What it passed in time is a sync every 30 s.
    assert len([origin for _, _, origin, _ in stored if origin < 45 * per_s]) == 2


def test_a_place_by_all_kept_syncs_is_never_past_one_by_those_that_are_left() -> None:
    """Each of the close ones may be lost or deleted by itself: the others are a chain without it."""
    chain = [(0, None, 0, 0), (50, 0, 500, 500), (100, 50, 1_000, 1_000)]
    close = [(10, 0, 100, 100), (20, 0, 200, 200), (70, 50, 700, 700)]
    assert linked_to([*chain, *close], 100) == [(0, 0), (100, 100), (200, 200), (500, 500), (700, 700)]
    assert linked_to([*chain, close[1]], 100) == [(0, 0), (200, 200), (500, 500)]
    # Those beyond the last link do not count: what is between them and the topic is unknown.
    assert linked_to([*chain[:2], close[2]], 100) == []
