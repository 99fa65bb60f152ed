"""What a run rests on: its terms, what it sees of a partition, and the step that follows."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.planning.migration.readings import LogOffsets
from headroom.schemas.errors import HeadroomError
from headroom.schemas.migrations import MigrationMethod, PartitionAgreement


@dataclass(frozen=True)
class RunTerms:
    """What a run is asked for.

    Attributes:
        migration: name of the migration.
        method: how records and readers get to the target.
        routers: names of the routers that have to agree; empty: those that were named before.
        prepare_s: time that a switch needs to be prepared, seconds.
        ignore_origin: whether readers give up a partition whose origin is down, or has reached its end offset.
        accept_loss: whether readers continue on the target where the origin has lost records below the end offset.
        end_here: whether a nearer end offset is agreed for partitions that do not get to theirs.
    """

    migration: str
    method: MigrationMethod
    routers: tuple[str, ...] = ()
    prepare_s: float = 300.0
    ignore_origin: bool = False
    accept_loss: bool = False
    end_here: bool = False


@dataclass(frozen=True)
class OriginReading:
    """One reading of a partition's log on the origin.

    Attributes:
        end: end of the log on its leader; the high watermark if that is unknown.
        offsets_per_s: rate at which it grew, offsets per second; None if unknown.
        read_ms: time of the reading, epoch milliseconds.
    """

    end: int
    offsets_per_s: float | None
    read_ms: int


@dataclass(frozen=True)
class SeenPartition:
    """What is seen of a partition, the target first, then routers, then the origin.

    Attributes:
        log: its log on the origin; all None if the origin is down or shielded.
        target: its log on the target; all None if unknown.
        now_ms: time, epoch milliseconds.
        offsets_per_s: rate at which the origin's log grows on its leader, offsets per second; None if unknown.
        is_quiet: whether the log has not grown for ``migration.quiet_s``, and all in-sync replicas had all of it.
        is_topic_quiet: whether no log of its topic has.
        last: newest reading of the origin; None if there was none.
        is_origin_down: whether the origin has not answered for so long that no leader switch explains it, or is
            shielded.
        is_mirrored: whether a mirror has the origin's last record as its own last one; None if that was not looked up.
        leader_end: end of the origin's log on its leader, with what no other replica has yet; None if unknown. It is
            read after the log.
        unread_mirror: what of a mirror could not be read, and why; empty if nothing failed.
    """

    log: LogOffsets
    target: LogOffsets
    now_ms: int
    offsets_per_s: float | None = None
    is_quiet: bool = False
    is_topic_quiet: bool = False
    last: OriginReading | None = None
    is_origin_down: bool = False
    is_mirrored: bool | None = None
    leader_end: int | None = None
    unread_mirror: str = ""

    @property
    def is_origin_up(self) -> bool:
        """Whether the partition's leader on the origin has answered."""
        return self.log.end is not None


@dataclass(frozen=True)
class RunStep:
    """What a run does next with a partition.

    Attributes:
        after: its agreement from now on; None: it stays as it is.
        waits_for: what has to come first; empty if nothing has.
        refusal: why the run ends here; None if it does not.
    """

    after: PartitionAgreement | None = None
    waits_for: str = ""
    refusal: HeadroomError | None = None
