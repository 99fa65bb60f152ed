"""Saved states with the loads of their partitions."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from headroom.operations.balance.cluster import saved_cluster
from headroom.operations.balance.saved_state import LOADS_VERSION, read_loads
from headroom.planning.balance.arrays import FloatArray
from headroom.planning.balance.observation.cluster import SLOW
from headroom.planning.balance.observation.loads import ObservedLoads
from headroom.planning.balance.slow_brokers.slow_brokers import NO_ADVICE, SlowAdvice
from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from tests.unit.builders.balance_states import MB, loads_of, saved, skewed


def test_reads_from_followers_are_saved(tmp_path: Path) -> None:
    state = skewed()
    file = Path(saved(tmp_path, state, replace(loads_of(state), follower_reads={2: 3.0 * MB})))
    assert read_loads(file)[1].follower_reads == {2: 3.0 * MB}
    document = json.loads(file.read_text())
    del document["loads"]["follower_reads_bytes_per_s"]
    file.write_text(json.dumps(document))
    # A state of an earlier version has none.
    assert read_loads(file)[1].follower_reads == {}
    document["loads"]["follower_reads_bytes_per_s"] = {"b": 1}
    file.write_text(json.dumps(document))
    with pytest.raises(HeadroomError, match="rates that are not numbers"):
        read_loads(file)


def test_brokers_that_were_not_measured_are_saved(tmp_path: Path) -> None:
    state = skewed()
    file = Path(saved(tmp_path, state, replace(loads_of(state), unmeasured=frozenset({3}))))
    assert read_loads(file)[1].unmeasured == {3}
    document = json.loads(file.read_text())
    del document["loads"]["unmeasured_brokers"]
    file.write_text(json.dumps(document))
    # A state of an earlier version names none.
    assert read_loads(file)[1].unmeasured == frozenset()
    document["loads"]["unmeasured_brokers"] = ["b"]
    file.write_text(json.dumps(document))
    with pytest.raises(HeadroomError, match="rates that are not numbers"):
        read_loads(file)


def test_what_slow_brokers_are_spared_is_saved(tmp_path: Path) -> None:
    state, slow = skewed(), SlowAdvice(frozenset({2, 3}), frozenset({3}))
    file = Path(saved(tmp_path, state, replace(loads_of(state), slow=slow)))
    assert read_loads(file)[1].slow == slow
    brokers = saved_cluster(Settings(), file).observed.model.brokers
    assert [broker.takes for broker in brokers] == ["", SLOW, SLOW]
    assert [broker.sheds for broker in brokers] == [slow.sheds(number) for number in (1, 2, 3)]
    document = json.loads(file.read_text())
    del document["loads"]["slow_brokers"]
    file.write_text(json.dumps(document))
    # A state of an earlier version names none.
    assert read_loads(file)[1].slow == NO_ADVICE
    document["loads"]["slow_brokers"] = {"take_nothing": ["b"]}
    file.write_text(json.dumps(document))
    with pytest.raises(HeadroomError, match="rates that are not numbers"):
        read_loads(file)


def loads_by_hour(state: ClusterState) -> ObservedLoads:
    """Loads of two hours, of which some are unknown."""
    count = len(state.partitions)
    hours = np.arange(2.0 * count).reshape(2, count) / 3
    hours[0, 1] = np.nan
    loads = replace(loads_of(state), wanted_hours=24, hours_ms=(0, 3_600_000), write=hours, requests_by_hour=hours + 1)
    return replace(loads, read=np.array([np.nan, *[2.0] * (count - 1)]))


def same(one: ObservedLoads, other: ObservedLoads) -> None:
    for name in ("write", "read", "requests", "read_by_hour", "requests_by_hour"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (one.wanted_hours, one.hours_ms, one.source) == (other.wanted_hours, other.hours_ms, other.source)


def test_all_digits_of_the_rates_are_saved(tmp_path: Path) -> None:
    state = skewed()
    loads = loads_by_hour(state)
    file = Path(saved(tmp_path, state, loads))
    document = json.loads(file.read_text())
    assert document["loads"]["version"] == LOADS_VERSION
    # What says nothing is left out.
    assert not {"adding", "awaits_leader"} & document["partitions"][0].keys()
    same(read_loads(file)[1], loads)


def test_a_state_with_rates_as_numbers_is_read(tmp_path: Path) -> None:
    """Version 1 has numbers, null if unknown, and does not name its version."""
    state = skewed()
    loads = loads_by_hour(state)
    file = Path(saved(tmp_path, state, loads))
    document = json.loads(file.read_text())
    del document["loads"]["version"]

    def numbers(rates: FloatArray) -> list[float | None]:
        return [None if np.isnan(rate) else rate for rate in rates.tolist()]

    document["loads"] |= {
        "write_bytes_per_s": [numbers(row) for row in loads.write],
        "read_bytes_per_s": numbers(loads.read),
        "requests_per_s": numbers(loads.requests),
        "read_bytes_per_s_by_hour": None,
        "requests_per_s_by_hour": [numbers(row) for row in loads.write + 1],
    }
    file.write_text(json.dumps(document))
    same(read_loads(file)[1], loads)


def test_a_state_of_a_later_version_is_refused(tmp_path: Path) -> None:
    file = Path(saved(tmp_path, skewed()))
    document = json.loads(file.read_text())
    document["loads"]["version"] = LOADS_VERSION + 1
    file.write_text(json.dumps(document))
    with pytest.raises(HeadroomError, match="loads is of version 3, and this Headroom reads versions up to 2"):
        read_loads(file)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("AAAA", "not numbers"),
        ("AAAAAAAAAA!=", "not numbers"),
        # Infinity, 0x7ff0 in the last two bytes.
        (base64.b64encode(b"\0\0\0\0\0\0\xf0\x7f" * 6).decode(), "not numbers"),
        (base64.b64encode(bytes(8)).decode(), "for 1 hours and 6 partitions"),
        (1.0, "not numbers"),
    ],
)
def test_what_is_no_row_of_rates_is_refused(text: object, error: str, tmp_path: Path) -> None:
    file = Path(saved(tmp_path, skewed()))
    document = json.loads(file.read_text())
    document["loads"]["read_bytes_per_s"] = text
    file.write_text(json.dumps(document))
    with pytest.raises(HeadroomError, match=error):
        read_loads(file)


@pytest.mark.parametrize("rate", [-1.0, "nan", "inf", "much"])
def test_reads_from_a_follower_that_are_no_rate_are_refused(rate: object, tmp_path: Path) -> None:
    file = Path(saved(tmp_path, skewed()))
    document = json.loads(file.read_text())
    document["loads"]["follower_reads_bytes_per_s"] = {"2": rate}
    file.write_text(json.dumps(document))
    with pytest.raises(HeadroomError, match="not numbers"):
        read_loads(file)
