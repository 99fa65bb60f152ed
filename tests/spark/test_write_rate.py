"""The write rate of a partition, and when there is none. Every case is a partition of the same tick."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from headroom.streaming.transforms.moves.write_rate import with_write_rate
from tests.spark.support import frame
from tests.spark.ticks import TICK_MS, WINDOW_MS, log, move

MB = 1_000_000
Rate = tuple[float | None, str | None]


def sample(end: int = 90_000, rate: float = 2 * MB, **more: Any) -> dict[str, Any]:
    """The log of the leader, broker 1: records of 1,000 bytes, 20,000 of them in the window of 10 s."""
    return log(1, end, rate, **more)


def before(**more: Any) -> dict[str, Any]:
    return {name: value for name, value in sample(**more).items() if "lag" not in name and "unchanged" not in name}


def counters(bytes_in: int, messages_in: int) -> dict[str, int]:
    """Counters of the topic on the leader that grew by so much from 500."""
    return {
        "read_ms": TICK_MS,
        "bytes_in": 500 + bytes_in,
        "messages_in": 500 + messages_in,
        "prev_read_ms": TICK_MS - WINDOW_MS,
        "prev_bytes_in": 500,
        "prev_messages_in": 500,
    }


# 40 MB in 80,000 messages are 500 bytes a message: 20,000 offsets in 10 s are 1 MB/s.
HALF = counters(40 * MB, 80_000)
RETENTION = {"log_start_offset": 100}

CASES: dict[str, tuple[dict[str, Any], Rate]] = {
    "the log's growth in bytes comes first": ({"logs": [sample()], "topic_counters": HALF}, (2 * MB, "log_size")),
    "nothing written is a rate of 0": ({"logs": [sample(rate=0)]}, (0, "log_size")),
    "retention that moved the start leaves the end offset": (
        {"logs": [sample(**RETENTION)], "topic_counters": HALF},
        (MB, "end_offset"),
    ),
    "a log that shrank leaves the end offset": (
        {"logs": [sample(prev_size_bytes=10**12)], "topic_counters": HALF},
        (MB, "end_offset"),
    ),
    "a compacted log leaves the end offset": (
        {"compacted": True, "logs": [sample()], "topic_counters": HALF},
        (MB, "end_offset"),
    ),
    "a log that may be compacted leaves the end offset": (
        {"compacted": None, "logs": [sample()], "topic_counters": HALF},
        (MB, "end_offset"),
    ),
    "an end offset that stands still is 0 without counters": (
        {"compacted": True, "logs": [sample(rate=0)]},
        (0, "end_offset"),
    ),
    "a compacted log without counters is unknown": ({"compacted": True, "logs": [sample()]}, (None, None)),
    "bytes that fell give no rate": (
        {"logs": [sample(**RETENTION)], "topic_counters": counters(-1, 80_000)},
        (None, None),
    ),
    "messages that fell give no rate": (
        {"logs": [sample(**RETENTION)], "topic_counters": counters(40 * MB, -1)},
        (None, None),
    ),
    "growth that the counters have not seen gives no rate": (
        {"logs": [sample(**RETENTION)], "topic_counters": counters(0, 0)},
        (None, None),
    ),
    "a log that was cut has no rate": (
        {"logs": [sample(prev_log_end_offset=90_001)], "topic_counters": HALF},
        (None, None),
    ),
    "a log without an earlier sample has no rate": (
        {"logs": [sample(prev_read_ms=None, prev_log_end_offset=None)], "topic_counters": HALF},
        (None, None),
    ),
    "a sample twice has no rate": ({"logs": [sample(prev_read_ms=TICK_MS)], "topic_counters": HALF}, (None, None)),
    # 20 MB in 40 s.
    "missed ticks make the window longer": (
        {"logs": [sample(prev_read_ms=TICK_MS - 40_000)]},
        (0.5 * MB, "log_size"),
    ),
    "a follower's log does not count": ({"logs": [log(2, 90_000, 2 * MB)], "topic_counters": HALF}, (None, None)),
    "nothing is written to a partition without a leader, whatever was before": (
        {"leader": None, "logs": [sample()], "topic_counters": HALF, "before_log": before()},
        (0, "no_leader"),
    ),
    # Of 20 MB/s written 15 were deleted: the log grew by 5, its end by all of it.
    "segments that went to remote storage leave the end offset": (
        {"remote_storage": True, "logs": [sample(prev_size_bytes=85 * MB)], "topic_counters": HALF},
        (MB, "end_offset"),
    ),
    "so do they before a switch": (
        {
            "remote_storage": True,
            "logs": [sample(rate=0)],
            "before_log": before(prev_size_bytes=85 * MB),
            "before_topic_counters": HALF,
        },
        (MB, "before_switch"),
    ),
    # 90,000,000 bytes lie in 89,900 records; 2,000 records a second came.
    "recompressed records have the mean size of the log, not of what was sent": (
        {"recompressed": True, "logs": [sample(**RETENTION)], "topic_counters": HALF},
        (2000 * 90_000_000 / 89_900, "end_offset"),
    ),
    "recompressed and compacted, what was sent is all that is known": (
        {"recompressed": True, "compacted": True, "logs": [sample()], "topic_counters": HALF},
        (MB, "end_offset"),
    ),
    "after a switch the rate of before holds": (
        {"logs": [sample(rate=0)], "before_log": before()},
        (2 * MB, "before_switch"),
    ),
    "the rate of before may come from the end offset": (
        {"logs": [sample()], "before_log": before(**RETENTION), "before_topic_counters": HALF},
        (MB, "before_switch"),
    ),
    "a sample of before without a rate leaves the new leader's own": (
        {"logs": [sample()], "before_log": before(prev_read_ms=None)},
        (2 * MB, "log_size"),
    ),
    "the rate of before holds where the new leader is not heard": (
        {"logs": [], "before_log": before()},
        (2 * MB, "before_switch"),
    ),
}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[str, Any]:
    rows = [move("t", number, 1, [1, 2]) | row for number, (row, _) in enumerate(CASES.values())]
    collected = with_write_rate(frame(spark, "moves", rows)).collect()
    names = list(CASES)
    return {names[row["partition"]]: row for row in collected}


@pytest.mark.parametrize("case", CASES)
def test_write_rate(found: dict[str, Any], case: str) -> None:
    expected = CASES[case][1]
    rate = found[case]["write_bytes_per_s"]
    assert (rate, found[case]["method"]) == (expected[0] if rate is None else pytest.approx(expected[0]), expected[1])


def test_the_window_is_that_of_the_samples(found: dict[str, Any]) -> None:
    assert found["the log's growth in bytes comes first"]["window_ms"] == WINDOW_MS
    assert found["missed ticks make the window longer"]["window_ms"] == 40_000
    assert found["the rate of before holds where the new leader is not heard"]["window_ms"] == WINDOW_MS
