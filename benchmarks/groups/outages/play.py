"""One run of a scenario: a fault while an alert begins to fire, or while one resolves."""

from __future__ import annotations

import random
import time
from contextlib import suppress
from dataclasses import dataclass

import psutil
from kafka.errors import KafkaError

from benchmarks.faults.disks import Void
from benchmarks.faults.leaders_in_turn import PARTITIONS
from benchmarks.fixtures.receivers.notifications import Count, critical
from benchmarks.groups.outages.blind import Span, blind, gaps
from benchmarks.groups.outages.context import ScenarioContext
from benchmarks.groups.outages.record import RunRecord
from benchmarks.groups.outages.schedule import Play
from headroom.alerts.rules.no_ticks import TICKS
from headroom.schemas.alerts import AlertEvent, AlertKind, AlertState
from headroom.schemas.errors import HeadroomError

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
class PlayTimes:
    """Times of a run, in monotonic seconds; None if it did not come that far.

    Attributes:
        fault_s: beginning of the fault.
        notified_s: time of the event that was expected during the fault.
        until_s: time at which everything had recovered.
    """

    fault_s: float | None = None
    notified_s: float | None = None
    until_s: float | None = None


def play_once(context: ScenarioContext, play: Play) -> RunRecord:
    """Run a play, and return its record. Afterwards everything has recovered."""
    context.reset()
    began_s, times, record = time.monotonic(), PlayTimes(), play.new_record()
    before: Count | None = None
    try:
        unstored = context.notifications.unstored()
        before = context.notifications.count(context.leaders.starved)
        _run_play(context, play, unstored, times)
    except Void as error:
        record.void = error.rule
    except _FAILURES as error:
        record.failed = f"{type(error).__name__}: {error}"[:_REASON_CHARACTERS]
        # If the recovery fails now, the session repeats it at its end.
        with suppress(*_FAILURES):
            context.recover()
    record.played_s = round(time.monotonic() - began_s, 1)
    if record.void is None and before is not None:
        no_ticks = _record_times(context, times, record)
        _await_shown(context)
        _record_events(context, play, before, no_ticks, record)
    record.notes = list(context.notes)
    return record


def _run_play(context: ScenarioContext, play: Play, unstored: int, times: PlayTimes) -> None:
    scenario = play.scenario
    scenario.prepare(context)
    # Sufficient rates are set, so that replicas catch up.
    context.brokers.elect_preferred(context.move.topic, [moved.before for moved in PARTITIONS])
    context.await_fresh(_FRESH_WITHIN_S)
    context.leaders.advance(skip=scenario.excluded_leaders(context))
    known = context.notifications.alerts(context.leaders.subject)
    if not play.fires:
        context.throttle(starving=True)
        _await_fired(context, known)
    context.throttle(starving=play.fires)
    within_s = _FIRES_WITHIN_S if play.fires else _RESOLVES_WITHIN_S
    context.wait(random.Random(play.name).uniform(0, within_s))
    times.fault_s = time.monotonic()
    scenario.begin(context)
    context.wait(scenario.length_s)
    scenario.end(context)
    if play.fires:
        _await_fired(context, known)
        times.notified_s = time.monotonic()
        context.throttle(starving=False)
    _await_resolved(context, known)
    if times.notified_s is None:
        times.notified_s = time.monotonic()
    context.await_fresh(_FRESH_WITHIN_S)
    times.until_s = time.monotonic()
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
        return bool(fired) and fired <= context.notifications.alerts(subject, AlertState.RESOLVED)

    context.await_true(is_resolved, _EVENT_S, f"the end of the alert about {subject}")


def _await_shown(context: ScenarioContext) -> None:
    """Return once receivers show every event, or after a timeout."""
    deadline = time.monotonic() + _SETTLE_S
    while context.notifications.missing() and time.monotonic() < deadline:
        context.supervise()
        time.sleep(_POLL_S)


def _record_times(context: ScenarioContext, times: PlayTimes, record: RunRecord) -> bool:
    """Record the blind time and Kafka's outages, and return whether ticks were missing for long. Needs a fault."""
    kafka = context.pop_kafka_spans()
    record.kafka_all_s = round(sum(span.length_s for span in kafka), 2)
    if times.fault_s is None:
        return False
    over = Span(times.fault_s, time.monotonic() if times.until_s is None else times.until_s)
    longest = blind(context.fresh.moments, over, context.bench.settings.collect.interval_s, kafka)
    record.blind_s, record.kafka_s = round(longest.blind_s, 2), round(longest.kafka_s, 2)
    record.gap_s, record.gap_from_s = round(longest.gap.length_s, 2), round(longest.gap.from_s - times.fault_s, 2)
    record.notified_s = None if times.notified_s is None else round(times.notified_s - times.fault_s, 2)
    return any(gap.length_s >= _NO_TICKS_S for gap in gaps(context.fresh.moments, over))


def _record_events(context: ScenarioContext, play: Play, before: Count, no_ticks: bool, record: RunRecord) -> None:
    """Record what receivers show of the events since the beginning of the run."""
    after = context.notifications.count(context.leaders.starved)
    record.events = len(after.keys - before.keys)
    record.lost = max(0, after.lost - before.lost)
    record.doubled = max(0, after.doubled - before.doubled)
    record.critical = [
        {
            "kind": one.kind,
            "subject": one.subject,
            "summary": one.summary,
            "true": explained(one, context.starved, play, no_ticks),
        }
        for one in critical(context.notifications.events(), before.keys)
    ]
    record.missing = context.notifications.missing()


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
