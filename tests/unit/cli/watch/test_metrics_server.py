"""The server of /metrics and /health: its responses, and an address in use."""

from __future__ import annotations

import json
import logging
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from headroom.alerts.metrics import MetricsState
from headroom.alerts.watched_cluster import WatchedCluster
from headroom.cli.config.several_files import ConfiguredClusters
from headroom.cli.watch.metrics_server import limits_of, open_server, serving_metrics
from headroom.schemas.config import ClusterSettings, CollectSettings, MetricsSettings, Settings
from headroom.schemas.config import servers as config
from headroom.schemas.errors import HeadroomError
from tests.unit.builders.throttle_status import TICK_MS
from tests.unit.fakes.prometheus_scrape import event


class Clock:
    now_ms = TICK_MS


@contextmanager
def served(
    capsys: pytest.CaptureFixture[str], clock: Clock, listen: str = "127.0.0.1:0"
) -> Iterator[tuple[MetricsState, str]]:
    settings = Settings(ClusterSettings("broker1:9092", name="orders"), metrics=MetricsSettings(listen=listen))
    with serving_metrics(ConfiguredClusters(settings, None, ()), lambda: clock.now_ms) as live:
        found = re.search(r"Metrics: (http://\S+)/metrics", capsys.readouterr().err)
        assert found
        yield live, found[1]


def get(url: str, **headers: str) -> tuple[int, str, str]:
    """Return status, content type and body."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read().decode()


def test_metrics_are_served_as_prometheus_reads_them(capsys: pytest.CaptureFixture[str]) -> None:
    with served(capsys, Clock()) as (live, url):
        live.on_events([event("firing")])
        status, content_type, body = get(f"{url}/metrics?x=1")
        assert (status, content_type) == (200, "text/plain; version=0.0.4; charset=utf-8")
        names = {family.name for family in text_string_to_metric_families(body)}
        assert {"headroom_alerts", "headroom_build_info"} <= names
        _, content_type, body = get(f"{url}/metrics", Accept="application/openmetrics-text; version=1.0.0")
        assert content_type.startswith("application/openmetrics-text")
        assert {family.name for family in openmetrics(body)} == names
    assert capsys.readouterr().err == "", "requests are not logged"


def test_health_returns_the_reason_with_its_status(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with served(capsys, clock) as (live, url):
        assert json.loads(get(f"{url}/health")[2])["status"] == "starting"
        live.on_tick("orders", TICK_MS, [])
        status, content_type, body = get(f"{url}/health")
        assert (status, content_type, json.loads(body)["status"]) == (200, "application/json", "ok")
        clock.now_ms += 31_000
        status, _, body = get(f"{url}/health")
        assert (status, json.loads(body)["status"]) == (503, "unhealthy")
        assert json.loads(body)["reasons"] == ["cluster orders: its last evaluated tick is 31 s old, limit 30 s"]


def test_there_is_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    with served(capsys, Clock()) as (_, url):
        assert [get(f"{url}{path}")[0] for path in ("/", "/metric", "/health/", "/metrics/..")] == [404] * 4


def test_a_probe_may_ask_for_the_status_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with served(capsys, Clock()) as (_, url):
        request = urllib.request.Request(f"{url}/health", method="HEAD")
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert (answer.status, answer.read()) == (200, b"")


def test_it_ends_with_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with served(capsys, Clock()) as (_, url):
        assert get(f"{url}/health")[0] == 200
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{url}/health", timeout=10)


def test_an_address_of_the_newer_protocol_is_served(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with served(capsys, Clock(), "[::1]:0") as (_, url):
        assert url.startswith("http://[::1]:")
        assert get(f"{url}/health")[0] == 200


@pytest.mark.parametrize("accept", ["application/openmetrics-text; version=a.b.c", "text/plain;version=x.y"])
def test_an_accept_that_cannot_be_parsed_is_an_error_of_that_request_in_one_line(
    accept: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with served(capsys, Clock()) as (_, url), caplog.at_level(logging.WARNING):
        assert [get(f"{url}/metrics", Accept=accept)[0] for _ in range(3)] == [500] * 3
        assert get(f"{url}/metrics")[0] == 200
    assert [(record.levelname, record.exc_info) for record in caplog.records] == [("WARNING", None)]
    assert capsys.readouterr().err == ""


def test_a_header_that_is_folded_puts_none_into_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    with served(capsys, Clock()) as (_, url), socket.socket() as client:
        client.connect(("127.0.0.1", int(url.rpartition(":")[2])))
        folded = b"Accept: application/openmetrics-text; version=9.0\r\n X-Injected: 1\r\n"
        client.sendall(b"GET /metrics HTTP/1.0\r\n" + folded + b"\r\n")
        head = client.makefile("rb").read().partition(b"\r\n\r\n")[0]
    assert head.startswith(b"HTTP/1.0 200")
    assert not [line for line in head.split(b"\r\n") if line.strip().startswith(b"X-Injected")]


def test_a_port_that_was_named_and_is_taken_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(HeadroomError) as error:
            open_server(MetricsSettings(listen=address))
    assert error.value.subject == "metrics.listen"
    assert address in error.value.rule
    assert "off" in error.value.remedy


def test_a_default_port_in_use_is_logged_once_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(config, "DEFAULT_LISTEN", f"127.0.0.1:{taken.getsockname()[1]}")
        with caplog.at_level(logging.WARNING), serving_metrics(ConfiguredClusters(Settings(), None, ())) as live:
            live.on_tick("kafka", TICK_MS, [])
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "metrics.listen" in caplog.text


def test_the_default_is_this_machine_alone() -> None:
    assert MetricsSettings().address() == "127.0.0.1:9644"


@pytest.mark.parametrize("listen", ["", "off", " "])
def test_the_metrics_server_can_be_turned_off(listen: str) -> None:
    assert open_server(MetricsSettings(listen=listen)) is None


def test_each_cluster_has_the_limits_of_its_interval() -> None:
    first = Settings(ClusterSettings(name="orders"), collect=CollectSettings(interval_s=5.0))
    slow = replace(first, cluster=ClusterSettings(name="slow"), collect=CollectSettings(interval_s=60.0))
    limits = limits_of(ConfiguredClusters(first, None, (WatchedCluster(slow),)))
    # Three intervals are 15 s and 180 s.
    assert (limits["orders"].stale_s, limits["orders"].first_s) == (30.0, 90.0)
    assert (limits["slow"].stale_s, limits["slow"].first_s) == (180.0, 180.0)
    set_by_hand = replace(first, metrics=MetricsSettings(stale_after_s=7.0))
    limits = limits_of(ConfiguredClusters(set_by_hand, None, (WatchedCluster(slow),)))
    assert {(limit.stale_s, limit.first_s) for limit in limits.values()} == {(7.0, 7.0)}
