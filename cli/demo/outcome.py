"""Measurements of the demo, and the checks of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headroom.alerts.stored_event import evidence_of, recommendation_of
from headroom.alerts.text.finish import finish_text
from headroom.cli.demo.scenario import NEW_LEADER, PAYMENTS, SWITCHING, THROTTLE_BYTES_PER_S
from headroom.schemas.alerts import AlertEvent, AlertKind
from headroom.schemas.keys import Role
from headroom.schemas.text.amounts import duration_text, rate_text

ALERT_WITHIN_S = 15.0
FINISH_ERROR_RATIO = 0.5


@dataclass(frozen=True)
class CheckedDemo:
    """Measurements of a demo for its final table, and the checks that failed.

    Attributes:
        rows: name and value of each measurement.
        failed: one sentence per failed check of what the run has shown, times apart.
        late: one sentence per time that was not kept, as it may happen on a busy machine.
    """

    rows: Sequence[tuple[str, str]]
    failed: Sequence[str]
    late: Sequence[str]


@dataclass(frozen=True)
class DemoOutcome:
    """Measurements of one run.

    Attributes:
        alert: first event of the alert that recommends a throttle.
        switch_to_alert_s: time from the new leader in Kafka's metadata to the alert, in seconds.
        finish_s: time from the recommended throttle being in force to the end of the move, in seconds.
        resolve_s: time from the recommended throttle being in force to the alert's resolution, in seconds.
        fired: all firing events.
    """

    alert: AlertEvent
    switch_to_alert_s: float
    finish_s: float
    resolve_s: float
    fired: Sequence[AlertEvent]

    @property
    def promised_s(self) -> float | None:
        """Return the time to the end of the move that the alert predicted, in seconds; None if unknown."""
        return recommendation_of(self.alert).finish.finish_s

    @property
    def healthy_fired(self) -> list[AlertEvent]:
        """Return the firing events that name a partition of the healthy move."""
        topics = {p.move.name.topic for p in PAYMENTS}
        return [event for event in self.fired if topics & {p.topic for p in evidence_of(event).partitions}]

    @property
    def alerts(self) -> int:
        """Return the number of alerts that fired; repeated announcements count once."""
        return len({event.alert_id for event in self.fired})

    @property
    def without_ticks(self) -> list[AlertEvent]:
        """Return the firing events that say that ticks were not evaluated in time."""
        return [event for event in self.fired if event.kind == AlertKind.NO_DATA.value]


def check_demo(outcome: DemoOutcome, overloaded: bool = False) -> CheckedDemo:
    """Return what the run has shown, and which checks it failed; see ``failures``."""
    return CheckedDemo(summary_rows(outcome), failures(outcome, overloaded), missed_times(outcome))


def alert_failures(alert: AlertEvent) -> list[str]:
    """Return one sentence per deviation of the alert from the expected broker, cause and recommendation."""
    evidence, recommended = evidence_of(alert), recommendation_of(alert)
    switched = [(p.topic, p.partition) for p in evidence.partitions if p.switch_tick_ms is not None]
    expected = (AlertKind.THROTTLE_BELOW_LEADER_WRITE.value, NEW_LEADER, Role.LEADER.value)
    sentences = []
    if (alert.kind, evidence.broker_id, evidence.role) != expected:
        sentences.append(f"the alert is {alert.kind} about {alert.subject}, not about broker {NEW_LEADER} as leader")
    if evidence.switch_tick_ms is None or SWITCHING not in switched:
        sentences.append(f"the alert does not name the leader switch of {SWITCHING[0]}-{SWITCHING[1]}")
    if not recommended.commands or recommended.throttle_bytes_per_s is None:
        sentences.append(f"the alert recommends no throttle ({recommended.reason})")
    return sentences


def failures(outcome: DemoOutcome, overloaded: bool = False) -> list[str]:
    """Return one sentence per failed check of what the run has shown, times apart.

    Args:
        outcome: measurements of the run.
        overloaded: whether far more programs wanted this machine than it has cores. Then ticks may be late.
    """
    sentences = alert_failures(outcome.alert)
    # A busy machine is no fault of the verdicts: late ticks then prove that Headroom says so.
    late = {event.alert_id for event in outcome.without_ticks} if overloaded else set()
    if outcome.alerts - len(late) != 1:
        subjects = ", ".join(f"{event.kind} of {event.subject}" for event in outcome.fired)
        sentences.append(f"{outcome.alerts} alerts fired instead of one: {subjects}")
    if outcome.healthy_fired:
        sentences.append("the healthy move raised an alert")
    if _error_ratio(outcome) is None:
        sentences.append("the alert did not predict the finish of the move")
    return sentences


def missed_times(outcome: DemoOutcome) -> list[str]:
    """Return one sentence per time that was not kept, as it may happen on a busy machine."""
    error, sentences = _error_ratio(outcome), []
    if error is not None and error > FINISH_ERROR_RATIO:
        sentences.append(
            f"the move took {duration_text(outcome.finish_s)}, promised were {duration_text(outcome.promised_s)}"
        )
    if outcome.without_ticks:
        sentences.append("ticks were evaluated late, and an alert said so")
    return sentences


def summary_rows(outcome: DemoOutcome) -> list[tuple[str, str]]:
    """Return the rows of the final table: name and value of each measurement."""
    evidence, recommended = evidence_of(outcome.alert), recommendation_of(outcome.alert)
    error = _error_ratio(outcome)
    return [
        ("Leader switch in Kafka to alert printed", f"{outcome.switch_to_alert_s:.1f} s"),
        ("Throttle before", rate_text(THROTTLE_BYTES_PER_S)),
        (f"Required by broker {NEW_LEADER} after the switch", rate_text(evidence.required_bytes_per_s)),
        ("Throttle recommended and applied", rate_text(recommended.throttle_bytes_per_s)),
        ("Finish promised by the alert", finish_text(vars(recommended.finish)) or "unknown"),
        (
            "Real finish",
            duration_text(outcome.finish_s) + ("" if error is None else f" ({error:.0%} off the middle)"),
        ),
        ("Alert resolved after the throttle was raised", duration_text(outcome.resolve_s)),
        ("Alerts that fired", str(outcome.alerts)),
        ("Alerts raised by the healthy move", str(len(outcome.healthy_fired))),
    ]


def _error_ratio(outcome: DemoOutcome) -> float | None:
    promised_s = outcome.promised_s
    return abs(outcome.finish_s - promised_s) / promised_s if promised_s else None
