"""Volumes that log directories are on: the one rule by which free and total bytes are counted once.

Brokers report the size and the free bytes of the volume of each directory, but not which of them share one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState, LogDirectory
from headroom.schemas.config import LogDirVolumes
from headroom.schemas.text.names import broker_names

# Free bytes of one volume, read for each of its directories in turn, differ by what is written or deleted in between:
# by no more than a segment (log.segment.bytes, 1 GiB by default).
_SEGMENT_BYTES = 2**30
_NAMED = 5
SEPARATE_VOLUMES = 'If they are on volumes of their own, set cluster.log_dir_volumes = "separate".'


@dataclass(frozen=True)
class Volume:
    """Log directories of a broker on one volume.

    Attributes:
        paths: its directories.
        total_bytes: its size; None if unknown.
        usable_bytes: its free bytes; None if unknown.
        is_assumed: whether they are taken for one volume by their numbers.
    """

    paths: tuple[str, ...]
    total_bytes: int | None
    usable_bytes: int | None
    is_assumed: bool = False


def volumes_of(directories: Iterable[LogDirectory]) -> list[Volume]:
    """Return the volumes of some directories of one broker.

    The settings may say which directories share one (``LogDirectory.volume``). Otherwise two are taken for one volume
    if nothing excludes it: they report the same size, their free bytes differ by less than a segment, and the logs in
    both fit into the used bytes. Two empty disks of one size are such a case: counted once, they have too little room,
    but counted twice, one volume would be overfilled, and a full one takes a broker's directories offline.
    """
    groups: list[list[LogDirectory]] = []
    for directory in directories:
        joined = [group for group in groups if any(_may_share(directory, other) for other in group)]
        groups = [group for group in groups if group not in joined]
        groups.append([*(member for group in joined for member in group), directory])
    return [_volume(group) for group in groups]


def _may_share(one: LogDirectory, other: LogDirectory) -> bool:
    if one.volume is not None or other.volume is not None:
        return one.volume == other.volume
    if one.total_bytes is None or one.usable_bytes is None or other.usable_bytes is None:
        return False
    used_bytes = one.total_bytes - min(one.usable_bytes, other.usable_bytes)
    return (
        one.total_bytes == other.total_bytes
        and abs(one.usable_bytes - other.usable_bytes) < _SEGMENT_BYTES
        and one.logs_bytes + other.logs_bytes <= used_bytes
    )


def _volume(group: Sequence[LogDirectory]) -> Volume:
    totals = [d.total_bytes for d in group if d.total_bytes is not None]
    free = [d.usable_bytes for d in group if d.usable_bytes is not None]
    return Volume(
        tuple(directory.path for directory in group),
        min(totals) if len(totals) == len(group) else None,
        min(free) if len(free) == len(group) else None,
        len(group) > 1 and group[0].volume is None,
    )


def with_volume(directory: LogDirectory, volumes: LogDirVolumes) -> LogDirectory:
    """Return a directory with its volume by the settings."""
    if volumes is LogDirVolumes.ASSUMED:
        return directory
    return replace(directory, volume=directory.path if volumes is LogDirVolumes.SEPARATE else volumes.value)


def with_volumes(state: ClusterState, volumes: LogDirVolumes) -> ClusterState:
    """Return a saved state with the volumes of all log directories by the settings."""
    brokers = {
        broker: replace(own, log_dirs=tuple(with_volume(directory, volumes) for directory in own.log_dirs))
        for broker, own in state.brokers.items()
    }
    return replace(state, brokers=brokers)


def assumption_notes(brokers: Iterable[BrokerState]) -> Iterator[str]:
    """Yield, as sentences, the directories that are taken for one volume by their numbers."""
    by_paths: dict[str, list[int]] = {}
    for broker in brokers:
        for volume in volumes_of(directory for directory in broker.log_dirs if not directory.offline):
            if volume.is_assumed:
                by_paths.setdefault(", ".join(volume.paths), []).append(broker.broker)
    for paths, ids in sorted(by_paths.items()):
        named = broker_names(sorted(ids), _NAMED)
        yield (
            f"Log directories {paths} of {named} count as one volume, because they report the same size and about the "
            f"same free bytes. {SEPARATE_VOLUMES}"
        )
