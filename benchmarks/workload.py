"""Synthetic ticks of a cluster of any size, the same for the same seed, whose true verdicts are known.

The cluster is made, not collected: what a broker would have told is computed from the write rates that the workload
itself chose. The truth is summed up here from the same choice in plain Python, apart from every formula of Headroom.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from cluster import model
from cluster.columns import Columns, Row
from cluster.encode import KIND_ORDER
from cluster.history import Sample
from cluster.model import Broker, BrokerRead, BrokerThrottles, Lag, Meter, Metrics, Reading, TopicConfig, TopicPartition
from cluster.rows import (
    LAGS,
    LOGS,
    METERS,
    broker_row,
    lag_columns,
    leader_columns,
    leader_row,
    log_columns,
    log_sample,
    meter_columns,
    topic_throttle_row,
)
from cluster.tracks import Samples, Tracks
from planning.lists import format_replica_list

RECORD_BYTES = 1000
WINDOW_MS = 10_000
BEGIN_MS = 1_800_000_000_000
Side = tuple[int, str]
_Key = TypeVar("_Key", Meter, TopicPartition)


@dataclass(frozen=True)
class Workload:
    """What to make.

    Attributes:
        brokers: how many.
        topics: how many; they have the same number of partitions.
        partitions: of all topics together.
        replication_factor: replicas of a partition, one more while it moves.
        moving_ratio: share of the topics whose partitions all move, one replica each.
        switches_per_minute: leader switches among the moving partitions.
        throttle_changes_per_minute: brokers whose throttles are set anew.
        interval_s: time from tick to tick.
        seed: the same seed makes the same ticks.
        cluster: name of the cluster in the ticks.
        begin_ms: time of the first tick, epoch milliseconds.
    """

    brokers: int = 100
    topics: int = 2000
    partitions: int = 200_000
    replication_factor: int = 3
    moving_ratio: float = 0.01
    switches_per_minute: float = 60.0
    throttle_changes_per_minute: float = 6.0
    interval_s: float = 10.0
    seed: int = 1
    cluster: str = "synthetic"
    begin_ms: int = BEGIN_MS


@dataclass
class Partition:
    """One partition as it is now; ``adding`` None: it does not move."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    leader: int
    bytes_per_s: int
    begin_bytes: int
    adding: int | None = None
    epoch: int = 0
    previous_leader: int | None = None
    switch_tick_ms: int | None = None

    @cached_property
    def name(self) -> TopicPartition:
        """Its name."""
        return TopicPartition(self.topic, self.partition)

    @property
    def added(self) -> tuple[int, ...]:
        """The replica that is being added, if there is one."""
        return () if self.adding is None else (self.adding,)

    def as_told(self) -> model.Partition:
        """Return it as the cluster tells it; while it moves, the last of its replicas is to go."""
        replicas, going = (*self.added, *self.replicas), self.replicas[-1:] if self.added else ()
        return model.Partition(
            self.topic, self.partition, self.leader, self.epoch, replicas, self.replicas, (), self.added, going
        )

    def size(self, since_begin_ms: int) -> int:
        """Return the size of its log in bytes, so many milliseconds after the first tick."""
        return self.begin_bytes + self.bytes_per_s * since_begin_ms // 1000


@dataclass
class Throttles:
    """The rates in force on one broker, bytes/s; None: none."""

    leader: int | None = None
    follower: int | None = None


class Balance(NamedTuple):
    """A broker's leaders: partitions that prefer it, those that others lead, and those of them that move."""

    preferred: int
    away: int
    waiting: int


@dataclass(frozen=True)
class Tick:
    """One tick: its rows by kind, made when they are asked for, and the truth on sides and leaders."""

    tick_ms: int
    makers: Mapping[str, Any]
    truth: Mapping[Side, str]
    balance: Mapping[int, Balance]
    switched: Sequence[tuple[str, int]] = field(default=())

    def get(self, kind: str, default: Sequence[Row] = (), /) -> Sequence[Row]:
        """Return the rows of a kind."""
        return self.makers[kind]() if kind in self.makers else default

    def row_counts(self) -> dict[str, int]:
        """Return how many rows there are of each kind."""
        return {kind: len(self.get(kind)) for kind in KIND_ORDER}


class SyntheticCluster:
    """A cluster whose ticks follow one another.

    Args:
        workload: what to make.
    """

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self._random = random.Random(workload.seed)
        self._brokers = range(1, workload.brokers + 1)
        self.partitions = list(self._made())
        self._moving = [p for p in self.partitions if p.adding is not None]
        self._throttles = {broker: Throttles() for broker in self._brokers}
        for broker in self._brokers:
            self._throttle(broker)

    def _made(self) -> Iterator[Partition]:
        w, rnd = self.workload, self._random
        each = w.partitions // w.topics
        moving = round(w.topics * w.moving_ratio) or (1 if w.moving_ratio else 0)
        for number in range(w.partitions):
            topic, partition = divmod(number, each)
            first = rnd.randrange(w.brokers)
            hop = rnd.randrange(1, max(2, w.brokers // (w.replication_factor + 1)))
            held = [(first + i * hop) % w.brokers + 1 for i in range(w.replication_factor + 1)]
            replicas, other = tuple(held[:-1]), held[-1]
            adding = other if topic < moving and other not in replicas else None
            rate = rnd.randrange(1, 500) * RECORD_BYTES
            yield Partition(f"topic-{topic:05d}", partition, replicas, replicas[0], rate, rnd.randrange(10**10), adding)

    def ticks(self, count: int) -> Iterator[Tick]:
        """Return so many ticks, one after the other; each has to be used before the next is asked for."""
        for number in range(count):
            tick_ms = self.workload.begin_ms + round(number * self.workload.interval_s * 1000)
            switched = self._change(tick_ms) if number else []
            yield Tick(tick_ms, self._makers(tick_ms), self.truth(), self.balance(), switched)

    def _change(self, tick_ms: int) -> list[tuple[str, int]]:
        per_tick = self.workload.interval_s / 60
        for _ in range(self._often(self.workload.throttle_changes_per_minute * per_tick)):
            self._throttle(self._random.choice(self._brokers))
        chosen = [p for p in self._moving if self.workload.switches_per_minute > 0]
        count = min(len(chosen), self._often(self.workload.switches_per_minute * per_tick))
        return [self.switch(partition, tick_ms) for partition in self._random.sample(chosen, count)]

    def _often(self, mean: float) -> int:
        return int(mean) + (self._random.random() < mean - int(mean))

    def switch(self, partition: Partition, tick_ms: int) -> tuple[str, int]:
        """Let the next replica lead and return which partition it was."""
        place = partition.replicas.index(partition.leader)
        partition.previous_leader, partition.switch_tick_ms = partition.leader, tick_ms
        partition.leader = partition.replicas[(place + 1) % len(partition.replicas)]
        partition.epoch += 1
        return partition.topic, partition.partition

    def _throttle(self, broker: int) -> None:
        """Set a broker's rates anew: too small for its in-sync followers, for all of them, enough, or none at all."""
        in_sync, required = self._demand()
        wishes = [None, 0.5, in_sync[(broker, "leader")] / max(1, required[(broker, "leader")]) + 0.02, 1.5]
        factor = self._random.choice(wishes)
        self._throttles[broker] = Throttles(
            *(
                None if factor is None else max(1, round(factor * required[(broker, role)]))
                for role in ("leader", "follower")
            )
        )

    def _demand(self) -> tuple[dict[Side, int], dict[Side, int]]:
        """Return what each side's in-sync and all its listed followers take, bytes/s."""
        in_sync: dict[Side, int] = defaultdict(int)
        required: dict[Side, int] = defaultdict(int)
        for p in self._moving:
            followers = len(p.replicas) - 1
            in_sync[(p.leader, "leader")] += p.bytes_per_s * followers
            required[(p.leader, "leader")] += p.bytes_per_s * (followers + 1)
            required[(int(p.adding or 0), "follower")] += p.bytes_per_s
        return in_sync, required

    def _bursts_bytes(self) -> dict[Side, int]:
        """Return what one check of each side's quota lets through: 1 MiB of a partition, 10 of a leader."""
        copies = Counter((p.leader, int(p.adding or 0)) for p in self._moving)
        bursts: dict[Side, int] = defaultdict(int)
        for (leader, destination), partitions in copies.items():
            response = min(partitions, 10) * 1_048_576
            # A leader counts each response before the next; the fetchers of a destination check all at once.
            bursts[leader, "leader"] = max(bursts[leader, "leader"], response)
            bursts[destination, "follower"] += response
        return bursts

    def truth(self) -> dict[Side, str]:
        """Return the verdict of every broker and role as things stand."""
        in_sync, required = self._demand()
        burst_bytes = self._bursts_bytes()
        return {
            side: _verdict(getattr(throttles, side[1]), in_sync[side], required[side], burst_bytes[side])
            for broker, throttles in self._throttles.items()
            for side in ((broker, "leader"), (broker, "follower"))
        }

    def balance(self) -> dict[int, Balance]:
        """Return of every broker that is preferred how many partitions prefer it, and how many others lead."""
        preferred: Counter[int] = Counter()
        away: Counter[int] = Counter()
        for p in self.partitions:
            # A replica that is added comes first from the beginning, and nothing moves but by adding one.
            first = p.replicas[0] if p.adding is None else p.adding
            preferred[first] += 1
            away[first] += p.leader != first
        moving = Counter(p.adding for p in self._moving)
        return {b: Balance(count, away[b], moving[b]) for b, count in preferred.items()}

    def _makers(self, tick_ms: int) -> dict[str, Any]:
        since = tick_ms - self.workload.begin_ms
        return {
            "brokers": lambda: [self._broker(broker) for broker in self._brokers],
            "moves": lambda: [self._move(p, tick_ms, since) for p in self._moving],
            "leaders": self._leaders,
            "topic_throttles": lambda: [
                topic_throttle_row(topic, throttled_lists(ps)) for topic, ps in _by_topic(self._moving).items()
            ],
            "meters": lambda: self._meters(tick_ms, since),
            "lags": lambda: Columns.joined(LAGS, (lag_columns(b, lags) for b, lags in self.lags().items())),
            "logs": lambda: self._logs(tick_ms, since),
        }

    def _broker(self, broker: int) -> Row:
        rates = self._throttles[broker]
        leader, follower = ("none" if rate is None else "broker" for rate in (rates.leader, rates.follower))
        known = BrokerThrottles(True, rates.leader, rates.follower, leader, follower)
        answered = BrokerRead(broker, known, Metrics(None, {}, {}, (), {}), None)
        return broker_row(Broker(broker, "127.0.0.1", 9000 + broker, alive=True), answered)

    def _move(self, p: Partition, tick_ms: int, since: int) -> Row:
        behind = p.begin_bytes // 2
        logs = [_sample(p, broker, tick_ms, since, 0) for broker in p.replicas]
        logs += [_sample(p, broker, tick_ms, since, behind) for broker in p.added]
        return {
            **leader_row(p.as_told()),
            "offline": [],
            "compacted": False,
            "leader_listed": list(p.replicas),
            "follower_listed": list(p.added),
            "previous_leader": p.previous_leader,
            "switch_tick_ms": p.switch_tick_ms,
            "logs": logs,
            "topic_counters": None,
            "before_log": None,
            "before_topic_counters": None,
        }

    def _leaders(self) -> Columns:
        told = [p.as_told() for p in self.partitions]
        return Columns(leader_columns(told, dict.fromkeys((p.topic for p in told), 0), {}))

    def _meters(self, tick_ms: int, since: int) -> Columns:
        parts = []
        for broker in self._brokers:
            counts = self.counts(broker, since + WINDOW_MS)
            before = {meter: count // 2 for meter, count in counts.items()}
            parts.append(meter_columns(broker, _samples(tick_ms, before, counts), {}))
        return Columns.joined(METERS, parts)

    def counts(self, broker: int, counted_ms: int) -> dict[Meter, int]:
        """Return what a broker's own meters and those of its fetchers have counted in so many milliseconds."""
        names = ("BytesInPerSec", "BytesOutPerSec", "ReplicationBytesInPerSec", "ReassignmentBytesInPerSec")
        own = {Meter(f"BrokerTopicMetrics.{name}"): counted_ms * broker for name in names}
        return own | {
            Meter("FetcherStats.BytesPerSec", fetcher=_fetcher(source), source_broker=source): counted_ms * source
            for source in self._brokers
            if source != broker
        }

    def lags(self) -> dict[int, list[Lag]]:
        """Return the lag gauges of every broker."""
        lags: dict[int, list[Lag]] = {broker: [] for broker in self._brokers}
        for p in self.partitions:
            for broker in (*p.replicas, *p.added):
                if broker != p.leader:
                    offsets = 0 if broker != p.adding else p.begin_bytes // 2 // RECORD_BYTES
                    lags[broker].append(Lag(p.name, p.leader, _fetcher(p.leader), offsets))
        return lags

    def _logs(self, tick_ms: int, since: int) -> Columns:
        led: dict[int, list[Partition]] = defaultdict(list)
        for p in self.partitions:
            led[p.leader].append(p)
        return Columns.joined(LOGS, (_led_logs(ps, leader, tick_ms, since) for leader, ps in sorted(led.items())))


def _verdict(throttle: int | None, in_sync: int, required: int, burst_bytes: int) -> str:
    """Return the true verdict; whoever requires nothing takes no part, for every listed replica is written to."""
    if required == 0:
        return "idle"
    if throttle is None:
        return "unthrottled"
    if throttle < in_sync:
        return "starved"
    if throttle > required:
        return "catching_up"
    # Once in a window of 11.5 s on average there is room, rounded up to whole responses, for none is cut.
    responses = int((throttle - in_sync) * 11.5 / burst_bytes) + 1
    return "slow" if 0.985 * responses * burst_bytes / 11.5 > required - in_sync else "losing"


def throttled_lists(partitions: Sequence[Partition]) -> TopicConfig:
    """Return the configuration of a topic of which these partitions move; of none, without lists."""
    leaders = format_replica_list((p.partition, broker) for p in partitions for broker in p.replicas)
    followers = format_replica_list((p.partition, broker) for p in partitions for broker in p.added)
    return TopicConfig(leaders or None, followers or None, compacted=False)


def _by_topic(partitions: Sequence[Partition]) -> dict[str, list[Partition]]:
    topics: dict[str, list[Partition]] = defaultdict(list)
    for p in partitions:
        topics[p.topic].append(p)
    return topics


def _samples(tick_ms: int, before: Mapping[_Key, int], now: Mapping[_Key, int]) -> Samples[_Key]:
    """Return what a broker has counted now, and had one rate window before."""
    tracks: Tracks[_Key] = Tracks(WINDOW_MS, WINDOW_MS)
    tracks.add(0, {key: Reading(tick_ms - WINDOW_MS, value) for key, value in before.items()})
    return tracks.add(0, {key: Reading(tick_ms, value) for key, value in now.items()})


def _led_logs(partitions: Sequence[Partition], leader: int, tick_ms: int, since: int) -> Mapping[str, Sequence[Any]]:
    """Return the columns of the logs that a broker leads; start and size are read of those that move only."""
    ends = [{p.name: p.size(ms) // RECORD_BYTES for p in partitions} for ms in (since - WINDOW_MS, since)]
    moving = {p.name: _sample(p, leader, tick_ms, since, 0) for p in partitions if p.added}
    return log_columns(leader, _samples(tick_ms, *ends), moving, {p.name: p.as_told() for p in partitions})


def _sample(p: Partition, broker: int, tick_ms: int, since: int, behind: int) -> Row:
    lag = None if broker == p.leader else behind // RECORD_BYTES
    at = ((tick_ms, since), (tick_ms - WINDOW_MS, since - WINDOW_MS))
    now, before = (Sample(read_ms, _positions(p, s, behind, lag)) for read_ms, s in at)
    return log_sample(broker, now, before, None if broker == p.leader else p.leader)


def _positions(p: Partition, since: int, behind: int, lag: int | None) -> tuple[int | None, ...]:
    """Return end, start, size and lag of a log."""
    size = p.size(since) - behind
    return size // RECORD_BYTES, 0, size, lag


def _fetcher(source: int) -> str:
    return f"ReplicaFetcherThread-0-{source}"
