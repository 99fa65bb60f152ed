"""``headroom balance`` on a running cluster: history, two readings, what brokers did not report, and the tables."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from headroom.cli.main import headroom
from headroom.cluster.elections.traffic import Traffic
from headroom.cluster.log_dirs.describe import LogDirsReading
from headroom.cluster.metrics.mbeans import TICK_AND_LOAD, ReadScope
from headroom.operations.balance import cluster as cluster_module
from headroom.operations.balance import written_proposal
from headroom.planning.balance.observation.loads import LoadHistory, no_history
from headroom.planning.elections.planner import PartitionState
from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.tables import BALANCE_ACTION, BALANCE_PROPOSAL, BROKER_LOAD
from headroom.streaming.delta.query_table import query
from headroom.streaming.delta.small_table import append_durably
from tests.unit.builders.balance_states import MB, broker, skewed
from tests.unit.builders.leadership import FakeCluster
from tests.unit.builders.throttle_status import TICK_MS as NOW_MS
from tests.unit.streaming.store.test_broker_load_follower import row

HOUR_MS = 3_600_000


class FakeReader:
    """A running cluster that answers with a state and measured reads."""

    state: ClusterState = skewed()
    read: Mapping[TopicPartition, float] = MappingProxyType({})
    unmeasured: Mapping[int, str] = MappingProxyType({})
    requested: Mapping[TopicPartition, float] = MappingProxyType({})

    reading = LogDirsReading({}, {})

    def __init__(self, settings: Settings, scope: ReadScope) -> None:
        assert scope is TICK_AND_LOAD

    def log_dirs(self, brokers: Collection[int]) -> LogDirsReading:
        return self.reading

    def __enter__(self) -> FakeReader:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def partitions(self) -> Collection[TopicPartition]:
        return self.state.partitions.keys()

    def measured_state(self, names: Collection[TopicPartition]) -> tuple[ClusterState, Traffic]:
        assert set(names) == set(self.state.partitions)
        rated = {name: replace(p, write_bytes_per_s=7.0 * MB) for name, p in self.state.partitions.items()}
        return replace(self.state, partitions=rated, rates_from="two readings"), Traffic(
            read=self.read, unmeasured=self.unmeasured, requested=self.requested
        )


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADROOM_CLUSTER__BOOTSTRAP_SERVERS", "broker1:9092")
    monkeypatch.setenv("HEADROOM_CLUSTER__NAME", "c")
    monkeypatch.setenv("HEADROOM_STORE__PATH", str(tmp_path / "store"))
    monkeypatch.setattr(cluster_module, "LiveCluster", FakeReader)
    monkeypatch.setattr(FakeReader, "read", dict.fromkeys(FakeReader.state.partitions, 2.0 * MB))
    return tmp_path / "store"


def run(*arguments: str) -> Result:
    done = CliRunner().invoke(headroom, ["balance", *arguments])
    assert done.exit_code == 0, (done.output, done.exception)
    return done


def found(*arguments: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(run(*arguments, "--format", "json").stdout)
    return values


def history(monkeypatch: pytest.MonkeyPatch, rates: list[list[float]]) -> None:
    names = list(FakeReader.state.partitions)
    hours = tuple(n * HOUR_MS for n in range(len(rates)))
    known = LoadHistory(24, names, hours, np.array(rates))
    monkeypatch.setattr(cluster_module, "read_load_history", lambda settings, now: known)


def test_without_a_table_two_readings_count_and_the_reason_is_shown() -> None:
    values = found()
    assert values["loads_from"] == (
        "two readings (no history: gold/partition_load does not exist yet; `headroom watch` writes it every hour)"
    )
    assert values["hours"] == {"wanted": 24, "seen": 0}
    # 6 partitions of 7 MB/s; 2 MB/s are read of each, and one follower fetches 7.
    assert values["brokers"][0]["loads"]["network_in"]["load"] == 42 * MB
    assert values["brokers"][0]["loads"]["network_out"]["load"] == 54 * MB


def test_the_history_counts_where_it_has_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two hours; the second one lacks partition 0, which has 4 MB/s in the first, and counts with that.
    history(monkeypatch, [[4.0 * MB] * 6, [np.nan, *[10.0 * MB] * 5]])
    values = found()
    assert values["hours"] == {"wanted": 24, "seen": 2}
    # Sums 24 and 54 MB/s; 95 % of the way from the first to the second.
    assert values["brokers"][0]["loads"]["network_in"]["load"] == pytest.approx((24 + 0.95 * 30) * MB)
    # 11 of 12 hours of 24 x 6.
    assert values["brokers"][0]["seen_ratio"] == pytest.approx(11 / (24 * 6))
    assert any("2 hours of the 24" in note for note in values["notes"])


def test_requests_of_two_readings_give_back_their_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "requests" in {goal["goal"] for goal in found()["lost_goals"]}
    monkeypatch.setattr(FakeReader, "requested", dict.fromkeys(FakeReader.state.partitions, 30.0))
    values = found()
    assert "requests" not in {goal["goal"] for goal in values["lost_goals"]}
    # Broker 1 leads all 6 partitions.
    assert [broker["loads"]["requests"]["load"] for broker in values["brokers"]] == [180.0, 0.0, 0.0]
    assert "requests" in {goal["goal"] for goal in values["goals"]}


def test_a_proposal_counts_leads_where_kafka_gives_them_back_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broker 1 has returned: its followers still lead all 6 partitions, of which it is the preferred leader."""
    placed = FakeReader.state.partitions
    led = {name: replace(p, leader=p.replicas[1]) for name, p in placed.items()}
    monkeypatch.setattr(FakeReader, "state", replace(FakeReader.state, partitions=led, auto_leader_rebalance=True))
    values = found("propose")
    leaders = [broker["loads"]["leaders"]["load"] for broker in values["before"]["brokers"]]
    assert leaders == [6.0, 0.0, 0.0]
    assert values["warnings"][0].startswith("Kafka itself gives 6 leads back to preferred leaders")
    assert [action["from_broker"] for action in values["actions"] if action["leads"]] == [1] * 4
    # The scores of now are those of the leaders of now.
    assert found()["brokers"][0]["loads"]["leaders"]["load"] == 0.0
    monkeypatch.setattr(FakeReader, "state", replace(FakeReader.state, auto_leader_rebalance=False))
    values = found("propose")
    assert values["before"]["brokers"][0]["loads"]["leaders"]["load"] == 0.0
    assert not any("preferred leaders" in warning for warning in values["warnings"])
    # Where that is unknown, leads count where they are, and a warning says how many may go back.
    monkeypatch.setattr(FakeReader, "state", replace(FakeReader.state, auto_leader_rebalance=None))
    values = found("propose")
    assert values["before"]["brokers"][0]["loads"]["leaders"]["load"] == 0.0
    (warning,) = (text for text in values["warnings"] if "preferred leaders" in text)
    assert warning.startswith("Whether Kafka gives leads back to preferred leaders is unknown")
    assert "6 go back" in warning


def test_a_table_that_cannot_be_read_stops_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(settings: Settings, now: int) -> LoadHistory:
        raise HeadroomError("gold/partition_load", "cannot be read", "Look at it.")

    monkeypatch.setattr(cluster_module, "read_load_history", broken)
    assert "no history: gold/partition_load: cannot be read" in found()["loads_from"]


def let_broker_3_of_10_be_slow(monkeypatch: pytest.MonkeyPatch, store: Path) -> None:
    # More than a tenth of three brokers would be slow, and that is no reason to spare one of them.
    state = replace(skewed(), brokers={n: broker(n) for n in range(1, 11)})
    monkeypatch.setattr(FakeReader, "state", state)
    rounds = {n: 5 if n == 3 else 0 for n in state.brokers}
    rows = [row("c", NOW_MS - 60_000, n, slow_rounds=count) for n, count in rounds.items()]
    append_durably(str(store / BROKER_LOAD.path), [*rows, row("c", NOW_MS - 120_000, 4, slow_rounds=9)], BROKER_LOAD)
    monkeypatch.setattr(cluster_module, "now_ms", lambda: NOW_MS)


def test_a_slow_broker_takes_nothing(monkeypatch: pytest.MonkeyPatch, store: Path) -> None:
    let_broker_3_of_10_be_slow(monkeypatch, store)
    values = found("propose")
    taking = {entry["broker"]: entry["takes_nothing"] for entry in values["before"]["brokers"]}
    assert {b for b, why in taking.items() if why} == {3}
    assert "Broker 3 takes nothing and gives leaders away: its log flushes are slow." in values["notes"]
    assert values["actions"]
    assert all(action["to_broker"] != 3 for action in values["actions"])
    # Older minutes say nothing of now.
    monkeypatch.setattr(cluster_module, "now_ms", lambda: NOW_MS + 3_600_000)
    assert not any("slow" in note for note in found("propose")["notes"])


def test_a_saved_state_spares_slow_brokers_as_the_running_cluster_does(
    monkeypatch: pytest.MonkeyPatch, store: Path
) -> None:
    let_broker_3_of_10_be_slow(monkeypatch, store)
    values = found("propose", "--save-state", "state.json")
    again = found("propose", "--state", "state.json")
    assert again["actions"] == values["actions"]
    assert "Broker 3 takes nothing and gives leaders away: its log flushes are slow." in again["notes"]
    explained = found("explain", "1", "--state", "state.json")
    assert explained["action"].items() <= values["actions"][0].items()


def test_what_brokers_did_not_report_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    error = HeadroomError("broker 2", "did not report its log directories (KafkaTimeoutError)", "Try again.")
    monkeypatch.setattr(FakeReader, "reading", LogDirsReading({}, {2: error}))
    monkeypatch.setattr(FakeReader, "read", {})
    monkeypatch.setattr(FakeReader, "unmeasured", {3: "did not answer"})
    values = found()
    assert "Broker 3 was not measured: did not answer." in values["notes"]
    assert "broker 2 did not report its log directories (KafkaTimeoutError)." in values["notes"]
    assert "network_out" in {goal["goal"] for goal in values["lost_goals"]}


def test_a_broker_that_could_not_be_measured_takes_nothing_although_it_has_a_history(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history(monkeypatch, [[4.0 * MB] * 6] * 24)
    assert {action["to_broker"] for action in found("propose")["actions"]} == {2, 3}
    monkeypatch.setattr(FakeReader, "unmeasured", {3: "connection refused"})
    values = found("propose")
    assert {action["to_broker"] for action in values["actions"]} == {2}
    assert "Broker 3 was not measured: connection refused." in values["notes"]
    assert "Metrics of broker 3 are unknown: it gives and takes nothing, and counts in no mean." in values["notes"]


def test_a_proposal_is_stored_with_its_actions_if_there_is_a_store(store: Path) -> None:
    done = run("propose")
    assert f"was not stored: {store} does not exist (store.path)" in done.stderr
    assert not store.exists()
    store.mkdir()
    values = found("propose")
    (proposal,) = query(str(store), BALANCE_PROPOSAL.path, "SELECT * FROM data") or []
    actions = query(str(store), BALANCE_ACTION.path, "SELECT * FROM data ORDER BY number") or []
    assert list(proposal) == BALANCE_PROPOSAL.names()
    assert list(actions[0]) == BALANCE_ACTION.names()
    assert proposal["proposal_id"] == values["proposal_id"]
    assert proposal["copied_bytes"] == values["actions"][-1]["copied_bytes_after"]
    assert (proposal["hours"], proposal["in_band_after"]) == (0, values["after"]["brokers_in_band"])
    assert [stored["number"] for stored in actions] == [action["number"] for action in values["actions"]]
    for stored, action in zip(actions, values["actions"], strict=True):
        assert {key: stored[key] for key in ("kind", "topic", "from_broker", "to_broker", "leads", "gain")} == {
            key: action[key] for key in ("kind", "topic", "from_broker", "to_broker", "leads", "gain")
        }
        assert stored["proposal_id"] == proposal["proposal_id"]


def test_a_store_that_cannot_be_written_stops_no_proposal(store: Path) -> None:
    store.mkdir()
    (store / "gold").write_text("")
    done = run("propose")
    assert "The proposal was not stored:" in done.stderr
    assert "All actions" in done.stdout


def test_the_progress_of_a_proposal(monkeypatch: pytest.MonkeyPatch) -> None:
    values = found("propose", "--dir", "out")
    current = {name: p.replicas for name, p in FakeReader.state.partitions.items()}

    def status() -> Result:
        states = [PartitionState(name, r[0], r, r) for name, r in current.items()]
        monkeypatch.setattr(written_proposal, "LiveCluster", lambda settings: FakeCluster(*states))
        return CliRunner().invoke(headroom, ["balance", "status", "out"])

    count = len(values["batches"])
    for number, batch in enumerate(values["batches"], start=1):
        text = status().output
        assert f": {number - 1} of {count} batches are done." in text
        assert f"Next: $ headroom reassign run out/batch-{number:02d}.json" in text
        assert f"--fingerprint {batch['fingerprint']}" in text
        for target in batch["plan"]["partitions"]:
            current[TopicPartition(target["topic"], target["partition"])] = tuple(target["replicas"])
    assert f": {count} of {count} batches are done." in status().output
    # Somebody else moves a partition of the proposal.
    first = values["batches"][0]["plan"]["partitions"][0]
    current[TopicPartition(first["topic"], first["partition"])] = (9, 8)
    error = status().exception
    assert isinstance(error, HeadroomError)
    assert "is older than the assignment: " in error.rule
    assert "has replicas 9,8" in error.rule
    assert error.remedy == "Propose again: headroom balance propose."


def test_a_folder_without_a_proposal_or_of_another_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def status() -> str:
        return str(CliRunner().invoke(headroom, ["balance", "status", "out"]).exception)

    assert "out/proposal.json: cannot be read" in status()
    (tmp_path / "out").mkdir()
    file = tmp_path / "out" / "proposal.json"
    no_proposal = "is not a proposal"
    for text, rule in (("{", "is not valid JSON"), ("[]", no_proposal), ('{"batches": []}', no_proposal)):
        file.write_text(text)
        assert rule in status()
    file.write_text('{"proposal_id": "a", "cluster": "other", "batches": [], "throttle_bytes_per_s": null}')
    assert "is for cluster other" in status()


def test_no_history_has_no_hours() -> None:
    assert no_history(24, "why").write_bytes_per_s.shape == (0, 0)
