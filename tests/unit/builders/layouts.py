"""Random layouts of a throttled move, with a broker that dies and comes back, as throttle statuses tick by tick."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headroom.alerts.inputs.throttle_status import PartitionEvidence, ThrottleStatus
from headroom.planning.quotas.load import (
    PartitionTraffic,
    ThrottleLoad,
    ThrottleLoads,
    dead_followers,
    live_followers,
)
from headroom.schemas.keys import BrokerRole, Role, TopicPartition

# The broker that leads most partitions, and that dies.
LEADER = 1


@dataclass(frozen=True)
class MovingReplicas:
    """A partition in a move, led by the first of its old replicas that is up and in sync.

    Attributes:
        number: number of the partition.
        before: replicas before the move, all in sync until their broker dies.
        adding: the new replica.
        write_bytes_per_s: write rate.
    """

    number: int
    before: tuple[int, ...]
    adding: int
    write_bytes_per_s: float


@dataclass
class Layout:
    """A move, and the rates in force.

    Attributes:
        brokers: broker ids.
        partitions: all partitions.
        rates: rate in force by broker and role, bytes per second; None for none.
        dead: brokers that are down.
        out_of_sync: brokers that were down, and whose replicas are still out of sync.
    """

    brokers: tuple[int, ...]
    partitions: tuple[MovingReplicas, ...]
    rates: dict[BrokerRole, float | None]
    dead: frozenset[int] = frozenset()
    out_of_sync: frozenset[int] = frozenset()
    _led: dict[int, int] = field(default_factory=dict)

    def kill(self, broker: int) -> None:
        """Let a broker die; another in-sync replica takes over what it led."""
        self.dead, self.out_of_sync = self.dead | {broker}, self.out_of_sync | {broker}
        self._led = {p.number: next((b for b in p.before if b not in self.out_of_sync), 0) for p in self.partitions}

    def start(self, broker: int) -> None:
        """Bring a broker back, which then has to catch up."""
        self.dead -= {broker}

    def raise_rates(self, bytes_per_s: float, brokers: Mapping[int, object] | list[int]) -> None:
        """Raise the lower rates of live brokers, as ``headroom throttle apply --raise-only`` does."""
        for (broker, role), rate in list(self.rates.items()):
            if broker in brokers and broker not in self.dead and rate is not None:
                self.rates[BrokerRole(broker, role)] = max(rate, bytes_per_s)

    def loads(self) -> dict[BrokerRole, ThrottleLoad]:
        """Return the load of every broker and role."""
        loads = ThrottleLoads(map(self._traffic, self.partitions), self.rates)
        return {one: loads.load_of(one) for one in (BrokerRole(b, role) for b in self.brokers for role in Role)}

    def statuses(self) -> list[ThrottleStatus]:
        """Return the statuses of a tick."""
        return [self._status(load) for load in self.loads().values()]

    def _leader(self, p: MovingReplicas) -> int | None:
        return (self._led.get(p.number) or None) if self._led else p.before[0]

    def _traffic(self, p: MovingReplicas) -> PartitionTraffic:
        replicas, alive = (p.adding, *p.before), set(self.brokers) - self.dead
        leader = self._leader(p)
        return PartitionTraffic(
            name=TopicPartition("t", p.number),
            leader=leader,
            followers=live_followers(replicas, leader, alive),
            in_sync=frozenset(p.before) - self.out_of_sync,
            adding=frozenset({p.adding}),
            leader_listed=frozenset(p.before),
            follower_listed=frozenset({p.adding}),
            write_bytes_per_s=p.write_bytes_per_s,
            down=dead_followers(replicas, leader, alive),
        )

    def _status(self, load: ThrottleLoad) -> ThrottleStatus:
        broker, leads = load.broker, load.role is Role.LEADER
        own = [p for p in self.partitions if (self._leader(p) == broker if leads else p.adding == broker)]
        return ThrottleStatus(
            load=load,
            verdict=load.verdict,
            reason=None,
            eta_s=None,
            stalled_replicas=0,
            partitions=tuple(self._evidence(p, leads) for p in own[:20]),
            alive=broker not in self.dead,
            moving_partitions=len(own),
            known_in_sync_bytes_per_s=load.known_in_sync_bytes_per_s or 0.0,
            known_required_bytes_per_s=load.known_required_bytes_per_s or 0.0,
            counting_partitions=len(own),
        )

    def _evidence(self, p: MovingReplicas, leads: bool) -> PartitionEvidence:
        followers = self._traffic(p).followers
        return PartitionEvidence(
            topic="t",
            partition=p.number,
            write_bytes_per_s=p.write_bytes_per_s,
            followers=len(followers) if leads else 1,
            in_sync_followers=len(set(followers) & (set(p.before) - self.out_of_sync)) if leads else 0,
            leader=self._leader(p),
            previous_leader=None,
            switch_tick_ms=None,
            moving=True,
            replicas=(p.adding, *p.before),
            target=(p.adding, *p.before[1:]),
            stalled=False,
        )


def random_layout(seed: int, dies: bool) -> Layout:
    """Return a move whose throttle is too low for a leader, at the latest once broker 1 is dead.

    RF 2 to 4, 3 to 6 brokers, 1 to 200 partitions led by broker 1 and some by others. Broker 1 is no destination: its
    own rate cannot be raised while it is down.

    Args:
        seed: seed of all choices.
        dies: whether broker 1 will die.
    """
    draw = random.Random(seed)
    replication = draw.randint(2, 4)
    brokers = tuple(range(1, draw.randint(max(3, replication + 1), 6) + 1))
    rate = draw.choice((2e3, 20e3, 200e3))
    led = [LEADER] * draw.randint(1, 200) + [draw.choice(brokers[1:]) for _ in range(draw.choice((0, 5, 50)))]
    partitions = []
    for number, leader in enumerate(led):
        adding = draw.choice([b for b in brokers if b not in (leader, LEADER)])
        others = draw.sample([b for b in brokers if b not in (leader, adding)], replication - 1)
        partitions.append(MovingReplicas(number, (leader, *others), adding, rate * draw.uniform(0.2, 3)))
    layout = Layout(brokers, tuple(partitions), {BrokerRole(b, role): None for b in brokers for role in Role})
    after = replace(layout)
    if dies:
        after.kill(LEADER)
    needed = max(load.required_bytes_per_s or 0.0 for load in after.loads().values() if load.role is Role.LEADER)
    throttle = float(round(needed * draw.uniform(0.3, 1.0)))
    for one in layout.rates:
        # Some brokers have a higher rate already, or none.
        layout.rates[one] = draw.choice((throttle, throttle, throttle, throttle * draw.uniform(1, 3), None))
    return layout
