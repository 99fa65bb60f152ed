"""Losses that take a broker over its limit: which, and by how much."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from headroom.alerts.inputs.broker_load import BalanceInputs
from headroom.alerts.recommendations.recommender import Recommender
from headroom.alerts.rules.balance.capacity_at_risk import CapacityAtRisk
from headroom.alerts.rules.rule import Assessment, RuleInputs
from headroom.planning.balance.broker_loads.capacity_risk import CapacityRisk
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.config import AlertSettings
from headroom.schemas.keys import Role
from tests.unit.builders.throttle_status import partition, status

MB = 1e6
RISKS = (
    CapacityRisk("broker 2", 3, "network_out", 118 * MB, 100 * MB),
    CapacityRisk("broker 2", 1, "network_out", 105 * MB, 100 * MB),
    CapacityRisk("rack a", 4, "network_out", 101 * MB, 100 * MB),
)


def assessment_of(risks: Sequence[CapacityRisk] | None, **inputs: Any) -> Assessment:
    recommender = Recommender(ThrottlePolicy(), "broker1:9092", "headroom.toml")
    statuses = inputs.pop("statuses", ())
    loads = BalanceInputs(risks=risks)
    return CapacityAtRisk().evaluate(RuleInputs(statuses, AlertSettings(), recommender, loads=loads, **inputs))


def test_each_loss_is_a_finding_and_all_have_one_cause() -> None:
    first, second = assessment_of(RISKS).findings
    assert (first.subject, second.subject) == ("loss of broker 2", "loss of rack a")
    assert first.summary == (
        "If broker 2 were lost, broker 3 would have to send 118 MB/s: 18.00 MB/s above its limit of 100 MB/s, and 1 "
        "more broker(s) would be over theirs"
    )
    assert second.summary == (
        "If rack a were lost, broker 4 would have to send 101 MB/s: 1.00 MB/s above its limit of 100 MB/s"
    )
    assert first.cause == second.cause
    assert first.weight > second.weight
    assert first.severity is Severity.WARNING
    assert [risk["broker"] for risk in first.evidence_json()["risks"]] == [3, 1]
    json.dumps([first.evidence_json(), first.recommendation.to_json()])


def test_its_commands_show_the_loss_and_propose_changes() -> None:
    first, second = assessment_of(RISKS).findings
    assert first.recommendation.commands == [
        "headroom balance --config headroom.toml --what-if lose:2",
        "headroom balance propose --config headroom.toml",
    ]
    assert second.recommendation.commands[0].endswith("--what-if lose-rack:a")


def test_while_the_estimate_is_unknown_or_something_moves_alerts_keep_firing() -> None:
    active = {(AlertKind.CAPACITY_AT_RISK, "loss of broker 2")}
    moving = (status(1, Role.LEADER, 9, 4, partition(), moving_partitions=1),)
    for assessment in (assessment_of(None, active=active), assessment_of(RISKS, active=active, statuses=moving)):
        assert (assessment.findings, assessment.keep_firing) == ([], active)
    assert assessment_of([], active=active).keep_firing == set()
