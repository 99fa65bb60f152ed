"""What an alert says of preferred elections."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from typing import Any

from headroom.alerts.recommendations.commands import ELECTIONS_FILE
from headroom.alerts.recommendations.elections import describe_plan
from headroom.alerts.recommendations.recommender import Recommender
from headroom.planning.elections.planner import RequiredThrottleIncrease
from headroom.planning.elections.summary import BalanceForecast, ElectionPlanSummary
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.keys import Role
from tests.unit.builders.leader_balance import PLAN_SUMMARY
from tests.unit.builders.throttle_status import MB, TICK_MS

ONE = replace(
    PLAN_SUMMARY,
    batches=1,
    elections=2,
    left_out=(),
    raise_first=(),
    outlooks=(BalanceForecast(1, 0.004, 0.004), BalanceForecast(2, 0, 0)),
)


def advice(plan: ElectionPlanSummary | None) -> dict[str, Any]:
    made = Recommender(ThrottlePolicy(), "broker1:9092", "headroom.toml", elections=plan).elect_preferred().to_json()
    json.dumps(made)
    return made


def test_it_says_how_many_batches_what_the_first_is_and_what_they_come_to() -> None:
    assert describe_plan(replace(PLAN_SUMMARY, left_out=(), raise_first=())) == (
        "elect the preferred leaders of 700 partitions in 4 batches, at a quiet time: first of 2 partition(s) "
        "(3.00 MB/s are written to them), after which no broker lacks more than 25 % of its leads; after the last it "
        "is 0.4 %"
    )
    assert describe_plan(ONE) == (
        "elect the preferred leaders of 2 partition(s) (3.00 MB/s are written to them) in one batch, at a quiet time: "
        "no broker then lacks more than 0.4 % of its leads"
    )


def test_an_unknown_write_rate_is_not_reported_as_zero() -> None:
    unknown = replace(ONE, first_batch_write_bytes_per_s=None)
    assert "2 partition(s) (what is written to them is not known) in one batch" in describe_plan(unknown)
    assert advice(unknown)["first_batch_write_bytes_per_s"] is None


def test_it_says_what_has_to_wait_and_which_throttle_comes_first() -> None:
    assert describe_plan(PLAN_SUMMARY).endswith(
        "; left out: 3 (a reassignment of it is running), 5 (a throttle of the running move would be too low); "
        "to elect more, first raise the throttle of broker 2 as leader above 12.00 MB/s"
    )
    stuck = replace(
        PLAN_SUMMARY, batches=0, elections=0, first_batch=(), left_out=(("at_min_insync", 4),), raise_first=()
    )
    assert describe_plan(stuck) == (
        "nothing can be elected just now: 4 (it lacks in-sync replicas and has no more than min.insync.replicas)"
    )


def test_without_a_plan_it_names_the_command_alone() -> None:
    made = advice(None)
    assert made["reason"] == "elect preferred leaders in small batches, at a quiet time"
    assert made["commands"] == ["headroom elections --config headroom.toml --execute"]
    assert "batches" not in made


def test_the_recommendation_has_the_first_batch_the_number_of_batches_and_the_ratios_after() -> None:
    made = advice(PLAN_SUMMARY)
    assert (made["action"], made["batches"], made["elections"], made["plan_tick_ms"]) == (
        "elect_preferred",
        4,
        700,
        TICK_MS,
    )
    assert made["first_batch"] == [{"topic": "t", "partition": 7}, {"topic": "u", "partition": 0}]
    assert made["imbalance_ratios"][0] == {"broker": 1, "first_batch_ratio": 0.25, "last_batch_ratio": 0.004}
    assert made["left_out"] == {"moving": 3, "over_throttle": 5}
    assert made["raise_first"] == [
        {"broker_id": 2, "role": "leader", "throttle_bytes_per_s": 9 * MB, "required_bytes_per_s": 12 * MB}
    ]


def test_kafkas_own_command_elects_the_first_batch_with_the_file_that_it_writes() -> None:
    headroom, kafka = advice(PLAN_SUMMARY)["commands"]
    assert headroom == "headroom elections --config headroom.toml --execute"
    words = shlex.split(kafka)
    assert (words[0], words[2:5]) == ("echo", [">", ELECTIONS_FILE, "&&"])
    assert json.loads(words[1])["partitions"] == advice(PLAN_SUMMARY)["first_batch"]
    assert words[5:] == [
        "kafka-leader-election.sh",
        "--bootstrap-server",
        "broker1:9092",
        "--election-type",
        "preferred",
        "--path-to-json-file",
        ELECTIONS_FILE,
    ]


def test_a_batch_that_is_too_large_to_name_is_left_to_headrooms_own_command() -> None:
    large = replace(PLAN_SUMMARY, first_batch=tuple(("t", n) for n in range(51)))
    assert len(advice(large)["commands"]) == 1
    assert len(advice(replace(large, first_batch=large.first_batch[1:]))["commands"]) == 2
    assert len(advice(replace(large, first_batch=()))["commands"]) == 1


def test_a_raise_of_a_destination_is_named_as_its() -> None:
    raised = replace(ONE, raise_first=(RequiredThrottleIncrease((3, Role.FOLLOWER), 1 * MB, 2 * MB),))
    assert describe_plan(raised).endswith("first raise the throttle of broker 3 as follower above 2.00 MB/s")
