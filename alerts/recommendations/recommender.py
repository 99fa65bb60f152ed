"""Recommendations of alerts: throttles from ``planning.throttles.recommendation`` with commands, ready for JSON."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from alerts.inputs.throttle_status import MovingPartition, PartitionEvidence, ThrottleStatus
from alerts.recommendations import commands
from alerts.recommendations import elections as elections_text
from alerts.recommendations.lazy import LazyMapping, lazily
from alerts.text.formatting import format_rate, join_names
from planning.elections.summary import ElectionPlanSummary
from planning.finish.finish_time import Earlier, finish
from planning.throttles.load import BrokerRole, ThrottleLoad
from planning.throttles.recommendation import ThrottlePolicy, ThrottleRecommendation, recommend
from schemas.alerts import Role

# Most partitions that one command lists; for larger batches Headroom's own command writes files.
_MOST_NAMED = 50
# Most Kafka commands, one per broker or topic; Headroom's own command handles any number.
_MOST_KAFKA_LINES = 20
# Finish of a move under the recommended throttle, in seconds after it is applied: expected, earliest and latest.
_FINISH = ("finish_s", "finish_low_s", "finish_high_s")


@dataclass(frozen=True)
class Recommender:
    """Builds recommendations; expensive ones are computed when they are read.

    Attributes:
        policy: margin, deadline and capacity.
        bootstrap_servers: bootstrap servers in Kafka's commands.
        config: configuration file in Headroom's commands; None if there is none.
        earlier: previous ticks, newest first: age in seconds and throttle loads.
        elections: plan of preferred elections; None if there is none.
    """

    policy: ThrottlePolicy
    bootstrap_servers: str
    config: str | None = None
    earlier: Earlier = ()
    elections: ElectionPlanSummary | None = None

    @lazily
    def raise_throttle(self, statuses: Sequence[ThrottleStatus]) -> Mapping[str, Any]:
        """Return the lowest single throttle that is enough on every broker of the move, or why there is none."""
        recommendation = recommend([status.load for status in statuses], self.policy, self.earlier)
        if recommendation is None:
            return self.no_throttle_change("no replica is held back by a throttle")
        if recommendation.unknown:
            brokers = ", ".join(f"broker {broker} as {role}" for broker, role in recommendation.unknown)
            return self.no_throttle_change(
                f"what {brokers} needs is unknown, and too low a throttle would pass for enough"
            )
        if recommendation.throttle_bytes_per_s is None:
            return self._reduce_move_recommendation(statuses, recommendation)
        return self._raise_recommendation(
            statuses,
            recommendation.throttle_bytes_per_s,
            recommendation.smallest_bytes_per_s,
            self._limits(recommendation),
        )

    def _limits(self, recommendation: ThrottleRecommendation) -> str | None:
        """Return the settings that the throttle does not satisfy; None if it satisfies all."""
        limits = []
        if recommendation.misses_deadline:
            limits.append("no throttle that a broker can carry finishes within alerts.finish_within")
        if recommendation.below_margin:
            carried = format_rate(self.policy.capacity_bytes_per_s)
            limits.append(f"a broker carries {carried}, so that less than the usual margin is left")
        return "; ".join(limits) or None

    def _raise_recommendation(
        self, statuses: Sequence[ThrottleStatus], throttle: int, smallest_bytes_per_s: float | None, reason: str | None
    ) -> dict[str, Any]:
        # A firing alert is compared by action and throttle in every tick. The other values, above all the simulated
        # finish, are needed only when an event is written.
        reasons = [reason, _down_brokers(statuses)]
        limited = [status.load for status in statuses if status.load.limited_replicas]
        end = LazyMapping(partial(_finish_range, limited, throttle, self.earlier))
        return {
            "action": "raise_throttle",
            "throttle_bytes_per_s": throttle,
            "smallest_bytes_per_s": smallest_bytes_per_s,
            "per_broker": partial(_per_broker, statuses, throttle),
            **{name: partial(end.__getitem__, name) for name in _FINISH},
            "reason": "; ".join(filter(None, reasons)) or None,
            "commands": partial(self._raise_commands, statuses, throttle),
        }

    def _raise_commands(self, statuses: Sequence[ThrottleStatus], throttle: int) -> list[str]:
        """Return the commands that raise the rates below a throttle: Headroom's, and Kafka's broker by broker."""
        lower = lower_rates(statuses, throttle)
        if not lower:
            return []
        brokers = sorted({broker for broker, _ in lower})
        result = [commands.headroom_apply(throttle, brokers, self.config)]
        if len(brokers) <= _MOST_KAFKA_LINES:
            for broker in brokers:
                roles = [role for role in Role if (broker, role) in lower]
                result.append(commands.kafka_configs(throttle, broker, self.bootstrap_servers, roles))
        moves = _moves(statuses)
        if moves and _sets_every_rate(statuses, throttle, brokers):
            result.append(commands.kafka_reassign(throttle, moves[:1], self.bootstrap_servers))
        return result

    def _reduce_move_recommendation(
        self, statuses: Sequence[ThrottleStatus], recommendation: ThrottleRecommendation
    ) -> dict[str, Any]:
        return {
            "action": "reduce_move",
            "throttle_bytes_per_s": None,
            "smallest_bytes_per_s": recommendation.smallest_bytes_per_s,
            "per_broker": _per_broker(statuses, None),
            **dict.fromkeys(_FINISH),
            "reason": (
                f"no throttle will do: more than {format_rate(recommendation.smallest_bytes_per_s)} is needed "
                "and a broker carries "
                f"{format_rate(self.policy.capacity_bytes_per_s)}; cancel, and move fewer partitions at a time"
            ),
            "commands": [self._cancel_command(statuses)],
        }

    def _cancel_command(self, statuses: Sequence[ThrottleStatus]) -> str:
        moves = _moves(statuses)
        if any(status.moving_partitions > len(status.moves) for status in statuses):
            return commands.cancel_all(self.config, self.bootstrap_servers)
        return commands.cancel(moves, self.bootstrap_servers)

    @lazily
    def raise_to(
        self, statuses: Sequence[ThrottleStatus], smallest_bytes_per_s: float, reason: str
    ) -> Mapping[str, Any]:
        """Return the throttle that exceeds a rate, and all required rates, by the margin.

        Args:
            statuses: every broker and role of the tick, with known required rates.
            smallest_bytes_per_s: rate that must be exceeded.
            reason: why, and how urgent it is.
        """
        limited = [status.load for status in statuses if status.load.limited_replicas]
        smallest = max(smallest_bytes_per_s, *(load.required_bytes_per_s or 0.0 for load in limited), 0.0)
        throttle = self.policy.throttle_above(smallest)
        if throttle is None:
            carried = format_rate(self.policy.capacity_bytes_per_s)
            return self.no_throttle_change(f"{reason}; no throttle would do, for a broker carries {carried}")
        return self._raise_recommendation(statuses, throttle, smallest, reason)

    def list_leader(self, broker: int, partitions: Sequence[PartitionEvidence], count: int) -> dict[str, Any]:
        """Return the entries that are missing in the leader throttled lists of topics.

        Args:
            broker: leader.
            partitions: partitions with a missing entry, possibly truncated.
            count: total number of these partitions.
        """
        missing: dict[str, list[str]] = defaultdict(list)
        for p in partitions:
            missing[p.topic].append(f"{p.partition}:{broker}")
        entries = [f"{','.join(found)} of topic {topic}" for topic, found in sorted(missing.items())]
        if count > len(partitions):
            entries.append(f"those of {count - len(partitions)} more partitions that it leads")
        return self.no_throttle_change(
            f"if that is too much, add to the entries of leader.replication.throttled.replicas {'; '.join(entries)}",
            "list_leader",
        )

    def set_rate(
        self, throttle_bytes_per_s: float | None, broker: int, required_bytes_per_s: float | None
    ) -> dict[str, Any]:
        """Return the rate for a listed broker without one: the rate of the others, or more if it needs more.

        Args:
            throttle_bytes_per_s: rate of the other brokers; None if they have none either.
            broker: broker id.
            required_bytes_per_s: rate that must be exceeded on it; None if unknown.
        """
        if throttle_bytes_per_s is None:
            return self.no_throttle_change(
                "if that is too much, set a rate: its lists limit nothing without one", "set_rate"
            )
        if required_bytes_per_s is None:
            return self.no_throttle_change(
                "if that is too much, set a rate; what it must exceed is not known yet", "set_rate"
            )
        enough, must = (
            self.policy.throttle_above(required_bytes_per_s),
            f"must exceed {format_rate(required_bytes_per_s)}",
        )
        if enough is None:
            carried = format_rate(self.policy.capacity_bytes_per_s)
            return self.no_throttle_change(f"no rate would do: it {must}, and a broker carries {carried}", "set_rate")
        throttle = max(math.ceil(throttle_bytes_per_s), enough)
        recommendation = self.no_throttle_change(f"only if that is too much; a rate {must}", "set_rate")
        apply = commands.headroom_apply(throttle, [broker], self.config, raise_only=False)
        kafka = commands.kafka_configs(throttle, broker, self.bootstrap_servers)
        return {**recommendation, "throttle_bytes_per_s": throttle, "commands": [apply, kafka]}

    def clear_throttle(
        self, rates: Mapping[int, Sequence[str]], lists: Mapping[str, Collection[Role]], reason: str
    ) -> dict[str, Any]:
        """Return the commands that remove throttles left behind by a move.

        A cluster-wide default rate stays: no move sets it, and it limits only listed replicas.

        Args:
            rates: broker-level rate settings, by broker.
            lists: roles whose throttled list is set, by topic.
            reason: reason for the removal.
        """
        servers = self.bootstrap_servers
        kafka = [commands.kafka_clear_rates(broker, keys, servers) for broker, keys in sorted(rates.items())]
        kafka += [commands.kafka_clear_lists(topic, roles, servers) for topic, roles in sorted(lists.items())]
        return {
            **self.no_throttle_change(reason),
            "action": "clear_throttle",
            "commands": [commands.headroom_clear(self.config), *(kafka if len(kafka) <= _MOST_KAFKA_LINES else ())],
        }

    @lazily
    def elect_preferred(self) -> Mapping[str, Any]:
        """Return the elections that give brokers back the partitions they are the preferred leader of."""
        recommendation = self.no_throttle_change(elections_text.describe_plan(self.elections), "elect_preferred")
        recommendation["commands"] = [commands.headroom_elections(self.config)]
        if self.elections is None:
            return recommendation
        first = self.elections.first_batch
        if first and len(first) <= _MOST_NAMED:
            recommendation["commands"].append(commands.kafka_elect_these(first, self.bootstrap_servers))
        return recommendation | elections_text.plan_json(self.elections)

    def restore_or_inspect_broker(self, broker: int, cause: str) -> dict[str, Any]:
        """Return the action for a broker whose replicas do not copy although no throttle explains it."""
        if cause == "destination_down":
            return self.no_throttle_change(f"bring broker {broker} back, or cancel the move to it", "restore_broker")
        if cause == "being_replaced":
            return self.no_throttle_change(
                f"bring broker {broker} back, or let the running move finish: it takes these replicas away from it",
                "restore_broker",
            )
        if cause == "broker_down":
            return self.no_throttle_change(
                f"bring broker {broker} back, or move its replicas elsewhere", "restore_broker"
            )
        if cause == "no_leader":
            return self.no_throttle_change("bring a broker back that holds the partition in sync", "restore_broker")
        return self.no_throttle_change(f"look at the disk and the log of broker {broker}", "inspect_broker")

    def no_throttle_change(self, reason: str, action: str = "none") -> dict[str, Any]:
        """Return a recommendation that changes no throttle, with a reason."""
        return {
            "action": action,
            "throttle_bytes_per_s": None,
            "smallest_bytes_per_s": None,
            "per_broker": [],
            **dict.fromkeys(_FINISH),
            "reason": reason,
            "commands": [],
        }


def _finish_range(limited: Sequence[ThrottleLoad], throttle: int, earlier: Earlier) -> dict[str, float | None]:
    """Return the seconds from a throttle change to the finish, with their range; None if unknown or never."""
    found = finish(limited, throttle, earlier) if limited else None
    if found is None:
        return dict.fromkeys(_FINISH)
    return dict(zip(_FINISH, (found.middle_s, found.low_s, found.high_s), strict=True))


def lower_rates(statuses: Sequence[ThrottleStatus], throttle_bytes_per_s: float) -> set[BrokerRole]:
    """Return the brokers and roles of a move whose rate in force is lower than a throttle and can be raised.

    This includes brokers outside the move if an old list still limits an out-of-sync replica. Dead brokers are left
    out, because they cannot apply a rate. Brokers without a rate are left out, because a rate would slow them down.

    Args:
        statuses: every broker and role of a tick.
        throttle_bytes_per_s: throttle.
    """
    part = _moving_brokers(statuses) | {status.broker for status in statuses if status.load.limited_replicas}
    return {
        (status.broker, status.role)
        for status in statuses
        if status.broker in part
        and status.alive
        and (status.load.throttle_bytes_per_s or math.inf) < throttle_bytes_per_s
    }


def _moving_brokers(statuses: Sequence[ThrottleStatus]) -> set[int]:
    return {status.broker for status in statuses if status.moving_partitions}


def _sets_every_rate(statuses: Sequence[ThrottleStatus], throttle_bytes_per_s: float, lower: Collection[int]) -> bool:
    """Return whether one rate on both roles of every broker of the move is enough, as Kafka's tool sets it.

    Args:
        statuses: every broker and role of a tick.
        throttle_bytes_per_s: rate to set; it must not lower a higher rate.
        lower: brokers whose rates must be raised; the tool sets only those in a running reassignment.
    """
    part = _moving_brokers(statuses)
    of_part = [status for status in statuses if status.broker in part]
    rates = [status.load.throttle_bytes_per_s or math.inf for status in of_part]
    lowers_none = all(status.alive for status in of_part) and max(rates, default=0.0) <= throttle_bytes_per_s
    return lowers_none and part.issuperset(lower)


def _down_brokers(statuses: Sequence[ThrottleStatus]) -> str | None:
    """Return the advice on dead brokers of the move; None if all are alive."""
    down = sorted(_moving_brokers([status for status in statuses if not status.alive]))
    if not down:
        return None
    which = join_names([str(broker) for broker in down], most=10)
    return f"broker(s) {which} of the move are down, and keep their rates: run the command again when they are back"


def _moves(statuses: Sequence[ThrottleStatus]) -> list[MovingPartition]:
    found = {(p.topic, p.partition): p for status in statuses for p in status.moves}
    return [found[key] for key in sorted(found)]


def _per_broker(statuses: Sequence[ThrottleStatus], throttle: int | None) -> list[dict[str, Any]]:
    return [_need(status, throttle) for status in statuses if status.load.limited_replicas]


def _need(status: ThrottleStatus, throttle: int | None) -> dict[str, Any]:
    own = status.load.throttle_bytes_per_s
    return {
        "broker_id": status.broker,
        "role": status.role.value,
        "verdict": status.verdict.value,
        "throttle_bytes_per_s": own,
        "required_bytes_per_s": status.load.required_bytes_per_s,
        # Higher rates stay, and brokers without a rate stay without one.
        "recommended_bytes_per_s": None if throttle is None or own is None else max(throttle, own),
    }
