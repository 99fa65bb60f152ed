"""Records of migrations and of scenes with ``acks=1``, for benchmarks/parts and for the terminal, and their figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.results import Figure

MIGRATION_HEADER = ("migration", "records", "lost", "doubled", "out of order", "skipped", "unknown", "seconds", "")
SCENE_HEADER = ("scene", "acks=1 records", "lost", "reported", "acks=all records", "lost", "reported", "")


@dataclass
class MigrationRecord:
    """Record of one migration.

    Attributes:
        number: number of the migration, from 0.
        failed: why it did not come to its end; None if it did.
        acknowledged: records whose acknowledgement was noted.
        lost: acknowledged records that a new reader does not find.
        doubled: how often it finds acknowledged records again.
        out_of_order: acknowledged records that it finds behind a later one of the same producer and partition.
        elsewhere: acknowledged records that it finds at another client offset.
        unknown: records that it finds and whose acknowledgement was not noted.
        unknown_doubled: how often it finds these again.
        refused: records whose future failed.
        skipped: acknowledged records that the group's consumer has not read, in any of its lives.
        read_again: how often it has read a record again.
        played_s: length of the migration, seconds.
        notes: faults, with the seconds from the start of the run.
    """

    number: int
    failed: str | None = None
    acknowledged: int = 0
    lost: int = 0
    doubled: int = 0
    out_of_order: int = 0
    elsewhere: int = 0
    unknown: int = 0
    unknown_doubled: int = 0
    refused: int = 0
    skipped: int = 0
    read_again: int = 0
    played_s: float = 0.0
    notes: list[str] = field(default_factory=list)

    def row(self) -> tuple[str, ...]:
        """Return the row under ``MIGRATION_HEADER``."""
        counts = (self.acknowledged, self.lost, self.doubled, self.out_of_order, self.skipped, self.unknown)
        state = "failed" if self.failed else ""
        return (str(self.number), *(f"{count:,}" for count in counts), f"{self.played_s:.0f}", state)

    def problems(self) -> list[str]:
        """Return a sentence for each problem."""
        return [f"failed: {self.failed}"] if self.failed else []


@dataclass
class SceneRecord:
    """Record of one scene: a leader is killed whose only follower is paused.

    Attributes:
        number: number of the scene, from 0.
        failed: why it did not come to its end; None if it did.
        acknowledged: records that were acknowledged with ``acks=1``.
        lost: those that a new reader does not find.
        reported: lost offsets that ``headroom migration status`` shows; None: it shows that they are unknown.
        acknowledged_all: records that were acknowledged with ``acks=all``.
        lost_all: those that a new reader does not find.
        reported_all: lost offsets that the status shows of them; None as above.
        played_s: length of the scene, seconds.
        notes: what happened.
    """

    number: int
    failed: str | None = None
    acknowledged: int = 0
    lost: int = 0
    reported: int | None = None
    acknowledged_all: int = 0
    lost_all: int = 0
    reported_all: int | None = None
    played_s: float = 0.0
    notes: list[str] = field(default_factory=list)

    @property
    def error_offsets(self) -> int:
        """How far what is reported is from what was lost; unknown counts as nothing reported."""
        return abs((self.reported or 0) - self.lost)

    def row(self) -> tuple[str, ...]:
        """Return the row under ``SCENE_HEADER``."""
        with_one = (self.acknowledged, self.lost, self.reported)
        counts = (*with_one, self.acknowledged_all, self.lost_all, self.reported_all)
        shown = ("unknown" if count is None else f"{count:,}" for count in counts)
        return (str(self.number), *shown, "failed" if self.failed else "")

    def problems(self) -> list[str]:
        """Return a sentence for each problem."""
        return [f"failed: {self.failed}"] if self.failed else []


def migration_figures(records: Sequence[MigrationRecord]) -> list[Figure]:
    """Return the figures of migrations; those that failed count as such, and with what is known of their records."""
    total = sum(one.acknowledged for one in records)
    counts = {
        "lost": sum(one.lost for one in records),
        "doubled": sum(one.doubled for one in records),
        "out_of_order": sum(one.out_of_order for one in records),
        "other_offset": sum(one.elsewhere for one in records),
        "skipped": sum(one.skipped for one in records),
        "unknown": sum(one.unknown for one in records),
        "unknown_doubled": sum(one.unknown_doubled for one in records),
    }
    return [
        Figure("migration_records", total, "records", len(records)),
        *(Figure(f"migration_{name}", count, "records", total) for name, count in counts.items()),
        Figure("migration_failed", sum(one.failed is not None for one in records), "migrations", len(records)),
    ]


def scene_figures(records: Sequence[SceneRecord]) -> list[Figure]:
    """Return the figures of scenes; those that failed count only as such."""
    played = [one for one in records if one.failed is None]
    unknown = sum(one.reported is None for one in played)
    return [
        Figure("acks1_scenes_with_losses", sum(one.lost > 0 for one in played), "scenes", len(played)),
        Figure("acks1_lost", sum(one.lost for one in played), "records", sum(one.acknowledged for one in played)),
        Figure("acks1_lost_told_error_offsets", sum(one.error_offsets for one in played), "offsets", len(played)),
        Figure("acks1_lost_unknown", unknown, "scenes", len(played)),
        Figure(
            "acks_all_lost",
            sum(one.lost_all for one in played),
            "records",
            sum(one.acknowledged_all for one in played),
        ),
        Figure("acks_scenes_failed", len(records) - len(played), "scenes", len(records)),
    ]
