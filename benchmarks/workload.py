"""Synthetic ticks of a cluster of any size, the same for the same seed, whose true verdicts are known.

The cluster is made, not collected: what a broker would have told is computed from the write rates that the workload
itself chose. The truth is summed up here from the same choice in plain Python, apart from every formula of Headroom.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cluster.encode import KIND_ORDER

RECORD_BYTES = 1000
WINDOW_MS = 10_000
BEGIN_MS = 1_800_000_000_000
Row = dict[str, Any]
Side = tuple[int, str]


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

    def size(self, since_begin_ms: int) -> int:
        """Return the size of its log in bytes, so many milliseconds after the first tick."""
        return self.begin_bytes + self.bytes_per_s * since_begin_ms // 1000


@dataclass
class Throttles:
    """The rates in force on one broker, bytes/s; None: none."""

    leader: int | None = None
    follower: int | None = None


@dataclass(frozen=True)
class Tick:
    """One tick: its rows by kind, made when they are asked for, and the verdict of every broker and role."""

    tick_ms: int
    makers: Mapping[str, Any]
    truth: Mapping[Side, str]
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
            yield Tick(tick_ms, self._makers(tick_ms), self.truth(), switched)

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

    def truth(self) -> dict[Side, str]:
        """Return the verdict of every broker and role as things stand."""
        in_sync, required = self._demand()
        return {
            (broker, role): _verdict(getattr(throttles, role), in_sync[(broker, role)], required[(broker, role)])
            for broker, throttles in self._throttles.items()
            for role in ("leader", "follower")
        }

    def _makers(self, tick_ms: int) -> dict[str, Any]:
        since = tick_ms - self.workload.begin_ms
        return {
            "brokers": lambda: [self._broker(broker) for broker in self._brokers],
            "moves": lambda: [self._move(p, tick_ms, since) for p in self._moving],
            "leaders": lambda: [_leader(p) | {"metadata_age_ms": 0} for p in self.partitions],
            "topic_throttles": lambda: [_lists(ps) for ps in _by_topic(self._moving).values()],
            "meters": lambda: list(self._meters(tick_ms, since)),
            "lags": lambda: list(self._lags()),
            "logs": lambda: [_log_row(p, tick_ms, since) for p in self.partitions],
        }

    def _broker(self, broker: int) -> Row:
        throttles = self._throttles[broker]
        return {
            "broker": broker,
            "host": "127.0.0.1",
            "port": 9000 + broker,
            "alive": True,
            "answered": True,
            "error": None,
            "throttles_known": True,
            "leader_throttle_bytes_per_s": throttles.leader,
            "follower_throttle_bytes_per_s": throttles.follower,
            "leader_throttle_source": "none" if throttles.leader is None else "broker",
            "follower_throttle_source": "none" if throttles.follower is None else "broker",
            "leader_quota_bytes_per_s": None,
            "follower_quota_bytes_per_s": None,
        }

    def _move(self, p: Partition, tick_ms: int, since: int) -> Row:
        behind = p.begin_bytes // 2
        logs = [_sample(p, broker, tick_ms, since, 0) for broker in p.replicas]
        adding = [] if p.adding is None else [p.adding]
        logs += [_sample(p, broker, tick_ms, since, behind) for broker in adding]
        return {
            **_leader(p),
            "offline": [],
            "compacted": False,
            "leader_listed": list(p.replicas),
            "follower_listed": adding,
            "previous_leader": p.previous_leader,
            "switch_tick_ms": p.switch_tick_ms,
            "logs": logs,
            "topic_counters": None,
            "before_log": None,
            "before_topic_counters": None,
        }

    def _meters(self, tick_ms: int, since: int) -> Iterator[Row]:
        counted = since + WINDOW_MS
        for broker in self._brokers:
            for meter in ("BytesInPerSec", "BytesOutPerSec", "ReplicationBytesInPerSec", "ReassignmentBytesInPerSec"):
                yield _meter(broker, f"BrokerTopicMetrics.{meter}", tick_ms, counted * broker)
            for source in self._brokers:
                if source != broker:
                    names = {"fetcher": f"ReplicaFetcherThread-0-{source}", "source_broker": source}
                    yield _meter(broker, "FetcherStats.BytesPerSec", tick_ms, counted * source, **names)

    def _lags(self) -> Iterator[Row]:
        for p in self.partitions:
            for broker in (*p.replicas, *(() if p.adding is None else (p.adding,))):
                if broker != p.leader:
                    yield {
                        "broker": broker,
                        "topic": p.topic,
                        "partition": p.partition,
                        "source_broker": p.leader,
                        "fetcher": f"ReplicaFetcherThread-0-{p.leader}",
                        "lag_offsets": 0 if broker != p.adding else p.begin_bytes // 2 // RECORD_BYTES,
                    }


def _verdict(throttle: int | None, in_sync: int, required: int) -> str:
    """Return the true verdict; whoever requires nothing takes no part, for every listed replica is written to."""
    if required == 0:
        return "idle"
    if throttle is None:
        return "unthrottled"
    if throttle <= in_sync:
        return "starved"
    return "losing" if throttle <= required else "catching_up"


def _leader(p: Partition) -> Row:
    adding = [] if p.adding is None else [p.adding]
    return {
        "topic": p.topic,
        "partition": p.partition,
        "leader": p.leader,
        "leader_epoch": p.epoch,
        "replicas": [*adding, *p.replicas],
        "isr": list(p.replicas),
        "adding": adding,
        "removing": list(p.replicas[-1:]) if adding else [],
    }


def _lists(partitions: Sequence[Partition]) -> Row:
    return {
        "topic": partitions[0].topic,
        "leader_throttled_replicas": ",".join(f"{p.partition}:{b}" for p in partitions for b in p.replicas),
        "follower_throttled_replicas": ",".join(f"{p.partition}:{p.adding}" for p in partitions),
    }


def _by_topic(partitions: Sequence[Partition]) -> dict[str, list[Partition]]:
    topics: dict[str, list[Partition]] = defaultdict(list)
    for p in partitions:
        topics[p.topic].append(p)
    return topics


def _log(p: Partition, broker: int, tick_ms: int, since: int, behind: int) -> Row:
    size, before = p.size(since) - behind, p.size(since - WINDOW_MS) - behind
    return {
        "broker": broker,
        "read_ms": tick_ms,
        "log_end_offset": size // RECORD_BYTES,
        "log_start_offset": 0,
        "size_bytes": size,
        "prev_read_ms": tick_ms - WINDOW_MS,
        "prev_log_end_offset": before // RECORD_BYTES,
        "prev_log_start_offset": 0,
        "prev_size_bytes": before,
    }


def _sample(p: Partition, broker: int, tick_ms: int, since: int, behind: int) -> Row:
    lag = None if broker == p.leader else behind // RECORD_BYTES
    return _log(p, broker, tick_ms, since, behind) | {
        "lag_offsets": lag,
        "prev_lag_offsets": lag,
        "lag_source": None if broker == p.leader else p.leader,
    }


def _log_row(p: Partition, tick_ms: int, since: int) -> Row:
    unread = {} if p.adding is not None else dict.fromkeys(_WATCHED_ONLY)
    return {
        "topic": p.topic,
        "partition": p.partition,
        "is_leader": True,
        **_log(p, p.leader, tick_ms, since, 0),
    } | unread


# Start and size are read of watched partitions only.
_WATCHED_ONLY = ("log_start_offset", "size_bytes", "prev_log_start_offset", "prev_size_bytes")


def _meter(broker: int, meter: str, tick_ms: int, count: int, **names: Any) -> Row:
    return {
        "broker": broker,
        "meter": meter,
        "topic": None,
        "fetcher": None,
        "source_broker": None,
        **names,
        "read_ms": tick_ms,
        "count_total": count,
        "prev_read_ms": tick_ms - WINDOW_MS,
        "prev_count_total": count // 2,
        "gauge_value": None,
    }
