"""Which elections are planned, and when they may run, by the settings and by what was asked for."""

from __future__ import annotations

import time
from collections.abc import Sequence

from cli.common.output import mb_per_s
from cli.common.quantities import parse_window
from cli.elections.view import ElectionView
from cluster.elections.executor import ExecutionPolicy
from cluster.elections.leadership import LeadershipSnapshot
from cluster.model import LeaderRebalanceConfig
from planning.elections.limits import limits_of
from planning.elections.planner import ElectionPlan, plan_elections
from planning.elections.quiet_hours import QuietPolicy
from schemas.config import ElectionSettings, Settings
from schemas.errors import HeadroomError


class ElectionPlanning:
    """Plans elections always in the same way.

    Args:
        settings: all settings.
        topics: only these; None: all.
        brokers: only partitions that prefer one of these; None: all.
    """

    def __init__(self, settings: Settings, topics: Sequence[str] | None, brokers: Sequence[int] | None) -> None:
        self._settings = settings
        self._limits = limits_of(settings.elections)
        self._topics = None if topics is None else frozenset(topics)
        self._brokers = None if brokers is None else frozenset(brokers)

    def plan(self, leadership: LeadershipSnapshot) -> ElectionPlan:
        """Return what to elect in a cluster."""
        around = leadership.cluster_constraints(self._topics, self._brokers)
        return plan_elections(leadership.partitions.values(), self._limits, around)

    def view(self, leadership: LeadershipSnapshot, config: str | None) -> ElectionView:
        """Return the plan for a cluster with what it was made from.

        Args:
            leadership: the cluster.
            config: configuration file as given; None: as found.

        Raises:
            HeadroomError: a topic or broker that was asked for is not there.
        """
        self._require_there(leadership)
        plan = self.plan(leadership)
        thresholds = {
            balance.broker: self._threshold(leadership.balancing.get(balance.broker)) for balance in plan.before
        }
        return ElectionView(self._settings, config, leadership, plan, thresholds)

    def _threshold(self, balancing: LeaderRebalanceConfig | None) -> float:
        own = balancing.percentage if balancing is not None else None
        return (self._settings.alerts.leader_imbalance_percentage if own is None else own) / 100

    def policy(self, wait: bool) -> ExecutionPolicy:
        """Return the policy on which a plan is carried out."""
        elections = self._settings.elections
        quiet = quiet_policy(elections)

        def blocked_reason(leadership: LeadershipSnapshot) -> str | None:
            return blocked_reason_of(elections, quiet, leadership.traffic.cluster_written, time.time())

        return ExecutionPolicy(self._limits, blocked_reason, wait, elections.settle_s, elections.pause_s)

    def _require_there(self, leadership: LeadershipSnapshot) -> None:
        missing = sorted((self._topics or frozenset()) - {topic for topic, _ in leadership.partitions})
        if missing:
            raise HeadroomError(f"topic {missing[0]}", "is not in the cluster", "See its spelling.")
        known = leadership.alive | {led.replicas[0] for led in leadership.partitions.values()}
        unknown = sorted((self._brokers or frozenset()) - known)
        if unknown:
            there = ", ".join(map(str, sorted(known)))
            raise HeadroomError(f"broker {unknown[0]}", "is not in the cluster", f"Name others; there are: {there}.")


def quiet_policy(elections: ElectionSettings) -> QuietPolicy:
    """Return when it is quiet enough for elections."""
    return QuietPolicy(parse_window(elections.window) if elections.window else None, elections.quiet_below)


def blocked_reason_of(
    elections: ElectionSettings, quiet: QuietPolicy, write_bytes_per_s: float | None, at_s: float
) -> str | None:
    """Return in words why it is not quiet enough for elections; None: it is.

    Args:
        elections: where the conditions were written.
        quiet: the conditions.
        write_bytes_per_s: what producers write to the whole cluster; None: unknown.
        at_s: now, epoch seconds.
    """
    if quiet.allows(at_s, write_bytes_per_s):
        return None
    said = []
    if elections.window:
        said.append(f"it is not {elections.window} now (elections.window)")
    if elections.quiet_below is not None:
        rate = "an unknown rate" if write_bytes_per_s is None else mb_per_s(write_bytes_per_s)
        said.append(f"producers write {rate}, not less than {mb_per_s(elections.quiet_below)} (elections.quiet_below)")
    return "; ".join(said)
