"""Saved states with the loads of their partitions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from headroom.operations.balance.cluster import saved_cluster
from headroom.operations.balance.saved_state import read_loads
from headroom.planning.balance.observation.cluster import SLOW
from headroom.planning.balance.slow_brokers.slow_brokers import NO_ADVICE, SlowAdvice
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
