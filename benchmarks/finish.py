"""Group ``finish``: the recommended throttle is applied at once; does the move finish when the alert promised?"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle

from benchmarks import promises
from benchmarks.cases import CASES, Case
from benchmarks.harness import Ground, Say, failure
from benchmarks.results import Figure, percentile
from benchmarks.scene import Scene
from cli.children import headroom_command
from cli.output import print_table
from cli.watch_lines import Line, WatchLines
from cli.watch_process import WatchProcess

_FINISH_POLL_S = 0.2
_MB = 1_000_000
_SWING_S = 7.0
_SPIN = "while True: pass"


@dataclass(frozen=True)
class Outcome:
    """What became of one case.

    Attributes:
        name: of the case.
        promised_s: the alert's ``finish_s``; None: it promised nothing.
        real_s: from the new rate in force to the end of the reassignment.
        required_bytes_per_s: what the alert said is required.
        recommended_bytes_per_s: the throttle that was applied.
        remaining_bytes: what the alert said was left to copy on its side.
    """

    name: str
    promised_s: float | None
    real_s: float
    required_bytes_per_s: float
    recommended_bytes_per_s: float
    remaining_bytes: float | None

    @property
    def error_ratio(self) -> float:
        """Return how far the promise was from what came, against the promise; no promise counts as wholly wrong."""
        return abs(self.real_s - self.promised_s) / self.promised_s if self.promised_s else 1.0


def measure(say: Say) -> list[Figure]:
    """Return median and maximum of the error over BENCH_MOVES moves (default: all cases).

    Raises:
        HeadroomError: an alert did not come, its command failed, or a move did not finish.
    """
    cases = CASES[int(os.environ.get("BENCH_FIRST_MOVE", 0)) :][: int(os.environ.get("BENCH_MOVES", len(CASES)))]
    with Ground(4) as ground, ground.watch() as watch:
        outcomes = [_play(ground, watch, number, case, say) for number, case in enumerate(cases)]
    _print(outcomes)
    errors = [outcome.error_ratio for outcome in outcomes]
    return [
        Figure("finish_error_ratio_median", percentile(errors, 0.5), "ratio", len(errors)),
        Figure("finish_error_ratio_max", max(errors), "ratio", len(errors)),
    ]


def _play(ground: Ground, watch: WatchProcess, number: int, case: Case, say: Say) -> Outcome:
    with (
        _busy(case.busy),
        Scene(ground, f"finish-{number}", case.parts, case.record_bytes) as scene,
        _swinging(scene, case.sway_ratio),
    ):
        earlier = len(watch.events())
        scene.start_move(case.throttle_bytes_per_s)
        if case.switch is not None:
            watch.wait(
                lambda: set((watch.verdicts() or {}).values()) == {"catching_up"}, 60, f"{case.name}: health at first"
            )
            scene.elect_preferred(case.switch)
        watch.wait(lambda: watch.advice(earlier), 90, f"{case.name}: an alert that recommends a throttle")
        alert = _settled(watch, earlier)
        applied_ms = _apply(alert)
        ended_ms = _end_ms(scene, case.name)
        load_average = os.getloadavg()[0]
    outcome = _outcome(case, alert, (ended_ms - applied_ms) / 1000)
    promised = "nothing" if outcome.promised_s is None else f"{outcome.promised_s:.1f} s"
    late_s = (applied_ms - alert.said["tick_ms"]) / 1000
    say(
        f"{case.name}: promised {promised}, really {outcome.real_s:.1f} s, error {outcome.error_ratio:.2f}; "
        f"applied {late_s:.1f} s after the tick, load {load_average:.1f}"
    )
    _record(ground, scene.topic, case, alert, (applied_ms, ended_ms), load_average)
    watch.wait(lambda: not watch.firing(), 120, "alerts resolved after the move")
    return outcome


def _record(
    ground: Ground, topic: str, case: Case, alert: Line, from_to_ms: tuple[int, int], load_average: float
) -> None:
    """Keep what the promise was made from, and what came."""
    advice, tick_ms = alert.said["recommendation"], alert.said["tick_ms"]
    headroom, progress = promises.gold_rows(ground.store, topic, tick_ms, from_to_ms[1])
    promised = {name: value for name, value in advice.items() if name.startswith("finish_")}
    move = promises.Recorded(
        case.name,
        case.busy,
        load_average,
        advice["throttle_bytes_per_s"],
        tick_ms,
        *from_to_ms,
        promised,
        headroom,
        progress,
    )
    promises.write(move)


@contextmanager
def _busy(processes: int) -> Iterator[None]:
    """Keep as many cores busy meanwhile."""
    started = [subprocess.Popen([sys.executable, "-c", _SPIN]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


@contextmanager
def _swinging(scene: Scene, ratio: float) -> Iterator[None]:
    """Let write rates swing meanwhile, some seconds above their mean and as many below."""
    ended = threading.Event()

    def swing() -> None:
        for factor in cycle((1 + ratio, 1 - ratio)):
            for number, part in enumerate(scene.parts):
                scene.write(number, part.live_bytes_per_s * factor)
            if ended.wait(_SWING_S):
                return

    thread = threading.Thread(target=swing, name="swing", daemon=True)
    if ratio:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if ratio:
            thread.join()


def _settled(watch: WatchLines, earlier: int) -> Line:
    """Return the last advice once the lines that came with it are read."""
    # Several sides fire in one tick, and their lines come one after the other.
    time.sleep(0.1)
    alert = watch.advice(earlier)
    assert alert is not None, "it was there before"
    return alert


def _apply(alert: Line) -> int:
    """Run the command that the alert gives, and return when its rate was set everywhere, epoch milliseconds."""
    words = shlex.split(alert.said["recommendation"]["commands"][0])
    done = subprocess.Popen(headroom_command(*words[1:]), stdout=sys.stderr, stderr=subprocess.PIPE, text=True)
    assert done.stderr is not None
    said, set_ms = [], None
    for text in done.stderr:
        said.append(text.strip())
        if set_ms is None and text.startswith("rates set on"):
            set_ms = _now_ms()
    if done.wait() != 0 or set_ms is None:
        raise failure(f"the alert's command failed: {' | '.join(said)}")
    return set_ms


def _now_ms() -> int:
    return round(time.time() * 1000)


def _end_ms(scene: Scene, name: str) -> int:
    """Return when Kafka's list of reassignments no longer held the topic, epoch milliseconds."""
    give_up = time.monotonic() + 600
    while scene.moving():
        if time.monotonic() > give_up:
            raise failure(f"{name}: not finished 600 s after the recommended throttle")
        time.sleep(_FINISH_POLL_S)
    return _now_ms()


def _outcome(case: Case, alert: Line, real_s: float) -> Outcome:
    advice, evidence = alert.said["recommendation"], alert.said["evidence"]
    return Outcome(
        case.name,
        advice["finish_s"],
        real_s,
        advice["smallest_bytes_per_s"],
        advice["throttle_bytes_per_s"],
        evidence["remaining_bytes"],
    )


def _print(outcomes: list[Outcome]) -> None:
    header = ("move", "promised s", "real s", "error", "required MB/s", "recommended MB/s", "remaining MB")
    print_table("", header, [_row(outcome) for outcome in outcomes])


def _row(o: Outcome) -> tuple[str, ...]:
    amounts = (o.promised_s, o.real_s, o.error_ratio)
    megabytes = (o.required_bytes_per_s, o.recommended_bytes_per_s, o.remaining_bytes)
    return (
        o.name,
        *("unknown" if x is None else f"{x:.2f}" for x in amounts),
        *("unknown" if x is None else f"{x / _MB:.2f}" for x in megabytes),
    )
