"""Whether a move keeps to the finish that was expected of it first."""

from __future__ import annotations

import json

import pytest

from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.alerts.recommendations.recommender import Recommender
from headroom.alerts.rules.reassignments.eta_slipping import EtaSlipping
from headroom.alerts.rules.reassignments.eta_tracker import EtaTracker
from headroom.alerts.rules.rule import Assessment, RuleInputs
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.keys import Role
from tests.unit.builders.throttle_status import EVIDENCE_KEYS, SETTINGS, TICK_MS, partition, status

LEADER, FOLLOWER = Role.LEADER, Role.FOLLOWER
KEPT_FIRING = Assessment(keep_firing={(AlertKind.ETA_SLIPPING, "moves")})
OK = Assessment()


def move(eta_s: float | None, throttle_mb: float = 9, partitions: int = 1, leader: int = 1) -> list[ThrottleStatus]:
    """A move to broker 3; the leader is done a little earlier."""
    moving = [partition(number, leader=leader) for number in range(partitions)]
    earlier_s = None if eta_s is None else eta_s - 1
    return [
        status(leader, LEADER, throttle_mb, 4, *moving, eta_s=earlier_s),
        status(3, FOLLOWER, throttle_mb, 4, *moving, eta_s=eta_s),
    ]


def after(*ticks: tuple[float, list[ThrottleStatus]]) -> Assessment:
    """What is said of the last of ticks, given by their second."""
    expectation, recommender = EtaTracker(), Recommender(ThrottlePolicy(), "broker1:9092")
    said = [
        EtaSlipping().evaluate(
            RuleInputs(statuses, SETTINGS, recommender, tick_ms=TICK_MS + round(s * 1000), eta_tracker=expectation)
        )
        for s, statuses in ticks
    ]
    return said[-1]


# Expected at first for second 1000, so that half of it, 500 s, may be lost. At second 100 with 1400 s to go it is 1500.
@pytest.mark.parametrize(("eta_s", "late"), [(900, False), (1400, False), (1401, True)])
def test_a_finish_that_is_later_by_more_than_the_share_is_found(eta_s: float, late: bool) -> None:
    assert bool(after((0, move(1000)), (100, move(eta_s))).findings) is late


# Of 20 s that were left a half is 10 s, but a minute may be lost of any move.
@pytest.mark.parametrize(("eta_s", "late"), [(20, False), (40, False), (41, True)])
def test_the_finish_of_a_short_move_may_slip_by_a_minute(eta_s: float, late: bool) -> None:
    assert bool(after((0, move(20)), (40, move(eta_s))).findings) is late


def test_a_slipping_finish_states_the_first_and_the_current_expectation() -> None:
    (finding,) = after((0, move(1000)), (100, move(1700))).findings
    assert (finding.kind, finding.subject) == (AlertKind.ETA_SLIPPING, "moves")
    assert (finding.severity, finding.hold_s) == (Severity.INFO, 3)
    # TICK_MS is 08:00:00; 1000 s are 16 min 40 s, 1800 s half an hour.
    assert finding.summary == (
        "The move is expected to finish at 08:30:00 UTC, 13 min later than was expected first (08:16:40 UTC)"
    )
    assert finding.evidence.late_s == 800
    assert set(finding.evidence_json()) >= EVIDENCE_KEYS
    json.dumps([finding.evidence_json(), finding.recommendation.to_json()])


def test_the_latest_finish_of_the_first_half_minute_is_the_expected_one() -> None:
    assert after((0, move(100)), (30, move(1000)), (200, move(1000))) == OK
    assert after((0, move(100)), (31, move(1000))).findings != []


@pytest.mark.parametrize(
    "other",
    [
        move(3000, throttle_mb=5),
        move(3000, partitions=2),
        # A further move that has not one broker in common with the first.
        [
            *move(900),
            status(4, LEADER, 9, 4, partition(9), eta_s=3000),
            status(5, FOLLOWER, 9, 4, partition(9), eta_s=3000),
        ],
    ],
)
def test_another_throttle_or_a_further_move_resets_the_expected_finish(other: list[ThrottleStatus]) -> None:
    assert after((0, move(1000)), (100, other)) == OK


def test_each_batch_has_its_own_expected_finish() -> None:
    assert after((0, move(1000, partitions=5)), (500, move(300, partitions=3)), (510, move(2000, partitions=5))) == OK


def test_partitions_that_are_done_make_no_new_expectation() -> None:
    assert after((0, move(1000, partitions=3)), (100, move(3000, partitions=2))).findings != []


def test_a_leader_switch_that_makes_it_late_is_no_excuse() -> None:
    assert after((0, move(1000)), (100, move(3000, leader=2))).findings != []


def test_without_an_expected_finish_it_is_held_and_what_was_expected_is_kept() -> None:
    assert after((0, move(None))) == KEPT_FIRING
    assert after((0, move(1000)), (100, move(None))) == KEPT_FIRING
    half_known = [status(1, LEADER, 9, 4, partition(), eta_s=None), *move(900)[1:]]
    assert after((0, move(1000)), (100, half_known)) == KEPT_FIRING
    assert after((0, move(1000)), (100, move(None)), (200, move(3000))).findings != []


def test_a_move_that_is_over_leaves_no_expectation_for_the_next() -> None:
    over = [status(1, LEADER, 9, 4, limited=0)]
    assert after((0, move(1000)), (100, over)) == OK
    assert after((0, move(1000)), (100, over), (200, move(5000))) == OK
