"""A plan with its batches, and what each of them would change now: complete before anything is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from headroom.operations.reassignments.plan_files import whole_plan
from headroom.planning.log_dirs.duration import DirectoryEstimate, directory_estimates
from headroom.planning.quotas.load import ThrottleLoad
from headroom.planning.reassignments.changes import plan_changes
from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.planning.reassignments.directory_moves import directory_moves
from headroom.planning.reassignments.plan import BatchNumbers, ReassignmentPlan
from headroom.planning.reassignments.run.changes import BatchChanges, batch_changes, broker_roles_of
from headroom.planning.reassignments.run.conditions import electable_leads, foreign_moves, partitions_text
from headroom.planning.reassignments.run.journal import rate_subject
from headroom.planning.reassignments.run.loads import loads_of_batch, required_bytes_per_s, slow_text
from headroom.planning.reassignments.run.orders_first import (
    orders_first,
    require_present_orders,
    with_leads_given_up,
    without_passed_orders,
)
from headroom.planning.reassignments.run.record import RecordedRun, RunState
from headroom.planning.reassignments.run.snapshot import RunSnapshot
from headroom.planning.reassignments.validation import require_feasible, require_room, room_notes, waiting_notes
from headroom.planning.throttles.rate_options import is_low
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import BrokerRole, LogDirsRate, TopicPartition
from headroom.schemas.text.amounts import join_names, rate_text
from headroom.schemas.text.names import broker_names

# Each check lets a whole fetch through, of 1 MB by default (Kafka 4.3.1, ReplicaAlterLogDirsThread).
_LEAST_LOG_DIRS_BYTES_PER_S = 100_000
_NAMED = 5


@dataclass(frozen=True)
class RunRates:
    """Rates of the throttles of a run, bytes per second.

    Attributes:
        throttle_bytes_per_s: rate of the reassignments; None: no throttle.
        log_dirs_bytes_per_s: rate of the moves between log directories; None: no throttle.
    """

    throttle_bytes_per_s: int | None
    log_dirs_bytes_per_s: int | None = None


@dataclass(frozen=True)
class PlannedRun:
    """A run before it begins.

    Attributes:
        batches: the plan, in parts.
        changes: what each batch changes, by the cluster as it is now.
        snapshot: the cluster now.
        record: the run that goes on; without rows if it is a new one.
        fingerprint: fingerprint of the whole plan.
        rates: rates of the throttles.
        directories: moves between log directories of each batch, by broker.
        unchecked: what could not be checked of the plan, or depends on brokers that are down, in sentences.
        numbers: numbers of the batches.
        throttles: margin of recommended throttles.
    """

    batches: Sequence[ReassignmentPlan]
    changes: Sequence[BatchChanges]
    snapshot: RunSnapshot
    record: RecordedRun
    fingerprint: str
    rates: RunRates
    directories: Sequence[Sequence[DirectoryEstimate]] = ()
    unchecked: Sequence[str] = ()
    numbers: BatchNumbers = field(default_factory=BatchNumbers)
    throttles: ThrottlePolicy = field(default_factory=ThrottlePolicy)

    @property
    def throttle_bytes_per_s(self) -> int | None:
        """Return the rate of the reassignments, bytes per second; None: no throttle."""
        return self.rates.throttle_bytes_per_s

    @property
    def resumes(self) -> bool:
        """Whether an earlier run of the same plan goes on."""
        return self.record.rows > 0

    @property
    def empty(self) -> bool:
        """Whether every partition has its target replicas and log directories already."""
        return not any(changes.moves for changes in self.changes)

    @property
    def to_elect(self) -> list[TopicPartition]:
        """Return the partitions with their target replicas that the first of these does not lead, although it could."""
        return electable_leads(self.batches, self.snapshot, self.record)

    def required_bytes_per_s(self, changes: BatchChanges) -> float | None:
        """Return the rate that the throttle of a batch has to exceed; None if write rates are unknown."""
        limited = self.limiting_loads(changes)
        if any(load.required_bytes_per_s is None for load in limited):
            return None
        return max((required_bytes_per_s(load) for load in limited), default=0.0)

    def limiting_loads(self, changes: BatchChanges) -> list[ThrottleLoad]:
        """Return the load of every broker and role whose throttle limits replicas during a batch.

        Leads that are given up before the copies count on the brokers that get them.
        """
        loads = loads_of_batch(self._with_leads_given_up, changes.moves, changes.rates)
        return [load for load in loads if load.limited_replicas]

    @cached_property
    def _with_leads_given_up(self) -> RunSnapshot:
        return with_leads_given_up(self.batches, self.snapshot)

    @cached_property
    def _higher_rates(self) -> dict[BrokerRole, int]:
        """Return the rates above the throttle that are in force on brokers of the run and stay, bytes per second."""
        throttle = self.throttle_bytes_per_s
        higher: dict[BrokerRole, int] = {}
        for changes in self.changes if throttle is not None else ():
            for name in broker_roles_of(changes.moves) - changes.rates.keys():
                now = self.snapshot.rates.get(name)
                if now is not None and (now.in_force or 0) > (throttle or 0):
                    higher[name] = now.in_force or 0
        return higher

    def notes(self) -> list[str]:
        """Return what the operator should know before the run, in sentences."""
        notes = []
        moves = [move for changes in self.changes for move in changes.moves.values()]
        copies = any(set(move.after).difference(move.before) for move in moves)
        if self.throttle_bytes_per_s is None and copies:
            notes.append("Without --throttle the partitions move as fast as brokers and network allow.")
        elif copies and self.throttle_bytes_per_s is not None and is_low(self.throttle_bytes_per_s):
            notes.append("Below 1 MB/s Kafka enforces a throttle inaccurately.")
        if self._higher_rates:
            notes.append(_higher_note(self._higher_rates))
        if any(moves.rate_bytes_per_s is None for batch in self.directories for moves in batch):
            notes.append(
                "Without --log-dirs-throttle replicas move between log directories as fast as the disks allow."
            )
        if self.throttle_bytes_per_s is not None and any(self.required_bytes_per_s(c) is None for c in self.changes):
            notes.append("Write rates are unknown, so whether the throttle is enough is not checked.")
        notes += self._notes_on_slow_throttles()
        rate = self.rates.log_dirs_bytes_per_s
        if rate is not None and rate < _LEAST_LOG_DIRS_BYTES_PER_S:
            notes.append("Below 0.1 MB/s Kafka does not keep the rate of moves between log directories.")
        notes += self.unchecked
        foreign = foreign_moves(self.snapshot, self.record)
        if foreign:
            notes.append(f"Reassignments that are not of this run are running: {partitions_text(foreign)}.")
        unknown = {name.broker for changes in self.changes for name in changes.unknown_rates}
        if unknown:
            notes.append(
                f"{broker_names(sorted(unknown))}: throttle rates are unknown. No batch begins that needs them there."
            )
        missing = {name for changes in self.changes for name in changes.missing}
        remade = missing & self.snapshot.partitions.keys()
        if missing - remade:
            notes.append(f"Partitions of the plan that do not exist: {partitions_text(missing - remade)}.")
        if remade:
            notes.append(
                f"Left out, because their topics were deleted, and others of the same names made: "
                f"{partitions_text(remade)}."
            )
        if self.record.elections_failed:
            notes.append("Preferred leader elections of this run failed. They are tried again.")
        elif self.empty and self.to_elect:
            notes.append(f"Preferred leaders are elected, because others lead: {partitions_text(self.to_elect)}.")
        return notes

    def _notes_on_slow_throttles(self) -> list[str]:
        if self.throttle_bytes_per_s is None:
            return []
        text = slow_text((load for c in self.changes for load in self.limiting_loads(c)), self.throttles)
        return [] if text is None else [text]


def _higher_note(rates: Mapping[BrokerRole, int]) -> str:
    names = sorted(rates, key=lambda name: (-rates[name], name))
    shown = join_names([f"{rate_subject(name)} {rate_text(rates[name])}" for name in names], most=_NAMED)
    return f"Rates above the throttle are in force and stay, so copies may be faster there: {shown}."


def planned_run(
    batches: Sequence[ReassignmentPlan],
    snapshot: RunSnapshot,
    state: ClusterState,
    record: RecordedRun,
    fingerprint: str,
    options: RunRates,
    adopt: bool = False,
    skip_missing: bool = False,
) -> PlannedRun:
    """Return what a run of the batches changes, by the cluster as it is now.

    A run that goes on is not checked again: what it has submitted needs its care, whatever has become of the rest. The
    brokers and the controller refuse what is no longer possible, replica by replica.

    Args:
        batches: the plan, in parts.
        snapshot: the cluster now.
        state: the same, with sizes and log directories as far as known.
        record: the run that goes on; without rows if it is a new one.
        fingerprint: fingerprint of the whole plan.
        options: rates of the throttles.
        adopt: whether partitions of the plan may be moving already.
        skip_missing: whether partitions of the plan that do not exist are left out, unless none exists.

    Raises:
        HeadroomError: a new run cannot be carried out, for the reasons for which ``headroom plan`` refuses a plan.
    """
    unchecked: list[str] = []
    if record.state is not RunState.UNFINISHED:
        existing = [_existing(batch, snapshot, record) for batch in batches] if skip_missing else batches
        _require_own_topics(existing, batches, snapshot)
        checked = existing if any(existing) else batches
        plan = whole_plan(checked)
        may_move = plan.by_name.keys() if adopt else record.submitted.keys()
        require_feasible(plan, state, "the plan", may_move)
        require_present_orders(checked, snapshot.partitions)
        unchecked += require_room(checked, state, "the plan")
        unchecked += [*waiting_notes(plan, state), *room_notes(plan_changes(plan, state), state)]
    remaining = [
        without_passed_orders(batch, again, snapshot.partitions)
        for batch, again in zip(batches, orders_first(batches), strict=True)
    ]
    changes = [
        batch_changes(batch, snapshot, record, options.throttle_bytes_per_s, options.log_dirs_bytes_per_s)
        for batch in remaining
    ]
    directories = [_directories(batch, snapshot, state, options) for batch in batches]
    return PlannedRun(batches, changes, snapshot, record, fingerprint, options, directories, unchecked)


def _existing(batch: ReassignmentPlan, snapshot: RunSnapshot, record: RecordedRun) -> ReassignmentPlan:
    ids = snapshot.topic_ids
    return ReassignmentPlan(
        tuple(a for a in batch if a.name in snapshot.partitions and not record.is_remade(a.name.topic, ids))
    )


def _require_own_topics(
    existing: Sequence[ReassignmentPlan], batches: Sequence[ReassignmentPlan], snapshot: RunSnapshot
) -> None:
    """Check that not all partitions that are left of a plan are of topics that were made again.

    Raises:
        HeadroomError: nothing else is left of it.
    """
    remade = [name for batch in batches for name in batch.by_name if name in snapshot.partitions]
    if not any(existing) and remade:
        rule = "is of another topic: its own was deleted, and one of its name made again"
        raise HeadroomError(partitions_text(remade), rule, "Nothing of the plan is left to move.")


def _directories(
    batch: ReassignmentPlan, snapshot: RunSnapshot, state: ClusterState, options: RunRates
) -> tuple[DirectoryEstimate, ...]:
    rates = {name.broker: rate.in_force for name, rate in snapshot.rates.items() if isinstance(name, LogDirsRate)}
    return directory_estimates(directory_moves(batch, state), rates, options.log_dirs_bytes_per_s)
