"""Group ``mirror``: offsets of groups on a target that a real MirrorMaker 2 writes, and beside a model of its own.

**Groups.** MirrorMaker copies a topic of 4 partitions between two clusters of one broker. Except for short intervals
it has its defaults. 200 records of 1 kB a second are written to each partition. 50 groups stop, half of them before
MirrorMaker is restarted and half of them later: at the log end in a fifth of the partitions, at random places in the
others. While it continues to copy, ``translate_offsets`` returns where they continue, by offset syncs and by their next
records. In the end the records of the mirror from there on are compared with those before the committed offset.

``mirror_skipped`` is the number of records that a group would read on neither cluster. ``mirror_read_twice`` is the
greatest number that it would read again of one partition by offset syncs, and ``mirror_read_twice_exact`` with
``--exact``. ``mirror_checkpoint_read_twice`` is the same of MirrorMaker's own checkpoints, where it has one for the
committed offset; ``mirror_checkpoints_missing`` counts partitions of groups without one. ``mirror_without_offset``
counts those for which the syncs give no offset, and ``mirror_without_offset_exact`` those with ``--exact``.

A sync is due after 100 records (``offset.lag.max``), but MirrorMaker sends at most ten at a time, and leaves out those
that are due meanwhile. So syncs are farther apart where it catches up, the more so the more records a batch has: with
records of 10 bytes, groups read up to 1,229 again, and 6 of 200 partitions were before the first sync.

The same again with MirrorMaker killed instead of stopped, so that it copies the records of its last seconds twice.
``mirror_killed_skipped``, ``mirror_killed_read_twice_exact`` and ``mirror_killed_without_offset_exact`` are these
figures. If MirrorMaker leaves out the sync that shows the restart, ``--exact`` takes the first of two copies, and what
is between them is read again: up to 549 records of 10 bytes. Syncs alone mostly give no offset before the restart,
because it looks like a rewind of the origin.

**Cases.** ``translate_behind_kafka`` counts offsets of random mirrors at which ``translate`` has no answer, or an
earlier one, than a model of Kafka's ``OffsetSyncStore``. ``translate_past_record`` counts those from which a reader
skips a record: in these mirrors it is known where every record is. Mirrors restart, leave gaps, lose the end of
the target's log, and are compacted or recreated.

``--parts`` chooses some of the parts ``stopped``, ``killed`` and ``cases``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from random import Random

from rich.console import Console

from benchmarks.fixtures.bench_cluster import OnProgress
from benchmarks.groups.mirror.continued import Continued, continued
from benchmarks.groups.mirror.mirrored_topic import TOPIC, MirroredTopic, mirrored_topic
from benchmarks.groups.mirror.random_cases import case_figures
from benchmarks.options.fields import AT_LEAST_ONE, option, parts_option
from benchmarks.results import Figure, percentile
from headroom.cli.common.progress import ProgressView
from headroom.operations.migration.clusters import migration_clusters
from headroom.operations.migration.translation import TranslationRequest, translate_offsets
from headroom.planning.migration.mirrors.reader_offsets import ReaderOffset
from headroom.schemas.keys import TopicPartition

_SEED, _PARTITIONS = 7, 4
# Before and after the restart; MirrorMaker is down for some seconds, in which records are written.
_COPIES_S, _DOWN_S = 12.0, 4.0
# Where a group continues, by its name and the partition on the origin.
Places = dict[tuple[str, TopicPartition], int | None]


@dataclass(frozen=True)
class MirrorOptions:
    """Options of the group ``mirror``."""

    parts: tuple[str, ...] = parts_option("stopped", "killed", "cases")
    groups: int = option(50, AT_LEAST_ONE, "Consumer groups.")
    cases: int = option(100_000, AT_LEAST_ONE, "Offsets of random mirrors.")


@dataclass(frozen=True)
class _Compared:
    """What groups read from some places on.

    Attributes:
        read: of each group and partition with a place.
        without: partitions of groups without one.
    """

    read: tuple[Continued, ...]
    without: int

    @property
    def skipped(self) -> int:
        return sum(one.skipped for one in self.read)

    @property
    def read_twice(self) -> list[int]:
        return [one.read_twice for one in self.read] or [0]


@dataclass(frozen=True)
class _Run:
    """What groups read by syncs, by their next records, and by the checkpoints of MirrorMaker."""

    by_syncs: _Compared
    exact: _Compared
    by_checkpoints: _Compared


def measure(on_progress: OnProgress, options: MirrorOptions) -> list[Figure]:
    """Return the figures of the chosen parts.

    Raises:
        HeadroomError: set-up has not fetched MirrorMaker, it ended, or an offset could not be translated.
    """
    measured: dict[str, Callable[[OnProgress], list[Figure]]] = {
        "stopped": partial(_stopped_figures, options.groups),
        "killed": partial(_killed_figures, options.groups),
        "cases": lambda progress: case_figures(options.cases, progress),
    }
    return [figure for name in options.parts for figure in measured[name](on_progress)]


def _stopped_figures(groups: int, on_progress: OnProgress) -> list[Figure]:
    run = _run(groups, False, on_progress)
    count, checkpoints = groups * _PARTITIONS, run.by_checkpoints
    return [
        Figure("mirror_skipped", run.by_syncs.skipped + run.exact.skipped, "records", 2 * count),
        Figure("mirror_read_twice", max(run.by_syncs.read_twice), "records", count),
        Figure("mirror_read_twice_median", percentile(run.by_syncs.read_twice, 0.5), "records", count),
        Figure("mirror_read_twice_exact", max(run.exact.read_twice), "records", count),
        Figure("mirror_without_offset", run.by_syncs.without, "partitions", count),
        Figure("mirror_without_offset_exact", run.exact.without, "partitions", count),
        Figure("mirror_checkpoint_read_twice", max(checkpoints.read_twice), "records", len(checkpoints.read)),
        Figure(
            "mirror_checkpoint_read_twice_median",
            percentile(checkpoints.read_twice, 0.5),
            "records",
            len(checkpoints.read),
        ),
        Figure("mirror_checkpoints_missing", checkpoints.without, "partitions", count),
    ]


def _killed_figures(groups: int, on_progress: OnProgress) -> list[Figure]:
    run = _run(groups, True, on_progress)
    count = groups * _PARTITIONS
    return [
        Figure("mirror_killed_skipped", run.by_syncs.skipped + run.exact.skipped, "records", 2 * count),
        Figure("mirror_killed_read_twice_exact", max(run.exact.read_twice), "records", count),
        Figure("mirror_killed_without_offset_exact", run.exact.without, "partitions", count),
    ]


def _run(groups: int, killed: bool, on_progress: OnProgress) -> _Run:
    chance = Random(_SEED)
    with mirrored_topic(_PARTITIONS) as topic:
        topic.await_mirrored(1)
        on_progress("MirrorMaker copies")
        time.sleep(_COPIES_S)
        topic.stop_groups(groups // 2, chance)
        if killed:
            topic.maker.kill()
        else:
            topic.maker.stop()
        on_progress(f"MirrorMaker was {'killed' if killed else 'stopped'}")
        time.sleep(_DOWN_S)
        before = max(topic.mirror_ends())
        topic.maker.start()
        topic.await_mirrored(before + 1)
        on_progress("MirrorMaker copies on")
        time.sleep(_COPIES_S)
        topic.stop_groups(groups - groups // 2, chance)
        time.sleep(_COPIES_S)
        by_syncs, exact = (_places(topic, with_records, on_progress) for with_records in (False, True))
        written = topic.writer.stop()
        topic.await_mirrored(written)
        time.sleep(_COPIES_S)
        checkpoints = topic.checkpoints()
        by_checkpoints: Places = {}
        for group, offsets in topic.committed.items():
            for name, committed in offsets.items():
                origin, target = checkpoints.get((group, name), (None, None))
                by_checkpoints[group, name] = target if origin == committed else None
        mirror = topic.mirror()
        copies = ", ".join(f"{len(own):,}" for own in mirror)
        on_progress(f"{written:,} records of each partition were written, and there are {copies} copies")
        run = _Run(*(_compared(topic, places, written, mirror) for places in (by_syncs, exact, by_checkpoints)))
    for by, one in (("syncs", run.by_syncs), ("records", run.exact), ("checkpoints", run.by_checkpoints)):
        on_progress(
            f"by {by}: {one.skipped} skipped, at most {max(one.read_twice)} read twice, {one.without} without an offset"
        )
    return run


def _places(topic: MirroredTopic, exact: bool, on_progress: OnProgress) -> Places:
    places: Places = {}
    with migration_clusters(topic.settings) as clusters:
        for group in topic.committed:
            request = TranslationRequest(group, (TOPIC,), exact=exact)
            result = translate_offsets(clusters, request, ProgressView(Console(quiet=True)), on_progress)
            places.update({(group, one.name): one.target_offset for one in result.offsets})
            _report_rough(group, exact, result.offsets, on_progress)
    return places


def _report_rough(group: str, exact: bool, offsets: Iterable[ReaderOffset], on_progress: OnProgress) -> None:
    for one in offsets:
        if exact and one.reason:
            on_progress(f"{group} at {one.name}, {one.committed:,}: {one.reason}")


def _compared(topic: MirroredTopic, places: Places, written: int, mirror: list[list[int]]) -> _Compared:
    read, without = [], 0
    for group, offsets in topic.committed.items():
        for name, committed in offsets.items():
            place = places.get((group, name))
            if place is None:
                without += 1
            else:
                read.append(continued(committed, written, mirror[name.partition], place))
    return _Compared(tuple(read), without)
