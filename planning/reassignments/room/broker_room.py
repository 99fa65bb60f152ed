"""Room on one broker for copies, batch after batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from headroom.planning.reassignments.cluster_state import BrokerState
from headroom.planning.reassignments.room.choice import DirectoryShare, directory_shares
from headroom.planning.reassignments.room.volumes import SEPARATE_VOLUMES, volumes_of
from headroom.planning.reassignments.run.conditions import partitions_text
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

_MAKE_ROOM = (
    "Free space there, choose another destination, or move in batches, each after the one before. Until a move ends, "
    "both copies exist."
)
_NAME_DIRECTORIES = "Name log_dirs with more room in the plan, or free space there."


# A plan may make hundreds of thousands of them.
class RoomCopy(NamedTuple):
    """A copy that a broker has to find room for.

    Attributes:
        name: its partition.
        path: directory that it goes to; None if the broker chooses it.
        size_bytes: bytes that are left to copy; 0 if they are unknown.
        is_new: whether its log does not exist yet.
    """

    name: TopicPartition
    path: str | None
    size_bytes: int
    is_new: bool = True


@dataclass(frozen=True)
class CrowdedVolume:
    """A volume without room for all new replicas that its broker may put there.

    Attributes:
        broker: id of the broker.
        paths: its directories.
        copies: number of new replicas that may go there.
        copied_bytes: bytes of the largest of them.
        left_bytes: bytes that are free there by then.
    """

    broker: int
    paths: tuple[str, ...]
    copies: int
    copied_bytes: int
    left_bytes: int


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
    copies: list[RoomCopy] = field(default_factory=list)
    copied_bytes: int = 0
    running_bytes: int = 0

    @property
    def left_bytes(self) -> int:
        """The bytes that are left of its room; below 0 if there is not enough."""
        return self.free_bytes + self.freed_bytes - self.copied_bytes - self.running_bytes


class BrokerRoom:
    """Room on one broker while batches move one after the other.

    Args:
        state: the broker; its log directories that take no new replica have no room.
        running: copies of others that run already.

    Source: Kafka 4.3.1, ``LogManager.nextLogDirs``.
    """

    def __init__(self, state: BrokerState, running: Iterable[RoomCopy]) -> None:
        online = [d for d in state.log_dirs if not d.offline]
        # With all of them cordoned, the broker puts new replicas into the first one all the same.
        usable = [d for d in online if not d.cordoned] or online
        self._broker, self._is_cordoned = state.broker, state.cordoned
        known = [volume for volume in volumes_of(usable) if volume.usable_bytes is not None]
        self._volumes = [_Volume(v.paths, v.usable_bytes or 0, v.is_assumed) for v in known]
        self._volume_of = {path: volume for volume in self._volumes for path in volume.paths}
        # Without the free bytes of all directories it is unknown whether the broker finds one with room.
        self._is_known = bool(usable) and len(self._volume_of) == len(usable)
        # Number of logs by directory; empty if the number in any of them is unknown.
        self._logs = {d.path: d.logs for d in usable if d.logs is not None}
        if len(self._logs) < len(usable):
            self._logs = {}
        # Whether nothing but the copies whose directory the broker chooses has changed these numbers.
        self._is_certain = True
        self._copies: list[RoomCopy] = []
        self._largest: RoomCopy | None = None
        # Bytes of each copy whose directory the broker chooses, and of those of others.
        self._unnamed: list[int] = []
        self._unnamed_running_bytes = 0
        for copy in running:
            if copy.path is None:
                self._unnamed_running_bytes += copy.size_bytes
                self._is_certain = False
            elif (volume := self._volume_of.get(copy.path)) is not None:
                volume.running_bytes += copy.size_bytes

    def copy(self, copies: Iterable[RoomCopy]) -> None:
        """Add the copies of the next batch."""
        new = list(copies)
        self._copies += new
        self._largest = max((c for c in new if c.path is None), key=lambda c: c.size_bytes, default=None)
        for copy in new:
            volume = None if copy.path is None else self._volume_of.get(copy.path)
            if volume is not None:
                volume.copies.append(copy)
                volume.copied_bytes += copy.size_bytes
            elif copy.path is None:
                self._unnamed.append(copy.size_bytes)
            if copy.path is not None and copy.is_new:
                self._count(copy.path, 1)
            elif copy.path is None and not copy.is_new:
                self._is_certain = False

    def remove(self, sizes_by_directory: Mapping[str, Sequence[int]]) -> None:
        """Free the bytes of the logs that leave each directory with the end of the batch."""
        for path, sizes in sizes_by_directory.items():
            self._count(path, -len(sizes))
            if path in self._volume_of:
                self._volume_of[path].freed_bytes += sum(sizes)

    def _count(self, path: str, logs: int) -> None:
        self._is_certain = False
        if path in self._logs:
            self._logs[path] += logs

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
        unnamed = sum(self._unnamed)
        if self._largest is not None and self._largest.size_bytes > max(left):
            rule = f"has {max(left):,} bytes free in one log directory, and {self._largest.name} has "
            rule += f"{self._largest.size_bytes:,}"
            yield HeadroomError(f"broker {self._broker}", f"{rule}{_running_text(running)}", _MAKE_ROOM)
        elif unnamed + self._unnamed_running_bytes > sum(left):
            yield self._no_room(f"broker {self._broker}", self._copies, self._volumes, running, until)
        elif self._is_cordoned and unnamed > max(left):
            rule = f"has {max(left):,} bytes free in one log directory. All of them are cordoned, so it puts the "
            rule += f"{unnamed:,} of the plan into one"
            yield HeadroomError(f"broker {self._broker}", rule, _MAKE_ROOM)
        elif self._is_certain:
            yield from self._overfull(until)

    def _overfull(self, until: str) -> Iterator[HeadroomError]:
        """Yield the volumes that are overfilled whichever new replicas the broker puts there."""
        for volume, share, sums in self._shares():
            left = max(0, volume.left_bytes)
            if sums[share.least] > left:
                rule = (
                    f"has {left:,} bytes free, and the broker puts at least {share.least:,} of the plan's new replicas "
                    f"there{until}, {sums[share.least]:,} bytes or more, because it has the fewest logs"
                )
                yield HeadroomError(_directories_text(volume.paths, self._broker), rule, _NAME_DIRECTORIES)

    def crowded(self) -> Iterator[CrowdedVolume]:
        """Yield the volumes that may be overfilled, depending on which new replicas the broker puts there."""
        for volume, share, sums in self._shares():
            left, most = max(0, volume.left_bytes), sums[-1] - sums[len(sums) - 1 - share.most]
            if most > left:
                yield CrowdedVolume(self._broker, volume.paths, share.most, most, left)

    def left_by_path(self) -> dict[tuple[str, ...], int]:
        """Return the bytes that are left for copies whose directory the broker chooses, by the paths of a volume."""
        return {volume.paths: max(0, volume.left_bytes) for volume in self._volumes}

    def least_left_by_path(self) -> dict[tuple[str, ...], int]:
        """Return ``left_by_path`` wherever running copies of others go that have no directory yet."""
        unnamed_bytes = self._unnamed_running_bytes
        return {paths: max(0, left_bytes - unnamed_bytes) for paths, left_bytes in self.left_by_path().items()}

    def _shares(self) -> Iterator[tuple[_Volume, DirectoryShare, list[int]]]:
        """Yield what each volume gets of the copies whose directory the broker chooses.

        With each of them the sums of the smallest none, one, two and so on of these copies.
        """
        least_left = min((volume.left_bytes for volume in self._volumes), default=0)
        # Mostly each volume has room for all of them.
        if len(self._volumes) < 2 or not self._logs or not self._is_known or sum(self._unnamed) <= least_left:
            return
        number = len(self._unnamed)
        self._unnamed.sort()
        sums = list(accumulate(self._unnamed, initial=0))
        shares = directory_shares(self._logs, number)
        for volume in self._volumes:
            own = [shares[path] for path in volume.paths]
            least = 0 if self._is_cordoned else sum(share.least for share in own)
            most = number if self._is_cordoned else min(number, sum(share.most for share in own))
            yield volume, DirectoryShare(least, most), sums

    def _subject(self, volume: _Volume) -> str:
        return _directories_text(sorted({copy.path for copy in volume.copies if copy.path is not None}), self._broker)

    def _no_room(
        self, subject: str, copies: Sequence[RoomCopy], volumes: Sequence[_Volume], running_bytes: int, until: str
    ) -> HeadroomError:
        free, freed = sum(volume.free_bytes for volume in volumes), sum(volume.freed_bytes for volume in volumes)
        more = f" and gets {freed:,} more from earlier batches" if freed else ""
        copied = sum(copy.size_bytes for copy in copies)
        names = partitions_text({copy.name for copy in copies if copy.size_bytes})
        assumed = ["count as one volume: " + ", ".join(volume.paths) for volume in volumes if volume.is_assumed]
        one_volume = f" ({'; '.join(assumed)})" if assumed else ""
        rule = f"has {free:,} bytes free{one_volume}{more}, and the plan copies {copied:,} there{until} ({names})"
        rule += _running_text(running_bytes)
        return HeadroomError(subject, rule, f"{_MAKE_ROOM} {SEPARATE_VOLUMES}" if assumed else _MAKE_ROOM)


def _directories_text(paths: Sequence[str], broker: int) -> str:
    return f"log director{'y' if len(paths) == 1 else 'ies'} {', '.join(paths)} of broker {broker}"


def _running_text(running_bytes: int) -> str:
    return f"; reassignments that run already copy {running_bytes:,} more there" if running_bytes else ""
