"""What changes while a run is under way, or between two runs: by another command, on the clusters, or by the clock."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.operations.migration.running import changing
from headroom.operations.migration.running.changing import cancel_migration
from headroom.planning.migration.readings import TopicRules
from headroom.planning.migration.run.next_step import RunGoal
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MIGRATIONS_TOPIC, PartitionAgreement, RouterReport
from tests.unit.fakes.kafka_clients import Stored
from tests.unit.fakes.migration_stage import ORDERS, MigrationStage, StageStop

PAYMENTS = TopicPartition("payments", 0)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> MigrationStage:
    stage = MigrationStage().connect(monkeypatch)
    monkeypatch.setattr(changing, "MigrationCluster", lambda kafka, name: stage.target)
    return stage


def once(stage: MigrationStage, act: Any) -> None:
    """Let something happen once, when something is agreed."""
    done: list[None] = []

    def look(at: MigrationStage) -> None:
        if at.agreed() and not done:
            done.append(None)
            act(at)

    stage.before_wait = look


def withdraw(at: MigrationStage, names: tuple[TopicPartition, ...] = ORDERS) -> None:
    """Remove records of partitions, as ``cancel`` does it in the end."""
    writer = at.writer("move", at.reader())
    writer.open(1.0)
    writer.write([], [at.agreed()[name] for name in names])


def test_a_run_whose_partitions_are_withdrawn_has_not_reached_its_goal(stage: MigrationStage) -> None:
    stage.routers = ()
    once(stage, lambda at: cancel_migration(at.settings, "move", True, at.notes.append))
    result = stage.run(routers=("writer", "reader"))
    assert "orders-0 and 1 more partitions are not in it any more" in str(result.error)


def test_partitions_that_were_withdrawn_are_agreed_about_again(stage: MigrationStage) -> None:
    """Only orders-0 was in use: half a topic must not be taken for the whole one."""
    stage.run(goal=RunGoal.STARTED)
    record = stage.agreed()[ORDERS[1]].key()
    stage.topic.logs[TopicPartition(MIGRATIONS_TOPIC, 0)].append(Stored(record, None))
    assert list(stage.agreed()) == [ORDERS[0]]
    before = stage.agreed()[ORDERS[0]]
    # Its target is in use by now, which forbids nothing.
    stage.target.fill("orders", 0, range(5))
    result = stage.run()
    assert result.error is None
    first, second = result.agreements.values()
    assert (first.status, first.end_offset, second.status) == ("migrated", before.end_offset, "migrated")
    assert second.number > before.number


def test_partitions_that_are_added_to_the_origin_end_the_run_and_are_not_deleted(stage: MigrationStage) -> None:
    once(stage, lambda at: at.origin.fill("orders", 2, range(5)))
    assert "has partitions on the origin that nothing was agreed about: orders-2" in str(stage.run().error)
    # Its keys have changed their partitions: the target needs it too.
    stage.before_wait = lambda at: None
    with pytest.raises(HeadroomError, match="another number of partitions on the target, 2, than on the origin, 3"):
        stage.run(goal=RunGoal.AGED)
    stage.target.fill("orders", 2, [])
    result = stage.run()
    assert result.error is None
    assert [one.status for one in result.agreements.values()] == ["migrated"] * 3


def test_a_topic_with_a_partition_that_is_not_agreed_about_is_not_deleted(stage: MigrationStage) -> None:
    def age(at: MigrationStage) -> None:
        if at.agreed() and all(one.status == "migrated" for one in at.agreed().values()):
            at.origin.starts = {name: at.origin.end_of(name) for name in ORDERS}
        if at.agreed() and all(one.status == "aged" for one in at.agreed().values()):
            at.origin.fill("orders", 2, range(5))

    stage.before_wait = age
    stage.run(goal=RunGoal.AGED)
    age(stage)
    stage.target.down = False
    for partition in range(3):
        stage.target.logs.setdefault(TopicPartition("orders", partition), [])
    stage.routers = ()
    stop = StageStop(stage)
    stop.is_stopped = True
    stage.run(goal=RunGoal.AGED, drop=True, stop=stop, routers=("writer", "reader"))
    assert stage.origin.deleted == []


def test_routers_have_to_agree_again_also_if_another_topic_of_the_migration_has_a_higher_number(
    stage: MigrationStage,
) -> None:
    """Payments were agreed about again and again, up to number 9; now orders alone needs another end offset."""
    stage.run(goal=RunGoal.STARTED)
    high = next(iter(stage.agreed().values()))
    values = {**vars(high), "topic": "payments", "partition": 0, "number": 9}
    planned = {"status": "planned", "target_base_offset": None, "end_offset": 120}
    low = {name: vars(one) | planned for name, one in stage.agreed().items()}
    log = stage.topic.logs[TopicPartition(MIGRATIONS_TOPIC, 0)]
    for changed in (values, *low.values()):
        one = PartitionAgreement(**changed)
        log.append(Stored(one.key(), one.value()))
    for router in stage.routers:
        report = RouterReport(router, router, "producer", "all", agreed={"move": 9})
        log.append(Stored(report.key(), report.value()))
    stage.routers = ()
    stop, until_s = StageStop(stage), stage.now_s + 20
    stage.before_wait = lambda at: setattr(stop, "is_stopped", at.now_s > until_s)
    result = stage.run(routers=("writer", "reader"), stop=stop)
    first = result.agreements[ORDERS[0]]
    assert (first.status, first.number) == ("planned", 10)


def test_an_agreement_after_a_cancel_has_a_number_that_nobody_has_agreed_to(stage: MigrationStage) -> None:
    """Both routers had agreed to number 1, and hang: they do not know of the new one, which is nearer."""
    stage.run(goal=RunGoal.STARTED)
    log = stage.topic.logs[TopicPartition(MIGRATIONS_TOPIC, 0)]
    for one in stage.agreed().values():
        log.append(Stored(one.key(), None))
    stop = StageStop(stage)
    stage.before_wait = lambda at: setattr(stop, "is_stopped", at.now_s > 30)
    stage.routers, stage.offsets_per_s = (), 1.0
    result = stage.run(routers=("writer", "reader"), stop=stop)
    assert {one.status for one in result.agreements.values()} == {"planned"}
    assert {one.number for one in result.agreements.values()} == {2}


def shorter(stage: MigrationStage) -> None:
    stage.run()
    stage.origin.ends |= dict.fromkeys(ORDERS, 340)
    stage.offsets_per_s = 0.0


def test_a_migrated_origin_that_is_shorter_now_is_not_at_its_end(stage: MigrationStage) -> None:
    """The same command, until migrated."""
    shorter(stage)
    assert "has lost 10 records on the origin, at offsets 340 to 349" in str(stage.run().error)
    result = stage.run(accept_loss=True)
    assert (result.error, {one.origin_end for one in result.agreements.values()}) == (None, {340})
    assert stage.run().error is None


def test_a_migrated_origin_is_given_up_without_another_goal(stage: MigrationStage) -> None:
    stage.run()
    result = stage.run(ignore_origin=True)
    assert [(one.status, one.ignore_origin) for one in result.agreements.values()] == [("aged", True)] * 2


def test_a_dead_origin_is_given_up_also_if_the_run_is_to_go_to_the_start_alone(stage: MigrationStage) -> None:
    stage.run(goal=RunGoal.STARTED)
    stage.origin.down = True
    result = stage.run(goal=RunGoal.STARTED, ignore_origin=True)
    assert {one.status for one in result.agreements.values()} == {"aged"}


def test_an_origin_that_died_after_one_reading_is_ignored_by_the_rate_of_the_agreement(stage: MigrationStage) -> None:
    """The first reading of a run has no rate."""
    stage.routers = ()
    stop = StageStop(stage)
    stage.before_wait = lambda at: setattr(stop, "is_stopped", at.now_s > 10)
    stage.run(routers=("writer", "reader"), stop=stop)
    read_s, end = stage.now_s, stage.origin.end_of(ORDERS[0])

    def die(at: MigrationStage) -> None:
        at.origin.down = True
        at.routers = ("writer", "reader") if any(one.ignore_origin for one in at.agreed().values()) else ()

    stage.before_wait = die
    result = stage.run(ignore_origin=True, routers=("writer", "reader"))
    assert result.error is None
    # 10/s from the last reading on, for the 30 s until it counts as down, and a look more.
    assert result.agreements[ORDERS[0]].end_offset == pytest.approx(end + 10 * (stage.now_s - read_s), abs=60)


def test_a_topic_that_is_deleted_on_the_target_ends_the_run(stage: MigrationStage) -> None:
    def delete(at: MigrationStage) -> None:
        at.target.logs = {name: log for name, log in at.target.logs.items() if name not in ORDERS}

    once(stage, delete)
    stage.routers = ()
    result = stage.run(routers=("writer", "reader"))
    assert "topic orders: is not on the cluster new any more" in str(result.error)


@pytest.mark.parametrize(
    ("policy", "partitions", "expected"),
    [
        ("delete", 1, "cleanup.policy is delete"),
        ("compact,delete", 1, "cleanup.policy"),
        ("compact", 2, "2 partitions"),
    ],
)
def test_an_agreement_topic_that_does_not_keep_what_is_agreed_is_refused(
    stage: MigrationStage, policy: str, partitions: int, expected: str
) -> None:
    for partition in range(partitions):
        stage.target.fill(MIGRATIONS_TOPIC, partition, [])
    stage.target.settings[MIGRATIONS_TOPIC] = TopicRules(policy, 604_800_000, -1, 1, False)
    with pytest.raises(HeadroomError, match=expected):
        stage.run()
    assert stage.agreed() == {}


def test_a_group_that_left_an_aged_origin_has_passed_it(stage: MigrationStage) -> None:
    """It commits on the target alone from then on."""

    def age(at: MigrationStage) -> None:
        if at.agreed() and all(one.status == "migrated" for one in at.agreed().values()):
            at.origin.starts = {name: at.origin.end_of(name) for name in ORDERS}

    stage.before_wait = age
    stage.run(goal=RunGoal.AGED)
    stage.origin.group_states = {"billing": False}
    stage.origin.offsets = {"billing": {ORDERS[0]: 100, ORDERS[1]: 350}}
    assert "has not passed its end offset 350" in str(stage.run(goal=RunGoal.AGED, drop=True).error)
    stage.target.offsets = {"billing": {ORDERS[0]: 3}}
    result = stage.run(goal=RunGoal.AGED, drop=True)
    assert (result.error, stage.origin.deleted) == (None, ["orders"])
