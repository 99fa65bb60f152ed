"""Alert path while the evaluation of one cluster fails: the others are evaluated, and it counts as without ticks."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import MagicMock

import pytest

from headroom.alerts import cluster_alerts
from headroom.alerts.cluster_alerts import ClusterAlerts
from headroom.alerts.engine import AlertEngine
from headroom.alerts.faults import Faults
from headroom.alerts.lifecycle import Lifecycle
from headroom.alerts.metrics import Collected
from headroom.alerts.recommendations.recommendation import Advice
from headroom.alerts.rules.catalogue import MIGRATION_RULES
from headroom.alerts.rules.no_ticks import MissingTicks
from headroom.alerts.rules.rule import Rule, RuleInputs
from headroom.alerts.watched_cluster import WatchedCluster
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import AlertSettings, ClusterSettings, Settings
from headroom.streaming.jobs.alert_path import AlertPath, AlertPathSource
from headroom.streaming.queries.whole_ticks import CompleteTicks
from tests.unit.alerts.test_engine import START_MS, TOO_LOW
from tests.unit.builders import migration_progress
from tests.unit.fakes.alert_path_listener import CallingListener

CLUSTERS = ("orders", "payments")


class Ticks:
    """An alert path with ticks made by hand. In each of them broker 1 of every cluster has too low a throttle."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ms = START_MS
        first, second = (
            Settings(cluster=ClusterSettings(name=name), alerts=AlertSettings(hold_s=0, no_data_s=10))
            for name in CLUSTERS
        )
        self.engine = AlertEngine(first, lambda: self.now_ms, None, [WatchedCluster(second)])
        self.events: list[AlertEvent] = []
        self.ticks: list[tuple[str, int]] = []
        listeners = CallingListener(lambda *tick: self.ticks.append(tick[:2]), self.events.extend)
        self.path = AlertPath(
            MagicMock(), AlertPathSource(MagicMock(), "checkpoint"), MagicMock(), self.engine, listeners
        )
        self.path.warm_up = MagicMock()
        monkeypatch.setattr("headroom.streaming.jobs.alert_path.writer_id", lambda *_: "writer")
        monkeypatch.setattr("headroom.streaming.jobs.alert_path.throttle_status_of", lambda row: row["status"])
        monkeypatch.setattr(self.path, "_without_backlog", lambda *arguments: arguments[0])
        monkeypatch.setattr(self.path, "_reader", self)
        monkeypatch.setattr(self.path, "_headroom", self)
        self._second = 0
        # Messages of migrations, as each tick_end says; None: it does not say it.
        self.sent_migrations: int | None = None

    @contextmanager
    def read(self, batch: Any) -> Iterator[CompleteTicks]:
        ticks = [(cluster, START_MS + batch * 1000) for cluster in CLUSTERS]
        rows: Any = [
            {"cluster": c, "tick_ms": at, "end_offset": at, "record_ms": at, "migrations": 0}
            | {"sent_migrations": self.sent_migrations}
            for c, at in ticks
        ]
        yield CompleteTicks(MagicMock(), ticks, (0, 0), False, dict.fromkeys(ticks, Collected(None, 0, 0)), rows)

    def on(self, messages: Any) -> Any:
        """The rows of the present ticks."""

        class GoldRow(dict[str, Any]):
            def asDict(self, recursive: bool) -> dict[str, Any]:
                return self

        tick_ms = START_MS + self._second * 1000
        rows = [GoldRow(cluster=c, tick_ms=tick_ms, status=one) for c in CLUSTERS for one in TOO_LOW]
        return MagicMock(collect=lambda: rows)

    def at(self, second: int) -> None:
        """A batch with a tick of every cluster."""
        self.now_ms, self._second = START_MS + second * 1000, second
        batch: Any = second
        self.path._process_batch(batch, second)

    def events_of(self, cluster: str) -> list[tuple[str, str]]:
        return [(event.kind, event.state) for event in self.events if event.cluster == cluster]


LOW_THROTTLE_EVENTS = [("throttle_below_leader_write", "pending"), ("throttle_below_leader_write", "firing")]


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of clusters whose evaluation fails."""
    names: set[str] = set()
    earlier = ClusterAlerts._earlier

    def fails(alerts: ClusterAlerts, tick_ms: int, statuses: Sequence[Any]) -> Any:
        if alerts.name in names:
            raise ZeroDivisionError(f"at {tick_ms}")
        return earlier(alerts, tick_ms, statuses)

    monkeypatch.setattr(ClusterAlerts, "_earlier", fails)
    return names


def test_an_evaluation_that_fails_costs_that_tick_of_that_cluster(
    monkeypatch: pytest.MonkeyPatch, broken: set[str], caplog: pytest.LogCaptureFixture
) -> None:
    ticks = Ticks(monkeypatch)
    broken.add("orders")
    ticks.at(1)
    ticks.at(2)
    assert ticks.ticks == [("payments", START_MS + 1000), ("payments", START_MS + 2000)]
    assert (ticks.events_of("orders"), ticks.events_of("payments")) == ([], LOW_THROTTLE_EVENTS)
    # Once, though its text is another with each tick, and with a traceback.
    (record,) = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert record.message == (
        f"tick {START_MS + 1000} of cluster orders has no verdict, because its evaluation failed: "
        f"ZeroDivisionError: at {START_MS + 1000}"
    )
    assert record.exc_info
    broken.clear()
    ticks.at(3)
    assert ticks.events_of("orders") == LOW_THROTTLE_EVENTS


def test_alerts_of_a_cluster_that_fails_to_evaluate_stay_active_and_missing_ticks_fire(
    monkeypatch: pytest.MonkeyPatch, broken: set[str]
) -> None:
    ticks = Ticks(monkeypatch)
    ticks.at(1)
    broken.add("orders")
    # Ticks may be missing for 10 + 5 s: since second 1, until second 16.
    for second in range(2, 18):
        ticks.at(second)
        ticks.path.check_missing_ticks("watchdog")
    assert ticks.events_of("orders") == [*LOW_THROTTLE_EVENTS, ("no_data", "pending"), ("no_data", "firing")]
    assert ticks.events_of("payments") == LOW_THROTTLE_EVENTS
    assert {event.kind for event in ticks.engine.active() if event.cluster == "orders"} == {
        "throttle_below_leader_write",
        "no_data",
    }


def test_events_of_a_tick_that_failed_half_way_are_made_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = Ticks(monkeypatch)
    not_found, failures = Lifecycle._on_not_found, [1]
    ticks.engine.update_store_trouble("/data cannot be written")
    ticks.at(1)
    ticks.engine.update_store_trouble(None)
    was = ticks.events_of("orders")
    assert ("store_unwritable", "firing") in was
    monkeypatch.setattr(cluster_alerts, "evaluate_rules", _evaluated_with_finding)

    def fails(lifecycle: Lifecycle, *arguments: Any) -> Any:
        # After the event of the additional finding was made.
        if failures:
            raise ValueError(failures.pop())
        return not_found(lifecycle, *arguments)

    monkeypatch.setattr(Lifecycle, "_on_not_found", fails)
    ticks.at(2)
    assert ticks.events_of("orders") == was
    ticks.at(3)
    assert ticks.events_of("orders")[len(was) :] == [("no_data", "pending"), ("no_data", "firing")]


_evaluate_rules = cluster_alerts.evaluate_rules


def _evaluated_with_finding(tick: RuleInputs, rules: Sequence[Rule]) -> Any:
    """One more finding, which brings events at once, of the rules that do not wait for migrations."""
    assessment = _evaluate_rules(tick, rules)
    if rules is MIGRATION_RULES:
        return assessment
    silence = MissingTicks("orders", START_MS, START_MS, START_MS, None, 10)
    assessment.findings.insert(0, silence.finding(MagicMock(no_throttle_change=lambda *_: Advice())))
    return assessment


def test_missing_ticks_are_reported_for_other_clusters_if_one_evaluation_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ticks = Ticks(monkeypatch)
    missing_ticks = ClusterAlerts.missing_ticks

    def fails(alerts: ClusterAlerts, *arguments: Any) -> Any:
        if alerts.name == "orders":
            raise KeyError(alerts.name)
        return missing_ticks(alerts, *arguments)

    monkeypatch.setattr(ClusterAlerts, "missing_ticks", fails)
    # No tick since the start: 90 s are allowed for the first.
    ticks.now_ms += 91_000
    ticks.path.check_missing_ticks("watchdog")
    ticks.path.check_missing_ticks("watchdog")
    assert (ticks.events_of("orders"), ticks.events_of("payments")) == (
        [],
        [("no_data", "pending"), ("no_data", "firing")],
    )
    assert [r.message for r in caplog.records if r.levelno == logging.ERROR] == [
        "missing ticks of cluster orders could not be evaluated: KeyError: 'orders'"
    ]


def test_a_repeated_fault_is_logged_every_ten_minutes(caplog: pytest.LogCaptureFixture) -> None:
    now_s = [0.0]
    faults = Faults(logging.getLogger("faults"), lambda: now_s[0])
    for second in range(0, 1260, 60):
        now_s[0] = float(second)
        try:
            raise ValueError(second)
        except ValueError as error:
            faults.report("c", "it failed", error)
    assert [r.message for r in caplog.records] == [f"it failed: ValueError: {second}" for second in (0, 600, 1200)]


def test_rules_and_listeners_have_the_migrations_of_a_tick_and_no_older_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = Ticks(monkeypatch)
    calls: list[tuple[object, ...]] = []
    progress = (migration_progress.progress(),)
    module = "headroom.streaming.jobs.alert_path"
    monkeypatch.setattr(ticks.path._listener, "on_migrations", lambda *of: calls.append(of), raising=False)
    of_first = {(CLUSTERS[0], START_MS): progress}
    monkeypatch.setattr(f"{module}.evaluated_migrations", lambda messages, chosen: of_first)
    ticks.at(0)
    assert calls == [(CLUSTERS[0], START_MS, progress)]
    known = ticks.engine.inputs(CLUSTERS[0]).migrations
    assert known is not None
    assert (known.value, known.tick_ms) == (progress, START_MS)
    assert ticks.engine.inputs(CLUSTERS[1]).migrations is None
    monkeypatch.setattr(f"{module}.evaluated_migrations", lambda messages, chosen: {})
    ticks.at(1)
    assert ticks.engine.inputs(CLUSTERS[0]).migrations is None
    assert len(calls) == 1


def test_a_tick_that_is_known_to_have_no_migration_is_one_with_none(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = Ticks(monkeypatch)
    calls: list[tuple[object, ...]] = []
    monkeypatch.setattr(ticks.path._listener, "on_migrations", lambda *of: calls.append(of), raising=False)
    lost = {(CLUSTERS[0], START_MS): (migration_progress.progress(lost_offsets=10),)}
    monkeypatch.setattr("headroom.streaming.jobs.alert_path.evaluated_migrations", lambda messages, chosen: lost)
    ticks.at(0)
    monkeypatch.setattr("headroom.streaming.jobs.alert_path.evaluated_migrations", lambda messages, chosen: {})
    ticks.at(1)
    ticks.at(2)
    assert ticks.events_of(CLUSTERS[0])[-1] == ("migration_records_lost", "firing")
    ticks.sent_migrations = 0
    ticks.at(3)
    assert ticks.events_of(CLUSTERS[0])[-1] == ("migration_records_lost", "resolved")
    assert calls[1:] == [(cluster, START_MS + 3_000, ()) for cluster in CLUSTERS]
    known = ticks.engine.inputs(CLUSTERS[1]).migrations
    assert (known and known.value) == ()


def test_alerts_on_throttles_do_not_wait_for_the_migrations_of_their_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = Ticks(monkeypatch)
    lost = (migration_progress.progress(lost_offsets=10),)
    kinds_before: list[str] = []

    def evaluated(messages: object, chosen: object) -> dict[tuple[str, int], object]:
        kinds_before.extend(event.kind for event in ticks.events)
        return {(CLUSTERS[0], START_MS): lost}

    monkeypatch.setattr("headroom.streaming.jobs.alert_path.evaluated_migrations", evaluated)
    ticks.at(0)
    assert set(kinds_before) == {"throttle_below_leader_write"}
    assert ticks.events_of(CLUSTERS[0]) == [
        *LOW_THROTTLE_EVENTS,
        ("migration_records_lost", "pending"),
        ("migration_records_lost", "firing"),
    ]
    # Two commits of one batch, which a repeated batch must not confuse.
    commits = [call.args[1:] for call in ticks.path._log.append.call_args_list]  # type: ignore[attr-defined]
    assert [of for of in commits if of[0].startswith("writer")] == [("writer", 0), ("writer-migrations", 0)]


def test_migrations_that_fail_to_evaluate_cost_no_verdict_on_throttles(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ticks = Ticks(monkeypatch)
    monkeypatch.setattr(ClusterAlerts, "evaluate_migrations", MagicMock(side_effect=ZeroDivisionError("at 0")))
    ticks.at(0)
    assert [ticks.events_of(cluster) for cluster in CLUSTERS] == [LOW_THROTTLE_EVENTS] * 2
    assert f"migrations in tick {START_MS} of cluster {CLUSTERS[0]} have no verdict" in caplog.text
