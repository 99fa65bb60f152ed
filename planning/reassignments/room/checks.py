"""Room for the copies of a plan in the log directories of brokers, batch after batch."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headroom.planning.reassignments.cluster_state import ClusterState, LogDirectory
from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.planning.reassignments.room.volumes import SEPARATE_VOLUMES, volumes_of
from headroom.planning.reassignments.run.conditions import partitions_text
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

_MAKE_ROOM = (
    "Free space there, choose another destination, or move in batches, each after the one before. Until a move ends, "
    "both copies exist."
)


# A plan may make hundreds of thousands of them.
class _Copy(NamedTuple):
    """A copy that a broker has to find room for; ``path`` is None if the broker chooses the directory."""

    name: TopicPartition
    path: str | None
    size_bytes: int


@dataclass(frozen=True)
class RoomCheck:
    """Room for the copies of a plan.

    Attributes:
        errors: one per directory, or broker, without room for the copies that the plan sends there.
        notes: what could not be checked, as sentences.
    """

    errors: tuple[HeadroomError, ...]
    notes: tuple[str, ...] = ()


def check_room(batches: Sequence[ReassignmentPlan], state: ClusterState) -> RoomCheck:
    """Return for which directories or brokers a plan sends copies without room.

    Until the end of a move both copies exist, so nothing that leaves with a batch makes room for it. What earlier
    batches have copied and removed by then counts. Of a running copy only what is left counts. Running copies of
    partitions that the plan does not move need their room first. Partitions of unknown size and directories of unknown
    free space are left out. Where the broker chooses the directory, it is an error only if none has room for the
    partition, or all together have none for all. Directories on one volume count once (``volumes_of``).

    Args:
        batches: the plan, in parts that move one after the other.
        state: the cluster, with sizes and free space as far as known.
    """
    errors: list[HeadroomError] = []
    rooms: dict[int, _BrokerRoom] = {}
    full: set[int] = set()
    getting: set[int] = set()
    running, unknown = _copies_of_others(batches, state)
    for number, batch in enumerate(batches, start=1):
        copies, removals = _changes(batch, state)
        getting.update(copies)
        for broker in sorted(copies.keys() | removals.keys()):
            if broker in full or broker not in state.brokers:
                continue
            if broker not in rooms:
                rooms[broker] = _BrokerRoom(broker, state.brokers[broker].log_dirs, running.get(broker, ()))
            room = rooms[broker]
            room.copy(copies.get(broker, ()))
            shortages = list(room.errors(f" up to batch {number}" if number > 1 else "")) if broker in copies else []
            if shortages:
                full.add(broker)
                errors += shortages
            room.remove(removals.get(broker, {}))
    met = sorted({name for broker in getting for name in unknown.get(broker, ())})
    return RoomCheck(tuple(errors), tuple(_unknown_notes(met)))


def room_errors(batches: Sequence[ReassignmentPlan], state: ClusterState) -> tuple[HeadroomError, ...]:
    """Return the errors of ``check_room``."""
    return check_room(batches, state).errors


def _unknown_notes(names: Sequence[TopicPartition]) -> Iterator[str]:
    if names:
        yield (
            f"Other partitions are being copied to the same brokers, and their size is unknown: {partitions_text(names)}."
            " Room for these copies was not checked."
        )


@dataclass
class _Volume:
    """The directories on one volume, and what batches so far put there and remove.

    Attributes:
        paths: its directories.
        free_bytes: free bytes before the first batch.
        is_assumed: whether the directories are taken for one volume by their numbers.
        freed_bytes: bytes of logs that earlier batches have removed.
        copies: copies that name one of its directories.
        copied_bytes: their bytes.
        running_bytes: bytes that running moves of others still copy there.
    """

    paths: tuple[str, ...]
    free_bytes: int
    is_assumed: bool = False
    freed_bytes: int = 0
    copies: list[_Copy] = field(default_factory=list)
    copied_bytes: int = 0
    running_bytes: int = 0

    @property
    def left_bytes(self) -> int:
        """The bytes that are left of its room; below 0 if there is not enough."""
        return self.free_bytes + self.freed_bytes - self.copied_bytes - self.running_bytes


class _BrokerRoom:
    """Room on one broker while batches move one after the other.

    Args:
        broker: id of the broker.
        directories: its log directories; those that take no new replica have no room.
        running: copies of others that run already.

    Source: Kafka 4.3.1, ``LogManager.nextLogDirs``.
    """

    def __init__(self, broker: int, directories: Iterable[LogDirectory], running: Iterable[_Copy]) -> None:
        online = [d for d in directories if not d.offline]
        # With all of them cordoned, the broker puts new replicas into the first one all the same.
        usable = [d for d in online if not d.cordoned] or online
        self._broker = broker
        known = [volume for volume in volumes_of(usable) if volume.usable_bytes is not None]
        self._volumes = [_Volume(v.paths, v.usable_bytes or 0, v.is_assumed) for v in known]
        self._volume_of = {path: volume for volume in self._volumes for path in volume.paths}
        # Without the free bytes of all directories it is unknown whether the broker finds one with room.
        self._is_known = bool(usable) and len(self._volume_of) == len(usable)
        self._copies: list[_Copy] = []
        self._largest: _Copy | None = None
        # Bytes of copies whose directory the broker chooses, of the plan and of others.
        self._unnamed_bytes = self._unnamed_running_bytes = 0
        for copy in running:
            if copy.path is None:
                self._unnamed_running_bytes += copy.size_bytes
            elif (volume := self._volume_with(copy)) is not None:
                volume.running_bytes += copy.size_bytes

    def _volume_with(self, copy: _Copy) -> _Volume | None:
        return None if copy.path is None else self._volume_of.get(copy.path)

    def copy(self, copies: Iterable[_Copy]) -> None:
        """Add the copies of the next batch."""
        new = list(copies)
        self._copies += new
        self._largest = max((c for c in new if c.path is None), key=lambda c: c.size_bytes, default=None)
        for copy in new:
            volume = self._volume_with(copy)
            if volume is not None:
                volume.copies.append(copy)
                volume.copied_bytes += copy.size_bytes
            else:
                self._unnamed_bytes += copy.size_bytes

    def remove(self, bytes_by_directory: Mapping[str, int]) -> None:
        """Free the bytes of the logs that leave each directory with the end of the batch."""
        for path, size_bytes in bytes_by_directory.items():
            if path in self._volume_of:
                self._volume_of[path].freed_bytes += size_bytes

    def errors(self, until: str) -> Iterator[HeadroomError]:
        """Yield what has no room for the batches so far.

        Args:
            until: text that names the last batch; empty for the first one.
        """
        is_full = False
        for volume in self._volumes:
            if volume.copies and volume.left_bytes < 0:
                is_full = True
                running = volume.running_bytes
                yield self._no_room(self._subject(volume), volume.copies, [volume], running, until)
        if is_full or not self._is_known:
            return
        left = [max(0, volume.left_bytes) for volume in self._volumes]
        running = self._unnamed_running_bytes + sum(volume.running_bytes for volume in self._volumes)
        if self._largest is not None and self._largest.size_bytes > max(left):
            rule = f"has {max(left):,} bytes free in one log directory, and {self._largest.name} has "
            rule += f"{self._largest.size_bytes:,}"
            yield HeadroomError(f"broker {self._broker}", f"{rule}{_running_text(running)}", _MAKE_ROOM)
        elif self._unnamed_bytes + self._unnamed_running_bytes > sum(left):
            yield self._no_room(f"broker {self._broker}", self._copies, self._volumes, running, until)

    def _subject(self, volume: _Volume) -> str:
        named = sorted({copy.path for copy in volume.copies if copy.path is not None})
        return f"log director{'y' if len(named) == 1 else 'ies'} {', '.join(named)} of broker {self._broker}"

    def _no_room(
        self, subject: str, copies: Sequence[_Copy], volumes: Sequence[_Volume], running_bytes: int, until: str
    ) -> HeadroomError:
        free, freed = sum(volume.free_bytes for volume in volumes), sum(volume.freed_bytes for volume in volumes)
        more = f" and gets {freed:,} more from earlier batches" if freed else ""
        copied, names = sum(copy.size_bytes for copy in copies), partitions_text({copy.name for copy in copies})
        assumed = ["count as one volume: " + ", ".join(volume.paths) for volume in volumes if volume.is_assumed]
        one_volume = f" ({'; '.join(assumed)})" if assumed else ""
        rule = f"has {free:,} bytes free{one_volume}{more}, and the plan copies {copied:,} there{until} ({names})"
        rule += _running_text(running_bytes)
        return HeadroomError(subject, rule, f"{_MAKE_ROOM} {SEPARATE_VOLUMES}" if assumed else _MAKE_ROOM)


def _running_text(running_bytes: int) -> str:
    return f"; reassignments that run already copy {running_bytes:,} more there" if running_bytes else ""


def _copies_of_others(
    batches: Sequence[ReassignmentPlan], state: ClusterState
) -> tuple[dict[int, list[_Copy]], dict[int, list[TopicPartition]]]:
    """Return by broker what running moves of partitions outside a plan still copy, and those of unknown size."""
    running: dict[int, list[_Copy]] = defaultdict(list)
    unknown: dict[int, list[TopicPartition]] = defaultdict(list)
    for name, now in state.partitions.items():
        if not now.adding or any(name in batch.by_name for batch in batches):
            continue
        new_bytes = now.new_replica_bytes
        for broker in now.adding:
            if new_bytes is None:
                unknown[broker].append(name)
            else:
                left = max(0, new_bytes - now.copied_bytes.get(broker, 0))
                running[broker].append(_Copy(name, now.log_dirs.get(broker), left))
    return running, unknown


def _changes(batch: ReassignmentPlan, state: ClusterState) -> tuple[dict[int, list[_Copy]], dict[int, Counter[str]]]:
    """Return by broker the copies that a batch makes, and the bytes that leave each directory with its end."""
    copies: dict[int, list[_Copy]] = defaultdict(list)
    removals: dict[int, Counter[str]] = defaultdict(Counter)
    for name, assignment in batch.by_name.items():
        now = state.partitions.get(name)
        if now is None or now.size_bytes is None or (new_bytes := now.new_replica_bytes) is None:
            continue
        named = assignment.named_log_dirs
        for broker in assignment.replicas:
            path, present = named.get(broker), now.log_dirs.get(broker)
            if broker not in now.replicas or broker in now.adding:
                copies[broker].append(_Copy(name, path, max(0, new_bytes - now.copied_bytes.get(broker, 0))))
            elif path is not None and path != present:
                copies[broker].append(_Copy(name, path, now.size_bytes))
                if present is not None:
                    removals[broker][present] += now.size_bytes
        for broker in now.replicas:
            # How much of a copy that is ended exists is not known.
            if broker in now.log_dirs and broker not in assignment.replicas and broker not in now.adding:
                removals[broker][now.log_dirs[broker]] += now.size_bytes
    return copies, removals
