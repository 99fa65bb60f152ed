"""Plans beside Kafka's tool on real brokers: throttled replica lists, and replicas in the end.

Each plan exists twice, for twin topics. Kafka's tool executes one of them, ``headroom reassign run`` the other.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, await_true, failure
from benchmarks.fixtures.headroom_commands import HeadroomCommands
from benchmarks.results import Figure
from headroom.cluster.java import jar_folder, java_command
from headroom.cluster.live.live_cluster import read_throttles
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment, plan_text
from headroom.planning.throttles.replica_lists import TopicLists, parse_replica_list
from headroom.schemas.keys import TopicPartition

PLANS = 12
_BROKERS = 4
_TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
_THROTTLE = 50_000_000
_KAFKA, _HEADROOM = "kafka", "headroom"
_TIMEOUT_S = 120.0
# A list of a topic as (role, partition, broker).
ListEntry = tuple[str, int, int]


@dataclass(frozen=True)
class TwinPlan:
    """One plan for each of two topics with the same replicas.

    Attributes:
        number: number of the plan.
        before: replicas by partition.
        after: target replicas by partition.
    """

    number: int
    before: Mapping[int, tuple[int, ...]]
    after: Mapping[int, tuple[int, ...]]

    def topic(self, twin: str) -> str:
        """Return the topic of a twin."""
        return f"{twin}-{self.number}"

    def plan(self, twin: str) -> ReassignmentPlan:
        """Return the plan of a twin."""
        return ReassignmentPlan(
            tuple(TargetAssignment(TopicPartition(self.topic(twin), p), r) for p, r in sorted(self.after.items()))
        )

    @property
    def gaining(self) -> frozenset[int]:
        """Return the partitions that gain a replica."""
        return frozenset(p for p, replicas in self.after.items() if set(replicas) - set(self.before[p]))


def twin_plans(chance: Random) -> list[TwinPlan]:
    """Return random plans: replicas replaced, added, removed, reordered and left alone."""
    plans = []
    for number in range(PLANS):
        before, after = {}, {}
        # Kafka creates a topic with one replication factor; the plan may change it partition by partition.
        factor = chance.randint(1, 3)
        # More than ten partitions in some of them, because Kafka's tool sorts entries as texts.
        for partition in range(chance.choice((1, 3, 6, 12))):
            before[partition] = _replicas(factor, chance)
            others = _replicas(factor, chance), _replicas(chance.randint(1, 3), chance)
            after[partition] = chance.choice((*others, before[partition][::-1]))
        # A plan that changes nothing is refused; this partition gains a replica.
        after[0] = (*before[0], *set(range(1, _BROKERS + 1)).difference(before[0]))
        plans.append(TwinPlan(number, before, after))
    return plans


def _replicas(factor: int, chance: Random) -> tuple[int, ...]:
    return tuple(chance.sample(range(1, _BROKERS + 1), factor))


def entries(lists: TopicLists, partitions: Iterable[int]) -> frozenset[ListEntry]:
    """Return the entries of some partitions in the lists of a topic."""
    chosen = frozenset(partitions)
    by_role = {"leader": parse_replica_list(lists.leader), "follower": parse_replica_list(lists.follower)}
    return frozenset(
        (role, partition, broker)
        for role, listed in by_role.items()
        if listed is not None
        for partition, broker in listed.entries
        if partition in chosen
    )


def list_figures(on_progress: OnProgress) -> list[Figure]:
    """Return the number of list entries and replicas that differ from those of Kafka's tool.

    Raises:
        HeadroomError: a plan was refused, or did not end.
    """
    twins, differences = twin_plans(Random(19)), 0
    with BenchCluster(_BROKERS) as bench:
        bench.add_section("reassign", {"pause_s": 0.0})
        bench.add_section("elections", {"pause_s": 0.0})
        _create_topics(bench, twins)
        ours = _planned_lists(bench, twins)
        for twin in twins:
            theirs = entries(_execute_with_tool(bench, twin), twin.gaining)
            different = theirs ^ ours[twin.number]
            differences += len(different)
            on_progress(f"plan {twin.number}: {len(theirs)} entries of Kafka's tool, {len(different)} differ")
        _run(bench, twins)
        by_kafka, by_headroom = (_replicas_of(bench, twins, who) for who in (_KAFKA, _HEADROOM))
        elsewhere = [name for name, replicas in by_kafka.items() if replicas != by_headroom[name]]
        on_progress(f"in the end {len(elsewhere)} of {len(by_kafka)} partitions have other replicas")
    return [Figure("plan_lists_differ", differences + len(elsewhere), "entries and replicas", len(twins))]


def _create_topics(bench: BenchCluster, twins: Sequence[TwinPlan]) -> None:
    topics = {
        twin.topic(who): {"assignments": {p: list(r) for p, r in twin.before.items()}}
        for twin in twins
        for who in (_KAFKA, _HEADROOM)
    }
    bench.admin.create_topics(topics, wait_for_metadata=True)


def _file(bench: BenchCluster, twin: TwinPlan, who: str) -> Path:
    file = bench.folder / f"{twin.topic(who)}.json"
    file.write_text(plan_text(twin.plan(who)), encoding="utf-8")
    return file


def _planned_lists(bench: BenchCluster, twins: Sequence[TwinPlan]) -> dict[int, frozenset[ListEntry]]:
    """Return the lists of every plan by its number, all from one saved state."""
    commands, state, by_number = HeadroomCommands(bench.config), bench.folder / "state.json", {}
    commands.json("plan", str(_file(bench, twins[0], _HEADROOM)), "--save-state", str(state))
    for twin in twins:
        planned = commands.json("plan", str(_file(bench, twin, _HEADROOM)), "--state", str(state))
        lists = planned["lists"][twin.topic(_HEADROOM)]
        by_number[twin.number] = entries(TopicLists(lists["leader"], lists["follower"]), range(len(twin.before)))
    return by_number


def _execute_with_tool(bench: BenchCluster, twin: TwinPlan) -> TopicLists:
    """Execute a plan with Kafka's tool to its end, and return the lists that the tool set."""
    file, topic = str(_file(bench, twin, _KAFKA)), twin.topic(_KAFKA)
    _tool(bench, "--reassignment-json-file", file, "--execute", "--throttle", str(_THROTTLE))
    # The broker that is asked may learn of the lists a moment later.
    await_true(
        lambda: topic in read_throttles(bench.settings).listed_topics(), _TIMEOUT_S, f"the lists of plan {twin.number}"
    )
    config = read_throttles(bench.settings).listed_topics()[topic]
    await_true(lambda: not bench.admin.list_partition_reassignments(), _TIMEOUT_S, f"the end of plan {twin.number}")
    _tool(bench, "--reassignment-json-file", file, "--verify")
    return TopicLists(config.leader_list, config.follower_list)


def _tool(bench: BenchCluster, *arguments: str) -> None:
    command = [java_command(), "-Xmx256m", "-XX:+UseSerialGC", "-cp", f"{jar_folder('kafka')}/*", _TOOL]
    command += ["--bootstrap-server", bench.bootstrap_servers, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        raise failure(f"Kafka's tool failed: {done.stdout[-300:]} {done.stderr[-300:]}")


def _run(bench: BenchCluster, twins: Sequence[TwinPlan]) -> None:
    files = [str(_file(bench, twin, _HEADROOM)) for twin in twins]
    run = ["reassign", "run", *files, "--throttle", f"{_THROTTLE // 10**6}MB", "--execute", "--yes"]
    outcome = HeadroomCommands(bench.config).json(*run)
    if outcome["state"] != "done":
        raise failure(f"the run of the plans ended early: {json.dumps(outcome)[:300]}")


def _replicas_of(bench: BenchCluster, twins: Sequence[TwinPlan], who: str) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the present replicas of every partition of a twin, under the number of the plan."""
    numbers = {twin.topic(who): str(twin.number) for twin in twins}
    return {
        TopicPartition(numbers[topic["name"]], partition["partition_index"]): tuple(partition["replica_nodes"])
        for topic in bench.admin.describe_topics(list(numbers))
        for partition in topic["partitions"]
    }
