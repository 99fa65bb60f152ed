"""The typed view of stored events: what a finding wrote is read back, of this version and of others."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.alerts.evidence.evidence import EvidenceCause
from headroom.alerts.evidence.throttle_evidence import ThrottleEvidence
from headroom.alerts.finding import Finding
from headroom.alerts.recommendations.recommendation import Advice
from headroom.alerts.stored_event import StoredEvidence, StoredFinding, evidence_of, with_escalation
from headroom.schemas.alerts import AlertEvent, AlertKind, Severity
from headroom.schemas.keys import Role
from tests.unit.builders.throttle_status import partition, status

NUMBERS = ("broker_id", "throttle_bytes_per_s", "in_sync_bytes_per_s", "required_bytes_per_s", "remaining_bytes")


@st.composite
def findings(draw: st.DrawFn) -> Finding:
    """A finding on a throttle, alone or for another one."""
    mb = st.one_of(st.none(), st.floats(0, 100))
    throttles = [
        status(
            draw(st.integers(1, 9)), draw(st.sampled_from(Role)), draw(mb), draw(mb), partition(), in_sync_mb=draw(mb)
        )
        for _ in range(2)
    ]
    cause = draw(st.one_of(st.none(), st.sampled_from(EvidenceCause)))
    own, other = (
        Finding(
            AlertKind.THROTTLE_BELOW_INBOUND,
            one.subject,
            Severity.WARNING,
            "too low",
            replace(ThrottleEvidence.of(one), cause=cause),
            Advice(),
            0.0,
            cause=draw(st.sampled_from(["", "throttle"])),
            affected=draw(st.integers(0, 3)),
        )
        for one in throttles
    )
    also = draw(st.sampled_from([(), (other,)]))
    return replace(own, also=also, goes_on_with=draw(st.sampled_from([None, other.key])))


def read(values: dict[str, Any]) -> StoredEvidence:
    return StoredEvidence.of(json.loads(json.dumps(values)))


@given(findings())
def test_stored_evidence_is_read_back_as_written(finding: Finding) -> None:
    evidence, stored = finding.evidence, read(finding.evidence_json())
    for name in NUMBERS:
        assert getattr(stored, name) == getattr(evidence, name)
    assert (stored.role, stored.cause) == (evidence.role, evidence.cause)
    assert [p.name for p in stored.partitions] == [p.name for p in evidence.partitions]
    assert (stored.group or "", stored.affected or 0) == (finding.cause, finding.affected)
    assert [(one.kind, one.subject, one.broker_id) for one in stored.also] == [
        (*other.key, other.evidence.broker_id) for other in finding.also
    ]
    assert (stored.goes_on_with is None) == (finding.goes_on_with is None)
    if stored.goes_on_with is not None:
        assert (stored.goes_on_with.kind, stored.goes_on_with.subject) == finding.goes_on_with


@given(findings(), st.data())
def test_a_key_that_another_version_lacks_or_adds_leaves_the_others_as_they_are(
    finding: Finding, data: st.DataObject
) -> None:
    values = finding.evidence_json()
    missing = data.draw(st.sampled_from(sorted(values)))
    older = {key: value for key, value in values.items() if key != missing}
    whole, without = vars(read(values)), vars(read({**older, "not_yet_known": 1}))
    assert {key for key, value in whole.items() if without[key] != value} <= {missing}
    assert not without.get(missing)


@pytest.mark.parametrize("empty", [{}, {"partitions": None, "also": None, "goes_on_with": None}])
def test_nothing_stored_is_nothing_known(empty: dict[str, Any]) -> None:
    stored = StoredEvidence.of(empty)
    assert not any(value for value in vars(stored).values())


def test_words_that_only_a_newer_version_knows_stay_text() -> None:
    values = {"cause": "new", "verdict": "new", "role": "new", "also": [{"kind": "new", "subject": "x"}]}
    stored = StoredEvidence.of(values)
    assert (stored.cause, stored.verdict, stored.role) == ("new", "new", "new")
    assert stored.also == [StoredFinding("new", "x", None)]


def test_another_number_of_escalations_leaves_unknown_keys_as_they_are() -> None:
    evidence = '{"broker_id": 3, "not_yet_known": [1], "escalation": 2, "escalated_tick_ms": 5}'
    event = AlertEvent("a", "no_data", "warning", "firing", "c", "s", "", evidence, "{}", 1, 1)
    changed = with_escalation(event, 0)
    assert changed.evidence == evidence.replace('"escalation": 2', '"escalation": 0')
    assert (evidence_of(changed).escalation, evidence_of(event).escalation) == (0, 2)
