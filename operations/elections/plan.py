"""Election plan and execution policy from the settings and the command's options."""

from __future__ import annotations

import time

from headroom.cluster.elections.executor import ExecutionPolicy
from headroom.cluster.elections.leadership import LeadershipSnapshot
from headroom.cluster.model import LeaderRebalanceConfig
from headroom.operations.elections.result import ElectionScope, PlannedElections
from headroom.planning.elections.limits import limits_of
from headroom.planning.elections.planner import plan_elections
from headroom.planning.elections.quiet_hours import DailyWindow, QuietPolicy
from headroom.schemas.config import ElectionSettings, Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text.amounts import rate_text


class ElectionPlanning:
    """Plans elections with the same settings and options each time.

    Args:
        settings: all settings.
        scope: partitions to which a plan is restricted.
    """

    def __init__(self, settings: Settings, scope: ElectionScope) -> None:
        self._settings = settings
        self._scope = scope
        self._limits = limits_of(settings.elections)
        self._topics = None if scope.topics is None else frozenset(scope.topics)
        self._brokers = None if scope.brokers is None else frozenset(scope.brokers)

    def plan(self, leadership: LeadershipSnapshot, config: str | None) -> PlannedElections:
        """Return the plan for a state of the cluster, with its inputs.

        Args:
            leadership: state of the cluster.
            config: settings file as given on the command line; the default one if None.

        Raises:
            HeadroomError: a requested topic, broker or partition does not exist.
        """
        self._require_existing(leadership)
        constraints = leadership.cluster_constraints(self._topics, self._brokers, self._scope.partitions)
        plan = plan_elections(leadership.partitions.values(), self._limits, constraints)
        thresholds = {
            balance.broker: self._threshold(leadership.balancing.get(balance.broker)) for balance in plan.before
        }
        return PlannedElections(self._settings, config, leadership, plan, thresholds, self._scope)

    def _threshold(self, balancing: LeaderRebalanceConfig | None) -> float:
        own = balancing.percentage if balancing is not None else None
        return (self._settings.alerts.leader_imbalance_percentage if own is None else own) / 100

    def policy(self, wait: bool) -> ExecutionPolicy:
        """Return the policy by which a plan is executed."""
        elections = self._settings.elections
        quiet = quiet_policy(elections)

        def blocked_reason(leadership: LeadershipSnapshot) -> str | None:
            return blocked_reason_of(elections, quiet, leadership.traffic.cluster_written, time.time())

        return ExecutionPolicy(self._limits, blocked_reason, wait, elections.settle_s, elections.pause_s)

    def _require_existing(self, leadership: LeadershipSnapshot) -> None:
        missing = sorted((self._topics or frozenset()) - {topic for topic, _ in leadership.partitions})
        if missing:
            raise HeadroomError(f"topic {missing[0]}", "is not in the cluster", "Check its spelling.")
        gone = sorted((self._scope.partitions or frozenset()) - leadership.partitions.keys())
        if gone:
            raise HeadroomError(str(gone[0]), "is not in the cluster", f"Correct {self._scope.file}.")
        known = leadership.alive | {partition.replicas[0] for partition in leadership.partitions.values()}
        unknown = sorted((self._brokers or frozenset()) - known)
        if unknown:
            there = ", ".join(map(str, sorted(known)))
            raise HeadroomError(f"broker {unknown[0]}", "is not in the cluster", f"Name others; there are: {there}.")


def quiet_policy(elections: ElectionSettings) -> QuietPolicy:
    """Return the conditions under which elections may run."""
    return QuietPolicy(DailyWindow.of(elections.window) if elections.window else None, elections.quiet_below)


def blocked_reason_of(
    elections: ElectionSettings, quiet: QuietPolicy, write_bytes_per_s: float | None, at_s: float
) -> str | None:
    """Return as text why elections may not run now; None if they may.

    Args:
        elections: section ``[elections]``, which has the conditions as written by the operator.
        quiet: the same conditions, parsed.
        write_bytes_per_s: write rate of producers to the whole cluster, in bytes per second; None if unknown.
        at_s: current time, in epoch seconds.
    """
    if quiet.allows(at_s, write_bytes_per_s):
        return None
    reasons = []
    if elections.window:
        reasons.append(f"it is not {elections.window} now (elections.window)")
    if elections.quiet_below is not None:
        rate = "an unknown rate" if write_bytes_per_s is None else rate_text(write_bytes_per_s)
        reasons.append(
            f"producers write {rate}, not less than {rate_text(elections.quiet_below)} (elections.quiet_below)"
        )
    return "; ".join(reasons)
