"""Context of a running scenario: a live move, its watch, and actions on both."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from kafka.errors import KafkaError

from benchmarks.faults.disks import OwnDisk
from benchmarks.faults.leaders_in_turn import LeadersInTurn
from benchmarks.faults.live_watch import LiveWatch
from benchmarks.faults.proxies import ProxyProcess
from benchmarks.fixtures.bench_cluster import OnProgress, failure
from benchmarks.fixtures.freshness import Freshness
from benchmarks.fixtures.receivers.notifications import Notifications
from benchmarks.fixtures.receivers.receiver_process import Receivers
from benchmarks.fixtures.throttled_move import ThrottledMove
from benchmarks.groups.outages.blind import Span, merged
from benchmarks.groups.outages.brokers import OutageBrokers, ReplicatedTicksTopic
from benchmarks.groups.outages.outage_cluster import OutageCluster
from headroom.schemas.errors import HeadroomError

_POLL_S = 0.25
_THROTTLE_S = 60.0
_RETRY_S = 1.0
# Two or three ticks of one a second may be evaluated together.
_FRESH_S, _FRESH_TICKS = 10.0, 3


@dataclass
class ScenarioContext:
    """Context of a running scenario.

    Attributes:
        bench: cluster of the scenarios.
        move: topic of the move, under load.
        live: the watch.
        receivers: receivers of its notifications.
        notifications: events of the watch, and what receivers show of them.
        leaders: leaders of the move, which take turns to starve.
        brokers: faults of brokers.
        ticks: the ticks topic.
        fresh: times of fresh verdicts.
        store: folder of the tables.
        on_progress: prints the progress.
        proxies: proxies of the watch, by what is behind them; none in most arrangements.
        disk: separate file system of the tables; None without.
        notes: actions, a line each.
        starved: subjects of the expected alerts about starved leaders.
        kafka_spans: times without a ticks topic, or in which the watch could not reach Kafka.
        unreachable_since_s: time since which the watch cannot reach Kafka, monotonic seconds; None if it can.
    """

    bench: OutageCluster
    move: ThrottledMove
    live: LiveWatch
    receivers: Receivers
    notifications: Notifications
    leaders: LeadersInTurn
    brokers: OutageBrokers
    ticks: ReplicatedTicksTopic
    fresh: Freshness
    store: Path
    on_progress: OnProgress
    proxies: Mapping[str, ProxyProcess] = field(default_factory=dict)
    disk: OwnDisk | None = None
    notes: list[str] = field(default_factory=list)
    starved: set[str] = field(default_factory=set)
    kafka_spans: list[Span] = field(default_factory=list)
    unreachable_since_s: float | None = None
    _suspended: list[psutil.Process] = field(default_factory=list)

    def reset(self) -> None:
        """Begin another scenario: clear the notes and times of the previous one."""
        self.notes.clear()
        self.starved.clear()
        self.pop_kafka_spans()

    def note(self, text: str) -> None:
        """Record an action."""
        self.notes.append(text)
        self.on_progress(f"    {text}")

    def supervise(self) -> None:
        """Restart processes that ended unexpectedly, as a supervisor would."""
        had = len(self.live.ended)
        self.live.supervise()
        for text in self.live.ended[had:]:
            self.note(f"ended by itself: {text}")

    def wait(self, length_s: float) -> None:
        """Wait for a number of seconds under supervision."""
        until_s = time.monotonic() + length_s
        while (left_s := until_s - time.monotonic()) > 0:
            self.supervise()
            time.sleep(min(_POLL_S, left_s))

    def await_true(self, condition: Callable[[], object], deadline_s: float, description: str) -> None:
        """Return once a condition holds. An error of the condition counts as not holding.

        Raises:
            HeadroomError: it did not hold in time; the text has the last output of the watch.
        """
        deadline = time.monotonic() + deadline_s
        while True:
            self.supervise()
            why = ""
            try:
                if condition():
                    return
            except (KafkaError, HeadroomError) as error:
                why = f" ({error})"
            if time.monotonic() > deadline:
                raise failure(f"not within {deadline_s:.0f} s: {description}{why}; last: {self.live.watch.summary()}")
            time.sleep(_POLL_S)

    def await_fresh(self, deadline_s: float) -> None:
        """Return once several ticks were evaluated in a row.

        Raises:
            HeadroomError: they were not evaluated in time.
        """
        since_s = time.monotonic()

        def is_fresh() -> bool:
            return self.fresh.since(max(since_s, time.monotonic() - _FRESH_S)) >= _FRESH_TICKS

        self.await_true(is_fresh, deadline_s, "fresh verdicts")

    def throttle(self, starving: bool) -> None:
        """Starve the current leader's new replica, or set a sufficient rate. Failures are retried.

        Raises:
            HeadroomError: the brokers did not accept the rate in time.
        """
        deadline = time.monotonic() + _THROTTLE_S
        if starving:
            self.starved.add(self.leaders.subject)
        while True:
            try:
                self.leaders.starve() if starving else self.leaders.restore()
                return
            except HeadroomError:
                if time.monotonic() > deadline:
                    raise
            self.wait(_RETRY_S)

    def suspend(self, processes: Iterable[psutil.Process]) -> None:
        """Suspend processes."""
        for process in processes:
            # A short-lived process may have ended.
            with suppress(psutil.NoSuchProcess):
                process.suspend()
                self._suspended.append(process)

    def pop_kafka_spans(self) -> list[Span]:
        """Return the times in which Kafka could not accept ticks, and clear them."""
        self._end_unreachable()
        spans, self.kafka_spans = self.kafka_spans, []
        return merged([*spans, *self.brokers.pop_spans()])

    def _end_unreachable(self) -> None:
        if self.unreachable_since_s is not None:
            self.kafka_spans.append(Span(self.unreachable_since_s, time.monotonic()))
            self.unreachable_since_s = None

    def recover(self) -> None:
        """Undo all faults.

        Raises:
            HeadroomError: something does not recover.
        """
        for process in self._suspended:
            # It may have ended meanwhile, for example with its parent.
            with suppress(psutil.NoSuchProcess):
                process.resume()
        self._suspended.clear()
        for proxy in self.proxies.values():
            proxy.order("pass")
        self._end_unreachable()
        self.receivers.start()
        self.live.start()
        self.brokers.repair()
