"""A routed producer: what it acknowledges, holds and moves."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.errors import IllegalStateError, KafkaError, KafkaTimeoutError
from kafka.future import Future
from kafka.partitioner import StickyPartitioner

from headroom.routing import RoutedProducer
from headroom.routing.producer.partition_route import UnknownFateError
from headroom.schemas.errors import HeadroomError
from headroom.schemas.migrations import MIGRATIONS_TOPIC, AcknowledgedEnd
from tests.unit.builders.agreements import TOPIC, agreement
from tests.unit.builders.routing import P0, Router, Stage
from tests.unit.fakes.kafka_clients import FakeCluster, FakeConsumer, FakeProducer, Stored


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    stage = Stage(patch=monkeypatch)
    yield stage
    stage.end()


def send(router: Router, *values: bytes) -> list[Any]:
    return [router.routed.send(TOPIC, value, partition=0) for value in values]


def offsets(futures: list[Any]) -> list[int | None]:
    """Offsets of acknowledged records; None for others."""
    return [future.value.offset if future.is_done and future.exception is None else None for future in futures]


def migrating(stage: Stage, end_offset: int) -> Router:
    """A router that has followed an agreement and the start of its migration."""
    router = stage.producer()
    stage.agree(agreement(end_offset=end_offset))
    router.routed.follow()
    stage.agree(agreement(end_offset=end_offset, status="migrating"))
    router.routed.follow()
    return router


def answer(router: Router, count: int) -> None:
    for _ in range(count):
        assert router.origin.answer(P0)


def test_without_a_migration_futures_are_the_origins_own(stage: Stage) -> None:
    router = stage.producer()
    (future,) = send(router, b"a")
    assert future is router.origin.waiting[P0][0].future
    answer(router, 1)
    assert offsets([future]) == [0]


def test_a_switch(stage: Stage) -> None:
    """E is 2, the base 3: what lands at 2 and 3 goes to offsets 3 and 4 of the target, as client offsets 2 and 3."""
    stage.target.logs[P0] += [Stored(b"", b"before")] * 3
    router = migrating(stage, 2)
    futures = send(router, b"a", b"b", b"c", b"d")
    answer(router, 3)
    # c waits for nothing, while d may still land anywhere; so what follows them is not sent yet.
    futures += send(router, b"e")
    assert [sent.stored.value for sent in router.target.waiting[P0]] == [b"c"]
    answer(router, 1)
    assert [sent.stored.value for sent in router.target.waiting[P0]] == [b"c", b"d", b"e"]
    assert offsets(futures) == [0, 1, None, None, None]
    futures += send(router, b"f")
    assert not router.origin.waiting[P0]
    while router.target.answer(P0):
        pass
    assert offsets(futures) == [0, 1, 2, 3, 4, 5]
    assert futures[5].get().offset == 5
    assert stage.target.values(TOPIC)[3:] == [b"c", b"d", b"e", b"f"]


def batched(router: Router, records: int) -> Router:
    router.origin.batch_records = router.target.batch_records = records
    return router


def test_a_batch_over_the_end_offset_is_acknowledged_below_it_and_moved_from_there(stage: Stage) -> None:
    """E is 5: the second batch lands at 3 to 5."""
    router = batched(migrating(stage, 5), 3)
    futures = send(router, b"a", b"b", b"c", b"d", b"e", b"f", b"g")
    answer(router, 2)
    assert offsets(futures) == [0, 1, 2, 3, 4, None, None]
    assert [sent.stored.value for sent in router.target.waiting[P0]] == [b"f"]
    answer(router, 1)
    assert [sent.stored.value for sent in router.target.waiting[P0]] == [b"f", b"g"]


def test_a_record_behind_an_answered_batch_belongs_to_the_next_one(stage: Stage) -> None:
    router = batched(migrating(stage, 3), 4)
    futures = send(router, b"a", b"b")
    answer(router, 1)
    futures += send(router, b"c", b"d")
    assert offsets(futures) == [0, 1, None, None]
    answer(router, 1)
    assert offsets(futures) == [0, 1, 2, None]
    assert [sent.stored.value for sent in router.target.waiting[P0]] == [b"d"]


def test_a_batch_that_fails_is_neither_acknowledged_nor_moved(stage: Stage) -> None:
    router = batched(migrating(stage, 3), 2)
    futures = send(router, b"a", b"b", b"c", b"d")
    router.origin.lose(P0, stored=True)
    answer(router, 1)
    assert [type(future.exception) for future in futures[:2]] == [KafkaTimeoutError] * 2
    assert offsets(futures[2:]) == [2, None]
    assert [sent.stored.value for sent in router.target.waiting[P0]] == [b"d"]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_a_batch_that_is_split_is_decided_by_its_parts(stage: Stage, size: int) -> None:
    """5 records are sent as 2 batches, and the second one of those again."""
    router = batched(migrating(stage, 4), 5)
    futures = send(router, b"a", b"b", b"c", b"d", b"e")
    router.origin.split(P0, size)
    answer(router, 1)
    router.origin.split(P0, 1)
    while router.origin.answer(P0):
        pass
    assert offsets(futures) == [0, 1, 2, 3, None]
    assert [sent.stored.value for sent in router.target.waiting[P0]] == [b"e"]


def test_callbacks_are_called_in_order_once_all_before_them_are_decided(stage: Stage) -> None:
    """E is 3. The second batch is answered first, as after a retry of the first one."""
    stage.target.logs[P0] += [Stored(b"", b"before")] * 3
    router = batched(migrating(stage, 3), 2)
    futures = send(router, b"a", b"b", b"c", b"d")
    seen: list[int] = []
    for future in futures:
        future.add_callback(lambda metadata: seen.append(metadata.offset))
    first = [router.origin.waiting[P0].popleft() for _ in range(2)]
    stage.origin.logs[P0] += [sent.stored for sent in first]
    answer(router, 1)
    assert seen == []
    for offset, sent in enumerate(first):
        sent.acknowledge(offset)
    assert seen == [0, 1, 2]
    router.target.answer(P0)
    assert seen == [0, 1, 2, 3]


def test_a_callback_may_send(stage: Stage) -> None:
    router = batched(migrating(stage, 5), 2)
    futures = send(router, b"a", b"b")
    futures[0].add_callback(lambda _: futures.extend(send(router, b"c")))
    answer(router, 2)
    assert offsets(futures) == [0, 1, 2]


def test_a_record_can_be_awaited_before_and_after_it_is_decided(stage: Stage) -> None:
    router = migrating(stage, 5)
    before, after = send(router, b"a", b"b")
    with pytest.raises(KafkaTimeoutError):
        before.get(0)
    answer(router, 2)
    assert (before.get().offset, after.get().offset) == (0, 1)
    assert after.succeeded()


def test_while_planned_what_lands_beyond_is_held(stage: Stage) -> None:
    router = stage.producer()
    stage.agree(agreement(end_offset=1))
    router.routed.follow()
    futures = send(router, b"a", b"b")
    answer(router, 2)
    futures += send(router, b"c")
    assert offsets(futures) == [0, None, None]
    assert not router.target.waiting[P0]
    assert not router.origin.waiting[P0]
    with pytest.raises(KafkaTimeoutError):
        router.routed.flush(0.01)


def test_another_end_offset_acknowledges_what_is_below_it_and_sends_the_rest(stage: Stage) -> None:
    router = stage.producer()
    stage.agree(agreement(end_offset=1))
    router.routed.follow()
    futures = send(router, b"a", b"b")
    answer(router, 2)
    futures += send(router, b"c")
    stage.agree(agreement(end_offset=9, number=2))
    router.routed.follow()
    assert offsets(futures) == [0, 1, None]
    answer(router, 1)
    assert offsets(futures) == [0, 1, 2]


def test_a_withdrawn_migration_acknowledges_and_sends_all(stage: Stage) -> None:
    router = stage.producer()
    stage.agree(agreement(end_offset=1))
    router.routed.follow()
    futures = send(router, b"a", b"b")
    answer(router, 2)
    futures += send(router, b"c")
    stage.writer.write([], withdrawn=[agreement()])
    router.routed.follow()
    answer(router, 1)
    assert offsets(futures) == [0, 1, 2]


def test_a_record_of_unknown_fate_is_an_error_and_is_never_moved(stage: Stage) -> None:
    stage.target.logs[P0] += [Stored(b"", b"before")] * 3
    router = migrating(stage, 1)
    lost, moved, last = send(router, b"a", b"b", b"c")
    router.origin.lose(P0, stored=True)
    answer(router, 1)
    router.origin.lose(P0, stored=False)
    assert isinstance(lost.exception, KafkaTimeoutError)
    assert isinstance(last.exception, KafkaTimeoutError)
    assert [sent.stored.value for sent in router.target.waiting[P0]] == [b"b"]
    router.target.answer(P0)
    assert offsets([moved]) == [1]


def test_an_answer_without_an_offset_is_an_unknown_fate(stage: Stage) -> None:
    router = stage.producer()
    stage.agree(agreement())
    router.routed.follow()
    (future,) = send(router, b"a")
    sent = router.origin.waiting[P0].popleft()
    sent.future.success(type("Metadata", (), {"offset": -1})())
    assert isinstance(future.exception, UnknownFateError)


def test_once_the_origin_is_full_a_new_producer_writes_to_the_target_alone(stage: Stage) -> None:
    stage.agree(agreement())
    stage.agree(agreement(status="migrating"))
    stage.agree(agreement(status="migrated"))
    router = stage.producer()
    send(router, b"a")
    assert not router.origin.waiting[P0]
    assert [sent.stored.value for sent in router.target.waiting[P0]] == [b"a"]


@pytest.mark.parametrize("change", [{"ignore_origin": True}, {"origin_end": 1}])
def test_an_origin_that_is_given_up_gets_no_more_records(stage: Stage, change: dict[str, Any]) -> None:
    router = stage.producer()
    stage.agree(agreement())
    router.routed.follow()
    stage.agree(agreement(status="migrating"))
    router.routed.follow()
    futures = send(router, b"a")
    stage.agree(agreement(status="migrating", **change))
    router.routed.follow()
    futures += send(router, b"b")
    # The first one may still be on the origin; the second must not pass it.
    assert not router.target.waiting[P0]
    router.origin.lose(P0, stored=False)
    assert [sent.stored.value for sent in router.target.waiting[P0]] == [b"b"]
    assert futures[0].exception is not None


def test_a_producer_agrees_that_it_leaves_an_origin_once_nothing_is_on_its_way_there(stage: Stage) -> None:
    """E is 10, of which the origin has lost all. What lands below is acknowledged, and what comes later is moved.

    Another partition has no leader, so that a flush of the whole producer never ends.
    """
    stage.target.logs[P0] += [Stored(b"", b"before")] * 3
    router = migrating(stage, 10)
    futures = send(router, b"a")
    stage.agree(agreement(status="migrating", number=2, origin_closed=True))

    def hang(timeout: float | None = None) -> None:
        raise KafkaTimeoutError

    router.origin.flush = hang  # type: ignore[method-assign]
    for _ in range(2):
        router.routed.follow()
    futures += send(router, b"b")
    assert (stage.agreed(), list(router.target.waiting[P0])) == ({"writer": 1}, [])
    answer(router, 1)
    router.routed.follow()
    assert (stage.agreed(), stage.origin.values(TOPIC)) == ({"writer": 2}, [b"a"])
    assert router.target.answer(P0)
    assert offsets(futures) == [0, 10]


def test_a_producer_agrees_after_all_that_it_sent_before_is_answered(stage: Stage) -> None:
    router = stage.producer()
    futures = send(router, b"a")
    stage.agree(agreement())
    assert stage.agreed() == {}
    router.routed.follow()
    assert stage.agreed() == {"writer": 1}
    # The fake answers all when it is flushed.
    assert offsets(futures) == [0]


def test_a_record_that_is_sent_while_its_producer_agrees_is_held_too(stage: Stage) -> None:
    """The agreement comes between the look at the routes and the return of the origin's ``send``."""
    router = stage.producer()
    stage.origin.logs[P0] += [Stored(b"", b"x")] * 3
    stage.agree(agreement(end_offset=3))
    router.origin.flush = lambda timeout=None: None  # type: ignore[method-assign]

    def follow_once() -> None:
        router.origin.after_send = lambda: None
        router.routed.follow()

    router.origin.after_send = follow_once
    futures = send(router, b"a")
    assert stage.agreed() == {"writer": 1}
    answer(router, 1)
    assert offsets(futures) == [None]
    stage.agree(agreement(end_offset=3, status="migrating"))
    router.routed.follow()
    assert [sent.stored.value for sent in router.target.waiting[P0]] == [b"a"]


def test_too_much_that_is_held_is_an_error(stage: Stage) -> None:
    """100 bytes are held at most, 60 and 60 are more."""
    router = stage.producer()
    router.origin.config["max_block_ms"] = 10
    stage.agree(agreement(end_offset=0))
    router.routed.follow()
    send(router, b"a")
    answer(router, 1)
    send(router, b"b" * 60)
    with pytest.raises(KafkaTimeoutError, match="60 bytes"):
        send(router, b"c" * 60)


def test_the_leader_before_is_reported_with_what_it_acknowledged(stage: Stage) -> None:
    router = stage.producer()
    stage.agree(agreement())
    router.routed.follow()
    send(router, b"a", b"b", b"c")
    answer(router, 2)
    stage.origin.epochs[P0] = 4
    answer(router, 1)
    router.routed.follow()
    reader = stage.reader()
    reader.read_to_end(1.0)
    assert reader.reports["writer"].acknowledged == (AcknowledgedEnd(TOPIC, 0, 0, 2, "old"),)
    assert reader.reports["writer"].acks == "all"


def test_what_a_leader_acknowledged_is_reported_with_the_id_of_the_topic(stage: Stage) -> None:
    router = stage.producer()
    stage.origin.topic_ids[TOPIC] = "i"
    stage.agree(agreement(origin_topic_id="i"))
    router.routed.follow()
    send(router, b"a", b"b")
    answer(router, 2)
    stage.origin.epochs[P0] = 4
    router.routed.follow()
    assert reported(stage) == (AcknowledgedEnd(TOPIC, 0, 0, 2, origin_topic_id="i"),)


def test_of_a_recreated_topic_only_its_own_leaders_are_reported(stage: Stage) -> None:
    """The topic before had 3 records and epoch 5; the new one gets one in epoch 0, before its next leader."""
    router = stage.producer()
    stage.origin.epochs[P0], stage.origin.topic_ids[TOPIC] = 5, "i"
    stage.agree(agreement())
    router.routed.follow()
    send(router, b"a", b"b", b"c")
    answer(router, 3)
    stage.origin.logs[P0].clear()
    # kafka-python gives no epoch the first time that it sees another id.
    stage.origin.epochs[P0], stage.origin.topic_ids[TOPIC] = -1, "j"
    router.routed.follow()
    stage.origin.epochs[P0] = 0
    router.routed.follow()
    assert reported(stage) == ()
    send(router, b"d")
    answer(router, 1)
    stage.origin.epochs[P0] = 1
    router.routed.follow()
    assert reported(stage) == (AcknowledgedEnd(TOPIC, 0, 0, 1, origin_topic_id="j"),)


def test_a_later_leader_hides_no_loss_of_an_earlier_one(stage: Stage) -> None:
    """The first leader acknowledged 3 records, and the second one has the last of them as its own."""
    router = stage.producer()
    stage.agree(agreement())
    router.routed.follow()
    send(router, b"a", b"b", b"c", b"d")
    answer(router, 3)
    stage.origin.epochs[P0] = 1
    router.routed.follow()
    answer(router, 1)
    stage.origin.epochs[P0] = 2
    router.routed.follow()
    assert reported(stage) == (AcknowledgedEnd(TOPIC, 0, 0, 3, "old"), AcknowledgedEnd(TOPIC, 0, 1, 4, "old"))


def test_metadata_that_shows_an_earlier_leader_again_reports_nothing_of_it(stage: Stage) -> None:
    """The leader of epoch 5 had acknowledged 2 records, and that of 6 two more: the first one has lost none."""
    router = stage.producer()
    stage.origin.epochs[P0] = 5
    stage.agree(agreement())
    router.routed.follow()
    send(router, b"a", b"b", b"c", b"d")
    answer(router, 2)
    for epoch, answers in ((6, 1), (5, 1), (6, 0)):
        stage.origin.epochs[P0] = epoch
        router.routed.follow()
        answer(router, answers)
    router.routed.follow()
    assert reported(stage) == (AcknowledgedEnd(TOPIC, 0, 5, 2, "old"),)


def test_an_epoch_of_the_same_leader_reports_nothing_of_the_one_before(stage: Stage) -> None:
    """Broker 1 leads in epochs 5 and 6: what it has acknowledged before this is seen may be of either.

    Reported under 5 the records of 6 would count as lost. They are reported under 6, once broker 2 leads.
    """
    router = stage.producer()
    stage.origin.epochs[P0], stage.origin.leaders[P0] = 5, 1
    stage.agree(agreement())
    router.routed.follow()
    send(router, b"a", b"b", b"c")
    answer(router, 2)
    stage.origin.epochs[P0] = 6
    router.routed.follow()
    assert reported(stage) == ()
    answer(router, 1)
    stage.origin.epochs[P0], stage.origin.leaders[P0] = 7, 2
    router.routed.follow()
    assert reported(stage) == (AcknowledgedEnd(TOPIC, 0, 6, 3, "old"),)


def test_a_leader_that_comes_back_after_another_one_is_reported(stage: Stage) -> None:
    """From 5 to 7 broker 2 may have led in between, without the records of broker 1."""
    router = stage.producer()
    stage.origin.epochs[P0], stage.origin.leaders[P0] = 5, 1
    stage.agree(agreement())
    router.routed.follow()
    send(router, b"a", b"b")
    answer(router, 2)
    stage.origin.epochs[P0] = 7
    router.routed.follow()
    assert reported(stage) == (AcknowledgedEnd(TOPIC, 0, 5, 2, "old"),)


def test_metadata_that_is_replaced_while_it_is_read_makes_no_new_leader_the_same_one(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broker 1 leads in 5 and 6, broker 2 in 7, which is there when the leader of 6 is looked up."""
    router = stage.producer()
    stage.origin.epochs[P0], stage.origin.leaders[P0] = 5, 1
    stage.agree(agreement())
    router.routed.follow()
    send(router, b"a", b"b", b"c")
    answer(router, 2)

    def replaced(_: TopicPartition) -> int:
        stage.origin.epochs[P0], stage.origin.leaders[P0] = 7, 2
        return 2

    stage.origin.epochs[P0] = 6
    with monkeypatch.context() as patch:
        patch.setattr(stage.origin, "leader_for_partition", replaced)
        answer(router, 1)
    router.routed.follow()
    assert reported(stage) == (AcknowledgedEnd(TOPIC, 0, 5, 2, "old"), AcknowledgedEnd(TOPIC, 0, 6, 3, "old"))


def test_leaders_are_asked_for_now_and_then_while_records_may_go_to_the_origin(stage: Stage) -> None:
    asked: list[Future] = []

    def refresh() -> Future:
        asked.append(Future().success(None))
        return asked[-1]

    stage.origin.refresh = refresh
    router = stage.producer()

    def follow_later() -> int:
        asked.clear()
        router.routed._next_metadata_s = 0.0
        router.routed.follow()
        router.routed.follow()
        return len(asked)

    assert follow_later() == 0
    stage.agree(agreement(end_offset=0))
    assert follow_later() == 1
    stage.agree(agreement(end_offset=0, status="migrated"))
    assert follow_later() <= 1
    assert follow_later() == 0


def test_a_restarted_producer_keeps_what_was_reported_under_its_name(stage: Stage) -> None:
    router = stage.producer()
    stage.agree(agreement())
    router.routed.follow()
    send(router, b"a", b"b")
    answer(router, 2)
    stage.origin.epochs[P0] = 4
    router.routed.follow()
    before = reported(stage)
    assert before == (AcknowledgedEnd(TOPIC, 0, 0, 2, "old"),)
    stage.producer().routed.follow()
    assert reported(stage) == before


def reported(stage: Stage) -> tuple[AcknowledgedEnd, ...]:
    """Return what the producer has reported about leaders."""
    reader = stage.reader()
    reader.read_to_end(1.0)
    return reader.reports["writer"].acknowledged


def test_a_close_fails_what_is_held(stage: Stage) -> None:
    router = stage.producer()
    stage.agree(agreement(end_offset=0))
    router.routed.follow()
    futures = send(router, b"a", b"b")
    answer(router, 2)
    router.routed.close(timeout=0.01)
    assert [type(future.exception) for future in futures] == [KafkaTimeoutError] * 2
    with pytest.raises(IllegalStateError):
        send(router, b"c")


def test_a_callback_gets_the_client_offset(stage: Stage) -> None:
    stage.agree(agreement())
    stage.agree(agreement(status="migrating"))
    stage.agree(agreement(status="migrated"))
    stage.target.logs[P0] += [Stored(b"", b"before")] * 3
    router = stage.producer(instant=True)
    seen: list[int] = []
    (future,) = send(router, b"a")
    future.add_callback(lambda metadata: seen.append(metadata.offset))
    assert seen == [10]
    assert future.value.offset == 10
    assert future.succeeded()


def test_keys_and_values_are_serialized_once_for_both_clusters(stage: Stage) -> None:
    stage.agree(agreement(end_offset=0))
    router = stage.producer()
    router.routed._value_serializer = router.routed._key_serializer = lambda text: json.dumps(text).encode()
    value = {"n": 1}
    router.routed.send(TOPIC, value, key="k")
    answer(router, 1)
    value["n"] = 2
    stage.agree(agreement(end_offset=0, status="migrating"))
    router.routed.follow()
    (sent,) = router.target.waiting[P0]
    assert (sent.stored.key, sent.stored.value) == (b'"k"', b'{"n": 1}')


def test_the_time_of_a_moved_record_is_that_of_its_sending(stage: Stage) -> None:
    stage.agree(agreement(end_offset=0))
    stage.agree(agreement(end_offset=0, status="migrating"))
    router = stage.producer()
    router.routed.send(TOPIC, b"a", timestamp_ms=7)
    router.routed.send(TOPIC, b"b")
    first, second = (sent.stored.timestamp for sent in router.origin.waiting[P0])
    answer(router, 2)
    assert [sent.stored.timestamp for sent in router.target.waiting[P0]] == [first, second]
    assert first == 7


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"transactional_id": "t"}, "transactional_id"),
        ({"acks": 0}, "acks is 0"),
        ({"value_serializer": str}, "value_serializer"),
        ({"partitioner": StickyPartitioner()}, "partitioner"),
    ],
)
def test_producers_with_other_options_are_refused(stage: Stage, options: dict[str, Any], match: str) -> None:
    origin = FakeProducer(stage.origin, **options)
    with pytest.raises(HeadroomError, match=match):
        RoutedProducer(origin, FakeProducer(stage.target, instant=True), stage.reader(), "writer")


def test_one_cluster_under_both_names_is_refused(stage: Stage) -> None:
    with pytest.raises(HeadroomError, match="the same cluster"):
        RoutedProducer(FakeProducer(stage.target), FakeProducer(stage.target), stage.reader(), "writer")


def test_without_the_agreements_nothing_is_written(stage: Stage) -> None:
    stage.target.logs[TopicPartition(MIGRATIONS_TOPIC, 0)].append(Stored(b"x", b"y"))
    with pytest.raises(HeadroomError, match="not one of Headroom's"):
        stage.producer()


def test_after_a_record_that_cannot_be_read_nothing_is_written(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headroom.routing.producer.routed_producer._FOLLOW_S", 0.001)
    router = stage.producer()
    stage.target.logs[TopicPartition(MIGRATIONS_TOPIC, 0)].append(Stored(b"x", b"y"))
    router.routed._thread.join(5)
    with pytest.raises(HeadroomError, match="offset"):
        send(router, b"a")


def test_a_second_process_with_the_same_name_stops_the_first(stage: Stage) -> None:
    first = stage.producer()
    first.routed.follow()
    second = stage.producer()
    with pytest.raises(HeadroomError, match="another process has taken this name"):
        first.routed.follow()
    second.routed.follow()


def test_unequal_partition_counts_are_not_agreed_to(stage: Stage) -> None:
    router = stage.producer()
    stage.target.topics_ = {**stage.target.topics_, TOPIC: 2}
    stage.agree(agreement())
    for _ in range(2):
        with pytest.raises(HeadroomError, match="the origin has 1 partitions, the target 2"):
            router.routed.follow()
    assert stage.agreed() == {}


def test_a_partition_that_goes_to_a_third_cluster_is_not_agreed_to(stage: Stage) -> None:
    router = stage.producer()
    stage.agree(agreement(target_cluster_id="third"))
    with pytest.raises(HeadroomError, match="third"):
        router.routed.follow()
    assert stage.agreed() == {}


def test_migrations_of_other_origins_and_mirrors_change_nothing(stage: Stage) -> None:
    router = stage.producer()
    stage.agree(agreement(origin_cluster_id="third"), agreement(topic="other", method="mirrored"))
    router.routed.follow()
    (future,) = send(router, b"a")
    assert future is router.origin.waiting[P0][0].future


def test_a_target_that_does_not_answer_stops_no_producer(stage: Stage) -> None:
    cluster = FakeCluster("new", stage.target.topics_)
    consumer = FakeConsumer(cluster)
    assert consumer.end_offsets([P0]) == {P0: 0}
    router = stage.producer()
    router.routed._reader._consumer.fails = KafkaTimeoutError()
    with pytest.raises(KafkaTimeoutError):
        router.routed.follow()
    assert not router.routed._follower.is_final(KafkaTimeoutError())
    send(router, b"a")


@pytest.mark.parametrize("created_again", [None, 3])
def test_a_topic_that_was_deleted_on_an_origin_that_is_over_is_not_needed_there(
    stage: Stage, created_again: int | None
) -> None:
    """A client of the origin may create it again, with another number of partitions."""
    running = migrating(stage, 0)
    stage.agree(agreement(end_offset=0, status="aged"))
    running.routed.follow()
    others = {topic: count for topic, count in stage.origin.topics_.items() if topic != TOPIC}
    stage.origin.topics_ = others if created_again is None else {**others, TOPIC: created_again}
    new = stage.producer("writer-2")
    for router in (running, new):
        future = router.routed.send(TOPIC, b"value", key=b"key")
        assert router.routed.partitions_for(TOPIC) == {0}
        assert router.target.answer(P0)
        assert future.is_done
    assert (stage.origin.values(TOPIC), stage.target.values(TOPIC)) == ([], [b"value"] * 2)


def test_a_topic_with_other_partitions_holds_back_no_other_topic(stage: Stage) -> None:
    router = stage.producer()
    stage.target.topics_ = {**stage.target.topics_, TOPIC: 2}
    stage.agree(agreement(), agreement(topic="other", end_offset=0))
    with pytest.raises(HeadroomError, match="the origin has 1 partitions, the target 2"):
        router.routed.follow()
    # The one is held, the other is written as if there were no migration; and nothing is agreed to.
    (plain,) = send(router, b"a")
    router.routed.send("other", b"b", partition=0)
    answer(router, 1)
    assert router.origin.answer(TopicPartition("other", 0))
    assert plain.value.offset == 0
    assert not router.routed._all_routes()[0].flush(0)
    assert stage.agreed() == {}


def test_what_is_held_fails_when_nothing_is_written_any_more(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """E is 1, and is never reached by a start: a flush and a close would wait for ever."""
    monkeypatch.setattr("headroom.routing.producer.routed_producer._FOLLOW_S", 0.001)
    router = stage.producer()
    stage.agree(agreement(end_offset=2))
    wait_for(lambda: stage.agreed() == {"writer": 1})
    futures = send(router, b"a", b"b", b"c", b"d")
    answer(router, 1)
    router.origin.answer(P0)
    router.origin.answer(P0)
    futures += send(router, b"e")
    stage.target.logs[TopicPartition(MIGRATIONS_TOPIC, 0)].append(Stored(b"x", b"y"))
    router.routed._thread.join(5)
    wait_for(lambda: futures[4].is_done)
    # d is still on its way: it lands beyond the end offset.
    answer(router, 1)
    assert offsets(futures) == [0, 1, None, None, None]
    for future in futures[2:]:
        with pytest.raises(KafkaError, match=r"was not decided .*offset"):
            future.get(timeout=0)
    router.routed.flush()
    router.routed.close()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_an_answer_without_an_offset_lowers_no_acknowledged_end(stage: Stage) -> None:
    """As without the library it is acknowledged after a migration was withdrawn."""
    router = stage.producer()
    planned = agreement(end_offset=10)
    stage.agree(planned)
    router.routed.follow()
    futures = send(router, b"a", b"b")
    answer(router, 1)
    stage.writer.write([], withdrawn=[planned])
    router.routed.follow()
    sent = router.origin.waiting[P0].popleft()
    sent.acknowledge(-1)
    assert futures[1].get(timeout=0).offset == -1
    stage.origin.epochs[P0] += 1
    router.routed.follow()
    assert reported(stage) == (AcknowledgedEnd(TOPIC, 0, 0, 1, "old"),)


@pytest.mark.parametrize("side", ["origin", "target"])
def test_nothing_is_written_to_a_cluster_that_took_the_place_of_another(stage: Stage, side: str) -> None:
    router = migrating(stage, 10)
    getattr(stage, side).cluster_id = "third"
    router.routed._follower._next_compare = 0.0
    with pytest.raises(HeadroomError, match=f"the {side} of orders-0: is the cluster third now") as found:
        router.routed.follow()
    assert router.routed._follower.is_final(found.value)


def test_a_producer_that_knows_a_nearer_end_holds_what_lands_behind_it_until_that_holds(stage: Stage) -> None:
    stage.target.logs[P0] += [Stored(b"", b"before")] * 3
    router = migrating(stage, 10)
    stage.agree(agreement(end_offset=1, reopened_end=10, number=2))
    router.routed.follow()
    assert stage.agreed() == {"writer": 2}
    futures = send(router, b"a", b"b")
    answer(router, 2)
    assert offsets(futures) == [0, None]
    # The nearer one holds.
    stage.agree(agreement(status="migrating", end_offset=1, number=2))
    router.routed.follow()
    assert router.target.answer(P0)
    assert offsets(futures) == [0, 1]
    assert stage.target.values(TOPIC)[3:] == [b"b"]


def test_a_producer_that_has_moved_a_record_agrees_to_no_nearer_end(stage: Stage) -> None:
    router = migrating(stage, 1)
    send(router, b"a", b"b")
    answer(router, 2)
    before = stage.agreed()
    stage.agree(agreement(end_offset=0, reopened_end=1, number=2))
    router.routed.follow()
    assert stage.agreed() == before
    stage.agree(agreement(status="migrating", end_offset=1, number=2))
    router.routed.follow()
    assert stage.agreed() == {"writer": 2}


def test_records_held_at_a_nearer_end_go_to_the_origin_if_the_one_before_holds(stage: Stage) -> None:
    """E is 10 again, and the log ends at 2: on the target, what is behind would say that the origin was at its end."""
    router = migrating(stage, 10)
    stage.agree(agreement(end_offset=1, reopened_end=10, number=2))
    router.routed.follow()
    futures = send(router, b"a", b"b")
    answer(router, 2)
    futures += send(router, b"c")
    stage.agree(agreement(status="migrating", end_offset=10, number=2))
    router.routed.follow()
    assert not router.target.waiting[P0]
    futures += send(router, b"d")
    answer(router, 2)
    assert offsets(futures) == [0, 1, 2, 3]
    assert stage.origin.values(TOPIC) == [b"a", b"b", b"c", b"d"]


def test_records_held_at_a_nearer_end_go_to_the_target_if_the_origin_is_given_up(stage: Stage) -> None:
    """Acknowledged on the origin, which nobody reads any more, they would be lost."""
    stage.target.logs[P0] += [Stored(b"", b"before")] * 3
    router = migrating(stage, 10)
    stage.agree(agreement(end_offset=1, reopened_end=10, number=2))
    router.routed.follow()
    futures = send(router, b"a", b"b")
    answer(router, 2)
    futures += send(router, b"c")
    stage.agree(agreement(status="aged", ignore_origin=True, end_offset=10, number=2))
    router.routed.follow()
    while router.target.answer(P0):
        pass
    assert stage.target.values(TOPIC)[3:] == [b"b", b"c"]
    assert offsets(futures) == [0, 10, 11]


@pytest.mark.parametrize("side", ["origin", "target"])
def test_a_cluster_that_took_the_place_of_another_is_noticed_while_a_nearer_end_is_agreed(
    stage: Stage, side: str
) -> None:
    router = migrating(stage, 10)
    stage.agree(agreement(end_offset=1, reopened_end=10, number=2))
    router.routed.follow()
    getattr(stage, side).cluster_id = "third"
    router.routed._follower._next_compare = 0.0
    with pytest.raises(HeadroomError, match=f"the {side} of orders-0: is the cluster third now"):
        router.routed.follow()
