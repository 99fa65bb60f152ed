"""Replicas that do not copy, and those that lost their place in the ISR: whose they are, why, and what to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headroom.alerts.inputs.throttle_status import OutOfSyncReplica, Stall, ThrottleStatus
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.keys import Role
from tests.unit.builders.throttle_status import assessment_of, found, kinds, partition, status

LEADER, FOLLOWER = Role.LEADER, Role.FOLLOWER
STALLED = partition(stalled=True)


def destination(*partitions: Any, **more: Any) -> ThrottleStatus:
    """Broker 3, whose throttle is enough."""
    return status(3, FOLLOWER, 9, 4, *(partitions or (STALLED,)), **more)


@pytest.mark.parametrize(
    ("stall", "alive", "cause", "why", "action"),
    [
        ("offline", False, "destination_down", "the broker is down", "restore_broker"),
        ("offline", True, "destination_disk", "a log directory of it has failed, or is full", "inspect_broker"),
        ("no_leader", True, "no_leader", "the partition has no leader", "restore_broker"),
        ("not_fetching", True, "not_fetching", "the broker does not fetch it", "inspect_broker"),
        ("unknown", True, "unknown", "no throttle explains it", "inspect_broker"),
        (None, True, "unknown", "no throttle explains it", "inspect_broker"),
    ],
)
def test_a_stalled_copy_is_reported_with_its_cause(
    stall: str | None, alive: bool, cause: str, why: str, action: str
) -> None:
    finding = found(destination(stall=stall, alive=alive))
    assert (finding.kind, finding.subject) == (AlertKind.REASSIGNMENT_STALLED, "broker 3 as destination")
    assert (finding.severity, finding.hold_s) == (Severity.WARNING, 30)
    assert finding.evidence.cause == cause
    assert f"copies nothing of t-0 ({why}" in finding.summary.replace(
        "the broker is up but the replica is offline: ", ""
    )
    assert finding.recommendation.action == action


def test_a_copy_that_makes_progress_is_not_stalled() -> None:
    assert kinds(destination(partition())) == set()


def test_of_two_copies_the_one_that_a_throttle_starves_is_explained() -> None:
    # Broker 1 leads t-0, and its throttle starves it; t-1 has another leader.
    starving = status(1, LEADER, 2, 4, STALLED)
    other = partition(1, leader=2, stalled=True)
    finding = found(starving, destination(STALLED, other), kind=AlertKind.REASSIGNMENT_STALLED)
    assert "copies nothing of t-1 (" in finding.summary


# Evidence names at most 20 partitions; what a throttle explains is decided over all, leader by leader.
def test_of_hundreds_of_copies_those_are_found_that_no_throttle_explains() -> None:
    full = [partition(number) for number in range(20)]
    stalls = (Stall("unknown", 1, 60, ("t-30", "t-31", "t-32")), Stall("unknown", 2, 2, ("t-90", "t-91")))
    finding = found(destination(*full, stalled_replicas=62, stalls=stalls))
    assert "copies nothing of t-30, t-31, t-32 and 59 more (" in finding.summary
    assert finding.affected == 62
    starving = status(1, LEADER, 2, 4, partition(30))
    finding = found(starving, destination(*full, stalls=stalls), kind=AlertKind.REASSIGNMENT_STALLED)
    assert "copies nothing of t-90, t-91 (" in finding.summary
    assert kinds(starving, destination(*full, stalls=stalls[:1])) == {AlertKind.THROTTLE_BELOW_LEADER_WRITE}


def test_a_throttle_that_is_too_low_does_not_hide_stalls_with_another_cause() -> None:
    stalls = (Stall("unknown", 1, 5, ("t-1",)), Stall("no_leader", None, 1, ("u-0",)), Stall("offline", 2, 2, ("v-0",)))
    starved = status(3, FOLLOWER, 1, 4, partition(), in_sync_mb=2, stalls=stalls)
    finding = found(starved, kind=AlertKind.REASSIGNMENT_STALLED)
    assert finding.summary.endswith(
        "copies nothing of v-0 and 1 more (the broker is up but the replica is offline: a log directory of it has "
        "failed, or is full); nor of 1 more, for other reasons"
    )


def test_stalls_at_several_destinations_of_one_leader_have_one_cause() -> None:
    def at(broker: int, *leaders: int) -> ThrottleStatus:
        stalls = tuple(Stall("unknown", leader, 1, (f"t-{leader}",)) for leader in leaders)
        return status(broker, FOLLOWER, 9, 4, partition(), stalls=stalls)

    assert [f.cause for f in assessment_of(at(3, 1), at(4, 1), at(5, 1, 2)).findings] == [
        "copies from broker 1"
    ] * 2 + [""]


def test_a_destination_of_which_too_little_is_known_is_held() -> None:
    assessment = assessment_of(destination(partition(), throttle_known=False))
    assert (AlertKind.REASSIGNMENT_STALLED, "broker 3 as destination") in assessment.keep_firing


# The rate of broker 1, which leads t-0, could not be read: it may be the reason.
@pytest.mark.parametrize("stall", ["unknown", "not_fetching"])
def test_a_copy_whose_throttles_have_no_verdict_is_not_called_unexplained(stall: str) -> None:
    unread = status(1, LEADER, None, 4, STALLED, throttle_known=False)
    finding = found(unread, destination(STALLED, stall=stall), kind=AlertKind.REASSIGNMENT_STALLED)
    assert finding.summary.endswith(
        "copies nothing of t-0 (no verdict on broker 1 as leader, whose throttle may explain it)"
    )
    assert finding.recommendation.action == "check"
    assert finding.recommendation.reason is not None
    assert finding.recommendation.reason.startswith("first see why there is no verdict on broker 1 as leader (")
    assert finding.recommendation.commands == ["headroom throttle show"]
    both_unread = destination(STALLED, throttle_known=False)
    finding = found(unread, both_unread, kind=AlertKind.REASSIGNMENT_STALLED)
    assert "(no verdict on broker 3 as destination, broker 1 as leader, whose" in finding.summary


# A broker that is down, and a failed disk, are the reason whatever the throttle is.
@pytest.mark.parametrize(("stall", "alive"), [("unknown", False), ("offline", True), ("no_leader", True)])
def test_a_reason_that_is_certain_is_given_though_a_throttle_has_no_verdict(stall: str, alive: bool) -> None:
    unread = status(1, LEADER, None, 4, STALLED, throttle_known=False)
    finding = found(unread, destination(STALLED, stall=stall, alive=alive), kind=AlertKind.REASSIGNMENT_STALLED)
    assert "no verdict" not in finding.summary
    assert finding.recommendation.action != "check"


def test_a_leader_without_a_verdict_leaves_the_copies_of_others_unexplained() -> None:
    unread = status(1, LEADER, None, 4, STALLED, throttle_known=False)
    other = partition(1, leader=2, stalled=True)
    finding = found(unread, destination(other), kind=AlertKind.REASSIGNMENT_STALLED)
    assert finding.summary.endswith("copies nothing of t-1 (no throttle explains it)")


def lost(broker: int, *names: tuple[str, bool], moving: int, resting: int, **more: Any) -> ThrottleStatus:
    """A broker that is a follower of partitions, given by topic and whether they move, and out of their ISR."""
    return status(
        broker,
        more.pop("role", FOLLOWER),
        None,
        0,
        limited=0,
        lost=tuple(OutOfSyncReplica(topic, 0, 1, moves) for topic, moves in names),
        lost_replicas=moving + resting,
        lost_moving_replicas=moving,
        throttle_source="none",
        **more,
    )


def test_a_broker_that_fell_out_of_the_isr_of_what_moves_is_found() -> None:
    finding = found(lost(2, ("a", True), moving=1, resting=0))
    assert (finding.kind, finding.subject) == (AlertKind.ISR_SHRINK_DURING_MOVE, "broker 2")
    assert (finding.severity, finding.hold_s) == (Severity.WARNING, 60)
    assert finding.summary == (
        "Broker 2 has fallen behind: 1 of its replicas, of partitions that are moving, none of them a new one, "
        "out of the ISR (a-0)"
    )
    assert finding.evidence.lost_replicas == 1
    assert [p.topic for p in finding.evidence.partitions] == ["a"]
    assert finding.recommendation.action == "inspect_broker"


def test_a_broker_that_is_down_lacks_replicas_and_is_to_be_brought_back() -> None:
    finding = found(lost(2, ("a", False), ("b", False), moving=0, resting=2, alive=False))
    assert (finding.kind, finding.subject) == (AlertKind.UNDER_REPLICATED, "broker 2")
    assert finding.summary == "Broker 2 is down: 2 of its replicas, none of them a new one, out of the ISR (a-0, b-0)"
    assert finding.recommendation.action == "restore_broker"
    # Nothing moves to it, so that there is nothing to cancel.
    assert "cancel" not in finding.recommendation.reason


def test_a_dead_broker_whose_replicas_the_running_move_takes_away_need_not_be_emptied() -> None:
    leaving = lost(2, ("a", True), moving=1, resting=0, alive=False, lost_leaving_replicas=1)
    assert found(leaving).recommendation.reason == (
        "bring broker 2 back, or let the running move finish: it takes these replicas away from it"
    )
    partly = lost(2, ("a", True), ("b", True), moving=2, resting=0, alive=False, lost_leaving_replicas=1)
    assert found(partly).recommendation.reason == (
        "bring broker 2 back, its replicas then catch up by themselves; "
        "only if it cannot come back, move them to other brokers (headroom plan --drain 2 makes the plan)"
    )


def test_lost_replicas_without_a_leader_have_the_cause_no_leader() -> None:
    leaderless = replace(lost(2, ("a", True), moving=1, resting=0), lost=(OutOfSyncReplica("a", 0, None, True),))
    finding = found(leaderless)
    assert "Broker 2 has replicas without a leader" in finding.summary
    assert (finding.cause, finding.evidence.cause, finding.recommendation.action) == (
        "no leader",
        "no_leader",
        "restore_broker",
    )


# The list of names ends at 20.
@pytest.mark.parametrize(
    ("leaderless", "cause", "said"),
    [
        (50, "no_leader", "has replicas without a leader: 50 of its replicas"),
        # One has a leader that the broker lags behind.
        (49, "fallen_behind", "has fallen behind: 50 of its replicas"),
        # A row of an older version does not tell: the 30 that are not named may have a leader.
        (None, "fallen_behind", "has fallen behind: 50 of its replicas"),
    ],
)
@pytest.mark.parametrize("moving", [True, False])
def test_the_cause_no_leader_counts_replicas_beyond_the_named_ones(
    moving: bool, leaderless: int | None, cause: str, said: str
) -> None:
    behind = lost(2, moving=50 if moving else 0, resting=0 if moving else 50)
    behind = replace(
        behind,
        lost=tuple(OutOfSyncReplica("a", n, None, moving) for n in range(20)),
        lost_leaderless_replicas=leaderless,
        lost_leaderless_moving_replicas=leaderless if moving or leaderless is None else 0,
    )
    finding = found(behind)
    assert f"Broker 2 {said}" in finding.summary
    assert finding.evidence.cause == cause
    actions = {"no_leader": "restore_broker", "fallen_behind": "inspect_broker"}
    assert finding.recommendation.action == actions[cause]


# 30 move and have no leader, 20 rest and have one.
def test_a_missing_leader_is_reported_separately_for_moving_and_resting_replicas() -> None:
    behind = replace(lost(2, moving=30, resting=20), lost_leaderless_replicas=30, lost_leaderless_moving_replicas=30)
    assert [f.evidence.cause for f in assessment_of(behind).findings] == ["no_leader", "fallen_behind"]


def test_lost_replicas_that_move_and_others_are_two_findings_of_one_cause() -> None:
    shrunk, lacks = assessment_of(lost(2, ("a", True), ("b", False), moving=1, resting=30)).findings
    assert (shrunk.kind, lacks.kind) == (AlertKind.ISR_SHRINK_DURING_MOVE, AlertKind.UNDER_REPLICATED)
    assert shrunk.cause == lacks.cause == "broker 2"
    assert shrunk.precedence < lacks.precedence
    # Of 31 replicas the list has two.
    assert "30 of its replicas" in lacks.summary
    assert lacks.summary.endswith("(b-0 and 29 more)")


def test_a_list_without_any_name_is_reported_by_its_count() -> None:
    (_, lacks) = assessment_of(lost(2, ("a", True), moving=20, resting=3)).findings
    assert lacks.summary.endswith("out of the ISR (3 partition(s))")


def test_new_replicas_that_have_not_copied_all_yet_are_planned() -> None:
    planned = partition(followers=2, in_sync_followers=1)
    assert kinds(status(1, LEADER, 9, 4, planned, planned_partitions=1), destination(planned)) == set()


# The rows of leaders count what their followers lost: it is told at these.
def test_the_leader_of_a_lost_replica_has_not_fallen_behind() -> None:
    leader = lost(1, ("a", False), moving=0, resting=1, role=LEADER)
    follower = lost(2, ("a", False), moving=0, resting=1)
    assert found(leader, follower).subject == "broker 2"
    assert kinds(leader) == set()


def test_all_findings_of_a_dead_broker_have_one_cause_and_the_stalled_move_comes_first() -> None:
    down = destination(
        throttle_known=False,
        alive=False,
        stall="offline",
        lost=(OutOfSyncReplica("a", 0, 1, True), OutOfSyncReplica("b", 0, 1, False)),
        lost_replicas=2,
        lost_moving_replicas=1,
    )
    findings = assessment_of(down).findings
    assert {finding.cause for finding in findings} == {"broker 3 down"}
    assert [f.kind for f in sorted(findings, key=lambda f: -f.weight)] == [
        AlertKind.REASSIGNMENT_STALLED,
        AlertKind.ISR_SHRINK_DURING_MOVE,
        AlertKind.UNDER_REPLICATED,
        AlertKind.NO_DATA,
    ]


# Below an alert of the same cause that fires already nobody would hear of it.
@pytest.mark.parametrize(
    ("stall", "cause"),
    [
        ("offline", "broker 3"),
        ("not_fetching", "broker 3"),
        ("no_leader", "no leader"),
        ("unknown", "copies from broker 1"),
    ],
)
def test_a_stall_that_its_broker_does_not_explain_is_a_cause_of_its_own(stall: str, cause: str) -> None:
    assert found(destination(stall=stall)).cause == cause
