"""Secrets of every kind under a real watch: on no command line, in no JVM's environment, table, checkpoint or log.

The agent of the broker and the receivers of alerts repeat what they are sent.
"""

from __future__ import annotations

import re
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from headroom.cli.common.child_process import headroom_command
from headroom.cli.common.watch_process import WatchProcess
from headroom.cli.config.load import load_settings
from headroom.cluster.embedded import EmbeddedCluster
from headroom.operations.check.result import CheckStatus
from headroom.operations.check.run_checks import run_checks
from headroom.schemas.tables import ALERT_DELIVERIES, ALERT_EVENTS, BRONZE_TICKS, TABLES
from headroom.streaming.delta.query_table import query
from tests.integration.passwords import free_base, with_sasl
from tests.integration.support import TABLE_POLL_S, bytes_of, command_line, exit_code
from tests.support.canaries import CANARIES, in_settings, leaks
from tests.unit.fakes.bad_servers import BadServer, bad_server, echoing

PATIENCE_S = 180
RECEIVERS = {"alertmanager", "log", "slack", "webhook"}
_CONFIG = """
[cluster]
name = "canary"
bootstrap_servers = "{servers}"
security_protocol = "SASL_PLAINTEXT"
sasl_mechanism = "PLAIN"
sasl_username = "headroom"
sasl_password = "{sasl}"
[collect]
interval_s = 1.0
source = "jolokia"
http_username = "monitor"
http_password = "{http}"
http_key_password = "{key}"
endpoints = {{ 1 = "127.0.0.1:{port}" }}
[alerts]
no_data_s = 3.0
[metrics]
listen = "127.0.0.1:0"
[store]
path = "{store}"
[spark]
master = "local[1]"
record_trigger_s = 5.0
[spark.conf]
"spark.hadoop.fs.s3a.secret.key" = "{conf}"
"spark.my.setting" = "{conf}"
[notify]
log = true
[notify.alertmanager]
urls = "http://127.0.0.1:{port}"
username = "headroom"
password = "{alertmanager}"
[notify.webhook]
url = "http://127.0.0.1:{port}/hooks/{path}?token={query}"
secret = "{signs}"
[notify.slack]
channel = "C0123456"
api_url = "http://127.0.0.1:{port}"
"""


@dataclass(frozen=True)
class Site:
    """A broker that asks for a password, a server that repeats requests, and settings with a secret of each kind."""

    folder: Path
    config: Path
    echo: BadServer

    @property
    def store(self) -> str:
        return str(self.folder / "store")

    def rows(self, table: str) -> list[dict[str, object]]:
        return query(self.store, table, "SELECT * FROM data") or []


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("HEADROOM_NOTIFY__SLACK__TOKEN", CANARIES["slack"])
    base = free_base()
    options, servers = with_sasl(base, CANARIES["sasl"])
    config = tmp_path / "headroom.toml"
    with bad_server(echoing()) as echo, EmbeddedCluster(tmp_path / "kafka", 1, base, options=options):
        text = in_settings(_CONFIG, servers=servers, port=str(echo.port), store=str(tmp_path / "store"))
        config.write_text(text, encoding="utf-8")
        yield Site(tmp_path, config, echo)


def test_a_watch_shows_and_keeps_no_secret(site: Site) -> None:
    checks = list(run_checks(load_settings(str(site.config))))
    java = next(row for row in checks if row.name == "Spark's Kafka client")
    assert java.answer is CheckStatus.OK, java
    assert leaks(repr(checks)) == []
    log = site.folder / "watch.log"
    with WatchProcess(site.config, log, options=("--without-collector",)) as watch:
        with _collecting(site) as collector:
            watch.wait(lambda: bool(site.rows(BRONZE_TICKS.path)), PATIENCE_S, "ticks in bronze", TABLE_POLL_S)
            processes = [*watch.processes(), collector, *collector.children(recursive=True)]
            shown = [command_line(process) for process in processes]
            java_environments = [_environment(process) for process in processes if _name(process) == "java"]
        # Ticks that stay away are an alert.
        watch.wait(lambda: _answered(site) >= RECEIVERS, PATIENCE_S, "an answer of every receiver", TABLE_POLL_S)
        metrics = _metrics(log)
        message = repr(watch.lines)
    assert len(java_environments) >= 2, "Spark's two JVMs"
    assert "headroom_" in metrics
    assert leaks(b"".join(site.echo.requests).decode("utf-8", "replace")), "the requests had some"
    kept = {table.path: repr(site.rows(table.path)) for table in TABLES}
    assert all(kept[table.path] != "[]" for table in (ALERT_EVENTS, ALERT_DELIVERIES, BRONZE_TICKS))
    texts = {"command lines": "\n".join(shown), "environments": "\n".join(java_environments)}
    texts |= {"metrics": metrics, "output": message} | kept
    assert {name: leaks(text) for name, text in texts.items() if leaks(text)} == {}
    assert _files_that_leak(site.folder) == {"headroom.toml", "kafka/broker-1.properties"}


@contextmanager
def _collecting(site: Site) -> Iterator[psutil.Process]:
    """Run a collector of its own, which nobody restarts once it has ended."""
    command = headroom_command("collect", "--config", str(site.config))
    with (site.folder / "collect.log").open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield psutil.Process(process.pid)
        finally:
            process.terminate()
            code = exit_code(process, PATIENCE_S)
    assert code == 0, (site.folder / "collect.log").read_text("utf-8")


def _answered(site: Site) -> set[object]:
    return {row["receiver"] for row in site.rows(ALERT_DELIVERIES.path) if row["state"] in ("delivered", "failed")}


def _name(process: psutil.Process) -> str:
    with suppress(psutil.NoSuchProcess):
        return process.name()
    return ""


def _environment(process: psutil.Process) -> str:
    with suppress(psutil.NoSuchProcess):
        return repr(process.environ())
    return ""


def _metrics(log: Path) -> str:
    found = re.search(r"Metrics: (http://\S+/metrics)", log.read_text(encoding="utf-8"))
    assert found is not None
    with urllib.request.urlopen(found[1], timeout=20) as answer:
        return str(answer.read().decode())


def _files_that_leak(folder: Path) -> set[str]:
    """Return the files with a secret in them: tables, checkpoints, and logs of all processes are among them."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any("_checkpoints" in path.parts for path in files)
    return {str(path.relative_to(folder)) for path in files if leaks(bytes_of(path).decode("utf-8", "replace"))}
