"""Numbers of replicas."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headroom.planning.reassignments.replica_keys import ReplicaKeys, is_among, leader_ids

IDS = st.lists(st.integers(0, 30), unique=True)


@given(IDS, st.lists(IDS))
def test_a_key_names_the_partition_and_the_broker(brokers: list[int], replicas: list[list[int]]) -> None:
    keys = ReplicaKeys(brokers)
    partition, broker = keys.partition_and_broker(keys.of(replicas))
    found = [(p, keys.brokers[b]) for p, b in zip(partition.tolist(), broker.tolist(), strict=True)]
    assert found == [(p, b) for p, own in enumerate(replicas) for b in own if b in brokers]


@given(st.lists(st.integers(0, 20)), st.lists(st.integers(0, 20)))
def test_membership_is_that_of_sets(keys: list[int], others: list[int]) -> None:
    found = is_among(np.array(keys, np.int64), np.array(others, np.int64))
    assert found.tolist() == [key in set(others) for key in keys]


def test_a_broker_that_does_not_exist_has_no_position_and_a_partition_without_a_leader_no_broker() -> None:
    keys = ReplicaKeys([7, 3])
    assert keys.positions(np.array([3, 5, 7, 9], np.int64)).tolist() == [0, -1, 1, -1]
    assert keys.positions(leader_ids([7, None])).tolist() == [1, -1]
    assert ReplicaKeys([]).positions(np.array([1], np.int64)).tolist() == [-1]
