"""Restarts of stopped jobs, and alerts while nothing can be written."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from headroom.alerts.engine import AlertEngine
from headroom.alerts.metrics import Collected
from headroom.alerts.watched_cluster import WatchedCluster
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import ClusterSettings, KafkaSettings, Settings, StoreSettings
from headroom.schemas.errors import HeadroomError
from headroom.streaming.delta.locations import trouble_of
from headroom.streaming.jobs.alert_path import AlertPath, AlertPathSource
from headroom.streaming.pipeline import Pipeline, PipelineConfig
from headroom.streaming.queries.whole_ticks import CompleteTicks
from headroom.streaming.supervision.failure import cause_of
from headroom.streaming.supervision.restarting_job import RestartingJob
from tests.unit.fakes.alert_path_listener import CallingListener
from tests.unit.fakes.receivers import event

NO_ROOM = OSError(28, "No space left on device")


class Query:
    """A query that runs until the test lets it fail."""

    def __init__(self) -> None:
        self.isActive = True

    def fail(self) -> None:
        self.isActive = False

    def exception(self) -> Exception:
        return RuntimeError("its checkpoint cannot be written")

    def stop(self) -> None:
        self.isActive = False


class Starts:
    """Starts queries, and fails if the test says so."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.queries: list[Query] = []

    def __call__(self) -> Any:
        if self.failures:
            raise self.failures.pop(0)
        self.queries.append(Query())
        return [self.queries[-1]]


def kept(starts: Starts) -> tuple[RestartingJob, Callable[[float], None]]:
    """A job that runs, and what lets seconds pass, one look at it in each."""
    now_s = [0.0]
    job = RestartingJob("gold", starts, now_s=lambda: now_s[0])
    job.start()

    def wait(seconds: float) -> None:
        for _ in range(int(seconds)):
            now_s[0] += 1
            job.check()
            job.restart_if_due()

    return job, wait


def test_a_job_that_stopped_is_started_again_two_seconds_later() -> None:
    starts = Starts()
    job, wait = kept(starts)
    wait(3)
    starts.queries[0].fail()
    wait(2)
    assert (len(starts.queries), job.down) == (1, True)
    wait(1)
    assert (len(starts.queries), job.down) == (2, False)


def test_a_start_that_fails_is_tried_again() -> None:
    starts = Starts()
    job, wait = kept(starts)
    starts.queries[0].fail()
    starts.failures = [HeadroomError("topic", "is out of reach", "Wait.")]
    wait(10)
    assert (len(starts.queries), job.down) == (2, False)


def test_failures_far_apart_are_no_reason_to_give_up() -> None:
    starts = Starts()
    _, wait = kept(starts)
    for _ in range(20):
        starts.queries[-1].fail()
        wait(200)
    assert len(starts.queries) == 21


def test_failures_whose_cause_is_known_are_not_counted() -> None:
    starts = Starts()
    job, wait = kept(starts)
    for _ in range(20):
        starts.queries[-1].fail()
        job.check()
        job.forget_failures()
        wait(3)
    assert len(starts.queries) == 21


class Log:
    """The table of events, whose disk may be full."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.stored: list[tuple[str, str, int]] = []
        self.is_removed = False

    def append(self, events: Sequence[AlertEvent], writer: str, version: int) -> None:
        if self.error is not None:
            raise self.error
        self.stored += [(one.alert_id, writer, version) for one in events]
        self.is_removed = False

    def was_removed(self) -> bool:
        return self.is_removed

    def last_events(self) -> list[AlertEvent]:
        return []

    def trouble(self, error: BaseException) -> str:
        return cause_of(error)


class Panic(BaseException):
    """What the Delta library raises at times."""


class EvaluatedPath:
    """An alert path with ticks made by hand, identified by their offsets; each has an event."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log, self.events, self.ticks = Log(), list[AlertEvent](), list[int]()
        engine = MagicMock()
        engine.evaluate.side_effect = lambda cluster, tick_ms, statuses: [event(f"alert-{tick_ms}")]
        listeners = CallingListener(lambda cluster, tick_ms, statuses: self.ticks.append(tick_ms), self.events.extend)
        log: Any = self.log
        self.path = AlertPath(MagicMock(), AlertPathSource(MagicMock(), "checkpoint"), log, engine, listeners)
        self.path.warm_up = MagicMock()
        monkeypatch.setattr("headroom.streaming.jobs.alert_path.writer_id", lambda *_: "writer")
        monkeypatch.setattr(self.path, "_headroom", MagicMock())
        monkeypatch.setattr(self.path, "_without_backlog", lambda batch, *_: batch)
        monkeypatch.setattr(self.path, "_reader", self)

    @contextmanager
    def read(self, batch: Any) -> Any:
        rows: Any = [
            {"cluster": "c", "tick_ms": at, "end_offset": at, "record_ms": at, "migrations": 0, "sent_migrations": None}
            for at in batch
        ]
        ticks = [("c", at) for at in batch]
        yield CompleteTicks(MagicMock(), ticks, (0, 0), False, dict.fromkeys(ticks, Collected(None, 0, 0)), rows)

    def batch(self, number: int, *places: int) -> None:
        batch: Any = places
        self.path._process_batch(batch, number)


def test_a_batch_that_comes_again_in_the_same_process_brings_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated = EvaluatedPath(monkeypatch)
    evaluated.batch(0, 10, 20)
    evaluated.batch(0, 10, 20)
    evaluated.batch(1, 20, 30)
    assert evaluated.ticks == [10, 20, 30]
    assert evaluated.log.stored == [("alert-10", "writer", 0), ("alert-20", "writer", 0), ("alert-30", "writer", 1)]


@pytest.mark.parametrize("error", [NO_ROOM, Panic("disk"), HeadroomError("store", "cannot be written", "Wait.")])
def test_events_that_cannot_be_stored_are_sent_once_as_such_and_stored_later_in_order(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    evaluated = EvaluatedPath(monkeypatch)
    evaluated.log.error = error
    evaluated.batch(0, 10)
    evaluated.batch(1, 20)
    assert evaluated.path.trouble is not None
    assert [one.alert_id for one in evaluated.events] == ["alert-10", "alert-20"]
    assert all(one.summary.endswith(" (not kept yet)") for one in evaluated.events)
    evaluated.path.store_pending()
    assert evaluated.log.stored == []
    evaluated.log.error = None
    evaluated.batch(2, 30)
    assert evaluated.path.trouble is None
    assert evaluated.log.stored == [("alert-10", "writer", 0), ("alert-20", "writer", 1), ("alert-30", "writer", 2)]
    assert len(evaluated.events) == 3
    assert not evaluated.events[-1].summary.endswith(" (not kept yet)")


def test_alerts_that_are_active_are_stored_again_in_place_of_a_table_that_was_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evaluated = EvaluatedPath(monkeypatch)
    engine: Any = evaluated.path._engine
    engine.active.side_effect = lambda: [event("old"), event("alert-20")]
    evaluated.log.is_removed, evaluated.log.error = True, NO_ROOM
    evaluated.batch(0, 20)
    evaluated.log.error = None
    evaluated.path.store_pending()
    # Each of them once, those that wait to be stored in their own commit.
    assert [(alert_id, version) for alert_id, _, version in evaluated.log.stored] == [("old", 1), ("alert-20", 0)]
    evaluated.log.is_removed = True
    evaluated.path.store_pending()
    assert [alert_id for alert_id, *_ in evaluated.log.stored[2:]] == ["old", "alert-20"]


def test_without_a_store_alert_messages_are_evaluated_from_where_the_query_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evaluated = EvaluatedPath(monkeypatch)
    evaluated.batch(0, 10)
    asked: list[int] = []

    def since(offset: int) -> tuple[int, ...]:
        asked.append(offset)
        return (20, 30)

    monkeypatch.setattr(evaluated.path._topic, "alert_messages_since", since)
    evaluated.log.error = NO_ROOM
    for offset in (11, 31):
        assert evaluated.path._evaluate_since(offset) == 31
    # The second call has no record that was not evaluated.
    assert (asked, evaluated.ticks) == ([11, 31], [10, 20, 30])
    evaluated.log.error = None
    evaluated.path.store_pending()
    assert [alert_id for alert_id, *_ in evaluated.log.stored] == ["alert-10", "alert-20", "alert-30"]
    assert len({(writer, version) for _, writer, version in evaluated.log.stored}) == 2


def test_a_place_that_can_be_written_is_left_as_it_was(tmp_path: Path) -> None:
    assert trouble_of(str(tmp_path / "store")) is None
    assert list((tmp_path / "store").iterdir()) == []
    assert trouble_of("s3a://bucket/store") is None


def test_a_place_that_cannot_be_written_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("")
    assert trouble_of(str(tmp_path / "store")) == f"{tmp_path}/store cannot be written (File exists)"


class Trouble:
    """A pipeline with one job, whose store is put out of reach."""

    def __init__(self, folder: Path) -> None:
        self.store = folder / "store"
        settings = Settings(store=StoreSettings(path=str(self.store)))
        self.pipeline = Pipeline(MagicMock(), PipelineConfig(settings, KafkaSettings()))
        self.path, self.outbox, self.starts = MagicMock(), MagicMock(), Starts()
        self.path.trouble = None
        self.pipeline._alert_path, self.pipeline._outbox = self.path, self.outbox
        self.pipeline._supervise("alert_path", self.starts)

    def lose(self) -> None:
        self.store.write_text("a file")
        self.starts.queries[-1].fail()


def test_an_unreachable_store_is_reported_and_alerts_continue_until_all_jobs_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headroom.streaming.supervision.restarting_job._RESTART_S", 0.0)
    at = Trouble(tmp_path)
    at.pipeline.check()
    at.path.start_without_store.assert_not_called()
    at.lose()
    for _ in range(10):
        at.pipeline.check()
    at.path.start_without_store.assert_called()
    at.outbox.go_without_store.assert_called_once_with(True)
    assert len(at.starts.queries) == 1
    assert at.pipeline.engine.inputs("kafka").store_trouble == f"{at.store} cannot be written (File exists)"
    at.store.unlink()
    for _ in range(3):
        at.pipeline.check()
    at.path.stop_without_store.assert_called_once_with()
    assert [call.args for call in at.outbox.go_without_store.call_args_list] == [(True,), (False,)]
    assert len(at.starts.queries) == 2
    assert at.pipeline.engine.inputs("kafka").store_trouble is None


def test_events_that_cannot_be_kept_are_trouble_though_the_place_can_be_written(tmp_path: Path) -> None:
    at = Trouble(tmp_path)
    at.path.trouble = "the table is gone"
    at.pipeline.check()
    assert at.pipeline.engine.inputs("kafka").store_trouble == "the table is gone"
    # The query runs, and needs no help.
    at.path.start_without_store.assert_not_called()
    at.path.trouble = None
    at.pipeline.check()
    assert at.pipeline.engine.inputs("kafka").store_trouble is None


def test_a_store_that_fills_while_all_queries_run_is_found_by_a_probe(tmp_path: Path) -> None:
    at = Trouble(tmp_path)
    at.store.write_text("a file")
    at.pipeline.check()
    assert at.pipeline.engine.inputs("kafka").store_trouble is None
    # The next probe is due.
    at.pipeline._probe_at_s = 0.0
    at.pipeline.check()
    assert at.pipeline.engine.inputs("kafka").store_trouble == f"{at.store} cannot be written (File exists)"
    at.outbox.go_without_store.assert_called_once_with(True)
    # The query runs, and needs no help.
    at.path.start_without_store.assert_not_called()
    at.store.unlink()
    at.pipeline.check()
    assert at.pipeline.engine.inputs("kafka").store_trouble is None


def test_a_store_that_hangs_is_trouble_and_holds_up_no_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    let_go = threading.Event()

    def hang(location: str) -> None:
        let_go.wait(120)

    monkeypatch.setattr("headroom.streaming.pipeline._PROBE_EVERY_S", 0.0)
    monkeypatch.setattr("headroom.streaming.supervision.in_time.DEADLINE_S", 0.05)
    monkeypatch.setattr("headroom.streaming.pipeline.trouble_of", hang)
    at = Trouble(tmp_path)
    began_s = time.monotonic()
    try:
        for _ in range(3):
            at.pipeline.check()
        assert time.monotonic() - began_s < 60
        assert at.pipeline.engine.inputs("kafka").store_trouble == f"{at.store} does not answer"
        assert at.path.check_missing_ticks.call_count == 3
    finally:
        let_go.set()


def test_trouble_is_an_alert_though_no_tick_comes_and_ends_without_one() -> None:
    now_ms = [0]
    engine = AlertEngine(
        Settings(), lambda: now_ms[0], None, [WatchedCluster(Settings(cluster=ClusterSettings(name="b")))]
    )

    def after(second: int) -> set[tuple[str, str, str]]:
        now_ms[0] = second * 1000
        return {(one.cluster, one.kind, one.state) for one in engine.check_missing_ticks()}

    engine.update_store_trouble("/data cannot be written (No space left on device)")
    # 90 s are allowed for the first tick.
    assert after(89) == set()
    silent = {(cluster, "no_data", state) for cluster in ("kafka", "b") for state in ("pending", "firing")}
    assert after(91) == silent | {("kafka", "store_unwritable", state) for state in ("pending", "firing")}
    engine.update_store_trouble(None)
    resolved = set[tuple[str, str, str]]().union(*(after(second) for second in range(92, 140)))
    assert resolved == {("kafka", "store_unwritable", "resolved")}


def test_trouble_is_an_alert_of_the_first_cluster_alone(tmp_path: Path) -> None:
    at = Trouble(tmp_path)
    engine = at.pipeline.engine
    engine.update_store_trouble("/data cannot be written (No space left on device)")
    assert engine.evaluate("another", 1000, []) == []
    events = engine.evaluate("kafka", 1000, [])
    assert [(one.kind, one.severity, one.state) for one in events] == [
        ("store_unwritable", "critical", "pending"),
        ("store_unwritable", "critical", "firing"),
    ]
    assert json.loads(events[-1].evidence)["trouble"].startswith("/data cannot")
    engine.update_store_trouble(None)
    assert [one.state for s in range(2, 30) for one in engine.evaluate("kafka", s * 1000, [])] == ["resolved"]


def test_a_job_waits_for_what_it_cannot_do_without_and_is_not_blamed() -> None:
    now_s, damaged = [0.0], [True]
    starts = Starts(*[HeadroomError("table", "is damaged", "Repair it.")] * 1)
    job = RestartingJob("gold", starts, lambda: damaged[0], lambda: now_s[0])
    job.start_or_wait()
    for _ in range(1000):
        now_s[0] += 1
        job.check()
        job.restart_if_due()
    assert job.down
    assert not starts.queries
    damaged[0] = False
    job.restart_if_due()
    assert not job.down
    assert len(starts.queries) == 1


def test_a_job_that_waits_for_nothing_says_at_once_why_it_does_not_begin() -> None:
    starts = Starts(HeadroomError("table", "is somebody else's", "Move it."))
    with pytest.raises(HeadroomError, match="somebody else's"):
        RestartingJob("gold", starts).start_or_wait()
