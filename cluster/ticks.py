"""From what a tick saw to the rows of its messages, each with the earlier samples of itself."""

from __future__ import annotations

from collections.abc import Mapping

from cluster.history import History, Sample
from cluster.mbeans import topic_bytes, topic_messages
from cluster.model import BrokerRead, Lag, LogReading, Meter, Metrics, Partition, Snapshot, TopicConfig, TopicPartition
from cluster.rows import (
    broker_row,
    lag_row,
    leader_row,
    log_row,
    log_sample,
    meter_row,
    topic_sample,
    topic_throttle_row,
    without_lag,
)
from cluster.switches import Before, Row, Switches
from cluster.watched import Listed, listed_brokers

Rows = dict[str, list[Row]]


class TickBuilder:
    """Makes a tick's rows and keeps what the next ones need: earlier samples and leader switches.

    Args:
        window_ms: rate window.
        interval_ms: time from tick to tick.
    """

    def __init__(self, window_ms: int, interval_ms: int) -> None:
        self._counters: History[Meter] = History(window_ms, interval_ms)
        self._log_history: History[TopicPartition] = History(window_ms, interval_ms)
        self._switches = Switches(window_ms)
        self._started_ms: dict[int, int] = {}
        self._topic_ids: dict[str, str] = {}

    def rows(
        self, tick_ms: int, snapshot: Snapshot, reads: Mapping[int, BrokerRead], watched: set[TopicPartition]
    ) -> Rows:
        """Return the rows of a tick by kind of message, in the order and names of ``schemas.messages.ROWS``."""
        self._forget_gone(snapshot)
        self._switches.observe(tick_ms, snapshot.partitions, watched)
        answered = {b: read.metrics for b, read in reads.items() if read.metrics is not None}
        meters = {b: self._meters(b, metrics) for b, metrics in answered.items()}
        logs = {b: self._logs(b, metrics) for b, metrics in answered.items()}
        topics = {b: _topic_samples(rows) for b, rows in meters.items()}
        for partition in snapshot.partitions.values():
            self._remember(partition, logs, topics)
        return {
            "brokers": [broker_row(seen, reads.get(b)) for b, seen in sorted(snapshot.brokers.items())],
            "moves": [self._move(tick_ms, snapshot, snapshot.partitions[n], logs, topics) for n in sorted(watched)],
            "leaders": [leader_row(p) for _, p in sorted(snapshot.partitions.items())],
            "topic_throttles": [
                topic_throttle_row(t, c) for t, c in sorted(snapshot.topic_configs.items()) if c.listed
            ],
            "meters": [meter_row(b, m, *sample) for b, rows in meters.items() for m, sample in rows.items()]
            + [_gauge_row(b, meter, metrics) for b, metrics in answered.items() for meter in metrics.gauges],
            "lags": [lag_row(b, lag) for b, metrics in answered.items() for lag in metrics.lags],
            "logs": [log_row(snapshot.partitions[name], row) for rows in logs.values() for name, row in rows.items()],
        }

    def _forget_gone(self, snapshot: Snapshot) -> None:
        for history in (self._counters, self._log_history):
            history.keep_brokers(snapshot.brokers)
        remade = {t for t, known in self._topic_ids.items() if snapshot.topic_ids.get(t, known) != known}
        names = [name for name in snapshot.partitions if name.topic in remade]
        self._log_history.forget_keys(names)
        self._counters.forget_keys([meter for t in remade for meter in (topic_bytes(t), topic_messages(t))])
        self._switches.forget(names)
        self._topic_ids = snapshot.topic_ids

    def _meters(self, broker: int, metrics: Metrics) -> dict[Meter, tuple[Sample, Sample | None]]:
        if metrics.started_ms is None or self._started_ms.get(broker) != metrics.started_ms:
            # The process is another one: its counters began at zero. Its logs did not.
            self._counters.forget(broker)
            self._started_ms[broker] = metrics.started_ms or 0
        self._counters.keep_only(broker, metrics.counters)
        samples = {meter: Sample(r.read_ms, (int(r.value),)) for meter, r in metrics.counters.items()}
        return {meter: (now, self._counters.add(broker, meter, now)) for meter, now in samples.items()}

    def _logs(self, broker: int, metrics: Metrics) -> dict[TopicPartition, Row]:
        self._log_history.keep_only(broker, metrics.logs)
        lags = {lag.partition: lag for lag in metrics.lags}
        return {name: self._log(broker, name, read, lags.get(name)) for name, read in metrics.logs.items()}

    def _log(self, broker: int, name: TopicPartition, read: LogReading, lag: Lag | None) -> Row:
        offsets = lag.lag_offsets if lag is not None else None
        now = Sample(read.read_ms, (read.log_end_offset, read.log_start_offset, read.size_bytes, offsets))
        earlier = self._log_history.add(broker, name, now)
        return log_sample(broker, now, earlier, lag.source_broker if lag is not None else None)

    def _remember(
        self, partition: Partition, logs: dict[int, dict[TopicPartition, Row]], topics: dict[int, dict[str, Row]]
    ) -> None:
        if partition.leader is None:
            return
        log = logs.get(partition.leader, {}).get(partition.name)
        counters = topics.get(partition.leader, {}).get(partition.topic)
        if log is not None and log["prev_read_ms"] is not None:
            real = counters is not None and counters["prev_read_ms"] is not None
            self._switches.remember(partition.name, Before(without_lag(log), counters if real else None))

    def _move(
        self,
        tick_ms: int,
        snapshot: Snapshot,
        partition: Partition,
        logs: dict[int, dict[TopicPartition, Row]],
        topics: dict[int, dict[str, Row]],
    ) -> Row:
        config = snapshot.topic_configs.get(partition.topic)
        listed = listed_brokers(partition, config)
        switch = self._switches.of(partition.name, tick_ms)
        before = switch.before if switch is not None else None
        leader_topics = topics.get(partition.leader, {}) if partition.leader is not None else {}
        held = [logs[b][partition.name] for b in partition.replicas if partition.name in logs.get(b, {})]
        return {
            **leader_row(partition),
            "offline": list(partition.offline),
            "compacted": config.compacted if config is not None else None,
            **_listed_columns(listed),
            "previous_leader": switch.previous_leader if switch is not None else None,
            "switch_tick_ms": switch.switch_tick_ms if switch is not None else None,
            "logs": held,
            "topic_counters": leader_topics.get(partition.topic),
            "before_log": before.log if before is not None else None,
            "before_topic_counters": before.topic_counters if before is not None else None,
        }


def unanswered(snapshot: Snapshot, reads: Mapping[int, BrokerRead]) -> list[Row]:
    """Return the brokers whose rows are missing, with the reason."""
    rows = [broker_row(seen, reads.get(b)) for b, seen in sorted(snapshot.brokers.items())]
    return [{"broker": row["broker"], "reason": row["error"]} for row in rows if not row["answered"]]


def _told(config: TopicConfig) -> bool:
    return config.listed and config.current


def _listed_columns(listed: Listed) -> Row:
    return {
        "leader_listed": None if listed.leader is None else list(listed.leader),
        "follower_listed": None if listed.follower is None else list(listed.follower),
    }


def _topic_samples(meters: dict[Meter, tuple[Sample, Sample | None]]) -> dict[str, Row]:
    samples = {}
    for meter, counted in meters.items():
        if meter.topic is not None and meter == topic_bytes(meter.topic):
            messages = meters.get(topic_messages(meter.topic))
            if messages is not None:
                samples[meter.topic] = topic_sample(counted, messages)
    return samples


def _gauge_row(broker: int, meter: Meter, metrics: Metrics) -> Row:
    reading = metrics.gauges[meter]
    return meter_row(broker, meter, Sample(reading.read_ms, (None,)), None, reading.value)
