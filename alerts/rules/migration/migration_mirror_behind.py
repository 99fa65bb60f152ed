"""Rule ``migration_mirror_behind``: the mirror gets to E much later than the origin, or not at all."""

from __future__ import annotations

from headroom.alerts.evidence.migration_evidence import MigrationEvidence
from headroom.alerts.finding import Finding
from headroom.alerts.recommendations.migrations import speed_up_mirror
from headroom.alerts.rules.migration.migration_rule import UNREAD, MigrationRule, Partitions, name_of, subject_of
from headroom.alerts.rules.rule import RuleInputs
from headroom.alerts.text.migration import offsets_text, share_text
from headroom.planning.migration.progress.progress import MigrationProgress
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.migrations import METHODS_WITH_COPIES, MigrationStatus
from headroom.schemas.text.amounts import clock_text

# A mirror copies in batches, and its rate is measured over seconds.
_LEAST_LATE_S = 60.0
_COPYING = (MigrationStatus.PLANNED, MigrationStatus.MIGRATING, MigrationStatus.MIGRATED)


class MigrationMirrorBehind(MigrationRule):
    """A mirror or a link has at its rate all below E much later than the origin, after it is deleted, or never."""

    kind = AlertKind.MIGRATION_MIRROR_BEHIND

    def finding(self, migration: str, partitions: Partitions, tick: RuleInputs) -> Finding | None:
        """Return the finding; None if the mirror keeps up. Critical if retention deletes what it has yet to copy."""
        behind = sorted((p for p in partitions if _is_behind(p, tick.settings.slip_ratio)), key=_last_first)
        if not behind:
            return None
        overtaken = [partition for partition in behind if _is_overtaken(partition)]
        worst = (overtaken or behind)[0]
        return Finding(
            kind=self.kind,
            subject=subject_of(migration),
            severity=Severity.CRITICAL if overtaken else Severity.WARNING,
            summary=(
                f"Migration {migration}: the mirror is behind in {share_text(behind, partitions)}; "
                f"{name_of(worst)}: {_when(worst, tick.tick_ms)}"
            ),
            evidence=MigrationEvidence.of(
                migration,
                partitions,
                [*overtaken, *(p for p in behind if p not in overtaken)],
                offsets=sum(partition.mirror_lag_offsets or 0 for partition in behind),
                at_ms=None if worst.mirror_eta_s is None else tick.tick_ms + round(1000 * worst.mirror_eta_s),
            ),
            recommendation=speed_up_mirror(is_overtaken=bool(overtaken)),
            # A rate is unknown after a start, and then looks as if the mirror never got there.
            hold_s=tick.settings.stalled_s,
            affected=len(behind),
        )

    def is_unclear(self, partition: MigrationProgress, tick: RuleInputs) -> bool:
        """Return whether the mirror's place is unknown, or it is only just in time."""
        if not _is_copying(partition):
            return False
        if partition.verdict in UNREAD or partition.mirror_lag_offsets is None:
            return True
        return _is_behind(partition, tick.settings.slip_ratio / tick.settings.exit_ratio)


def _is_copying(partition: MigrationProgress) -> bool:
    return partition.method in METHODS_WITH_COPIES and partition.status in _COPYING and partition.end_offset is not None


def _is_behind(partition: MigrationProgress, slip_ratio: float) -> bool:
    """Return whether the mirror is behind; false if unknown.

    Args:
        partition: partition.
        slip_ratio: delay after the origin, as a ratio of the time that the origin takes, from which on it is behind.
    """
    if not _is_copying(partition) or partition.verdict in UNREAD or not partition.mirror_lag_offsets:
        return False
    if partition.mirror_eta_s is None:
        # It has something to copy, and does not.
        return True
    if _is_overtaken(partition):
        return True
    if partition.switch_eta_s is None:
        return False
    late_s = partition.mirror_eta_s - partition.switch_eta_s
    return late_s > max(_LEAST_LATE_S, slip_ratio * partition.switch_eta_s)


def _is_overtaken(partition: MigrationProgress) -> bool:
    """Return whether retention deletes records before the mirror has them."""
    kept_s, eta_s = partition.kept_s, partition.mirror_eta_s
    return kept_s is not None and eta_s is not None and eta_s > kept_s


def _last_first(partition: MigrationProgress) -> tuple[float, int, str, int]:
    eta_s = float("inf") if partition.mirror_eta_s is None else partition.mirror_eta_s
    return -eta_s, -(partition.mirror_lag_offsets or 0), partition.topic, partition.partition


def _when(partition: MigrationProgress, tick_ms: int) -> str:
    lag = f"it has {offsets_text(partition.mirror_lag_offsets)} to copy"
    if partition.mirror_eta_s is None:
        return f"{lag}, and copies none"
    there = f"{lag}, and is at E at {_clock(partition.mirror_eta_s, tick_ms)}"
    if _is_overtaken(partition):
        return f"{there}; retention may delete them from {_clock(partition.kept_s or 0.0, tick_ms)} on"
    return f"{there}, the origin at {_clock(partition.switch_eta_s or 0.0, tick_ms)}"


def _clock(in_s: float, tick_ms: int) -> str:
    return clock_text(tick_ms + round(1000 * in_s), tick_ms)
