"""Judgement of one partition of a migration, with numbers computed by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.planning.migration.losses import lost_at_switch
from headroom.planning.migration.progress.judgement import migration_progress
from headroom.planning.migration.progress.progress import MigrationVerdict
from headroom.planning.migration.progress.reading import GroupReading, MigrationReading
from headroom.planning.migration.readings import LogOffsets, TopicRules
from headroom.schemas.migrations import PartitionAgreement

NOW_MS = 1_000_000_000
HOUR_MS = 3_600_000
RULES = TopicRules("delete", HOUR_MS, -1, 2, False)
AGREED = PartitionAgreement(
    "m", 1, "old-id", "new-id", "orders", 0, "o", "t", 700_000, 0, "migrating", routers=("a", "b")
)
# The paper's partition: 600,000 are left at 2,000/s, 300 s.
LOG = LogOffsets(0, 100_000, 100_000, NOW_MS)
# E is reached, and the newest record is of now.
FULL = LogOffsets(0, 700_000, 700_000, NOW_MS)


def reading(agreement: dict[str, Any] | None = None, **parts: Any) -> MigrationReading:
    known: dict[str, Any] = {
        "origin": LOG,
        "target": LogOffsets(0, 0, 0),
        "write_offsets_per_s": 2_000.0,
        "rules": RULES,
        "agreed": {"a": 1, "b": 1},
        "groups": (),
        "acknowledged": {3: 100_000},
        "epoch_ends": {3: 100_000},
        "leader_end": 100_000,
    }
    return MigrationReading(replace(AGREED, **agreement or {}), NOW_MS, **known | parts)


def verdict(agreement: dict[str, Any] | None = None, **parts: Any) -> tuple[str, str]:
    found = migration_progress(reading(agreement, **parts))
    return found.verdict.value, found.reason


def billing(committed: int | None, rate: float | None = 100.0, **parts: Any) -> GroupReading:
    return GroupReading("billing", committed, None, rate, True, **parts)


def test_a_partition_on_its_way_has_the_numbers_of_the_paper() -> None:
    found = migration_progress(reading())
    assert (found.left_offsets, found.switch_eta_s, found.beyond_offsets) == (600_000, 300.0, 0)
    assert (found.unstable_offsets, found.lost_offsets, found.at_risk_offsets) == (0, 0, 0)
    assert found.kept_s == 3_900.0
    assert found.removable is False
    assert found.verdict is MigrationVerdict.ON_PLAN
    assert found.reason == "E 700,000 is reached in 5 min: 600,000 offsets are left at 2,000.0/s."


def test_a_reader_has_what_it_left_and_what_it_would_lose() -> None:
    # The case of test_retention: 650,000 - 3,900 s x 100/s.
    found = migration_progress(reading(groups=(billing(50_000),)))
    (group,) = found.groups or ()
    assert (group.client_offset, group.left_offsets, group.read_offsets_per_s) == (50_000, 650_000, 100.0)
    assert (group.read_eta_s, group.lost_offsets, group.kept_s) == (6_500.0, 260_000, 3_900.0)
    assert group.enough_retention_ms == 7_440_000
    assert found.verdict is MigrationVerdict.OVERTAKEN
    assert "260,000 of 650,000 offsets" in found.reason


def test_a_reader_of_a_log_that_does_not_get_to_its_end_is_overtaken_all_the_same() -> None:
    """Producers have stopped at 100,000: of the 50,000 that it has left there, it reads 3,600 in an hour."""
    found = migration_progress(reading(write_offsets_per_s=0.0, groups=(billing(50_000, 1.0),)))
    (group,) = found.groups or ()
    assert (group.left_offsets, group.lost_offsets, group.kept_s) == (650_000, 46_400, None)
    assert found.verdict is MigrationVerdict.NEVER


def test_the_age_of_the_last_record_below_the_end_counts_and_not_that_of_what_follows() -> None:
    """It is 50 min old, and retention is 1 h: of 60,000 at 50/s, 30,000 are read in 10 min."""
    followed = LogOffsets(0, 700_010, 700_010, NOW_MS)
    slow = (billing(640_000, 50.0),)
    found = migration_progress(reading(origin=followed, groups=slow, end_newest_ms=NOW_MS - 50 * 60_000))
    assert [(group.lost_offsets, group.kept_s) for group in found.groups or ()] == [(30_000, 600.0)]
    assert (found.kept_s, found.verdict) == (600.0, MigrationVerdict.OVERTAKEN)
    # How old it is was not seen.
    found = migration_progress(reading(origin=followed, groups=slow))
    assert [(group.left_offsets, group.lost_offsets) for group in found.groups or ()] == [(60_000, None)]
    assert found.kept_s is None


@pytest.mark.parametrize(
    ("origin", "target", "offset", "left"),
    [
        (650_000, None, 650_000, 50_000),
        # Everything below E is read; the target has client offset 700,000 + 20.
        (700_000, 20, 700_020, 0),
        # What it read on the origin beyond E was dropped.
        (700_300, None, 700_000, 0),
        (None, None, None, None),
    ],
)
def test_a_group_continues_where_readers_do(
    origin: int | None, target: int | None, offset: int | None, left: int | None
) -> None:
    found = migration_progress(reading(origin=FULL, groups=(GroupReading("billing", origin, target),)))
    assert [(group.client_offset, group.left_offsets) for group in found.groups or ()] == [(offset, left)]


BASE = {"mirrored": 720_000, "linked": 700_000}


@pytest.mark.parametrize(
    ("method", "parts", "left"),
    [
        # Set by the command, or moved by hand, and it reads there: its last offset on the origin stays.
        *((method, {"has_grown_on_target": True, "target_active": True}, 0) for method in BASE),
        *((method, {"has_grown_on_target": True}, 0) for method in BASE),
        # MirrorMaker commits it there, and it may begin on the origin again.
        *((method, {"has_grown_on_target": True, "target_active": False}, None) for method in BASE),
        *((method, {"has_grown_on_target": False, "target_active": True}, None) for method in BASE),
        *((method, {"has_grown_on_target": None}, None) for method in BASE),
        *((method, {"has_grown_on_target": True, "active": None}, None) for method in BASE),
        # It reads the origin.
        *((method, {"has_grown_on_target": True, "active": True}, 650_000) for method in BASE),
        *((method, {"target_committed": None}, 650_000) for method in BASE),
        # Behind all copies.
        *((method, {"target_committed": base + 1}, 0) for method, base in BASE.items()),
        *((method, {"target_committed": base}, None) for method, base in BASE.items()),
        # These readers follow once they have read the origin, of which the target has no copies.
        ("drained", {"has_grown_on_target": True, "target_active": True}, 650_000),
        ("routed", {"has_grown_on_target": True, "target_active": True}, 650_000),
    ],
)
def test_a_group_that_was_moved_to_copies_needs_the_origin_no_more(
    method: str, parts: dict[str, Any], left: int | None
) -> None:
    known = {"origin_committed": 50_000, "target_committed": 60_000, "active": False, "read_offsets_per_s": 1.0}
    group = GroupReading("billing", **known | parts)
    base = BASE.get(method, 0)
    own = reading({"method": method, "status": "migrated", "target_base_offset": base}, origin=FULL, groups=(group,))
    found = migration_progress(replace(own, target=LogOffsets(0, 800_000, 800_000)))
    (evaluated,) = found.groups or ()
    assert (evaluated.left_offsets, (found.verdict is MigrationVerdict.OVERTAKEN)) == (left, bool(left))
    if not left:
        assert evaluated.lost_offsets == left


def test_a_group_beyond_a_log_that_was_truncated_is_unknown() -> None:
    found = migration_progress(reading(groups=(billing(120_000),)))
    assert [(group.left_offsets, group.lost_offsets) for group in found.groups or ()] == [(None, None)]


def test_a_group_that_gave_up_the_origin_misses_what_was_left() -> None:
    found = migration_progress(reading({"status": "aged"}, origin=FULL, groups=(billing(690_000),)))
    assert [(group.left_offsets, group.lost_offsets) for group in found.groups or ()] == [(0, 10_000)]


def test_what_each_epoch_lost_is_added_and_overlaps_count_once() -> None:
    # Epoch 3: 100 of 1,000; epoch 4 began at 900, kept 950 and acknowledged 1,100: 150 more.
    own = reading(acknowledged={3: 1_000, 4: 1_100}, epoch_ends={3: 900, 4: 950})
    assert migration_progress(own).lost_offsets == 250
    # The log ends at 800 for both: it has nothing of epoch 4, and 800 to 1,100 are gone.
    own = reading(acknowledged={3: 1_000, 4: 1_100}, epoch_ends={3: 800, 4: 800})
    assert migration_progress(own).lost_offsets == 300
    assert migration_progress(own).reason == (
        "The origin's log no longer has 300 acknowledged offsets below E 700,000."
    )


def test_a_known_loss_is_not_hidden_by_an_unknown_epoch() -> None:
    assert migration_progress(reading(acknowledged={3: 1_000, 4: 9}, epoch_ends={3: 900})).lost_offsets == 100
    assert migration_progress(reading(acknowledged={3: 900, 4: 9}, epoch_ends={3: 900})).lost_offsets is None
    assert migration_progress(reading(acknowledged={})).lost_offsets is None


@pytest.mark.parametrize(
    ("agreement", "parts", "lost"),
    [
        # All in-sync replicas had 100, the leader 150: of 50 nobody knows whether they were acknowledged.
        ({}, {"acks": ("1", "all")}, None),
        ({}, {"acks": ()}, None),
        ({}, {"acks": ("all",)}, 0),
        ({"method": "drained"}, {"acks": ("all",)}, None),
        # They are there, or belong to the target.
        ({}, {"epoch_ends": {3: 150}}, 0),
        ({"end_offset": 100}, {}, 0),
        # A router has reported as much.
        ({}, {"unreported_ends": {}}, 0),
        # What is known to be lost stays known.
        ({}, {"acknowledged": {3: 120}}, 20),
    ],
)
def test_what_a_leader_had_beyond_its_epoch_is_no_loss_of_zero(
    agreement: dict[str, Any], parts: dict[str, Any], lost: int | None
) -> None:
    known: dict[str, Any] = {"acknowledged": {3: 100}, "epoch_ends": {3: 100}, "unreported_ends": {3: 150}}
    assert migration_progress(reading(agreement, **known | parts)).lost_offsets == lost


@pytest.mark.parametrize(
    ("agreement", "parts", "lost"),
    [
        # The leader of epoch 5 has died at 100, and what it acknowledged after the last reading nobody reports.
        ({}, {}, None),
        ({}, {"acks": ()}, None),
        ({"method": "mirrored"}, {"acks": ("all",)}, None),
        ({}, {"acks": ("all",)}, 0),
        # A router has reported the epoch.
        ({}, {"unreported_ends": {6: 120}}, 0),
        # It leads still, or where it ended all below E is there.
        ({}, {"leader_epoch": 5, "acknowledged": {5: 100}}, 0),
        ({"end_offset": 100}, {}, 0),
        ({"origin_end": 100}, {}, 0),
        # The next leader has not been seen yet.
        ({}, {"acknowledged": {5: 100}}, None),
        # What is known to be lost stays known.
        ({}, {"acknowledged": {5: 110, 6: 120}}, 10),
    ],
)
def test_of_a_leader_that_was_replaced_an_unreported_loss_is_unknown(
    agreement: dict[str, Any], parts: dict[str, Any], lost: int | None
) -> None:
    known: dict[str, Any] = {
        "acks": ("1",),
        "leader_epoch": 6,
        "acknowledged": {5: 100, 6: 120},
        "epoch_ends": {5: 100, 6: 120},
        "unreported_ends": {5: 100, 6: 120},
    }
    assert migration_progress(reading(agreement, **known | parts)).lost_offsets == lost


@pytest.mark.parametrize(
    ("parts", "lost"),
    [
        ({"acks": ("1",)}, None),
        ({"acks": ("all", "1")}, None),
        ({"acks": ("all",)}, 0),
        ({"acks": ("1",), "acknowledged": {3: 100_010}}, 10),
    ],
)
def test_without_all_notes_of_a_router_a_loss_is_unknown(parts: dict[str, Any], lost: int | None) -> None:
    assert migration_progress(reading(has_incomplete_reports=True, **parts)).lost_offsets == lost


def test_what_only_the_leader_has_is_at_risk_below_the_end() -> None:
    assert migration_progress(reading(leader_end=100_040, acks=("all", "1"))).at_risk_offsets == 40
    near = LogOffsets(0, 699_990, 699_990)
    assert migration_progress(reading(origin=near, leader_end=700_040)).at_risk_offsets == 10
    assert migration_progress(reading(leader_end=None)).at_risk_offsets is None
    assert migration_progress(reading(acks=("all", "1"))).acks == "1"
    assert migration_progress(reading()).acks is None


def agreed_ago(seconds: int) -> dict[str, Any]:
    """E was 300 s ahead as it was agreed, and half of that is what it may slip. It is 300 s ahead now."""
    read_ms = NOW_MS - seconds * 1000
    return {"origin_position": 100_000, "origin_offsets_per_s": 2_000.0, "origin_read_ms": read_ms}


VERDICTS = [
    ("shielded", {"shielded": True}, {}, "E is 700,000"),
    ("lost", {}, {"acknowledged": {3: 100_100}}, "100 acknowledged"),
    ("never", {}, {"write_offsets_per_s": 0.0}, "600,000 offsets to E 700,000"),
    ("diverged", {"method": "linked", "status": "planned"}, {"target": LogOffsets(0, 100_001, 0)}, "100,001"),
    ("late", agreed_ago(151), {}, "600,000 offsets are left"),
    ("early", {"status": "planned"}, {"origin": LogOffsets(0, 700_010, 700_010)}, "10 offsets beyond E 700,000"),
    ("early", {"status": "planned"}, {"origin": FULL, "agreed": {}}, "2 of 2 routers"),
    ("early", {"status": "planned", **agreed_ago(-151)}, {"agreed": {"a": 1}}, "1 of 2 routers"),
    ("waiting", {"status": "planned"}, {"agreed": {"a": 1}}, "1 of 2 routers have not agreed: b"),
    ("waiting", {"status": "planned", "end_offset": None}, {}, "ends at 100,000 and grows by 2,000.0/s"),
    ("waiting", {"status": "planned"}, {"origin": FULL}, "the start is not agreed"),
    ("on_plan", {"status": "planned"}, {}, "in 5 min"),
    ("on_plan", agreed_ago(149), {}, "in 5 min"),
    ("waiting", {"status": "planned", **agreed_ago(-149)}, {"agreed": {"a": 1}}, "1 of 2 routers"),
    ("draining", {}, {"origin": LogOffsets(0, 700_000, 699_990)}, "10 offsets are behind an open transaction"),
    ("draining", {}, {"origin": FULL, "groups": (billing(699_000),)}, "1 of 1 groups have up to 1,000 offsets"),
    ("drained", {}, {"origin": FULL}, "has it as migrating"),
    ("drained", {"status": "migrated"}, {"origin": FULL}, "still grows by 2,000.0/s"),
    ("removable", {"status": "migrated"}, {"origin": FULL, "write_offsets_per_s": 0.0}, "all 0 groups"),
    ("no_data", {}, {"origin": LogOffsets()}, "log end of the origin is unknown"),
    ("no_data", {}, {"is_origin_up": False, "origin_failure": "timed out"}, "timed out"),
    ("no_data", {}, {"origin_topic_id": "x"}, "recreated"),
    ("no_data", {}, {"write_offsets_per_s": None}, "600,000 offsets are left at an unknown rate"),
    ("no_data", {"end_offset": None}, {}, "E is unknown"),
    (
        "no_data",
        {"status": "migrated"},
        {"origin": FULL, "groups": None, "write_offsets_per_s": 0.0},
        "groups could not be listed",
    ),
]


REOPENED = {"status": "planned", "end_offset": 100_000, "reopened_end": 700_000}


@pytest.mark.parametrize(
    ("word", "agreement", "parts", "text"),
    [
        # No run is under way: nothing is written, and whoever writes next is held.
        ("early", {}, {"write_offsets_per_s": 0.0}, "E 100,000 is reached, all routers have agreed, and no run"),
        ("early", {}, {"agreed": {"a": 1}}, "E 100,000 is reached, and 1 of 2 routers"),
        ("early", {}, {"origin": LogOffsets(0, 100_005, 100_005)}, "5 offsets beyond E 100,000"),
        ("on_plan", {"end_offset": 102_000}, {}, "2,000 offsets are left"),
        ("shielded", {"shielded": True}, {}, "Nothing calls the origin"),
        ("no_data", {}, {"is_origin_up": False}, "does not answer"),
    ],
)
def test_a_nearer_end_that_is_not_in_force_says_what_it_costs_whatever_the_verdict(
    word: str, agreement: dict[str, Any], parts: dict[str, Any], text: str
) -> None:
    found, reason = verdict(REOPENED | agreement, **parts)
    assert (found, text in reason) == (word, True), reason
    end = f"{(REOPENED | agreement)['end_offset']:,}"
    assert reason.endswith(
        f" It is agreed instead of 700,000: until a run goes on, producers hold what lands from {end} on, and readers "
        "wait there."
    )


@pytest.mark.parametrize(("word", "agreement", "parts", "text"), VERDICTS)
def test_each_verdict_names_its_numbers(word: str, agreement: dict[str, Any], parts: dict[str, Any], text: str) -> None:
    found, reason = verdict(agreement, **parts)
    assert (found, text in reason) == (word, True), reason


SEALED_MS = NOW_MS - HOUR_MS
BEYOND: dict[str, Any] = {"status": "migrated", "sealed_ms": SEALED_MS}


@pytest.mark.parametrize(
    ("agreement", "log", "expected"),
    [
        # Routers wrote 50 from E on, and moved them; 20 s later it is another client.
        (BEYOND, LogOffsets(0, 700_050, 700_050, SEALED_MS + 20_000), (False, True)),
        (BEYOND, LogOffsets(0, 700_050, 700_050, SEALED_MS + 20_001, 700_000), (True, False)),
        # A record below E has a time of the future: of later ones nothing is known by theirs.
        (BEYOND, LogOffsets(0, 700_050, 700_050, SEALED_MS + 20_001, 699_999), (None, None)),
        (BEYOND, LogOffsets(0, 700_050, 700_050, SEALED_MS + 20_001, None), (None, None)),
        # Retention has deleted these: a removal loses nothing.
        (BEYOND, LogOffsets(700_050, 700_050, 700_050, SEALED_MS + 20_001), (False, True)),
        (BEYOND, LogOffsets(0, 700_050, 700_050, None), (None, None)),
        # An earlier Headroom sealed it.
        (BEYOND | {"sealed_ms": None}, LogOffsets(0, 700_050, 700_050, NOW_MS), (None, None)),
        (BEYOND | {"sealed_ms": None}, LogOffsets(0, 700_000, 700_000, NOW_MS), (False, True)),
        (BEYOND | {"method": "drained"}, LogOffsets(0, 700_001, 700_001, SEALED_MS), (True, False)),
        (BEYOND | {"method": "drained"}, LogOffsets(700_001, 700_001, 700_001), (False, True)),
        # The log had come back at 690,000, which was accepted: no reader gets the five records that follow.
        (BEYOND | {"origin_end": 690_000}, LogOffsets(0, 690_005, 690_005, SEALED_MS + 20_001, 690_004), (True, False)),
        (BEYOND | {"origin_end": 690_000}, LogOffsets(0, 690_000, 690_000, SEALED_MS), (False, True)),
        (BEYOND | {"method": "drained", "origin_end": 690_000}, LogOffsets(0, 690_005, 690_005), (True, False)),
    ],
)
def test_what_another_client_wrote_from_the_end_on_keeps_the_origin(
    agreement: dict[str, Any], log: LogOffsets, expected: tuple[bool | None, bool | None]
) -> None:
    found = migration_progress(reading(agreement, origin=log, write_offsets_per_s=0.0))
    assert (found.has_late_writes, found.removable) == expected


def test_what_follows_an_accepted_loss_is_counted_from_where_readers_leave_the_origin() -> None:
    log = LogOffsets(0, 690_005, 690_005, NOW_MS)
    assert migration_progress(reading(BEYOND | {"origin_end": 690_000}, origin=log)).beyond_offsets == 5


def test_the_reason_names_the_last_of_them() -> None:
    log = LogOffsets(0, 700_050, 700_050, NOW_MS, 700_049)
    assert verdict(BEYOND, origin=log, write_offsets_per_s=0.0) == (
        "drained",
        "E 700,000 is reached and all 0 groups have read up to it; clients that do not use the routing library wrote "
        "some of the 50 offsets from E on, the last at 13:46:40 UTC.",
    )


def test_a_time_of_the_future_below_the_end_leaves_it_unknown_who_wrote_what_follows() -> None:
    log = LogOffsets(0, 700_050, 700_050, NOW_MS, 699_999)
    _, reason = verdict(BEYOND, origin=log, write_offsets_per_s=0.0)
    assert "it is unknown whether routers wrote all of the 50 offsets from E on" in reason


def test_an_origin_that_was_ignored_and_is_back_below_its_end_is_not_on_plan() -> None:
    """E was where the log could have been by its rate; a client that is no router writes there."""
    found, reason = verdict({"status": "aged", "ignore_origin": True}, write_offsets_per_s=10.0)
    assert (found, reason) == (
        "drained",
        "Readers have given up the origin, which is back: it is 600,000 offsets before E 700,000, and grows by 10.0/s.",
    )


def test_a_copy_has_to_be_complete_before_the_origin_can_go() -> None:
    linked = {"method": "linked", "status": "migrated", "target_base_offset": 700_000}
    known: dict[str, Any] = {"origin": FULL, "write_offsets_per_s": 0.0, "target_offsets_per_s": 100.0}
    found = migration_progress(reading(linked, target=LogOffsets(0, 690_000, 690_000), **known))
    assert (found.mirror_lag_offsets, found.mirror_eta_s, found.removable) == (10_000, 100.0, False)
    assert found.verdict is MigrationVerdict.DRAINING
    found = migration_progress(reading(linked, target=LogOffsets(0, 700_500, 700_500), **known))
    assert (found.mirror_lag_offsets, found.mirror_eta_s, found.removable) == (0, 0.0, True)
    # What was written to the origin alone would be lost with it.
    more = known | {"origin": LogOffsets(0, 700_007, 700_007)}
    found = migration_progress(reading(linked, target=LogOffsets(0, 700_500, 700_500), **more))
    assert (found.beyond_offsets, found.removable) == (7, False)


def test_a_mirror_is_as_far_as_its_log_grew_since_the_newest_sync() -> None:
    # 30 behind the sync at 90,000: 90,030.
    mirrored = {"method": "mirrored", "status": "planned"}
    own = reading(mirrored, target=LogOffsets(0, 2_030, 2_030), last_sync=(90_000, 2_000), target_offsets_per_s=1_000.0)
    found = migration_progress(own)
    assert found.mirror_lag_offsets == 9_970
    assert found.mirror_eta_s == pytest.approx(609.97)
    assert migration_progress(replace(own, last_sync=None)).mirror_lag_offsets is None
    # The target is shorter than its sync: it was truncated or recreated.
    assert migration_progress(replace(own, last_sync=(90_000, 2_030))).mirror_lag_offsets is None


def test_what_a_target_got_while_the_origin_was_read_is_no_divergence() -> None:
    linked = {"method": "linked", "status": "planned"}
    found, _ = verdict(linked, target=LogOffsets(0, 100_005, 100_005), earlier_target_end=99_990)
    assert found == "on_plan"


ORIGIN = ("left_offsets", "switch_eta_s", "beyond_offsets", "unstable_offsets", "lost_offsets", "at_risk_offsets")
READ = ("write_offsets_per_s", "write_bytes_per_s", "mirror_lag_offsets", "kept_s")


@pytest.mark.parametrize(
    "own",
    [reading(is_origin_up=False), reading({"shielded": True}), reading(origin_topic_id="x")],
    ids=["down", "shielded", "recreated"],
)
def test_an_origin_that_is_not_read_gives_no_numbers(own: MigrationReading) -> None:
    found = migration_progress(replace(own, groups=(billing(50_000),), write_bytes_per_s=2e6))
    assert [getattr(found, name) for name in ORIGIN + READ] == [None] * 10
    assert found.removable in (None, False)
    assert [group.left_offsets for group in found.groups or ()] == [None]


offsets = st.none() | st.integers(-1, 1_000)
rates = st.none() | st.sampled_from([0.0, 1.0, 33.3, float("nan")])
logs = st.builds(LogOffsets, offsets, offsets, offsets, st.none() | st.integers(0, NOW_MS), offsets)
epochs = st.dictionaries(st.integers(0, 3), st.integers(0, 1_000))
flags = st.none() | st.booleans()
groups = st.builds(GroupReading, st.sampled_from("abc"), offsets, offsets, rates, flags, flags, flags)
agreements = st.builds(
    lambda **terms: replace(AGREED, **terms),
    end_offset=st.none() | st.integers(0, 1_000),
    target_base_offset=st.none() | st.integers(0, 1_000),
    status=st.sampled_from(["planned", "migrating", "migrated", "aged"]),
    method=st.sampled_from(["routed", "drained", "mirrored", "linked"]),
    ignore_origin=st.booleans(),
    origin_end=st.none() | st.integers(0, 1_000),
    sealed_ms=st.none() | st.integers(0, NOW_MS),
)
readings = st.builds(
    MigrationReading,
    agreements,
    st.just(NOW_MS),
    logs,
    logs,
    offsets,
    st.booleans(),
    write_offsets_per_s=rates,
    write_bytes_per_s=rates,
    target_offsets_per_s=rates,
    leader_end=offsets,
    rules=st.none() | st.just(RULES),
    agreed=st.dictionaries(st.sampled_from("ab"), st.integers(0, 1)),
    acknowledged=epochs,
    epoch_ends=epochs,
    last_sync=st.none() | st.tuples(st.integers(0, 1_000), st.integers(0, 1_000)),
    groups=st.none() | st.lists(groups, max_size=3).map(tuple),
)


@given(readings)
def test_unknown_goes_in_and_none_comes_out(own: MigrationReading) -> None:
    found = migration_progress(own)
    end, log = own.agreement.end_offset, own.origin
    unread = not own.is_origin_up or log.end is None or log.end < 0
    if unread or end is None:
        assert (found.left_offsets, found.switch_eta_s, found.beyond_offsets) == (None, None, None)
    if unread or log.stable is None or log.stable < 0:
        assert found.unstable_offsets is None
    if end is None or not own.is_origin_up:
        assert found.lost_offsets is None
    for rate in (found.write_offsets_per_s, found.write_bytes_per_s):
        assert rate is None or rate >= 0
    assert found.reason.endswith(".")


@given(readings)
def test_only_what_is_wholly_known_can_go(own: MigrationReading) -> None:
    found = migration_progress(own)
    if found.removable:
        assert own.agreement.status in ("migrated", "aged")
        assert own.is_origin_up
        assert None not in (own.origin.stable, own.target.end, own.groups)
        assert all(group.left_offsets == 0 for group in found.groups or ())
        assert found.left_offsets == 0
    assert (found.verdict is not MigrationVerdict.REMOVABLE) or found.removable is True


@pytest.mark.parametrize(
    ("agreement", "parts", "lost"),
    [
        ({"status": "migrated"}, {}, 10),
        # Whoever has no router may have written it.
        ({}, {"earlier_target_end": 1}, None),
        # Not all replicas have it yet.
        ({"status": "migrated"}, {"leader_end": 700_000}, None),
        # Metadata is old, and this is where an earlier epoch ends.
        ({"status": "migrated"}, {"leader_end": 699_980}, None),
        ({"status": "migrated"}, {"leader_end": None}, None),
        ({"status": "migrated", "origin_end": 699_990}, {}, None),
        ({"status": "aged", "ignore_origin": True}, {}, None),
    ],
)
def test_a_log_that_was_at_its_end_and_is_shorter_has_lost_the_rest_also_without_a_report(
    agreement: dict[str, Any], parts: dict[str, Any], lost: int | None
) -> None:
    """Nobody knows of an earlier leader: the collector was started since, and no router has written there."""
    log = LogOffsets(0, 699_990, 699_990, NOW_MS)
    known = {"origin": log, "leader_end": 699_990, "acknowledged": {}, "write_offsets_per_s": 0.0}
    found = migration_progress(reading(agreement, **known | parts))
    assert found.lost_offsets == lost
    assert (found.verdict is MigrationVerdict.LOST) is (lost is not None)


def test_a_loss_that_was_accepted_is_none_any_more() -> None:
    known = {"acknowledged": {3: 100_100}, "epoch_ends": {3: 100_000}}
    assert migration_progress(reading(**known)).lost_offsets == 100
    assert migration_progress(reading({"origin_end": 100_000}, **known)).lost_offsets == 0


@given(st.integers(0, 1_000), st.integers(0, 1_000), st.integers(0, 1_000))
def test_one_epoch_loses_what_lost_at_switch_says(acknowledged: int, kept: int, end: int) -> None:
    own = reading({"end_offset": end}, acknowledged={5: acknowledged}, epoch_ends={5: kept})
    assert migration_progress(own).lost_offsets == lost_at_switch(acknowledged, kept, end)


@pytest.mark.parametrize(
    ("method", "copied", "arriving"),
    [
        ("routed", 0.0, 3.0),
        # Of what drained producers write there already nothing comes again: the origin's rate is without it.
        ("drained", 500.0, 3.0),
        # A mirror that copies 1,500 of 2,000/s stops at the switch.
        ("mirrored", 1_500.0, 0.75),
        ("linked", 2_100.0, 0.0),
        ("mirrored", None, 3.0),
    ],
)
def test_what_comes_with_the_switch_is_what_nothing_copies_yet(
    method: str, copied: float | None, arriving: float
) -> None:
    rates = {"write_bytes_per_s": 3.0, "target_offsets_per_s": copied, "target_leader": 2, "throttled_followers": 1}
    found = migration_progress(reading({"method": method}, **rates))
    assert (found.arriving_bytes_per_s, found.target_leader, found.throttled_followers) == (arriving, 2, 1)
    assert migration_progress(reading({"method": method})).arriving_bytes_per_s is None
    assert migration_progress(reading({"method": method}, throttled_followers=-1)).throttled_followers is None
