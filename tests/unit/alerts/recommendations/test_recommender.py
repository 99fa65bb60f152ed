"""Recommendations and the commands that carry them out."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headroom.alerts.inputs.throttle_status import MovingPartition, Stall, ThrottleStatus, throttle_status_of
from headroom.alerts.recommendations.commands import PLAN_FILE, cancel, headroom_apply
from headroom.alerts.recommendations.recommendation import Recommendation
from headroom.alerts.recommendations.recommender import Recommender
from headroom.planning.finish.finish_time import finish
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.keys import Role
from tests.unit.builders.finish_times import finish_s
from tests.unit.builders.throttle_status import MB, partition, status

LEADER, FOLLOWER = Role.LEADER, Role.FOLLOWER
RECOMMENDER = Recommender(ThrottlePolicy(), "broker1:9092", "headroom.toml")
# The leaders 1 and 2 need 4 and 8 MB/s, the destination 3 needs 6.
STATUSES = [
    status(1, LEADER, 5.6, 4, partition(0)),
    status(2, LEADER, 5.6, 8, partition(1, leader=2)),
    status(3, FOLLOWER, 5.6, 6, partition(0), partition(1, leader=2), in_sync_mb=0),
    status(4, LEADER, 5.6, 0, limited=0),
]


def test_one_throttle_that_is_enough_everywhere_with_what_each_broker_needs() -> None:
    recommendation = RECOMMENDER.raise_throttle(STATUSES)
    assert recommendation.action == "raise_throttle"
    # 8 MB/s x 1.2
    assert recommendation.throttle_bytes_per_s == 9_600_000
    assert [(n.broker_id, n.role, n.required_bytes_per_s) for n in recommendation.per_broker] == [
        (1, "leader", 4 * MB),
        (2, "leader", 8 * MB),
        (3, "follower", 6 * MB),
    ]


def test_the_expected_finish_covers_all_throttled_brokers_and_roles_at_the_advised_rate() -> None:
    statuses = [replace(one, load=replace(one.load, remaining_bytes=160_000_000)) for one in STATUSES]
    limited = [status.load for status in statuses[:3]]
    alone = RECOMMENDER.raise_throttle(statuses).finish.finish_s
    assert alone == finish_s(limited, 9_600_000)
    # What earlier ticks tell of the windows counts.
    earlier = [(5.0, {(2, LEADER): replace(limited[1], remaining_bytes=500_000_000)})]
    advised = replace(RECOMMENDER, earlier=earlier).raise_throttle(statuses).finish.finish_s
    assert advised == finish_s(limited, 9_600_000, earlier) != alone


def test_the_finish_is_unknown_if_the_remaining_bytes_of_one_broker_and_role_are() -> None:
    unknown = status(5, FOLLOWER, 5.6, 4, remaining_bytes=None)
    recommendation = RECOMMENDER.raise_throttle([*STATUSES, unknown])
    assert (recommendation.throttle_bytes_per_s, recommendation.finish.finish_s) == (9_600_000, None)


# With a new replica on a broker that is down, or on a failed disk, the move ends under no throttle.
@pytest.mark.parametrize(
    "more",
    [
        replace(STATUSES[3], down_replicas=1),
        status(5, FOLLOWER, None, 0, limited=0, free=1, stalls=(Stall("offline", 1, 1, ("t-0",)),)),
        # Its lists could not be read, so nothing is known to be limited there.
        status(5, FOLLOWER, 5.6, None, limited=0, free=1, throttle_known=False),
    ],
)
def test_no_finish_is_promised_that_a_throttle_alone_does_not_bring(more: ThrottleStatus) -> None:
    recommendation = RECOMMENDER.raise_throttle([*STATUSES[:3], more])
    assert (recommendation.throttle_bytes_per_s, recommendation.finish.finish_s) == (9_600_000, None)


# Headroom's command reads the rate again before it raises it; Kafka's would set it whatever it is.
def test_a_broker_whose_rate_could_not_be_read_is_in_headrooms_command_alone() -> None:
    unread = status(5, FOLLOWER, None, 6, partition(5), throttle_known=False)
    recommendation = RECOMMENDER.raise_throttle([*STATUSES[:3], unread])
    apply, *kafka = recommendation.commands
    assert " --brokers 1,2,3,5 --raise-only " in apply
    assert not any("--entity-name 5" in command or "--additional" in command for command in kafka)
    assert recommendation.reason == "the rates of broker(s) 5 could not be read, and may be lower (headroom check)"
    assert recommendation.finish.finish_s is None
    # Known to have none: no command sets one.
    none = replace(unread, throttle_source="none")
    assert " --brokers 1,2,3 --raise-only " in RECOMMENDER.raise_throttle([*STATUSES[:3], none]).commands[0]


def test_the_commands_name_every_broker_of_the_move_and_leave_the_rest_alone() -> None:
    apply, *kafka, reassign = RECOMMENDER.raise_throttle(STATUSES).commands
    assert apply == (
        "headroom throttle apply --config headroom.toml --rate 9600000 --brokers 1,2,3 --raise-only --execute"
    )
    roles = {1: "leader", 2: "leader", 3: "follower"}
    assert kafka == [
        "kafka-configs.sh --bootstrap-server broker1:9092 --alter --entity-type brokers "
        f"--entity-name {broker} --add-config {role}.replication.throttled.rate=9600000"
        for broker, role in roles.items()
    ]
    assert reassign.endswith(f"{PLAN_FILE} --execute --additional --throttle 9600000")


def both(broker: int, leader_mb: float | None, follower_mb: float | None, **more: Any) -> list[ThrottleStatus]:
    """Both roles of a broker that takes part in the move: it is behind with what it receives."""
    moving = partition(broker, leader=1)
    return [
        status(broker, LEADER, leader_mb, 0, moving, limited=0, **more),
        status(broker, FOLLOWER, follower_mb, 2, moving, in_sync_mb=0, **more),
    ]


# 8 MB/s x 1.2 = 9.6. Kafka's own tool would set that on every broker, and lower 50 and 100.
def test_a_higher_rate_is_never_lowered_and_where_there_is_none_there_will_be_none() -> None:
    statuses = [*STATUSES[:2], *both(3, 50, 5.6), *both(5, 100, 100), *both(6, None, None)]
    recommendation = RECOMMENDER.raise_throttle(statuses)
    assert recommendation.throttle_bytes_per_s == 9_600_000
    apply, *kafka = recommendation.commands
    assert " --brokers 1,2,3 --raise-only " in apply
    assert [command.split("--entity-name ")[1] for command in kafka] == [
        "1 --add-config leader.replication.throttled.rate=9600000",
        "2 --add-config leader.replication.throttled.rate=9600000",
        "3 --add-config follower.replication.throttled.rate=9600000",
    ]
    advised = {(n.broker_id, n.role): n.recommended_bytes_per_s for n in recommendation.per_broker}
    assert advised[5, "follower"] == 100 * MB
    assert advised[6, "follower"] is None


# Kafka accepts a rate of 0, as after "--throttle 0": that is a limit, and not the absence of one.
def test_a_rate_of_zero_is_raised_like_any_other() -> None:
    apply, *kafka, reassign = RECOMMENDER.raise_throttle([*STATUSES[:2], *both(3, 0, 0)]).commands
    assert " --brokers 1,2,3 --raise-only " in apply
    assert any(
        "--entity-name 3 --add-config leader.replication.throttled.rate=9600000,follower.replication" in command
        for command in kafka
    )
    assert "--additional --throttle 9600000" in reassign


# t-7 does not move; a list of before names it. Broker 3, which leads it at 1 MB/s, needs 4: 4 x 1.2 = 4.80 MB/s.
@pytest.mark.parametrize("others_mb", [4.5, 20])
def test_a_broker_that_moves_nothing_but_holds_back_a_replica_is_raised_too(others_mb: float) -> None:
    old = partition(7, leader=3, moving=False)
    moving = [
        status(1, LEADER, others_mb, 2, partition(0)),
        status(2, FOLLOWER, others_mb, 2, partition(0), in_sync_mb=0),
    ]
    recommendation = RECOMMENDER.raise_throttle(
        [*moving, status(3, LEADER, 1, 4, old), status(4, LEADER, 1, 0, limited=0)]
    )
    assert recommendation.throttle_bytes_per_s == 4_800_000
    apply, *kafka = recommendation.commands
    lower = ["1", "2", "3"] if others_mb < 4.8 else ["3"]
    assert f" --brokers {','.join(lower)} --raise-only " in apply
    # Kafka's tool for reassignments sets no rate on broker 3, which takes part in none.
    assert [command.split("--entity-name ")[1].split(" ")[0] for command in kafka] == lower


# Kafka's tools wait a minute for a broker that is down, and then fail; a broker takes its rate from itself alone.
def test_no_command_names_a_broker_that_is_down() -> None:
    dead = [replace(one, alive=False) for one in both(4, None, None)]
    recommendation = RECOMMENDER.raise_throttle([*STATUSES[:3], *dead])
    apply, *kafka = recommendation.commands
    assert " --brokers 1,2,3 --raise-only " in apply
    assert len(kafka) == 3
    assert not any("--additional" in command for command in kafka)
    assert recommendation.reason == (
        "broker(s) 4 of the move are down, and keep their rates: run the command again when they are back"
    )


def test_of_very_many_brokers_the_one_command_covers_all() -> None:
    statuses = [one for broker in range(1, 31) for one in both(broker, 5.6, 5.6)]
    apply, *rest = RECOMMENDER.raise_throttle(
        [*statuses, status(31, LEADER, 5.6, 8, partition(31, leader=31))]
    ).commands
    assert " --brokers 1,2,3," in apply
    assert ["--additional" in command for command in rest] == [True]


def test_the_plan_in_the_command_is_the_move_that_runs() -> None:
    words = shlex.split(RECOMMENDER.raise_throttle(STATUSES).commands[-1])
    assert (words[0], words[2:5]) == ("echo", [">", PLAN_FILE, "&&"])
    assert json.loads(words[1]) == {
        "version": 1,
        # One of them is enough: the tool starts from all that moves.
        "partitions": [{"topic": "t", "partition": 0, "replicas": [3, 2]}],
    }


def test_without_a_configuration_file_the_command_names_none_and_odd_names_are_quoted() -> None:
    assert (
        headroom_apply(7, [2], None)
        == "headroom throttle apply --rate 7B --low-rate --brokers 2 --raise-only --execute"
    )
    assert shlex.split(headroom_apply(7, [2], "my file.toml"))[4] == "my file.toml"


def test_an_unknown_need_gives_no_recommended_rate_and_is_named() -> None:
    recommendation = RECOMMENDER.raise_throttle([*STATUSES, status(5, FOLLOWER, 5.6, None, partition(2))])
    assert (recommendation.action, recommendation.throttle_bytes_per_s) == ("none", None)
    assert recommendation.commands == []
    assert "broker 5 as follower" in recommendation.reason


def test_over_capacity_it_advises_to_cancel_and_move_less_at_a_time() -> None:
    recommendation = Recommender(ThrottlePolicy(capacity_bytes_per_s=7 * MB), "broker1:9092").raise_throttle(STATUSES)
    assert (recommendation.action, recommendation.throttle_bytes_per_s) == ("reduce_move", None)
    assert "8.00 MB/s is needed and a broker carries 7.00 MB/s" in recommendation.reason
    moves = [MovingPartition("t", number, (3, 2)) for number in (0, 1)]
    assert recommendation.commands == [cancel(moves, "broker1:9092")]


def test_a_move_too_large_to_list_is_cancelled_as_a_whole() -> None:
    many = [replace(STATUSES[0], moving_partitions=60), *STATUSES[1:]]
    (command,) = (
        Recommender(ThrottlePolicy(capacity_bytes_per_s=7 * MB), "b:9092", "h.toml").raise_throttle(many).commands
    )
    assert command == (
        f"headroom reassignments --config h.toml --file {PLAN_FILE} && kafka-reassign-partitions.sh "
        f"--bootstrap-server b:9092 --reassignment-json-file {PLAN_FILE} --cancel --preserve-throttles"
    )


def test_a_deadline_that_the_capacity_cannot_meet_is_reported() -> None:
    policy = ThrottlePolicy(finish_within_s=1, capacity_bytes_per_s=10 * MB)
    recommendation = Recommender(policy, "broker1:9092").raise_throttle(STATUSES)
    assert recommendation.throttle_bytes_per_s == 10_000_000
    assert recommendation.reason.startswith("no throttle that a broker can carry finishes within")


def test_a_capacity_that_leaves_less_than_the_margin_is_the_reason_if_no_deadline_is_set() -> None:
    recommendation = Recommender(ThrottlePolicy(capacity_bytes_per_s=9 * MB), "broker1:9092").raise_throttle(STATUSES)
    assert recommendation.throttle_bytes_per_s == 9_000_000
    assert recommendation.reason == "a broker carries 9.00 MB/s, so that less than the usual margin is left"


def test_where_nothing_is_held_back_it_says_so() -> None:
    assert RECOMMENDER.raise_throttle([STATUSES[3]]).reason == "no replica is held back by a throttle"


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
        **{name: [] for name in ("peers", "stalls", "switches", "moves", "resting_topics")},
        **dict.fromkeys(
            (
                "lost_leaving_replicas",
                "eta_low_s",
                "eta_high_s",
                "quota_window_num",
                "quota_window_size_s",
                "replica_fetch_max_bytes",
                "replica_fetch_response_max_bytes",
                "num_replica_fetchers",
                "replica_fetch_backoff_ms",
                "waiting_replicas",
                "down_replicas",
                "counting_partitions",
                "limited_partitions",
                "free_partitions",
                "resting_topic_count",
            ),
            0,
        ),
        "known_in_sync_bytes_per_s": 0.0,
        "known_required_bytes_per_s": required,
        "moving_bytes_per_s": required,
        "log_dirs_throttle_bytes_per_s": None,
        "log_dirs_throttle_source": None,
    }


def test_values_missing_from_a_row_of_an_older_version_are_unknown() -> None:
    old = throttle_status_of(_row(1, "leader", 3 * MB, 4 * MB, "losing"))
    assert (old.lost_leaderless_replicas, old.lost_leaderless_moving_replicas) == (None, None)
    assert old.load.down_required_bytes_per_s is None


# What has no rate gets none: broker 3 is not limited, whatever it receives.
def test_a_listed_replica_without_a_rate_does_not_count_for_a_rate_that_it_will_not_get() -> None:
    rows = [_row(1, "leader", 3 * MB, 4 * MB, "losing"), _row(3, "follower", None, 8 * MB, "unthrottled")]
    assert RECOMMENDER.raise_throttle([throttle_status_of(row) for row in rows]).throttle_bytes_per_s == 4_800_000


# Its throttle has a rate, so what is not limited is not listed: no rate will ever hold it back.
@pytest.mark.parametrize(("throttle", "required"), [(3 * MB, 8 * MB), (None, 0.0)])
def test_a_replica_that_no_list_names_does_not_count(throttle: float | None, required: float) -> None:
    rows = [_row(1, "leader", 3 * MB, 4 * MB, "losing"), _row(3, "follower", throttle, required, "unthrottled", free=1)]
    assert RECOMMENDER.raise_throttle([throttle_status_of(row) for row in rows]).throttle_bytes_per_s == 4_800_000


def test_every_broker_that_takes_part_is_in_the_commands_though_the_list_of_partitions_is_cut() -> None:
    beyond = status(7, LEADER, 5.6, 3, moving_partitions=4)
    apply, *kafka, _ = RECOMMENDER.raise_throttle([*STATUSES, beyond]).commands
    assert "--brokers 1,2,3,7 " in apply
    assert len(kafka) == 4


def test_the_throttle_for_what_may_come_exceeds_it_by_the_margin_with_the_same_commands() -> None:
    recommendation = RECOMMENDER.raise_to(STATUSES, 20 * MB, "not urgent")
    assert (recommendation.action, recommendation.reason) == ("raise_throttle", "not urgent")
    assert (recommendation.throttle_bytes_per_s, recommendation.smallest_bytes_per_s) == (24_000_000, 20 * MB)
    assert recommendation.finish.finish_s > 0
    assert recommendation.commands == [
        command.replace("9600000", "24000000") for command in RECOMMENDER.raise_throttle(STATUSES).commands
    ]


def test_where_nothing_is_held_back_yet_what_may_come_has_no_finish() -> None:
    assert RECOMMENDER.raise_to([STATUSES[3]], 20 * MB, "not urgent").finish.finish_s is None


RATES = st.floats(0, 1e9)
CAPACITIES = st.none() | RATES


@given(RATES, st.lists(RATES, max_size=3), CAPACITIES, st.sampled_from([1.0, 1.2]))
@example(5.2, [], 5.9, 1.2)
@example(5.2, [5.5], 6.9, 1.0)
def test_the_rate_for_a_throttle_at_risk_exceeds_every_need_within_the_capacity(
    need: float, required: list[float], capacity: float | None, margin: float
) -> None:
    statuses = [status(broker, LEADER, 2000, r / MB, partition(broker)) for broker, r in enumerate(required)]
    recommender = Recommender(ThrottlePolicy(margin_ratio=margin, capacity_bytes_per_s=capacity), "broker1:9092")
    throttle = recommender.raise_to(statuses, need, "not urgent").throttle_bytes_per_s
    smallest = max([need, *(s.load.required_bytes_per_s or 0.0 for s in statuses)])
    if throttle is None:
        assert capacity is not None
        assert int(capacity) <= smallest
    else:
        assert throttle > smallest
        assert throttle <= (2e9 if capacity is None else capacity)


@given(RATES, RATES, CAPACITIES)
def test_the_rate_for_a_listed_leader_without_one_is_enough_for_it(
    others: float, required: float, capacity: float | None
) -> None:
    recommender = Recommender(ThrottlePolicy(capacity_bytes_per_s=capacity), "broker1:9092")
    throttle = recommender.set_rate(others, 2, required).throttle_bytes_per_s
    if throttle is None:
        assert capacity is not None
        assert int(capacity) <= required
    else:
        assert throttle > required
        assert throttle >= others


def test_a_listed_leader_without_a_rate_gets_that_of_the_others_with_commands_for_it_alone() -> None:
    recommendation = RECOMMENDER.set_rate(5.6 * MB, 2, 4 * MB)
    assert (recommendation.action, recommendation.throttle_bytes_per_s) == ("set_rate", 5_600_000)
    assert recommendation.reason == "only if that is too much; a rate must exceed 4.00 MB/s"
    headroom, kafka = recommendation.commands
    assert headroom == "headroom throttle apply --config headroom.toml --rate 5600000 --brokers 2 --execute"
    assert "--entity-name 2 --add-config leader.replication.throttled.rate=5600000," in kafka
    # 8 MB/s x 1.2: with the 5.60 MB/s of the others it would starve.
    assert RECOMMENDER.set_rate(5.6 * MB, 2, 8 * MB).throttle_bytes_per_s == 9_600_000


@pytest.mark.parametrize(
    ("others", "required", "said"),
    [
        (None, 4 * MB, "its lists limit nothing without one"),
        (5.6 * MB, None, "what it must exceed is not known yet"),
        (5.6 * MB, 10 * MB, "no rate would do: it must exceed 10.00 MB/s, and a broker carries 10.00 MB/s"),
    ],
)
def test_without_a_rate_known_to_be_sufficient_none_is_recommended(
    others: float | None, required: float | None, said: str
) -> None:
    recommender = Recommender(ThrottlePolicy(capacity_bytes_per_s=10 * MB), "broker1:9092")
    recommendation = recommender.set_rate(others, 2, required)
    assert (recommendation.action, recommendation.throttle_bytes_per_s) == ("set_rate", None)
    assert recommendation.commands == []
    assert said in recommendation.reason


def test_missing_entries_of_a_leader_list_are_named_by_topic() -> None:
    missing = [partition(4, topic="b"), partition(1), partition(0, topic="b")]
    reason = RECOMMENDER.list_leader(5, missing, 3).reason
    assert reason.endswith("replicas 4:5,0:5 of topic b; 1:5 of topic t")


# kafka-configs.sh refuses to delete a key that is not set, and all keys of the call with it.
def test_leftover_throttles_are_cleared_by_headroom_or_by_kafka_commands_per_key() -> None:
    rates = {2: ["leader.replication.throttled.rate"], 1: ["leader.replication.throttled.rate", "x"]}
    recommendation = RECOMMENDER.clear_throttle(rates, {"my topic": {FOLLOWER}, "t": {FOLLOWER, LEADER}}, "why")
    assert (recommendation.action, recommendation.reason) == ("clear_throttle", "why")
    alter = "kafka-configs.sh --bootstrap-server broker1:9092 --alter"
    lists = "leader.replication.throttled.replicas,follower.replication.throttled.replicas"
    assert recommendation.commands == [
        "headroom throttle clear --config headroom.toml --execute",
        f"{alter} --entity-type brokers --entity-name 1 --delete-config leader.replication.throttled.rate,x",
        f"{alter} --entity-type brokers --entity-name 2 --delete-config leader.replication.throttled.rate",
        f"{alter} --entity-type topics --entity-name 'my topic' --delete-config {lists.split(',')[1]}",
        f"{alter} --entity-type topics --entity-name t --delete-config {lists}",
    ]
    many = {number: ["leader.replication.throttled.rate"] for number in range(21)}
    assert RECOMMENDER.clear_throttle(many, {}, "why").commands == recommendation.commands[:1]


@pytest.mark.parametrize(
    ("cause", "action", "said"),
    [
        ("destination_down", "restore_broker", "bring broker 3 back, or cancel the move to it"),
        (
            "broker_down",
            "restore_broker",
            "bring broker 3 back, its replicas then catch up by themselves; "
            "only if it cannot come back, move them to other brokers (headroom plan --drain 3 makes the plan)",
        ),
        (
            "being_replaced",
            "restore_broker",
            "bring broker 3 back, or let the running move finish: it takes these replicas away from it",
        ),
        ("no_leader", "restore_broker", "bring a broker back that holds the partition in sync"),
        ("destination_disk", "inspect_broker", "look at the disk and the log of broker 3"),
        ("not_fetching", "inspect_broker", "look at the disk and the log of broker 3"),
        (
            "fallen_behind",
            "inspect_broker",
            "wait if it has just come back, its replicas then catch up by themselves; otherwise look at the disk and "
            "the log of broker 3",
        ),
        ("unknown", "inspect_broker", "look at the disk and the log of broker 3"),
    ],
)
def test_the_advice_for_a_stalled_replica_depends_on_its_cause(cause: str, action: str, said: str) -> None:
    recommendation = RECOMMENDER.restore_or_inspect_broker(3, cause)
    assert (recommendation.action, recommendation.reason) == (action, said)
    assert (recommendation.throttle_bytes_per_s, recommendation.commands) == (None, [])


KEYS = RECOMMENDER.no_throttle_change("").to_json().keys()


@pytest.mark.parametrize(
    "recommendation",
    [
        RECOMMENDER.raise_throttle(STATUSES),
        replace(RECOMMENDER, policy=ThrottlePolicy(capacity_bytes_per_s=1.0)).raise_throttle(STATUSES),
        RECOMMENDER.raise_to(STATUSES, 1.0, "why"),
        RECOMMENDER.list_leader(1, [], 0),
        RECOMMENDER.set_rate(1.0, 1, 1.0),
        RECOMMENDER.clear_throttle({}, {}, "why"),
        RECOMMENDER.restore_or_inspect_broker(1, "unknown"),
    ],
)
def test_every_recommendation_has_the_same_keys_and_is_ready_for_json(recommendation: Recommendation) -> None:
    written = recommendation.to_json()
    assert written.keys() == KEYS
    assert json.loads(json.dumps(written)) == written


def test_the_demand_of_a_row_knows_the_copies_by_leader_and_the_settings_of_its_broker() -> None:
    peers = [
        {
            "broker": leader,
            "replicas": replicas,
            "remaining_bytes": 40_000_000,
            "write_bytes_per_s": 2 * MB,
            "largest_remaining_bytes": 9_000_000,
            "leaving_bytes_per_s": MB,
        }
        for leader, replicas in ((1, 3), (2, 30))
    ]
    settings = {
        "quota_window_num": 5,
        "quota_window_size_s": 2,
        "replica_fetch_max_bytes": 2_000_000,
        "replica_fetch_response_max_bytes": 10_000_000,
        "num_replica_fetchers": 2,
        "replica_fetch_backoff_ms": 500,
    }
    rows = [{**_row(3, role, 3 * MB, 4 * MB, "losing"), "peers": peers, **settings} for role in ("follower", "leader")]
    destination, leader = (throttle_status_of(row).load for row in rows)
    # Three replicas bring 2 MB each; of thirty two threads bring 10 MB each. A destination gets both, a leader lets one
    # of them through at a time.
    assert (destination.burst_bytes, leader.burst_bytes) == (26_000_000, 20_000_000)
    assert [(s.leader, s.replicas, s.leaving_bytes_per_s) for s in destination.sources] == [(1, 3, MB), (2, 30, MB)]
    assert leader.sources == ()
    assert (destination.quota_window.mean_s, destination.fetch.backoff_s) == (11.0, 0.5)


def test_a_finish_is_the_same_simulation_with_its_range() -> None:
    advice = RECOMMENDER.raise_throttle(STATUSES)
    expected = finish([status.load for status in STATUSES if status.load.limited_replicas], advice.throttle_bytes_per_s)
    assert expected is not None
    assert (advice.finish.finish_low_s, advice.finish.finish_s, advice.finish.finish_high_s) == (
        expected.low_s,
        expected.middle_s,
        expected.high_s,
    )


# A tick whose event cannot be written has no verdict at all.
def test_a_copy_without_a_rate_on_either_end_does_not_keep_a_finish_from_being_simulated() -> None:
    statuses = [
        status(1, LEADER, None, 4, partition(0)),
        status(2, LEADER, 3, 4, partition(1, leader=2)),
        status(3, FOLLOWER, None, 4, partition(0)),
    ]
    advice = RECOMMENDER.raise_throttle(statuses)
    assert advice.throttle_bytes_per_s == 4_800_000
    assert advice.finish.finish_s is not None
    assert advice.finish.finish_s > 0
