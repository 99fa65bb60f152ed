"""Slow brokers: which are reported, and when there is no advice."""

from __future__ import annotations

from typing import Any

from headroom.alerts.inputs.broker_load import BalanceInputs, MinuteLoads
from headroom.alerts.recommendations.recommender import Recommender
from headroom.alerts.rules.balance.slow_broker import SlowBroker
from headroom.alerts.rules.rule import Assessment, RuleInputs
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.alerts import AlertKind
from headroom.schemas.config import AlertSettings
from tests.unit.builders.broker_load import loads

KIND = AlertKind.SLOW_BROKER
EVEN = dict.fromkeys(range(1, 11), 20.0)


def assessment_of(brokers: MinuteLoads | None, **inputs: Any) -> Assessment:
    recommender = Recommender(ThrottlePolicy(), "broker1:9092")
    return SlowBroker().evaluate(RuleInputs((), AlertSettings(), recommender, loads=BalanceInputs(brokers), **inputs))


def test_without_flush_times_nothing_is_known_and_nothing_is_found() -> None:
    assert assessment_of(loads(EVEN)).findings == []


def test_a_broker_is_reported_after_five_slow_minutes() -> None:
    assert assessment_of(loads(EVEN, rounds={3: 4}, flush_s={3: 2.5})).findings == []
    (finding,) = assessment_of(loads(EVEN, rounds={3: 7}, flush_s={3: 2.5})).findings
    assert (finding.kind, finding.subject) == (KIND, "broker 3")
    assert finding.summary == (
        "Broker 3 is slow: its log flushes take up to 2.5 s (99.9th percentile), and it was slow in 7 minutes more "
        "than not"
    )
    assert finding.evidence_json()["slow_rounds"] == [7]
    assert finding.recommendation.action == "inspect_broker"


def test_more_than_a_tenth_at_once_is_one_finding_without_advice_on_a_broker() -> None:
    (finding,) = assessment_of(loads(EVEN, rounds={3: 7, 5: 6}, flush_s={3: 2.5, 5: 3.0})).findings
    assert (finding.subject, finding.recommendation.action) == ("brokers", "check")
    assert finding.summary == "Log flushes are slow on 2 of 10 brokers at once (3, 5)"
    assert finding.recommendation.commands == []


def test_an_alert_lasts_until_the_rounds_are_counted_down() -> None:
    active = {(KIND, "broker 3"), (KIND, "broker 4")}
    assert assessment_of(loads(EVEN, rounds={3: 1, 4: 0}), active=active).keep_firing == {(KIND, "broker 3")}
    assert assessment_of(None, active=active).keep_firing == active
