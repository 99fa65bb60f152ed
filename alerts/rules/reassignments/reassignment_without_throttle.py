"""Rule ``reassignment_without_throttle``: partitions move and nothing limits any of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headroom.alerts.evidence.evidence import Evidence, EvidenceCause
from headroom.alerts.finding import Finding
from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.alerts.rules.rule import Assessment, Rule, RuleInputs
from headroom.planning.throttles.effect import EXCEEDED_TEXT, NoEffect, far_above_text, none_limits, rates_text
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.keys import Role
from headroom.schemas.text.amounts import join_names, rate_text

_SUBJECT = "moves"


@dataclass(frozen=True, kw_only=True)
class UnthrottledMoveEvidence(Evidence):
    """Evidence on a move that no throttle limits; the broker is the one that needs the highest rate.

    Attributes:
        moving_partitions: number of partitions that move.
        observed_bytes_per_s: traffic that counts against the rate in force that is closest to it; None if no rate is
            set, or if it is not measured.
    """

    moving_partitions: int
    observed_bytes_per_s: float | None = None


@dataclass(frozen=True)
class _Why:
    """Why nothing limits a move.

    Attributes:
        cause: the reason; None if neither rates nor lists are set.
        text: the reason in words, with the rate in force and the observed one.
        status: a broker and role whose rate it is; None if no rate is set.
    """

    cause: EvidenceCause | None
    text: str
    status: ThrottleStatus | None = None


class ReassignmentWithoutThrottle(Rule):
    """Partitions move and nothing limits them: no throttled replica list names them, no broker has a rate, or the rates
    have no effect.
    """

    kind = AlertKind.REASSIGNMENT_WITHOUT_THROTTLE

    def evaluate(self, tick: RuleInputs) -> Assessment:
        """Return a finding if no throttle limits any copy of the move; an unknown verdict keeps the alert firing."""
        if tick.has_unknown_verdict:
            return Assessment(keep_firing={(self.kind, _SUBJECT)})
        free = [
            status
            for status in tick.statuses
            if status.load.free_replicas + status.load.limited_replicas and status.moving_partitions
        ]
        if not any(status.role is Role.LEADER for status in free):
            return Assessment()
        if not tick.has_limited_replicas:
            return Assessment([self._finding(free, _why_unlimited(free), tick, tick.settings.hold_s)])
        throttles = [throttle for s in tick.statuses if (throttle := s.observed_throttle) is not None]
        if not none_limits(throttles):
            return Assessment()
        # The observed rate covers a whole quota window, and copies begin and end slowly.
        return Assessment([self._finding(free, _why_without_effect(tick.statuses), tick, tick.settings.stalled_s)])

    def _finding(self, free: Sequence[ThrottleStatus], why: _Why, tick: RuleInputs, hold_s: float) -> Finding:
        count = sum(status.moving_partitions for status in free if status.role is Role.LEADER)
        need, worst = _greatest_need(free)
        takes = "" if worst is None else f"; to limit it, take more than {rate_text(need)}"
        load = None if why.status is None else why.status.load
        return Finding(
            kind=self.kind,
            subject=_SUBJECT,
            severity=Severity.INFO,
            summary=f"{count} partition(s) move without a throttle, as fast as brokers and network go{why.text}{takes}",
            evidence=UnthrottledMoveEvidence(
                broker_id=None if worst is None else worst.broker,
                throttle_bytes_per_s=None if load is None else load.throttle_bytes_per_s,
                required_bytes_per_s=need,
                moving_partitions=count,
                observed_bytes_per_s=None if load is None else load.used_bytes_per_s,
                cause=why.cause,
            ),
            recommendation=tick.recommender.no_throttle_change(f"nothing, unless it is too fast{_advice(need, worst)}"),
            hold_s=hold_s,
        )


def _why_unlimited(free: Sequence[ThrottleStatus]) -> _Why:
    """Return why no copy has both a list that names it and a rate."""
    rated = [status for status in free if status.load.throttle_bytes_per_s is not None]
    # As after --cancel of another move, which clears the rates of all brokers.
    has_lists = any(status.load.limited_replicas for status in free)
    if rated:
        names = (
            "names what moves" if not has_lists else "names what moves there, and the brokers that lists name have none"
        )
        limit = "limits" if len(rated) == 1 else "limit"
        text = f": {_rates_text(rated)} {limit} nothing, because no throttled replica list {names}"
        return _Why(EvidenceCause.NOT_LISTED, text, max(rated, key=_use_bytes_per_s))
    if has_lists:
        text = ": throttled replica lists name them, but no broker of theirs has a rate"
        return _Why(EvidenceCause.NO_RATE, text)
    return _Why(None, "")


def _why_without_effect(statuses: Sequence[ThrottleStatus]) -> _Why:
    """Return why the rates of listed copies limit none of them."""
    limited = [status for status in statuses if status.observed_throttle is not None]
    exceeded = [s for s in limited if (t := s.observed_throttle) is not None and t.no_effect is NoEffect.EXCEEDED]
    # The rate that is the least above what is observed says the least that can be said of all.
    nearest = min(
        exceeded or limited, key=lambda status: (status.load.throttle_bytes_per_s or 0.0) / _use_bytes_per_s(status)
    )
    rate = nearest.load.throttle_bytes_per_s or 0.0
    why = EXCEEDED_TEXT if exceeded else far_above_text(rate, _use_bytes_per_s(nearest))
    cause = EvidenceCause.EXCEEDED if exceeded else EvidenceCause.FAR_ABOVE
    return _Why(cause, f": {_rates_text([nearest])}: {why}", nearest)


def _use_bytes_per_s(status: ThrottleStatus) -> float:
    return status.load.used_bytes_per_s or 0.0


def _rates_text(rated: Sequence[ThrottleStatus]) -> str:
    """Return the brokers and roles with a rate, and the rate in force and observed where most is observed."""
    most = max(rated, key=_use_bytes_per_s)
    names = join_names([status.subject for status in rated])
    is_default = most.throttle_source == "default"
    rate = most.load.throttle_bytes_per_s or 0.0
    return f"{names} ({rates_text(rate, most.load.used_bytes_per_s, is_default)})"


def _greatest_need(free: Sequence[ThrottleStatus]) -> tuple[float | None, ThrottleStatus | None]:
    """Return the rate that a throttle must exceed, bytes/s, and who needs it; None if any need is unknown."""
    needs = [(need, status) for status in free if (need := _need(status)) is not None]
    return max(needs, key=lambda need: need[0]) if len(needs) == len(free) else (None, None)


def _need(status: ThrottleStatus) -> float | None:
    """Return what a rate of a broker and role must exceed, bytes/s; None if unknown."""
    moving, listed = status.moving_bytes_per_s, status.load.lasting_required_bytes_per_s
    # Lists that are there already may name partitions that do not move.
    return None if moving is None or listed is None else max(moving, listed)


def _advice(need: float | None, worst: ThrottleStatus | None) -> str:
    if worst is None:
        return "; what a throttle would have to exceed is not known"
    does = "sends" if worst.role is Role.LEADER else "receives"
    return f": a throttle must exceed {rate_text(need)}, what broker {worst.broker} {does}"
