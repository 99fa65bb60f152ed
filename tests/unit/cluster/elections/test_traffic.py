"""Rates of partitions from two samples of the brokers' counters, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.cluster.elections.traffic import CounterSample, traffic_between
from headroom.cluster.metrics.load_meters import fetch_requests, produce_requests, topic_consumed
from headroom.cluster.metrics.mbeans import topic_bytes, topic_messages
from headroom.cluster.model import LogReading, Meter, Metrics, Partition, Reading
from headroom.schemas.keys import TopicPartition

BROKER_BYTES = Meter("BrokerTopicMetrics.BytesInPerSec")


def led(topic: str, partition: int, leader: int | None = 1) -> Partition:
    return Partition(topic, partition, leader, 0, (1, 2), (1, 2), ())


def metrics_at(
    read_ms: int, counts: dict[Meter, float], ends: dict[tuple[str, int], int] | None = None, started_ms: int = 1
) -> Metrics:
    counters = {meter: Reading(read_ms, count) for meter, count in counts.items()}
    logs = {TopicPartition(*name): LogReading(read_ms, end, None, None) for name, end in (ends or {}).items()}
    return Metrics(started_ms, counters, {}, (), logs)


def test_what_a_broker_takes_in_of_a_topic_goes_to_partitions_by_the_records_they_took() -> None:
    # 6,000 bytes in 2 s are 3,000 a second; 30 of 40 records went to partition 0.
    earlier = metrics_at(0, {BROKER_BYTES: 500, topic_bytes("t"): 1_000}, {("t", 0): 100, ("t", 1): 50})
    later = metrics_at(2_000, {BROKER_BYTES: 8_500, topic_bytes("t"): 7_000}, {("t", 0): 130, ("t", 1): 60})
    found = traffic_between([led("t", 0), led("t", 1)], CounterSample({1: earlier}), CounterSample({1: later}))
    assert found.written == {("t", 0): 2_250.0, ("t", 1): 750.0}
    assert found.cluster_written == 4_000.0
    assert (found.read, found.unmeasured) == ({}, {})


def test_what_reassignments_copy_and_quotas_count_is_known_by_role() -> None:
    sent, received = (Meter(f"BrokerTopicMetrics.ReassignmentBytes{way}PerSec") for way in ("Out", "In"))
    earlier = metrics_at(0, {sent: 1_000, received: 0})
    gauges = {Meter("LeaderReplication.byte-rate"): Reading(2_000, 7.0)}
    later = replace(metrics_at(2_000, {sent: 9_000, received: 0}), gauges=gauges)
    found = traffic_between([], CounterSample({1: earlier}), CounterSample({1: later}))
    assert found.copied == {(1, "leader"): 4_000.0, (1, "follower"): 0.0}
    assert found.counted == {(1, "leader"): 7.0}
    assert traffic_between([], CounterSample({}), CounterSample({1: later})).copied == {}


def test_without_all_log_ends_it_is_divided_evenly() -> None:
    earlier = metrics_at(0, {topic_bytes("t"): 0}, {("t", 0): 100})
    later = metrics_at(1_000, {topic_bytes("t"): 3_000}, {("t", 0): 130})
    found = traffic_between([led("t", 0), led("t", 1)], CounterSample({1: earlier}), CounterSample({1: later}))
    assert found.written == {("t", 0): 1_500.0, ("t", 1): 1_500.0}


def test_a_topic_whose_logs_did_not_grow_is_written_nothing_even_without_a_counter() -> None:
    sample = metrics_at(0, {}, {("t", 0): 100, ("t", 1): 0})
    found = traffic_between(
        [led("t", 0), led("t", 1)],
        CounterSample({1: sample}),
        CounterSample({1: metrics_at(1_000, {}, {("t", 0): 100, ("t", 1): 0})}),
    )
    assert found.written == {("t", 0): 0.0, ("t", 1): 0.0}


# 6,000 bytes in 2 s are 3,000 a second, of 40 messages. Partition 1 took 10 records, partition 2 and 3 show none.
@pytest.mark.parametrize(
    ("messages", "rates"),
    [
        # 30 of 40 messages are in no log: 15 each for those that stand still.
        (40, (750.0, 1_125.0, 1_125.0)),
        # Read a moment later than the log ends, the counter has 12: the others are idle.
        (12, (3_000.0, 0.0, 0.0)),
        # It fell, or is not exported.
        (-5, (3_000.0, 0.0, 0.0)),
        (None, (3_000.0, 0.0, 0.0)),
    ],
)
def test_messages_that_no_log_took_are_of_the_logs_whose_gauges_stand_still(
    messages: int | None, rates: tuple[float, float, float]
) -> None:
    """As those of a replica that was moved away while its broker was down."""
    before = {topic_bytes("t"): 1_000.0} | ({topic_messages("t"): 100.0} if messages is not None else {})
    after = {topic_bytes("t"): 7_000.0} | ({topic_messages("t"): 100.0 + messages} if messages is not None else {})
    earlier = metrics_at(0, before, {("t", 1): 50, ("t", 2): 7, ("t", 3): 7})
    later = metrics_at(2_000, after, {("t", 1): 60, ("t", 2): 7, ("t", 3): 7})
    partitions = [led("t", partition) for partition in (1, 2, 3)]
    found = traffic_between(partitions, CounterSample({1: earlier}), CounterSample({1: later}))
    assert found.written == dict(zip((("t", 1), ("t", 2), ("t", 3)), rates, strict=True))


def test_bytes_of_a_topic_whose_log_ends_all_stand_still_are_divided_evenly() -> None:
    ends = {("t", 0): 7, ("t", 1): 7}
    earlier, later = metrics_at(0, {topic_bytes("t"): 0}, ends), metrics_at(1_000, {topic_bytes("t"): 3_000}, ends)
    found = traffic_between([led("t", 0), led("t", 1)], CounterSample({1: earlier}), CounterSample({1: later}))
    assert found.written == {("t", 0): 1_500.0, ("t", 1): 1_500.0}
    idle = metrics_at(1_000, {topic_bytes("t"): 0}, ends)
    found = traffic_between([led("t", 0), led("t", 1)], CounterSample({1: earlier}), CounterSample({1: idle}))
    assert found.written == {("t", 0): 0.0, ("t", 1): 0.0}


def test_what_grows_without_a_counter_is_unknown() -> None:
    found = traffic_between(
        [led("t", 0)],
        CounterSample({1: metrics_at(0, {}, {("t", 0): 1})}),
        CounterSample({1: metrics_at(1_000, {}, {("t", 0): 2})}),
    )
    assert found.written == {}
    assert found.cluster_written is None


def test_what_consumers_read_of_a_topic_is_divided_by_what_was_written() -> None:
    # 30 of 40 records went to partition 0, and so do 3,000 of 4,000 bytes that were read.
    ends = {("t", 0): 100, ("t", 1): 50}
    earlier = metrics_at(0, {topic_bytes("t"): 0, topic_consumed("t"): 5_000}, ends)
    later = metrics_at(1_000, {topic_bytes("t"): 800, topic_consumed("t"): 9_000}, {("t", 0): 130, ("t", 1): 60})
    found = traffic_between([led("t", 0), led("t", 1)], CounterSample({1: earlier}), CounterSample({1: later}))
    assert found.read == {("t", 0): 3_000.0, ("t", 1): 1_000.0}


@pytest.mark.parametrize(
    ("total", "topics", "leads", "from_leader", "besides"),
    [
        (10_000.0, {"t": 1_000.0, "u": 3_000.0}, True, {"t": 1_000.0, "u": 3_000.0}, {1: 6_000.0}),
        # The counters are not read at the same moment: 500 bytes more or less go to t and u as 1 to 3.
        (4_500.0, {"t": 1_000.0, "u": 3_000.0}, True, {"t": 1_125.0, "u": 3_375.0}, {}),
        (3_500.0, {"t": 1_000.0, "u": 3_000.0}, True, {"t": 875.0, "u": 2_625.0}, {}),
        # A counter of all topics that shows far less than those of the topics is not that of the same reads.
        (100.0, {"t": 1_000.0, "u": 3_000.0}, True, {"t": 1_000.0, "u": 3_000.0}, {}),
        (0.0, {"t": 0.0, "u": 0.0}, True, {"t": 0.0, "u": 0.0}, {}),
        # It leads nothing, and all that it sends it sends as a follower, whether its topics are exported or not.
        (3_000.0, {}, False, {}, {1: 3_000.0}),
        (3_000.0, {"t": 3_000.0}, False, {}, {1: 3_000.0}),
        # The source does not export the counters of topics.
        (3_000.0, {}, True, {}, {}),
    ],
)
def test_what_a_broker_sends_to_consumers_is_of_what_it_leads_or_besides_and_the_sum_is_the_measured_one(
    total: float, topics: dict[str, float], leads: bool, from_leader: dict[str, float], besides: dict[int, float]
) -> None:
    meters = {topic_consumed(): total, **{topic_consumed(topic): rate for topic, rate in topics.items()}}
    earlier, later = metrics_at(0, dict.fromkeys(meters, 0.0)), metrics_at(1_000, meters)
    partitions = [led(topic, 0, 1 if leads else 2) for topic in ("t", "u")]
    found = traffic_between(partitions, CounterSample({1: earlier}), CounterSample({1: later}))
    assert found.read == {(topic, 0): rate for topic, rate in from_leader.items()}
    assert found.read_from_followers == besides


def test_what_followers_send_is_known_by_topic_where_they_count_it() -> None:
    """Broker 1 leads t and sends u as the closest replica; of v it sends nothing, and broker 3 counts no topics."""
    rates = {topic_consumed(): 7_000.0, topic_consumed("t"): 1_000.0, topic_consumed("u"): 6_000.0}
    meters = {1: {**rates, topic_consumed("v"): 0.0}, 2: rates, 3: {topic_consumed(): 3_000.0}}
    earlier = CounterSample({b: metrics_at(0, dict.fromkeys(own, 0.0)) for b, own in meters.items()})
    later = CounterSample({b: metrics_at(1_000, own) for b, own in meters.items()})
    found = traffic_between([led("t", 0, 1), led("t", 1, 2)], earlier, later)
    assert found.read_from_followers == {1: 6_000.0, 2: 6_000.0, 3: 3_000.0}
    assert found.read_from_followers_of == {"u": 12_000.0}


def test_reads_of_a_topic_that_is_unknown_are_not_those_of_others() -> None:
    # The counter of u is new: it may have what t does not explain.
    meters = {topic_consumed(): 4_000.0, topic_consumed("t"): 1_000.0}
    earlier, later = metrics_at(0, dict.fromkeys(meters, 0.0)), metrics_at(1_000, {**meters, topic_consumed("u"): 9.0})
    found = traffic_between([led("t", 0), led("u", 0)], CounterSample({1: earlier}), CounterSample({1: later}))
    assert (found.read, found.read_from_followers) == ({("t", 0): 1_000.0}, {})


def test_what_consumers_read_of_a_topic_without_writes_is_divided_evenly() -> None:
    # 1,000 bytes in 1 s from two partitions.
    earlier, later = metrics_at(0, {topic_consumed("t"): 5_000}), metrics_at(1_000, {topic_consumed("t"): 6_000})
    found = traffic_between([led("t", 0), led("t", 1)], CounterSample({1: earlier}), CounterSample({1: later}))
    assert found.read == {("t", 0): 500.0, ("t", 1): 500.0}


def test_requests_of_a_topic_are_divided_evenly() -> None:
    # 300 produce and 500 fetch requests in 1 s to two partitions.
    earlier = metrics_at(0, {produce_requests("t"): 100, fetch_requests("t"): 200})
    later = metrics_at(1_000, {produce_requests("t"): 400, fetch_requests("t"): 700})
    found = traffic_between([led("t", 0), led("t", 1)], CounterSample({1: earlier}), CounterSample({1: later}))
    assert found.requested == {("t", 0): 400.0, ("t", 1): 400.0}


def test_requests_are_known_only_if_both_counters_are_reported() -> None:
    def requested(*meters: Meter) -> object:
        earlier, later = (metrics_at(ms, dict.fromkeys(meters, 5 + ms)) for ms in (0, 1_000))
        partitions = [led("t", 0), led("u", 0)]
        return traffic_between(partitions, CounterSample({1: earlier}), CounterSample({1: later})).requested

    assert requested(produce_requests("t")) == {}
    # A topic without a counter was not used.
    assert requested(produce_requests("t"), fetch_requests("u")) == {("t", 0): 1000.0, ("u", 0): 1000.0}


@pytest.mark.parametrize(
    ("later", "reason"),
    [
        (CounterSample({}, {1: "refused"}), "refused"),
        (
            CounterSample({1: metrics_at(1_000, {topic_bytes("t"): 9}, started_ms=2)}),
            "was restarted between two samples",
        ),
    ],
)
def test_a_broker_that_was_not_measured_is_named_and_leaves_the_sum_unknown(later: CounterSample, reason: str) -> None:
    other = metrics_at(0, {BROKER_BYTES: 0})
    earlier = CounterSample({1: metrics_at(0, {topic_bytes("t"): 0}), 2: other})
    later = replace(later, metrics={**later.metrics, 2: metrics_at(1_000, {BROKER_BYTES: 100})})
    found = traffic_between([led("t", 0), led("t", 1, leader=None)], earlier, later)
    assert found.unmeasured == {1: reason}
    assert (found.written, found.cluster_written) == ({}, None)


def test_a_counter_that_fell_gives_no_rate() -> None:
    earlier, later = metrics_at(0, {BROKER_BYTES: 100}), metrics_at(1_000, {BROKER_BYTES: 50})
    assert traffic_between([], CounterSample({1: earlier}), CounterSample({1: later})).cluster_written is None


def test_a_topic_without_a_read_counter_has_rate_zero_if_others_have_one() -> None:
    def read(counts: dict[Meter, float]) -> object:
        earlier, later = (metrics_at(ms, {meter: count + ms for meter, count in counts.items()}) for ms in (0, 1_000))
        return traffic_between([led("t", 0), led("u", 0)], CounterSample({1: earlier}), CounterSample({1: later})).read

    assert read({topic_consumed("u"): 0}) == {("t", 0): 0.0, ("u", 0): 1000.0}
    # A source with this counter for no topic may not export it at all.
    assert read({}) == {}
    broker_out = Meter("BrokerTopicMetrics.BytesOutPerSec")
    assert read({broker_out: 0}) == {}
    still = metrics_at(0, {broker_out: 7}), metrics_at(1_000, {broker_out: 7})
    assert traffic_between([led("t", 0)], *(CounterSample({1: sample}) for sample in still)).read == {("t", 0): 0.0}
