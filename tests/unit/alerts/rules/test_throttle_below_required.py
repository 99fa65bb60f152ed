"""What is wrong in one tick, for whom, and when it fires."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.alerts.inputs.throttle_status import LeaderSwitch
from headroom.alerts.rules.rule import Assessment
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.alerts import AlertKind, Severity, Verdict
from headroom.schemas.keys import Role
from tests.unit.builders.throttle_status import MB, TICK_MS, assessment_of, found, kinds, partition, status

LEADER, FOLLOWER = Role.LEADER, Role.FOLLOWER
LEADER_ALERT = (AlertKind.THROTTLE_BELOW_LEADER_WRITE, "broker 1 as leader")


@pytest.mark.parametrize(
    ("role", "throttle_mb", "kind", "subject", "severity"),
    [
        (LEADER, 3, AlertKind.THROTTLE_BELOW_LEADER_WRITE, "broker 1 as leader", Severity.WARNING),
        (LEADER, 1.9, AlertKind.THROTTLE_BELOW_LEADER_WRITE, "broker 1 as leader", Severity.CRITICAL),
        (FOLLOWER, 3, AlertKind.THROTTLE_BELOW_INBOUND, "broker 1 as destination", Severity.WARNING),
    ],
)
def test_a_throttle_below_what_is_required_is_found(
    role: Role, throttle_mb: float, kind: AlertKind, subject: str, severity: Severity
) -> None:
    finding = found(status(1, role, throttle_mb, 4, partition()))
    assert (finding.kind, finding.subject, finding.severity, finding.hold_s) == (kind, subject, severity, 3)
    assert "The move will not finish" in finding.summary
    assert "4.00 MB/s" in finding.summary


def test_sufficient_idle_and_unthrottled_statuses_give_no_finding() -> None:
    enough, idle = status(1, LEADER, 9, 4, partition()), status(2, LEADER, 3, 4, limited=0)
    unthrottled = status(3, FOLLOWER, None, 4, partition())
    assert assessment_of(enough, idle, unthrottled) == Assessment([], set())


# Broker 2 must send 2 MB/s to each of 2 followers of t-0 (4 MB/s), which it took over, and 4 MB/s more.
@pytest.mark.parametrize(
    ("throttle_mb", "hold_s", "switch_tick_ms"),
    [
        (5.6, 0, TICK_MS),  # enough for the 4 MB/s of before: the switch did it
        (4.0, 3, None),  # too small before it as well
    ],
)
def test_a_shortfall_that_a_switch_caused_needs_no_hold(
    throttle_mb: float, hold_s: float, switch_tick_ms: int | None
) -> None:
    came = partition(0, leader=2, previous_leader=1, switch_tick_ms=TICK_MS)
    finding = found(status(2, LEADER, throttle_mb, 8, came, partition(1, leader=2), in_sync_mb=1))
    assert finding.hold_s == hold_s
    assert finding.evidence.switch_tick_ms == switch_tick_ms
    assert ("since the leader switch of t-0 (1 to 2)" in finding.summary) == (hold_s == 0)


def test_a_switch_to_another_broker_is_no_cause_here() -> None:
    went = partition(0, leader=1, previous_leader=2, switch_tick_ms=TICK_MS)
    assert found(status(3, FOLLOWER, 3, 4, went)).hold_s == 3


def test_evidence_and_recommendation_carry_what_readers_rely_on() -> None:
    finding = found(status(1, LEADER, 3, 4, partition()))
    assert finding.evidence.partitions[0].write_bytes_per_s == 2 * MB
    assert set(finding.evidence_json()["partitions"][0]) >= {"topic", "partition", "leader", "previous_leader"}
    wanted = {"action", "throttle_bytes_per_s", "per_broker", "finish_s", "commands"}
    assert set(finding.recommendation.to_json()) >= wanted


def test_an_unknown_need_is_no_data_holds_throttle_alerts_and_recommends_no_rate() -> None:
    unknown = status(1, LEADER, 9, None, partition(write_bytes_per_s=None))
    assessment = assessment_of(unknown)
    (finding,) = assessment.findings
    assert (finding.kind, finding.hold_s) == (AlertKind.NO_DATA, 15)
    assert finding.recommendation.throttle_bytes_per_s is None
    assert finding.recommendation.commands == []
    kinds = (
        AlertKind.THROTTLE_BELOW_LEADER_WRITE,
        AlertKind.REASSIGNMENT_STALLED,
        AlertKind.THROTTLE_AT_RISK,
        AlertKind.LEADER_UNTHROTTLED,
    )
    of_moves = {(AlertKind.REASSIGNMENT_WITHOUT_THROTTLE, "moves")}
    assert assessment.keep_firing == {(kind, "broker 1 as leader") for kind in kinds} | of_moves


# The exit margin: 4 x 1.05 = 4.20 MB/s.
@pytest.mark.parametrize(("throttle_mb", "held"), [(4.1, True), (4.2, False), (4.3, False)])
def test_a_throttle_just_above_the_required_rate_raises_nothing_and_holds_an_alert(
    throttle_mb: float, held: bool
) -> None:
    assessment = assessment_of(status(1, FOLLOWER, throttle_mb, 4, partition()))
    assert assessment.findings == []
    assert assessment.keep_firing == (
        {(AlertKind.THROTTLE_BELOW_INBOUND, "broker 1 as destination")} if held else set()
    )


# 9.8 x 1.05 = 10.29 MB/s: more than a broker carries, so that 10 is what the alert recommends.
def test_a_throttle_at_the_capacity_of_a_broker_ends_the_alert() -> None:
    full = status(1, LEADER, 10, 9.8, partition())
    assert assessment_of(full, policy=ThrottlePolicy(capacity_bytes_per_s=10 * MB)).keep_firing == set()
    below = status(1, LEADER, 9.9, 9.8, partition())
    assert assessment_of(below, policy=ThrottlePolicy(capacity_bytes_per_s=10 * MB)).keep_firing == {LEADER_ALERT}
    assert assessment_of(full, policy=ThrottlePolicy(capacity_bytes_per_s=12 * MB)).keep_firing == {LEADER_ALERT}


# 0.30 MB/s are recommended as 1 MB/s, the least that Kafka keeps: more than 0.315 is enough all the same.
def test_a_small_rate_is_enough_by_its_own_margin() -> None:
    assert assessment_of(status(1, LEADER, 0.32, 0.3, partition(), in_sync_mb=0.1)).keep_firing == set()


def test_an_alert_on_the_throttle_of_a_leader_is_held_while_its_destination_is_down() -> None:
    idle = status(1, LEADER, 3, 2, partition(), limited=0)
    assert assessment_of(idle).keep_firing == set()
    assert assessment_of(replace(idle, down_replicas=4)).keep_firing == {LEADER_ALERT}


# Of two destinations 3 needed 6 MB/s and is down, 4 needs 2: the throttle has to exceed 8 again once 3 is back, and
# 8.4 with the hysteresis of an alert.
@pytest.mark.parametrize(
    ("throttle_mb", "down_mb", "held"),
    [(5, 6, True), (8, 6, True), (8.3, 6, True), (8.5, 6, False), (5, 0, False), (5, None, False), (None, 6, False)],
)
@pytest.mark.parametrize("limited", [0, 1])
def test_an_alert_is_held_until_the_throttle_suffices_for_a_destination_that_is_down(
    throttle_mb: float | None, down_mb: float | None, held: bool, limited: int
) -> None:
    down = None if down_mb is None else down_mb * MB
    one_left = status(
        1, LEADER, throttle_mb, 2, partition(), in_sync_mb=0, limited=limited, down_required_bytes_per_s=down
    )
    assert assessment_of(one_left).keep_firing == ({LEADER_ALERT} if held else set())
    assert AlertKind.THROTTLE_BELOW_LEADER_WRITE not in kinds(one_left)


# The advice exceeds what is needed after the return, and is always enough for its own alert.
@pytest.mark.parametrize("capacity_mb", [None, 10, 9])
def test_the_advised_throttle_is_enough_to_end_the_alert(capacity_mb: float | None) -> None:
    policy = ThrottlePolicy(capacity_bytes_per_s=None if capacity_mb is None else capacity_mb * MB)
    finding = found(
        status(1, LEADER, 1.5, 2, partition(), in_sync_mb=0, down_required_bytes_per_s=6 * MB), policy=policy
    )
    advised = finding.recommendation.throttle_bytes_per_s
    assert advised == (9_600_000 if capacity_mb is None else min(9.6, capacity_mb) * MB)
    after = status(1, LEADER, advised / MB, 2, partition(), in_sync_mb=0, down_required_bytes_per_s=6 * MB)
    assert assessment_of(after, policy=policy).keep_firing == set()


def test_a_throttle_certainly_too_low_is_reported_even_if_a_write_rate_is_unknown() -> None:
    known = {"verdict": Verdict.STARVED, "known_in_sync_bytes_per_s": 4 * MB, "known_required_bytes_per_s": 8 * MB}
    finding = found(status(1, LEADER, 3, None, partition(), partition(1, write_bytes_per_s=None), **known))
    assert finding.severity is Severity.CRITICAL
    assert finding.summary == (
        "The move will not finish: broker 1 as leader is throttled to 3.00 MB/s, but its leaders must send at least "
        "8.00 MB/s; new replicas get nothing"
    )
    # How much more is needed is not known.
    assert finding.recommendation.throttle_bytes_per_s is None
    assert finding.recommendation.reason.startswith("what broker 1 as leader needs is unknown")


# 200 partitions of 20 kB/s came from broker 1, of which the evidence names none: larger ones were there before.
def test_a_switch_of_many_small_partitions_is_seen_as_the_cause() -> None:
    switch = LeaderSwitch(1, 200, 200 * 20_000 * 2, TICK_MS, ("t-7", "t-8", "t-9"))
    large = [partition(n, leader=2) for n in range(20)]
    finding = found(status(2, LEADER, 85, 88, *large, in_sync_mb=40, switches=(switch,)))
    assert (finding.hold_s, finding.evidence.switch_tick_ms) == (0, TICK_MS)
    assert "since the leader switch of t-7 (1 to 2), t-8 (1 to 2), t-9 (1 to 2) and 197 more" in finding.summary
    # Without it the throttle was too low as well.
    assert found(status(2, LEADER, 79, 88, *large, in_sync_mb=40, switches=(switch,))).hold_s == 3


def test_a_stalled_copy_is_reported_at_its_destination_only() -> None:
    stalled = partition(stalled=True)
    finding = found(status(1, LEADER, 9, 4, stalled), status(3, FOLLOWER, 9, 4, stalled))
    assert (finding.kind, finding.subject) == (AlertKind.REASSIGNMENT_STALLED, "broker 3 as destination")
    assert (finding.hold_s, finding.recommendation.action) == (30, "inspect_broker")
    assert "t-0 (no throttle explains it)" in finding.summary


def test_a_throttle_that_starves_a_copy_explains_its_stall() -> None:
    stalled = partition(stalled=True)
    finding = found(status(1, LEADER, 2, 4, stalled), status(3, FOLLOWER, 9, 4, stalled))
    assert finding.kind is AlertKind.THROTTLE_BELOW_LEADER_WRITE


def test_a_stalled_copy_without_a_leader_has_the_cause_no_leader() -> None:
    finding = found(status(3, FOLLOWER, 9, 4, partition(stalled=True, leader=None), stall="no_leader"))
    assert "the partition has no leader" in finding.summary
    assert (finding.evidence.cause, finding.recommendation.action) == ("no_leader", "restore_broker")


def test_a_destination_that_is_down_is_to_be_brought_back() -> None:
    unknown = {"throttle_known": False, "reason": "the broker is down", "alive": False, "stall": "offline"}
    down = status(3, FOLLOWER, None, 0, partition(stalled=True), **unknown)
    kinds = {finding.kind: finding for finding in assessment_of(down).findings}
    assert set(kinds) == {AlertKind.REASSIGNMENT_STALLED, AlertKind.NO_DATA}
    assert kinds[AlertKind.REASSIGNMENT_STALLED].recommendation.action == "restore_broker"
    assert "the broker is down" in kinds[AlertKind.REASSIGNMENT_STALLED].summary


def test_long_lists_are_cut_in_the_text_and_kept_in_the_evidence() -> None:
    stalled = [partition(number, stalled=True) for number in range(5)]
    finding = found(status(3, FOLLOWER, 9, 4, *stalled))
    assert "t-0, t-1, t-2 and 2 more" in finding.summary
    assert len(finding.evidence.partitions) == 5


def test_a_slow_throttle_is_reported_as_info_that_the_move_takes_long() -> None:
    slow = replace(status(1, LEADER, 3, 4, partition()), verdict=Verdict.SLOW)
    finding = found(slow)
    assert (finding.kind, finding.severity) == (AlertKind.THROTTLE_BELOW_LEADER_WRITE, Severity.INFO)
    assert "The move takes long" in finding.summary
    assert "catch up only through whole responses, which no quota truncates" in finding.summary


def test_an_alert_on_a_slow_throttle_is_held_but_not_raised_while_another_move_never_ends() -> None:
    slow = replace(status(1, LEADER, 3, 4, partition()), verdict=Verdict.SLOW)
    losing = status(2, LEADER, 3, 4, partition(1, leader=2))
    assessment = assessment_of(slow, losing)
    assert [f.subject for f in assessment.findings if f.kind is AlertKind.THROTTLE_BELOW_LEADER_WRITE] == [
        "broker 2 as leader"
    ]
    assert LEADER_ALERT in assessment.keep_firing


def test_replicas_behind_a_slow_throttle_are_not_reported_as_stalled() -> None:
    stalled = status(3, FOLLOWER, 9, 2, partition(stalled=True), stall="unknown")
    slow = replace(status(1, LEADER, 3, 4, partition()), verdict=Verdict.SLOW)
    reported = {f.kind for f in assessment_of(slow, stalled).findings}
    assert AlertKind.REASSIGNMENT_STALLED not in reported
