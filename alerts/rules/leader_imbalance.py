"""Brokers that lack the lead of what they are preferred to lead: those that an election puts right, and the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alerts.inputs.leader_balance import LeaderBalance
from alerts.inputs.throttle_status import ThrottleStatus
from alerts.recommendations.recommender import Recommender
from alerts.rules.evidence import NOTHING
from alerts.rules.reassignment_stalled import NO_LEAD, broker_cause, broker_causes
from alerts.text.formatting import format_rate, percent
from schemas.alerts import AlertKind, Finding, Role, Severity
from schemas.config import AlertSettings

KINDS = (AlertKind.LEADER_IMBALANCE, AlertKind.PREFERRED_LEADER_UNAVAILABLE)
# Brokers that balance by themselves have had their chance after so many of their checks.
_CHECKS = 2


def imbalanced(balances: Sequence[LeaderBalance], settings: AlertSettings, recommender: Recommender) -> list[Finding]:
    """Return a finding for each broker to which an election would give back more than the threshold.

    What moves, or could not be elected, does not count: nobody can do anything about it by an election.

    Args:
        balances: every broker that is preferred for anything.
        settings: section ``[alerts]``.
        recommender: makes recommendations.
    """
    return [
        Finding(
            kind=AlertKind.LEADER_IMBALANCE,
            subject=_subject(state),
            severity=Severity.WARNING if _carries_otherwise(state) else Severity.INFO,
            summary=_imbalance_summary(state),
            evidence=_evidence(state),
            recommendation=recommender.elect_preferred(),
            hold_s=_hold_s(state, settings),
            # One command elects for all of them.
            cause="leader imbalance",
            weight=float(state.balance.electable_now),
        )
        for state in balances
        if state.is_out_of_balance
    ]


def unavailable(
    balances: Sequence[LeaderBalance],
    sides: Sequence[ThrottleStatus],
    settings: AlertSettings,
    recommender: Recommender,
) -> list[Finding]:
    """Return a finding for each broker that is down, or out of sync, where it is preferred to lead and another does.

    Args:
        balances: every broker that is preferred for anything.
        sides: every broker and role of a tick; being younger, they know whether it is over.
        settings: section ``[alerts]``.
        recommender: makes recommendations.
    """
    back = {s.broker for s in sides if s.role is Role.FOLLOWER and s.alive and not s.lost_replicas}
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
            precedence=NO_LEAD,
            affected=state.unavailable,
        )
        for state in balances
        if state.unavailable and state.broker not in back
    ]


def keep_firing(balances: Sequence[LeaderBalance], settings: AlertSettings) -> set[tuple[AlertKind, str]]:
    """Return the imbalances that are neither wrong nor right: within the exit margin, or not electable just now."""
    return {
        (AlertKind.LEADER_IMBALANCE, _subject(state))
        for state in balances
        if state.lacking_ratio > state.threshold_ratio / settings.exit_ratio
    }


def _subject(state: LeaderBalance) -> str:
    return f"broker {state.broker}"


def _carries_otherwise(state: LeaderBalance) -> bool:
    """Return whether what producers write to its leaders is off by more than the threshold; unknown: not known to be.

    Counts alone do harm to nobody: brokers may have given each other leaders that weigh the same.
    """
    written, preferred = state.balance.write_bytes_per_s, state.balance.preferred_write_bytes_per_s
    if written is None or preferred is None:
        return False
    return abs(preferred - written) > state.threshold_ratio * preferred


def _hold_s(state: LeaderBalance, settings: AlertSettings) -> float:
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
        **NOTHING,
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
