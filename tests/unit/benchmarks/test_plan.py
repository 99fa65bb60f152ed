"""The group plan: Kafka's placer, spread and bytes of made plans, and lists beside Kafka's tool."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from benchmarks.groups.plan.kafka_lists import PLANS, entries, twin_plans
from benchmarks.groups.plan.kafka_placer import generated_plan
from benchmarks.groups.plan.large_plan import large_move, plan_seconds
from benchmarks.groups.plan.made_plans import Spread, Task, copied_bytes, spread, tasks
from benchmarks.groups.plan.run_needs import need_figures
from headroom.operations.reassignments.run_plan import PlannedRun
from headroom.planning.reassignments.generation.request import PlanRequest
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.throttles.replica_lists import TopicLists
from headroom.schemas.keys import TopicPartition
from tests.support.random_placements import cluster_state, placement


class FirstChance(Random):
    """Every random number is the lowest, and nothing is shuffled."""

    def randrange(self, *_: int) -> int:  # type: ignore[override]
        return 0

    def shuffle(self, *_: object) -> None:
        return


def test_kafkas_placer_gives_the_stripes_of_its_own_documentation() -> None:
    """Racks A, B, C of three brokers each, all offsets 0: A0 B0 C0, B1 C1 A1, C2 A2 B2."""
    racks = {10 * rack + n: "ABC"[rack] for rack in range(3) for n in range(3)}
    made = generated_plan([placement("foo", p, [0, 1, 2]) for p in range(3)], racks, FirstChance())
    assert [a.replicas for a in made] == [(0, 10, 20), (11, 21, 1), (22, 2, 12)]


def test_kafkas_placer_without_racks_spreads_leads_and_replicas_of_a_topic() -> None:
    """8 partitions, factor 2, 4 brokers: 2 leads and 4 replicas each; the factor is that of the first partition."""
    partitions = [placement("foo", p, [0, 1] if p == 0 else [0]) for p in range(8)]
    made = generated_plan(partitions, dict.fromkeys(range(4)), Random(7))
    assert Counter(a.replicas[0] for a in made) == dict.fromkeys(range(4), 2)
    assert all(len(set(a.replicas)) == 2 for a in made)
    assert Counter(broker for a in made for broker in a.replicas) == dict.fromkeys(range(4), 4)


def test_bytes_and_spread_are_those_after_the_plan() -> None:
    """foo-0 of 300 bytes gets broker 2 instead of 1; foo-1 of 100 bytes stays on 1."""
    state = cluster_state([0, 1, 2], [placement("foo", 0, [0, 1], 300), placement("foo", 1, [1], 100)])
    plan = ReassignmentPlan((TargetAssignment(TopicPartition("foo", 0), (2, 0)),))
    assert copied_bytes(plan, state) == 300
    task = Task("", state, PlanRequest(), frozenset({0, 1, 2}))
    # One replica each; leads 0, 1, 1 with mean 2/3; bytes 300, 100, 300 with mean 700/3.
    found = spread(plan, task)
    assert vars(found) == pytest.approx({"replicas": 1.0, "leads": 1.5, "bytes_": 9 / 7})
    assert found.worse_than(Spread(1.0, 1.4, 9 / 7)) == ["leads"]
    assert found.worse_than(found) == []


def test_the_clusters_are_drained_and_grown() -> None:
    found = list(tasks())
    assert len(found) == 12
    for task in found:
        if task.request.drain:
            assert not task.request.drain & task.brokers
        else:
            assert task.brokers == set(task.state.brokers)
            assert len({broker for p in task.state.partitions.values() for broker in p.replicas}) < len(task.brokers)


def test_twin_plans_gain_replicas_and_have_others_that_gain_none() -> None:
    plans = twin_plans(Random(19))
    assert len(plans) >= PLANS >= 12
    assert all(0 in twin.gaining for twin in plans)
    assert any(set(twin.after) - twin.gaining for twin in plans)
    assert {len(twin.after) for twin in plans} >= {1, 12}
    assert all(len({len(replicas) for replicas in twin.before.values()}) == 1 for twin in plans)
    assert all(len(set(replicas)) == len(replicas) for twin in plans for replicas in twin.after.values())


def test_entries_of_chosen_partitions() -> None:
    lists = TopicLists("0:1,0:2,10:3", None)
    assert entries(lists, [0]) == {("leader", 0, 1), ("leader", 0, 2)}
    assert entries(TopicLists(None, "1:4"), [1]) == {("follower", 1, 4)}


def test_a_large_plan_is_timed_with_its_batches() -> None:
    state, plan = large_move(Random(1), partition_count=30)
    assert (len(plan), len(state.brokers)) == (30, 60)
    assert all(seconds > 0 for seconds in plan_seconds(plan, state))


def test_plan_and_run_need_the_same_of_random_plans() -> None:
    problems: list[str] = []
    differs, compared = need_figures(25, problems.append)
    assert (differs.value, problems) == (0, [])
    assert compared.value > 200


def test_a_need_that_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that forgets that a broker limits replicas needs less than its plan says."""
    whole = PlannedRun.limiting_loads
    monkeypatch.setattr(PlannedRun, "limiting_loads", lambda run, changes: whole(run, changes)[1:])
    problems: list[str] = []
    differs, _ = need_figures(5, problems.append)
    assert differs.value > 0
    assert "by plan, None by run" in problems[0]
