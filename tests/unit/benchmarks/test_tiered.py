"""The group tiered: its topics, and when a log has only its active segment left to upload."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchmarks.groups.plan.tiered import CASES, TieredCase
from headroom.schemas.keys import TopicPartition
from tests.support.remote_storage import TieredLog

NAME = TopicPartition("orders", 0)
KB = 1000
# Overhead of a batch with one record of 10 kB: 61 bytes, and some more for the record.
RECORD_BYTES = 10_080


class Found(NamedTuple):
    offset: int


class UploadedUpTo:
    """An admin client of a cluster whose leaders have uploaded all up to one offset."""

    def __init__(self, offset: int) -> None:
        self.offset = offset

    def list_partition_offsets(self, specs: dict[TopicPartition, Any]) -> dict[TopicPartition, Found]:
        return dict.fromkeys(specs, Found(self.offset))


def log_of(folder: Path, segments: dict[int, int], local_bytes: int) -> TieredLog:
    (folder / "orders-0").mkdir()
    for first, size in segments.items():
        (folder / "orders-0" / f"{first:020d}.log").write_bytes(bytes(size))
    # What Kafka keeps beside them, and a segment that is being deleted.
    for name in ("00000000000000000100.index", "00000000000000000000.log.deleted", "leader-epoch-checkpoint"):
        (folder / "orders-0" / name).touch()
    return TieredLog(NAME, folder, local_bytes)


@pytest.mark.parametrize(
    ("segments", "last_uploaded", "local_bytes", "expected"),
    [
        pytest.param({100: KB, 200: KB, 300: 100}, 299, 2 * KB, True, id="all but the active one"),
        pytest.param({100: KB, 200: KB, 300: 100}, 199, 2 * KB, False, id="one to upload"),
        pytest.param({100: KB, 200: KB, 300: 100}, -1, 2 * KB, False, id="nothing uploaded"),
        # Without the first segment 1,100 bytes are left.
        pytest.param({100: KB, 200: KB, 300: 100}, 299, 1_100, False, id="one to delete"),
        pytest.param({0: KB, 100: KB, 200: 100}, 199, 2 * KB, False, id="offset 0 is on the disk"),
        pytest.param({100: 100}, 99, 2 * KB, False, id="only the active one"),
    ],
)
def test_a_log_is_tiered_when_nothing_more_is_uploaded_or_deleted(
    tmp_path: Path, segments: dict[int, int], last_uploaded: int, local_bytes: int, expected: bool
) -> None:
    log = log_of(tmp_path, segments, local_bytes)
    assert log.segments() == segments
    assert log.is_tiered(UploadedUpTo(last_uploaded)) is expected


@pytest.mark.parametrize("case", [case for case in CASES if len(set(case.record_bytes)) == 1], ids=lambda c: c.name)
def test_the_option_makes_a_difference_in_every_topic(case: TieredCase) -> None:
    for written in case.written_bytes:
        records, per_segment = written // case.record_bytes[0], case.segment_bytes // RECORD_BYTES
        segments = [per_segment * RECORD_BYTES] * (records // per_segment)
        active = records % per_segment * RECORD_BYTES
        whole = sum(segments) + active
        while whole - segments[0] >= case.local_bytes:
            whole -= segments.pop(0)
        # The first segments are gone, a part of the others is left, and some of it is not uploaded.
        assert len(segments) < records // per_segment
        assert 0 < active < whole / 2
