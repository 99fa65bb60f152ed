"""Plan of a migration from readings of two clusters."""

from __future__ import annotations

import pytest

from headroom.operations.migration import clusters as clusters_module
from headroom.operations.migration.clusters import migration_clusters
from headroom.operations.migration.plan import MigrationPlan, plan_migration
from headroom.schemas.config import CollectSettings, MigrationSettings, OriginSettings, Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MigrationMethod
from tests.unit.fakes.migration_clusters import FakeMigrationCluster, QuietProgress, clusters_of

ORDERS = [TopicPartition("orders", p) for p in (0, 1)]


class Writes:
    """Time that passes on the origin: producers write, and consumers commit."""

    def __init__(self, origin: FakeMigrationCluster, records_per_s: dict[TopicPartition, int]) -> None:
        self.origin = origin
        self.records_per_s = records_per_s
        self.reads_per_s: dict[TopicPartition, int] = {}
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.origin.now_s += seconds
        for name, rate in self.records_per_s.items():
            self.origin.ends[name] = self.origin.end_of(name) + int(rate * seconds)
        for name, rate in self.reads_per_s.items():
            self.origin.offsets["billing"][name] += int(rate * seconds)


@pytest.fixture
def origin() -> FakeMigrationCluster:
    cluster = FakeMigrationCluster("old", group_states={"billing": True, "audit": False, "other": False})
    for name in ORDERS:
        cluster.fill(*name, range(100))
    cluster.fill("else", 0, [])
    cluster.offsets = {
        "billing": {ORDERS[0]: 10, ORDERS[1]: 100},
        "audit": {ORDERS[0]: 40},
        "other": {TopicPartition("else", 0): 0},
    }
    return cluster


def plan_of(
    origin: FakeMigrationCluster,
    target: FakeMigrationCluster,
    writes: Writes,
    *topics: str,
    groups: str = "",
    method: MigrationMethod = MigrationMethod.DRAINED,
    progress: QuietProgress | None = None,
) -> MigrationPlan:
    settings = Settings(
        collect=CollectSettings(measure_s=5.0), migration=MigrationSettings(prepare=60.0, quiet_s=10.0, groups=groups)
    )
    return plan_migration(
        clusters_of(origin, target),
        settings,
        topics or ("orders",),
        method,
        progress or QuietProgress(),
        writes.sleep,
        lambda: 1_000_000,
    )


def test_rates_of_offsets_and_of_groups_are_measured(origin: FakeMigrationCluster) -> None:
    writes = Writes(origin, dict.fromkeys(ORDERS, 20))
    writes.reads_per_s = {ORDERS[0]: 6}
    plan = plan_of(origin, FakeMigrationCluster("new"), writes)
    assert (plan.origin, plan.target, plan.measured_s, plan.read_ms, writes.slept) == (
        "old",
        "new",
        5.0,
        1_000_000,
        [5.0],
    )
    first, second = plan.forecast.partitions
    # 100 + 5 x 20, and then 60 s.
    assert (first.log.end, first.write_offsets_per_s, first.end_offset, first.left_offsets) == (200, 20.0, 1_400, 1_200)
    assert second.end_offset == 1_400
    readers = {reader.group: reader for reader in first.readers}
    # Billing: 10 + 5 x 6. Audit has no consumers, and the group of another topic is left out.
    assert [(g, r.committed, r.left_offsets, r.read_offsets_per_s) for g, r in readers.items()] == [
        ("audit", 40, 1_360, 0.0),
        ("billing", 40, 1_360, 6.0),
    ]
    assert [(reader.group, reader.committed) for reader in second.readers] == [("audit", None), ("billing", 100)]


def test_a_partition_that_does_not_grow_is_measured_until_it_counts_as_drained(origin: FakeMigrationCluster) -> None:
    progress = QuietProgress()
    writes = Writes(origin, {ORDERS[0]: 20})
    plan = plan_of(origin, FakeMigrationCluster("new"), writes, progress=progress)
    assert (plan.measured_s, writes.slept) == (10.0, [5.0, 5.0])
    first, second = plan.forecast.partitions
    assert (first.write_offsets_per_s, first.end_offset) == (20.0, 1_500)
    assert (second.write_offsets_per_s, second.end_offset, second.switch_in_s) == (0.0, 100, 0.0)
    assert progress.steps == [
        "Reading groups",
        "Measuring write rates for 5 s",
        "Measuring for 5 s more, because a partition has not grown",
    ]


def test_only_the_groups_of_the_settings_are_read(origin: FakeMigrationCluster) -> None:
    writes = Writes(origin, dict.fromkeys(ORDERS, 20))
    plan = plan_of(origin, FakeMigrationCluster("new"), writes, groups="audit")
    assert {reader.group for partition in plan.forecast.partitions for reader in partition.readers} == {"audit"}
    with pytest.raises(HeadroomError, match=r"group gone: is not on the cluster old. Correct migration.groups"):
        plan_of(origin, FakeMigrationCluster("new"), writes, groups="audit,gone")


def test_the_mirror_has_the_name_of_the_origin_before_its_own(origin: FakeMigrationCluster) -> None:
    target = FakeMigrationCluster("new")
    for name in ORDERS:
        target.fill(f"old.{name.topic}", name.partition, range(50))
        target.fill(name.topic, name.partition, range(7))
    writes = Writes(origin, dict.fromkeys(ORDERS, 20))
    plan = plan_of(origin, target, writes, method=MigrationMethod.MIRRORED)
    assert plan.topics["orders"].target_name == "old.orders"
    assert plan.forecast.partitions[0].target is not None
    assert plan.forecast.partitions[0].target.end == 50
    drained = plan_of(origin, target, writes)
    assert drained.topics["orders"].target_name == "orders"
    assert drained.forecast.is_forbidden()


def test_a_link_that_copies_while_it_is_read_has_not_diverged(origin: FakeMigrationCluster) -> None:
    target = FakeMigrationCluster("new")
    writes = Writes(origin, dict.fromkeys(ORDERS, 20))
    for name in ORDERS:
        target.fill(*name, range(100))
        # It has all that was written before the second reading.
        target.ends[name] = 200
    plan = plan_of(origin, target, writes, method=MigrationMethod.LINKED, groups="billing")
    assert plan.forecast.findings == ()


def test_a_partition_without_a_leader_is_unknown(origin: FakeMigrationCluster) -> None:
    origin.leaderless = {ORDERS[1]}
    plan = plan_of(origin, FakeMigrationCluster("new"), Writes(origin, {ORDERS[0]: 20}))
    assert plan.forecast.partitions[1].end_offset is None
    assert plan.forecast.is_forbidden()


def test_a_topic_that_is_not_there_is_an_error(origin: FakeMigrationCluster) -> None:
    with pytest.raises(HeadroomError, match="topic payments: is not on the cluster old"):
        plan_of(origin, FakeMigrationCluster("new"), Writes(origin, {}), "orders", "payments")


def test_a_topic_that_is_created_again_midway_is_an_error(origin: FakeMigrationCluster) -> None:
    writes = Writes(origin, dict.fromkeys(ORDERS, 20))
    found = clusters_of(origin, FakeMigrationCluster("new"))
    both = found.topics_on_both(["orders"], is_mirror=False)
    found.require_same_topics(both.values())
    sleep = writes.sleep

    def create_again(seconds: float) -> None:
        origin.topic_ids["orders"] = "another"
        sleep(seconds)

    writes.sleep = create_again  # type: ignore[method-assign]
    with pytest.raises(HeadroomError, match="topic orders: was deleted or recreated on the cluster old while it was"):
        plan_of(origin, FakeMigrationCluster("new"), writes)
    origin.logs.clear()
    with pytest.raises(HeadroomError, match="topic orders: was deleted or recreated"):
        found.require_same_topics(both.values())


def test_one_cluster_under_both_names_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(migration=MigrationSettings(origin=OriginSettings("o:1", name="old")))
    ids: dict[str, str | None] = {"old": "abc", "kafka": "abc"}
    monkeypatch.setattr(
        clusters_module, "MigrationCluster", lambda kafka, name: FakeMigrationCluster(name, cluster_id=ids[name])
    )
    with pytest.raises(
        HeadroomError, match=r"leads to the same cluster as cluster.bootstrap_servers: both have the id abc"
    ):
        migration_clusters(settings).__enter__()
    ids["old"] = "def"
    with migration_clusters(settings) as clusters:
        assert (clusters.origin.name, clusters.target.name) == ("old", "kafka")
    with pytest.raises(HeadroomError, match=r"migration.origin.bootstrap_servers: is not set"):
        migration_clusters(Settings()).__enter__()
