"""Bands and scores at their edges."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headroom.planning.balance.goals.bands import RATE_LENGTH, LoadBounds, band_bounds, limit_bounds
from headroom.planning.balance.goals.catalogue import built_in_goals
from headroom.planning.balance.model import BalanceBroker, BrokerCapacity, Resource
from headroom.planning.balance.scoring.loads import ClusterLoads
from tests.unit.planning.balance.clusters import MIB, brokers, model_of


def bounds_of(loads: list[float], resource: Resource = Resource.NETWORK_IN, detect_below: float = 0.0):  # type: ignore[no-untyped-def]
    model = model_of(brokers(len(loads)), [[1]], [1.0])
    return band_bounds(model, resource, np.array(loads), detect_below)


def band_of_1000_mib() -> LoadBounds:
    lower, upper, mean, length = (np.array([value]) for value in (900.0 * MIB, 1100.0 * MIB, 1000.0 * MIB, RATE_LENGTH))
    return LoadBounds(lower, upper, mean, length, lower, upper)


def test_the_edges_of_a_band_belong_to_it_exactly() -> None:
    # Mean 100, so the band is 90 to 110.
    bounds = bounds_of([90.0, 110.0, 100.0])
    for load, inside in (
        (90.0, True),
        (110.0, True),
        (math.nextafter(90, 0), False),
        (math.nextafter(110, 200), False),
    ):
        assert bounds.holds(np.full(3, load)).tolist() == [inside] * 3


def test_the_edge_of_a_band_is_exact_for_a_mean_in_thirds() -> None:
    # 10 leaders on 3 brokers: mean 10/3, lower edge 3 exactly. With floats, 10/3 - 1/3 is not 3.
    bounds = bounds_of([3.0, 3.0, 4.0], Resource.LEADERS)
    assert bounds.lower[0] == 3.0
    assert bounds.holds(np.array([3.0, 3.0, 4.0])).tolist() == [True, True, False]
    # 4 is beyond 3.67, but one broker must have 4: a plan is not held to less.
    assert bounds.reachable_upper[0] == 4.0


@pytest.mark.parametrize(
    ("beyond", "expected"),
    # 1 up to the edge, then a straight line: 1 - 0.9 x 50 / 100 = 0.55; at S = d + L it is 0.1.
    [(0.0, 1.0), (50 * MIB, 0.55), (100 * MIB, 0.1)],
)
def test_the_score_falls_in_a_straight_line(beyond: float, expected: float) -> None:
    assert band_of_1000_mib().score(np.array([1100.0 * MIB + beyond]))[0] == pytest.approx(expected)


def test_far_beyond_its_band_a_score_falls_by_the_logarithm() -> None:
    # d = 100 MiB, L = 100 MiB, S = 200 MiB; at u = 400 MiB: 0.1 ln(200 MiB) / ln(400 MiB).
    assert band_of_1000_mib().score(np.array([1400.0 * MIB]))[0] == pytest.approx(
        0.1 * math.log(200 * MIB) / math.log(400 * MIB)
    )


def test_counts_use_their_mean_as_length_but_at_least_10() -> None:
    assert bounds_of([4.0, 6.0], Resource.REPLICAS).length.tolist() == [10.0, 10.0]
    assert bounds_of([40.0, 60.0], Resource.REPLICAS).length.tolist() == [50.0, 50.0]
    assert bounds_of([40.0, 60.0]).length.tolist() == [RATE_LENGTH] * 2


def test_below_the_detection_rate_all_is_well_if_the_mean_is_below_it_too() -> None:
    quiet = bounds_of([0.0, 0.5 * MIB], detect_below=MIB)
    assert quiet.holds(np.array([0.0, 0.5 * MIB])).all()
    # At the detection rate itself, and with a mean above it, the band counts.
    assert not quiet.holds(np.array([0.0, float(MIB)]))[1]
    busy = bounds_of([0.0, 4.0 * MIB], detect_below=MIB)
    assert not busy.holds(np.array([0.0, 4.0 * MIB]))[0]


def test_bands_are_shares_of_capacities_that_differ() -> None:
    states = [BalanceBroker(n, capacity=BrokerCapacity(disk_bytes=c)) for n, c in ((1, 100.0), (2, 300.0))]
    bounds = band_bounds(model_of(states, [[1]], [1.0]), Resource.DISK, np.array([20.0, 60.0]), 0.0)
    # 80 in all: a quarter and three quarters of it.
    assert bounds.mean.tolist() == [20.0, 60.0]
    missing = [states[0], BalanceBroker(2)]
    bounds = band_bounds(model_of(missing, [[1]], [1.0]), Resource.DISK, np.array([20.0, 60.0]), 0.0)
    assert bounds.mean.tolist() == [40.0, 40.0]


def test_limits_are_shares_of_the_capacity_and_a_capacity_of_0_is_unknown() -> None:
    states = [BalanceBroker(n, capacity=BrokerCapacity(disk_bytes=c)) for n, c in ((1, 100.0), (2, 0.0), (3, None))]
    bounds = limit_bounds(model_of(states, [[1]], [1.0]), Resource.DISK)
    assert bounds.upper.tolist() == [80.0, math.inf, math.inf]
    disk = next(goal for goal in built_in_goals() if goal.name == "disk_capacity")
    usage = ClusterLoads(model_of(states, [[1]], [1.0], size=[80.0])).usage(np.arange(3))
    assert disk.holds(bounds, usage).tolist() == [True, True, True]
    usage = ClusterLoads(model_of(states, [[1]], [1.0], size=[81.0])).usage(np.arange(3))
    assert disk.holds(bounds, usage).tolist() == [False, True, True]


def test_the_load_of_a_broker_is_the_percentile_of_its_own_sum() -> None:
    # Two partitions that are busy in different hours: the sum is 10 in both, the sum of percentiles nearly 20.
    model = model_of(brokers(2), [[1], [1]], [1.0, 1.0], hours=2)
    busy = model.write.copy()
    busy[0], busy[1] = (0.0, 10.0), (10.0, 0.0)
    changed = type(model)(**{**vars_of(model), "write": busy})
    assert ClusterLoads(changed).loads[Resource.NETWORK_IN].tolist() == [10.0, 0.0]


def vars_of(model: object) -> dict[str, object]:
    return {name: getattr(model, name) for name in model.__dataclass_fields__}  # type: ignore[attr-defined]
