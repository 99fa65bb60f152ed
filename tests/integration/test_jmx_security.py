"""JMX with a user, a password and TLS, on real brokers."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from headroom.cluster.embedded import BrokerOptions
from headroom.cluster.java import java_command
from headroom.cluster.metrics.mbeans import ReadPlan
from headroom.cluster.metrics.rmi.jmx import JmxSource
from headroom.cluster.metrics.rmi.jmx_gateway import JmxGateway
from headroom.cluster.metrics.source import MetricsError
from headroom.schemas.config import CollectSettings
from tests.integration.conftest import StartCluster

PASSWORD = "secret-of-the-test"


@pytest.fixture
def key_store(tmp_path: Path) -> Path:
    """A key store with a self-signed certificate, which serves as trust store too."""
    path = tmp_path / "jmx.p12"
    keytool = Path(java_command()).resolve().parent / "keytool"
    name = ["-alias", "jmx", "-dname", "CN=127.0.0.1", "-ext", "SAN=ip:127.0.0.1", "-validity", "30"]
    store = ["-keystore", str(path), "-storetype", "PKCS12", "-storepass", PASSWORD]
    subprocess.run([str(keytool), "-genkeypair", "-keyalg", "RSA", *name, *store], check=True, capture_output=True)
    return path


@pytest.fixture
def secured(tmp_path: Path, key_store: Path) -> list[str]:
    """JVM options of a broker whose JMX asks for a password and speaks TLS, its registry too."""
    users, rights = tmp_path / "jmx.password", tmp_path / "jmx.access"
    users.write_text(f"monitor {PASSWORD}\n")
    users.chmod(0o600)
    rights.write_text("monitor readonly\n")
    jmx = {"authenticate": "true", "ssl": "true", "registry.ssl": "true", "password.file": users, "access.file": rights}
    store = {"keyStore": key_store, "keyStorePassword": PASSWORD, "keyStoreType": "PKCS12"}
    return [f"-Dcom.sun.management.jmxremote.{key}={value}" for key, value in jmx.items()] + [
        f"-Djavax.net.ssl.{key}={value}" for key, value in store.items()
    ]


@pytest.fixture
def endpoint(start_cluster: StartCluster, secured: list[str]) -> str:
    cluster = start_cluster(1, BrokerOptions(java_options={1: secured}))
    return f"127.0.0.1:{cluster.brokers[0].jmx_port}"


@pytest.fixture
def settings(key_store: Path, tmp_path: Path) -> CollectSettings:
    password_file = tmp_path / "given.password"
    password_file.write_text(f"{PASSWORD}\n")
    return CollectSettings(
        jmx_username="monitor",
        jmx_password_file=str(password_file),
        jmx_ssl=True,
        jmx_truststore=str(key_store),
        jmx_truststore_password=PASSWORD,
    )


@pytest.fixture
def gateways() -> Iterator[list[JmxGateway]]:
    started: list[JmxGateway] = []
    yield started
    for gateway in started:
        gateway.stop()


def read(gateways: list[JmxGateway], settings: CollectSettings, endpoint: str) -> int | None:
    """Return the broker's start as its JMX tells it, read through a gateway of its own."""
    gateways.append(JmxGateway(settings))
    return JmxSource(gateways[-1]).read(1, endpoint, ReadPlan([], [], []), 8).started_ms


def test_jmx_is_read_with_password_and_tls_and_not_without(
    gateways: list[JmxGateway], settings: CollectSettings, endpoint: str
) -> None:
    assert read(gateways, settings, endpoint)
    with pytest.raises(MetricsError, match="user or password refused") as refused:
        read(gateways, replace(settings, jmx_password="wrong-secret"), endpoint)
    assert "wrong-secret" not in str(refused.value)
    with pytest.raises(MetricsError, match="TLS failed"):
        read(gateways, replace(settings, jmx_truststore=None, jmx_truststore_password=None), endpoint)
    with pytest.raises(MetricsError):
        read(gateways, replace(settings, jmx_ssl=False), endpoint)
