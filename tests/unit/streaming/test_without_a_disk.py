"""Alert path on a disk that is full or gone: from a start, after the end of its JVM, and back once there is room."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JNetworkError

from headroom.alerts.engine import AlertEngine
from headroom.schemas.config import ClusterSettings, KafkaSettings, Settings, StoreSettings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import ALERT_DELIVERIES, ALERT_EVENTS
from headroom.streaming import scratch, session
from headroom.streaming.delta.locations import require_writable, trouble_of
from headroom.streaming.jobs.alert_path import PathState
from headroom.streaming.jobs.without_store import WithoutStore
from headroom.streaming.pipeline import Pipeline, PipelineConfig
from headroom.streaming.queries.batch_offsets import next_alert_offset
from headroom.streaming.sources.ticks_topic import TicksTopic
from headroom.streaming.store.event_log import EventLog
from headroom.streaming.store.low_latency_table import LowLatencyTable
from headroom.streaming.store.store import Store
from headroom.streaming.supervision.failure import JvmEnded
from tests.unit.alerts.delivery.test_outbox import Inbox, MemoryLog, until
from tests.unit.fakes.alert_path_listener import CallingListener
from tests.unit.fakes.receivers import event
from tests.unit.streaming.supervision.test_restarting_job import NO_ROOM, EvaluatedPath

NO_SPACE = "No space left on device"


class Space:
    """Free space of every file system, as they report it."""

    def __init__(self, free_bytes: int, *, read_only: bool = False) -> None:
        self.f_blocks, self.f_frsize = 1 << 20, 1
        self.f_bfree = self.f_bavail = free_bytes
        self.f_flag = os.ST_RDONLY if read_only else 0


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Every disk has hardly any room. The function makes room."""
    spaces = [Space(100_000)]
    monkeypatch.setattr("headroom.streaming.delta.locations.os.statvfs", lambda _: spaces[-1])
    return lambda: spaces.append(Space(1 << 30))


def store_of(folder: Path) -> Store:
    return Store(MagicMock(), str(folder / "store"))


def test_a_disk_with_too_little_room_for_a_start_is_full(tmp_path: Path, full: Callable[[], None]) -> None:
    assert trouble_of(str(tmp_path)) == f"{tmp_path} cannot be written ({NO_SPACE})"
    full()
    assert trouble_of(str(tmp_path)) is None


def test_no_table_is_begun_on_a_full_disk_and_it_is_created_once_there_is_room(
    tmp_path: Path, full: Callable[[], None]
) -> None:
    store = store_of(tmp_path)
    with pytest.raises(HeadroomError, match=NO_SPACE):
        store.ensure(ALERT_EVENTS)
    assert not Path(store.location(ALERT_EVENTS)).exists()
    full()
    assert store.ensure(ALERT_EVENTS)


def test_a_table_that_cannot_be_created_is_prepared_and_is_created_by_its_first_rows(
    tmp_path: Path, full: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(tmp_path)
    monkeypatch.setattr(store, "exists", lambda _: False)
    table = LowLatencyTable(MagicMock(), store, ALERT_DELIVERIES)
    assert not table.prepare()
    full()
    table.append([])
    assert Path(store.location(ALERT_DELIVERIES), "_delta_log").exists()


def test_events_on_an_unreachable_disk_are_read_as_none(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("as a disk that is gone")
    store = store_of(tmp_path)
    store.exists = MagicMock(side_effect=HeadroomError("store", "cannot be read", "Look."))  # type: ignore[method-assign]
    assert EventLog(MagicMock(), store).last_events() == []


class NotedPath:
    """An alert path that only notes what is asked of it."""

    name = "alert_path"
    trouble: str | None = None
    made: list[NotedPath]

    def __init__(self, *given: Any, **_: Any) -> None:
        self.listener = given[4]
        self.gate = self.warm_up = MagicMock()
        self.asked: list[object] = []
        self.made.append(self)

    def start(self) -> Any:
        """Its query runs."""
        self.asked.append("start")
        return MagicMock()

    def __getattr__(self, name: str) -> Any:
        return lambda *given: self.asked.append((name, *given) if given else name)

    def state(self) -> PathState:
        """One event is not stored."""
        return PathState([([event()], "writer", 1)], (7, 8), None)


class Scene:
    """Pipelines whose store is a file, which makes it impossible to write there."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("headroom.streaming.pipeline.AlertPath", NotedPath)
        monkeypatch.setattr(NotedPath, "made", [], raising=False)
        self.log, self.inbox, self.place = MemoryLog(), Inbox(), folder / "store"
        monkeypatch.setattr("headroom.streaming.pipeline.DeliveryTable", lambda *_: self.log)
        self.place.write_text("as a disk that is gone")
        self.settings = Settings(store=StoreSettings(path=str(self.place)))

    def pipeline(self, spark: Any = None, handover: Any = None) -> Pipeline:
        config = PipelineConfig(self.settings, KafkaSettings(), receivers=[self.inbox])
        pipeline = Pipeline(spark or MagicMock(), config, handover)
        pipeline.start_alert_path(CallingListener())
        return pipeline


def test_a_start_without_a_disk_evaluates_at_once_and_delivers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = Scene(tmp_path, monkeypatch)
    pipeline = at.pipeline()
    (path,) = NotedPath.made
    assert path.asked == ["start_without_store"]
    assert pipeline.engine.inputs("kafka").store_trouble == f"{at.place} cannot be written (File exists)"
    path.listener.on_events([event()])
    until(lambda: at.inbox.got, lambda: at.inbox.got)
    assert at.log.states() == []
    at.place.unlink()
    pipeline.check()
    asked = ["store_pending", "stop_without_store", "store_pending", "start", ("check_missing_ticks", pipeline._run)]
    assert path.asked[1:] == asked
    until(lambda: "delivered" in at.log.states(), at.log.states)
    pipeline.stop()


def test_a_jvm_that_ends_while_no_query_runs_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Jvm:
        ended = False

        @property
        def startTime(self) -> int:
            if self.ended:
                raise Py4JNetworkError("Answer from Java side is empty")
            return 1

    spark = MagicMock(sparkContext=Jvm())
    pipeline = Scene(tmp_path, monkeypatch).pipeline(spark)
    pipeline.check()
    spark.sparkContext.ended = True
    with pytest.raises(JvmEnded):
        pipeline.check()
    pipeline._outbox.stop()  # type: ignore[union-attr]


def test_state_that_is_only_in_memory_survives_a_restart_of_the_jvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = Scene(tmp_path, monkeypatch)
    first = at.pipeline()
    handover = first.hand_over()
    assert handover is not None
    first.stop()
    spark, kept = MagicMock(), at.log
    at.log = MemoryLog()
    second = at.pipeline(spark, handover=handover)
    before, after = NotedPath.made
    # The outbox records in the table that the pipeline asks for damage, through the session that lives.
    assert kept.moves == [spark]
    kept.damaged = "table alerts/deliveries is damaged"
    assert second._unstored_reason() is not None
    assert second.engine is first.engine
    assert after.asked == [("take_over", handover.path), "start_without_store"]
    assert handover.path.unstored == before.state().unstored
    # Deliveries have not stopped in between.
    after.listener.on_events([event()])
    until(lambda: at.inbox.got, lambda: at.inbox.got)
    second.stop()


def test_nothing_is_passed_on_while_the_tables_have_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = Scene(tmp_path, monkeypatch)
    at.place.unlink()
    pipeline = at.pipeline()
    assert pipeline.hand_over() is None
    pipeline.stop()


def test_events_that_were_not_stored_are_stored_by_the_next_alert_path_before_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = EvaluatedPath(monkeypatch), EvaluatedPath(monkeypatch)
    first.log.error = NO_ROOM
    first.batch(0, 10)
    second.path.take_over(first.path.state())
    assert second.path.trouble is not None
    # The tick comes again, and is not evaluated again.
    second.batch(0, 10, 20)
    assert second.ticks == [20]
    assert [alert_id for alert_id, *_ in second.log.stored] == ["alert-10", "alert-20"]
    assert second.path.trouble is None


def test_after_a_restart_of_spark_the_next_tick_has_as_much_time_as_the_first() -> None:
    now_ms = [0]
    engine = AlertEngine(Settings(cluster=ClusterSettings(name="orders")), lambda: now_ms[0])
    engine.evaluate("orders", 0, [])
    now_ms[0] = 60_000
    engine.await_first_ticks()
    for second in (60, 149):
        now_ms[0] = second * 1000
        assert engine.check_missing_ticks() == []
    now_ms[0] = 151_000
    assert [(e.kind, e.state) for e in engine.check_missing_ticks()] == [("no_data", "pending"), ("no_data", "firing")]
    # It ends with the next ticks, as ever.
    states = []
    for second in range(152, 200):
        now_ms[0] = second * 1000
        states += [(e.kind, e.state) for e in engine.evaluate("orders", now_ms[0], [])]
    assert states == [("no_data", "resolved")]


def test_a_new_checkpoint_begins_behind_what_was_evaluated_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated = EvaluatedPath(monkeypatch)
    topic: Any = evaluated.path._topic
    evaluated.path.start()
    topic.alert_stream.assert_called_with("latest")
    evaluated.batch(0, 10)
    evaluated.path.start()
    topic.starting_at.assert_called_once_with(11)
    topic.alert_stream.assert_called_with(topic.starting_at.return_value)


def test_an_offset_to_start_at_is_one_of_the_alert_partition() -> None:
    topic = TicksTopic(MagicMock(), "ticks", {"kafka.request.timeout.ms": "1000"})
    assert json.loads(topic.starting_at(11)) == {"ticks": {"0": 11}}


def test_without_a_checkpoint_it_begins_at_the_newest_record_and_with_one_where_that_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    evaluated = EvaluatedPath(monkeypatch)
    path = evaluated.path
    monkeypatch.setattr(path, "_newest_offset", lambda: 50)
    monkeypatch.setattr(path, "_checkpoint", str(tmp_path))
    assert path._first_offset() == 50
    for folder, name in (("commits", "3"), ("commits", "4"), ("offsets", "5"), ("commits", ".4.crc")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).touch()
    spark: Any = path._spark
    spark.read.text.return_value.collect.return_value = [("v1",), ('{"ticks": {"0": 30}}',)]
    assert path._first_offset() == 30
    spark.read.text.assert_called_with(f"{tmp_path}/offsets/4")
    evaluated.batch(0, 40)
    assert path._first_offset() == 41


def test_a_checkpoint_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    assert next_alert_offset(MagicMock(), str(tmp_path / "none")) is None
    assert next_alert_offset(MagicMock(), "s3a://bucket/none") is None


def test_it_waits_some_seconds_for_the_newest_offset_and_begins_with_the_first_record_then() -> None:
    asked: list[int] = []
    without = WithoutStore(lambda offset: asked.append(offset) or offset + 1, lambda: None)
    for _ in range(9):
        without._poll()
    assert asked == []
    without._poll()
    without._poll()
    assert asked == [0, 1]


def test_a_read_only_disk_is_no_mistake_of_who_can_wait_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headroom.streaming.delta.locations.os.statvfs", lambda _: Space(1 << 30, read_only=True))
    monkeypatch.setattr("headroom.streaming.delta.locations.os.access", lambda *_, **__: False)
    require_writable(str(tmp_path), on_read_only_disk=True)
    with pytest.raises(HeadroomError, match="cannot be written"):
        require_writable(str(tmp_path))


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder that stands for the memory; temporary folders are as usual afterwards."""
    memory = tmp_path / "memory"
    memory.mkdir()
    monkeypatch.setattr(scratch, "_IN_MEMORY", str(memory))
    monkeypatch.setattr(tempfile, "tempdir", tempfile.gettempdir())
    monkeypatch.setenv("TMPDIR", tempfile.gettempdir())
    return memory


def test_without_room_for_temporary_files_they_are_kept_in_memory(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        scratch, "trouble_of", lambda place: None if place.startswith(str(temporary)) else f"{place} {NO_SPACE}"
    )
    options = "spark.driver.extraJavaOptions"
    conf = session._with_scratch({options: "-Xss4m"})
    folder = Path(conf["spark.local.dir"])
    assert folder.parent == temporary
    assert conf[options] == f"-Xss4m -Djava.io.tmpdir={folder} -XX:-UsePerfData"
    assert os.environ["TMPDIR"] == tempfile.gettempdir() == str(folder)
    # The next Spark of this process has the same.
    assert session._with_scratch({options: "-Xss4m"}) == conf


def test_with_room_for_temporary_files_nothing_is_set(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "trouble_of", lambda _: None)
    assert session._with_scratch({"a": "b"}) == {"a": "b"}


def test_without_any_room_spark_is_started_as_usual(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "trouble_of", lambda place: f"{place} {NO_SPACE}")
    assert session._with_scratch({"a": "b"}) == {"a": "b"}
