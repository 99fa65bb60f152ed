"""Loads of brokers in one minute: bands, limits, scores, and what is not known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.planning.balance.broker_loads.loads import BROKER_DOWN, NO_ANSWER, BrokerLoad, broker_loads
from headroom.planning.balance.broker_reading import BrokerReading
from headroom.planning.balance.goals.catalogue import built_in_goals
from headroom.planning.balance.model import BalanceBroker, BrokerCapacity, PartitionArrays, Resource, cluster_model
from headroom.planning.balance.reports.scorecard import scorecard_of
from headroom.planning.balance.slow_brokers.slow_brokers import SlowAdvice
from headroom.schemas.config import BalanceSettings
from tests.unit.builders.broker_load import MB, reading

IN, OUT = Resource.NETWORK_IN, Resource.NETWORK_OUT


def of(readings: list[BrokerReading], resource: Resource = IN, **settings: object) -> dict[int, BrokerLoad]:
    found = broker_loads(readings, BalanceSettings(**settings))  # type: ignore[arg-type]
    return {load.broker: load for load in found if load.resource is resource}


def test_every_broker_has_every_resource_once() -> None:
    found = broker_loads([reading(2, 10), reading(1, 10)], BalanceSettings())
    assert [(load.resource, load.broker) for load in found] == [(r, b) for r in Resource for b in (1, 2)]


def test_the_band_is_the_mean_and_a_tenth() -> None:
    # Mean (30 + 20 + 10) / 3 = 20 MB/s, band 18 to 22.
    found = of([reading(1, 30), reading(2, 20), reading(3, 10)])
    assert (found[1].mean, found[1].lower, found[1].upper) == (20 * MB, 18 * MB, 22 * MB)
    assert [found[b].in_band for b in (1, 2, 3)] == [False, True, False]
    # 8 MB/s beyond an edge, of 100 MiB/s over which the score falls by 0.9.
    assert found[1].band_score == found[3].band_score == pytest.approx(1 - 0.9 * 8 * MB / (100 * 1024**2))
    assert found[2].band_score == 1.0


def test_loads_below_the_detection_rate_count_as_in_band() -> None:
    found = of([reading(1, 1.0), reading(2, 0.01)])
    assert [load.in_band for load in found.values()] == [True, True]
    assert [load.in_band for load in of([reading(1, 1.0), reading(2, 0.01)], detect_below=1000).values()] == [
        False,
        False,
    ]


@pytest.mark.parametrize(("resource", "small"), [(Resource.REQUESTS, 99.0), (Resource.DISK, 1e9)])
def test_few_requests_and_small_logs_count_as_in_band(resource: Resource, small: float) -> None:
    def in_band(load: float) -> list[bool | None]:
        found = of([reading(1, loads={resource: load}), reading(2, loads={resource: load / 10})], resource)
        return [found[broker].in_band for broker in (1, 2)]

    assert in_band(small) == [True, True]
    assert in_band(20 * small) == [False, False]


def test_the_capacity_of_a_disk_is_that_which_was_read() -> None:
    found = of([reading(1, loads={Resource.DISK: 5e12}, disk_bytes=6e12), reading(2)], Resource.DISK)
    assert (found[1].capacity, found[1].limit, found[2].capacity) == (6e12, 0.8 * 6e12, None)
    assert found[1].limit_score is not None
    assert found[1].limit_score < 1.0


def test_a_limit_is_a_share_of_the_capacity() -> None:
    found = of([reading(1, 90), reading(2, 10)], network_in_capacity=100 * MB)
    assert (found[1].capacity, found[1].limit) == (100 * MB, 80 * MB)
    assert found[2].limit_score == 1.0
    assert found[1].limit_score is not None
    assert found[1].limit_score < 1.0
    without = of([reading(1, 90), reading(2, 10)])[1]
    assert (without.capacity, without.limit) == (None, None)


def test_an_unknown_load_has_a_reason_and_is_left_out_of_the_mean() -> None:
    down = reading(3, 50, alive=False, answered=False)
    silent = reading(4, answered=False)
    found = of([reading(1, 20), reading(2, 10), down, silent, reading(5)])
    assert found[1].mean == 15 * MB
    reasons = {broker: load.unknown for broker, load in found.items()}
    assert (reasons[1], reasons[3], reasons[4]) == (None, BROKER_DOWN, NO_ANSWER)
    assert reasons[5] is not None
    assert "counters" in reasons[5]
    assert found[3].load is found[3].in_band is found[3].band_score is None


def test_a_slow_broker_is_in_no_band_of_what_it_is_to_give_away() -> None:
    readings = [reading(n, 10, 10) for n in range(1, 11)]
    found = broker_loads(readings, BalanceSettings(), SlowAdvice(frozenset({3})))
    sent = {load.broker: load for load in found if load.resource is OUT}
    assert sent[3].in_band is None
    assert sent[3].load == 10 * MB
    # The other nine share what it sends.
    assert sent[1].mean == pytest.approx(100 * MB / 9)
    assert {load.in_band for load in found if load.resource is IN} == {True}


def test_without_any_load_there_is_no_band() -> None:
    found = of([reading(1), reading(2)])
    assert all(load.mean is load.lower is load.upper is load.in_band is None for load in found.values())
    assert of([]) == {}


def test_only_the_goals_of_the_settings_have_a_band_but_limits_always_hold() -> None:
    settings = {"goals": "disk,network_out", "network_in_capacity": 100 * MB}
    found = of([reading(1, 90), reading(2, 10)], **settings)
    assert (found[1].lower, found[1].in_band, found[1].limit) == (None, None, 80 * MB)
    assert of([reading(1, 1, 90), reading(2, 1, 10)], OUT, **settings)[1].in_band is False


def test_a_count_next_to_the_mean_is_in_band() -> None:
    # Mean 10/3: one of three brokers must lead 4.
    readings = [reading(n, loads={Resource.LEADERS: count}) for n, count in ((1, 4.0), (2, 3.0), (3, 3.0))]
    assert [load.in_band for load in of(readings, Resource.LEADERS).values()] == [True] * 3


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=8), st.sampled_from([None, 2e8]))
def test_bands_and_scores_are_those_of_the_scorecard(rates: list[float], capacity: float | None) -> None:
    """One partition per broker with one replica, so that its write rate is the load of the broker."""
    found = of([reading(n, rate / MB) for n, rate in enumerate(rates)], network_in_capacity=capacity)
    every = np.arange(len(rates))
    # The model of partitions has its rates in single precision.
    written = np.array([[found[n].load for n in every]], dtype=np.float32)
    known = of(
        [BrokerReading(n, True, True, {IN: float(rate)}) for n, rate in enumerate(written[0])],
        network_in_capacity=capacity,
    )
    none = np.zeros((1, len(rates)))
    arrays = PartitionArrays(
        ["t"] * len(rates), every, every[:, None], every, written, none, none, np.zeros(len(rates))
    )
    brokers = [BalanceBroker(n, capacity=BrokerCapacity(capacity)) for n in every.tolist()]
    card = scorecard_of(cluster_model(brokers, arrays), built_in_goals())
    names = [goal.name for goal in card.goals]
    band, limit = names.index("network_in"), names.index("network_in_capacity")
    for n in every.tolist():
        assert known[n].in_band == bool(card.met[band, n])
        assert known[n].band_score == pytest.approx(card.scores[band, n])
        assert known[n].limit_score == pytest.approx(card.scores[limit, n])
