"""A cluster state gets directories and sizes from what brokers report."""

from __future__ import annotations

from dataclasses import replace

from headroom.planning.log_dirs.broker_logs import with_log_dirs
from tests.unit.builders.log_dirs import BOTH, GB, MB, ORDERS, A, B, cluster, logs, placed

UNKNOWN = placed(size_bytes=None, log_dirs={})


def test_the_size_is_that_of_the_leaders_log_and_not_of_its_copy() -> None:
    read = {1: logs(1, {ORDERS: (A, 900 * MB)}, {ORDERS: (B, 2 * GB)}), 2: logs(2, {ORDERS: (B, 3 * GB)})}
    found = with_log_dirs(cluster(UNKNOWN), read).partitions[ORDERS]
    assert (found.size_bytes, found.log_dirs) == (900 * MB, {1: A, 2: B})


def test_without_the_leaders_log_the_largest_in_sync_one_counts() -> None:
    three = placed(size_bytes=None, log_dirs={}, replicas=(1, 2, 3), isr=(1, 2))
    # Broker 3 is out of sync: its log may have records that are no longer the partition's.
    read = {2: logs(2, {ORDERS: (A, 800 * MB)}), 3: logs(3, {ORDERS: (A, 5 * GB)})}
    assert with_log_dirs(cluster(three), read).partitions[ORDERS].size_bytes == 800 * MB
    assert with_log_dirs(cluster(three), {3: read[3]}).partitions[ORDERS].size_bytes is None


def test_brokers_and_partitions_that_were_not_read_are_unchanged() -> None:
    state = cluster(placed(), directories=())
    found = with_log_dirs(state, {2: logs(2, {})})
    assert found.partitions == state.partitions
    assert [found.brokers[b].log_dirs for b in (1, 2, 3)] == [(), BOTH, ()]


def test_a_log_of_no_replica_is_left_out() -> None:
    # A replica that was removed leaves its log for a while.
    found = with_log_dirs(cluster(UNKNOWN), {3: logs(3, {ORDERS: (A, GB)})}).partitions[ORDERS]
    assert (found.size_bytes, found.log_dirs) == (None, {})


def test_the_bytes_that_remain_are_those_of_a_copy_under_way() -> None:
    moving = logs(1, {ORDERS: (A, 900 * MB)}, {ORDERS: (B, 200 * MB)})
    assert moving.remaining_bytes(ORDERS) == 700 * MB
    assert logs(1, {ORDERS: (A, 900 * MB)}).remaining_bytes(ORDERS) == 0
    # Segments of the current log were deleted meanwhile.
    assert logs(1, {ORDERS: (A, 100 * MB)}, {ORDERS: (B, 200 * MB)}).remaining_bytes(ORDERS) == 0


def test_an_adding_replica_has_copied_what_its_log_has() -> None:
    adding = placed(size_bytes=None, log_dirs={}, replicas=(1, 2, 3), adding=(3,))
    read = {1: logs(1, {ORDERS: (A, 900 * MB)}), 3: logs(3, {ORDERS: (B, 600 * MB)})}
    assert with_log_dirs(cluster(adding), read).partitions[ORDERS].copied_bytes == {3: 600 * MB}
    # A broker that was down while an earlier replica was removed keeps its gauges.
    frozen = placed(replicas=(1, 2, 3), adding=(3,), copied_bytes={3: 890 * MB})
    assert with_log_dirs(cluster(frozen), read).partitions[ORDERS].copied_bytes == {3: 600 * MB}
    # Of a broker that did not report its log directories there are only the gauges.
    assert with_log_dirs(cluster(frozen), {1: read[1]}).partitions[ORDERS].copied_bytes == {3: 890 * MB}


def test_what_is_not_uploaded_is_that_of_the_leader() -> None:
    read = {1: logs(1, {ORDERS: (A, 900 * MB)}), 2: logs(2, {ORDERS: (B, 800 * MB)})}
    tiered = {broker: replace(own, untiered_bytes={ORDERS: 90 * broker * MB}) for broker, own in read.items()}
    tiered[1] = replace(tiered[1], awaiting_leader=frozenset({ORDERS}))
    found = with_log_dirs(cluster(UNKNOWN), tiered).partitions[ORDERS]
    assert (found.size_bytes, found.untiered_bytes, found.new_replica_bytes) == (900 * MB, 90 * MB, 90 * MB)
    assert found.awaits_leader
    again = with_log_dirs(cluster(found), read).partitions[ORDERS]
    assert (again.untiered_bytes, again.new_replica_bytes, again.awaits_leader) == (None, 900 * MB, False)
    # The leader's logs were not read this time.
    assert with_log_dirs(cluster(found), {2: read[2]}).partitions[ORDERS].awaits_leader
