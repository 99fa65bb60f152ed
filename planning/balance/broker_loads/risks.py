"""Loss of one broker or one rack: which other brokers would then exceed their limit, and by how much."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headroom.planning.balance.arrays import BoolArray, FloatArray, hourly_percentile
from headroom.planning.balance.broker_loads.capacity_risk import CapacityRisk
from headroom.planning.balance.goals.bands import limit_bounds
from headroom.planning.balance.model import NO_BROKER, ClusterModel, Resource
from headroom.planning.balance.scoring.loads import ClusterLoads


def capacity_risks(model: ClusterModel) -> list[CapacityRisk]:
    """Return the brokers that the loss of one broker or one rack takes over their limit, and that are within it now.

    In-sync followers lead what the lost brokers led, so only what brokers send can grow. What they receive and store
    stays, because Kafka makes no other replicas in place of lost ones.
    """
    limits = limit_bounds(model, Resource.NETWORK_OUT).upper
    if not np.isfinite(limits[model.is_counted]).any():
        return []
    loads = ClusterLoads(model)
    within = model.is_counted & (loads.loads[Resource.NETWORK_OUT] <= limits)
    risks, resource = [], Resource.NETWORK_OUT.name.lower()
    for name, lost in _losses(model):
        after = hourly_percentile(_sent_without(loads, lost), model.percentile)
        for broker in np.flatnonzero(within & ~lost & (after > limits)).tolist():
            own = model.brokers[broker].broker
            risks.append(CapacityRisk(name, own, resource, float(after[broker]), float(limits[broker])))
    return risks


def _losses(model: ClusterModel) -> Iterator[tuple[str, BoolArray]]:
    """Yield each broker that is alive, and each rack that is not the only one and has more than one of them."""
    alive, every = model.alive, np.arange(len(model.brokers))
    for at in np.flatnonzero(alive).tolist():
        yield f"broker {model.brokers[at].broker}", every == at
    racks = {rack: np.array([b.rack == rack for b in model.brokers]) for b in model.brokers if (rack := b.rack)}
    for rack, of_rack in sorted(racks.items()):
        if int((of_rack & alive).sum()) > 1 and (alive & ~of_rack).any():
            yield f"rack {rack}", of_rack


def _sent_without(loads: ClusterLoads, lost: BoolArray) -> FloatArray:
    """Return the bytes that brokers send per second by hour after some are lost, (B, H)."""
    model = loads.model
    used = model.replicas != NO_BROKER
    gone: BoolArray = used & lost[model.replicas]
    at = np.flatnonzero(gone.any(axis=1))
    rows, leader, gone, used = model.replicas[at], model.leader[at], gone[at], used[at]
    write, read = (np.nan_to_num(rate[at]).astype(np.float64) for rate in (model.write, model.read))
    is_lost: BoolArray = (leader >= 0) & lost[leader]
    sent = loads.hours[1].copy()
    # A leader that stays sends nothing to its lost followers.
    stays = (leader >= 0) & ~is_lost
    np.subtract.at(sent, leader[stays], write[stays] * gone[stays].sum(axis=1)[:, None])
    # The first in-sync replica that is left leads, and sends to the other ones that are left.
    usable = used & ~gone & model.in_sync[at]
    taken = is_lost & usable.any(axis=1)
    heirs = rows[np.arange(len(at)), usable.argmax(axis=1)][taken]
    followers = (used & ~gone)[taken].sum(axis=1) - 1
    np.add.at(sent, heirs, write[taken] * followers[:, None] + read[taken])
    return sent
