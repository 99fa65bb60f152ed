"""Builds the rows of a tick from a snapshot and the brokers' metrics, each row with its earlier samples."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headroom.cluster.collector.leader_switches import LeaderSwitches, PreviousLeader
from headroom.cluster.collector.rows.columns import Columns, Row
from headroom.cluster.collector.rows.message_rows import (
    LAGS,
    LOGS,
    METERS,
    broker_row,
    lag_columns,
    leader_columns,
    leader_row,
    log_columns,
    log_sample,
    meter_columns,
    shift_times,
    topic_sample,
    topic_throttle_row,
    under_replicated_row,
    without_progress,
)
from headroom.cluster.collector.samples.absent_logs import AbsentLogs
from headroom.cluster.collector.samples.history import EarlierSample, SampleHistory
from headroom.cluster.collector.samples.restarts import Restarts
from headroom.cluster.collector.samples.sample_columns import SampleColumns, Samples
from headroom.cluster.collector.samples.unchanged_ends import UnchangedEnds
from headroom.cluster.metadata.throttled_partitions import (
    ThrottledReplicas,
    listed_brokers,
    under_replicated_partitions,
)
from headroom.cluster.metrics.mbeans import topic_bytes, topic_messages
from headroom.cluster.model import BrokerRead, Lag, LogReading, Meter, Metrics, Partition, Snapshot
from headroom.schemas.keys import TopicPartition

Rows = dict[str, Sequence[Row]]
# While a partition has no leader, producers hold their records back. Then they send them at once, within this time
# after the switch: they look for the new leader every second, and have some seconds of records.
_BACKLOG_MS = 5_000
# Columns of a log that are about a follower's fetches.
_NO_PROGRESS: Row = dict.fromkeys(("lag_offsets", "prev_lag_offsets", "lag_source"))
# An in-sync follower lags for at most replica.lag.time.max.ms (30 s), and leaves the ISR up to half of that later.
_LAG_MS = 60_000
# A log end that stood still while the lag fell is not trusted for this long: a replica has its turn more often.
_OTHER_LOG_MS = 120_000


@dataclass(frozen=True, slots=True)
class _BrokerInput:
    """Last metrics of one broker, with their earlier samples.

    Attributes:
        broker: id of the broker.
        counters: samples of its meters.
        ends: end offsets of all logs that were read.
        logs: complete samples of watched partitions' logs.
    """

    broker: int
    counters: Samples[Meter]
    ends: Samples[TopicPartition]
    logs: Mapping[TopicPartition, Row]

    def log(self, name: TopicPartition) -> Row | None:
        """Return the sample of a log; None if it was not read."""
        if name in self.logs:
            return self.logs[name]
        read = self.ends.of(name)
        if read is None:
            return None
        sample, earlier = read
        return log_sample(self.broker, _end_only(sample), None if earlier is None else _end_only(earlier), None)

    def topic(self, topic: str) -> Row | None:
        """Return the sample of a topic's counters; None if they were not read."""
        counted, messages = self.counters.of(topic_bytes(topic)), self.counters.of(topic_messages(topic))
        return topic_sample(counted, messages) if counted is not None and messages is not None else None

    def before(self, name: TopicPartition) -> PreviousLeader | None:
        """Return the samples for a rate under this leader; None if there is no earlier sample."""
        log, counters = self.log(name), self.topic(name.topic)
        if log is None or log["prev_read_ms"] is None:
            return None
        real = counters is not None and counters["prev_read_ms"] is not None
        return PreviousLeader(without_progress(log), counters if real else None)


class TickBuilder:
    """Builds the rows of a tick and keeps the earlier samples and leader switches for the next ones.

    Args:
        window_ms: rate window, milliseconds.
        interval_ms: time from tick to tick, milliseconds.
    """

    def __init__(self, window_ms: int, interval_ms: int) -> None:
        self._counters: SampleColumns[Meter] = SampleColumns(window_ms, interval_ms)
        self._ends: SampleColumns[TopicPartition] = SampleColumns(window_ms, interval_ms)
        self._log_history: SampleHistory[TopicPartition] = SampleHistory(window_ms, interval_ms)
        self._unchanged = UnchangedEnds()
        self._absent = AbsentLogs()
        # By broker and partition of a replica that is out of sync: its log end, and when the lag fell below it.
        self._other_logs: dict[tuple[int, TopicPartition], tuple[int, int]] = {}
        # The earlier sample of a rate is up to an interval older than the window.
        self._switches = LeaderSwitches(window_ms + interval_ms + _BACKLOG_MS)
        self._restarts = Restarts()
        self._topic_ids: Mapping[str, str] = {}
        self._last_inputs: dict[int, _BrokerInput] = {}

    def rows(
        self,
        tick_ms: int,
        snapshot: Snapshot,
        reads: Mapping[int, BrokerRead],
        watched: set[TopicPartition],
        loads: Sequence[Mapping[str, Sequence[Any]]] = (),
    ) -> Rows:
        """Return the rows of a tick by kind of message, as in ``schemas.tick_messages.ROWS``.

        Args:
            tick_ms: time of the tick, epoch milliseconds.
            snapshot: metadata of the cluster.
            reads: metrics and rates by broker id.
            watched: partitions that are reassigned or in a throttled replica list.
            loads: further columns of the kind ``meters``.
        """
        self._forget_gone(snapshot)
        self._switches.observe(tick_ms, snapshot.partitions, watched, self._before)
        answered = {
            b: _without_unknown_logs(read.metrics, snapshot) for b, read in reads.items() if read.metrics is not None
        }
        reported = {b: self._add_metrics(b, metrics, watched) for b, metrics in answered.items()}
        inputs = _with_leader_logs(reported, [snapshot.partitions[name] for name in watched])
        self._last_inputs |= inputs
        for name in watched:
            self._remember_leader_samples(snapshot.partitions[name], inputs)
        self._absent.keep_only(watched)
        self._other_logs = {key: seen for key, seen in self._other_logs.items() if key[1] in watched}
        return {
            "brokers": [broker_row(info, reads.get(b)) for b, info in sorted(snapshot.brokers.items())],
            "moves": [
                *(self._move(tick_ms, snapshot, snapshot.partitions[name], inputs) for name in sorted(watched)),
                *(
                    under_replicated_row(snapshot.partitions[name])
                    for name in under_replicated_partitions(snapshot, watched)
                ),
            ],
            "leaders": Columns(
                leader_columns(list(snapshot.partitions.values()), snapshot.ages_ms, snapshot.topic_configs)
            ),
            "topic_throttles": [
                topic_throttle_row(t, c) for t, c in sorted(snapshot.topic_configs.items()) if c.has_throttled_list
            ],
            "meters": Columns.concatenate(
                METERS,
                [*(meter_columns(b, inputs[b].counters, metrics.gauges) for b, metrics in answered.items()), *loads],
            ),
            "lags": Columns.concatenate(LAGS, (lag_columns(b, metrics.lags) for b, metrics in answered.items())),
            "logs": Columns.concatenate(
                LOGS, (log_columns(b, s.ends, s.logs, snapshot.partitions) for b, s in reported.items())
            ),
        }

    def shift(self, step_ms: int) -> None:
        """Shift all kept times by ``step_ms`` after the wall clock of this machine was set.

        The two times of a row then belong to one clock, and rates continue. The start of a broker's process is a time
        of that broker's own clock and stays.
        """
        self._counters.shift(step_ms)
        self._ends.shift(step_ms)
        self._log_history.shift(step_ms)
        self._unchanged.shift(step_ms)
        self._absent.shift(step_ms)
        self._other_logs = {key: (end, at_ms + step_ms) for key, (end, at_ms) in self._other_logs.items()}
        self._switches.shift(step_ms)
        for broker, inputs in self._last_inputs.items():
            logs = {name: shift_times(row, step_ms) for name, row in inputs.logs.items()}
            self._last_inputs[broker] = _BrokerInput(
                broker, self._counters.latest(broker), self._ends.latest(broker), logs
            )

    def _forget_gone(self, snapshot: Snapshot) -> None:
        self._counters.keep_brokers(snapshot.brokers)
        self._ends.keep_brokers(snapshot.brokers)
        self._log_history.keep_brokers(snapshot.brokers)
        # A broker that is down copies nothing and starts again when it is back; not every source reports a restart.
        self._unchanged.keep_brokers({broker for broker, broker_info in snapshot.brokers.items() if broker_info.alive})
        self._last_inputs = {
            broker: inputs for broker, inputs in self._last_inputs.items() if broker in snapshot.brokers
        }
        recreated = {t for t, known in self._topic_ids.items() if snapshot.topic_ids.get(t, known) != known}
        if recreated:
            self._forget_topics(recreated, snapshot)
        self._topic_ids = snapshot.topic_ids

    def _forget_topics(self, topics: Collection[str], snapshot: Snapshot) -> None:
        names = [name for name in snapshot.partitions if name.topic in topics]
        self._ends.forget_keys(names)
        self._log_history.forget_keys(names)
        self._unchanged.forget_keys(names)
        self._counters.forget_keys([meter for t in topics for meter in (topic_bytes(t), topic_messages(t))])
        self._switches.forget(names)

    def _add_metrics(self, broker: int, metrics: Metrics, watched: set[TopicPartition]) -> _BrokerInput:
        if self._restarts.may_have_restarted(broker, metrics):
            # The broker restarted: its counters began at zero, its logs did not.
            self._counters.forget(broker)
            if metrics.started_ms is not None:
                # It copied nothing while it was down, so that time must not count as a stall.
                self._unchanged.forget(broker)
        logs = self._watched_logs(broker, metrics, watched)
        return _BrokerInput(
            broker, self._counters.add(broker, metrics.counters), self._ends.add(broker, metrics.logs), logs
        )

    def _watched_logs(self, broker: int, metrics: Metrics, watched: set[TopicPartition]) -> dict[TopicPartition, Row]:
        names = watched & metrics.logs.keys()
        self._log_history.keep_only(broker, names)
        self._unchanged.keep_only(broker, names)
        lags = {lag.partition: lag for lag in metrics.lags if lag.partition in names}
        return {name: self._log(broker, name, metrics.logs[name], lags.get(name)) for name in names}

    def _log(self, broker: int, name: TopicPartition, read: LogReading, lag: Lag | None) -> Row:
        if not self._log_history.knows(broker, name):
            # The partition is newly watched: start with the end offsets that were read before.
            for sample in self._ends.samples(broker, name):
                self._log_history.add(broker, name, _end_only(sample))
                self._unchanged.add(broker, name, sample.values[0] or 0, sample.read_ms)
        offsets = lag.lag_offsets if lag is not None else None
        sample = EarlierSample(read.read_ms, (read.log_end_offset, read.log_start_offset, read.size_bytes, offsets))
        earlier = self._log_history.add(broker, name, sample)
        unchanged_since_ms = self._unchanged.add(broker, name, read.log_end_offset, read.read_ms)
        source = lag.source_broker if lag is not None else None
        return log_sample(broker, sample, earlier, source, unchanged_since_ms)

    def _before(self, name: TopicPartition, leader: int) -> PreviousLeader | None:
        inputs = self._last_inputs.get(leader)
        return inputs.before(name) if inputs is not None else None

    def _remember_leader_samples(self, partition: Partition, inputs: Mapping[int, _BrokerInput]) -> None:
        # In the tick with the next leader, this broker may no longer export the log.
        leader = inputs.get(partition.leader) if partition.leader is not None else None
        before = leader.before(partition.name) if leader is not None else None
        if before is not None:
            self._switches.remember(partition.name, before)

    def _move(self, tick_ms: int, snapshot: Snapshot, partition: Partition, inputs: Mapping[int, _BrokerInput]) -> Row:
        config = snapshot.topic_configs.get(partition.topic)
        throttled = listed_brokers(partition, config)
        switch = self._switches.of(partition.name, tick_ms)
        before = switch.before if switch is not None else None
        leader = inputs.get(partition.leader) if partition.leader is not None else None
        logs = {
            b: log
            for b in partition.replicas
            if b in inputs and (log := inputs[b].logs.get(partition.name)) is not None
        }
        without_log = self._absent.of(tick_ms, partition, inputs.keys(), logs.keys())
        logs = {b: log for b, log in logs.items() if not self._is_other_log(tick_ms, partition, b, log)}
        return {
            **leader_row(partition),
            "offline": list(partition.offline),
            "compacted": config.compacted if config is not None else None,
            "remote_storage": config.remote_storage if config is not None else None,
            "recompressed": config.recompressed if config is not None else None,
            **_listed_columns(throttled),
            "previous_leader": switch.previous_leader if switch is not None else None,
            "switch_tick_ms": switch.switch_tick_ms if switch is not None else None,
            "logs": list(logs.values()),
            "topic_counters": leader.topic(partition.topic) if leader is not None else None,
            "before_log": before.log if before is not None else None,
            "before_topic_counters": before.topic_counters if before is not None else None,
            "without_log": without_log or None,
        }

    def _is_other_log(self, tick_ms: int, partition: Partition, broker: int, log: Row) -> bool:
        """Return whether the gauges of a replica that is out of sync are of another log, so that its end is unknown.

        Its lag falls, and its end stands still: see ``_with_leader_logs``.
        """
        if broker in partition.isr:
            return False
        key, end = (broker, partition.name), log["log_end_offset"]
        lag, prev_lag = log["lag_offsets"], log["prev_lag_offsets"]
        has_copied = lag is not None and prev_lag is not None and 0 <= lag < prev_lag
        if has_copied and end == log["prev_log_end_offset"]:
            self._other_logs[key] = end, tick_ms
        seen = self._other_logs.get(key)
        return seen is not None and seen[0] == end and tick_ms - seen[1] <= _OTHER_LOG_MS


def unanswered_brokers(snapshot: Snapshot, reads: Mapping[int, BrokerRead]) -> list[Row]:
    """Return the brokers whose metrics are missing, with the reason."""
    rows = [broker_row(info, reads.get(b)) for b, info in sorted(snapshot.brokers.items())]
    return [{"broker": row["broker"], "reason": row["error"]} for row in rows if not row["answered"]]


def _with_leader_logs(inputs: Mapping[int, _BrokerInput], partitions: Sequence[Partition]) -> dict[int, _BrokerInput]:
    """Return the inputs with the sample of an in-sync follower where that of the leader is of another log.

    A broker that was down while its replica was removed keeps the gauges of that replica until it restarts (Kafka
    4.3.1). If the partition comes back to it, they stand still, and a leader of them seems to get no writes.
    """
    replaced: dict[int, dict[TopicPartition, Row]] = {}
    for partition in partitions:
        leader = inputs.get(partition.leader) if partition.leader is not None else None
        own = leader.logs.get(partition.name) if leader is not None else None
        if leader is None or own is None or own["log_end_offset"] != own["prev_log_end_offset"]:
            continue
        for broker in partition.isr:
            other = inputs[broker].logs.get(partition.name) if broker in inputs else None
            if other is not None and _contradicts(own, other):
                logs = replaced.setdefault(leader.broker, dict(leader.logs))
                logs[partition.name] = {**other, **_NO_PROGRESS, "broker": leader.broker}
                break
    return {**inputs, **{broker: replace(inputs[broker], logs=logs) for broker, logs in replaced.items()}}


def _contradicts(leader: Row, in_sync: Row) -> bool:
    """Return whether the log of an in-sync follower shows that a leader's log end, which stands still, is not its own.

    It grows, and is ahead of its leader, or has not reached an end that is older than a follower may lag.
    """
    prev_end = in_sync["prev_log_end_offset"]
    if prev_end is None or in_sync["log_end_offset"] <= prev_end:
        return False
    ahead, since_ms = in_sync["log_end_offset"] - leader["log_end_offset"], leader["unchanged_since_ms"]
    is_old = since_ms is not None and leader["read_ms"] - since_ms > _LAG_MS
    return ahead > 0 or (ahead < 0 and is_old)


def _without_unknown_logs(metrics: Metrics, snapshot: Snapshot) -> Metrics:
    """Return the metrics without logs of partitions that are not in the snapshot (created or deleted meanwhile)."""
    if metrics.logs.keys() <= snapshot.partitions.keys():
        return metrics
    logs = {name: log for name, log in metrics.logs.items() if name in snapshot.partitions}
    return replace(metrics, logs=logs)


def _listed_columns(throttled: ThrottledReplicas) -> Row:
    return {
        "leader_listed": None if throttled.leader is None else list(throttled.leader),
        "follower_listed": None if throttled.follower is None else list(throttled.follower),
    }


def _end_only(sample: EarlierSample) -> EarlierSample:
    return EarlierSample(sample.read_ms, (sample.values[0], None, None, None))
