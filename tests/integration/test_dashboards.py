"""Rules and dashboards on a real Prometheus that scrapes Headroom's own /metrics, and the shipped files by its tools.

The programs are those on the PATH, or Debian's, fetched into .tools once.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headroom.alerts.delivery.outbox import DeliveryFigures
from headroom.alerts.inputs.broker_load import BalanceAdvice
from headroom.alerts.metrics import Collected, MetricsState
from headroom.cli.config.several_files import ConfiguredClusters
from headroom.cli.watch.metrics_server import open_server, serve
from headroom.schemas.config import ClusterSettings, MetricsSettings, Settings
from headroom.schemas.keys import Role
from tests.integration.real_prometheus import ask, path, prometheus, query, wait
from tests.integration.support import completed
from tests.support import monitoring
from tests.support.monitoring import Expression
from tests.support.waiting import in_the_end
from tests.unit.builders.broker_load import MB, loads
from tests.unit.builders.leader_balance import balance
from tests.unit.builders.migration_progress import progress
from tests.unit.builders.throttle_status import partition, status
from tests.unit.fakes.prometheus_scrape import event

LEADER, FOLLOWER = Role.LEADER, Role.FOLLOWER
# Of a Headroom that is there and gets ticks these have nothing to say.
SILENT = {"HeadroomDown", "HeadroomNoMetrics", "HeadroomTicksOld"}


def run(name: str, *arguments: object) -> None:
    done = completed([path(name), *map(str, arguments)], 60, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout


def publish_tick(live: MetricsState, number: int) -> None:
    """Tell a tick of a move that is losing, starved, stalled and unknown at once, of one that is well, of leaders
    that are not where they are preferred, and of a topic that migrates.
    """
    now_ms = time.time_ns() // 1_000_000
    left = 500_000_000 + number * 1_000_000
    moving = partition(remaining_bytes=left)
    live.on_collected("orders", Collected(0.2, unanswered_brokers=1, skipped_ticks=1))
    live.on_tick(
        "orders",
        now_ms - 300,
        [
            status(1, LEADER, 12.0, 8.0, moving, eta_s=60.0, remaining_bytes=left),
            status(2, LEADER, 5.0, 8.0, partition(1, leader=2, remaining_bytes=left), remaining_bytes=left),
            status(3, LEADER, None, 0.0, in_sync_mb=0.0, limited=0, remaining_bytes=0),
            status(3, FOLLOWER, 3.0, 4.0, partition(1, stalled=True), remaining_bytes=left),
            status(4, FOLLOWER, 1.0, 4.0, moving, remaining_bytes=left),
            status(5, FOLLOWER, None, None, moving, in_sync_mb=None, remaining_bytes=None, throttle_known=False),
        ],
    )
    read = {"read_bytes_per_s": 5e6, "preferred_read_bytes_per_s": 6e6, "tick_ms": now_ms - 300}
    live.on_balances(
        "orders", now_ms - 300, [balance(1, 100, 30, **read), balance(3, 10, waiting=1, unavailable=4, **read)]
    )
    mb_per_s = {1: 40.0, 2: 10.0, 3: 10.0}
    live.on_broker_loads(
        "orders", loads(mb_per_s, mb_per_s, rounds={3: 6}, tick_ms=now_ms - 300, network_in_capacity=30 * MB)
    )
    promised = {(1, "network_in"): 2e7, (1, "network_out"): 2e7}
    live.on_proposal("orders", BalanceAdvice("abc", now_ms, frozenset({1}), True, 3, 1, 5e9, 60.0, 0.8, promised))
    live.on_migrations("orders", now_ms - 300, [progress()])
    live.on_events([event("firing", now_ms, subject=f"broker {number} as leader")])
    live.on_batch(0.3)


@contextmanager
def headroom() -> Iterator[str]:
    """Yield the address of Headroom's own server, on a made-up state that goes on; `payments` never has a tick."""
    settings = Settings(ClusterSettings("broker1:9092", name="orders"), metrics=MetricsSettings(listen="127.0.0.1:0"))
    server = open_server(settings.metrics)
    assert server is not None
    live = MetricsState(["orders", "payments"], lambda: time.time_ns() // 1_000_000)
    live.follow(
        batch_s=lambda: None,
        deliveries=lambda: [DeliveryFigures("slack", 2, time.time_ns() // 1_000_000 - 60_000)],
        quarantined=lambda: 3,
    )
    serve(server, live, ConfiguredClusters(settings, None, ()))
    stop = threading.Event()

    def go_on() -> None:
        number = 0
        while not stop.wait(0.25):
            publish_tick(live, number := number + 1)

    publisher = threading.Thread(target=go_on)
    publisher.start()
    try:
        yield server.url
    finally:
        stop.set()
        publisher.join()
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path("prometheus")
    with headroom() as target, prometheus(target, tmp_path_factory.mktemp("prometheus")) as url:
        yield url


def numbers(found: list[dict[str, Any]]) -> list[float]:
    return [float(series["value"][1]) for series in found]


# A scrape that takes longer than its interval takes all series away for a moment.
@in_the_end
def test_every_expression_of_a_dashboard_gives_numbers(server: str) -> None:
    def results(expression: Expression) -> list[float]:
        return numbers(query(server, expression.filled(cluster=".*", broker=".*", __rate_interval="10s")))

    found = {expression.where: results(expression) for expression in monitoring.dashboard_expressions()}
    assert {where for where, values in found.items() if not values} == set()
    # A cluster with a starved broker and role: -1 is shown as never.
    assert -1 in found["headroom-move: Finished in A"]
    assert [where for where, values in found.items() if any(value != value for value in values)] == []


def test_a_choice_of_cluster_and_broker_leaves_only_its_series(server: str) -> None:
    for expression in monitoring.dashboard_expressions():
        if "$cluster" in expression.text:
            chosen = {"cluster": "payments", "broker": ".*", "__rate_interval": "10s"}
            assert query(server, expression.filled(**chosen)) == [], expression.where


@in_the_end
def test_every_choice_has_values(server: str) -> None:
    for selector, label in monitoring.label_queries():
        chosen = Expression("", selector, frozenset()).filled(cluster=".*")
        assert ask(f"{server}/api/v1/label/{label}/values", **{"match[]": chosen}), selector


@in_the_end
def test_the_verdict_of_each_broker_and_role_has_its_number(server: str) -> None:
    bands = next(e for e in monitoring.dashboard_expressions() if e.where == "headroom-throttle: Verdicts A")
    found = query(server, bands.filled(cluster=".*", broker=".*"))
    shown = {(s["metric"]["broker"], s["metric"]["role"]): int(s["value"][1]) for s in found}
    # 0 idle, 1 catching_up, 2 losing, 3 starved, 5 no_data.
    assert shown == {
        ("1", "leader"): 1,
        ("2", "leader"): 2,
        ("3", "leader"): 0,
        ("3", "follower"): 2,
        ("4", "follower"): 3,
        ("5", "follower"): 5,
    }


@in_the_end
def test_every_rule_is_evaluated_and_sees_what_is_wrong(server: str) -> None:
    found = {expression.where: query(server, expression.text) for expression in monitoring.rule_expressions()}
    assert {name for name, series in found.items() if not series} == SILENT
    assert numbers(found["HeadroomThrottleBelowLeaderWrite"]) == [3e6]
    brokers = [
        sorted(s["metric"]["broker"] for s in found[name])
        for name in ("HeadroomThrottleBelowInbound", "HeadroomNoData")
    ]
    assert brokers == [["3", "4"], ["5"]]
    assert [s["metric"]["cluster"] for s in found["HeadroomNoFirstTick"]] == ["payments"]
    assert [(s["metric"]["broker"], float(s["value"][1])) for s in found["HeadroomLeaderImbalance"]] == [("1", 0.3)]
    assert [s["metric"]["broker"] for s in found["HeadroomPreferredLeaderUnavailable"]] == ["3"]

    def evaluated() -> list[dict[str, Any]] | None:
        every = [rule for group in ask(f"{server}/api/v1/rules")["groups"] for rule in group["rules"]]
        return None if any(rule["health"] == "unknown" for rule in every) else every

    shown = wait(evaluated, "rules that are evaluated")
    assert {rule["name"]: rule["health"] for rule in shown} == {rule["alert"]: "ok" for rule in monitoring.rules()}


def test_rules_and_configuration_are_what_prometheus_takes() -> None:
    run("promtool", "check", "rules", monitoring.RULES)
    run("promtool", "check", "config", monitoring.PROMETHEUS)


@pytest.mark.parametrize("file", monitoring.RULE_TESTS, ids=lambda file: file.stem)
def test_rules_fire_when_they_should_and_only_then(file: Path) -> None:
    run("promtool", "test", "rules", file)


def test_alertmanager_takes_its_configuration() -> None:
    run("amtool", "check-config", monitoring.ALERTMANAGER)
