"""Headroom by spark-submit on a real standalone Spark cluster: two jobs, two watched clusters, and a password."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchmarks.fixtures.spark_standalone import SparkCluster, SubmittedJobs, packaged
from benchmarks.fixtures.synthetic.synthetic_producer import PreparedTick, TickProducer, prepare
from benchmarks.fixtures.synthetic.synthetic_ticks import Workload
from headroom.cli.config.load import load_settings
from headroom.cluster.embedded import EmbeddedCluster
from headroom.schemas.config import Settings
from headroom.streaming.delta.query_table import query
from tests.integration.passwords import free_base, with_sasl
from tests.integration.support import TABLE_POLL_S, bytes_of, command_line, living, wait_until

PASSWORD = "hunter2-of-the-submitted-jobs"
CLUSTERS = ("orders", "payments")
PARTITIONS, TICKS = 40, 4
# Eight JVMs start on two cores, and every class is new to each. With much other work on these cores, ticks were in gold
# 150 s after they had been sent.
PATIENCE_S = 240
_SASL = """
security_protocol = "SASL_PLAINTEXT"
sasl_mechanism = "PLAIN"
sasl_username = "headroom"
sasl_password_file = {password_file}
"""
_CONFIG = """
[cluster]
name = {name}
bootstrap_servers = {servers}
{cluster_security}
[ticks]
{ticks}
[collect]
interval_s = 1.0
[store]
path = {store}
[spark]
master = "local[1]"
record_trigger_s = 1.0
gold_trigger_s = 1.0
"""


@dataclass(frozen=True)
class Site:
    """Where it happens: a broker that asks for a password, a file of settings for each cluster, and their ticks."""

    folder: Path
    configs: Mapping[str, Path]
    ticks: Mapping[str, list[PreparedTick]]

    def settings(self, cluster: str) -> Settings:
        return load_settings(str(self.configs[cluster]))

    def rows(self, table: str, sql: str) -> list[dict[str, Any]]:
        return query(self.settings("orders").store.path, table, sql) or []

    def arguments(self, *jobs: str) -> list[str]:
        configs = [part for path in self.configs.values() for part in ("--config", str(path))]
        return ["run", *jobs, *configs, "--format", "json"]

    def send(self) -> None:
        """Send the ticks of both clusters side by side, as their collectors would."""
        with ExitStack() as open_feeds:
            feeds = {c: open_feeds.enter_context(closing(TickProducer(self.settings(c), c))) for c in CLUSTERS}
            for number in range(TICKS):
                for cluster, feed in feeds.items():
                    feed.send(self.ticks[cluster][number])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("standalone")
    base = free_base()
    options, servers = with_sasl(base, PASSWORD)
    with EmbeddedCluster(folder / "kafka", 1, base, options=options):
        configs = _written(folder, servers)
        yield Site(folder, configs, {name: _ticks(name, seed) for seed, name in enumerate(CLUSTERS, 1)})


def _written(folder: Path, servers: str) -> dict[str, Path]:
    """A file of settings for each cluster; the second's own brokers are elsewhere, and its ticks go to the first's."""
    secret = folder / "password"
    secret.write_text(PASSWORD)
    security = _SASL.format(password_file=json.dumps(str(secret)))
    both = {"store": json.dumps(str(folder / "store"))}
    there = {"servers": json.dumps(servers), "cluster_security": security, "ticks": ""}
    elsewhere = {
        "servers": '"payments:9092"',
        "cluster_security": "",
        "ticks": f"bootstrap_servers = {json.dumps(servers)}{security}",
    }
    configs = {}
    for name, its in zip(CLUSTERS, (there, elsewhere), strict=True):
        configs[name] = folder / f"{name}.toml"
        configs[name].write_text(_CONFIG.format(name=json.dumps(name), **both, **its))
    return configs


def _ticks(cluster: str, seed: int) -> list[PreparedTick]:
    workload = Workload(
        brokers=6,
        topics=4,
        partitions=PARTITIONS,
        moving_ratio=0.5,
        throttle_changes_per_minute=60,
        interval_s=1.0,
        seed=seed,
        cluster=cluster,
        begin_ms=int(time.time() * 1000),
    )
    return prepare(workload, TICKS)


def test_jobs_by_spark_submit_give_the_true_tables_and_show_no_secret(site: Site) -> None:
    # A test before may have started a session of Spark in this process.
    before = psutil.Process().children(recursive=True)
    with ExitStack() as running:
        spark = running.enter_context(SparkCluster(site.folder / "spark"))
        jobs = {job: running.enter_context(_submitted(site, spark, job)) for job in ("watch", "record")}
        watch = jobs["watch"]
        begun = Path(site.settings("orders").store.checkpoints()) / "alert_path" / "sources" / "0" / "0"
        watch.wait(begun.is_file, PATIENCE_S, "the alert path to start")
        site.send()
        watch.wait(
            lambda: _stored_verdicts(site) == _truth(site), PATIENCE_S, "the true verdicts in gold", TABLE_POLL_S
        )
        jobs["record"].wait(
            lambda: _recorded(site) == TICKS * len(CLUSTERS), PATIENCE_S, "all ticks in silver", TABLE_POLL_S
        )
        # Each job has an executor of one core, although the file of settings names another master.
        wait_until(lambda: spark.cores_in_use() == len(jobs), 60, "an executor of each job", spark.cores_in_use)
        _tables_are_right(site)
        shown = {line.fields["cluster"] for line in watch.lines if line.fields["type"] == "verdicts"}
        assert shown == set(CLUSTERS)
        processes = [child for child in psutil.Process().children(recursive=True) if child not in before]
        commands = [command_line(process) for process in processes]
        assert any("CoarseGrainedExecutorBackend" in command for command in commands)
        assert [command for command in commands if PASSWORD in command] == []
    pids = [process.pid for process, output in zip(processes, commands, strict=True) if "org.apache.spark" in output]
    wait_until(lambda: not living(pids), PATIENCE_S, "end of all Spark processes", lambda: living(pids))
    assert _files_with(PASSWORD, site.folder) == {"kafka/broker-1.properties", "password"}


def _submitted(site: Site, spark: SparkCluster, job: str) -> SubmittedJobs:
    package = site.folder / "package"
    if not package.exists():
        packaged(package)
    events = site.folder / "events"
    events.mkdir(exist_ok=True)
    log_events = ("--conf", "spark.eventLog.enabled=true", "--conf", f"spark.eventLog.dir=file://{events}")
    size = ("--total-executor-cores", "1", "--executor-memory", "512m", "--driver-memory", "768m")
    log = site.folder / f"{job}.log"
    return SubmittedJobs(spark.master, package, site.arguments(job), log, (*size, *log_events))


def _truth(site: Site) -> dict[tuple[str, int, int, str], str]:
    ticks = [(cluster, tick) for cluster, sent in site.ticks.items() for tick in sent]
    return {
        (cluster, tick.tick_ms, *broker_role): verdict
        for cluster, tick in ticks
        for broker_role, verdict in tick.truth.items()
    }


def _stored_verdicts(site: Site) -> dict[tuple[str, int, int, str], str]:
    rows = site.rows("gold/throttle_headroom", "SELECT cluster, tick_ms, broker, role, verdict FROM data")
    return {(row["cluster"], row["tick_ms"], row["broker"], row["role"]): row["verdict"] for row in rows}


def _recorded(site: Site) -> int:
    return len(site.rows("silver/messages", "SELECT seq FROM data WHERE kind = 'tick_end'"))


def _tables_are_right(site: Site) -> None:
    """Each record stands in bronze once, each partition of each cluster and tick in silver, and nothing is rejected."""
    sent = {cluster: sum(len(tick.messages) + 1 for tick in ticks) for cluster, ticks in site.ticks.items()}
    assert site.rows("bronze/ticks", "SELECT count(*) AS n FROM data") == [{"n": sum(sent.values())}]
    counted = "SELECT cluster, count(*) AS n FROM data GROUP BY cluster ORDER BY cluster"
    assert site.rows("silver/messages", counted) == [{"cluster": c, "n": sent[c]} for c in CLUSTERS]
    wanted = [{"cluster": c, "n": TICKS * PARTITIONS} for c in CLUSTERS]
    assert site.rows("silver/leader_distribution", counted) == wanted
    assert site.rows("silver/quarantine", "SELECT reason FROM data") == []
    short = {c for (c, *_), verdict in _truth(site).items() if verdict in ("starved", "losing")}
    assert {row["cluster"] for row in site.rows("alerts/events", "SELECT cluster FROM data")} == short


def _files_with(text: str, folder: Path) -> set[str]:
    """The files that hold a text: logs of all processes, event logs, tables and checkpoints are among them."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".jar"]
    assert any("events" in path.parts for path in files)
    assert any(path.name == "stderr" for path in files), "the log of an executor"
    return {str(path.relative_to(folder)) for path in files if text.encode() in bytes_of(path)}
