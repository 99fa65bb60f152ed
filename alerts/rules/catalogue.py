"""The list of rules, one for each alert kind, and their evaluation."""

from __future__ import annotations

from collections.abc import Sequence

from headroom.alerts.finding import Finding
from headroom.alerts.rules.balance.capacity_at_risk import CapacityAtRisk
from headroom.alerts.rules.balance.hot_broker import HotBroker
from headroom.alerts.rules.balance.load_out_of_band import LoadOutOfBand
from headroom.alerts.rules.balance.slow_broker import SlowBroker
from headroom.alerts.rules.leaders.leader_imbalance import LeaderImbalance
from headroom.alerts.rules.leaders.preferred_leader_unavailable import PreferredLeaderUnavailable
from headroom.alerts.rules.migration.migration_acks_at_risk import MigrationAcksAtRisk
from headroom.alerts.rules.migration.migration_mirror_behind import MigrationMirrorBehind
from headroom.alerts.rules.migration.migration_origin_removable import MigrationOriginRemovable
from headroom.alerts.rules.migration.migration_reader_overtaken import MigrationReaderOvertaken
from headroom.alerts.rules.migration.migration_records_lost import MigrationRecordsLost
from headroom.alerts.rules.migration.migration_rule import MigrationRule
from headroom.alerts.rules.migration.migration_switch_off_plan import MigrationSwitchOffPlan
from headroom.alerts.rules.migration.migration_unrouted_writes import MigrationUnroutedWrites
from headroom.alerts.rules.no_data import NoData
from headroom.alerts.rules.reassignments.eta_slipping import EtaSlipping
from headroom.alerts.rules.reassignments.reassignment_stalled import ReassignmentStalled
from headroom.alerts.rules.reassignments.reassignment_without_throttle import ReassignmentWithoutThrottle
from headroom.alerts.rules.replicas.isr_shrink_during_move import IsrShrinkDuringMove
from headroom.alerts.rules.replicas.under_replicated import UnderReplicated
from headroom.alerts.rules.rule import Assessment, Rule, RuleInputs
from headroom.alerts.rules.store_unwritable import StoreUnwritable
from headroom.alerts.rules.throttles.leader_unthrottled import LeaderUnthrottled
from headroom.alerts.rules.throttles.throttle_at_risk import ThrottleAtRisk
from headroom.alerts.rules.throttles.throttle_below_inbound import ThrottleBelowInbound
from headroom.alerts.rules.throttles.throttle_below_leader_write import ThrottleBelowLeaderWrite
from headroom.alerts.rules.throttles.throttle_left_behind import ThrottleLeftBehind
from headroom.schemas.alerts import AlertKind
from headroom.schemas.keys import Role

# In the order of their findings: of several firing alerts of one cause, the first lists the findings that join.
RULES: tuple[Rule, ...] = (
    ThrottleBelowLeaderWrite(),
    ThrottleBelowInbound(),
    ReassignmentStalled(),
    IsrShrinkDuringMove(),
    UnderReplicated(),
    MigrationRecordsLost(),
    MigrationReaderOvertaken(),
    MigrationUnroutedWrites(),
    MigrationSwitchOffPlan(),
    MigrationAcksAtRisk(),
    MigrationMirrorBehind(),
    MigrationOriginRemovable(),
    NoData(),
    LeaderUnthrottled(),
    ReassignmentWithoutThrottle(),
    ThrottleAtRisk(),
    ThrottleLeftBehind(),
    LeaderImbalance(),
    PreferredLeaderUnavailable(),
    HotBroker(),
    LoadOutOfBand(),
    SlowBroker(),
    CapacityAtRisk(),
    StoreUnwritable(),
    EtaSlipping(),
)
# Evaluated after the others, because it takes time to judge thousands of migrating partitions.
MIGRATION_RULES = tuple(rule for rule in RULES if isinstance(rule, MigrationRule))
OTHER_RULES = tuple(rule for rule in RULES if not isinstance(rule, MigrationRule))
# Findings of these pairs are in the order of the tick's rows, whichever of the two kinds each has.
_PAIRED = {
    AlertKind.THROTTLE_BELOW_INBOUND: AlertKind.THROTTLE_BELOW_LEADER_WRITE,
    AlertKind.UNDER_REPLICATED: AlertKind.ISR_SHRINK_DURING_MOVE,
}


def evaluate_rules(tick: RuleInputs, rules: Sequence[Rule] = RULES) -> Assessment:
    """Evaluate rules for one tick of one cluster.

    Args:
        tick: the tick.
        rules: all rules, or some of them.
    """
    assessment = Assessment.union(rule.evaluate(tick) for rule in rules)
    _sort_pairs(assessment.findings, tick)
    return assessment


def evaluate_missing_ticks(inputs: RuleInputs) -> Assessment:
    """Evaluate all rules for a cluster whose ticks are missing."""
    return Assessment.union(rule.evaluate_missing_ticks(inputs) for rule in RULES)


def _sort_pairs(findings: list[Finding], tick: RuleInputs) -> None:
    """Sort the findings by rule, and those of a pair of kinds by the row of their broker and role."""
    if not any(finding.kind in _PAIRED for finding in findings):
        return
    rules = {rule.kind: place for place, rule in enumerate(RULES)}
    rows: dict[tuple[int | None, Role], int] = {s.load.broker_role: row for row, s in enumerate(tick.statuses)}

    def place(finding: Finding) -> tuple[int, int]:
        kind, evidence = _PAIRED.get(finding.kind, finding.kind), finding.evidence
        in_pair = kind in _PAIRED.values()
        row = rows[evidence.broker_id, evidence.role or Role.FOLLOWER] if in_pair else 0
        return rules[kind], row

    findings.sort(key=place)
