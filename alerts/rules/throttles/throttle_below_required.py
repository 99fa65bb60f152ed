"""What the rules on a throttle below the required rate share: all but the role that the throttle limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from headroom.alerts.evidence.throttle_evidence import ThrottleEvidence
from headroom.alerts.finding import Finding
from headroom.alerts.grouping import THROTTLE
from headroom.alerts.inputs.throttle_status import LeaderSwitch, ThrottleStatus
from headroom.alerts.recommendations.recommendation import Advice, Recommendation
from headroom.alerts.rules.rule import Assessment, Rule, RuleInputs
from headroom.alerts.rules.throttles.leftovers import clear_throttle
from headroom.schemas.alerts import Severity, Verdict
from headroom.schemas.keys import Role
from headroom.schemas.text.amounts import join_names, rate_text

_SEVERITY = {Verdict.STARVED: Severity.CRITICAL, Verdict.LOSING: Severity.WARNING, Verdict.SLOW: Severity.INFO}
_CONSEQUENCE = {
    Verdict.STARVED: "get nothing",
    Verdict.LOSING: "fall further behind",
    Verdict.SLOW: "catch up only through whole responses, which no quota truncates",
}


class ThrottleBelowRequired(Rule):
    """A throttle is below the rate that its replicas require to catch up.

    Attributes:
        role: role that the throttle limits.
        requires: what the broker does at the required rate, for the summary.
        precedence: order within the cause; of several throttles that are too low, a leader's alert comes first.
    """

    role: ClassVar[Role]
    requires: ClassVar[str]
    precedence: ClassVar[int]

    def evaluate(self, tick: RuleInputs) -> Assessment:
        """Return a finding for each throttle of the role that is too low; if there is none, for each slow one.

        An alert keeps firing if its throttle is unknown, within the exit margin, or slow while another is too low. The
        return of dead brokers counts: the alert ends above the rate that its advice is made from
        (``ThrottlePolicy.is_enough``).
        """
        own = [status for status in tick.statuses if status.role is self.role]
        # A slow throttle matters less than one under which the move never finishes.
        low = [status for status in tick.too_low or tick.below_required if status.role is self.role]
        # An alert that continues only because a broker is down, or the margin is small, says so and asks for the rest.
        # Neither raises a new alert.
        low += [s for s in own if (self.kind, s.subject) in tick.firing and _is_barely_enough(s, tick)]
        recommendation = _recommendation(tick) if low else Advice()
        return Assessment(
            [self._finding(status, tick, recommendation) for status in low],
            {(self.kind, status.subject) for status in own if _keeps_firing(status, tick)},
        )

    def _finding(self, status: ThrottleStatus, tick: RuleInputs, recommendation: Recommendation) -> Finding:
        switches, load = _causing_switches(status), status.load
        down = _down_brokers(status, tick)
        return Finding(
            kind=self.kind,
            subject=status.subject,
            severity=Severity.INFO if _exceeds_required(status) else _SEVERITY.get(status.verdict, Severity.WARNING),
            summary=self._summary(status, switches, down, tick),
            evidence=ThrottleEvidence.of(status, switches, down),
            recommendation=recommendation,
            hold_s=0.0 if switches and status.too_low else tick.settings.hold_s,
            # One leader switch affects several brokers, and one rate that is too low is usually set on all brokers.
            cause=f"switch from broker {switches[0].previous_leader}" if switches else THROTTLE,
            precedence=self.precedence,
            weight=(load.lasting_required_bytes_per_s or status.known_required_bytes_per_s)
            - (load.throttle_bytes_per_s or 0.0),
            # A lowered throttle, or traffic above the recommended rate, is news even while another alert is active.
            joins=False,
        )

    def _summary(
        self, status: ThrottleStatus, switches: Sequence[LeaderSwitch], down: Sequence[int], tick: RuleInputs
    ) -> str:
        load = status.load
        lasting = rate_text(load.lasting_required_bytes_per_s)
        if _is_enough_while_down(status):
            return (
                f"The throttle is enough only until {_back(down)}: {status.subject} is throttled to "
                f"{rate_text(load.throttle_bytes_per_s)}, but then {self.requires} {lasting}"
            )
        if _exceeds_required(status):
            later = f" once {_back(down)}" if load.down_required_bytes_per_s else ""
            enough = tick.recommender.policy.enough_bytes_per_s(
                load.lasting_required_bytes_per_s or 0.0, tick.settings.exit_ratio
            )
            return (
                f"The throttle is only just enough: {status.subject} is throttled to "
                f"{rate_text(load.throttle_bytes_per_s)}, and {self.requires} {lasting}{later}; the alert ends from "
                f"{rate_text(enough)} on"
            )
        moves = status.moving_partitions > 0
        operation, replicas = ("The move", "new replicas") if moves else ("Catching up", "replicas out of sync")
        ends = "takes long" if status.verdict is Verdict.SLOW else "will not finish"
        required = rate_text(load.required_bytes_per_s)
        if load.required_bytes_per_s is None:
            required = f"at least {rate_text(status.known_required_bytes_per_s)}"
        cause, later = "", ""
        if load.down_required_bytes_per_s and load.required_bytes_per_s is not None:
            later = f"; once {_back(down)}, {self.requires} {lasting}"
        if switches:
            names = [f"{name} ({s.previous_leader} to {status.broker})" for s in switches for name in s.names]
            cause = f" since the leader switch of {join_names(names, sum(s.partitions for s in switches))}"
        return (
            f"{operation} {ends}: {status.subject} is throttled to {rate_text(load.throttle_bytes_per_s)}, "
            f"but {self.requires} {required}{cause}; {replicas} {_CONSEQUENCE[status.verdict]}{later}"
        )


def _recommendation(tick: RuleInputs) -> Recommendation:
    if tick.has_moves:
        return tick.raise_throttle
    # A throttle left by a finished move slows down replicas that are out of sync for another reason.
    return clear_throttle(tick, "no reassignment is running: remove what one has left behind")


def _causing_switches(status: ThrottleStatus) -> list[LeaderSwitch]:
    """Return the recent leader switches that made the throttle too low, largest traffic first; may be empty."""
    throttle, required = status.load.throttle_bytes_per_s, status.load.required_bytes_per_s
    if status.role is not Role.LEADER or throttle is None or required is None or not status.switches:
        return []
    ordered = sorted(status.switches, key=lambda switch: switch.bytes_per_s, reverse=True)
    return ordered if throttle > required - sum(switch.bytes_per_s for switch in ordered) else []


def _keeps_firing(status: ThrottleStatus, tick: RuleInputs) -> bool:
    """Return whether the alert on a throttle that is not reported keeps firing."""
    if status.verdict is Verdict.NO_DATA:
        return True
    if status.verdict is Verdict.SLOW:
        # Slow throttles are reported only if no throttle is too low.
        return bool(tick.too_low)
    load = status.load
    if status.verdict is Verdict.IDLE and not load.down_required_bytes_per_s:
        # No replica fetches while its broker is down, which does not make the throttle sufficient.
        return status.down_replicas > 0
    if status.verdict not in (Verdict.CATCHING_UP, Verdict.IDLE) or load.throttle_bytes_per_s is None:
        return False
    return not tick.recommender.policy.is_enough(load, tick.settings.exit_ratio)


def _is_barely_enough(status: ThrottleStatus, tick: RuleInputs) -> bool:
    """Return whether a throttle is enough, but does not end its alert."""
    if not _exceeds_required(status):
        return _is_enough_while_down(status)
    return not tick.recommender.policy.is_enough(status.load, tick.settings.exit_ratio)


def _exceeds_required(status: ThrottleStatus) -> bool:
    """Return whether a throttle exceeds what is required, also once dead brokers are back."""
    throttle, lasting = status.load.throttle_bytes_per_s, status.load.lasting_required_bytes_per_s
    if status.verdict not in (Verdict.CATCHING_UP, Verdict.IDLE) or throttle is None or lasting is None:
        return False
    return status.load.needs_throttle and throttle > lasting


def _is_enough_while_down(status: ThrottleStatus) -> bool:
    """Return whether a throttle is enough only because replicas on dead brokers fetch nothing."""
    throttle, lasting = status.load.throttle_bytes_per_s, status.load.lasting_required_bytes_per_s
    if status.verdict not in (Verdict.CATCHING_UP, Verdict.IDLE) or throttle is None or lasting is None:
        return False
    return bool(status.load.down_required_bytes_per_s) and throttle <= lasting


def _down_brokers(status: ThrottleStatus, tick: RuleInputs) -> list[int]:
    """Return the dead brokers with followers of a leader; all dead ones if its truncated evidence names none."""
    if not status.load.down_required_bytes_per_s:
        return []
    replicas = {broker for p in status.partitions for broker in p.replicas}
    return sorted(tick.dead_brokers & replicas or tick.dead_brokers)


def _back(brokers: Sequence[int]) -> str:
    """Return that dead brokers have come back, in words."""
    if not brokers:
        return "its offline replicas are back"
    names = join_names([str(broker) for broker in brokers], most=10)
    return f"broker {names} is back" if len(brokers) == 1 else f"brokers {names} are back"
