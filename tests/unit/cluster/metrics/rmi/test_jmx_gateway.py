"""The gateway JVM: half a start, a changed trust store, a read after the end, and a password that was changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

from headroom.cluster.metrics.mbeans import ReadPlan
from headroom.cluster.metrics.rmi import jmx_gateway
from headroom.cluster.metrics.rmi.jmx import JmxSource
from headroom.cluster.metrics.rmi.jmx_gateway import JmxGateway
from headroom.cluster.metrics.source import MetricsError
from headroom.schemas.config import CollectSettings
from headroom.schemas.errors import HeadroomError


class Jvms:
    """The JVMs that are launched.

    Attributes:
        living: process ids of those that run.
        launched: number of launches.
        compile: compiles the bulk reader.
    """

    def __init__(self) -> None:
        self.living: set[int] = set()
        self.launched = 0
        self.compile: Callable[[str], None] = lambda source: None

    def launch(self, **options: Any) -> tuple[int, str, Any]:
        self.launched += 1
        pid = self.launched
        self.living.add(pid)
        process = SimpleNamespace(
            pid=pid,
            poll=lambda: None if pid in self.living else 1,
            kill=lambda: self.living.discard(pid),
            wait=lambda: None,
        )
        return 5000 + pid, "token", process

    def gateway(self, **options: Any) -> Any:
        loader = SimpleNamespace(loadClass=lambda name: object())
        compiler = SimpleNamespace(cook=lambda source: self.compile(source), getClassLoader=lambda: loader)
        janino = SimpleNamespace(SimpleCompiler=lambda: compiler)
        system = SimpleNamespace(setProperty=lambda name, value: None)
        jvm = SimpleNamespace(
            org=SimpleNamespace(codehaus=SimpleNamespace(janino=janino)),
            java=SimpleNamespace(lang=SimpleNamespace(System=system)),
        )
        client = SimpleNamespace(address="127.0.0.1", port=1)
        return SimpleNamespace(jvm=jvm, close=lambda: None, _gateway_client=client)


@pytest.fixture
def jvms(monkeypatch: pytest.MonkeyPatch) -> Jvms:
    jvms = Jvms()
    monkeypatch.setattr(jmx_gateway, "launch_gateway", jvms.launch)
    monkeypatch.setattr(jmx_gateway, "JavaGateway", jvms.gateway)
    monkeypatch.setattr(jmx_gateway, "gateway_jars", lambda: ["py4j.jar"])
    monkeypatch.setattr(jmx_gateway, "java_command", lambda: "java")
    return jvms


def test_a_jvm_without_the_compiled_reader_is_ended_and_the_next_read_starts_another(jvms: Jvms) -> None:
    def fails(source: str) -> None:
        raise Py4JError("OutOfMemoryError")

    gateway, jvms.compile = JmxGateway(CollectSettings()), fails
    for _ in range(2):
        with pytest.raises(HeadroomError, match="has ended right after its start"):
            gateway.ensure_runs()
        assert (jvms.living, gateway.process_id) == (set(), None)
    jvms.compile = lambda source: None
    gateway.ensure_runs()
    gateway.ensure_runs()
    assert (jvms.living, gateway.process_id) == ({3}, 3)


def test_a_read_after_the_end_starts_no_jvm_until_the_source_is_started_again(jvms: Jvms) -> None:
    gateway = JmxGateway(CollectSettings())
    gateway.start()
    gateway.stop()
    with pytest.raises(HeadroomError, match="has been stopped"):
        JmxSource(gateway).read(1, "host:9999", ReadPlan([], [], []), 1.0)
    assert (jvms.living, jvms.launched) == (set(), 1)
    with pytest.raises(Py4JNetworkError):
        gateway.reader("host:9999")
    gateway.start()
    gateway.ensure_runs()
    assert (jvms.living, jvms.launched) == ({2}, 2)


def test_a_trust_store_that_was_changed_is_read_by_a_new_jvm(jvms: Jvms, tmp_path: Path) -> None:
    store = tmp_path / "trust.jks"
    gateway = JmxGateway(CollectSettings(jmx_ssl=True, jmx_truststore=str(store)))
    gateway.start()
    store.write_bytes(b"first")
    for pid in (2, 2):
        gateway.ensure_runs()
        assert jvms.living == {pid}
    new = tmp_path / "new"
    new.write_bytes(b"other")
    os.replace(new, store)
    gateway.ensure_runs()
    assert jvms.living == {3}


def test_a_password_that_was_changed_is_used_by_the_read_after_the_refusal(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("old")
    accepted = "old"

    class Reader:
        """A reader with the password of its time, whose connection is never kept."""

        def __init__(self) -> None:
            self._password = file.read_text()

        def read(self, request: str, timeout_ms: int) -> str:
            if self._password != accepted:
                raise refusal
            line = next(n for n, text in enumerate(request.splitlines()) if "PartitionCount" in text)
            return f"{line}\t1000\t5"

    class Refusal(Py4JJavaError):
        def __init__(self) -> None:
            self.java_exception = "java.lang.SecurityException: Authentication failed! Invalid username or password"

    refusal = Refusal()
    gateway: Any = SimpleNamespace(process_id=1, ensure_runs=lambda: None, reader=lambda endpoint: Reader())
    source, plan = JmxSource(gateway), ReadPlan([], [], [])
    assert source.read(1, "host:9999", plan, 1.0).gauges
    accepted = "new"
    file.write_text("new")
    with pytest.raises(MetricsError, match="user or password refused"):
        source.read(1, "host:9999", plan, 1.0)
    assert source.read(1, "host:9999", plan, 1.0).gauges
