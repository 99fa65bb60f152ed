"""What a run needs of a cluster and of its journal, so that it also runs against a cluster in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from headroom.cluster.log_dirs.describe import LogDirsReading
from headroom.planning.reassignments.plan import BatchNumbers
from headroom.planning.reassignments.run.journal import Entry, JournalRow, ThrottledList
from headroom.planning.reassignments.run.snapshot import RunSnapshot
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.keys import BrokerRate, ReplicaKey, TopicPartition


class IfCleared(str, Enum):
    """What a run does when others clear its throttle while partitions move.

    Attributes:
        RESTORE: sets it again.
        CANCEL: cancels the current batch, and ends.
        LEAVE: leaves it until the next batch.
    """

    RESTORE = "restore"
    CANCEL = "cancel"
    LEAVE = "leave"


STOPPED_BY_OPERATOR = "stopped by the operator"

# Returns the command that raises the throttle of some brokers to a rate.
RaiseCommand = Callable[[int, Sequence[int]], str]


@dataclass(frozen=True)
class PlaceAnswers:
    """Replicas whose log directory is not known to be as requested, each with the reason.

    Attributes:
        refused: those that a broker refused.
        unanswered: those whose broker did not answer: it may have taken the request.
    """

    refused: Mapping[ReplicaKey, str] = field(default_factory=dict)
    unanswered: Mapping[ReplicaKey, str] = field(default_factory=dict)

    @property
    def failed(self) -> dict[ReplicaKey, str]:
        """All of them."""
        return {**self.refused, **self.unanswered}


class ClusterControl(Protocol):
    """A running cluster that a plan is carried out on; see ``live_control.LiveClusterControl``.

    Every change may be made twice with the same effect as once, because after a crash it is.
    """

    def read(self) -> RunSnapshot:
        """Return the state of the cluster now."""
        ...

    def refresh(self, topics: Collection[str]) -> None:
        """Let the next look read these topics again, whatever is known of them."""
        ...

    def read_logs(self, brokers: Collection[int], names: Collection[TopicPartition] | None) -> LogDirsReading:
        """Return the log directories of brokers with the logs of some partitions, or of all if None."""
        ...

    def append_entries(self, entries: Mapping[ThrottledList, Collection[Entry]]) -> None:
        """Append entries to throttled replica lists, and wait until they are in force."""
        ...

    def subtract_entries(self, entries: Mapping[ThrottledList, Collection[Entry]]) -> None:
        """Remove entries as far as they are listed, and delete lists that are empty then."""
        ...

    def set_rates(self, rates: Mapping[BrokerRate, int | None]) -> Mapping[int, str]:
        """Set or clear brokers' own rates, wait until they are in force, and return by broker why that failed."""
        ...

    def reassign(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None], change_factor: bool
    ) -> Mapping[TopicPartition, str]:
        """Submit reassignments, or cancel those with target None; return by partition why it was refused."""
        ...

    def place(self, directories: Mapping[ReplicaKey, str]) -> PlaceAnswers:
        """Request the log directories of replicas, those that do not exist yet too; return why some may not be there.

        The directory that a replica is in ends its copy to another one.
        """
        ...

    def elect(self, names: Collection[TopicPartition], on_step: Callable[[str], None]) -> Mapping[TopicPartition, str]:
        """Elect preferred leaders in batches; return by partition why its election was left out."""
        ...


class JournalStore(Protocol):
    """The journal of changes; see ``streaming.tables.journal.ActionJournal``."""

    def append(self, rows: Sequence[JournalRow]) -> None:
        """Append rows, durable when this returns."""
        ...


@dataclass(frozen=True)
class RunPolicy:
    """How a plan is run.

    Attributes:
        throttle_bytes_per_s: rate that each broker of a batch has at least; None: batches are not throttled.
        auto_up_to_bytes_per_s: highest rate to which the run itself raises a throttle that has become short; None: it
            raises none.
        throttles: margin and capacity of recommended throttles.
        blocked_reason: returns why no batch may begin now; None if one may.
        late_reason: returns why no batch may begin now that takes so many seconds; None if one may. It is not asked
            about batches whose time is unknown. None: no batch is too late.
        window_end: returns when the window ends in which batches begin now; None if they begin outside one.
        adopt: whether to run although reassignments of others are running.
        force: whether to run with a throttle that is known to be too low.
        cancel_on_stop: whether a stop takes back the current batch instead of waiting for its end.
        if_cleared: what to do when others clear the throttle while partitions move.
        settle_s: how long the cluster and the journal may fail before the run gives up, seconds.
        pause_s: pause between two batches, seconds.
        poll_s: interval between two looks while partitions move, seconds.
        log_dirs_bytes_per_s: rate that each broker has at least which moves replicas between its log directories;
            None: these moves are not throttled.
        command: command that continues the run after a crash, for the journal; empty if unknown.
        numbers: numbers of its batches.
        stopped_by: returns why the run is stopped, once its event is set.
    """

    throttle_bytes_per_s: int | None
    auto_up_to_bytes_per_s: int | None = None
    throttles: ThrottlePolicy = field(default_factory=ThrottlePolicy)
    blocked_reason: Callable[[RunSnapshot], str | None] = lambda snapshot: None
    late_reason: Callable[[RunSnapshot, float], str | None] | None = None
    window_end: Callable[[RunSnapshot], str | None] = lambda snapshot: None
    adopt: bool = False
    force: bool = False
    cancel_on_stop: bool = False
    if_cleared: IfCleared = IfCleared.RESTORE
    settle_s: float = 60.0
    pause_s: float = 10.0
    poll_s: float = 2.0
    log_dirs_bytes_per_s: int | None = None
    command: str = ""
    numbers: BatchNumbers = field(default_factory=BatchNumbers)
    stopped_by: Callable[[], str] = lambda: STOPPED_BY_OPERATOR


@dataclass(frozen=True)
class RunOutput:
    """Where a run reports to.

    Attributes:
        note: gets the progress, which replaces the note before.
        line: gets what is to remain on the screen.
        raise_command: returns the command that raises the throttle of brokers to a rate.
        clean_command: command that removes what runs have left behind.
    """

    note: Callable[[str], None] = lambda text: None
    line: Callable[[str], None] = lambda text: None
    raise_command: RaiseCommand = lambda rate, brokers: "headroom throttle apply"
    clean_command: str = "headroom reassign clean --execute"
