"""Rows of a tick, built from a snapshot and the brokers' metrics."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from headroom.cluster.collector.rows.message_rows import log_sample, shift_times
from headroom.cluster.collector.samples.history import EarlierSample
from headroom.cluster.collector.tick_builder import Rows, TickBuilder, unanswered_brokers
from headroom.cluster.metadata.throttled_partitions import watched_partitions
from headroom.cluster.metrics.mbeans import LEADER_QUOTA, topic_bytes, topic_messages
from headroom.cluster.metrics.read_planner import ReadPlanner
from headroom.cluster.model import (
    Broker,
    BrokerRead,
    BrokerThrottles,
    Lag,
    LeaderRebalanceConfig,
    LogReading,
    Meter,
    Metrics,
    Partition,
    Reading,
    ReplicationSettings,
    Snapshot,
    TopicConfig,
)
from headroom.schemas.keys import TopicPartition
from headroom.schemas.tick_messages import ROWS

WINDOW_MS = 10_000
ORDERS = TopicPartition("orders", 0)
MOVING = Partition("orders", 0, 1, 5, (2, 3, 1), (1, 2), (), adding=(3,), removing=(1,))
LISTS = TopicConfig("0:1,0:2", "0:3", compacted=False)
RATES = BrokerThrottles(True, 5_000_000, None, "default", "none")


def snapshot(partition: Partition = MOVING, config: TopicConfig | None = LISTS, topic_id: str = "a") -> Snapshot:
    brokers = {b: Broker(b, "host", 9092, True) for b in (1, 2, 3)}
    configs = {} if config is None else {"orders": config}
    return Snapshot(brokers, {ORDERS: partition}, {"orders": topic_id}, configs)


def metrics(read_ms: int, end: int, started_ms: int = 7, lag: int | None = None, topic: bool = True) -> Metrics:
    """A broker whose log ends at ``end``, at 100 bytes a record."""
    counters = {topic_bytes("orders"): Reading(read_ms, end * 100), topic_messages("orders"): Reading(read_ms, end)}
    return Metrics(
        started_ms,
        counters if topic else {},
        {LEADER_QUOTA: Reading(read_ms, 1.5)},
        () if lag is None else (Lag(ORDERS, 1, "ReplicaFetcherThread-0-1", lag),),
        {ORDERS: LogReading(read_ms, end, 0, end * 100)},
    )


def reads(tick_ms: int, *brokers: int, **of_metrics: Any) -> dict[int, BrokerRead]:
    """These brokers answered, their logs 10 offsets a second long; the others did not."""
    end = tick_ms // 100
    answered = {b: BrokerRead(b, RATES, metrics(tick_ms, end, **of_metrics), None) for b in brokers}
    silent = {b: BrokerRead(b, BrokerThrottles(False), None, "hangs") for b in (1, 2, 3) if b not in brokers}
    return answered | silent


def tick(builder: TickBuilder, tick_ms: int, metadata: Snapshot, read: Mapping[int, BrokerRead]) -> Rows:
    return builder.rows(tick_ms, metadata, read, watched_partitions(metadata))


def moves(*ticks: tuple[Snapshot, Mapping[int, BrokerRead]]) -> dict[str, Any]:
    """Return the row of the move after these ticks, one a second."""
    builder = TickBuilder(WINDOW_MS, 1000)
    for second, (metadata, read) in enumerate(ticks):
        rows = tick(builder, second * 1000, metadata, read)
    return rows["moves"][0]


def names(ddl: str) -> list[str]:
    """Return the names of the outermost columns."""
    flat = ddl
    while "<" in flat:
        flat = re.sub(r"<[^<>]*>", "", flat)
    return [column.split()[0] for column in flat.split(",")]


def struct_names(kind: str, column: str) -> list[str]:
    """Return the names of the columns of a struct column."""
    match = re.search(rf"{column} (?:ARRAY<)?STRUCT<([^>]*)>", ROWS[kind])
    assert match is not None
    return names(match[1])


@pytest.mark.parametrize(
    "kind",
    sorted(ROWS.keys() - {"broker_performance", "log_dirs", "migrations", "migration_syncs", "replica_sizes"}),
)
def test_rows_have_the_columns_of_their_contract(kind: str) -> None:
    builder = TickBuilder(WINDOW_MS, 1000)
    rows = tick(builder, 1000, snapshot(), reads(1000, 1, 2, 3, lag=5))
    assert rows[kind], "a row of every kind"
    for row in rows[kind]:
        assert sorted(row) == sorted(names(ROWS[kind]))


def test_structs_of_a_move_have_the_columns_of_their_contract() -> None:
    switched = snapshot(replace(MOVING, leader=2, leader_epoch=6))
    three = [(snapshot(), reads(ms, 1, 2, 3)) for ms in (0, 1000)]
    row = moves(*three, (switched, reads(2000, 1, 2, 3)))
    for log in row["logs"]:
        assert sorted(log) == sorted(struct_names("moves", "logs"))
    for column in ("topic_counters", "before_log", "before_topic_counters"):
        assert sorted(row[column]) == sorted(struct_names("moves", column))


def test_counters_and_logs_carry_their_sample_of_a_window_before() -> None:
    row = moves(*[(snapshot(), reads(s * 1000, 1, 2, 3)) for s in range(13)])
    # The last tick is 12,000 (end 120); a window before it is 2,000 (end 20).
    log = row["logs"][-1]
    assert (log["broker"], log["log_end_offset"], log["prev_read_ms"], log["prev_log_end_offset"]) == (1, 120, 2000, 20)
    assert (log["size_bytes"], log["prev_size_bytes"]) == (12_000, 2000)
    counters = row["topic_counters"]
    assert (counters["bytes_in"], counters["prev_read_ms"], counters["prev_bytes_in"]) == (12_000, 2000, 2000)
    assert (counters["messages_in"], counters["prev_messages_in"]) == (120, 20)


def test_a_broker_that_restarted_has_counters_without_earlier_samples_and_logs_with_them() -> None:
    before, after = reads(0, 1, 2, 3), reads(1000, 1, 2, 3, started_ms=8)
    row = moves((snapshot(), before), (snapshot(), after))
    assert row["topic_counters"]["prev_read_ms"] is None
    assert row["logs"][0]["prev_read_ms"] == 0


def test_a_log_of_a_restarted_broker_is_unchanged_only_since_its_return() -> None:
    def at(second: int, started_ms: int) -> tuple[Snapshot, Mapping[int, BrokerRead]]:
        # The log ends at 50 all the time.
        same = {b: BrokerRead(b, RATES, metrics(second * 1000, 50, started_ms), None) for b in (1, 2, 3)}
        return snapshot(), same

    assert moves(*[at(second, 7) for second in range(4)])["logs"][0]["unchanged_since_ms"] == 0
    restarted = [at(0, 7), at(1, 7), at(2, 8), at(3, 8)]
    assert moves(*restarted)["logs"][0]["unchanged_since_ms"] == 2000


def test_a_meter_that_was_missing_for_a_tick_starts_again() -> None:
    # A broker that leads nothing of a topic drops its meter: it counts from zero when it leads again.
    ticks = [(snapshot(), reads(0, 1, 2, 3)), (snapshot(), reads(1000, 1, 2, 3, topic=False))]
    row = moves(*ticks, (snapshot(), reads(2000, 1, 2, 3)))
    assert row["topic_counters"]["prev_bytes_in"] is None


def test_a_broker_that_did_not_answer_costs_only_its_own_rows() -> None:
    builder, metadata, read = TickBuilder(WINDOW_MS, 1000), snapshot(), reads(1000, 1, 2)
    rows = tick(builder, 1000, metadata, read)
    assert [log["broker"] for log in rows["moves"][0]["logs"]] == [2, 1]
    assert {row["broker"] for row in rows["meters"]} == {1, 2}
    silent = next(row for row in rows["brokers"] if row["broker"] == 3)
    assert (silent["alive"], silent["answered"], silent["throttles_known"]) == (True, False, False)
    assert unanswered_brokers(metadata, read) == [{"broker": 3, "reason": "hangs"}]


def test_rates_of_unknown_brokers_are_unknown_and_unset_ones_are_none() -> None:
    rows = tick(TickBuilder(WINDOW_MS, 1000), 0, snapshot(), reads(0, 1, 2))
    row_of = {row["broker"]: row for row in rows["brokers"]}
    assert (row_of[1]["leader_throttle_bytes_per_s"], row_of[1]["leader_throttle_source"]) == (5_000_000, "default")
    assert (row_of[1]["follower_throttle_bytes_per_s"], row_of[1]["follower_throttle_source"]) == (None, "none")
    assert (row_of[3]["leader_throttle_bytes_per_s"], row_of[3]["leader_throttle_source"]) == (None, None)


def test_a_switch_carries_the_last_samples_of_the_leader_before() -> None:
    switched = snapshot(replace(MOVING, leader=2, leader_epoch=6))
    ticks = [(snapshot(), reads(s * 1000, 1, 2, 3)) for s in range(3)]
    row = moves(*ticks, (switched, reads(3000, 1, 2, 3)))
    assert (row["leader"], row["previous_leader"], row["switch_tick_ms"]) == (2, 1, 3000)
    before = row["before_log"]
    assert (before["broker"], before["read_ms"], before["log_end_offset"], before["prev_read_ms"]) == (1, 2000, 20, 0)
    assert row["before_topic_counters"]["bytes_in"] == 2000


def test_samples_from_before_are_those_of_when_the_old_leader_still_answered() -> None:
    leaderless = snapshot(replace(MOVING, leader=None))
    ticks = [(snapshot(), reads(s * 1000, 1, 2, 3)) for s in range(3)]
    # The leader dies at 3,000, is seen dead at 4,000, and 2 leads from 5,000 on.
    dead = [(snapshot(), reads(3000, 2, 3)), (leaderless, reads(4000, 2, 3))]
    row = moves(*ticks, *dead)
    assert (row["leader"], row["previous_leader"], row["switch_tick_ms"]) == (None, 1, None)
    assert row["before_log"]["read_ms"] == 2000
    row = moves(*ticks, *dead, (snapshot(replace(MOVING, leader=2)), reads(5000, 2, 3)))
    assert (row["previous_leader"], row["switch_tick_ms"], row["before_log"]["read_ms"]) == (1, 5000, 2000)


def test_a_star_is_spelled_out_as_the_replicas() -> None:
    row = moves((snapshot(config=TopicConfig("*", None, compacted=True)), reads(0, 1)))
    assert (row["leader_listed"], row["follower_listed"], row["compacted"]) == ([2, 3, 1], [], True)


def test_lists_that_could_not_be_read_are_unknown() -> None:
    row = moves((snapshot(config=None), reads(0, 1)))
    assert (row["leader_listed"], row["follower_listed"], row["compacted"]) == (None, None, None)
    row = moves((snapshot(config=replace(LISTS, current=False)), reads(0, 1)))
    assert (row["leader_listed"], row["follower_listed"], row["compacted"]) == (None, None, False)


def test_a_partition_last_known_as_listed_stays_watched_while_its_lists_cannot_be_read() -> None:
    still = replace(MOVING, adding=(), removing=())
    assert watched_partitions(snapshot(still, replace(LISTS, current=False))) == {ORDERS}


def test_a_listed_partition_that_does_not_move_is_watched_and_others_are_not() -> None:
    still = replace(MOVING, adding=(), removing=())
    assert watched_partitions(snapshot(still)) == {ORDERS}
    assert watched_partitions(snapshot(still, TopicConfig("7:1", None, compacted=False))) == set()
    assert watched_partitions(snapshot(still, TopicConfig(None, "*", compacted=False))) == {ORDERS}


def test_a_recreated_topic_has_no_earlier_samples_and_no_switch() -> None:
    recreated = snapshot(replace(MOVING, leader=2), topic_id="b")
    row = moves((snapshot(), reads(0, 1, 2, 3)), (recreated, reads(1000, 1, 2, 3)))
    assert [log["prev_read_ms"] for log in row["logs"]] == [None, None, None]
    assert row["previous_leader"] is None


# A broker that was down while its replica was removed keeps its gauges: they stand still when it leads again.
@pytest.mark.parametrize(
    ("leader_end", "ends", "replaced"),
    [
        pytest.param(20, range(0, 400, 10), [False, False, False, *[True] * 37], id="a follower is ahead"),
        pytest.param(900, range(0, 800, 10), [*[False] * 61, *[True] * 19], id="a follower lags longer than it may"),
        pytest.param(900, [900] * 80, [False] * 80, id="no writes"),
        pytest.param(900, [950] * 80, [False] * 80, id="no writes, and the gauges of the follower are of another log"),
        pytest.param(None, range(0, 400, 10), [False] * 40, id="the leader's log grows"),
    ],
)
def test_a_leader_whose_gauges_are_of_another_log_has_the_log_of_a_follower(
    leader_end: int | None, ends: Sequence[int], replaced: Sequence[bool]
) -> None:
    builder, seen = TickBuilder(WINDOW_MS, 1000), []
    for second, end in enumerate(ends):
        of = {b: ended_at(second * 1000, end, b)[b] for b in (1, 2, 3)}
        if leader_end is not None:
            of[1] = ended_at(second * 1000, leader_end, 1)[1]
        rows = tick(builder, second * 1000, snapshot(), of)
        log = {log["broker"]: log for log in rows["moves"][0]["logs"]}
        seen.append(log[1]["log_end_offset"] != (end if leader_end is None else leader_end))
        if seen[-1]:
            columns = ("read_ms", "log_end_offset", "prev_read_ms", "prev_log_end_offset", "size_bytes")
            assert [log[1][column] for column in columns] == [log[2][column] for column in columns]
            assert (log[1]["lag_offsets"], log[1]["lag_source"]) == (None, None)
    assert seen == list(replaced)
    # The history has what the broker reported, and a later switch the log that counted.
    assert [row["log_end_offset"] for row in rows["logs"] if row["broker"] == 1] == [leader_end or ends[-1]]
    switched = snapshot(replace(MOVING, leader=2, leader_epoch=6))
    before = tick(builder, len(ends) * 1000, switched, reads(0, 3))["moves"][0]["before_log"]
    assert before["log_end_offset"] == (ends[-1] if seen[-1] or leader_end is None else leader_end)


# The same broker as a destination: it copies, so its lag falls, and the gauges of its log stand still.
@pytest.mark.parametrize(
    ("lags", "ends", "known"),
    [
        pytest.param([*range(500, 470, -1), *[470] * 140], [90] * 170, [True, *[False] * 149], id="another log"),
        pytest.param(range(500, 660), [90] * 160, [True] * 160, id="starved"),
        pytest.param([500] * 160, [90] * 160, [True] * 160, id="stalled"),
        pytest.param(range(500, 340, -1), range(90, 250), [True] * 160, id="copies"),
    ],
)
def test_a_new_replica_whose_gauges_are_of_another_log_has_an_unknown_log_and_is_not_offline(
    lags: Sequence[int], ends: Sequence[int], known: Sequence[bool]
) -> None:
    builder = TickBuilder(WINDOW_MS, 1000)
    for second, (lag, end) in enumerate(zip(lags, ends, strict=False)):
        of = reads(second * 1000, 1, 2)
        of[3] = BrokerRead(3, RATES, metrics(second * 1000, end, lag=lag), None)
        row = tick(builder, second * 1000, snapshot(), of)["moves"][0]
        is_known = 3 in {log["broker"] for log in row["logs"]}
        # Without a fall of the lag for two minutes its end counts again.
        assert is_known is (known[second] if second < len(known) else second > 29 + 10 + 120), second
        assert row["without_log"] is None


def unchanged_since(row: dict[str, Any]) -> dict[int, int]:
    """Return since when the log of each broker ends where it does, milliseconds."""
    return {log["broker"]: log["unchanged_since_ms"] for log in row["logs"]}


def ended_at(tick_ms: int, end: int, *brokers: int) -> dict[int, BrokerRead]:
    """These brokers answered, their logs all end here; the others did not answer."""
    answered = {b: BrokerRead(b, RATES, metrics(tick_ms, end), None) for b in brokers}
    return answered | {b: BrokerRead(b, RATES, None, "hangs") for b in (1, 2, 3) if b not in brokers}


def test_a_move_names_the_brokers_that_answer_and_have_no_log_of_it() -> None:
    def missing_logs(second: int) -> dict[int, BrokerRead]:
        read = reads(second * 1000, 1, 2, 3)
        return read | {3: replace(read[3], metrics=replace(metrics(second * 1000, 0), logs={}))}

    ticks = [(snapshot(), missing_logs(s)) for s in range(11)]
    assert [moves(*ticks[:n])["without_log"] for n in (1, 10, 11)] == [None, None, [3]]
    # The clock was set back by an hour in between.
    builder = TickBuilder(WINDOW_MS, 1000)
    for metadata, read in ticks[:10]:
        tick(builder, 5_000_000, metadata, read)
    builder.shift(-3_600_000)
    assert tick(builder, 1_410_000, *ticks[10])["moves"][0]["without_log"] == [3]
    assert moves(*ticks, (snapshot(), reads(11_000, 1, 2, 3)))["without_log"] is None


def test_an_end_is_unchanged_since_long_before_the_rate_window() -> None:
    ticks = [(snapshot(), reads(s * 1000, 1) | {3: ended_at(s * 1000, 50, 3)[3]}) for s in range(61)]
    # 60 s are six windows; the log of broker 1 grows in every tick.
    assert unchanged_since(moves(*ticks)) == {1: 60_000, 3: 0}


def test_a_broker_that_does_not_answer_neither_ends_nor_begins_what_is_unchanged() -> None:
    ticks = [(snapshot(), ended_at(0, 50, 1, 3)), *[(snapshot(), ended_at(s * 1000, 50, 1)) for s in range(1, 50)]]
    assert unchanged_since(moves(*ticks)) == {1: 0}
    assert unchanged_since(moves(*ticks, (snapshot(), ended_at(50_000, 50, 1, 3)))) == {3: 0, 1: 0}
    assert unchanged_since(moves(*ticks, (snapshot(), ended_at(50_000, 49, 1, 3)))) == {3: 50_000, 1: 50_000}


def test_a_log_that_is_gone_for_a_tick_is_unchanged_since_it_came_back() -> None:
    without = ended_at(1000, 50, 1, 3)
    assert without[3].metrics is not None
    without[3].metrics.logs.clear()
    row = moves((snapshot(), ended_at(0, 50, 1, 3)), (snapshot(), without), (snapshot(), ended_at(2000, 50, 1, 3)))
    assert unchanged_since(row) == {3: 2000, 1: 0}


def test_a_recreated_topic_is_unchanged_since_then() -> None:
    recreated = snapshot(topic_id="b")
    row = moves((snapshot(), ended_at(0, 50, 1, 2, 3)), (recreated, ended_at(1000, 50, 1, 2, 3)))
    assert unchanged_since(row) == {1: 1000, 2: 1000, 3: 1000}


def test_a_broker_that_was_taken_out_of_the_cluster_begins_again() -> None:
    away = replace(snapshot(replace(MOVING, replicas=(2, 1), adding=())))
    del away.brokers[3]
    row = moves((snapshot(), ended_at(0, 50, 1, 3)), (away, ended_at(1000, 50, 1)), (snapshot(), ended_at(2000, 50, 3)))
    assert unchanged_since(row) == {3: 2000}


def test_a_broker_that_was_down_begins_again_even_without_a_start_time() -> None:
    def at(second: int, *brokers: int) -> tuple[Snapshot, Mapping[int, BrokerRead]]:
        read = ended_at(second * 1000, 50, *brokers)
        known = {b: replace(r, metrics=replace(r.metrics, started_ms=None)) for b, r in read.items() if r.metrics}
        return snapshot(), read | known

    down, read = at(2, 1)
    down.brokers[3] = replace(down.brokers[3], alive=False)
    # Broker 3 is registered at 0, 1, and again from 300 s: its log has been the same for no time.
    ticks = [at(0, 1, 3), at(1, 1, 3), (down, read)]
    assert unchanged_since(moves(*ticks, (down, at(300, 1)[1]), at(300, 1, 3))) == {3: 300_000, 1: 0}
    # It only did not answer.
    assert unchanged_since(moves(*ticks[:2], at(300, 1), at(300, 1, 3))) == {3: 0, 1: 0}


def test_a_partition_that_is_watched_from_now_on_is_unchanged_since_its_end_was_read_first() -> None:
    builder, unwatched = TickBuilder(WINDOW_MS, 1000), snapshot(replace(MOVING, adding=(), removing=()), None)
    for second, end in enumerate((49, 50, 50)):
        tick(builder, second * 1000, unwatched, ended_at(second * 1000, end, 1))
    (row,) = tick(builder, 3000, snapshot(), ended_at(3000, 50, 1, 3))["moves"]
    assert unchanged_since(row) == {3: 3000, 1: 1000}


def test_a_sample_moves_with_the_clock_in_all_its_times() -> None:
    now, earlier = EarlierSample(5000, (9, 0, 900, None)), EarlierSample(2000, (8, 0, 800, None))
    assert shift_times(log_sample(1, now, earlier, 2, 4000), -1000) == log_sample(
        1, now._replace(read_ms=4000), earlier._replace(read_ms=1000), 2, 3000
    )
    first = log_sample(1, now, None, None)
    assert shift_times(first, 7) == first | {"read_ms": 5007}


def test_lag_gauges_stand_with_the_replica_that_they_are_of() -> None:
    row = moves((snapshot(), reads(0, 3, lag=4)), (snapshot(), reads(1000, 3, lag=2)))
    (log,) = row["logs"]
    assert (log["lag_offsets"], log["prev_lag_offsets"], log["lag_source"]) == (2, 4, 1)


def test_gauges_are_meters_without_a_count() -> None:
    rows = tick(TickBuilder(WINDOW_MS, 1000), 0, snapshot(), reads(0, 1))
    gauge = next(row for row in rows["meters"] if row["meter"] == LEADER_QUOTA.meter)
    assert (gauge["count_total"], gauge["gauge_value"]) == (None, 1.5)
    assert rows["brokers"][0]["leader_quota_bytes_per_s"] == 1.5
    assert Meter("LeaderReplication.byte-rate") == LEADER_QUOTA


def test_a_log_that_the_metadata_does_not_know_costs_its_row_and_not_the_tick() -> None:
    # A topic deleted, or grown, between the reading of the metadata and that of the broker.
    read = reads(0, 1)
    other = TopicPartition("other", 0)
    assert read[1].metrics is not None
    read[1].metrics.logs[other] = LogReading(0, 5, None, None)
    rows = tick(TickBuilder(WINDOW_MS, 1000), 0, snapshot(), read)
    assert [(row["topic"], row["broker"]) for row in rows["logs"]] == [("orders", 1)]


def test_a_log_has_its_preferred_leader_only_if_another_broker_leads() -> None:
    # Broker 1 leads and 2 is preferred; broker 3 has the log of a watched partition, and does not lead.
    rows = tick(TickBuilder(WINDOW_MS, 1000), 0, snapshot(), reads(0, 1, 2, 3))
    assert {row["broker"]: row["preferred"] for row in rows["logs"]} == {1: 2, 2: None, 3: None}
    rows = tick(TickBuilder(WINDOW_MS, 1000), 0, snapshot(replace(MOVING, leader=2)), reads(0, 1, 2, 3))
    assert {row["preferred"] for row in rows["logs"]} == {None}


def test_broker_rows_have_their_leader_balancing() -> None:
    read = reads(0, 1)
    read[1] = replace(read[1], balancing=LeaderRebalanceConfig(True, 300, 10))
    rows = tick(TickBuilder(WINDOW_MS, 1000), 0, snapshot(), read)["brokers"]
    names = ("auto_leader_rebalance", "leader_imbalance_check_s", "leader_imbalance_percentage")
    assert [tuple(row[name] for name in names) for row in rows[:2]] == [(True, 300, 10), (None, None, None)]


def test_brokers_report_how_they_replicate_and_what_limits_moves_between_their_directories() -> None:
    read = reads(0, 1, 2)
    rates = replace(RATES, log_dirs_bytes_per_s=8_000_000, log_dirs_source="broker")
    read[1] = replace(read[1], throttles=rates, replication=ReplicationSettings(11, 1, 1_048_576, 10_485_760, 2, 1000))
    read[2] = replace(read[2], throttles=replace(RATES, log_dirs_source="none"))
    rows = tick(TickBuilder(WINDOW_MS, 1000), 0, snapshot(), read)["brokers"]
    names = (
        "log_dirs_throttle_bytes_per_s",
        "log_dirs_throttle_source",
        "quota_window_num",
        "quota_window_size_s",
        "replica_fetch_max_bytes",
        "replica_fetch_response_max_bytes",
        "num_replica_fetchers",
        "replica_fetch_backoff_ms",
    )
    assert [tuple(row[name] for name in names) for row in rows] == [
        (8_000_000, "broker", 11, 1, 1_048_576, 10_485_760, 2, 1000),
        (None, "none", *[None] * 6),
        (None, None, *[None] * 6),
    ]


def test_moves_have_remote_storage_and_recompression() -> None:
    config = replace(LISTS, remote_storage=True, recompressed=False)
    row = moves((snapshot(config=config), reads(0, 1)))
    assert (row["remote_storage"], row["recompressed"]) == (True, False)
    row = moves((snapshot(config=None), reads(0, 1)))
    assert (row["remote_storage"], row["recompressed"]) == (None, None)


def test_an_under_replicated_partition_that_is_not_watched_has_the_columns_of_a_move() -> None:
    still = replace(MOVING, adding=(), removing=())
    (row,) = tick(TickBuilder(WINDOW_MS, 1000), 0, snapshot(still, None), reads(0, 1))["moves"]
    assert sorted(row) == sorted(names(ROWS["moves"]))
    assert (row["remote_storage"], row["recompressed"], row["logs"]) == (None, None, [])


def test_leaders_have_the_age_of_their_metadata() -> None:
    metadata = replace(snapshot(), ages_ms={"orders": 20_000})
    rows = tick(TickBuilder(WINDOW_MS, 1000), 0, metadata, reads(0, 1))
    assert [row["metadata_age_ms"] for row in rows["leaders"]] == [20_000]


def test_leaders_have_min_insync_replicas_of_under_replicated_partitions() -> None:
    config = TopicConfig(None, None, False, min_insync_replicas=2)
    for isr, expected in ((MOVING.replicas, None), (MOVING.replicas[:1], 2)):
        metadata = replace(snapshot(replace(MOVING, isr=isr)), topic_configs={"orders": config})
        rows = tick(TickBuilder(WINDOW_MS, 1000), 0, metadata, reads(0, 1))
        assert [row["min_insync_replicas"] for row in rows["leaders"]] == [expected]
    unknown = replace(metadata, topic_configs={})
    assert tick(TickBuilder(WINDOW_MS, 1000), 0, unknown, reads(0, 1))["leaders"][0]["min_insync_replicas"] is None


def test_a_partition_that_is_watched_from_now_on_has_the_ends_of_before() -> None:
    builder, unwatched = TickBuilder(WINDOW_MS, 1000), snapshot(replace(MOVING, adding=(), removing=()), None)
    tick(builder, 0, unwatched, reads(0, 1, 2, 3))
    (row,) = tick(builder, 1000, snapshot(), reads(1000, 1, 2, 3))["moves"]
    log = next(log for log in row["logs"] if log["broker"] == 1)
    assert (log["prev_read_ms"], log["prev_log_end_offset"], log["prev_size_bytes"]) == (0, 0, None)


def test_a_switch_of_a_partition_that_was_not_watched_has_its_samples_from_before() -> None:
    builder, still = TickBuilder(WINDOW_MS, 1000), replace(MOVING, adding=(), removing=())
    for second in range(3):
        tick(builder, second * 1000, snapshot(still, None), reads(second * 1000, 1, 2, 3))
    (row,) = tick(builder, 3000, snapshot(replace(MOVING, leader=2)), reads(3000, 1, 2, 3))["moves"]
    assert (row["previous_leader"], row["switch_tick_ms"]) == (1, 3000)
    before = row["before_log"]
    assert (before["read_ms"], before["log_end_offset"], before["prev_log_end_offset"]) == (2000, 20, 0)
    assert row["before_topic_counters"]["prev_bytes_in"] == 0


def test_a_plan_is_replaced_only_where_something_changed() -> None:
    plans = ReadPlanner()
    first = plans.of(snapshot(), set())
    again = plans.of(snapshot(), set())
    assert all(again[broker] is plan for broker, plan in first.items())
    switched = plans.of(snapshot(replace(MOVING, leader=2)), set())
    assert [broker for broker, plan in switched.items() if plan is first[broker]] == [3]


def test_a_plan_has_the_replica_count_and_whether_the_broker_follows_in_sync() -> None:
    made = ReadPlanner().of(snapshot(), {ORDERS})
    # Broker 1 leads, 2 follows in sync, and 3 is being added.
    expected = [(plan.replicas, plan.follows) for plan in (made[1], made[2], made[3])]
    assert expected == [(1, False), (1, True), (1, False)]
    assert [(b, plan.leads, plan.watched) for b, plan in made.items()] == [
        (1, (ORDERS,), (ORDERS,)),
        (2, (), (ORDERS,)),
        (3, (), (ORDERS,)),
    ]


def test_a_list_is_looked_up_for_the_partitions_of_its_own_topic() -> None:
    other = Partition("other", 0, 1, 5, (1, 2), (1, 2), ())
    metadata = snapshot(replace(MOVING, adding=(), removing=()), TopicConfig("0:1", None, compacted=False))
    metadata.partitions[other.name] = other
    assert watched_partitions(metadata) == {ORDERS}
