"""Recommendations and the commands that carry them out."""

from __future__ import annotations

import json
import shlex

import pytest

from alerts.commands import PLAN_FILE, headroom_apply, kafka_cancel
from alerts.recommend import Recommender
from alerts.sides import side_state
from planning.recommend import Wish
from schemas.findings import Role
from tests.unit.sides import MB, partition, side

LEADER, FOLLOWER = Role.LEADER, Role.FOLLOWER
RECOMMENDER = Recommender(Wish(), "broker1:9092", "headroom.toml")
# The leaders 1 and 2 need 4 and 8 MB/s, the destination 3 needs 6.
SIDES = [
    side(1, LEADER, 5.6, 4, partition(0)),
    side(2, LEADER, 5.6, 8, partition(1, leader=2)),
    side(3, FOLLOWER, 5.6, 6, partition(0), partition(1, leader=2), in_sync_mb=0),
    side(4, LEADER, 5.6, 0, limited=0),
]


def test_one_throttle_that_is_enough_everywhere_with_what_each_broker_needs() -> None:
    recommendation = RECOMMENDER.raise_throttle(SIDES)
    assert recommendation["action"] == "raise_throttle"
    # 8 MB/s x 1.2
    assert recommendation["throttle_bytes_per_s"] == 9_600_000
    assert [(n["broker_id"], n["role"], n["required_bytes_per_s"]) for n in recommendation["per_broker"]] == [
        (1, "leader", 4 * MB),
        (2, "leader", 8 * MB),
        (3, "follower", 6 * MB),
    ]


def test_the_commands_name_every_broker_of_the_move_and_leave_the_rest_alone() -> None:
    apply, *kafka, reassign = RECOMMENDER.raise_throttle(SIDES)["commands"]
    assert apply == ("headroom throttle apply --config headroom.toml --rate 9600000 --brokers 1,2,3 --execute")
    rates = "leader.replication.throttled.rate=9600000,follower.replication.throttled.rate=9600000"
    assert kafka == [
        "kafka-configs.sh --bootstrap-server broker1:9092 --alter --entity-type brokers "
        f"--entity-name {broker} --add-config {rates}"
        for broker in (1, 2, 3)
    ]
    assert reassign.endswith(f"{PLAN_FILE} --execute --additional --throttle 9600000")


def test_the_plan_in_the_command_is_the_move_that_runs() -> None:
    words = shlex.split(RECOMMENDER.raise_throttle(SIDES)["commands"][-1])
    assert (words[0], words[2:5]) == ("echo", [">", PLAN_FILE, "&&"])
    assert json.loads(words[1]) == {
        "version": 1,
        "partitions": [
            {"topic": "t", "partition": 0, "replicas": [3, 2]},
            {"topic": "t", "partition": 1, "replicas": [3, 2]},
        ],
    }


def test_without_a_configuration_file_the_command_names_none_and_odd_names_are_quoted() -> None:
    assert headroom_apply(7, [2], None) == "headroom throttle apply --rate 7 --brokers 2 --execute"
    assert shlex.split(headroom_apply(7, [2], "my file.toml"))[4] == "my file.toml"


def test_what_is_unknown_gives_no_number_and_says_what() -> None:
    recommendation = RECOMMENDER.raise_throttle([*SIDES, side(5, FOLLOWER, 5.6, None, partition(2))])
    assert (recommendation["action"], recommendation["throttle_bytes_per_s"]) == ("none", None)
    assert recommendation["commands"] == []
    assert "broker 5 as follower" in recommendation["reason"]


def test_over_capacity_it_advises_to_cancel_and_move_less_at_a_time() -> None:
    recommendation = Recommender(Wish(capacity_bytes_per_s=7 * MB), "broker1:9092").raise_throttle(SIDES)
    assert (recommendation["action"], recommendation["throttle_bytes_per_s"]) == ("reduce_move", None)
    assert "8.0 MB/s is needed and a broker carries 7.0 MB/s" in recommendation["reason"]
    assert recommendation["commands"] == [kafka_cancel([partition(0), partition(1)], "broker1:9092")]


def test_a_deadline_that_the_capacity_forbids_is_told() -> None:
    wish = Wish(finish_within_s=1, capacity_bytes_per_s=10 * MB)
    recommendation = Recommender(wish, "broker1:9092").raise_throttle(SIDES)
    assert recommendation["throttle_bytes_per_s"] == 10_000_000
    assert "does not allow to finish as wished" in recommendation["reason"]


def test_where_nothing_is_held_back_it_says_so() -> None:
    assert RECOMMENDER.raise_throttle([SIDES[3]])["reason"] == "no replica is held back by a throttle"


def _row(
    broker: int, role: str, throttle: float | None, required: float, verdict: str, free: int = 0
) -> dict[str, object]:
    return {
        "broker": broker,
        "role": role,
        "throttle_bytes_per_s": throttle,
        "in_sync_bytes_per_s": 0.0,
        "required_bytes_per_s": required,
        "verdict": verdict,
        "reason": None,
        "quota_bytes_per_s": None,
        "moving_replicas": 1,
        "remaining_bytes": 10_000_000,
        "eta_s": None,
        "stalled_replicas": 0,
        "partitions": [],
        "free_replicas": free,
        "alive": True,
        "throttle_source": None,
        "moving_partitions": 1,
        "resting_listed_partitions": 0,
        "planned_partitions": 0,
        "lost_replicas": 0,
        "lost_moving_replicas": 0,
        "lost": [],
        "stall": None,
        "takeover": None,
    }


# The command sets both rates of every broker of the move, so a listed replica that no rate holds back yet is held back
# from then on: broker 3 needs 8 MB/s, more than the 4 of the leader that is short.
def test_a_listed_replica_without_a_rate_counts_for_the_rate_it_will_get() -> None:
    rows = [_row(1, "leader", 3 * MB, 4 * MB, "losing"), _row(3, "follower", None, 8 * MB, "unthrottled")]
    assert RECOMMENDER.raise_throttle([side_state(row) for row in rows])["throttle_bytes_per_s"] == 9_600_000


# Its throttle has a rate, so what is not limited is not listed: no rate will ever hold it back.
@pytest.mark.parametrize(("throttle", "required"), [(3 * MB, 8 * MB), (None, 0.0)])
def test_a_replica_that_no_list_names_does_not_count(throttle: float | None, required: float) -> None:
    rows = [_row(1, "leader", 3 * MB, 4 * MB, "losing"), _row(3, "follower", throttle, required, "unthrottled", free=1)]
    assert RECOMMENDER.raise_throttle([side_state(row) for row in rows])["throttle_bytes_per_s"] == 4_800_000
