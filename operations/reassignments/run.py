"""A run of a plan: what it would change, and its execution."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from types import TracebackType

from headroom.alerts.recommendations.commands import headroom_reassign_clean
from headroom.cluster.live.live_control import LiveClusterControl
from headroom.cluster.reassignment.execution.control import (
    STOPPED_BY_OPERATOR,
    IfCleared,
    RaiseCommand,
    RunOutput,
    RunPolicy,
)
from headroom.cluster.reassignment.execution.executor import ReassignmentExecutor, RunOutcome
from headroom.operations.journal.session import RunSession, require_this_host
from headroom.operations.progress import OnText, ProgressReceiver
from headroom.operations.reassignments.plan_files import whole_plan
from headroom.operations.reassignments.run_plan import PlannedRun, RunRates, planned_run
from headroom.planning.elections.quiet_hours import DailyWindow, QuietPolicy
from headroom.planning.reassignments.plan import BatchNumbers, ReassignmentPlan, Target, plan_part
from headroom.planning.reassignments.run.changes import replicas_before
from headroom.planning.reassignments.run.conditions import partitions_text, require_only_run
from headroom.planning.reassignments.run.directories import named_partitions
from headroom.planning.reassignments.run.record import RunState
from headroom.planning.reassignments.run.snapshot import RunSnapshot, cluster_state_of_run
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text.amounts import duration_text, rate_text

_ESTIMATE_AGAIN = "Estimate the plan again: headroom plan."


@dataclass(frozen=True)
class RunRequest:
    """How a plan is to be run.

    Attributes:
        rates: rates of the throttles.
        auto_up_to_bytes_per_s: highest rate to which the run raises its throttle; None: it raises none.
        adopt: whether to run beside reassignments of others.
        force: whether to run with a throttle that is too low, or to take over a run of another machine.
        cancel_on_stop: whether a stop takes back the current batch.
        if_cleared: what to do when others clear the throttle while partitions move.
        skip_missing: whether partitions of the plan that do not exist are left out.
        config: settings file that recommended commands name; the default one if None.
        topic_ids: ids that topics of the plan are to have, for a rollback; partitions of others are left out.
        numbers: numbers of its batches.
        later: target replicas of batches that come after the plan; partitions that have them are left out.
    """

    rates: RunRates
    auto_up_to_bytes_per_s: int | None = None
    adopt: bool = False
    force: bool = False
    cancel_on_stop: bool = False
    if_cleared: IfCleared = IfCleared.RESTORE
    skip_missing: bool = False
    config: str | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    numbers: BatchNumbers = field(default_factory=BatchNumbers)
    later: frozenset[Target] = frozenset()


@dataclass(frozen=True)
class RunResult:
    """Result of an execution.

    Attributes:
        outcome: what became of the batches; None if there was nothing to do, or the run ended with an error.
        error: why not every partition is at its target with nothing left behind; None if every one is.
    """

    outcome: RunOutcome | None = None
    error: HeadroomError | None = None


class PlanRunner:
    """Plans and executes the run of some batches on a cluster.

    Args:
        settings: all settings.
        command: command as the journal names it.
        batches: the plan, in parts.
        request: how it is to be run.

    Raises:
        HeadroomError: the journal cannot be read.
    """

    def __init__(
        self, settings: Settings, command: str, batches: Sequence[ReassignmentPlan], request: RunRequest
    ) -> None:
        self._settings = settings
        self._session = RunSession(settings, command)
        self._batches = batches
        self._plan = whole_plan(batches)
        self._request = request
        self._clean = headroom_reassign_clean((), request.config)
        topics = {assignment.name.topic for assignment in self._plan}
        # Without a throttle too where a batch waits for a low write rate: an unknown one would never be low enough.
        measured = request.rates != RunRates(None) or settings.reassign.quiet_below is not None
        self._connection = LiveClusterControl(settings, topics, measured, named_partitions(self._plan))
        self.cluster = self._session.cluster

    def __enter__(self) -> PlanRunner:
        """Connect to the cluster.

        Raises:
            HeadroomError: no broker could be reached.
        """
        self._control = self._connection.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the connections."""
        self._connection.__exit__(kind, error, at)

    def alone(self, on_note: OnText = lambda text: None) -> AbstractContextManager[None]:
        """Keep other processes from changing runs of this cluster until the block ends; see ``RunSession.alone``."""
        return self._session.alone(on_note)

    def plan_run(self, fingerprint: str | None, to_execute: bool) -> PlannedRun:
        """Return what the run changes, by the cluster as it is now.

        Args:
            fingerprint: fingerprint that the plan must have; None: any.
            to_execute: whether it is executed next. Then no other run may be unfinished.

        Raises:
            HeadroomError: the plan does not fit the cluster, or another run is unfinished.
        """
        snapshot = self._control.read()
        of_plan = self._plan.fingerprint(snapshot.topic_ids)
        record = self._session.resumable(of_plan) or self._session.journal().record
        topics = {name.topic for name in self._plan.by_name}
        present = {topic: snapshot.topic_ids[topic] for topic in topics if topic in snapshot.topic_ids}
        # A topic that is made again until the first step is another one, too.
        topic_ids = {**present, **self._request.topic_ids, **record.topic_ids}
        record = replace(record, interrupted=self._session.orders().interrupted, topic_ids=topic_ids)
        actual = self._plan.fingerprint(snapshot.topic_ids, replicas_before(self._plan, snapshot, record))
        if fingerprint is not None and plan_part(fingerprint) != of_plan:
            rule = f"is {fingerprint}, but that of the plan and its topics is {actual}: it is not what was estimated"
            raise HeadroomError("--fingerprint", rule, _ESTIMATE_AGAIN)
        if to_execute:
            # First, because its moves would be reasons to refuse the plan.
            require_only_run(self._session.records, record.run_id, self._clean)
        # All logs, because they show which directories cannot share a volume.
        logs = self._control.read_logs(sorted(snapshot.alive), None).brokers
        state = cluster_state_of_run(snapshot, logs)
        request, batches = self._request, self._without_passed(snapshot)
        planned = planned_run(
            batches, snapshot, state, record, actual, request.rates, request.adopt, request.skip_missing
        )
        planned = replace(planned, numbers=request.numbers, throttles=_throttle_policy(self._settings))
        # One of an earlier version is that of the plan alone. What changes nothing may be repeated.
        if fingerprint not in (None, of_plan, actual) and not planned.empty:
            rule = f"is {fingerprint}, but that of the plan is {actual} now: replicas have changed since the estimate"
            raise HeadroomError("--fingerprint", rule, _ESTIMATE_AGAIN)
        if to_execute:
            require_this_host(record, self._request.force)
        return planned

    def _without_passed(self, snapshot: RunSnapshot) -> Sequence[ReassignmentPlan]:
        """Return the batches without the partitions that a later batch has taken further, or does now."""
        later = self._request.later
        if not later:
            return self._batches
        replicas = {name: partition.target for name, partition in snapshot.partitions.items()}
        return [batch.without_passed(later, replicas) for batch in self._batches]

    def execute(
        self,
        planned: PlannedRun,
        again: str,
        stop: threading.Event,
        progress: ProgressReceiver,
        raise_command: RaiseCommand,
    ) -> RunResult:
        """Run the batches.

        Args:
            planned: what the run changes.
            again: command that continues the run, for errors and the journal.
            stop: ends the run after the current batch.
            progress: gets the steps.
            raise_command: returns the command that raises the throttle of some brokers.
        """
        journal = self._session.journal(planned.record)
        lost: list[str] = []

        def on_lost(text: str) -> None:
            lost.append(text)
            progress.print_line(f"Stopping: {text}")

        self._session.stop_if_lost(stop, on_lost)
        policy = run_policy(self._settings, self._request, again)
        policy = replace(policy, stopped_by=lambda: lost[0] if lost else STOPPED_BY_OPERATOR)
        output = RunOutput(progress.note, progress.print_line, raise_command, self._clean)
        with progress.step(f"Run {journal.record.run_id}"):
            executor = ReassignmentExecutor(
                self._control, journal, planned.batches, planned.fingerprint, policy, stop, output
            )
            try:
                outcome = executor.run()
            except HeadroomError as error:
                if journal.record.leaves_behind:
                    error = HeadroomError(error.subject, error.rule, f"{error.remedy} To go on: {again}")
                return RunResult(None, error)
        return RunResult(outcome, _error_of(outcome, again, self._clean))


def run_policy(settings: Settings, request: RunRequest, again: str) -> RunPolicy:
    """Return the policy of a run by the settings.

    Args:
        settings: all settings.
        request: how the plan is to be run.
        again: command that continues the run.
    """
    reassign = settings.reassign
    quiet = QuietPolicy(DailyWindow.of(reassign.window) if reassign.window else None, reassign.quiet_below)

    def blocked_reason(snapshot: RunSnapshot) -> str | None:
        written = snapshot.cluster_write_bytes_per_s
        if quiet.allows(time.time(), written):
            return None
        reasons = [f"it is not {reassign.window} now (reassign.window)"] * bool(reassign.window)
        if reassign.quiet_below is not None:
            limit = rate_text(reassign.quiet_below)
            reasons.append(f"producers write {rate_text(written)}, not less than {limit} (reassign.quiet_below)")
        return "; ".join(reasons)

    def window_end(snapshot: RunSnapshot) -> str | None:
        now_s, window = time.time(), quiet.window
        if window is None or not window.contains(now_s) or quiet.is_quiet(snapshot.cluster_write_bytes_per_s):
            return None
        return f"{reassign.window} ends in {duration_text(window.left_s(now_s))} (reassign.window)"

    def late_reason(snapshot: RunSnapshot, lasts_s: float) -> str | None:
        """Batches begin in the window; one that is shorter than the window ends in it too."""
        ends, window = window_end(snapshot), quiet.window
        if ends is None or window is None or not window.ends_too_early(time.time(), lasts_s):
            return None
        return f"it takes about {duration_text(lasts_s)}, and {ends}"

    return RunPolicy(
        throttle_bytes_per_s=request.rates.throttle_bytes_per_s,
        auto_up_to_bytes_per_s=request.auto_up_to_bytes_per_s,
        throttles=_throttle_policy(settings),
        blocked_reason=blocked_reason,
        late_reason=None if quiet.window is None else late_reason,
        window_end=window_end,
        adopt=request.adopt,
        force=request.force,
        cancel_on_stop=request.cancel_on_stop,
        if_cleared=request.if_cleared,
        settle_s=reassign.settle_s,
        pause_s=reassign.pause_s,
        log_dirs_bytes_per_s=request.rates.log_dirs_bytes_per_s,
        command=again,
        numbers=request.numbers,
    )


def _throttle_policy(settings: Settings) -> ThrottlePolicy:
    return ThrottlePolicy(settings.alerts.margin_ratio, None, settings.cluster.replication_capacity)


def is_finished(planned: PlannedRun) -> bool:
    """Return whether there is nothing to do: every partition is at its target, and no run or election of it is left."""
    record = planned.record
    ended = record.state is not RunState.UNFINISHED and not record.elections_failed
    return planned.empty and ended and not planned.to_elect


def _error_of(outcome: RunOutcome, again: str, clean: str) -> HeadroomError | None:
    subject = f"run {outcome.record.run_id}"
    if outcome.stopped is not None:
        return HeadroomError(subject, f"ended early: {outcome.stopped}", f"To go on: {again}")
    if outcome.refused:
        rule = f"{len(outcome.refused)} partitions are not at their target"
        return HeadroomError(subject, rule, f"See the reasons above, then run it again: {again}")
    if outcome.unelected:
        reasons = "; ".join(sorted(set(outcome.unelected.values())))
        rule = f"preferred leaders of {partitions_text(outcome.unelected)} were not elected: {reasons}"
        return HeadroomError(subject, rule, f"To try again: {again}")
    if outcome.record.leaves_behind:
        rule = "some of its throttle is still set"
        return HeadroomError(subject, rule, f"When the brokers are up: {clean}")
    return None
