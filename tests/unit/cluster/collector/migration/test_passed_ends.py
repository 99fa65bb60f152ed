"""The age of the last record below E, as far as readings show it."""

from __future__ import annotations

from dataclasses import replace

from headroom.cluster.collector.migration.passed_ends import PassedEnds
from headroom.cluster.migration.cluster_reader import ClusterReading
from headroom.planning.migration.readings import LogOffsets
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import PartitionAgreement

NAME = TopicPartition("orders", 0)
AGREED = PartitionAgreement("m", 1, "o", "t", "orders", 0, None, None, 700, 0, "migrating")


def seen(*readings: tuple[int, int | None, int | None], agreed: PartitionAgreement = AGREED) -> dict[str, int]:
    """What is kept after readings: their time in seconds, the log end, and the newest timestamp."""
    ends = PassedEnds()
    for at_s, end, newest_ms in readings:
        log = LogOffsets(0, end, end, newest_ms)
        ends.see([agreed], ClusterReading(at_s, at_s * 1000, "o", {NAME: log}))
    return {str(name): newest_ms for name, newest_ms in ends.newest().items()}


def test_it_is_that_of_the_last_reading_before_the_log_went_on() -> None:
    assert seen((1, 690, 900), (2, 699, 1_900)) == {}
    passed = ((1, 690, 900), (2, 699, 1_900), (4, 705, 3_900))
    assert seen(*passed) == {"orders-0": 1_900}
    # For good, also beside readings without it.
    assert seen(*passed, (60, None, None), (90, 900, 89_000)) == {"orders-0": 1_900}


def test_it_is_unknown_if_it_was_not_seen_or_long_before() -> None:
    assert seen((4, 705, 3_900)) == {}
    assert seen((1, 699, 900), (12, 705, 11_900)) == {}
    assert seen((1, 699, None), (2, 705, 1_900)) == {}


def test_another_end_or_cluster_has_nothing_of_before() -> None:
    ends = PassedEnds()
    for agreed, cluster_id in ((AGREED, "o"), (replace(AGREED, end_offset=701), "o"), (AGREED, "x")):
        ends.see([AGREED], ClusterReading(1.0, 1_000, "o", {NAME: LogOffsets(0, 699, 699, 900)}))
        ends.see([agreed], ClusterReading(2.0, 2_000, cluster_id, {NAME: LogOffsets(0, 705, 705, 1_900)}))
        assert bool(ends.newest()) is (agreed is AGREED and cluster_id == "o")
    ends.see([], ClusterReading(3.0, 3_000, "o"))
    assert ends.newest() == {}
