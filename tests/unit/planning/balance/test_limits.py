"""No proposal breaks a limit of racks, disks or directories, checked by the text of ``docs/balance.md`` alone.

The checker shares no function with the search: it counts brokers, racks and bytes by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil

import numpy as np
import pytest

from headroom.planning.balance.batches.batches import make_batches
from headroom.planning.balance.batches.numbering import CopyLimits
from headroom.planning.balance.goals.catalogue import built_in_goals
from headroom.planning.balance.model import ClusterModel
from headroom.planning.balance.observation.cluster import observed_cluster, sparing
from headroom.planning.balance.observation.loads import ObservedLoads
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.search.actions import ActionKind, BalanceAction
from headroom.planning.balance.search.proposal import propose
from headroom.planning.balance.slow_brokers.slow_brokers import SlowAdvice
from headroom.planning.reassignments.cluster_state import BrokerState, LogDirectory, PartitionPlacement
from headroom.schemas.config import BalanceSettings
from tests.unit.builders.balance_states import GB, MB, state_of

KINDS = ("", "", "", "unreadable", "dead", "cordoned", "cordoned in part", "slow", "full", "offline")
# Rounding of sums of sizes in another order.
BYTES = 1.0


@dataclass
class Volume:
    """A disk of a broker: what its files take, and which log directories are on it."""

    total: float
    others: float
    directories: list[str]
    is_open: bool = True
    logs: float = 0.0

    @property
    def free(self) -> float:
        return self.total - self.others - self.logs


@dataclass
class Broker:
    """What is true of a broker, however it is observed."""

    kind: str
    rack: str | None
    volumes: list[Volume] = field(default_factory=list)

    def volume_of(self, directory: str) -> Volume:
        return next(volume for volume in self.volumes if directory in volume.directories)


@dataclass
class Partition:
    """What is true of a partition: brokers of its replicas with their directories."""

    replicas: list[int]
    directories: dict[int, str]
    in_sync: set[int]
    leader: int | None
    size: float


class Cluster:
    """A random cluster with brokers of all kinds, unequal racks and disks."""

    def __init__(self, seed: int) -> None:
        self.draw = np.random.default_rng(seed)
        count = int(self.draw.integers(5, 10))
        racks = [*(["a", "b", "c"][: int(self.draw.integers(2, 4))]), *(["d"] if self.draw.random() < 0.2 else [])]
        if self.draw.random() < 0.15:
            racks = []
        chances = self.draw.dirichlet(np.full(max(1, len(racks)), 2.0))
        self.brokers: dict[int, Broker] = {}
        for number in range(1, count + 1):
            rack = (
                racks[number - 1]
                if number <= len(racks)
                else str(self.draw.choice(racks, p=chances))
                if racks
                else None
            )
            if number > 2 and self.draw.random() < 0.05:
                rack = None
            self.brokers[number] = Broker("" if number <= 2 else str(self.draw.choice(KINDS)), rack)
        if len(racks) > 2 and self.draw.random() < 0.6:
            # None of a whole rack can be read.
            for broker in self.brokers.values():
                broker.kind = "unreadable" if broker.rack == "c" else broker.kind
        self.leaders: set[int | None] = set()
        self.partitions = [self._partition() for _ in range(int(self.draw.integers(20, 60)))]
        for number, broker in self.brokers.items():
            # Nothing tells that a broker cannot be read if it leads nothing.
            if broker.kind == "unreadable" and all(p.leader != number for p in self.partitions):
                broker.kind = ""
        self._disks()

    def _partition(self) -> Partition:
        """Some replicas lie by chance, most are as even over racks as can be, as Kafka places them."""
        draw, ids = self.draw, list(self.brokers)
        weights = np.array([1.0 / number for number in ids])
        replication = int(draw.integers(2, min(5, len(ids))))
        order = [int(b) for b in draw.choice(ids, len(ids), False, weights / weights.sum())]
        replicas: list[int] = []
        if draw.random() < 0.2:
            replicas = order[:replication]
        while len(replicas) < replication:
            used = Counter(self.brokers[b].rack for b in replicas)
            replicas.append(min((b for b in order if b not in replicas), key=lambda b: used[self.brokers[b].rack]))
        up = [b for b in replicas if self.brokers[b].kind != "dead"]
        in_sync = set(up)
        for broker in up[1:]:
            if draw.random() < 0.08:
                in_sync.discard(broker)
        # A broker that cannot be read leads little: where it leads, no other broker with a replica takes anything.
        able = [b for b in replicas if b in in_sync]
        unreadable = [b for b in able if self.brokers[b].kind == "unreadable"]
        once = [b for b in unreadable if replication == 2 and b not in self.leaders]
        leader = next(iter(once or [b for b in able if b not in unreadable] or able), None)
        self.leaders.add(leader)
        return Partition(replicas, {}, in_sync or set(replicas), leader, float(int(draw.exponential(10.0) * GB)))

    def _disks(self) -> None:
        for number, broker in self.brokers.items():
            count = 1 if broker.kind in ("", "dead") and self.draw.random() < 0.5 else int(self.draw.integers(2, 4))
            paths = [f"/{name}" for name in "abc"[:count]]
            shared = self.draw.random() < 0.3
            broker.volumes = [Volume(0.0, 0.0, own) for own in ([paths] if shared else [[path] for path in paths])]
            for partition in self.partitions:
                if number in partition.replicas:
                    partition.directories[number] = path = str(self.draw.choice(paths))
                    broker.volume_of(path).logs += partition.size
            for volume in broker.volumes:
                used = float(self.draw.uniform(0.7, 1.0) if broker.kind == "full" else self.draw.uniform(0.2, 0.9))
                volume.total = float(int(max(volume.logs, GB) / used)) + GB
                volume.others = float(int(volume.total * self.draw.choice([0.0, 0.03, 0.15]) * (1 - used)))
            part = [] if shared else broker.volumes[:1]
            closed = {"cordoned": broker.volumes, "offline": broker.volumes[-1:], "cordoned in part": part}
            for volume in closed.get(broker.kind, []):
                volume.is_open = False

    def model(self) -> ClusterModel:
        """The model, by the way of an observed state with its loads."""
        count, hours = len(self.partitions), int(self.draw.choice([1, 4]))
        rates = self.draw.exponential(5.0 * MB, (hours, count))
        silent = [p.leader is not None and self.brokers[p.leader].kind == "unreadable" for p in self.partitions]
        rates[:, silent] = np.nan
        states = [
            BrokerState(
                number,
                alive=own.kind != "dead",
                # Kafka tells the rack of registered brokers only.
                rack=None if own.kind == "dead" else own.rack,
                log_dirs=() if own.kind == "dead" else tuple(self._directories(own)),
            )
            for number, own in self.brokers.items()
        ]
        placed = [
            PartitionPlacement(
                f"t{n // 10}",
                n % 10,
                p.leader,
                tuple(p.replicas),
                tuple(sorted(p.in_sync)),
                size_bytes=int(p.size),
                log_dirs=p.directories,
            )
            for n, p in enumerate(self.partitions)
        ]
        state = state_of(states, placed)
        loads = ObservedLoads(hours, tuple(range(hours)), rates, rates[0] * 2, rates[0] / 1000, "a test")
        slow = frozenset(number for number, own in self.brokers.items() if own.kind == "slow")
        observed = sparing(observed_cluster(state, loads, BalanceSettings()), SlowAdvice(slow, slow))
        return observed.model

    def _directories(self, broker: Broker) -> Iterator[LogDirectory]:
        for number, volume in enumerate(broker.volumes):
            for path in volume.directories:
                in_part = broker.kind == "cordoned in part" and path == "/a"
                yield LogDirectory(
                    path,
                    int(volume.total),
                    int(volume.free),
                    offline=broker.kind == "offline" and not volume.is_open,
                    cordoned=broker.kind == "cordoned" or in_part,
                    volume=f"volume {number}",
                )


class Checker:
    """Limits by the page, while replicas move."""

    def __init__(self, cluster: Cluster, model: ClusterModel) -> None:
        self.cluster = cluster
        self.ids = [b.broker for b in model.brokers]
        self.number = {model.name(n): n for n in range(model.partitions)}
        names = [model.name(n) for n in range(model.partitions)]
        self.partitions = [cluster.partitions[10 * int(name.topic[1:]) + name.partition] for name in names]
        self.replicas = [list(p.replicas) for p in self.partitions]
        brokers = cluster.brokers
        held = {b for p in self.partitions for b in p.replicas}
        # Dead brokers have no rack that anybody tells.
        self.rack = {n: b.rack if b.kind != "dead" else None for n, b in brokers.items()}
        self.racks = {
            rack for n, rack in self.rack.items() if rack is not None and (brokers[n].kind != "dead" or n in held)
        }
        self.unknown = {
            b
            for p in self.partitions
            if p.leader is None or brokers[p.leader].kind == "unreadable"
            for b in p.replicas
            if p.leader is not None
        }
        self.stored = {n: sum(p.size for p in self.partitions if n in p.replicas) for n in brokers}
        self.limit = {n: 0.8 * self._capacity(n) for n in brokers}
        # What leaves one of several volumes makes no room on another. On a single one all that is free counts.
        opened = {n: [v.free for v in b.volumes if v.is_open] for n, b in brokers.items()}
        self.largest = {n: max(free, default=0.0) if len(free) != 1 else np.inf for n, free in opened.items()}
        self.free = {n: sum(v.free for v in b.volumes if v.is_open) for n, b in brokers.items()}
        self.broken = [self.uneven(replicas) for replicas in self.replicas]

    def _capacity(self, number: int) -> float:
        """The total of its disks, or replicas and free bytes if others take over a tenth, of what can take replicas."""
        own = self.cluster.brokers[number]
        online = [v for v in own.volumes if v.is_open or own.kind != "offline"]
        total, room = sum(v.total for v in online), self.stored[number] + sum(v.free for v in online)
        capacity = total if room >= 0.9 * total else room
        if (spare := self._spare(number)) > 0 and own.kind == "cordoned in part":
            capacity = min(capacity, (self.stored[number] + spare) / 0.8)
        return capacity

    def _spare(self, number: int) -> float:
        """What directories that are not cordoned may take: they keep free what cordoned ones use, at least a fifth."""
        volumes = self.cluster.brokers[number].volumes
        used = sum(v.total - v.free for v in volumes if not v.is_open)
        return sum(v.free for v in volumes if v.is_open) - max(used, 0.2 * sum(v.total for v in volumes if v.is_open))

    def takes(self, number: int) -> bool:
        kind = self.cluster.brokers[number].kind
        is_open = kind in ("", "full") or (kind == "cordoned in part" and self._spare(number) > 0)
        return is_open and number not in self.unknown

    def uneven(self, replicas: Sequence[int]) -> int:
        """Replicas that a rack has too many or too few of, if their number were as even as can be."""
        if not self.racks:
            return 0
        counts = Counter(self.rack[b] for b in replicas)
        most, least = ceil(len(replicas) / len(self.racks)), len(replicas) // len(self.racks)
        return sum(max(0, counts[rack] - most) + max(0, least - counts[rack]) for rack in self.racks)

    def run(self, actions: Iterable[BalanceAction]) -> Iterator[str]:
        """Carry out actions at the same time; yield what is broken at some moment."""
        taken: Counter[int] = Counter()
        given: list[tuple[int, int]] = []
        for action in actions:
            partition, source, target = action.partition, self.ids[action.source], self.ids[action.target]
            own, name = self.partitions[partition], f"partition {partition} from {source} to {target}"
            kind = self.cluster.brokers[source].kind
            if kind in ("dead", "unreadable"):
                yield f"{name}: gives, and is {kind}"
            if action.kind is ActionKind.ELECT:
                if target not in self.replicas[partition]:
                    yield f"{name}: elects a broker without a replica"
                if target in own.replicas and target not in own.in_sync:
                    yield f"{name}: elects a replica out of sync"
                if not self.takes(target):
                    yield f"{name}: elects broker that takes nothing"
                continue
            if set(own.replicas) - own.in_sync:
                yield f"{name}: moves although {set(own.replicas) - own.in_sync} are not in sync"
            if not self.takes(target) or (self.racks and self.rack[target] is None):
                yield f"{name}: takes, and is {self.cluster.brokers[target].kind}, {self.rack[target]}"
            if own.size > self.largest[target] + BYTES:
                yield f"{name}: {own.size} where the largest room is {self.largest[target]}"
            self.replicas[partition] = [target if b == source else b for b in self.replicas[partition]]
            uneven = self.uneven(self.replicas[partition])
            if uneven > self.broken[partition]:
                yield f"{name}: racks of {self.replicas[partition]} are less even: {uneven}"
            self.broken[partition] = uneven
            taken[target] += own.size
            given.append((partition, source))
        for broker, size in taken.items():
            if self.stored[broker] + size > self.limit[broker] + BYTES:
                yield f"broker {broker}: stores {self.stored[broker] + size}, limit {self.limit[broker]}"
            if size > self.free[broker] + BYTES:
                yield f"broker {broker}: takes {size}, free {self.free[broker]}"
            self.stored[broker] += size
            self.free[broker] -= size
        for partition, source in given:
            own, broker = self.partitions[partition], self.cluster.brokers[source]
            self.stored[source] -= own.size
            if source not in own.directories or broker.volume_of(own.directories[source]).is_open:
                self.free[source] += own.size


@pytest.mark.parametrize("block", range(4))
def test_no_moment_of_a_proposal_breaks_a_limit_of_racks_disks_or_directories(block: int) -> None:
    """Actions one by one, and batches of all or half of them, in which all arrives before anything goes."""
    found, copies = [], 0
    for seed in range(12 * block, 12 * block + 12):
        cluster = Cluster(seed)
        model = cluster.model()
        proposal = propose(model, built_in_goals())
        actions = proposal.actions
        copies += sum(action.copies for action in actions)
        parts = {"actions": [[action] for action in actions]}
        for name, prefix in (("batches", actions), ("batches of half", actions[: len(actions) // 2])):
            batches = make_batches(ClusterLoads(model), proposal.goals, prefix, CopyLimits())
            parts[name] = [list(batch.actions) for batch in batches]
        for name, steps in parts.items():
            checker = Checker(cluster, model)
            found += [f"seed {seed}, {name}: {text}" for step in steps for text in checker.run(step)]
    assert found == []
    assert copies > 50
