"""``headroom watch`` on real brokers: Spark is killed, traffic grows, a leader dies."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from headroom.cli.common.watch_output import Line
from headroom.cli.common.watch_process import WatchProcess
from headroom.cluster.embedded import EmbeddedCluster
from headroom.cluster.embedded.paced_producer import PacedProducer
from headroom.schemas import metrics
from headroom.schemas.config import Settings
from headroom.schemas.metrics import METRICS
from headroom.streaming.delta.query_table import query
from tests.integration import real_prometheus
from tests.integration.scene import MB, SLOW_MOVES, WRITE, Scene
from tests.integration.support import TABLE_POLL_S, create_topic, kill_watch, living, spark_jvms, wait_until
from tests.support import monitoring
from tests.support.ports import own_port
from tests.unit.fakes.receivers import FakeSlack, Scripted, serving

# One story: each test leaves the moves as the next one needs them.
pytestmark = pytest.mark.random_order(disabled=True)

# The history runs at low priority. On two slow cores its first rows come minutes after a start.
_HISTORY_S = 300.0


@pytest.fixture(scope="module")
def load(cluster: EmbeddedCluster) -> Iterator[PacedProducer]:
    create_topic(cluster, "w", {m.name.partition: list(m.before) for m in SLOW_MOVES})
    with PacedProducer(cluster.bootstrap_servers, {("w", 0): 8 * WRITE, ("w", 1): 8 * WRITE}) as running:
        yield running


@pytest.fixture(scope="module")
def scene(cluster: EmbeddedCluster, settings: Settings, load: PacedProducer) -> Iterator[Scene]:
    """Both partitions on their way to broker 4."""
    scene = Scene(cluster, settings)
    scene.start_slow_moves(load)
    yield scene
    scene.cancel(SLOW_MOVES)
    scene.close()


@dataclass(frozen=True)
class Receivers:
    """Slack and a webhook, small and on this machine, that every watch of the module tells, and where it is scraped."""

    slack: FakeSlack
    webhook: Scripted
    metrics: str

    def keys(self, alert_id: str) -> list[str]:
        """Return what the webhook was told of an alert; the same key twice is one event for whoever gets it."""
        keys = dict.fromkeys(body["key"] for body in self.webhook.bodies())
        return [key for key in keys if key.startswith(alert_id)]

    def messages(self, alert_id: str) -> list[dict[str, Any]]:
        """Return the messages in Slack's channel that are about an alert, replies left out."""
        return [m for m in self.slack.roots() if alert_id in json.dumps(m["metadata"])]


@pytest.fixture(scope="module", autouse=True)
def shown() -> Iterator[Receivers]:
    shown = Receivers(FakeSlack(), Scripted(), f"127.0.0.1:{own_port()}")
    with serving(shown.slack) as slack, serving(shown.webhook) as webhook, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADROOM_NOTIFY__SLACK__TOKEN", "xoxb-no-secret")
        patch.setenv("HEADROOM_NOTIFY__SLACK__CHANNEL", "C0123456")
        patch.setenv("HEADROOM_NOTIFY__SLACK__API_URL", f"{slack}/api/")
        patch.setenv("HEADROOM_NOTIFY__WEBHOOK__URL", webhook)
        patch.setenv("HEADROOM_METRICS__LISTEN", shown.metrics)
        # Silver is waited for.
        patch.setenv("HEADROOM_SPARK__RECORD_TRIGGER_S", "10")
        # A watch with a tick a second takes half of this machine as long as it runs; the demo has that.
        patch.setenv("HEADROOM_COLLECT__INTERVAL_S", "2")
        yield shown


def _fired(watch: WatchProcess, subject: str, since_s: float) -> Line | None:
    return next(
        (line for line in watch.firing_events() if line.event.subject == subject and line.at_s >= since_s), None
    )


def _await_verdict(watch: WatchProcess, broker_role: tuple[int, str], verdict: str, deadline_s: float = 90) -> None:
    watch.wait(lambda: (watch.verdicts() or {}).get(broker_role) == verdict, deadline_s, f"{broker_role} {verdict}")


@pytest.fixture(scope="module")
def killed(config_file: Path, scene: Scene, settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> int:
    """Kill a watch while an alert of broker 1 fires, and end what made it fire; how many messages were in silver."""
    process = WatchProcess(config_file, tmp_path_factory.mktemp("killed") / "watch.log")
    try:
        process.wait(process.verdicts, 120, "a first verdict")
        _await_rows(settings, "silver/messages", 20)
        scene.throttle({1: 1.5 * MB}, "leader")  # In-sync followers alone use 2 MB/s: starved.
        process.wait(lambda: _fired(process, "broker 1 as leader", 0), 60, "an alert on broker 1")
    finally:
        pids = kill_watch(process)
    wait_until(lambda: not living(pids), 120, "end of all processes", lambda: living(pids))
    scene.throttle({1: 3.6 * MB}, "leader")
    return len(_rows(settings, "silver/messages", "SELECT seq FROM data"))


@pytest.fixture(scope="module")
def watch(config_file: Path, killed: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchProcess]:
    """Return the watch that goes on where the one stopped that was killed, once it has told a first verdict."""
    with WatchProcess(config_file, tmp_path_factory.mktemp("again") / "watch.log") as process:
        process.wait(process.verdicts, 120, "a verdict after the kill")
        yield process


def test_an_alert_of_a_watch_that_was_killed_is_ended_by_the_next_one(
    watch: WatchProcess, settings: Settings, shown: Receivers
) -> None:
    alert_id = _only_alert(settings)["alert_id"]
    watch.wait(lambda: watch.resolving_event(alert_id), 90, "the end of the alert that was firing")
    # Told by the watch that was killed, or by the next one; its end by that in any case.
    ended = lambda: any(key.split("/")[2] == "resolved" for key in shown.keys(alert_id))  # noqa: E731
    wait_until(ended, 30, "the end told", lambda: shown.keys(alert_id))
    wait_until(lambda: shown.slack.replies(), 30, "the end of the alert in its thread")
    # Rates are rough just after a start: the alert may have been updated before it ended, each update sent once.
    assert [state for state, _ in groupby(key.split("/")[2] for key in shown.keys(alert_id))] == ["firing", "resolved"]
    assert len(shown.messages(alert_id)) == 1
    events = _rows(settings, "alerts/events", f"SELECT state FROM data WHERE alert_id = '{alert_id}'")
    states = Counter(e["state"] for e in events)
    assert (states["pending"], states["resolved"]) == (1, 1)
    assert len(shown.keys(alert_id)) == states["firing"] + states["resolved"]


def test_growing_traffic_is_an_alert_without_a_switch(watch: WatchProcess, scene: Scene, load: PacedProducer) -> None:
    _await_verdict(watch, (1, "leader"), "catching_up")
    began = time.monotonic()
    load.set_rate("w", 0, 1.5 * WRITE)  # Requires 1.5 x 3 = 4.5 of 3.6 MB/s.

    def shown() -> dict[str, Any] | None:
        """Return the advice for broker 1: of an alert of its own, or of one whose advice is enough for both."""
        for event in [line.event for line in watch.firing_events() if line.at_s >= began]:
            rows = json.loads(event.recommendation).get("per_broker") or []
            of_leader = [one for one in rows if (one["broker_id"], one["role"]) == (1, "leader")]
            if of_leader and of_leader[0]["verdict"] == "losing":
                evidence = json.loads(event.evidence)
                assert evidence.get("switch_tick_ms") is None
                return dict(of_leader[0])
        return None

    raised = watch.wait(shown, 60, "an alert with advice for broker 1 as leader")
    assert raised["throttle_bytes_per_s"] == 3.6 * MB
    assert raised["recommended_bytes_per_s"] > raised["required_bytes_per_s"] > 3.6 * MB
    load.set_rate("w", 0, WRITE)
    _await_verdict(watch, (1, "leader"), "catching_up")
    own = [line.event.alert_id for line in watch.firing_events() if line.event.subject == "broker 1 as leader"]
    for alert_id in own:
        watch.wait(lambda ended=alert_id: watch.resolving_event(ended), 90, "its end")  # type: ignore[misc]


def test_every_expression_of_a_dashboard_is_answered_of_a_live_watch(
    watch: WatchProcess, shown: Receivers, tmp_path: Path
) -> None:
    _await_verdict(watch, (1, "leader"), "catching_up")
    # Not known yet, or only while something is amiss.
    absent = {metrics.ETA.name, metrics.LAST_DELIVERY.name, metrics.ALERTS.name, metrics.BROKER_LOAD_LIMIT.name}
    words = ("proposal", "promised", "migration")
    absent |= {spec.name for spec in METRICS if any(word in spec.name for word in words)}
    with real_prometheus.prometheus(shown.metrics, tmp_path) as url:
        for expression in monitoring.dashboard_expressions():
            real_prometheus.query(url, expression.filled(cluster=".*", broker=".*", __rate_interval="10s"))
        for rule in monitoring.rule_expressions():
            real_prometheus.query(url, rule.text)
        series = {spec.name: f"{spec.name}{'_count' if spec.buckets else ''}" for spec in METRICS}

        unseen = set(series)

        def missing() -> set[str]:
            # A scrape that took longer than its interval takes all series away for a moment.
            unseen.intersection_update({n for n in unseen if not real_prometheus.query(url, series[n])})
            return unseen

        # The process that counts leaders is started after the first verdict, at low priority.
        wait_until(lambda: missing() <= absent, _HISTORY_S, "a series of every metric", missing, TABLE_POLL_S)


def test_without_its_store_a_watch_continues_and_stores_its_events_later(
    watch: WatchProcess, scene: Scene, settings: Settings, shown: Receivers
) -> None:
    _await_verdict(watch, (1, "leader"), "catching_up")
    store = Path(settings.store.path)
    away = store.rename(store.with_name("away"))
    store.write_text("as a disk that is gone")
    try:
        trouble = watch.wait(lambda: _fired(watch, "store", 0), 60, "an alert on the store")
        began = time.monotonic()
        scene.throttle({1: 1.5 * MB}, "leader")
        short = watch.wait(lambda: _fired(watch, "broker 1 as leader", began), 60, "an alert without a store")
        wait_until(lambda: shown.keys(short.event.alert_id), 30, "a receiver told", shown.webhook.bodies)
    finally:
        store.unlink()
        away.rename(store)
    assert trouble.event.kind == "store_unwritable"
    assert str(store) in trouble.event.summary
    assert short.event.summary.endswith(" (not kept yet)")
    watch.wait(lambda: watch.resolving_event(trouble.event.alert_id), 60, "the end of the trouble")
    scene.throttle({1: 3.6 * MB}, "leader")
    ids = [trouble.event.alert_id, short.event.alert_id]
    watch.wait(lambda: watch.resolving_event(ids[1]), 90, "the end of the alert")
    for alert_id in ids:
        sql = f"SELECT state FROM data WHERE alert_id = '{alert_id}' ORDER BY tick_ms, state = 'firing'"
        states = [row["state"] for row in _rows(settings, "alerts/events", sql)]
        # Told again if it became worse while the load stalled.
        assert [state for state, _ in groupby(states)] == ["pending", "firing", "resolved"]
        notifications = len(states) - 1
        wait_until(lambda a=alert_id, n=notifications: len(shown.keys(a)) == n, 30, "all told", shown.webhook.bodies)  # type: ignore[misc]
        assert len(shown.messages(alert_id)) == 1
    _keys_are_unique(settings)


def test_a_watch_whose_jvm_is_killed_starts_another_one_and_continues(watch: WatchProcess, scene: Scene) -> None:
    _await_verdict(watch, (1, "leader"), "catching_up")
    began = time.monotonic()
    scene.throttle({1: 1.5 * MB}, "leader")
    short = watch.wait(lambda: _fired(watch, "broker 1 as leader", began), 60, "an alert before the kill")
    for jvm in spark_jvms(watch):
        jvm.kill()
    scene.throttle({1: 3.6 * MB}, "leader")
    # The same alert ends: what was known stands in the tables.
    watch.wait(lambda: watch.resolving_event(short.event.alert_id), 90, "its end after the kill")


def test_an_election_fixes_leaders_that_are_not_preferred(
    watch: WatchProcess, cluster: EmbeddedCluster, scene: Scene, settings: Settings
) -> None:
    create_topic(cluster, "b", {n: [2, 3] for n in range(20)})
    scene.reorder("b", {n: [3, 2] for n in range(20)})

    def state() -> str | None:
        shown = [e for e in (line.event for line in watch.events()) if e.kind == "leader_imbalance"]
        return shown[-1].state if shown else None

    watch.wait(lambda: state() == "pending", _HISTORY_S, "an imbalance of broker 3")
    event = next(e for e in (line.event for line in watch.events()) if e.kind == "leader_imbalance")
    evidence = json.loads(event.evidence)
    assert (event.subject, evidence["electable_now"], evidence["threshold_source"]) == ("broker 3", 20, "setting")
    advice = json.loads(event.recommendation)
    assert (advice["batches"], advice["elections"], len(advice["first_batch"])) == (1, 20, 20)
    # What moves waits for its move.
    left = evidence["waiting_for_move"] / evidence["preferred_partitions"]
    assert {o["broker"]: o["last_batch_ratio"] for o in advice["imbalance_ratios"]}[3] == pytest.approx(left)
    for number in range(20):
        scene.elect("b", number)
    watch.wait(lambda: state() == "resolved", _HISTORY_S, "balance after the election")
    # The alert resolves below its threshold, which one leader elsewhere does not reach.
    sql = "SELECT electable_now FROM data WHERE broker = 3 ORDER BY tick_ms DESC LIMIT 1"
    watch.wait(
        lambda: _rows(settings, "gold/leader_imbalance", sql) == [{"electable_now": 0}], _HISTORY_S, "all leaders back"
    )


def test_a_dead_leader_makes_the_new_one_fall_short_at_once(
    watch: WatchProcess, cluster: EmbeddedCluster, scene: Scene
) -> None:
    _await_verdict(watch, (2, "leader"), "catching_up")
    began = time.monotonic()
    cluster.kill(1)
    try:
        # Broker 2 leads both, broker 1 fetches no more: 2 x 1 MB/s to brokers 3 and 4 each: 4 of 3.6 MB/s.
        # Most of the wait is Kafka's own: it misses the broker after 9 s, and may have to elect a controller first.
        shown = watch.wait(lambda: _fired(watch, "broker 2 as leader", began), 120, "an alert on broker 2")
    finally:
        cluster.restart(1)
    evidence = json.loads(shown.event.evidence)
    # As far off as a load that stalls for two of the ten seconds makes it.
    assert evidence["required_bytes_per_s"] == pytest.approx(4 * MB, rel=0.25)
    assert evidence["in_sync_bytes_per_s"] == pytest.approx(2 * MB, rel=0.25)
    assert evidence["switch_tick_ms"] is not None
    moved = next(p for p in evidence["partitions"] if p["partition"] == 0)
    assert (moved["leader"], moved["previous_leader"]) == (2, 1)
    # The advice holds when broker 1 is back, too: it follows both partitions again.
    assert evidence["down_required_bytes_per_s"] == pytest.approx(2 * MB, rel=0.25)
    recommendation = json.loads(shown.event.recommendation)
    whole = evidence["required_bytes_per_s"] + evidence["down_required_bytes_per_s"]
    assert recommendation["throttle_bytes_per_s"] == pytest.approx(1.2 * whole, rel=0.02)


def test_after_all_faults_no_row_is_lost_or_doubled(watch: WatchProcess, killed: int, settings: Settings) -> None:
    """Last of the module: the history, which writes these rows, needs minutes beside the other tests."""
    watch.require_running()
    _await_rows(settings, "silver/messages", killed + 20)
    _bronze_is_whole(settings)
    _keys_are_unique(settings)
    _lags_are_those_of_silver(settings)


def _lags_are_those_of_silver(settings: Settings) -> None:
    """Of a tick that the record job has summed, followers and gauges are those of the silver table."""
    _await_rows(settings, "gold/replication_lag", 1)
    columns = "broker, source_broker, replicas, lag_offsets"
    newest = "SELECT max(tick_ms) AS tick_ms FROM data"
    (tick,) = _rows(settings, "gold/replication_lag", newest)
    shown = _rows(
        settings,
        "gold/replication_lag",
        f"SELECT {columns} FROM data WHERE tick_ms = {tick['tick_ms']} AND replicas > 0 ORDER BY 1, 2",
    )
    sums = "count(*) AS replicas, coalesce(sum(lag_offsets), 0) AS lag_offsets"
    assert shown == _rows(
        settings,
        "silver/fetcher_lag",
        f"SELECT broker, source_broker, {sums} FROM data WHERE tick_ms = {tick['tick_ms']} GROUP BY 1, 2 ORDER BY 1, 2",
    )


def _rows(settings: Settings, table: str, sql: str) -> list[dict[str, Any]]:
    return query(settings.store.path, table, sql) or []


def _await_rows(settings: Settings, table: str, count: int) -> None:
    def found() -> int:
        return len(_rows(settings, table, "SELECT cluster FROM data"))

    wait_until(lambda: found() >= count, _HISTORY_S, f"{count} rows in {table}", found, TABLE_POLL_S)


def _only_alert(settings: Settings) -> dict[str, Any]:
    which = "state = 'firing' AND severity != 'info' AND subject = 'broker 1 as leader'"
    sql = f"SELECT * FROM data WHERE {which} ORDER BY tick_ms DESC LIMIT 1"
    return _rows(settings, "alerts/events", sql)[0]


def _bronze_is_whole(settings: Settings) -> None:
    """Every record of the topic from the first on is there once, without a gap."""
    columns = 'count(*) AS n, min("offset") AS first, max("offset") AS last'
    sql = f'SELECT "partition", {columns} FROM data GROUP BY "partition"'
    rows = _rows(settings, "bronze/ticks", sql)
    assert rows
    for row in rows:
        assert (row["first"], row["n"]) == (0, row["last"] + 1), row


def _keys_are_unique(settings: Settings) -> None:
    keys = {
        "silver/messages": "tick_ms, kind, seq",
        "silver/leader_distribution": "tick_ms, topic, partition",
        "silver/fetcher_lag": "tick_ms, broker, topic, partition, source_broker",
        "gold/throttle_headroom": "tick_ms, broker, role",
        "gold/reassignment_progress": "tick_ms, topic, partition, adding_replica",
        "gold/leader_imbalance": "tick_ms, broker",
        "gold/election_plan": "tick_ms",
        "gold/broker_load": "minute_ms, broker, resource",
        "gold/replication_lag": "tick_ms, broker, source_broker",
        "alerts/events": "alert_id, state, tick_ms",
    }
    for table, columns in keys.items():
        sql = f"SELECT {columns}, count(*) AS n FROM data GROUP BY {columns} HAVING count(*) > 1"
        assert _rows(settings, table, sql) == [], table
