"""Pipeline after its JVM has ended, as when spark-submit stops: one clear error, and the stop does not hang."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, ClassVar
from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from headroom.alerts.delivery.delivery_log import event_key
from headroom.schemas.config import KafkaSettings, Settings, StoreSettings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import PARTITION_LOAD, THROTTLE_HEADROOM, Table
from headroom.streaming.jobs.listener import AlertPathListener
from headroom.streaming.pipeline import Pipeline, PipelineConfig
from headroom.streaming.queries.batch_gate import BatchGate
from headroom.streaming.supervision.restarting_job import RestartingJob
from headroom.streaming.tables.suppressions import append_record
from tests.unit.alerts.delivery.test_outbox import Inbox, MemoryLog, until
from tests.unit.alerts.delivery.test_suppression import silence
from tests.unit.fakes.alert_path_listener import CallingListener
from tests.unit.fakes.receivers import event


class Gone:
    """A query, and a session, of a JVM that has ended: whatever is asked of it fails."""

    name = "gold"

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        raise self._error


@pytest.mark.parametrize(
    "error",
    [
        Py4JNetworkError("Answer from Java side is empty"),
        Py4JError("An error occurred while calling o9.isActive"),
        ConnectionRefusedError(111, "Connection refused"),
    ],
)
def test_a_jvm_that_has_ended_is_reported(error: Exception) -> None:
    gone: Any = Gone(error)
    pipeline = Pipeline(gone, PipelineConfig(Settings(), KafkaSettings()))
    job = RestartingJob("gold", lambda: [gone])
    job.start()
    pipeline._jobs.append(job)
    for call in (pipeline.check, pipeline.stop):
        with pytest.raises(HeadroomError) as caught:
            call()
        assert (caught.value.subject, caught.value.rule) == ("Spark", "its JVM has ended")


class Path:
    """An alert path that only keeps its listener."""

    name = "alert_path"

    def __init__(self, *given: Any, **_: Any) -> None:
        self.listeners: AlertPathListener = given[4]
        self.gate = self.warm_up = None

    def start(self) -> None:
        """Nothing runs."""

    def stop_without_store(self) -> None:
        """It never began."""


def test_receivers_hear_of_events_and_are_stopped_though_the_jvm_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    log, inbox, events = MemoryLog(), Inbox(), []
    monkeypatch.setattr("headroom.streaming.pipeline.AlertPath", Path)
    monkeypatch.setattr("headroom.streaming.pipeline.DeliveryTable", lambda *_: log)
    gone: Any = Gone(Py4JError("gone"))
    pipeline = Pipeline(gone, PipelineConfig(Settings(), KafkaSettings(), receivers=[inbox]))
    pipeline.start_alert_path(CallingListener(lambda *_: None, events.extend))
    path: Any = pipeline._alert_path
    path.listeners.on_events([event()])
    until(lambda: "delivered" in log.states(), log.states)
    assert events == [event()]
    assert [(f.receiver, f.undelivered) for f in pipeline.deliveries()] == [("inbox", 0)]
    with pytest.raises(HeadroomError):
        pipeline.stop()
    until(lambda: not [t for t in threading.enumerate() if t.name == "delivery to inbox"], threading.enumerate)


def test_an_alert_silenced_before_the_start_is_not_sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    append_record(str(tmp_path / "alerts" / "marks"), silence(starts_ms=0, ends_ms=1 << 42, subject="broker 2*"))
    other = event("b", subject="broker 3 as leader")
    log, inbox = MemoryLog([event(), other]), Inbox()
    monkeypatch.setattr("headroom.streaming.pipeline.AlertPath", Path)
    monkeypatch.setattr("headroom.streaming.pipeline.DeliveryTable", lambda *_: log)
    gone: Any = Gone(Py4JError("gone"))
    settings = Settings(store=StoreSettings(path=str(tmp_path)))
    pipeline = Pipeline(gone, PipelineConfig(settings, KafkaSettings(), receivers=[inbox]))
    # Tests before this one in the same process may have ended without a stop.
    others = set(threading.enumerate())
    pipeline.start_alert_path(CallingListener())
    until(lambda: "delivered" in log.states(), log.states)
    assert inbox.got == [event_key(other)]
    with pytest.raises(HeadroomError):
        pipeline.stop()
    until(lambda: "marks" not in {t.name for t in set(threading.enumerate()) - others}, threading.enumerate)


def test_without_a_receiver_there_is_no_outbox(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr("headroom.streaming.pipeline.DeliveryTable", lambda *found: made.append(found))
    gone: Any = Gone(Py4JError("gone"))
    assert Pipeline(gone, PipelineConfig(Settings(), KafkaSettings())).deliveries() == []
    assert made == []


class Job:
    """A job whose batches are events by hand; it has no query."""

    name = "job"
    started: ClassVar[list[Job]] = []

    def __init__(self, *given: Any) -> None:
        self.gate = BatchGate()

    def start(self) -> Any:
        """It is among those that were started."""
        self.started.append(self)
        return MagicMock()


class History(Job):
    """The record job."""

    def start(self) -> Any:
        """Two queries."""
        return [super().start()]


@pytest.fixture
def recording(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Pipeline]:
    """Returns a pipeline that was events to start gold, or not, and then the record job."""
    monkeypatch.setattr(Job, "started", [])
    for name, job in (("GoldJob", Job), ("LeaderImbalanceJob", Job), ("HistoryJob", History)):
        monkeypatch.setattr(f"headroom.streaming.pipeline.{name}", job)
    settings = Settings(store=StoreSettings(maintain_every_s=0))

    def started(gold: bool = True, spark: Any = None) -> Pipeline:
        pipeline = Pipeline(spark or MagicMock(), PipelineConfig(settings, KafkaSettings()))
        if gold:
            pipeline.start_gold()
        pipeline.start_record()
        return pipeline

    return started


def recorded() -> bool:
    return any(isinstance(job, History) for job in Job.started)


def test_history_is_kept_once_every_gold_job_has_written(recording: Callable[..., Pipeline]) -> None:
    pipeline = recording()
    for gold in list(Job.started):
        pipeline.check()
        assert not recorded()
        gold.gate.wrap(lambda *_: None)(MagicMock(), 0)
    pipeline.check()
    assert recorded()
    pipeline.check()
    assert len(Job.started) == 3


def test_history_is_kept_though_nothing_comes_to_gold(
    recording: Callable[..., Pipeline], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headroom.streaming.pipeline._GOLD_FIRST_S", 0.0)
    recording().check()
    assert recorded()


def test_history_alone_is_kept_at_once(recording: Callable[..., Pipeline]) -> None:
    recording(gold=False)
    assert recorded()


def test_history_leaves_the_settings_of_the_other_jobs_alone(recording: Callable[..., Pipeline]) -> None:
    spark = MagicMock()
    recording(gold=False, spark=spark)
    assert recorded()
    spark.conf.set.assert_not_called()


def test_gold_does_not_wait_for_the_repair_of_a_table_that_only_the_upkeep_writes(
    recording: Callable[..., Pipeline], monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []

    class Check:
        def __init__(self, _store: object, tables: Sequence[Table]) -> None:
            checked.extend(table.path for table in tables)

        def is_damaged(self) -> bool:
            return False

    monkeypatch.setattr("headroom.streaming.pipeline.DamageCheck", Check)
    monkeypatch.setattr(Job, "name", "gold")
    recording()
    assert THROTTLE_HEADROOM.path in checked
    assert PARTITION_LOAD.path not in checked
