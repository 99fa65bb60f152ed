"""What a new replica copies of a topic with remote storage, beside the bytes of its plan, on real brokers.

Without ``follower.fetch.last.tiered.offset.enable`` it asks for offset 0, learns that this is in remote storage only,
and begins at the first offset on the leader's disk: it copies all that is there. With it, it begins at the first offset
that is not uploaded. It waits while there is none, and while remote storage has nothing before that.

Source: Kafka 4.3.1, ``AbstractFetcherThread``, ``TierStateMachine``, ``UnifiedLog.fetchEarliestPendingUploadOffset``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headroom.cli.main import headroom
from headroom.cluster.embedded import BrokerOptions, EmbeddedCluster
from headroom.planning.throttles.replica_lists import Move
from headroom.schemas.config import Settings
from headroom.schemas.keys import TopicPartition
from tests.integration.scene import Scene
from tests.integration.support import RECORD_BYTES, admin_of, create_topic, fill, wait_until
from tests.support.remote_storage import (
    LEAST_SEGMENT_BYTES,
    TieredLog,
    keep_local,
    remote_storage,
    set_skips_uploaded,
    skips_uploaded,
    tiered_topic,
)

MB = 1_000_000
LEADER, NEW = 1, 2
# 800 records of 10 kB and 104 of them in a segment: 7 segments are uploaded, of which 4 are deleted locally, and the
# active one has 0.7 MB.
WRITTEN_BYTES = 8 * MB
LOCAL_BYTES = 3 * LEAST_SEGMENT_BYTES
# So low that all that is on the leader's disk takes longer than the first burst of the quota.
THROTTLE = "100KB"
# Nothing is written while plans are made.
ENVIRON = {"HEADROOM_COLLECT__MEASURE_S": "1"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    folder = tmp_path_factory.mktemp("tiered")
    options = BrokerOptions(properties=remote_storage(folder / "remote"))
    with EmbeddedCluster(folder / "cluster", 2, options=options) as started:
        yield started


def tiered_log(cluster: EmbeddedCluster, settings: Settings, topic: str) -> TieredLog:
    """Write a topic, and return its leader's log once nothing more is uploaded or deleted."""
    create_topic(cluster, topic, {0: [LEADER]}, tiered_topic(LEAST_SEGMENT_BYTES, LOCAL_BYTES))
    fill(cluster, topic, {0: WRITTEN_BYTES})
    log = TieredLog(TopicPartition(topic, 0), data_of_leader(cluster), LOCAL_BYTES)
    with admin_of(cluster) as admin:
        wait_until(lambda: log.is_tiered(admin), 120, f"{topic} in remote storage", log.segments)
    keep_local(settings, topic)
    return log


def data_of_leader(cluster: EmbeddedCluster) -> Path:
    return cluster.folder / "data" / f"broker-{LEADER}"


def assert_waits(planned: Any) -> None:
    assert planned["fits"] is None
    assert any("copy nothing yet" in text for text in planned["warnings"])


def await_line(cluster: EmbeddedCluster, text: str) -> None:
    """Wait until the log of the new broker has a text."""
    log = cluster.broker(NEW).log_file
    wait_until(lambda: text in log.read_text(encoding="utf-8", errors="replace"), 120, text)


def move_of(topic: str) -> Move:
    return Move(TopicPartition(topic, 0), (LEADER,), (NEW,))


def let_skip(cluster: EmbeddedCluster, settings: Settings, skips: bool) -> None:
    set_skips_uploaded(settings, skips)
    with admin_of(cluster) as admin:
        wait_until(lambda: all(skips_uploaded(admin, b) == skips for b in (LEADER, NEW)), 30, "the setting")


def plan(config_file: Path, folder: Path, topic: str) -> Any:
    """Return the plan that gives the partition of a topic to the new broker."""
    file = folder / "move.json"
    file.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [NEW]}]}))
    command = ["plan", str(file), "--throttle", THROTTLE, "--config", str(config_file), "--format", "json"]
    ran = CliRunner(env=ENVIRON).invoke(headroom, command)
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.stdout)


@pytest.mark.parametrize("skips", [True, False], ids=["on", "off"])
def test_a_new_replica_copies_the_bytes_of_the_plan(
    cluster: EmbeddedCluster, settings: Settings, config_file: Path, tmp_path: Path, skips: bool
) -> None:
    topic = f"tiered-{str(skips).lower()}"
    segments = tiered_log(cluster, settings, topic).segments()
    on_disk, not_uploaded = sum(segments.values()), segments[max(segments)]
    # Both differ enough to see which of them was copied.
    assert not_uploaded < on_disk / 3

    plans = {}
    # The setting of the move comes last.
    for value in (not skips, skips):
        let_skip(cluster, settings, value)
        plans[value] = plan(config_file, tmp_path, topic)
    assert plans[False]["copied_bytes"] == pytest.approx(on_disk, rel=0.01)
    assert plans[True]["copied_bytes"] == pytest.approx(not_uploaded, rel=0.05)
    assert plans[True]["finish_s"] < plans[False]["finish_s"]
    assert {value: any("remote storage" in text for text in p["warnings"]) for value, p in plans.items()} == {
        True: True,
        False: False,
    }

    with closing(Scene(cluster, settings)) as scene:
        scene.move([move_of(topic)])
        scene.await_end(topic, 120)
        copied = scene.log_sizes(topic, 0)[NEW]
    assert copied == pytest.approx(not_uploaded if skips else on_disk, rel=0.01)
    assert copied == pytest.approx(plans[skips]["copied_bytes"], rel=0.1)


def test_a_new_replica_waits_while_nothing_before_the_first_record_is_in_remote_storage(
    cluster: EmbeddedCluster, settings: Settings, config_file: Path, tmp_path: Path
) -> None:
    topic, records = "waiting", 30
    create_topic(cluster, topic, {0: [LEADER]}, tiered_topic(LEAST_SEGMENT_BYTES, LOCAL_BYTES))
    fill(cluster, topic, {0: records * RECORD_BYTES})
    with admin_of(cluster) as admin:
        admin.delete_records({TopicPartition(topic, 0): 10})
    let_skip(cluster, settings, True)
    assert_waits(plan(config_file, tmp_path, topic))

    with closing(Scene(cluster, settings)) as scene:
        scene.move([move_of(topic)])
        await_line(cluster, f"the state from remote store for partition: {topic}-0,")
        assert scene.moving(topic)
        # One of the ways out that the note names.
        let_skip(cluster, settings, False)
        scene.await_end(topic, 120)
        copied = scene.log_sizes(topic, 0)[NEW]
    # The records that were not deleted, each in a batch of its own.
    assert copied == pytest.approx((records - 10) * RECORD_BYTES, rel=0.05)


def test_a_new_replica_waits_for_a_record_where_all_are_uploaded(
    cluster: EmbeddedCluster, settings: Settings, config_file: Path, tmp_path: Path
) -> None:
    topic, records = "uploaded", 30
    # Kafka rolls and uploads the active segment too, once it is older than is kept.
    configs = {**tiered_topic(LEAST_SEGMENT_BYTES, LOCAL_BYTES), "local.retention.ms": "1000"}
    create_topic(cluster, topic, {0: [LEADER]}, configs)
    fill(cluster, topic, {0: records * RECORD_BYTES})
    log = TieredLog(TopicPartition(topic, 0), data_of_leader(cluster), LOCAL_BYTES)
    wait_until(lambda: log.segments() == {records: 0}, 120, "an empty log", log.segments)
    keep_local(settings, topic)
    let_skip(cluster, settings, True)
    planned = plan(config_file, tmp_path, topic)
    assert_waits(planned)
    assert planned["copied_bytes"] == 0

    with closing(Scene(cluster, settings)) as scene:
        scene.move([move_of(topic)])
        await_line(cluster, f"Error building remote log auxiliary state for {topic}-0")
        assert scene.moving(topic)
        fill(cluster, topic, {0: RECORD_BYTES})
        scene.await_end(topic, 120)
        copied = scene.log_sizes(topic, 0)[NEW]
    assert copied == pytest.approx(RECORD_BYTES, rel=0.05)
