"""Pipeline of one process: the Spark jobs of one session, their supervision and their stop."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headroom.alerts.delivery.outbox import DeliveryFigures, Outbox
from headroom.alerts.delivery.receiver import Receiver
from headroom.alerts.engine import AlertEngine
from headroom.alerts.inputs.broker_load import MinuteLoads
from headroom.alerts.inputs.cluster_inputs import Dated
from headroom.alerts.inputs.leader_balance import LeaderBalance
from headroom.alerts.watched_cluster import WatchedCluster
from headroom.planning.elections.limits import limits_of
from headroom.planning.elections.summary import ElectionPlanSummary
from headroom.planning.reassignments.run.owners import ThrottleOwner
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import KafkaSettings, Settings
from headroom.schemas.tables import ALERT_MARKS, PARTITION_LOAD, REPLICATION_LAG, TABLES
from headroom.streaming.clock import now_ms
from headroom.streaming.delta.locations import local_path, trouble_of
from headroom.streaming.delta.query import table_url
from headroom.streaming.durability.query_checkpoints import query_checkpoint
from headroom.streaming.handover import Handover
from headroom.streaming.jobs.alert_path import AlertPath, AlertPathSource
from headroom.streaming.jobs.alert_path_gold import AlertPathGold
from headroom.streaming.jobs.gold import GoldJob
from headroom.streaming.jobs.leader_imbalance import BalanceConfig, LeaderImbalanceJob
from headroom.streaming.jobs.listener import AlertPathListener, CompositeListener
from headroom.streaming.jobs.loads.replication_lag import EVERY_S, ReplicationLagWriter
from headroom.streaming.jobs.silver import HistoryJob
from headroom.streaming.jobs.upkeep import Upkeep
from headroom.streaming.queries.batch_gate import BatchGate, StopRequested, wait_idle
from headroom.streaming.queries.idle_pace import IdlePace, NoActivity, TicksActivity
from headroom.streaming.queries.tick_query import TickQuery
from headroom.streaming.session import throughput_session
from headroom.streaming.sources.kafka_options import kafka_options
from headroom.streaming.sources.ticks_topic import TicksTopic
from headroom.streaming.sources.trust import Trust
from headroom.streaming.store.broker_load_follower import BrokerLoadFollower
from headroom.streaming.store.damaged_tables import DamageCheck
from headroom.streaming.store.delivery_table import DeliveryTable
from headroom.streaming.store.event_log import EventLog
from headroom.streaming.store.leader_balance_follower import LeaderBalanceFollower
from headroom.streaming.store.low_latency_table import LowLatencyTable
from headroom.streaming.store.maintenance import MaintenanceSchedule
from headroom.streaming.store.single_instance import run_process
from headroom.streaming.store.store import Store
from headroom.streaming.supervision.in_time import InTime, NoAnswer
from headroom.streaming.supervision.jvm import spark_failures
from headroom.streaming.supervision.periodic_task import PeriodicTask
from headroom.streaming.supervision.restarting_job import JOB_FAILURES, RestartingJob, reason_of
from headroom.streaming.tables.quarantine import QuarantineCount
from headroom.streaming.tables.suppressions import SuppressionFollower
from headroom.streaming.tables.throttle_owners import ThrottleOwnersFollower

log = logging.getLogger(__name__)

# Least trigger interval of the gold queries, seconds.
_POLL_S = 0.25
# A full disk of the tables stops no query of the alert path if checkpoints are on another disk, so it must be probed.
_PROBE_EVERY_S = 30.0
# The record job uses both of two cores for its first half minute. Gold starts first, because operators read gold.
_GOLD_FIRST_S = 30.0
# Gold's batches are short. A long one, of many ticks, delays each silver table by at most this time.
_WAIT_FOR_GOLD_S = 2.0
# Job to the prefixes of the tables that it writes.
_WRITES = {GoldJob.name: ("gold/",), LeaderImbalanceJob.name: ("gold/",), HistoryJob.name: ("bronze/", "silver/")}


@dataclass(frozen=True)
class PipelineConfig:
    """Configuration of the pipeline.

    Attributes:
        settings: all settings.
        ticks: connection settings of the cluster with the ticks topic.
        password: returns its SASL password as it is now; None unless SASL is used.
        config: configuration file in recommended commands; None if there is none.
        others: further clusters with ticks in the same topic.
        receivers: receivers of notifications.
        clock_ms: returns the time now, epoch milliseconds.
        elapsed_ms: monotonic clock, milliseconds.
        activity: what happens in the alert partition. By default it is unknown, and each commit follows its trigger.
    """

    settings: Settings
    ticks: KafkaSettings
    password: Callable[[], str | None] = lambda: None
    config: str | None = None
    others: Sequence[WatchedCluster] = ()
    receivers: Sequence[Receiver] = ()
    clock_ms: Callable[[], int] = now_ms
    elapsed_ms: Callable[[], int] = lambda: time.monotonic_ns() // 1_000_000
    activity: TicksActivity = field(default_factory=NoActivity)


class _OutboxListener(AlertPathListener):
    """Queues events for the receivers."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    def on_events(self, events: Sequence[AlertEvent]) -> None:
        self._outbox.add(events)


class _EngineListener(AlertPathListener):
    """Passes what other jobs find out to the engine, whose rules evaluate it with the next tick."""

    def __init__(self, engine: AlertEngine) -> None:
        self._engine = engine

    def on_balances(self, cluster: str, tick_ms: int, balances: Sequence[LeaderBalance]) -> None:
        self._engine.inputs(cluster).balances = Dated(balances, tick_ms)

    def on_broker_loads(self, cluster: str, loads: MinuteLoads) -> None:
        self._engine.inputs(cluster).loads = loads

    def on_elections(self, cluster: str, plan: ElectionPlanSummary) -> None:
        self._engine.inputs(cluster).elections = plan

    def on_owners(self, cluster: str, owners: Mapping[str, ThrottleOwner]) -> None:
        self._engine.inputs(cluster).owners = owners


class Pipeline:
    """The Spark jobs of one process.

    Args:
        spark: session.
        config: configuration.
        handover: what the pipeline before this one has passed on; None if the tables have everything.
    """

    def __init__(self, spark: SparkSession, config: PipelineConfig, handover: Handover | None = None) -> None:
        settings = config.settings
        self._spark = spark
        self._settings = settings
        self._kafka_options = lambda: kafka_options(config.ticks, config.password())
        self._trust = Trust({settings.cluster.name, *(w.settings.cluster.name for w in config.others)}, config.clock_ms)
        self._topic = self._topic_of(spark)
        self._store = Store(spark, settings.store.path)
        self._events = EventLog(spark, self._store)
        self._clock_ms = config.clock_ms
        self._activity = config.activity
        self._handover = handover
        if handover is not None:
            handover.engine.await_first_ticks()
        self._engine = (
            AlertEngine(settings, config.clock_ms, config.config, config.others, config.elapsed_ms)
            if handover is None
            else handover.engine
        )
        self._quarantine = QuarantineCount(settings.store.path)
        self._outbox: Outbox | None = None
        self._deliveries: DeliveryTable | None = None
        self._suppressions: SuppressionFollower | None = None
        self._balances: LeaderBalanceFollower | None = None
        self._broker_loads: BrokerLoadFollower | None = None
        if config.receivers:
            if handover is not None and handover.outbox is not None and handover.deliveries is not None:
                self._outbox, self._deliveries = handover.outbox, handover.deliveries
                self._deliveries.move_to(spark, self._store)
            else:
                self._deliveries = DeliveryTable(spark, self._store)
                self._outbox = Outbox(
                    config.receivers, self._deliveries, settings.notify, config.clock_ms, config.elapsed_ms
                )
            location, windows = table_url(settings.store.path, ALERT_MARKS.path), settings.alerts.maintenance
            self._suppressions = SuppressionFollower(
                location, windows, self._outbox.update_suppressions, config.clock_ms
            )
        # The settings of the own cluster count last, in case of two with one name.
        watched = [*(other.settings for other in config.others), settings]
        stores = {of_cluster.cluster.name: of_cluster.store.path for of_cluster in watched}
        self._load_settings = {of_cluster.cluster.name: of_cluster.balance for of_cluster in watched}
        self._to_engine = _EngineListener(self._engine)
        self._owners = ThrottleOwnersFollower(
            stores, self._engine.active, self._to_engine.on_owners, config.clock_ms, run_process
        )
        self._alert_path: AlertPath | None = None
        self._alert_path_gold: AlertPathGold | None = None
        self._interval_s = min(of_cluster.collect.interval_s for of_cluster in watched)
        self._run = f"watchdog-{uuid.uuid4()}"
        self._jobs: list[RestartingJob] = []
        self._trouble: str | None = None if handover is None else handover.path.trouble
        locations = dict.fromkeys((settings.store.path, settings.store.checkpoints()))
        self._probes = {location: InTime[str | None](location) for location in locations}
        self._probe_at_s = time.monotonic() + _PROBE_EVERY_S
        self._gates: list[BatchGate] = []
        self._gold_gates: list[BatchGate] = []
        self._record_by_s: float | None = None
        self._schedule: MaintenanceSchedule | None = None
        self._lags: PeriodicTask | None = None

    @property
    def engine(self) -> AlertEngine:
        """Return the engine with the state of all alerts."""
        return self._engine

    def deliveries(self) -> list[DeliveryFigures]:
        """Return the delivery figures of each receiver."""
        return self._outbox.figures() if self._outbox is not None else []

    def quarantined_messages(self) -> int | None:
        """Return the number of quarantined messages; None if unknown."""
        return self._quarantine()

    @property
    def batch_s(self) -> float | None:
        """Return how long the alert path's current batch has been in progress, seconds; None if there is none."""
        return None if self._alert_path is None else self._alert_path.gate.batch_s

    @spark_failures()
    def start_alert_path(self, listener: AlertPathListener) -> None:
        """Start the alert path, the delivery to receivers, and the followers of leader balance and of the journal.

        If the store cannot be written, ticks are evaluated without it.
        """
        self._probe_store()
        listeners = [self._to_engine, listener]
        if self._outbox is not None and self._suppressions is not None:
            # Suppressions are read before the first notification. Events of an earlier run are resumed before the first
            # new event.
            self._suppressions.start()
            self._outbox.start()
            listeners.insert(0, _OutboxListener(self._outbox))
        composite = CompositeListener(listeners)
        checkpoint = f"{self._settings.store.checkpoints()}/alert_path"
        mend = query_checkpoint(checkpoint, self._store.location).mend
        source = AlertPathSource(self._topic, checkpoint, mend, lambda: self._activity.records_from(0))
        if local_path(self._settings.store.path) is not None:
            self._alert_path_gold = AlertPathGold(self._spark, self._store, self._interval_s)
        self._alert_path = AlertPath(self._spark, source, self._events, self._engine, composite, self._alert_path_gold)
        self._gates.append(self._alert_path.gate)
        alert_path = self._alert_path
        if self._handover is not None:
            alert_path.take_over(self._handover.path)
        self._supervise(AlertPath.name, lambda: [alert_path.start()])
        if self._trouble:
            self._run_without_store()
        self._balances = LeaderBalanceFollower(
            self._spark, self._store, composite.on_balances, self._to_engine.on_elections, self._clock_ms
        )
        self._balances.start()
        self._broker_loads = BrokerLoadFollower(self._spark, self._store, composite.on_broker_loads, self._clock_ms)
        self._broker_loads.start()
        self._owners.start()

    @spark_failures()
    def start_gold(self) -> None:
        """Start the jobs of the gold tables: the gold job, and the balance job, which needs all partitions."""
        checkpoints, trigger_s = self._settings.store.checkpoints(), gold_trigger_s(self._settings)
        self._activity.start()
        pace = IdlePace(self._activity, self._settings.spark.gold_idle_s())
        gold = GoldJob(self._spark, self._topic, self._store, f"{checkpoints}/gold", trigger_s, pace)
        config = BalanceConfig(
            throughput_topic=self._topic_of(throughput_session(self._spark)),
            threshold_ratio=self._settings.alerts.leader_imbalance_percentage / 100,
            limits=limits_of(self._settings.elections),
            loads=self._load_settings,
        )
        balance = LeaderImbalanceJob(
            self._spark, self._topic, self._store, f"{checkpoints}/balance", trigger_s, config, pace
        )
        for job in (gold, balance):
            self._gates.append(job.gate)
            self._gold_gates.append(job.gate)
            self._supervise(job.name, partial(_start, job))

    @spark_failures()
    def start_record(self) -> None:
        """Start the record job (bronze and silver), and the regular upkeep of all tables.

        If gold jobs run here too, ``check`` starts it after each has finished a batch, at the latest after 30 s.
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
        checkpoints, spark = self._settings.store.checkpoints(), self._settings.spark
        job = HistoryJob(
            own, topic, tables, checkpoints, spark.record_trigger_s, self._wait_for_gold, spark.record_idle_s()
        )
        self._gates.append(job.gate)
        self._supervise(job.name, job.start)
        store = self._settings.store
        if store.maintain_every_s:
            self._schedule = MaintenanceSchedule(Upkeep(self._spark, store).run, store.maintain_every_s)
            self._schedule.start()
        table = LowLatencyTable(own, tables, REPLICATION_LAG)
        writer = ReplicationLagWriter(store.path, table.append, self._clock_ms)
        self._lags = PeriodicTask("replication-lag", writer.write_newest, EVERY_S)
        self._lags.start()

    def _supervise(self, name: str, start: Callable[[], Sequence[StreamingQuery]]) -> None:
        """Start a job, and restart it after failures from now on; if the store cannot be written, the job waits."""
        # These are written beside the jobs, and no job has to wait for their repair.
        written = [table for table in TABLES if table.path.startswith(_WRITES.get(name, ()))]
        tables = [table for table in written if table not in (PARTITION_LOAD, REPLICATION_LAG)]
        job = RestartingJob(name, start, DamageCheck(self._store, tables).is_damaged)
        if not self._trouble:
            try:
                job.start_or_wait()
            except JOB_FAILURES:
                # The disk may have filled since the last probe.
                self._probe_store()
                if not self._trouble:
                    raise
        if self._trouble:
            job.wait(self._trouble)
        self._jobs.append(job)

    def _topic_of(self, spark: SparkSession) -> TicksTopic:
        return TicksTopic(spark, self._settings.ticks.topic, self._kafka_options, self._trust)

    def _wait_for_gold(self) -> None:
        wait_idle(self._gold_gates, _WAIT_FOR_GOLD_S)

    def check(self) -> None:
        """Supervise the jobs, restart stopped ones, and check for missing ticks. Call it about once a second.

        Raises:
            HeadroomError: a job has stopped too often, or Spark itself has stopped.
        """
        with spark_failures():
            self._check()

    def _check(self) -> None:
        # Asks the JVM, which may have ended while no query runs.
        _ = self._spark.sparkContext.startTime
        for job in self._jobs:
            job.check()
        is_due = time.monotonic() >= self._probe_at_s
        if is_due or self._trouble or any(job.down for job in self._jobs) or self._unstored_reason() is not None:
            self._probe_store()
        if self._trouble:
            self._run_without_store()
        else:
            for job in self._jobs:
                job.restart_if_due()
        if self._record_by_s is not None and not self._trouble:
            gold_has_written = all(gate.batches for gate in self._gold_gates)
            if gold_has_written or time.monotonic() > self._record_by_s:
                self._start_record()
        if self._alert_path is not None:
            self._alert_path.check_missing_ticks(self._run)

    def _unstored_reason(self) -> str | None:
        """Return why events of the alert path, or attempts to deliver them, are not stored; None if all are."""
        trouble = None if self._alert_path is None else self._alert_path.trouble
        return trouble or (None if self._deliveries is None else self._deliveries.damage())

    def _probe_store(self) -> None:
        """Check whether the store can be written, and pass a change on to the engine, alert path and outbox."""
        if self._alert_path is not None:
            self._alert_path.store_pending()
        if self._deliveries is not None:
            self._deliveries.restore_if_removed()
        before, self._trouble = self._trouble, self._location_trouble() or self._unstored_reason()
        self._probe_at_s = time.monotonic() + _PROBE_EVERY_S
        self._engine.update_store_trouble(self._trouble)
        if bool(before) == bool(self._trouble):
            return
        if self._trouble:
            log.error("%s: alerts continue, nothing is stored", self._trouble)
        else:
            log.warning("the store can be written again: all jobs continue")
            if self._alert_path is not None:
                self._alert_path.stop_without_store()
                self._alert_path.store_pending()
        if self._outbox is not None:
            self._outbox.go_without_store(bool(self._trouble))

    def _location_trouble(self) -> str | None:
        """Return why tables or checkpoints cannot be written, in a few words; None if they can."""
        for location, in_time in self._probes.items():
            try:
                trouble = in_time.call(partial(trouble_of, location))
            except NoAnswer as error:
                trouble = f"{location} {error.rule}"
            if trouble is not None:
                return trouble
        return None

    def _run_without_store(self) -> None:
        """Let jobs wait for the store, and evaluate ticks without it if the alert path's query is down."""
        for job in self._jobs:
            job.forget_failures()
            if job.down and job.name == AlertPath.name and self._alert_path is not None:
                # Tells where the alert partition ends.
                self._activity.start()
                self._alert_path.start_without_store()

    def hand_over(self) -> Handover | None:
        """Return what the tables could not take, for the pipeline that replaces this one; None if they have it all.

        Call it before ``stop``, which leaves the outbox running then.
        """
        if self._alert_path is None:
            handover = self._handover
        elif self._trouble or self._unstored_reason() is not None:
            self._alert_path.stop_without_store()
            state = self._alert_path.state()
            path = replace(state, trouble=state.trouble or self._trouble)
            handover = Handover(self._engine, path, self._outbox, self._deliveries)
        else:
            handover = None
        if handover is not None:
            self._outbox = None
        return handover

    def stop(self) -> None:
        """Stop the jobs; an unfinished batch is repeated at the next start.

        Raises:
            HeadroomError: Spark itself has stopped before.
        """
        try:
            with spark_failures():
                self._stop()
        finally:
            self._activity.stop()
            if self._alert_path is not None:
                self._alert_path.stop_without_store()
            for follower in (self._suppressions, self._balances, self._broker_loads, self._owners):
                if follower is not None:
                    follower.stop()
            if self._outbox is not None:
                self._outbox.stop()
            if self._alert_path_gold is not None:
                self._alert_path_gold.stop()

    def _stop(self) -> None:
        # Spark logs the stop of a query like a failure. A real failure is logged below.
        self._spark.sparkContext.setLogLevel("OFF")
        for task in (self._schedule, self._lags):
            if task is not None:
                task.stop()
        if self._alert_path is not None:
            self._alert_path.stop_without_store()
            self._alert_path.warm_up.stop()
        for gate in self._gates:
            gate.close()
        for query in [query for job in self._jobs for query in job.queries]:
            try:
                query.stop()
            except Exception:
                log.warning("job %s did not stop in time", query.name)
            error = query.exception()
            if error is not None and StopRequested.__name__ not in str(error):
                log.warning("job %s had failed: %s", query.name, reason_of(query))


def gold_trigger_s(settings: Settings) -> float:
    """Return the trigger interval of the gold jobs, seconds.

    If the collect interval is at least the commit interval, each tick is a commit anyway, and no tick has to wait.
    """
    least_s = settings.spark.gold_trigger_s
    return min(_POLL_S, least_s) if settings.collect.interval_s >= least_s else least_s


def _start(job: TickQuery) -> list[StreamingQuery]:
    return [job.start()]
