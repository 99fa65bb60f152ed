"""The collector on real brokers: its ticks, also when brokers hang, die and return."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import psutil
import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from headroom.cluster.admin.alter_configs import ConfigChange, alter_configs
from headroom.cluster.admin.config_keys import BROKER, LEADER_RATE, TOPIC
from headroom.cluster.collector.collector import Collector, TickReport
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.embedded import EmbeddedCluster
from headroom.cluster.embedded.paced_producer import PacedProducer
from headroom.cluster.embedded.patience import Patience
from headroom.cluster.metrics.rmi.jmx import JmxSource
from headroom.cluster.throttles.rates import apply_rates, clear_rates
from headroom.cluster.throttles.replica_lists import apply_lists, clear_lists
from headroom.planning.throttles.replica_lists import Move, TopicLists, lists_of_plan
from headroom.schemas.config import Settings
from headroom.schemas.tick_messages import ROWS
from tests.integration.support import (
    admin_of,
    completed,
    create_topic,
    exit_code,
    leaders,
    living,
    output_of,
    wait_until,
)
from tests.integration.ticks import Running, Tick, collecting, lacks_only, settings_of

RATE_BYTES_PER_S = 200_000.0
# Kafka's byte-rate counts every follower of a listed partition: below this the new replica gets nothing.
STARVING = 20_000
# The preferred leader first.
REPLICAS = {"orders": {0: [1, 2], 1: [2, 1]}, "still": {0: [2, 3], 1: [3, 2]}}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """Three brokers of this module's own, whose members it stops and kills."""
    with EmbeddedCluster(tmp_path_factory.mktemp("collector"), brokers=3) as started:
        for topic, replicas in REPLICAS.items():
            create_topic(started, topic, replicas)
        yield started


@pytest.fixture(autouse=True)
def _leaders(cluster: EmbeddedCluster) -> None:
    """Each partition is led by the first of its replicas. A test before may have left it to another broker."""
    for topic, replicas in REPLICAS.items():

        def restored(topic: str = topic, replicas: dict[int, list[int]] = replicas) -> bool:
            found = leaders(cluster, topic)
            moved = [partition for partition, brokers in replicas.items() if found.get(partition) != brokers[0]]
            with suppress(KafkaError):
                for partition in moved:
                    _reassign(cluster, {TopicPartition(topic, partition): replicas[partition]})
                    _elect(cluster, topic, partition)
            return not moved

        wait_until(restored, 60, f"leaders of {topic}", lambda topic=topic: leaders(cluster, topic))


@pytest.fixture(scope="module")
def settings(cluster: EmbeddedCluster) -> Settings:
    return settings_of(cluster)


@pytest.fixture(scope="module")
def load(cluster: EmbeddedCluster) -> Iterator[PacedProducer]:
    rates = {("orders", 0): RATE_BYTES_PER_S, ("orders", 1): RATE_BYTES_PER_S}
    with PacedProducer(cluster.bootstrap_servers, rates) as running:
        yield running


@pytest.fixture(scope="module")
def running(settings: Settings, load: PacedProducer) -> Iterator[Running]:
    with collecting(settings) as started:
        yield started


@pytest.fixture
def moving(cluster: EmbeddedCluster, settings: Settings, running: Running) -> Iterator[None]:
    """Partition 0 of orders gains broker 3 under a throttle that starves it, for the length of the test."""
    apply_rates(settings, dict.fromkeys((1, 2, 3), STARVING))
    apply_lists(settings, lists_of_plan([Move(TopicPartition("orders", 0), (1, 2), (1, 2, 3))]))
    # A quota that was idle lets a burst through: the small move would be over before it bites.
    running.tick_with(
        lambda t: (t.broker(1)["leader_quota_bytes_per_s"] or 0) > STARVING, "the quota of broker 1 used up"
    )
    _reassign(cluster, {TopicPartition("orders", 0): [1, 2, 3]})
    yield
    _reassign(cluster, {TopicPartition("orders", 0): None})
    clear_rates(settings, (1, 2, 3))
    clear_lists(settings, ["orders"])


def _reassign(cluster: EmbeddedCluster, wanted: dict[TopicPartition, list[int] | None]) -> None:
    with admin_of(cluster) as admin:
        admin.alter_partition_reassignments(wanted)


def _elect(cluster: EmbeddedCluster, topic: str, partition: int) -> None:
    with admin_of(cluster) as admin:
        admin.elect_leaders(0, {topic: [partition]})


def _logs(move: dict[str, Any] | None) -> dict[int, dict[str, Any]]:
    return {log["broker"]: log for log in move["logs"]} if move is not None else {}


def test_a_tick_has_every_broker_partition_log_and_fetcher(running: Running) -> None:
    def lags(tick: Tick) -> set[tuple[Any, ...]]:
        return {(row["broker"], row["topic"], row["partition"], row["source_broker"]) for row in tick.rows("lags")}

    def followers(tick: Tick) -> set[tuple[Any, ...]]:
        # Tests before this one may have switched leaders.
        leaders = {(row["topic"], row["partition"]): row["leader"] for row in tick.rows("leaders")}
        replicas = {("orders", 0): {1, 2}, ("orders", 1): {1, 2}, ("still", 0): {2, 3}}
        return {(follower, *name, leaders[name]) for name, of in replicas.items() for follower in of - {leaders[name]}}

    # A follower has a lag from the first answer of its leader on.
    tick = running.tick_with(
        lambda t: not any(row["error"] for row in t.rows("brokers")) and followers(t) <= lags(t),
        "a tick in which all answer",
    )
    assert len(followers(tick)) == 3
    assert [(row["broker"], row["alive"], row["answered"], row["error"]) for row in tick.rows("brokers")] == [
        (broker, True, True, None) for broker in (1, 2, 3)
    ]
    # A broker of Kafka 4 has no threshold of leader imbalance any more.
    balancing = [(row["auto_leader_rebalance"], row["leader_imbalance_check_s"]) for row in tick.rows("brokers")]
    assert balancing == [(False, 300)] * 3
    assert {row["leader_imbalance_percentage"] for row in tick.rows("brokers")} == {None}
    partitions = {(row["topic"], row["partition"]) for row in tick.rows("leaders")}
    assert {("orders", 0), ("orders", 1), ("still", 0), ("still", 1)} <= partitions
    assert {(row["topic"], row["partition"]) for row in tick.rows("logs") if row["is_leader"]} == partitions


def test_counters_give_the_rate_that_was_written(running: Running) -> None:
    def rate(tick: Tick) -> float | None:
        row = tick.meter(1, "BrokerTopicMetrics.BytesInPerSec", "orders")
        if row is None or row["prev_read_ms"] is None or row["read_ms"] - row["prev_read_ms"] < 2900:
            return None
        return float(row["count_total"] - row["prev_count_total"]) / (row["read_ms"] - row["prev_read_ms"]) * 1000

    # Broker 1 leads one of the two partitions. Records are whole, so a window of 3 s is off by one or two of them.
    tick = running.tick_with(lambda t: (r := rate(t)) and abs(r / RATE_BYTES_PER_S - 1) < 0.15, "the rate of the load")
    assert tick.end["rate_window_ms"] == 3000


def test_a_move_is_reported_with_its_lists_rates_and_every_replicas_log(running: Running, moving: None) -> None:
    tick = running.tick_with(
        lambda t: len(_logs(t.move("orders"))) == 3 and all(t.broker(b)["throttles_known"] for b in (1, 2, 3)),
        "the log of the new replica",
    )
    row = tick.move("orders")
    assert row is not None
    assert (row["leader"], row["adding"], row["removing"]) == (1, [3], [])
    assert sorted(row["replicas"]) == [1, 2, 3]
    assert (row["leader_listed"], row["follower_listed"], row["compacted"]) == ([1, 2], [3], False)
    assert [tick.broker(b)["leader_throttle_bytes_per_s"] for b in (1, 2, 3)] == [STARVING] * 3
    assert {tick.broker(b)["follower_throttle_source"] for b in (1, 2, 3)} == {"broker"}
    log = _logs(row)[1]
    assert log["size_bytes"] > log["log_end_offset"] > 0
    assert tick.rows("topic_throttles") == [
        {"topic": "orders", "leader_throttled_replicas": "0:1,0:2", "follower_throttled_replicas": "0:3"}
    ]


def test_a_leader_switch_shows_in_its_first_tick_with_the_samples_from_before(
    cluster: EmbeddedCluster, running: Running, moving: None
) -> None:
    def led_by(leader: int, replicas: list[int]) -> Tick:
        """Let a broker lead, and return the first tick with it as leader."""
        _reassign(cluster, {TopicPartition("orders", 0): replicas})
        running.tick_with(
            lambda t: (m := t.move("orders")) and m["replicas"][0] == leader, f"broker {leader} preferred"
        )
        # Looked for from here: the tick may come before the call returns.
        before = len(running.ticks)
        _elect(cluster, "orders", 0)
        ticks = lambda: [t for t in running.ticks[before:] if (m := t.move("orders")) and m["leader"] == leader]  # noqa: E731
        return wait_until(ticks, 60, f"broker {leader} leads")[0]

    # On a busy machine a broker may not answer for the tick before or after the switch, and then there are no samples.
    patience = Patience(60)
    while True:
        running.tick_with(
            lambda t: (m := t.move("orders")) and m["topic_counters"] and m["logs"], "a tick under leader 1"
        )
        tick = led_by(2, [2, 3, 1])
        row = tick.move("orders")
        assert row is not None
        if row["before_log"] and row["before_topic_counters"] and 2 in _logs(row):
            break
        assert not patience.is_over(), f"not within {patience}; {row}"
        led_by(1, [1, 2, 3])
    assert (row["previous_leader"], row["switch_tick_ms"]) == (1, tick.tick_ms)
    assert row["before_log"]["broker"] == 1
    assert row["before_log"]["read_ms"] > row["before_log"]["prev_read_ms"]
    assert row["before_topic_counters"]["bytes_in"] >= row["before_topic_counters"]["prev_bytes_in"]
    # Broker 2 held the log as a follower: the earlier sample of its own log is there at once.
    assert _logs(row)[2]["prev_log_end_offset"] is not None

    def no_longer_needed(later: Tick) -> bool:
        found = later.move("orders")
        return found is not None and (found["previous_leader"], found["before_log"]) == (1, None)

    later = running.tick_with(no_longer_needed, "readings of broker 2 alone")
    # They are needed while readings reach back over the switch: a rate window, an interval, and the producers' backlog.
    assert later.tick_ms - tick.tick_ms > 3000 + 5000


def test_rates_of_the_cluster_default_are_reported_as_such(running: Running, settings: Settings) -> None:
    link = AdminConnection(settings.cluster)
    alter_configs(link, [ConfigChange(BROKER, "", {LEADER_RATE: "7000000"})], 10)
    try:
        tick = running.tick_with(lambda t: t.broker(3)["leader_throttle_source"] == "default", "the default rate")
        assert tick.broker(3)["leader_throttle_bytes_per_s"] == 7_000_000
        assert tick.broker(3)["follower_throttle_source"] == "none"
    finally:
        alter_configs(link, [ConfigChange(BROKER, "", {LEADER_RATE: None})], 10)
        link.close()
    running.tick_with(lambda t: t.broker(3)["leader_throttle_source"] == "none", "no rate")


def test_a_star_and_a_compacted_topic_are_seen(running: Running, settings: Settings) -> None:
    apply_lists(settings, {"still": TopicLists("*", None)})
    link = AdminConnection(settings.cluster)
    alter_configs(link, [ConfigChange(TOPIC, "still", {"cleanup.policy": "compact"})], 10)
    link.close()
    tick = running.tick_with(lambda t: (m := t.move("still", 1)) and m["compacted"], "the star")
    row = tick.move("still", 1)
    assert row is not None
    assert (row["leader_listed"], row["follower_listed"]) == ([3, 2], [])
    clear_lists(settings, ["still"])
    running.tick_with(lambda t: t.move("still", 1) is None, "no longer watched")


def test_a_broker_that_hangs_costs_only_its_own_rows_and_no_pace(cluster: EmbeddedCluster, running: Running) -> None:
    cluster.pause(3)
    try:
        first = running.tick_with(lambda t: not t.broker(3)["answered"], "broker 3 without an answer")
        begin = len(running.ticks)
        last = running.tick_with(
            lambda t: t.tick_ms > first.tick_ms + 5000 and [row["broker"] for row in t.end["unanswered"]] == [3],
            "5 s later, the others answer",
        )
    finally:
        cluster.resume(3)
    assert last.broker(3)["throttles_known"] is False
    assert {row["broker"] for row in last.rows("meters")} == {1, 2}
    # One each second while nothing else runs.
    assert len(running.ticks) - begin >= 2
    running.tick_with(lambda t: t.broker(3)["answered"] and t.broker(3)["throttles_known"], "broker 3 back")


def test_a_broker_that_died_is_named_and_its_counters_start_again(cluster: EmbeddedCluster, running: Running) -> None:
    cluster.kill(3)
    running.tick_with(lambda t: "refused" in (t.broker(3)["error"] or ""), "broker 3 dead")
    running.tick_with(lambda t: not t.broker(3)["alive"], "broker 3 no longer registered")
    before = len(running.ticks)
    cluster.restart(3)
    answered = wait_until(lambda: [t for t in running.ticks[before:] if t.broker(3)["answered"]], 60, "broker 3 back")
    row = answered[0].meter(3, "BrokerTopicMetrics.ReplicationBytesInPerSec")
    assert row is None or row["prev_read_ms"] is None
    running.tick_with(
        lambda t: (m := t.meter(3, "BrokerTopicMetrics.ReplicationBytesInPerSec")) and m["prev_read_ms"],
        "samples again",
    )


def test_ticks_continue_when_the_alert_partition_has_no_leader(cluster: EmbeddedCluster, settings: Settings) -> None:
    reports: list[TickReport] = []
    stop = threading.Event()
    own = replace(settings, ticks=replace(settings.ticks, topic="lane.ticks"))
    thread = threading.Thread(target=Collector(own, on_tick=reports.append).run, args=(stop,), daemon=True)
    thread.start()
    try:
        wait_until(lambda: reports and reports[-1].failed is None, 60, "whole ticks", lambda: reports[-1:])
        leader = leaders(cluster, "lane.ticks")[0]
        cluster.kill(leader)
        wait_until(lambda: reports[-1].failed, 20, "ticks that fail while the lane has no leader")
        # The cluster takes 9 s to see that a broker died.
        wait_until(lambda: lacks_only(reports[-1], leader), 60, "whole ticks again", lambda: reports[-1])
    finally:
        stop.set()
        wait_until(lambda: not thread.is_alive(), 30, "the collector stops")
        for broker in cluster.brokers:
            if not living([broker.pid]):
                cluster.restart(broker.broker_id)


def test_a_gateway_that_died_is_started_again(running: Running) -> None:
    source = running.collector._source
    assert isinstance(source, JmxSource)
    pid = source._gateway.process_id
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    running.tick_with(lambda t: not t.end["unanswered"], "all brokers read again")
    assert source._gateway.process_id != pid


def _config(folder: Path, settings: Settings) -> Path:
    path = folder / "headroom.toml"
    endpoints = "\n".join(f'{b} = "{e}"' for b, e in settings.collect.endpoints.items())
    path.write_text(
        f'[cluster]\nname = "test"\nbootstrap_servers = "{settings.cluster.bootstrap_servers}"\n'
        f'[ticks]\ntopic = "{folder.name}"\n[collect]\ninterval_s = 1.0\n[collect.endpoints]\n{endpoints}\n'
    )
    return path


@pytest.fixture
def command(tmp_path: Path, settings: Settings) -> list[str]:
    config = str(_config(tmp_path, settings))
    return [sys.executable, "-m", "headroom.cli.main", "collect", "--config", config, "--verbose"]


def _records(settings: Settings, topic: str) -> dict[int, list[Any]]:
    consumer = KafkaConsumer(bootstrap_servers=settings.cluster.bootstrap_servers)
    try:
        partitions = [TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic) or ())]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        ends, records = consumer.end_offsets(partitions), []

        def is_read() -> bool:
            records.extend(record for of_one in consumer.poll(500).values() for record in of_one)
            return all(consumer.position(p) >= ends[p] for p in partitions)

        wait_until(is_read, 60, "all records")
    finally:
        consumer.close()
    return {p.partition: [r for r in records if r.partition == p.partition] for p in partitions}


def test_the_command_writes_complete_ticks_with_the_alert_partition_apart(
    command: list[str], settings: Settings, tmp_path: Path
) -> None:
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    ticks = (line for line in process.stderr if line.startswith("tick "))
    assert len(list(islice(ticks, 4))) == 4, "no four ticks before its end"
    process.terminate()
    output_of(process, 30)
    assert process.returncode == 0
    records = _records(settings, tmp_path.name)
    assert sorted(records) == [0, 1, 2, 3]
    alert_records = [(record.offset, json.loads(record.value)) for record in records[0]]
    assert {message["kind"] for _, message in alert_records} <= {"brokers", "moves", "tick_end"}
    history = [json.loads(r.value) for p, of_partition in records.items() if p for r in of_partition]
    ends = [(offset, message) for offset, message in alert_records if message["kind"] == "tick_end"]
    assert len(ends) >= 3
    for offset, end in ends:
        of_tick = [
            m for m in [*(m for _, m in alert_records), *history] if m["tick_ms"] == end["tick_ms"] and m is not end
        ]
        assert sorted(m["seq"] for m in of_tick) == list(range(end["seq"]))
        assert end["messages"] == {kind: [m["kind"] for m in of_tick].count(kind) for kind in end["messages"]}
        assert end["first_offset"] + end["lane_messages"] == offset
        lies = [(r.partition, r.offset) for p in (1, 2, 3) for r in records[p] if _tick_of(r) == end["tick_ms"]]
        assert end["ranges"] == [
            {"partition": p, "first_offset": min(offsets), "end_offset": max(offsets) + 1}
            for p in (1, 2, 3)
            if (offsets := [offset for partition, offset in lies if partition == p])
        ]
        assert {m["kind"] for m in of_tick} <= set(ROWS)
    # The key is the envelope, which the value begins with.
    for record in [record for of_partition in records.values() for record in of_partition]:
        assert json.loads(record.key).items() <= json.loads(record.value).items()


def _tick_of(record: Any) -> int:
    return int(json.loads(record.key)["tick_ms"])


def _children(pid: int) -> list[int]:
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def _started(process: subprocess.Popen[str]) -> list[int]:
    assert process.stderr is not None
    # On a busy machine the Kafka client may have warned of itself before.
    assert any(line.startswith("tick ") for line in process.stderr), "no tick was written"
    return _children(process.pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_command_ends_on_a_signal_and_leaves_no_process(command: list[str], number: signal.Signals) -> None:
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    children = _started(process)
    assert children, "the gateway JVM"
    process.send_signal(number)
    assert exit_code(process, 10) == (-number if number is signal.SIGKILL else 0)
    wait_until(lambda: not living(children), 10, "the gateway JVM has ended")


def test_a_second_collector_names_the_first_and_ends(command: list[str]) -> None:
    first = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        _started(first)
        second = completed([*command, "--for", "30"], 60)
        assert second.returncode == 1
        assert f"another one writes its ticks: pid {first.pid} on host {os.uname().nodename}" in second.stderr
        assert first.poll() is None
    finally:
        first.terminate()
        output_of(first, 10)


def test_if_two_collectors_start_together_exactly_one_continues(command: list[str]) -> None:
    both = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(2)]
    try:
        wait_until(lambda: any(one.poll() is not None for one in both), 20, "one of them has ended")
        time.sleep(3.0)
        assert sorted(one.poll() is None for one in both) == [False, True]
    finally:
        for one in both:
            one.terminate()
            exit_code(one, 10)


def test_the_command_ends_with_its_parent_on_request(command: list[str]) -> None:
    # A parent that starts the collector, tells its process id, and is killed.
    child = [*command, "--with-parent"]
    script = f"import subprocess, time; print(subprocess.Popen({child}).pid, flush=True); time.sleep(600)"
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert parent.stderr is not None
    # On a busy machine a broker may have been late with its first answer before.
    assert any(line.startswith("tick ") for line in parent.stderr), "no tick was written"
    parent.kill()
    parent.wait()
    wait_until(lambda: not living([pid]), 10, "the collector has ended")
