"""Recommendations of alerts: throttles from ``planning.throttles.recommendation``, elections, and repairs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from headroom.alerts.inputs.broker_load import BalanceAdvice
from headroom.alerts.inputs.throttle_status import PartitionEvidence, ThrottleStatus
from headroom.alerts.recommendations import commands
from headroom.alerts.recommendations.balance import describe_advice
from headroom.alerts.recommendations.elections import ElectPreferred
from headroom.alerts.recommendations.recommendation import Action, Advice
from headroom.alerts.recommendations.throttle_commands import MOST_KAFKA_LINES
from headroom.alerts.recommendations.throttle_raise import ThrottleChoice, ThrottleRaise
from headroom.planning.elections.summary import ElectionPlanSummary
from headroom.planning.finish.finish_time import Earlier
from headroom.planning.reassignments.run.owners import ThrottleOwner
from headroom.planning.throttles.recommendation import ThrottlePolicy, recommend
from headroom.schemas.keys import Role
from headroom.schemas.text.amounts import join_names, rate_text

UNKNOWN_ORIGIN = "<bootstrap servers of the origin>"


@dataclass(frozen=True)
class Recommender:
    """Builds recommendations; expensive ones are computed when they are read.

    Attributes:
        policy: margin, deadline and capacity.
        bootstrap_servers: bootstrap servers in Kafka's commands.
        config: configuration file in Headroom's commands; None if there is none.
        earlier: previous ticks, newest first: age in seconds and throttle loads.
        elections: plan of preferred elections; None if there is none.
        origin_servers: bootstrap servers of the origin of migrations, in Kafka's commands.
    """

    policy: ThrottlePolicy
    bootstrap_servers: str
    config: str | None = None
    earlier: Earlier = ()
    elections: ElectionPlanSummary | None = None
    origin_servers: str = UNKNOWN_ORIGIN

    def raise_throttle(self, statuses: Sequence[ThrottleStatus]) -> ThrottleRaise:
        """Return the lowest single throttle that is enough on every broker of the move, or why there is none."""
        return self._throttle_raise(statuses, partial(self._lowest_throttle, statuses))

    def raise_to(self, statuses: Sequence[ThrottleStatus], smallest_bytes_per_s: float, reason: str) -> ThrottleRaise:
        """Return the throttle that exceeds a rate, and all required rates, by the margin.

        Args:
            statuses: every broker and role of the tick, with known required rates.
            smallest_bytes_per_s: rate that must be exceeded.
            reason: why, and how urgent it is.
        """
        return self._throttle_raise(statuses, partial(self._throttle_above, statuses, smallest_bytes_per_s, reason))

    def _throttle_raise(
        self, statuses: Sequence[ThrottleStatus], choose: Callable[[], ThrottleChoice]
    ) -> ThrottleRaise:
        return ThrottleRaise(choose, statuses, self.bootstrap_servers, self.config, self.earlier)

    def _lowest_throttle(self, statuses: Sequence[ThrottleStatus]) -> ThrottleChoice:
        recommendation = recommend([status.load for status in statuses], self.policy, self.earlier)
        if recommendation is None:
            return ThrottleChoice(Action.NONE, reason="no replica is held back by a throttle")
        if recommendation.unknown:
            brokers = ", ".join(f"broker {broker} as {role.value}" for broker, role in recommendation.unknown)
            return ThrottleChoice(
                Action.NONE, reason=f"what {brokers} needs is unknown, and too low a throttle would pass for enough"
            )
        smallest = recommendation.smallest_bytes_per_s
        carried = rate_text(self.policy.capacity_bytes_per_s)
        if recommendation.throttle_bytes_per_s is None:
            reason = (
                f"no throttle will do: more than {rate_text(smallest)} is needed and a broker carries {carried}; "
                "cancel, and move fewer partitions at a time"
            )
            return ThrottleChoice(Action.REDUCE_MOVE, None, smallest, reason)
        limits = []
        if recommendation.misses_deadline:
            limits.append("no throttle that a broker can carry finishes within alerts.finish_within")
        if recommendation.below_margin:
            limits.append(f"a broker carries {carried}, so that less than the usual margin is left")
        return ThrottleChoice(
            Action.RAISE_THROTTLE, recommendation.throttle_bytes_per_s, smallest, "; ".join(limits) or None
        )

    def _throttle_above(
        self, statuses: Sequence[ThrottleStatus], smallest_bytes_per_s: float, reason: str
    ) -> ThrottleChoice:
        needing = [status.load for status in statuses if status.load.needs_throttle]
        smallest = max(smallest_bytes_per_s, *(load.lasting_required_bytes_per_s or 0.0 for load in needing), 0.0)
        throttle = self.policy.throttle_above(smallest)
        if throttle is None:
            carried = rate_text(self.policy.capacity_bytes_per_s)
            return ThrottleChoice(Action.NONE, reason=f"{reason}; no throttle would do, for a broker carries {carried}")
        return ThrottleChoice(Action.RAISE_THROTTLE, throttle, smallest, reason)

    def list_leader(self, broker: int, partitions: Sequence[PartitionEvidence], count: int) -> Advice:
        """Return the entries that are missing in the leader throttled lists of topics.

        Args:
            broker: leader.
            partitions: partitions with a missing entry, possibly truncated.
            count: total number of these partitions.
        """
        missing: dict[str, list[str]] = defaultdict(list)
        for p in partitions:
            missing[p.topic].append(f"{p.partition}:{broker}")
        entries = [f"{','.join(replicas)} of topic {topic}" for topic, replicas in sorted(missing.items())]
        if count > len(partitions):
            entries.append(f"those of {count - len(partitions)} more partitions that it leads")
        return Advice(
            Action.LIST_LEADER,
            f"if that is too much, add to the entries of leader.replication.throttled.replicas {'; '.join(entries)}",
        )

    def set_rate(self, throttle_bytes_per_s: float | None, broker: int, required_bytes_per_s: float | None) -> Advice:
        """Return the rate for a listed broker without one: the rate of the others, or more if it needs more.

        Args:
            throttle_bytes_per_s: rate of the other brokers; None if they have none either.
            broker: broker id.
            required_bytes_per_s: rate that must be exceeded on it; None if unknown.
        """
        if throttle_bytes_per_s is None:
            return Advice(Action.SET_RATE, "if that is too much, set a rate: its lists limit nothing without one")
        if required_bytes_per_s is None:
            return Advice(Action.SET_RATE, "if that is too much, set a rate; what it must exceed is not known yet")
        enough = self.policy.throttle_above(required_bytes_per_s)
        must = f"must exceed {rate_text(required_bytes_per_s)}"
        if enough is None:
            carried = rate_text(self.policy.capacity_bytes_per_s)
            return Advice(Action.SET_RATE, f"no rate would do: it {must}, and a broker carries {carried}")
        throttle = max(math.ceil(throttle_bytes_per_s), enough)
        apply = commands.headroom_apply(throttle, [broker], self.config, raise_only=False)
        kafka = commands.kafka_configs(throttle, broker, self.bootstrap_servers)
        reason = f"only if that is too much; a rate {must}"
        return Advice(Action.SET_RATE, reason, throttle, commands=[apply, kafka])

    def clear_throttle(
        self,
        rates: Mapping[int, Sequence[str]],
        lists: Mapping[str, Collection[Role]],
        reason: str,
        owners: Sequence[ThrottleOwner] = (),
    ) -> Advice:
        """Return the commands that remove throttles left behind by a move.

        If runs of plans left them, the first commands continue the one that has not ended, and remove exactly what the
        runs have set. The lock of a run that is carried on now refuses these; then the first command shows the runs.

        A cluster-wide default rate stays: no move sets it, and it limits only listed replicas.

        Args:
            rates: broker-level rate settings, by broker.
            lists: roles whose throttled list is set, by topic.
            reason: reason for the removal.
            owners: commands that set them, as far as known.
        """
        servers = self.bootstrap_servers
        kafka = [commands.kafka_clear_rates(broker, keys, servers) for broker, keys in sorted(rates.items())]
        kafka += [commands.kafka_clear_lists(topic, roles, servers) for topic, roles in sorted(lists.items())]
        runs = [owner for owner in owners if owner.runs_plan]
        own = [owner.continue_command for owner in runs if owner.continue_command is not None]
        own += [commands.headroom_reassign_clean([owner.run_id for owner in runs], self.config)] * bool(runs)
        running = next((owner for owner in runs if owner.process is not None), None)
        if running is not None:
            own = [commands.headroom_reassign_runs(self.config)]
            reason = f"run {running.run_id} is running and removes what it set when it ends; otherwise {reason}"
        elif runs:
            names = join_names([f"run {owner.run_id}" for owner in runs])
            goes_on = "continue it with its command, or " if own[:-1] else ""
            reason = f"{names} left this: {goes_on}remove exactly what it set with reassign clean; otherwise {reason}"
        command_lines = [*own, commands.headroom_clear(self.config), *(kafka if len(kafka) <= MOST_KAFKA_LINES else ())]
        return Advice(Action.CLEAR_THROTTLE, reason, commands=command_lines)

    def elect_preferred(self) -> ElectPreferred:
        """Return the elections that give brokers back the partitions they are the preferred leader of."""
        return ElectPreferred(self.elections, self.bootstrap_servers, self.config)

    def balance_load(self, brokers: Sequence[int], advice: BalanceAdvice | None, minute_ms: int) -> Advice:
        """Return the first actions of a proposal that bring brokers into their bands, with the command that makes it.

        Args:
            brokers: ids of the brokers.
            advice: last proposal; None if there is none.
            minute_ms: minute of their loads, epoch milliseconds, by which the folder of the batches is named.
        """
        command = commands.headroom_balance_propose(brokers, minute_ms, self.config)
        return Advice(Action.BALANCE_LOAD, describe_advice(brokers, advice), commands=[command])

    def keep_capacity(self, lost: str) -> Advice:
        """Return how to see what a loss would do, and what helps against it.

        Args:
            lost: what would be lost: ``broker 3`` or ``rack a``.
        """
        reason = (
            "spread what brokers send more evenly, or add brokers; the first command shows all loads after the loss, "
            "the second one proposes changes, the cheapest first"
        )
        command_lines = [
            commands.headroom_balance_what_if(lost, self.config),
            commands.headroom_balance_propose_all(self.config),
        ]
        return Advice(Action.BALANCE_LOAD, reason, commands=command_lines)

    def inspect_slow(self, brokers: Sequence[int]) -> Advice:
        """Return the action for slow brokers.

        Args:
            brokers: the slow brokers; empty if so many are slow at once that the cause is not one of them.
        """
        if not brokers:
            return Advice(Action.CHECK, "look for a cause that these brokers share, such as their storage or network")
        names = ", ".join(map(str, brokers))
        reason = (
            f"look at the disk and the log of broker {names}; until it is well, move nothing to it, and let it give "
            "its leaders away (headroom balance propose --elections-only)"
        )
        return Advice(Action.INSPECT_BROKER, reason)

    def restore_or_inspect_broker(self, broker: int, cause: str) -> Advice:
        """Return the action for a broker whose replicas do not copy although no throttle explains it."""
        restore = {
            "destination_down": f"bring broker {broker} back, or cancel the move to it",
            "being_replaced": (
                f"bring broker {broker} back, or let the running move finish: it takes these replicas away from it"
            ),
            # A drain is named in words, not as a command: it copies everything, and the broker may be back before.
            "broker_down": (
                f"bring broker {broker} back, its replicas then catch up by themselves; only if it cannot come back, "
                f"move them to other brokers (headroom plan --drain {broker} makes the plan)"
            ),
            "no_leader": "bring a broker back that holds the partition in sync",
        }
        if cause in restore:
            return Advice(Action.RESTORE_BROKER, restore[cause])
        inspect = f"look at the disk and the log of broker {broker}"
        # The alert about a dead broker goes on with this until its replicas are in sync again.
        is_behind = cause == "fallen_behind"
        reason = f"wait if it has just come back, its replicas then catch up by themselves; otherwise {inspect}"
        return Advice(Action.INSPECT_BROKER, reason if is_behind else inspect)

    def read_throttles_first(self, broker: int, unread: Sequence[str]) -> Advice:
        """Return the action for a broker that copies nothing while a throttle that may explain it is unknown.

        Args:
            broker: the broker.
            unread: subjects without a verdict.
        """
        reason = (
            f"first see why there is no verdict on {join_names(unread)} (headroom check), and whether a rate is too "
            f"low; then look at the disk and the log of broker {broker}"
        )
        return Advice(Action.CHECK, reason, commands=[commands.headroom_throttle_show(self.config)])

    def find_unread(self, broker: int, alive: bool) -> Advice:
        """Return the action for a broker without a verdict: no throttle, because one too low would look sufficient.

        Args:
            broker: the broker.
            alive: whether it is registered with the cluster.
        """
        if not alive:
            return Advice(Action.CHECK, f"bring broker {broker} back; until then its throttle is unknown")
        command = commands.headroom_check(self.config)
        # In words, because it is no remedy itself, and ends with 1 as long as something cannot be read.
        return Advice(
            Action.CHECK,
            f"run `{command}`, which names what cannot be read and the remedy; change no throttle until then",
        )

    def no_throttle_change(self, reason: str, action: Action = Action.NONE) -> Advice:
        """Return a recommendation that changes no throttle, with a reason."""
        return Advice(action, reason)
