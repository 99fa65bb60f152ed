"""One run of a scenario: a fault while an alert begins to fire, or while one resolves."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import psutil
from kafka.errors import KafkaError

from alerts.rules.no_ticks import TICKS
from benchmarks.groups.outages.record import Critical, RunRecord
from benchmarks.groups.outages.scenarios.arrangement import Void
from benchmarks.groups.outages.schedule import Play
from benchmarks.groups.outages.context import ScenarioContext
from benchmarks.groups.outages.blind import Blind, Span, blind, gaps
from benchmarks.fixtures.receivers.notifications import Count, critical
from schemas.alerts import AlertEvent, AlertKind
from schemas.errors import HeadroomError

_FRESH_WITHIN_S = 120.0
_EVENT_S = 120.0
_SETTLE_S = 60.0
_POLL_S = 0.5
# An alert fires about 5 s after its throttle changes, and resolves about 2 s after it. The fault has to come before.
_FIRES_WITHIN_S, _RESOLVES_WITHIN_S = 2.0, 0.5
_REASON_CHARACTERS = 500
# Missing ticks justify a critical alert after this time; see ``alerts.no_data_s``.
_NO_TICKS_S = 15.0
# kafka-python raises a bare RuntimeError for a cluster without a controller.
_FAILURES = (HeadroomError, KafkaError, psutil.Error, OSError, RuntimeError)


@dataclass
class PlayProgress:
    """Progress of a run.

    Attributes:
        began_s: beginning, monotonic seconds, like all times here.
        before: notifications before the run; None if unknown yet.
        fault_s: beginning of the fault; None before it.
        notified_s: time of the event that was expected during the fault; None before it.
        until_s: time at which everything had recovered; None before it.
        void: reason why it cannot run on this machine; None if it can.
        failed: reason why it did not complete; None if it did, or is still running.
    """

    began_s: float
    before: Count | None = None
    fault_s: float | None = None
    notified_s: float | None = None
    until_s: float | None = None
    void: str | None = None
    failed: str | None = None


def play_once(context: ScenarioContext, play: Play) -> RunRecord:
    """Run a play, and return its record. Afterwards everything has recovered.

    Args:
        context: the scenario's context.
        play: scenario and number of the run.
    """
    context.reset()
    progress = PlayProgress(time.monotonic())
    try:
        _run_play(context, play, progress)
    except Void as error:
        progress.void = str(error)
    except _FAILURES as error:
        progress.failed = f"{type(error).__name__}: {error}"[:_REASON_CHARACTERS]
        # If the recovery fails now, the session repeats it at its end.
        with suppress(*_FAILURES):
            context.recover()
    return record(context, play, progress)


def _run_play(context: ScenarioContext, play: Play, progress: PlayProgress) -> None:
    scenario = play.scenario
    progress.before, unstored = context.notifications.count(context.leaders.starved), context.notifications.unstored()
    scenario.prepare(context)
    context.brokers.restore_leaders()
    context.await_fresh(_FRESH_WITHIN_S)
    context.leaders.advance(skip=scenario.excluded_leaders(context))
    known = context.notifications.alerts(context.leaders.subject)
    if not play.fires:
        context.throttle(starving=True)
        _await_fired(context, known)
    context.throttle(starving=play.fires)
    within_s = _FIRES_WITHIN_S if play.fires else _RESOLVES_WITHIN_S
    context.wait(random.Random(play.name).uniform(0, within_s))
    progress.fault_s = time.monotonic()
    scenario.begin(context)
    context.wait(scenario.length_s)
    scenario.end(context)
    if play.fires:
        _await_fired(context, known)
        progress.notified_s = time.monotonic()
        context.throttle(starving=False)
    _await_resolved(context, known)
    if progress.notified_s is None:
        progress.notified_s = time.monotonic()
    context.await_fresh(_FRESH_WITHIN_S)
    progress.until_s = time.monotonic()
    if not scenario.loses_rows:
        context.await_true(
            lambda: context.notifications.unstored() <= unstored, _SETTLE_S, "every event stored in alerts/events"
        )


def _await_fired(context: ScenarioContext, known: set[str]) -> None:
    subject = context.leaders.subject
    context.await_true(lambda: context.notifications.alerts(subject) - known, _EVENT_S, f"an alert about {subject}")


def _await_resolved(context: ScenarioContext, known: set[str]) -> None:
    subject = context.leaders.subject

    def is_resolved() -> bool:
        fired = context.notifications.alerts(subject) - known
        return bool(fired) and fired <= context.notifications.resolved(subject)

    context.await_true(is_resolved, _EVENT_S, f"the end of the alert about {subject}")


def _await_shown(context: ScenarioContext) -> None:
    """Return once receivers show every event, or after a timeout."""
    deadline = time.monotonic() + _SETTLE_S
    while context.notifications.missing() and time.monotonic() < deadline:
        context.supervise()
        time.sleep(_POLL_S)


def record(context: ScenarioContext, play: Play, progress: PlayProgress) -> RunRecord:
    """Return the record of a run, completed or not.

    Args:
        context: the scenario's context.
        play: scenario and number of the run.
        progress: progress of the run.
    """
    scenario = play.scenario
    played_s = time.monotonic() - progress.began_s
    begun = RunRecord(
        scenario.name, scenario.title, play.number, scenario.restarts_judging, progress.void, progress.failed
    )
    if progress.void is not None or progress.before is None:
        return RunRecord(**{**vars(begun), "played_s": round(played_s, 1), "notes": list(context.notes)})
    found, kafka, over = _longest_gap(context, progress)
    _await_shown(context)
    after = context.notifications.count(context.leaders.starved)
    events = critical(context.notifications.events(), progress.before.keys)
    no_ticks = over is not None and any(gap.length_s >= _NO_TICKS_S for gap in gaps(context.fresh.moments, over))
    fields = {
        **vars(begun),
        **(_times(found, progress) if found is not None else {}),
        "kafka_all_s": round(sum(span.length_s for span in kafka), 2),
        "played_s": round(played_s, 1),
        "events": len(after.keys - progress.before.keys),
        "lost": max(0, after.lost - progress.before.lost),
        "doubled": max(0, after.doubled - progress.before.doubled),
        "critical": [
            Critical(one.kind, one.subject, one.summary, explained(one, context.starved, play, no_ticks))
            for one in events
        ],
        "missing": context.notifications.missing(),
        "notes": list(context.notes),
    }
    return RunRecord(**fields)


def _longest_gap(context: ScenarioContext, progress: PlayProgress) -> tuple[Blind | None, Sequence[Span], Span | None]:
    """Return the longest time without a fresh verdict, Kafka's outage times, and the observed time.

    Without a fault there is no observed time.
    """
    kafka = context.pop_kafka_spans()
    if progress.fault_s is None:
        return None, kafka, None
    over = Span(progress.fault_s, time.monotonic() if progress.until_s is None else progress.until_s)
    return blind(context.fresh.moments, over, context.bench.settings.collect.interval_s, kafka), kafka, over


def _times(found: Blind, progress: PlayProgress) -> dict[str, float | None]:
    fault_s = progress.fault_s or 0.0
    return {
        "blind_s": round(found.blind_s, 2),
        "gap_s": round(found.gap.length_s, 2),
        "gap_from_s": round(found.gap.from_s - fault_s, 2),
        "kafka_s": round(found.kafka_s, 2),
        "notified_s": None if progress.notified_s is None else round(progress.notified_s - fault_s, 2),
    }


def explained(event: AlertEvent, starved: set[str], play: Play, no_ticks: bool) -> bool:
    """Return whether the run justifies a critical alert.

    Args:
        event: firing event of the alert.
        starved: subjects of the expected alerts about starved leaders.
        play: scenario and number of the run.
        no_ticks: whether no tick was evaluated for long enough to justify a critical alert.
    """
    if event.kind == AlertKind.THROTTLE_BELOW_LEADER_WRITE.value and event.subject in starved:
        return True
    if event.kind == AlertKind.NO_DATA.value and event.subject == TICKS and no_ticks:
        return True
    return event.kind in {kind.value for kind in play.scenario.true_critical}
