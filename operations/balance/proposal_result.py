"""What ``headroom balance propose`` found, as data; text_view.py and json_view.py print it."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from headroom.operations.balance.cluster import BalanceCluster
from headroom.operations.balance.requests import ProposalRequest
from headroom.operations.balance.saved_actions import inputs_digest
from headroom.operations.balance.score import chosen_goals
from headroom.planning.balance.batches.batches import BalanceBatch, make_batches
from headroom.planning.balance.batches.directories import with_directories
from headroom.planning.balance.batches.numbering import CopyLimits
from headroom.planning.balance.goals.goal import BalanceGoal
from headroom.planning.balance.model import ClusterModel, Resource
from headroom.planning.balance.observation.cluster import excluding
from headroom.planning.balance.pricing.price import BatchPrice, BatchRun
from headroom.planning.balance.pricing.simulated_times import ceilings_of, simulated_times_s
from headroom.planning.balance.reports.in_band import prefix_in_band
from headroom.planning.balance.reports.prefixes import PrefixPrice, prefix_price, prefixes
from headroom.planning.balance.reports.scorecard import Scorecard, scorecard, scorecard_of
from headroom.planning.balance.reports.throttle_choice import BalanceThrottle, ThrottleRequest, choose_throttle
from headroom.planning.balance.search.limits import Exclusion, ProposalLimits
from headroom.planning.balance.search.proposal import (
    Proposal,
    excluded_partitions,
    placement,
    proposal_of,
    propose,
)
from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.planning.reassignments.room.naming import naming_notes
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.text.amounts import duration_text, rate_text
from headroom.schemas.text.names import broker_names

# Load outside of bands below this is rounding.
_NOTHING = 1e-9


@dataclass(frozen=True, eq=False)
class PricedBatch:
    """One batch with its price.

    Attributes:
        batch: the batch.
        price: its price.
        duration_s: time at the chosen throttle by the simulation of Kafka's quotas, seconds; None if it never ends.
        fingerprint: fingerprint of its plan, which ``headroom reassign run --fingerprint`` compares.
    """

    batch: BalanceBatch
    price: BatchPrice
    duration_s: float | None
    fingerprint: str


@dataclass(frozen=True)
class LeftOut:
    """Partitions that are in no action.

    Attributes:
        reason: the reason.
        count: number of them.
        first: the first one.
    """

    reason: Exclusion
    count: int
    first: TopicPartition


@dataclass(frozen=True, eq=False)
class ProposalResult:
    """Result of the command.

    Attributes:
        cluster: the cluster.
        proposal: the actions.
        before: scores of the cluster as it is.
        after: scores after the chosen actions, by the bands of that cluster.
        chosen: number of actions that the batches carry out.
        batches: batches of the chosen actions.
        throttle: throttle of all of them.
        duration_s: time of all of them one after another, with the readings and pauses of a run, seconds; None if one
            never ends.
        finish_within_s: time in which they should end, seconds; None if it does not matter.
        rows: prefixes to choose from.
        left_out: partitions that are in no action, by reason.
        limited: whether a limit on bytes or moves was given.
        elections_only: whether copies were not asked for.
        asked_goals: names of the goals that were asked for; None: those of the settings.
        in_band: ids of the brokers that the chosen actions should bring into their bands; None if none were named.
        reaches_band: whether they do; None if no brokers were named.
        named_on: ids of the brokers on which batches name the log directories of new replicas.
    """

    cluster: BalanceCluster
    proposal: Proposal
    before: Scorecard
    after: Scorecard
    chosen: int
    batches: Sequence[PricedBatch]
    throttle: BalanceThrottle
    duration_s: float | None
    finish_within_s: float | None
    rows: Sequence[PrefixPrice]
    left_out: Sequence[LeftOut]
    limited: bool
    elections_only: bool
    asked_goals: Sequence[str] | None = None
    in_band: frozenset[int] | None = None
    reaches_band: bool | None = None
    named_on: tuple[int, ...] = ()

    @property
    def proposal_id(self) -> str:
        """Return a digest of the cluster, the time when it was read, and the actions."""
        state = self.cluster.state
        actions = [str(action) for action in self.proposal.actions]
        content = json.dumps([state.cluster, state.read_ms, self.chosen, actions])
        return sha256(content.encode()).hexdigest()[:16]

    def throttle_of(self, batch: PricedBatch) -> int | None:
        """Return the throttle of a batch, bytes per second; None if it copies nothing."""
        return throttle_of(batch.batch, self.throttle)

    @property
    def is_outside(self) -> bool:
        """Return whether load is outside of bands or beyond limits before the proposal."""
        return float(self.proposal.outside[0]) > _NOTHING

    def _switch_risk(self, number: int, batch: PricedBatch) -> str:
        """Return a warning if a single leader switch makes the throttle of a batch too low; empty if none does."""
        rate, enough = self.throttle_of(batch), batch.price.throttle_after_switch_bytes_per_s
        if rate is None or enough is None or batch.price.required_after_switch_bytes_per_s < rate:
            return ""
        return f"Batch {number}: one leader switch can make the throttle too low; {rate_text(enough)} survives any."

    def _network_notes(self, number: int, batch: PricedBatch) -> Iterator[str]:
        """Yield where limits of the network make the throttle of a batch lower, or are exceeded while it copies."""
        rate, room, ids = self.throttle_of(batch), batch.batch.room, [b.broker for b in self.proposal.model.brokers]
        if rate is None:
            return
        if room.limited_by is not None and rate < (self.throttle.bytes_per_s or 0):
            yield (
                f"Batch {number} has a throttle of {rate_text(rate)}: with more, broker {ids[room.limited_by]} would "
                "exceed its limit of the network while it copies."
            )
        if faster := self._faster_than(batch):
            yield (
                f"Batch {number}: a rate above {rate_text(room.most_bytes_per_s)} is in force on "
                f"{broker_names(faster)}, and a run lowers none. With it, brokers may exceed their limits of the "
                "network while it copies: remove it before (headroom throttle clear)."
            )
        for broker in sorted(ids[at] for at in room.beyond):
            yield (
                f"Batch {number}: broker {broker} sends more than its limit, and its copies besides, until it has "
                "given leads away."
            )

    def _faster_than(self, batch: PricedBatch) -> list[int]:
        """Return the brokers of a batch with a rate in force that is higher than what brokers have room for."""
        most, brokers = batch.batch.room.most_bytes_per_s, self.cluster.state.brokers
        rates = [(m.leader, own.leader_bytes_per_s) for m in batch.batch.moves if (own := brokers.get(m.leader))]
        rates += [(m.target, brokers[m.target].follower_bytes_per_s) for m in batch.batch.moves]
        return sorted({broker for broker, rate in rates if rate is not None and rate > most})

    def warnings(self) -> list[str]:
        """Return what the operator should know of the proposal, the most important first."""
        warnings = []
        left = float(self.proposal.outside[-1])
        if self.in_band and not self.reaches_band:
            brokers = ", ".join(map(str, sorted(self.in_band)))
            warnings.append(
                f"No prefix brings all of these brokers into their bands: {brokers}. All actions are chosen."
            )
        if self.throttle.misses_deadline:
            warnings.append(
                "No throttle that brokers can carry meets --finish-within, with the readings and pauses of a run: copy "
                "less, or longer."
            )
        elif (
            self.finish_within_s is not None and self.duration_s is not None and self.duration_s > self.finish_within_s
        ):
            warnings.append(
                f"At this throttle the batches take about {duration_text(self.duration_s)}, longer than "
                "--finish-within: give a higher --throttle, or copy less."
            )
        if self.proposal.actions and self.duration_s is None:
            warnings.append(
                "A batch never ends: its writes use up the throttle, or what other replication leaves of "
                "cluster.replication_capacity. Give a higher --throttle, or copy when less is written."
            )
        rebalances = self.cluster.state.auto_leader_rebalance
        given_back = 0 if rebalances is False else self.cluster.leads_elsewhere
        if given_back and rebalances:
            warnings.append(
                f"Kafka itself gives {given_back:,} leads back to preferred leaders (auto.leader.rebalance.enable). "
                "All loads here, also those before, count them there: before it has, brokers may send more in a batch."
            )
        elif given_back:
            warnings.append(
                "Whether Kafka gives leads back to preferred leaders is unknown (auto.leader.rebalance.enable). If it "
                f"does, {given_back:,} go back, and loads will differ from these: elect them first."
            )
        warnings += naming_notes(self.named_on)
        for number, batch in enumerate(self.batches, start=1):
            warnings += self._network_notes(number, batch)
        risks = (self._switch_risk(number, batch) for number, batch in enumerate(self.batches, start=1))
        warnings += [risk for risk in risks if risk]
        if left > _NOTHING and self.limited:
            warnings.append("Load stays outside of bands: --max-bytes and --max-moves limit what is copied.")
        elif left > _NOTHING and self.elections_only:
            warnings.append("Load stays outside of bands that elections alone cannot bring there; copies could.")
        elif left > _NOTHING and self.proposal.actions:
            warnings.append("Some load stays outside of bands: no further action is accepted by all goals and limits.")
        return warnings


def search(cluster: BalanceCluster, request: ProposalRequest) -> Proposal:
    """Return the proposal for a cluster.

    Raises:
        HeadroomError: nothing can be proposed, an option names something unknown, or a goal fails.
    """
    return propose(*_inputs(cluster, request))


def saved_or_searched(cluster: BalanceCluster, request: ProposalRequest) -> Proposal:
    """Return the proposal that was saved with the cluster if it rests on the same inputs; else that of ``search``.

    Raises:
        HeadroomError: nothing can be proposed, an option names something unknown, or a goal fails.
    """
    model, goals, limits = _inputs(cluster, request)
    saved = cluster.proposed
    if saved is not None and saved.inputs == inputs_digest(model, goals, limits):
        return proposal_of(model, goals, saved.actions)
    return propose(model, goals, limits)


def _inputs(
    cluster: BalanceCluster, request: ProposalRequest
) -> tuple[ClusterModel, Sequence[BalanceGoal], ProposalLimits]:
    """Return all that a proposal depends on."""
    if Resource.NETWORK_IN in cluster.observed.unknown:
        remedy = "Make the metrics of all brokers readable (headroom check)."
        raise HeadroomError("write rates", "are unknown for all partitions, so no change has a known effect", remedy)
    goals = chosen_goals(cluster, request.goals)
    excluded = frozenset() if request.exclude is None else request.exclude.brokers
    return excluding(cluster.to_change, excluded), goals, request.limits(cluster.settings)


def proposal_result(
    cluster: BalanceCluster,
    request: ProposalRequest,
    finish_within_s: float | None = None,
    first: int | None = None,
    in_band: frozenset[int] | None = None,
) -> ProposalResult:
    """Return the proposal with its price.

    Args:
        cluster: the cluster.
        request: goals and limits.
        finish_within_s: time in which all batches should end, seconds; None if it does not matter.
        first: number of the first actions that are carried out; None: all, or as many as ``in_band`` takes.
        in_band: ids of the brokers that the first actions bring into their bands; None: not given.

    Raises:
        HeadroomError: nothing can be proposed, an option names something unknown, or a goal fails.
    """
    proposal = search(cluster, request)
    reached = None if in_band is None else prefix_in_band(proposal, in_band)
    chosen, goals = _prefix_length(proposal, first if reached is None else reached), proposal.goals.goals
    batches, named_on = proposal_batches(cluster, request, proposal, chosen)
    run, throttle = throttled_run(cluster, request, proposal, batches, finish_within_s)
    rate = throttle.bytes_per_s or 1
    priced = _price_batches(run, rate, cluster)
    duration_s = run.total_s([batch.duration_s for batch in priced])
    count = len(proposal.actions)
    whole, of_whole = run, throttle
    if chosen < count:
        # The chosen actions may copy nothing, or less, and need no throttle that is enough for the others.
        every, _ = proposal_batches(cluster, request, proposal, count)
        whole, of_whole = throttled_run(cluster, request, proposal, every, finish_within_s)
    rows = [prefix_price(proposal, n, whole, of_whole.bytes_per_s or 1) for n in prefixes(proposal)]
    return ProposalResult(
        cluster=cluster,
        proposal=proposal,
        before=scorecard(proposal.goals, proposal.start),
        after=scorecard_of(_after(proposal, chosen), goals),
        chosen=chosen,
        batches=priced,
        throttle=throttle,
        duration_s=duration_s,
        finish_within_s=finish_within_s,
        rows=[replace(row, duration_s=duration_s) if row.actions == chosen else row for row in rows],
        left_out=_left_out(proposal.model, request, cluster),
        limited=request.max_bytes is not None or request.max_moves is not None,
        elections_only=request.elections_only,
        asked_goals=request.goals,
        in_band=in_band,
        reaches_band=None if in_band is None else reached is not None,
        named_on=named_on,
    )


def throttled_run(
    cluster: BalanceCluster,
    request: ProposalRequest,
    proposal: Proposal,
    batches: Sequence[BalanceBatch],
    finish_within_s: float | None = None,
) -> tuple[BatchRun, BalanceThrottle]:
    """Return batches as a run carries them out, and the throttle that is chosen for all; see ``throttle_of``."""
    capacity, network = cluster.settings.cluster.replication_capacity, proposal.model.least_network
    wanted = ThrottleRequest(request.throttle, finish_within_s, capacity, None if math.isinf(network) else network)
    run = _run_of(cluster, proposal, batches)
    return run, choose_throttle(run, wanted, cluster.state)


def _run_of(cluster: BalanceCluster, proposal: Proposal, batches: Sequence[BalanceBatch]) -> BatchRun:
    # A run measures what is written before each batch, after the proposal was weighed again by such a reading.
    readings_s = 2 * cluster.settings.collect.measure_s
    ceilings = ceilings_of(proposal.model, batches, cluster.state, cluster.settings.cluster.replication_capacity)
    return BatchRun(batches, ceilings, readings_s, cluster.settings.reassign.pause_s)


def throttle_of(batch: BalanceBatch, throttle: BalanceThrottle) -> int | None:
    """Return the throttle of a batch, bytes per second: the chosen one, or the most that brokers have room for.

    None if it copies nothing.
    """
    rate = throttle.bytes_per_s
    return None if rate is None or not batch.moves else math.floor(batch.throttle(rate))


def proposal_batches(
    cluster: BalanceCluster, request: ProposalRequest, proposal: Proposal, actions: int
) -> tuple[Sequence[BalanceBatch], tuple[int, ...]]:
    """Return the batches of the first actions, and the brokers on which they name the log directories of new replicas.

    Raises:
        HeadroomError: an action does not fit into a batch of its own.
    """
    limits = CopyLimits(replication_bytes_per_s=request.limits(cluster.settings).replication_bytes_per_s)
    chosen = proposal.actions[:actions]
    return with_directories(make_batches(proposal.start, proposal.goals, chosen, limits), cluster.state)


def _prefix_length(proposal: Proposal, prefix: int | None) -> int:
    count = len(proposal.actions)
    if prefix is None:
        return count
    if prefix > count:
        raise HeadroomError("--prefix", f"is {prefix}, and the proposal has {count} actions", f"Use at most {count}.")
    return prefix


def _after(proposal: Proposal, actions: int) -> ClusterModel:
    """Return the cluster after some actions, in which means and bands are those of its new loads."""
    return proposal.model.with_placement(*placement(proposal.model, proposal.actions[:actions]))


def _price_batches(run: BatchRun, throttle_bytes_per_s: int, cluster: BalanceCluster) -> list[PricedBatch]:
    times_s = simulated_times_s(run, throttle_bytes_per_s, cluster.state)
    return [
        PricedBatch(
            batch,
            price,
            seconds,
            ReassignmentPlan(batch.assignments).fingerprint(cluster.state.topic_ids),
        )
        for batch, price, seconds in zip(run.batches, run.prices, times_s, strict=True)
    ]


def _left_out(model: ClusterModel, request: ProposalRequest, cluster: BalanceCluster) -> list[LeftOut]:
    excluded = excluded_partitions(model, request.limits(cluster.settings))
    counts = Counter(excluded.values())
    first = {reason: name for name, reason in reversed(excluded.items())}
    return [LeftOut(reason, counts[reason], first[reason]) for reason in Exclusion if reason in counts]
