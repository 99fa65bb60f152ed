"""One scenario played: a fault in the midst of an alert that fires, or of one that resolves."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import psutil
from kafka.errors import KafkaError

from alerts.rules.no_ticks import TICKS
from benchmarks.groups.outages.record import Critical, Record
from benchmarks.groups.outages.scenarios.arrangement import Void
from benchmarks.groups.outages.schedule import Play
from benchmarks.groups.outages.stage.stage import Stage
from benchmarks.groups.outages.watching.blind import Blind, Span, blind, gaps
from benchmarks.groups.outages.watching.notices import Count, critical
from schemas.alerts import AlertEvent, AlertKind
from schemas.errors import HeadroomError

_HEALTHY_S = 120.0
_EVENT_S = 120.0
_SETTLE_S = 60.0
_LOOK_S = 0.5
# An alert fires some five seconds after its throttle, and resolves some two seconds after it: the fault comes before.
_FIRES_WITHIN_S, _RESOLVES_WITHIN_S = 2.0, 0.5
_REASON_CHARACTERS = 500
# Ticks that stay away for as long as this are truly away; see ``alerts.no_data_s``.
_AWAY_S = 15.0
# A bare RuntimeError is kafka-python's word for a cluster without a controller.
_TROUBLE = (HeadroomError, KafkaError, psutil.Error, OSError, RuntimeError)


@dataclass
class Course:
    """How far a play has come.

    Attributes:
        began_s: when it began, seconds of the monotonic clock, as all of these.
        before: what receivers were notified of before it; None: that is not known yet.
        fault_s: when the fault began; None: it has not.
        notified_s: when the event came that was to come in the midst of the fault; None: it has not.
        until_s: when everything was as before; None: it is not yet.
        void: why it is not played; None: it is.
        failed: why it did not come to its end; None: it did, or goes on.
    """

    began_s: float
    before: Count | None = None
    fault_s: float | None = None
    notified_s: float | None = None
    until_s: float | None = None
    void: str | None = None
    failed: str | None = None


def play_once(stage: Stage, play: Play) -> Record:
    """Return a play as it went; afterwards everything that it took away is given back.

    Args:
        stage: where it is played.
        play: what is played.
    """
    stage.forget()
    course = Course(time.monotonic())
    try:
        _story(stage, play, course)
    except Void as error:
        course.void = str(error)
    except _TROUBLE as error:
        course.failed = f"{type(error).__name__}: {error}"[:_REASON_CHARACTERS]
        # What does not come back now is tried once more when the watch is ended.
        with suppress(*_TROUBLE):
            stage.recover()
    return record(stage, play, course)


def _story(stage: Stage, play: Play, course: Course) -> None:
    scenario = play.scenario
    course.before, unkept = stage.notices.count(stage.leaders.starved), stage.notices.unkept()
    scenario.prepare(stage)
    stage.brokers.settle()
    stage.await_fresh(_HEALTHY_S)
    stage.leaders.turn(but=scenario.spared(stage))
    known = stage.notices.alerts(stage.leaders.subject)
    if not play.fires:
        stage.throttle(starving=True)
        _await_fired(stage, known)
    stage.throttle(starving=play.fires)
    within_s = _FIRES_WITHIN_S if play.fires else _RESOLVES_WITHIN_S
    stage.hold(random.Random(play.name).uniform(0, within_s))
    course.fault_s = time.monotonic()
    scenario.begin(stage)
    stage.hold(scenario.length_s)
    scenario.end(stage)
    if play.fires:
        _await_fired(stage, known)
        course.notified_s = time.monotonic()
        stage.throttle(starving=False)
    _await_resolved(stage, known)
    if course.notified_s is None:
        course.notified_s = time.monotonic()
    stage.await_fresh(_HEALTHY_S)
    course.until_s = time.monotonic()
    if not scenario.loses_rows:
        stage.await_true(lambda: stage.notices.unkept() <= unkept, _SETTLE_S, "every event kept in alerts/events")


def _await_fired(stage: Stage, known: set[str]) -> None:
    subject = stage.leaders.subject
    stage.await_true(lambda: stage.notices.alerts(subject) - known, _EVENT_S, f"an alert about {subject}")


def _await_resolved(stage: Stage, known: set[str]) -> None:
    subject = stage.leaders.subject

    def is_resolved() -> bool:
        fired = stage.notices.alerts(subject) - known
        return bool(fired) and fired <= stage.notices.resolved(subject)

    stage.await_true(is_resolved, _EVENT_S, f"the end of the alert about {subject}")


def _await_shown(stage: Stage) -> None:
    """Return once receivers show every event, or after a while."""
    give_up = time.monotonic() + _SETTLE_S
    while stage.notices.missing() and time.monotonic() < give_up:
        stage.supervise()
        time.sleep(_LOOK_S)


def record(stage: Stage, play: Play, course: Course) -> Record:
    """Return what is kept of a play that has come to its end, whichever.

    Args:
        stage: where it was played.
        play: what was played.
        course: how far it came.
    """
    scenario = play.scenario
    played_s = time.monotonic() - course.began_s
    begun = Record(scenario.name, scenario.title, play.number, scenario.restarts_judging, course.void, course.failed)
    if course.void is not None or course.before is None:
        return Record(**{**vars(begun), "played_s": round(played_s, 1), "notes": list(stage.notes)})
    found, kafka, over = _longest_gap(stage, course)
    _await_shown(stage)
    after = stage.notices.count(stage.leaders.starved)
    events = critical(stage.notices.events(), course.before.keys)
    was_away = over is not None and any(gap.length_s >= _AWAY_S for gap in gaps(stage.fresh.moments, over))
    fields = {
        **vars(begun),
        **(_times(found, course) if found is not None else {}),
        "kafka_all_s": round(sum(span.length_s for span in kafka), 2),
        "played_s": round(played_s, 1),
        "events": len(after.keys - course.before.keys),
        "lost": max(0, after.lost - course.before.lost),
        "doubled": max(0, after.doubled - course.before.doubled),
        "critical": [_critical(event, explained(event, stage.starved, play, was_away)) for event in events],
        "missing": stage.notices.missing(),
        "notes": list(stage.notes),
    }
    return Record(**fields)


def _longest_gap(stage: Stage, course: Course) -> tuple[Blind | None, Sequence[Span], Span | None]:
    """Return the longest time without a fresh verdict, when Kafka could take no tick, and the time that is looked at.

    Of a fault that never began there is no such time.
    """
    kafka = stage.take_kafka_spans()
    if course.fault_s is None:
        return None, kafka, None
    over = Span(course.fault_s, time.monotonic() if course.until_s is None else course.until_s)
    return blind(stage.fresh.moments, over, stage.ground.settings.collect.interval_s, kafka), kafka, over


def _times(found: Blind, course: Course) -> dict[str, float | None]:
    fault_s = course.fault_s or 0.0
    return {
        "blind_s": round(found.blind_s, 2),
        "gap_s": round(found.gap.length_s, 2),
        "gap_from_s": round(found.gap.from_s - fault_s, 2),
        "kafka_s": round(found.kafka_s, 2),
        "notified_s": None if course.notified_s is None else round(course.notified_s - fault_s, 2),
    }


def explained(event: AlertEvent, starved: set[str], play: Play, was_away: bool) -> bool:
    """Return whether something that was true explains a critical alert.

    Args:
        event: by which it fired.
        starved: subjects of the alerts that are due because a leader was made to starve.
        play: what is played.
        was_away: whether no tick was evaluated for as long as that is worth a critical alert.
    """
    if event.kind == AlertKind.THROTTLE_BELOW_LEADER_WRITE.value and event.subject in starved:
        return True
    if event.kind == AlertKind.NO_DATA.value and event.subject == TICKS and was_away:
        return True
    return event.kind in {kind.value for kind in play.scenario.true_critical}


def _critical(event: AlertEvent, true: bool) -> Critical:
    return Critical(event.kind, event.subject, event.summary, true)
