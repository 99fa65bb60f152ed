"""Leaders that are not where they are preferred: which of it is told, how gravely, and after how long."""

from __future__ import annotations

import json

import pytest

from headroom.alerts.finding import Finding
from headroom.alerts.inputs.leader_balance import LeaderBalance
from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.alerts.recommendations.recommender import Recommender
from headroom.alerts.rules.catalogue import evaluate_rules
from headroom.alerts.rules.rule import Assessment, RuleInputs
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.config import AlertSettings
from headroom.schemas.keys import Role
from tests.unit.builders.leader_balance import balance
from tests.unit.builders.throttle_status import EVIDENCE_KEYS, MB, TICK_MS, status

SETTINGS = AlertSettings(imbalance_s=600, exit_ratio=1.25)
IMBALANCE, UNAVAILABLE = AlertKind.LEADER_IMBALANCE, AlertKind.PREFERRED_LEADER_UNAVAILABLE


def assessment_of(*balances: LeaderBalance, statuses: tuple[ThrottleStatus, ...] = ()) -> Assessment:
    recommender = Recommender(ThrottlePolicy(), "broker1:9092", "headroom.toml")
    return evaluate_rules(RuleInputs(statuses, SETTINGS, recommender, balances))


def found(*balances: LeaderBalance) -> Finding:
    """The only finding, and that it holds what readers rely on."""
    (finding,) = assessment_of(*balances).findings
    assert set(finding.evidence_json()) >= EVIDENCE_KEYS
    json.dumps([finding.evidence_json(), finding.recommendation.to_json()])
    return finding


# 10 preferred and 1 away is a tenth, which is not above a tenth; likewise 30 and 3.
@pytest.mark.parametrize(
    ("preferred", "electable", "reported"),
    [(10, 1, False), (10, 2, True), (30, 3, False), (30, 4, True), (1, 0, False), (1, 1, True), (1000, 101, True)],
)
def test_an_imbalance_is_reported_only_above_the_threshold(preferred: int, electable: int, reported: bool) -> None:
    assert [f.kind for f in assessment_of(balance(1, preferred, electable)).findings] == (
        [IMBALANCE] if reported else []
    )


def test_a_threshold_of_nothing_is_about_any_and_one_of_all_about_none() -> None:
    assert found(balance(1, 1000, 1, threshold_ratio=0.0)).kind is IMBALANCE
    assert assessment_of(balance(1, 1000, 0, threshold_ratio=0.0)).findings == []
    assert assessment_of(balance(1, 10, 10, threshold_ratio=1.0)).findings == []


def test_moving_or_unelectable_partitions_are_no_imbalance() -> None:
    assert assessment_of(balance(1, 10, waiting=10)).findings == []
    assert assessment_of(balance(1, 10, electable=1, waiting=9)).findings == []
    assert {f.kind for f in assessment_of(balance(1, 10, electable=1, unavailable=5)).findings} == {UNAVAILABLE}


def test_it_is_a_warning_where_the_write_load_is_off_by_more_than_the_threshold() -> None:
    # 10 - 8 is a fifth of 10; 10 - 9 is a tenth, which is not more.
    assert found(balance(1, 10, 2)).severity is Severity.WARNING
    assert found(balance(1, 10, 2, write_bytes_per_s=9 * MB)).severity is Severity.INFO
    assert found(balance(1, 10, 2, write_bytes_per_s=12 * MB)).severity is Severity.WARNING
    no_throttle_change = {"write_bytes_per_s": 0.0, "preferred_write_bytes_per_s": 0.0}
    assert found(balance(1, 10, 2, **no_throttle_change)).severity is Severity.INFO


@pytest.mark.parametrize("unknown", ["write_bytes_per_s", "preferred_write_bytes_per_s"])
def test_an_imbalance_with_an_unknown_write_load_is_an_info_that_says_so(unknown: str) -> None:
    finding = found(balance(1, 10, 2, **{unknown: None}))
    assert finding.severity is Severity.INFO
    assert finding.summary.endswith("; what is written to them is not known")


def test_an_imbalance_states_its_partitions_threshold_and_write_rates() -> None:
    finding = found(balance(2, 100, 30, waiting=5, threshold_ratio=0.125))
    assert finding.subject == "broker 2"
    assert finding.summary == (
        "Broker 2 does not lead 30 of the 100 partitions that prefer it, and could (30 %, threshold 12.5 %); "
        "8.00 MB/s are written to it, and 10.00 MB/s would be if all preferred leaders led"
    )
    reported = ("electable_now", "waiting_for_move", "electable_ratio", "imbalance_ratio", "threshold_source")
    assert [finding.evidence_json()[name] for name in reported] == [30, 5, 0.3, 0.35, "setting"]
    assert finding.evidence.counted_tick_ms == TICK_MS
    assert finding.recommendation.action == "elect_preferred"
    assert finding.recommendation.throttle_bytes_per_s is None
    assert finding.recommendation.commands == ["headroom elections --config headroom.toml --execute"]


def test_brokers_that_balance_by_themselves_have_two_checks_first() -> None:
    assert found(balance(1, 10, 2)).hold_s == 600
    assert found(balance(1, 10, 2, auto_leader_rebalance=True, check_interval_s=400)).hold_s == 800
    assert found(balance(1, 10, 2, auto_leader_rebalance=True, check_interval_s=30)).hold_s == 600
    assert found(balance(1, 10, 2, auto_leader_rebalance=True)).hold_s == 600
    assert found(balance(1, 10, 2, auto_leader_rebalance=False, check_interval_s=400)).hold_s == 600


def test_within_the_exit_margin_it_is_held() -> None:
    # 0.1 / 1.25 = 0.08: 8 of 100 are balanced again, 9 are held.
    held = {n: bool(assessment_of(balance(1, 100, n)).keep_firing) for n in (8, 9, 10)}
    assert held == {8: False, 9: True, 10: True}
    assert assessment_of(balance(1, 100, 9)).keep_firing == {(IMBALANCE, "broker 1")}


def test_an_imbalance_is_held_for_unelectable_partitions_but_not_for_moving_ones() -> None:
    assert (IMBALANCE, "broker 1") in assessment_of(balance(1, 10, unavailable=2)).keep_firing
    assert assessment_of(balance(1, 10, waiting=10)).keep_firing == set()


def test_a_preferred_leader_that_is_down_or_out_of_sync_is_reported() -> None:
    down = found(balance(3, 10, unavailable=4, alive=False))
    assert (down.kind, down.subject, down.severity, down.hold_s) == (UNAVAILABLE, "broker 3", Severity.WARNING, 600)
    assert down.summary == "Broker 3 is down: it cannot lead 4 of the 10 partitions that prefer it"
    assert down.recommendation.action == "restore_broker"
    behind = found(balance(3, 10, unavailable=1))
    assert behind.summary == "Broker 3 is out of sync: it cannot lead 1 of the 10 partitions that prefer it"
    assert behind.recommendation.action == "inspect_broker"


def test_an_unavailable_preferred_leader_is_not_reported_if_newer_statuses_show_it_back() -> None:
    away = balance(3, 10, unavailable=4)

    def kinds(**of_status: object) -> set[AlertKind]:
        follower = status(3, Role.FOLLOWER, None, 0.0, limited=0, **of_status)
        return {finding.kind for finding in assessment_of(away, statuses=(follower,)).findings}

    assert UNAVAILABLE not in kinds()
    assert kinds(lost_replicas=2) == kinds(alive=False, lost_replicas=2) == {UNAVAILABLE, AlertKind.UNDER_REPLICATED}
    assert UNAVAILABLE in kinds(alive=False)
