"""Rule ``reassignment_without_throttle``: partitions move and nothing limits any of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headroom.alerts.evidence.evidence import Evidence
from headroom.alerts.finding import Finding
from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.alerts.rules.rule import Assessment, Rule, RuleInputs
from headroom.schemas.alerts import AlertKind, Role, Severity
from headroom.schemas.text.amounts import rate_text

_SUBJECT = "moves"


@dataclass(frozen=True, kw_only=True)
class UnthrottledMoveEvidence(Evidence):
    """Evidence on a move that no throttle limits; the broker is the one that needs the highest rate.

    Attributes:
        moving_partitions: number of partitions that move.
    """

    moving_partitions: int


class ReassignmentWithoutThrottle(Rule):
    """Partitions move and nothing limits them: no throttled replica list names them, or no broker has a rate."""

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
        if tick.has_limited_replicas or not any(status.role is Role.LEADER for status in free):
            return Assessment()
        return Assessment([self._finding(free, tick)])

    def _finding(self, free: Sequence[ThrottleStatus], tick: RuleInputs) -> Finding:
        count = sum(status.moving_partitions for status in free if status.role is Role.LEADER)
        need, worst = _greatest_need(free)
        takes = "" if worst is None else f"; to limit it, take more than {rate_text(need)}"
        # As after --cancel of another move, which clears the rates of all brokers.
        has_lists = any(status.load.limited_replicas for status in free)
        why = ": throttled replica lists name them, but no broker of theirs has a rate" if has_lists else ""
        return Finding(
            kind=self.kind,
            subject=_SUBJECT,
            severity=Severity.INFO,
            summary=f"{count} partition(s) move without a throttle, as fast as brokers and network go{why}{takes}",
            evidence=UnthrottledMoveEvidence(
                broker_id=None if worst is None else worst.broker, required_bytes_per_s=need, moving_partitions=count
            ),
            recommendation=tick.recommender.no_throttle_change(f"nothing, unless it is too fast{_advice(need, worst)}"),
            hold_s=tick.settings.hold_s,
        )


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
