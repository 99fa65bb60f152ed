"""One proposal, after something has happened to a broker, to the leads and replicas that came of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, await_true, failure
from benchmarks.fixtures.headroom_commands import HeadroomCommands
from benchmarks.fixtures.throttled_move import ThrottledMove
from benchmarks.groups.proposals.promise import PartitionPlace, Places, balance_promise
from benchmarks.groups.proposals.promise_cases import (
    PROMISE_BROKERS,
    RACKS,
    PromiseCase,
    PromiseCluster,
)
from headroom.cluster.embedded import BrokerOptions
from headroom.schemas.keys import TopicPartition

# Kafka's own is 300 s.
_CHECK_S = 15
_DEADLINE_S = 90.0
# What a run changed last is in all metadata after this.
_SETTLE_S = 2.0
_MOST_PROPOSALS = 3
_EXECUTE = ("--execute", "--yes")
_LAST_WORDS = 300


def promise_cluster(shared: PromiseCluster) -> BenchCluster:
    """Return brokers for the runs that share them; they are not started."""
    # So that one dead broker takes no group's coordinator away, which the lock of a run needs.
    properties = {"offsets.topic.replication.factor": "3"}
    if shared.rebalances:
        properties["auto.leader.rebalance.enable"] = "true"
        properties["leader.imbalance.check.interval.seconds"] = str(_CHECK_S)
    racks = {number: {"broker.rack": rack} for number, rack in enumerate(RACKS, start=1)} if shared.has_racks else {}
    return BenchCluster(PROMISE_BROKERS, BrokerOptions(properties=properties, broker_properties=racks))


def record_promise(bench: BenchCluster, topic: str, case: PromiseCase, on_progress: OnProgress) -> dict[str, Any]:
    """Make a proposal, carry it out, and return what differs from what it promised.

    Raises:
        HeadroomError: nothing was proposed, or a broker did not stop or return.
    """
    began_s = time.monotonic()
    commands, folder = HeadroomCommands(bench.config), bench.folder / f"{topic}-proposal"
    with ThrottledMove(bench, topic, case.partitions), _with_broker(bench, case):
        before, proposal = _propose(bench, commands, case, topic, folder)
        promise = balance_promise(proposal, before, case.cluster.rebalances)
        failed = _carry_out(commands, folder, proposal, case.by_balance_run)
        # Whatever Kafka itself changes after the run has changed then, too.
        time.sleep(_SETTLE_S + (_CHECK_S if case.cluster.rebalances else 0))
        came = _places(bench)
    differences = [*failed, *promise.differences(came, failed[0] if failed else "its run ended with 0")]
    actions = proposal["chosen_actions"]
    on_progress(
        f"{case.name}: {actions} actions in {len(proposal['batches'])} batches, {len(differences)} differences, "
        f"{time.monotonic() - began_s:.0f} s"
    )
    for difference in differences:
        on_progress(f"  {difference}")
    return {
        "actions": actions,
        "batches": len(proposal["batches"]),
        "copied_replicas": sum(batch["copied_replicas"] for batch in proposal["batches"]),
        "differences": differences,
    }


def _propose(
    bench: BenchCluster, commands: HeadroomCommands, case: PromiseCase, topic: str, folder: Path
) -> tuple[Places, dict[str, Any]]:
    """Return where partitions are, and the proposal from there.

    Where Kafka gives leads back between the two readings of a proposal, rates are unknown and nothing is proposed. Then
    it is made again, as an operator would.

    Raises:
        HeadroomError: nothing was proposed.
    """
    for _ in range(_MOST_PROPOSALS):
        before = _places(bench)
        proposal = commands.json("balance", "propose", *case.options, "--topics", topic, "--dir", str(folder))
        if proposal["batches"]:
            return before, proposal
    raise failure(f"{case.name}: nothing is proposed: {proposal['warnings']}, {proposal['notes']}")


def _carry_out(
    commands: HeadroomCommands, folder: Path, proposal: Mapping[str, Any], by_balance_run: bool
) -> list[str]:
    """Carry out a proposal as it prints it, and return how its command failed; empty if none did."""
    whole = ("balance", "run", str(folder))
    batches = (_batch_command(folder, batch, proposal["throttle_bytes_per_s"]) for batch in proposal["batches"])
    for words in [whole] if by_balance_run else batches:
        done = commands.run(*words, *_EXECUTE)
        if done.returncode:
            last = " ".join(done.stderr.split())[-_LAST_WORDS:]
            return [f"headroom {' '.join(words[:2])} ended with {done.returncode}: {last}"]
    return []


def _batch_command(folder: Path, batch: Mapping[str, Any], throttle_bytes_per_s: int | None) -> tuple[str, ...]:
    rate = ("--throttle", str(throttle_bytes_per_s)) if batch["copied_replicas"] else ()
    plan = folder / f"batch-{batch['number']:02d}.json"
    return ("reassign", "run", str(plan), *rate, "--fingerprint", batch["fingerprint"])


@contextmanager
def _with_broker(bench: BenchCluster, case: PromiseCase) -> Iterator[None]:
    """Run the block with the broker of a case restarted, or down. Afterwards all brokers are up.

    Raises:
        HeadroomError: the broker did not stop, or its replicas are not in sync again.
    """
    if case.returned is not None:
        _stop_broker(bench, case.returned)
        _start_broker(bench, case.returned)
    if case.dead is None:
        yield
        return
    _stop_broker(bench, case.dead)
    try:
        yield
    finally:
        _start_broker(bench, case.dead)


def _stop_broker(bench: BenchCluster, broker: int) -> None:
    """Stop a broker, and return once others lead its partitions; one that only it has stays without a leader."""
    bench.stop(broker)
    await_true(
        lambda: all(place.leader != broker for place in _places(bench).values()), _DEADLINE_S, "leads are taken over"
    )


def _start_broker(bench: BenchCluster, broker: int) -> None:
    """Start a broker, and return once its replicas are in sync."""
    bench.restart(broker)
    await_true(
        lambda: all(set(place.replicas) == place.in_sync for place in _places(bench).values()),
        _DEADLINE_S,
        f"replicas of broker {broker} in sync",
    )


def _places(bench: BenchCluster) -> dict[TopicPartition, PartitionPlace]:
    """Return where all partitions are, with those of Kafka itself."""
    return {
        TopicPartition(topic["name"], int(p["partition_index"])): PartitionPlace(
            tuple(map(int, p["replica_nodes"])),
            None if p["leader_id"] < 0 else int(p["leader_id"]),
            frozenset(map(int, p["isr_nodes"])),
        )
        for topic in bench.retry(lambda: bench.admin.describe_topics())
        for p in topic["partitions"]
    }
