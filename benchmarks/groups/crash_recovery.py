"""Group ``kills``: is every alert delivered exactly once when processes are killed?

A live watch notifies a webhook and a Slack bot. Changing throttles make alerts fire and resolve.

- 20 times (`--kills`), at fixed random moments, one process gets a `kill -9` together with its children: the
  collector, the history process, the watch or the receivers. The watch restarts collector and history. The benchmark
  restarts watch and receivers, as a supervisor would.
- Then the receivers are down for 600 seconds (`--receiver-down-s`) while alerts continue.

An event of `alerts/events` is lost if a receiver does not show it in the end. It is doubled if a person sees it twice:

- a second message in Slack, or a webhook post under another key,
- a new alert although the cause of the earlier one never ended,
- an alert that is announced again without having become worse.

Three brokers take turns to starve, because an alert that soon fires again takes longer to resolve.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice

from benchmarks.faults.leaders_in_turn import INBOUND_BYTES_PER_S, PARTITIONS, LeadersInTurn
from benchmarks.faults.schedule import in_rounds
from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, await_child
from benchmarks.fixtures.processes import kill_tree, kill_watch
from benchmarks.fixtures.receivers.alert_events import announced_again, stored_events
from benchmarks.fixtures.receivers.receiver_process import Receivers
from benchmarks.fixtures.receivers.recording_receivers import lost_and_doubled
from benchmarks.fixtures.throttled_move import ThrottledMove
from benchmarks.options.fields import COUNT, SECONDS, option
from benchmarks.results import Figure
from headroom.alerts.delivery.delivery_log import notifiable
from headroom.cli.common.watch_process import WatchProcess
from headroom.schemas.alerts import AlertEvent, AlertKind, AlertState

# Fixed, so that every run kills the same processes at the same moments.
_SEED = 11
_ENOUGH_BYTES_PER_S = 4e6
# One second instead of five: after an alert has fired again four times, it takes 16 s to resolve.
_ALERTS = {"resolve_s": 1.0}
_ALERT_S = 180.0
_READY_S = 60.0
_SETTLE_S = 180.0
_POLL_S = 0.5
_CHANGE_EVERY_S = 60.0


@dataclass(frozen=True)
class KillsOptions:
    """Options of the group ``kills``."""

    kills: int = option(20, COUNT, "Kills of a process.")
    receiver_down_s: float = option(600.0, SECONDS, "Time for which the receivers are down, seconds.")


def measure(on_progress: OnProgress, options: KillsOptions) -> list[Figure]:
    """Return the number of lost and doubled events, with kills and while the receivers are down.

    Raises:
        HeadroomError: an alert did not fire or resolve, or a killed process did not come back.
    """
    kills, down_s = options.kills, options.receiver_down_s
    with BenchCluster(3) as bench, Receivers(bench.folder) as receivers:
        receivers.configure(bench)
        bench.add_section("alerts", _ALERTS)
        leaders = LeadersInTurn(bench.settings, _ENOUGH_BYTES_PER_S)
        with ThrottledMove(bench, "kills", PARTITIONS) as move, ExitStack() as stack:
            watched = SupervisedWatch(bench, receivers, leaders, bench.watch())
            stack.callback(lambda: watched.watch.stop())
            move.start_move(_ENOUGH_BYTES_PER_S, INBOUND_BYTES_PER_S)
            watched.await_inbound_alert()
            _kill_one_by_one(watched, kills, on_progress)
            killed = watched.await_delivered()
            lost, doubled = lost_and_doubled(killed, receivers.shown())
            on_progress(
                f"{len(killed)} events: {lost} lost, {doubled} doubled; receivers are stopped for {down_s:.0f} s"
            )
            _stop_receivers_for(watched, down_s)
            delivered = watched.await_delivered()
        missed = [event for event in delivered if event not in killed]
        undelivered, doubled = lost_and_doubled(missed, receivers.shown())
        doubled += announced_again(delivered, leaders.starved)
    on_progress(
        f"{len(missed)} events while the receivers were away: {undelivered} undelivered; {doubled} doubled in all"
    )
    return [
        Figure("kill_lost", lost, "events", len(killed)),
        Figure("kill_doubled", doubled, "events", len(killed) + len(missed)),
        Figure("kill_count", kills, "kills", kills),
        Figure("receiver_down_undelivered", undelivered, "events", len(missed)),
        Figure("receiver_down_s", down_s, "s", 1),
    ]


def _kill_one_by_one(watched: SupervisedWatch, kills: int, on_progress: OnProgress) -> None:
    """Kill one process after another, each while an alert fires or resolves, and let it come back."""
    draw = random.Random(_SEED)
    starving = False
    # Chosen before the moments are drawn, from the same source.
    victims = list(islice(in_rounds(list(VICTIMS), draw), kills))
    for number, victim in enumerate(victims):
        starving = not starving
        watched.leaders.turn(starving)
        time.sleep(draw.uniform(0, 10))
        processes = VICTIMS[victim](watched)
        time.sleep(draw.uniform(0, 4))
        watched.start_again(victim)
        watched.await_alert(starving)
        change = "fired" if starving else "resolved"
        on_progress(f"kill {number + 1}: {victim}, {processes} process(es) at once; then the alert {change}")
    if starving:
        watched.change_throttle(starving=False)


def _stop_receivers_for(watched: SupervisedWatch, length_s: float) -> None:
    """Let alerts fire and resolve while the receivers are down, then start them again."""
    watched.receivers.kill()
    until_s = time.monotonic() + length_s
    while (left_s := until_s - time.monotonic()) > 0:
        watched.change_throttle(starving=True)
        watched.change_throttle(starving=False)
        time.sleep(min(_CHANGE_EVERY_S, left_s))
    watched.start_again("receivers")


@dataclass
class SupervisedWatch:
    """A watch that may be killed, with its leaders and receivers.

    Attributes:
        bench: cluster of the watch.
        receivers: receivers of its notifications.
        leaders: leaders of the move, which take turns to starve.
        watch: the watch that was started last.
    """

    bench: BenchCluster
    receivers: Receivers
    leaders: LeadersInTurn
    watch: WatchProcess

    def await_inbound_alert(self) -> None:
        """Return once the destinations, whose throttles stay too low, have an alert.

        The alert of a leader that starves earlier would list them, and continue for them when the leader has enough.
        """

        def fires() -> bool:
            return any(
                event.kind == AlertKind.THROTTLE_BELOW_INBOUND.value and event.state == AlertState.FIRING.value
                for event in self._notifiable_events()
            )

        self.watch.wait(fires, _ALERT_S, "alert on a destination firing", _POLL_S)

    def await_alert(self, starving: bool) -> None:
        """Return once the leader's alert fires, or has resolved, according to the table of events."""
        wanted, subject = (AlertState.FIRING if starving else AlertState.RESOLVED).value, self.leaders.subject

        def is_announced() -> bool:
            states = [event.state for event in self._notifiable_events() if event.subject == subject]
            return states[-1:] == [wanted]

        self.watch.wait(is_announced, _ALERT_S, f"alert on {subject} {wanted}", _POLL_S)

    def change_throttle(self, starving: bool) -> None:
        """Change the leader's throttle, and return once its alert has followed."""
        self.leaders.turn(starving)
        self.await_alert(starving)

    def start_again(self, victim: str) -> None:
        """Restart a killed process that the watch does not restart: the watch itself, or the receivers."""
        self.receivers.start()
        if victim == "watch":
            self.watch = self.bench.watch()

    def await_delivered(self) -> list[AlertEvent]:
        """Return the events for receivers, once all receivers show all of them, or after a timeout."""
        deadline = time.monotonic() + _SETTLE_S
        while lost_and_doubled(self._notifiable_events(), self.receivers.shown())[0] and time.monotonic() < deadline:
            self.watch.require_running()
            time.sleep(_POLL_S)
        return self._notifiable_events()

    def _notifiable_events(self) -> list[AlertEvent]:
        return notifiable(stored_events(self.bench.store))


# Kill a process with all its child processes, once it runs, and return the number of processes.
VICTIMS: dict[str, Callable[[SupervisedWatch], int]] = {
    "collector": lambda watched: kill_tree(await_child(watched.watch, "collect", _READY_S)),
    "watch": lambda watched: kill_watch(watched.watch),
    "history": lambda watched: kill_tree(await_child(watched.watch, "record", _READY_S)),
    "receivers": lambda watched: watched.receivers.kill(),
}
