"""A run of a migration: its steps, its refusals, and that it continues wherever it was killed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from headroom.planning.migration.readings import TopicRules
from headroom.planning.migration.run.next_step import RunGoal
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MIGRATIONS_TOPIC
from tests.unit.fakes.migration_clusters import log_record
from tests.unit.fakes.migration_stage import BEGAN_MS, ORDERS, KilledError, MigrationStage, StageStop


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> MigrationStage:
    return MigrationStage().connect(monkeypatch)


def test_a_routed_migration_creates_topics_agrees_starts_and_seals(stage: MigrationStage) -> None:
    stage.origin.kafka_settings["orders"] = {"retention.ms": "1000", "min.insync.replicas": "2"}
    stage.target.brokers = 1
    result = stage.run()
    assert (result.error, result.stopped) == (None, False)
    assert [one.status for one in result.agreements.values()] == ["migrated", "migrated"]
    orders, created = {t.name: t for t in stage.target.created}["orders"], [t.name for t in stage.target.created]
    assert created == [MIGRATIONS_TOPIC, "orders"]
    # The origin has 3 replicas, and the target one broker.
    assert (orders.partitions, orders.replicas) == (2, 1)
    assert orders.settings == {"retention.ms": "1000", "min.insync.replicas": "1"}
    first = result.agreements[ORDERS[0]]
    # 100 + 5 s x 10/s measured, and 20 s x 10/s more.
    assert (first.end_offset, first.target_base_offset, first.number) == (350, 0, 1)
    assert (first.origin_cluster_id, first.target_cluster_id) == ("id of old", "id of new")
    assert (first.origin_topic_id, first.target_topic_id) == ("id of orders", "id of orders")
    assert result.agreements == stage.agreed()


def test_each_change_is_in_the_journal_with_what_changes(stage: MigrationStage) -> None:
    stage.run()
    done = [row for row in stage.rows if row.state == "done"]
    assert [row.state for row in stage.rows].count("intended") == len(done)
    assert {row.command for row in done} == {"migration run"}
    assert [(row.step, row.subject, row.after) for row in done[:2]] == [
        ("topic", f"topic {MIGRATIONS_TOPIC} on cluster new", "1"),
        ("topic", "topic orders on cluster new", "2"),
    ]
    agreed, started = [row for row in done if row.subject == "orders-0"][:2]
    assert agreed.before is None
    assert json.loads(agreed.after or "")["end_offset"] == 350
    assert json.loads(started.before or "") == {"target_base_offset": None, "status": "planned"}
    assert json.loads(started.after or "") == {"target_base_offset": 0, "status": "migrating"}


def test_it_waits_for_every_router_and_says_for_which(stage: MigrationStage) -> None:
    def stop_late(at: MigrationStage) -> None:
        stop.is_stopped = at.now_s > 15

    stage.before_wait, stop = stop_late, StageStop(stage)
    stage.routers = ("writer",)
    result = stage.run(routers=("writer", "reader"), stop=stop)
    assert result.stopped
    assert {one.status for one in result.agreements.values()} == {"planned"}
    assert "routers to agree: reader" in stage.progress.notes[-1]
    # 350 - 250 of each partition, after 15 s; 5 of them were the measurement.
    assert "offsets left, 20/s; end expected at" in stage.progress.notes[-1]
    # No rate is known at the first look.
    assert any("offsets left, an unknown rate" in note for note in stage.progress.notes)
    assert not any("offsets left, 0/s" in note for note in stage.progress.notes)


def test_a_router_that_agrees_too_late_needs_another_end(stage: MigrationStage) -> None:
    stage.routers = ("writer",)

    def agree_late(at: MigrationStage) -> None:
        at.routers = ("writer", "reader") if at.now_s > 60 else ("writer",)

    stage.before_wait = agree_late
    result = stage.run(routers=("writer", "reader"))
    first = result.agreements[ORDERS[0]]
    assert first.status == "migrated"
    assert first.number > 1
    # Past what was written before all had agreed: 100 + 60 s x 10.
    assert (first.end_offset or 0) > 700


def test_a_log_that_stops_before_its_end_gets_the_end_where_it_is(stage: MigrationStage) -> None:
    def leave(at: MigrationStage) -> None:
        at.offsets_per_s = 0.0 if at.now_s > 7 else 10.0
        at.routers = ("writer", "reader") if at.now_s > 40 else ("writer",)

    stage.before_wait, stage.routers = leave, ("writer",)
    result = stage.run(routers=("writer", "reader"))
    ends = {one.end_offset for one in result.agreements.values()}
    assert ends == {stage.origin.end_of(ORDERS[0])}


def stopped_below(stage: MigrationStage) -> int:
    """Start with E 350, let producers stop below it, and return where the logs end."""
    stage.run(goal=RunGoal.STARTED)
    stage.offsets_per_s = 0.0
    position = stage.origin.end_of(ORDERS[0])
    assert position < 350
    return position


def test_producers_that_stop_below_the_end_of_a_started_partition_get_a_nearer_one(stage: MigrationStage) -> None:
    position, stop = stopped_below(stage), StageStop(stage)
    began_s = stage.now_s
    stage.before_wait = lambda at: setattr(stop, "is_stopped", at.now_s > began_s + 60)
    assert stage.run(stop=stop).stopped
    assert {(one.status, one.end_offset) for one in stage.agreed().values()} == {("migrating", 350)}

    def agree_late(at: MigrationStage) -> None:
        at.routers = ("writer", "reader") if at.now_s > began_s + 100 else ("writer",)

    stage.before_wait, stage.routers = agree_late, ("writer",)
    result = stage.run(end_here=True, routers=("writer", "reader"))
    assert result.error is None
    assert {(one.status, one.end_offset, one.reopened_end) for one in result.agreements.values()} == {
        ("migrated", position, None)
    }
    assert any("routers to agree: reader" in note for note in stage.progress.notes)


def test_producers_that_write_again_while_a_nearer_end_is_agreed_get_one_that_they_reach(stage: MigrationStage) -> None:
    """They write 5/s from 20 s on, and all have agreed after 40 s: E is ahead of what is written then."""
    position, began_s = stopped_below(stage), stage.now_s

    def write_again(at: MigrationStage) -> None:
        at.offsets_per_s = 5.0 if at.now_s > began_s + 20 else 0.0
        at.routers = ("writer", "reader") if at.now_s > began_s + 40 else ("writer",)

    stage.before_wait, stage.routers = write_again, ("writer",)
    result = stage.run(end_here=True, routers=("writer", "reader"))
    assert result.error is None
    (end,) = {one.end_offset for one in result.agreements.values()}
    assert position + 20 * 5 <= (end or 0) <= 350
    assert {(one.status, one.target_base_offset) for one in result.agreements.values()} == {("migrated", 0)}


def test_a_log_that_gets_to_the_end_before_while_a_nearer_one_is_agreed_keeps_it(stage: MigrationStage) -> None:
    stopped_below(stage)
    began_s = stage.now_s

    def burst(at: MigrationStage) -> None:
        if at.now_s > began_s + 20:
            # Of a router that knew of nothing: it has moved what was beyond.
            at.origin.ends = dict.fromkeys(ORDERS, 355)
            at.target.ends = dict.fromkeys(ORDERS, 5)
        at.routers = ("writer",)

    stage.before_wait, stage.routers = burst, ("writer",)
    result = stage.run(end_here=True, routers=("writer", "reader"))
    assert result.error is None
    assert {(one.status, one.end_offset) for one in result.agreements.values()} == {("migrated", 350)}
    assert any("end offset 350 as before" in note for note in stage.progress.notes)


def test_a_run_that_is_killed_while_it_agrees_on_a_nearer_end_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    killed = 0
    while True:
        stage = MigrationStage().connect(monkeypatch)
        position = stopped_below(stage)
        stage.kill_at = stage._effects + killed + 1
        try:
            stage.run(end_here=True)
            break
        except KilledError:
            killed += 1
            # What it had begun is settled without the option too; what it had not is as it was.
            is_open = any(one.reopened_end is not None for one in stage.agreed().values())
            is_settled = any(one.end_offset == position for one in stage.agreed().values())
            assert stage.run(end_here=not (is_open or is_settled)).error is None
            assert {(one.status, one.end_offset) for one in stage.agreed().values()} == {("migrated", position)}
    # Before and after: open again, started, sealed.
    assert killed == 6


def test_routers_that_agree_while_only_leaders_have_what_they_wrote_get_an_end_beyond_it(
    stage: MigrationStage,
) -> None:
    """A follower hangs from 12 s to 60 s. E is 350; the leaders pass it at 25 s, and "reader" agrees at 30 s."""
    ends: list[int] = []

    def hang(at: MigrationStage) -> None:
        at.hangs = 12 < at.now_s < 60
        at.routers = ("writer", "reader") if at.now_s > 30 else ("writer",)
        if not ends and at.agreed() and at.agreed()[ORDERS[0]].status == "migrating":
            ends.append(at.origin.leader_end_of(ORDERS[0]))

    stage.before_wait, stage.routers = hang, ("writer",)
    result = stage.run(routers=("writer", "reader"))
    first = result.agreements[ORDERS[0]]
    assert (result.error, first.status) == (None, "migrated")
    # By the rate of the leader's log it is also ahead of it.
    assert (first.end_offset or 0) > ends[0] > 400


@pytest.mark.parametrize("waits", [False, True])
def test_producers_whose_records_only_leaders_have_did_not_leave(stage: MigrationStage, waits: bool) -> None:
    """A follower hangs for 20 s, longer than ``migration.quiet_s``. With acks=1 they write on, with "all" they wait."""

    def hang(at: MigrationStage) -> None:
        at.hangs = 12 < at.now_s < 32
        is_waiting = waits and 14 < at.now_s < 32
        at.offsets_per_s = 0.0 if is_waiting or at.now_s > 50 else 10.0

    stage.before_wait = hang
    result = stage.run("drained")
    assert result.error is None
    assert {one.end_offset for one in result.agreements.values()} == {stage.origin.end_of(ORDERS[0])}
    assert stage.now_s >= 60


def test_a_high_watermark_that_rests_below_the_end_is_no_loss(stage: MigrationStage) -> None:
    """The leaders are past E, 350, and routed records are on the target; a follower has 300."""
    stage.run(goal=RunGoal.STARTED)
    stage.offsets_per_s, stage.hangs = 0.0, True
    stage.origin.ends, stage.origin.unreplicated = dict.fromkeys(ORDERS, 300), dict.fromkeys(ORDERS, 60)
    stage.target.ends = dict.fromkeys(ORDERS, 5)
    began_s, stop = stage.now_s, StageStop(stage)
    stage.before_wait = lambda at: setattr(stop, "is_stopped", at.now_s > began_s + 30)
    result = stage.run(stop=stop, accept_loss=True)
    assert (result.error, result.stopped) == (None, True)
    assert {one.origin_end for one in result.agreements.values()} == {None}


@pytest.mark.parametrize("method", ["drained", "mirrored"])
def test_clients_that_are_moved_by_hand_are_waited_for(stage: MigrationStage, method: str) -> None:
    if method == "mirrored":
        for name in ORDERS:
            stage.target.fill("old.orders", name.partition, range(90))

    def leave(at: MigrationStage) -> None:
        at.offsets_per_s = 0.0 if at.now_s > 30 else 10.0
        if method == "drained" and at.now_s > 31 and at.agreed():
            # They begin on the target before the run knows that they have left.
            at.target.ends = dict.fromkeys(ORDERS, 7)
        if method == "mirrored" and at.now_s > 50:
            # It read some records twice.
            for name in ORDERS:
                at.target.fill("old.orders", name.partition, [*range(100), *range(80, 100)])

    stage.before_wait = leave
    result = stage.run(method)
    first = result.agreements[ORDERS[0]]
    assert result.error is None
    assert (first.status, first.end_offset) == ("migrated", stage.origin.end_of(ORDERS[0]))
    assert first.target_base_offset == (120 if method == "mirrored" else 0)
    assert first.routers == ()
    # 10 s of quiet after the last record; the mirror takes longer.
    assert stage.now_s >= (50 if method == "mirrored" else 40)


def test_a_mirror_that_is_behind_by_records_that_repeat_is_waited_for(stage: MigrationStage) -> None:
    """Its last record has the key and the value of the origin's last one, and is 50 before it."""
    beats = [log_record(at, at, b"k", b"beat") for at in range(100)]
    copies = [TopicPartition("old.orders", name.partition) for name in ORDERS]
    stage.origin.logs |= dict.fromkeys(ORDERS, beats)
    stage.target.logs |= dict.fromkeys(copies, beats[:50])
    stage.offsets_per_s = 0.0

    def copy_late(at: MigrationStage) -> None:
        if at.now_s > 60:
            at.target.logs |= dict.fromkeys(copies, beats)

    stage.before_wait = copy_late
    result = stage.run("mirrored")
    assert {(one.status, one.target_base_offset) for one in result.agreements.values()} == {("migrated", 100)}


def test_a_link_keeps_offsets(stage: MigrationStage) -> None:
    stage.offsets_per_s = 0.0
    for name in ORDERS:
        stage.target.fill("orders", name.partition, range(100))
    result = stage.run("linked")
    assert {(one.end_offset, one.target_base_offset) for one in result.agreements.values()} == {(100, 100)}


def test_until_aged_and_dropped(stage: MigrationStage) -> None:
    def age(at: MigrationStage) -> None:
        if all(one.status == "migrated" for one in at.agreed().values()) and at.agreed():
            at.origin.starts = {name: at.origin.end_of(name) for name in ORDERS}

    stage.before_wait = age
    stage.origin.group_states = {"billing": False}
    stage.origin.offsets = {"billing": {ORDERS[0]: 100, ORDERS[1]: 100}}
    result = stage.run(goal=RunGoal.AGED, drop=True)
    assert {one.status for one in result.agreements.values()} == {"aged"}
    assert "is at offset 100 of orders-0, and has not passed its end offset 350, and 1 more partitions" in str(
        result.error
    )
    assert stage.origin.deleted == []
    stage.origin.offsets = {"billing": {ORDERS[0]: 400, ORDERS[1]: 350}}
    result = stage.run(goal=RunGoal.AGED, drop=True)
    assert (result.error, result.dropped, stage.origin.deleted) == (None, ("orders",), ["orders"])
    assert "topic orders on cluster old" in {row.subject for row in stage.rows}
    assert {one.origin_dropped for one in result.agreements.values()} == {True}
    # And again: it is gone, and nothing calls the origin, which may be gone too.
    stage.origin.down, stage.origin.calls = True, 0
    again = stage.run(goal=RunGoal.AGED, drop=True)
    assert (again.error, again.dropped, stage.origin.deleted) == (None, (), ["orders"])
    assert stage.origin.calls == 0


def test_a_topic_that_may_only_be_hidden_is_not_taken_for_deleted(stage: MigrationStage) -> None:
    aged(stage)
    stage.before_wait = lambda at: None
    stage.origin.logs, stage.origin.hidden = {}, {"orders"}
    result = stage.run(goal=RunGoal.AGED, drop=True)
    assert (result.error, {one.origin_dropped for one in stage.agreed().values()}) == (None, {False})
    # Somebody else has deleted it.
    stage.origin.hidden = set()
    assert stage.run(goal=RunGoal.AGED, drop=True).error is None
    assert {one.origin_dropped for one in stage.agreed().values()} == {True}


def aged(stage: MigrationStage, **run: Any) -> None:
    """Bring the migration to its end, with producers that leave after 30 s."""

    def age(at: MigrationStage) -> None:
        at.offsets_per_s = 0.0 if at.now_s > 30 else 10.0
        if at.agreed() and all(one.status == "migrated" for one in at.agreed().values()):
            at.origin.starts = {name: at.origin.end_of(name) for name in ORDERS}

    stage.before_wait = age
    assert stage.run(goal=RunGoal.AGED, **run).error is None


def test_a_drained_origin_that_a_forgotten_producer_writes_to_is_not_deleted(stage: MigrationStage) -> None:
    aged(stage, method="drained")
    stage.offsets_per_s = 2.0
    stage.before_wait = lambda at: None
    result = stage.run("drained", RunGoal.AGED, drop=True)
    assert "orders-0 on the origin" in str(result.error)
    assert "offsets from E on are on the origin alone" in str(result.error)
    assert stage.origin.deleted == []
    # It has left, and retention has deleted what it wrote: nothing is lost with the topic any more.
    stage.offsets_per_s = 0.0
    stage.origin.starts = {name: stage.origin.end_of(name) for name in ORDERS}
    result = stage.run("drained", RunGoal.AGED, drop=True)
    assert (result.error, stage.origin.deleted) == (None, ["orders"])


def test_a_routed_origin_with_records_of_another_client_is_not_deleted(stage: MigrationStage) -> None:
    aged(stage)
    stage.before_wait = lambda at: None
    stage.now_s += 60.0
    for name in ORDERS:
        late = log_record(stage.origin.end_of(name), round(stage.now_s * 1000) + BEGAN_MS)
        stage.origin.logs[name].append(late)
        stage.origin.ends[name] = late.offset + 1
    result = stage.run(goal=RunGoal.AGED, drop=True)
    assert "clients that do not use the routing library wrote some of the" in str(result.error)
    assert stage.origin.deleted == []


def nowhere_else(stage: MigrationStage) -> None:
    """A record of each partition from its end offset on, which is older than the seal by its time."""
    stage.before_wait = lambda at: None
    for name in ORDERS:
        stage.origin.logs[name].append(log_record(stage.origin.end_of(name), 5))
        stage.origin.ends[name] += 1


def test_a_routed_origin_with_records_that_are_nowhere_else_is_not_deleted_whatever_their_time(
    stage: MigrationStage,
) -> None:
    """A plain producer had written them before the run saw the origin at its end, or with times of long ago."""
    aged(stage)
    nowhere_else(stage)
    result = stage.run(goal=RunGoal.AGED, drop=True)
    assert "topic orders on the origin: has 2 records from its end offsets on that are not on" in str(result.error)
    assert stage.origin.deleted == []
    for name in ORDERS:
        stage.target.logs[name].append(log_record(0, 5))
    result = stage.run(goal=RunGoal.AGED, drop=True)
    assert (result.error, result.dropped) == (None, ("orders",))


def test_a_target_that_is_compacted_does_not_show_what_was_moved(stage: MigrationStage) -> None:
    stage.origin.kafka_settings["orders"] = {"cleanup.policy": "compact"}
    aged(stage)
    nowhere_else(stage)
    assert stage.run(goal=RunGoal.AGED, drop=True).dropped == ("orders",)
    assert stage.notes == [
        "What orders has on the origin from its end offsets on was not compared: the target is compacted."
    ]


def test_a_run_that_is_stopped_while_it_compares_deletes_nothing(stage: MigrationStage) -> None:
    aged(stage)
    nowhere_else(stage)
    for name in ORDERS:
        stage.target.logs[name].append(log_record(0, 5))
    stop = StageStop(stage)
    stage.target.before_record = lambda name, record: setattr(stop, "is_stopped", True)
    result = stage.run(goal=RunGoal.AGED, drop=True, stop=stop)
    assert (result.stopped, result.error, stage.origin.deleted) == (True, None, [])


def test_a_named_group_that_no_cluster_has_is_not_taken_for_one_that_has_read_all(stage: MigrationStage) -> None:
    aged(stage)
    stage.origin.group_states = {"billing": False}
    stage.origin.offsets = {"billing": dict.fromkeys(ORDERS, 5)}
    migration = replace(stage.settings.migration, groups="biling")
    stage.settings = replace(stage.settings, migration=migration)
    result = stage.run(goal=RunGoal.AGED, drop=True)
    assert "group biling: is named in migration.groups, and neither cluster has it" in str(result.error)
    assert stage.origin.deleted == []
    # It has moved, and its offsets on the origin are gone.
    stage.target.group_states = {"biling": True}
    stage.target.offsets = {"biling": dict.fromkeys(ORDERS, 3)}
    assert stage.run(goal=RunGoal.AGED, drop=True).error is None


def test_a_run_that_is_stopped_while_it_looks_a_last_time_deletes_nothing(stage: MigrationStage) -> None:
    aged(stage)
    stop = StageStop(stage)

    def end_the_last_look(at: MigrationStage) -> None:
        stop.is_stopped = at.progress.steps[-1].startswith("Measuring rates")

    stage.before_wait = end_the_last_look
    result = stage.run(goal=RunGoal.AGED, drop=True, stop=stop)
    assert (result.error, result.stopped, stage.origin.deleted) == (None, True, [])


def test_a_topic_of_another_id_is_not_deleted(stage: MigrationStage) -> None:
    stage.origin.starts = dict.fromkeys(ORDERS, 10_000)
    stage.run(goal=RunGoal.AGED)
    stage.origin.topic_ids["orders"] = "another"
    assert "was recreated on the cluster old" in str(stage.run(goal=RunGoal.AGED, drop=True).error)
    assert stage.origin.deleted == []


def killed_everywhere(monkeypatch: pytest.MonkeyPatch, **run: Any) -> list[MigrationStage]:
    """Return the stages of runs that were killed at each of their effects, and then run again to the end."""
    stages: list[MigrationStage] = []
    while True:
        stage = MigrationStage(kill_at=len(stages) + 1).connect(monkeypatch)
        stages.append(stage)

        def clients(at: MigrationStage) -> None:
            at.offsets_per_s = 0.0 if at.now_s > 60 else 10.0
            if at.agreed() and all(one.status == "migrated" for one in at.agreed().values()):
                at.origin.starts = {name: at.origin.end_of(name) for name in ORDERS}

        stage.before_wait = clients
        try:
            stage.run(goal=RunGoal.AGED, drop=True, **run)
        except KilledError:
            assert stage.run(goal=RunGoal.AGED, drop=True, **run).error is None
            continue
        return stages


@pytest.mark.parametrize("method", ["routed", "drained"])
def test_a_run_that_is_killed_at_any_effect_continues(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    *killed, whole = killed_everywhere(monkeypatch, method=method)
    # Before and after: two topics, agreement, start, seal, age, and deletion.
    assert len(killed) >= 14
    for stage in killed:
        found = stage.agreed()
        assert {one.status for one in found.values()} == {"aged"}
        assert stage.origin.deleted == ["orders"]
        assert sorted(topic.name for topic in stage.target.created) == [MIGRATIONS_TOPIC, "orders"]
        # No end offset changed once the target was in use.
        assert {one.target_base_offset for one in found.values()} == {0}
        # Also if the run was killed after the deletion.
        assert {one.origin_dropped for one in found.values()} == {True}
    assert {one.status for one in whole.agreed().values()} == {"aged"}


def test_a_second_run_ends_the_first_with_a_clear_error(stage: MigrationStage) -> None:
    begun: list[Any] = []

    def second(at: MigrationStage) -> None:
        if at.agreed() and not begun:
            begun.append(None)
            begun[0] = at.run(goal=RunGoal.STARTED)

    stage.before_wait = second
    first = stage.run()
    assert "another writer of this migration has taken over" in str(first.error)
    assert begun[0].error is None


def test_a_target_that_does_not_answer_for_a_while_is_waited_for(stage: MigrationStage) -> None:
    def fail(at: MigrationStage) -> None:
        at.target.down = bool(at.agreed()) and 10 < at.now_s < 20

    stage.before_wait = fail
    assert stage.run().error is None
    assert any("tried again: cluster new: no broker answered" in note for note in stage.progress.notes)


def test_a_dead_origin_is_waited_for_or_ignored(stage: MigrationStage) -> None:
    def die(at: MigrationStage) -> None:
        at.origin.down = bool(at.agreed())
        at.routers = ("writer", "reader") if any(one.ignore_origin for one in at.agreed().values()) else ()
        stop.is_stopped = at.now_s > 60

    stage.before_wait, stop = die, StageStop(stage)
    stage.routers = ()
    waiting = stage.run(routers=("writer", "reader"), stop=stop)
    assert {one.status for one in waiting.agreements.values()} == {"planned"}
    assert "the origin to answer" in stage.progress.notes[-1]
    stop.is_stopped = False
    stage.before_wait = lambda at: setattr(
        at, "routers", ("writer", "reader") if any(one.ignore_origin for one in at.agreed().values()) else ()
    )
    read_s = (waiting.agreements[ORDERS[0]].origin_read_ms or 0) / 1000
    result = stage.run(ignore_origin=True, routers=("writer", "reader"))
    first = result.agreements[ORDERS[0]]
    assert (result.error, first.status, first.ignore_origin) == (None, "aged", True)
    # 150 at the reading, and 10/s since. It has to be down for 30 s, counted again by each run.
    age_s = 1_000 + 61 + 30 - read_s
    assert first.end_offset == pytest.approx(150 + 10 * age_s, abs=30)


def test_an_origin_that_comes_back_shorter_ends_the_run(stage: MigrationStage) -> None:
    stage.run()
    for name in ORDERS:
        stage.origin.ends[name] = 340
    stage.offsets_per_s = 0.0
    stopped = stage.run(goal=RunGoal.AGED)
    assert "has lost 10 records on the origin, at offsets 340 to 349" in str(stopped.error)
    stage.before_wait = lambda at: at.origin.starts.update(dict.fromkeys(ORDERS, 340))
    result = stage.run(goal=RunGoal.AGED, accept_loss=True)
    assert result.error is None
    assert {one.origin_end for one in result.agreements.values()} == {340}


def test_an_origin_that_never_reports_the_ends_of_leaders_is_looked_at_by_its_high_watermarks_once_it_is_used(
    stage: MigrationStage,
) -> None:
    """As Kafka before 2.3: its migration was started by an earlier Headroom."""
    stage.run()
    stage.origin.without_leader_end = set(ORDERS)
    stage.origin.ends, stage.offsets_per_s = dict.fromkeys(ORDERS, 340), 0.0
    assert "has lost 10 records on the origin" in str(stage.run(goal=RunGoal.AGED).error)


def test_nothing_begins_on_an_origin_that_does_not_report_the_ends_of_leaders(stage: MigrationStage) -> None:
    stage.origin.without_leader_end = {ORDERS[1]}
    with pytest.raises(HeadroomError, match="orders-1: has an unknown log end on its leader on the origin"):
        stage.run("drained")
    assert stage.agreed() == {}


def test_a_loss_is_accepted_where_the_log_ends_once_all_routers_have_left_the_origin(stage: MigrationStage) -> None:
    """A producer that knows of nothing fills 3 of the 10 lost offsets after 20 s, and follows after 40 s."""
    stage.run()
    stage.origin.ends, stage.offsets_per_s, began_s = dict.fromkeys(ORDERS, 340), 0.0, stage.now_s

    def follow_late(at: MigrationStage) -> None:
        if at.now_s > began_s + 20:
            at.origin.ends = dict.fromkeys(ORDERS, 343)
        at.routers = ("writer", "reader") if at.now_s > began_s + 40 else ("reader",)

    stage.before_wait, stage.routers = follow_late, ("reader",)
    result = stage.run(accept_loss=True, routers=("writer", "reader"))
    assert result.error is None
    assert {(one.origin_closed, one.origin_end) for one in result.agreements.values()} == {(True, 343)}
    assert any("routers to leave the origin: writer" in note for note in stage.progress.notes)
    lines = [note for note in stage.progress.notes if "which has lost records" in note]
    assert lines[0] == "orders-0: routers leave the origin, which has lost records, end offset 350, agreement 2"


def two_partitions_more(stage: MigrationStage) -> None:
    for partition in range(3):
        stage.target.fill("orders", partition, [])


def not_empty(stage: MigrationStage) -> None:
    for name in ORDERS:
        stage.target.fill("orders", name.partition, range(5))


def one_cluster(stage: MigrationStage) -> None:
    stage.target.cluster_id = stage.origin.cluster_id = "same"


def no_id(stage: MigrationStage) -> None:
    stage.origin.topics = lambda: MigrationStage().origin.topics()._replace(cluster_id=None)  # type: ignore[method-assign]


def open_transaction(stage: MigrationStage) -> None:
    stage.origin.stables = dict.fromkeys(ORDERS, 90)


def no_leader(stage: MigrationStage) -> None:
    stage.origin.leaderless = {ORDERS[0]}


def compacted(stage: MigrationStage) -> None:
    stage.origin.settings["orders"] = TopicRules("compact", -1, -1, 2, False)


@pytest.mark.parametrize(
    ("spoil", "method", "expected"),
    [
        (two_partitions_more, "routed", "another number of partitions on the target, 3, than on the origin, 2"),
        (not_empty, "routed", "is not empty on the target"),
        (not_empty, "drained", "is not empty on the target"),
        (one_cluster, "routed", "leads to the same cluster"),
        (no_id, "routed", "reports no cluster id"),
        (open_transaction, "routed", "has an open transaction"),
        (no_leader, "routed", "has an unknown log end on the origin"),
        (compacted, "drained", "is compacted"),
        (lambda stage: None, "mirrored", "is not on the target"),
    ],
)
def test_what_forbids_a_migration_is_refused_before_anything_is_changed(
    stage: MigrationStage, spoil: Any, method: str, expected: str
) -> None:
    spoil(stage)
    with pytest.raises(HeadroomError, match=expected):
        stage.run(method)
    assert (stage.target.created, stage.rows) == ([], [])


def test_routed_clients_need_names_and_compaction_is_no_reason_against_them(stage: MigrationStage) -> None:
    with pytest.raises(HeadroomError, match="has no routers"):
        stage.run(routers=())
    compacted(stage)
    assert stage.run().error is None


def test_a_topic_that_is_recreated_midway_ends_the_run(stage: MigrationStage) -> None:
    for cluster in (stage.origin, stage.target):

        def recreate(at: MigrationStage, own: Any = cluster) -> None:
            if at.agreed():
                own.topic_ids["orders"] = "another"

        stage.before_wait = recreate
        error = str(stage.run().error)
        assert "was recreated on the" in error
        assert "its id is another, not id of orders" in error
        cluster.topic_ids = {}


def test_another_origin_than_the_agreed_one_is_refused(stage: MigrationStage) -> None:
    stage.run(goal=RunGoal.STARTED)
    stage.origin.cluster_id = "third"
    assert "leads to the cluster third, and the migration is from id of old" in str(stage.run().error)


def test_a_topic_of_another_migration_or_method_is_refused(stage: MigrationStage) -> None:
    stage.run(goal=RunGoal.STARTED)
    with pytest.raises(HeadroomError, match="was agreed to migrate by the method routed"):
        stage.run("drained")
    with pytest.raises(HeadroomError, match="belongs to the migration move already"):
        stage.run(migration="other")


def test_a_partition_that_is_shielded_is_never_called(stage: MigrationStage) -> None:
    stage.run(goal=RunGoal.STARTED)
    reader = stage.reader()
    writer = stage.writer("move", reader)
    writer.open(1.0)
    writer.write([replace(one, shielded=True) for one in stage.agreed().values()])
    stage.origin.calls = 0
    stop = StageStop(stage)

    def stop_late(at: MigrationStage) -> None:
        stop.is_stopped = at.now_s > 100

    stage.before_wait = stop_late
    assert stage.run(stop=stop).stopped
    assert stage.origin.calls == 0
    assert "the end of its shield" in stage.progress.notes[-1]


def test_without_a_journal_the_change_is_made_with_a_note(
    stage: MigrationStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(rows: Any) -> None:
        raise HeadroomError("store", "cannot be written", "Look at it.")

    monkeypatch.setattr(stage, "append", fail)
    assert stage.run().error is None
    assert all("is not in the journal" in note for note in stage.notes)
    assert TopicPartition("orders", 0) in stage.target.logs
