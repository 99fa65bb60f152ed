"""Deletion of the origin's topics, once all is aged and every group has passed the end offset."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from headroom.operations.journal.journalled_change import make_journalled_change
from headroom.operations.migration.clusters import MigrationClusters
from headroom.operations.migration.running.clusters import RunningClusters
from headroom.operations.migration.running.preparation import COMMAND, drop_steps, require_all_agreed
from headroom.operations.migration.running.status import EvaluatedPartition
from headroom.operations.migration.verification import verify_moved
from headroom.operations.progress import OnText, ProgressReceiver
from headroom.planning.migration.agreement import resumed_at, split_of
from headroom.planning.migration.mirrors.comparison import MirrorCounts
from headroom.planning.migration.mirrors.moved import ReadRecords, find_moved
from headroom.planning.migration.mirrors.names import target_topic
from headroom.planning.migration.mirrors.record_digest import RecordDigest
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MigrationMethod, MigrationStatus, PartitionAgreement

Agreements = Mapping[TopicPartition, PartitionAgreement]


class ComparisonStoppedError(HeadroomError):
    """The run was ended while records were compared."""


def droppable(
    running: RunningClusters,
    settings: Settings,
    own: Agreements,
    read_status: Callable[[Collection[str]], Iterable[EvaluatedPartition]],
    progress: ProgressReceiver,
    stop: threading.Event,
    on_note: OnText,
) -> dict[str, int]:
    """Return the origin's topics that may be deleted, with the number of their partitions; those that are gone are not.

    Args:
        running: the two clusters.
        settings: all settings.
        own: partitions of the migration.
        read_status: reads and evaluates the migration's partitions of some topics now.
        progress: gets the steps.
        stop: ends it when set.
        on_note: gets a sentence if less is compared.

    Raises:
        HeadroomError: a partition is not aged or is shielded, a topic is another one, a group has not passed an end
            offset, the origin is needed for something else or that is unknown, the target does not have all from the
            end offsets on, or a cluster did not answer.
        ComparisonStoppedError: it was stopped while records were compared.
    """
    if all(one.origin_dropped for one in own.values()):
        return {}
    for one in own.values():
        if one.status != MigrationStatus.AGED or one.shielded:
            rule = "is shielded" if one.shielded else f"is {one.status}, and not aged"
            raise HeadroomError(str(one.name), f"{rule}: its topic on the origin is not deleted", "Run until aged.")
    clusters = running.both()
    on_origin = clusters.origin_topics
    ids = {one.topic: (one.origin_cluster_id, one.origin_topic_id) for one in own.values()}
    there = {topic: on_origin.topics[topic] for topic in ids if topic in on_origin.topics}
    for topic, described in there.items():
        cluster_id, topic_id = ids[topic]
        if on_origin.cluster_id != cluster_id or topic_id is None or described.topic_id != topic_id:
            rule = "is not certainly the one that was agreed about, by its id and that of its cluster"
            raise HeadroomError(f"topic {topic} on {running.origin.subject}", rule, "Delete it by hand, if it is.")
    require_all_agreed(own, there)
    still_there = {name: one for name, one in own.items() if name.topic in there}
    _require_passed(running, settings, still_there)
    if still_there:
        evaluated = tuple(read_status(sorted(there)))
        _require_removable(still_there, evaluated)
        for topic in _topics_beyond(evaluated):
            own_there = {name.partition: one for name, one in still_there.items() if name.topic == topic}
            _require_moved(clusters, topic, own_there, progress, stop, on_note)
    return {topic: len(described.leaders) for topic, described in there.items()}


def _require_removable(own: Agreements, evaluated: Iterable[EvaluatedPartition]) -> None:
    """Check that the status of every partition is that the origin is not needed any more.

    Retention has passed the end offset, but a client may write there still, or have written what is nowhere else.
    """
    progress = {one.reading.agreement.name: one.progress for one in evaluated}
    for name in own:
        found = progress.get(name)
        if found is None or found.removable is not True:
            why = "nothing was read of it" if found is None else found.reason.rstrip(".")
            rule = f"is needed, or may be: {why}"
            remedy = "See headroom migration status. If Headroom cannot know it, delete the topic by hand."
            raise HeadroomError(f"{name} on the origin", rule, remedy)


def _topics_beyond(evaluated: Sequence[EvaluatedPartition]) -> list[str]:
    """Return the routed topics that may have records from their end offsets on; others are removable without them."""
    return sorted(
        {
            one.progress.topic
            for one in evaluated
            if one.progress.method == MigrationMethod.ROUTED and one.progress.beyond_offsets != 0
        }
    )


def _require_moved(
    clusters: MigrationClusters,
    topic: str,
    agreed: Mapping[int, PartitionAgreement],
    progress: ProgressReceiver,
    stop: threading.Event,
    on_note: OnText,
) -> None:
    """Check that the target has all that the origin has from the end offsets on.

    The status rests on times: what another client wrote there before a run saw the origin at its end, or with an
    earlier time, looks like what routers have moved.
    """
    rules = clusters.target.rules([topic]).get(topic)
    if rules is not None and rules.compacts():
        on_note(f"What {topic} has on the origin from its end offsets on was not compared: the target is compacted.")
        return

    def find(read_origin: ReadRecords, read_target: ReadRecords, parts: int) -> MirrorCounts:
        return find_moved(read_origin, lambda: _until_set(stop, read_target()), parts)

    missing = verify_moved(clusters, topic, agreed, False, progress, on_note, stop.wait, find).total().missing
    if missing:
        rule = f"has {missing:,} records from its end offsets on that are not on the target"
        remedy = (
            "See headroom migration verify. Write them to the target, or wait until retention has deleted them; "
            "if they are not needed, delete the topic by hand."
        )
        raise HeadroomError(f"topic {topic} on the origin", rule, remedy)


def _until_set(stop: threading.Event, records: Iterable[RecordDigest]) -> Iterator[RecordDigest]:
    for record in records:
        if stop.is_set():
            raise ComparisonStoppedError("comparison with the target", "was ended", "Run the command again.")
        yield record


def _require_passed(running: RunningClusters, settings: Settings, own: Agreements) -> None:
    named, listed = settings.migration.group_names(), running.origin.groups()
    groups = named or sorted(listed)
    # A name with a mistake in it, or a group whose offsets are gone.
    unknown = sorted(set(named).difference(listed, running.target.groups()))
    if unknown:
        rule = "is named in migration.groups, and neither cluster has it: what it has read is unknown"
        raise HeadroomError(f"group {unknown[0]}", rule, "Correct the name, or remove it if the group is not needed.")
    there = running.target.topics().names
    on_target = {name: _on_target(running, one, there) for name, one in own.items()}
    committed = running.origin.committed(groups, list(own))
    moved = running.target.committed(groups, list(on_target.values()))
    for group, offsets in committed.items():
        topics = {name.topic for name in offsets}
        behind = [
            name
            for name, one in own.items()
            if name.topic in topics
            and not _has_passed(one, offsets.get(name), moved.get(group, {}).get(on_target[name]))
        ]
        if behind:
            raise _behind(group, behind, offsets, own)


def _on_target(running: RunningClusters, one: PartitionAgreement, there: Collection[str]) -> TopicPartition:
    name = target_topic(one.topic, one.method == MigrationMethod.MIRRORED, running.origin.name, there)
    return TopicPartition(name or one.topic, one.partition)


def _has_passed(one: PartitionAgreement, on_origin: int | None, on_target: int | None) -> bool:
    """Return whether a group needs nothing of the origin any more.

    A group of the routing library commits the end offset on the origin first, unless that is over. Another one is moved
    by hand, and then commits on the target alone.
    """
    if one.end_offset == 0:
        return True
    place = resumed_at(split_of(one), on_origin, on_target)
    if one.end_offset is not None and place is not None and place >= one.end_offset:
        return True
    return one.method != MigrationMethod.ROUTED and on_target is not None


def _behind(
    group: str, behind: list[TopicPartition], offsets: Mapping[TopicPartition, int], own: Agreements
) -> HeadroomError:
    first = behind[0]
    at, end = offsets.get(first), own[first].end_offset
    more = f", and {len(behind) - 1} more partitions" if len(behind) > 1 else ""
    place = "has committed nothing" if at is None else f"is at offset {at:,}"
    rule = f"{place} of {first}, and has not passed its end offset {'unknown' if end is None else f'{end:,}'}{more}"
    remedy = "Let it read on. If it is not needed any more: migration.groups names those that are."
    return HeadroomError(f"group {group} on the origin", rule, remedy)


def drop(running: RunningClusters, settings: Settings, topics: Mapping[str, int], on_note: OnText) -> None:
    """Delete topics of the origin, one after the other, each with its row in the journal.

    Args:
        running: the two clusters.
        settings: all settings.
        topics: what ``droppable`` returned.
        on_note: gets a sentence if a change is not in the journal.

    Raises:
        HeadroomError: a topic was not deleted.
    """
    for topic, count in topics.items():
        steps = drop_steps({topic: count}, running.origin.subject)
        make_journalled_change(settings, COMMAND, steps, partial(running.origin.delete_topic, topic), on_note)


def without_origin(running: RunningClusters, own: Agreements, deleted: Collection[str]) -> list[PartitionAgreement]:
    """Return the partitions whose topics were deleted on the origin, as they are agreed about from now on.

    A run may have been killed after it had deleted one. Of a topic that this user may not see nothing is known.

    Args:
        running: the two clusters.
        own: partitions of the migration.
        deleted: topics that were deleted just now, which a broker may show for a moment.

    Raises:
        HeadroomError: the origin did not answer.
    """
    watched = [one for one in own.values() if not one.origin_dropped]
    earlier = sorted({one.topic for one in watched}.difference(deleted))
    gone = {*deleted, *(running.origin.absent(earlier) if earlier else ())}
    return [replace(one, origin_dropped=True) for one in watched if one.topic in gone]
