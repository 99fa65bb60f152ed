"""Concurrent read of all brokers of a tick; a broker that hangs costs only its own rows."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from concurrent.futures import Future, wait

from kafka.errors import KafkaError

from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.metadata.snapshot_reader import rates_remedy, read_broker_configs
from headroom.cluster.metrics.mbeans import ReadPlan
from headroom.cluster.metrics.missing_metrics import describe_impossible, describe_missing, find_missing_metrics
from headroom.cluster.metrics.source import HANGS, NOT_ITS_OWN, MetricsSource, read_s
from headroom.cluster.model import Broker, BrokerConfigs, BrokerRead, BrokerThrottles, Metrics
from headroom.schemas.config import CollectSettings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.threads import run_in_daemon_thread

log = logging.getLogger(__name__)
_UNKNOWN = BrokerThrottles(known=False)


class BrokerMetricsReader:
    """Reads brokers in parallel: one thread per broker and read, at most one read at a time per broker.

    Args:
        connection: admin connection for the brokers' configurations.
        source: source of the metrics.
        collect: endpoints and timeouts.
    """

    def __init__(self, connection: AdminConnection, source: MetricsSource, collect: CollectSettings) -> None:
        self._connection = connection
        self._source = source
        self._collect = collect
        self._running: dict[int, Future[BrokerRead]] = {}
        # Reads that the last tick did not wait for, running or ended since.
        self._late_reads: dict[int, Future[BrokerRead]] = {}
        self._discarded: set[Future[BrokerRead]] = set()
        self._last_missing: dict[int, str | None] = {}
        self._missing_before: dict[int, set[str]] = {}

    def read(
        self, brokers: Mapping[int, Broker], plans: Mapping[int, ReadPlan], timeout_s: float
    ) -> dict[int, BrokerRead]:
        """Return the read of each broker in ``plans``, by id; after ``timeout_s`` seconds its error.

        A read that ended after the last tick counts too, if there is no newer one.
        """
        busy = {broker for broker, future in self._running.items() if not future.done()}
        late_reads = {b: f for b, f in self._late_reads.items() if b in plans}
        started = {b: self._start(brokers[b], plan, timeout_s) for b, plan in plans.items() if b not in busy}
        asked = started | {b: self._running[b] for b in plans if b in busy}
        wait(asked.values(), timeout=timeout_s)
        self._late_reads = {b: f for b, f in asked.items() if not f.done()}
        reads, no_answer = {}, f"did not answer within {timeout_s:.1f} s"
        for broker, future in asked.items():
            usable = future if future.done() else late_reads.get(broker, future)
            if not usable.done():
                rule = "still hangs on the read of an earlier tick" if broker in busy else no_answer
                reads[broker] = self._unanswered_read(brokers[broker], rule)
            elif usable in self._discarded:
                rule = "answered late, and the clock of this machine was set meanwhile"
                reads[broker] = self._unanswered_read(brokers[broker], rule)
            else:
                reads[broker] = self._result(brokers[broker], usable)
        self._discarded = {future for future in self._discarded if not future.done()}
        return reads

    def discard_late(self) -> None:
        """Discard the reads that no tick has used yet, because the clock was set: their times are from before that."""
        self._discarded |= {future for future in self._late_reads.values() if not future.done()}
        self._late_reads.clear()

    def _result(self, broker: Broker, future: Future[BrokerRead]) -> BrokerRead:
        error = future.exception()
        if error is None:
            return future.result()
        log.error("broker %d: reading it failed", broker.broker, exc_info=error)
        return self._unanswered_read(broker, f"could not be read ({type(error).__name__})")

    def _unanswered_read(self, broker: Broker, rule: str) -> BrokerRead:
        return BrokerRead(broker.broker, _UNKNOWN, None, str(HeadroomError(self._endpoint(broker), rule, HANGS)))

    def _start(self, broker: Broker, plan: ReadPlan, timeout_s: float) -> Future[BrokerRead]:
        read = run_in_daemon_thread(f"broker-{broker.broker}", lambda: self._read_one(broker, plan, timeout_s))
        self._running[broker.broker] = read
        return read

    def _read_one(self, broker: Broker, plan: ReadPlan, timeout_s: float) -> BrokerRead:
        deadline = time.monotonic() + read_s(timeout_s)
        configs, error = self._configs(broker, read_s(timeout_s) / 2)
        metrics: Metrics | None = None
        try:
            left_s = max(0.05, deadline - time.monotonic())
            metrics = self._source.read(broker.broker, self._endpoint(broker), plan, left_s)
            error = error or self._note_missing(broker.broker, plan, metrics)
        except HeadroomError as failure:
            error = str(failure)
        except Exception as failure:  # an unexpected answer costs this broker's rows, not the tick
            log.exception("broker %d: its metrics could not be understood", broker.broker)
            rule = f"its metrics could not be understood ({type(failure).__name__})"
            error = str(HeadroomError(self._endpoint(broker), rule, NOT_ITS_OWN))
        return BrokerRead(broker.broker, configs.throttles, metrics, error, configs.balancing, configs.replication)

    def _note_missing(self, broker: int, plan: ReadPlan, metrics: Metrics) -> str | None:
        """Return a text with the metrics that are missing from a broker's answer, and log it if it changed."""
        missing_metrics = find_missing_metrics(plan, metrics)
        before = self._missing_before.get(broker)
        self._missing_before[broker] = {metric.base for metric in missing_metrics}
        lasting = [m for m in missing_metrics if not m.transient or (m.at_once if before is None else m.base in before)]
        described = describe_missing(lasting, self._collect.source)
        missing = " ".join(text for text in (describe_impossible(metrics), described) if text) or None
        if missing != self._last_missing.get(broker):
            log.warning("broker %d: %s", broker, missing or "no metrics are missing any more")
        self._last_missing[broker] = missing
        return missing

    def _configs(self, broker: Broker, timeout_s: float) -> tuple[BrokerConfigs, str | None]:
        try:
            return read_broker_configs(self._connection, broker.broker, timeout_s), None
        except HeadroomError as error:
            return BrokerConfigs(_UNKNOWN), str(error)
        except Exception as error:
            if not isinstance(error, KafkaError):  # an unexpected answer, or a bug in the client
                log.exception("broker %d: its configuration could not be read", broker.broker)
            rule = f"throttle rates could not be read ({type(error).__name__})"
            failure = HeadroomError(f"{broker.host}:{broker.port}", rule, rates_remedy(error))
            return BrokerConfigs(_UNKNOWN), str(failure)

    def _endpoint(self, broker: Broker) -> str:
        # Only brokers that are up are read, and these have a host.
        return self._collect.endpoint(broker.broker, broker.host) or f"broker {broker.broker}"
