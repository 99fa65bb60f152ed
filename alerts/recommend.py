"""Recommendations: the throttle of ``planning.recommend`` with its commands, ready for JSON."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from alerts import commands, electing
from alerts.later import when_read
from alerts.sides import PartitionEvidence, SideState
from alerts.units import rate
from planning.duration import Earlier, finish_s
from planning.election_outline import ElectionOutline
from planning.recommend import Advice, Wish, advise

# Partitions that a command names one by one; for larger batches Headroom's own command writes files.
_MOST_NAMED = 50


@dataclass(frozen=True)
class Recommender:
    """Makes recommendations; those that take long to work out, when they are read.

    Attributes:
        wish: margin, deadline and capacity.
        bootstrap_servers: what stands in Kafka's commands.
        config: the configuration file that stands in Headroom's; None: none.
        earlier: ticks before, youngest first: age in seconds and demands.
        elections: the plan of preferred elections; None: there is none.
    """

    wish: Wish
    bootstrap_servers: str
    config: str | None = None
    earlier: Earlier = ()
    elections: ElectionOutline | None = None

    @when_read
    def raise_throttle(self, sides: Sequence[SideState]) -> Mapping[str, Any]:
        """Return the one throttle that is enough on every broker of the move, or why none would be."""
        advice = advise([side.demand for side in sides], self.wish, self.earlier)
        if advice is None:
            return self.nothing("no replica is held back by a throttle")
        if advice.unknown:
            who = ", ".join(f"broker {broker} as {role}" for broker, role in advice.unknown)
            return self.nothing(f"what {who} needs is unknown, and too low a throttle would pass for enough")
        if advice.throttle_bytes_per_s is None:
            return self._too_much(sides, advice)
        late = "the capacity of a broker does not allow to finish as wished" if advice.misses_deadline else None
        return self._raised(sides, advice.throttle_bytes_per_s, advice.smallest_bytes_per_s, late)

    def _raised(
        self, sides: Sequence[SideState], throttle: int, smallest_bytes_per_s: float | None, reason: str | None
    ) -> dict[str, Any]:
        # An alert that stands is compared by the throttle; the rest, above all the finish, only an event tells.
        return {
            "action": "raise_throttle",
            "throttle_bytes_per_s": throttle,
            "smallest_bytes_per_s": smallest_bytes_per_s,
            "per_broker": partial(_needs, sides, throttle),
            "finish_s": partial(self._finish_s, sides, throttle),
            "reason": reason,
            "commands": partial(self._raising, sides, throttle),
        }

    def _raising(self, sides: Sequence[SideState], throttle: int) -> list[str]:
        """Return the commands that raise the throttle of a move: Headroom's, or Kafka's broker by broker."""
        moving = _moving(sides)
        # Every replica of a moving partition may come to lead it or to fetch it.
        brokers = sorted({r for p in moving for r in p.replicas} | {s.broker for s in sides if s.moving_partitions})
        return [
            commands.headroom_apply(throttle, brokers, self.config),
            *(commands.kafka_configs(throttle, broker, self.bootstrap_servers) for broker in brokers),
            commands.kafka_reassign(throttle, moving, self.bootstrap_servers),
        ]

    def _finish_s(self, sides: Sequence[SideState], throttle: int) -> float | None:
        """Return the expected seconds from when a throttle is applied to the end; None: unknown, or none is limited."""
        limited = [side.demand for side in sides if side.demand.limited_replicas]
        return finish_s(limited, throttle, self.earlier) if limited else None

    def _too_much(self, sides: Sequence[SideState], advice: Advice) -> dict[str, Any]:
        return {
            "action": "reduce_move",
            "throttle_bytes_per_s": None,
            "smallest_bytes_per_s": advice.smallest_bytes_per_s,
            "per_broker": _needs(sides, None),
            "finish_s": None,
            "reason": (
                f"no throttle will do: more than {rate(advice.smallest_bytes_per_s)} is needed and a broker carries "
                f"{rate(self.wish.capacity_bytes_per_s)}; cancel, and move fewer partitions at a time"
            ),
            "commands": [commands.kafka_cancel(_moving(sides), self.bootstrap_servers)],
        }

    @when_read
    def raise_to(self, sides: Sequence[SideState], smallest_bytes_per_s: float, reason: str) -> Mapping[str, Any]:
        """Return the throttle that exceeds a rate by the margin, and what every side requires as it is.

        Args:
            sides: every broker and role of the tick; what they require is known.
            smallest_bytes_per_s: the rate that must be exceeded.
            reason: why, and how urgent it is.
        """
        limited = [side.demand for side in sides if side.demand.limited_replicas]
        smallest = max(smallest_bytes_per_s, *(demand.required_bytes_per_s or 0.0 for demand in limited), 0.0)
        throttle = self.wish.above(smallest)
        if throttle is None:
            carried = rate(self.wish.capacity_bytes_per_s)
            return self.nothing(f"{reason}; no throttle would do, for a broker carries {carried}")
        return self._raised(sides, throttle, smallest, reason)

    def list_leader(self, broker: int, partitions: Sequence[PartitionEvidence]) -> dict[str, Any]:
        """Return which entries a topic's leader throttled list lacks."""
        lacking: dict[str, list[str]] = defaultdict(list)
        for p in partitions:
            lacking[p.topic].append(f"{p.partition}:{broker}")
        entries = "; ".join(f"{','.join(found)} of topic {topic}" for topic, found in sorted(lacking.items()))
        return self.nothing(
            f"if that is too much, add to the entries of leader.replication.throttled.replicas {entries}", "list_leader"
        )

    def set_rate(
        self, throttle_bytes_per_s: float | None, broker: int, required_bytes_per_s: float | None
    ) -> dict[str, Any]:
        """Return how a listed broker without a rate gets one: that of the others, if it is enough for it.

        Args:
            throttle_bytes_per_s: the rate of the others; None: they have none either.
            broker: broker.
            required_bytes_per_s: what must be exceeded on it; None: unknown.
        """
        if throttle_bytes_per_s is None:
            return self.nothing("if that is too much, set a rate: its lists limit nothing without one", "set_rate")
        if required_bytes_per_s is None:
            return self.nothing("if that is too much, set a rate; what it must exceed is not known yet", "set_rate")
        enough, must = self.wish.above(required_bytes_per_s), f"must exceed {rate(required_bytes_per_s)}"
        if enough is None:
            carried = rate(self.wish.capacity_bytes_per_s)
            return self.nothing(f"no rate would do: it {must}, and a broker carries {carried}", "set_rate")
        throttle = max(math.ceil(throttle_bytes_per_s), enough)
        advice = self.nothing(f"only if that is too much; a rate {must}", "set_rate")
        apply = commands.headroom_apply(throttle, [broker], self.config)
        kafka = commands.kafka_configs(throttle, broker, self.bootstrap_servers)
        return {**advice, "throttle_bytes_per_s": throttle, "commands": [apply, kafka]}

    def clear_throttle(self, brokers: Sequence[int], topics: Sequence[str], reason: str) -> dict[str, Any]:
        """Return the commands that remove what a move left behind.

        A rate for the whole cluster stays: no move sets one, and it limits only what lists name.

        Args:
            brokers: those that have a rate of their own.
            topics: those whose lists name a partition.
            reason: why.
        """
        return {
            **self.nothing(reason),
            "action": "clear_throttle",
            "commands": [
                commands.headroom_clear(self.config),
                *(commands.kafka_clear_rates(broker, self.bootstrap_servers) for broker in brokers),
                *(commands.kafka_clear_lists(topic, self.bootstrap_servers) for topic in topics),
            ],
        }

    @when_read
    def elect_preferred(self) -> Mapping[str, Any]:
        """Return how brokers get back the lead of what prefers them: by the plan, if there is one."""
        advice = self.nothing(electing.in_words(self.elections), "elect_preferred")
        advice["commands"] = [commands.headroom_elections(self.config)]
        if self.elections is None:
            return advice
        first = self.elections.first_batch
        if first and len(first) <= _MOST_NAMED:
            advice["commands"].append(commands.kafka_elect_these(first, self.bootstrap_servers))
        return advice | electing.in_numbers(self.elections)

    def unblock(self, broker: int, cause: str) -> dict[str, Any]:
        """Return what to look at when a broker's replicas do not copy and no throttle explains it."""
        if cause == "destination_down":
            return self.nothing(f"bring broker {broker} back, or cancel the move to it", "restore_broker")
        if cause == "broker_down":
            return self.nothing(f"bring broker {broker} back, or move its replicas elsewhere", "restore_broker")
        if cause == "no_leader":
            return self.nothing("bring a broker back that holds the partition in sync", "restore_broker")
        return self.nothing(f"look at the disk and the log of broker {broker}", "inspect_broker")

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


def _needs(sides: Sequence[SideState], throttle: int | None) -> list[dict[str, Any]]:
    return [_need(side, throttle) for side in sides if side.demand.limited_replicas]


def _need(side: SideState, throttle: int | None) -> dict[str, Any]:
    return {
        "broker_id": side.broker,
        "role": side.role.value,
        "verdict": side.verdict.value,
        "throttle_bytes_per_s": side.demand.throttle_bytes_per_s,
        "required_bytes_per_s": side.demand.required_bytes_per_s,
        "recommended_bytes_per_s": throttle,
    }
