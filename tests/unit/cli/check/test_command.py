from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from headroom.cli.check import command as check_command
from headroom.cli.main import headroom
from headroom.cluster.metrics.load_meters import (
    FOLLOWER_FETCH_P99,
    HANDLER_IDLE,
    LOG_FLUSH_P999,
    PRODUCE_P99,
    fetch_requests,
    produce_requests,
    topic_consumed,
)
from headroom.cluster.metrics.mbeans import ReadPlan, topic_bytes
from headroom.cluster.model import Broker, Lag, LogReading, Meter, Metrics, Partition, Reading, Snapshot
from headroom.operations.check.brokers import endpoint_of, load_checks, metrics_checks, tcp_error
from headroom.operations.check.kafka import may_alter, rights
from headroom.operations.check.local import cpu, jars, java_major, local_store, memory, python, store
from headroom.operations.check.result import Check, CheckStatus, failure, ok, unknown, with_timeout
from headroom.schemas.config import CollectSettings, Settings, Source, SparkSettings, StoreSettings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition


class FakeSource:
    """Metrics without a broker."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def read(self, broker: int, endpoint: str, plan: ReadPlan, timeout_s: float) -> Metrics:
        return self._metrics


@pytest.fixture
def listening() -> Iterator[str]:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def _snapshot(leader: int) -> Snapshot:
    partition = Partition("t", 0, leader, 0, (1, 2), (1, 2), ())
    return Snapshot({}, {partition.name: partition}, {})


def test_a_check_that_hangs_is_a_no() -> None:
    never = threading.Event()
    [row] = with_timeout("Kafka", 0.05, lambda: [ok("Kafka", "reached")] if never.wait() else [])
    never.set()
    assert (row.answer, row.found) == (CheckStatus.FAILED, "no answer within 0.05 s")


def test_a_check_that_raises_is_a_no_with_the_remedy() -> None:
    def broken() -> list[Check]:
        raise HeadroomError("broker 1", "is down", "Start it.")

    assert with_timeout("Kafka", 60, broken) == [failure("Kafka", "broker 1: is down", "Start it.")]


def test_a_check_that_breaks_is_a_no_too() -> None:
    [row] = with_timeout("Kafka", 60, lambda: [ok("Kafka", str(1 // 0))])
    assert row.answer is CheckStatus.FAILED
    assert "ZeroDivisionError" in row.found


@pytest.mark.parametrize(
    ("output", "major"),
    [
        ('openjdk version "17.0.9" 2023-10-17', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("not a java", None),
    ],
)
def test_the_java_version_is_read_from_javas_output(output: str, major: int | None) -> None:
    assert java_major(output) == major


def test_python_and_memory_have_a_least() -> None:
    assert python((3, 9)).answer is CheckStatus.FAILED
    assert python((3, 10)).answer is CheckStatus.OK


@pytest.mark.parametrize(
    ("heap", "conf", "needed_bytes"),
    [
        # Two heaps of 1 GiB, and 3 GB outside of them.
        ("1g", {}, 5_147_483_648),
        ("512m", {}, 4_073_741_824),
        # spark.conf overrides the section's own settings.
        ("512m", {"spark.driver.memory": "2g"}, 7_294_967_296),
    ],
)
def test_a_watch_needs_the_heaps_of_two_jvms_and_memory_outside_of_them(
    heap: str, conf: dict[str, str], needed_bytes: int
) -> None:
    settings = Settings(spark=SparkSettings(driver_memory=heap, conf=conf))
    assert memory(needed_bytes, settings).answer is CheckStatus.OK
    short = memory(needed_bytes - 100_000_000, settings)
    assert (short.answer, short.remedy) == (CheckStatus.FAILED, "Free 0.1 GB, or lower spark.driver_memory.")


def test_a_heap_that_is_no_size_is_a_no_that_names_its_setting() -> None:
    done = CliRunner().invoke(headroom, ["check"], env={"HEADROOM_SPARK__DRIVER_MEMORY": "much"})
    assert done.exit_code == 1
    assert "spark.driver_memory in the environment" in str(done.exception)
    assert "'much' is not the size of a heap" in str(done.exception)


def test_fewer_cores_than_a_watch_needs_are_unknown_and_not_a_failure() -> None:
    assert cpu(2.0).answer is CheckStatus.OK
    assert cpu(1.5).answer is CheckStatus.UNKNOWN
    assert "1.5 for this process; a watch needs 2" in cpu(1.5).found


def test_jars_must_include_delta_and_the_kafka_source(tmp_path: Path) -> None:
    (tmp_path / "delta-spark_2.13-4.4.0.jar").touch()
    settings = Settings(spark=SparkSettings(jars=str(tmp_path)))
    assert "spark-sql-kafka" in jars(settings).found
    (tmp_path / "spark-sql-kafka-0-10_2.13-4.2.0.jar").touch()
    assert jars(settings).answer is CheckStatus.OK


def test_a_store_that_does_not_exist_yet_is_checked_by_its_parent(tmp_path: Path) -> None:
    assert local_store(tmp_path / "a" / "b").answer is CheckStatus.OK
    assert not (tmp_path / "a").exists()


def test_a_store_below_a_file_is_a_no(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    assert local_store(tmp_path / "a" / "b").answer is CheckStatus.FAILED


def test_a_remote_store_is_unknown() -> None:
    assert store(Settings(store=StoreSettings(path="s3a://bucket/headroom"))).answer is CheckStatus.UNKNOWN


def test_permissions_that_the_broker_does_not_report_are_unknown() -> None:
    needed = {"DESCRIBE": "see reassignments", "DESCRIBE_CONFIGS": "read throttle rates"}
    answers = [row.answer for row in rights("Cluster", "the cluster", ["DESCRIBE"], needed)]
    assert answers == [CheckStatus.OK, CheckStatus.FAILED]
    assert {row.answer for row in rights("Cluster", "the cluster", None, needed)} == {CheckStatus.UNKNOWN}


def test_the_right_to_change_throttles_is_not_needed() -> None:
    assert may_alter(["DESCRIBE"]).answer is CheckStatus.OK
    assert "grant ALTER_CONFIGS" in may_alter(["DESCRIBE"]).remedy


def test_an_endpoint_of_ones_own_wins_over_the_advertised_host() -> None:
    collect = CollectSettings(port=9999, endpoints={"1": "metrics1:7071"})
    assert endpoint_of(collect, Broker(1, "broker1", 9092, True)) == "metrics1:7071"
    assert endpoint_of(collect, Broker(2, "broker2", 9092, True)) == "broker2:9999"
    assert endpoint_of(collect, Broker(3, None, None, False)) is None
    assert endpoint_of(CollectSettings(source=Source.JOLOKIA), Broker(2, "broker2", 9092, True)) == "broker2:8778"


def test_a_port_without_a_listener_is_refused(listening: str) -> None:
    assert tcp_error(listening) is None
    assert tcp_error("127.0.0.1:1") is not None


def test_a_machine_that_does_not_answer_is_looked_at_before_the_broker_is_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unanswered(*_: object) -> None:
        raise TimeoutError("timed out")

    monkeypatch.setattr("headroom.operations.check.brokers.socket.create_connection", unanswered)
    (row,) = rows_of(Metrics(1, WHOLE, GAUGES, (), {}), 1, "broker1:9999")
    assert row.found == "broker1:9999: no connection within 3 s"
    assert row.remedy.startswith("See that the broker's machine is up, then that no firewall")


WHOLE = {Meter("BrokerTopicMetrics.BytesInPerSec"): Reading(1, 0)}
FETCHED = {Meter("FetcherStats.BytesPerSec", fetcher="ReplicaFetcherThread-0-1", source_broker=1): Reading(1, 0)}
GAUGES = {Meter("ReplicaManager.PartitionCount"): Reading(1, 1)}
NAME = TopicPartition("t", 0)
LOGS = {NAME: LogReading(1, 5, 0, 100)}
LAGS = (Lag(NAME, 1, "ReplicaFetcherThread-0-1", 0),)


def rows_of(metrics: Metrics, broker: int, endpoint: str, source: Source = Source.JMX) -> list[Check]:
    """Return the checks of a broker in a cluster where broker 1 leads a partition that broker 2 follows."""
    collect = CollectSettings(endpoints={str(broker): endpoint}, source=source)
    return metrics_checks(collect, FakeSource(metrics), _snapshot(leader=1), Broker(broker, "host", 9092, True))


def test_a_broker_that_leads_and_follows_nothing_has_unknown_mbeans(listening: str) -> None:
    rows = rows_of(Metrics(1, WHOLE, GAUGES, (), {}), 3, listening)
    assert [row.answer for row in rows] == [CheckStatus.OK, CheckStatus.UNKNOWN, CheckStatus.UNKNOWN]


def test_a_leader_without_log_mbeans_and_a_follower_without_lags_are_noes(listening: str) -> None:
    leader = rows_of(Metrics(1, WHOLE, GAUGES, (), {}), 1, listening)
    follower = rows_of(Metrics(1, WHOLE | FETCHED, GAUGES, (), {}), 2, listening)
    assert [row.answer for row in leader] == [CheckStatus.OK, CheckStatus.UNKNOWN, CheckStatus.FAILED]
    assert "no write rate, progress or verdict" in leader[2].found
    assert [row.answer for row in follower] == [CheckStatus.OK, CheckStatus.UNKNOWN, CheckStatus.FAILED]
    assert "no replication lag" in follower[2].found


def test_mbeans_that_are_read_are_ok(listening: str) -> None:
    leader = rows_of(Metrics(1, WHOLE, GAUGES, (), LOGS), 1, listening)
    follower = rows_of(Metrics(1, WHOLE | FETCHED, GAUGES, LAGS, {}), 2, listening)
    assert [(row.name, row.answer) for row in leader[:2]] == [
        ("Broker 1: JMX", CheckStatus.OK),
        ("Broker 1: Log MBeans", CheckStatus.OK),
    ]
    assert [row.answer for row in follower] == [CheckStatus.OK, CheckStatus.UNKNOWN, CheckStatus.OK]


@pytest.mark.parametrize(
    ("source", "name", "remedy"),
    [
        (Source.JMX, "JMX", "JMX port"),
        (Source.JOLOKIA, "Jolokia", "docker/jolokia-access.xml"),
        (Source.PROMETHEUS, "jmx_exporter", "docker/jmx_exporter.yml"),
    ],
)
def test_metrics_missing_from_a_source_are_shown_with_its_own_remedy(
    source: Source, name: str, remedy: str, listening: str
) -> None:
    without_size = {NAME: LogReading(1, 5, 0, None)}
    rows = rows_of(Metrics(None, WHOLE, GAUGES, (), without_size), 1, listening, source)
    assert rows[0].name == f"Broker 1: {name}"
    lost = {row.name: row for row in rows if row.answer is CheckStatus.FAILED}
    assert set(lost) == {"Broker 1: Log Size"}
    # Counters show a restart too.
    unknowns = {row.name: row for row in rows if row.answer is CheckStatus.UNKNOWN}
    start = unknowns["Broker 1: java.lang:type=Runtime StartTime"]
    assert all(remedy in row.remedy for row in (*lost.values(), start))


def test_topics_without_meters_may_be_idle(listening: str) -> None:
    written = {Meter("BrokerTopicMetrics.BytesInPerSec"): Reading(1, 5)}
    rows = rows_of(Metrics(1, written, GAUGES, (), LOGS), 1, listening)
    unknowns = [row.name for row in rows if row.answer is CheckStatus.UNKNOWN and "of topics" in row.name]
    assert len(unknowns) == 2


def test_loads_that_are_missing_are_shown_with_the_goal_that_is_lost_and_are_no_failure() -> None:
    counters = {
        **{meter: Reading(1, 5) for meter in (fetch_requests("t"), topic_consumed("t"), HANDLER_IDLE)},
        topic_bytes("t"): Reading(1, 5),
    }
    gauges = {meter: Reading(1, 5.0) for meter in (PRODUCE_P99, FOLLOWER_FETCH_P99)}
    collect = CollectSettings(source=Source.PROMETHEUS, endpoints={"1": "h:1"})

    def rows(found: Metrics) -> list[Check]:
        return load_checks(collect, FakeSource(found), _snapshot(1), Broker(1, "h", 1, True))

    first, second = rows(Metrics(1, counters, gauges, (), {}))
    assert (first.answer, first.name) == (
        CheckStatus.UNKNOWN,
        "Broker 1: BrokerTopicMetrics TotalProduceRequestsPerSec of topics",
    )
    assert first.found == "not exposed; without it: the goal requests of headroom balance is lost"
    assert "docker/jmx_exporter.yml" in first.remedy
    assert second.found == "not exposed; without it: slow brokers are not detected"
    whole = {**counters, produce_requests("t"): Reading(1, 5)}
    assert rows(Metrics(1, whole, {**gauges, LOG_FLUSH_P999: Reading(1, 5.0)}, (), {})) == [
        ok("Broker 1: load MBeans", "read")
    ]


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([ok("a", "x")], 0),
        ([ok("a", "x"), unknown("b", "y", "z")], 0),
        ([ok("a", "x"), failure("b", "y", "put it right")], 1),
    ],
)
def test_check_exits_1_only_for_a_no(rows: list[Check], code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADROOM_CLUSTER__BOOTSTRAP_SERVERS", "broker1:9092")
    monkeypatch.setattr(check_command, "run_checks", lambda settings: iter(rows))
    text = CliRunner().invoke(check_command.check, [])
    structured = CliRunner().invoke(check_command.check, ["--format", "json"])
    assert (text.exit_code, structured.exit_code) == (code, code)
    assert [row["name"] for row in json.loads(structured.stdout)] == [row.name for row in rows]
    assert all(row.remedy in text.stdout for row in rows)
