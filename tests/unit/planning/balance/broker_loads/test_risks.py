"""What the loss of a broker or a rack would do to the limits of others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from headroom.planning.balance.broker_loads.risks import capacity_risks
from headroom.planning.balance.model import BalanceBroker, BrokerCapacity, PartitionArrays, Resource, cluster_model
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.what_if import without_brokers, without_rack
from tests.unit.planning.balance.clusters import MIB, brokers, clusters, model_of

OUT = Resource.NETWORK_OUT


def test_it_says_which_broker_and_by_how_much() -> None:
    # Each broker leads 40 MiB/s with one follower and no consumers. Without broker 1, broker 2 leads both and sends
    # nothing, as no follower is left; the consumers of 60 MiB/s at each come along.
    model = model_of(
        brokers(2, network_out_bytes_per_s=150.0 * MIB),
        [[1, 2], [2, 1]],
        [40.0 * MIB] * 2,
        read=[65.0 * MIB] * 2,
    )
    # Limit 120 MiB/s; now 40 + 65 = 105, then 65 + 65 = 130.
    found = {risk.lost: risk for risk in capacity_risks(model)}
    assert set(found) == {"broker 1", "broker 2"}
    risk = found["broker 1"]
    assert (risk.broker, risk.resource) == (2, "network_out")
    assert (risk.load, risk.limit, risk.over) == pytest.approx((130 * MIB, 120 * MIB, 10 * MIB))


def test_a_rack_is_more_than_one_broker() -> None:
    # Brokers 1 and 3 are on rack r0, 2 and 4 on r1. Each leads one partition that 65 MiB/s are read of.
    model = model_of(
        brokers(4, racks=2, network_out_bytes_per_s=200.0 * MIB),
        [[1, 2], [3, 2], [2, 1], [4, 1]],
        [0.0] * 4,
        read=[65.0 * MIB] * 4,
    )
    # Limit 160. Without one broker another one has 130 at most; without r0, broker 2 has three times 65.
    assert [(r.lost, r.broker) for r in capacity_risks(model)] == [("rack r0", 2), ("rack r1", 1)]
    assert capacity_risks(model)[0].load == pytest.approx(195 * MIB)


def test_without_a_capacity_nothing_is_at_risk_and_what_is_over_now_is_no_risk() -> None:
    replicas, read = [[1, 2], [2, 1]], [65.0 * MIB] * 2
    assert capacity_risks(model_of(brokers(2), replicas, [0.0] * 2, read=read)) == []
    small = brokers(2, network_out_bytes_per_s=50.0 * MIB)
    assert capacity_risks(model_of(small, replicas, [0.0] * 2, read=read)) == []


@given(clusters())
def test_the_loads_are_those_of_the_cluster_after_the_loss(drawn: tuple[list[BalanceBroker], PartitionArrays]) -> None:
    states, arrays = drawn
    # A capacity just above the greatest load now makes risks of most losses.
    now = ClusterLoads(cluster_model(states, arrays)).loads[OUT]
    capacity = BrokerCapacity(network_out_bytes_per_s=float(now.max()) / 0.8 * 1.01 + 1.0)
    limited = [BalanceBroker(b.broker, b.rack, capacity) for b in states]
    model = cluster_model(limited, arrays)
    ids = [b.broker for b in model.brokers]
    risks = {(r.lost, r.broker): r for r in capacity_risks(model)}
    losses = [(f"broker {b}", without_brokers(model, [b])) for b in ids]
    racks = {b.rack for b in model.brokers if b.rack is not None}
    losses += [(f"rack {rack}", without_rack(model, rack)) for rack in racks if sum(b.rack == rack for b in states) > 1]
    for lost, after in losses:
        loads, limit = ClusterLoads(after).loads[OUT], 0.8 * float(capacity.network_out_bytes_per_s or 0.0)
        for at, broker in enumerate(after.brokers):
            if not broker.alive:
                continue
            risk = risks.get((lost, broker.broker))
            if not np.isclose(loads[at], limit):
                assert (risk is not None) == bool(loads[at] > limit)
            if risk is not None:
                assert risk.load == pytest.approx(loads[at], rel=1e-6)
