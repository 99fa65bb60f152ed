"""One alert per cause: who speaks for the others, how gravely, and for how long."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from alerts.causes import one_per_cause
from schemas.findings import Finding, Kind, Severity

CRITICAL, WARNING, INFO = Severity
NUMBERS = {"role": "leader", "throttle_bytes_per_s": 1.0, "in_sync_bytes_per_s": 2.0, "required_bytes_per_s": 3.0}


def finding(
    subject: str, cause: str = "throttle", severity: Severity = WARNING, weight: float = 0.0, kind: Kind = Kind.NO_DATA
) -> Finding:
    return Finding(
        kind, subject, severity, f"{subject} is wrong", {"broker_id": 7, **NUMBERS}, {}, 0.0, cause=cause, weight=weight
    )


def told(*findings: Finding, active: Collection[str] = ()) -> dict[str, list[str]]:
    """By subject of what is told, the subjects that it stands for."""
    found = one_per_cause(findings, lambda f: (lambda other: other.joins) if f.subject in active else None)
    return {f.subject: [other["subject"] for other in f.evidence.get("also", [])] for f in found}


def test_of_one_cause_the_gravest_is_told_then_the_weightiest_then_the_first_by_name() -> None:
    assert told(finding("a", weight=9), finding("b", severity=CRITICAL)) == {"b": ["a"]}
    assert told(finding("a", weight=1), finding("b", weight=2), finding("c", weight=3)) == {"c": ["b", "a"]}
    assert told(finding("b"), finding("a")) == {"a": ["b"]}


def test_other_causes_and_findings_without_one_are_told_for_themselves() -> None:
    findings = [finding("a"), finding("b", cause="other"), finding("c", cause=""), finding("d", cause="")]
    assert told(*findings) == {"a": [], "b": [], "c": [], "d": []}


def test_whose_alert_is_active_goes_on_being_told_though_another_is_graver_by_now() -> None:
    assert told(finding("a"), finding("b", severity=CRITICAL), active={"a"}) == {"a": ["b"]}
    assert told(finding("a"), finding("b"), finding("c"), active={"b", "c"}) == {"b": ["a"], "c": []}


def test_what_comes_up_after_an_alert_has_fired_without_it_gets_one_of_its_own() -> None:
    late, later = replace(finding("b"), joins=False), replace(finding("c"), joins=False)
    assert told(finding("a"), late, later, finding("d"), active={"a"}) == {"a": ["d"], "b": ["c"]}


def test_precedence_goes_before_severity() -> None:
    destination = replace(finding("b", severity=CRITICAL), precedence=1)
    (lead,) = one_per_cause([finding("a"), destination], lambda f: None)
    assert (lead.subject, lead.severity) == ("a", CRITICAL)


def test_it_speaks_as_gravely_as_the_gravest_and_no_less_than_itself() -> None:
    (lead,) = one_per_cause(
        [finding("a", severity=INFO), finding("b", severity=CRITICAL)],
        lambda f: (lambda other: True) if f.subject == "a" else None,
    )
    assert lead.severity is CRITICAL
    (lead,) = one_per_cause([finding("a", severity=CRITICAL), finding("b", severity=INFO)], lambda f: None)
    assert lead.severity is CRITICAL


def test_it_names_the_others_and_keeps_their_numbers() -> None:
    (lead,) = one_per_cause([finding("a", weight=1), *(finding(s) for s in "bcdef")], lambda f: None)
    assert lead.summary == "a is wrong; of the same cause: b, c, d and 2 more"
    assert lead.evidence["also"][0] == {
        "kind": "no_data",
        "subject": "b",
        "severity": "warning",
        "broker_id": 7,
        **NUMBERS,
    }
    assert len(json.loads(json.dumps(lead.evidence))["also"]) == 5


def test_another_kind_of_the_same_subject_is_kept_but_not_named_again() -> None:
    lead, other = finding("broker 3", weight=1), finding("broker 3", kind=Kind.UNDER_REPLICATED)
    (one,) = one_per_cause([lead, other], lambda f: None)
    assert one.summary == "broker 3 is wrong"
    assert [also["kind"] for also in one.evidence["also"]] == ["under_replicated"]


def test_alone_it_is_told_as_it_is() -> None:
    alone = finding("a")
    assert one_per_cause([alone], lambda f: None) == [alone]
    assert one_per_cause([], lambda f: lambda other: True) == []


FINDINGS = st.lists(
    st.builds(finding, st.sampled_from("abcdefg"), st.sampled_from(["", "x", "y"]), st.sampled_from(Severity)),
    unique_by=lambda f: f.subject,
)


@given(FINDINGS, st.sets(st.sampled_from("abcdefg")))
def test_nothing_is_lost_or_told_twice_and_no_active_one_falls_silent(
    findings: list[Finding], active: set[str]
) -> None:
    spoken = told(*findings, active=active)
    everyone = [*spoken, *(other for others in spoken.values() for other in others)]
    assert sorted(everyone) == sorted(f.subject for f in findings)
    assert {f.subject for f in findings if f.subject in active or not f.cause} <= spoken.keys()
    for cause in {f.cause for f in findings} - {""}:
        subjects = {f.subject for f in findings if f.cause == cause}
        assert len(subjects & spoken.keys()) == max(1, len(subjects & active))
