"""What a judgement has: the rows of ``gold/migration_progress`` and ``gold/migration_groups``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MigrationMethod, MigrationStatus


class MigrationVerdict(str, Enum):
    """Verdict on one partition, from the most to the least severe; the first one that holds is given.

    SHIELDED stands before all others, because nothing is read then, and all others rest on readings.

    LOST: the origin's log no longer has acknowledged records below E. NEVER: the log does not grow, and is below E.
    OVERTAKEN: retention deletes records before a group reads them. DIVERGED: a linked target is ahead of the origin.
    LATE: E is reached later than was agreed, by more than ``alerts.slip_ratio`` of the time that was left then. EARLY:
    E is reached, or will be by as much before its time, and not all routers have agreed; or a nearer E is reached, and
    no run has put it in force. DRAINING: E is reached, and transactions, the mirror or groups have yet to pass it.
    WAITING: E is not agreed, routers are missing, or the start is. ON_PLAN: E is ahead. REMOVABLE: the origin's
    partition is not needed any more, or deleted. DRAINED: no group reads below E any more, but something else forbids
    the removal. NO_DATA: none of these can be known.
    """

    LOST = "lost"
    NEVER = "never"
    OVERTAKEN = "overtaken"
    DIVERGED = "diverged"
    LATE = "late"
    EARLY = "early"
    DRAINING = "draining"
    WAITING = "waiting"
    ON_PLAN = "on_plan"
    REMOVABLE = "removable"
    DRAINED = "drained"
    SHIELDED = "shielded"
    NO_DATA = "no_data"


VERDICTS = tuple(verdict.value for verdict in MigrationVerdict)


# Not frozen, and never changed: a tick has tens of thousands, and a frozen one takes five times as long to make.
@dataclass(slots=True)
class GroupProgress:
    """A consumer group at one partition.

    Attributes:
        group: the group.
        client_offset: offset at which it continues, in client offsets; None if unknown, as without a committed offset.
        left_offsets: offsets below E that it has yet to read on the origin; None if unknown.
        read_offsets_per_s: rate at which it reads, offsets per second; None if unknown.
        read_eta_s: seconds until it has read them; None if never or unknown.
        lost_offsets: offsets that it misses: to retention at its rate, or where readers have given up the origin; None
            if unknown.
        gone_offsets: offsets below E that are deleted before it has read them; None if unknown.
        kept_s: seconds until retention by time may delete the last record below E; None if never or unknown.
        enough_retention_ms: retention.ms with which it loses no more at its rate; None if none is needed, or enough.
    """

    group: str
    client_offset: int | None = None
    left_offsets: int | None = None
    read_offsets_per_s: float | None = None
    read_eta_s: float | None = None
    lost_offsets: int | None = None
    gone_offsets: int | None = None
    kept_s: float | None = None
    enough_retention_ms: int | None = None

    @property
    def is_past(self) -> bool | None:
        """Whether it needs the origin no more; None if unknown."""
        return None if self.left_offsets is None else self.left_offsets == 0


# Not frozen for the same reason; changed only by ``evaluated``.
@dataclass(slots=True)
class MigrationProgress:
    """One partition of a migration; offsets are None if unknown.

    Attributes:
        topic: name of the topic on the origin.
        partition: number of the partition.
        migration: name of the migration.
        status: status that was agreed.
        method: method that was agreed.
        end_offset: agreed end offset E.
        left_offsets: offsets below E that are still to be written on the origin.
        write_offsets_per_s: rate at which the origin's log grows, offsets per second.
        switch_eta_s: seconds until the origin reaches E; None if never or unknown.
        beyond_offsets: offsets of the origin from E on; where a loss was accepted, from where its log had ended.
        unstable_offsets: offsets of the origin from its first open transaction on.
        lost_offsets: acknowledged offsets below E that the origin's log no longer has, unless that was accepted.
        at_risk_offsets: offsets below E that only the leader has: a leader switch now would lose them.
        mirror_lag_offsets: offsets of the origin below E that the mirror has yet to copy.
        mirror_eta_s: seconds until the mirror has copied all below E at its rate; None if never or unknown.
        kept_s: seconds until retention by time may delete the last record below E; None if never or unknown.
        acks: least acks of the routers that produce: "0", "1" or "all".
        min_insync_replicas: min.insync.replicas of the topic on the origin.
        unclean_elections: unclean.leader.election.enable of the topic on the origin.
        missing_routers: named routers that have not agreed yet.
        expected_ms: when E was to be reached as agreed, epoch milliseconds.
        removable: whether the origin's partition is not needed any more; None if unknown.
        reason: why, in one sentence with the numbers.
        verdict: verdict.
        groups: consumer groups; None if they could not be listed.
        write_bytes_per_s: rate at which clients write to the origin, bytes per second.
        target_topic: name of the topic on the target; None if unknown.
        has_late_writes: whether the origin has records that no router moved and no mirror copies, because they were
            written after the switch; None if unknown, or if copies may go on.
        arriving_bytes_per_s: rate at which the switch brings writes to the target, beyond what is copied there, bytes
            per second.
        target_leader: leader of the partition on the target; None if unknown.
        throttled_followers: its followers that its throttle counts; None if unknown.
        reopened_end: end offset with which the target was in use, while a nearer one is agreed; None otherwise.
    """

    topic: str
    partition: int
    migration: str
    status: str
    method: str
    end_offset: int | None
    left_offsets: int | None
    write_offsets_per_s: float | None
    switch_eta_s: float | None
    beyond_offsets: int | None
    unstable_offsets: int | None
    lost_offsets: int | None
    at_risk_offsets: int | None
    mirror_lag_offsets: int | None
    mirror_eta_s: float | None
    kept_s: float | None
    acks: str | None
    min_insync_replicas: int | None
    unclean_elections: bool | None
    missing_routers: tuple[str, ...]
    expected_ms: int | None
    removable: bool | None = None
    reason: str = ""
    verdict: MigrationVerdict = MigrationVerdict.NO_DATA
    groups: tuple[GroupProgress, ...] | None = None
    write_bytes_per_s: float | None = None
    target_topic: str | None = None
    has_late_writes: bool | None = None
    arriving_bytes_per_s: float | None = None
    target_leader: int | None = None
    throttled_followers: int | None = None
    reopened_end: int | None = None

    def evaluated(self, removable: bool | None, verdict: MigrationVerdict, reason: str) -> MigrationProgress:
        """Return these numbers with what follows from them.

        Nobody else has them yet, so they are completed and not copied.

        Args:
            removable: whether the origin's partition is not needed any more; None if unknown.
            verdict: verdict.
            reason: why.
        """
        self.removable, self.verdict, self.reason = removable, verdict, reason
        return self

    @property
    def group_count(self) -> int | None:
        """Number of consumer groups; None if they could not be listed."""
        return None if self.groups is None else len(self.groups)

    @property
    def brings_writes(self) -> bool:
        """Whether clients have yet to take their writes to the target: below E, or, moved by hand, before it is known.

        A mirror or a link whose E is not known yet copies these writes there already.
        """
        is_before_end = self.status == MigrationStatus.PLANNED and self.end_offset is None
        return bool(self.left_offsets) or (is_before_end and self.method == MigrationMethod.DRAINED)

    @property
    def target_name(self) -> TopicPartition | None:
        """Name of the partition on the target; None if unknown: a mirror may have another name than its origin."""
        if self.target_topic is None and self.method == MigrationMethod.MIRRORED:
            return None
        return TopicPartition(self.target_topic or self.topic, self.partition)
