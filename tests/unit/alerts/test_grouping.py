"""One alert per cause: who speaks for the others, how gravely, and for how long."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.alerts.evidence.evidence import Evidence
from headroom.alerts.finding import Finding, Subject
from headroom.alerts.grouping import ActiveAlert, AdvisedIncrease, group_findings
from headroom.alerts.recommendations.recommendation import Advice
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.keys import BrokerRole, Role

CRITICAL, WARNING, INFO = Severity
NUMBERS = {"role": Role.LEADER, "throttle_bytes_per_s": 1.0, "in_sync_bytes_per_s": 2.0, "required_bytes_per_s": 3.0}


def finding(
    subject: str,
    cause: str = "throttle",
    severity: Severity = WARNING,
    weight: float = 0.0,
    kind: AlertKind = AlertKind.NO_DATA,
) -> Finding:
    return Finding(
        kind,
        subject,
        severity,
        f"{subject} is wrong",
        Evidence(broker_id=7, **NUMBERS),
        Advice(),
        0.0,
        cause=cause,
        weight=weight,
    )


def active(findings: Collection[Finding], *subjects: str, **more: Any) -> dict[Subject, ActiveAlert]:
    """Alerts of these subjects that fire for the cause that they have now."""
    return {
        (f.kind, f.subject): ActiveAlert(**{"is_firing": True, "cause": f.cause, **more})
        for f in findings
        if f.subject in subjects
    }


def grouped_subjects(*findings: Finding, firing: Collection[str] = ()) -> dict[str, list[str]]:
    """By subject of what is told, the subjects that it stands for."""
    found = group_findings(findings, active(findings, *firing), ()).findings
    return {f.subject: [other.subject for other in f.also] for f in found}


def test_a_group_is_led_by_the_highest_severity_then_weight_then_name() -> None:
    assert grouped_subjects(finding("a", weight=9), finding("b", severity=CRITICAL)) == {"b": ["a"]}
    assert grouped_subjects(finding("a", weight=1), finding("b", weight=2), finding("c", weight=3)) == {"c": ["b", "a"]}
    assert grouped_subjects(finding("b"), finding("a")) == {"a": ["b"]}


def test_findings_of_other_causes_or_without_one_are_not_grouped() -> None:
    findings = [finding("a"), finding("b", cause="other"), finding("c", cause=""), finding("d", cause="")]
    assert grouped_subjects(*findings) == {"a": [], "b": [], "c": [], "d": []}


def test_an_active_alert_leads_its_group_even_if_another_finding_is_more_severe() -> None:
    assert grouped_subjects(finding("a"), finding("b", severity=CRITICAL), firing={"a"}) == {"a": ["b"]}
    assert grouped_subjects(finding("a"), finding("b"), finding("c"), firing={"b", "c"}) == {"b": ["a"], "c": []}


def test_a_finding_that_does_not_join_a_firing_alert_gets_its_own_alert() -> None:
    late, later = replace(finding("b"), joins=False), replace(finding("c"), joins=False)
    assert grouped_subjects(finding("a"), late, later, finding("d"), firing={"a"}) == {"a": ["d"], "b": ["c"]}


def test_a_finding_named_by_a_held_alert_gets_no_alert_unless_it_is_more_severe() -> None:
    one, other = finding("a"), replace(finding("b"), joins=False)
    named = frozenset({(other.kind, "b")})

    def of_kept(severity: Severity, also: frozenset[Subject] = named) -> list[str]:
        alerts = active([one], "a", also=also, severity=WARNING)
        graver = replace(other, severity=severity)
        found = group_findings([graver], alerts, {(graver.kind, "b")}, {(one.kind, "a")}).findings
        return [f.subject for f in found]

    assert of_kept(WARNING) == of_kept(INFO) == []
    # It was told of something less grave, or not of this.
    assert of_kept(CRITICAL) == of_kept(WARNING, frozenset()) == ["b"]
    alerts = active([one], "a", also=named, severity=WARNING)
    assert [f.subject for f in group_findings([other], alerts, ()).findings] == ["b"]


@pytest.mark.parametrize(
    ("before", "now", "is_reported"),
    [("switch from broker 1", "throttle", False), ("throttle", "broker 7 is down", True), ("throttle", "", True)],
)
def test_a_finding_named_by_a_held_alert_is_reported_if_its_cause_changed(
    before: str, now: str, is_reported: bool
) -> None:
    """The switch that made a throttle too low is past in time, and the throttle as low as before."""
    one, other = finding("a", cause=before), finding("b", cause=now)
    alerts = active([one], "a", also=frozenset({(other.kind, "b")}), severity=WARNING)
    found = group_findings([other], alerts, {(other.kind, "b")}, {(one.kind, "a")}).findings
    assert [f.subject for f in found] == ["b"] * is_reported


def test_precedence_goes_before_severity() -> None:
    destination = replace(finding("b", severity=CRITICAL), precedence=1)
    (lead,) = group_findings([finding("a"), destination], {}, ()).findings
    assert (lead.subject, lead.severity) == ("a", CRITICAL)


def test_a_group_has_the_highest_severity_of_its_findings() -> None:
    both = [finding("a", severity=INFO), finding("b", severity=CRITICAL)]
    (lead,) = group_findings(both, active(both, "a"), ()).findings
    assert lead.severity is CRITICAL
    (lead,) = group_findings([finding("a", severity=CRITICAL), finding("b", severity=INFO)], {}, ()).findings
    assert lead.severity is CRITICAL


def test_it_names_the_others_and_keeps_their_numbers() -> None:
    (lead,) = group_findings([finding("a", weight=1), *(finding(s) for s in "bcdef")], {}, ()).findings
    assert lead.summary == "a is wrong; of the same cause: b, c, d and 2 more"
    assert lead.evidence_json()["also"][0] == {
        "kind": "no_data",
        "subject": "b",
        "severity": "warning",
        "broker_id": 7,
        **NUMBERS,
    }
    assert len(json.loads(json.dumps(lead.evidence_json()))["also"]) == 5


def test_another_kind_of_the_same_subject_is_kept_but_not_named_again() -> None:
    lead, other = finding("broker 3", weight=1), finding("broker 3", kind=AlertKind.UNDER_REPLICATED)
    (one,) = group_findings([lead, other], {}, ()).findings
    assert one.summary == "broker 3 is wrong"
    assert [also.kind for also in one.also] == [AlertKind.UNDER_REPLICATED]


def test_a_single_finding_is_not_changed_by_grouping() -> None:
    alone = finding("a")
    assert group_findings([alone], {}, ()).findings == [alone]
    assert group_findings([], {}, ()).findings == []


def test_an_alert_whose_cause_changed_is_superseded_and_the_new_cause_gets_its_own_alert() -> None:
    # One replica of broker 3 lagged; now the broker is down, with a move to it.
    slow = finding("broker 3", cause="broker 3 down", kind=AlertKind.UNDER_REPLICATED)
    stalled = finding("broker 3 as destination", cause="broker 3 down", kind=AlertKind.REASSIGNMENT_STALLED)
    lagged = {(slow.kind, slow.subject): ActiveAlert(is_firing=True, cause="broker 3")}
    grouped = group_findings([slow, stalled], lagged, ())
    assert [f.subject for f in grouped.findings] == ["broker 3", "broker 3 as destination"]
    assert grouped.superseded == {(slow.kind, slow.subject)}
    # Alone it is the only one that can tell of it.
    assert group_findings([slow], lagged, ()).superseded == frozenset()


def test_a_finding_named_by_a_firing_alert_stays_in_its_group_if_the_cause_changes() -> None:
    leader, other = finding("a", cause="throttle"), replace(finding("b", cause="throttle"), joins=False)
    named = ActiveAlert(is_firing=True, cause="switch from broker 1", also=frozenset({(other.kind, other.subject)}))
    (lead,) = group_findings([leader, other], {(leader.kind, leader.subject): named}, ()).findings
    assert [also.subject for also in lead.also] == ["b"]


def low_throttle(subject: str, broker: int, required: float, severity: Severity = WARNING) -> Finding:
    """A leader's rate that is too low since a switch, told for itself."""
    found = finding(subject, "switch from broker 3", severity, kind=AlertKind.THROTTLE_BELOW_LEADER_WRITE)
    numbers = {"broker_id": broker, "throttle_bytes_per_s": 2.4, "required_bytes_per_s": required}
    return replace(found, evidence=replace(found.evidence, **numbers), joins=False)


def test_a_finding_that_the_advice_of_a_firing_alert_fixes_gets_no_alert_of_its_own() -> None:
    # Two brokers took over; the first was found too low one tick before the second, and its advice raises both.
    first, second = low_throttle("broker 4 as leader", 4, 2.9), low_throttle("broker 1 as leader", 1, 2.9)
    raised = AdvisedIncrease(2.4, 3.5)
    raises = {BrokerRole(4, Role.LEADER): raised, BrokerRole(1, Role.LEADER): raised}
    advised = ActiveAlert(True, first.cause, severity=WARNING, raises=raises)
    is_firing = {(first.kind, first.subject): advised}
    (reported,) = group_findings([first, second], is_firing, ()).findings
    assert (reported.subject, [one.subject for one in reported.also]) == (
        first.subject,
        [second.subject],
    )
    # It stands for it too while it is neither wrong nor right itself.
    assert not group_findings([second], is_firing, (), is_firing).findings
    # The switch is long past by now, the throttle as low as it was.
    past = [replace(first, cause="throttle"), replace(second, cause="throttle")]
    assert [f.subject for f in group_findings(past, is_firing, ()).findings] == [first.subject]
    assert not group_findings(past[1:], is_firing, (), is_firing).findings
    # What the advice does not put right is news.
    more = low_throttle(second.subject, 1, 3.6)
    assert {f.subject for f in group_findings([first, more], is_firing, ()).findings} == {first.subject, more.subject}
    # So is a switch, whatever was advised before it.
    before = {(first.kind, first.subject): replace(advised, cause="throttle")}
    both = [replace(first, cause="throttle"), second]
    assert {f.subject for f in group_findings(both, before, ()).findings} == {first.subject, second.subject}
    # And what somebody lowered since: that broker is not too low because of the switch.
    lowered = replace(second, cause="throttle", evidence=replace(second.evidence, throttle_bytes_per_s=1.5))
    has_named = replace(advised, also=frozenset({(second.kind, second.subject)}))
    for alert in (advised, has_named):
        news = group_findings([first, lowered], {(first.kind, first.subject): alert}, ()).findings
        assert {f.subject for f in news} == {first.subject, second.subject}
    # Of one of them the switch is the cause a tick longer than of the other.
    for one, other in ((past[0], second), (first, past[1])):
        (reported,) = group_findings([one, other], is_firing, ()).findings
        assert (reported.subject, [a.subject for a in reported.also]) == (
            first.subject,
            [second.subject],
        )
        named = {
            (first.kind, first.subject): ActiveAlert(True, first.cause, frozenset({(second.kind, second.subject)}))
        }
        assert [f.subject for f in group_findings([one, other], named, ()).findings] == [first.subject]
    # What is no rate is news where its cause is another.
    down = replace(finding("broker 1", "broker 1 down"), evidence=second.evidence)
    assert {f.subject for f in group_findings([first, down], is_firing, ()).findings} == {first.subject, "broker 1"}
    # The first one's rate has been raised, and the other not yet: its alert goes on.
    (goes_on,) = group_findings([second], is_firing, ()).findings
    assert (goes_on.subject, goes_on.goes_on_with) == (first.subject, second.key)
    assert [f.subject for f in group_findings([more], is_firing, ()).findings] == [more.subject]
    graver = low_throttle(second.subject, 1, 2.9, CRITICAL)
    (reported,) = group_findings([graver], is_firing, (), is_firing).findings
    assert (reported.subject, reported.severity) == (first.subject, CRITICAL)
    assert [f.severity for f in group_findings([first, graver], is_firing, ()).findings] == [CRITICAL]


def test_a_finding_grouped_under_a_longer_pending_alert_fires_after_its_own_hold() -> None:
    unavailable = replace(finding("broker 3"), hold_s=600, precedence=4)
    behind = replace(finding("broker 3", kind=AlertKind.UNDER_REPLICATED), hold_s=60, precedence=2)
    pending = {(unavailable.kind, unavailable.subject): ActiveAlert(is_firing=False)}
    grouped = group_findings([unavailable, behind], pending, ())
    assert ([f.kind for f in grouped.findings], grouped.fire) == ([AlertKind.NO_DATA], frozenset())
    grouped = group_findings([unavailable, behind], pending, {(behind.kind, behind.subject)})
    assert [f.kind for f in grouped.findings] == [AlertKind.UNDER_REPLICATED]
    assert grouped.fire == {(AlertKind.UNDER_REPLICATED, "broker 3")}


FINDINGS = st.lists(
    st.builds(finding, st.sampled_from("abcdefg"), st.sampled_from(["", "x", "y"]), st.sampled_from(Severity)),
    unique_by=lambda f: f.subject,
)


@given(FINDINGS, st.sets(st.sampled_from("abcdefg")))
def test_grouping_keeps_each_finding_once_and_every_firing_alert(findings: list[Finding], firing: set[str]) -> None:
    spoken = grouped_subjects(*findings, firing=firing)
    everyone = [*spoken, *(other for others in spoken.values() for other in others)]
    assert sorted(everyone) == sorted(f.subject for f in findings)
    assert {f.subject for f in findings if f.subject in firing or not f.cause} <= spoken.keys()
    for cause in {f.cause for f in findings} - {""}:
        subjects = {f.subject for f in findings if f.cause == cause}
        assert len(subjects & spoken.keys()) == max(1, len(subjects & firing))


DOWN, BEHIND = "broker 4 down", "broker 4"


def of_broker(kind: AlertKind, alive: bool = False, **more: Any) -> Finding:
    """A finding about broker 4, whose alert goes on with that of the broker's death."""
    continues = (BEHIND, DOWN) if alive else (DOWN,)
    return replace(finding("broker 4", cause=BEHIND if alive else DOWN, kind=kind), continues=continues, **more)


def test_an_alert_of_a_broker_continues_with_the_remaining_findings_of_its_cause() -> None:
    # The move has ended, and its kind of finding with it; the broker is still down.
    before = of_broker(AlertKind.ISR_SHRINK_DURING_MOVE)
    rest = [of_broker(AlertKind.UNDER_REPLICATED), of_broker(AlertKind.PREFERRED_LEADER_UNAVAILABLE, precedence=1)]
    (kept,) = group_findings(rest, active([before], "broker 4"), ()).findings
    assert (kept.kind, kept.summary) == (AlertKind.ISR_SHRINK_DURING_MOVE, "broker 4 is wrong")
    assert kept.evidence_json()["goes_on_with"] == {"kind": "under_replicated", "subject": "broker 4"}
    assert [other.kind for other in kept.also] == [AlertKind.PREFERRED_LEADER_UNAVAILABLE]


def test_a_broker_that_is_back_and_has_yet_to_catch_up_is_no_news() -> None:
    before, behind = of_broker(AlertKind.REASSIGNMENT_STALLED), of_broker(AlertKind.UNDER_REPLICATED, alive=True)
    (kept,) = group_findings([behind], active([before], "broker 4"), ()).findings
    assert kept.kind is AlertKind.REASSIGNMENT_STALLED
    # That one falls behind and then dies is news; so is what has nothing to do with the broker.
    dead = of_broker(AlertKind.NO_DATA)
    found = group_findings([dead], active([behind], "broker 4"), ()).findings
    assert [f.kind for f in found] == [AlertKind.NO_DATA]
    other = finding("broker 5", cause="broker 5 down")
    found = group_findings([other], active([before], "broker 4"), ()).findings
    assert [f.subject for f in found] == ["broker 5"]


def test_a_broker_that_is_back_and_does_not_answer_yet_is_no_news() -> None:
    before = of_broker(AlertKind.REASSIGNMENT_STALLED)
    silent = replace(finding("broker 4 as leader", cause="no data"), continues=(BEHIND, DOWN))
    other = replace(finding("broker 5 as leader", cause="no data"), continues=("broker 5", "broker 5 down"))
    found = group_findings([silent, other], active([before], "broker 4"), ()).findings
    assert {(f.kind, f.subject) for f in found} == {
        (AlertKind.REASSIGNMENT_STALLED, "broker 4"),
        (AlertKind.NO_DATA, "broker 5 as leader"),
    }
    # While the alert's own finding is there, it stands for it.
    (kept,) = group_findings([before, silent], active([before], "broker 4"), ()).findings
    assert [one.subject for one in kept.also] == ["broker 4 as leader"]
