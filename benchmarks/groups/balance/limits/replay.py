"""Replay of the batches of a proposal, which counts at every moment what brokers carry by the text of the limits alone.

Before a batch, while it copies and after it, each partition is in one of three states, by itself: its old replicas
fetch from the old leader; the new one does so, too; or it has its target replicas, led by the first of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from math import ceil

import numpy as np

from benchmarks.groups.balance.limits.clusters import LimitCluster
from headroom.operations.balance.proposal_result import proposal_batches, search, throttle_of, throttled_run
from headroom.planning.balance.arrays import FloatArray
from headroom.planning.balance.batches.batches import BalanceBatch
from headroom.planning.reassignments.cluster_state import BrokerState, LogDirectory
from headroom.planning.reassignments.plan import TargetAssignment
from headroom.schemas.keys import TopicPartition

_LIMIT_RATIO, _MARGIN_RATIO, _TOPIC_RATIO = 0.8, 1.2, 0.5
# Other files take more than a tenth of a disk if replicas and free bytes are less than this share of it.
_OWN_RATIO = 0.9
_ROUNDING, _BYTES = 1e-6, 1.0
_TAKING = ("", "full", "cordoned in part")


class Replay:
    """A cluster that is followed batch by batch.

    Args:
        of: the cluster.
        draw: order in which brokers make the new replicas of a batch, and which of equal directories they take.
    """

    def __init__(self, of: LimitCluster, draw: np.random.Generator) -> None:
        state, loads = of.cluster.state, of.cluster.loads
        self._of, self._draw, self._state = of, draw, state
        names, self._ids = list(state.partitions), sorted(state.brokers)
        self._at = {broker: at for at, broker in enumerate(self._ids)}
        reads = loads.write * 0.0 if loads.read_by_hour is None else loads.read_by_hour
        self._write, self._read = (
            dict(zip(names, np.nan_to_num(rates).T, strict=True)) for rates in (loads.write, reads)
        )
        self._size = {name: float(p.size_bytes or 0) for name, p in state.partitions.items()}
        self._topics = Counter(name.topic for name in names)
        self._replicas = {name: p.replicas for name, p in state.partitions.items()}
        self._leader = {name: self._leader_at_start(name) for name in names}
        hours = loads.write.shape[0]
        self._received, self._sent = (np.zeros((len(self._ids), hours)) for _ in range(2))
        self._stored = np.zeros(len(self._ids))
        for broker, rate in loads.follower_reads.items():
            self._sent[self._at[broker]] += rate
        for name, replicas in self._replicas.items():
            for broker in replicas:
                self._hold(name, broker, 1)
            self._lead(name, 1)
        self._paths = {(name, b): path for name, p in state.partitions.items() for b, path in p.log_dirs.items()}
        self._directories = {(broker, d.path): d for broker, own in state.brokers.items() for d in own.log_dirs}
        self._free = {(b, str(d.volume)): float(d.usable_bytes or 0) for (b, _), d in self._directories.items()}
        self._logs = {key: d.logs or 0 for key, d in self._directories.items()}
        self._unknown = {
            b
            for name, unknown in zip(names, np.isnan(loads.write.sum(axis=0)).tolist(), strict=True)
            if unknown
            for b in self._replicas[name]
        }
        self._racks = {own.rack for own in state.brokers.values() if own.rack is not None}
        self._spare = {broker: self._spare_bytes(own) for broker, own in state.brokers.items()}
        self._limits = self._all_limits()

    def _leader_at_start(self, name: TopicPartition) -> int | None:
        """Return the leader, or the preferred one that Kafka gives the lead back to by itself."""
        placement = self._state.partitions[name]
        first = placement.replicas[0]
        given_back = self._state.auto_leader_rebalance and first in placement.isr and self._of.kinds[first] != "dead"
        return first if given_back else placement.leader

    def _all_limits(self) -> dict[str, FloatArray]:
        balance, every = self._of.cluster.settings.balance, np.ones(len(self._ids))
        disks = [self._disk_limit(broker) for broker in self._ids]
        return {
            "network in": every * _LIMIT_RATIO * (balance.network_in_capacity or np.inf),
            "network out": every * _LIMIT_RATIO * (balance.network_out_capacity or np.inf),
            "disk": np.array(disks),
        }

    def _disk_limit(self, broker: int) -> float:
        """Return the most that replicas on a broker may take: of what other files leave, if these take over a tenth."""
        own, stored = self._state.brokers[broker], float(self._stored[self._at[broker]])
        volumes = _volumes([d for d in own.log_dirs if not d.offline])
        if not volumes:
            return float("inf")
        total, room = sum(own[0] for own in volumes), stored + sum(own[1] for own in volumes)
        limit = _LIMIT_RATIO * (total if room >= _OWN_RATIO * total else room)
        return min(limit, stored + self._spare[broker]) if self._of.kinds[broker] == "cordoned in part" else limit

    def _spare_bytes(self, own: BrokerState) -> float:
        """Return what directories that are not cordoned may take: they keep free what cordoned ones use."""
        online = [d for d in own.log_dirs if not d.offline]
        open_ones, closed = (_volumes([d for d in online if d.cordoned is is_closed]) for is_closed in (False, True))
        used, total = sum(total - free for total, free in closed), sum(total for total, _ in open_ones)
        return sum(free for _, free in open_ones) - max(used, (1 - _LIMIT_RATIO) * total)

    def _hold(self, name: TopicPartition, broker: int, sign: int) -> None:
        self._received[self._at[broker]] += sign * self._write[name]
        self._stored[self._at[broker]] += sign * self._size[name]

    def _lead(self, name: TopicPartition, sign: int) -> None:
        leader = self._leader[name]
        if leader is not None:
            self._sent[self._at[leader]] += sign * self._sent_rate(name, len(self._replicas[name]) - 1)

    def _sent_rate(self, name: TopicPartition, followers: int) -> FloatArray:
        rate: FloatArray = self._read[name] + self._write[name] * followers
        return rate

    def _loads(self) -> dict[str, FloatArray]:
        percentile = self._of.cluster.settings.balance.percentile
        received, sent = (np.percentile(own, percentile, axis=1) for own in (self._received, self._sent))
        return {"network in": received, "network out": sent, "disk": self._stored.copy()}

    def run(self, batch: BalanceBatch, throttle: float | None) -> Iterator[str]:
        """Carry out a batch with a throttle, bytes per second, and yield what it breaks, or further, at some moment."""
        for assignment in batch.assignments:
            yield from self._placement_broken(assignment, batch)
        yield from self._counts_broken(batch)
        before, copying = self._loads(), self._while_copying(batch, throttle)
        relieved = self._begin(batch)
        peak = {resource: np.maximum(load, copying.get(resource, 0.0)) for resource, load in self._loads().items()}
        for resource, limit in self._limits.items():
            most = np.maximum(limit, before[resource]) * (1 + _ROUNDING)
            for at in np.flatnonzero(peak[resource] > most).tolist():
                beyond = before[resource][at] > limit[at]
                if resource == "network out" and beyond and self._ids[at] in relieved:
                    continue
                ratio = peak[resource][at] / limit[at]
                yield f"{resource} of broker {self._ids[at]}: {ratio:.3f} of its limit"
        yield from self._fill_directories(batch)
        self._end(batch)

    def _while_copying(self, batch: BalanceBatch, throttle: float | None) -> dict[str, FloatArray]:
        """Return what brokers that copy send and receive at most if the throttle is used up; 0 for all others.

        It counts for all that a leader sends of the partitions that are copied, and for all that new replicas receive.
        """
        hours = self._sent.shape[1]
        sent: dict[int, FloatArray] = {}
        received: dict[int, FloatArray] = {}
        leads = np.zeros_like(self._sent)
        for assignment in batch.assignments:
            name, leader = assignment.name, self._leader[assignment.name]
            after, new = self._leader_after(assignment, batch), _new(assignment, self._replicas[assignment.name])
            if new and leader is not None:
                sent[leader] = sent.get(leader, 0.0) + self._write[name] * (len(self._replicas[name]) - 1)
            for broker in new:
                received[broker] = np.zeros(hours)
            if after != leader:
                leads[self._at[after]] += self._sent_rate(name, len(assignment.replicas) - 1)
        copying = {"network out": np.zeros(len(self._ids)), "network in": np.zeros(len(self._ids))}
        percentile = self._of.cluster.settings.balance.percentile
        for own, resource, loads in (
            (sent, "network out", self._sent + leads),
            (received, "network in", self._received),
        ):
            for broker, counted in own.items():
                at = self._at[broker]
                copying[resource][at] = np.percentile(loads[at] - counted, percentile) + (throttle or np.inf)
        return copying

    def _begin(self, batch: BalanceBatch) -> set[int]:
        """Let all arrive, and return the brokers that send copies of partitions whose lead they give."""
        relieved = set()
        for assignment in batch.assignments:
            name, leader, leads = assignment.name, self._leader[assignment.name], self._leader_after(assignment, batch)
            new = _new(assignment, self._replicas[name])
            for broker in new:
                self._hold(name, broker, 1)
            if new and leader is not None:
                self._sent[self._at[leader]] += self._write[name] * len(new)
                relieved |= {leader} - {leads}
            if leads != leader:
                self._sent[self._at[leads]] += self._sent_rate(name, len(assignment.replicas) - 1)
        return relieved

    def _end(self, batch: BalanceBatch) -> None:
        """Let all leave that the batch replaces."""
        for assignment in batch.assignments:
            name, leader, leads = assignment.name, self._leader[assignment.name], self._leader_after(assignment, batch)
            if leader is not None:
                self._sent[self._at[leader]] -= self._write[name] * len(_new(assignment, self._replicas[name]))
            if leads != leader:
                self._lead(name, -1)
            for broker in set(self._replicas[name]) - set(assignment.replicas):
                self._hold(name, broker, -1)
                self._leave_directory(name, broker)
            self._replicas[name], self._leader[name] = assignment.replicas, leads

    def _leader_after(self, assignment: TargetAssignment, batch: BalanceBatch) -> int:
        leader, first = self._leader[assignment.name], assignment.replicas[0]
        keeps = leader in assignment.replicas and assignment.name not in batch.elections
        return leader if keeps and leader is not None else first

    def _placement_broken(self, assignment: TargetAssignment, batch: BalanceBatch) -> Iterator[str]:
        """Yield brokers that give or take what they must not, and racks that are less even."""
        name, before = assignment.name, self._replicas[assignment.name]
        new, leads = _new(assignment, before), self._leader_after(assignment, batch)
        for broker in {*new, *({leads} - {self._leader[name]})}:
            if not self._may_take(broker):
                yield f"{name}: broker {broker} takes it, and is {self._of.kinds[broker] or 'of unknown load'}"
        for broker in set(before) - set(assignment.replicas):
            if self._of.kinds[broker] in ("dead", "unreadable"):
                yield f"{name}: broker {broker} gives it, and is {self._of.kinds[broker]}"
        placement = self._state.partitions[name]
        if new and set(placement.replicas) - set(placement.isr):
            yield f"{name}: moves while a replica is not in sync"
        rackless = [b for b in new if self._racks and self._state.brokers[b].rack is None]
        if rackless or self._uneven(assignment.replicas) > self._uneven(before):
            yield f"{name}: racks of {assignment.replicas} are less even than those of {before}"

    def _may_take(self, broker: int) -> bool:
        kind = self._of.kinds[broker]
        has_room = kind != "cordoned in part" or self._spare[broker] > 0
        return kind in _TAKING and has_room and broker not in self._unknown

    def _uneven(self, replicas: Sequence[int]) -> int:
        """Return how many replicas racks have too many or too few, if their number were as even as can be."""
        counts = Counter(self._state.brokers[broker].rack for broker in replicas)
        least, most = (len(replicas) // max(1, len(self._racks)), ceil(len(replicas) / max(1, len(self._racks))))
        return sum(max(0, counts[rack] - most) + max(0, least - counts[rack]) for rack in self._racks)

    def _counts_broken(self, batch: BalanceBatch) -> Iterator[str]:
        """Yield topics of which more than half moves, and brokers whose copies need more than the throttle."""
        moving: Counter[str] = Counter()
        needed: dict[tuple[int, str], float] = defaultdict(float)
        for assignment in batch.assignments:
            name, leader = assignment.name, self._leader[assignment.name]
            if not (new := _new(assignment, self._replicas[name])):
                continue
            moving[name.topic] += 1
            rate = float(self._write[name].max())
            needed[-1 if leader is None else leader, "leader"] += rate * (len(self._replicas[name]) + len(new) - 1)
            for broker in new:
                needed[broker, "follower"] += rate
        for topic, count in moving.items():
            if count > max(1, _TOPIC_RATIO * self._topics[topic]):
                yield f"{count} of {self._topics[topic]} partitions of {topic} move at once"
        throttle = self._of.request.throttle
        for (broker, role), rate in needed.items():
            if throttle is not None and rate * _MARGIN_RATIO > throttle * (1 + _ROUNDING):
                yield f"broker {broker} as {role} needs {rate / 1e6:.1f} MB/s of {throttle / 1e6:.1f}"

    def _fill_directories(self, batch: BalanceBatch) -> Iterator[str]:
        """Let new replicas arrive where the batch names a directory or Kafka puts them; yield overfilled volumes."""
        copies = [(a, broker) for a in batch.assignments for broker in _new(a, self._replicas[a.name])]
        by_size = sorted(copies, key=lambda copy: -self._size[copy[0].name])
        order = range(len(copies)) if self._draw.random() < 0.5 else self._draw.permutation(len(copies)).tolist()
        for at in order:
            assignment, broker = by_size[at]
            path = assignment.named_log_dirs.get(broker) or self._fewest_logs(broker)
            self._paths[assignment.name, broker] = path
            self._logs[broker, path] += 1
            volume = broker, str(self._directories[broker, path].volume)
            self._free[volume] -= self._size[assignment.name]
            if self._free[volume] < -_BYTES:
                named = "named" if assignment.named_log_dirs.get(broker) else "chosen by the broker"
                yield f"{path} of broker {broker}, {named}: {-self._free[volume] / 1e9:.1f} GB beyond its disk"

    def _fewest_logs(self, broker: int) -> str:
        """Return the directory that Kafka chooses (``LogManager.nextLogDirs``)."""
        online = [d for d in self._state.brokers[broker].log_dirs if not d.offline]
        paths = [d.path for d in online if not d.cordoned] or [d.path for d in online]
        least = min(self._logs[broker, path] for path in paths)
        return str(self._draw.choice([path for path in paths if self._logs[broker, path] == least]))

    def _leave_directory(self, name: TopicPartition, broker: int) -> None:
        path = self._paths.pop((name, broker), None)
        if path is not None and (broker, path) in self._directories:
            self._logs[broker, path] -= 1
            self._free[broker, str(self._directories[broker, path].volume)] += self._size[name]


def broken_limits(of: LimitCluster, seed: int) -> list[str]:
    """Return what the batches of all actions of a proposal, and of every prefix, break.

    Args:
        of: the cluster.
        seed: seed of what brokers choose by chance.
    """
    proposal = search(of.cluster, of.request)
    draw, found = np.random.default_rng(seed), []
    for actions in range(1, len(proposal.actions) + 1):
        replay = Replay(of, draw)
        batches, _ = proposal_batches(of.cluster, of.request, proposal, actions)
        run, throttle = throttled_run(of.cluster, of.request, proposal, batches)
        for number, batch in enumerate(run.batches, start=1):
            rate = throttle_of(batch, throttle)
            found += [f"{actions} actions, batch {number}: {text}" for text in replay.run(batch, rate)]
    return found


def _volumes(directories: Sequence[LogDirectory]) -> list[tuple[int, int]]:
    """Return total and free bytes of the volumes of directories."""
    return list({d.volume: (d.total_bytes or 0, d.usable_bytes or 0) for d in directories}.values())


def _new(assignment: TargetAssignment, before: Sequence[int]) -> list[int]:
    return [broker for broker in assignment.replicas if broker not in before]
