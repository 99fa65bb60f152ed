"""How far leaders of the origin were seen: by topic, and as long as something is agreed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headroom.cluster.collector.migration.seen_ends import SeenEnds
from headroom.cluster.migration.cluster_reader import ClusterReading
from headroom.planning.migration.readings import LogOffsets, MigratingTopic
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import KEPT_EPOCHS, PartitionAgreement

NAME = TopicPartition("orders", 0)
AGREED = PartitionAgreement("m", 1, "o", "t", "orders", 0, "i", None, 700, 0, "migrating")
KEY = AGREED.origin_name


def reading(
    epoch: int, end: int | None, leader_end: int | None, leader: int | None = None, **parts: Any
) -> ClusterReading:
    """A reading of the log, whose leader is in an epoch."""
    known: dict[str, Any] = {
        "cluster_id": "o",
        "topic_ids": {"orders": "i"},
        "logs": {NAME: LogOffsets(0, end, end)},
        "leader_epochs": {NAME: epoch},
        "epoch_ends": {NAME: {} if leader_end is None else {epoch: leader_end}},
        "topics": {"orders": MigratingTopic("i", {0: leader}, 3)},
    }
    return ClusterReading(0.0, 1_000, **known | parts)


def seen(*readings: ClusterReading) -> SeenEnds:
    ends = SeenEnds()
    for one in readings:
        ends.see([AGREED], one)
    return ends


def test_the_furthest_ends_of_each_leader_are_kept() -> None:
    ends = seen(reading(3, 90, 95), reading(3, 80, 120), reading(4, 85, 85))
    assert ends.replicated() == {KEY: {3: 90, 4: 85}}
    assert ends.unreported({}) == {KEY: {3: 120, 4: 85}}
    assert ends.unreported({KEY: {3: 120, 4: 84}}) == {KEY: {4: 85}}


@pytest.mark.parametrize(
    ("end", "leader_end"), [(None, 90), (90, None), (90, 89)], ids=["no end", "no leader", "another leader"]
)
def test_what_may_be_of_another_leader_is_not_kept(end: int | None, leader_end: int | None) -> None:
    assert seen(reading(3, end, leader_end)).replicated() == {}


def test_of_a_partition_the_newest_epochs_are_kept() -> None:
    ends = seen(*(reading(epoch, epoch, epoch, 1) for epoch in range(KEPT_EPOCHS + 3)))
    assert [*ends.replicated()[KEY]] == list(range(3, KEPT_EPOCHS + 3))


@pytest.mark.parametrize(
    ("parts", "kept"),
    [
        ({"topic_ids": {"orders": "j"}}, {3: 10}),
        # While it is deleted, or before Kafka 2.8, there is no id.
        ({"topic_ids": {"orders": None}}, {3: 90}),
        ({"topic_ids": {}}, {3: 90}),
        ({}, {3: 90}),
        # Another cluster says nothing of this one.
        ({"topic_ids": {"orders": "j"}, "cluster_id": "x"}, {3: 90}),
        ({"topic_ids": {"orders": "j"}, "cluster_id": None}, {3: 10}),
    ],
)
def test_a_recreated_topic_has_nothing_of_the_one_before(parts: dict[str, Any], kept: dict[int, int]) -> None:
    assert seen(reading(3, 90, 95), reading(3, 10, 10, **parts)).replicated() == {KEY: kept}


def test_a_topic_whose_id_is_known_later_is_the_same_one() -> None:
    ends = seen(reading(3, 90, 95, topic_ids={}), reading(3, 10, 10), reading(3, 20, 20, topic_ids={"orders": "j"}))
    assert ends.replicated() == {KEY: {3: 20}}
    assert seen(reading(3, 90, 95, topic_ids={}), reading(3, 10, 10)).replicated() == {KEY: {3: 90}}


def test_nothing_is_kept_about_what_is_not_agreed_any_more() -> None:
    ends = seen(reading(3, 90, 95))
    ends.see([replace(AGREED, origin_cluster_id="x")], reading(3, 10, 10))
    assert ends.replicated() == {}
    ends = seen(reading(3, 90, 95))
    ends.forget()
    assert ends.replicated() == {}


@pytest.mark.parametrize(
    ("next_epoch", "leader", "next_leader", "unreported"),
    [
        # The ISR was smaller: records count under the next epoch, as routers report them.
        (4, 1, 1, {4: 100}),
        (4, 1, 2, {3: 95, 4: 100}),
        # There may have been another leader in between.
        (5, 1, 1, {3: 95, 5: 100}),
        (4, None, None, {3: 95, 4: 100}),
    ],
)
def test_an_epoch_whose_leader_stays_in_the_next_one_needs_no_report(
    next_epoch: int, leader: int | None, next_leader: int | None, unreported: dict[int, int]
) -> None:
    ends = seen(reading(3, 90, 95, leader), reading(next_epoch, 99, 100, next_leader))
    assert ends.unreported({}) == {KEY: unreported}


def test_an_epoch_whose_leader_stays_is_unreported_until_its_log_was_seen_in_the_next_one() -> None:
    assert seen(reading(3, 90, 95, 1), reading(4, None, None, 1)).unreported({}) == {KEY: {3: 95}}
