"""Random clusters with brokers that can take nothing, or hardly anything, on unequal racks and disks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headroom.operations.balance.cluster import BalanceCluster
from headroom.operations.balance.requests import ProposalRequest
from headroom.planning.balance.arrays import FloatArray
from headroom.planning.balance.observation.cluster import observed_cluster, sparing
from headroom.planning.balance.observation.loads import ObservedLoads
from headroom.planning.balance.slow_brokers.slow_brokers import SlowAdvice
from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState, LogDirectory, PartitionPlacement
from headroom.schemas.config import BalanceSettings, Settings

KINDS = ("", "", "", "unreadable", "dead", "cordoned", "cordoned in part", "slow", "full", "offline")
GB, MB = 10**9, 10**6
_PER_TOPIC = 10
_READ_MS = 1_795_564_800_000


@dataclass(frozen=True)
class LimitCluster:
    """A cluster, what is true of its brokers, and what is asked for.

    Attributes:
        cluster: the cluster as it is observed.
        kinds: kind of each broker; empty if nothing is the matter with it.
        request: request for a proposal.
    """

    cluster: BalanceCluster
    kinds: Mapping[int, str]
    request: ProposalRequest


def limit_cluster(seed: int) -> LimitCluster:
    """Return the cluster of a seed."""
    draw = np.random.default_rng(seed)
    kinds, racks = _brokers(draw)
    partitions = _partitions(draw, kinds, racks)
    log_dirs, partitions = _on_disks(draw, kinds, partitions)
    brokers = {
        number: BrokerState(
            number,
            alive=kind != "dead",
            # Kafka tells the rack of registered brokers only.
            rack=None if kind == "dead" else racks[number],
            log_dirs=() if kind == "dead" else log_dirs[number],
        )
        for number, kind in kinds.items()
    }
    placed = {p.name: p for p in sorted(partitions, key=lambda p: p.name)}
    rebalances = (None, True, False)[int(draw.integers(3))]
    state = ClusterState("random", _READ_MS, brokers, placed, auto_leader_rebalance=rebalances, rates_from="a seed")
    write, read = _rates(draw, state, kinds)
    loads = ObservedLoads(
        len(write),
        tuple(range(len(write))),
        write,
        read[0],
        write[0] / 1000,
        "a seed",
        read_by_hour=read,
        # What consumers read from the closest replica.
        follower_reads={1: 3.0 * MB} if draw.random() < 0.2 else {},
        unmeasured=frozenset(number for number, kind in kinds.items() if kind == "unreadable"),
    )
    settings = Settings(balance=_capacities(draw, state, write, read))
    slow = frozenset(number for number, kind in kinds.items() if kind == "slow")
    observed = sparing(observed_cluster(state, loads, settings.balance), SlowAdvice(slow, slow))
    throttle = int(draw.uniform(60, 300) * MB) if draw.random() < 0.5 else None
    return LimitCluster(
        BalanceCluster(settings, state, loads, observed, live=False), kinds, ProposalRequest(throttle=throttle)
    )


def _brokers(draw: np.random.Generator) -> tuple[dict[int, str], dict[int, str | None]]:
    """Return the kinds and the racks of 5 to 9 brokers; brokers 1 and 2 are well."""
    count = int(draw.integers(5, 10))
    names = [*"abc"[: int(draw.integers(2, 4))], *(["d"] if draw.random() < 0.2 else [])]
    chances = draw.dirichlet(np.full(len(names), 2.0))
    has_racks, kinds, racks = bool(draw.random() < 0.85), {}, {}
    for number in range(1, count + 1):
        rack = names[number - 1] if number <= len(names) else str(draw.choice(names, p=chances))
        racks[number] = rack if has_racks and not (number > 2 and draw.random() < 0.05) else None
        kinds[number] = "" if number <= 2 else str(draw.choice(KINDS))
    if len(names) > 2 and draw.random() < 0.4:
        # None of a whole rack can be read.
        kinds |= {number: "unreadable" for number, rack in racks.items() if rack == "c"}
    return kinds, racks


def _partitions(
    draw: np.random.Generator, kinds: Mapping[int, str], racks: Mapping[int, str | None]
) -> list[PartitionPlacement]:
    """Return partitions of which most are as even over racks as Kafka places them, and the others lie by chance."""
    ids, partitions = list(kinds), []
    weights = 1.0 / np.array(ids)
    for number in range(int(draw.integers(20, 60))):
        replication = int(draw.integers(2, 5))
        order = [int(b) for b in draw.choice(ids, len(ids), False, weights / weights.sum())]
        replicas = order[:replication] if draw.random() < 0.2 else []
        while len(replicas) < replication:
            used = Counter(racks[b] for b in replicas)
            replicas.append(min((b for b in order if b not in replicas), key=lambda b: used[racks[b]]))
        in_sync = [b for b in replicas if kinds[b] != "dead" and draw.random() > 0.03]
        # Mostly the preferred one leads.
        leader = next(iter(in_sync[1:] if draw.random() < 0.1 else in_sync), None)
        partitions.append(
            PartitionPlacement(
                f"topic-{number // _PER_TOPIC}",
                number % _PER_TOPIC,
                leader,
                tuple(replicas),
                tuple(in_sync),
                size_bytes=int(draw.exponential(10.0) * GB),
            )
        )
    return partitions


def _on_disks(
    draw: np.random.Generator, kinds: Mapping[int, str], partitions: Sequence[PartitionPlacement]
) -> tuple[dict[int, tuple[LogDirectory, ...]], list[PartitionPlacement]]:
    """Return the log directories of brokers, and the partitions with the directory of each replica."""
    log_dirs, placed = {}, {p.name: dict[int, str]() for p in partitions}
    for number, kind in kinds.items():
        count = 1 if kind in ("", "dead") and draw.random() < 0.4 else int(draw.integers(2, 4))
        paths = [f"/{letter}" for letter in "abc"[:count]]
        is_shared = bool(draw.random() < 0.2 and kind != "cordoned in part")
        # Logs are on directories by chance, so the one with the fewest may be full.
        chances, own = draw.dirichlet(np.full(count, 1.5)), defaultdict[str, list[int]](list)
        for p in partitions:
            if number in p.replicas:
                placed[p.name][number] = path = str(draw.choice(paths, p=chances))
                own[path].append(p.size_bytes or 0)
        log_dirs[number] = tuple(_directories(draw, kind, paths, own, is_shared))
    return log_dirs, [replace(p, log_dirs=placed[p.name]) for p in partitions]


def _directories(
    draw: np.random.Generator, kind: str, paths: Sequence[str], own: Mapping[str, Sequence[int]], is_shared: bool
) -> Iterable[LogDirectory]:
    """Yield the log directories of a broker, on one volume or on one each."""
    volumes = [list(paths)] if is_shared else [[path] for path in paths]
    for at, volume in enumerate(volumes):
        logs_bytes = sum(sum(own[path]) for path in volume if path in own)
        used = float(draw.uniform(0.7, 1.0) if kind == "full" else draw.uniform(0.2, 0.95))
        total = int(max(logs_bytes, GB) / used) + GB
        others = int(total * draw.choice([0.0, 0.03, 0.15]) * (1 - used))
        for path in volume:
            yield LogDirectory(
                path,
                total,
                total - others - logs_bytes,
                offline=kind == "offline" and at == len(volumes) - 1,
                cordoned=kind == "cordoned" or (kind == "cordoned in part" and at == 0),
                logs_bytes=sum(own.get(path, ())),
                volume=f"volume {at}",
                logs=len(own.get(path, ())),
            )


def _rates(draw: np.random.Generator, state: ClusterState, kinds: Mapping[int, str]) -> tuple[FloatArray, FloatArray]:
    """Return what is written and read by hour, in a third of the clusters unknown where the leader cannot be read."""
    count, hours = len(state.partitions), int(draw.choice([1, 4]))
    write = draw.exponential(5.0 * MB, count) * draw.uniform(0.5, 1.5, (hours, count))
    if draw.random() < 1 / 3:
        led = [p.leader for p in state.partitions.values()]
        write[:, [leader is not None and kinds[leader] == "unreadable" for leader in led]] = np.nan
    return write, write * draw.uniform(0, 3, count)


def _capacities(draw: np.random.Generator, state: ClusterState, write: FloatArray, read: FloatArray) -> BalanceSettings:
    """Return settings by which the busiest brokers are near their limits of the network, or beyond them."""
    received, sent = (defaultdict[int, FloatArray](lambda: np.zeros(1)) for _ in range(2))
    for p, written, consumed in zip(
        state.partitions.values(), np.nan_to_num(write).T, np.nan_to_num(read).T, strict=True
    ):
        for broker in p.replicas:
            received[broker] = received[broker] + written
        if p.leader is not None:
            sent[p.leader] = sent[p.leader] + consumed + written * (len(p.replicas) - 1)
    most = []
    for own in (received, sent):
        busiest = sorted((float(load.max()) for load in own.values()), reverse=True)
        most.append(busiest[min(int(draw.integers(3)), len(busiest) - 1)])
    into, out = (rate * draw.uniform(1.0, 1.2) / 0.8 if draw.random() < 0.7 else None for rate in most)
    return BalanceSettings(network_in_capacity=into, network_out_capacity=out)
