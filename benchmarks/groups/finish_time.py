"""Group ``finish``: the recommended throttle is applied at once; does the move finish when the alert promised?

The lag grows until a throttle is applied, and here it is applied as soon as a machine of two cores, busy with four
brokers and two Spark jobs, has printed the alert and run its command. So the promise is that of the alert's tick for
the time at which the throttle was in force; ``printed`` is the one in the alert, which assumes 3 s. Errors are against
the promise. A third of the moves run beside two busy processes. Moves that were recorded in `benchmarks/parts/finish`
with the same code count and are not made again, so a run may be made in parts.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from benchmarks.fixtures import recorded_moves as promises
from benchmarks.fixtures.bench_cluster import Ground, Say, failure
from benchmarks.fixtures.move_cases import CASES, Case
from benchmarks.fixtures.throttled_move import Scene
from benchmarks.results import Figure, parts, percentile
from cli.common.child_process import headroom_command
from cli.common.watch_output import Line, WatchLines
from cli.common.watch_process import WatchProcess
from planning.finish.finish_time import Finish

_FINISH_POLL_S = 0.2
_SWING_S = 7.0
# An alert of the same broker that fires again takes twice as long to resolve each time, and moves come one by one.
_MOVES_OF_A_WATCH = 4
_SPIN = "while True: pass"


@dataclass(frozen=True)
class Outcome:
    """What became of one move.

    Attributes:
        promise: for the time at which the throttle was applied; None: unknown.
        printed_s: the alert's ``finish_s``; None: unknown.
        real_s: from the new rate in force to the end of the reassignment.
    """

    promise: Finish | None
    printed_s: float | None
    real_s: float

    @property
    def lateness_ratio(self) -> float | None:
        """Return how much later than promised it was done, against the promise; negative: earlier; None: no promise."""
        return self.real_s / self.promise.middle_s - 1 if self.promise and self.promise.middle_s else None

    @property
    def printed_lateness_ratio(self) -> float | None:
        """Return the same of what the alert printed."""
        return self.real_s / self.printed_s - 1 if self.printed_s else None


def measure(say: Say) -> list[Figure]:
    """Return how near promises came over BENCH_MOVES moves (default: all cases), from BENCH_FIRST_MOVE on.

    Raises:
        HeadroomError: an alert did not come, its command failed, or a move did not finish.
    """
    cases = CASES[int(os.environ.get("BENCH_FIRST_MOVE", 0)) :][: int(os.environ.get("BENCH_MOVES", len(CASES)))]
    folder = parts("finish", __name__)
    made = {move.name for move in promises.read(folder)}
    left = [case for case in cases if case.name not in made]
    with Ground(4) as ground:
        for first in range(0, len(left), _MOVES_OF_A_WATCH):
            _play_some(ground, first, left[first : first + _MOVES_OF_A_WATCH], folder, say)
    moves = list(promises.read(folder))
    promises.print_promises(moves)
    delay_s = percentile([move.delay_s for move in moves], 0.5)
    return [
        *figures([_outcome(move) for move in moves]),
        Figure("finish_apply_delay_s_median", delay_s, "s", len(moves)),
    ]


def figures(outcomes: Sequence[Outcome]) -> list[Figure]:
    """Return what outcomes come to; those without a promise count in their own figure alone.

    Raises:
        ValueError: no outcome has a promise.
    """
    lateness = [ratio for o in outcomes if (ratio := o.lateness_ratio) is not None]
    printed = [ratio for o in outcomes if (ratio := o.printed_lateness_ratio) is not None]
    ranges = [(o.promise, o.real_s) for o in outcomes if o.promise is not None and o.promise.middle_s]
    values = {
        "finish_error_ratio_median": percentile([abs(ratio) for ratio in lateness], 0.5),
        "finish_error_ratio_max": max(abs(ratio) for ratio in lateness),
        "finish_bias_ratio": percentile(lateness, 0.5),
        "finish_range_hit_ratio": sum(p.low_s <= real_s <= p.high_s for p, real_s in ranges) / len(ranges),
        "finish_range_width_ratio_median": percentile([(p.high_s - p.low_s) / p.middle_s for p, _ in ranges], 0.5),
    }
    told = {
        "finish_printed_error_ratio_median": percentile([abs(ratio) for ratio in printed], 0.5) if printed else 1.0,
        "finish_printed_bias_ratio": percentile(printed, 0.5) if printed else 1.0,
    }
    unknown = Figure("finish_unknown_ratio", 1 - len(lateness) / len(outcomes), "ratio", len(outcomes))
    return [
        *(Figure(name, value, "ratio", len(lateness)) for name, value in values.items()),
        *(Figure(name, value, "ratio", len(printed)) for name, value in told.items()),
        unknown,
    ]


def _outcome(move: promises.Recorded) -> Outcome:
    return Outcome(move.promise(move.delay_s), move.promised.get("finish_s"), move.real_s)


def _play_some(ground: Ground, first: int, cases: Sequence[Case], folder: Path, say: Say) -> None:
    """Record moves one after another, watched from tables of their own."""
    store = ground.folder / f"store-{first}"
    with ground.watch(store) as watch:
        watch.wait(lambda: watch.verdicts() is not None, 180, "the first judged tick")
        for number, case in enumerate(cases, first):
            promises.write(_play(ground, watch, store, number, case, say), folder)


def _play(ground: Ground, watch: WatchProcess, store: Path, number: int, case: Case, say: Say) -> promises.Recorded:
    """Return one move, from its first record to its end under the recommended throttle."""
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
    move = _recorded(store, scene.topic, case, alert, (applied_ms, ended_ms), load_average)
    promised = "nothing" if move.promised["finish_s"] is None else f"{move.promised['finish_s']:.1f} s"
    say(f"{case.name}: printed {promised}, really {move.real_s:.1f} s, applied {move.delay_s:.1f} s after the tick")
    watch.wait(lambda: not watch.firing(), 120, "alerts resolved after the move")
    return move


def _recorded(
    store: Path, topic: str, case: Case, alert: Line, from_to_ms: tuple[int, int], load_average: float
) -> promises.Recorded:
    """Return what the promise was made from, and what came."""
    advice, tick_ms = alert.said["recommendation"], alert.said["tick_ms"]
    headroom, progress = promises.gold_rows(str(store), topic, tick_ms, from_to_ms[1])
    return promises.Recorded(
        case.name,
        case.busy,
        load_average,
        advice["throttle_bytes_per_s"],
        tick_ms,
        *from_to_ms,
        {name: value for name, value in advice.items() if name.startswith("finish_")},
        headroom,
        progress,
    )


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
