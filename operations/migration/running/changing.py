"""Changes of a migration that its operator makes by name: a shield of the origin, and the withdrawal of partitions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from headroom.cluster.migration.migration_cluster import MigrationCluster
from headroom.operations.migration.running.agreements import (
    OwnAgreements,
    agreement_reader,
    journalled_agreements,
    own_agreements,
    require_partitions,
)
from headroom.operations.progress import OnText
from headroom.planning.migration.agreement import is_withdrawable
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import PartitionAgreement


@dataclass(frozen=True)
class MigrationChange:
    """A change of some partitions of a migration.

    Attributes:
        migration: its name.
        before: all its partitions, as they were agreed about.
        after: those that change; None if their record is removed.
        refused: why others do not change, by partition.
        executed: whether the change was made.
    """

    migration: str
    before: OwnAgreements
    after: Mapping[TopicPartition, PartitionAgreement | None]
    refused: Mapping[TopicPartition, str]
    executed: bool = False

    def error(self) -> HeadroomError | None:
        """Return the error about what was refused; None if nothing was."""
        if not self.refused:
            return None
        name, why = next(iter(self.refused.items()))
        more = f" (and {len(self.refused) - 1} more partitions)" if len(self.refused) > 1 else ""
        remedy = "Let it run to its end: headroom migration run. Client offsets never jump back."
        return HeadroomError(f"{name}{more}", why, remedy)


def require_unshielded(settings: Settings, topics: Collection[str]) -> list[PartitionAgreement]:
    """Check that the origin of some topics may be called, and return what is agreed about them on the target.

    Args:
        settings: all settings.
        topics: names on the origin; empty: all of which something is agreed.

    Raises:
        HeadroomError: one is shielded, or the target did not answer.
    """
    with MigrationCluster(settings.cluster, settings.cluster.name) as target:
        names = target.topics().names
    with agreement_reader(settings, names) as reader:
        agreed = () if reader is None else reader.agreements.values()
        own = [one for one in agreed if not topics or one.topic in topics]
    for one in own:
        if one.shielded:
            remedy = f"Allow calls again: headroom migration shield --off --name {one.migration} --execute."
            raise HeadroomError(f"topic {one.topic}", "is shielded: its origin is not called", remedy)
    return own


def shield_migration(
    settings: Settings, migration: str, shielded: bool, execute: bool, on_note: OnText
) -> MigrationChange:
    """Set or clear the shield of all partitions of a migration. The origin is not called for that.

    Args:
        settings: all settings.
        migration: name of the migration.
        shielded: whether nothing calls the origin from now on.
        execute: whether it is done.
        on_note: gets a sentence if the change is not in the journal.

    Raises:
        HeadroomError: the migration has no partitions, or the target did not answer.
    """

    def change(own: OwnAgreements) -> MigrationChange:
        after = {name: replace(one, shielded=shielded) for name, one in own.items() if one.shielded != shielded}
        return MigrationChange(migration, own, after, {})

    return _change(settings, migration, change, "migration shield", execute, on_note)


def cancel_migration(settings: Settings, migration: str, execute: bool, on_note: OnText) -> MigrationChange:
    """Withdraw the planned partitions of a migration; those whose target is in use stay.

    Args:
        settings: all settings.
        migration: name of the migration.
        execute: whether it is done.
        on_note: gets a sentence if the change is not in the journal.

    Raises:
        HeadroomError: the migration has no partitions, or the target did not answer.
    """

    def change(own: OwnAgreements) -> MigrationChange:
        planned = {name: None for name, one in own.items() if is_withdrawable(one.status, one.reopened_end)}
        refused = {
            name: f"is {one.status}{'' if one.reopened_end is None else ' again'}: clients may have passed its end "
            "offset, and their offsets count on from there"
            for name, one in own.items()
            if name not in planned
        }
        return MigrationChange(migration, own, planned, refused)

    return _change(settings, migration, change, "migration cancel", execute, on_note)


def _change(
    settings: Settings,
    migration: str,
    change: Callable[[OwnAgreements], MigrationChange],
    command: str,
    execute: bool,
    on_note: OnText,
) -> MigrationChange:
    with MigrationCluster(settings.cluster, settings.cluster.name) as target:
        topics = target.topics().names
    with agreement_reader(settings, topics) as reader:
        own = {} if reader is None else own_agreements(reader, migration)
    require_partitions(own, migration)
    if not execute or not change(own).after:
        return change(own)
    with journalled_agreements(settings, migration, command, on_note) as agreements:
        # Read again: a run that was under way until now is fenced.
        changed = change(agreements.own())
        kept = [one for one in changed.after.values() if one is not None]
        agreements.write(kept, [changed.before[name] for name, one in changed.after.items() if one is None])
    return replace(changed, executed=True)
