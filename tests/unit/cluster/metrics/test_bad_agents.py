"""One of three brokers answers badly, or the cluster changes within a tick: it costs that broker's rows and no others.

The whole of a tick runs, from the metadata to the encoded messages; brokers and agents are local servers. Broker 1
leads all partitions, 2 follows, and 3 has none.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack
from typing import Any

import pytest

from headroom.cluster.collector.observation import Observation, Observer
from headroom.cluster.collector.rows.encoder import encode_rows
from headroom.cluster.collector.tick_builder import TickBuilder
from headroom.cluster.metadata.snapshot_reader import SnapshotReader
from headroom.cluster.metrics import broker_reads
from headroom.cluster.metrics.broker_reads import BrokerMetricsReader
from headroom.cluster.metrics.factory import metrics_source
from headroom.cluster.model import BrokerRead
from headroom.schemas.config import CollectSettings, Source
from tests.support.waiting import until
from tests.unit.fakes.admin_connection import ManyTopics
from tests.unit.fakes.http_agent import Agent, agent

HTTP_SOURCES = [Source.JOLOKIA, Source.PROMETHEUS]
SIZES = {"orders": 140, "pay": 10}
# Healthy agents answer in hundredths, but for a busy machine; silent ones are waited for no longer than this.
TIMEOUT_S, SHORT_S = 30.0, 1.0
BAD = 2
LAG = "kafka.server:type=FetcherLagMetrics,name=ConsumerLag,clientId=ReplicaFetcherThread-0-1"
FETCHER = (
    "kafka.server:type=FetcherStats,name=BytesPerSec,clientId=ReplicaFetcherThread-0-1,brokerHost=h,brokerPort=9092"
)

Values = dict[str, Any]
Behaviour = Callable[[Agent, bytes], None]


def mbeans(broker: int, sizes: dict[str, int]) -> Values:
    """Return a broker's MBean values for topics with this many partitions."""
    values: Values = {
        "java.lang:type=Runtime": 1.7e12,
        "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec": 5000,
        "kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec": 50,
        "kafka.server:type=ReplicaManager,name=PartitionCount": 150,
    }
    for topic, partitions in sizes.items() if broker != 3 else ():
        for number in range(partitions):
            name = f"topic={topic},partition={number}"
            values |= {f"kafka.log:type=Log,name={part},{name}": 900 for part in ("LogEndOffset", "Size")}
            values |= {f"kafka.log:type=Log,name=LogStartOffset,{name}": 0}
            values |= {f"{LAG},{name}": 0} if broker == 2 else {}
        for meter in ("BytesInPerSec", "MessagesInPerSec") if broker == 1 else ():
            values[f"kafka.server:type=BrokerTopicMetrics,name={meter},topic={topic}"] = 4000
    return values | ({FETCHER: 77} if broker == 2 else {})


def by_jolokia(values: Values, question: bytes) -> bytes:
    """Return Jolokia's answer to the reads of a question."""
    results = []
    for read in json.loads(question):
        mbean, attribute = read["mbean"], read["attribute"]
        if mbean.endswith(",*"):
            value = {name: {attribute: v} for name, v in values.items() if name.startswith(mbean[:-2])}
        else:
            value = values.get(mbean)
        results.append({"status": 404} if value in (None, {}) else {"status": 200, "value": value})
    return json.dumps(results).encode()


def by_exporter(values: Values) -> bytes:
    """Return these MBeans in the text format of jmx_exporter."""
    lines = []
    for mbean, value in values.items():
        domain, _, keys = mbean.partition(":")
        labels = dict(pair.split("=", 1) for pair in keys.split(","))
        names = [domain.replace(".", "_"), labels.pop("type"), labels.pop("name", "StartTime")]
        end = "_count" if names[-1].endswith("PerSec") else ""
        labels_text = ",".join(f'{label.replace("-", "_")}="{text}"' for label, text in labels.items())
        lines.append(f"{'_'.join(names).lower()}{end}{{{labels_text}}} {value}\n")
    return "".join(lines).encode()


class Stage:
    """Three brokers with agents, and an observer of them.

    Attributes:
        values: MBean values of each broker.
        behaves: behaviour of an agent that does not answer normally, by broker.
        topics: fake admin connection with the metadata.
        endpoints: addresses of the agents.
    """

    def __init__(self, source: Source, stack: ExitStack) -> None:
        self.source = source
        self.values = {broker: mbeans(broker, SIZES) for broker in (1, 2, 3)}
        self.behaves: dict[int, Behaviour] = {}
        self.topics = ManyTopics(dict(SIZES), page=1000)
        servers = {broker: stack.enter_context(agent(self._answers(broker))) for broker in self.values}
        self.endpoints = {str(broker): server.endpoint for broker, server in servers.items()}
        collect = CollectSettings(source=source, endpoints=self.endpoints)
        readers = BrokerMetricsReader(self.topics, opened := metrics_source(collect), collect)  # type: ignore[arg-type]
        stack.callback(opened.stop)
        metadata = SnapshotReader(self.topics, TIMEOUT_S, 0.0)  # type: ignore[arg-type]
        builder = TickBuilder(10_000, 1000)
        self._observers = {limit_s: Observer(metadata, readers, builder, limit_s) for limit_s in (TIMEOUT_S, SHORT_S)}

    def observe(self, timeout_s: float = TIMEOUT_S) -> Observation:
        """Return the observation of one tick, checked to be encodable."""
        tick_ms = int(time.time() * 1000)
        observation = self._observers[timeout_s].observe(tick_ms)
        assert encode_rows("test", tick_ms, observation.rows)
        return observation

    def _answers(self, broker: int) -> Callable[[Agent], None]:
        def answer(connection: Agent) -> None:
            values = self.values[broker]
            body = by_exporter(values) if self.source is Source.PROMETHEUS else by_jolokia(values, connection.body)
            self.behaves.get(broker, Agent.respond)(connection, body)

        return answer


@pytest.fixture(params=HTTP_SOURCES)
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    with ExitStack() as stack:
        yield Stage(request.param, stack)


def of(observation: Observation, kind: str) -> list[dict[str, Any]]:
    return list(observation.rows[kind])


def ends(observation: Observation, topic: str) -> dict[int, int | None]:
    """Return the earlier end offset of each log of a topic, as its leader reports it."""
    leaders = [row for row in of(observation, "logs") if row["topic"] == topic and row["is_leader"]]
    return {row["partition"]: row["prev_log_end_offset"] for row in leaders}


def slowly(connection: Agent, body: bytes) -> None:
    connection.send_response(200)
    connection.send_header("Content-Length", str(len(body)))
    connection.end_headers()
    for byte in body:
        connection.wfile.write(bytes([byte]))
        time.sleep(0.05)


def silently(_connection: Agent, _body: bytes) -> None:
    time.sleep(TIMEOUT_S)


def cut(connection: Agent, body: bytes) -> None:
    connection.respond(body[: len(body) // 2], length=len(body))
    connection.close_connection = True


def cut_without_a_word(connection: Agent, body: bytes) -> None:
    connection.respond(body[:-20])


def as_a_page(connection: Agent, _body: bytes) -> None:
    connection.respond(b"<html>Welcome</html>\n")


def deeply_nested(connection: Agent, _body: bytes) -> None:
    connection.respond(b"[" * 100_000 + b"\n")


def with_an_error(connection: Agent, _body: bytes) -> None:
    connection.respond(b"", 500)


@pytest.mark.parametrize(
    ("behaves", "rule", "remedy"),
    [
        (slowly, "did not answer", "raise collect.broker_timeout_s"),
        (silently, "did not answer", "raise collect.broker_timeout_s"),
        (cut, "the answer was cut off", "See the agent's log"),
        (cut_without_a_word, "the answer is not", "See that collect.source"),
        (as_a_page, "the answer is not Jolokia's|has no Kafka metrics yet", "See that|see that"),
        (deeply_nested, "the answer is not Jolokia's|has no Kafka metrics yet", "See that|see that"),
        (with_an_error, "answered 500", "See the log of the agent"),
    ],
)
def test_a_bad_answer_costs_its_brokers_rows_and_reports_subject_rule_and_remedy(
    stage: Stage, behaves: Behaviour, rule: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def for_healthy_ones_first(reads: Collection[Future[BrokerRead]], timeout: float) -> None:
        until(lambda: sum(read.done() for read in reads) >= 2, lambda: reads, TIMEOUT_S)
        wait(reads, timeout)

    stage.behaves[BAD] = behaves
    began = time.monotonic()
    if behaves in (slowly, silently):
        # The short wait is for the bad one alone: a busy machine may keep the healthy ones from answering within it.
        monkeypatch.setattr(broker_reads, "wait", for_healthy_ones_first)
        monkeypatch.setattr(broker_reads, "read_s", lambda _timeout_s: TIMEOUT_S)
    observation = stage.observe(SHORT_S if behaves in (slowly, silently) else TIMEOUT_S)
    # The slow one would take all day.
    assert time.monotonic() - began < TIMEOUT_S
    (silent,) = observation.unanswered
    assert silent["broker"] == BAD
    assert re.search(f"{stage.endpoints[str(BAD)]}.*: .*({rule}).*\\. .*({remedy})", silent["reason"]), silent
    assert {row["broker"] for row in of(observation, "meters")} == {1, 3}
    assert len(ends(observation, "orders")) == 140
    assert len(of(observation, "leaders")) == 150


def test_after_a_bad_answer_the_next_one_counts(stage: Stage) -> None:
    stage.behaves[BAD] = cut
    assert stage.observe().unanswered
    stage.behaves.clear()
    observation = stage.observe()
    assert observation.unanswered == []
    assert len(of(observation, "lags")) == 150


def test_logs_missing_once_after_a_complete_answer_are_not_reported_but_twice_they_are(stage: Stage) -> None:
    # A broker creates the logs of new replicas within a second of the reassignment.
    assert {row["error"] for row in of(stage.observe(), "brokers")} == {None}
    complete = stage.values[1]
    stage.values[1] = {name: value for name, value in complete.items() if "LogEndOffset" not in name}
    first, second = ({row["broker"]: row["error"] for row in of(stage.observe(), "brokers")} for _ in range(2))
    assert first == {1: None, 2: None, 3: None}
    assert "leaves out Log LogEndOffset of 150 of 150 logs" in second[1]
    stage.values[1] = complete
    assert {row["error"] for row in of(stage.observe(), "brokers")} == {None}


def test_lags_missing_once_are_not_reported_but_twice_they_are(stage: Stage) -> None:
    # A fetcher that just began has a lag only after its first fetch.
    stage.values[BAD] = {name: value for name, value in stage.values[BAD].items() if not name.startswith(LAG)}
    first, second = ({row["broker"]: row["error"] for row in of(stage.observe(), "brokers")} for _ in range(2))
    assert first == {1: None, 2: None, 3: None}
    assert "leaves out FetcherLagMetrics ConsumerLag (without it: no replication lag" in second[BAD]
    stage.values[BAD] = mbeans(BAD, SIZES)
    assert {row["error"] for row in of(stage.observe(), "brokers")} == {None}


def test_ten_times_the_rows_are_refused_with_both_numbers(stage: Stage) -> None:
    stage.values[BAD] = mbeans(BAD, {topic: 10 * size for topic, size in SIZES.items()})
    observation = stage.observe()
    (silent,) = observation.unanswered
    assert "reports 1500 lags, but the broker has 150 replicas. See that [collect.endpoints]" in silent["reason"]
    assert of(observation, "lags") == []


def test_ten_times_the_logs_of_a_leader_are_skipped(stage: Stage) -> None:
    stage.values[1] = mbeans(1, {topic: 10 * size for topic, size in SIZES.items()})
    observation = stage.observe()
    assert (observation.unanswered, len(of(observation, "logs"))) == ([], 150)


def test_values_that_are_no_numbers_cost_their_rows_and_are_reported_as_missing(stage: Stage) -> None:
    for mbean in stage.values[1]:
        if "LogEndOffset" in mbean and "orders" in mbean:
            stage.values[1][mbean] = float("nan")
    observation = stage.observe()
    assert observation.unanswered == []
    assert len(ends(observation, "pay")) == 10
    assert ends(observation, "orders") == {}
    (leader, *others) = of(observation, "brokers")
    assert "leaves out Log LogEndOffset of 140 of 150 logs (without it: no write rate" in leader["error"]
    assert "partitions just created or deleted" in leader["error"]
    # The remedy names the shipped configuration of the agent, which allows all metrics.
    assert "docker/jmx_exporter.yml" in leader["error"] or "docker/jolokia-access.xml" in leader["error"]
    assert [row["error"] for row in others] == [None, None]


@pytest.mark.parametrize("value", [-9223372036854775807, -2, 2**50 + 1, 2**63 - 1])
@pytest.mark.parametrize("part", ["LogEndOffset", "Size", "LogStartOffset"])
def test_a_number_that_no_broker_can_mean_costs_its_own_row_and_is_named(stage: Stage, part: str, value: int) -> None:
    mbean = f"kafka.log:type=Log,name={part},topic=orders,partition=3"
    stage.values[1][mbean] = value
    stage.topics.moving = [("orders", 3)]
    stage.values[3] |= {name: 0 for name in mbeans(1, SIZES) if name.endswith("topic=orders,partition=3")}
    observation = stage.observe()
    assert observation.unanswered == []
    assert ends(observation, "orders").keys() == set(range(140)) - ({3} if part == "LogEndOffset" else set())
    (leader, *others) = of(observation, "brokers")
    shown = float(value) if stage.source is Source.PROMETHEUS else value
    assert f"answers that {mbean} is {shown}, which no broker can mean" in leader["error"]
    assert "See what answers in the broker's place" in leader["error"]
    assert [row["error"] for row in others] == [None, None]
    stage.values[1][mbean] = 900
    assert {row["error"] for row in of(stage.observe(), "brokers")} == {None}


@pytest.mark.parametrize(
    "mbean",
    [
        "java.lang:type=Runtime",
        "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec",
        "kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec,topic=orders",
        "kafka.server:type=ReplicaManager,name=PartitionCount",
    ],
)
def test_no_number_of_an_agent_reaches_a_row_unless_a_broker_can_mean_it(stage: Stage, mbean: str) -> None:
    stage.values[1][mbean] = -(2**62)
    observation = stage.observe()
    assert observation.unanswered == []
    assert of(observation, "brokers")[0]["error"].startswith(f"answers that {mbean}")
    numbers = [value for kind in observation.rows for row in of(observation, kind) for value in row.values()]
    assert all(abs(value) <= 2**60 for value in numbers if isinstance(value, (int, float)))


def test_of_many_impossible_numbers_one_is_shown_and_the_others_are_counted(stage: Stage) -> None:
    for mbean in stage.values[1]:
        if "LogEndOffset" in mbean:
            stage.values[1][mbean] = -5
    error = of(stage.observe(), "brokers")[0]["error"]
    assert (
        f"is {float(-5) if stage.source is Source.PROMETHEUS else -5}, and 149 more numbers, which no broker can mean"
        in error
    )
    assert "leaves out Log LogEndOffset of 150 of 150 logs" in error


def test_a_gauge_of_what_is_gone_is_no_news(stage: Stage) -> None:
    stage.values[1]["kafka.log:type=Log,name=LogEndOffset,topic=orders,partition=3"] = -1
    observation = stage.observe()
    assert 3 not in ends(observation, "orders")
    assert {row["error"] for row in of(observation, "brokers")} == {None}


def test_an_answer_of_nothing_but_no_numbers_is_none(stage: Stage) -> None:
    stage.values[BAD] = dict.fromkeys(stage.values[BAD], float("nan"))
    (silent,) = stage.observe().unanswered
    assert "answers, but has no Kafka metrics yet. Wait until the broker has started" in silent["reason"]


@pytest.mark.parametrize("moving", [False, True])
def test_a_topic_that_is_deleted_within_a_tick_costs_its_own_rows(stage: Stage, moving: bool) -> None:
    stage.topics.moving = [("pay", 3)] if moving else []
    assert len(ends(stage.observe(), "pay")) == 10
    # The metadata has it still, the brokers do not.
    stage.values = {broker: mbeans(broker, {"orders": 140}) for broker in stage.values}
    observation = stage.observe()
    assert (observation.unanswered, ends(observation, "pay")) == ([], {})
    assert [(row["topic"], row["logs"]) for row in of(observation, "moves")] == ([("pay", [])] if moving else [])
    assert set(ends(observation, "orders").values()) == {900}
    # Now no broker has one.
    del stage.topics.sizes["pay"]
    stage.topics.moving = []
    observation = stage.observe()
    assert {row["topic"] for row in of(observation, "leaders")} == {"orders"}
    assert [row["error"] for row in of(observation, "brokers")] == [None, None, None]


def test_a_recreated_topic_has_no_earlier_samples_of_the_old_one(stage: Stage) -> None:
    stage.observe()
    del stage.topics.sizes["pay"]
    stage.observe()
    stage.topics.sizes["pay"] = 10
    assert set(ends(stage.observe(), "pay").values()) == {None}


def test_new_partitions_are_reported_once_the_metadata_has_them_and_others_keep_their_samples(stage: Stage) -> None:
    stage.observe()
    # First the brokers have them, then the metadata.
    grown = {"orders": 150, "pay": 10}
    stage.values = {broker: mbeans(broker, grown) for broker in stage.values}
    observation = stage.observe()
    assert (observation.unanswered, len(ends(observation, "orders"))) == ([], 140)
    stage.topics.sizes |= grown
    found = ends(stage.observe(), "orders")
    assert found == {n: 900 if n < 140 else None for n in range(150)}
    assert set(ends(stage.observe(), "orders").values()) == {900}


def test_partitions_that_the_metadata_has_before_their_brokers_cost_nothing_else(stage: Stage) -> None:
    stage.observe()
    stage.topics.sizes["orders"] = 143
    observation = stage.observe()
    assert (observation.unanswered, len(ends(observation, "orders"))) == ([], 140)
    assert len(of(observation, "leaders")) == 153
    assert [row["error"] for row in of(observation, "brokers")] == [None, None, None]


@pytest.mark.parametrize("key_first", [True, False])
def test_a_log_that_is_copied_to_another_directory_changes_no_row(stage: Stage, key_first: bool) -> None:
    for number in (0, 1):
        names = f"topic=pay,partition={number}"
        keys = f"is-future=true,{names}" if key_first else f"{names},is-future=true"
        copies = {f"kafka.log:type=Log,name={part},{keys}": 10 for part in ("LogEndOffset", "Size", "LogStartOffset")}
        # Before and after the MBeans of the log itself.
        stage.values[1] = {**copies, **stage.values[1]} if number else {**stage.values[1], **copies}
    # One log is gone, so that all names of a pattern are parsed.
    del stage.values[1]["kafka.log:type=Log,name=LogEndOffset,topic=orders,partition=7"]
    observation = stage.observe()
    assert observation.unanswered == []
    logs = {(row["topic"], row["partition"]): row["log_end_offset"] for row in of(observation, "logs")}
    assert set(logs.values()) == {900}
    assert len(logs) == 149


@pytest.mark.parametrize("number", ["", "0 is-future=true", "x"])
def test_a_partition_that_is_no_number_costs_no_broker_its_rows(stage: Stage, number: str) -> None:
    stage.values[BAD][f"{LAG},topic=orders,partition={number}"] = 5
    observation = stage.observe()
    assert observation.unanswered == []
    assert {(row["broker"], row["lag_offsets"]) for row in of(observation, "lags")} == {(BAD, 0)}


def test_brokers_report_the_settings_that_shape_copies(stage: Stage) -> None:
    reported = {
        "replication.quota.window.num": "21",
        "replica.fetch.backoff.ms": "500",
        "replica.alter.log.dirs.io.max.bytes.per.second": "7000",
        "leader.imbalance.per.broker.percentage": "15",
    }
    # Set for all brokers while they run.
    stage.topics.settings, stage.topics.setting_source = reported, 3
    for row in of(stage.observe(), "brokers"):
        assert (row["quota_window_num"], row["replica_fetch_backoff_ms"], row["num_replica_fetchers"]) == (
            21,
            500,
            None,
        )
        assert (row["log_dirs_throttle_bytes_per_s"], row["log_dirs_throttle_source"]) == (7000, "default")
        assert row["leader_imbalance_percentage"] == 15
    # In the brokers' properties files, where a rate is not in force.
    stage.topics.setting_source = 4
    for row in of(stage.observe(), "brokers"):
        assert (row["log_dirs_throttle_bytes_per_s"], row["log_dirs_throttle_source"]) == (None, "none")
        assert row["leader_imbalance_percentage"] == 15
    # Kafka's own default.
    stage.topics.setting_source = 5
    assert {row["leader_imbalance_percentage"] for row in of(stage.observe(), "brokers")} == {None}
