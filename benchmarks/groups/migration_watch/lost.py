"""How soon after a leader switch on the origin that loses acknowledged records their alert is printed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.fixtures.bench_cluster import OnProgress, await_true, failure
from benchmarks.groups.alert_latency import LeaderWatcher
from benchmarks.groups.migration_watch.watched_clusters import START_S, WatchedClusters, watched_clusters
from benchmarks.results import Figure, percentile
from headroom.alerts.rules.migration.migration_rule import subject_of
from headroom.cli.common.watch_output import Line
from headroom.cli.common.watch_process import WatchProcess
from headroom.routing import RoutedProducer
from headroom.schemas.alerts import AlertKind

_VALUE = bytes(100)
_STEP_S = 0.01
# Never reached.
_END = 10**9
# Until a reading of the origin has the first records; and for how long the follower gets none.
_STEADY_S, _SUSPENDED_S = 15.0, 2.0
_ALERT_S, _IN_SYNC_S = 120.0, 180.0
# Leader, follower and the broker that is asked, in turn.
_ROLES = ((1, 2, 3), (2, 3, 1), (3, 1, 2))


def lost_figures(losses: int, on_progress: OnProgress) -> list[Figure]:
    """Return the times from a switch that loses records to its alert.

    Args:
        losses: number of switches, each of a migration of its own.
        on_progress: prints the progress.

    Raises:
        HeadroomError: a leader did not switch, or there was no alert in time.
    """
    delays_s = []
    with watched_clusters(3, 1) as clusters, clusters.target.watch() as watch:
        watch.wait(lambda: watch.verdicts() is not None, START_S, "the first verdicts")
        for number in range(losses):
            delays_s.append(_loss(clusters, watch, number))
            on_progress(f"loss {number + 1}: alert after {delays_s[-1]:.2f} s")
    return [
        Figure("lost_to_alert_s_median", percentile(delays_s, 0.5), "s", losses),
        Figure("lost_to_alert_s_p95", percentile(delays_s, 0.95), "s", losses),
        Figure("lost_to_alert_s_max", max(delays_s), "s", losses),
    ]


def _loss(clusters: WatchedClusters, watch: WatchProcess, number: int) -> float:
    """Return the seconds from a switch to the alert on what it lost."""
    leader, follower, other = _ROLES[number % len(_ROLES)]
    migration = topic = f"loss-{number}"
    origin = clusters.origin
    clusters.create(topic, [[leader, follower]])
    with clusters.writer(migration) as writer, clusters.producer(migration, acks=1) as producer:
        writer.write(clusters.agreed(migration, topic, {0: _END}, routers=(migration,)))
        with _writing(producer, topic), LeaderWatcher(origin, topic, before=leader, node=other) as switch:
            time.sleep(_STEADY_S)
            origin.pause(follower)
            time.sleep(_SUSPENDED_S)
            # Before its session ends, so that it is in sync by Kafka's count, and leads next.
            origin.kill(leader)
            origin.resume(follower)
            alert = watch.wait(lambda: _alert(watch, migration), _ALERT_S, f"an alert on records that {migration} lost")
            delay_s = alert.at_s - switch.switched_s()
        if not alert.fields["evidence"]["offsets"]:
            raise failure(f"the alert on {migration} names no lost offsets")
        origin.restart(leader)
        await_true(lambda: _in_sync(clusters, topic) == 2, _IN_SYNC_S, f"both replicas of {topic} in sync")
        # Without it no alert is left that the next one might be taken for.
        writer.write([], withdrawn=clusters.agreed(migration, topic, {0: _END}))
    return delay_s


@contextmanager
def _writing(producer: RoutedProducer, topic: str) -> Iterator[None]:
    """Write a hundred records a second on a thread of its own."""
    ended = threading.Event()

    def write() -> None:
        while not ended.wait(_STEP_S):
            producer.send(topic, _VALUE, partition=0)

    thread = threading.Thread(target=write, name="loss-writer", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _alert(watch: WatchProcess, migration: str) -> Line | None:
    subject, kind = subject_of(migration), AlertKind.MIGRATION_RECORDS_LOST.value
    fired = (line for line in watch.firing_events() if line.fields["kind"] == kind)
    return next((line for line in fired if line.fields["subject"] == subject), None)


def _in_sync(clusters: WatchedClusters, topic: str) -> int:
    (partition,) = clusters.origin.admin.describe_topics([topic])[0]["partitions"]
    return len(partition["isr_nodes"])
