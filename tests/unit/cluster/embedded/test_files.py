"""Files and commands of the embedded cluster's brokers."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from headroom.cli.config.load import load_settings
from headroom.cluster.embedded import BrokerProcess, describe, write_config
from headroom.cluster.embedded.agents import agent_options
from headroom.cluster.embedded.files import new_cluster_id
from headroom.cluster.embedded.layout import BrokerPorts, free_ports, ports_from
from headroom.cluster.embedded.record import ClusterRecord, read_record
from headroom.schemas.config import Source
from headroom.schemas.errors import HeadroomError


def test_no_cluster_id_begins_with_a_dash() -> None:
    # One random id in 64 would: of 2,000 about 31.
    assert [text for text in (new_cluster_id() for _ in range(2000)) if text.startswith("-")] == []


def test_a_cluster_id_is_sixteen_bytes() -> None:
    assert len(base64.urlsafe_b64decode(new_cluster_id() + "==")) == 16


def test_agents_have_ports_of_their_own_or_none_at_all() -> None:
    assert ports_from(20_000, 2)[2] == BrokerPorts(20_002, 20_012, 20_022)
    assert ports_from(20_000, 2, agents=True)[2] == BrokerPorts(20_002, 20_012, 20_022, 20_032, 20_042)
    chosen = [port for ports in free_ports(2, agents=True).values() for port in ports.all()]
    assert len(set(chosen)) == 10


def test_a_record_keeps_the_ports_of_agents_and_one_from_before_there_were_any_is_read(tmp_path: Path) -> None:
    ports = {1: BrokerPorts(1, 2, 3), 2: BrokerPorts(4, 5, 6, 7, 8)}
    ClusterRecord("x", ports, {}).write(tmp_path)
    known = read_record(tmp_path)
    assert known is not None
    assert known.ports == ports
    old = {"cluster_id": "x", "brokers": [{"id": 1, "pid": None, "client": 1, "controller": 2, "jmx": 3}]}
    (tmp_path / "cluster.json").write_text(json.dumps(old))
    known = read_record(tmp_path)
    assert known is not None
    assert known.ports == {1: BrokerPorts(1, 2, 3)}


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"brokers": [1]}', "[" * 100_000], ids=range(6))
def test_a_record_that_is_none_is_an_error_that_names_its_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.json").write_text(text)
    with pytest.raises(HeadroomError, match="is not a cluster's record"):
        read_record(tmp_path)


class FakeCluster:
    """A cluster that was never started."""

    def __init__(self, folder: Path, *agents: int) -> None:
        self.folder = folder
        self.bootstrap_servers = "127.0.0.1:1"
        self.brokers = [BrokerProcess(1, "127.0.0.1", 1, 3, 99, folder / "log", *agents)]


def collect_of(config: Path) -> tuple[Source, dict[str, str]]:
    collect = load_settings(str(config), {}).collect
    return collect.source, collect.endpoints


def test_the_config_of_a_cluster_reads_its_agents_if_it_has_any(tmp_path: Path) -> None:
    plain, with_agents = FakeCluster(tmp_path), FakeCluster(tmp_path, 4, 5)
    assert collect_of(write_config(plain)) == (Source.JMX, {"1": "127.0.0.1:3"})  # type: ignore[arg-type]
    config = write_config(with_agents)  # type: ignore[arg-type]
    assert collect_of(config) == (Source.JOLOKIA, {"1": "127.0.0.1:4"})
    described = describe(with_agents, config)["brokers"]  # type: ignore[arg-type]
    assert isinstance(described, list)
    assert (described[0]["jmx_port"], described[0]["jolokia_port"], described[0]["exporter_port"]) == (3, 4, 5)
    exporters = write_config(with_agents, Source.PROMETHEUS)  # type: ignore[arg-type]
    assert collect_of(exporters) == (Source.PROMETHEUS, {"1": "127.0.0.1:5"})


def test_a_broker_with_agents_starts_with_both_on_the_loopback_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADROOM_JARS", str(tmp_path))
    assert agent_options(BrokerPorts(1, 2, 3)) == []
    with pytest.raises(HeadroomError, match="make setup"):
        agent_options(BrokerPorts(1, 2, 3, 4, 5))
    (tmp_path / "agents").mkdir()
    for jar in ("jolokia-agent-jvm-1.jar", "jmx_prometheus_javaagent-1.jar"):
        (tmp_path / "agents" / jar).touch()
    jolokia, exporter = agent_options(BrokerPorts(1, 2, 3, 4, 5))
    assert jolokia.startswith(f"-javaagent:{tmp_path}/agents/jolokia-agent-jvm-1.jar=host=127.0.0.1,port=4,")
    assert exporter.startswith(f"-javaagent:{tmp_path}/agents/jmx_prometheus_javaagent-1.jar=127.0.0.1:5:/")
