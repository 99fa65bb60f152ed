"""The three ranges of a throttle, for RF 2 and RF 3: verdicts compared with the growth of the new replica's log."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from headroom.cli.common.watch_process import VerdictProcess
from headroom.cluster.embedded import BrokerOptions, EmbeddedCluster
from headroom.cluster.embedded.paced_producer import PacedProducer
from headroom.planning.throttles.replica_lists import Move
from headroom.schemas.config import Settings
from headroom.schemas.keys import TopicPartition
from headroom.streaming.delta.query_table import query
from tests.integration.scene import MB, Scene
from tests.integration.support import TABLE_POLL_S, alert_path, create_topic

# One story: from starved to the end of the moves.
pytestmark = pytest.mark.random_order(disabled=True)

# Topic, replicas before and after, and its leader. Each partition takes 1 MB/s, and broker 4 comes in to both.
RF2 = Move(TopicPartition("rf2", 0), (1, 2), (2, 4))
RF3 = Move(TopicPartition("rf3", 0), (3, 1, 2), (1, 2, 4))
WRITE = 1 * MB
NEW = 4
# Samples of a second in a broker's quota: fewer than Kafka's 11, because whole cycles of it are waited for.
SAMPLES = 5
QUOTA_CYCLE_S = SAMPLES + 0.5


@dataclass(frozen=True)
class Growth:
    """How two logs grew over the same time, bytes per second."""

    leader: float
    new: float


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    options = BrokerOptions({"replication.quota.window.num": str(SAMPLES)})
    with EmbeddedCluster(tmp_path_factory.mktemp("bands"), brokers=4, options=options) as started:
        yield started


@pytest.fixture(scope="module")
def scene(cluster: EmbeddedCluster, settings: Settings) -> Iterator[Scene]:
    """Both moves under way, starved: RF 2 at 0.7 of in-sync use 1, RF 3 at 1.5 of in-sync use 2 (MB/s)."""
    scene = Scene(cluster, settings)
    for move in (RF2, RF3):
        create_topic(cluster, move.name.topic, {0: list(move.before)})
    load = PacedProducer(cluster.bootstrap_servers, {("rf2", 0): 8 * WRITE, ("rf3", 0): 8 * WRITE})
    with load:
        # More than a throttle lets through at once, while its window is still empty.
        for move in (RF2, RF3):
            scene.await_size(move.name.topic, 0, 30 * MB, 60)
            load.set_rate(move.name.topic, 0, WRITE)
        scene.throttle({NEW: 50 * MB}, "follower")
        scene.throttle({1: 0.7 * MB, 3: 1.5 * MB}, "leader")
        scene.move([RF2, RF3])
        yield scene
    scene.close()


@pytest.fixture(scope="module")
def watch(config_file: Path, scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VerdictProcess]:
    with alert_path(config_file, tmp_path_factory.mktemp("watch") / "alerts.log") as process:
        process.wait(process.verdicts, 120, "a first verdict")
        yield process


def _growth(scene: Scene, leaders: dict[Move, int]) -> list[Growth]:
    """Return the growth of each over two cycles of the quota, so that a burst weighs as it does in the long run."""
    before, began = {move: scene.log_sizes(move.name.topic, 0) for move in leaders}, time.monotonic()
    time.sleep(2 * QUOTA_CYCLE_S)  # What is measured is what happens in this time; there is no condition to wait for.
    after, took = {move: scene.log_sizes(move.name.topic, 0) for move in leaders}, time.monotonic() - began

    def rate(move: Move, broker: int) -> float:
        return (after[move].get(broker, 0) - before[move].get(broker, 0)) / took

    return [Growth(rate(move, leader), rate(move, NEW)) for move, leader in leaders.items()]


# RF 2: one in-sync follower and one new one: in-sync use 1, required 2 MB/s. RF 3: two and one: 2 and 3.
@pytest.mark.parametrize(
    ("verdict", "rf2_mb", "rf3_mb"), [("starved", 0.7, 1.5), ("losing", 1.5, 2.5), ("catching_up", 3.0, 4.0)]
)
def test_the_verdict_is_what_the_new_replica_does(
    watch: VerdictProcess, scene: Scene, settings: Settings, verdict: str, rf2_mb: float, rf3_mb: float
) -> None:
    scene.throttle({1: rf2_mb * MB, 3: rf3_mb * MB}, "leader")
    statuses = {(1, "leader"): verdict, (3, "leader"): verdict}
    watch.wait(lambda: _agrees(watch, statuses), 90, f"both leaders {verdict}")
    if verdict != "catching_up":
        # What the former throttle left unused in the window goes first.
        time.sleep(QUOTA_CYCLE_S)
    # Again where producers stalled for a second or two: what they did not use of the quota went to the new replica.
    for _ in range(3):
        since_ms = time.time_ns() // MB
        growths = _growth(scene, {RF2: 1, RF3: 3})
        if all(_grows_as(verdict, growth) for growth in growths):
            break
    assert [growth for growth in growths if not _grows_as(verdict, growth)] == []
    _table_agrees(watch, settings, verdict, since_ms)


def _grows_as(verdict: str, growth: Growth) -> bool:
    if verdict == "starved":
        return growth.new < 0.05 * WRITE
    if verdict == "losing":
        return 0.05 * WRITE < growth.new < 0.95 * growth.leader
    return growth.new > growth.leader


def _agrees(watch: VerdictProcess, wanted: dict[tuple[int, str], str]) -> bool:
    shown = watch.verdicts() or {}
    return all(shown.get(broker_role) == verdict for broker_role, verdict in wanted.items())


def _table_agrees(watch: VerdictProcess, settings: Settings, verdict: str, since_ms: int) -> None:
    sql = (
        "SELECT broker, verdict, in_sync_bytes_per_s AS in_sync, required_bytes_per_s AS required FROM data "
        f"WHERE role = 'leader' AND broker IN (1, 3) AND tick_ms > {since_ms} AND moving_replicas > 0 "
        # On a busy machine a broker may not answer in time for a tick.
        "AND verdict <> 'no data'"
    )

    def rows_of_both() -> dict[int, list[dict[str, Any]]] | None:
        rows = query(settings.store.path, "gold/throttle_headroom", sql) or []
        of = {broker: [row for row in rows if row["broker"] == broker] for broker in (1, 3)}
        return of if min(map(len, of.values())) >= 5 else None

    # Most of them: where the load stalls, single rows tell of that.
    for broker, rows in (watch.wait(rows_of_both, 120, "rows of this band", TABLE_POLL_S) or {}).items():
        in_sync = WRITE if broker == 1 else 2 * WRITE
        assert Counter(row["verdict"] for row in rows).most_common(1)[0][0] == verdict
        assert median(row["in_sync"] for row in rows) == pytest.approx(in_sync, rel=0.1)
        assert median(row["required"] for row in rows) == pytest.approx(in_sync + WRITE, rel=0.1)


def test_both_moves_end_and_no_row_is_doubled(watch: VerdictProcess, scene: Scene, settings: Settings) -> None:
    scene.throttle({1: 50 * MB, 3: 50 * MB}, "leader")
    for move in (RF2, RF3):
        scene.await_end(move.name.topic, 60)
    watch.wait(lambda: not watch.verdicts(), 60, "no replica out of sync")
    rows = query(settings.store.path, "gold/throttle_headroom", "SELECT cluster, tick_ms, broker, role FROM data")
    assert rows is not None
    keys = [tuple(row.values()) for row in rows]
    assert len(keys) == len(set(keys))
