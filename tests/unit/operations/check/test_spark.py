"""Check of Spark's Kafka client in ``headroom check``, with a fake client."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from headroom.cluster.connection import refusal
from headroom.cluster.connection.java_client import JavaClientError
from headroom.operations.check import spark as check_spark
from headroom.operations.check.result import CheckStatus
from headroom.schemas.config import ClusterSettings, SecurityProtocol, Settings, SparkSettings, TicksSettings
from headroom.schemas.errors import HeadroomError
from tests.unit.fakes.kafka_listeners import Listener, listening

Client = Callable[[Path, Mapping[str, str], float], int]
SETTINGS = Settings(
    cluster=ClusterSettings(
        bootstrap_servers="broker1:9092",
        security_protocol=SecurityProtocol.SASL_PLAINTEXT,
        sasl_mechanism="SCRAM-SHA-256",
        sasl_username="me",
        sasl_password="hunter2",
        request_timeout_ms=4000,
    )
)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Client], None]:
    """Return a function that replaces Java's client."""
    monkeypatch.setattr(check_spark, "jar_folder", lambda name: tmp_path / name)
    return lambda made: monkeypatch.setattr(check_spark, "connect", made)


def test_the_client_gets_what_spark_gets_and_nothing_of_sparks_own(
    client: Callable[[Client], None], tmp_path: Path
) -> None:
    given: list[tuple[Path, Mapping[str, str], float]] = []

    def connect(jars: Path, options: Mapping[str, str], timeout_s: float) -> int:
        given.append((jars, options, timeout_s))
        return 3

    client(connect)
    (row,) = check_spark.spark_checks(SETTINGS)
    assert (row.answer, row.found) == (CheckStatus.OK, "broker1:9092 by SASL_PLAINTEXT: 3 broker(s)")
    ((jars, options, timeout_s),) = given
    # Its own request timeout, and a second to notice that it has passed.
    assert (jars, timeout_s) == (tmp_path / "spark", 5.0)
    assert options["bootstrap.servers"] == "broker1:9092"
    assert options["sasl.mechanism"] == "SCRAM-SHA-256"
    assert 'password="hunter2"' in options["sasl.jaas.config"]
    # Options without "kafka." are of Spark's connector: Kafka's client would warn of them.
    assert [name for name in options if "numRetries" in name or name.startswith("kafka.")] == []


def test_it_is_the_cluster_of_the_ticks_by_the_jars_that_the_settings_name(client: Callable[[Client], None]) -> None:
    given: list[tuple[Path, str]] = []

    def connect(jars: Path, options: Mapping[str, str], timeout_s: float) -> int:
        given.append((jars, options["bootstrap.servers"]))
        return 1

    client(connect)
    ticks = TicksSettings(bootstrap_servers="ticks:9092")
    check_spark.spark_checks(Settings(cluster=SETTINGS.cluster, ticks=ticks, spark=SparkSettings(jars="/my/jars")))
    assert given == [(Path("/my/jars"), "ticks:9092")]


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("SunCertPathBuilderException: unable to find valid certification path", "Set cluster.ssl_cafile: "),
        ("NoSuchAlgorithmException: PBES2 SecretKeyFactory not available", "Python's client connects, so compare"),
    ],
)
def test_a_client_that_does_not_connect_is_a_no_that_names_the_cause(
    client: Callable[[Client], None], reason: str, remedy: str
) -> None:
    def connect(jars: Path, options: Mapping[str, str], timeout_s: float) -> int:
        raise JavaClientError(reason)

    client(connect)
    (row,) = check_spark.spark_checks(SETTINGS)
    assert (row.answer, row.found) == (CheckStatus.FAILED, f"broker1:9092: {reason}")
    assert row.remedy.startswith(remedy)


@pytest.mark.parametrize("reason", ["TimeoutException: Timed out waiting for a node", "DisconnectException: null"])
def test_a_client_without_an_answer_names_the_servers_that_hang_and_no_tls(
    client: Callable[[Client], None], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(jars: Path, options: Mapping[str, str], timeout_s: float) -> int:
        raise JavaClientError(reason)

    client(connect)
    monkeypatch.setattr(refusal, "TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as hanging, listening(Listener()) as answering:
        silent = f"127.0.0.1:{hanging.getsockname()[1]}"
        servers = f"{silent},{answering}"
        kafka = ClusterSettings(
            bootstrap_servers=servers, security_protocol=SecurityProtocol.PLAINTEXT, request_timeout_ms=4000
        )
        (row,) = check_spark.spark_checks(Settings(cluster=kafka))
    found = f"{servers}: no answer within 5 s ({reason}); {silent}: connected, but no answer within 0.2 s"
    assert (row.answer, row.found) == (CheckStatus.FAILED, found)
    assert row.remedy == refusal.HANGS


def test_what_only_java_reads_includes_tls_only_where_it_is_used(client: Callable[[Client], None]) -> None:
    def connect(jars: Path, options: Mapping[str, str], timeout_s: float) -> int:
        raise JavaClientError("IllegalStateException: closed")

    client(connect)
    (plain,) = check_spark.spark_checks(SETTINGS)
    secured = replace(SETTINGS.cluster, security_protocol=SecurityProtocol.SASL_SSL)
    (tls,) = check_spark.spark_checks(replace(SETTINGS, cluster=secured))
    assert ("ssl" in plain.remedy, "cluster.ssl_*" in tls.remedy) == (False, True)


def test_without_java_it_is_unknown(client: Callable[[Client], None]) -> None:
    def connect(jars: Path, options: Mapping[str, str], timeout_s: float) -> int:
        raise HeadroomError("Java", "cannot be started", "Install Java 17 or later.")

    client(connect)
    (row,) = check_spark.spark_checks(SETTINGS)
    assert (row.answer, row.found, row.remedy) == (
        CheckStatus.UNKNOWN,
        "Java: cannot be started",
        "Install Java 17 or later.",
    )
