"""Elections on real brokers after a restart; Kafka's own tool reads the batch files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from kafka import KafkaAdminClient

from headroom.cli.elections.command import elections
from headroom.cluster.embedded import EmbeddedCluster
from headroom.cluster.embedded.paced_producer import PacedProducer
from headroom.cluster.java import jar_folder, java_command
from headroom.cluster.live.live_cluster import LiveCluster
from headroom.cluster.throttles.rates import apply_rates, clear_rates
from headroom.cluster.throttles.replica_lists import apply_lists, clear_lists
from headroom.planning.throttles.replica_lists import Move, lists_of_plan
from headroom.schemas.config import Settings
from headroom.schemas.keys import TopicPartition
from headroom.schemas.text.amounts import percent_text
from tests.integration.support import admin_of, completed, create_topic, fill, leaders, wait_until

TOOL = "org.apache.kafka.tools.LeaderElectionCommand"
RESTARTED = 2
ORDERS = {p: [1 + (p + i) % 4 for i in range(3)] for p in range(24)}
PAYMENTS = {p: [1 + (p + i) % 4 for i in range(2)] for p in range(8)}
# Those of 24 and of 8 that prefer broker 2.
AWAY = 6 + 2
MB = 1_000_000

# One story: from a restart to balance.
pytestmark = pytest.mark.random_order(disabled=True)


@pytest.fixture(scope="module", autouse=True)
def restarted(cluster: EmbeddedCluster) -> Iterator[None]:
    """Restart a leading broker under load, so that other brokers take over its partitions."""
    create_topic(cluster, "orders", ORDERS)
    create_topic(cluster, "payments", PAYMENTS)
    rates = {("orders", 1): 400_000.0, ("orders", 5): 100_000.0}
    with PacedProducer(cluster.bootstrap_servers, rates, record_bytes=1000) as load:
        cluster.kill(RESTARTED)
        wait_until(lambda: (now := leaders(cluster, "orders")) and RESTARTED not in now.values(), 60, "others lead")
        cluster.restart(RESTARTED)
        wait_until(
            lambda: not_led_by_preferred(cluster) == [],
            60,
            "all replicas in sync",
            lambda: not_led_by_preferred(cluster),
        )
        before = sum(load.sent_bytes.values())
        wait_until(lambda: sum(load.sent_bytes.values()) > before, 60, "records are taken by the new leaders")
        yield


def not_led_by_preferred(cluster: EmbeddedCluster) -> list[tuple[str, int]]:
    with admin_of(cluster) as admin:
        return [
            (topic["name"], p["partition_index"])
            for topic in admin.describe_topics(["orders", "payments"])
            for p in topic["partitions"]
            if len(p["isr_nodes"]) < len(p["replica_nodes"])
        ]


def run(config_file: Path, *arguments: str, **environ: str) -> Result:
    settings = {
        "ELECTIONS__PAUSE_S": "0",
        "ELECTIONS__BATCH_PARTITIONS": "3",
        "COLLECT__MEASURE_S": "3",
        "COLLECT__BROKER_TIMEOUT_S": "10",
    }
    env = {f"HEADROOM_{name}": value for name, value in settings.items()} | environ
    return CliRunner(env=env).invoke(elections, ["--config", str(config_file), *arguments], catch_exceptions=False)


def plan(config_file: Path, *arguments: str) -> dict[str, Any]:
    result = run(config_file, "--format", "json", *arguments)
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def of_broker(message: dict[str, Any], broker: int) -> dict[str, Any]:
    return next(row for row in message["brokers"] if row["broker"] == broker)


def names(partitions: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(p["topic"], p["partition"]) for p in partitions]


def test_a_restart_is_seen_with_the_traffic_that_would_go_back(config_file: Path) -> None:
    def measured() -> dict[str, Any] | None:
        # A producer that stalled while it was measured is no fault.
        message = plan(config_file)
        rates = (of_broker(message, RESTARTED)["preferred_write_bytes_per_s"], message["cluster_write_bytes_per_s"])
        return message if rates == pytest.approx((0.5 * MB, 0.5 * MB), rel=0.25) else None

    # What is written to orders-1 and orders-5.
    message = wait_until(measured, 60, "0.5 MB/s")
    assert message is not None
    broker = of_broker(message, RESTARTED)
    assert (broker["non_preferred_partitions"], broker["electable_now"], broker["out_of_balance"]) == (AWAY, AWAY, True)
    assert [b["out_of_balance"] for b in message["brokers"] if b["broker"] != RESTARTED] == [False] * 3
    assert (message["not_measured"], message["left_out"]) == ([], [])
    assert broker["write_bytes_per_s"] == 0
    assert broker["imbalance_ratio_after"] == 0


def test_rates_of_partitions_of_one_topic_on_one_broker_differ(settings: Settings) -> None:
    with LiveCluster(settings) as live:

        def measured() -> list[float | None]:
            partitions = live.leadership_with_traffic().partitions
            assert partitions["orders", 9].min_insync_replicas == 1
            return [partitions["orders", number].write_bytes_per_s for number in (1, 5, 9)]

        expected = pytest.approx([0.4 * MB, 0.1 * MB, 0], rel=0.3)
        wait_until(lambda: measured() == expected, 60, "0.4 and 0.1 MB/s, and nothing")


def test_text_names_the_broker_and_changes_nothing(config_file: Path, cluster: EmbeddedCluster) -> None:
    result = run(config_file)
    # The topic of consumer groups counts too.
    with admin_of(cluster) as admin:
        partitions = sum(len(topic["partitions"]) for topic in admin.describe_topics())
    assert f"{AWAY} of {partitions} partitions" in result.stdout
    # Of that topic the broker leads what it prefers.
    preferred = of_broker(plan(config_file), RESTARTED)["preferred_partitions"]
    assert f"{percent_text(AWAY / preferred)}, too high" in result.stdout
    assert "Nothing was changed" in result.stdout
    assert RESTARTED not in leaders(cluster, "orders").values()


def test_at_a_busy_time_nothing_is_elected(config_file: Path, cluster: EmbeddedCluster) -> None:
    quiet = {"HEADROOM_ELECTIONS__QUIET_BELOW": "100"}
    result = CliRunner(env=quiet).invoke(elections, ["--config", str(config_file), "--execute", "--yes"])
    assert result.exit_code == 1
    assert "producers write" in str(result.exception)
    assert RESTARTED not in leaders(cluster, "orders").values()


def test_kafkas_tool_elects_what_a_file_names(config_file: Path, cluster: EmbeddedCluster, tmp_path: Path) -> None:
    message = plan(config_file, "--batches-dir", str(tmp_path / "batches"))
    assert len(message["batch_files"]) == len(message["batches"]) == 3
    done = completed(
        [
            *(java_command(), "-cp", f"{jar_folder('kafka')}/*", TOOL),
            *("--bootstrap-server", cluster.bootstrap_servers, "--election-type", "preferred"),
            *("--path-to-json-file", message["batch_files"][0]),
        ],
        60,
    )
    assert done.returncode == 0, done.stdout + done.stderr

    def after_it() -> dict[str, Any] | None:
        left = plan(config_file)
        return left if of_broker(left, RESTARTED)["non_preferred_partitions"] == AWAY - 3 else None

    left = wait_until(after_it, 60, "three leaders back")
    assert left is not None
    ours = {name for batch in left["batches"] for name in names(batch["partitions"])}
    assert ours.isdisjoint(names(message["batches"][0]["partitions"]))


def test_execute_brings_every_broker_back_as_predicted(config_file: Path, cluster: EmbeddedCluster) -> None:
    result = run(config_file, "--execute", "--yes", "--format", "json")
    assert result.exit_code == 0, result.output
    message = json.loads(result.stdout)
    assert (message["stopped"], message["left_partitions"]) == (None, 0)
    # Not needed is what the broker elected and whose answer was late.
    assert [len(outcome["elected"]) + len(outcome["not_needed"]) for outcome in message["results"]] == [3, 2]
    assert [o["imbalance_ratios"] for o in message["results"]] == [b["imbalance_ratios"] for b in message["batches"]]
    for topic, placed in (("orders", ORDERS), ("payments", PAYMENTS)):
        preferred = {p: replicas[0] for p, replicas in placed.items()}
        wait_until(lambda t=topic, p=preferred: leaders(cluster, t) == p, 30, f"leaders of {topic}")


def test_a_second_execution_has_nothing_to_elect(config_file: Path) -> None:
    result = run(config_file, "--execute", "--yes")
    assert result.exit_code == 0
    assert "All balanced: nothing to elect." in result.stdout


def test_an_election_that_is_not_needed_is_no_failure(settings: Settings) -> None:
    with LiveCluster(settings) as live:
        answers = live.elect([TopicPartition("orders", 1), TopicPartition("no-such-topic", 0)])
    assert answers.not_needed == (("orders", 1),)
    assert list(answers.refused) == [("no-such-topic", 0)]


def test_a_moving_partition_is_not_elected(config_file: Path, settings: Settings, cluster: EmbeddedCluster) -> None:
    move = Move(TopicPartition("moving", 0), (1, 2), (3, 1))
    create_topic(cluster, "moving", {0: list(move.before)})
    fill(cluster, "moving", {0: 20 * MB})
    apply_lists(settings, lists_of_plan([move]))
    apply_rates(settings, dict.fromkeys((1, 2, 3, 4), 50_000))
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        assert not any(admin.alter_partition_reassignments({move.name: list(move.after)}).values())
        message = plan(config_file)
        assert of_broker(message, 3)["waiting_for_move"] == 1
        assert message["left_out"] == [{"topic": "moving", "partition": 0, "preferred": 3, "reason": "moving"}]
        assert message["batches"] == []
    finally:
        admin.alter_partition_reassignments({move.name: None})
        admin.close()
        clear_rates(settings, (1, 2, 3, 4))
        clear_lists(settings, ["moving"])
