"""Group ``switch``: time from a leader switch in Kafka until its alert is stored and printed, at one tick a second.

``switch_to_alert_cold_s`` is of switches within 30 s of the first verdicts of their watch.
"""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass
from types import TracebackType

from kafka.errors import KafkaError
from kafka.protocol.metadata import MetadataRequest

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, failure
from benchmarks.fixtures.throttled_move import MovedPartition, ThrottledMove
from benchmarks.options.fields import COUNT, option
from benchmarks.results import Figure, percentile
from headroom.cli.common.watch_output import Line, WatchLines
from headroom.cli.common.watch_process import WatchProcess
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import ALERT_EVENTS
from headroom.streaming.delta.query_table import query

# Each of two leaders sends 2 MB/s to an in-sync and to a new replica: 4 MB/s. After the switch one leader sends 8 MB/s.
_LIVE_BYTES_PER_S = 2e6
SWITCH_BYTES_PER_S = 5.6e6
# 58 MB per partition, with the writes until the rates are steady. The first burst under the throttle copies 58 MB of
# both partitions, and each cycle of 11.4 s copies 15 MB more. So the move runs for about 40 s, and much longer once the
# switch has stopped its progress.
_HISTORY_BYTES = 30_000_000
_LEADER_POLL_S = 0.02
_REQUEST_S = 1.0
# Longest time from the first verdicts of a watch to a cold switch.
_COLD_S = 30.0


@dataclass(frozen=True)
class SwitchOptions:
    """Options of the group ``switch``."""

    switches: int = option(20, COUNT, "Leader switches under one watch.")
    cold_switches: int = option(5, COUNT, "Leader switches just after the start of a watch, each with its own tables.")


def measure(on_progress: OnProgress, options: SwitchOptions) -> list[Figure]:
    """Return the figures of switches, each with an alert of its own.

    Raises:
        HeadroomError: a move was not healthy before its switch, an alert did not fire or is not in the table, or a
            switch came too late after the start of its watch.
    """
    count, cold = options.switches, options.cold_switches
    figures = []
    with BenchCluster(3) as bench:
        if count:
            delays_s = warm_switches(bench, count, on_progress)
            figures += [
                Figure("switch_to_alert_s_median", percentile(delays_s, 0.5), "s", count),
                Figure("switch_to_alert_s_p95", percentile(delays_s, 0.95), "s", count),
                Figure("switch_to_alert_s_max", max(delays_s), "s", count),
            ]
        if cold:
            delays_s = [_cold_switch(bench, number, on_progress) for number in range(count, count + cold)]
            figures += [
                Figure("switch_to_alert_cold_s_median", percentile(delays_s, 0.5), "s", cold),
                Figure("switch_to_alert_cold_s_max", max(delays_s), "s", cold),
            ]
    return figures


def warm_switches(bench: BenchCluster, count: int, on_progress: OnProgress) -> list[float]:
    """Return the latencies in seconds of switches under one watch, each with a move of its own.

    Raises:
        HeadroomError: a move was not healthy before its switch, or an alert did not fire or is not in the table.
    """
    with bench.watch() as watch:
        delays_s = [_warm_switch(bench, watch, number, on_progress) for number in range(count)]
        _require_all_written(bench, watch)
    return delays_s


def _warm_switch(bench: BenchCluster, watch: WatchProcess, number: int, on_progress: OnProgress) -> float:
    with switch_move(bench, number) as move:
        delay_s = _switch(bench, watch, bench.store, move, number, on_progress)
    watch.wait(lambda: not watch.firing(), 120, "alerts resolved after the switch")
    return delay_s


def _cold_switch(bench: BenchCluster, number: int, on_progress: OnProgress) -> float:
    """Return the latency in seconds of a switch soon after the first verdict of a watch."""
    store = bench.folder / f"cold-{number}"
    with switch_move(bench, number) as move, bench.watch(store) as watch:
        watch.wait(lambda: watch.verdicts() is not None, 180, "the first verdicts")
        verdict_s = time.monotonic()
        delay_s = _switch(bench, watch, str(store), move, number, on_progress)
        if time.monotonic() - delay_s - verdict_s > _COLD_S:
            raise failure(f"switch {number + 1} came more than {_COLD_S:.0f} s after the first verdicts")
    return delay_s


def switch_brokers(number: int) -> tuple[int, int, int]:
    """Return the leader before a switch, the one after it, and the destination.

    They take turns, so that each switch has an alert of its own.
    """
    return ((1, 2, 3), (2, 3, 1), (3, 1, 2))[number % 3]


def switch_move(bench: BenchCluster, number: int, history_bytes: int = _HISTORY_BYTES) -> ThrottledMove:
    """Return the move of a switch: its throttle is enough until the second broker leads both partitions."""
    a, b, c = switch_brokers(number)
    partitions = [
        MovedPartition((a, b), (b, c), _LIVE_BYTES_PER_S, history_bytes),
        MovedPartition((b, a), (c, a), _LIVE_BYTES_PER_S, history_bytes),
    ]
    return ThrottledMove(bench, f"switch-{number}", partitions)


def _switch(
    bench: BenchCluster, watch: WatchProcess, store: str, move: ThrottledMove, number: int, on_progress: OnProgress
) -> float:
    """Start a move, and return the latency in seconds of a switch to a broker that then leads both partitions."""
    a, b, c = switch_brokers(number)
    healthy = {(a, "leader"), (b, "leader"), (c, "follower")}
    move.start_move(SWITCH_BYTES_PER_S)
    watch.wait(lambda: catching_up(watch) == healthy, 60, "all brokers and roles catching up before the switch")
    # The switch comes at a random time between two ticks.
    time.sleep(random.uniform(0, 1))
    earlier = len(watch.events())
    with LeaderWatcher(bench, move.topic, before=a) as leader:
        move.elect_preferred(0)
        alert = watch.wait(lambda: find_alert(watch, earlier, b), 60, f"alert on broker {b} as leader")
        readable_s = _readable_s(store, alert)
        switched_s = leader.switched_s()
    delay_s = max(alert.at_s, readable_s) - switched_s
    stages = _describe_stages(alert, switched_s)
    on_progress(f"switch {number + 1}: broker {a} to {b}, {stages}, written and printed {delay_s:.2f} s")
    return delay_s


class LeaderWatcher:
    """Reads the leader of partition 0 fifty times a second, with a client of its own.

    Args:
        bench: cluster with the topic.
        topic: name of the topic.
        before: leader before the switch.
        node: broker that is asked; any if None. Where another broker dies, a request to it would take seconds.
    """

    def __init__(self, bench: BenchCluster, topic: str, before: int, node: int | None = None) -> None:
        self._connection = AdminConnection(bench.settings.cluster)
        # Connects before anything is killed.
        self._admin = self._connection.client()
        self._node = node
        self._topic = topic
        self._before = before
        self._requested_s: float | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="leader-watch", daemon=True)

    def __enter__(self) -> LeaderWatcher:
        """Start reading, and return this."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop reading."""
        self._ended.set()
        self._thread.join()
        self._connection.close()

    def _poll(self) -> None:
        # The time before the request counts, so the measured latency is too high rather than too low.
        while not self._ended.wait(_LEADER_POLL_S):
            requested_s = time.monotonic()
            # A broker that is killed takes requests with it.
            try:
                leader = self._leader()
            except (KafkaError, HeadroomError, OSError):
                continue
            if leader not in (self._before, -1, None):
                self._requested_s = requested_s
                return

    def _leader(self) -> int | None:
        """Return the leader of partition 0; None if the broker does not know the partition."""
        if self._node is None:
            partitions = self._admin.describe_topics([self._topic])[0]["partitions"]
            return next((p["leader_id"] for p in partitions if p["partition_index"] == 0), None)
        topics = [MetadataRequest.MetadataRequestTopic(name=self._topic)]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        answer = self._connection.send(request, self._node, _REQUEST_S)
        return next((p.leader_id for t in answer.topics for p in t.partitions if p.partition_index == 0), None)

    def switched_s(self) -> float:
        """Return the monotonic time at which metadata first showed the new leader.

        Raises:
            HeadroomError: it never did.
        """
        if self._requested_s is None:
            raise failure(f"the leader of {self._topic}-0 did not switch")
        return self._requested_s


def _describe_stages(alert: Line, switched_s: float) -> str:
    """Return the times of tick, decision and printed line as text, in seconds after the switch."""
    switched_ms = (time.time() - time.monotonic() + switched_s) * 1000
    tick_s, decided_s = ((alert.fields[name] - switched_ms) / 1000 for name in ("tick_ms", "event_ms"))
    return f"tick {tick_s:.2f} s, decided {decided_s:.2f} s, printed {alert.at_s - switched_s:.2f} s"


def catching_up(watch: WatchLines) -> set[tuple[int, str]]:
    """Return all brokers and roles with a verdict if all of them that take part are catching up, otherwise nothing."""
    verdicts = watch.verdicts() or {}
    return set(verdicts) if set(verdicts.values()) == {"catching_up"} else set()


def find_alert(watch: WatchLines, earlier: int, broker: int) -> Line | None:
    """Return the first firing event about a broker as leader after the first ``earlier`` events; None before it."""
    subject = f"broker {broker} as leader"
    fired = iter(watch.firing_events(earlier))
    return next((line for line in fired if line.fields["subject"] == subject), None)


def _readable_s(store: str, alert: Line) -> float:
    """Return the monotonic time at which the event was readable in the table, or that of its line if it was there."""
    readable_s = alert.at_s
    while not _is_stored(store, alert.fields["alert_id"], "firing"):
        readable_s = time.monotonic()
        if readable_s - alert.at_s > 30:
            raise failure(f"event {alert.fields['alert_id']} was printed and is not in the table")
    return readable_s


def _is_stored(store: str, alert_id: str, state: str) -> bool:
    sql = f"SELECT alert_id FROM data WHERE alert_id = '{alert_id}' AND state = '{state}'"
    return bool(query(store, ALERT_EVENTS.path, sql))


def _require_all_written(bench: BenchCluster, watch: WatchLines) -> None:
    missing = [e.fields for e in watch.events() if not _is_stored(bench.store, e.fields["alert_id"], e.fields["state"])]
    if missing:
        raise failure(f"printed, and not in the table: {missing}")
