"""Refresh of many topics: changing topics first, the others in turn, and their maximum age."""

from __future__ import annotations

import logging

import pytest

import headroom.cluster.metadata.topic_refresh
from headroom.cluster.connection.failover import MetadataError
from headroom.cluster.metadata.snapshot_reader import SnapshotReader
from headroom.cluster.model import Snapshot
from headroom.schemas.keys import TopicPartition
from tests.unit.fakes.admin_connection import NOT_AUTHORIZED, SERVER_ERROR, Clock, ManyTopics

MAX_AGE_S, TICK_S = 60.0, 10.0
# Twelve topics of two partitions.
SIZES = {f"t{number:02d}": 2 for number in range(12)}


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than five partitions are not read whole any more."""
    monkeypatch.setattr(headroom.cluster.metadata.topic_refresh, "WHOLE_PARTITIONS", 5)


class Ticks:
    """A reader that is asked every ten seconds."""

    def __init__(self, connection: ManyTopics) -> None:
        self.connection, self.clock = connection, Clock()
        self.clock.now_s = -TICK_S
        self.reader = SnapshotReader(connection, 8.0, 1e9, self.clock, MAX_AGE_S)  # type: ignore[arg-type]

    def next(self) -> Snapshot:
        self.clock.now_s += TICK_S
        return self.reader.snapshot()


def ticks(sizes: dict[str, int] | None = None, first: int = 1, **connection: object) -> Ticks:
    """Return a reader after its first snapshots."""
    made = Ticks(ManyTopics(dict(sizes or SIZES)))
    for name, value in connection.items():
        setattr(made.connection, name, value)
    for _ in range(first):
        made.next()
    made.connection.topics_asked()
    return made


def test_first_all_topics_are_read_page_by_page() -> None:
    made = ticks(first=0)
    snapshot = made.next()
    assert len(snapshot.partitions) == 24
    assert made.connection.topics_asked() == [f"page {first}-0" for first in ("", "t02", "t04", "t06", "t08", "t10")]
    assert set(snapshot.ages_ms.values()) == {0}


def test_a_sixth_of_the_topics_is_read_per_tick_and_none_gets_older_than_the_limit() -> None:
    made = ticks()
    # 24 partitions in 60 s are 4 in 10 s: one page of 4 each.
    asked = [(made.next(), made.connection.topics_asked())[1] for _ in range(6)]
    assert asked == [[f"page {first}-0"] for first in ("", "t02", "t04", "t06", "t08", "t10")]
    ages = [max(made.next().ages_ms.values()) for _ in range(20)]
    # Read in every sixth tick: before that, five ticks ago.
    assert set(ages) == {50_000}


def test_ages_are_reported_by_topic() -> None:
    made = ticks()
    snapshot = made.next()
    assert (snapshot.ages_ms["t00"], snapshot.ages_ms["t01"], snapshot.ages_ms["t02"]) == (0, 0, 10_000)


def test_after_ticks_that_were_left_out_the_rest_is_caught_up() -> None:
    made = ticks()
    made.clock.now_s += 20.0
    made.next()
    # 30 s passed: half of the 24 partitions.
    assert made.connection.topics_asked() == ["page -0", "page t02-0", "page t04-0"]


def test_topics_that_move_or_have_lists_are_read_in_every_tick() -> None:
    made = ticks(moving=[("t11", 1)], lists={"t09": "0:1"})
    for _ in range(3):
        snapshot = made.next()
        assert [topic for topic in made.connection.topics_asked() if not topic.startswith("page")] == ["t09", "t11"]
        assert (snapshot.ages_ms["t09"], snapshot.ages_ms["t11"]) == (0, 0)
        assert snapshot.partitions[TopicPartition("t11", 1)].adding == (3,)


def test_a_topic_that_begins_to_move_is_read_at_once() -> None:
    made = ticks()
    made.connection.moving = [("t11", 0)]
    snapshot = made.next()
    assert snapshot.partitions[TopicPartition("t11", 0)].replicas == (1, 2, 3)
    assert snapshot.ages_ms["t11"] == 0


def test_a_topic_whose_move_ends_after_it_was_read_is_read_again_in_the_next_tick() -> None:
    made = ticks(moving=[("t11", 0)])
    answer = made.connection.MetadataRequest

    def end_afterwards(request: object) -> object:
        answered = answer(request)
        made.connection.moving = []
        return answered

    made.connection.MetadataRequest = end_afterwards  # type: ignore[method-assign]
    ended = made.next().partitions[TopicPartition("t11", 0)]
    # Read before the end, and listed after it.
    assert (ended.moving, ended.replicas) == (False, (1, 2, 3))
    made.connection.topics_asked()
    assert made.next().partitions[TopicPartition("t11", 0)].replicas == (1, 2)
    assert "t11" in made.connection.topics_asked()


def test_a_topic_that_changed_is_read_again_in_the_next_ticks() -> None:
    made = ticks()
    made.connection.leaders["t00", 1] = 2
    asked = [[t for t in (made.next(), made.connection.topics_asked())[1] if t.startswith("t")] for _ in range(5)]
    assert asked == [[], ["t00"], ["t00"], ["t00"], []]


def test_a_stale_topic_is_read_next_and_the_others_keep_their_turn() -> None:
    made = ticks()
    made.connection.leaders["t11", 0] = 2
    made.reader.mark_stale({"t11"})
    assert made.next().partitions[TopicPartition("t11", 0)].leader == 2
    assert made.connection.topics_asked() == ["t11", "page -0"]


def test_a_new_topic_that_a_follower_names_is_known_in_the_next_tick_and_else_in_its_turn() -> None:
    made = ticks()
    made.connection.sizes |= {"t08a": 1, "t11a": 1}
    made.reader.mark_stale({"t11a"})
    new = [{topic for topic in made.next().topic_ids if topic not in SIZES} for _ in range(6)]
    assert (new[0], new[5]) == ({"t11a"}, {"t08a", "t11a"})


def test_a_deleted_topic_is_gone_when_its_page_is_read() -> None:
    made = ticks()
    del made.connection.sizes["t03"]
    assert "t03" in made.next().topic_ids
    snapshot = made.next()
    assert "t03" not in snapshot.topic_ids
    assert TopicPartition("t03", 0) not in snapshot.partitions


@pytest.mark.parametrize("deleted", ["t00", "t11"])
def test_the_first_and_the_last_topic_can_be_deleted_too(deleted: str) -> None:
    made = ticks()
    del made.connection.sizes[deleted]
    for _ in range(6):
        snapshot = made.next()
    assert deleted not in snapshot.topic_ids


def test_a_moving_topic_that_is_deleted_is_gone_at_once() -> None:
    made = ticks(moving=[("t11", 0)])
    del made.connection.sizes["t11"]
    snapshot = made.next()
    assert TopicPartition("t11", 0) not in snapshot.partitions


def test_partitions_that_grow_are_known_when_a_follower_names_the_topic() -> None:
    made = ticks()
    made.connection.sizes["t10"] = 5
    made.reader.mark_stale({"t10"})
    assert TopicPartition("t10", 4) in made.next().partitions


def test_a_topic_of_several_pages_is_read_to_its_end() -> None:
    # "b" has 11 partitions, pages have 4: the page that starts with "a" continues to the end of "b".
    made = ticks({"a": 1, "b": 11, "c": 1}, first=0)
    snapshot = made.next()
    assert len(snapshot.partitions) == 13
    assert made.connection.topics_asked() == ["page -0", "page b-3", "page b-7", "page c-0"]


def test_an_error_of_one_topic_keeps_its_cached_state_and_its_age_grows() -> None:
    made = ticks(lists={"t09": "0:1", "t10": "0:1"})
    made.connection.errors = {"t09": SERVER_ERROR}
    snapshot = made.next()
    assert (snapshot.ages_ms["t09"], snapshot.ages_ms["t10"]) == (10_000, 0)
    assert TopicPartition("t09", 1) in snapshot.partitions


def test_a_topic_that_may_not_be_described_any_more_is_gone() -> None:
    made = ticks(lists={"t09": "0:1"})
    made.connection.errors = {"t09": NOT_AUTHORIZED}
    assert "t09" not in made.next().topic_ids


def test_when_a_broker_leaves_its_topics_are_read_at_once() -> None:
    made = ticks()
    made.connection.alive = [1, 3]
    snapshot = made.next()
    assert {broker for broker, info in snapshot.brokers.items() if not info.alive} == {2}
    assert set(snapshot.ages_ms.values()) == {0}


def test_brokers_without_pages_are_asked_for_all_topics_when_it_is_time() -> None:
    made = ticks(first=1, pages=False)
    asked = [(made.next(), made.connection.topics_asked())[1] for _ in range(12)]
    # At 60 s the next tick would find them older than 60 s.
    whole = [number for number, names in enumerate(asked, 1) if "whole" in names]
    assert whole == [5, 10]


def test_few_partitions_are_read_whole_in_every_tick() -> None:
    made = ticks({"a": 2, "b": 3})
    for _ in range(3):
        made.next()
    assert made.connection.topics_asked() == ["whole"] * 3


def test_unanswered_pages_leave_topics_as_last_read() -> None:
    made = ticks()
    made.connection.silent = {"DescribeTopicPartitionsRequest"}
    assert set(made.next().ages_ms.values()) == {10_000}
    made.connection.silent = set()
    # The pages that were not answered before are read now.
    snapshot = made.next()
    assert [snapshot.ages_ms[topic] for topic in ("t00", "t03", "t04")] == [0, 0, 20_000]


def test_required_topics_without_an_answer_skip_the_tick() -> None:
    made = ticks(moving=[("t11", 0)])
    made.connection.silent = {"MetadataRequest"}
    with pytest.raises(MetadataError, match=r"metadata could not be read \(broker 1: KafkaTimeoutError"):
        made.next()


def test_a_first_reading_that_takes_too_long_continues_in_the_next_ticks() -> None:
    made = ticks(first=0)
    read = made.connection.DescribeTopicPartitionsRequest

    def slowly(request: object) -> object:
        made.clock.now_s += 3.0
        return read(request)

    made.connection.DescribeTopicPartitionsRequest = slowly  # type: ignore[method-assign]
    # Three pages of four partitions take 9 of the 8 s that a snapshot may take.
    with pytest.raises(MetadataError, match="for the first time: 12 partitions so far"):
        made.next()
    assert len(made.next().partitions) == 24


def test_a_broker_whose_pages_do_not_advance_is_reported() -> None:
    made = ticks({"a": 9}, first=0, page=0)
    with pytest.raises(MetadataError, match="no page after"):
        made.next()


SWITCHED, STILL = TopicPartition("a", 0), TopicPartition("a", 1)
FEW = {"a": 2, "b": 1}


def answer_of(connection: ManyTopics, leader: int, epoch: int, isr: list[int]) -> None:
    """Let the brokers report this of partition 0 of topic a."""
    connection.leaders["a", 0], connection.epochs["a", 0], connection.isrs["a", 0] = leader, epoch, isr


@pytest.mark.parametrize("sizes", [FEW, SIZES | FEW], ids=["whole", "many"])
def test_an_answer_of_a_broker_that_is_behind_is_no_leader_switch(sizes: dict[str, int]) -> None:
    # Of many topics, those with a throttled replica list are read by name in every tick.
    made = ticks(sizes, lists={"a": "0:1"})
    answer_of(made.connection, leader=2, epoch=7, isr=[2])
    assert made.next().partitions[SWITCHED].leader == 2
    answer_of(made.connection, leader=1, epoch=6, isr=[1, 2])
    made.connection.isrs["a", 1] = [1]
    behind = made.next()
    snapshot = behind.partitions[SWITCHED]
    assert (snapshot.leader, snapshot.leader_epoch, snapshot.isr) == (2, 7, (2,))
    # The other partition has the same epoch, so its new state counts. The topic keeps its age.
    assert behind.partitions[STILL].isr == (1,)
    assert behind.ages_ms["a"] == 10_000
    answer_of(made.connection, leader=1, epoch=8, isr=[1, 2])
    now = made.next()
    assert (now.partitions[SWITCHED].leader, now.partitions[SWITCHED].isr, now.ages_ms["a"]) == (1, (1, 2), 0)


def test_pages_of_a_broker_that_is_behind_change_no_leader() -> None:
    made = ticks()
    made.connection.leaders["t00", 1], made.connection.epochs["t00", 1] = 2, 3
    made.next()
    made.connection.leaders["t00", 1], made.connection.epochs["t00", 1] = 1, 2
    # Read by name while it changes, and in its turn six ticks later.
    leaders = [made.next().partitions[TopicPartition("t00", 1)].leader for _ in range(8)]
    assert leaders == [2] * 8


def test_a_recreated_topic_begins_with_small_epochs() -> None:
    made = ticks(FEW)
    answer_of(made.connection, leader=2, epoch=7, isr=[2])
    made.next()
    made.connection.ids["a"] = "made again"
    answer_of(made.connection, leader=1, epoch=0, isr=[1, 2])
    snapshot = made.next().partitions[SWITCHED]
    assert (snapshot.leader, snapshot.leader_epoch, snapshot.isr) == (1, 0, (1, 2))


@pytest.mark.parametrize("no_id", [None, "00000000-0000-0000-0000-000000000000"])
def test_without_topic_ids_a_small_epoch_may_be_that_of_a_recreated_topic(no_id: str | None) -> None:
    made = ticks(FEW, ids={"a": no_id}, epochs={("a", 0): 7})
    answer_of(made.connection, leader=2, epoch=0, isr=[1, 2])
    assert made.next().partitions[SWITCHED].leader == 2


@pytest.mark.parametrize(("known", "reported"), [(7, -1), (-1, 0)])
def test_where_an_epoch_is_unknown_the_answer_counts(known: int, reported: int) -> None:
    made = ticks(FEW, epochs={("a", 0): known})
    answer_of(made.connection, leader=2, epoch=reported, isr=[1, 2])
    assert made.next().partitions[SWITCHED].leader == 2


def test_a_broker_that_does_not_know_new_partitions_yet_takes_none_away() -> None:
    made = ticks({"a": 2})
    made.connection.sizes["a"] = 1
    assert set(made.next().partitions) == {SWITCHED, STILL}


def test_a_broker_that_is_behind_is_asked_after_the_others(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "headroom.cluster.connection.failover")
    made = ticks(FEW, first=0, known=[1, 2, 3])
    answer_of(made.connection, leader=2, epoch=7, isr=[2])
    made.next()
    assert set(made.connection.nodes_asked) == {1}
    answer_of(made.connection, leader=1, epoch=6, isr=[1, 2])
    made.next()
    assert "broker 1 reports metadata from before what is known" in caplog.text
    answer_of(made.connection, leader=2, epoch=7, isr=[2])
    made.connection.nodes_asked.clear()
    made.next()
    assert set(made.connection.nodes_asked) == {2}
