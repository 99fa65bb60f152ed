"""One partition of a migration as it was read at one time, on both clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headroom.planning.migration.agreed_end import reached_in_s
from headroom.planning.migration.agreement import missing_routers
from headroom.planning.migration.known import known_offset
from headroom.planning.migration.readings import LogOffsets, TopicRules
from headroom.schemas.migrations import METHODS_WITH_COPIES, MigrationMethod, MigrationStatus, PartitionAgreement

_NO_LOG = LogOffsets()
# Where a reading does not say; the default of ``alerts.slip_ratio``.
SLIP_RATIO = 0.5
_STATUSES = {status.value: status for status in MigrationStatus}
_METHODS = {method.value: method for method in MigrationMethod}


# Not frozen, and never changed: a tick has tens of thousands, and a frozen one takes five times as long to make.
@dataclass(slots=True)
class GroupReading:
    """A consumer group at one partition.

    Attributes:
        group: the group.
        origin_committed: offset committed on the origin; None without one, or if it could not be read.
        target_committed: offset committed on the target; None without one, or if it could not be read.
        read_offsets_per_s: rate at which its client offset grows, offsets per second; None if unknown.
        active: whether it has members on the origin; None if unknown.
        has_grown_on_target: whether its offset on the target has grown since the earlier reading; None if unknown.
        target_active: whether it has members on the target; None if unknown.
    """

    group: str
    origin_committed: int | None = None
    target_committed: int | None = None
    read_offsets_per_s: float | None = None
    active: bool | None = None
    has_grown_on_target: bool | None = None
    target_active: bool | None = None


# Not frozen, and never changed: a tick has tens of thousands, and a frozen one takes five times as long to make.
@dataclass(slots=True)
class MigrationReading:
    """One partition at one time; each part that could not be read is None, or missing.

    Attributes:
        agreement: what was agreed.
        now_ms: time of the reading, epoch milliseconds.
        origin: log of the origin.
        target: log of the target.
        earlier_target_end: log end of the target, read before the origin's: what was written meanwhile is on neither.
        is_origin_up: whether the origin answered.
        origin_failure: why it did not, for people; empty if it did.
        origin_topic_id: id of the topic on the origin now.
        target_topic_id: id of the topic on the target now.
        write_offsets_per_s: rate at which the origin's log grows, offsets per second.
        target_offsets_per_s: rate at which the target's log grows, offsets per second.
        leader_end: log end of the origin's leader, with what no other replica has yet.
        rules: settings of the topic on the origin.
        acks: acks of the routers that produce, each as "all", "1" or "0".
        agreed: number of the migration's agreement that each router keeps to, by its name.
        acknowledged: offset after the last acknowledged record, by leader epoch of the origin.
        epoch_ends: offset after the last record of these epochs in the log of the present leader.
        last_sync: MirrorMaker's newest offset sync, as offsets on the origin and on the target.
        groups: consumer groups that read the partition; None if they could not be listed.
        slip_ratio: delay of the switch, as a ratio of the time that it had as it was agreed, from which on it is late.
        write_bytes_per_s: rate at which clients write to the origin, bytes per second.
        target_topic: name of the topic on the target.
        end_newest_ms: greatest timestamp in the origin's log as it got to its last end, epoch milliseconds.
        unreported_ends: greatest log end that was seen of a leader, by its epoch, if no router has reported as much.
        leader_epoch: epoch of the origin's leader.
        has_incomplete_reports: whether a router has dropped some of what earlier leaders had acknowledged to it.
        target_leader: leader of the partition on the target; None if unknown.
        throttled_followers: its followers that its throttle counts; None if unknown.
        last_origin_end: offset at which readers leave the origin: E, or where a log ends that lost records below; None
            if unknown.
        switch_in_s: seconds until the origin's log gets to its last end; None if never or unknown.
        newest_age_s: age of the newest record on the origin, seconds; None if unknown.
        expected: when E was expected as it was agreed, epoch milliseconds, and how far ahead that was, seconds; None if
            unknown.
    """

    agreement: PartitionAgreement
    now_ms: int
    origin: LogOffsets = _NO_LOG
    target: LogOffsets = _NO_LOG
    earlier_target_end: int | None = None
    is_origin_up: bool = True
    origin_failure: str = ""
    origin_topic_id: str | None = None
    target_topic_id: str | None = None
    write_offsets_per_s: float | None = None
    target_offsets_per_s: float | None = None
    leader_end: int | None = None
    rules: TopicRules | None = None
    acks: tuple[str, ...] = ()
    agreed: Mapping[str, int] = field(default_factory=dict)
    acknowledged: Mapping[int, int] = field(default_factory=dict)
    epoch_ends: Mapping[int, int] = field(default_factory=dict)
    last_sync: tuple[int, int] | None = None
    groups: tuple[GroupReading, ...] | None = None
    slip_ratio: float = SLIP_RATIO
    write_bytes_per_s: float | None = None
    target_topic: str | None = None
    end_newest_ms: int | None = None
    unreported_ends: Mapping[int, int] = field(default_factory=dict)
    leader_epoch: int | None = None
    has_incomplete_reports: bool = False
    target_leader: int | None = None
    throttled_followers: int | None = None
    # These follow from the others, once: a tick may have tens of thousands of partitions, and each of their rules and
    # groups asks for them.
    last_origin_end: int | None = field(init=False, repr=False, compare=False)
    switch_in_s: float | None = field(init=False, repr=False, compare=False)
    newest_age_s: float | None = field(init=False, repr=False, compare=False)
    expected: tuple[int, float] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        agreed = self.agreement
        end, origin_end = known_offset(agreed.end_offset), known_offset(agreed.origin_end)
        last = end if end is None or origin_end is None else min(end, origin_end)
        self.last_origin_end = last
        self.switch_in_s = reached_in_s(self.origin.end, self.write_offsets_per_s, last)
        self.newest_age_s = self.age_s(self.origin.newest_ms)
        self.expected = _expected(agreed, last)

    def age_s(self, timestamp_ms: int | None) -> float | None:
        """Return the age of a record by its timestamp, seconds; None if that is unknown."""
        return None if timestamp_ms is None else max(0.0, (self.now_ms - timestamp_ms) / 1000)

    @property
    def status(self) -> MigrationStatus:
        """Status of the partition."""
        return _STATUSES[self.agreement.status]

    @property
    def method(self) -> MigrationMethod:
        """How records and readers get to the target."""
        return _METHODS[self.agreement.method]

    @property
    def is_copied(self) -> bool:
        """Whether a mirror or a link copies the records."""
        return self.method in METHODS_WITH_COPIES

    @property
    def missing_routers(self) -> tuple[str, ...]:
        """Named routers that have not agreed yet, in their order."""
        return missing_routers(self.agreement, self.agreed)

    def recreated_on(self) -> str | None:
        """Return the side on which the topic is another one than was agreed; None if on neither, or if unknown."""
        agreed = self.agreement
        if _is_another(agreed.origin_topic_id, self.origin_topic_id):
            return "origin"
        return "target" if _is_another(agreed.target_topic_id, self.target_topic_id) else None

    def mirrored_end(self) -> int | None:
        """Return the offset of the origin up to which a mirror has copied; None without a mirror, or if unknown.

        MirrorMaker copies all records behind a sync one after another, so that of these as many are copied as the
        target's log has grown since. Markers of transactions on the origin make this too low, records that were
        mirrored twice too high. Once the target is in use its log begins, from the base on, behind all that is copied.
        """
        if not self.is_copied:
            return None
        end, target_end = self.agreement.end_offset, self._end_before_origin()
        if target_end is None:
            return None
        base = self.agreement.target_base_offset
        if self.status is not MigrationStatus.PLANNED and base is not None and target_end >= base:
            return end
        if self.method is MigrationMethod.LINKED:
            return target_end
        if self.last_sync is None or target_end <= self.last_sync[1]:
            return None
        copied = self.last_sync[0] + target_end - self.last_sync[1]
        return copied if self.origin.end is None else min(copied, self.origin.end)

    def has_diverged(self) -> bool | None:
        """Return whether a linked target has records that the origin does not have; None if unknown.

        Beyond E the target is on its own, so this is asked only before the origin has reached it.
        """
        if self.method is not MigrationMethod.LINKED:
            return False
        own, other = self.origin.end, self._end_before_origin()
        if own is None or other is None:
            return None
        end = known_offset(self.agreement.end_offset)
        return other > own and (end is None or own < end)

    def _end_before_origin(self) -> int | None:
        return self.target.end if self.earlier_target_end is None else self.earlier_target_end


def _expected(agreed: PartitionAgreement, last_origin_end: int | None) -> tuple[int, float] | None:
    if agreed.origin_read_ms is None:
        return None
    time_s = reached_in_s(agreed.origin_position, agreed.origin_offsets_per_s, last_origin_end)
    return None if time_s is None else (agreed.origin_read_ms + round(1000 * time_s), time_s)


def _is_another(agreed_id: str | None, topic_id: str | None) -> bool:
    return agreed_id is not None and topic_id is not None and agreed_id != topic_id
