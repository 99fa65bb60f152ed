"""Brokers in the state of some cases: topics are written, trouble begins, plans are estimated and carried out."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaError

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, await_true, failure
from benchmarks.groups.plan.truth.cases import KAFKA_3_9, TROUBLED, TruthCase, TruthTrouble
from benchmarks.groups.plan.truth.verdict import Came, SaidEnd, said_of, what_is_wrong
from headroom.cli.plan.json_view import result_json
from headroom.cluster.admin.alter_configs import ConfigChange, alter_configs
from headroom.cluster.admin.config_keys import BROKER
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.embedded import BrokerOptions, EmbeddedCluster
from headroom.cluster.embedded.paced_producer import PacedProducer
from headroom.cluster.throttles.rates import apply_rates, clear_rates
from headroom.cluster.throttles.replica_lists import apply_lists, clear_lists
from headroom.operations.plans.estimating import EstimateRequest, estimate_plan
from headroom.operations.plans.live_state import read_live_state
from headroom.operations.plans.result import PlanResult
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.support.remote_storage import (
    LEAST_SEGMENT_BYTES,
    TieredLog,
    remote_storage,
    set_skips_uploaded,
    tiered_topic,
)
from tests.support.zookeeper import ZooKeeperCluster

BROKERS = 4
# A move that fits may take twice the longest printed time, and what requests take on a busy machine.
_TIMES, _GRACE_S = 2.0, 60.0
# How long a move is watched that is not to end: all of these copy for some seconds.
_WATCH_S, _LATER_S, _DEAD_S = 40.0, 240.0, 120.0
_SMALL_DISK = "48m"
_RECORD_BYTES, _FILL_RECORD_BYTES = 10_000, 100_000
# As long as the window of the broker's write rates is, so that these are steady.
_STEADY_S = 14.0
_REQUEST_S, _POLL_S, _TIERED_S = 30.0, 0.3, 180.0
# A broker on a busy machine may take its time.
_ANSWER_MS = 30_000
_CORDON = "cordoned.log.dirs"


class TruthStage:
    """A cluster for the cases of one trouble.

    Args:
        trouble: what is wrong with the troubled broker.
        kafka: version of the brokers.
        cases: the cases, by number.
        on_progress: gets the steps.
    """

    def __init__(
        self, trouble: TruthTrouble, kafka: str, cases: Mapping[int, TruthCase], on_progress: OnProgress
    ) -> None:
        self._trouble = trouble
        self._kind = ZooKeeperCluster if kafka == KAFKA_3_9 else EmbeddedCluster
        self._cases = cases
        self._on_progress = on_progress
        self._waiting: dict[int, dict[str, Any]] = {}

    def records(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the number and the record of each case; those that wait for the broker come when it is back."""
        with ExitStack() as stack:
            bench = self._started(stack)
            for number, case in self._cases.items():
                self._write(bench, self._topic(number), case)
            settings = self._troubled(bench)
            for number, case in self._cases.items():
                record = self._record(bench, settings, number, case)
                if number in self._waiting:
                    continue
                yield number, record
            if self._waiting:
                self._on_progress(f"broker {TROUBLED} comes back")
                bench.restart(TROUBLED)
                for number, record in self._waiting.items():
                    yield number, self._ended_later(bench, number, record)

    def _topic(self, number: int) -> str:
        return f"truth-{number}"

    def _started(self, stack: ExitStack) -> BenchCluster:
        properties: dict[str, str] = {}
        if self._trouble is TruthTrouble.TIERED:
            remote = stack.enter_context(TemporaryDirectory(prefix="headroom-remote-"))
            properties = remote_storage(Path(remote))
        options = BrokerOptions(properties=properties)
        if self._trouble is TruthTrouble.SMALL:
            disk = stack.enter_context(_small_disk())
            options = replace(options, broker_properties={TROUBLED: {"log.dirs": str(disk / "logs")}})
        bench = stack.enter_context(BenchCluster(BROKERS, options, kind=self._kind))
        if self._trouble is TruthTrouble.TIERED:
            set_skips_uploaded(bench.settings, True)
        return bench

    def _write(self, bench: BenchCluster, topic: str, case: TruthCase) -> None:
        configs = {"min.insync.replicas": "1"}
        if self._trouble is TruthTrouble.TIERED:
            configs |= tiered_topic(LEAST_SEGMENT_BYTES, LEAST_SEGMENT_BYTES)
        assignments = {number: list(case.before) for number in range(case.partitions)}
        bench.admin.create_topics({topic: {"assignments": assignments, "configs": configs}}, wait_for_metadata=True)
        with closing(KafkaProducer(bootstrap_servers=bench.bootstrap_servers, linger_ms=20, acks=1)) as producer:
            value = bytes(_FILL_RECORD_BYTES)
            for number in range(case.history_bytes // _FILL_RECORD_BYTES * case.partitions):
                producer.send(topic, value, partition=number % case.partitions)
            producer.flush()
        if self._trouble is TruthTrouble.TIERED:
            for number in assignments:
                log = TieredLog(TopicPartition(topic, number), bench.log_dir(case.before[0]), LEAST_SEGMENT_BYTES)
                await_true(lambda log=log: log.is_tiered(bench.admin), _TIERED_S, f"{log.name} is uploaded")  # type: ignore[misc]

    def _troubled(self, bench: BenchCluster) -> Settings:
        """Begin the trouble, and return the settings of the commands."""
        settings = replace(bench.settings, cluster=replace(bench.settings.cluster, request_timeout_ms=_ANSWER_MS))
        if self._trouble is TruthTrouble.DEAD:
            bench.kill(TROUBLED)
            bench.reconnect()
            await_true(lambda: self._is_known_dead(bench), _DEAD_S, f"broker {TROUBLED} is known to be down")
        elif self._trouble is TruthTrouble.CORDONED:
            change = ConfigChange(BROKER, str(TROUBLED), {_CORDON: str(bench.log_dir(TROUBLED))})
            with closing(AdminConnection(bench.settings.cluster)) as link:
                alter_configs(link, [change], _REQUEST_S)
        elif self._trouble is TruthTrouble.UNREADABLE:
            # Nothing listens there.
            endpoints = {**settings.collect.endpoints, str(TROUBLED): "127.0.0.1:1"}
            return replace(settings, collect=replace(settings.collect, endpoints=endpoints))
        return settings

    @staticmethod
    def _is_known_dead(bench: BenchCluster) -> bool:
        found = bench.retry(lambda: bench.admin.describe_topics())
        leaders = [p["leader_id"] for topic in found for p in topic["partitions"]]
        brokers = bench.retry(lambda: bench.admin.describe_cluster())["brokers"]
        alive = {broker["broker_id"] for broker in brokers if not broker.get("is_fenced", False)}
        return TROUBLED not in leaders and TROUBLED not in alive

    def _record(self, bench: BenchCluster, settings: Settings, number: int, case: TruthCase) -> dict[str, Any]:
        topic = self._topic(number)
        names = [TopicPartition(topic, n) for n in range(case.partitions)]
        plan = ReassignmentPlan(tuple(TargetAssignment(name, case.after) for name in names))
        with self._load(bench, case, topic):
            try:
                result = _planned(settings, plan, case)
            except HeadroomError as error:
                self._on_progress(f"{case.name}: void: {error}")
                return {"case": case.name, "void": str(error)}
            said = said_of(result)
            within_s = _longest_s(result)
            record: dict[str, Any] = {"case": case.name, "said": said.value, "within_s": within_s}
            if isinstance(result, HeadroomError):
                record["plan_error"] = result.rule
            else:
                printed = result_json(result)
                record |= {key: printed[key] for key in ("finish_s", "finish_low_s", "finish_high_s", "warnings")}
                record["throttle_bytes_per_s"] = result.estimate.throttle_bytes_per_s
            waits = said is SaidEnd.AWAITS_BROKER
            came = self._carried_out(bench, plan, result, within_s, keeps=waits)
        record |= {"came": str(came), **vars(came), "wrong": what_is_wrong(said, within_s, came)}
        self._on_progress(f"{case.name}: said {said.value} ({within_s}), came {came}; wrong: {record['wrong']}")
        if waits and came.ended_s is None and came.refused is None:
            self._waiting[number] = record
        return record

    @contextmanager
    def _load(self, bench: BenchCluster, case: TruthCase, topic: str) -> Iterator[None]:
        if not case.write_bytes_per_s:
            yield
            return
        rates = {(topic, n): case.write_bytes_per_s for n in range(case.partitions)}
        load = PacedProducer(bench.bootstrap_servers, rates, _RECORD_BYTES)
        load.start()
        try:
            time.sleep(_STEADY_S)
            yield
        finally:
            load.stop()

    def _carried_out(
        self,
        bench: BenchCluster,
        plan: ReassignmentPlan,
        result: PlanResult | HeadroomError,
        within_s: float | None,
        keeps: bool,
    ) -> Came:
        """Carry out a plan with the throttle and the lists that it names, and watch it.

        A plan that was refused is requested all the same, without a throttle.
        """
        topic = plan.assignments[0].name.topic
        throttle = None if isinstance(result, HeadroomError) else result.estimate.throttle_bytes_per_s
        alive = [broker for broker in bench.brokers if not (self._trouble is TruthTrouble.DEAD and broker == TROUBLED)]
        try:
            if not isinstance(result, HeadroomError) and throttle is not None:
                apply_lists(bench.settings, result.estimate.lists)
                apply_rates(bench.settings, dict.fromkeys(alive, throttle))
            targets = {a.name: list(a.replicas) for a in plan}
            begun = time.monotonic()
            refusals = bench.retry(lambda: bench.admin.alter_partition_reassignments(targets)).values()
            refused = next((str(refusal) for refusal in refusals if refusal), None)
            if refused is not None:
                return Came(refused)
            watch_s = _WATCH_S if within_s is None else within_s
            while (watched_s := time.monotonic() - begun) <= watch_s:
                if not self._moving(bench, topic) and self._at_target(bench, plan):
                    return Came(ended_s=watched_s, watched_s=watched_s)
                time.sleep(_POLL_S)
            return Came(watched_s=watched_s)
        finally:
            if not keeps:
                self._cancel(bench, plan)
            with suppress(HeadroomError):
                clear_rates(bench.settings, alive)
                clear_lists(bench.settings, [topic])

    def _ended_later(self, bench: BenchCluster, number: int, record: dict[str, Any]) -> dict[str, Any]:
        topic = self._topic(number)
        begun = time.monotonic()
        while self._moving(bench, topic) and time.monotonic() - begun < _LATER_S:
            time.sleep(_POLL_S)
        later = not self._moving(bench, topic)
        came = Came(watched_s=record["watched_s"], ended_later=later)
        wrong = what_is_wrong(SaidEnd(record["said"]), record["within_s"], came)
        self._on_progress(f"{record['case']}: came {came}; wrong: {wrong}")
        return {**record, "came": str(came), **vars(came), "wrong": wrong}

    def _cancel(self, bench: BenchCluster, plan: ReassignmentPlan) -> None:
        with suppress(KafkaError, HeadroomError):
            if self._moving(bench, plan.assignments[0].name.topic):
                bench.admin.alter_partition_reassignments({a.name: None for a in plan})

    @staticmethod
    def _moving(bench: BenchCluster, topic: str) -> bool:
        running = bench.retry(lambda: bench.admin.list_partition_reassignments())
        return any(one.topic == topic for one in running)

    @staticmethod
    def _at_target(bench: BenchCluster, plan: ReassignmentPlan) -> bool:
        topic = plan.assignments[0].name.topic
        (found,) = bench.retry(lambda: bench.admin.describe_topics([topic]))
        replicas = {p["partition_index"]: tuple(p["replica_nodes"]) for p in found["partitions"]}
        return all(replicas.get(a.name.partition) == a.replicas for a in plan)


def _planned(settings: Settings, plan: ReassignmentPlan, case: TruthCase) -> PlanResult | HeadroomError:
    """Return what ``headroom plan`` finds, or why it refuses the plan.

    Raises:
        HeadroomError: the cluster could not be read.
    """
    policy = ThrottlePolicy(settings.alerts.margin_ratio, None, settings.cluster.replication_capacity)
    throttle = None if case.throttle_ratio is None else round(case.throttle_ratio * case.required_bytes_per_s)
    state = read_live_state(settings, plan, every_partition=False)
    try:
        return estimate_plan(plan, state, EstimateRequest(policy, throttle), "the plan")
    except HeadroomError as error:
        return error


def _longest_s(result: PlanResult | HeadroomError) -> float | None:
    """Return the longest time in which a move may end for which the plan prints a time; None if it prints none."""
    if isinstance(result, HeadroomError):
        return None
    time = result.estimate.time
    if not result.estimate.changes.gaining:
        return _GRACE_S
    return None if time is None or time.finish is None else _TIMES * time.finish.high_s + _GRACE_S


@contextmanager
def _small_disk() -> Iterator[Path]:
    """Mount a small file system, and yield its folder.

    Raises:
        HeadroomError: this user may not mount.
    """
    with TemporaryDirectory(prefix="headroom-small-") as folder:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={_SMALL_DISK}", "headroom-bench", folder]
        if subprocess.run(mount, check=False).returncode:
            raise failure("a small disk could not be mounted: run it as root")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "-l", folder], check=False)
