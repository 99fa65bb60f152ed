"""Room for the copies of a plan in the log directories of brokers, batch after batch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.planning.reassignments.room.broker_room import BrokerRoom, CrowdedVolume, RoomCopy
from headroom.planning.reassignments.run.conditions import partitions_text
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.text.amounts import size_text

_SHOWN = 3


@dataclass(frozen=True)
class RoomCheck:
    """Room for the copies of a plan.

    Attributes:
        errors: one per directory, or broker, without room for the copies that the plan sends there.
        unknown_notes: copies of others that were not counted, because their size is unknown, as sentences.
        crowded_notes: directories that may become full, as sentences.
        crowded: bytes that are left on each volume, by its paths, during the first batch that may overfill a directory
            of its broker.
    """

    errors: tuple[HeadroomError, ...]
    unknown_notes: tuple[str, ...] = ()
    crowded_notes: tuple[str, ...] = ()
    crowded: Mapping[int, Mapping[tuple[str, ...], int]] = field(default_factory=dict)

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be checked, and directories that may become full, as sentences."""
        return self.unknown_notes + self.crowded_notes


def check_room(batches: Sequence[ReassignmentPlan], state: ClusterState) -> RoomCheck:
    """Return for which directories or brokers a plan sends copies without room.

    Until the end of a move both copies exist, so nothing that leaves with a batch makes room for it. What earlier
    batches have copied and removed by then counts. Of a running copy only what is left counts. Running copies of
    partitions that the plan does not move need their room first. Partitions of unknown size and directories of unknown
    free space are left out. Where the broker chooses the directory, it is an error if none has room for the partition,
    if all together have none for all, or if one that has the fewest logs is overfilled in any case
    (``choice.directory_shares``). One that may be overfilled is noted. Directories on one volume count once
    (``volumes_of``).

    Args:
        batches: the plan, in parts that move one after the other.
        state: the cluster, with sizes and free space as far as known.
    """
    errors: list[HeadroomError] = []
    rooms: dict[int, BrokerRoom] = {}
    full: set[int] = set()
    getting: set[int] = set()
    crowded: dict[int, list[CrowdedVolume]] = {}
    left: dict[int, Mapping[tuple[str, ...], int]] = {}
    running, unknown = running_copies(state, batches)
    for number, batch in enumerate(batches, start=1):
        copies, removals = _changes(batch, state)
        getting.update(copies)
        for broker in sorted(copies.keys() | removals.keys()):
            if broker in full or broker not in state.brokers:
                continue
            if broker not in rooms:
                rooms[broker] = BrokerRoom(state.brokers[broker], running.get(broker, ()))
            room = rooms[broker]
            room.copy(copies.get(broker, ()))
            shortages = list(room.errors(f" up to batch {number}" if number > 1 else "")) if broker in copies else []
            if shortages:
                full.add(broker)
                errors += shortages
            elif broker in copies and broker not in crowded and (volumes := list(room.crowded())):
                crowded[broker] = volumes
            if broker in copies and (broker in full or broker in crowded):
                # Before what leaves with the batch is free.
                left.setdefault(broker, room.left_by_path())
            room.remove(removals.get(broker, {}))
    met = sorted({name for broker in getting for name in unknown.get(broker, ())})
    noted = [volume for broker in sorted(crowded) for volume in crowded[broker]]
    return RoomCheck(tuple(errors), tuple(_unknown_notes(met)), tuple(_crowded_notes(noted)), left)


def _unknown_notes(names: Sequence[TopicPartition]) -> Iterator[str]:
    if names:
        yield (
            f"The size of other partitions that are being copied there is unknown: {partitions_text(names)}. Room for"
            " these copies was not checked."
        )


def _crowded_notes(volumes: Sequence[CrowdedVolume]) -> Iterator[str]:
    for volume in volumes[:_SHOWN]:
        verb = "has" if len(volume.paths) == 1 else "have"
        yield (
            f"{', '.join(volume.paths)} of broker {volume.broker} {verb} {size_text(volume.left_bytes)} free. Up to "
            f"{volume.copies:,} new replicas, {size_text(volume.copied_bytes)}, may go there, because the broker "
            "chooses the directory with the fewest logs. To be sure, name log_dirs."
        )
    if len(volumes) > _SHOWN:
        yield f"So may {len(volumes) - _SHOWN:,} more log directories."


def running_copies(
    state: ClusterState, batches: Sequence[ReassignmentPlan] = ()
) -> tuple[dict[int, list[RoomCopy]], dict[int, list[TopicPartition]]]:
    """Return by broker what running moves of partitions outside a plan still copy, and those of unknown size."""
    running: dict[int, list[RoomCopy]] = defaultdict(list)
    unknown: dict[int, list[TopicPartition]] = defaultdict(list)
    for name, now in state.partitions.items():
        if not now.adding or any(name in batch.by_name for batch in batches):
            continue
        new_bytes = now.new_replica_bytes
        for broker in now.adding:
            if new_bytes is None:
                unknown[broker].append(name)
            left = max(0, (new_bytes or 0) - now.copied_bytes.get(broker, 0))
            running[broker].append(RoomCopy(name, now.log_dirs.get(broker), left))
    return running, unknown


def _changes(
    batch: ReassignmentPlan, state: ClusterState
) -> tuple[dict[int, list[RoomCopy]], dict[int, dict[str, list[int]]]]:
    """Return by broker the copies that a batch makes, and the sizes of the logs that leave each directory with its end.

    A size that is unknown is 0.
    """
    copies: dict[int, list[RoomCopy]] = defaultdict(list)
    removals: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for name, assignment in batch.by_name.items():
        now = state.partitions.get(name)
        if now is None:
            continue
        size_bytes, new_bytes = now.size_bytes or 0, now.new_replica_bytes or 0
        named = assignment.named_log_dirs
        for broker in assignment.replicas:
            path, present = named.get(broker), now.log_dirs.get(broker)
            if broker not in now.replicas:
                copies[broker].append(RoomCopy(name, path, new_bytes))
            elif broker in now.adding:
                left = max(0, new_bytes - now.copied_bytes.get(broker, 0))
                copies[broker].append(RoomCopy(name, path or present, left, is_new=path not in (None, present)))
            elif path is not None and path != present:
                copies[broker].append(RoomCopy(name, path, size_bytes))
                if present is not None:
                    removals[broker][present].append(size_bytes)
        for broker in now.replicas:
            # How much of a copy that is ended exists is not known.
            if broker in now.log_dirs and broker not in assignment.replicas and broker not in now.adding:
                removals[broker][now.log_dirs[broker]].append(size_bytes)
    return copies, removals
