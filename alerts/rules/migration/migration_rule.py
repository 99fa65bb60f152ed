"""What the rules on migrations share: one finding per migration, and what unknown partitions mean."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from headroom.alerts.finding import Finding
from headroom.alerts.rules.rule import Assessment, Rule, RuleInputs
from headroom.planning.migration.progress.progress import MigrationProgress, MigrationVerdict
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MigrationStatus

# Rates are measured over some seconds, and groups commit every 5 s by default: a rate is believed if it lasts this
# long.
STEADY_S = 10.0
# Statuses in which the target is in use.
IN_USE = (MigrationStatus.MIGRATING, MigrationStatus.MIGRATED, MigrationStatus.AGED)
# Nothing is read of the origin, so the partition raises and resolves no alert.
UNREAD = (MigrationVerdict.SHIELDED, MigrationVerdict.NO_DATA)

Partitions = Sequence[MigrationProgress]


class MigrationRule(Rule):
    """A rule on migrations. The subject of its alert is the migration, and all its partitions give one alert."""

    def evaluate(self, tick: RuleInputs) -> Assessment:
        """Return at most one finding per migration.

        Without a finding its alert keeps firing while any partition is unknown. Without data on migrations all alerts
        keep firing.
        """
        if tick.migrations is None:
            return Assessment(keep_firing=tick.active_of(self.kind))
        assessment = Assessment()
        for migration, partitions in tick.migrations.by_name.items():
            finding = self.finding(migration, partitions, tick)
            if finding is not None:
                assessment.findings.append(finding)
            elif any(self.is_unclear(partition, tick) for partition in partitions):
                assessment.keep_firing.add((self.kind, subject_of(migration)))
        return assessment

    @abstractmethod
    def finding(self, migration: str, partitions: Partitions, tick: RuleInputs) -> Finding | None:
        """Return the finding on a migration; None if the condition holds for no partition.

        Args:
            migration: name of the migration.
            partitions: all its partitions.
            tick: the tick.
        """

    @abstractmethod
    def is_unclear(self, partition: MigrationProgress, tick: RuleInputs) -> bool:
        """Return whether it is unknown if the condition holds for a partition, or if it is about to hold again."""


def subject_of(migration: str) -> str:
    """Return the subject of alerts on a migration."""
    return f"migration {migration}"


def name_of(partition: MigrationProgress) -> str:
    """Return ``topic-partition``."""
    return str(TopicPartition(partition.topic, partition.partition))
