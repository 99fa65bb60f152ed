"""Offset of a group on the target, by syncs: against the translation, and against where records really are."""

from __future__ import annotations

from hypothesis import given

from headroom.planning.migration import translate
from headroom.planning.migration.mirrors.exact_place import ExactPlace
from headroom.planning.migration.mirrors.reader_offsets import OffsetBasis, ReaderOffset, by_link, by_place, by_syncs
from headroom.planning.migration.readings import LogOffsets
from headroom.schemas.keys import TopicPartition
from tests.unit.planning.migration.mirror import KEEPS_TARGET, Mirror, mirrors

NAME, MIRRORED = TopicPartition("orders", 0), TopicPartition("old.orders", 0)
LOG = LogOffsets(0, 1_000, 1_000)


def reader(committed: int) -> ReaderOffset:
    return ReaderOffset(NAME, MIRRORED, committed)


@given(mirrors(KEEPS_TARGET))
def test_a_group_reads_again_at_most_as_many_as_promised(mirror: Mirror) -> None:
    """Each record that it has read and that is behind its offset on the target, once or several times, counts once."""
    log, target = LogOffsets(0, mirror.origin, mirror.origin), LogOffsets(0, mirror.end, mirror.end)
    for committed in range(mirror.origin + 1):
        found = by_syncs(reader(committed), log, target, mirror.syncs)
        assert found.target_offset == translate(mirror.syncs, committed)
        assert (found.basis is None) == (found.target_offset is None) == bool(found.reason)
        if found.target_offset is not None:
            again = {own for at, own in mirror.copies.items() if at >= found.target_offset and own < committed}
            assert found.may_repeat is not None
            assert len(again) <= found.may_repeat
            assert found.skipped == 0


def test_an_offset_before_the_log_start_of_the_target_skips_what_is_deleted() -> None:
    found = by_syncs(reader(150), LOG, LogOffsets(120, 1_000, 1_000), [(100, 100)])
    assert (found.target_offset, found.skipped, found.may_repeat) == (120, 19, 49)


def test_an_offset_at_the_ends_of_the_logs_is_one_and_beyond_them_none() -> None:
    target = LogOffsets(0, 1_000, 1_000)
    assert by_syncs(reader(1_000), LOG, target, [(999, 999)]).target_offset == 1_000
    assert by_syncs(reader(1_001), LOG, target, [(999, 999)]).target_offset is None
    assert by_syncs(reader(1_000), LOG, target, [(999, 1_000)]).target_offset is None
    assert by_link(reader(1_000), LOG, target).target_offset == 1_000
    assert by_link(reader(1_000), LOG, LogOffsets(0, 999, 999)).target_offset is None


def test_a_place_is_better_than_a_sync_and_none_is_not() -> None:
    rough = by_syncs(reader(150), LOG, LOG, [(100, 100)])
    found = by_place(rough, LOG, LOG, ExactPlace(150, True))
    assert (found.target_offset, found.basis, found.may_repeat, found.sync) == (150, OffsetBasis.NEXT, 0, (100, 100))
    found = by_place(rough, LOG, LOG, None)
    assert (found.target_offset, found.basis, found.may_repeat) == (101, OffsetBasis.SYNC, 49)
    assert found.reason == "its next record was not found on the target; by the sync"
    without = by_syncs(reader(50), LOG, LOG, [(100, 100)])
    assert by_place(without, LOG, LOG, None).target_offset is None
    found = by_place(without, LOG, LOG, ExactPlace(50, False))
    assert (found.target_offset, found.basis, found.reason) == (50, OffsetBasis.BEFORE, "")


def test_unknown_logs_give_no_offset() -> None:
    for log, target in ((LogOffsets(), LOG), (LOG, LogOffsets())):
        assert by_syncs(reader(150), log, target, [(100, 100)]).target_offset is None
        assert by_link(reader(150), log, target).target_offset is None
        assert by_place(reader(150), log, target, ExactPlace(1, True)).target_offset is None
