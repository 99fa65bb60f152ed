"""Group ``kills``: is every alert told, and told once, whatever is killed?

A live watch tells a webhook and a Slack bot of alerts; throttles that change make them fire and resolve. BENCH_KILLS
times (default 20), at fixed random moments, one of these gets a `kill -9`, with all processes that it started: the
collector, the process that writes history, the watch itself, which judges, or the receivers. The watch starts collector
and history again; watch and receivers are started again as a supervisor would. Then the receivers are away for
BENCH_RECEIVER_DOWN_S (default 600) while alerts go on. An event of `alerts/events` is lost if a receiver does not show
it in the end. It is doubled if a person sees it twice: a second message in Slack, a post under another key, an alert
that fires again though its cause never went away, or one announced again that has not grown worse. Three brokers take
turns to starve, because an alert that comes back soon takes longer to resolve.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from types import TracebackType

from alerts.delivery.delivery_log import notifiable
from benchmarks.fixtures.bench_cluster import Ground, Say, child_of
from benchmarks.fixtures.leaders_in_turn import INBOUND_BYTES_PER_S, PARTS, LeadersInTurn
from benchmarks.fixtures.processes import kill_tree
from benchmarks.fixtures.receivers.alert_events import announced_again, stored_events
from benchmarks.fixtures.receivers.receiver_process import Receivers
from benchmarks.fixtures.receivers.recording_receivers import lost_and_doubled
from benchmarks.fixtures.throttled_move import Scene
from benchmarks.results import Figure
from schemas.alerts import AlertEvent, AlertState

_SEED = 11
_ENOUGH_BYTES_PER_S = 4e6
# A second, not five: an alert that came back four times waits a quarter of a minute before it resolves.
_ALERTS = {"resolve_s": 1.0}
_TURN_S = 180.0
_READY_S = 60.0
_SETTLE_S = 180.0
_LOOK_S = 0.5
_TURN_EVERY_S = 60.0


def measure(say: Say) -> list[Figure]:
    """Return how many events were lost and doubled, with kills and with receivers that are away.

    Raises:
        HeadroomError: an alert did not fire or resolve, or what was killed did not come back.
    """
    kills = int(os.environ.get("BENCH_KILLS", "20"))
    down_s = float(os.environ.get("BENCH_RECEIVER_DOWN_S", "600"))
    with Ground(3) as ground, Receivers(ground.folder) as receivers:
        receivers.configure(ground)
        ground.add_section("alerts", _ALERTS)
        with Scene(ground, "kills", PARTS) as scene, Watched(ground, receivers) as watched:
            scene.start_move(_ENOUGH_BYTES_PER_S, INBOUND_BYTES_PER_S)
            _kill_in_turn(watched, kills, say)
            killed = watched.settled()
            lost, doubled = lost_and_doubled(killed, receivers.shown())
            say(f"{len(killed)} events: {lost} lost, {doubled} doubled; receivers go away for {down_s:.0f} s")
            _go_away(watched, down_s)
            told = watched.settled()
        missed = [event for event in told if event not in killed]
        undelivered, doubled = lost_and_doubled(missed, receivers.shown())
        doubled += announced_again(told, watched.starved)
    say(f"{len(missed)} events while the receivers were away: {undelivered} undelivered; {doubled} doubled in all")
    return [
        Figure("kill_lost", lost, "events", len(killed)),
        Figure("kill_doubled", doubled, "events", len(killed) + len(missed)),
        Figure("kill_count", kills, "kills", kills),
        Figure("receiver_down_undelivered", undelivered, "events", len(missed)),
        Figure("receiver_down_s", down_s, "s", 1),
    ]


def _kill_in_turn(watched: Watched, kills: int, say: Say) -> None:
    """Kill one after another, each while an alert fires or resolves, and let it come back."""
    draw = random.Random(_SEED)
    starving = False
    for number, victim in enumerate(victims(kills, draw)):
        starving = not starving
        watched.throttle(starving)
        time.sleep(draw.uniform(0, 10))
        processes = watched.kill(victim)
        time.sleep(draw.uniform(0, 4))
        watched.revive()
        watched.await_turn(starving)
        told = "fired" if starving else "resolved"
        say(f"kill {number + 1}: {victim}, {processes} process(es) at once; then the alert {told}")
    if starving:
        watched.turn(starving=False)


def _go_away(watched: Watched, length_s: float) -> None:
    """Let alerts fire and resolve while the receivers do not run, and start them again."""
    watched.kill("receivers")
    until_s = time.monotonic() + length_s
    while (left_s := until_s - time.monotonic()) > 0:
        watched.turn(starving=True)
        watched.turn(starving=False)
        time.sleep(min(_TURN_EVERY_S, left_s))
    watched.revive()


def victims(count: int, draw: random.Random) -> list[str]:
    """Return whom to kill: every one once before any again.

    Args:
        count: how many.
        draw: where chance comes from.
    """
    chosen: list[str] = []
    while len(chosen) < count:
        chosen += draw.sample(_VICTIMS, len(_VICTIMS))
    return chosen[:count]


class Watched:
    """A watch that may be killed, and what it watches and tells.

    Args:
        ground: the brokers.
        receivers: whom it tells.
    """

    def __init__(self, ground: Ground, receivers: Receivers) -> None:
        self._ground = ground
        self._receivers = receivers
        self._watch = ground.watch()
        self._runs = True
        self._leaders = LeadersInTurn(ground.settings, _ENOUGH_BYTES_PER_S)

    def __enter__(self) -> Watched:
        """Return the running watch."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End it."""
        self._watch.stop()

    @property
    def starved(self) -> int:
        """Return how often a leader was made to starve."""
        return self._leaders.starved

    def throttle(self, starving: bool) -> None:
        """Give the next leader a rate that starves its new replica, or the same one a rate that is enough."""
        if starving:
            self._leaders.turn()
            self._leaders.starve()
        else:
            self._leaders.relieve()

    def await_turn(self, starving: bool) -> None:
        """Return when the leader's alert fires, or has resolved, as the table of events tells."""
        wanted = AlertState.FIRING.value if starving else AlertState.RESOLVED.value
        what = f"alert on {self._leaders.subject} {wanted}"
        self._watch.wait(lambda: self._state() == wanted, _TURN_S, what, _LOOK_S)

    def turn(self, starving: bool) -> None:
        """Change the leader's throttle, and return when its alert has followed."""
        self.throttle(starving)
        self.await_turn(starving)

    def kill(self, victim: str) -> int:
        """Kill one of those that may be killed with all processes of its own, and return how many those were."""
        return _VICTIMS_BY_NAME[victim](self)

    def kill_child(self, word: str) -> int:
        """Kill the child whose command has a word, once there is one."""
        return kill_tree(self._watch.wait(lambda: child_of(self._watch, word), _READY_S, f"a child that runs {word}"))

    def kill_watch(self) -> int:
        """Kill the watch and all that it started."""
        count = kill_tree(self._watch.processes()[0])
        self._watch.stop()
        self._runs = False
        return count

    def kill_receivers(self) -> int:
        """Kill the receivers."""
        return self._receivers.kill()

    def revive(self) -> None:
        """Start what was killed and is not started by the watch: the watch itself, and the receivers."""
        self._receivers.start()
        if not self._runs:
            self._watch, self._runs = self._ground.watch(), True

    def settled(self) -> list[AlertEvent]:
        """Return the events that receivers are to be told of, once all of them show all, or after a while."""
        give_up = time.monotonic() + _SETTLE_S
        while lost_and_doubled(self._told(), self._receivers.shown())[0] and time.monotonic() < give_up:
            self._watch.require_running()
            time.sleep(_LOOK_S)
        return self._told()

    def _told(self) -> list[AlertEvent]:
        return notifiable(stored_events(self._ground.store))

    def _state(self) -> str | None:
        """Return how the present leader's alert stands, of all that were told; None: there is none."""
        told = [event for event in self._told() if event.subject == self._leaders.subject]
        return told[-1].state if told else None


_VICTIMS_BY_NAME: dict[str, Callable[[Watched], int]] = {
    "collector": lambda watched: watched.kill_child("collect"),
    "watch": Watched.kill_watch,
    "history": lambda watched: watched.kill_child("record"),
    "receivers": Watched.kill_receivers,
}
_VICTIMS = tuple(_VICTIMS_BY_NAME)
