"""The jobs put together over one session: which run, how they are looked after, how they end."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from alerts.delivery.outbox import DeliveryFigures, Outbox
from alerts.delivery.receiver import Receiver
from alerts.engine import AlertEngine, WatchedCluster
from planning.elections.limits import limits_of
from schemas.config import KafkaSettings, Settings
from schemas.tables import ALERT_MARKS, TABLES
from streaming.delta.locations import trouble_of
from streaming.delta.maintenance import Maintenance, MaintenanceSchedule
from streaming.delta.query import table_url
from streaming.delta.store import Store
from streaming.jobs.alert_path import AlertPath, Listeners, in_turn
from streaming.jobs.gold import GoldJob
from streaming.jobs.leader_imbalance import LeaderImbalanceJob
from streaming.jobs.silver import HistoryJob
from streaming.queries.batch_gate import BatchGate, Stopping, wait_idle
from streaming.queries.tick_query import TickQuery
from streaming.session import throughput_session
from streaming.sources.ticks_topic import TicksTopic, kafka_options
from streaming.sources.trust import Trust
from streaming.supervision.damaged_tables import Damaged
from streaming.supervision.in_time import InTime, NoAnswer
from streaming.supervision.jvm import spark_failures
from streaming.supervision.restarting_job import RestartingJob, reason_of
from streaming.tables.deliveries import DeliveryTable
from streaming.tables.events import EventLog
from streaming.tables.leader_balance_follower import LeaderBalanceFollower
from streaming.tables.quarantine import QuarantineCount
from streaming.tables.suppressions import SuppressionFollower

log = logging.getLogger(__name__)

_LOOK_S = 0.25
# Where checkpoints are on another disk, a full one stops no query of the alert path.
_PROBE_EVERY_S = 30.0
# The record job takes both of two cores for its first half minute. Whoever watches looks at gold.
_GOLD_FIRST_S = 30.0
# Gold's batches are short; one of many ticks does not hold up silver for longer than that at each table.
_GIVE_WAY_S = 2.0
# Tables that a job cannot do without, by the beginnings of their paths.
_WRITES = {GoldJob.name: ("gold/",), LeaderImbalanceJob.name: ("gold/",), HistoryJob.name: ("bronze/", "silver/")}


@dataclass(frozen=True)
class PipelineConfig:
    """What the pipeline is made from.

    Attributes:
        settings: all settings.
        ticks: how to reach the cluster that holds the ticks topic.
        password: its SASL password; None unless SASL is used.
        config: the configuration file that stands in commands; None: none.
        others: further clusters whose ticks come by the same topic.
        receivers: who is told of alerts besides the listeners.
        clock_ms: gives the time now, epoch milliseconds.
        elapsed_ms: gives milliseconds since some moment, whatever the clock is set to.
    """

    settings: Settings
    ticks: KafkaSettings
    password: str | None = None
    config: str | None = None
    others: Sequence[WatchedCluster] = ()
    receivers: Sequence[Receiver] = ()
    clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    elapsed_ms: Callable[[], int] = lambda: time.monotonic_ns() // 1_000_000


class Pipeline:
    """The Spark jobs of one process.

    Args:
        spark: session.
        inputs: what they are made from.
    """

    def __init__(self, spark: SparkSession, inputs: PipelineConfig) -> None:
        settings = inputs.settings
        self._spark = spark
        self._settings = settings
        self._kafka_options = kafka_options(inputs.ticks, inputs.password)
        self._trust = Trust({settings.cluster.name, *(w.settings.cluster.name for w in inputs.others)}, inputs.clock_ms)
        self._topic = self._topic_of(spark)
        self._store = Store(spark, settings.store.path)
        self._events = EventLog(spark, self._store)
        self._clock_ms = inputs.clock_ms
        self._desk = AlertEngine(settings, inputs.clock_ms, inputs.config, inputs.others, inputs.elapsed_ms)
        self._quarantine = QuarantineCount(settings.store.path)
        self._outbox: Outbox | None = None
        self._marks: SuppressionFollower | None = None
        self._balances: LeaderBalanceFollower | None = None
        if inputs.receivers:
            deliveries = DeliveryTable(spark, self._store)
            self._outbox = Outbox(inputs.receivers, deliveries, settings.notify, inputs.clock_ms, inputs.elapsed_ms)
            location, windows = table_url(settings.store.path, ALERT_MARKS.path), settings.alerts.maintenance
            self._marks = SuppressionFollower(location, windows, self._outbox.update_suppressions, inputs.clock_ms)
        self._alert_path: AlertPath | None = None
        self._run = f"watchdog-{uuid.uuid4()}"
        self._jobs: list[RestartingJob] = []
        self._trouble: str | None = None
        places = dict.fromkeys((settings.store.path, settings.store.checkpoints()))
        self._probes = {place: InTime[str | None](place) for place in places}
        self._probe_at_s = time.monotonic() + _PROBE_EVERY_S
        self._gates: list[BatchGate] = []
        self._gold_gates: list[BatchGate] = []
        self._record_by_s: float | None = None
        self._schedule: MaintenanceSchedule | None = None

    @property
    def desk(self) -> AlertEngine:
        """Return the desk that holds the alerts."""
        return self._desk

    def deliveries(self) -> list[DeliveryFigures]:
        """Return how the delivery to each receiver stands."""
        return self._outbox.figures() if self._outbox is not None else []

    def quarantined(self) -> int | None:
        """Return how many messages were not believed; None: unknown."""
        return self._quarantine()

    @property
    def batch_s(self) -> float | None:
        """Return for how many seconds the alert path has worked on its present batch; None: it works on none."""
        return None if self._alert_path is None else self._alert_path.gate.batch_s

    @spark_failures()
    def start_alert_path(self, listeners: Listeners) -> None:
        """Start the way from ticks to alerts, and to the receivers."""
        if self._outbox is not None and self._marks is not None:
            # What is silenced is known before anybody is told, and what is owed from before is taken up before the
            # first new event can come.
            self._marks.start()
            self._outbox.start()
            listeners = in_turn([Listeners(on_events=self._outbox.put), listeners])
        checkpoint = f"{self._settings.store.checkpoints()}/alert_path"
        self._alert_path = AlertPath(self._spark, self._topic, self._events, self._desk, listeners, checkpoint)
        self._gates.append(self._alert_path.gate)
        alert_path = self._alert_path
        self._keep(AlertPath.name, lambda: [alert_path.start()])
        take = in_turn([Listeners(on_balances=self._desk.update_leader_balance), listeners]).on_balances
        self._balances = LeaderBalanceFollower(
            self._spark, self._store, take, self._desk.update_election_plan, self._clock_ms
        )
        self._balances.start()

    @spark_failures()
    def start_gold(self) -> None:
        """Start the gold tables: those of the alert lane, and leader imbalance, which is of all partitions."""
        checkpoints, trigger_s = self._settings.store.checkpoints(), gold_trigger_s(self._settings)
        gold = GoldJob(self._spark, self._topic, self._store, f"{checkpoints}/gold", trigger_s)
        for_many = self._topic_of(throughput_session(self._spark))
        balance = LeaderImbalanceJob(
            self._spark,
            self._topic,
            for_many,
            self._store,
            f"{checkpoints}/balance",
            trigger_s,
            self._settings.alerts.leader_imbalance_percentage / 100,
            limits_of(self._settings.elections),
        )
        for job in (gold, balance):
            self._gates.append(job.gate)
            self._gold_gates.append(job.gate)
            self._keep(job.name, partial(_started, job))

    @spark_failures()
    def start_record(self) -> None:
        """Start the bronze and silver tables, and the regular maintenance of all tables.

        Beside gold jobs they start once each of these has written something, or half a minute later, by ``check``.
        """
        if self._gold_gates:
            self._record_by_s = time.monotonic() + _GOLD_FIRST_S
        else:
            self._start_record()

    def _start_record(self) -> None:
        self._record_by_s = None
        own = throughput_session(self._spark)
        tables = Store(own, self._settings.store.path)
        topic = self._topic_of(own)
        checkpoints, trigger_s = self._settings.store.checkpoints(), self._settings.spark.record_trigger_s
        job = HistoryJob(own, topic, tables, checkpoints, trigger_s, self._give_way_to_gold)
        self._gates.append(job.gate)
        self._keep(job.name, job.start)
        store = self._settings.store
        if store.maintain_every_s:
            self._schedule = MaintenanceSchedule(Maintenance(own, tables, store).run, store.maintain_every_s)
            self._schedule.start()

    def _keep(self, name: str, start: Callable[[], Sequence[StreamingQuery]]) -> None:
        tables = [table for table in TABLES if table.path.startswith(_WRITES.get(name, ()))]
        job = RestartingJob(name, start, Damaged(self._store, tables).look)
        job.begin()
        self._jobs.append(job)

    def _topic_of(self, spark: SparkSession) -> TicksTopic:
        return TicksTopic(spark, self._settings.ticks.topic, self._kafka_options, self._trust)

    def _give_way_to_gold(self) -> None:
        wait_idle(self._gold_gates, _GIVE_WAY_S)

    def check(self) -> None:
        """Look after what runs, and start what has stopped; call it about once a second.

        Raises:
            HeadroomError: a job has stopped too often, or Spark itself has.
        """
        with spark_failures():
            self._check()

    def _check(self) -> None:
        for job in self._jobs:
            job.look()
        is_due = time.monotonic() >= self._probe_at_s
        if is_due or self._trouble or any(job.down for job in self._jobs) or self._unkept() is not None:
            self._look_at_store()
        if self._trouble:
            self._go_on_without_store()
        else:
            for job in self._jobs:
                job.go_on()
        if self._record_by_s is not None and not self._trouble:
            gold_is_there = all(gate.batches for gate in self._gold_gates)
            if gold_is_there or time.monotonic() > self._record_by_s:
                self._start_record()
        if self._alert_path is not None:
            self._alert_path.check_silence(self._run)

    def _unkept(self) -> str | None:
        """Return why events that were told are not kept; None: all are."""
        return None if self._alert_path is None else self._alert_path.trouble

    def _look_at_store(self) -> None:
        """Note whether the store can be written, and tell who has to know."""
        if self._alert_path is not None and self._unkept() is not None:
            self._alert_path.pay()
        before, self._trouble = self._trouble, self._trouble_of_places() or self._unkept()
        self._probe_at_s = time.monotonic() + _PROBE_EVERY_S
        self._desk.update_store_trouble(self._trouble)
        if bool(before) == bool(self._trouble):
            return
        if self._trouble:
            log.error("%s: alerts go on, nothing is kept", self._trouble)
        else:
            log.warning("the store can be written again: all jobs go on")
            if self._alert_path is not None:
                self._alert_path.end_without_store()
                self._alert_path.pay()
        if self._outbox is not None:
            self._outbox.go_without_store(bool(self._trouble))

    def _trouble_of_places(self) -> str | None:
        """Return why tables or checkpoints cannot be written, in a few words; None: they can be."""
        for place, in_time in self._probes.items():
            try:
                trouble = in_time.call(partial(trouble_of, place))
            except NoAnswer as error:
                trouble = f"{place} {error.rule}"
            if trouble is not None:
                return trouble
        return None

    def _go_on_without_store(self) -> None:
        for job in self._jobs:
            job.excuse()
            if job.down and job.name == AlertPath.name and self._alert_path is not None:
                self._alert_path.go_on_without_store()

    def stop(self) -> None:
        """Stop the jobs; what a batch did not finish is done again at the next start.

        Raises:
            HeadroomError: Spark itself has stopped before.
        """
        try:
            with spark_failures():
                self._stop()
        finally:
            for follower in (self._marks, self._balances):
                if follower is not None:
                    follower.stop()
            if self._outbox is not None:
                self._outbox.stop()

    def _stop(self) -> None:
        # What a query logs of being stopped looks like a failure and is none; a real one is told below.
        self._spark.sparkContext.setLogLevel("OFF")
        if self._schedule is not None:
            self._schedule.stop()
        if self._alert_path is not None:
            self._alert_path.end_without_store()
            self._alert_path.rehearsal.stop()
        for gate in self._gates:
            gate.close()
        for query in [query for job in self._jobs for query in job.queries]:
            try:
                query.stop()
            except Exception:
                log.warning("job %s did not stop in time", query.name)
            error = query.exception()
            if error is not None and Stopping.__name__ not in str(error):
                log.warning("job %s had failed: %s", query.name, reason_of(query))


def gold_trigger_s(settings: Settings) -> float:
    """Return how often the gold jobs look for ticks, seconds.

    Where ticks are no nearer to each other than commits may be, each is a commit anyway, and none has to wait.
    """
    least_s = settings.spark.gold_trigger_s
    return min(_LOOK_S, least_s) if settings.collect.interval_s >= least_s else least_s


def _started(job: TickQuery) -> list[StreamingQuery]:
    return [job.start()]
