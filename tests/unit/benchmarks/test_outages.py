"""The group outages: scenarios, records and figures of plays, blind time, and proxies."""

from __future__ import annotations

import itertools
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable
from prometheus_client import generate_latest

from benchmarks.faults.answers import ABSURD, garbled, with_absurd_offset
from benchmarks.faults.disks import OwnDisk, Void
from benchmarks.faults.leaders_in_turn import PARTITIONS, LeadersInTurn
from benchmarks.faults.proxies import ProxyProcess
from benchmarks.faults.proxy import Order
from benchmarks.faults.set_clock import SettableClock
from benchmarks.faults.store_files import cut_newest_commit, newest_tick_ms, remove_events_of_the_past
from benchmarks.fixtures.freshness import Freshness, is_fresh, tick_of
from benchmarks.fixtures.part_records import PartRecords
from benchmarks.fixtures.preferred_leaders import is_led
from benchmarks.fixtures.receivers.notifications import critical, is_news
from benchmarks.groups.outages import group, play
from benchmarks.groups.outages.blind import Span, blind, gaps, merged
from benchmarks.groups.outages.brokers import DESTINATION, TICKS_LEADER, TICKS_REPLICAS
from benchmarks.groups.outages.context import ScenarioContext
from benchmarks.groups.outages.failover import depends_on
from benchmarks.groups.outages.outage_cluster import BROKERS, listeners
from benchmarks.groups.outages.play import explained
from benchmarks.groups.outages.record import RunRecord, figures
from benchmarks.groups.outages.scenarios import messages
from benchmarks.groups.outages.scenarios.scenario import Arrangement, Scenario
from benchmarks.groups.outages.schedule import SCENARIOS, Play, batches, schedule
from headroom.alerts.delivery.delivery_log import event_key
from headroom.cli.maintain.repair import repair_store
from headroom.cluster.embedded.files import BrokerFiles, write_properties
from headroom.cluster.embedded.layout import ports_from
from headroom.schemas.alerts import AlertEvent, AlertKind
from headroom.schemas.bounds import BOUNDS
from headroom.schemas.config import Settings, StoreSettings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import ALERT_EVENTS
from headroom.schemas.tick_messages import ALERT_KINDS
from headroom.streaming.delta import append as plain_table
from headroom.streaming.delta.damage import damages
from tests.support.ports import own_port
from tests.unit.builders.throttle_status import TICK_MS
from tests.unit.fakes.http_agent import Agent, agent
from tests.unit.fakes.outage_stage import fake_context
from tests.unit.fakes.prometheus_scrape import Scene
from tests.unit.fakes.receivers import Asked, Said, Scripted, event, serving

# --- Schedule


def test_there_are_at_least_32_scenarios_each_with_a_name_and_a_title_of_its_own() -> None:
    assert len(SCENARIOS) >= 32
    for found in ([s.name for s in SCENARIOS], [s.title for s in SCENARIOS]):
        assert len(set(found)) == len(SCENARIOS)
        assert all(found)


def test_every_scenario_is_played_before_any_is_played_again() -> None:
    plays = schedule()
    assert len(plays) == 2 * len(SCENARIOS)
    assert [play.scenario for play in plays[: len(SCENARIOS)]] == list(SCENARIOS)
    assert [play.number for play in plays] == [0] * len(SCENARIOS) + [1] * len(SCENARIOS)
    assert len({play.name for play in plays}) == len(plays)
    # The first play has its fault while an alert begins to fire, the second while one resolves.
    assert [play.fires for play in schedule("kill_watch", 3)] == [True, False, True]


def test_scenarios_are_chosen_by_name() -> None:
    assert [play.name for play in schedule("store_full, kill_watch,store_full", 1)] == ["store_full-0", "kill_watch-0"]
    assert [play.name for play in schedule("kill_watch:1,store_full", 2)] == [
        "store_full-0",
        "kill_watch-1",
        "store_full-1",
    ]


def test_an_unknown_name_is_an_error_that_lists_all_names() -> None:
    with pytest.raises(HeadroomError, match=r"there is no scenario 'kill_wach'; there are kill_collector, kill_watch,"):
        schedule("kill_watch,kill_wach")


def test_only_kills_of_the_evaluating_process_are_measured_separately() -> None:
    apart = {scenario.name for scenario in SCENARIOS if scenario.restarts_judging}
    assert apart == {"kill_watch", "kill_watch_jvm", "events_file_removed"}


@pytest.mark.parametrize("each", [1, 2, 3])
def test_plays_share_a_watch_where_they_may(each: int) -> None:
    plays = schedule(each=each)
    found = batches(plays)
    assert sorted(play.name for batch in found for play in batch) == sorted(play.name for play in plays)
    for batch in found:
        assert len({play.scenario.arrangement for play in batch}) == 1
        assert 1 <= len(batch) <= 10
        assert not any(play.scenario.fresh_after for play in batch[:-1])


def test_a_play_that_needs_a_new_watch_afterwards_ends_its_batch() -> None:
    assert batches([]) == []
    plays = schedule("ticks_deleted,records_deleted,kill_watch", 1)
    assert [[play.scenario.name for play in batch] for batch in batches(plays)] == [
        ["ticks_deleted"],
        ["kill_watch", "records_deleted"],
    ]


# --- Figures


def record(scenario: str = "kill_watch", number: int = 0, **changes: Any) -> RunRecord:
    return replace(RunRecord(scenario, "t", number, restarts_judging=False, blind_s=1.0, events=4), **changes)


def critical_alert(true: bool) -> dict[str, Any]:
    return {"kind": "no_data", "subject": "ticks", "summary": "s", "true": true}


def test_figures_are_over_all_plays_but_void_ones() -> None:
    true, false = critical_alert(true=True), critical_alert(true=False)
    records = [
        record("a", 0, blind_s=2.0, lost=1, critical=[true, false]),
        record("a", 1, blind_s=4.5, doubled=2),
        record("b", 0, blind_s=0.5, failed="no alert came"),
        record("c", 0, blind_s=17.0, restarts_judging=True),
        # Without a fault there is no blind time.
        record("d", 0, blind_s=None, failed="no verdict came", events=0),
        record("e", 0, blind_s=99.0, void="no right to mount", events=9, lost=9),
    ]
    found = {figure.name: (figure.value, figure.n) for figure in figures(records)}
    assert found == {
        "fault_scenarios": (4, 5),
        "fault_lost": (1, 16),
        "fault_doubled": (2, 16),
        "fault_false_critical": (1, 2),
        # Of 2.0, 4.5 and 0.5.
        "fault_blind_s_max": (4.5, 3),
        "fault_blind_s_median": (2.0, 3),
        "fault_blind_restart_s_max": (17.0, 1),
        "fault_failed": (2, 5),
        "fault_void": (1, 6),
    }


def test_without_plays_there_are_no_time_figures() -> None:
    assert [figure.name for figure in figures([])] == [
        "fault_scenarios",
        "fault_lost",
        "fault_doubled",
        "fault_false_critical",
        "fault_failed",
        "fault_void",
    ]


def test_failed_and_complete_plays_are_recorded_and_only_void_ones_run_again(tmp_path: Path) -> None:
    records: PartRecords[Play] = PartRecords(lambda play: tmp_path)
    plays = schedule("kill_watch", 1)
    assert records.without_record(plays) == plays
    for one, again in ((record(void="no right"), True), (record(failed="no alert"), False), (record(), False)):
        found = replace(one, critical=[critical_alert(true=True)], notes=["a"])
        records.write(plays[0], asdict(found))
        assert [RunRecord(**fields) for fields in records.read_all(schedule("kill_watch", 2))] == [found]
        assert bool(records.without_record(plays)) is again


# --- Blind time


def test_gaps_reach_from_the_last_verdict_before_a_fault_to_the_recovery() -> None:
    moments = [1.0, 2.0, 3.0, 9.0, 10.0, 20.0]
    assert gaps(moments, Span(3.5, 12.0)) == [Span(3.0, 9.0), Span(9.0, 10.0), Span(10.0, 12.0)]
    # There was no verdict before.
    assert gaps([9.0], Span(3.5, 12.0)) == [Span(3.5, 9.0), Span(9.0, 12.0)]
    assert gaps([], Span(3.5, 12.0)) == [Span(3.5, 12.0)]


def test_blind_time_is_the_longest_gap_minus_an_interval_and_kafkas_outage() -> None:
    moments = [0.0, 1.0, 2.0, 12.0, 13.0, 19.0]
    over = Span(2.5, 19.0)
    found = blind(moments, over, 1.0, [])
    assert (found.blind_s, found.gap, found.kafka_s) == (9.0, Span(2.0, 12.0), 0.0)
    # Kafka needed 8.5 of the first ten seconds, and nothing of the six later ones, which are longest then.
    found = blind(moments, over, 1.0, [Span(2.5, 11.0), Span(13.0, 13.0)])
    assert (found.blind_s, found.gap) == (5.0, Span(13.0, 19.0))
    # Kafka's outage covers all gaps.
    assert blind([0.0, 1.0, 2.0], Span(0.5, 2.5), 1.0, [Span(0.0, 9.0)]).blind_s == 0.0


def test_times_that_overlap_count_once() -> None:
    assert merged([Span(5, 7), Span(0, 2), Span(1, 3), Span(3, 4)]) == [Span(0, 4), Span(5, 7)]


def test_a_tick_is_fresh_if_it_is_newer_or_of_a_clock_that_was_set_back() -> None:
    assert is_fresh(None, 1000.0)
    assert is_fresh(1000.0, 1000.5)
    assert not is_fresh(1000.0, 1000.0)
    # A backlog, or a tick that comes again.
    assert not is_fresh(1000.0, 990.0)
    assert is_fresh(1000.0, 401.0)


def test_the_time_of_the_last_tick_is_read_from_metrics() -> None:
    scene = Scene()
    assert tick_of(generate_latest(scene.registry).decode(), "orders") is None
    scene.live.on_tick("orders", TICK_MS + 250, ())
    text = generate_latest(scene.registry).decode()
    assert tick_of(text, "orders") == TICK_MS / 1000 + 0.25
    assert tick_of(text, "order") is None


def test_each_newer_tick_is_a_moment() -> None:
    fresh = Freshness(1, "c")
    for at_s, tick_s in enumerate((100, 100, 101, 99, 102, 40, 41)):
        fresh.add(f'headroom_tick_timestamp_seconds{{cluster="c"}} {tick_s}.0\n', float(at_s))
    # 40 is of a clock that was set back by more than a minute.
    assert fresh.moments == [0.0, 2.0, 4.0, 5.0, 6.0]
    assert fresh.since(4.0) == 2


# --- Kafka's own part


def topic(*partitions: tuple[int, list[int]], error: int = 0) -> Any:
    return SimpleNamespace(
        partitions=[SimpleNamespace(leader_id=leader, isr_nodes=isr, error_code=error) for leader, isr in partitions]
    )


def test_the_failover_ends_when_no_partition_depends_on_the_broker() -> None:
    assert depends_on(topic((4, [4, 1])), 4)
    assert depends_on(topic((1, [1, 2]), (2, [2, 4])), 4)
    assert not depends_on(topic((1, [1, 2]), (2, [2, 1])), 4)
    assert depends_on(topic((-1, [4])), 3)
    assert depends_on(topic((1, [1]), error=5), 4)


def test_partitions_are_led_as_preferred_with_all_replicas_in_sync() -> None:
    def one(number: int, leader: int, *isr: int) -> dict[str, Any]:
        return {"partition_index": number, "leader_id": leader, "isr_nodes": list(isr)}

    wanted = [(1, 2), (2, 3)]
    assert is_led([one(1, 2, 3, 2), one(0, 1, 1, 2, 4), one(2, 9)], wanted)
    assert not is_led([one(0, 1, 1, 2), one(1, 3, 2, 3)], wanted)
    assert not is_led([one(0, 1, 1), one(1, 2, 2, 3)], wanted)


def test_the_ticks_leader_is_outside_the_move_and_the_destination_has_no_ticks_replica() -> None:
    moving = {broker for moved in PARTITIONS for broker in (*moved.before, *moved.after)}
    assert TICKS_LEADER not in moving
    assert TICKS_REPLICAS[0][0] == TICKS_LEADER
    assert all(DESTINATION not in replicas for replicas in TICKS_REPLICAS)
    assert DESTINATION in {broker for moved in PARTITIONS for broker in moved.after if broker not in moved.before}
    assert all(len(set(replicas)) == 3 for replicas in TICKS_REPLICAS)


def test_leaders_take_turns_except_for_excluded_ones() -> None:
    leaders = LeadersInTurn(Settings(), 8e6)
    turns = []
    for excluded_leaders in ((), (), (), (1,), (3,), (4,)):
        leaders.advance(skip=excluded_leaders)
        turns.append(leaders.leader)
    assert turns == [1, 2, 3, 2, 1, 2]
    assert leaders.subject == "broker 2 as leader"


def test_each_broker_has_a_listener_that_is_advertised_as_its_proxy(tmp_path: Path) -> None:
    base = 20_000
    properties = listeners(base)
    assert len({words for own in properties.values() for words in own["listeners"].split(",")}) == 2 * BROKERS + 3
    files = BrokerFiles(tmp_path, 4)
    write_properties(files, ports_from(base, BROKERS, agents=True), properties[4])
    written = dict(line.split("=", 1) for line in files.properties.read_text().splitlines())
    assert written["listeners"] == "PLAINTEXT://127.0.0.1:20004,WATCHED://127.0.0.1:20054"
    assert written["advertised.listeners"] == "PLAINTEXT://127.0.0.1:20004,WATCHED://127.0.0.1:20064"
    assert "WATCHED:PLAINTEXT" in written["listener.security.protocol.map"]
    assert properties[1]["listeners"].endswith(",CONTROLLER://127.0.0.1:20011")


# --- Events


def test_an_announcement_is_news_if_the_situation_changed() -> None:
    def fired(cause: str | None, action: str = "check", **evidence: Any) -> AlertEvent:
        found = {"evidence": json.dumps({"cause": cause, **evidence}), "recommendation": json.dumps({"action": action})}
        return event(**found)

    assert not is_news(fired("unknown"), fired("unknown", affected=3))
    assert is_news(fired("unknown"), fired("destination_down"))
    assert is_news(fired("unknown"), fired("unknown", escalation=1))
    assert is_news(fired("unknown"), fired("unknown", "restart"))
    assert is_news(fired("unknown"), fired("unknown", goes_on_with={"kind": "under_replicated", "subject": "broker 1"}))


@pytest.mark.parametrize(("in_force", "later"), [(1e6, False), (8e6, True)])
def test_an_announcement_is_news_if_a_rate_was_raised_as_it_advised(in_force: float, later: bool) -> None:
    def fired(leader_bytes_per_s: float) -> AlertEvent:
        rates = [
            {"broker_id": 1, "role": "leader", "throttle_bytes_per_s": leader_bytes_per_s},
            {"broker_id": 2, "role": "follower", "throttle_bytes_per_s": 5e5},
            {"broker_id": 3, "role": "follower", "throttle_bytes_per_s": None},
        ]
        advice = [{**rate, "recommended_bytes_per_s": max(2e6, rate["throttle_bytes_per_s"] or 0)} for rate in rates]
        return event(evidence="{}", recommendation=json.dumps({"action": "raise_throttle", "per_broker": advice}))

    assert is_news(fired(7e5), fired(in_force)) is later


def test_a_critical_alert_counts_once_and_only_in_the_play_in_which_it_is_announced() -> None:
    old, again = event("a", tick_ms=1), event("a", tick_ms=2)
    warning = event("b", tick_ms=3, severity="warning")
    new, ended = event("c", tick_ms=4), event("c", "resolved", 5)
    events = [old, again, warning, new, event("c", tick_ms=5), ended]
    assert critical(events, frozenset({event_key(old)})) == [again, new]
    assert critical(events, frozenset(map(event_key, events))) == []


def test_a_critical_alert_is_true_if_something_of_its_play_explains_it() -> None:
    (kill,), (full,) = schedule("kill_watch", 1), schedule("store_full", 1)
    starved = {"broker 2 as leader"}
    assert explained(event(), starved, kill, False)
    assert not explained(event(subject="broker 1 as leader"), starved, kill, False)
    silent = event(kind=AlertKind.NO_DATA.value, subject="ticks")
    assert explained(silent, starved, kill, True)
    assert not explained(silent, starved, kill, False)
    unwritable = event(kind=AlertKind.STORE_UNWRITABLE.value, subject="store")
    assert explained(unwritable, starved, full, False)
    assert not explained(unwritable, starved, kill, False)


# --- Plays


@dataclass(frozen=True, kw_only=True)
class Fault(Scenario):
    """A fault made of functions."""

    injects: Callable[[ScenarioContext], None] = lambda context: None
    repairs: Callable[[ScenarioContext], None] = lambda context: None
    length_s: float = 0.0

    def begin(self, context: ScenarioContext) -> None:
        self.injects(context)

    def end(self, context: ScenarioContext) -> None:
        self.repairs(context)
        super().end(context)


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScenarioContext:
    for name in ("_EVENT_S", "_SETTLE_S", "_FIRES_WITHIN_S", "_RESOLVES_WITHIN_S"):
        monkeypatch.setattr(play, name, 0.0)
    return fake_context(tmp_path)


def played(context: ScenarioContext, number: int = 0, **changes: Any) -> RunRecord:
    return play.play_once(context, Play(Fault(name="fault", title="t", **changes), number))


@pytest.mark.parametrize("number", [0, 1])
def test_in_a_play_an_alert_fires_and_resolves_and_receivers_are_notified(
    context: ScenarioContext, number: int
) -> None:
    begun: list[int] = []
    found = played(context, number, injects=lambda on: begun.append(len(list(on.live.lines()))))
    assert (found.failed, found.events, found.lost, found.doubled, found.false_critical) == (None, 2, 0, 0, [])
    # Pending and firing come before the fault. In the second play resolved does too, because a fake is quick.
    assert begun == [2 + number]
    assert [(one["kind"], one["subject"], one["true"]) for one in found.critical] == [
        ("throttle_below_leader_write", "broker 1 as leader", True)
    ]
    assert found.blind_s == 0
    assert found.notified_s is not None
    # The next play has nothing of this one.
    assert played(context, number).events == 2


def test_a_play_fails_if_its_alert_does_not_fire(context: ScenarioContext) -> None:
    leaders: Any = context.leaders
    leaders.is_heard = False
    found = played(context)
    assert found.failed is not None
    assert "not within 0 s: an alert about broker 1 as leader" in found.failed
    assert found.blind_s is not None


def test_missing_notifications_are_lost_and_repeated_ones_doubled(context: ScenarioContext) -> None:
    watch: Any = context.live
    watch.notifies = 0
    found = played(context)
    assert (found.lost, found.doubled, len(found.missing)) == (2, 0, 2)
    watch.notifies = 3
    found = played(context)
    assert (found.lost, found.doubled) == (0, 4)


def test_a_play_fails_if_events_are_not_stored(context: ScenarioContext) -> None:
    watch: Any = context.live
    watch.keeps = False
    found = played(context)
    assert found.failed is not None
    assert "every event stored" in found.failed
    assert played(context, loses_rows=True).failed is None


def test_critical_alerts_that_nothing_explains_are_false(context: ScenarioContext) -> None:
    def lie(on: ScenarioContext) -> None:
        watch: Any = on.live
        watch.say(event("lie", tick_ms=5, kind="no_data", subject="ticks"))

    found = played(context, injects=lie)
    assert [one["kind"] for one in found.false_critical] == ["no_data"]
    assert played(context, injects=lambda on: None).false_critical == []


def test_kafkas_outage_is_no_blind_time(context: ScenarioContext) -> None:
    fresh: Any = context.fresh

    def go(on: ScenarioContext) -> None:
        # The last verdict is 9 s old, and Kafka was away for 7 s of these.
        now_s = time.monotonic()
        fresh.moments[:] = [now_s - 9]
        on.kafka_spans.append(Span(now_s - 8, now_s - 1))

    began_s = time.monotonic()
    found = played(context, injects=go)
    took_s = time.monotonic() - began_s
    # The verdict grew older meanwhile, for long on a busy machine.
    assert found.gap_s is not None
    assert found.blind_s is not None
    assert 9 <= found.gap_s <= 9 + took_s
    assert (found.kafka_all_s, found.kafka_s) == (7.0, 7.0)
    assert 0 <= found.blind_s <= 2 + took_s


def test_a_fault_that_cannot_run_here_is_void_and_one_without_recovery_has_failed(
    context: ScenarioContext,
) -> None:
    def cannot(on: ScenarioContext) -> None:
        raise Void("no right to mount")

    def breaks(on: ScenarioContext) -> None:
        brokers: Any = on.brokers
        brokers.comes_back = False

    assert played(context, injects=cannot).void == "no right to mount"
    found = played(context, injects=breaks)
    assert found.failed is not None
    assert "does not come back" in found.failed


def test_a_scenario_without_the_right_to_mount_is_void_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount = tmp_path / "mount"
    mount.write_text("#!/bin/sh\necho 'mount: must be superuser to use mount.' >&2; exit 1\n")
    mount.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(Void, match="needs root, and the right to mount: mount: must be superuser"):
        OwnDisk(tmp_path / "disk").__enter__()


def test_plays_with_an_unavailable_arrangement_are_recorded_as_void(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def no_session(*_: Any) -> Iterator[ScenarioContext]:
        raise Void("no right to mount")
        yield

    monkeypatch.setattr(group, "session", no_session)
    monkeypatch.setattr(group, "RECORDS", PartRecords(lambda play: tmp_path))
    plays = schedule("store_full", 2)
    tools: Any = SimpleNamespace(on_progress=lambda text: None)
    assert [one.void for one in group._play_batch(tools, plays, itertools.count())] == ["no right to mount"] * 2
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["store_full-0.json", "store_full-1.json"]


def test_the_play_after_a_failed_one_gets_a_new_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions: list[int] = []

    @contextmanager
    def one_session(_tools: Any, _arrangement: Any, number: int) -> Iterator[Any]:
        sessions.append(number)
        yield None

    def play_once(_stage: Any, one: Play) -> RunRecord:
        return record(one.scenario.name, one.number, failed="x" if one.scenario.name == "kill_watch" else None)

    monkeypatch.setattr(group, "session", one_session)
    monkeypatch.setattr(group, "play_once", play_once)
    monkeypatch.setattr(group, "RECORDS", PartRecords(lambda play: tmp_path))
    tools: Any = SimpleNamespace(on_progress=lambda text: None)
    plays, numbers = schedule("kill_collector,kill_watch,kill_history", 1), itertools.count()
    done = group._play_batch(tools, plays, numbers)
    assert [one.scenario for one in done] == ["kill_collector", "kill_watch"]
    assert [one.scenario for one in group._play_batch(tools, plays[len(done) :], numbers)] == ["kill_history"]
    assert sessions == [0, 1]


# --- Damage


def store_of(tmp_path: Path, *commits: AlertEvent) -> Path:
    place = tmp_path / "store" / ALERT_EVENTS.path
    plain_table.create(str(place), ALERT_EVENTS)
    for one in commits:
        plain_table.append(DeltaTable(str(place)), [one], ALERT_EVENTS)
    return tmp_path / "store"


def test_the_newest_file_of_resolved_alerts_is_removed_and_active_alerts_keep_theirs(tmp_path: Path) -> None:
    store = store_of(tmp_path, event("a", tick_ms=1), event("b", tick_ms=2), event("a", "resolved", 3))
    gone = remove_events_of_the_past(store)
    assert not gone.exists()
    assert damages(str(store / ALERT_EVENTS.path))
    assert [one.mended for one in repair_store(StoreSettings(path=str(store)))] == [True]
    assert not damages(str(store / ALERT_EVENTS.path))
    # The end of the alert that is over; its beginning and the other alert are there.
    assert newest_tick_ms(store / ALERT_EVENTS.path) == 2


def test_without_a_resolved_alert_no_file_is_removed(tmp_path: Path) -> None:
    store = store_of(tmp_path, event("a", tick_ms=1))
    with pytest.raises(HeadroomError, match="resolved alerts alone"):
        remove_events_of_the_past(store)
    assert not damages(str(store / ALERT_EVENTS.path))


def test_a_truncated_commit_is_damage_that_a_repair_fixes(tmp_path: Path) -> None:
    store = store_of(tmp_path, event("a", tick_ms=1), event("b", tick_ms=2))
    assert cut_newest_commit(store / ALERT_EVENTS.path).name == f"{2:020d}.json"
    assert damages(str(store / ALERT_EVENTS.path))
    repair_store(StoreSettings(path=str(store)))
    assert newest_tick_ms(store / ALERT_EVENTS.path) == 1
    assert newest_tick_ms(store / "gold/none") == -1


# --- Messages


def test_poisoned_ticks_keep_their_envelope_and_no_row_of_a_verdict_is_within_bounds() -> None:
    poisoned = messages.poisoned("orders", TICK_MS)
    whole = messages.tick("orders", TICK_MS)
    for message, valid in zip(poisoned, whole, strict=True):
        assert {k: v for k, v in message.items() if k not in ("rows", "columns")} == {
            k: v for k, v in valid.items() if k not in ("rows", "columns")
        }
        if message["kind"] in ALERT_KINDS and message["kind"] != "tick_end":
            assert all(_out_of_bounds(row) for row in message["rows"])


def _out_of_bounds(value: Any, name: str = "") -> bool:
    if isinstance(value, dict):
        return any(_out_of_bounds(one, key) for key, one in value.items())
    if isinstance(value, list):
        return any(_out_of_bounds(one, name) for one in value)
    return name in BOUNDS and value is not None and not BOUNDS[name][0] <= value <= BOUNDS[name][1]


class Written(messages.Forger):
    """A producer that stores its records; offsets begin at 100."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes | None, bytes | None, int]] = []

    def write(self, key: bytes | None, value: bytes | None, partition: int, record_ms: int | None = None) -> int:
        assert key is not None or value is not None, "Kafka's client refuses this"
        self.records.append((key, value, partition))
        return 99 + len(self.records)


def test_a_forged_tick_begins_where_its_first_record_is() -> None:
    written = Written()
    written.write_tick(messages.tick("orders", TICK_MS), TICK_MS)
    kinds = {json.loads(value or b"")["kind"]: partition for _, value, partition in written.records}
    assert {kind for kind, partition in kinds.items() if partition == 0} == set(ALERT_KINDS)
    assert json.loads(written.records[-1][1] or b"")["first_offset"] == 100


@pytest.mark.parametrize(
    ("write", "least"),
    [
        (messages.write_poisoned, 80),
        (messages.write_ahead, 40),
        (messages.write_no_json, 48),
        (messages.write_unknown_clusters, 240),
    ],
)
def test_a_producer_accepts_all_forged_records(write: Any, least: int) -> None:
    written = Written()
    write(written, "embedded", TICK_MS)
    assert len(written.records) >= least


# --- Clocks


def test_a_clock_has_the_offset_in_its_file(tmp_path: Path) -> None:
    file = tmp_path / "watch.clock"
    clock = SettableClock(file)

    def off_s() -> float:
        clock.read_offset()
        return clock.time() - time.time()

    assert off_s() == pytest.approx(0, abs=1)
    for text, expected in (("600", 600), ("-600.0", -600), ("", -600), ("0.0", 0)):
        file.write_text(text)
        assert off_s() == pytest.approx(expected, abs=1)
    assert clock.time_ns() / 1e9 == pytest.approx(time.time(), abs=1)


def test_headroom_runs_with_a_clock_that_is_set(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.faults.set_clock", str(tmp_path / "none"), "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.split()[0]) == (0, "headroom,")


# --- Proxy

BODY = b'{"ok": true, "text": "' + b"x" * 500 + b'"}'


@contextmanager
def proxied(http: bool = True, answer: Any = None) -> Iterator[tuple[ProxyProcess, int]]:
    """Yield a proxy in front of a real HTTP server, and its port."""
    port = own_port()
    with serving(answer or (lambda asked: Said(body=BODY))) as url:
        target = int(url.rpartition(":")[2])
        with closing(ProxyProcess([f"{'http:' if http else ''}{port}:{target}"])) as proxy:
            yield proxy, port


def ask(port: int, body: bytes = b"{}", timeout_s: float = 20.0) -> bytes:
    with closing(HTTPConnection("127.0.0.1", port, timeout=timeout_s)) as connection:
        connection.request("POST", "/", body)
        return connection.getresponse().read()


BOTH = pytest.mark.parametrize("http", [True, False], ids=["http", "tcp"])


@BOTH
def test_a_proxy_passes_everything_on(http: bool) -> None:
    server = Scripted()
    with proxied(http, server) as (_, port):
        assert ask(port, b'{"q": 1}') == b"{}"
        assert server.bodies() == [{"q": 1}]


@BOTH
def test_a_cut_proxy_resets_open_connections_and_refuses_new_ones_until_it_passes_again(http: bool) -> None:
    came, go_on = threading.Event(), threading.Event()

    def answer(asked: Asked) -> Said:
        came.set()
        go_on.wait(20)
        return Said(body=BODY)

    with proxied(http, answer) as (proxy, port):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as before:
            before.sendall(b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
            assert came.wait(20)
            proxy.order("cut")
            with pytest.raises(ConnectionResetError):
                before.recv(1)
        go_on.set()
        with pytest.raises(ConnectionRefusedError):
            ask(port)
        proxy.order("pass")
        assert ask(port) == BODY


@BOTH
def test_a_stalled_proxy_accepts_and_sends_nothing_until_it_passes_again(http: bool) -> None:
    with proxied(http) as (proxy, port):
        proxy.order("stall")
        with closing(HTTPConnection("127.0.0.1", port, timeout=0.3)) as connection:
            connection.request("POST", "/", b"{}")
            with pytest.raises(TimeoutError):
                connection.getresponse()
            proxy.order("pass")
            assert ask(port) == BODY


@BOTH
def test_a_proxy_that_delays_answers_that_much_later(http: bool) -> None:
    with proxied(http) as (proxy, port):
        proxy.order("delay 0.3")
        began_s = time.monotonic()
        assert ask(port) == BODY
        assert time.monotonic() - began_s >= 0.3


@BOTH
def test_a_proxy_that_drips_answers_byte_by_byte_and_the_rest_at_once_when_it_passes_again(http: bool) -> None:
    with proxied(http) as (proxy, port), socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        proxy.order("drip")
        client.sendall(b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
        # On a busy machine many bytes come together, but not the more than 500 of the body.
        dripped = [client.recv(4096) for _ in range(3)]
        assert all(0 < len(piece) < 400 for piece in dripped)
        proxy.order("pass")
        came = b"".join(dripped)
        came = came + b"".join(iter(lambda: client.recv(4096), b"")) if not http else _until(client, BODY, came)
        assert came.endswith(BODY)


def _until(client: socket.socket, end: bytes, came: bytes) -> bytes:
    while not came.endswith(end):
        came += client.recv(4096)
    return came


def test_a_proxy_that_garbles_keeps_the_length_of_a_body_and_changes_its_bytes() -> None:
    with proxied() as (proxy, port):
        proxy.order("garble")
        answer = ask(port)
        assert answer == garbled(BODY)
        assert len(answer) == len(BODY)
        with pytest.raises(ValueError, match="decode"):
            json.loads(answer)


def test_a_proxy_replaces_one_log_end_offset_of_an_answer_of_jolokia() -> None:
    reads = [{"mbean": "java.lang:type=Runtime"}, *({"mbean": f"kafka.log:name=LogEndOffset,p={n}"} for n in (0, 1))]
    results = [{"status": 200, "value": 7}, {"status": 404}, {"status": 200, "value": 9}]

    def jolokia(asked: Asked) -> Said:
        assert json.loads(asked.body) == reads
        return Said(body=json.dumps(results).encode())

    with proxied(answer=jolokia) as (proxy, port):
        question = json.dumps(reads).encode()
        assert json.loads(ask(port, question)) == results
        proxy.order("absurd")
        assert json.loads(ask(port, question)) == [*results[:2], {"status": 200, "value": ABSURD}]


def test_one_offset_of_a_pattern_is_replaced_and_other_answers_stay() -> None:
    question = json.dumps([{"mbean": "kafka.log:type=Log,name=LogEndOffset,*"}]).encode()
    value = {"kafka.log:a": {"Value": 5}, "kafka.log:b": {"Value": 6}}
    answer = json.dumps([{"status": 200, "value": value}]).encode()
    (changed,) = json.loads(with_absurd_offset(question, answer))
    assert changed["value"] == {"kafka.log:a": {"Value": ABSURD}, "kafka.log:b": {"Value": 6}}
    for asked, said in ((b"{}", b"{}"), (b"no JSON", answer), (question, b"<html>"), (question, b"[]")):
        assert with_absurd_offset(asked, said) == said


def test_a_kept_alive_connection_gets_chunked_answers_one_after_another() -> None:
    def in_chunks(connection: Agent) -> None:
        connection.send_response(200)
        connection.send_header("Transfer-Encoding", "chunked")
        connection.end_headers()
        half = len(BODY) // 2
        for piece in (BODY[:half], BODY[half:], b""):
            connection.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))

    port = own_port()
    with agent(in_chunks) as server, closing(ProxyProcess([f"http:{port}:{server.server_port}"])) as proxy:
        with closing(HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
            for order, body in (("pass", BODY), ("garble", garbled(BODY)), ("pass", BODY)):
                proxy.order(order)
                connection.request("POST", "/", b"[]")
                first_socket = connection.sock
                assert connection.getresponse().read() == body
                assert connection.sock is first_socket
        assert len(server.asked) == 3


def test_a_proxy_that_has_ended_or_gets_no_order_is_an_error() -> None:
    with proxied() as (proxy, _):
        with pytest.raises(HeadroomError, match="proxy"):
            proxy.order("slower")
        with pytest.raises(HeadroomError, match="proxy"):
            proxy.order("pass")
    with pytest.raises(ValueError, match="no order"):
        Order.of("slower")
    assert Order.of("delay 0.25\n") == Order("delay", 0.25)


def test_every_order_of_a_scenario_is_one_that_a_proxy_knows() -> None:
    orders = {scenario.order for scenario in SCENARIOS if scenario.arrangement is Arrangement.PROXIED}  # type: ignore[attr-defined]
    assert len({Order.of(order).word for order in orders}) == 6
