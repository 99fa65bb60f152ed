"""The group plan_truth: what a plan says, and in which cases that was wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.groups.plan.truth import group
from benchmarks.groups.plan.truth.cases import CASES, KAFKA, KAFKA_3_9, KAFKA_4_3, TROUBLED, TruthCase, TruthTrouble
from benchmarks.groups.plan.truth.group import PlanTruthOptions, figures, measure
from benchmarks.groups.plan.truth.verdict import Came, SaidEnd, said_of, what_is_wrong
from headroom.operations.plans.estimating import EstimateRequest, estimate_plan
from headroom.planning.reassignments.cluster_state import BrokerState
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.errors import HeadroomError
from tests.unit.builders.cluster_states import MB, placed, plan_of, state_of


def said(
    target: tuple[int, ...], throttle: int | None = None, dead: bool = False, waits: bool = False, **fields: object
) -> SaidEnd:
    """Return what is said of a partition of 1 MB/s on brokers 1, 2 and 5, the last of which may be down."""
    brokers = {5: BrokerState(5, alive=not dead)}
    isr = (1, 2) if dead else (1, 2, 5)
    state = state_of([placed(0, (1, 2, 5), isr=isr, **fields)], brokers, waits_for_kept=waits)
    try:
        result = estimate_plan(plan_of({0: target}), state, EstimateRequest(ThrottlePolicy(), throttle), "the plan")
    except HeadroomError as error:
        return said_of(error)
    return said_of(result)


def test_what_a_plan_says_of_the_end_of_a_move() -> None:
    assert said((1, 2, 3)) is SaidEnd.FITS
    # The leader sends 1 MB/s to three followers.
    assert said((1, 2, 3), 2 * MB) is SaidEnd.NEVER
    assert said((1, 2, 3), write_bytes_per_s=None) is SaidEnd.UNKNOWN
    assert said((1, 2, 3), awaits_leader=True) is SaidEnd.AWAITS_LEADER
    # Since Kafka 4.3 only a move that gives up more replicas than it gets waits for those that it keeps.
    assert said((1, 3, 5), dead=True) is SaidEnd.FITS
    assert said((1, 5), dead=True) is SaidEnd.AWAITS_BROKER
    assert said((1, 3, 5), dead=True, waits=True) is SaidEnd.AWAITS_BROKER
    assert said((1, 2, 9)) is SaidEnd.REFUSED


@pytest.mark.parametrize(
    ("of_plan", "came", "wrong"),
    [
        (SaidEnd.FITS, Came(ended_s=9.0), None),
        (SaidEnd.FITS, Came(ended_s=11.0), "it ended after 11 s, not within 10 s"),
        (SaidEnd.FITS, Came(watched_s=12.0), "it did not end within 12 s"),
        (SaidEnd.FITS, Came("no"), "Kafka refused it: no"),
        (SaidEnd.NEVER, Came(watched_s=40.0), None),
        (SaidEnd.NEVER, Came(ended_s=5.0), "it ended after 5 s"),
        (SaidEnd.AWAITS_BROKER, Came(watched_s=40.0, ended_later=True), None),
        (SaidEnd.AWAITS_BROKER, Came(ended_s=3.0), "it ended after 3 s"),
        (SaidEnd.AWAITS_BROKER, Came(ended_later=False), "it did not end either once what it waited for was there"),
        (SaidEnd.REFUSED, Came("no"), None),
        (SaidEnd.REFUSED, Came(watched_s=40.0), None),
        (SaidEnd.REFUSED, Came(ended_s=3.0), "it was carried out"),
        (SaidEnd.UNKNOWN, Came(ended_s=3.0), None),
    ],
)
def test_a_plan_is_wrong_if_something_else_came(of_plan: SaidEnd, came: Came, wrong: str | None) -> None:
    assert what_is_wrong(of_plan, 10.0, came) == wrong


def test_different_cases_of_every_trouble_and_of_those_that_kafka_3_9_knows() -> None:
    assert len({case.name for case in CASES}) == len(CASES) == 93
    # Records have the numbers of the cases: those of 3.9 come last.
    assert [case.kafka for case in CASES] == [KAFKA_4_3] * 60 + [KAFKA_3_9] * 33
    assert {case.trouble for case in CASES[:60]} == set(TruthTrouble)
    assert {case.trouble for case in CASES[60:]} == {TruthTrouble.NONE, TruthTrouble.DEAD, TruthTrouble.UNREADABLE}
    # In every case of a dead broker it has, or would get, a replica; 3.9 and 4.3 differ in these.
    dead = {kafka: [c for c in CASES if (c.trouble, c.kafka) == (TruthTrouble.DEAD, kafka)] for kafka in KAFKA}
    assert all(TROUBLED in (*c.before, *c.after) for cases in dead.values() for c in cases)
    assert [c.name for c in dead[KAFKA_3_9]] == [f"{c.name}, Kafka 3.9" for c in dead[KAFKA_4_3]]


def test_cases_are_recorded_by_trouble_and_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stages: list[tuple[TruthTrouble, str]] = []

    class Stage:
        def __init__(self, trouble: TruthTrouble, kafka: str, cases: Mapping[int, TruthCase], _: object) -> None:
            stages.append((trouble, kafka))
            self._cases = cases

        def records(self) -> Iterator[tuple[int, dict[str, Any]]]:
            for number, case in self._cases.items():
                assert (case.trouble, case.kafka) == stages[-1]
                yield number, {"case": case.name, "said": "fits", "wrong": None}

    monkeypatch.setattr(group, "TruthStage", Stage)
    monkeypatch.setattr(group, "parts", lambda *_: tmp_path)
    found = measure(print, PlanTruthOptions(parts=("dead", "cordoned"), kafka=(KAFKA_3_9,)))
    assert stages == [(TruthTrouble.DEAD, KAFKA_3_9)]
    assert {figure.n for figure in found} == {18}
    # By default all of them: what is recorded is not repeated.
    measure(print, PlanTruthOptions())
    assert (len(stages), len(list(tmp_path.iterdir()))) == (1 + len(TruthTrouble) + 2, len(CASES))


def test_figures_count_wrong_and_unknown_plans() -> None:
    records = [
        {"case": "a", "said": "fits", "wrong": None},
        {"case": "b", "said": "fits", "wrong": "it did not end within 12 s"},
        {"case": "c", "said": "unknown", "wrong": None},
    ]
    lines: list[str] = []
    found = {figure.name: (figure.value, figure.n) for figure in figures(records, lines.append)}
    assert found == {"plan_never_wrong": (1, 3), "plan_truth_unknown": (1, 3), "plan_truth_cases": (3, 3)}
    assert lines == ["b: said fits, but it did not end within 12 s"]
    assert figures([], lines.append) == []
