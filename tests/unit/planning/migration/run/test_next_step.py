"""Next step of a partition in a run, by hand, and that each one is an allowed change of the agreement."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.planning.migration.agreement import refused_change
from headroom.planning.migration.readings import LogOffsets
from headroom.planning.migration.run.next_step import RunGoal, has_reached, is_done, next_step
from headroom.planning.migration.run.seen import OriginReading, RunStep, RunTerms, SeenPartition
from headroom.schemas.migrations import METHODS, STATUSES, MigrationMethod, PartitionAgreement
from tests.unit.builders.agreements import agreement

TERMS = RunTerms("move", MigrationMethod.ROUTED, prepare_s=5.0)
AGREED = {"writer": 1}
EMPTY = LogOffsets(0, 0, 0)
DOWN = LogOffsets()


def seen(log: LogOffsets | None = None, target: LogOffsets = EMPTY, **more: Any) -> SeenPartition:
    log = log or LogOffsets(0, 8, 8)
    usual = {"offsets_per_s": 2.0, "is_origin_down": log.end is None, "leader_end": log.end}
    return SeenPartition(log, target, 60_000, **{**usual, **more})


def step(of: PartitionAgreement, at: SeenPartition, agreed: Any = None, **terms: Any) -> RunStep:
    return next_step(of, at, AGREED if agreed is None else agreed, replace(TERMS, **terms), 2)


def planned(**changes: Any) -> PartitionAgreement:
    return agreement(**{"target_base_offset": None, **changes})


def moved(method: str, **changes: Any) -> PartitionAgreement:
    return planned(**{"method": method, "end_offset": None, "routers": (), **changes})


def test_a_routed_partition_starts_at_the_targets_log_end_once_all_routers_have_agreed() -> None:
    assert "routers to agree: writer" in step(planned(), seen(), {}).waits_for
    after = step(planned(), seen(target=LogOffsets(3, 7, 7))).after
    assert after == planned(status="migrating", target_base_offset=7)


def test_a_log_that_is_past_its_end_gets_another_one_for_the_same_routers() -> None:
    # 11 + 5 s x 2.
    after = step(planned(), seen(LogOffsets(0, 11, 11))).after
    assert after is not None
    assert (after.end_offset, after.number, after.status, after.routers) == (21, 2, "planned", ("writer",))
    assert (after.origin_position, after.origin_offsets_per_s, after.origin_read_ms) == (11, 2.0, 60_000)
    assert "a write rate" in step(planned(), seen(LogOffsets(0, 11, 11), offsets_per_s=None)).waits_for


def test_what_only_the_leader_has_is_acknowledged_too() -> None:
    """With acks=1, a router may have acknowledged 10 to 14 before it agreed to 10, while a follower hung at 8."""
    at = seen(LogOffsets(0, 8, 8), leader_end=15)
    after = step(planned(), at).after
    assert after is not None
    # 15 + 5 s x 2.
    assert (after.end_offset, after.number, after.status, after.origin_position) == (25, 2, "planned", 15)
    # Without a rate, which is 0 of the high watermark.
    still = step(planned(), replace(at, offsets_per_s=0.0)).after
    assert still is not None
    assert (still.end_offset, still.status) == (15, "planned")
    started = step(replace(still, number=1), replace(at, offsets_per_s=0.0)).after
    assert started is not None
    assert started.status == "migrating"
    unknown = step(planned(), replace(at, leader_end=None))
    assert (unknown.after, unknown.waits_for) == (None, "the end of the origin's log on its leader")
    by_hand = step(moved("drained", target_base_offset=0), replace(at, leader_end=None, is_topic_quiet=True))
    assert by_hand.waits_for == "the end of the origin's log on its leader"
    assert step(moved("drained"), replace(at, target=LogOffsets())).waits_for == "the log ends of both clusters"


def test_what_routers_had_held_and_send_at_once_is_no_rate() -> None:
    # Agreed at 0 a minute before: 120 were written since, 2 a second, and most of them in the last second.
    agreed = planned(end_offset=100, origin_position=0, origin_offsets_per_s=2.0, origin_read_ms=0)
    after = step(agreed, seen(LogOffsets(0, 120, 120), offsets_per_s=90.0)).after
    assert after is not None
    assert (after.end_offset, after.origin_offsets_per_s) == (130, 2.0)
    # Producers that have slowed down get an end that they reach in time.
    slower = step(agreed, seen(LogOffsets(0, 120, 120), offsets_per_s=1.0)).after
    assert slower is not None
    assert slower.end_offset == 125
    # The clock was set back: the time since then is unknown.
    earlier = step(replace(agreed, origin_read_ms=90_000), seen(LogOffsets(0, 120, 120), offsets_per_s=3.0)).after
    assert earlier is not None
    assert earlier.end_offset == 135


def test_other_routers_have_to_agree_to_another_number() -> None:
    after = step(planned(), seen(), routers=("writer", "reader")).after
    assert after is not None
    assert (after.routers, after.number) == (("writer", "reader"), 2)
    assert step(planned(), seen(), {}, routers=("writer",)).after is None


@pytest.mark.parametrize("method", ["drained", "mirrored"])
def test_without_routers_the_log_end_is_the_end_once_producers_have_left(method: str) -> None:
    assert "producers to leave" in step(moved(method), seen()).waits_for
    quiet = seen(target=LogOffsets(0, 5, 5), is_quiet=True, is_topic_quiet=True, is_mirrored=True)
    after = step(moved(method), quiet).after
    assert after is not None
    assert (after.end_offset, after.target_base_offset, after.status, after.number) == (8, 5, "migrating", 1)


@pytest.mark.parametrize("mirrored", [None, False])
def test_a_mirror_that_is_behind_is_waited_for(mirrored: bool | None) -> None:
    at = seen(target=LogOffsets(0, 5, 5), is_topic_quiet=True, is_mirrored=mirrored)
    assert "the mirror to end with" in step(moved("mirrored"), at).waits_for
    unread = replace(at, unread_mirror="the syncs to be read (no record came)")
    assert step(moved("mirrored"), unread).waits_for == "the syncs to be read (no record came)"


def test_producers_that_are_drained_may_have_begun_on_the_target() -> None:
    at = seen(target=LogOffsets(0, 5, 5), is_topic_quiet=True)
    after = step(moved("drained", target_base_offset=0), at).after
    assert after is not None
    assert after.target_base_offset == 0


def test_producers_that_are_drained_may_have_begun_on_the_target_of_an_origin_that_is_ignored() -> None:
    """5,000 are on the target, from its base 0 on: client offsets 28 and on, which no reader may miss."""
    of_topic = moved(
        "drained", target_base_offset=0, origin_position=8, origin_offsets_per_s=2.0, origin_read_ms=50_000
    )
    at = seen(DOWN, LogOffsets(0, 5_000, 5_000))
    ignored = step(of_topic, at, ignore_origin=True).after
    assert ignored is not None
    assert (ignored.end_offset, ignored.target_base_offset, ignored.status) == (28, 0, "planned")
    started = step(ignored, at, ignore_origin=True).after
    assert started is not None
    assert (started.status, started.end_offset, started.target_base_offset) == ("migrating", 28, 0)


def test_an_open_transaction_is_waited_for() -> None:
    assert "transaction at offset 6" in step(moved("drained"), seen(LogOffsets(0, 8, 6), is_topic_quiet=True)).waits_for


def test_a_link_starts_at_the_same_offset_once_it_has_copied_all_and_a_target_that_is_ahead_is_refused() -> None:
    assert "copy 3 offsets" in step(moved("linked"), seen(target=LogOffsets(0, 5, 5), is_topic_quiet=True)).waits_for
    after = step(moved("linked"), seen(target=LogOffsets(0, 8, 8), is_topic_quiet=True)).after
    assert after is not None
    assert (after.end_offset, after.target_base_offset) == (8, 8)
    refusal = step(moved("linked"), seen(target=LogOffsets(0, 9, 9))).refusal
    assert "has diverged: the target ends at 9, beyond the origin's 8" in str(refusal)


def test_it_is_migrated_when_the_stable_offset_is_at_the_end_and_aged_when_the_log_start_is() -> None:
    migrating = agreement(status="migrating")
    assert step(migrating, seen(LogOffsets(0, 12, 9))).waits_for == "1 offsets on the origin"
    # When it was seen: what clients write there later is of none that is routed.
    assert step(migrating, seen(LogOffsets(0, 12, 10))).after == agreement(status="migrated", sealed_ms=60_000)
    migrated = agreement(status="migrated")
    assert step(migrated, seen(LogOffsets(9, 12, 12))).waits_for == "retention on the origin"
    assert step(migrated, seen(LogOffsets(10, 12, 12))).after == agreement(status="aged")
    assert step(migrating, seen(LogOffsets(10, 12, 12))).after == agreement(status="aged", sealed_ms=60_000)
    assert step(agreement(status="aged"), seen(DOWN)) == RunStep()


def test_a_dead_origin_is_waited_for_unless_it_is_ignored() -> None:
    for status in ("planned", "migrating", "migrated"):
        assert step(agreement(status=status), seen(DOWN)).waits_for == "the origin to answer"
        shielded = step(agreement(status=status, shielded=True), seen(DOWN))
        assert "end of its shield" in shielded.waits_for
    for status in ("migrating", "migrated"):
        after = step(agreement(status=status), seen(DOWN), ignore_origin=True).after
        assert after == agreement(status="aged", ignore_origin=True)
        # A leader switch.
        switch = seen(DOWN, is_origin_down=False)
        assert step(agreement(status="migrating"), switch, ignore_origin=True).after is None
        assert step(planned(), replace(switch, last=OriginReading(8, 2.0, 1)), ignore_origin=True).after is None
    # One that still gets records would lose them.
    assert step(agreement(status="migrating"), seen(), ignore_origin=True).waits_for == "2 offsets on the origin"
    assert step(agreement(status="migrated"), seen(LogOffsets(0, 12, 12)), ignore_origin=True).after is not None


def test_an_ignored_origin_ends_at_its_last_end_and_what_its_rate_has_added_for_good() -> None:
    last = OriginReading(8, 2.0, 50_000)
    # 8 + 2/s x 10 s.
    after = step(planned(), seen(DOWN, last=last), ignore_origin=True).after
    assert after is not None
    assert (after.end_offset, after.number, after.ignore_origin, after.status) == (28, 2, True, "planned")
    # After a restart the reading is that of the agreement.
    of_topic = planned(origin_position=8, origin_offsets_per_s=2.0, origin_read_ms=40_000)
    resumed = step(of_topic, seen(DOWN), ignore_origin=True).after
    assert resumed is not None
    assert resumed.end_offset == 48
    # Its routers agree to that one, also if the origin is back.
    assert "writer" in step(after, seen(), AGREED).waits_for
    started = step(after, seen(target=LogOffsets(0, 0, 0)), {"writer": 2}).after
    assert started == replace(after, status="migrating", target_base_offset=0)
    refusal = step(planned(), seen(DOWN), ignore_origin=True).refusal
    assert "cannot ignore its origin" in str(refusal)


def test_an_ignored_link_ends_where_the_target_does() -> None:
    at = seen(DOWN, LogOffsets(0, 6, 6))
    after = step(moved("linked"), at, ignore_origin=True).after
    assert after is not None
    assert after.end_offset == 6
    started = step(after, at).after
    assert started is not None
    assert started.target_base_offset == 6


@pytest.mark.parametrize(
    ("method", "status", "target_end", "is_lost"),
    [
        ("routed", "migrated", 3, True),
        # Something is on the target, so that the origin was at its end.
        ("routed", "migrating", 4, True),
        ("routed", "migrating", 3, False),
        ("drained", "migrating", 3, True),
    ],
)
def test_an_origin_that_comes_back_shorter_ends_the_run_or_is_accepted(
    method: str, status: str, target_end: int, is_lost: bool
) -> None:
    own = agreement(method=method, status=status)
    at = seen(LogOffsets(0, 8, 8), LogOffsets(0, target_end, target_end), is_quiet=True)
    found = step(own, at)
    assert (found.refusal is not None) == is_lost
    # A follower that has become the leader knows its high watermark only a moment later.
    assert step(own, replace(at, is_quiet=False)).refusal is None
    if is_lost:
        assert "has lost 2 records on the origin, at offsets 8 to 9" in str(found.refusal)
        left = replace(own, origin_closed=True) if method == "routed" else own
        accepted = step(left, at, accept_loss=True).after
        assert accepted == replace(left, origin_end=8)
        assert accepted is not None
        sealed = step(accepted, at).after
        assert sealed is None or sealed.status == "migrated"


def test_a_loss_is_accepted_where_the_log_ends_once_all_routers_have_left_the_origin() -> None:
    """A router that knows of nothing may still fill offset 8, below the end offset, and acknowledges it."""
    at = seen(LogOffsets(0, 8, 8), LogOffsets(0, 4, 4), is_quiet=True)
    closed = step(agreement(status="migrating"), at, accept_loss=True).after
    assert closed == agreement(status="migrating", origin_closed=True, number=2)
    assert closed is not None
    waiting = step(closed, at, accept_loss=True)
    assert (waiting.after, waiting.waits_for) == (None, "routers to leave the origin: writer")
    # Without the option too: it was accepted.
    filled = replace(at, log=LogOffsets(0, 9, 9), leader_end=9)
    assert step(closed, filled, {"writer": 2}).after == replace(closed, origin_end=9)
    # One that is gone is not waited for, if others are named.
    renamed = step(closed, at, accept_loss=True, routers=("reader",)).after
    assert renamed == replace(closed, routers=("reader",))


def at_rest(log_end: int = 8, on_target: int | None = 3, **more: Any) -> SeenPartition:
    """Return a log that rests; the target's base is 3."""
    target = LogOffsets(0, on_target, on_target)
    return seen(LogOffsets(0, log_end, log_end), target, **{"offsets_per_s": 0.0, **more})


def migrating(**changes: Any) -> PartitionAgreement:
    return agreement(status="migrating", end_offset=100, **changes)


def test_a_log_that_rests_below_its_end_gets_a_nearer_one_if_that_is_asked_for() -> None:
    """E is 100, and the log ends at 8 for good."""
    assert step(migrating(), at_rest()).waits_for == "92 offsets on the origin"
    opened = step(migrating(), at_rest(), end_here=True).after
    assert opened == agreement(
        status="planned",
        end_offset=8,
        reopened_end=100,
        number=2,
        origin_position=8,
        origin_offsets_per_s=0.0,
        origin_read_ms=60_000,
    )
    assert opened is not None
    # Also after a kill, and without the option.
    assert "routers to agree: writer" in step(opened, at_rest()).waits_for
    started = step(opened, at_rest(), {"writer": 2}).after
    assert started == replace(opened, status="migrating", reopened_end=None)
    assert started is not None
    sealed = step(started, at_rest(), {"writer": 2}, end_here=True).after
    assert sealed == replace(started, status="migrated", sealed_ms=60_000)


@pytest.mark.parametrize(
    ("own", "at"),
    [
        # Something has passed E already, or may have.
        (migrating(), at_rest(on_target=4)),
        (migrating(), at_rest(on_target=None)),
        (migrating(), at_rest(101)),
        (migrating(), at_rest(leader_end=None)),
        (migrating(), at_rest(offsets_per_s=None)),
        # 100 is reached in 9.2 s: less than twice 5 s.
        (migrating(), at_rest(offsets_per_s=10.0)),
        (migrating(origin_closed=True), at_rest()),
        (migrating(origin_end=8), at_rest()),
        (migrating(method="drained"), at_rest()),
    ],
)
def test_no_end_is_opened_again_that_may_be_passed_or_is_near(own: PartitionAgreement, at: SeenPartition) -> None:
    after = step(own, at, end_here=True).after
    assert after is None or after.end_offset == 100


def test_producers_that_write_little_get_a_nearer_end_ahead() -> None:
    # 8 + 2/s x 5 s; 100 would take 46 s.
    opened = step(migrating(), at_rest(offsets_per_s=2.0), end_here=True).after
    assert opened is not None
    assert (opened.end_offset, opened.reopened_end) == (18, 100)


def test_producers_that_write_again_get_another_nearer_end_or_the_one_before() -> None:
    opened = agreement(end_offset=8, number=2, reopened_end=100)
    more = next_step(opened, at_rest(20, offsets_per_s=2.0), {"writer": 2}, TERMS, 3).after
    assert more is not None
    assert (more.end_offset, more.reopened_end, more.status, more.number) == (30, 100, "planned", 3)
    # 60 + 10/s x 5 s is beyond 100.
    settled = replace(opened, status="migrating", end_offset=100, reopened_end=None)
    fast = at_rest(60, offsets_per_s=10.0)
    assert next_step(opened, fast, {}, TERMS, 3).after == settled
    assert next_step(opened, at_rest(100), {"writer": 2}, TERMS, 3).after == settled
    # A router that knew of nothing has moved a record.
    passed = at_rest(on_target=4)
    assert next_step(opened, passed, {"writer": 2}, TERMS, 3).after == settled
    for unknown in (at_rest(leader_end=None), at_rest(on_target=None)):
        waiting = next_step(opened, unknown, {"writer": 2}, TERMS, 3)
        assert (waiting.after, bool(waiting.waits_for)) == (None, True)


def test_an_origin_that_dies_while_its_end_is_open_is_ignored_from_the_end_before_on() -> None:
    opened = agreement(end_offset=8, number=2, reopened_end=100)
    assert step(opened, seen(DOWN)).waits_for == "the origin to answer"
    settled = step(opened, seen(DOWN), ignore_origin=True).after
    # In one step: as one that is migrating, routers would acknowledge what they hold, and nobody would read it.
    assert settled == replace(opened, status="aged", end_offset=100, reopened_end=None, ignore_origin=True)


def test_an_end_that_only_the_origin_has_is_its_stable_offset_once_it_is_back() -> None:
    own = agreement(end_offset=None, status="migrating", method="drained")
    assert step(own, seen(DOWN), ignore_origin=True).after is None
    after = step(own, seen(LogOffsets(0, 8, 7), is_quiet=True)).after
    assert after is not None
    assert after.end_offset == 7


def test_a_goal_is_reached_by_each_status_from_it_on() -> None:
    reached = {goal: [s for s in STATUSES if has_reached(agreement(status=s), goal)] for goal in RunGoal}
    assert reached == {
        RunGoal.STARTED: ["migrating", "migrated", "aged"],
        RunGoal.MIGRATED: ["migrated", "aged"],
        RunGoal.AGED: ["aged"],
    }


OFFSET = st.none() | st.integers(0, 20)
LOGS = st.builds(LogOffsets, start=OFFSET, end=OFFSET, stable=OFFSET)
READINGS = st.none() | st.builds(
    OriginReading, end=st.integers(0, 20), offsets_per_s=st.none() | st.floats(0, 9), read_ms=st.integers(0, 60_000)
)


SETTLED = st.builds(
    agreement,
    end_offset=OFFSET,
    target_base_offset=st.integers(0, 5),
    status=st.sampled_from(STATUSES),
    ignore_origin=st.booleans(),
    origin_end=OFFSET,
    method=st.sampled_from(METHODS),
    shielded=st.booleans(),
    origin_closed=st.booleans(),
)
REOPENED = st.builds(
    agreement,
    end_offset=st.integers(0, 9),
    target_base_offset=st.integers(0, 5),
    shielded=st.booleans(),
    reopened_end=st.integers(10, 20),
)


CASES = (
    SETTLED | REOPENED,
    st.builds(
        SeenPartition,
        log=LOGS,
        target=LOGS,
        now_ms=st.just(60_000),
        offsets_per_s=st.none() | st.floats(0, 9),
        is_quiet=st.booleans(),
        is_topic_quiet=st.booleans(),
        last=READINGS,
        is_origin_down=st.booleans(),
        is_mirrored=st.none() | st.booleans(),
        leader_end=OFFSET,
    ),
    st.dictionaries(st.just("writer"), st.integers(0, 2)),
    st.builds(
        RunTerms,
        migration=st.just("move"),
        method=st.just(MigrationMethod.ROUTED),
        routers=st.sampled_from([(), ("writer",), ("reader",)]),
        prepare_s=st.floats(0, 9),
        ignore_origin=st.booleans(),
        accept_loss=st.booleans(),
        end_here=st.booleans(),
    ),
)


@given(*CASES)
def test_every_step_is_an_allowed_change_and_gives_a_reason_if_there_is_none(
    own: PartitionAgreement, at: SeenPartition, agreed: dict[str, int], terms: RunTerms
) -> None:
    found = next_step(own, at, agreed, terms, 2)
    if found.after is not None:
        assert refused_change(own, found.after) is None
        assert found.after != own
    elif own.status != "aged":
        assert found.waits_for or found.refusal


@given(*CASES)
def test_no_routed_partition_starts_below_what_its_leader_may_have_acknowledged(
    own: PartitionAgreement, at: SeenPartition, agreed: dict[str, int], terms: RunTerms
) -> None:
    after = next_step(own, at, agreed, terms, 2).after
    if own.ignore_origin or own.status != "planned" or after is None or after.status == "planned":
        return
    # Or at the end offset that was in force before, which routers keep to.
    if own.method == "routed" and after.end_offset != own.reopened_end:
        assert at.leader_end is not None
        assert at.leader_end <= (after.end_offset or 0)


@given(*CASES)
def test_a_run_is_not_done_while_it_has_to_refuse_or_to_give_something_up(
    own: PartitionAgreement, at: SeenPartition, agreed: dict[str, int], terms: RunTerms
) -> None:
    if not is_done(own, at, terms, RunGoal.MIGRATED):
        return
    found = next_step(own, at, agreed, terms, 2)
    assert found.refusal is None
    if found.after is not None:
        # Retention goes on by itself.
        assert found.after == replace(own, status="aged", ignore_origin=found.after.ignore_origin)
        assert found.after.ignore_origin == own.ignore_origin or at.is_origin_down


@pytest.mark.parametrize("goal", list(RunGoal))
def test_a_shorter_origin_is_looked_at_until_it_stays_or_comes_back(goal: RunGoal) -> None:
    own, short = agreement(status="migrated"), seen(LogOffsets(0, 8, 8))
    assert not is_done(own, short, TERMS, goal)
    assert "ends before its end offset" in step(own, short).waits_for
    assert is_done(own, seen(LogOffsets(0, 10, 10)), TERMS, goal) == (goal is not RunGoal.AGED)
    assert is_done(replace(own, origin_end=8), short, TERMS, goal) == (goal is not RunGoal.AGED)
    assert is_done(replace(own, status="aged"), short, TERMS, goal)


def test_an_ignored_origin_ends_by_the_last_end_and_the_rate_of_the_agreement() -> None:
    """The first reading of a run has no rate: 9 + 2/s x 10 s."""
    of_topic = planned(origin_position=8, origin_offsets_per_s=2.0, origin_read_ms=40_000)
    after = step(of_topic, seen(DOWN, last=OriginReading(9, None, 50_000)), ignore_origin=True).after
    assert after is not None
    assert after.end_offset == 29
