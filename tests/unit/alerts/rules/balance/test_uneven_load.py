"""Loads out of band, and hot brokers: what is reported, how severely, what explains it, and what to do."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from headroom.alerts.finding import Finding
from headroom.alerts.inputs.broker_load import BalanceAdvice, BalanceInputs, MinuteLoads
from headroom.alerts.recommendations.recommender import Recommender
from headroom.alerts.rules.catalogue import evaluate_rules
from headroom.alerts.rules.rule import Assessment, RuleInputs
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.config import AlertSettings
from headroom.schemas.keys import Role
from tests.unit.builders.broker_load import MB, loads
from tests.unit.builders.leader_balance import balance
from tests.unit.builders.throttle_status import EVIDENCE_KEYS, TICK_MS, partition, status

SETTINGS = AlertSettings(out_of_band_s=900, hot_broker_s=300, exit_ratio=1.25)
OUT_OF_BAND, HOT = AlertKind.LOAD_OUT_OF_BAND, AlertKind.HOT_BROKER
RECOMMENDER = Recommender(ThrottlePolicy(), "broker1:9092", "headroom.toml")
# Mean 20 MB/s: broker 1 is above its band, broker 3 below it.
UNEVEN = loads({1: 30, 2: 20, 3: 10})


def assessment_of(brokers: MinuteLoads | None, advice: BalanceAdvice | None = None, **inputs: Any) -> Assessment:
    statuses = inputs.pop("statuses", ())
    found = BalanceInputs(brokers, advice=advice)
    return evaluate_rules(RuleInputs(statuses, SETTINGS, RECOMMENDER, loads=found, **inputs))


def found(brokers: MinuteLoads, **inputs: Any) -> dict[tuple[AlertKind, str], Finding]:
    findings = assessment_of(brokers, **inputs).findings
    for finding in findings:
        assert set(finding.evidence_json()) >= EVIDENCE_KEYS
        json.dumps([finding.evidence_json(), finding.recommendation.to_json()])
    return {finding.key: finding for finding in findings}


def test_brokers_outside_their_band_are_reported_with_what_they_do() -> None:
    findings = found(UNEVEN)
    assert set(findings) == {(OUT_OF_BAND, "broker 1"), (OUT_OF_BAND, "broker 3")}
    above, below = findings[OUT_OF_BAND, "broker 1"], findings[OUT_OF_BAND, "broker 3"]
    assert above.summary == "Broker 1 receives 30.00 MB/s, 50 % above its share of 20.00 MB/s"
    assert below.summary == "Broker 3 receives 10.00 MB/s, 50 % below its share of 20.00 MB/s"
    assert (above.severity, above.hold_s) == (Severity.INFO, 900)
    # One cause: one alert, about the broker that is furthest from its share.
    assert above.cause == below.cause
    assert (above.weight, below.weight) == (0.5, 0.5)


def test_the_worst_load_comes_first() -> None:
    (finding,) = (f for f in found(loads({1: 30, 2: 20, 3: 10}, {1: 90, 2: 10, 3: 20})).values() if "1" in f.subject)
    assert finding.summary == (
        "Broker 1 sends 90.00 MB/s, 125 % above its share of 40.00 MB/s; it receives 30.00 MB/s, 50 % above its share "
        "of 20.00 MB/s"
    )
    assert [load["resource"] for load in finding.evidence_json()["loads"]] == ["network_out", "network_in"]


def test_loads_in_band_or_too_small_raise_nothing() -> None:
    assert found(loads({1: 22, 2: 20, 3: 18})) == {}
    assert found(loads({1: 1.0, 2: 0.1, 3: 0.0})) == {}
    assert found(MinuteLoads(0)) == {}


def test_counts_alone_raise_nothing() -> None:
    uneven = loads({1: 20, 2: 20})
    states = tuple(
        replace(s, load=9.0 if s.broker == 1 else 1.0, mean=5.0, lower=4.0, upper=6.0, in_band=False)
        if s.resource in ("leaders", "replicas")
        else s
        for s in uneven.states
    )
    assert found(MinuteLoads(TICK_MS, states)) == {}


@pytest.mark.parametrize(("capacity_mb", "severity"), [(None, "info"), (60, "info"), (59, "warning")])
def test_above_half_of_the_capacity_it_is_a_warning(capacity_mb: float | None, severity: str) -> None:
    capacity = None if capacity_mb is None else capacity_mb * MB
    findings = found(loads({1: 30, 2: 20, 3: 10}, network_in_capacity=capacity))
    assert findings[OUT_OF_BAND, "broker 1"].severity.value == severity
    # A broker with too little load is never urgent.
    assert findings[OUT_OF_BAND, "broker 3"].severity is Severity.INFO


def test_above_band_and_limit_a_broker_is_hot_and_that_is_its_only_finding() -> None:
    # Limit 0.8 x 35 = 28 MB/s.
    findings = found(loads({1: 30, 2: 20, 3: 10}, network_in_capacity=35 * MB))
    assert set(findings) == {(HOT, "broker 1"), (OUT_OF_BAND, "broker 3")}
    hot = findings[HOT, "broker 1"]
    assert (hot.severity, hot.hold_s, hot.joins) == (Severity.WARNING, 300, False)
    assert hot.cause == findings[OUT_OF_BAND, "broker 3"].cause
    assert hot.summary == (
        "Broker 1 receives 30.00 MB/s, 85.7 % of its capacity and above its limit of 28.00 MB/s (its share: 20.00 MB/s)"
    )


def test_a_cluster_that_is_too_small_has_no_hot_broker() -> None:
    assert found(loads({1: 20, 2: 20, 3: 20}, network_in_capacity=21 * MB)) == {}


def test_what_is_unknown_is_in_the_evidence() -> None:
    evidence = found(UNEVEN)[OUT_OF_BAND, "broker 1"].evidence_json()
    assert "capacity of network_in: unknown" in evidence["unknown"]
    assert any(reason.startswith("requests: ") for reason in evidence["unknown"])
    known = found(loads({1: 30, 2: 20, 3: 10}, network_in_capacity=100 * MB))
    assert "capacity of network_in: unknown" not in known[OUT_OF_BAND, "broker 1"].evidence_json()["unknown"]


def test_a_running_move_explains_the_brokers_that_it_changes() -> None:
    statuses = (status(1, Role.LEADER, 9, 4, partition(), moving_partitions=1), status(2, Role.FOLLOWER, 9, 4))
    assert set(found(UNEVEN, statuses=statuses)) == {(OUT_OF_BAND, "broker 3")}
    active = {(OUT_OF_BAND, "broker 1"), (HOT, "broker 1"), (OUT_OF_BAND, "broker 2")}
    kept = assessment_of(UNEVEN, statuses=statuses, active=active).keep_firing
    assert {subject for subject in kept if subject[0] in (OUT_OF_BAND, HOT)} == active - {(OUT_OF_BAND, "broker 2")}


def test_a_broker_that_is_down_explains_the_load_of_the_others() -> None:
    down = loads({1: 30, 2: 20, 3: 10, 4: None}, down=(4,))
    assert found(down) == {}
    active = {(OUT_OF_BAND, "broker 1")}
    assert assessment_of(down, active=active).keep_firing == active


def test_leaders_that_are_not_the_preferred_ones_explain_what_is_sent() -> None:
    sent = loads({1: 20, 2: 20, 3: 20}, {1: 30, 2: 20, 3: 10})
    assert (OUT_OF_BAND, "broker 1") in found(sent)
    away = {f.kind for f in assessment_of(sent, balances=[balance(2, 100, electable=30)]).findings}
    assert away == {AlertKind.LEADER_IMBALANCE}
    # What is received does not depend on leaders.
    assert (OUT_OF_BAND, "broker 1") in found(UNEVEN, balances=[balance(2, 100, electable=30)])


def test_within_the_exit_margin_alerts_keep_firing() -> None:
    active = {(OUT_OF_BAND, f"broker {b}") for b in (1, 2, 3)} | {(HOT, "broker 1")}
    # Mean 20: the inner edges are 20 -/+ 2 / 1.25 = 18.4 and 21.6. The limit is 22, its exit 22 / 1.25 = 17.6.
    near = loads({1: 21.8, 2: 20, 3: 18.2}, network_in_capacity=27.5 * MB)
    kept = assessment_of(near, active=active).keep_firing
    assert kept == {(OUT_OF_BAND, "broker 1"), (OUT_OF_BAND, "broker 3"), (HOT, "broker 1")}
    assert assessment_of(loads({1: 21, 2: 20, 3: 19}), active=active).keep_firing == set()


def test_while_loads_are_unknown_nothing_resolves() -> None:
    active = {(OUT_OF_BAND, "broker 1"), (HOT, "broker 2")}
    assessment = assessment_of(None, active=active)
    assert (assessment.findings, assessment.keep_firing) == ([], active)


def advice(**values: Any) -> BalanceAdvice:
    known: dict[str, Any] = {
        "proposal_id": "abc",
        "read_ms": TICK_MS,
        "brokers": frozenset({1, 3}),
        "reached": True,
        "actions": 5,
        "elections": 2,
        "copied_bytes": 12e9,
        "duration_s": 360.0,
    }
    return BalanceAdvice(**known | values)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (
            {},
            "carry out the first 5 action(s) (2 of them elections, they copy 12.0 GB in about 6 min): they bring "
            "brokers 1, 3 into band (proposal abc of 08:00:00 UTC)",
        ),
        (
            {"elections": 5, "copied_bytes": 0.0},
            "carry out the first 5 action(s) (they copy nothing): they bring brokers 1, 3 into band (proposal abc of "
            "08:00:00 UTC)",
        ),
        (
            {"reached": False, "duration_s": None},
            "no proposal brings all loads of brokers 1, 3 into band; the best has 5 action(s) (2 of them elections, "
            "they copy 12.0 GB without an end at this throttle) (proposal abc of 08:00:00 UTC)",
        ),
        (
            {"actions": 0, "elections": 0, "copied_bytes": 0.0},
            "wait: by proposal abc of 08:00:00 UTC, the loads of the past hours are in band, so a change now could be "
            "wrong later",
        ),
        (
            {"brokers": frozenset({1})},
            "propose the fewest changes that bring brokers 1, 3 into band; the command changes nothing itself",
        ),
    ],
)
def test_the_recommendation_is_the_cheapest_prefix_of_the_last_proposal(values: Any, reason: str) -> None:
    recommendation = found(UNEVEN, advice=advice(**values))[OUT_OF_BAND, "broker 1"].recommendation
    assert recommendation.action == "balance_load"
    assert recommendation.reason == reason
    assert recommendation.commands == [
        "headroom balance propose --config headroom.toml --until-in-band 1,3 --dir headroom-balance-20270115-080000"
    ]
