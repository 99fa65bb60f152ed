"""Rules ``leader_imbalance`` (an election helps) and ``preferred_leader_unavailable`` (the broker cannot lead)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alerts.inputs.leader_balance import LeaderBalance
from alerts.inputs.throttle_status import ThrottleStatus
from alerts.recommendations.recommender import Recommender
from alerts.rules.evidence import EMPTY_EVIDENCE
from alerts.rules.reassignments.reassignment_stalled import NOT_LEADING, broker_cause, broker_causes
from alerts.text.formatting import format_rate, percent
from schemas.alerts import AlertKind, Finding, Role, Severity
from schemas.config import AlertSettings

KINDS = (AlertKind.LEADER_IMBALANCE, AlertKind.PREFERRED_LEADER_UNAVAILABLE)
# With auto.leader.rebalance.enable, Kafka gets this many of its own checks before the alert fires.
_CHECKS = 2


def leader_imbalance_findings(
    balances: Sequence[LeaderBalance], settings: AlertSettings, recommender: Recommender
) -> list[Finding]:
    """Return a finding for each broker that could get back more than the threshold by an election.

    Moving partitions, and partitions without an electable preferred replica, do not count: an election cannot help.

    Args:
        balances: every broker that is the preferred leader of a partition.
        settings: section ``[alerts]``.
        recommender: makes recommendations.
    """
    return [
        Finding(
            kind=AlertKind.LEADER_IMBALANCE,
            subject=_subject(state),
            severity=Severity.WARNING if _write_rate_deviates(state) else Severity.INFO,
            summary=_imbalance_summary(state),
            evidence=_evidence(state),
            recommendation=recommender.elect_preferred(),
            hold_s=_pending_for_s(state, settings),
            # One group, because one command elects for all brokers.
            cause="leader imbalance",
            weight=float(state.balance.electable_now),
        )
        for state in balances
        if state.is_out_of_balance
    ]


def preferred_leader_unavailable_findings(
    balances: Sequence[LeaderBalance],
    statuses: Sequence[ThrottleStatus],
    settings: AlertSettings,
    recommender: Recommender,
) -> list[Finding]:
    """Return a finding for each broker that is down or out of sync while others lead its preferred partitions.

    Args:
        balances: every broker that is the preferred leader of a partition.
        statuses: every broker and role of a tick; they are newer than the balances and show whether it is over.
        settings: section ``[alerts]``.
        recommender: makes recommendations.
    """
    back = {s.broker for s in statuses if s.role is Role.FOLLOWER and s.alive and not s.lost_replicas}
    return [
        Finding(
            kind=AlertKind.PREFERRED_LEADER_UNAVAILABLE,
            subject=_subject(state),
            severity=Severity.WARNING,
            summary=_unavailable_summary(state),
            evidence=_evidence(state),
            recommendation=recommender.restore_or_inspect_broker(
                state.broker, "not_fetching" if state.alive else "broker_down"
            ),
            hold_s=settings.imbalance_s,
            cause=broker_cause(state.broker, state.alive),
            continues=broker_causes(state.broker, state.alive),
            precedence=NOT_LEADING,
            affected=state.unavailable,
        )
        for state in balances
        if state.unavailable and state.broker not in back
    ]


def keep_firing(balances: Sequence[LeaderBalance], settings: AlertSettings) -> set[tuple[AlertKind, str]]:
    """Return the imbalance subjects that keep firing: within the exit margin, or currently not electable."""
    return {
        (AlertKind.LEADER_IMBALANCE, _subject(state))
        for state in balances
        if state.missing_leadership_ratio > state.threshold_ratio / settings.exit_ratio
    }


def _subject(state: LeaderBalance) -> str:
    return f"broker {state.broker}"


def _write_rate_deviates(state: LeaderBalance) -> bool:
    """Return whether the broker's write rate deviates by more than the threshold; false if unknown."""
    # Counts alone do no harm: brokers may lead each other's partitions at the same write rate.
    written, preferred = state.balance.write_bytes_per_s, state.balance.preferred_write_bytes_per_s
    if written is None or preferred is None:
        return False
    return abs(preferred - written) > state.threshold_ratio * preferred


def _pending_for_s(state: LeaderBalance, settings: AlertSettings) -> float:
    checks_s = _CHECKS * (state.check_interval_s or 0) if state.auto_leader_rebalance else 0
    return max(settings.imbalance_s, checks_s)


def _imbalance_summary(state: LeaderBalance) -> str:
    balance = state.balance
    written, preferred = balance.write_bytes_per_s, balance.preferred_write_bytes_per_s
    load = (
        f"{format_rate(written)} are written to it, and {format_rate(preferred)} would be if all preferred leaders led"
    )
    if written is None or preferred is None:
        load = "what is written to them is not known"
    return (
        f"Broker {state.broker} does not lead {balance.electable_now} of the {balance.preferred_partitions} partitions "
        f"that prefer it, and could ({percent(state.electable_ratio)}, threshold {percent(state.threshold_ratio)}); "
        f"{load}"
    )


def _unavailable_summary(state: LeaderBalance) -> str:
    why = "is out of sync" if state.alive else "is down"
    return (
        f"Broker {state.broker} {why}: it cannot lead {state.unavailable} of the "
        f"{state.balance.preferred_partitions} partitions that prefer it"
    )


def _evidence(state: LeaderBalance) -> dict[str, Any]:
    balance = state.balance
    return {
        **EMPTY_EVIDENCE,
        "broker_id": state.broker,
        "alive": state.alive,
        "preferred_partitions": balance.preferred_partitions,
        "non_preferred_partitions": balance.non_preferred_partitions,
        "electable_now": balance.electable_now,
        "waiting_for_move": balance.waiting_for_move,
        "unavailable": state.unavailable,
        "leaderless": state.leaderless,
        "leader_partitions": state.leader_partitions,
        "imbalance_ratio": balance.imbalance_ratio,
        "electable_ratio": state.electable_ratio,
        "threshold_ratio": state.threshold_ratio,
        "threshold_source": state.threshold_source,
        "write_bytes_per_s": balance.write_bytes_per_s,
        "preferred_write_bytes_per_s": balance.preferred_write_bytes_per_s,
        "read_bytes_per_s": state.read_bytes_per_s,
        "preferred_read_bytes_per_s": state.preferred_read_bytes_per_s,
        "auto_leader_rebalance": state.auto_leader_rebalance,
        "check_interval_s": state.check_interval_s,
        "counted_tick_ms": state.tick_ms,
    }
