"""Secrets of every kind, each in a setting of its own, and looked for in what is printed, logged, kept or handed on.

What only a JVM shows (its command line and environment, Spark's tables and checkpoints) an integration test looks at.
"""

from __future__ import annotations

import base64
import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

import pytest

from headroom.alerts.delivery.outbox import Outbox
from headroom.cli.config.load import load_settings, read_settings
from headroom.cli.main import run
from headroom.cluster.connection.java_client import JavaClientError
from headroom.cluster.metrics.exporter.jmx_exporter import PrometheusSource
from headroom.cluster.metrics.http import HttpReader
from headroom.cluster.metrics.jolokia import JolokiaSource
from headroom.cluster.metrics.mbeans import ReadPlan
from headroom.cluster.metrics.source import MetricsError
from headroom.operations.receivers import build_receivers
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from tests.support.canaries import CANARIES, in_settings, leaks
from tests.unit.alerts.delivery.test_outbox import MemoryLog, until
from tests.unit.fakes.bad_servers import BadServer, bad_server, echoing, saying
from tests.unit.fakes.receivers import event

_KAFKA = """
[cluster]
bootstrap_servers = "127.0.0.1:1"
request_timeout_ms = 200
security_protocol = "SASL_SSL"
sasl_mechanism = "PLAIN"
sasl_username = "headroom"
sasl_password = "{sasl}"
ssl_key_password = "{key}"
[spark.conf]
"spark.hadoop.fs.s3a.secret.key" = "{conf}"
"spark.my.setting" = "{conf}"
"""
_JMX = """
[collect]
jmx_username = "monitor"
jmx_password = "{jmx}"
jmx_truststore_password = "{truststore}"
"""
_HTTP = """
[collect]
source = "jolokia"
http_username = "monitor"
http_password = "{http}"
"""
_TOKEN = """
[collect]
source = "prometheus"
http_token = "{token}"
"""
_RECEIVERS = """
[notify]
log = true
retry_s = 0.05
retry_max_s = 0.05
[notify.alertmanager]
urls = "{url}"
username = "headroom"
password = "{alertmanager}"
timeout_s = 5.0
[notify.webhook]
url = "{url}/hooks/{path}?token={query}"
secret = "{signs}"
timeout_s = 5.0
"""
_SLACK = """
[notify.slack]
token = "{slack}"
channel = "C0123456"
api_url = "{url}"
timeout_s = 5.0
"""
_SLACK_HOOK = """
[notify.slack]
webhook_url = "{url}/services/{hook}"
timeout_s = 5.0
"""
ALL = (_KAFKA + _JMX + _RECEIVERS + _SLACK, _KAFKA + _HTTP + _SLACK_HOOK, _KAFKA + _TOKEN)
_PLAN = ReadPlan([], [], [])


def written(folder: Path, text: str, url: str = "http://127.0.0.1:1") -> Path:
    file = folder / "headroom.toml"
    file.write_text(in_settings(text, url=url), encoding="utf-8")
    return file


def test_the_test_finds_what_leaks() -> None:
    assert leaks(f"a {quote(CANARIES['hook'], safe='')} b") == [CANARIES["hook"]]
    pair = f"monitor:{CANARIES['http']}"
    assert leaks(base64.b64encode(pair.encode()).decode()) == [pair]
    assert leaks("canary") == []


@pytest.mark.parametrize("text", ALL)
def test_settings_show_none(text: str, tmp_path: Path) -> None:
    settings = load_settings(str(written(tmp_path, text)), {})
    assert settings.cluster.sasl_password == CANARIES["sasl"]
    assert leaks(repr(settings)) == []


@pytest.mark.parametrize("text", ALL)
@pytest.mark.parametrize(
    "wrong",
    [
        "\n[alerts]\nhold_s = -1\n",
        "\n[unknown]\n",
        "\n[alerts]\nhold_s = 'a'\n",
        "\n[store]\npath = 's3a://me:canary-of-spark-conf@bucket/x'\n",
        "\n[elections\n",
    ],
)
def test_a_file_with_an_error_shows_none(
    text: str, wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["reassignments", "--config", str(written(tmp_path, text + wrong))]) == 1
    shown = capsys.readouterr()
    assert shown.err.startswith("headroom: ")
    assert leaks(shown.err + shown.out) == []


@pytest.mark.parametrize("key", ["sasl_password", "ssl_key_password"])
def test_a_secret_of_a_wrong_kind_is_not_shown(key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret = CANARIES["conf"]
    (tmp_path / "headroom.toml").write_text(f'[cluster]\n{key} = ["{secret}"]\n')
    assert run(["reassignments", "--config", str(tmp_path / "headroom.toml")]) == 1
    assert leaks(capsys.readouterr().err) == []


@pytest.mark.parametrize("text", ALL)
@pytest.mark.parametrize("output_format", ["text", "json"])
def test_commands_that_fail_show_none(
    text: str, output_format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, text)
    for command in (["check"], ["reassignments"], ["throttle", "show"]):
        assert run([*command, "--config", str(file), "--format", output_format]) == 1
    assert run(["collect", "--once", "--verbose", "--config", str(file)]) == 1
    shown = capsys.readouterr()
    assert "127.0.0.1:1" in shown.err + shown.out
    assert leaks(shown.err + shown.out) == []


def test_a_client_of_java_that_repeats_its_options_shows_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from headroom.operations.check import spark as check_spark

    def connect(jars: Path, options: Mapping[str, str], timeout_s: float) -> int:
        raise JavaClientError(f"KafkaException: {dict(options)}")

    monkeypatch.setattr(check_spark, "connect", connect)
    monkeypatch.setattr(check_spark, "jar_folder", lambda name: tmp_path)
    (row,) = check_spark.spark_checks(load_settings(str(written(tmp_path, ALL[0])), {}))
    assert "PlainLoginModule" in row.found
    assert leaks(row.found + row.remedy) == []


def delivered(settings: Settings, server: BadServer, names: int) -> str:
    """Return the stored and displayed deliveries of one event, after each receiver has answered."""
    log = MemoryLog()
    outbox = Outbox(build_receivers(settings.notify), log, settings.notify, lambda: 1_800_000_000_000)
    outbox.start()
    try:
        outbox.add([event()])
        until(lambda: len({record.receiver for record in log.records if record.answer}) == names, log.states)
    finally:
        outbox.stop()
    return "\n".join(map(repr, [*log.records, *outbox.figures()]))


@pytest.mark.parametrize("status", ["200 OK", "403 Forbidden", "500 Internal"])
@pytest.mark.parametrize(("text", "names"), [(_RECEIVERS + _SLACK, 4), (_RECEIVERS + _SLACK_HOOK, 4)])
def test_receivers_that_repeat_the_request_leave_none_in_tables_and_logs(
    text: str, names: int, status: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with bad_server(echoing(status)) as server, caplog.at_level(logging.DEBUG):
        settings = read_settings(str(written(tmp_path, text, f"http://127.0.0.1:{server.port}")), {})
        kept = delivered(settings, server, names)
        asked = b"".join(server.requests).decode()
    assert leaks(asked), "the requests had some"
    assert leaks(kept + caplog.text) == []


@pytest.mark.parametrize(
    ("text", "source_of"), [(_HTTP, JolokiaSource), (_TOKEN, PrometheusSource), (_TOKEN, JolokiaSource)]
)
@pytest.mark.parametrize("say", ["body", "json", "status"])
def test_an_agent_that_repeats_the_request_leaves_none_in_ticks(
    text: str, source_of: Callable[..., JolokiaSource | PrometheusSource], say: str, tmp_path: Path
) -> None:
    """The reason why a broker was not read is part of tick_end, and so of topic, tables and logs."""
    text = text.replace('"prometheus"', '"jolokia"') if source_of is JolokiaSource else text
    collect = read_settings(str(written(tmp_path, text)), {}).collect
    authorization = HttpReader(collect)._authorization()["Authorization"]
    body = {
        "body": f"{authorization} {authorization}",
        "json": f'{{"error": "refused: {authorization}", "status": 403}}',
        "status": "",
    }[say]
    head = f"409 {authorization}" if say == "status" else "200 OK"
    answer = f"HTTP/1.1 {head}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    with bad_server(saying(answer.encode())) as server, pytest.raises(MetricsError) as reported:
        source_of(HttpReader(collect), "").read(1, f"127.0.0.1:{server.port}", _PLAN, 5.0)
    assert leaks(authorization)
    assert leaks(str(reported.value)) == []
    assert str(reported.value).isprintable()


@pytest.fixture
def exported() -> dict[str, str]:
    """Every secret of one settings file, given by the environment."""
    return {
        "HEADROOM_CLUSTER__SASL_PASSWORD": CANARIES["sasl"],
        "HEADROOM_NOTIFY__SLACK__TOKEN": CANARIES["slack"],
        "HEADROOM_SPARK__CONF": json.dumps({"spark.my.setting": CANARIES["conf"]}),
        "HEADROOM_STORE__PATH": f"s3a://me:{CANARIES['conf']}@bucket/x",
    }


def test_an_error_of_the_environment_shows_none(exported: dict[str, str]) -> None:
    with pytest.raises(HeadroomError) as reported:
        load_settings(None, {"HEADROOM_CLUSTER__BOOTSTRAP_SERVERS": "127.0.0.1:1", **exported})
    assert leaks(str(reported.value)) == []


def test_a_jvm_inherits_none(exported: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    from headroom.schemas.environment import without_settings

    for name, value in exported.items():
        monkeypatch.setenv(name, value)
    with without_settings():
        assert leaks(repr(dict(os.environ))) == []
    assert leaks(repr(dict(os.environ))) != []
