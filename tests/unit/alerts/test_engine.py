"""Alert engine: throttle statuses of ticks to events, and missing ticks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest

from headroom.alerts.engine import AlertEngine
from headroom.alerts.inputs.cluster_inputs import Dated
from headroom.alerts.inputs.leader_balance import LeaderBalance
from headroom.alerts.inputs.throttle_status import LeaderSwitch, OutOfSyncReplica, ThrottleStatus
from headroom.alerts.rules.no_ticks import Machine
from headroom.alerts.watched_cluster import WatchedCluster
from headroom.planning.reassignments.run.owners import ThrottleOwner
from headroom.schemas.alerts import AlertEvent, Verdict
from headroom.schemas.config import AlertSettings, ClusterSettings, CollectSettings, Settings, SparkSettings
from headroom.schemas.keys import Role
from tests.unit.builders.leader_balance import PLAN_SUMMARY, balance
from tests.unit.builders.throttle_status import MB, partition, status

START_MS = 1_800_000_000_000
TOO_LOW = [status(1, Role.LEADER, 3, 4, partition())]
GOOD = [status(1, Role.LEADER, 9, 4, partition())]


class EngineAtTime:
    """An alert engine with its clock; ticks have the time of the clock."""

    def __init__(self, *others: str, interval_s: float = 1.0, bootstrap_servers: str = "") -> None:
        self.now_ms = START_MS
        settings = Settings(
            cluster=ClusterSettings(name="c", bootstrap_servers="broker1:9092"),
            collect=CollectSettings(interval_s=interval_s),
            alerts=AlertSettings(hold_s=0, resolve_s=2, no_data_s=15, bootstrap_servers=bootstrap_servers),
        )
        further = [WatchedCluster(Settings(cluster=ClusterSettings(name=name))) for name in others]
        self.engine = AlertEngine(settings, lambda: self.now_ms, "headroom.toml", further)

    def at(self, second: float) -> AlertEngine:
        self.now_ms = START_MS + round(second * 1000)
        return self.engine

    def balances(self, second: float, *balances: LeaderBalance, cluster: str = "c") -> None:
        """How leaders are shared out at a second."""
        self.engine.inputs(cluster).balances = Dated(balances, START_MS + round(second * 1000))

    def tick(self, second: float, statuses: list, cluster: str = "c") -> list[tuple[str, str, str]]:  # type: ignore[type-arg]
        return changes(self.at(second).evaluate(cluster, self.now_ms, statuses))


def changes(events: list[AlertEvent]) -> list[tuple[str, str, str]]:
    return [(event.kind, event.subject, event.state) for event in events]


LEADER_ALERT = ("throttle_below_leader_write", "broker 1 as leader")
MISSING_TICKS = ("no_data", "ticks")


def test_a_tick_brings_events_with_evidence_and_advice() -> None:
    engine = EngineAtTime()
    assert engine.tick(0, TOO_LOW) == [(*LEADER_ALERT, "pending"), (*LEADER_ALERT, "firing")]
    (event,) = engine.engine.active()
    assert (event.tick_ms, event.event_ms, event.cluster) == (START_MS, START_MS, "c")
    recommendation = json.loads(event.recommendation)
    # 4 MB/s x 1.2
    assert recommendation["throttle_bytes_per_s"] == 4_800_000
    assert "--bootstrap-server broker1:9092" in recommendation["commands"][1]


def test_the_predicted_finish_uses_the_quota_state_of_earlier_ticks() -> None:
    def promised(*remaining_mb: float) -> float:
        """The promise at the last tick, with which the throttle falls short."""
        engine = EngineAtTime()
        for second, remaining in enumerate(remaining_mb, 1):
            throttle = 9 if second < len(remaining_mb) else 3
            counted = {"remaining_bytes": round(remaining * MB), "used_bytes_per_s": 3 * MB}
            engine.tick(second, [status(1, Role.LEADER, throttle, 4, partition(), **counted)])
        return float(json.loads(engine.engine.active()[0].recommendation)["finish_s"])

    # The same lag in the end: what was copied just now leaves the window later than what came before.
    assert promised(20, 22, 24) != promised(36, 30, 24)


def test_commands_may_name_other_servers_than_headroom_uses() -> None:
    engine = EngineAtTime(bootstrap_servers="public:9092")
    engine.tick(0, TOO_LOW)
    assert "--bootstrap-server public:9092" in json.loads(engine.engine.active()[0].recommendation)["commands"][1]


def test_each_cluster_has_its_own_commands_and_an_unknown_one_gets_blanks() -> None:
    theirs = Settings(cluster=ClusterSettings(name="other", bootstrap_servers="broker9:9092", replication_capacity=1e6))
    own = Settings(cluster=ClusterSettings(name="c", bootstrap_servers="broker1:9092"), alerts=AlertSettings(hold_s=0))
    engine = AlertEngine(own, lambda: START_MS, "c.toml", [WatchedCluster(theirs, "other.toml")])
    for cluster in ("c", "other", "stranger"):
        engine.evaluate(cluster, START_MS, TOO_LOW)
    advice = {event.cluster: json.loads(event.recommendation) for event in engine.active()}
    assert "--config c.toml" in advice["c"]["commands"][0]
    assert "--bootstrap-server broker1:9092" in advice["c"]["commands"][1]
    # 4 MB/s are more than the 1 MB/s that its brokers carry.
    assert advice["other"]["action"] == "reduce_move"
    assert "--bootstrap-server broker9:9092" in advice["other"]["commands"][0]
    assert "--bootstrap-server '<bootstrap servers of stranger>'" in advice["stranger"]["commands"][1]


def test_the_run_that_left_a_throttle_is_in_the_alert_of_its_cluster() -> None:
    engine = EngineAtTime()
    left = [status(1, Role.LEADER, 9, 4, limited=0, throttle_source="broker")]
    owner = ThrottleOwner("3f9a01c2", "reassign run", "anna@host1", runs_plan=True)
    engine.tick(0, left)
    # Read while the alert is pending.
    for second in range(50, 300, 50):
        engine.tick(second, left)
    engine.engine.inputs("c").owners = {"broker 1 as leader": owner}
    engine.engine.inputs("other").owners = {"broker 1 as leader": replace(owner, run_id="other")}
    assert engine.tick(300, left) == [("throttle_left_behind", "throttles", "firing")]
    (event,) = engine.engine.active()
    assert event.summary.endswith("; set by run 3f9a01c2 (reassign run, anna@host1)")
    assert (
        json.loads(event.recommendation)["commands"][0]
        == "headroom reassign clean 3f9a01c2 --config headroom.toml --execute"
    )


def test_an_alert_resolves_and_a_repeated_tick_gives_no_event() -> None:
    engine = EngineAtTime()
    engine.tick(0, TOO_LOW)
    assert engine.tick(1, GOOD) == engine.tick(2, GOOD) == []
    assert engine.tick(3, GOOD) == [(*LEADER_ALERT, "resolved")]
    assert engine.tick(3, TOO_LOW) == engine.tick(0, TOO_LOW) == []


def test_a_slipping_finish_fires_and_stays_active_while_no_finish_is_known() -> None:
    def moving(eta_s: float | None) -> list[ThrottleStatus]:
        return [status(1, Role.LEADER, 9, 4, partition(), eta_s=eta_s)]

    slip = ("eta_slipping", "moves")
    engine = EngineAtTime()
    assert engine.tick(0, moving(100)) == []
    assert engine.tick(100, moving(1000)) == [(*slip, "pending"), (*slip, "firing")]
    # Another cluster has a finish of its own.
    assert engine.tick(100, moving(1000), "d") == []
    assert engine.tick(101, moving(None)) == engine.tick(110, moving(None)) == []
    assert engine.tick(111, moving(5)) == []
    assert engine.tick(113, moving(5)) == [(*slip, "resolved")]


def test_leaders_that_fall_short_in_turn_of_one_switch_have_one_alert() -> None:
    switch = LeaderSwitch(3, 30, 0.8 * MB, START_MS, ("t-0", "t-1", "t-2"))

    def tick(second: float, *required_mb: float, recent: Sequence[int] = (1, 4)) -> list[tuple[str, str, str]]:
        """A tick of brokers 1 and 4, of which one is slow where it requires no more than 2.88 MB/s.

        The switch is the cause of what is ``recent``.
        """
        statuses = [
            replace(
                status(b, Role.LEADER, 2.4, mb, partition(), in_sync_mb=1.4, switches=(switch,) if b in recent else ()),
                verdict=Verdict.SLOW if mb <= 2.88 else Verdict.LOSING,
            )
            for b, mb in zip((1, 4), required_mb, strict=True)
        ]
        return engine.tick(second, statuses)

    engine = EngineAtTime()
    assert [state for *_, state in tick(0, 2.90, 2.93)] == ["pending", "firing"]
    for second, required_mb in enumerate([(2.87, 2.86), (2.91, 2.87), (2.87, 2.90), (2.92, 2.93), (2.95, 2.86)], 1):
        assert tick(second, *required_mb) == []
    # The switch is over for one of them before the other.
    for second, (required_mb, recent) in enumerate(product([(2.92, 2.93), (2.91, 2.86)], [(1,), (4,), ()]), 10):
        assert tick(second, *required_mb, recent=recent) == []
    assert [event.subject for event in engine.engine.active()] == ["broker 4 as leader"]


def test_an_alert_goes_on_with_the_rates_that_it_named_until_all_of_them_are_raised() -> None:
    # Kafka's own tool raises one broker's rate after the other, some seconds apart.
    switch = LeaderSwitch(3, 30, 0.8 * MB, START_MS, ("t-0", "t-1", "t-2"))

    def tick(second: float, first_mb: float, other_mb: float, recent: bool = False) -> list[tuple[str, str, str]]:
        switches = (switch,) if recent else ()
        return engine.tick(
            second,
            [
                replace(
                    status(b, Role.LEADER, throttle_mb, 2.9 + b / 100, partition(), in_sync_mb=1.4, switches=switches),
                    verdict=Verdict.LOSING if throttle_mb < 2.9 else Verdict.CATCHING_UP,
                )
                for b, throttle_mb in ((1, other_mb), (4, first_mb))
            ],
        )

    engine = EngineAtTime()
    subject = "broker 4 as leader"
    fired = tick(0, 2.4, 2.4, recent=True)
    assert [state for *_, state in fired] == ["pending", "firing"]
    assert fired[0][1] == subject
    assert [e for second in range(1, 20) for e in tick(second, 2.4, 2.4)] == []
    assert [e for second in range(20, 24) for e in tick(second, 3.5, 2.4)] == []
    # After that it is told what it is about by now.
    announced_again = [e for second in range(24, 40) for e in tick(second, 3.5, 2.4)]
    assert {(name, state) for _, name, state in announced_again} <= {(subject, "firing")}
    (event,) = engine.engine.active()
    assert (event.subject, json.loads(event.evidence)["goes_on_with"]["subject"]) == (subject, "broker 1 as leader")
    ended = [e for second in range(40, 50) for e in tick(second, 3.5, 3.5)]
    assert [(name, state) for _, name, state in ended] == [(subject, "resolved")]


# Somebody has raised the rate, but not far enough: the alert must not go on naming the old one.
def test_a_throttle_that_others_changed_and_that_is_still_too_low_is_announced_again() -> None:
    engine = EngineAtTime()
    engine.tick(0, [status(1, Role.LEADER, 1, 4, partition())])
    raised = [status(1, Role.LEADER, 3.5, 4, partition())]
    events = [e for second in range(1, 30) for e in engine.at(second).evaluate("c", engine.now_ms, raised)]
    # A change must last for 5 s.
    assert [((e.tick_ms - START_MS) // 1000, e.severity, e.state) for e in events] == [(6, "warning", "firing")]
    assert "is throttled to 3.50 MB/s" in events[0].summary
    slightly = [status(1, Role.LEADER, 3.7, 4, partition())]
    assert [e for second in range(30, 60) for e in engine.tick(second, slightly)] == []


def test_missing_ticks_are_reported_once_after_the_allowed_time() -> None:
    engine = EngineAtTime()
    engine.tick(0, GOOD)
    # As long as a verdict may be unknown, and as the ticks may be without a leader: 15 s and 5 s.
    assert engine.at(19.9).check_missing_ticks() == []
    events = engine.at(20).check_missing_ticks()
    assert changes(events) == [(*MISSING_TICKS, "pending"), (*MISSING_TICKS, "firing")]
    assert json.loads(events[0].evidence)["last_tick_ms"] == START_MS
    assert json.loads(events[0].recommendation)["throttle_bytes_per_s"] is None
    assert engine.at(21).check_missing_ticks() == []


def test_with_a_long_interval_three_ticks_must_be_missing() -> None:
    engine = EngineAtTime(interval_s=10)
    engine.tick(0, GOOD)
    assert engine.at(29.9).check_missing_ticks() == []
    assert engine.at(30).check_missing_ticks() != []


def test_missing_ticks_resolve_no_other_alert_and_end_with_new_ticks() -> None:
    engine = EngineAtTime()
    engine.tick(0, TOO_LOW)
    engine.at(20).check_missing_ticks()
    engine.at(90).check_missing_ticks()
    assert {event.kind for event in engine.engine.active()} == {"no_data", "throttle_below_leader_write"}
    assert engine.tick(91, TOO_LOW) == engine.tick(92, TOO_LOW) == []
    assert engine.tick(93, TOO_LOW) == [(*MISSING_TICKS, "resolved")]


def test_old_ticks_of_a_backlog_do_not_resolve_missing_ticks() -> None:
    engine = EngineAtTime()
    engine.tick(0, GOOD)
    engine.at(60).check_missing_ticks()
    assert engine.at(80).evaluate("c", START_MS + 61_000, GOOD) == []
    assert engine.at(80).evaluate("c", START_MS + 64_000, GOOD) == []
    assert [event.subject for event in engine.engine.active()] == ["ticks"]


# The collector's clock is 20 s behind: its ticks come at their pace, and always seem old.
def test_a_collector_whose_clock_is_behind_ends_its_silence_like_any_other() -> None:
    engine = EngineAtTime()
    engine.at(20).evaluate("c", START_MS, GOOD)
    assert changes(engine.at(60).check_missing_ticks())[-1] == (*MISSING_TICKS, "firing")
    ticks = [(second, START_MS + (second - 20) * 1000) for second in range(61, 66)]
    events = [e for second, tick_ms in ticks for e in engine.at(second).evaluate("c", tick_ms, GOOD)]
    # The first is as old as the one before the silence: it is of no backlog. 2 s after it, of second 41, it is over.
    assert [(e.tick_ms - START_MS, *changes([e])[0]) for e in events] == [(43_000, *MISSING_TICKS, "resolved")]


def test_missing_ticks_are_reported_in_the_time_of_the_ticks() -> None:
    engine = EngineAtTime()
    engine.at(20).evaluate("c", START_MS, GOOD)
    # Judged at second 20, it is of second 0; 40 s later it is second 40 there.
    assert [event.tick_ms - START_MS for event in engine.at(60).check_missing_ticks()] == [40_000, 40_000]


def test_alerts_of_a_cluster_that_nobody_configures_any_more_end() -> None:
    before = EngineAtTime()
    events = before.at(0).evaluate("renamed", START_MS, TOO_LOW)
    engine = EngineAtTime()
    engine.engine.restore(events)
    assert [e for e in engine.at(89).check_missing_ticks() if e.cluster == "renamed"] == []
    (ended,) = [e for e in engine.at(90).check_missing_ticks() if e.cluster == "renamed"]
    assert (ended.state, ended.alert_id) == ("resolved", events[-1].alert_id)
    assert ended.summary.endswith("; ended: no configuration names cluster renamed any more")
    assert [e for e in engine.at(200).check_missing_ticks() if e.cluster == "renamed"] == []


def test_a_cluster_that_nobody_configures_is_not_missed_when_its_ticks_stay_away() -> None:
    engine = EngineAtTime()
    engine.tick(0, TOO_LOW, "stranger")
    ended = [e for second in range(1, 200) for e in engine.at(second).check_missing_ticks() if e.cluster == "stranger"]
    assert changes(ended) == [(*LEADER_ALERT, "resolved")]


def test_a_cluster_that_nobody_configures_may_come_back_after_long() -> None:
    engine = EngineAtTime()
    engine.tick(0, TOO_LOW, "stranger")
    engine.at(100).check_missing_ticks()
    assert [state for *_, state in engine.tick(700, TOO_LOW, "stranger")] == ["pending", "firing"]


def missing_ticks_event(engine: EngineAtTime, second: float, batch_s: float | None = None) -> tuple[str, str]:
    """Return summary and recommendation of the missing-ticks alert at a time."""
    event = engine.at(second).check_missing_ticks(batch_s)[-1]
    return event.summary, json.loads(event.recommendation)["reason"]


def test_missing_ticks_on_an_overloaded_machine_name_that_machine_first() -> None:
    def silent_at(load: float) -> AlertEvent:
        engine = EngineAtTime()
        engine.tick(0, GOOD)
        return engine.at(20).check_missing_ticks(None, Machine(load, 2))[-1]

    calm, busy = silent_at(4), silent_at(10)
    assert "overloaded" not in calm.summary + json.loads(calm.recommendation)["reason"].split("(3)")[0]
    assert busy.summary.endswith("; this machine is overloaded (load 10 on 2 cores)")
    reason = json.loads(busy.recommendation)["reason"]
    assert "(1) this machine, which is overloaded (load 10 on 2 cores)" in reason
    evidence = json.loads(busy.evidence)
    assert (evidence["machine_load"], evidence["machine_cores"]) == (10, 2)


def in_order(advice: str) -> list[str]:
    return sorted(("the collector:", "the cluster that holds", "the process that evaluates ticks"), key=advice.index)


def test_missing_ticks_name_the_last_evaluated_tick_and_where_to_look_first() -> None:
    engine = EngineAtTime()
    engine.tick(0, GOOD)
    # 1,800,000,000 s after the epoch: 08:00:00
    summary, advice = missing_ticks_event(engine, 20, batch_s=0.4)
    assert summary == ("No verdict on any move: the last evaluated tick of cluster c is of 08:00:00 UTC, 20 s ago")
    assert in_order(advice) == ["the collector:", "the cluster that holds", "the process that evaluates ticks"]


def test_missing_ticks_during_a_long_batch_point_to_the_evaluating_process_first() -> None:
    engine = EngineAtTime()
    engine.tick(0, GOOD)
    summary, advice = missing_ticks_event(engine, 25, batch_s=22.0)
    assert summary.endswith("25 s ago; ticks have come, but their batch has been worked on for 22 s")
    assert in_order(advice) == ["the process that evaluates ticks", "the cluster that holds", "the collector:"]


@pytest.mark.parametrize(
    ("second", "batch_s", "is_reported"),
    [
        (19.9, None, False),
        (20, None, True),
        # What is worked on has come, if for no longer than ticks may stay away; one begun just now may be another's.
        (20, 4.9, True),
        (20, 5.0, False),
        (39.9, 19.9, False),
        (25, 20.0, True),
        (40, 19.9, True),
    ],
)
def test_ticks_that_are_worked_on_have_as_long_as_those_that_stay_away(
    second: float, batch_s: float | None, is_reported: bool
) -> None:
    engine = EngineAtTime()
    engine.tick(0, GOOD)
    assert (
        changes(engine.at(second).check_missing_ticks(batch_s))
        == [(*MISSING_TICKS, "pending"), (*MISSING_TICKS, "firing")] * is_reported
    )


def test_missing_ticks_after_a_late_evaluation_point_to_the_evaluating_process_first() -> None:
    engine = EngineAtTime()
    # Judged at second 40, of second 20: 20 s late; in time is up to 15 s.
    engine.at(40).evaluate("c", START_MS + 20_000, GOOD)
    summary, advice = missing_ticks_event(engine, 60)
    assert summary.endswith("is of 08:00:20 UTC, 40 s ago; that one was evaluated 20 s late")
    assert in_order(advice)[0] == "the process that evaluates ticks"


def test_missing_ticks_since_the_start_say_so() -> None:
    clock = [START_MS]
    engine = AlertEngine(Settings(cluster=ClusterSettings(name="c")), lambda: clock[0])
    clock[0] += 90_000
    summary = engine.check_missing_ticks()[-1].summary
    assert summary.endswith("no tick of cluster c was evaluated since the start at 08:00:00 UTC, 1 min 30 s ago")


def test_missing_ticks_are_found_per_cluster() -> None:
    engine = EngineAtTime("d")
    engine.tick(0, GOOD, "c")
    engine.tick(0, GOOD, "d")
    engine.tick(19, GOOD, "d")
    assert {event.cluster for event in engine.at(21).check_missing_ticks()} == {"c"}


def test_stored_alerts_are_restored_in_any_order() -> None:
    first = EngineAtTime()
    events = first.at(0).evaluate("c", START_MS, TOO_LOW)
    second = EngineAtTime()
    second.engine.restore(events[::-1])
    assert [event.state for event in second.engine.active()] == ["firing"]
    assert second.tick(0, TOO_LOW) == second.tick(1, TOO_LOW) == []


IMBALANCE = ("leader_imbalance", "broker 2")
AWAY, BALANCED = balance(2, 10, 3), balance(2, 10)


def test_an_imbalance_is_pending_with_the_next_tick_and_fires_after_its_hold() -> None:
    engine = EngineAtTime()
    assert engine.tick(0, []) == []
    for second in range(0, 610, 10):
        engine.balances(second, AWAY)
        events = engine.tick(second + 5, [])
        assert events == {0: [(*IMBALANCE, "pending")], 600: [(*IMBALANCE, "firing")]}.get(second, [])
    engine.balances(610, BALANCED)
    assert engine.tick(615, []) == []
    assert engine.tick(617, []) == [(*IMBALANCE, "resolved")]


def test_an_imbalance_during_a_rolling_restart_does_not_fire() -> None:
    engine = EngineAtTime()
    engine.balances(0, AWAY)
    assert engine.tick(1, []) == [(*IMBALANCE, "pending")]
    engine.balances(500, AWAY)
    assert engine.tick(501, []) == []
    engine.balances(590, BALANCED)
    assert engine.tick(591, []) == [(*IMBALANCE, "resolved")]


def test_balances_that_stay_away_or_are_not_known_yet_end_no_alert_and_begin_none() -> None:
    engine = EngineAtTime()
    engine.balances(0, AWAY)
    events = engine.at(1).evaluate("c", START_MS + 1000, [])
    # A minute is not too old, more is: neither wrong nor right.
    for second in (60, 61, 700):
        assert engine.tick(second, []) == []
    assert changes(engine.engine.active()) == [(*IMBALANCE, "pending")]
    # Another process takes the alert up, and does not know of any balance at first.
    after = EngineAtTime()
    after.engine.restore(events)
    assert after.tick(2, []) == after.tick(3, []) == []
    after.balances(3, BALANCED)
    assert after.tick(4, []) == [(*IMBALANCE, "resolved")]
    assert EngineAtTime().tick(0, []) == []


def test_at_a_slow_pace_balances_of_six_ticks_ago_count() -> None:
    engine = EngineAtTime(interval_s=60)
    engine.balances(0, AWAY)
    assert engine.tick(360, []) == [(*IMBALANCE, "pending")]
    late = EngineAtTime(interval_s=60)
    late.balances(0, AWAY)
    assert late.tick(360.1, []) == []


def test_an_imbalance_has_the_election_plan_of_its_cluster_only_while_the_plan_is_recent() -> None:
    def batches(second: float, cluster: str = "c") -> int | None:
        engine = EngineAtTime()
        engine.engine.inputs(cluster).elections = replace(PLAN_SUMMARY, tick_ms=START_MS)
        engine.balances(second, AWAY)
        (event,) = engine.at(second).evaluate("c", engine.now_ms, [])
        found: int | None = json.loads(event.recommendation).get("batches")
        return found

    assert batches(0) == batches(420) == 4
    assert batches(421) is None
    assert batches(0, cluster="d") is None


def test_the_balances_of_each_cluster_are_its_own() -> None:
    engine = EngineAtTime()
    engine.balances(0, AWAY, cluster="d")
    assert engine.tick(1, []) == []
    assert engine.tick(1, [], "d") == [(*IMBALANCE, "pending")]


def test_several_brokers_out_of_balance_are_one_alert() -> None:
    engine = EngineAtTime()
    engine.balances(0, AWAY, balance(1, 10, 5))
    assert engine.tick(1, []) == [("leader_imbalance", "broker 1", "pending")]
    (event,) = engine.engine.active()
    assert [also["subject"] for also in json.loads(event.evidence)["also"]] == ["broker 2"]


def test_leads_and_replicas_lost_by_a_dead_broker_are_one_alert() -> None:
    engine = EngineAtTime()
    lost = {"lost": (OutOfSyncReplica("t", 0, 1, False),), "lost_replicas": 1}
    down = [status(2, Role.FOLLOWER, None, 0, limited=0, alive=False, **lost)]
    for second in range(0, 700, 10):
        engine.balances(second, balance(2, 10, unavailable=3, alive=False))
        engine.tick(second + 1, down)
    (event,) = engine.engine.active()
    assert (event.kind, event.state) == ("under_replicated", "firing")
    assert "preferred_leader_unavailable" in {also["kind"] for also in json.loads(event.evidence)["also"]}


@pytest.mark.parametrize(("idle_s", "stale_s"), [(0.0, 300.0), (20.0, 300.0), (120.0, 360.0)])
def test_leader_balances_may_miss_three_commits_of_an_idle_cluster(idle_s: float, stale_s: float) -> None:
    watched = WatchedCluster(Settings(spark=SparkSettings(gold_idle_trigger_s=idle_s)))
    assert watched.balances_stale_after_s() == stale_s


# Three of the longest interval: of ticks, of commits, or of commits while few messages arrive.
@pytest.mark.parametrize(
    ("interval_s", "trigger_s", "idle_s", "stale_s"),
    [
        (5.0, 30.0, 0.0, 300.0),
        (101.0, 30.0, 0.0, 303.0),
        (5.0, 30.0, 110.0, 330.0),
        (5.0, 60.0, 0.0, 360.0),
        (5.0, 200.0, 20.0, 600.0),
    ],
)
def test_records_may_miss_three_commits(interval_s: float, trigger_s: float, idle_s: float, stale_s: float) -> None:
    spark = SparkSettings(record_trigger_s=trigger_s, record_idle_trigger_s=idle_s)
    watched = WatchedCluster(Settings(collect=CollectSettings(interval_s=interval_s), spark=spark))
    assert watched.records_stale_after_s() == stale_s
