"""Model of a cluster for its balance: brokers with capacities, partitions with replicas and loads by hour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property

import numpy as np

from headroom.planning.balance.arrays import AnyArray, BoolArray, FloatArray, IndexArray, RateArray
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

NO_BROKER = -1


class Resource(IntEnum):
    """What a broker carries; the number is the row in arrays by resource.

    Attributes:
        NETWORK_IN: bytes received per second: writes of all its replicas, whoever leads them.
        NETWORK_OUT: bytes sent per second: reads of the partitions that it leads, and their writes once per follower.
        REQUESTS: produce and fetch requests per second of the partitions that it leads.
        DISK: bytes of its replicas.
        LEADERS: number of partitions that it leads.
        REPLICAS: number of its replicas.
    """

    NETWORK_IN = 0
    NETWORK_OUT = 1
    REQUESTS = 2
    DISK = 3
    LEADERS = 4
    REPLICAS = 5


# Resources with a load per hour; the others have one value, the latest.
TIMED = (Resource.NETWORK_IN, Resource.NETWORK_OUT, Resource.REQUESTS)
LATEST = (Resource.DISK, Resource.LEADERS, Resource.REPLICAS)
# Resources that move with the leader, without a copy. The others move with a replica.
OF_LEADERS = (Resource.NETWORK_OUT, Resource.REQUESTS, Resource.LEADERS)
COUNTS = (Resource.LEADERS, Resource.REPLICAS)
RATES = (Resource.NETWORK_IN, Resource.NETWORK_OUT)
_OF_PARTITIONS = ("followers", "sent_rate", "rates_by_hour", "rate_edges", "peak_write", "rates_known", "load_known")


@dataclass(frozen=True)
class BrokerCapacity:
    """What a broker can carry; None if unknown, which no limit is held against.

    Attributes:
        network_in_bytes_per_s: bytes that it can receive per second.
        network_out_bytes_per_s: bytes that it can send per second.
        disk_bytes: size of its log directories that are online.
        replicas: number of replicas.
        volumes_free_bytes: bytes that are free on each volume of its log directories that takes replicas.
    """

    network_in_bytes_per_s: float | None = None
    network_out_bytes_per_s: float | None = None
    disk_bytes: float | None = None
    replicas: float | None = None
    volumes_free_bytes: tuple[float, ...] | None = None

    def of(self, resource: Resource) -> float | None:
        """Return the capacity for a resource; None if unknown. A capacity of 0 counts as unknown."""
        return {
            Resource.NETWORK_IN: self.network_in_bytes_per_s,
            Resource.NETWORK_OUT: self.network_out_bytes_per_s,
            Resource.DISK: self.disk_bytes,
            Resource.REPLICAS: self.replicas,
        }.get(resource) or None


@dataclass(frozen=True)
class BalanceBroker:
    """One broker.

    Attributes:
        broker: id.
        rack: its rack; None if it has none.
        capacity: what it can carry.
        alive: whether it is registered.
        known: false if its metrics are unknown or stale: it then gives and takes nothing, and counts in no mean.
        takes: reason why it must not take anything, such as "cordoned", "slow" or "excluded"; empty if it may.
        gives: reason why it must not give anything; empty if it may.
        sheds: resources of which it is to carry nothing, because it is slow; the other brokers share its part.
        follower_reads_bytes_per_s: bytes that consumers read from it, as the closest replica, of topics of which it
            leads nothing; they stay, whatever moves.
    """

    broker: int
    rack: str | None = None
    capacity: BrokerCapacity = field(default_factory=BrokerCapacity)
    alive: bool = True
    known: bool = True
    takes: str = ""
    gives: str = ""
    sheds: frozenset[Resource] = frozenset()
    follower_reads_bytes_per_s: float = 0.0


@dataclass(frozen=True, eq=False)
class ClusterModel:
    """A cluster at one time with the loads of the past hours. Arrays by partition are sorted by topic and partition.

    Brokers, topics and replicas are indices into ``brokers`` and ``topics``. B brokers, T topics, P partitions, R slots
    of replicas, H hours.

    Attributes:
        brokers: brokers by id.
        topics: topics by name.
        topic: topic of each partition, (P,).
        partition: number of each partition, (P,).
        replicas: brokers of the replicas, the preferred leader first, (P, R); -1 in slots that are not used.
        leader: leader of each partition, (P,); -1 if it has none.
        in_sync: whether the replica in a slot is in the ISR, (P, R).
        write: bytes appended per second, (P, H); NaN if unknown.
        read: bytes that consumers fetch per second, (P, H); NaN if unknown.
        requests: produce and fetch requests per second, (P, H); NaN if unknown.
        size: bytes of the leader's local log, which is what a new replica copies, (P,); NaN if unknown.
        moving: whether a reassignment is running, (P,).
        percentile: percentile over the hours that is the load of a broker, 0 to 100.
    """

    brokers: tuple[BalanceBroker, ...]
    topics: tuple[str, ...]
    topic: IndexArray
    partition: IndexArray
    replicas: IndexArray
    leader: IndexArray
    in_sync: BoolArray
    write: RateArray
    read: RateArray
    requests: RateArray
    size: FloatArray
    moving: BoolArray
    percentile: float = 95.0

    @property
    def partitions(self) -> int:
        """Return the number of partitions."""
        return len(self.topic)

    def with_placement(self, replicas: IndexArray, leader: IndexArray) -> ClusterModel:
        """Return the cluster after its replicas and leaders have changed; new replicas are in sync.

        Args:
            replicas: brokers of the replicas, as many for each partition as before, (P, R).
            leader: leader of each partition, (P,).
        """
        same = replicas[:, :, None] == self.replicas[:, None, :]
        in_sync: BoolArray = (same & self.in_sync[:, None, :]).any(axis=2) | ~same.any(axis=2)
        changed = replace(self, replicas=replicas, leader=leader, in_sync=in_sync)
        # These do not depend on the placement, and take long to compute.
        vars(changed).update({name: value for name, value in vars(self).items() if name in _OF_PARTITIONS})
        return changed

    def name(self, index: int) -> TopicPartition:
        """Return topic and number of a partition."""
        return TopicPartition(self.topics[self.topic[index]], int(self.partition[index]))

    def index_of(self, broker: int) -> int:
        """Return the index of a broker by its id.

        Raises:
            HeadroomError: the broker is unknown.
        """
        ids = [b.broker for b in self.brokers]
        if broker not in ids:
            raise HeadroomError(f"broker {broker}", "is unknown", f"Known brokers: {', '.join(map(str, ids))}.")
        return ids.index(broker)

    def broker_ids(self, row: IndexArray) -> tuple[int, ...]:
        """Return the broker ids of a row of ``replicas``."""
        return tuple(self.brokers[index].broker for index in row if index != NO_BROKER)

    @cached_property
    def followers(self) -> IndexArray:
        """Number of followers of each partition, (P,)."""
        counts: IndexArray = np.maximum((self.replicas != NO_BROKER).sum(axis=1, dtype=np.int32) - 1, 0)
        return counts

    @cached_property
    def sent_rate(self) -> RateArray:
        """Bytes that the leader sends per second, to consumers and followers, (P, H)."""
        rate: RateArray = self.write * self.followers[:, None].astype(np.float32)
        rate += self.read
        return rate

    @cached_property
    def rates_by_hour(self) -> RateArray:
        """Write rate, bytes sent and requests with the hours first, (3, H, P).

        Some partitions in one hour lie close together here, and far apart in the other order.
        """
        rates: RateArray = np.empty((3, *self.write.T.shape), dtype=np.float32)
        for number, rate in enumerate((self.write, self.sent_rate, self.requests)):
            rates[number] = rate.T
        return rates

    @cached_property
    def rate_edges(self) -> tuple[RateArray, RateArray]:
        """Lowest and highest rate of each partition in ``rates_by_hour``, and a little beyond, (3, P) each."""
        # Sums of these rates may be rounded.
        return self.rates_by_hour.min(axis=1) * (1 - 1e-6), self.rates_by_hour.max(axis=1) * (1 + 1e-6)

    @cached_property
    def peak_write(self) -> FloatArray:
        """Bytes appended per second in the busiest hour, (P,); 0 if unknown."""
        return np.nan_to_num(self.write).max(axis=1, initial=0.0).astype(np.float64)

    @cached_property
    def rates_known(self) -> BoolArray:
        """Whether all rates of a partition are known, (P,)."""
        # A sum is NaN if one of its terms is.
        total = self.sent_rate.sum(axis=1) + self.write.sum(axis=1) + self.requests.sum(axis=1)
        known: BoolArray = np.isfinite(total)
        return known

    @cached_property
    def load_known(self) -> BoolArray:
        """Whether all rates and the size of a partition are known, (P,)."""
        known: BoolArray = self.rates_known & np.isfinite(self.size)
        return known

    @cached_property
    def alive(self) -> BoolArray:
        """Whether a broker is registered, (B,)."""
        return np.array([b.alive for b in self.brokers], dtype=np.bool_)

    @cached_property
    def is_counted(self) -> BoolArray:
        """Whether a broker counts in means: it is alive and its metrics are known, (B,)."""
        return np.array([b.alive and b.known for b in self.brokers], dtype=np.bool_)

    @cached_property
    def has_unknown_replicas(self) -> BoolArray:
        """Whether a broker has a replica whose load is unknown, (B,). Its own load is then a lower bound."""
        return self._has_replica_of(~self.load_known)

    @cached_property
    def has_unknown_rates(self) -> BoolArray:
        """Whether a broker has a replica of which a rate is unknown, (B,)."""
        return self._has_replica_of(~self.rates_known)

    @cached_property
    def leads_unknown(self) -> BoolArray:
        """Whether a broker leads a partition of which a rate is unknown, (B,). What it sends is then a lower bound."""
        return self._leads_any_of(~self.rates_known)

    @cached_property
    def has_unknown_part(self) -> BoolArray:
        """Whether a part of the load of a broker is unknown, by resource, (6, B). What is known is a lower bound."""
        unknown = np.zeros((len(Resource), len(self.brokers)), dtype=np.bool_)
        if not self.load_known.all():
            # A sum is NaN if one of its terms is.
            unknown[Resource.NETWORK_IN] = self._has_replica_of(np.isnan(self.write.sum(axis=1)))
            unknown[Resource.NETWORK_OUT] = self._leads_any_of(np.isnan(self.sent_rate.sum(axis=1)))
            unknown[Resource.REQUESTS] = self._leads_any_of(np.isnan(self.requests.sum(axis=1)))
            unknown[Resource.DISK] = self._has_replica_of(np.isnan(self.size))
        return unknown

    def _leads_any_of(self, partitions: BoolArray) -> BoolArray:
        """Return whether a broker leads any of some partitions, (B,)."""
        leads = np.zeros(len(self.brokers), dtype=np.bool_)
        own = self.leader[partitions]
        leads[own[own != NO_BROKER]] = True
        return leads

    def _has_replica_of(self, partitions: BoolArray) -> BoolArray:
        """Return whether a broker has a replica of any of some partitions, (B,)."""
        has_replica = np.zeros(len(self.brokers), dtype=np.bool_)
        rows = self.replicas[partitions]
        has_replica[rows[rows != NO_BROKER]] = True
        return has_replica

    @cached_property
    def has_dead_replica(self) -> BoolArray:
        """Whether a partition has a replica on a broker that is down, (P,)."""
        has_dead: BoolArray = (~self.alive[self.replicas] & (self.replicas != NO_BROKER)).any(axis=1)
        return has_dead

    @cached_property
    def may_take(self) -> BoolArray:
        """Whether a broker may take replicas, and their leads with them, (B,)."""
        takers: BoolArray = self.may_lead & ~self.has_unknown_replicas
        return takers

    @cached_property
    def may_lead(self) -> BoolArray:
        """Whether a broker may take leads of partitions of which it has a replica, (B,). Sizes need not be known."""
        allowed = np.array([not b.takes for b in self.brokers], dtype=np.bool_)
        leaders: BoolArray = allowed & self.is_counted & ~self.has_unknown_rates
        return leaders

    @cached_property
    def may_give(self) -> BoolArray:
        """Whether a broker may give replicas and leaders, (B,)."""
        return np.array([not b.gives for b in self.brokers], dtype=np.bool_) & self.is_counted

    @cached_property
    def largest_free(self) -> FloatArray:
        """Largest replica for which each broker has a log directory with room, bytes, (B,); infinite if unknown."""
        return np.array([max(b.capacity.volumes_free_bytes or (np.inf,)) for b in self.brokers], dtype=np.float64)

    @cached_property
    def rack(self) -> IndexArray:
        """Rack of each broker as an index, (B,); -1 if it has none."""
        names = sorted({b.rack for b in self.brokers if b.rack is not None})
        return np.array([-1 if b.rack is None else names.index(b.rack) for b in self.brokers], dtype=np.int32)

    @cached_property
    def racks(self) -> int:
        """Return the number of racks with a registered broker or a replica; 0 if no broker has a rack."""
        exists = self.alive.copy()
        exists[self.replicas[self.replicas != NO_BROKER]] = True
        return len(set(self.rack[exists & (self.rack >= 0)].tolist()))

    def sheds(self, resource: Resource) -> BoolArray:
        """Return whether a broker is to carry nothing of a resource, (B,)."""
        return np.array([resource in b.sheds for b in self.brokers], dtype=np.bool_)

    def capacities(self, resource: Resource) -> FloatArray:
        """Return the capacities of the brokers for a resource, (B,); NaN if unknown."""
        capacities = [b.capacity.of(resource) for b in self.brokers]
        return np.array([np.nan if c is None else c for c in capacities], dtype=np.float64)

    @cached_property
    def least_network(self) -> float:
        """Least that any broker that is alive can send or receive, bytes per second; infinite if unknown of all."""
        known = [b.capacity.of(resource) for b in self.brokers if b.alive for resource in RATES]
        return min((rate for rate in known if rate is not None), default=np.inf)

    def share_capacities(self, resource: Resource) -> FloatArray:
        """Return the capacities by which brokers share a resource, (B,); NaN if unknown.

        Requests and leaders have no capacity of their own and follow that of network out; replicas without one follow
        the disk.
        """
        if resource is Resource.REPLICAS and np.isnan(self.capacities(resource)).any():
            return self.capacities(Resource.DISK)
        return self.capacities(Resource.NETWORK_OUT if resource in OF_LEADERS else resource)


@dataclass(frozen=True)
class PartitionArrays:
    """Partitions as arrays in any order, as input of ``cluster_model``. Brokers are ids.

    Attributes:
        topics: topic of each partition, (P,).
        partitions: number of each partition, (P,).
        replicas: broker ids of the replicas, the preferred leader first, (P, R); -1 in slots that are not used.
        leaders: broker id of the leader, (P,); -1 if it has none.
        write: bytes appended per second by hour, (H, P); NaN if unknown.
        read: bytes that consumers fetch per second by hour, (H, P); NaN if unknown.
        requests: requests per second by hour, (H, P); NaN if unknown.
        sizes: bytes of the leader's local log, (P,); NaN if unknown.
        in_sync: whether the replica in a slot is in the ISR, (P, R); None if all are.
        moving: whether a reassignment is running, (P,); None if none is.
    """

    topics: Sequence[str]
    partitions: AnyArray
    replicas: AnyArray
    leaders: AnyArray
    write: AnyArray
    read: AnyArray
    requests: AnyArray
    sizes: AnyArray
    in_sync: AnyArray | None = None
    moving: AnyArray | None = None


def cluster_model(brokers: Sequence[BalanceBroker], arrays: PartitionArrays, percentile: float = 95.0) -> ClusterModel:
    """Return the model of a cluster. It does not depend on the order of brokers and partitions.

    Hours in which no rate of any partition is known are left out. Loads are a percentile over the hours, 0 to 100.

    Raises:
        HeadroomError: a broker or a partition occurs twice, a replica is on a broker that is not given, or a load is
            negative or infinite.
    """
    by_id = sorted(brokers, key=lambda broker: broker.broker)
    ids = np.array([b.broker for b in by_id], dtype=np.int64)
    if len(set(ids.tolist())) < len(by_id):
        raise HeadroomError("brokers", "a broker occurs twice", "Give each broker once.")
    names = sorted(set(arrays.topics))
    numbers = {name: number for number, name in enumerate(names)}
    topic = np.array([numbers[name] for name in arrays.topics], dtype=np.int64)
    order = np.lexsort((np.asarray(arrays.partitions), topic))
    _require_once(topic[order], np.asarray(arrays.partitions)[order], names)
    replicas = _indices(ids, np.asarray(arrays.replicas)[order])
    rates = [
        np.ascontiguousarray(np.asarray(rate, dtype=np.float32).T[order])
        for rate in (arrays.write, arrays.read, arrays.requests)
    ]
    seen = np.logical_or.reduce([np.isfinite(rate).any(axis=0) for rate in rates])
    if not seen.all() and seen.any():
        rates = [np.ascontiguousarray(rate[:, seen]) for rate in rates]
    sizes = np.asarray(arrays.sizes, dtype=np.float64)[order]
    loads: list[AnyArray] = [*rates, sizes]
    for name, values in zip(("write rate", "read rate", "request rate", "size"), loads, strict=True):
        # NaN is below nothing: only real values can be wrong here.
        if (values < 0).any() or np.isinf(values).any():
            raise HeadroomError("partitions", f"a {name} is negative or infinite", "Correct the source of the loads.")
    every = np.ones(replicas.shape, dtype=np.bool_) if arrays.in_sync is None else np.asarray(arrays.in_sync)[order]
    idle = np.zeros(len(order), dtype=np.bool_) if arrays.moving is None else np.asarray(arrays.moving)[order]
    return ClusterModel(
        brokers=tuple(by_id),
        topics=tuple(str(name) for name in names),
        topic=topic[order].astype(np.int32),
        partition=np.asarray(arrays.partitions)[order].astype(np.int32),
        replicas=replicas,
        leader=_indices(ids, np.asarray(arrays.leaders)[order]),
        in_sync=every.astype(np.bool_),
        write=rates[0],
        read=rates[1],
        requests=rates[2],
        size=sizes,
        moving=idle.astype(np.bool_),
        percentile=percentile,
    )


def _require_once(topic: AnyArray, partition: AnyArray, names: Sequence[str]) -> None:
    twice = np.flatnonzero((topic[1:] == topic[:-1]) & (partition[1:] == partition[:-1]))
    if len(twice):
        name = f"{names[topic[twice[0]]]}-{partition[twice[0]]}"
        raise HeadroomError(name, "the partition occurs twice", "Give each partition once.")


def _indices(ids: AnyArray, brokers: AnyArray) -> IndexArray:
    """Return the index of each broker id; -1 stays."""
    positions = np.searchsorted(ids, brokers)
    known: BoolArray = brokers == NO_BROKER
    if len(ids):
        known = known | (ids[np.minimum(positions, len(ids) - 1)] == brokers)
    if not known.all():
        unknown = int(brokers[~known].flat[0])
        raise HeadroomError(f"broker {unknown}", "has replicas, but is not among the brokers", "Give every broker.")
    return np.where(brokers == NO_BROKER, NO_BROKER, positions).astype(np.int32)
