"""Reading all brokers of a tick side by side; one that hangs costs only its own rows."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, wait

from kafka.errors import KafkaError

from cluster.connection.admin_connection import AdminConnection
from cluster.metadata.snapshot_reader import RATES_REMEDY, read_broker_configs
from cluster.metrics.mbeans import ReadPlan
from cluster.metrics.missing_metrics import describe_missing, disbelieved, find_missing_metrics
from cluster.metrics.source import HANGS, NOT_ITS_OWN, MetricsSource, read_s
from cluster.model import Broker, BrokerConfigs, BrokerRead, BrokerThrottles, Metrics
from schemas.config import CollectSettings
from schemas.errors import HeadroomError

log = logging.getLogger(__name__)
_UNKNOWN = BrokerThrottles(known=False)


class BrokerMetricsReader:
    """One thread per broker and read, at most one of them at a time for a broker.

    Args:
        connection: asks each broker for its throttle rates.
        source: where metrics are read.
        collect: endpoints and timeouts.
    """

    def __init__(self, connection: AdminConnection, source: MetricsSource, collect: CollectSettings) -> None:
        self._connection = connection
        self._source = source
        self._collect = collect
        self._running: dict[int, Future[BrokerRead]] = {}
        # Of the reads that run, or have ended since, those that an earlier tick did not wait for.
        self._late: dict[int, Future[BrokerRead]] = {}
        self._lost: dict[int, str | None] = {}
        self._lacked: dict[int, set[str]] = {}

    def read(
        self, brokers: Mapping[int, Broker], plans: Mapping[int, ReadPlan], timeout_s: float
    ) -> dict[int, BrokerRead]:
        """Return what each broker of ``plans`` said within ``timeout_s`` seconds; one that did not says why.

        What one said after the tick before had ended counts too, if it has said nothing newer.
        """
        busy = {broker for broker, future in self._running.items() if not future.done()}
        late = {b: f for b, f in self._late.items() if b in plans}
        started = {b: self._start(brokers[b], plan, timeout_s) for b, plan in plans.items() if b not in busy}
        asked = started | {b: self._running[b] for b in plans if b in busy}
        wait(asked.values(), timeout=timeout_s)
        self._late = {b: f for b, f in asked.items() if not f.done()}
        reads = {}
        for broker, future in asked.items():
            known = future if future.done() else late.get(broker, future)
            if known.done():
                reads[broker] = self._outcome(brokers[broker], known)
            else:
                why = "still hangs on the read of an earlier tick" if broker in busy else _in_vain(timeout_s)
                reads[broker] = self._silent(brokers[broker], why)
        return reads

    def _outcome(self, broker: Broker, future: Future[BrokerRead]) -> BrokerRead:
        error = future.exception()
        if error is None:
            return future.result()
        log.error("broker %d: reading it failed", broker.broker, exc_info=error)
        return self._silent(broker, f"could not be read ({type(error).__name__})")

    def _silent(self, broker: Broker, rule: str) -> BrokerRead:
        return BrokerRead(broker.broker, _UNKNOWN, None, str(HeadroomError(self._endpoint(broker), rule, HANGS)))

    def _start(self, broker: Broker, plan: ReadPlan, timeout_s: float) -> Future[BrokerRead]:
        future: Future[BrokerRead] = Future()
        self._running[broker.broker] = future

        def work() -> None:
            try:
                future.set_result(self._read_one(broker, plan, timeout_s))
            except BaseException as error:  # a lost error would leave the broker busy for ever
                future.set_exception(error)

        # Daemon threads: one that hangs must not keep the process from ending.
        try:
            threading.Thread(target=work, name=f"broker-{broker.broker}", daemon=True).start()
        except RuntimeError as error:  # the machine has no thread left
            future.set_exception(error)
        return future

    def _read_one(self, broker: Broker, plan: ReadPlan, timeout_s: float) -> BrokerRead:
        deadline = time.monotonic() + read_s(timeout_s)
        configs, error = self._configs(broker, read_s(timeout_s) / 2)
        metrics: Metrics | None = None
        try:
            left_s = max(0.05, deadline - time.monotonic())
            metrics = self._source.read(broker.broker, self._endpoint(broker), plan, left_s)
            error = error or self._note_lost(broker.broker, plan, metrics)
        except HeadroomError as failed:
            error = str(failed)
        except Exception as failed:  # an answer of an unforeseen shape costs this broker's rows, not the tick
            log.exception("broker %d: its metrics could not be understood", broker.broker)
            rule = f"its metrics could not be understood ({type(failed).__name__})"
            error = str(HeadroomError(self._endpoint(broker), rule, NOT_ITS_OWN))
        return BrokerRead(broker.broker, configs.throttles, metrics, error, configs.balancing, configs.replication)

    def _note_lost(self, broker: int, plan: ReadPlan, metrics: Metrics) -> str | None:
        """Return what the broker's answer leaves out, if anything, and log it when that is news."""
        found = find_missing_metrics(plan, metrics)
        lacked, self._lacked[broker] = self._lacked.get(broker, set()), {loss.metric for loss in found}
        # What lacks for a moment is told when it lacks in two answers.
        lacking = describe_missing(
            [loss for loss in found if not loss.passing or loss.metric in lacked], self._collect.source
        )
        lost = " ".join(text for text in (disbelieved(metrics), lacking) if text) or None
        if lost != self._lost.get(broker):
            log.warning("broker %d: %s", broker, lost or "leaves out nothing any more")
        self._lost[broker] = lost
        return lost

    def _configs(self, broker: Broker, timeout_s: float) -> tuple[BrokerConfigs, str | None]:
        try:
            return read_broker_configs(self._connection, broker.broker, timeout_s), None
        except HeadroomError as error:
            return BrokerConfigs(_UNKNOWN), str(error)
        except Exception as error:
            if not isinstance(error, KafkaError):  # an answer of an unforeseen shape, or a fault of the client's own
                log.exception("broker %d: its configuration could not be read", broker.broker)
            rule = f"throttle rates could not be read ({type(error).__name__})"
            return BrokerConfigs(_UNKNOWN), str(HeadroomError(f"{broker.host}:{broker.port}", rule, RATES_REMEDY))

    def _endpoint(self, broker: Broker) -> str:
        return self._collect.endpoints.get(str(broker.broker)) or f"{broker.host}:{self._collect.metrics_port()}"


def _in_vain(timeout_s: float) -> str:
    return f"did not answer within {timeout_s:.1f} s"
