from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli import check_command
from cli.check_brokers import endpoint_of, jmx_checks, tcp_error
from cli.check_kafka import may_alter, rights
from cli.check_local import jars, java_major, local_store, memory, python, store
from cli.check_result import Answer, Check, bounded, no, ok, unknown
from cluster.mbeans import Plan
from cluster.model import Broker, Lag, LogReading, Metrics, Partition, Snapshot, TopicPartition
from schemas.config import CollectSettings, Settings, SparkSettings, StoreSettings
from schemas.errors import HeadroomError


class FakeSource:
    """Metrics without a broker."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def read(self, broker: int, endpoint: str, plan: Plan, timeout_s: float) -> Metrics:
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
    [row] = bounded("Kafka", 0.05, lambda: [ok("Kafka", "reached")] if never.wait() else [])
    never.set()
    assert (row.answer, row.found) == (Answer.NO, "no answer within 0.05 s")


def test_a_check_that_raises_is_a_no_with_the_remedy() -> None:
    def broken() -> list[Check]:
        raise HeadroomError("broker 1", "is down", "Start it.")

    assert bounded("Kafka", 5, broken) == [no("Kafka", "broker 1: is down", "Start it.")]


def test_a_check_that_breaks_is_a_no_too() -> None:
    [row] = bounded("Kafka", 5, lambda: [ok("Kafka", str(1 // 0))])
    assert row.answer is Answer.NO
    assert "ZeroDivisionError" in row.found


@pytest.mark.parametrize(
    ("said", "major"),
    [
        ('openjdk version "17.0.9" 2023-10-17', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("not a java", None),
    ],
)
def test_the_java_version_is_read_from_what_java_says(said: str, major: int | None) -> None:
    assert java_major(said) == major


def test_python_and_memory_have_a_least() -> None:
    assert python((3, 9)).answer is Answer.NO
    assert python((3, 10)).answer is Answer.OK
    assert memory(1_999_999_999).answer is Answer.NO
    assert memory(2_000_000_000).answer is Answer.OK


def test_jars_must_hold_delta_and_the_kafka_source(tmp_path: Path) -> None:
    (tmp_path / "delta-spark_2.13-4.4.0.jar").touch()
    settings = Settings(spark=SparkSettings(jars=str(tmp_path)))
    assert "spark-sql-kafka" in jars(settings).found
    (tmp_path / "spark-sql-kafka-0-10_2.13-4.2.0.jar").touch()
    assert jars(settings).answer is Answer.OK


def test_a_store_that_is_not_there_yet_is_judged_by_the_folder_above(tmp_path: Path) -> None:
    assert local_store(tmp_path / "a" / "b").answer is Answer.OK
    assert not (tmp_path / "a").exists()


def test_a_store_below_a_file_is_a_no(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    assert local_store(tmp_path / "a" / "b").answer is Answer.NO


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_store_without_the_right_to_write_is_a_no(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert local_store(tmp_path / "a").answer is Answer.NO


def test_a_remote_store_is_unknown() -> None:
    assert store(Settings(store=StoreSettings(path="s3a://bucket/headroom"))).answer is Answer.UNKNOWN


def test_rights_that_the_broker_does_not_tell_are_unknown() -> None:
    needed = {"DESCRIBE": "see reassignments", "DESCRIBE_CONFIGS": "read throttle rates"}
    answers = [row.answer for row in rights("Cluster", "the cluster", ["DESCRIBE"], needed)]
    assert answers == [Answer.OK, Answer.NO]
    assert {row.answer for row in rights("Cluster", "the cluster", None, needed)} == {Answer.UNKNOWN}


def test_the_right_to_change_throttles_is_not_needed() -> None:
    assert may_alter(["DESCRIBE"]).answer is Answer.OK
    assert "grant ALTER_CONFIGS" in may_alter(["DESCRIBE"]).remedy


def test_an_endpoint_of_ones_own_wins_over_the_advertised_host() -> None:
    collect = CollectSettings(port=9999, endpoints={"1": "metrics1:7071"})
    assert endpoint_of(collect, Broker(1, "broker1", 9092, True)) == "metrics1:7071"
    assert endpoint_of(collect, Broker(2, "broker2", 9092, True)) == "broker2:9999"
    assert endpoint_of(collect, Broker(3, None, None, False)) is None


def test_a_port_that_nobody_listens_on_is_refused(listening: str) -> None:
    assert tcp_error(listening) is None
    assert tcp_error("127.0.0.1:1") is not None


def test_a_broker_that_leads_and_follows_nothing_has_unknown_mbeans(listening: str) -> None:
    collect = CollectSettings(endpoints={"3": listening})
    source = FakeSource(Metrics(1, {}, {}, (), {}))
    rows = jmx_checks(collect, source, _snapshot(leader=1), Broker(3, "broker3", 9092, True))
    assert [row.answer for row in rows] == [Answer.OK, Answer.UNKNOWN, Answer.UNKNOWN]


def test_a_leader_without_log_mbeans_and_a_follower_without_lags_are_noes(listening: str) -> None:
    collect = CollectSettings(endpoints={"1": listening, "2": listening})
    source = FakeSource(Metrics(1, {}, {}, (), {}))
    leader = jmx_checks(collect, source, _snapshot(leader=1), Broker(1, "broker1", 9092, True))
    follower = jmx_checks(collect, source, _snapshot(leader=1), Broker(2, "broker2", 9092, True))
    assert [row.answer for row in leader] == [Answer.OK, Answer.NO, Answer.UNKNOWN]
    assert [row.answer for row in follower] == [Answer.OK, Answer.UNKNOWN, Answer.NO]


def test_mbeans_that_are_read_are_ok(listening: str) -> None:
    name = TopicPartition("t", 0)
    metrics = Metrics(1, {}, {}, (Lag(name, 1, "ReplicaFetcherThread-0-1", 0),), {name: LogReading(1, 5, None, None)})
    collect = CollectSettings(endpoints={"1": listening})
    rows = jmx_checks(collect, FakeSource(metrics), _snapshot(leader=1), Broker(1, "broker1", 9092, True))
    assert [row.answer for row in rows] == [Answer.OK, Answer.OK, Answer.OK]


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([ok("a", "x")], 0),
        ([ok("a", "x"), unknown("b", "y", "z")], 0),
        ([ok("a", "x"), no("b", "y", "put it right")], 1),
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
