"""Metadata of simulated brokers in Kafka's protocol, over a real connection."""

from __future__ import annotations

from contextlib import closing

import pytest

import headroom.cluster.metadata.topic_refresh
from benchmarks.fixtures.synthetic.fake_brokers import serving, workload
from benchmarks.fixtures.synthetic.synthetic_ticks import SyntheticCluster
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.metadata.snapshot_reader import SnapshotReader
from headroom.schemas.config import ClusterSettings
from headroom.schemas.keys import TopicPartition

BROKERS, PARTITIONS = 5, 1000


def test_paged_named_and_full_reads_return_the_same_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headroom.cluster.metadata.topic_refresh, "WHOLE_PARTITIONS", 500)
    monkeypatch.setattr(headroom.cluster.metadata.topic_refresh, "_REQUEST_PARTITIONS", 130)
    made = SyntheticCluster(workload(BROKERS, PARTITIONS))
    with (
        serving(made) as paper,
        closing(AdminConnection(ClusterSettings(bootstrap_servers=f"127.0.0.1:{paper.port}"))) as link,
    ):
        reader = SnapshotReader(link, 20.0, 1000.0)
        first = reader.snapshot()
        switched = next(p for p in made.partitions if p.adding is None)
        paper.switch(switched.topic, switched.partition)
        reader.mark_stale({switched.topic})
        by_name = reader.snapshot()
        monkeypatch.setattr(headroom.cluster.metadata.topic_refresh, "WHOLE_PARTITIONS", PARTITIONS)
        whole = reader.snapshot()
    name = TopicPartition(switched.topic, switched.partition)
    assert first.partitions[name].leader != switched.leader
    assert by_name.partitions == whole.partitions
    assert {n: (p.leader, p.isr) for n, p in whole.partitions.items()} == {
        TopicPartition(p.topic, p.partition): (p.leader, p.replicas) for p in made.partitions
    }
    moving = {n: p.adding for n, p in whole.partitions.items() if p.moving}
    assert moving == {TopicPartition(p.topic, p.partition): (p.adding,) for p in made.partitions if p.adding}
    assert {topic for topic, config in whole.topic_configs.items() if config.has_throttled_list} == {
        n.topic for n in moving
    }
    assert sorted(whole.brokers) == list(range(1, BROKERS + 1))
