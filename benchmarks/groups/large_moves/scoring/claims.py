"""Claims of alerts about causes that occur in several scenes."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.groups.large_moves.scoring.truth import (
    Check,
    Claim,
    Matcher,
    PrintedAlert,
    applies_always,
    near,
    within,
)
from benchmarks.groups.large_moves.stage.groups import Load
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.keys import Role

# Effects of a dead broker; alerts about any of them have the same cause.
_DEAD_BROKER_KINDS = (
    AlertKind.REASSIGNMENT_STALLED,
    AlertKind.ISR_SHRINK_DURING_MOVE,
    AlertKind.UNDER_REPLICATED,
    AlertKind.NO_DATA,
    AlertKind.PREFERRED_LEADER_UNAVAILABLE,
)
# Write rates are measured over 10 s, in records of 10 kB.
_RATE_TOLERANCE = 0.15
_EXACT = 0.001
# Bursts into the empty window of a new throttle are some 10 MB per pair of brokers; the lag grows meanwhile.
_LEAST_LEFT, _MOST_LEFT = 0.6, 1.3
# The advice has a margin of 1.2 on a measured rate.
_LEAST_ADVISED, _MOST_ADVISED = 1.0, 1.2 * (1 + _RATE_TOLERANCE)


def broker_claims(broker: int, applies: Matcher = applies_always, stalled: Matcher | None = None) -> list[Claim]:
    """Return the claims about a broker that is down, or whose replicas are out of sync.

    Args:
        broker: broker id.
        applies: whether an announcement is about this cause.
        stalled: the same for stalled moves; ``applies`` if None.
    """
    subject = rf"broker {broker}( as (leader|destination))?"
    of_moves = {AlertKind.REASSIGNMENT_STALLED: stalled or applies}
    return [Claim(kind, subject, of_moves.get(kind, applies)) for kind in _DEAD_BROKER_KINDS]


def throttle_claims(role: Role, brokers: Sequence[int], check: Check) -> list[Claim]:
    """Return the claims about a throttle below the load of leaders, or of destinations."""
    is_leader = role is Role.LEADER
    kind = AlertKind.THROTTLE_BELOW_LEADER_WRITE if is_leader else AlertKind.THROTTLE_BELOW_INBOUND
    either = "|".join(map(str, brokers))
    return [Claim(kind, rf"broker ({either}) as {'leader' if is_leader else 'destination'}", check=check)]


def leaderless_claims(destination: int) -> list[Claim]:
    """Return the claims about a moving partition without a leader."""

    def check(announcement: PrintedAlert) -> str | None:
        cause = announcement.evidence.get("cause")
        return None if cause == "no_leader" else f"the cause is {cause}, not no_leader"

    return [Claim(AlertKind.REASSIGNMENT_STALLED, rf"broker {destination} as destination", check=check)]


def number_checks(
    throttle_bytes_per_s: float, load: Load, to_copy_bytes: float, enough_bytes_per_s: float
) -> list[Check]:
    """Return checks of the numbers of a low throttle against those computed by hand.

    Args:
        throttle_bytes_per_s: rate in force for the broker and role.
        load: load of the broker and role.
        to_copy_bytes: bytes that its new replicas have to copy when the move begins.
        enough_bytes_per_s: greatest required rate of all brokers and roles; the advice has to exceed it.
    """
    in_sync, required = load.in_sync_bytes_per_s, load.required_bytes_per_s
    return [
        near("throttle_bytes_per_s", throttle_bytes_per_s, _EXACT),
        near("required_bytes_per_s", required, _RATE_TOLERANCE),
        # A replica that the first burst completed counts as in sync.
        within("in_sync_bytes_per_s", in_sync * (1 - _RATE_TOLERANCE), in_sync + required * _RATE_TOLERANCE),
        _unless_unknown(within("remaining_bytes", to_copy_bytes * _LEAST_LEFT, to_copy_bytes * _MOST_LEFT)),
        _advises(enough_bytes_per_s * _LEAST_ADVISED, enough_bytes_per_s * _MOST_ADVISED),
    ]


def severity_of(throttle_bytes_per_s: float, load: Load) -> Severity:
    """Return the right severity of a low throttle: critical if new replicas get nothing."""
    return Severity.CRITICAL if throttle_bytes_per_s <= load.in_sync_bytes_per_s else Severity.WARNING


def _unless_unknown(check: Check) -> Check:
    """Return a check of the remaining bytes that accepts an unknown number."""

    def checked(announcement: PrintedAlert) -> str | None:
        return None if announcement.evidence.get("remaining_bytes") is None else check(announcement)

    return checked


def _advises(least: float, most: float) -> Check:
    """Return a check of the recommended throttle, if there is one."""

    def check(announcement: PrintedAlert) -> str | None:
        advised = announcement.recommendation.get("throttle_bytes_per_s")
        if advised is None or least <= advised <= most:
            return None
        return f"the recommended throttle is {advised:.0f}, not {least:.0f} to {most:.0f}"

    return check
