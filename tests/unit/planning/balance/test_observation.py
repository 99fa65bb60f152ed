"""Observed clusters: gaps in the history, broker states, and a model that is the cluster."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.planning.balance.goals.catalogue import built_in_goals
from headroom.planning.balance.model import Resource
from headroom.planning.balance.observation.cluster import excluding, observed_cluster
from headroom.planning.balance.observation.loads import (
    LoadHistory,
    fill_gaps,
    measured_writes,
    no_history,
    observed_loads,
)
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.reassignments.cluster_state import BrokerState, LogDirectory
from headroom.schemas.config import BalanceSettings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.unit.builders.balance_states import GB, MB, broker, loads_of, skewed, state_of, topic

SETTINGS = BalanceSettings()
NAN = np.nan


def test_hours_of_which_less_than_half_of_the_partitions_was_seen_do_not_count() -> None:
    state = state_of([broker(1)], topic("t", [[1]] * 4))
    names = list(state.partitions)
    rates = np.array([[1.0, 2.0, 3.0, NAN], [5.0, NAN, NAN, NAN], [7.0, 8.0, NAN, NAN]])
    found = observed_loads(state, LoadHistory(24, names[:3], (10, 20, 30), rates[:, :3]), {})
    # Of the 3 partitions with a history, 3, 1 and 2 were seen. The last partition has none.
    assert found.hours_ms == (10, 30)
    assert found.write[:, :3] == pytest.approx(np.array([[1.0, 2.0, 3.0], [7.0, 8.0, NAN]]), nan_ok=True)
    assert np.isnan(found.write[:, 3]).all()
    assert found.source == "hourly means of 2 of the last 24 hours"
    # Gaps: the mean of the other hours, and for a partition without any its measured rate.
    assert fill_gaps(found.write, np.array([9.0, 9.0, 9.0, 4.0])).tolist() == [[1, 2, 3, 4], [7, 8, 3, 4]]


def test_reads_and_requests_are_those_of_the_hours_and_gaps_those_of_the_reading() -> None:
    state = state_of([broker(1)], topic("t", [[1]] * 2, write_bytes_per_s=5.0))
    names = list(state.partitions)
    hours = np.array([[1.0, 2.0], [3.0, NAN]])
    history = LoadHistory(24, names, (10, 20), hours, read_bytes_per_s=hours * 10, requests_per_s=np.full((2, 2), NAN))
    now = dict.fromkeys(names, 7.0)
    loads = observed_loads(state, history, now, now)
    assert loads.requests_by_hour is None
    model = observed_cluster(state, loads, SETTINGS).model
    # An hour without a value counts with the mean of the others.
    assert model.read.tolist() == [[10.0, 30.0], [20.0, 20.0]]
    assert model.requests.tolist() == [[7.0, 7.0], [7.0, 7.0]]


def test_a_history_of_other_partitions_is_none() -> None:
    state = state_of([broker(1)], topic("t", [[1]], write_bytes_per_s=5.0))
    other = LoadHistory(24, [TopicPartition("gone", 0)], (10,), np.array([[1.0]]))
    found = observed_loads(state, other, {TopicPartition("t", 0): 3.0})
    assert (found.hours_ms, found.write.tolist(), found.read.tolist()) == ((), [[5.0]], [3.0])
    assert found.source.startswith("a test (no history: ")


@given(st.integers(0, 2**32 - 1))
def test_the_order_of_a_history_changes_nothing(seed: int) -> None:
    random = np.random.default_rng(seed)
    state = state_of([broker(1)], topic("t", [[1]] * 5))
    names, rates = list(state.partitions), random.uniform(0, 9, (3, 5))
    order = random.permutation(5)
    one = observed_loads(state, LoadHistory(3, names, (1, 2, 3), rates), {})
    other = observed_loads(state, LoadHistory(3, [names[n] for n in order], (1, 2, 3), rates[:, order]), {})
    assert one.write.tolist() == other.write.tolist() == rates.tolist()


def test_the_model_is_the_cluster() -> None:
    state = state_of(
        [broker(1, rack="a"), broker(2, rack="b"), broker(3, alive=False)],
        [*topic("t", [[1, 2], [2, 3]], isr=(2,)), *topic("u", [[2]], adding=(1,))],
    )
    model = observed_cluster(state, loads_of(state, [1.0, 2.0, 4.0], 0.0), SETTINGS).model
    assert [(b.broker, b.rack, b.alive) for b in model.brokers] == [(1, "a", True), (2, "b", True), (3, None, False)]
    assert ClusterLoads(model).loads[Resource.NETWORK_IN].tolist() == [1.0, 7.0, 2.0]
    assert model.in_sync.tolist() == [[False, True], [True, False], [True, False]]
    assert model.moving.tolist() == [False, False, True]
    assert model.is_counted.tolist() == [True, True, False]


def test_capacities_of_disks_leave_out_what_others_use() -> None:
    directories = (LogDirectory("/a", 100 * GB, 40 * GB), LogDirectory("/b", 100 * GB, 90 * GB))
    full = replace(broker(1), log_dirs=directories)
    offline = replace(broker(2), log_dirs=(*directories, LogDirectory("/c", offline=True)))
    unknown = replace(broker(3), log_dirs=(LogDirectory("/a", 100 * GB, None),))
    state = state_of([full, offline, unknown], topic("t", [[1], [1], [2], [3]], size=10 * GB))
    found = observed_cluster(state, loads_of(state), SETTINGS).model.brokers
    # 20 GB of replicas and 130 GB free, of 200; 10 and 130; the free bytes are unknown.
    assert [b.capacity.disk_bytes for b in found] == [150 * GB, 140 * GB, 100 * GB]
    assert [b.takes for b in found] == ["", "a log directory is offline", ""]


def test_directories_on_one_volume_are_counted_once_in_the_capacity() -> None:
    # Two empty disks of 100 GB look like one. Logs of 30 GB each do not fit into the 40 GB that are used of one.
    empty = (LogDirectory("/a", 100 * GB, 95 * GB), LogDirectory("/b", 100 * GB, 95 * GB))
    used = tuple(replace(directory, usable_bytes=60 * GB, logs_bytes=30 * GB) for directory in empty)
    states = [replace(broker(1), log_dirs=empty), replace(broker(2), log_dirs=used)]
    state = state_of(states, topic("t", [[2]] * 60))
    found = observed_cluster(state, loads_of(state), SETTINGS)
    assert [b.capacity.disk_bytes for b in found.model.brokers] == [100 * GB, 200 * GB]
    assert [note for note in found.notes if note.startswith("Log directories /a, /b of broker 1 count as one")] != []


def test_what_a_cordoned_directory_has_free_is_no_room() -> None:
    def in_part(number: int, free: int, used: int) -> BrokerState:
        cordoned = LogDirectory("/b", 100 * GB, (100 - used) * GB, cordoned=True, volume="b")
        return replace(broker(number), log_dirs=(LogDirectory("/a", 200 * GB, free * GB, volume="a"), cordoned))

    open_one = LogDirectory("/a", 100 * GB, 70 * GB, volume="x")
    shared = (open_one, replace(open_one, path="/b", cordoned=True))
    states = [in_part(1, 150, 10), in_part(2, 150, 100), in_part(3, 40, 10), replace(broker(4), log_dirs=shared)]
    state = state_of(states, topic("t", [[1], [2], [3], [4]], size=30 * GB))
    found = observed_cluster(state, loads_of(state), SETTINGS).model.brokers
    # At its limit of 80 %, 1 has its 30 GB and 110 more: 150 free without the 40 that the limit keeps of 200. 2 has 50
    # more, because what leaves the 100 of its cordoned directory makes no room. 3 keeps all that is free, so it takes
    # nothing. The volume of 4 has a directory that takes replicas, and counts as if none was cordoned.
    assert [b.capacity.disk_bytes for b in found] == pytest.approx([175 * GB, 100 * GB, 160 * GB, 100 * GB])
    assert [b.takes for b in found] == ["", "", "cordoned", ""]
    free = [b.capacity.volumes_free_bytes for b in found]
    assert free == [(150 * GB,), (150 * GB,), (40 * GB,), (70 * GB,)]


def test_what_a_broker_stores_is_the_sum_of_its_replicas_and_unknown_if_one_is() -> None:
    """Other files take 95 of 100 GB, so a disk holds its replicas and the 5 GB that are free."""
    states = [broker(number, total=100 * GB, free=5 * GB) for number in (1, 20, 3_000_000)]
    rows = [*topic("t", [[1, 20], [20]], size=2 * GB), *topic("u", [[20, 3_000_000]], size=None)]
    state = state_of(states, rows)
    found = observed_cluster(state, loads_of(state), SETTINGS).model.brokers
    # Where a size is unknown, the total counts.
    assert [b.capacity.disk_bytes for b in found] == [7 * GB, 100 * GB, 100 * GB]
    known = state_of(states, rows[:2])
    found = observed_cluster(known, loads_of(known), SETTINGS).model.brokers
    assert [b.capacity.disk_bytes for b in found] == [7 * GB, 9 * GB, 5 * GB]


def test_what_running_moves_still_copy_is_not_free_on_a_volume() -> None:
    """A move to /b of broker 1 has 20 of its 30 GB left; one to broker 2 may come to either."""
    two = tuple(LogDirectory(path, 100 * GB, 70 * GB, volume=path) for path in ("/a", "/b"))
    (running,) = topic("t", [[3, 1, 2]], size=30 * GB, adding=(1, 2), log_dirs={1: "/b"}, copied_bytes={1: 10 * GB})
    state = state_of([replace(broker(1), log_dirs=two), replace(broker(2), log_dirs=two), broker(3)], [running])
    found = observed_cluster(state, loads_of(state), SETTINGS).model.brokers
    assert [b.capacity.volumes_free_bytes for b in found[:2]] == [(70 * GB, 50 * GB), (40 * GB, 40 * GB)]


def test_what_running_moves_still_copy_is_no_room_on_a_disk() -> None:
    """Of 100 GB other files take 25, and one replica 10; another 40 GB are on their way there. That leaves 25."""
    rows = [*topic("t", [[1]], size=10 * GB), *topic("u", [[2, 1]], size=40 * GB, adding=(1,))]
    state = state_of([broker(1, total=100 * GB, free=65 * GB), broker(2)], rows)
    found = observed_cluster(state, loads_of(state), SETTINGS).model.brokers[0]
    assert found.capacity.disk_bytes == 75 * GB


def test_a_broker_without_any_rate_is_unknown_unless_all_are() -> None:
    state = state_of([broker(n) for n in (1, 2)], topic("t", [[1], [2]]))
    partly = observed_cluster(state, loads_of(state, [5.0, NAN]), SETTINGS)
    assert partly.model.is_counted.tolist() == [True, False]
    assert any("Metrics of broker 2 are unknown" in note for note in partly.notes)
    none = observed_cluster(state, loads_of(state, NAN), SETTINGS)
    assert none.model.is_counted.tolist() == [True, True]
    assert none.unknown == {Resource.NETWORK_IN, Resource.NETWORK_OUT, Resource.REQUESTS}


def test_where_no_broker_takes_replicas_no_partition_is_called_too_large() -> None:
    """All three brokers have a replica of a partition of unknown rate."""
    state = state_of([broker(n) for n in (1, 2, 3)], topic("t", [[1, 2, 3]] * 2))
    found = observed_cluster(state, loads_of(state, [5.0, NAN]), SETTINGS)
    assert not found.model.may_take.any()
    assert any("take nothing: 1, 2, 3." in note for note in found.notes)
    assert not any("larger than the free bytes" in note for note in found.notes)


def test_a_broker_whose_metrics_could_not_be_read_is_unknown_whatever_its_history() -> None:
    """Broker 2 leads, and broker 3 leads nothing; both have 2 hours of history."""
    state = state_of([broker(n) for n in (1, 2, 3)], topic("t", [[1, 3], [2, 3]]))
    history = LoadHistory(24, list(state.partitions), (10, 20), np.full((2, 2), 5.0))
    for unmeasured in ({2}, {3}):
        loads = replace(observed_loads(state, history, {}), unmeasured=frozenset(unmeasured))
        found = observed_cluster(state, loads, SETTINGS)
        assert {b.broker for b in found.model.brokers if not b.known} == unmeasured
        assert {b.broker for b, may in zip(found.model.brokers, found.model.may_take, strict=True) if not may} == (
            unmeasured
        )
        named = f"Metrics of broker {min(unmeasured)} are unknown: it gives and takes nothing, and counts in no mean."
        assert named in found.notes
    # Where none can be read, as without a source of metrics, the history counts for all.
    loads = replace(observed_loads(state, history, {}), unmeasured=frozenset({1, 2, 3}))
    assert observed_cluster(state, loads, SETTINGS).model.is_counted.all()


def test_requests_of_one_reading_are_known() -> None:
    state = state_of([broker(1)], topic("t", [[1], [1]]))
    found = observed_loads(state, no_history(5, "why"), {}, {TopicPartition("t", 1): 70.0})
    assert found.requests == pytest.approx(np.array([NAN, 70.0]), nan_ok=True)


def test_a_broker_that_reports_writes_but_no_requests_costs_the_goal_and_not_its_replicas() -> None:
    state = state_of([broker(1), broker(2)], topic("t", [[1, 2], [2, 1], [1, 2]], write_bytes_per_s=5.0))
    loads = replace(loads_of(state), requests=np.array([7.0, NAN, 7.0]))
    observed = observed_cluster(state, loads, SETTINGS)
    assert Resource.REQUESTS in observed.unknown
    (lost,) = (goal for goal in observed.lost_goals if goal.name == "requests")
    assert lost.reason == "no requests by topic are reported by broker 2"
    assert observed.model.may_take.tolist() == [True, True]
    # A broker whose metrics could not be read at all is unknown in every load, and takes nothing.
    unread = replace(
        state,
        partitions={
            n: replace(p, write_bytes_per_s=None if p.leader == 2 else 5.0) for n, p in state.partitions.items()
        },
    )
    partly = observed_cluster(unread, replace(loads, read=np.array([1.0, NAN, 1.0])), SETTINGS)
    assert Resource.REQUESTS not in partly.unknown


def test_lost_goals_are_left_out_unless_they_are_demanded() -> None:
    observed = observed_cluster(skewed(), loads_of(skewed()), SETTINGS)
    names = [goal.name for goal in observed.known_goals(built_in_goals())]
    assert "requests" not in names
    assert "network_out" in names
    with pytest.raises(HeadroomError, match="requests by topic"):
        observed.known_goals(built_in_goals(), ["requests"])
    with pytest.raises(HeadroomError, match="none is left"):
        observed.known_goals([goal for goal in built_in_goals() if goal.name == "requests"])
    known = observed_cluster(skewed(), loads_of(skewed(), requests=3.0), SETTINGS)
    assert "requests" in [goal.name for goal in known.known_goals(built_in_goals())]


def test_excluded_brokers_give_and_take_nothing_and_count_in_means() -> None:
    model = excluding(observed_cluster(skewed(), loads_of(skewed()), SETTINGS).model, {1})
    assert (model.may_give.tolist(), model.may_take.tolist()) == ([False, True, True], [False, True, True])
    assert model.is_counted.all()


def test_measured_writes_and_an_empty_history() -> None:
    state = state_of([broker(1)], topic("t", [[1]], write_bytes_per_s=2.0 * MB))
    assert measured_writes(state).tolist() == [2.0 * MB]
    assert observed_loads(state, no_history(5, "why"), {}).source == "a test (no history: why)"


def test_reads_of_an_hour_are_divided_by_what_each_leader_sends_and_each_partition_was_written() -> None:
    """Broker 1 sends 40 MB/s of the topic and broker 2 sends 10, of 10 written to each of four partitions."""
    state = state_of([broker(1), broker(2)], topic("t", [[1, 2], [1, 2], [2, 1], [2, 1]], write_bytes_per_s=10.0 * MB))
    names = list(state.partitions)
    now = dict(zip(names, [20.0 * MB, 20.0 * MB, 5.0 * MB, 5.0 * MB], strict=True))
    written = np.array([[10.0, 10.0, 10.0, 10.0], [30.0, 10.0, 20.0, 20.0]]) * MB
    # The table divides 50 and 100 MB/s evenly.
    read = np.array([[12.5] * 4, [25.0] * 4]) * MB
    loads = observed_loads(state, LoadHistory(24, names, (10, 20), written, read_bytes_per_s=read), now)
    assert loads.read_by_hour is not None
    # In the second hour 30:10:5:5 of 4 x 30 : 4 x 10 : 20 : 20 are 120:40:20:20.
    assert loads.read_by_hour == pytest.approx(np.array([[20.0, 20.0, 5.0, 5.0], [60.0, 20.0, 10.0, 10.0]]) * MB)
    sent = ClusterLoads(observed_cluster(state, loads, replace(SETTINGS, percentile=0)).model).loads
    # And one follower fetches what is written.
    assert sent[Resource.NETWORK_OUT] == pytest.approx([60.0 * MB, 30.0 * MB])


def test_what_followers_send_counts_once_also_where_the_hours_have_it() -> None:
    """Of 60 MB/s of an hour broker 1 sends 20 as the leader, and broker 2 sends 40 as the closest replica."""
    state = state_of([broker(1), broker(2)], topic("t", [[1, 2]] * 4, write_bytes_per_s=10.0 * MB))
    names, written = list(state.partitions), np.full((2, 4), 10.0 * MB)
    # The table divides what all brokers send of the topic.
    history = LoadHistory(24, names, (10, 20), written, read_bytes_per_s=np.array([[15.0] * 4, [30.0] * 4]) * MB)
    now = dict.fromkeys(names, 5.0 * MB)
    loads = observed_loads(state, history, now, {}, {"t": 40.0 * MB})
    assert loads.read_by_hour == pytest.approx(np.array([[5.0] * 4, [10.0] * 4]) * MB)
    sent = ClusterLoads(
        observed_cluster(state, replace(loads, follower_reads={2: 40.0 * MB}), replace(SETTINGS, percentile=0)).model
    ).loads
    # And one follower fetches what is written.
    assert sent[Resource.NETWORK_OUT] == pytest.approx([60.0 * MB, 40.0 * MB])
    # Other topics are as they were, and so is one of which it is unknown what leaders send.
    for reads, sent_by_followers in ((now, {"u": 40.0 * MB}), ({names[0]: 5.0 * MB}, {"t": 40.0 * MB})):
        other = observed_loads(state, history, reads, {}, sent_by_followers).read_by_hour
        assert other is not None
        assert other.sum(axis=1) == pytest.approx([60.0 * MB, 120.0 * MB])


def test_reads_are_divided_whatever_the_ids_of_brokers_and_the_order_of_topics() -> None:
    """Of each topic broker 7 sends twice what is written, and the other one half of it; the table divides evenly."""
    large = 2_000_000_000
    rows = [p for name in ("b", "a") for p in topic(name, [[7], [large]], write_bytes_per_s=10.0 * MB)]
    state = replace(state_of([broker(7), broker(large)], rows), partitions={p.name: p for p in rows})
    names = list(state.partitions)
    now = dict(zip(names, [20.0 * MB, 5.0 * MB] * 2, strict=True))
    read = np.full((1, 4), 12.5 * MB)
    history = LoadHistory(24, names, (10,), np.full((1, 4), 10.0 * MB), read_bytes_per_s=read)
    found = observed_loads(state, history, now).read_by_hour
    assert found is not None
    assert found == pytest.approx(np.array([[20.0, 5.0, 20.0, 5.0]]) * MB)
    assert observed_cluster(state, observed_loads(state, history, now), SETTINGS).model.topics == ("a", "b")


def test_requests_of_an_hour_are_divided_as_in_the_reading() -> None:
    state = state_of([broker(1), broker(2)], topic("t", [[1], [2]], write_bytes_per_s=1.0))
    names, even = list(state.partitions), np.array([[50.0, 50.0]])
    history = LoadHistory(24, names, (10,), np.ones((1, 2)), requests_per_s=even)
    found = observed_loads(state, history, {}, dict(zip(names, [90.0, 10.0], strict=True)))
    assert found.requests_by_hour is not None
    assert found.requests_by_hour.tolist() == [[90.0, 10.0]]
    # Of one broker they are unknown: they stay as they are.
    found = observed_loads(state, history, {}, {names[0]: 90.0})
    assert found.requests_by_hour is not None
    assert found.requests_by_hour.tolist() == [[50.0, 50.0]]


@given(st.integers(0, 2**32 - 1))
def test_the_reads_of_each_hour_and_topic_keep_their_sum_and_each_leader_its_share(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = [[1 + n % 3] for n in range(9)]
    state = state_of([broker(n) for n in (1, 2, 3)], [*topic("t", rows, write_bytes_per_s=5.0), *topic("u", rows[:4])])
    names = list(state.partitions)
    hours = random.uniform(1, 9, (2, len(names)))
    write = np.where(random.random((2, len(names))) < 0.2, 0.0, random.uniform(1, 9, (2, len(names))))
    fans = {1: 4.0, 2: 1.0, 3: 0.5}
    now = {name: 5.0 * fans[p.leader or 0] for name, p in state.partitions.items() if name.topic == "t"}
    found = observed_loads(state, LoadHistory(24, names, (1, 2), write, read_bytes_per_s=hours), now).read_by_hour
    assert found is not None
    for of_topic in ([n.topic == "t" for n in names], [n.topic == "u" for n in names]):
        assert found[:, of_topic].sum(axis=1) == pytest.approx(hours[:, of_topic].sum(axis=1))
    ratio = np.array([[fans[state.partitions[n].leader or 0] for n in names]]) * write
    of_t = [n.topic == "t" for n in names]
    expected = hours[:, of_t].sum(axis=1, keepdims=True) * ratio[:, of_t] / ratio[:, of_t].sum(axis=1, keepdims=True)
    assert found[:, of_t] == pytest.approx(expected)


def test_what_a_broker_sends_as_the_closest_replica_counts_for_it_and_stays() -> None:
    state = state_of([broker(1), broker(2)], topic("t", [[1, 2]] * 4, write_bytes_per_s=10.0 * MB))
    loads = replace(loads_of(state, 10.0 * MB, 5.0 * MB), follower_reads={2: 30.0 * MB})
    found = observed_cluster(state, loads, SETTINGS)
    # Broker 1 leads all: 4 x (5 of consumers + 10 of its follower).
    assert ClusterLoads(found.model).loads[Resource.NETWORK_OUT].tolist() == [60.0 * MB, 30.0 * MB]
    assert any("Consumers read 30.00 MB/s from broker 2 as the closest replica" in note for note in found.notes)
    moved = found.model.with_placement(found.model.replicas[:, ::-1].copy(), 1 - found.model.leader)
    assert ClusterLoads(moved).loads[Resource.NETWORK_OUT].tolist() == [0.0, 90.0 * MB]
