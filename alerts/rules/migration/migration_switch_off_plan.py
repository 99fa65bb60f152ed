"""Rule ``migration_switch_off_plan``: a partition switches early, late or never."""

from __future__ import annotations

from headroom.alerts.evidence.migration_evidence import MigrationEvidence
from headroom.alerts.finding import Finding
from headroom.alerts.recommendations.migrations import put_on_plan
from headroom.alerts.rules.migration.migration_rule import UNREAD, MigrationRule, Partitions, name_of, subject_of
from headroom.alerts.rules.rule import RuleInputs
from headroom.alerts.text.migration import share_text
from headroom.planning.migration.progress.progress import MigrationProgress, MigrationVerdict
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.text.amounts import join_names

# Verdicts of the rule, the worst first, and their severity. No record is lost: what lands from E on is held or moved.
_SEVERITIES = {
    MigrationVerdict.NEVER: Severity.WARNING,
    MigrationVerdict.EARLY: Severity.WARNING,
    MigrationVerdict.LATE: Severity.INFO,
}
_ORDER = tuple(_SEVERITIES)
# Verdicts that are given before these, so that the switch may be off plan as well.
_HIDING = (MigrationVerdict.LOST, MigrationVerdict.OVERTAKEN, MigrationVerdict.DIVERGED)


class MigrationSwitchOffPlan(MigrationRule):
    """The origin reaches E before all routers have agreed, later than was agreed, or never."""

    kind = AlertKind.MIGRATION_SWITCH_OFF_PLAN

    def finding(self, migration: str, partitions: Partitions, tick: RuleInputs) -> Finding | None:
        """Return the finding; None if all partitions switch as planned."""
        worst = sorted((p for p in partitions if p.verdict in _SEVERITIES), key=_worst_first)
        if not worst:
            return None
        counts = {verdict: sum(p.verdict is verdict for p in worst) for verdict in _ORDER}
        kinds = join_names([f"{count} {verdict.value}" for verdict, count in counts.items() if count])
        first = worst[0]
        return Finding(
            kind=self.kind,
            subject=subject_of(migration),
            severity=_SEVERITIES[first.verdict],
            summary=(
                f"Migration {migration}: {share_text(worst, partitions)} switch off plan ({kinds}); "
                f"{name_of(first)}: {first.reason.removesuffix('.')}"
            ),
            evidence=MigrationEvidence.of(
                migration,
                partitions,
                worst,
                at_ms=None if first.switch_eta_s is None else tick.tick_ms + round(1000 * first.switch_eta_s),
            ),
            recommendation=put_on_plan(first.verdict, worst, partitions, tick.recommender),
            hold_s=tick.settings.hold_s,
            affected=len(worst),
        )

    def is_unclear(self, partition: MigrationProgress, tick: RuleInputs) -> bool:
        """Return whether the time of the switch is unknown, or a more severe verdict hides it."""
        if partition.verdict in UNREAD:
            return True
        return partition.verdict in _HIDING and partition.left_offsets != 0


def _worst_first(partition: MigrationProgress) -> tuple[int, int, str, int]:
    left = partition.left_offsets or 0
    return _ORDER.index(partition.verdict), -left, partition.topic, partition.partition
