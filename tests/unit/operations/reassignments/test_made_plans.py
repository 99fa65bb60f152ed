"""What ``headroom plan`` writes, ``headroom reassign run`` reads, checks and carries out: every kind of made plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.cluster.reassignment.execution.control import RunPolicy
from headroom.operations.plans.batch_files import write_batch_files
from headroom.operations.plans.estimating import BatchingRequest, EstimateRequest, estimate_plan
from headroom.operations.reassignments.plan_file import write_plan_text
from headroom.operations.reassignments.plan_files import read_batches, whole_plan
from headroom.operations.reassignments.run_plan import PlannedRun, RunRates, planned_run
from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.planning.reassignments.generation.planner import MadePlan, make_plan
from headroom.planning.reassignments.generation.request import PlanRequest
from headroom.planning.reassignments.plan import ReassignmentPlan, plan_text
from headroom.planning.reassignments.run.record import RecordedRun
from headroom.planning.reassignments.run.snapshot import cluster_state_of_run
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.support.random_placements import cluster_state, cluster_states, placement, plan_requests
from tests.unit.builders.run_stage import RunStage
from tests.unit.fakes.reassigned_cluster import FakeReassignedCluster

# How the plan is cut: not at all, which gives a drained broker's leads up first nevertheless, or into batches.
CUTS = (None, BatchingRequest(), BatchingRequest(batches=3), BatchingRequest(batches="auto", max_throttle=10**9))
MB = 1_000_000
# One of each kind.
REQUESTS = {
    "drain": PlanRequest(drain=frozenset({0})),
    "drain to": PlanRequest(drain=frozenset({0}), to_brokers=frozenset({2, 3})),
    "drain two": PlanRequest(drain=frozenset({0, 1})),
    "drain and reorder": PlanRequest(drain=frozenset({0}), reorder=True),
    "drain and factor": PlanRequest(drain=frozenset({0}), replication_factor=1),
    "new brokers": PlanRequest(to_brokers=frozenset({0, 1, 2, 3})),
    "more replicas": PlanRequest(replication_factor=3),
    "fewer replicas": PlanRequest(replication_factor=1),
    "replace": PlanRequest(replace={0: 2}),
    "replace and reorder": PlanRequest(replace={0: 2}, reorder=True),
    "reorder": PlanRequest(reorder=True),
    "one topic": PlanRequest(topics=frozenset({"foo"}), drain=frozenset({0})),
}


def small_cluster() -> ClusterState:
    """Brokers 0 and 1 with all replicas, of which broker 0 leads most; 2 and 3 are empty."""
    foo = [placement("foo", n, [0, 1] if n < 4 else [1, 0], 10 * MB, 1e6) for n in range(6)]
    bar = [placement("bar", 0, [0], 10 * MB, 1e6), placement("bar", 1, [0, 1], 10 * MB, 1e6, isr=[0])]
    # The preferred leader is broker 1 already, and broker 0 leads.
    led_elsewhere = placement("bar", 2, [1, 0], 10 * MB, 1e6, isr=[0, 1])
    return cluster_state([0, 1, 2, 3], [*foo, *bar, led_elsewhere])


def written(state: ClusterState, made: MadePlan, cut: BatchingRequest | None, folder: Path) -> list[ReassignmentPlan]:
    """Return what a run reads of the batches that the command writes."""
    result = estimate_plan(made, state, EstimateRequest(ThrottlePolicy(), batching=cut), "the plan")
    write_batch_files(folder, result.batches, result.estimate.changes.rollback)
    return read_batches([], folder, lambda note: None)


def checked(state: ClusterState, batches: Sequence[ReassignmentPlan], stage: RunStage) -> PlannedRun:
    """Return the run after its checks; its plan is the one that was estimated."""
    snapshot = stage.cluster.read()
    logs = stage.cluster.read_logs(sorted(snapshot.alive), None).brokers
    known = cluster_state_of_run(snapshot, logs)
    fingerprint = whole_plan(batches).fingerprint(state.topic_ids)
    return planned_run(batches, snapshot, known, RecordedRun("new"), fingerprint, RunRates(None))


def stage_of(state: ClusterState, batches: Sequence[ReassignmentPlan]) -> RunStage:
    fake = FakeReassignedCluster(dict(state.partitions), set(state.alive))
    return RunStage(fake, list(batches), RunPolicy(None, pause_s=0))


def assert_carried_out(state: ClusterState, made: MadePlan, batches: Sequence[ReassignmentPlan]) -> None:
    """The run is accepted, and it ends with the plan, after leads were given up before the first copy."""
    stage = stage_of(state, batches)
    led_at_copies: list[Mapping[TopicPartition, int | None]] = []

    def look(cluster: FakeReassignedCluster) -> None:
        if any(cluster.partitions[name].adding for name in cluster.left):
            led_at_copies.append({name: p.leader for name, p in cluster.partitions.items()})

    stage.cluster.on_look = look
    planned = checked(state, batches, stage)
    assert planned.fingerprint == made.plan.fingerprint(state.topic_ids)
    outcome = stage.run()
    assert (outcome.stopped, outcome.refused) == (None, {})
    targets = {a.name: a.replicas for a in made.plan}
    assert {name: p.replicas for name, p in stage.cluster.partitions.items() if name in targets} == targets
    # In the order of the plan, or of the batch before, where that copies nothing.
    first = {
        a.name: targets[a.name] if set(targets[a.name]) == set(a.replicas) else a.replicas for a in made.leads_first
    }
    if led_at_copies and len(batches) > 1:
        copying = {name: replicas[0] for name, replicas in first.items() if set(targets[name]) != set(replicas)}
        assert {name: led_at_copies[0][name] for name in copying} == copying
    # The same command again has nothing to do.
    assert checked(state, batches, stage).empty
    assert stage.run().stopped is None
    assert {name: p.replicas for name, p in stage.cluster.partitions.items() if name in targets} == targets


@pytest.mark.parametrize("cut", CUTS, ids=["uncut", "batches-dir", "3 batches", "auto"])
@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_every_kind_of_plan_is_read_checked_and_carried_out(
    request_: PlanRequest, cut: BatchingRequest | None, tmp_path: Path
) -> None:
    state = small_cluster()
    made = make_plan(state, request_)
    assert made.plan.assignments
    assert_carried_out(state, made, written(state, made, cut, tmp_path / "out"))
    # --save-plan, and the way back from it.
    file = tmp_path / "plan.json"
    write_plan_text(file, plan_text(made.plan))
    assert_carried_out(state, made, read_batches([file], None, lambda note: None))
    back = read_batches([tmp_path / "out" / "rollback.json"], None, lambda note: None)
    stage = stage_of(state, [made.plan])
    stage.run()
    assert not checked(state, back, stage).empty
    RunStage(stage.cluster, back, stage.policy).run()
    assert {n: p.replicas for n, p in stage.cluster.partitions.items()} == {
        n: p.replicas for n, p in state.partitions.items()
    }


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_plan_of_any_cluster_is_read_checked_and_carried_out(data: st.DataObject) -> None:
    state = data.draw(cluster_states())
    try:
        made = make_plan(state, data.draw(plan_requests(state)))
    except HeadroomError:
        return
    if not made.plan.assignments:
        return
    cut = data.draw(st.sampled_from(CUTS))
    with TemporaryDirectory() as folder:
        batches = written(state, made, cut, Path(folder))
    assert_carried_out(state, made, batches)
