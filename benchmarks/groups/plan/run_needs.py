"""What ``headroom plan`` says a throttle has to exceed, beside what ``headroom reassign run`` computes for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar, cast

from benchmarks.fixtures.bench_cluster import OnProgress
from benchmarks.groups.plan.random_states import DrawnPlan, drawn_plan
from benchmarks.results import Figure
from headroom.cluster.reassignment.execution.control import ClusterControl, RunOutput, RunPolicy
from headroom.cluster.reassignment.execution.run_journal import RunJournal
from headroom.cluster.reassignment.execution.throttling import RunThrottle
from headroom.operations.plans.estimating import BatchingRequest, EstimateRequest, estimate_plan
from headroom.operations.plans.result import PlanResult
from headroom.operations.reassignments.run_plan import PlannedRun, RunRates, planned_run
from headroom.planning.reassignments.batches.batching import BatchPolicy, cut_into_batches
from headroom.planning.reassignments.changes import plan_changes
from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.planning.reassignments.estimate import expected_switches
from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.planning.reassignments.run.changes import entries_of
from headroom.planning.reassignments.run.journal import ThrottledList
from headroom.planning.reassignments.run.loads import loads_during, required_bytes_per_s
from headroom.planning.reassignments.run.orders_first import with_leads_given_up
from headroom.planning.reassignments.run.record import RecordedRun
from headroom.planning.reassignments.run.snapshot import RateInForce, RunSnapshot, cluster_state_of_run
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.planning.throttles.replica_lists import EVERY_REPLICA, TopicLists
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import BrokerRate, BrokerRole, Role

T = TypeVar("T")
_SHOWN = 20
# Required rate, None if unknown, and its known part, by broker and role.
Needs = dict[BrokerRole, tuple[float | None, float]]


def need_figures(count: int, on_progress: OnProgress) -> list[Figure]:
    """Return how many needs of random plans differ between plan and run; the first ones are reported."""
    compared, problems = 0, []
    for seed in range(count):
        comparison = NeedComparison(drawn_plan(seed))
        problems += [f"plan {seed}: {problem}" for problem in comparison.problems()]
        compared += comparison.compared
    for problem in problems[:_SHOWN]:
        on_progress(problem)
    return [
        Figure("plan_run_need_differs", len(problems), "needs", count),
        Figure("plan_run_needs_compared", compared, "needs", count),
    ]


class NeedComparison:
    """Compares what ``headroom plan`` and ``headroom reassign run`` need for one plan.

    Args:
        drawn: the plan.

    Attributes:
        compared: number of needs of a broker and role that were compared so far.
    """

    def __init__(self, drawn: DrawnPlan) -> None:
        self._drawn = drawn
        self._state = drawn.state
        self._snapshot = run_snapshot_of(drawn.state)
        self.compared = 0

    def problems(self) -> Iterator[str]:
        """Yield what breaks a law of ``plan_run_need_differs``."""
        plan, state = self._drawn.plan, self._state
        whole = _attempt(lambda: _estimate(plan, state))
        run = _attempt(lambda: self._run([plan], self._snapshot))
        if isinstance(whole, HeadroomError) or isinstance(run, HeadroomError):
            yield from _refusals("the whole", whole, run)
            return
        yield from self._differing("the whole", plan_needs(whole), run_needs(run, 0))
        yield from self._throttles(whole)
        yield from self._once_submitted(whole, run)
        yield from self._batches(whole)

    def _run(
        self, batches: Sequence[ReassignmentPlan], snapshot: RunSnapshot, throttle: int | None = None
    ) -> PlannedRun:
        rates = RunRates(self._drawn.throttle_bytes_per_s if throttle is None else throttle)
        return planned_run(batches, snapshot, cluster_state_of_run(snapshot, {}), RecordedRun("run"), "", rates)

    def _differing(self, what: str, planned: Needs, run: Needs) -> Iterator[str]:
        for role in sorted(planned.keys() | run.keys()):
            self.compared += 1
            by_plan, by_run = planned.get(role), run.get(role)
            # Without traffic there is nothing to exceed.
            if by_plan != by_run and {by_plan, by_run} - {None, (0.0, 0.0)}:
                yield f"{what}: {_name(role)}: {by_plan} by plan, {by_run} by run"

    def _throttles(self, whole: PlanResult) -> Iterator[str]:
        """Yield a throttle that the plan recommends or finds enough, and that the run refuses."""
        throttle = self._drawn.throttle_bytes_per_s
        estimate, policy = whole.estimate, ThrottlePolicy()
        recommended = None if estimate.recommendation is None else estimate.recommendation.throttle_bytes_per_s
        enough = estimate_plan(self._drawn.plan, _unsized(self._state), EstimateRequest(policy, throttle), "the plan")
        for rate, is_enough in ((recommended, True), (throttle, enough.estimate.is_enough)):
            if rate is not None and is_enough and (refusal := self._refusal(rate)):
                yield f"a throttle of {rate}, recommended {recommended}, is enough by plan; run says {refusal}"

    def _refusal(self, throttle: int) -> str | None:
        """Return why a run refuses a throttle for the whole plan; None if it does not."""
        changes = self._run([self._drawn.plan], self._snapshot, throttle).changes[0]
        # The check of a batch needs neither the cluster nor the journal.
        control, journal = cast(ClusterControl, None), cast(RunJournal, None)
        try:
            RunThrottle(control, journal, RunPolicy(throttle), RunOutput()).rate_for(self._snapshot, changes)
        except HeadroomError as error:
            return error.rule
        return None

    def _once_submitted(self, whole: PlanResult, run: PlannedRun) -> Iterator[str]:
        """Yield what is different once all of the plan has been submitted."""
        if any(p.moving for p in self._state.partitions.values()) or not whole.estimate.changes.gaining:
            return
        moves = run.changes[0].moves
        rate = whole.estimate.throttle_bytes_per_s or self._drawn.throttle_bytes_per_s
        running = _submitted(_unsized(self._state), run, rate)
        in_flight = plan_needs(_estimate(None, running))
        loads = [load for load in loads_during(run_snapshot_of(running), moves) if load.limited_replicas]
        during = {load.broker_role: (load.required_bytes_per_s, required_bytes_per_s(load)) for load in loads}
        yield from self._differing("in flight", in_flight, during)
        yield from self._differing("before and after the submission", plan_needs(whole), in_flight)

    def _batches(self, whole: PlanResult) -> Iterator[str]:
        request = EstimateRequest(ThrottlePolicy(), batching=BatchingRequest(self._drawn.batches))
        cut = _attempt(lambda: estimate_plan(self._drawn.wanted, self._state, request, "the plan"))
        batches = [self._drawn.plan] if isinstance(cut, HeadroomError) else cut.batches
        run = _attempt(lambda: self._run(batches, self._snapshot))
        if isinstance(cut, HeadroomError) or isinstance(run, HeadroomError):
            yield from _refusals("the batches", cut, run)
            return
        switched = _as_read(_unsized(self._state), with_leads_given_up(batches, self._snapshot))
        most = plan_needs(_estimate(self._drawn.plan, switched))
        in_any_order = _in_any_order(self._drawn.plan, switched)
        assert cut.cut is not None, "batches were asked for"
        for number, batch in enumerate(batches):
            what, needs = f"batch {number + 1} of {len(batches)}", run_needs(run, number)
            alone = _needs_alone(batch, switched)
            yield from self._differing(f"{what}, alone", alone, needs)
            yield from self._as_cut(what, batch, switched, cut.cut.batches[number].required_bytes_per_s, needs)
            for role, (required, known) in needs.items():
                limit, limit_known = most.get(role, (0.0, 0.0))
                if known > max(limit_known, in_any_order.get(role, 0.0)) or (limit is not None and required is None):
                    yield f"{what}: {_name(role)} needs {required, known}, the whole {most.get(role)}"
        yield from self._as_it_goes_on(batches, run, switched)

    def _as_cut(
        self, what: str, batch: ReassignmentPlan, state: ClusterState, cut: Mapping[BrokerRole, float], needs: Needs
    ) -> Iterator[str]:
        """Yield a need as it was cut that is below what a run needs, or above it although no leader is to switch."""
        known = {role: rate for role, (_, rate) in needs.items()}
        switches = bool(expected_switches(plan_changes(batch, state), state))
        for role in sorted(cut.keys() | known.keys()):
            self.compared += 1
            as_cut, by_run = cut.get(role, 0.0), known.get(role, 0.0)
            if as_cut < by_run or (as_cut > by_run and not switches):
                yield f"{what}, as cut: {_name(role)}: {cut.get(role)} by plan, {known.get(role)} by run"

    def _as_it_goes_on(
        self, batches: Sequence[ReassignmentPlan], run: PlannedRun, state: ClusterState
    ) -> Iterator[str]:
        """Yield what is different when each batch begins, after those before it have moved."""
        for number, batch in enumerate(batches):
            now = self._run(batches, run_snapshot_of(state))
            what, needs = f"batch {number + 1} of {len(batches)} as it begins", run_needs(now, number)
            yield from self._differing(f"{what}, alone", _needs_alone(batch, state), needs)
            if not state.lists:
                yield from self._differing(f"{what}, before the run", run_needs(run, number), needs)
            state = _moved(state, batch)


def plan_needs(result: PlanResult) -> Needs:
    """Return the needs that a plan prints."""
    return {n.broker_role: (n.required_bytes_per_s, n.known_required_bytes_per_s) for n in result.estimate.needs}


def run_needs(run: PlannedRun, batch: int) -> Needs:
    """Return what a run finds for a batch, given by its position."""
    loads = run.limiting_loads(run.changes[batch])
    return {load.broker_role: (load.required_bytes_per_s, required_bytes_per_s(load)) for load in loads}


def run_snapshot_of(state: ClusterState) -> RunSnapshot:
    """Return what a run reads of a cluster: no sizes, and no rates of brokers that report none."""
    rates: dict[BrokerRate, RateInForce] = {}
    for own in state.brokers.values():
        if own.alive and own.throttles_known:
            rates[BrokerRole(own.broker, Role.LEADER)] = RateInForce(own.leader_bytes_per_s)
            rates[BrokerRole(own.broker, Role.FOLLOWER)] = RateInForce(own.follower_bytes_per_s)
    lists = {
        ThrottledList(topic, role): text
        for topic, own in state.lists.items()
        for role, text in ((Role.LEADER, own.leader), (Role.FOLLOWER, own.follower))
        if text is not None
    }
    partitions = {
        name: replace(p, size_bytes=None, copied_bytes={}, untiered_bytes=None, awaits_leader=False)
        for name, p in state.partitions.items()
    }
    return RunSnapshot(
        partitions,
        state.alive,
        rates,
        lists,
        state.topic_ids,
        auto_leader_rebalance=state.auto_leader_rebalance,
        waits_for_kept=state.waits_for_kept,
    )


def _as_read(state: ClusterState, snapshot: RunSnapshot) -> ClusterState:
    """Return a state with the replicas and leaders of a snapshot."""
    partitions = {
        name: replace(p, replicas=snapshot.partitions[name].replicas, leader=snapshot.partitions[name].leader)
        for name, p in state.partitions.items()
    }
    return replace(state, partitions=partitions)


def _submitted(state: ClusterState, run: PlannedRun, rate: int) -> ClusterState:
    """Return the cluster once the first batch of a run has been submitted: lists, rates and moves are in force."""
    partitions, lists = dict(state.partitions), dict(state.lists)
    moves = run.changes[0].moves
    for name, move in moves.items():
        p = partitions[name]
        adding = tuple(broker for broker in move.after if broker not in move.before)
        removing = tuple(broker for broker in move.before if broker not in move.after)
        partitions[name] = replace(p, replicas=(*move.after, *removing), adding=adding, removing=removing)
    for listed, entries in entries_of(moves).items():
        own = lists.get(listed.topic, TopicLists(None, None))
        of_role = own.leader if listed.role is Role.LEADER else own.follower
        if (of_role or "").strip() != EVERY_REPLICA:
            text = ",".join(
                [*([of_role] if of_role else []), *(f"{partition}:{b}" for partition, b in sorted(entries))]
            )
            field = "leader" if listed.role is Role.LEADER else "follower"
            lists[listed.topic] = replace(own, **{field: text})
    brokers = {
        broker: replace(own, leader_bytes_per_s=rate, follower_bytes_per_s=rate)
        for broker, own in state.brokers.items()
    }
    return replace(state, partitions=partitions, lists=lists, brokers=brokers)


def _moved(state: ClusterState, batch: ReassignmentPlan) -> ClusterState:
    """Return the cluster after a batch: new replicas are in sync, and a leader that is still a replica stays it."""
    partitions = dict(state.partitions)
    for name, target in batch.by_name.items():
        p = partitions[name]
        isr = tuple(b for b in target.replicas if b in p.isr or b not in p.replicas)
        leader = p.leader if p.leader in isr else next(iter(isr), None)
        partitions[name] = replace(p, replicas=target.replicas, isr=isr, leader=leader)
    return replace(state, partitions=partitions)


def _estimate(plan: ReassignmentPlan | None, state: ClusterState) -> PlanResult:
    return estimate_plan(plan, state, EstimateRequest(ThrottlePolicy()), "the plan")


def _unsized(state: ClusterState) -> ClusterState:
    """Return a state without sizes: no need depends on them, and without them no time is simulated."""
    partitions = {n: replace(p, size_bytes=None, untiered_bytes=None) for n, p in state.partitions.items()}
    return replace(state, partitions=partitions)


def _in_any_order(plan: ReassignmentPlan, state: ClusterState) -> Mapping[BrokerRole, float]:
    """Return the known need of a plan in one batch, in whatever order expected switches come."""
    (batch,) = cut_into_batches(state, plan, BatchPolicy(1)).batches
    return batch.required_bytes_per_s


def _needs_alone(batch: ReassignmentPlan, state: ClusterState) -> Needs:
    result = _attempt(lambda: _estimate(batch, state))
    # What changes nothing, or only orders, has no need.
    return {} if isinstance(result, HeadroomError) else plan_needs(result)


def _name(role: BrokerRole) -> str:
    return f"broker {role.broker} as {role.role.value}"


def _attempt(act: Callable[[], T]) -> T | HeadroomError:
    try:
        return act()
    except HeadroomError as error:
        return error


def _refusals(what: str, plan: object, run: object) -> Iterator[str]:
    """Yield a refusal of one of both alone; a plan that changes nothing is only of no use to estimate."""
    if isinstance(plan, HeadroomError) and "changes nothing" in plan.rule:
        plan = None
    errors = [one.rule if isinstance(one, HeadroomError) else None for one in (plan, run)]
    if errors[0] != errors[1]:
        yield f"{what}: plan says {errors[0]!r}, run says {errors[1]!r}"
