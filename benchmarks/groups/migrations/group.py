"""Group ``migrations``: records of routed clients in migrations under faults, and what a leader switch loses.

Two clusters of three brokers. All that is acknowledged is compared with what a new routed consumer reads.

**Migrations.** 20 topics of 4 partitions with 3 replicas (``min.insync.replicas`` 2) are migrated one after the other
by ``headroom migration run --method routed``. Two producers write 1,000 records of 150 bytes a second each, with
``acks=all``, and a consumer reads; each is a process of its own. In each migration these happen at random times of its
first 40 s:

- a partition of the origin gets another leader;
- a broker of the origin is killed, and one of the target, and started again 0.5 to 6 s later;
- a producer is killed, in each third migration the consumer, and started again under its name;
- the run is killed, and started again.

All kills are SIGKILL. The end offsets are agreed 25 s ahead. The producers continue until 105,000 records are
acknowledged, at least.

A record has a number that rises with each one of the same producer and partition, over restarts too. Each future that
succeeds is noted in a file before the producer waits for more. A record that was acknowledged and not noted when its
producer was killed is unknown (``migration_unknown``): it counts nowhere else.

``migration_lost`` counts acknowledged records that a new consumer does not find, ``migration_doubled`` those that it
finds again, ``migration_out_of_order`` those that it finds behind a later one of the same producer and partition, and
``migration_other_offset`` those that it finds at another client offset. ``migration_skipped`` counts those that the
consumer which ran all the time has not read. It may read records again after it was killed.

**acks.** In ten scenes the only follower of a leader is paused with SIGSTOP, and 1 to 3 s later the leader is killed.
The follower is still in the ISR, so it leads next. Two topics with two replicas have this leader: one is written with
``acks=1``, the other with ``acks=all`` and ``min.insync.replicas`` 2. Both are in a migration that has started and has
not reached its end offsets. Then the killed broker is started again, the producer with ``acks=1`` is killed and started
under its name, and the partition gets another leader without a loss: what was lost has to stay reported.

``acks1_lost_told_error_offsets`` is how far ``lost_offsets`` of ``headroom migration status`` is from the acknowledged
records with ``acks=1`` that a new consumer does not find, added over the scenes; unknown counts as 0.
``acks1_scenes_with_losses`` is the number of scenes that lost some, ``acks_all_lost`` the records lost with
``acks=all``.

``--parts`` chooses some of the parts ``migrations`` and ``acks``. ``benchmarks/parts/migrations`` keeps the record of
each migration and scene. Those recorded with the same code count together and are not repeated, failed ones included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.fixtures.bench_cluster import OnProgress
from benchmarks.fixtures.migrations.processes import READER, WRITER
from benchmarks.fixtures.part_records import PartRecords, print_outcomes
from benchmarks.groups.migrations.clusters import two_clusters
from benchmarks.groups.migrations.migration import PREPARE_S, PlannedMigration
from benchmarks.groups.migrations.record import (
    MIGRATION_HEADER,
    SCENE_HEADER,
    MigrationRecord,
    SceneRecord,
    migration_figures,
    scene_figures,
)
from benchmarks.groups.migrations.scene import PREPARE_S as SCENE_PREPARE_S
from benchmarks.groups.migrations.scene import PlannedScene
from benchmarks.options.fields import AT_LEAST_ONE, COUNT, option, parts_option
from benchmarks.results import Figure, parts

_MIGRATIONS = [PlannedMigration(number) for number in range(20)]
_SCENES = [PlannedScene(number) for number in range(10)]


@dataclass(frozen=True)
class MigrationsOptions:
    """Options of the group ``migrations``."""

    parts: tuple[str, ...] = parts_option("migrations", "acks")
    migrations: int = option(len(_MIGRATIONS), AT_LEAST_ONE, "Migrations of this run.")
    first_migration: int = option(0, COUNT, "Number of the first of them, from 0.")
    scenes: int = option(len(_SCENES), AT_LEAST_ONE, "Scenes with acks of this run.")
    first_scene: int = option(0, COUNT, "Number of the first of them, from 0.")


def measure(on_progress: OnProgress, options: MigrationsOptions) -> list[Figure]:
    """Play what is left of the chosen parts, and return the figures over all that was played with this code.

    Raises:
        HeadroomError: a broker could not be started.
    """
    figures: list[Figure] = []
    if "migrations" in options.parts:
        chosen = _MIGRATIONS[options.first_migration :][: options.migrations]
        _play(RECORDS.without_record(chosen), PREPARE_S, MIGRATION_HEADER, on_progress)
        figures += migration_figures([MigrationRecord(**fields) for fields in RECORDS.read_all(_MIGRATIONS)])
    if "acks" in options.parts:
        scenes = _SCENES[options.first_scene :][: options.scenes]
        _play(RECORDS.without_record(scenes), SCENE_PREPARE_S, SCENE_HEADER, on_progress)
        figures += scene_figures([SceneRecord(**fields) for fields in RECORDS.read_all(_SCENES)])
    return figures


def _folder(_: object) -> Path:
    # The clients are processes of their own, whose modules nothing imports.
    return parts("migrations", __name__, READER, WRITER)


RECORDS: PartRecords[PlannedMigration | PlannedScene] = PartRecords(_folder)


def _play(
    left: Sequence[PlannedMigration | PlannedScene], prepare_s: float, header: Sequence[str], on_progress: OnProgress
) -> None:
    """Play what is left, and store each record when it is over; new clusters follow on one that failed.

    Args:
        left: migrations or scenes.
        prepare_s: how far ahead their end offsets are agreed, seconds.
        header: header of their rows.
        on_progress: gets a line about each.
    """
    records: list[Any] = []
    while len(records) < len(left):
        with two_clusters(prepare_s) as clusters:
            for planned in left[len(records) :]:
                on_progress(f"{planned.name} begins")
                record = planned.play(clusters, on_progress)
                RECORDS.write(planned, asdict(record))
                records.append(record)
                on_progress("    " + ", ".join(map(" ".join, zip(header, record.row(), strict=True))))
                for problem in record.problems():
                    on_progress(f"    {problem}")
                if record.failed:
                    # A broker may be down, and a client may still be waiting for it.
                    break
    if records:
        print_outcomes(header, [(one.row(), one.problems()) for one in records])
