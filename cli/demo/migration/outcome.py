"""Measurements of the migration's demo, and the checks of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headroom.cli.demo.migration.answers import RecordCounts
from headroom.cli.demo.migration.scenario import ORIGIN, PREPARE_S, TARGET
from headroom.cli.demo.outcome import CheckedDemo
from headroom.schemas.alerts import AlertEvent, AlertKind, Severity
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MigrationStatus
from headroom.schemas.text.amounts import UNKNOWN, clock_text, join_names, percent_text

# From these on a time was not kept: of the time that the switch was ahead, and of a producer.
FORECAST_ERROR_RATIO = 0.1
PAUSE_S = 1.0
_THERE = (MigrationStatus.MIGRATED.value, MigrationStatus.AGED.value)
# What these say is about times alone.
_OF_TIMES = (AlertKind.NO_DATA.value, AlertKind.MIGRATION_SWITCH_OFF_PLAN.value)


@dataclass(frozen=True)
class SwitchedPartition:
    """How one partition has switched.

    Attributes:
        name: its name.
        status: status that was agreed in the end.
        end_offset: agreed end offset on the origin.
        predicted_s: when it was to be reached as agreed, epoch seconds; None if unknown.
        switched_s: when the first record from it on was acknowledged, epoch seconds; None if none was.
        pause_s: longest time without an answer around the switch, seconds; None if unknown.
        on_target: records in the target's log.
    """

    name: TopicPartition
    status: str
    end_offset: int
    predicted_s: float | None
    switched_s: float | None
    pause_s: float | None
    on_target: int

    @property
    def late_s(self) -> float | None:
        """Seconds from the predicted to the real switch, negative if it was early; None if one is unknown."""
        if self.predicted_s is None or self.switched_s is None:
            return None
        return self.switched_s - self.predicted_s


@dataclass(frozen=True)
class KilledBroker:
    """The leader of a partition that was killed on the origin.

    Attributes:
        name: name of the partition.
        broker: its leader.
        new_leader: the next one.
        killed_s: when it was killed, epoch seconds.
        led_again_s: time from that to the next leader in the metadata, seconds.
        pause_s: longest time without an answer to a record of the partition around it, seconds; None if unknown.
    """

    name: TopicPartition
    broker: int
    new_leader: int
    killed_s: float
    led_again_s: float
    pause_s: float | None


@dataclass(frozen=True)
class MigrationOutcome:
    """Measurements of one run.

    Attributes:
        partitions: all partitions of the topic.
        killed: the broker that was killed meanwhile.
        counts: what became of all records.
        fired: all firing events, those of severity info too.
    """

    partitions: Sequence[SwitchedPartition]
    killed: KilledBroker
    counts: RecordCounts
    fired: Sequence[AlertEvent]

    @property
    def forecast_error_s(self) -> float | None:
        """Greatest difference of a predicted and a real switch, seconds; None if one is unknown."""
        errors = [abs(late) for p in self.partitions if (late := p.late_s) is not None]
        return max(errors) if len(errors) == len(self.partitions) else None

    @property
    def pause_s(self) -> float | None:
        """Longest time without an answer around a switch, seconds; None if one is unknown."""
        pauses = [p.pause_s for p in self.partitions if p.pause_s is not None]
        return max(pauses) if len(pauses) == len(self.partitions) else None


def check_migration(outcome: MigrationOutcome, overloaded: bool = False) -> CheckedDemo:
    """Return what the run has shown, and which checks it failed.

    Args:
        outcome: measurements of the run.
        overloaded: whether far more programs wanted this machine than it has cores. Then ticks may be late.
    """
    return CheckedDemo(_rows(outcome), _failures(outcome, overloaded), _missed_times(outcome))


def _failures(outcome: MigrationOutcome, overloaded: bool) -> list[str]:
    counts = outcome.counts
    faults = (
        (counts.lost, "acknowledged records were not read"),
        (counts.doubled, "records were read twice"),
        (counts.out_of_order, "records were read out of order"),
        (counts.misplaced, "records were read at another offset than the acknowledged one"),
        (counts.failed, "records were not acknowledged"),
    )
    sentences = [f"{count:,} {what}" for count, what in faults if count]
    if counts.acknowledged == 0:
        sentences.append("no record was acknowledged")
    behind = [f"{p.name} is {p.status}" for p in outcome.partitions if p.status not in _THERE]
    if behind:
        sentences.append(f"not all partitions are on the target: {join_names(behind)}")
    in_logs = sum(p.end_offset + p.on_target for p in outcome.partitions)
    # A record that failed may be in a log.
    if not counts.failed and in_logs != counts.acknowledged:
        sentences.append(f"{counts.acknowledged:,} records were acknowledged, and the two logs have {in_logs:,}")
    passed_over = _OF_TIMES if overloaded else _OF_TIMES[1:]
    wrong = _alerts(outcome, informing=False, but=passed_over)
    if wrong:
        sentences.append(f"alerts fired: {join_names(wrong)}")
    return sentences


def _missed_times(outcome: MigrationOutcome) -> list[str]:
    sentences = []
    error_s, pause_s = outcome.forecast_error_s, outcome.pause_s
    if error_s is None or error_s > FORECAST_ERROR_RATIO * PREPARE_S:
        sentences.append(f"a switch was {_seconds_text(error_s)} off its predicted time")
    if pause_s is None or pause_s > PAUSE_S:
        sentences.append(f"the producer paused for {_seconds_text(pause_s)} at a switch")
    if any(p.switched_s is not None and p.switched_s < outcome.killed.killed_s for p in outcome.partitions):
        sentences.append("a partition had switched before the broker was killed")
    fired = {event.kind for event in outcome.fired}
    if AlertKind.NO_DATA.value in fired:
        sentences.append("ticks were evaluated late, and an alert said so")
    if AlertKind.MIGRATION_SWITCH_OFF_PLAN.value in fired:
        sentences.append("a switch was off plan for some time, and an alert said so")
    return sentences


def _alerts(outcome: MigrationOutcome, *, informing: bool, but: Sequence[str] = ()) -> list[str]:
    """Return the kinds and subjects of the alerts that fired; repeated announcements count once."""
    found = {
        event.alert_id: f"{event.kind} of {event.subject}"
        for event in outcome.fired
        if (event.severity == Severity.INFO.value) is informing and event.kind not in but
    }
    return list(found.values())


def _rows(outcome: MigrationOutcome) -> list[tuple[str, str]]:
    counts, killed = outcome.counts, outcome.killed
    there = sum(p.status in _THERE for p in outcome.partitions)
    on_target = sum(p.on_target for p in outcome.partitions)
    error_s = outcome.forecast_error_s
    share = "" if error_s is None else f" ({percent_text(error_s / PREPARE_S)} of the {PREPARE_S:.0f} s ahead)"
    ended = f"broker {killed.broker} killed, broker {killed.new_leader} leads {killed.name}"
    informing = _alerts(outcome, informing=True)
    return [
        ("Partitions on the target", f"{there} of {len(outcome.partitions)}"),
        ("Acknowledged records", f"{counts.acknowledged:,}, of these {on_target:,} on {TARGET}"),
        ("Read records", f"{counts.read:,}"),
        ("Lost records", f"{counts.lost:,}"),
        ("Doubled records", f"{counts.doubled:,}"),
        ("Records out of order", f"{counts.out_of_order:,}"),
        *((f"Switch of {p.name} at E {p.end_offset:,}", _switch_text(p)) for p in outcome.partitions),
        ("Largest error of the forecast", f"{_seconds_text(error_s)}{share}"),
        ("Longest pause of the producer at a switch", _milliseconds_text(outcome.pause_s)),
        (f"Leader switch on {ORIGIN} before", f"{ended} after {killed.led_again_s:.1f} s"),
        ("Longest pause of the producer meanwhile", f"{_milliseconds_text(killed.pause_s)}, by Kafka's failover"),
        ("Alerts that fired", str(len(_alerts(outcome, informing=False)))),
        ("Alerts for information", join_names(informing) or "none"),
    ]


def _switch_text(partition: SwitchedPartition) -> str:
    late_s = partition.late_s
    if late_s is None:
        return f"predicted {_clock(partition.predicted_s)}, real {_clock(partition.switched_s)}"
    off = f"{abs(late_s):.1f} s {'late' if late_s >= 0 else 'early'}"
    return f"predicted {_clock(partition.predicted_s)}, real {_clock(partition.switched_s)} ({off})"


def _clock(at_s: float | None) -> str:
    return UNKNOWN if at_s is None else clock_text(round(at_s * 1000)).removesuffix(" UTC")


def _seconds_text(seconds: float | None) -> str:
    return "an unknown time" if seconds is None else f"{seconds:.1f} s"


def _milliseconds_text(seconds: float | None) -> str:
    return UNKNOWN if seconds is None else f"{seconds * 1000:,.0f} ms"
