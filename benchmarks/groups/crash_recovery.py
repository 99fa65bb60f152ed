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

import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import psutil

from alerts.delivery.delivery_log import told_of
from benchmarks.fixtures.bench_cluster import Ground, Say, child_of, failure
from benchmarks.fixtures.recording_receivers import HOOK_PATH, SLACK_PATH, lost_and_doubled, read
from benchmarks.fixtures.throttled_move import Part, Scene
from benchmarks.results import CHECKOUT, Figure
from cluster.throttles.rates import apply_rates
from schemas.alerts import AlertEvent, Kind, Severity, State
from schemas.tables import ALERT_EVENTS
from streaming.delta.query_table import query

_SEED = 11
# A leader requires 2 MB/s, of which its in-sync follower takes 1. A destination gets less than the 1 MB/s that it
# requires: the move outlasts everything, and one alert stands all the time.
_PARTS = [Part((a, b), (a, c), 1e6, 20_000_000) for a, b, c in ((1, 2, 3), (2, 3, 1), (3, 1, 2))]
_ENOUGH_BYTES_PER_S = 4e6
_STARVING_BYTES_PER_S = 0.7e6
_INBOUND_BYTES_PER_S = 0.5e6
# A second, not five: an alert that came back four times waits a quarter of a minute before it resolves.
_ALERTS = {"resolve_s": 1.0}
# So that what a receiver missed comes soon after it is back.
_NOTIFY = {"retry_s": 0.5, "retry_max_s": 10.0}
_TURN_S = 180.0
_READY_S = 60.0
_SETTLE_S = 180.0
_LOOK_S = 0.5
_TURN_EVERY_S = 60.0
_HOST = "127.0.0.1"


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
        with Scene(ground, "kills", _PARTS) as scene, Watched(ground, receivers) as watched:
            scene.start_move(_ENOUGH_BYTES_PER_S, _INBOUND_BYTES_PER_S)
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


def announced_again(events: Sequence[AlertEvent], starved: int) -> int:
    """Return how often was announced what was known: an alert of a cause that has one, or one that is no worse.

    Args:
        events: all that receivers are to be told of, in order.
        starved: how often a leader was made to starve.
    """
    fired = [event for event in events if event.state == State.FIRING.value]
    alerts = {event.alert_id for event in fired if event.kind == Kind.THROTTLE_BELOW_LEADER_WRITE.value}
    again, known = max(0, len(alerts) - starved), dict[str, tuple[int, float]]()
    for event in fired:
        worse = (-Severity(event.severity).rank, json.loads(event.recommendation)["throttle_bytes_per_s"] or 0.0)
        if (before := known.get(event.alert_id)) is not None:
            again += worse[0] <= before[0] and worse[1] <= before[1]
        known[event.alert_id] = worse
    return again


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


class Receivers:
    """The process that receives, which may be killed and started again on the same port.

    Args:
        folder: of its journal and log.
    """

    def __init__(self, folder: Path) -> None:
        self._journal = folder / "received.jsonl"
        self._log = folder / "receivers.log"
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as free:
            free.bind((_HOST, 0))
            self._port: int = free.getsockname()[1]

    def __enter__(self) -> Receivers:
        """Return the running receivers."""
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End them."""
        self.kill()

    def configure(self, ground: Ground) -> None:
        """Name them in the configuration file."""
        url = f"http://{_HOST}:{self._port}"
        ground.add_section("notify", _NOTIFY)
        ground.add_section("notify.webhook", {"url": url + HOOK_PATH})
        ground.add_section("notify.slack", {"token": "xoxb-0", "channel": "C0123456789", "api_url": url + SLACK_PATH})

    def start(self) -> None:
        """Start them, if they do not run, and return when they answer.

        Raises:
            HeadroomError: they do not.
        """
        if self._process is not None:
            return
        command = [sys.executable, "-m", "benchmarks.fixtures.recording_receivers", str(self._port), str(self._journal)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, cwd=CHECKOUT, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        give_up = time.monotonic() + _READY_S
        while not _answers(self._port):
            if time.monotonic() > give_up or self._process.poll() is not None:
                raise failure(f"the receivers do not answer: {self._log.read_text(encoding='utf-8')[-500:]}")
            time.sleep(0.1)

    def kill(self) -> int:
        """Kill them, and return how many processes that were."""
        if self._process is None:
            return 0
        self._process.kill()
        self._process.wait()
        self._process = None
        return 1

    def shown(self) -> Mapping[str, Mapping[str, int]]:
        """Return for each receiver how often it shows which event, by the event's key."""
        return read(self._journal)[0].shown()


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection((_HOST, port), timeout=1):
        return True
    return False


class Watched:
    """A watch that may be killed, and what it watches and tells.

    Args:
        ground: the brokers.
        receivers: whom it tells.

    Attributes:
        starved: how often a leader was made to starve.
    """

    def __init__(self, ground: Ground, receivers: Receivers) -> None:
        self._ground = ground
        self._receivers = receivers
        self._watch = ground.watch()
        self._runs = True
        self.starved = 0

    def __enter__(self) -> Watched:
        """Return the running watch."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End it."""
        self._watch.stop()

    def throttle(self, starving: bool) -> None:
        """Give the next leader a rate that starves its new replica, or the same one a rate that is enough."""
        self.starved += starving
        rate = _STARVING_BYTES_PER_S if starving else _ENOUGH_BYTES_PER_S
        apply_rates(self._ground.settings, {self._leader: round(rate)}, ("leader",))

    @property
    def _leader(self) -> int:
        return self._ground.brokers[self.starved % len(_PARTS)]

    @property
    def _subject(self) -> str:
        return f"broker {self._leader} as leader"

    def await_turn(self, starving: bool) -> None:
        """Return when the leader's alert fires, or has resolved, as the table of events tells."""
        wanted = State.FIRING.value if starving else State.RESOLVED.value
        self._watch.wait(lambda: self._state() == wanted, _TURN_S, f"alert on {self._subject} {wanted}", _LOOK_S)

    def turn(self, starving: bool) -> None:
        """Change the leader's throttle, and return when its alert has followed."""
        self.throttle(starving)
        self.await_turn(starving)

    def kill(self, victim: str) -> int:
        """Kill one of those that may be killed with all processes of its own, and return how many those were."""
        return _VICTIMS_BY_NAME[victim](self)

    def kill_child(self, word: str) -> int:
        """Kill the child whose command has a word, once there is one."""
        return _kill_tree(self._watch.wait(lambda: child_of(self._watch, word), _READY_S, f"a child that runs {word}"))

    def kill_watch(self) -> int:
        """Kill the watch and all that it started."""
        count = _kill_tree(self._watch.processes()[0])
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
        return told_of(self._events())

    def _events(self) -> Sequence[AlertEvent]:
        rows = query(self._ground.store, ALERT_EVENTS.path, "SELECT * FROM data") or []
        return [AlertEvent(**{name: row[name] for name in AlertEvent.__dataclass_fields__}) for row in rows]

    def _state(self) -> str | None:
        """Return how the present leader's alert stands, of all that were told; None: there is none."""
        told = [event for event in self._told() if event.subject == self._subject]
        return told[-1].state if told else None


def _kill_tree(root: psutil.Process) -> int:
    tree = [root, *root.children(recursive=True)]
    for process in tree:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(tree)
    return len(tree)


_VICTIMS_BY_NAME: dict[str, Callable[[Watched], int]] = {
    "collector": lambda watched: watched.kill_child("collect"),
    "watch": Watched.kill_watch,
    "history": lambda watched: watched.kill_child("record"),
    "receivers": Watched.kill_receivers,
}
_VICTIMS = tuple(_VICTIMS_BY_NAME)
