"""Offset syncs as they are read: the newest one, those to keep, and which of the kept ones still count."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from headroom.planning.migration.mirrors import close_syncs
from headroom.planning.migration.mirrors.sync_record import APART_MS, KeptSync, SyncReading, SyncRecord
from headroom.planning.migration.mirrors.sync_trail import SyncTrails, linked_to
from headroom.planning.migration.offset_syncs import translate
from headroom.schemas.bounds import MOST_IN_ARRAY
from headroom.schemas.keys import TopicPartition

NAME, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
NAMES = frozenset({NAME})
LATE_MS = 10**9


def record(offset: int, origin: int, target: int, written_ms: int | None = None) -> SyncRecord:
    """A sync; each is written 30 s after the one before it in the topic."""
    return SyncRecord(offset, NAME, origin, target, offset * APART_MS if written_ms is None else written_ms)


def reading(begin: int, end: int, *records: SyncRecord, restart: bool = False, is_all: bool = True) -> SyncReading:
    return SyncReading(NAMES, "s", 3, restart, begin, end, is_all, records)


def offsets(kept: Sequence[KeptSync]) -> list[tuple[int, int | None]]:
    return [(one.record.offset, one.after) for one in kept]


@pytest.fixture
def trails() -> SyncTrails:
    return SyncTrails()


def test_each_kept_sync_is_linked_to_the_one_before(trails: SyncTrails) -> None:
    trails.add(reading(0, 3, record(0, 5, 5), record(1, 7, 8), record(2, 9, 10), restart=True))
    kept = trails.waiting(NAME, 9, LATE_MS)
    assert offsets(kept) == [(0, None), (1, 0), (2, 1)]
    assert (kept[2].record.origin, kept[2].record.target, kept[2].leader_epoch) == (9, 10, 3)
    assert trails.newest() == {NAME: (9, 10)}


def test_what_is_not_confirmed_is_sent_again_and_links_go_on_from_what_is(trails: SyncTrails) -> None:
    trails.add(reading(0, 2, record(0, 5, 5), record(1, 7, 8), restart=True))
    assert offsets(trails.waiting(NAME, 1, LATE_MS)) == [(0, None)]
    assert offsets(trails.waiting(NAME, 1, LATE_MS)) == [(0, None)]
    trails.confirm({NAME: {0}})
    assert offsets(trails.waiting(NAME, 9, LATE_MS)) == [(1, 0)]
    trails.confirm({NAME: {1}})
    trails.add(reading(2, 3, record(2, 9, 10)))
    assert offsets(trails.waiting(NAME, 9, LATE_MS)) == [(2, 1)]


@pytest.mark.parametrize(("origin", "target"), [(6, 99), (99, 7)])
def test_a_log_that_went_back_breaks_the_chain(trails: SyncTrails, origin: int, target: int) -> None:
    trails.add(reading(0, 3, record(0, 5, 5), record(1, 7, 8), record(2, origin, target), restart=True))
    assert offsets(trails.waiting(NAME, 9, LATE_MS)) == [(2, None)]
    assert trails.newest() == {NAME: (origin, target)}


def test_an_offset_that_is_missing_between_two_readings_breaks_the_chain(trails: SyncTrails) -> None:
    """Compaction may have removed a rewind that was not read."""
    trails.add(reading(0, 2, record(0, 5, 5), record(1, 7, 8), restart=True))
    trails.confirm({NAME: {1}})
    trails.add(reading(2, 5, record(3, 9, 10), record(4, 11, 12)))
    assert offsets(trails.waiting(NAME, 9, LATE_MS)) == [(3, None), (4, 3)]


def test_an_offset_that_is_missing_within_a_reading_breaks_nothing(trails: SyncTrails) -> None:
    """Of a partition compaction removes only what is older than all that is left."""
    trails.add(reading(0, 9, record(2, 5, 5), record(7, 7, 8), restart=True))
    assert offsets(trails.waiting(NAME, 9, LATE_MS)) == [(2, None), (7, 2)]
    # All of it was read: its newest sync is the partition's, whatever is missing before.
    trails.add(reading(9, 10, record(9, 9, 10)))
    assert offsets(trails.waiting(NAME, 9, LATE_MS)) == [(2, None), (7, 2), (9, 7)]


def test_a_part_of_the_topic_does_not_show_that_nothing_is_missing_in_it(trails: SyncTrails) -> None:
    trails.add(reading(0, 2, record(0, 5, 5), record(1, 7, 8), restart=True, is_all=False))
    # Offset 3 may have been a rewind of the partition that compaction has removed because of offset 5.
    trails.add(reading(2, 5, SyncRecord(4, OTHER, 1, 1, 0), is_all=False))
    assert trails.newest() == {}
    trails.add(reading(5, 6, record(5, 9, 10)))
    assert offsets(trails.waiting(NAME, 9, LATE_MS)) == [(5, None)]


def test_syncs_within_half_a_minute_are_left_out_until_no_other_follows(trails: SyncTrails) -> None:
    quick = [record(at, 10 * at, 10 * at, at * 1_000) for at in range(45)]
    trails.add(reading(0, 45, *quick, restart=True))
    assert offsets(trails.waiting(NAME, 9, 45_000)) == [(0, None), (30, 0)]
    assert trails.newest() == {NAME: (440, 440)}
    # Compaction will leave the newest one alone. Without it the chain would end before.
    assert offsets(trails.waiting(NAME, 9, 44_000 + APART_MS)) == [(0, None), (30, 0), (44, 30)]


def test_memory_is_bounded_and_the_first_and_the_last_stay(trails: SyncTrails) -> None:
    trails.add(reading(0, 5_000, *(record(at, at, at) for at in range(5_000)), restart=True))
    kept = trails.waiting(NAME, 10_000, LATE_MS)
    assert len(kept) <= MOST_IN_ARRAY
    assert (kept[0].record.offset, kept[0].after, kept[-1].record.offset) == (0, None, 4_999)
    assert [one.after for one in kept[1:]] == [one.record.offset for one in kept[:-1]]


def test_what_says_nothing_or_has_no_time_is_not_kept(trails: SyncTrails) -> None:
    nothing = [record(1, -1, 8), record(2, 8, -1)]
    trails.add(reading(0, 4, record(0, 5, 5), *nothing, record(3, 7, 8), restart=True))
    assert offsets(trails.waiting(NAME, 9, LATE_MS)) == [(0, None), (3, 0)]
    trails.add(reading(4, 6, record(4, 9, 9, -1), record(5, 11, 11)))
    assert offsets(trails.waiting(NAME, 9, LATE_MS)) == [(5, None)]
    assert trails.newest() == {NAME: (11, 11)}


def test_a_topic_with_another_log_begins_again(trails: SyncTrails) -> None:
    trails.add(reading(0, 2, record(0, 5, 5), record(1, 7, 8), restart=True))
    trails.add(SyncReading(NAMES, "s2", 4, True, 0, 1, True, [record(0, 9, 10)]))
    assert (trails.topic_id, offsets(trails.waiting(NAME, 9, LATE_MS))) == ("s2", [(0, None)])
    assert trails.waiting(OTHER, 9, LATE_MS) == []


def test_a_chain_reaches_from_the_topic_back_to_the_first_break() -> None:
    chain = [(10, None, 1, 1), (20, 10, 2, 2), (30, 20, 3, 3), (40, 30, 4, 4)]
    assert linked_to(chain, 40) == [(1, 1), (2, 2), (3, 3)]
    # One after the first in the topic shows that nothing is in between.
    assert linked_to(chain, 35) == [(1, 1), (2, 2), (3, 3)]
    # Nothing shows what is between 40 and 50.
    assert linked_to(chain, 50) == []
    # The tick of 30 was lost: what was there is unknown.
    assert linked_to([chain[0], chain[1], chain[3]], 40) == []
    # A second collector found others between the same two.
    assert linked_to([chain[0], chain[1], (25, 20, 2, 3), (32, 25, 3, 4), chain[3]], 40) == [
        *((1, 1), (2, 2), (2, 3), (3, 4)),
    ]
    assert linked_to([*chain[:2], (30, None, 0, 0), chain[3]], 40) == [(0, 0)]
    assert linked_to([*chain, *chain], 40) == [(1, 1), (2, 2), (3, 3)]


class Mirror:
    """A topic of syncs of one partition among those of another, with compaction, and whoever follows and keeps them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.log: list[SyncRecord] = []
        self.end = 0
        self.history: list[tuple[int, int]] = []
        self.kept: dict[int, tuple[int, int | None, int, int]] = {}
        self.trails, self.at, self.is_new = SyncTrails(), 0, True
        self.now_ms = 0

    def write(self, goes_back: bool = False) -> None:
        last = self.history[-1] if self.history else (0, 0)
        self.now_ms += self.random.choice([1_000, 20_000, 60_000])
        if self.random.random() < 0.3 and not goes_back:
            self.log.append(SyncRecord(self.end, OTHER, 1, 1, self.now_ms))
        else:
            # A record may be mirrored twice, but no two are at one offset of the target.
            pair = [last[0] + self.random.randint(0, 9), last[1] + self.random.randint(1, 9)]
            if goes_back:
                pair[self.random.randint(0, 1)] -= 40
            self.history.append((max(0, pair[0]), max(0, pair[1])))
            self.log.append(SyncRecord(self.end, NAME, *self.history[-1], self.now_ms))
        self.end += 1

    def rewind(self) -> None:
        self.write(goes_back=True)

    def compact(self) -> None:
        """Remove what a later record of the same partition replaces, in all but the newest records."""
        until = self.end - self.random.randint(0, 12)
        newest = {record.name: record.offset for record in self.log if record.offset < until}
        self.log = [r for r in self.log if r.offset >= until or r.offset == newest[r.name]]

    def tick(self) -> None:
        begin = 0 if self.is_new else self.at
        most = self.random.choice([2, 5, 100])
        found = [record for record in self.log if record.offset >= begin][:most]
        is_all = len(found) < most
        end = self.end if is_all else found[-1].offset + 1
        self.trails.add(SyncReading(NAMES, "s", 1, self.is_new, begin, end, is_all, found))
        self.at, self.is_new = end, False
        sent = self.trails.waiting(NAME, self.random.choice([1, 50]), self.now_ms)
        places: list[int] | None = self.random.choice(
            [None, [], [max(0, origin - 20) for origin, _ in self.history[-1:]]]
        )
        sent += self.trails.between(NAME, self.random.choice([1, 50]), self.now_ms, lambda: places)
        fate = self.random.random()
        if fate < 0.9:
            for one in sent:
                own = one.record
                self.kept.setdefault(own.offset, (own.offset, one.after, own.origin, own.target))
        # A tick may be written without an acknowledgement, and one that is acknowledged may be lost later.
        if sent and (fate < 0.8 or fate > 0.95):
            self.trails.confirm({NAME: {one.record.offset for one in sent}})

    def outage(self) -> None:
        """Nothing is read for a while, with a rewind that compaction may remove before it is seen."""
        self.rewind()
        for _ in range(self.random.randint(2, 30)):
            self.write()
        self.compact()

    def restart(self) -> None:
        self.trails, self.is_new = SyncTrails(), True


@pytest.mark.parametrize("close_offsets", [5, close_syncs.CLOSE_OFFSETS])
def test_kept_syncs_never_lead_past_what_all_syncs_allow(close_offsets: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is compacted, lost, sent twice or read again: a sync that counts is from after the last rewind."""
    monkeypatch.setattr(close_syncs, "CLOSE_OFFSETS", close_offsets)
    nearer = sum(nearer_by_kept_ones(Mirror(seed)) for seed in range(30))
    # Not one of some thousand offsets, but a good part: they are kept for that.
    assert nearer > 200


def nearer_by_kept_ones(mirror: Mirror) -> int:
    """Check places of readers at moments of a mirror, and return how many are nearer than by the topic alone."""
    nearer = 0
    steps = [mirror.write, mirror.tick, mirror.compact, mirror.rewind, mirror.outage, mirror.restart]
    for step in mirror.random.choices(steps, [60, 40, 3, 0.3, 0.6, 1], k=400):
        step()
        topic = [record for record in mirror.log if record.name == NAME]
        if not topic:
            continue
        in_topic = [(record.origin, record.target) for record in topic]
        joined = [*linked_to(list(mirror.kept.values()), topic[0].offset), *in_topic]
        offset = mirror.random.choice(mirror.history[-60:])[0] + mirror.random.randint(0, 3)
        by_topic, found, by_all = (translate(syncs, offset) for syncs in (in_topic, joined, mirror.history))
        assert found is None or (by_all is not None and found <= by_all)
        assert by_topic is None or found == by_topic
        nearer += found != by_topic
    return nearer
