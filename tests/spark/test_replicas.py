"""What a replica still has to copy, and whether it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from headroom.streaming.transforms.moves.replicas import replicas
from tests.spark.cases import Cases, Results, by_case
from tests.spark.support import frame_of_clusters
from tests.spark.ticks import TICK_MS, broker, log, move

MB = 1_000_000


def case(follower: dict[str, Any] | None, leader: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Partition led by broker 1 (9,000 records of 1,000 bytes), which broker 3 is to join."""
    logs = [leader or log(1, 9000, 2 * MB), *([follower] if follower else [])]
    return {"leader": 1, "replicas": [1, 3], "isr": [1], "adding": [3], "logs": logs} | more


def cut_by_retention(end: int, rate: float = 0.0) -> dict[str, Any]:
    return log(3, end, rate, log_start_offset=500)


IN_SYNC = {"isr": [1, 3], "adding": []}
# The real lag was 7,000 (9,000 - 2,000) a window ago and is 8,000 now: the leader grew by 2,000, the follower by 1,000.
FALLING_BACK = {"leader": log(1, 9000, 0.2 * MB)}

COUNTED = {
    "read_ms": TICK_MS,
    "bytes_in": 500_000,
    "messages_in": 1000,
    "prev_read_ms": None,
    "prev_bytes_in": None,
    "prev_messages_in": None,
}


Rows = list[dict[str, Any]]


def replicas_of(spark: SparkSession, cases: Mapping[str, Sequence[Rows]]) -> dict[str, list[Row]]:
    """The replicas of the partitions of a case; its brokers are unknown if none are given."""
    moves = frame_of_clusters(spark, "moves", {name: given[0] for name, given in cases.items()})
    brokers = frame_of_clusters(spark, "brokers", {name: given[1] for name, given in cases.items() if given[1:]})
    return by_case(replicas(moves, brokers).collect(), cases)


TICKS = Cases(replicas_of)


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Results[list[Row]]:
    return TICKS.results(spark)


# Name of a partition to its move and what its replica is expected to be.
PARTITIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # 9,000 - 1,000 records; 9 - 1 MB.
    "sizes of logs with one beginning differ by what is missing": (
        case(log(3, 1000, MB)),
        {"lag_offsets": 8000, "remaining_bytes": 8 * MB, "copied_bytes_per_s": MB, "stalled": False},
    ),
    # 18 MB in 9,000 records are 2,000 bytes a record; 8,000 are missing.
    "other beginnings: missing records at the leader's mean size": (
        case(cut_by_retention(1000), log(1, 9000, size=18 * MB)),
        {"lag_offsets": 8000, "remaining_bytes": 16 * MB},
    ),
    "a follower that holds more bytes: missing records at the mean size": (
        case(log(3, 1000, size=20 * MB)),
        {"remaining_bytes": 8 * MB},
    ),
    "no lag is nothing to copy whatever the sizes": (
        case(log(3, 9000, size=1)),
        {"lag_offsets": 0, "remaining_bytes": 0, "stalled": False},
    ),
    "a follower ahead of its leader lags by nothing": (case(log(3, 9500)), {"lag_offsets": 0, "remaining_bytes": 0}),
    "a follower that is not heard is unknown": (
        case(None),
        {
            "lag_offsets": None,
            "lag_gauge_offsets": None,
            "remaining_bytes": None,
            "copied_bytes_per_s": None,
            "frozen": False,
            "stalled": False,
        },
    ),
    "a leader that is not heard leaves the lag unknown": (
        case(log(3, 1000, MB), leader=log(2, 9000)),
        {"lag_offsets": None, "remaining_bytes": None, "write_bytes_per_s": None, "copied_bytes_per_s": MB},
    ),
    "an empty log tells no mean size": (
        case(cut_by_retention(1000), log(1, 9000, log_start_offset=9000)),
        {"remaining_bytes": None},
    ),
    "a copy that stands still is stalled": (
        case(log(3, 1000)),
        {"copied_bytes_per_s": 0, "stalled": True},
    ),
    "a log that was cut copies an unknown amount and is stalled": (
        case(log(3, 1000, prev_log_end_offset=1200)),
        {"copied_bytes_per_s": None, "stalled": True},
    ),
    "one sample cannot tell that it stands still": (
        case(log(3, 1000, prev_read_ms=None, prev_log_end_offset=None)),
        {"copied_bytes_per_s": None, "stalled": False},
    ),
    # 1,000 records in 10 s at 2,000 bytes each.
    "a copy behind a moved beginning: records at the leader's mean size": (
        case(cut_by_retention(2000, 0.1 * MB), log(1, 9000, size=18 * MB)),
        {"copied_bytes_per_s": 0.2 * MB},
    ),
    "a replica that is not being added is never stalled": (case(log(3, 1000), adding=[]), {"stalled": False}),
    "an adding replica in the ISR is not stalled": (case(log(3, 8999), isr=[1, 3]), {"stalled": False}),
    "an adding replica on a broker that is down is stalled": (
        case(None, offline=[3]),
        {"alive": False, "stalled": True, "remaining_bytes": None},
    ),
    "an adding replica whose broker is up and has no log of it is stalled as one that is offline": (
        case(None, without_log=[3]),
        {"alive": False, "stalled": True, "remaining_bytes": None},
    ),
    "whoever is in the ISR has a log": (case(None, isr=[1, 3], without_log=[3]), {"alive": True, "stalled": False}),
    "a gauge that is gone or -1 is frozen": (case(log(3, 1000, MB)), {"frozen": True, "lag_gauge_offsets": None}),
    "a gauge that stands still while the lag grows is frozen": (
        case(log(3, 1000, 0.1 * MB, lag_offsets=7000, prev_lag_offsets=7000), **FALLING_BACK),
        {"frozen": True, "lag_gauge_offsets": 7000},
    ),
    "a gauge that moves is not frozen": (
        case(log(3, 1000, 0.1 * MB, lag_offsets=8000, prev_lag_offsets=7000), **FALLING_BACK),
        {"frozen": False},
    ),
    # Both grow by 2,000 in the window.
    "a lag that really stays the same is not frozen": (
        case(log(3, 1000, 0.2 * MB, lag_offsets=8000, prev_lag_offsets=8000), **FALLING_BACK),
        {"frozen": False},
    ),
    "a lag of 0 that stays 0 is not frozen": (
        case(log(3, 9000, 0.2 * MB, lag_offsets=0, prev_lag_offsets=0), **FALLING_BACK),
        {"frozen": False},
    ),
    # Of 10 million offsets retention has left 9,000, in 9 MB.
    "what retention has deleted is not copied": (
        case(log(3, 0), log(1, 10_000_000, size=9 * MB, log_start_offset=9_991_000)),
        {"lag_offsets": 10_000_000, "remaining_bytes": 9 * MB},
    ),
    # Put to offset 9,991,000 from 0, it copied 1,000 of the 9,000 records that there are: 1 MB in 10 s.
    "being put to the leader's new start is no copying": (
        case(
            log(
                3,
                9_992_000,
                size=MB,
                log_start_offset=9_991_000,
                prev_log_end_offset=0,
                prev_log_start_offset=0,
                prev_size_bytes=0,
            ),
            log(1, 10_000_000, size=9 * MB, log_start_offset=9_991_000),
        ),
        {"copied_bytes_per_s": 0.1 * MB, "remaining_bytes": 8 * MB},
    ),
    # 8,000 records at 500 bytes, as producers sent them, are 4 MB; of them 3 MB lie on the leader's disk.
    "with remote storage no more is copied than lies on the leader's disk": (
        case(log(3, 1000), log(1, 9000, size=3 * MB), remote_storage=True, topic_counters=COUNTED),
        {"remaining_bytes": 3 * MB},
    ),
    "with remote storage near the end missing records count": (
        case(log(3, 8000), log(1, 9000, size=3 * MB), remote_storage=True, topic_counters=COUNTED),
        {"remaining_bytes": MB // 2},
    ),
    "with remote storage and no counters the rest is unknown": (
        case(log(3, 1000), log(1, 9000, size=3 * MB), remote_storage=True),
        {"remaining_bytes": None},
    ),
    "a replica in sync is not frozen": (case(log(3, 9000), **IN_SYNC), {"frozen": False, "in_sync": True}),
}


OTHERS = [
    move("u", 0, 2, [3, 2, 1], isr=[2, 1], adding=[3], removing=[1], logs=[log(2, 10)]),
    move("u", 1, None, [1, 2], isr=[], logs=[log(1, 10)]),
]
TICKS.add("c1", [*(move("t", n, 1, [1, 3]) | row for n, (row, _) in enumerate(PARTITIONS.values())), *OTHERS])


@pytest.mark.parametrize("name", PARTITIONS)
def test_replica(found: Results[list[Row]], name: str) -> None:
    number, expected = list(PARTITIONS).index(name), PARTITIONS[name][1]
    (row,) = (row for row in found["c1"] if (row["topic"], row["partition"]) == ("t", number))
    assert {column: row[column] for column in expected} == {
        column: pytest.approx(value) if isinstance(value, float) else value for column, value in expected.items()
    }


def test_there_is_a_row_for_every_replica_but_the_leader(found: Results[list[Row]]) -> None:
    others = [row for row in found["c1"] if row["topic"] == "u"]
    rows = {(row["partition"], row["follower"], row["in_sync"], row["is_adding"]) for row in others}
    assert rows == {(0, 3, False, True), (0, 1, True, False), (1, 1, False, False), (1, 2, False, False)}


def test_rows_name_their_tick(found: Results[list[Row]]) -> None:
    others = [row for row in found["c1"] if row["topic"] == "u"]
    assert {(row["cluster"], row["tick_ms"]) for row in others} == {("c1", TICK_MS)}


def waiting(idle_s: dict[int, float], copied: int = 2, mb_per_s: float = 0.5) -> Rows:
    """Replicas that broker 3 is to get: some that copy, and those that have been idle for so long, by partition."""
    moves = []
    for number in range(copied + len(idle_s)):
        idle = idle_s.get(number)
        since_ms = TICK_MS - round((0 if idle is None else idle) * 1000)
        follower = log(3, 1000, 0.0 if idle is not None else mb_per_s * MB, unchanged_since_ms=since_ms)
        moves.append(move("t", number, 1, [1, 3]) | case(follower, log(1, 90_000)))
    return moves


def by_partition(rows: list[Row]) -> dict[int, Row]:
    return {row["partition"]: row for row in rows}


TICKS.add("many wait", waiting({number: 12.0 + number for number in range(240)}, copied=242 - 240))


# Two of 242 replicas copy 0.5 MB/s each, all there is: a turn of all takes 242 x 1,048,576 / 1 MB/s = 253.8 s.
def test_with_many_behind_one_throttle_a_replica_waits_for_its_turn(found: Results[list[Row]]) -> None:
    rows = by_partition(found["many wait"])
    assert {(row["waiting"], row["stalled"]) for n, row in rows.items() if n < 240} == {(True, False)}
    assert {(row["waiting"], row["stalled"]) for n, row in rows.items() if n >= 240} == {(False, False)}


TICKS.add("idle for 24 and 25 s", waiting({0: 24.0, 1: 25.0}))


# A turn of four takes 4 x 1.05 MB / 1 MB/s = 4.2 s: within 3 x 4.2 + 12 = 24.6 s one waits, then it stands still.
def test_a_replica_that_is_skipped_for_several_turns_is_stalled(found: Results[list[Row]]) -> None:
    rows = by_partition(found["idle for 24 and 25 s"])
    assert [(rows[n]["waiting"], rows[n]["stalled"]) for n in (0, 1)] == [(True, False), (False, True)]
    assert (rows[0]["idle_ms"], rows[1]["idle_ms"]) == (24_000, 25_000)


TICKS.add("all idle for 20 s", waiting({0: 20.0, 1: 300.0}, copied=0))
TICKS.add("all idle for 11 s", waiting({0: 11.0, 1: 11.0}, copied=0))


def test_where_a_destination_copies_nothing_no_turn_comes(found: Results[list[Row]]) -> None:
    # One of them copied 20 s ago: the quota may be used up. Then none did for 26 s.
    recent = by_partition(found["all idle for 20 s"])
    assert [recent[n]["stalled"] for n in (0, 1)] == [True, True]
    assert [recent[n]["waiting"] for n in (0, 1)] == [False, False]
    assert by_partition(found["all idle for 11 s"])[0]["waiting"]


TICKS.add("older collector", [move("t", 0, 1, [1, 3]) | case(log(3, 1000))])


def test_without_idle_times_of_an_older_collector_one_idle_window_is_a_stall(found: Results[list[Row]]) -> None:
    assert [(row["waiting"], row["stalled"]) for row in found["older collector"]] == [(False, True)]


def copies(topic: str, leader: int, to: int, idle_s: list[float], copied: int = 0, mb_per_s: float = 0.0) -> Rows:
    """Partitions of one leader that a destination is to get: some that copy, then others, idle for so long."""
    moving = {"isr": [leader], "adding": [to]}
    ends = [log(to, 1000, mb_per_s * MB, unchanged_since_ms=TICK_MS) for _ in range(copied)]
    ends += [log(to, 1000, unchanged_since_ms=TICK_MS - round(s * 1000)) for s in idle_s]
    return [
        move(topic, n, leader, [leader, to], logs=[log(leader, 90_000), end], **moving) for n, end in enumerate(ends)
    ]


def stalled_s(rows: list[Row], topic: str) -> set[float]:
    """Of the idle replicas of a topic, since when those have been idle that stand still."""
    idle = [row for row in rows if row["topic"] == topic and row["idle_ms"] > 0]
    assert all(row["waiting"] != row["stalled"] for row in idle)
    return {row["idle_ms"] / 1000 for row in idle if row["stalled"]}


SLOW = copies("slow", 1, 3, [float(s) for s in range(1, 50)] + [50.0] * 47 + [169.0, 170.0], copied=2, mb_per_s=1.0)
FAST = copies("fast", 2, 3, [10.0] * 48 + [24.0, 25.0], copied=50, mb_per_s=1.0)
TICKS.add("a slow and a fast leader", SLOW + FAST)


# Broker 3 gets 100 replicas of leader 1 at 2 MB/s, and 100 of leader 2 at 50 MB/s. Its own turn is 200 x 1.049 MB /
# 52 MB/s = 4.03 s: 3 x 4.03 + 12 = 24.1 s. With leader 1 a turn takes 100 x 1.049 / 2 = 52.4 s: 169.3 s.
def test_a_replica_waits_for_its_turn_at_a_leader_that_is_slower_than_others(found: Results[list[Row]]) -> None:
    assert (len(SLOW), len(FAST)) == (100, 100)
    rows = found["a slow and a fast leader"]
    assert (stalled_s(rows, "slow"), stalled_s(rows, "fast")) == ({170.0}, {25.0})


TICKS.add(
    "nothing comes of one leader",
    copies("slow", 1, 3, [24.0] * 50 + [30.0] * 50) + copies("fast", 2, 3, [1.0] * 50, copied=50, mb_per_s=1.0),
)


# Of leader 1 nothing comes: of the destination's own turn there are 3 x 200 x 1.049 / 50 = 12.6 s, and 12 s.
def test_a_leader_of_which_nothing_comes_is_found_by_the_turn_of_the_destination(found: Results[list[Row]]) -> None:
    assert stalled_s(found["nothing comes of one leader"], "slow") == {30.0}


# Broker to the time for which its replicas have been idle; brokers 11 and 12 copy.
IDLE_S = dict(zip(range(13, 20), (10.0, 20.0, 26.0, 36.0, 45.0, 153.0, 154.0), strict=True))
TICKS.add(
    "nine destinations of one leader",
    [m for to in (11, 12) for m in copies(f"to{to}", 1, to, [], copied=10, mb_per_s=0.1)]
    + [m for to, s in IDLE_S.items() for m in copies(f"to{to}", 1, to, [s] * 10)],
)


# Leader 1 sends 2 MB/s to nine destinations, each with ten replicas: 10.5 MB at once, to each in turn. Two were served
# within the window. A round takes 90 x 1.049 MB / 2 MB/s = 47.2 s: 3 x 47.2 + 12 = 153.6 s.
def test_a_destination_waits_until_its_leader_has_served_the_others(found: Results[list[Row]]) -> None:
    rows = found["nine destinations of one leader"]
    assert [to for to in IDLE_S if stalled_s(rows, f"to{to}")] == [19]


TICKS.add(
    "one of two destinations is served no more",
    copies("dead", 1, 3, [60.0] * 300) + copies("served", 1, 4, [60.0] * 288 + [200.0, 201.0], copied=10, mb_per_s=1.0),
)


# All 600 take 600 x 1.049 / 10 = 62.9 s; but a response of 10.5 MB to each of two destinations is sent in 2.1 s: within
# 3 x 2.1 + 12 s, or 25 s, each has had one. Of destination 4 a replica waits for 3 x 62.9 + 12 = 200.7 s.
def test_a_destination_that_its_leader_serves_no_more_is_found_however_much_the_leader_sends(
    found: Results[list[Row]],
) -> None:
    rows = found["one of two destinations is served no more"]
    assert (stalled_s(rows, "dead"), stalled_s(rows, "served")) == ({60.0}, {201.0})


# What a destination fetches of each partition at most, to the time that a replica waits for its turn.
WAITS_S: list[tuple[int | str | None, float]] = [
    (10 * MB, 372.0),
    (None, 49.0),
    (1000, 49.0),
    (2**40, 389.0),
    ("no broker", 49.0),
]
for _fetch_bytes, _waits_s in WAITS_S:
    # Another broker's setting does not count, and the same broker once more is none more.
    _brokers = [broker(1, None, None, replica_fetch_max_bytes=2**30)]
    if _fetch_bytes != "no broker":
        _brokers += [broker(3, None, None, replica_fetch_max_bytes=_fetch_bytes)] * 2
    _moves = copies("t", 1, 3, [_waits_s] * 109 + [_waits_s + 1], copied=10, mb_per_s=1.0)
    TICKS.add(f"fetches of {_fetch_bytes}", _moves, _brokers)


# 120 replicas at 10 MB/s. Of 10 MB each a turn takes 120 s: 3 x 120 + 12 = 372 s. Of 1.049 MB, where nothing is told
# and at least, 12.6 s: 49.7 s. No fetch brings more than a response has, 10.49 MB: 3 x 125.8 + 12 = 389.5 s.
@pytest.mark.parametrize(("fetch_bytes", "waits_s"), WAITS_S)
def test_a_turn_is_as_long_as_what_a_destination_fetches_of_each_partition(
    found: Results[list[Row]], fetch_bytes: int | str | None, waits_s: float
) -> None:
    rows = found[f"fetches of {fetch_bytes}"]
    assert len(rows) == 120
    assert stalled_s(rows, "t") == {waits_s + 1}
