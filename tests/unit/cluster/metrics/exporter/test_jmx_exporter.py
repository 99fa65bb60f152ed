"""jmx_exporter's answers mean the same whatever their configuration calls things; bad ones are refused."""

from __future__ import annotations

import time

import pytest

from headroom.cluster.metrics.exporter.jmx_exporter import StaleAnswerError, parse
from headroom.cluster.metrics.http import Response
from headroom.cluster.metrics.mbeans import LEADER_QUOTA, ReadPlan, topic_bytes, topic_messages
from headroom.cluster.metrics.missing_metrics import describe_missing, find_missing_metrics
from headroom.cluster.metrics.source import MetricsError, check_plausible
from headroom.cluster.model import Lag, LogReading, Meter, Metrics, Reading
from headroom.schemas.config import Source
from headroom.schemas.keys import TopicPartition
from tests.unit.fakes import jmx_exporter_output as expositions

LAG = "kafka_server_fetcherlagmetrics_consumerlag"
ORDERS, PAY = TopicPartition("orders", 0), TopicPartition("Pay.v2", 3)
PLAN = ReadPlan({"orders", "Pay.v2"}, [ORDERS, PAY], [ORDERS], replicas=3, follows=True)
FETCHER = Meter("FetcherStats.BytesPerSec", None, "ReplicaFetcherThread-0-2", 2)


def parsed(text: str, plan: ReadPlan = PLAN) -> Metrics:
    return parse(Response(5000, text.encode()), plan)


@pytest.mark.parametrize("name", expositions.WHOLE)
def test_every_known_form_means_the_same(name: str) -> None:
    metrics = parsed(expositions.WHOLE[name])
    assert metrics.started_ms == 1_700_000_000_000
    assert metrics.logs == {ORDERS: LogReading(5000, 900, 100, 500_000_000), PAY: LogReading(5000, 30, None, None)}
    assert metrics.lags == (Lag(TopicPartition("orders", 1), 2, "ReplicaFetcherThread-0-2", 12),)
    assert {meter: reading.value for meter, reading in metrics.counters.items()} == {
        topic_bytes("orders"): 4e9,
        topic_bytes("Pay.v2"): 3e9,
        topic_messages("orders"): 40,
        topic_messages("Pay.v2"): 30,
        Meter("BrokerTopicMetrics.BytesInPerSec"): 7e9,
        Meter("BrokerTopicMetrics.ReplicationBytesInPerSec"): 123,
        FETCHER: 555,
    }
    assert metrics.gauges[Meter("ReplicaManager.UnderReplicatedPartitions")] == Reading(5000, 1)
    assert metrics.gauges[Meter("ReplicaManager.PartitionCount")] == Reading(5000, 3)
    assert metrics.rates_only == ()
    assert find_missing_metrics(PLAN, metrics) == []


def test_the_start_of_the_broker_comes_before_that_of_an_exporter_of_its_own() -> None:
    lines = ["process_start_time_seconds 1.9E9\n", "java_lang_runtime_starttime 1.7E12\n"]
    for text in ("".join(lines), "".join(reversed(lines))):
        assert parsed(text).started_ms == 1_700_000_000_000


@pytest.mark.parametrize("name", ["kraft", "no_rules", "no_rules_lower"])
def test_the_quotas_are_read_where_they_are_exported(name: str) -> None:
    assert parsed(expositions.WHOLE[name]).gauges[LEADER_QUOTA].value == 1_500_000.5


def test_a_mean_rate_under_the_name_of_a_count_is_no_count() -> None:
    metrics = parsed(expositions.RATES_ONLY)
    assert metrics.counters == {}
    assert metrics.rates_only == ("BrokerTopicMetrics.BytesInPerSec", "BrokerTopicMetrics.MessagesInPerSec")


def test_metrics_missing_in_a_configuration_are_reported_with_their_consequences() -> None:
    text_of_missing = describe_missing(find_missing_metrics(PLAN, parsed(expositions.RATES_ONLY)), Source.PROMETHEUS)
    assert text_of_missing is not None
    for part in (
        "Log LogEndOffset of 2 of 2 logs (without it: no write rate, progress or verdict)",
        "BrokerTopicMetrics BytesInPerSec of topics as a count (only as a rate, which lags behind by minutes)",
        "FetcherLagMetrics ConsumerLag",
        "FetcherStats BytesPerSec",
    ):
        assert part in text_of_missing


@pytest.mark.parametrize(
    ("left_out", "missing"),
    [
        ("process_start_time", {"java.lang:type=Runtime StartTime"}),
        ("kafka_log_log_size", {"Log Size"}),
        ("kafka_log_log_logstartoffset", {"Log LogStartOffset"}),
        ("kafka_server_fetcherlagmetrics", {"FetcherLagMetrics ConsumerLag"}),
        ("kafka_server_fetcherstats", {"FetcherStats BytesPerSec"}),
        ("kafka_server_replicamanager", {"ReplicaManager"}),
        ("kafka_server_brokertopicmetrics_messagesin_total{", {"BrokerTopicMetrics MessagesInPerSec of topics"}),
    ],
)
def test_each_metric_that_is_left_out_is_named(left_out: str, missing: set[str]) -> None:
    lines = expositions.EXAMPLE.splitlines(keepends=True)
    text = "".join(line for line in lines if not line.startswith(left_out))
    assert {metric.metric for metric in find_missing_metrics(PLAN, parsed(text))} == missing


def test_topics_with_the_same_spelling_are_not_guessed() -> None:
    name = f"{LAG}_clientid_replicafetcherthread_0_2_topic_a_b_partition_1_value"
    sure, unsure = ReadPlan(["a.b"], [], []), ReadPlan(["a.b", "a-b"], [], [])
    assert parsed(f"{name} 5\n", sure).lags == (Lag(TopicPartition("a.b", 1), 2, "ReplicaFetcherThread-0-2", 5),)
    assert parsed(f"{name} 5\n", unsure).lags == ()


@pytest.mark.parametrize("label", ["clientId", "clientid", "client_id", "fetcherThread"])
def test_the_fetcher_is_known_by_its_value_whatever_its_label(label: str) -> None:
    line = f'{LAG}{{{label}="ReplicaFetcherThread-1-7",topic="t",partition="2"}} -1\n'
    assert parsed(line).lags == (Lag(TopicPartition("t", 2), 7, "ReplicaFetcherThread-1-7", None),)


def test_timestamps_escapes_and_line_ends_of_windows_are_understood() -> None:
    text = 'kafka_log_log_logendoffset{topic="orders",partition="0",note="a\\"}b\\\\"} 900.0 1700000000000\r\n'
    assert parsed(text).logs[ORDERS].log_end_offset == 900


def test_not_a_number_is_no_value_and_spoils_nothing_else() -> None:
    text = expositions.EXAMPLE.replace('topic="Pay.v2"} 30.0', 'topic="Pay.v2"} NaN').replace("} 4.0E9", "} +Inf")
    metrics = parsed(text)
    assert set(metrics.logs) == {ORDERS}
    assert topic_bytes("orders") not in metrics.counters
    assert metrics.counters[topic_bytes("Pay.v2")].value == 3e9


def test_a_count_that_is_no_number_in_all_is_an_answer_without_metrics() -> None:
    text = "".join(
        f"{line.rpartition(' ')[0]} NaN\n" for line in expositions.EXAMPLE.splitlines() if not line.startswith("#")
    )
    with pytest.raises(MetricsError, match="answers, but has no Kafka metrics yet"):
        check_plausible(parsed(text), 1, PLAN, "jmx_exporter h:1")


@pytest.mark.parametrize("cut", range(1, len(expositions.KRAFT), 97))
def test_a_cut_answer_is_refused_unless_it_is_cut_between_lines(cut: int) -> None:
    text = expositions.KRAFT[:cut]
    if text.endswith("\n"):
        parsed(text)
    else:
        with pytest.raises(ValueError, match="ends in the middle of a line"):
            parsed(text)


@pytest.mark.parametrize(
    "line", ['kafka_log_log_size{topic="orders"', 'kafka_log_log_size{topic="a"} x', "kafka_log_size"]
)
def test_a_line_that_matters_and_is_none_is_named(line: str) -> None:
    with pytest.raises(ValueError, match=r"line 2 is not a sample"):
        parsed(f"# a comment\n{line}\n")


def test_lags_of_far_more_replicas_than_the_broker_has_are_refused() -> None:
    text = "".join(f'{LAG}{{clientId="ReplicaFetcherThread-0-2",topic="t",partition="{n}"}} 1\n' for n in range(1100))
    with pytest.raises(MetricsError, match="reports 1100 lags, but the broker has 3 replicas"):
        check_plausible(parsed(text), 1, PLAN, "jmx_exporter h:1")


@pytest.mark.parametrize("form", expositions.FUTURES)
@pytest.mark.parametrize("name", expositions.WHOLE)
def test_a_log_that_is_copied_to_another_directory_changes_nothing(name: str, form: str) -> None:
    text = expositions.WHOLE[name]
    # Without rules the attribute's name keeps its case.
    parts = ("LogEndOffset", "Size", "LogStartOffset")
    copies = [expositions.FUTURES[form].format(part if "no rules" in form else part.lower()) + "\n" for part in parts]
    assert parsed(text + "".join(copies)) == parsed("".join(copies) + text) == parsed(text)


@pytest.mark.parametrize("number", ["", "0 ", "all", "0, is-future=true", "1e3"])
def test_a_partition_that_is_no_number_costs_its_sample_alone(number: str) -> None:
    labels = f'{{clientId="ReplicaFetcherThread-0-2",partition="{number}",topic="orders"}}'
    text = expositions.KRAFT + f"kafka_log_log_logendoffset{labels} 5.0\n{LAG}{labels} 5.0\n"
    assert parsed(text) == parsed(expositions.KRAFT)
    with pytest.raises(ValueError, match="is not a sample"):
        parsed(text + f"{LAG}{labels} five\n")


def test_the_same_rows_ten_times_count_once() -> None:
    assert parsed(expositions.EXAMPLE * 10) == parsed(expositions.EXAMPLE)


def test_ten_thousand_replicas_are_parsed_in_a_fraction_of_a_tick() -> None:
    names = [TopicPartition(f"topic-{n % 100}", n // 100) for n in range(10_000)]
    text = "".join(
        f'kafka_log_log_{part}{{partition="{name.partition}",topic="{name.topic}"}} 12345.0\n'
        for name in names
        for part in ("logendoffset", "logstartoffset", "size")
    )
    began = time.process_time()
    assert len(parsed(text, ReadPlan([], names, names)).logs) == 10_000
    # 30,000 lines take about 0.1 s; this fails when a line costs ten times that.
    assert time.process_time() - began < 2


def test_an_answer_with_a_scrape_error_is_of_an_earlier_time_and_refused() -> None:
    with pytest.raises(StaleAnswerError, match="could not read the broker"):
        parsed(f"{expositions.EXAMPLE}jmx_scrape_error 1.0\n")
    assert parsed(f"{expositions.EXAMPLE}jmx_scrape_error 0.0\n") == parsed(expositions.EXAMPLE)


@pytest.mark.parametrize(("age_ms", "is_stale"), [(0, False), (10_000, False), (10_001, True), (-5_000, False)])
def test_samples_with_a_time_of_their_own_count_while_they_are_of_now(age_ms: int, is_stale: bool) -> None:
    now_ms = 1_700_000_000_000
    text = f'kafka_log_log_logendoffset{{topic="orders",partition="0"}} 900.0 {now_ms - age_ms}\n'
    response = Response(now_ms, text.encode())
    if is_stale:
        with pytest.raises(StaleAnswerError, match="its samples are 10 s old by their own time"):
            parse(response, PLAN)
    else:
        assert parse(response, PLAN).logs[ORDERS].log_end_offset == 900


@pytest.mark.parametrize(
    "name", ['kafka_server_app_info_StartTimeMs{id="1",}', 'kafka_server_app_info_starttimems{id="1"}']
)
def test_the_broker_id_is_read_and_the_broker_start_is_preferred_to_the_process_start(name: str) -> None:
    text = f"{name} 1.6E12\n"
    metrics = parsed(f"{text}process_start_time_seconds 1.9E9\n")
    assert (metrics.started_ms, metrics.broker_ids) == (1_600_000_000_000, frozenset({1}))
    assert parsed(f"{text}java_lang_runtime_starttime 1.7E12\n").started_ms == 1_700_000_000_000


def test_another_brokers_answer_is_refused_with_both_ids() -> None:
    metrics = parsed(f'{expositions.EXAMPLE}kafka_server_app_info_starttimems{{id="2"}} 1.6E12\n')
    with pytest.raises(MetricsError, match="is the address of broker 2, not of broker 1") as caught:
        check_plausible(metrics, 1, PLAN, "jmx_exporter h:1")
    assert caught.value.remedy.startswith("Set 1 under [collect.endpoints]")
    assert check_plausible(metrics, 2, PLAN, "jmx_exporter h:1") is metrics


def test_a_missing_start_time_is_reported_with_its_consequence_for_restarts() -> None:
    text = "".join(line + "\n" for line in expositions.EXAMPLE.splitlines() if "start_time" not in line)
    (found,) = find_missing_metrics(PLAN, parsed(text))
    assert (found.metric, found.certain) == ("java.lang:type=Runtime StartTime", False)
    assert found.consequence == "a restart shows only in counters that fall"


def test_topics_that_a_rule_leaves_out_for_their_names_are_named() -> None:
    text = "".join(
        line + "\n" for line in expositions.EXAMPLE.splitlines() if not ("Pay.v2" in line and "logendoffset" in line)
    )
    (found,) = find_missing_metrics(PLAN, parsed(text))
    assert found.metric == "Log LogEndOffset of topics Pay.v2"
    assert r"topic=(\w+)" in found.consequence
    # One that is missing although its name is plain is of another cause.
    without_orders = "".join(
        line + "\n"
        for line in expositions.EXAMPLE.splitlines()
        if 'topic="orders"' not in line or "log_log" not in line
    )
    assert not [m for m in find_missing_metrics(PLAN, parsed(without_orders)) if "of topics" in m.metric]
