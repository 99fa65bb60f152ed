"""Rule ``throttle_at_risk``: the throttle would be too low after the next leader switch."""

from __future__ import annotations

import math
from dataclasses import dataclass

from headroom.alerts.evidence.throttle_evidence import ThrottleEvidence
from headroom.alerts.finding import Finding
from headroom.alerts.inputs.throttle_status import LeadershipRisk, ThrottleStatus
from headroom.alerts.recommendations.recommendation import Recommendation
from headroom.alerts.rules.rule import Assessment, Rule, RuleInputs
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.keys import Role
from headroom.schemas.text.amounts import rate_text


@dataclass(frozen=True)
class Takeover:
    """A partition that a broker would lead after a leader switch.

    Attributes:
        topic: topic.
        partition: partition.
        leader: current leader; None if there is none.
    """

    topic: str
    partition: int
    leader: int | None


@dataclass(frozen=True, kw_only=True)
class TakeoverEvidence(ThrottleEvidence):
    """Evidence on a throttle that would be too low after a leader switch.

    Attributes:
        takeover: partition whose leader switch adds most traffic.
        takeover_bytes_per_s: traffic that it adds.
        required_then_bytes_per_s: rate that the throttle would have to exceed.
    """

    takeover: Takeover
    takeover_bytes_per_s: float
    required_then_bytes_per_s: float


class ThrottleAtRisk(Rule):
    """A broker's throttle would be too low if it led one more moving partition."""

    kind = AlertKind.THROTTLE_AT_RISK

    def evaluate(self, tick: RuleInputs) -> Assessment:
        """Return a finding for each broker whose throttle would be too low if it led one more moving partition.

        Every in-sync replica may become the leader of its partition. There is no finding while a throttle is too low,
        which matters more, or a required rate is unknown: alerts then keep firing.
        """
        leaders = {status.broker: status for status in tick.statuses if status.role is Role.LEADER}
        if tick.too_low or tick.has_unknown_verdict:
            return Assessment(keep_firing={(self.kind, leader.subject) for leader in leaders.values()})
        risks = [
            (leader, status.takeover, need)
            for status in tick.statuses
            if status.takeover is not None
            and (leader := leaders.get(status.broker)) is not None
            and (need := _exceeding_rate(leader, status.takeover)) is not None
        ]
        if not risks:
            return Assessment()
        recommendation = tick.recommender.raise_to(
            tick.statuses,
            max(need for _, _, need in risks),
            "not urgent: the move goes on as long as no leader switches",
        )
        return Assessment([self._finding(*risk, recommendation, tick.settings.hold_s) for risk in risks])

    def _finding(
        self,
        leader: ThrottleStatus,
        takeover: LeadershipRisk,
        need_bytes_per_s: float,
        recommendation: Recommendation,
        hold_s: float,
    ) -> Finding:
        throttle = leader.load.throttle_bytes_per_s or 0.0
        more = math.ceil(need_bytes_per_s - throttle)
        return Finding(
            kind=self.kind,
            subject=leader.subject,
            severity=Severity.INFO,
            summary=(
                f"If broker {leader.broker} came to lead {takeover.topic}-{takeover.partition}, its throttle of "
                f"{rate_text(throttle)} would be {rate_text(more)} too low: "
                f"it would have to send {rate_text(need_bytes_per_s)}"
            ),
            evidence=TakeoverEvidence(
                **vars(ThrottleEvidence.of(leader)),
                takeover=Takeover(takeover.topic, takeover.partition, takeover.leader),
                takeover_bytes_per_s=takeover.bytes_per_s,
                required_then_bytes_per_s=need_bytes_per_s,
            ),
            recommendation=recommendation,
            hold_s=hold_s,
            cause="throttle at risk",
            weight=need_bytes_per_s - throttle,
        )


def _exceeding_rate(leader: ThrottleStatus, takeover: LeadershipRisk) -> float | None:
    """Return the rate that the broker would have to send, bytes/s; None if its throttle exceeds it or is unknown."""
    throttle, required = leader.load.throttle_bytes_per_s, leader.load.required_bytes_per_s
    if throttle is None or required is None or throttle > required + takeover.bytes_per_s:
        return None
    return required + takeover.bytes_per_s
