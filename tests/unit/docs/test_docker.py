"""The files of docker/ are valid and pinned, listen only on this machine, and have the project's versions."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from headroom.cli.config.load import load_settings
from headroom.schemas.alerts import AlertKind
from headroom.schemas.config import DEFAULT_LISTEN
from tests.support import monitoring
from tests.support.monitoring import DOCKER, read_yaml

ROOT = DOCKER.parent
COMPOSE = read_yaml(DOCKER / "compose.yaml")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (DOCKER / "Dockerfile").read_text(encoding="utf-8")
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
# A tag with a full version, or a digest.
_PINNED = re.compile(r"^[\w./-]+:v?\d+\.\d+\.\d+[\w.+-]*(@sha256:[0-9a-f]{64})?$")
_SECRET = re.compile(r"(?i)(password|secret|token|api_?key|credential)\w*['\"]?\s*[:=]\s*['\"]?(?P<value>[^\s'\"]+)")


def shipped(*endings: str) -> list[Path]:
    return sorted(file for file in DOCKER.rglob("*") if file.suffix in endings)


def named(file: Path) -> str:
    return str(file.relative_to(DOCKER))


@pytest.mark.parametrize("file", shipped(".yml", ".yaml"), ids=named)
def test_every_yaml_can_be_read(file: Path) -> None:
    assert read_yaml(file)


@pytest.mark.parametrize("file", shipped(".json"), ids=named)
def test_every_json_can_be_read(file: Path) -> None:
    assert json.loads(file.read_text(encoding="utf-8"))


def test_headroom_takes_its_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    # As the image sets it.
    monkeypatch.setenv("HEADROOM_SPARK__JARS", "/opt/headroom/jars/spark")
    settings = load_settings(str(DOCKER / "headroom.toml"))
    assert settings.notify.receivers() == ["alertmanager"]
    host, _, port = settings.metrics.address().rpartition(":")
    assert (host, port) == ("0.0.0.0", DEFAULT_LISTEN.rpartition(":")[2])
    assert f'("127.0.0.1", {port}' in DOCKERFILE.replace("'", '"'), "the healthcheck asks there"
    job = next(j for j in read_yaml(monitoring.PROMETHEUS)["scrape_configs"] if j["job_name"] == "headroom")
    assert job["static_configs"][0]["targets"] == [f"headroom:{port}"]


def test_the_brokers_are_where_headroom_looks_for_them() -> None:
    settings = load_settings(str(DOCKER / "headroom.toml"))
    brokers = {name: SERVICES[name]["environment"] for name in SERVICES if name.startswith("kafka-")}
    assert len(brokers) == 3
    assert len({environment["KAFKA_NODE_ID"] for environment in brokers.values()}) == 3
    inside, outside = [], []
    for name, environment in brokers.items():
        advertised = dict(part.split("://") for part in environment["KAFKA_ADVERTISED_LISTENERS"].split(","))
        inside.append(advertised["INTERNAL"])
        outside.append(advertised["HOST"])
        # JMX is asked at the name under which the broker advertises itself.
        assert advertised["INTERNAL"].split(":")[0] == environment["KAFKA_JMX_HOSTNAME"] == name
        assert int(environment["KAFKA_JMX_PORT"]) == settings.collect.metrics_port()
        port = advertised["HOST"].split(":")[1]
        assert SERVICES[name]["ports"] == [f"127.0.0.1:{port}:{port}"]
        assert f"HOST://:{port}" in environment["KAFKA_LISTENERS"]
        assert f"{environment['KAFKA_NODE_ID']}@{name}:9093" in environment["KAFKA_CONTROLLER_QUORUM_VOTERS"]
    assert settings.cluster.bootstrap_servers == ",".join(inside)
    assert settings.alerts.bootstrap_servers == ",".join(outside)


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_pinned_restarted_and_published_on_this_machine_only(name: str) -> None:
    service = SERVICES[name]
    assert _PINNED.match(service["image"])
    ports = service.get("ports", [])
    assert [port for port in ports if not re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port)] == []
    # That of Headroom is the image's.
    assert "healthcheck" in service or "build" in service
    assert service["restart"]
    assert service["cap_drop"] == ["ALL"]
    assert not service.get("privileged")


def test_every_service_waits_for_health_and_keeps_its_data() -> None:
    for name, service in SERVICES.items():
        waits = service.get("depends_on", {})
        assert {needed["condition"] for needed in waits.values()} <= {"service_healthy"}
        assert set(waits) <= set(SERVICES)
        kept = {volume.split(":")[0] for volume in service["volumes"]} & set(COMPOSE["volumes"])
        assert len(kept) == 1, name
    used = [volume.split(":")[0] for service in SERVICES.values() for volume in service["volumes"]]
    assert [source for source in used if source.startswith(".") and not (DOCKER / source).exists()] == []
    assert set(COMPOSE["volumes"]) == {source for source in used if not source.startswith(".")}


def test_versions_are_those_that_the_project_is_tested_with() -> None:
    kafka = next(d for d in ElementTree.parse(ROOT / "ivy.xml").iter("dependency") if d.get("name") == "kafka_2.13")
    assert {SERVICES[f"kafka-{n}"]["image"] for n in (1, 2, 3)} == {f"apache/kafka:{kafka.get('rev')}"}
    version = re.search(r'^version = "(.+)"', PROJECT, re.MULTILINE)
    assert version
    assert SERVICES["headroom"]["image"] == f"headroom:{version[1]}"


def test_the_image_is_pinned_and_runs_without_rights() -> None:
    images = [line.split()[1] for line in DOCKERFILE.splitlines() if line.startswith("FROM ")]
    assert len(images) == 3
    assert [image for image in images if not _PINNED.match(image)] == []
    assert "latest" not in DOCKERFILE
    last = DOCKERFILE.rpartition("\nFROM ")[2]
    users = re.findall(r"^USER (\S+)", last, re.MULTILINE)
    assert users
    assert int(users[-1]) > 0
    assert "HEALTHCHECK" in last
    assert "/health" in last
    assert 'ENTRYPOINT ["headroom"]' in last


def test_the_healthcheck_of_the_image_is_a_program() -> None:
    joined = DOCKERFILE.replace("\\\n", "")
    check = re.search(r"^HEALTHCHECK .*? CMD (\[.+\])$", joined, re.MULTILINE)
    assert check
    command = json.loads(check[1])
    assert command[:2] == ["python", "-c"]
    compile(command[2], "healthcheck", "exec")


def test_the_image_names_no_jar_and_no_version_of_a_package() -> None:
    assert "ivy.xml" in DOCKERFILE
    assert "requirements.lock" in DOCKERFILE
    assert re.findall(r"==|\.jar\b", DOCKERFILE) == []


def test_all_that_the_package_is_made_of_reaches_the_image() -> None:
    lines = (DOCKER / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    let_in = {line.removeprefix("!") for line in lines if line.startswith("!")}
    # The package has links to the layers.
    wanted = {
        "headroom",
        *(link.name for link in (ROOT / "headroom").iterdir() if link.is_symlink()),
        "pyproject.toml",
        "LICENSE",
        "ivy.xml",
        "requirements.lock",
        "scripts",
    }
    assert let_in == wanted
    assert lines[1] == "*"


@pytest.mark.parametrize("file", [*shipped(".yml", ".yaml", ".toml"), DOCKER / "Dockerfile"], ids=named)
def test_no_file_contains_a_secret(file: Path) -> None:
    found = [match["value"] for match in _SECRET.finditer(file.read_text(encoding="utf-8"))]
    assert [value for value in found if not value.startswith("${")] == []


def test_alertmanager_keeps_one_alert_of_two_for_every_kind_that_has_a_rule() -> None:
    inhibited = read_yaml(monitoring.ALERTMANAGER)["inhibit_rules"]
    groups = read_yaml(monitoring.RULES)["groups"]
    kinds = {rule["labels"].get("kind") for group in groups for rule in group["rules"]} & {k.value for k in AlertKind}
    assert len(kinds) >= 4
    for kind in kinds:
        rule = next(r for r in inhibited if r["source_matchers"] == [f'alertname = "{kind}"'])
        assert f'kind = "{kind}"' in rule["target_matchers"]
        assert rule["equal"] == ["cluster"]


def test_alertmanager_lets_headrooms_own_alerts_through_at_once() -> None:
    route = read_yaml(monitoring.ALERTMANAGER)["route"]["routes"][0]
    (names,) = re.fullmatch(r'alertname =~ "(.*)"', route["matchers"][0]).groups()  # type: ignore[union-attr]
    groups = read_yaml(monitoring.RULES)["groups"]
    assert all(re.fullmatch(names, kind.value) for kind in AlertKind)
    assert not any(re.fullmatch(names, rule["alert"]) for group in groups for rule in group["rules"])
    assert route["group_wait"] == "0s"


def test_grafana_finds_the_data_source_and_the_dashboards() -> None:
    provisioning = DOCKER / "grafana" / "provisioning"
    source = read_yaml(provisioning / "datasources" / "prometheus.yml")["datasources"][0]
    assert source["url"] == "http://prometheus:9090"
    provider = read_yaml(provisioning / "dashboards" / "headroom.yml")["providers"][0]
    assert f"./grafana/dashboards:{provider['options']['path']}:ro" in SERVICES["grafana"]["volumes"]
    home = Path(SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert str(home.parent) == provider["options"]["path"]
    assert home.name in {file.name for file in monitoring.DASHBOARDS}
