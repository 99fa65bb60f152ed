"""What the rules on a broker's out-of-sync replicas share: all but whether their partitions move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headroom.alerts.evidence.evidence import Evidence, EvidenceCause, OutOfSyncPartition
from headroom.alerts.finding import Finding
from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.alerts.rules.causes import NO_LEADER, BrokerPrecedence, broker_cause, broker_causes
from headroom.alerts.rules.rule import Assessment, Rule, RuleInputs
from headroom.schemas.alerts import Severity
from headroom.schemas.keys import Role
from headroom.schemas.text.amounts import join_names

_REASONS = {
    EvidenceCause.NO_LEADER: "has replicas without a leader",
    EvidenceCause.FALLEN_BEHIND: "has fallen behind",
    EvidenceCause.BROKER_DOWN: "is down",
}


@dataclass(frozen=True, kw_only=True)
class OutOfSyncEvidence(Evidence):
    """Evidence on a broker's out-of-sync replicas.

    Attributes:
        alive: whether the broker is registered with the cluster.
        lost_replicas: number of these replicas.
    """

    alive: bool
    lost_replicas: int


class OutOfSyncReplicas(Rule):
    """A broker has replicas that are out of the ISR, other than adding ones.

    Adding replicas are out of sync until they have copied everything, as planned.

    Attributes:
        moving: whether the rule is about partitions in a reassignment, or about the others.
        qualifier: what the partitions are, for the summary.
        precedence: order within the broker's findings.
    """

    moving: ClassVar[bool]
    qualifier: ClassVar[str]
    precedence: ClassVar[BrokerPrecedence]

    def evaluate(self, tick: RuleInputs) -> Assessment:
        """Return a finding for each broker with such replicas."""
        return Assessment(
            [
                self._finding(status, count, tick)
                for status in tick.statuses
                if status.role is Role.FOLLOWER and (count := self._count(status))
            ]
        )

    def _count(self, status: ThrottleStatus) -> int:
        moving = status.lost_moving_replicas
        return moving if self.moving else status.lost_replicas - moving

    def _finding(self, status: ThrottleStatus, count: int, tick: RuleInputs) -> Finding:
        lost = [one for one in status.lost if one.moving is self.moving]
        leaderless = status.alive and self._leaderless(status) == count
        cause = EvidenceCause.BROKER_DOWN
        if status.alive:
            cause = EvidenceCause.NO_LEADER if leaderless else EvidenceCause.FALLEN_BEHIND
        return Finding(
            kind=self.kind,
            subject=f"broker {status.broker}",
            severity=Severity.WARNING,
            summary=(
                f"Broker {status.broker} {_REASONS[cause]}: {count} of its replicas, {self.qualifier}"
                f"none of them a new one, out of the ISR ({join_names([one.name for one in lost], count)})"
            ),
            evidence=OutOfSyncEvidence(
                broker_id=status.broker,
                partitions=[OutOfSyncPartition(one.topic, one.partition, one.leader, one.moving) for one in lost],
                alive=status.alive,
                lost_replicas=count,
                cause=cause,
            ),
            recommendation=tick.recommender.restore_or_inspect_broker(
                status.broker, "no_leader" if leaderless else _remedy(status)
            ),
            hold_s=tick.settings.under_replicated_s,
            # The time without a leader is a pending time of its own; a restart that ends it is the same cause.
            hold_of=NO_LEADER if leaderless else "",
            cause=NO_LEADER if leaderless else broker_cause(status.broker, status.alive),
            continues=() if leaderless else broker_causes(status.broker, status.alive),
            precedence=self.precedence,
            affected=count,
        )

    def _leaderless(self, status: ThrottleStatus) -> int:
        """Return how many of the replicas have no leader."""
        every, moving = status.lost_leaderless_replicas, status.lost_leaderless_moving_replicas
        if every is not None and moving is not None:
            return moving if self.moving else every - moving
        # Rows of older versions have only a truncated list of names: the rest is assumed to have a leader.
        return sum(one.leader is None and one.moving is self.moving for one in status.lost)


def _remedy(status: ThrottleStatus) -> str:
    if status.alive:
        return "fallen_behind"
    return "being_replaced" if status.lost_leaving_replicas == status.lost_replicas else "broker_down"
