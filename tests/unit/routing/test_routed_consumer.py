"""A routed consumer: where it reads and commits, and what it drops and skips."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.errors import KafkaConnectionError, NoOffsetForPartitionError
from kafka.future import Future

from headroom.routing import RoutedConsumer
from headroom.routing.consumer import routed_consumer
from headroom.schemas.errors import HeadroomError
from tests.unit.builders.agreements import TOPIC, agreement
from tests.unit.builders.routing import P0, Consuming, Stage
from tests.unit.fakes.kafka_clients import FakeConsumer, FakeProducer, Stored


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """E is 10, the base 3; the origin has 0 to 11 and the target x to z, then 100 to 102."""
    stage = Stage(patch=monkeypatch)
    stage.origin.logs[P0] += [Stored(b"k", str(n).encode()) for n in range(12)]
    stage.target.logs[P0] += [Stored(b"k", value) for value in (b"x", b"y", b"z", b"100", b"101", b"102")]
    yield stage
    stage.end()


def start(stage: Stage, **changes: Any) -> None:
    stage.agree(agreement())
    stage.agree(agreement(**{"status": "migrating", **changes}))


EXPECTED = [*((n, str(n).encode()) for n in range(10)), (10, b"100"), (11, b"101"), (12, b"102")]


def test_the_origin_is_read_below_the_end_offset_and_the_target_from_there(stage: Stage) -> None:
    start(stage)
    reading = stage.consumer()
    assert reading.read_all() == EXPECTED
    assert reading.routed.position(P0) == 13
    assert reading.routed.skipped(P0) == 0


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10, 11])
def test_the_size_of_polls_does_not_matter(stage: Stage, size: int) -> None:
    start(stage)
    reading = stage.consumer(max_poll_records=size)
    assert reading.read_all() == EXPECTED


def test_without_a_migration_the_origin_is_read(stage: Stage) -> None:
    assert stage.consumer().read_all() == [(n, str(n).encode()) for n in range(12)]


def test_while_planned_it_waits_at_the_end_offset(stage: Stage) -> None:
    stage.agree(agreement())
    reading = stage.consumer()
    assert reading.read_all() == EXPECTED[:10]
    reading.routed.commit()
    assert (stage.origin.committed, stage.target.committed) == ({P0: 10}, {})
    stage.agree(agreement(status="migrating"))
    reading.routed.follow()
    assert reading.read_all() == EXPECTED[10:]


def test_another_end_offset_lets_it_read_on(stage: Stage) -> None:
    stage.agree(agreement())
    reading = stage.consumer()
    reading.read_all()
    stage.agree(agreement(number=2, end_offset=11))
    reading.routed.follow()
    assert reading.read_all() == [(10, b"10")]


@pytest.mark.parametrize("restarts", [False, True])
def test_what_was_read_beyond_a_planned_end_offset_is_not_read_again_at_the_next_one(
    stage: Stage, restarts: bool
) -> None:
    """It read all 12 before it knew of end offset 10; 14 is agreed next."""
    reading = stage.consumer()
    assert len(reading.read_all()) == 12
    stage.agree(agreement())
    reading.routed.follow()
    assert reading.read_all() == []
    reading.routed.commit()
    if restarts:
        reading = stage.consumer()
        assert reading.read_all() == []
    stage.agree(agreement(number=2, end_offset=14))
    reading.routed.follow()
    stage.origin.logs[P0].append(Stored(b"k", b"12"))
    assert reading.read_all() == [(12, b"12")]


def test_offsets_are_committed_where_they_are_read(stage: Stage) -> None:
    start(stage)
    reading = stage.consumer(max_poll_records=4)
    reading.read()
    reading.routed.commit()
    assert (stage.origin.committed, stage.target.committed) == ({P0: 4}, {})
    reading.read_all()
    reading.routed.commit()
    # Client offset 13 is 6 on the target; the origin is passed.
    assert (stage.origin.committed, stage.target.committed) == ({P0: 10}, {P0: 6})


@pytest.fixture
def keeping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Consumers that keep their commits on the origin with every poll."""
    monkeypatch.setattr(routed_consumer, "_KEEP_S", 0.0)
    monkeypatch.setattr(routed_consumer, "_FOLLOW_S", 0.0)


@pytest.mark.usefixtures("keeping")
@pytest.mark.parametrize("is_planned", [False, True])
def test_what_the_origin_has_forgotten_is_committed_again(stage: Stage, is_planned: bool) -> None:
    """Kafka deletes the offsets of a group a week after its last member has left, also those committed since."""
    if is_planned:
        stage.agree(agreement(end_offset=4))
    stage.origin.committed[P0] = 0
    reading = stage.consumer(max_poll_records=4, auto_offset_reset="latest")
    assert reading.read() == [(n, str(n).encode()) for n in range(4)]
    reading.routed.commit()
    stage.origin.committed.clear()
    # Nothing comes, so that the application commits nothing.
    stage.origin.watermarks[P0] = 4
    reading.read()
    assert stage.origin.committed == {P0: 4}
    stage.origin.watermarks.clear()
    again = stage.consumer(name="another", auto_offset_reset="latest")
    assert again.read() == ([] if is_planned else [(n, str(n).encode()) for n in range(4, 12)])


@pytest.mark.usefixtures("keeping")
def test_what_another_member_has_committed_on_the_origin_is_kept(stage: Stage) -> None:
    reading = stage.consumer(max_poll_records=4)
    reading.read()
    # Without a commit there is nothing to keep.
    assert stage.origin.committed == {}
    reading.routed.commit()
    stage.origin.committed[P0] = 7
    reading.read()
    assert stage.origin.committed == {P0: 7}


@pytest.mark.usefixtures("keeping")
def test_an_origin_that_does_not_answer_is_not_asked_again_at_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(stage)
    reading = stage.consumer(max_poll_records=4)
    reading.read()
    asked: list[TopicPartition] = []

    def refuse(partition: TopicPartition, timeout_ms: int) -> int | None:
        asked.append(partition)
        raise KafkaConnectionError

    reading.origin.committed = refuse  # type: ignore[method-assign,assignment]
    monkeypatch.setattr(routed_consumer, "_KEEP_S", 60.0)
    reading.routed._readings[P0].kept_s -= 60.0
    reading.read()
    reading.read()
    assert asked == [P0]


def test_a_given_client_offset_is_committed_on_its_cluster(stage: Stage) -> None:
    start(stage)
    reading = stage.consumer()
    reading.read_all()
    reading.routed.commit({P0: 9})
    assert (stage.origin.committed, stage.target.committed) == ({P0: 9}, {})
    reading.routed.commit({P0: 10})
    assert (stage.origin.committed, stage.target.committed) == ({P0: 10}, {P0: 3})
    reading.routed.commit({P0: 12})
    assert stage.target.committed == {P0: 5}


@pytest.mark.parametrize("size", range(1, 14))
def test_a_restart_continues_at_what_is_committed(stage: Stage, size: int) -> None:
    start(stage)
    first = stage.consumer(max_poll_records=size)
    found = first.read()
    first.routed.commit()
    first.routed.close()
    assert found + stage.consumer().read_all() == EXPECTED


def test_what_the_group_committed_on_the_target_for_something_else_does_not_count(stage: Stage) -> None:
    """Base and later: the group had read the target before it was one."""
    start(stage)
    stage.origin.committed[P0] = 8
    stage.target.committed[P0] = 3
    assert stage.consumer().read_all() == EXPECTED[8:]


def test_a_hole_at_the_end_offset_does_not_stop_it(stage: Stage) -> None:
    stage.origin.logs[P0][8:] = [Stored(None, None)] * 2
    start(stage)
    assert stage.consumer().read_all() == EXPECTED[:8] + EXPECTED[10:]


def test_the_end_of_a_transaction_over_the_end_offset_does_not_stop_it(stage: Stage) -> None:
    stage.origin.logs[P0][9:] = [Stored(None, None)] * 3
    start(stage)
    assert stage.consumer().read_all() == EXPECTED[:9] + EXPECTED[10:]


@pytest.mark.parametrize(
    ("change", "skipped"), [({"status": "aged"}, 6), ({"ignore_origin": True}, 6), ({"origin_end": 4}, 6)]
)
def test_readers_of_an_origin_that_is_given_up_continue_on_the_target(
    stage: Stage, change: dict[str, Any], skipped: int
) -> None:
    start(stage)
    reading = stage.consumer(max_poll_records=4)
    assert reading.read() == EXPECTED[:4]
    stage.agree(agreement(**{"status": "migrating", **change}))
    reading.routed.follow()
    assert reading.read_all() == EXPECTED[10:]
    assert reading.routed.skipped(P0) == skipped


def test_an_origin_that_lost_its_end_is_read_up_to_there(stage: Stage) -> None:
    """Offsets 8 and 9 were lost: 8 is the end of the origin."""
    del stage.origin.logs[P0][8:]
    start(stage)
    reading = stage.consumer()
    assert reading.read_all() == EXPECTED[:8]
    stage.agree(agreement(status="migrating", origin_end=8))
    reading.routed.follow()
    assert reading.read_all() == EXPECTED[10:]
    assert reading.routed.skipped(P0) == 2


def test_while_the_origin_is_down_nothing_below_the_end_offset_is_read(stage: Stage) -> None:
    start(stage)
    reading = stage.consumer()
    reading.origin.fails = KafkaConnectionError()
    assert reading.read_all() == []
    reading.origin.fails = None
    assert reading.read_all() == EXPECTED


def test_a_reader_past_the_end_offset_does_not_need_the_origin(stage: Stage) -> None:
    start(stage)
    stage.target.committed[P0] = 4
    stage.origin.committed[P0] = 10
    reading = stage.consumer()
    reading.origin.fails = KafkaConnectionError()
    assert reading.read_all() == EXPECTED[11:]
    reading.routed.commit()
    assert stage.target.committed == {P0: 6}


@pytest.mark.parametrize(
    ("policy", "status", "expected"), [("latest", "migrating", []), ("latest", "planned", []), ("earliest", "aged", 10)]
)
def test_a_new_group_starts_by_its_policy(stage: Stage, policy: str, status: str, expected: Any) -> None:
    start(stage, status=status)
    found = stage.consumer(auto_offset_reset=policy).read_all()
    assert found == (EXPECTED[expected:] if expected else [])


def test_a_new_group_without_a_policy_is_an_error(stage: Stage) -> None:
    reading = stage.consumer(auto_offset_reset="none")
    with pytest.raises(NoOffsetForPartitionError):
        reading.read()


def test_a_seek_is_by_client_offset(stage: Stage) -> None:
    start(stage)
    reading = stage.consumer()
    reading.read_all()
    reading.routed.seek(P0, 9)
    assert reading.read_all() == EXPECTED[9:]
    reading.routed.seek(P0, 12)
    assert reading.read_all() == EXPECTED[12:]


@pytest.mark.parametrize("by_offsets", [False, True])
def test_a_restart_after_a_seek_back_continues_at_what_was_committed_last(stage: Stage, by_offsets: bool) -> None:
    start(stage)
    reading = stage.consumer()
    reading.read_all()
    reading.routed.commit()
    reading.routed.seek(P0, 9)
    reading.routed.commit({P0: 9} if by_offsets else None)
    assert stage.origin.committed == {P0: 9}
    assert stage.consumer().read_all() == EXPECTED[9:]
    assert reading.read_all() == EXPECTED[9:]
    reading.routed.commit()
    assert (stage.origin.committed, stage.target.committed) == ({P0: 10}, {P0: 6})
    assert stage.consumer().read_all() == []


def test_a_revoked_partition_is_neither_read_nor_committed(stage: Stage) -> None:
    start(stage)
    reading = stage.consumer(max_poll_records=4)
    reading.read()
    reading.target.give([])
    reading.routed.commit()
    assert stage.origin.committed == {}
    assert reading.read_all() == []
    reading.target.give([P0])
    # Nothing was committed: it begins again.
    assert reading.read() == EXPECTED[:4]


def test_a_consumer_agrees(stage: Stage) -> None:
    reading = stage.consumer("reader-1")
    stage.agree(agreement())
    reading.routed.follow()
    assert stage.agreed() == {"reader-1": 1}


@pytest.mark.parametrize(
    ("origin", "target", "match"),
    [
        ({"group_id": "g"}, {}, "group_id is None"),
        ({}, {"group_id": "g"}, "group_id"),
        ({"group_id": "g"}, {"group_id": "g", "enable_auto_commit": True}, "enable_auto_commit"),
        ({"group_id": "g", "auto_offset_reset": "latest"}, {"group_id": "g"}, "auto_offset_reset"),
    ],
)
def test_consumers_with_other_options_are_refused(
    stage: Stage, origin: dict[str, Any], target: dict[str, Any], match: str
) -> None:
    with pytest.raises(HeadroomError, match=match):
        RoutedConsumer(
            FakeConsumer(stage.origin, **origin),
            FakeConsumer(stage.target, **target),
            FakeProducer(stage.target, instant=True),
            stage.reader(),
            "reader",
        )


@pytest.mark.parametrize("change", [{"status": "aged"}, {"ignore_origin": True}])
@pytest.mark.parametrize("is_down", [False, True])
def test_a_group_that_left_an_origin_that_is_over_continues_where_it_committed(
    stage: Stage, change: dict[str, Any], is_down: bool
) -> None:
    """It had read 4 of 10 on the origin, and commits on the target alone from then on."""
    start(stage)
    reading = stage.consumer(max_poll_records=4)
    reading.read()
    reading.routed.commit()
    stage.agree(agreement(**{"status": "migrating", **change}))
    reading.routed.follow()
    assert reading.read(max_records=2) == EXPECTED[10:12]
    reading.routed.commit()
    assert (stage.origin.committed, stage.target.committed) == ({P0: 4}, {P0: 5})
    restarted = stage.consumer()
    restarted.origin.fails = KafkaConnectionError() if is_down else None
    assert restarted.read_all() == EXPECTED[12:]
    assert restarted.routed.skipped(P0) == 0


def test_an_unread_origin_that_does_not_answer_is_not_passed_by_what_the_target_had_before(stage: Stage) -> None:
    """The base is all that the group has there, from when the target was used for something else."""
    start(stage)
    stage.origin.committed[P0] = 8
    stage.target.committed[P0] = 3
    reading = stage.consumer()
    reading.origin.fails = KafkaConnectionError()
    assert reading.read_all() == []
    reading.origin.fails = None
    assert reading.read_all() == EXPECTED[8:]


def test_what_is_read_on_the_target_is_committed_while_the_origin_takes_nothing(stage: Stage) -> None:
    other = TopicPartition(TOPIC, 1)
    start(stage)
    stage.agree(agreement(partition=1, end_offset=2))
    stage.agree(agreement(partition=1, end_offset=2, status="migrating"))
    reading = stage.consumer(given=(P0, other), max_poll_records=50)
    stage.origin.logs[other].append(Stored(b"k", b"0"))
    reading.read_all()
    assert (reading.routed.position(P0), reading.routed.position(other)) == (13, 1)
    reading.origin.fails = KafkaConnectionError()
    with pytest.raises(KafkaConnectionError):
        reading.routed.commit()
    assert stage.target.committed == {P0: 6}


def test_an_origin_that_hangs_is_not_asked_about_one_partition_after_the_other(stage: Stage) -> None:
    names = [TopicPartition(TOPIC, partition) for partition in range(6)]
    reading = stage.consumer(given=names)
    calls = []

    def hang(partition: TopicPartition, timeout_ms: int | None = None) -> int | None:
        calls.append(partition)
        time.sleep(0.05)
        raise KafkaConnectionError

    reading.origin.committed = hang  # type: ignore[method-assign]
    assert reading.read() == []
    assert calls == names[:1]


def test_records_that_retention_deleted_before_the_end_offset_count_as_skipped(stage: Stage) -> None:
    """The client is reset to the log start, 10, as it asks for 4."""
    start(stage)
    reading = stage.consumer(max_poll_records=4)
    assert reading.read() == EXPECTED[:4]
    reading.origin.seek(P0, 11)
    reading.origin.beginning_offsets = lambda partitions: {P0: 11}  # type: ignore[method-assign]
    assert reading.read_all() == EXPECTED[10:]
    assert reading.routed.skipped(P0) == 6


def test_a_hole_at_the_end_offset_counts_for_nothing(stage: Stage) -> None:
    stage.origin.logs[P0][8:] = [Stored(None, None)] * 2
    start(stage)
    reading = stage.consumer()
    reading.read_all()
    assert reading.routed.skipped(P0) == 0


@pytest.mark.parametrize("side", ["origin", "target"])
def test_nothing_is_read_of_a_cluster_or_topic_that_was_replaced(stage: Stage, side: str) -> None:
    cluster = getattr(stage, side)
    cluster.topic_ids[TOPIC] = "first"
    stage.agree(agreement(**{f"{side}_topic_id": "first"}))
    stage.agree(agreement(**{f"{side}_topic_id": "first", "status": "migrating"}))
    reading = stage.consumer(max_poll_records=4)
    reading.read()
    cluster.topic_ids[TOPIC] = "second"
    with pytest.raises(HeadroomError, match=f"was recreated on the {side} since the agreement: its id is second"):
        poll_until_compared(reading)
    cluster.topic_ids[TOPIC] = "first"
    reading.read()
    cluster.cluster_id = "third"
    with pytest.raises(HeadroomError, match="is the cluster third now"):
        poll_until_compared(reading)


def poll_until_compared(reading: Consuming) -> None:
    """Poll at a time at which clusters are compared."""
    reading.routed._follower._next_compare = reading.routed._next_follow = 0.0
    reading.read()


def test_metadata_that_is_older_than_the_agreement_shows_no_replacement(stage: Stage) -> None:
    """The first answer is to a request that was on its way when the agreement was read."""
    asked: list[Future] = []

    def refresh() -> Future:
        if asked:
            stage.origin.topic_ids[TOPIC] = "newer"
        asked.append(Future().success(None))
        return asked[-1]

    stage.origin.refresh = refresh
    stage.origin.topic_ids[TOPIC] = "older"
    stage.agree(agreement(origin_topic_id="newer"))
    stage.agree(agreement(origin_topic_id="newer", status="migrating"))
    reading = stage.consumer()
    assert reading.read_all() == EXPECTED
    for _ in range(4):
        poll_until_compared(reading)
    assert len(asked) == 2


def test_metadata_that_is_not_answered_shows_no_replacement(stage: Stage) -> None:
    answers = [Future().failure(KafkaConnectionError()), Future()]
    stage.origin.refresh = lambda: answers.pop(0)
    stage.origin.topic_ids[TOPIC] = "older"
    stage.agree(agreement(origin_topic_id="newer"))
    stage.agree(agreement(origin_topic_id="newer", status="migrating"))
    reading = stage.consumer()
    for _ in range(4):
        poll_until_compared(reading)
    assert answers == []


@pytest.mark.parametrize("side", ["origin", "target"])
def test_a_reader_that_starts_after_a_topic_was_recreated_stops(stage: Stage, side: str) -> None:
    """Its end offset, base and commits are of the topic before."""
    getattr(stage, side).topic_ids[TOPIC] = "second"
    stage.agree(agreement(**{f"{side}_topic_id": "first"}))
    stage.agree(agreement(**{f"{side}_topic_id": "first", "status": "migrating"}))
    reading = stage.consumer()
    with pytest.raises(HeadroomError, match=f"was recreated on the {side} since the agreement: its id is second"):
        poll_until_compared(reading)


def test_an_origin_that_is_over_may_be_replaced(stage: Stage) -> None:
    stage.origin.topic_ids[TOPIC] = "first"
    start(stage, status="migrating")
    reading = stage.consumer(max_poll_records=4)
    reading.read()
    stage.agree(agreement(status="aged"))
    stage.origin.cluster_id = "third"
    reading.routed._follower._next_compare = 0.0
    reading.routed.follow()
    assert reading.read_all() == EXPECTED[10:]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_reader_that_has_passed_an_end_keeps_to_it_while_a_nearer_one_is_agreed(stage: Stage, restarts: bool) -> None:
    """It has read 10 and 11 of the target, which it would read again at another end, or pass over."""
    start(stage)
    reading = stage.consumer(max_poll_records=6)
    assert [*reading.read(), *reading.read(), *reading.read(2)][-2:] == EXPECTED[10:12]
    reading.routed.commit()
    stage.agree(agreement(end_offset=8, reopened_end=10, number=2))
    if restarts:
        reading.routed.close()
        reading = stage.consumer()
    else:
        reading.routed.follow()
        assert stage.agreed()["group-reader"] == 1
    assert reading.read_all() == EXPECTED[12:]
    stage.agree(agreement(status="migrating", number=2))
    reading.routed.follow()
    assert reading.read_all() == []
    assert stage.agreed()["group-reader"] == 2


def test_a_reader_below_a_nearer_end_waits_there_until_it_holds(stage: Stage) -> None:
    del stage.origin.logs[P0][8:]
    start(stage)
    reading = stage.consumer()
    assert reading.read_all() == EXPECTED[:8]
    stage.agree(agreement(end_offset=8, reopened_end=10, number=2))
    reading.routed.follow()
    assert reading.read_all() == []
    assert stage.agreed()["group-reader"] == 2
    stage.agree(agreement(status="migrating", end_offset=8, number=2))
    reading.routed.follow()
    assert reading.read_all() == [(8, b"100"), (9, b"101"), (10, b"102")]
    assert reading.routed.skipped(P0) == 0
