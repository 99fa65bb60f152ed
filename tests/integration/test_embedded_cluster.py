"""The embedded cluster: ready after its start, keeps its data, leaves no orphaned processes."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

from headroom.cluster.embedded import BrokerOptions, EmbeddedCluster, stop_recorded
from headroom.cluster.embedded.layout import controller_ids
from headroom.cluster.embedded.paced_producer import PacedProducer
from headroom.cluster.embedded.record import read_record
from headroom.schemas.errors import HeadroomError
from tests.integration.conftest import StartCluster
from tests.integration.support import (
    admin_of,
    completed,
    create_topic,
    exit_code,
    leaders,
    living,
    partition,
    wait_until,
)

ROOT = Path(__file__).resolve().parents[2]
HEADROOM = [sys.executable, "-m", "headroom.cli.main", "cluster"]


def headroom(*arguments: str) -> subprocess.CompletedProcess[str]:
    return completed([*HEADROOM, *arguments], 180, cwd=ROOT)


def test_a_started_cluster_has_all_its_brokers_unfenced_and_jmx_open(cluster: EmbeddedCluster) -> None:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    alive = {broker["broker_id"] for broker in admin.describe_cluster()["brokers"] if not broker["is_fenced"]}
    admin.close()
    assert alive == {1, 2, 3, 4}
    for broker in cluster.brokers:
        with socket.create_connection((broker.host, broker.jmx_port), timeout=5):
            pass


def test_every_port_of_the_cluster_is_on_the_loopback_address(cluster: EmbeddedCluster) -> None:
    record = read_record(cluster.folder)
    assert record is not None
    for broker in cluster.brokers:
        connections = psutil.Process(broker.pid).net_connections("tcp")
        listening = {c.laddr.port: c.laddr.ip for c in connections if c.status == psutil.CONN_LISTEN}
        ports = record.ports[broker.broker_id]
        # Of four brokers three are controllers.
        unused = {ports.controller} if broker.broker_id not in controller_ids(4) else set()
        addresses = {listening[port].removeprefix("::ffff:") for port in {*ports.all()} - unused}
        assert addresses == {"127.0.0.1"}, broker


def test_the_log_of_every_broker_is_kept(cluster: EmbeddedCluster) -> None:
    for broker in cluster.brokers:
        assert "INFO" in broker.log_file.read_text()


def test_a_cluster_of_three_survives_the_loss_of_any_one_broker(start_cluster: StartCluster) -> None:
    cluster = start_cluster(3)
    create_topic(cluster, "t", {0: [1, 2], 1: [2, 3], 2: [3, 1]})

    def in_sync() -> list[int]:
        with admin_of(cluster) as admin:
            return [len(p["isr_nodes"]) for p in admin.describe_topics(["t"])[0]["partitions"]]

    for lost in (1, 2, 3):
        wait_until(lambda: in_sync() == [2, 2, 2], 60, "all replicas in sync", in_sync)
        cluster.kill(lost)
        wait_until(
            lambda lost=lost: (now := leaders(cluster, "t")) and not {lost, -1} & set(now.values()),
            60,
            f"leaders without broker {lost}",
            lambda: leaders(cluster, "t"),
        )
        cluster.restart(lost)


def test_there_are_three_controllers_or_one_and_never_two() -> None:
    assert [len(controller_ids(brokers)) for brokers in (1, 2, 3, 4, 5)] == [1, 1, 3, 3, 3]


def test_a_paused_broker_answers_again_when_resumed(start_cluster: StartCluster) -> None:
    cluster = start_cluster(1)
    cluster.pause(1)
    assert psutil.Process(cluster.broker(1).pid).status() == psutil.STATUS_STOPPED
    cluster.resume(1)
    create_topic(cluster, "t", {0: [1]})


def test_a_stopped_cluster_starts_again_with_its_data_and_ports(start_cluster: StartCluster) -> None:
    cluster = start_cluster(2)
    create_topic(cluster, "t", {0: [2, 1]})
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, acks="all")
    producer.send("t", b"kept", partition=0).get(30)
    producer.close()
    before = cluster.bootstrap_servers
    cluster.stop()
    again = EmbeddedCluster(cluster.folder)
    with again:
        assert again.bootstrap_servers == before
        consumer = KafkaConsumer(bootstrap_servers=before, auto_offset_reset="earliest", consumer_timeout_ms=120_000)
        consumer.assign([partition("t", 0)])
        assert next(consumer).value == b"kept"
        consumer.close()


def test_broker_settings_and_jvm_options_can_be_overridden(start_cluster: StartCluster) -> None:
    options = BrokerOptions({"num.partitions": "7"}, {2: {"num.partitions": "5"}}, {2: ["-Dmarked=yes"]})
    cluster = start_cluster(2, options)
    settings = [Path(cluster.folder, f"broker-{i}.properties").read_text().splitlines() for i in (1, 2)]
    assert ["num.partitions=7" in settings[0], "num.partitions=5" in settings[1]] == [True, True]
    marked = ["-Dmarked=yes" in psutil.Process(broker.pid).cmdline() for broker in cluster.brokers]
    assert marked == [False, True]


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_broker_outlives_its_owner_however_that_ends(end: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.integration.owner", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as owner:
        assert owner.stdout is not None
        pids = json.loads(owner.stdout.readline())
        assert living(pids) == pids
        owner.send_signal(end)
        exit_code(owner, 30)
        wait_until(lambda: not living(pids), 20, "end of the brokers", lambda: living(pids))


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_up_interrupted_while_starting_leaves_nothing(end: signal.Signals, tmp_path: Path) -> None:
    def brokers() -> list[int]:
        return [p.pid for p in psutil.process_iter(["cmdline"]) if _is_broker(p, tmp_path)]

    shown = tmp_path / "told"
    command = [*HEADROOM, "up", "--dir", str(tmp_path), "--brokers", "2"]
    with shown.open("w") as output, subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output) as up:
        wait_until(brokers, 120, "a broker that starts", lambda: (up.poll(), shown.read_text()))
        up.send_signal(end)
        assert exit_code(up, 60) != 0, shown.read_text()
    wait_until(lambda: not brokers(), 20, "end of the brokers", brokers)


def test_up_leaves_brokers_running_and_down_ends_them_once(tmp_path: Path) -> None:
    up = headroom("up", "--dir", str(tmp_path), "--brokers", "2")
    assert up.returncode == 0, up.stderr
    shown = json.loads(up.stdout)
    pids = [broker["pid"] for broker in shown["brokers"]]
    try:
        assert living(pids) == pids
        assert f'2 = "127.0.0.1:{shown["brokers"][1]["jmx_port"]}"' in Path(shown["config"]).read_text()
        again = headroom("up", "--dir", str(tmp_path))
        assert again.returncode == 1
        assert "already holds a running cluster" in again.stderr
        assert len(again.stderr.splitlines()) == 1
    finally:
        down = headroom("down", "--dir", str(tmp_path))
    assert json.loads(down.stdout)["stopped"] == [1, 2]
    assert living(pids) == []
    assert json.loads(headroom("down", "--dir", str(tmp_path)).stdout)["stopped"] == []


def test_down_does_not_touch_a_process_that_only_has_a_brokers_pid(tmp_path: Path) -> None:
    bystander = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        record = {"id": 1, "pid": bystander.pid, "client": 1, "controller": 2, "jmx": 3}
        (tmp_path / "cluster.json").write_text(json.dumps({"cluster_id": "x", "brokers": [record]}))
        assert stop_recorded(tmp_path, grace_s=0) == []
        assert bystander.poll() is None
    finally:
        bystander.communicate(b"\n")


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        # Broker 1 is at base + 1.
        with pytest.raises(HeadroomError, match=f"port {port}: is in use"):
            EmbeddedCluster(tmp_path, brokers=1, base_port=port - 1).start()


def test_a_broker_that_dies_while_starting_is_an_error_with_the_reason_and_starts_when_that_is_gone(
    tmp_path: Path,
) -> None:
    java_options = {1: ["-XX:+NoSuchOption"]}
    # Prepared by the attempt that fails, and away from where they are by default.
    folders = {"log.dirs": f"{tmp_path}/first,{tmp_path}/second"}
    cluster = EmbeddedCluster(tmp_path, 1, options=BrokerOptions(folders, java_options=java_options))
    with pytest.raises(HeadroomError, match=r"broker 1: died while starting: .*NoSuchOption"):
        cluster.start()
    assert cluster.brokers == []
    java_options.clear()
    with cluster:
        assert [broker.broker_id for broker in cluster.brokers] == [1]


def test_a_paced_producer_keeps_its_rates_within_two_percent(cluster: EmbeddedCluster) -> None:
    create_topic(cluster, "paced", {0: [1, 2], 1: [2, 3]})
    rates = {("paced", 0): 2_000_000.0, ("paced", 1): 300_000.0}
    with PacedProducer(cluster.bootstrap_servers, rates) as load:
        # What was due while the producer connected follows the first records at once: it is no part of the rate.
        wait_until(
            lambda: all(load.sent_bytes[key] >= 2 * rate for key, rate in rates.items()),
            30,
            "the first two seconds of load",
            lambda: load.sent_bytes,
        )
        samples = [(time.monotonic(), load.sent_bytes)]

        def measured() -> dict[tuple[str, int], float]:
            """Return the rates of the last twenty seconds: what a stalled producer does not make up for goes by."""
            now, after = time.monotonic(), load.sent_bytes
            began, before = next((s for s in reversed(samples) if now - s[0] >= 20), samples[0])
            samples.append((now, after))
            return {key: (after[key] - before[key]) / (now - began) for key in rates}

        wait_until(
            lambda: measured() == pytest.approx(rates, rel=0.02) and samples[-1][0] - samples[0][0] >= 20,
            120,
            "rates within two percent",
            measured,
        )


def _is_broker(process: psutil.Process, folder: Path) -> bool:
    command = process.info["cmdline"] or []
    return "kafka.Kafka" in command and any(str(folder) in word for word in command)
