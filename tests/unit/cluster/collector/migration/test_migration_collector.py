"""The collector of migrations: what it asks, what it waits for, and the rows of a tick."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from headroom.cluster.collector.clock import Clock
from headroom.cluster.collector.migration import migration_collector, sync_rows
from headroom.cluster.collector.migration.migration_collector import Agreements, AgreementTopic, MigrationCollector
from headroom.cluster.collector.migration.rows import ClusterFacts, MigrationFacts
from headroom.cluster.collector.migration.sync_follower import SyncFollower
from headroom.cluster.migration.cluster_reader import ClusterReader, ClusterReading, WantedPartitions
from headroom.planning.migration.agreement import acknowledged_ends
from headroom.planning.migration.mirrors.sync_record import SyncReading, SyncRecord
from headroom.planning.migration.mirrors.sync_trail import SyncTrails
from headroom.planning.migration.progress.judgement import migration_progress
from headroom.planning.migration.readings import LogOffsets, TopicRules
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import AcknowledgedEnd, PartitionAgreement, RouterReport
from headroom.schemas.tick_messages import REQUIRED, row_columns
from tests.unit.builders.migration_progress import reading_of_row

NAME = TopicPartition("orders", 0)
AGREED = PartitionAgreement("m", 1, "o", "t", "orders", 0, None, None, 700_000, 0, "migrating", routers=("a", "b"))
REPORT = RouterReport("a", "1", "producer", "1", "kafka-python", {"m": 1}, (AcknowledgedEnd("orders", 0, 3, 900),))


class FakeCluster(ClusterReader):
    """Readings of a script; ``wanted`` has what was asked."""

    def __init__(self, clock: FakeClock, end: int, problem: Callable[[], None] = lambda: None) -> None:
        self._now = clock
        self._end = end
        self._problem = problem
        self.cluster_id: str | None = None
        self.topic_id = "i"
        self.epoch = 3
        self.wanted: list[WantedPartitions] = []

    def read(self, wanted: WantedPartitions) -> ClusterReading:
        self.wanted.append(wanted)
        self._problem()
        now_s, self._end = self._now.s, self._end + 2_000
        return ClusterReading(
            now_s,
            int(now_s * 1000),
            self.cluster_id,
            {NAME: LogOffsets(0, self._end, self._end, None)},
            {"orders": self.topic_id},
            {NAME: self.epoch},
            {NAME: {self.epoch: self._end + 5}},
            {"orders": TopicRules("delete", 1, -1, 2, False)},
            {"billing": True},
            {"billing": {NAME: self._end - 1_000}},
        )

    def close(self) -> None:
        return


class FakeFollower(SyncFollower):
    """Readings of a script, then ones without a record; ``asked`` has the partitions."""

    def __init__(self, *readings: SyncReading | HeadroomError) -> None:
        self.readings = list(readings)
        self.asked: list[frozenset[TopicPartition]] = []

    def read(self, names: frozenset[TopicPartition]) -> SyncReading:
        self.asked.append(names)
        found = self.readings.pop(0) if self.readings else syncs_at()
        if isinstance(found, HeadroomError):
            raise found
        return found

    def close(self) -> None:
        return


def syncs_at(*offsets: int, restart: bool = False) -> SyncReading:
    """A reading of syncs, each a minute after the one before, of offset 10 times as large on both clusters."""
    records = [SyncRecord(at, NAME, 10 * at, 10 * at, at * 60_000) for at in offsets]
    begin, end = (offsets[0], offsets[-1] + 1) if offsets else (9, 9)
    return SyncReading(frozenset({NAME}), "s", 2, restart, begin, end, True, records)


class FakeClock:
    def __init__(self) -> None:
        self.s = 1_000.0

    def clock(self) -> Clock:
        return Clock(lambda: self.s, lambda: self.s)


def collector(
    clock: FakeClock,
    origin: FakeCluster,
    target: FakeCluster,
    agreed: Callable[[], Agreements],
    syncs: FakeFollower | None = None,
) -> MigrationCollector:
    return MigrationCollector(Settings(), clock.clock(), origin, target, agreed, syncs or FakeFollower())


def assert_released(released: threading.Event) -> None:
    assert released.wait(30)


def rows_after(
    made: MigrationCollector, count: int, until: Callable[[list[dict[str, Any]]], bool]
) -> list[dict[str, Any]]:
    """Rows of the first tick that fulfils a condition, within some ticks."""
    deadline = time.monotonic() + 10
    rows: list[dict[str, Any]] = []
    while time.monotonic() < deadline:
        made.start_due()
        rows = made.rows()
        if until(rows):
            return rows
        time.sleep(0.005)
    raise AssertionError(f"the last rows after {count} s were {rows}")


def one_agreement(**terms: Any) -> Agreements:
    return (PartitionAgreement(**{**AGREED.__dict__, **terms}),), {"a": REPORT}


def test_a_row_has_both_clusters_the_agreement_and_what_is_missing() -> None:
    clock = FakeClock()
    made = collector(clock, FakeCluster(clock, 100_000), FakeCluster(clock, 0), one_agreement)
    (row,) = rows_after(made, 10, lambda rows: bool(rows and rows[0]["origin"] and rows[0]["target"]))
    assert sorted(row) == sorted(row_columns("migrations"))
    assert (row["end_offset"], row["status"], row["missing_routers"], row["acks"]) == (
        700_000,
        "migrating",
        ["b"],
        ["1"],
    )
    assert (row["origin"]["log_end_offset"], row["origin"]["leader_end_offset"]) == (102_000, 102_005)
    assert (row["min_insync_replicas"], row["origin_error"], row["target_error"]) == (2, None, None)
    # The router reports 900; what all in-sync replicas have was acknowledged too. What the leader has beyond it may be.
    of_epoch = {"leader_epoch": 3, "acknowledged_end": 102_000, "epoch_end": 102_005}
    assert row["epochs"] == [of_epoch | {"unreported_end": 102_005}]
    assert [(group["group"], group["active"], group["origin_offset"]) for group in row["groups"]] == [
        ("billing", True, 101_000)
    ]
    reading = reading_of_row(row, 1_000_000)
    assert reading is not None
    assert migration_progress(reading).at_risk_offsets == 5


def test_the_log_end_of_a_leader_is_kept_for_an_epoch_that_no_router_has_reported() -> None:
    clock = FakeClock()
    switched = threading.Event()

    def problem() -> None:
        if switched.is_set():
            origin._end = 50_000

    origin = FakeCluster(clock, 100_000, problem)
    made = collector(clock, origin, FakeCluster(clock, 0), lambda: ((AGREED,), {}))
    (first,) = rows_after(made, 10, lambda rows: bool(rows and rows[0]["origin"]))
    assert first["epochs"][0]["unreported_end"] == first["origin"]["leader_end_offset"]
    # The next leader's log is shorter.
    switched.set()
    (row,) = rows_after(made, 10, lambda rows: rows[0]["epochs"][0]["epoch_end"] == 52_005)
    assert row["epochs"][0]["unreported_end"] >= first["epochs"][0]["unreported_end"]


@pytest.mark.parametrize(("reported", "unreported"), [(102_004, 102_005), (102_005, None), (102_006, None)])
def test_what_one_router_reports_says_nothing_of_what_another_one_was_acknowledged_beyond_it(
    reported: int, unreported: int | None
) -> None:
    clock = FakeClock()
    report = replace(REPORT, acknowledged=(AcknowledgedEnd("orders", 0, 3, reported),))
    made = collector(clock, FakeCluster(clock, 100_000), FakeCluster(clock, 0), lambda: ((AGREED,), {"a": report}))
    (row,) = rows_after(made, 10, lambda rows: bool(rows and rows[0]["origin"]))
    assert row["origin"]["leader_end_offset"] == 102_005
    assert row["epochs"][0]["unreported_end"] == unreported


def test_without_an_agreement_no_cluster_is_asked_and_no_row_is_sent() -> None:
    clock = FakeClock()
    origin, target = FakeCluster(clock, 0), FakeCluster(clock, 0)
    asked = threading.Event()

    def agreed() -> Agreements:
        asked.set()
        return (), {}

    made = collector(clock, origin, target, agreed)
    made.start_due()
    assert asked.wait(10)
    made.start_due()
    assert made.rows() == []
    assert (origin.wanted, target.wanted) == ([], [])


def test_that_no_migration_is_agreed_about_is_known_only_if_the_topic_was_just_read() -> None:
    clock = FakeClock()
    answers: list[Agreements | HeadroomError] = []
    hangs, released, entered = threading.Event(), threading.Event(), threading.Event()

    def agreed() -> Agreements:
        answer = answers[-1]
        if hangs.is_set():
            entered.set()
            assert_released(released)
        if isinstance(answer, HeadroomError):
            raise answer
        return answer

    made = collector(clock, FakeCluster(clock, 0), FakeCluster(clock, 0), agreed)

    def known_after(answer: Agreements | HeadroomError, expected: bool) -> None:
        answers.append(answer)
        clock.s += 20.0
        rows_after(made, 10, lambda rows: made.is_none_agreed is expected)

    assert made.rows() == []
    assert not made.is_none_agreed
    known_after(((), {}), True)
    known_after(one_agreement(), False)
    known_after(((), {}), True)
    # It could not be read: there may be one by now.
    known_after(HeadroomError("topic", "was not read to its end", "Try again."), False)
    known_after(((), {}), True)
    hangs.set()
    rows_after(made, 10, lambda rows: entered.is_set())
    # The last reading is as old as three intervals.
    clock.s += 16.0
    assert made.rows() == []
    assert not made.is_none_agreed
    released.set()


def test_a_shielded_partition_causes_no_call_to_the_origin() -> None:
    clock = FakeClock()
    origin = FakeCluster(clock, 100_000)
    made = collector(clock, origin, FakeCluster(clock, 0), lambda: one_agreement(shielded=True))
    (row,) = rows_after(made, 10, lambda rows: bool(rows and rows[0]["target"]))
    assert (row["origin"], row["origin_error"], origin.wanted) == (None, "nothing calls it: shielded", [])


def test_an_origin_that_hangs_costs_its_own_columns_and_no_tick() -> None:
    clock = FakeClock()
    released = threading.Event()
    origin = FakeCluster(clock, 100_000, lambda: assert_released(released))
    made = collector(clock, origin, FakeCluster(clock, 0), one_agreement)
    try:
        began_s = time.monotonic()
        (row,) = rows_after(made, 10, lambda rows: bool(rows and rows[0]["target"]))
        assert time.monotonic() - began_s < 9
        assert (row["origin"], row["origin_error"], row["epochs"][0]["epoch_end"]) == (
            None,
            "it has not answered yet",
            None,
        )
        # One call at a time, however many ticks pass.
        for _ in range(5):
            made.start_due()
            made.rows()
        assert len(origin.wanted) == 1
    finally:
        released.set()


def test_an_origin_that_fails_is_unknown_with_its_reason_once_the_last_reading_is_old() -> None:
    clock = FakeClock()
    failing = threading.Event()

    def problem() -> None:
        if failing.is_set():
            raise HeadroomError("cluster old", "no broker answered", "See that it is up.")

    made = collector(clock, FakeCluster(clock, 100_000, problem), FakeCluster(clock, 0), one_agreement)
    rows_after(made, 10, lambda rows: bool(rows and rows[0]["origin"]))
    failing.set()
    clock.s += 4.0
    (row,) = rows_after(made, 10, lambda rows: bool(rows))
    assert row["origin"] is not None
    clock.s += 60.0
    (row,) = rows_after(made, 10, lambda rows: bool(rows and rows[0]["target"] and rows[0]["origin_error"]))
    assert row["origin"] is None
    assert "no broker answered" in row["origin_error"]
    # Its groups are not gone: their places are unknown.
    assert [(group["group"], group["origin_offset"]) for group in row["groups"]] == [("billing", None)]


def test_rates_are_of_readings_some_seconds_apart() -> None:
    clock = FakeClock()
    made = collector(clock, FakeCluster(clock, 100_000), FakeCluster(clock, 0), one_agreement)
    (first,) = rows_after(made, 10, lambda rows: bool(rows and rows[0]["origin"] and rows[0]["target"]))
    assert first["origin"]["prev_read_ms"] is None
    clock.s += 10.0
    (row,) = rows_after(made, 10, lambda rows: bool(rows and (rows[0]["origin"] or {}).get("prev_read_ms")))
    assert row["origin"]["read_ms"] - row["origin"]["prev_read_ms"] == 10_000
    assert row["origin"]["log_end_offset"] > row["origin"]["prev_log_end_offset"]


def test_of_several_routers_the_furthest_acknowledgement_counts() -> None:
    other = RouterReport("b", "2", "producer", "1", "", {"m": 1}, (AcknowledgedEnd("orders", 0, 3, 1_000),))
    assert acknowledged_ends([other, REPORT], [AGREED]) == {("o", NAME): {3: 1_000}}


def test_a_recreated_topic_has_lost_nothing_of_the_one_before() -> None:
    """Up to 102,005 of the old log, of the same leader epoch, are no records of the new one, which ends at 2,105."""
    clock = FakeClock()
    created = threading.Event()

    def problem() -> None:
        if created.is_set():
            origin._end, origin.topic_id = 100, "j"

    def agreed() -> Agreements:
        # Withdrawn and agreed again. The router reports what the leaders of the topic before had acknowledged.
        own = replace(AGREED, origin_topic_id="j" if created.is_set() else "i", end_offset=110_000)
        return (own,), {"a": replace(REPORT, acknowledged=(AcknowledgedEnd("orders", 0, 3, 90_000, None, "i"),))}

    origin = FakeCluster(clock, 100_000, problem)
    made = collector(clock, origin, FakeCluster(clock, 0), agreed)
    (row,) = rows_after(made, 10, lambda rows: bool(rows and rows[0]["origin"]))
    assert row["epochs"][0]["acknowledged_end"] >= 102_000
    created.set()
    (row,) = rows_after(made, 10, lambda rows: rows[0]["origin_topic_id"] == rows[0]["origin"]["topic_id"] == "j")
    assert [(one["leader_epoch"], one["acknowledged_end"]) for one in row["epochs"]] == [(3, 2_100)]
    reading = reading_of_row(row, 1_000_000)
    assert reading is not None
    assert migration_progress(reading).lost_offsets == 0


def test_what_was_seen_is_forgotten_once_nothing_is_agreed() -> None:
    """Of a cluster without ids of topics a recreated one looks like the one before."""
    clock = FakeClock()
    origin, agreed = FakeCluster(clock, 100_000), [AGREED]
    made = collector(clock, origin, FakeCluster(clock, 0), lambda: (tuple(agreed), {}))
    rows_after(made, 10, lambda rows: bool(rows and rows[0]["epochs"]))
    agreed.clear()
    rows_after(made, 10, lambda rows: not rows)
    assert not made._seen_ends.replicated()


def test_another_cluster_than_was_agreed_is_not_taken_for_the_origin() -> None:
    clock = FakeClock()
    origin = FakeCluster(clock, 100_000)
    origin.cluster_id = "x"
    made = collector(clock, origin, FakeCluster(clock, 0), one_agreement)
    (row,) = rows_after(
        made, 10, lambda rows: bool(rows and rows[0]["target"] and "it has not" not in rows[0]["origin_error"])
    )
    assert (row["origin"], row["origin_error"]) == (None, "it is the cluster x, and o was agreed")
    # Its groups are those of another cluster.
    assert row["groups"] is None


def mirrored(**terms: Any) -> Callable[[], Agreements]:
    return lambda: one_agreement(method="mirrored", **terms)


def of_both(clock: FakeClock, origin_id: str = "o") -> tuple[FakeCluster, FakeCluster]:
    """Both clusters with their ids."""
    origin, target = FakeCluster(clock, 100_000), FakeCluster(clock, 0)
    origin.cluster_id, target.cluster_id = origin_id, "t"
    return origin, target


def test_a_mirrored_partition_has_the_newest_sync_so_that_the_mirrors_lag_is_known() -> None:
    clock = FakeClock()
    planned = mirrored(status="planned", target_base_offset=None)
    made = collector(clock, *of_both(clock), planned, FakeFollower(syncs_at(7, 8, restart=True)))
    (row,) = rows_after(made, 10, lambda rows: bool(rows and rows[0]["sync_origin_offset"]))
    assert (row["sync_origin_offset"], row["sync_target_offset"], row["sync_error"]) == (80, 80, None)
    reading = reading_of_row(row, 1_000_000)
    assert reading is not None
    # All between the sync and the target's end, read before the origin's, is copied.
    copied = row["earlier_target_end"] or row["target"]["log_end_offset"]
    assert migration_progress(reading).mirror_lag_offsets == row["origin"]["log_end_offset"] - copied


def test_syncs_are_sent_until_they_are_written_and_once_after_that() -> None:
    clock = FakeClock()
    made = collector(clock, *of_both(clock), mirrored(), FakeFollower(syncs_at(7, 8, restart=True)))
    rows_after(made, 10, lambda rows: bool(made.sync_rows()))
    for _ in range(2):
        made.rows()
        assert [(row["sync_offset"], row["after_offset"]) for row in made.sync_rows()] == [(7, None), (8, 7)]
    (first, _) = made.sync_rows()
    assert sorted(first) == sorted(row_columns("migration_syncs"))
    assert all(first[name] is not None for name in REQUIRED["migration_syncs"])
    assert (first["origin_cluster_id"], first["target_cluster_id"], first["origin_topic_id"]) == ("o", "t", "i")
    made.confirm_sync_rows()
    made.rows()
    assert made.sync_rows() == []


@pytest.mark.parametrize(
    ("most_rows", "expected"),
    [(2_000, [[(0, None), (1, 0), (2, 0), (3, 0)]]), (2, [[(0, None), (3, 0)], [(1, 0), (2, 0)]])],
)
def test_syncs_that_a_group_has_yet_to_pass_are_sent_too_after_the_others(
    most_rows: int, expected: list[list[tuple[int, int | None]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync_rows, "_MOST_ROWS", most_rows)
    clock = FakeClock()
    records = [SyncRecord(at, NAME, 1_000_000 + 300 * at, 300 * at, at * 1_000) for at in range(4)]
    follower = FakeFollower(SyncReading(frozenset({NAME}), "s", 2, True, 0, 4, True, records))
    made = collector(clock, *of_both(clock), mirrored(), follower)
    rows_after(made, 10, lambda rows: bool(made.sync_rows()))
    for own in expected:
        assert [(row["sync_offset"], row["after_offset"]) for row in made.sync_rows()] == own
        made.confirm_sync_rows()
        made.rows()
    assert made.sync_rows() == []


def syncs_of(names: Sequence[TopicPartition]) -> SyncTrails:
    """Three syncs of each partition, 300 offsets apart, of which the first and the last are kept already."""
    records = [SyncRecord(at, name, 300 * at, 300 * at, 0) for at, name in enumerate([*names] * 3)]
    trails = SyncTrails()
    trails.add(SyncReading(frozenset(names), "s", 1, True, 0, len(records), True, records))
    trails.confirm({name: {one.record.offset for one in trails.waiting(name, 9, 100_000)} for name in names})
    return trails


def of_readings(names: Sequence[TopicPartition], read: Sequence[TopicPartition]) -> MigrationFacts:
    """Mirrored partitions, and readings of some of them, with a group at the start."""
    logs, committed = {name: LogOffsets(0, 900, 900) for name in read}, {"billing": dict.fromkeys(read, 0)}
    origin, target = (
        ClusterFacts(ClusterReading(0.0, 0, side, logs, {"orders": "i"}, groups={"billing": True}, committed=committed))
        for side in ("o", "t")
    )
    agreed = [replace(AGREED, partition=name.partition, method="mirrored") for name in names]
    return MigrationFacts(agreed, origin=origin, target=target)


def test_partitions_take_turns_where_a_tick_has_no_room_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows a tick, and a tick every 2 s: of four partitions each is to be sent before long."""
    monkeypatch.setattr(sync_rows, "_MOST_ROWS", 2)
    names = [TopicPartition("orders", partition) for partition in range(4)]
    trails, facts = syncs_of(names), of_readings(names, names)
    ticks = [sync_rows.sync_rows(facts, trails, second * 1_000) for second in range(100, 140, 2)]
    assert {len(rows) for rows in ticks} == {2}
    assert {row["partition"] for rows in ticks for row in rows} == {0, 1, 2, 3}


def test_syncs_of_a_partition_that_the_origin_was_not_asked_about_wait_for_its_groups() -> None:
    """Partition 1 was agreed, or its shield ended, after the reading began."""
    names = [NAME, TopicPartition("orders", 1)]
    trails = syncs_of(names)
    (row,) = sync_rows.sync_rows(of_readings(names, [NAME]), trails, 100_000)
    assert row["partition"] == 0
    later = sync_rows.sync_rows(of_readings(names, names), trails, 101_000)
    assert [row["partition"] for row in later] == [0, 1]


def test_syncs_of_clusters_that_are_not_the_agreed_ones_are_neither_sent_nor_used() -> None:
    clock = FakeClock()
    follower = FakeFollower(syncs_at(7, restart=True))
    made = collector(clock, *of_both(clock, "another"), mirrored(), follower)
    (row,) = rows_after(
        made, 10, lambda rows: bool(rows and rows[0]["target"] and "another" in rows[0]["origin_error"])
    )
    deadline = time.monotonic() + 10
    while len(follower.asked) < 2 and time.monotonic() < deadline:
        made.start_due()
        (row,) = made.rows()
    assert (row["sync_origin_offset"], made.sync_rows()) == (None, [])


@pytest.mark.parametrize(
    "terms", [{"method": "routed"}, {"method": "linked"}, {"method": "mirrored", "shielded": True}]
)
def test_no_syncs_are_read_for_a_partition_without_a_mirror_or_with_a_shield(terms: dict[str, Any]) -> None:
    clock = FakeClock()
    follower = FakeFollower()
    made = collector(clock, *of_both(clock), lambda: one_agreement(**terms), follower)
    (row,) = rows_after(made, 10, lambda rows: bool(rows and rows[0]["target"]))
    assert (follower.asked, row["sync_origin_offset"], row["sync_error"]) == ([], None, None)


def test_syncs_that_cannot_be_read_are_unknown_with_the_reason_and_cost_nothing_else() -> None:
    clock = FakeClock()
    foreign = HeadroomError("mm2-offset-syncs.t.internal", "its record at offset 9 is not an offset sync", "See it.")
    follower = FakeFollower(syncs_at(7, 8, restart=True), foreign, syncs_at())
    made = collector(clock, *of_both(clock), mirrored(), follower)
    (row,) = rows_after(made, 10, lambda rows: bool(rows and "offset 9" in str(rows[0]["sync_error"])))
    assert "mm2-offset-syncs.t.internal" in row["sync_error"]
    assert (row["sync_origin_offset"], row["sync_target_offset"]) == (None, None)
    assert row["origin"] is not None
    asked = len(follower.asked)
    made.start_due()
    made.rows()
    # The next try waits.
    assert len(follower.asked) == asked
    clock.s += 11.0
    (row,) = rows_after(made, 10, lambda rows: bool(rows and rows[0]["sync_origin_offset"]))
    assert (row["sync_origin_offset"], row["sync_error"]) == (80, None)


def test_a_mirror_whose_syncs_hang_costs_their_columns_and_no_tick() -> None:
    clock = FakeClock()
    released = threading.Event()
    follower = FakeFollower()
    follower.read = lambda names: (assert_released(released), syncs_at(restart=True))[1]  # type: ignore[method-assign]
    made = collector(clock, *of_both(clock), mirrored(), follower)
    try:
        (row,) = rows_after(made, 10, lambda rows: bool(rows and rows[0]["target"] and rows[0]["origin"]))
        assert (row["sync_origin_offset"], row["sync_error"]) == (None, "they have not been read to their end yet")
    finally:
        released.set()


def test_what_was_deleted_on_the_origin_is_not_watched_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its row would have an unknown log for ever, and its alerts would go on as long."""
    over = replace(AGREED, partition=1, status="aged", origin_dropped=True)

    class FakeReader:
        def __init__(self) -> None:
            self.agreements = {own.origin_name: own for own in (AGREED, over)}
            self.reports = {"a": REPORT}

        def exists(self) -> bool:
            return True

        def read_to_end(self, timeout_s: float) -> None:
            return

    monkeypatch.setattr(migration_collector, "new_agreement_reader", lambda cluster: FakeReader())
    assert AgreementTopic(Settings()).read() == ((AGREED,), {"a": REPORT})
