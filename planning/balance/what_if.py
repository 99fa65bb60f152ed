"""What a cluster would look like: brokers lost, added or drained, a topic grown. Each returns a model of its own.

What consumers read from a broker as the closest replica ends with its replicas.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace

import numpy as np

from headroom.planning.balance.arrays import BoolArray, IndexArray
from headroom.planning.balance.goals.bands import LIMIT_RATIO
from headroom.planning.balance.model import NO_BROKER, BalanceBroker, ClusterModel, Resource
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.scoring.racks import keeps_racks
from headroom.schemas.errors import HeadroomError

LIMITED = (Resource.NETWORK_IN, Resource.NETWORK_OUT, Resource.DISK, Resource.REPLICAS)
# Divides nothing by 0.
_NOTHING = 1e-12


def without_brokers(model: ClusterModel, brokers: Collection[int]) -> ClusterModel:
    """Return the cluster after brokers are lost, by id: their replicas are gone, and in-sync followers lead.

    Raises:
        HeadroomError: a broker is unknown.
    """
    lost = np.zeros(len(model.brokers), dtype=np.bool_)
    for broker in brokers:
        lost[model.index_of(broker)] = True
    gone: BoolArray = (model.replicas != NO_BROKER) & lost[model.replicas]
    kept = np.where(gone, NO_BROKER, model.replicas)
    # Replicas that are left move up, in their order.
    order = np.argsort(kept == NO_BROKER, axis=1, kind="stable")
    replicas = np.take_along_axis(kept, order, axis=1).astype(np.int32)
    in_sync = np.take_along_axis(model.in_sync & ~gone, order, axis=1)
    leaderless = (model.leader >= 0) & lost[model.leader]
    usable = in_sync & (replicas != NO_BROKER)
    heirs = np.where(usable.any(axis=1), replicas[np.arange(len(replicas)), usable.argmax(axis=1)], NO_BROKER)
    leader: IndexArray = np.where(leaderless, heirs, model.leader).astype(np.int32)
    states = tuple(
        replace(b, alive=False, follower_reads_bytes_per_s=0.0) if gone else b
        for b, gone in zip(model.brokers, lost, strict=True)
    )
    return replace(model, brokers=states, replicas=replicas, in_sync=in_sync, leader=leader)


def without_rack(model: ClusterModel, rack: str) -> ClusterModel:
    """Return the cluster after all brokers of a rack are lost.

    Raises:
        HeadroomError: no broker is on the rack.
    """
    brokers = [b.broker for b in model.brokers if b.rack == rack]
    if not brokers:
        known = ", ".join(sorted({b.rack for b in model.brokers if b.rack is not None})) or "none"
        raise HeadroomError(f"rack {rack}", "has no broker", f"Known racks: {known}.")
    return without_brokers(model, brokers)


def with_broker(model: ClusterModel, broker: BalanceBroker) -> ClusterModel:
    """Return the cluster with one more broker, which is empty.

    Raises:
        HeadroomError: the broker exists.
    """
    if any(b.broker == broker.broker for b in model.brokers):
        raise HeadroomError(f"broker {broker.broker}", "exists", "Choose another id.")
    states = tuple(sorted((*model.brokers, broker), key=lambda b: b.broker))
    at = states.index(broker)
    # Indices of the brokers behind it move up by one; -1 stays.
    replicas = model.replicas + (model.replicas >= at)
    return replace(model, brokers=states, replicas=replicas, leader=model.leader + (model.leader >= at))


def with_broker_drained(model: ClusterModel, broker: int) -> ClusterModel:
    """Return the cluster after a broker has given all its replicas to others, each to the one with the most room.

    Room counts most in the resources of which the replica needs most: a large one goes where disks are used least, a
    small one where replicas are few. Brokers that it would take over a limit come last.

    Raises:
        HeadroomError: the broker is unknown, or a replica fits on no other broker.
    """
    source = model.index_of(broker)
    loads = ClusterLoads(model)
    capacity = np.array([model.capacities(resource) for resource in LIMITED])
    # Shares of the capacities where all are known.
    scale = np.where(np.isnan(capacity).any(axis=1, keepdims=True), 1.0, capacity)
    needs = np.nan_to_num(
        [model.write.mean(axis=1), model.sent_rate.mean(axis=1), model.size, np.ones(model.partitions)],
    )
    usual = np.maximum(needs.mean(axis=1), _NOTHING)
    takes = model.may_take.copy()
    takes[source] = False
    targets = np.flatnonzero(takes)
    # The largest first, so that they find room.
    own = np.flatnonzero((model.replicas == source).any(axis=1))
    for partition in own[np.argsort(-np.nan_to_num(model.size[own]), kind="stable")].tolist():
        row = loads.replicas[[partition]]
        free = targets[~np.isin(targets, row)]
        free = free[keeps_racks(model, row, np.array([source]), free[None])[0]]
        if not len(free):
            raise HeadroomError(str(model.name(partition)), f"fits on no other broker than {broker}", "Add brokers.")
        need = needs[:, partition] * (1.0, float(loads.leader[partition] == source), 1.0, 1.0)
        carried = loads.loads[LIMITED, :]
        over = (carried + need[:, None] > LIMIT_RATIO * capacity).any(axis=0)
        used = carried / scale
        used /= np.maximum(used[:, model.is_counted].mean(axis=1, keepdims=True), _NOTHING)
        best = np.lexsort((((need / usual) @ used)[free], over[free]))[0]
        loads.move(np.array([partition]), source, int(free[best]))
    drained = replace(model.brokers[source], takes="drained", follower_reads_bytes_per_s=0.0)
    states = tuple(drained if b.broker == broker else b for b in model.brokers)
    return replace(model, brokers=states, replicas=loads.replicas, leader=loads.leader)


def with_preferred_leaders(model: ClusterModel) -> ClusterModel:
    """Return the cluster after Kafka has given leads back to the preferred leaders that are alive and in sync."""
    first = model.replicas[:, 0]
    leader = np.where((first != NO_BROKER) & model.in_sync[:, 0] & model.alive[first], first, model.leader)
    return model.with_placement(model.replicas, leader.astype(np.int32))


def with_topic_grown(model: ClusterModel, topic: str, times: float) -> ClusterModel:
    """Return the cluster after all loads of a topic have grown by a factor of at least 0.

    Raises:
        HeadroomError: the topic is unknown, or the factor negative or infinite.
    """
    if topic not in model.topics:
        raise HeadroomError(f"topic {topic}", "is unknown", "Name a topic of the cluster.")
    if not 0 <= times < math.inf:
        raise HeadroomError(f"growth of {topic}", f"is {times}", "Use a factor of at least 0, such as 2.")
    factor = np.where(model.topic == model.topics.index(topic), times, 1.0)
    by_hour = factor.astype(np.float32)[:, None]
    return replace(
        model,
        write=model.write * by_hour,
        read=model.read * by_hour,
        requests=model.requests * by_hour,
        size=model.size * factor,
    )


def brokers_missing(model: ClusterModel) -> int:
    """Return how many brokers of the smallest known capacity are missing to carry all loads within the limits.

    A broker that takes nothing, such as a drained one, carries no more than it has.
    """
    loads = ClusterLoads(model)
    counted, missing = model.is_counted, 0
    takes = np.array([not broker.takes for broker in model.brokers], dtype=np.bool_)
    for resource in LIMITED:
        limits, load = LIMIT_RATIO * model.capacities(resource), loads.loads[resource]
        if not counted.any() or np.isnan(limits[counted]).any():
            continue
        over = float((load - np.where(takes, limits, np.minimum(limits, load)))[counted].sum())
        missing = max(missing, math.ceil(over / float(limits[counted].min())))
    return missing
