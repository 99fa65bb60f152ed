"""Recommendations: the throttle of ``planning.recommend`` with its commands, ready for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from alerts import commands
from alerts.sides import PartitionEvidence, SideState
from alerts.units import rate
from planning.duration import Earlier
from planning.recommend import Advice, Wish, advise
from schemas.findings import Verdict


@dataclass(frozen=True)
class Recommender:
    """Makes recommendations.

    Attributes:
        wish: margin, deadline and capacity.
        bootstrap_servers: what stands in Kafka's commands.
        config: the configuration file that stands in Headroom's; None: none.
        earlier: ticks before, youngest first: age in seconds and demands.
    """

    wish: Wish
    bootstrap_servers: str
    config: str | None = None
    earlier: Earlier = ()

    def raise_throttle(self, sides: Sequence[SideState]) -> dict[str, Any]:
        """Return the one throttle that is enough on every broker of the move, or why none would be."""
        advice = advise([side.demand for side in sides], self.wish, self.earlier)
        if advice is None:
            return self.nothing("no replica is held back by a throttle")
        if advice.unknown:
            who = ", ".join(f"broker {broker} as {role}" for broker, role in advice.unknown)
            return self.nothing(f"what {who} needs is unknown, and too low a throttle would pass for enough")
        if advice.throttle_bytes_per_s is None:
            return self._too_much(sides, advice)
        return self._raise(sides, advice, advice.throttle_bytes_per_s)

    def _raise(self, sides: Sequence[SideState], advice: Advice, throttle: int) -> dict[str, Any]:
        moving = _moving(sides)
        # Every replica of a moving partition may come to lead it or to fetch it.
        brokers = sorted({replica for p in moving for replica in p.replicas})
        note = "the capacity of a broker does not allow to finish as wished" if advice.misses_deadline else None
        return {
            "action": "raise_throttle",
            "throttle_bytes_per_s": throttle,
            "smallest_bytes_per_s": advice.smallest_bytes_per_s,
            "per_broker": [_need(side, throttle) for side in sides if side.demand.limited_replicas],
            "finish_s": advice.finish_s,
            "reason": note,
            "commands": [
                commands.headroom_apply(throttle, brokers, self.config),
                *(commands.kafka_configs(throttle, broker, self.bootstrap_servers) for broker in brokers),
                commands.kafka_reassign(throttle, moving, self.bootstrap_servers),
            ],
        }

    def _too_much(self, sides: Sequence[SideState], advice: Advice) -> dict[str, Any]:
        return {
            "action": "reduce_move",
            "throttle_bytes_per_s": None,
            "smallest_bytes_per_s": advice.smallest_bytes_per_s,
            "per_broker": [_need(side, None) for side in sides if side.demand.limited_replicas],
            "finish_s": None,
            "reason": (
                f"no throttle will do: more than {rate(advice.smallest_bytes_per_s)} is needed and a broker carries "
                f"{rate(self.wish.capacity_bytes_per_s)}; cancel, and move fewer partitions at a time"
            ),
            "commands": [commands.kafka_cancel(_moving(sides), self.bootstrap_servers)],
        }

    def look_at(self, side: SideState) -> dict[str, Any]:
        """Return what to look at when a destination copies nothing and no throttle explains it."""
        if side.verdict is Verdict.NO_DATA:
            return self.nothing(f"bring broker {side.broker} back, or cancel the move", "restore_broker")
        return self.nothing(f"look at the disk and the log of broker {side.broker}", "inspect_broker")

    def nothing(self, reason: str, action: str = "none") -> dict[str, Any]:
        """Return a recommendation without a number, with the reason."""
        return {
            "action": action,
            "throttle_bytes_per_s": None,
            "smallest_bytes_per_s": None,
            "per_broker": [],
            "finish_s": None,
            "reason": reason,
            "commands": [],
        }


def _moving(sides: Sequence[SideState]) -> list[PartitionEvidence]:
    found = {(p.topic, p.partition): p for side in sides for p in side.partitions if p.moving}
    return [found[key] for key in sorted(found)]


def _need(side: SideState, throttle: int | None) -> dict[str, Any]:
    return {
        "broker_id": side.broker,
        "role": side.role.value,
        "verdict": side.verdict.value,
        "throttle_bytes_per_s": side.demand.throttle_bytes_per_s,
        "required_bytes_per_s": side.demand.required_bytes_per_s,
        "recommended_bytes_per_s": throttle,
    }
