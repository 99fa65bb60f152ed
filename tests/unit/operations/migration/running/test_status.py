"""The status of migrations: read and evaluated as the pipeline does it."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from headroom.cli.migration.running.status_view import could_lose
from headroom.operations.migration.running.status import EvaluatedPartition, migration_status
from headroom.planning.migration.run.next_step import RunGoal
from headroom.schemas.bounds import MOST_IN_ARRAY
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.unit.fakes.migration_clusters import log_record, sync_bytes
from tests.unit.fakes.migration_stage import BEGAN_MS, ORDERS, MigrationStage, StageStop


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> MigrationStage:
    """A routed migration whose target is in use, with a group at offset 50."""
    stage = MigrationStage().connect(monkeypatch)
    stage.run(goal=RunGoal.STARTED)
    stage.origin.group_states = {"billing": True}
    stage.origin.offsets = {"billing": dict.fromkeys(ORDERS, 50)}
    stage.origin.leader_epochs = dict.fromkeys(ORDERS, 4)
    return stage


def partitions(stage: MigrationStage, topics: Collection[str] = ()) -> tuple[EvaluatedPartition, ...]:
    return migration_status(
        stage.running(),
        stage.settings,
        topics,
        None,
        stage.progress,
        stage.go_on,
        lambda: BEGAN_MS + round(stage.now_s * 1000),
    ).partitions


def test_rates_are_those_between_the_two_readings(stage: MigrationStage) -> None:
    def read_on(at: MigrationStage) -> None:
        at.origin.offsets = {"billing": dict.fromkeys(ORDERS, 75)}

    stage.before_wait = read_on
    first = partitions(stage)[0]
    # 25 offsets in the 5 s of collect.measure_s, while the log grows by 50.
    assert (first.reading.write_offsets_per_s, first.reading.target_offsets_per_s) == (10.0, 0.0)
    groups = first.progress.groups or ()
    assert [(group.group, group.client_offset, group.read_offsets_per_s) for group in groups] == [("billing", 75, 5.0)]
    assert (first.reading.groups or ())[0].active is True
    assert (first.progress.verdict.value, first.progress.at_risk_offsets) == ("on_plan", 0)


def test_nothing_is_read_if_no_partition_was_chosen(stage: MigrationStage) -> None:
    began_s, stage.origin.calls = stage.now_s, 0
    assert partitions(stage, ["payments"]) == ()
    assert (stage.now_s, stage.origin.calls) == (began_s, 0)


def test_a_dead_origin_costs_its_own_numbers(stage: MigrationStage) -> None:
    stage.origin.down = True
    first = partitions(stage)[0]
    assert (first.reading.is_origin_up, first.reading.origin.end, first.progress.groups) == (False, None, None)
    assert first.progress.reason == "The origin does not answer (no broker answered)."
    assert (first.reading.target.end, first.reading.target_topic_id) == (0, "id of orders")


def test_an_origin_that_dies_during_the_measurement_keeps_its_groups_at_an_unknown_place(stage: MigrationStage) -> None:
    def die(at: MigrationStage) -> None:
        at.origin.down = True

    stage.before_wait = die
    first = partitions(stage)[0]
    assert first.reading.write_offsets_per_s is None
    assert [(group.group, group.left_offsets) for group in first.progress.groups or ()] == [("billing", None)]


def test_another_cluster_than_was_agreed_is_named_and_nothing_of_it_counts(stage: MigrationStage) -> None:
    stage.origin.cluster_id = "x"
    first = partitions(stage)[0]
    reason = "The origin does not answer (it is the cluster x, and id of old was agreed)."
    assert (first.progress.verdict.value, first.progress.reason) == ("no_data", reason)
    assert (first.reading.origin.end, first.progress.groups, first.progress.removable) == (None, None, False)


def test_the_mirror_is_as_far_as_the_newest_sync_that_says_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = MigrationStage(offsets_per_s=0.0).connect(monkeypatch)
    syncs = TopicPartition("mm2-offset-syncs.new.internal", 0)
    pairs = [sync_bytes(0, 40, 40), sync_bytes(0, 60, 60), sync_bytes(0, -1, -1)]
    stage.origin.logs[syncs] = [log_record(n, n)._replace(key=k, value=v) for n, (k, v) in enumerate(pairs)]
    for name in ORDERS:
        stage.target.fill("old.orders", name.partition, range(70))
    stop = StageStop(stage)
    stage.before_wait = lambda at: setattr(stop, "is_stopped", bool(at.agreed()))
    stage.run("mirrored", stop=stop)
    stage.before_wait = lambda at: None
    first, second = partitions(stage)
    assert (first.reading.last_sync, first.progress.mirror_lag_offsets) == ((60, 60), 30)
    assert second.reading.last_sync is None


def test_groups_that_may_not_be_read_are_unknown_and_the_rest_is_known(stage: MigrationStage) -> None:
    def refuse() -> dict[str, bool | None]:
        raise HeadroomError("groups", "may not be listed", "Grant DESCRIBE.")

    stage.origin.groups = refuse  # type: ignore[method-assign]
    first = partitions(stage)[0]
    assert (first.progress.groups, first.progress.min_insync_replicas) == (None, 2)
    assert first.progress.verdict.value == "on_plan"


def test_all_groups_are_listed_however_many_there_are(stage: MigrationStage) -> None:
    names = [f"g{number:03}" for number in range(MOST_IN_ARRAY + 1)]
    stage.origin.group_states = dict.fromkeys(names, False)
    stage.origin.offsets = {name: {ORDERS[0]: 50} for name in names}
    first, second = partitions(stage)
    assert [group.group for group in first.progress.groups or ()] == names
    # They read the topic, so that where they have no offset their place is unknown.
    assert {group.left_offsets for group in second.progress.groups or ()} == {None}


def test_routers_are_named_in_the_order_of_the_agreement(stage: MigrationStage) -> None:
    assert [one.reading.agreement for one in partitions(stage)] == list(stage.agreed().values())


def test_what_was_deleted_on_the_origin_is_over_and_nothing_calls_it(stage: MigrationStage) -> None:
    def age(at: MigrationStage) -> None:
        at.offsets_per_s = 0.0 if at.now_s > 60 else 10.0
        if all(one.status == "migrated" for one in at.agreed().values()):
            at.origin.starts = {name: at.origin.end_of(name) for name in ORDERS}

    stage.before_wait, stage.origin.offsets, stage.origin.group_states = age, {}, {}
    assert stage.run(goal=RunGoal.AGED, drop=True).dropped == ("orders",)
    stage.origin.down, stage.origin.calls = True, 0
    found = {(one.progress.verdict.value, one.progress.removable, one.progress.reason) for one in partitions(stage)}
    assert found == {("removable", True, "Its topic on the origin is deleted: the migration is over.")}
    assert stage.origin.calls == 0


def test_a_log_that_came_back_shorter_after_its_seal_has_lost_records_whoever_saw_it(stage: MigrationStage) -> None:
    """No router has reported, and this command has seen no leader before."""
    assert stage.run().error is None
    stage.offsets_per_s, stage.before_wait = 0.0, lambda at: None
    stage.origin.ends |= dict.fromkeys(ORDERS, 340)
    first = partitions(stage)[0]
    assert (first.progress.verdict.value, first.progress.lost_offsets) == ("lost", 10)
    assert could_lose(first) == 10
