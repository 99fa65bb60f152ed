"""Offsets of a consumer group on the target: by offset syncs, by its next record, or the same ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from headroom.operations.migration.clusters import MigrationClusters, targets_of
from headroom.operations.migration.exact_search import ExactSearch
from headroom.operations.migration.kept_syncs import KeptSyncs
from headroom.operations.migration.syncs import PartitionSyncs, read_reader_syncs
from headroom.operations.progress import OnText, ProgressReceiver
from headroom.planning.migration.mirrors.reader_offsets import ReaderOffset, by_link, by_place, by_syncs
from headroom.planning.migration.plan.planned import TopicOnBoth
from headroom.planning.migration.readings import LOG_APPEND_TIME, LogOffsets
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MigrationMethod


@dataclass(frozen=True)
class TranslationRequest:
    """What is translated.

    Attributes:
        group: consumer group.
        topics: names on the origin; empty: all of which the group has committed offsets.
        method: how the target got its records; mirrored or linked.
        exact: whether the group's next record is looked for.
    """

    group: str
    topics: Sequence[str] = ()
    method: MigrationMethod = MigrationMethod.MIRRORED
    exact: bool = False


@dataclass(frozen=True)
class TranslationResult:
    """Offsets of a group on the target.

    Attributes:
        request: what was asked for.
        origin: name of the origin.
        target: name of the target.
        offsets: one per partition of which the group has a committed offset on the origin.
        uncommitted: partitions of the topics of which it has none, by their names on the origin.
        is_active: whether the group has members on the target now; None if unknown.
        is_read: whether it has members on the origin now, which read on; None if unknown.
    """

    request: TranslationRequest
    origin: str
    target: str
    offsets: tuple[ReaderOffset, ...]
    uncommitted: tuple[TopicPartition, ...]
    is_active: bool | None
    is_read: bool | None

    def unknown(self) -> list[ReaderOffset]:
        """Return the partitions without an offset on the target."""
        return [offset for offset in self.offsets if offset.target_offset is None]

    def known(self) -> dict[TopicPartition, int]:
        """Return the offsets by the partitions' names on the target."""
        return {one.target_name: one.target_offset for one in self.offsets if one.target_offset is not None}


def translate_offsets(
    clusters: MigrationClusters,
    request: TranslationRequest,
    progress: ProgressReceiver,
    on_note: OnText,
    kept: KeptSyncs | None = None,
) -> TranslationResult:
    """Return where a consumer group continues on the target.

    Args:
        clusters: the two clusters.
        request: what is translated.
        progress: gets the steps.
        on_note: gets a sentence about what makes the result rougher than asked for.
        kept: offset syncs that were kept; None: only those in their topic are used.

    Raises:
        HeadroomError: a topic or the group is not on the origin, the group has committed nothing, a topic is not on the
            target or has another number of partitions there, the syncs could not be read to their end, or a cluster did
            not answer.
    """
    origin, target = clusters.origin, clusters.target
    groups = origin.groups()
    if request.group not in groups:
        remedy = "Check its spelling, and that this user has DESCRIBE on it."
        raise HeadroomError(f"group {request.group}", f"is not on the {origin.subject}", remedy)
    with progress.step(f"Reading the offsets of group {request.group}"):
        committed = _committed_offsets(clusters, request)
    topics = request.topics or sorted({name.topic for name in committed})
    on_both = clusters.mirrored_topics(topics, request.method is MigrationMethod.MIRRORED, on_note)
    readers = [
        ReaderOffset(name, TopicPartition(str(on_both[name.topic].target_name), name.partition), offset)
        for name, offset in sorted(committed.items())
    ]
    is_link = request.method is MigrationMethod.LINKED
    # Before the logs: a sync must not seem to be beyond the target's end because the mirror went on meanwhile.
    wanted = {own.name: own.committed for own in readers}
    syncs = (
        {}
        if is_link
        else _syncs(request, progress, on_note, lambda: read_reader_syncs(clusters, on_both, wanted, kept, on_note))
    )
    # The target before the origin: a link must not seem to be ahead because it went on meanwhile.
    target_logs = target.log_offsets(targets_of(on_both.values()))
    logs = origin.log_offsets({topic: both.origin for topic, both in on_both.items()})
    if is_link:
        offsets = [by_link(own, logs[own.name], target_logs[own.target_name]) for own in readers]
    else:
        offsets = [
            by_syncs(own, logs[own.name], target_logs[own.target_name], syncs.get(own.name, ())) for own in readers
        ]
    if request.exact and not is_link:
        offsets = _exact(clusters, on_both, offsets, syncs, (logs, target_logs), progress, on_note)
    clusters.require_same_topics(on_both.values())
    now = target.committed([request.group], [own.target_name for own in offsets])[request.group]
    return TranslationResult(
        request,
        origin.name,
        target.name,
        tuple(replace(own, now=now.get(own.target_name)) for own in offsets),
        tuple(sorted(logs.keys() - committed.keys())),
        target.groups().get(request.group, False),
        groups[request.group],
    )


def _committed_offsets(clusters: MigrationClusters, request: TranslationRequest) -> dict[TopicPartition, int]:
    """Return the group's committed offsets on the origin, of partitions that are there."""
    topics = clusters.origin_topics.topics
    offsets = clusters.origin.committed([request.group])[request.group]
    wanted = set(request.topics or topics)
    # A topic may have been recreated with fewer partitions.
    committed = {
        name: offset
        for name, offset in offsets.items()
        if name.topic in wanted and name.topic in topics and name.partition in topics[name.topic].leaders
    }
    if not committed and wanted <= topics.keys():
        of = f" of {', '.join(request.topics)}" if request.topics else ""
        remedy = "Its consumers begin where auto.offset.reset says; there is nothing to translate."
        raise HeadroomError(f"group {request.group}", f"has no committed offset{of} on the origin", remedy)
    return committed


def _exact(
    clusters: MigrationClusters,
    on_both: Mapping[str, TopicOnBoth],
    rough: Sequence[ReaderOffset],
    syncs: PartitionSyncs,
    logs_of: tuple[Mapping[TopicPartition, LogOffsets], Mapping[TopicPartition, LogOffsets]],
    progress: ProgressReceiver,
    on_note: OnText,
) -> list[ReaderOffset]:
    """Return where the group continues by its next record, or by the sync where that is not found."""
    logs, target_logs = logs_of
    for both in on_both.values():
        if both.target_rules is not None and both.target_rules.timestamp_type == LOG_APPEND_TIME:
            on_note(
                f"{both.target_name} has message.timestamp.type LogAppendTime on the target: its records have other "
                "timestamps than those of the origin, and are not found by them."
            )
    offsets = []
    with ExitStack() as stack, progress.step("Looking for the next record of each partition"):
        readers_of = [stack.enter_context(cluster.reader()) for cluster in (clusters.origin, clusters.target)]
        for own in rough:
            search = ExactSearch(clusters.target, on_both[own.name.topic], own, syncs.get(own.name, ()), progress)
            place = search.place(readers_of[0], readers_of[1], logs[own.name], target_logs[own.target_name])
            offsets.append(by_place(own, logs[own.name], target_logs[own.target_name], place))
    return offsets


def _syncs(
    request: TranslationRequest, progress: ProgressReceiver, on_note: OnText, read: Callable[[], PartitionSyncs]
) -> PartitionSyncs:
    """Return the offset syncs of partitions; with ``exact`` none, and a note, if they cannot be used."""
    try:
        with progress.step("Reading MirrorMaker's offset syncs"):
            return read()
    except HeadroomError as error:
        if not request.exact:
            raise
        on_note(f"Offset syncs are not used: {error}")
        return {}
