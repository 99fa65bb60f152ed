"""The rate at which clients write to a partition, from sizes of its leader's log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.planning.migration.log_size import LogSize, written_bytes_per_s
from headroom.planning.migration.readings import TopicRules

MB = 1_000_000
RULES = TopicRules("delete", remote_storage=False)
# Records of 1,000 bytes; in 10 s 20,000 of them come.
BEFORE = LogSize(0, 1, 0, 80_000, 80 * MB)
NOW = LogSize(10_000, 1, 0, 100_000, 100 * MB)


def test_the_growth_of_the_log_in_bytes_is_the_rate() -> None:
    assert written_bytes_per_s(BEFORE, NOW, RULES) == 2 * MB
    # 12 MB in 20,000 records, though those of before are larger.
    assert written_bytes_per_s(BEFORE, replace(NOW, size_bytes=92 * MB), RULES) == 1.2 * MB
    assert written_bytes_per_s(BEFORE, replace(BEFORE, read_ms=10_000), RULES) == 0.0


@pytest.mark.parametrize(
    "now",
    [
        # Retention has deleted 50,000 records of 50 MB meanwhile: 50 MB of 50,000 records are left.
        replace(NOW, start=50_000, size_bytes=50 * MB),
        # So it does if the size grew nevertheless: 160 MB of 50,000 records.
        replace(NOW, start=50_000, size_bytes=160 * MB),
        # Another leader has another log, whose growth is none.
        replace(NOW, broker=2),
        # Smaller with the same start: something else was deleted.
        replace(NOW, size_bytes=70 * MB),
    ],
)
def test_otherwise_it_is_the_growth_of_the_log_end_times_the_mean_size_of_the_records(now: LogSize) -> None:
    size, start = now.size_bytes or 0, now.start or 0
    assert written_bytes_per_s(BEFORE, now, RULES) == 2_000 * size / (100_000 - start)


@pytest.mark.parametrize(
    ("before", "now", "rules"),
    [
        (None, NOW, RULES),
        (BEFORE, None, RULES),
        (BEFORE, NOW, None),
        (BEFORE, NOW, TopicRules(remote_storage=False)),
        (BEFORE, NOW, TopicRules("delete")),
        (BEFORE, NOW, TopicRules("compact,delete", remote_storage=False)),
        (BEFORE, NOW, TopicRules("delete", remote_storage=True)),
        # A log end that fell or is unknown, and the same time twice.
        (NOW, replace(BEFORE, read_ms=20_000), RULES),
        (BEFORE, replace(NOW, end=None), RULES),
        (BEFORE, replace(NOW, read_ms=0), RULES),
        # Neither size nor mean size is known; a log without a record has no mean.
        (BEFORE, replace(NOW, size_bytes=None), RULES),
        (BEFORE, replace(NOW, start=None), RULES),
        (replace(BEFORE, start=0), replace(NOW, start=100_000, size_bytes=0), RULES),
    ],
)
def test_a_rate_that_is_not_known_is_none(
    before: LogSize | None, now: LogSize | None, rules: TopicRules | None
) -> None:
    assert written_bytes_per_s(before, now, rules) is None


@pytest.mark.parametrize("rules", [None, TopicRules("compact", remote_storage=False), TopicRules("delete"), RULES])
def test_a_log_end_that_has_not_grown_is_0_whatever_the_topic(rules: TopicRules | None) -> None:
    at_rest = replace(BEFORE, read_ms=10_000, size_bytes=None)
    assert written_bytes_per_s(BEFORE, at_rest, rules) == 0.0
