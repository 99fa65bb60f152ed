"""Throttles on real brokers, verified with Kafka's own tool."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from headroom.cluster.admin.alter_configs import ConfigChange, alter_configs
from headroom.cluster.admin.config_keys import BROKER, FOLLOWER_RATE, RATE_KEYS
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.embedded import EmbeddedCluster
from headroom.cluster.java import jar_folder, java_command
from headroom.cluster.live.live_cluster import read_throttles
from headroom.cluster.model import BrokerThrottles
from headroom.cluster.throttles.rates import apply_rates, clear_rates
from headroom.cluster.throttles.replica_lists import apply_lists, clear_lists
from headroom.planning.throttles.replica_lists import Move, TopicLists, lists_of_plan
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.integration.support import completed, create_topic, wait_until
from tests.integration.ticks import settings_of

TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
NO_RATES = BrokerThrottles(True, None, None, "none", "none", None, "none")
BROKERS = (1, 2, 3, 4)
# The last one gains no replica and has no lists; broker 4 has no part in any.
TARGETS = {0: (2, 3), 1: (3, 1), 2: (1, 3), 10: (2, 3, 1)}
TOPICS = ("set", "cleared")


@pytest.fixture(scope="module")
def settings(cluster: EmbeddedCluster) -> Settings:
    for topic in TOPICS:
        create_topic(cluster, topic, {p: [1 + p % 3, 1 + (p + 1) % 3] for p in range(11)})
    create_topic(cluster, "listed", {0: [1, 2]})
    return settings_of(cluster)


@pytest.fixture(autouse=True)
def nothing_left(settings: Settings) -> Iterator[None]:
    yield
    clear_rates(settings, BROKERS, cluster_default=True)
    clear_lists(settings, [*TOPICS, "listed"])


def _tool(settings: Settings, *arguments: str) -> str:
    command = [java_command(), "-cp", f"{jar_folder('kafka')}/*", TOOL]
    done = completed([*command, "--bootstrap-server", settings.cluster.bootstrap_servers, *arguments], 60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _moves(topic: str) -> list[Move]:
    return [Move(TopicPartition(topic, p), (1 + p % 3, 1 + (p + 1) % 3), target) for p, target in TARGETS.items()]


def _plan_file(folder: Path, moves: list[Move]) -> str:
    partitions = [{"topic": m.name.topic, "partition": m.name.partition, "replicas": list(m.after)} for m in moves]
    path = folder / "plan.json"
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(path)


def _await_throttles(settings: Settings, lists: dict[str, TopicLists], rates: dict[int, BrokerThrottles]) -> None:
    """Wait for lists and rates: the broker that is asked may be a moment behind the one that was."""

    def seen() -> tuple[dict[str, TopicLists], dict[int, BrokerThrottles]]:
        state = read_throttles(settings)
        listed = {topic: TopicLists(c.leader_list, c.follower_list) for topic, c in state.listed_topics().items()}
        return listed, dict(state.rates)

    wait_until(lambda: seen() == (lists, rates), 30, "these lists and rates", seen)


def test_our_lists_and_rates_are_those_that_kafkas_tool_sets(settings: Settings, tmp_path: Path) -> None:
    plan = _plan_file(tmp_path, _moves("set"))
    _tool(settings, "--reassignment-json-file", plan, "--execute", "--throttle", "5000000")
    five = BrokerThrottles(True, 5_000_000, 5_000_000, "broker", "broker", None, "none")
    _await_throttles(settings, lists_of_plan(_moves("set")), {1: five, 2: five, 3: five, 4: NO_RATES})


def test_kafkas_tool_finds_and_clears_what_we_set(settings: Settings, tmp_path: Path) -> None:
    apply_rates(settings, dict.fromkeys(BROKERS, 6_000_000))
    apply_lists(settings, lists_of_plan(_moves("cleared")))
    plan = _plan_file(tmp_path, _moves("cleared"))

    def shown() -> str:
        text = _tool(settings, "--reassignment-json-file", plan, "--verify")
        return text if re.search(r"Clearing topic-level throttles on topic cleared", text) else ""

    # Verifying the plan of moves that are done clears every broker's rates and the topic's lists.
    _tool(settings, "--reassignment-json-file", plan, "--execute")
    wait_until(shown, 60, "the tool clears the throttles")
    _await_throttles(settings, {}, dict.fromkeys(BROKERS, NO_RATES))


def test_a_rate_is_in_force_when_the_call_returns(settings: Settings) -> None:
    steps: list[str] = []
    in_force = apply_rates(settings, {1: 2_000_000, 3: 4_000_000}, on_step=steps.append)
    assert in_force[1] == BrokerThrottles(True, 2_000_000, 2_000_000, "broker", "broker", None, "none")
    assert read_throttles(settings).rates == {**in_force, 2: NO_RATES, 4: NO_RATES}
    assert "brokers 1, 3" in steps[0]


def test_one_role_can_be_set_alone(settings: Settings) -> None:
    apply_rates(settings, {2: 3_000_000}, roles=["leader"])
    assert read_throttles(settings).rates[2] == BrokerThrottles(True, 3_000_000, None, "broker", "none", None, "none")


def test_without_its_own_rate_a_broker_falls_back_to_the_cluster_default(settings: Settings) -> None:
    link = AdminConnection(settings.cluster)
    alter_configs(link, [ConfigChange(BROKER, "", dict.fromkeys(RATE_KEYS, "9000000"))], 10)
    link.close()
    apply_rates(settings, {1: 2_000_000})
    assert clear_rates(settings, [1])[1] == BrokerThrottles(
        True, 9_000_000, 9_000_000, "default", "default", None, "none"
    )
    assert clear_rates(settings, BROKERS, cluster_default=True) == dict.fromkeys(BROKERS, NO_RATES)


def test_other_settings_of_a_broker_stay_as_they_are(settings: Settings) -> None:
    apply_rates(settings, {1: 2_000_000})
    link = AdminConnection(settings.cluster)
    alter_configs(link, [ConfigChange(BROKER, "1", {FOLLOWER_RATE: "1500000"})], 10)
    link.close()
    wait_until(
        lambda: (
            read_throttles(settings).rates[1]
            == BrokerThrottles(True, 2_000_000, 1_500_000, "broker", "broker", None, "none")
        ),
        10,
        "one rate changed, the other not",
        lambda: read_throttles(settings).rates[1],
    )


def test_a_broker_that_is_not_there_is_named_and_the_others_are_changed(settings: Settings) -> None:
    with pytest.raises(HeadroomError, match=r"broker 9: .*the others were changed"):
        apply_rates(settings, {1: 2_000_000, 9: 2_000_000})
    wait_until(
        lambda: read_throttles(settings).rates[1].leader_bytes_per_s == 2_000_000,
        10,
        "broker 1 changed",
        lambda: read_throttles(settings).rates,
    )


def test_a_refused_list_is_an_error_that_names_the_topic(settings: Settings) -> None:
    with pytest.raises(HeadroomError, match=r"topic listed: .*InvalidConfigurationError"):
        apply_lists(settings, {"listed": TopicLists("no list", None)})


def test_a_rate_of_nothing_is_refused_before_anything_is_changed(settings: Settings) -> None:
    with pytest.raises(HeadroomError, match="broker 2"):
        apply_rates(settings, {1: 2_000_000, 2: 0})
    assert read_throttles(settings).rates[1] == NO_RATES


def test_a_star_can_be_set_and_cleared(settings: Settings) -> None:
    apply_lists(settings, {"listed": TopicLists("*", "*")})
    none = dict.fromkeys(BROKERS, NO_RATES)
    _await_throttles(settings, {"listed": TopicLists("*", "*")}, none)
    clear_lists(settings, ["listed"])
    _await_throttles(settings, {}, none)
