"""Throttles that are missing, forgotten, or too low after the next switch: found when they are, and not beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headroom.alerts.finding import Finding
from headroom.alerts.inputs.throttle_status import LeadershipRisk, LogDirsThrottle, ThrottleStatus
from headroom.alerts.recommendations.recommender import Recommender
from headroom.alerts.rules.catalogue import evaluate_rules
from headroom.alerts.rules.rule import RuleInputs
from headroom.planning.reassignments.run.owners import ThrottleOwner
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.alerts import AlertKind, Severity, Verdict
from headroom.schemas.keys import Role
from tests.unit.builders.throttle_status import MB, SETTINGS, TICK_MS, assessment_of, found, kinds, partition, status

LEADER, FOLLOWER = Role.LEADER, Role.FOLLOWER
# Broker 1 leads a partition that the leader list names; its move to broker 3 is throttled to 9 MB/s at both ends.
LISTED = status(1, LEADER, 9, 4, partition(0))
DESTINATION = status(3, FOLLOWER, 9, 2, partition(0), in_sync_mb=0)
LISTED_TOO = partition(1, leader=2)


def unlisted(broker: int = 2, **more: Any) -> ThrottleStatus:
    """A leader that sends to a new replica, and that no leader list names."""
    p = partition(1, **{"leader": broker, "followers": 0, "in_sync_followers": 0, **more})
    return status(broker, LEADER, 9, 0, p, in_sync_mb=0, limited=0, free=1)


# --- a leader without a limit


def test_a_leader_that_the_list_of_a_throttled_move_does_not_name_is_found() -> None:
    finding = found(LISTED, DESTINATION, unlisted())
    assert (finding.kind, finding.subject) == (AlertKind.LEADER_UNTHROTTLED, "broker 2 as leader")
    assert (finding.severity, finding.hold_s) == (Severity.INFO, 3)
    assert (finding.evidence.cause, finding.evidence.switch_tick_ms) == ("not_listed", None)
    assert finding.recommendation.action == "list_leader"
    assert finding.recommendation.reason.endswith("leader.replication.throttled.replicas 1:2 of topic t")
    assert finding.summary == (
        "Broker 2 as leader sends t-1 to new replicas without a limit: the move is throttled, "
        "but the leader throttled list does not name it (rate in force 9.00 MB/s, observed unknown)"
    )


def test_the_switch_since_which_a_leader_has_no_limit_is_named() -> None:
    finding = found(LISTED, unlisted(previous_leader=1, switch_tick_ms=TICK_MS))
    assert "without a limit since the leader switch of t-1:" in finding.summary
    assert finding.evidence.switch_tick_ms == TICK_MS


def test_a_listed_leader_without_a_rate_is_found() -> None:
    finding = found(LISTED, status(2, LEADER, None, 4, LISTED_TOO))
    assert (finding.subject, finding.evidence.cause) == ("broker 2 as leader", "no_rate")
    assert finding.summary.endswith("the move is throttled, but it has no rate")


def test_the_rate_for_a_listed_leader_is_enough_for_both_its_roles() -> None:
    both = [status(2, LEADER, None, 4, LISTED_TOO), status(2, FOLLOWER, None, 10, limited=0)]
    # 10 MB/s x 1.2, for the rate is set for both; the others have 9.
    assert found(LISTED, *both).recommendation.throttle_bytes_per_s == 12_000_000


@pytest.mark.parametrize(
    "healthy",
    [
        # It is listed, and has a rate.
        status(2, LEADER, 9, 4, LISTED_TOO),
        # A broker that came back catches up behind lists that were forgotten: no move.
        status(2, LEADER, None, 4, partition(1, leader=2, moving=False)),
        # All that moves is in sync by now.
        status(2, LEADER, None, 4, partition(1, leader=2, in_sync_followers=2), limited=0),
    ],
)
def test_a_leader_that_sends_nothing_new_without_a_limit_is_not_found(healthy: ThrottleStatus) -> None:
    assert AlertKind.LEADER_UNTHROTTLED not in kinds(LISTED, healthy)


def test_a_move_without_a_throttle_reports_no_unthrottled_leader() -> None:
    assert kinds(unlisted(1), unlisted(2)) == {AlertKind.REASSIGNMENT_WITHOUT_THROTTLE}


@pytest.mark.parametrize("unread", [{"throttle_known": False}, {"verdict": Verdict.NO_DATA}])
def test_an_alert_on_a_leader_with_unknown_values_keeps_firing(unread: dict[str, Any]) -> None:
    assessment = assessment_of(LISTED, status(2, LEADER, None, 4, LISTED_TOO, **unread))
    assert [f.kind for f in assessment.findings] == [AlertKind.NO_DATA]
    assert (AlertKind.LEADER_UNTHROTTLED, "broker 2 as leader") in assessment.keep_firing


# --- a move without a throttle


def free(broker: int, role: Role, *numbers: int, **more: Any) -> ThrottleStatus:
    """Return a status with unlisted moving partitions of 2 MB/s each."""
    moves = [partition(n, **{"followers": 0, "in_sync_followers": 0, **more}) for n in numbers]
    return status(broker, role, None, 0, *moves, in_sync_mb=0, limited=0, free=len(numbers))


def test_a_move_that_no_list_names_is_found_once_with_what_a_throttle_must_exceed() -> None:
    # Broker 1 sends each of 2 partitions, of 2 MB/s, to the 2 others of its 3 replicas: 8 MB/s.
    finding = found(free(1, LEADER, 0, 1), free(2, LEADER, 2), free(3, FOLLOWER, 0, 1, 2))
    assert (finding.kind, finding.subject) == (AlertKind.REASSIGNMENT_WITHOUT_THROTTLE, "moves")
    assert (finding.severity, finding.hold_s) == (Severity.INFO, 3)
    assert (finding.evidence.broker_id, finding.evidence.required_bytes_per_s) == (1, 8 * MB)
    assert finding.summary == (
        "3 partition(s) move without a throttle, as fast as brokers and network go; "
        "to limit it, take more than 8.00 MB/s"
    )
    assert finding.recommendation.reason.endswith("a throttle must exceed 8.00 MB/s, what broker 1 sends")


def test_a_throttle_must_exceed_what_a_destination_of_many_leaders_receives_as_well() -> None:
    leaders = [free(broker, LEADER, broker) for broker in (1, 2, 4)]
    # 3 x 2 MB/s at broker 5, 2 x 2 MB/s at each leader.
    finding = found(*leaders, free(5, FOLLOWER, 1, 2, 4))
    assert finding.evidence.required_bytes_per_s == 6 * MB
    assert finding.recommendation.reason.endswith("what broker 5 receives")


# A list of * counts partitions that do not move as well: 12 MB/s in all.
def test_a_throttle_must_exceed_all_that_lists_without_a_rate_name() -> None:
    finding = found(status(1, LEADER, None, 12, partition(0)), status(3, FOLLOWER, None, 2, partition(0), in_sync_mb=0))
    assert (finding.kind, finding.evidence.required_bytes_per_s) == (
        AlertKind.REASSIGNMENT_WITHOUT_THROTTLE,
        12 * MB,
    )


def test_a_partition_of_one_replica_that_moves_has_one_follower() -> None:
    finding = found(free(1, LEADER, 0, replicas=(3, 1), target=(3,)))
    assert finding.evidence.required_bytes_per_s == 2 * MB


@pytest.mark.parametrize(
    "statuses",
    [
        [free(1, LEADER, 0, write_bytes_per_s=None)],
        [free(1, LEADER, 0), free(3, FOLLOWER, 0, write_bytes_per_s=None)],
    ],
)
def test_an_unknown_rate_gives_no_number(statuses: list[ThrottleStatus]) -> None:
    finding = found(*statuses)
    assert finding.evidence.required_bytes_per_s is None
    assert "more than" not in finding.summary
    assert finding.recommendation.reason.endswith("what a throttle would have to exceed is not known")


def test_a_throttle_must_exceed_all_that_moves_though_the_list_is_cut() -> None:
    many = replace(free(1, LEADER, 0), moving_partitions=60, moving_bytes_per_s=60 * MB)
    finding = found(many, free(3, FOLLOWER, 0))
    assert finding.evidence.required_bytes_per_s == 60 * MB
    assert finding.summary.startswith("60 partition(s) move without a throttle")


def test_leaders_without_a_limit_are_counted_beyond_the_list() -> None:
    many = replace(unlisted(), free_partitions=60)
    finding = found(LISTED, DESTINATION, many)
    assert "sends t-1 and 59 more to new replicas without a limit" in finding.summary
    assert finding.recommendation.reason.endswith("1:2 of topic t; those of 59 more partitions that it leads")
    # All that is listed at rest writes more: nothing of what moves is among what is named.
    none = replace(unlisted(), free_partitions=60, partitions=(partition(9, moving=False),))
    assert "sends 60 partition(s) to new replicas" in found(LISTED, DESTINATION, none).summary


def test_replicas_that_only_catch_up_after_a_restart_are_no_move() -> None:
    assert kinds(free(1, LEADER, 0, moving=False), free(3, FOLLOWER, 0, moving=False)) == set()


def test_a_move_of_which_too_little_is_known_is_held() -> None:
    assessment = assessment_of(free(1, LEADER, 0), replace(free(2, LEADER, 1), verdict=Verdict.NO_DATA))
    assert [f.kind for f in assessment.findings] == [AlertKind.NO_DATA]
    assert (AlertKind.REASSIGNMENT_WITHOUT_THROTTLE, "moves") in assessment.keep_firing


def rated(broker: int, role: Role, rate_mb: float, used_mb: float | None) -> ThrottleStatus:
    """Return a status with a listed moving partition of 2 MB/s, the rate in force, and what counts against it."""
    used = None if used_mb is None else used_mb * MB
    return status(broker, role, rate_mb, 4, partition(0), in_sync_mb=0, used_bytes_per_s=used)


def test_rates_that_no_list_names_are_named_with_what_is_observed() -> None:
    leader = replace(free(1, LEADER, 0), throttle_source="default")
    leader = replace(leader, load=replace(leader.load, throttle_bytes_per_s=5 * MB, used_bytes_per_s=0.0))
    finding = found(leader, free(3, FOLLOWER, 0))
    assert finding.summary == (
        "1 partition(s) move without a throttle, as fast as brokers and network go: broker 1 as leader (rate in "
        "force 5.00 MB/s (cluster default), observed 0 MB/s) limits nothing, because no throttled replica list names "
        "what moves; to limit it, take more than 4.00 MB/s"
    )
    evidence = finding.evidence_json()
    assert (evidence["cause"], evidence["throttle_bytes_per_s"], evidence["observed_bytes_per_s"]) == (
        "not_listed",
        5 * MB,
        0.0,
    )


def test_rates_in_another_unit_limit_nothing() -> None:
    finding = found(rated(1, LEADER, 5_000, 100), rated(3, FOLLOWER, 5_000, 50))
    assert (finding.kind, finding.subject) == (AlertKind.REASSIGNMENT_WITHOUT_THROTTLE, "moves")
    assert finding.hold_s == SETTINGS.stalled_s
    assert (
        "broker 1 as leader (rate in force 5,000 MB/s, observed 100 MB/s): it limits nothing, because it is 50 times"
        in finding.summary
    )
    assert finding.evidence.cause == "far_above_observed"


def test_more_than_the_rates_let_through_is_named() -> None:
    finding = found(rated(1, LEADER, 5_000, 100), rated(3, FOLLOWER, 10, 100))
    assert "broker 3 as destination (rate in force 10.00 MB/s, observed 100 MB/s): it does not hold" in finding.summary
    assert finding.evidence.cause == "observed_above_rate"


@pytest.mark.parametrize(
    "limiting",
    [
        rated(3, FOLLOWER, 9, 8.8),
        # What is observed is unknown, or nothing yet.
        rated(3, FOLLOWER, 5_000, None),
        rated(3, FOLLOWER, 5_000, 0),
    ],
)
def test_a_throttle_that_may_limit_the_move_at_its_other_end_raises_nothing(limiting: ThrottleStatus) -> None:
    assert kinds(rated(1, LEADER, 5_000, 100), limiting) == set()


# --- a throttle that is too low after the next switch


def successor(broker: int, takeover_mb: float, leader_mb: float, required_mb: float) -> list[ThrottleStatus]:
    """Return both roles of a broker that may become the leader of t-9, which broker 1 leads now."""
    takeover = LeadershipRisk(takeover_mb * MB, "t", 9, 1)
    return [
        status(broker, LEADER, leader_mb, required_mb, limited=0),
        status(broker, FOLLOWER, leader_mb, required_mb, limited=0, takeover=takeover),
    ]


# It sends 2 MB/s, and 4 more after the switch. A throttle that equals what is required does not do.
@pytest.mark.parametrize(("throttle_mb", "at_risk"), [(5.9, True), (6.0, True), (6.000_001, False)])
def test_a_throttle_that_one_more_partition_would_exceed_is_at_risk(throttle_mb: float, at_risk: bool) -> None:
    assert (AlertKind.THROTTLE_AT_RISK in kinds(*successor(2, 4, throttle_mb, 2))) is at_risk


def test_a_throttle_at_risk_names_the_leader_switch_and_a_sufficient_rate() -> None:
    finding = found(LISTED, DESTINATION, *successor(2, 4, 5, 2))
    assert (finding.kind, finding.subject) == (AlertKind.THROTTLE_AT_RISK, "broker 2 as leader")
    assert (finding.severity, finding.hold_s) == (Severity.INFO, 3)
    assert finding.evidence_json()["takeover"] == {"topic": "t", "partition": 9, "leader": 1}
    assert finding.evidence.required_then_bytes_per_s == 6 * MB
    # 6 MB/s x 1.2
    assert finding.recommendation.throttle_bytes_per_s == 7_200_000
    assert finding.recommendation.reason.startswith("not urgent")
    assert finding.summary == (
        "If broker 2 came to lead t-9, its throttle of 5.00 MB/s would be 1.00 MB/s too low: "
        "it would have to send 6.00 MB/s"
    )


def test_the_rate_against_what_may_come_starves_no_broker_with_a_higher_one() -> None:
    busy = status(4, LEADER, 30, 20, partition(3, leader=4))
    finding = found(busy, *successor(2, 4, 5, 2))
    assert finding.recommendation.throttle_bytes_per_s == 24_000_000


def test_a_need_above_the_capacity_after_a_switch_has_no_recommended_rate() -> None:
    finding = found(LISTED, *successor(2, 4, 5, 2), policy=ThrottlePolicy(capacity_bytes_per_s=6 * MB))
    assert finding.recommendation.throttle_bytes_per_s is None
    assert finding.recommendation.reason.endswith("no throttle would do, for a broker carries 6.00 MB/s")


def test_without_a_throttle_or_an_heir_nothing_is_at_risk() -> None:
    unlimited = [replace(s, load=replace(s.load, throttle_bytes_per_s=None)) for s in successor(2, 4, 5, 2)]
    assert (
        kinds(LISTED, *unlimited) == kinds(LISTED, *[replace(s, takeover=None) for s in successor(2, 4, 5, 2)]) == set()
    )


@pytest.mark.parametrize(
    "trouble", [status(4, LEADER, 3, 4, partition(3, leader=4)), status(4, LEADER, 9, None, partition(3, leader=4))]
)
def test_throttle_at_risk_is_held_while_a_throttle_is_too_low_or_a_need_is_unknown(trouble: ThrottleStatus) -> None:
    assessment = assessment_of(trouble, *successor(2, 4, 5, 2))
    assert AlertKind.THROTTLE_AT_RISK not in {f.kind for f in assessment.findings}
    assert (AlertKind.THROTTLE_AT_RISK, "broker 2 as leader") in assessment.keep_firing


# --- throttles that a move left behind


def resting(broker: int, role: Role, throttle_mb: float | None, *numbers: int, **more: Any) -> ThrottleStatus:
    """Return a status without moves whose partitions are still listed."""
    listed = [partition(n, moving=False, in_sync_followers=2, replicas=(3, 2), target=(3, 2)) for n in numbers]
    read = {"throttle_source": "none" if throttle_mb is None else "broker"}
    return status(broker, role, throttle_mb, 4, *listed, limited=0, **{**read, **more})


def test_rates_and_lists_without_a_move_are_found() -> None:
    finding = found(resting(1, LEADER, 5, 0, 1), resting(1, FOLLOWER, 5), resting(2, FOLLOWER, 7, 1))
    assert (finding.kind, finding.subject) == (AlertKind.THROTTLE_LEFT_BEHIND, "throttles")
    assert (finding.severity, finding.hold_s) == (Severity.WARNING, 300)
    assert finding.evidence.brokers == [1, 2]
    assert finding.evidence.listed_partitions == ["t-0", "t-1"]
    assert finding.summary == (
        "No reassignment is running, but there is still a throttle of 5.00 MB/s to 7.00 MB/s on broker(s) 1, 2 "
        "and throttled replica lists that name t-0, t-1"
    )
    headroom, first, second, topic = finding.recommendation.commands
    assert headroom == "headroom throttle clear --execute"
    assert "--entity-name 1 " in first
    assert "--entity-name 2 " in second
    assert "--entity-type topics --entity-name t --delete-config leader.replication.throttled.replicas," in topic


@pytest.mark.parametrize(
    ("statuses", "said"),
    [
        ([resting(1, LEADER, 5)], "a throttle of 5.00 MB/s on broker(s) 1"),
        ([resting(1, LEADER, None, 0)], "throttled replica lists that name t-0"),
        # The one replica that it names is of a broker that is down.
        ([resting(1, LEADER, None, resting_topics=("t",))], "throttled replica lists of t"),
    ],
)
def test_a_rate_without_lists_or_lists_without_a_rate_limit_nothing(statuses: list[ThrottleStatus], said: str) -> None:
    finding = found(*statuses)
    assert finding.severity is Severity.WARNING
    assert finding.summary == f"No reassignment is running, but there is still {said}"
    assert "it limits nothing as it is" in finding.recommendation.reason


def test_a_rate_for_the_whole_cluster_is_no_remains_of_a_move() -> None:
    assert kinds(resting(1, LEADER, 5, throttle_source="default")) == set()


def test_a_rate_for_the_whole_cluster_limits_what_forgotten_lists_name_and_stays() -> None:
    finding = found(resting(1, LEADER, 5, 0, throttle_source="default"))
    assert (finding.severity, finding.evidence.cluster_default) == (Severity.WARNING, True)
    assert not any("--entity-type brokers" in c or "default" in c for c in finding.recommendation.commands)


def test_a_truncated_list_is_reported_with_its_full_count() -> None:
    finding = found(resting(1, LEADER, 5, *range(20), resting_listed_partitions=50))
    assert finding.summary.endswith("that name t-0, t-1, t-10 and 47 more")


def test_while_anything_moves_nothing_is_left_behind() -> None:
    assert AlertKind.THROTTLE_LEFT_BEHIND not in kinds(resting(1, LEADER, 5, 0), LISTED, DESTINATION)


def test_a_cluster_that_was_cleared_has_nothing_left_behind() -> None:
    assessment = assessment_of(resting(1, LEADER, None), resting(1, FOLLOWER, None))
    assert (assessment.findings, assessment.keep_firing) == ([], set())


# A broker that is down limits nobody, and may never come back.
@pytest.mark.parametrize(("alive", "held"), [(True, True), (False, False)])
def test_an_alert_on_leftover_throttles_is_held_if_a_live_broker_reports_no_rates(alive: bool, held: bool) -> None:
    assessment = assessment_of(resting(1, LEADER, None), resting(2, LEADER, None, throttle_source=None, alive=alive))
    assert assessment.findings == []
    assert ((AlertKind.THROTTLE_LEFT_BEHIND, "throttles") in assessment.keep_firing) is held


def test_a_forgotten_throttle_that_holds_back_a_broker_after_its_restart_is_to_be_removed() -> None:
    behind = partition(0, moving=False, replicas=(2, 1), target=(2, 1))
    finding = found(
        status(1, LEADER, 3, 4, behind, throttle_source="broker"), kind=AlertKind.THROTTLE_BELOW_LEADER_WRITE
    )
    assert finding.summary.startswith("Catching up will not finish: broker 1 as leader is throttled to 3.00 MB/s")
    assert finding.summary.endswith("; replicas out of sync fall further behind")
    assert finding.recommendation.action == "clear_throttle"
    assert finding.recommendation.commands[0] == "headroom throttle clear --execute"


RUN = ThrottleOwner(
    "3f9a01c2", "reassign run", "anna@host1", True, True, "headroom reassign run move.json --throttle 5000000 --execute"
)


def left_behind_by(*statuses: ThrottleStatus, **owners: ThrottleOwner) -> Finding:
    """Return the finding; owners by subject, with ``_`` for each space."""
    by_subject = {subject.replace("_", " "): owner for subject, owner in owners.items()}
    recommender = Recommender(ThrottlePolicy(), "broker1:9092", "prod.toml")
    assessment = evaluate_rules(RuleInputs(statuses, SETTINGS, recommender, owners=by_subject))
    (finding,) = [f for f in assessment.findings if f.kind is AlertKind.THROTTLE_LEFT_BEHIND]
    return finding


def test_the_run_that_left_a_throttle_is_named_with_the_commands_that_continue_and_clean_it() -> None:
    statuses = [resting(1, LEADER, 3), resting(1, FOLLOWER, 3)]
    finding = left_behind_by(*statuses, broker_1_as_leader=RUN, broker_1_as_follower=RUN)
    assert finding.summary.endswith("; set by run 3f9a01c2 (reassign run, anna@host1), which has not ended")
    assert finding.recommendation.commands[:3] == [
        "headroom reassign run move.json --throttle 5000000 --execute",
        "headroom reassign clean 3f9a01c2 --config prod.toml --execute",
        "headroom throttle clear --config prod.toml --execute",
    ]
    reason = "run 3f9a01c2 left this: continue it with its command, or remove exactly what it set with reassign clean"
    assert (finding.recommendation.reason or "").startswith(reason)
    (owner,) = finding.evidence_json()["owners"]
    assert (owner["run_id"], owner["command"], owner["unfinished"]) == ("3f9a01c2", "reassign run", True)


def test_a_run_that_pauses_between_batches_is_named_as_running_without_commands_that_its_lock_refuses() -> None:
    running = replace(RUN, process="pid 7 on host host1 since 2026-01-01 10:00:00 UTC")
    finding = left_behind_by(resting(1, LEADER, 3), broker_1_as_leader=running)
    assert f"which is running ({running.process}), with no reassignment at the moment" in finding.summary
    assert "has not ended" not in finding.summary
    commands = finding.recommendation.commands
    assert commands[:2] == [
        "headroom reassign runs --config prod.toml",
        "headroom throttle clear --config prod.toml --execute",
    ]
    assert not any("reassign clean" in command or "reassign run " in command for command in commands)
    assert "run 3f9a01c2 is running and removes what it set when it ends" in (finding.recommendation.reason or "")
    assert finding.evidence_json()["owners"][0]["process"] == running.process


def test_a_run_that_has_ended_is_only_cleaned() -> None:
    ended = replace(RUN, unfinished=False, continue_command=None)
    finding = left_behind_by(resting(1, LEADER, 3), broker_1_as_leader=ended)
    assert finding.summary.endswith("; set by run 3f9a01c2 (reassign run, anna@host1)")
    assert finding.recommendation.commands[0] == "headroom reassign clean 3f9a01c2 --config prod.toml --execute"


def test_the_owner_of_a_list_or_of_the_rate_between_directories_is_named_too() -> None:
    apply = ThrottleOwner("77", "throttle apply", "ben@host2")
    listed = left_behind_by(resting(1, LEADER, None, 0), topic_t_as_leader=apply)
    assert listed.summary.endswith("; set by throttle apply by ben@host2")
    # Only a run has a journal that clean reads.
    assert listed.recommendation.commands[0] == "headroom throttle clear --config prod.toml --execute"
    log_dirs = LogDirsThrottle(bytes_per_s=5_000_000, source="broker")
    between = evaluate_rules(
        RuleInputs(
            [replace(resting(1, LEADER, 3), log_dirs=log_dirs)],
            SETTINGS,
            Recommender(ThrottlePolicy(), "broker1:9092"),
            owners={"broker 1 as log_dirs": RUN},
        )
    ).findings[0]
    assert "set by run 3f9a01c2" in between.summary


def test_a_rate_of_zero_is_left_behind_like_any_other() -> None:
    between = replace(resting(1, LEADER, 0), log_dirs=LogDirsThrottle(bytes_per_s=0, source="broker"))
    finding = found(between)
    assert finding.evidence_json()["log_dirs_throttle_brokers"] == [1]
    keys = "leader.replication.throttled.rate,replica.alter.log.dirs.io.max.bytes.per.second"
    assert finding.recommendation.commands[-1].endswith(f" --delete-config {keys}")


def test_owners_of_throttles_that_are_not_left_behind_are_not_named() -> None:
    finding = left_behind_by(resting(1, LEADER, 3), broker_2_as_leader=RUN, topic_u_as_leader=RUN)
    assert "set by" not in finding.summary
    assert finding.recommendation.commands[0] == "headroom throttle clear --config prod.toml --execute"
