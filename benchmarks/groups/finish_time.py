"""Group ``finish``: does a move finish at the predicted time if the recommended throttle is applied at once?

The lag grows until the throttle is applied. So each error is computed for the time at which the throttle was in force.
The prediction uses the tick of the alert and that time. Figures with ``printed`` use the prediction in the alert, which
assumes that the throttle is in force after 3 s. Each error is divided by the predicted time.

In twenty moves something changes within 10 s of the alert. In six a small partition is in sync while the others
continue. In four the leader of a partition switches 1 to 9 s after the alert. In ten the write rate of a partition
changes by 20 %, with the start of the move or 1 to 9 s after the alert. Leader switches just before the alert are
among the other moves. `finish_range_hit_ratio` is the share of all moves that ended within the predicted range.

The command of the alert runs as soon as the alert is printed, and so does that of a later alert of the same move that
asks for more: where the write rate rises, the first throttle may not be enough. The prediction is that of the first
alert, and `finish_later_advice_moves` is the number of such moves.

The `eta` figures are of `eta_s` in `gold/throttle_headroom`, which the page shows, in every tick from a quota window
after the first command on. An error is its distance from the time that was really left, divided by the time of the
whole move. `eta_unknown_ratio` is the share of ticks without an `eta_s`.

The machine has two cores and also runs four brokers and
two Spark jobs. A third of the moves run while two more processes keep a core busy each.

A run can be made in parts. Moves recorded in `benchmarks/parts/finish` with the same code count and are not repeated.
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
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path

from benchmarks.fixtures import recorded_moves
from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, failure
from benchmarks.fixtures.move_cases import CASES, MoveCase, MoveChange
from benchmarks.fixtures.processes import busy_cores
from benchmarks.fixtures.throttled_move import LoadSettings, ThrottledMove
from benchmarks.options.fields import COUNT, option
from benchmarks.results import Figure, parts, percentile
from headroom.cli.common.child_process import headroom_command
from headroom.cli.common.watch_output import Line, WatchLines
from headroom.cli.common.watch_process import WatchProcess
from headroom.planning.finish.finish_time import Finish
from headroom.streaming.clock import now_ms

_FINISH_POLL_S = 0.2
_SWING_S = 7.0
# Each time an alert of one broker fires again its resolve time doubles, so a watch serves only a few moves.
_MOVES_PER_WATCH = 4


@dataclass(frozen=True)
class PredictedFinish:
    """Predicted and real time of one move.

    Attributes:
        promise: prediction for the time at which the throttle was applied; None if unknown.
        printed_s: ``finish_s`` of the alert, seconds; None if unknown.
        real_s: seconds from the new rate in force to the end of the reassignment.
    """

    promise: Finish | None
    printed_s: float | None
    real_s: float

    @property
    def lateness_ratio(self) -> float | None:
        """Return the error divided by the predicted time, negative if the move was early; None without prediction."""
        return self.real_s / self.promise.middle_s - 1 if self.promise and self.promise.middle_s else None

    @property
    def printed_lateness_ratio(self) -> float | None:
        """Return the same for the alert's own prediction."""
        return self.real_s / self.printed_s - 1 if self.printed_s else None


@dataclass(frozen=True)
class FinishOptions:
    """Options of the group ``finish``."""

    moves: int = option(len(CASES), COUNT, "Moves of this run; 0 measures nothing.")
    first_move: int = option(0, COUNT, "Number of the first of them, from 0.")


def measure(on_progress: OnProgress, options: FinishOptions) -> list[Figure]:
    """Record the moves that are left, and return the errors of predictions over all that were recorded with this code.

    Raises:
        HeadroomError: an alert did not fire, its command failed, or a move did not finish.
    """
    cases = CASES[options.first_move :][: options.moves]
    folder = parts("finish", __name__)
    done = {recorded.name for recorded in recorded_moves.read(folder)}
    left = [case for case in cases if case.name not in done]
    with BenchCluster(4) as bench:
        for first in range(0, len(left), _MOVES_PER_WATCH):
            _record_moves(bench, first, left[first : first + _MOVES_PER_WATCH], folder, on_progress)
    moves = list(recorded_moves.read(folder))
    recorded_moves.print_promises(moves)
    delay_s = percentile([recorded.delay_s for recorded in moves], 0.5)
    return [
        *figures(
            [PredictedFinish(one.promise(one.delay_s), one.promised.get("finish_s"), one.real_s) for one in moves]
        ),
        *eta_figures(moves),
        Figure("finish_later_advice_moves", sum(one.later_advice > 0 for one in moves), "moves", len(moves)),
        Figure("finish_apply_delay_s_median", delay_s, "s", len(moves)),
    ]


def eta_figures(moves: Sequence[recorded_moves.RecordedMove]) -> list[Figure]:
    """Return the figures of the expected finish in the ticks of moves; none if no tick has one."""
    ticks = [error for move in moves for error in move.eta_error_ratios()]
    known = sorted(abs(error) for error in ticks if error is not None)
    if not known:
        return []
    values = {
        "eta_error_ratio_median": percentile(known, 0.5),
        "eta_error_ratio_p95": percentile(known, 0.95),
        "eta_error_ratio_max": known[-1],
    }
    return [
        *(Figure(name, value, "ratio", len(known)) for name, value in values.items()),
        Figure("eta_unknown_ratio", 1 - len(known) / len(ticks), "ratio", len(ticks)),
    ]


def figures(outcomes: Sequence[PredictedFinish]) -> list[Figure]:
    """Return the figures of outcomes. Those without a prediction count only in ``finish_unknown_ratio``.

    Raises:
        ValueError: no outcome has a prediction.
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
    printed_values = {
        "finish_printed_error_ratio_median": percentile([abs(ratio) for ratio in printed], 0.5) if printed else 1.0,
        "finish_printed_bias_ratio": percentile(printed, 0.5) if printed else 1.0,
    }
    unknown = Figure("finish_unknown_ratio", 1 - len(lateness) / len(outcomes), "ratio", len(outcomes))
    return [
        *(Figure(name, value, "ratio", len(lateness)) for name, value in values.items()),
        *(Figure(name, value, "ratio", len(printed)) for name, value in printed_values.items()),
        unknown,
    ]


def _record_moves(
    bench: BenchCluster, first: int, cases: Sequence[MoveCase], folder: Path, on_progress: OnProgress
) -> None:
    """Record moves one after another, with one watch and new tables."""
    store = bench.folder / f"store-{first}"
    with bench.watch(store) as watch:
        watch.wait(lambda: watch.verdicts() is not None, 180, "the first evaluated tick")
        for number, case in enumerate(cases, first):
            recorded_moves.write(_record_move(bench, watch, store, number, case, on_progress), folder)


def _record_move(
    bench: BenchCluster, watch: WatchProcess, store: Path, number: int, case: MoveCase, on_progress: OnProgress
) -> recorded_moves.RecordedMove:
    """Run one move from its first record to its end under the recommended throttle, and return it."""
    with (
        busy_cores(case.busy),
        ThrottledMove(bench, f"finish-{number}", case.partitions, LoadSettings(case.record_bytes)) as move,
        _swing_load(move, case.sway_ratio),
    ):
        earlier = len(watch.events())
        move.start_move(case.throttle_bytes_per_s)
        if case.change is not None and case.change.after_s is None:
            _change(bench, move, case.change)
        if case.switch is not None:
            watch.wait(
                lambda: set((watch.verdicts() or {}).values()) == {"catching_up"}, 60, f"{case.name}: health at first"
            )
            move.elect_preferred(case.switch)
        watch.wait(lambda: watch.last_recommendation(earlier), 90, f"{case.name}: an alert that recommends a throttle")
        alert = _last_recommendation(watch, earlier)
        with _changing(bench, move, case.change, alert.at_s):
            applied_ms = _apply(alert)
            ended_ms, later_advice = _follow_advice(watch, earlier, move, alert, case.name)
        load_average = os.getloadavg()[0]
    recorded = _move_record(store, move.topic, case, alert, (applied_ms, ended_ms), load_average)
    recorded = replace(recorded, later_advice=later_advice)
    promised = "nothing" if recorded.promised["finish_s"] is None else f"{recorded.promised['finish_s']:.1f} s"
    on_progress(
        f"{case.name}: printed {promised}, really {recorded.real_s:.1f} s, "
        f"applied {recorded.delay_s:.1f} s after the tick"
    )
    watch.wait(lambda: not watch.firing(), 120, "alerts resolved after the move")
    return recorded


def _move_record(
    store: Path, topic: str, case: MoveCase, alert: Line, from_to_ms: tuple[int, int], load_average: float
) -> recorded_moves.RecordedMove:
    """Return the record of a move: inputs of the prediction, and the real times."""
    advice, tick_ms = alert.fields["recommendation"], alert.fields["tick_ms"]
    headroom, progress = recorded_moves.gold_rows(str(store), topic, tick_ms, from_to_ms[1])
    return recorded_moves.RecordedMove(
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
def _swing_load(move: ThrottledMove, ratio: float) -> Iterator[None]:
    """Change write rates for the length of the block, some seconds above their mean and then some below."""
    ended = threading.Event()

    def swing() -> None:
        for factor in cycle((1 + ratio, 1 - ratio)):
            for number, moved in enumerate(move.partitions):
                move.write(number, moved.live_bytes_per_s * factor)
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


@contextmanager
def _changing(bench: BenchCluster, move: ThrottledMove, change: MoveChange | None, alert_s: float) -> Iterator[None]:
    """Make a change at its time after the alert, while the block runs."""
    if change is None or change.after_s is None:
        yield
        return
    timer = threading.Timer(max(0.0, alert_s + change.after_s - time.monotonic()), _change, (bench, move, change))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def _change(bench: BenchCluster, move: ThrottledMove, change: MoveChange) -> None:
    if change.elects:
        # A client of its own, because that of the cluster asks for the end of the move on another thread.
        admin = bench.connect()
        move.elect_preferred(change.partition, admin)
        admin.close()
        return
    move.write(change.partition, move.partitions[change.partition].live_bytes_per_s * change.factor)


def _last_recommendation(watch: WatchLines, earlier: int) -> Line:
    """Return the last alert with a recommendation, once all lines of its tick are read."""
    # Several brokers and roles may fire in one tick, one line each.
    time.sleep(0.1)
    alert = watch.last_recommendation(earlier)
    assert alert is not None, "it was there before"
    return alert


def _apply(alert: Line) -> int:
    """Run the command of the alert, and return when its rate was set on all brokers, epoch milliseconds."""
    words = shlex.split(alert.fields["recommendation"]["commands"][0])
    done = subprocess.Popen(headroom_command(*words[1:]), stdout=sys.stderr, stderr=subprocess.PIPE, text=True)
    assert done.stderr is not None
    output, set_ms = [], None
    for text in done.stderr:
        output.append(text.strip())
        if set_ms is None and text.startswith("rates set on"):
            set_ms = now_ms()
    if done.wait() != 0 or set_ms is None:
        raise failure(f"the alert's command failed: {' | '.join(output)}")
    return set_ms


def _follow_advice(watch: WatchLines, earlier: int, move: ThrottledMove, alert: Line, name: str) -> tuple[int, int]:
    """Run the commands of later alerts that ask for a higher throttle, until Kafka's list no longer has the topic.

    Args:
        watch: lines of the watch.
        earlier: number of events before the move.
        move: the move.
        alert: the alert whose command has run.
        name: name of the case.

    Returns:
        End of the move, epoch milliseconds; number of later commands.
    """
    deadline = time.monotonic() + 600
    applied_bytes_per_s, followed = alert.fields["recommendation"]["throttle_bytes_per_s"], 0
    while move.moving():
        if time.monotonic() > deadline:
            raise failure(f"{name}: not finished 600 s after the recommended throttle")
        time.sleep(_FINISH_POLL_S)
        later = watch.last_recommendation(earlier)
        if later is not None and later.fields["recommendation"]["throttle_bytes_per_s"] > applied_bytes_per_s:
            applied_bytes_per_s, followed = later.fields["recommendation"]["throttle_bytes_per_s"], followed + 1
            _apply(later)
    return now_ms(), followed
