"""What a rule is given, what it returns, and the base class of all rules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from headroom.alerts.finding import Finding, Subject
from headroom.alerts.inputs.broker_load import BalanceInputs
from headroom.alerts.inputs.leader_balance import LeaderBalance
from headroom.alerts.inputs.migrations import MigrationInputs
from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.alerts.recommendations.recommendation import Recommendation
from headroom.alerts.recommendations.recommender import Recommender
from headroom.alerts.rules.no_ticks import MissingTicks
from headroom.alerts.rules.reassignments.eta_tracker import EtaTracker
from headroom.planning.reassignments.run.owners import ThrottleOwner
from headroom.schemas.alerts import AlertKind, Verdict
from headroom.schemas.config import AlertSettings


@dataclass(frozen=True)
class RuleInputs:
    """Everything that rules evaluate: one tick of one cluster, or the fact that its ticks are missing.

    Attributes:
        statuses: every broker and role of the tick; empty if ticks are missing.
        settings: section ``[alerts]``.
        recommender: makes recommendations and their commands.
        balances: every broker that is the preferred leader of a partition, of this tick or a recent one; None if the
            last count is stale.
        tick_ms: time of the tick, epoch milliseconds.
        eta_tracker: expectations of the cluster's earlier ticks.
        active: subjects of the cluster's pending and firing alerts.
        firing: those of them that fire.
        active_resources: what pending and firing alerts on brokers are about: resources of those on their loads, the
            migrations of those on throttles that their switches make too low.
        store_trouble: location that cannot be written, and the reason; None if the store is writable, and for clusters
            other than the first.
        is_backlog: whether incoming ticks are old ones that are catching up.
        missing: state of the cluster if its ticks are missing; None for a tick.
        owners: commands that set the throttles that are left behind, by subject in the journal of changes; empty as
            long as they are unknown.
        loads: loads of brokers, what a lost broker would add to them, and the last proposal.
        migrations: migrations to the cluster; None if the tick has no data on them.
    """

    statuses: Sequence[ThrottleStatus]
    settings: AlertSettings
    recommender: Recommender
    balances: Sequence[LeaderBalance] | None = ()
    tick_ms: int = 0
    eta_tracker: EtaTracker = field(default_factory=EtaTracker)
    active: Collection[Subject] = ()
    store_trouble: str | None = None
    is_backlog: bool = False
    missing: MissingTicks | None = None
    owners: Mapping[str, ThrottleOwner] = field(default_factory=dict)
    loads: BalanceInputs = field(default_factory=BalanceInputs)
    firing: Collection[Subject] = ()
    active_resources: Mapping[Subject, Collection[str]] = field(default_factory=dict)
    migrations: MigrationInputs | None = field(default_factory=MigrationInputs)

    # Hundreds of brokers are gone through once per tick, not once per rule.
    @cached_property
    def too_low(self) -> list[ThrottleStatus]:
        """Return the statuses whose throttle is too low for the move to finish."""
        return [status for status in self.statuses if status.too_low]

    @cached_property
    def below_required(self) -> list[ThrottleStatus]:
        """Return the statuses whose throttle is below the required rate."""
        return [status for status in self.statuses if status.below_required]

    @cached_property
    def has_unknown_verdict(self) -> bool:
        """Return whether the verdict of any broker and role is unknown."""
        return any(status.verdict is Verdict.NO_DATA for status in self.statuses)

    @cached_property
    def dead_brokers(self) -> frozenset[int]:
        """Return the brokers that are down."""
        return frozenset(status.broker for status in self.statuses if not status.alive)

    @cached_property
    def has_moves(self) -> bool:
        """Return whether any partition is being reassigned."""
        return any(status.moving_partitions for status in self.statuses)

    @cached_property
    def has_limited_replicas(self) -> bool:
        """Return whether a throttle limits any out-of-sync replica: a list names it, and the broker has a rate."""
        loads = [status.load for status in self.statuses]
        return any(load.limited_replicas and load.throttle_bytes_per_s is not None for load in loads)

    @cached_property
    def raise_throttle(self) -> Recommendation:
        """Return the one recommendation that all alerts on throttles below the required rate share."""
        return self.recommender.raise_throttle(self.statuses)

    def active_of(self, kind: AlertKind) -> set[Subject]:
        """Return the subjects of the pending and firing alerts of a kind."""
        return {subject for subject in self.active if subject[0] is kind}


@dataclass(frozen=True)
class Assessment:
    """Result of one rule, or of all rules, for one tick.

    Attributes:
        findings: conditions that hold.
        keep_firing: subjects within the exit margin or unknown: their alerts neither fire nor resolve.
    """

    findings: list[Finding] = field(default_factory=list)
    keep_firing: set[Subject] = field(default_factory=set)

    @staticmethod
    def union(assessments: Iterable[Assessment]) -> Assessment:
        """Return the results of several rules as one; findings keep their order."""
        every = Assessment()
        for one in assessments:
            every.findings.extend(one.findings)
            every.keep_firing.update(one.keep_firing)
        return every


class Rule(ABC):
    """One alert kind: its condition, and everything that its finding contains.

    A subject without a finding is clear, and its alert resolves, unless the rule keeps it firing. Rules have no state.

    Attributes:
        kind: kind of the alert.
    """

    kind: ClassVar[AlertKind]

    @abstractmethod
    def evaluate(self, tick: RuleInputs) -> Assessment:
        """Return the findings of one tick, and the subjects whose alerts must not resolve."""

    def evaluate_missing_ticks(self, inputs: RuleInputs) -> Assessment:
        """Return the assessment while ticks are missing: all alerts keep firing, because nothing is known."""
        return Assessment(keep_firing=inputs.active_of(self.kind))
