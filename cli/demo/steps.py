"""Helpers for single steps of the demo."""

from __future__ import annotations

import math
import subprocess
import time
from collections.abc import Callable, Sequence

from headroom.cli.common.child_process import headroom_command
from headroom.cli.common.progress import ProgressView
from headroom.cli.common.watch_process import WatchProcess
from headroom.cli.demo.scenario import PARTITIONS
from headroom.cluster.embedded.paced_producer import PacedProducer
from headroom.cluster.embedded.patience import Patience
from headroom.operations.evaluation import read_evaluations
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.streaming.clock import now_ms

_COMMAND_S, _POLL_S = 60.0, 0.1
# The JVM that writes the tables compiles its code first, at a lower priority than the other processes.
_GOLD_TIMEOUT_S = 300.0
# Gold is written every 5 s. If Headroom keeps up, its newest tick is then about 4 s old.
_MAX_GOLD_AGE_S = 12.0
STEP_TIMEOUT_S = 120.0
# Records are acknowledged in batches; of 14 s at the rate these are less than a hundredth.
_RATE_TOLERANCE_RATIO = 0.03


def run_headroom(arguments: Sequence[str]) -> str:
    """Run a command of ``headroom`` as a user would, and return what it prints.

    Raises:
        HeadroomError: the command failed, with its standard error, or did not end in time.
    """
    with subprocess.Popen(
        headroom_command(*arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            output, errors = _output_of(process)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        text = " ".join(errors.split()) or "no error message"
        raise HeadroomError(f"headroom {arguments[0]}", f"failed: {text}", "See the command above")
    return output


def _output_of(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Return what a process prints until it ends, on both outputs.

    Raises:
        HeadroomError: it has not ended in time.
    """
    patience = Patience(_COMMAND_S)
    while True:
        try:
            return process.communicate(timeout=_POLL_S)
        except subprocess.TimeoutExpired:
            if patience.is_over():
                raise HeadroomError(
                    "the command above", f"has not ended within {patience}", "Run it yourself to see why"
                ) from None


def await_watch(watch: WatchProcess, progress: ProgressView, settings: Settings) -> None:
    """Wait until a new ``headroom watch`` writes its tables as fast as ticks come.

    Raises:
        HeadroomError: it did not in time, or has ended.
    """
    with progress.step("Waiting until headroom watch keeps pace"):
        # On a machine that is too busy for Spark, all measurements would be wrong.
        awaited = "headroom watch to keep pace on this machine, which is too busy"
        watch.wait(lambda: gold_age_s(settings) < _MAX_GOLD_AGE_S, _GOLD_TIMEOUT_S, awaited, poll_s=1.0)


def gold_age_s(settings: Settings) -> float:
    """Return the age of the last tick in the gold tables, in seconds; infinity if there is none."""
    at_ms = now_ms()
    (evaluation,) = read_evaluations(settings, [settings.cluster.name], at_ms)
    return math.inf if evaluation.tick_ms is None else (at_ms - evaluation.tick_ms) / 1000


def history_is_written(producer: PacedProducer) -> bool:
    """Return whether every partition has its history, and stop writing to those that have it."""
    sent_bytes = producer.sent_bytes
    for p in PARTITIONS:
        if sent_bytes[p.key] >= p.history_bytes:
            producer.set_rate(*p.key, 0.0)
    return all(sent_bytes[p.key] >= p.history_bytes for p in PARTITIONS)


class SteadyTraffic:
    """Tells whether the live traffic of every partition kept its rate for some time.

    Args:
        producer: the running load.
        for_s: the time, in seconds.
        clock: monotonic seconds.
    """

    def __init__(self, producer: PacedProducer, for_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._producer = producer
        self._for_s = for_s
        self._clock = clock
        self._since_s = clock()
        self._sent_bytes = producer.sent_bytes

    def is_reached(self) -> bool:
        """Return whether the time is over and no rate was missed in it; otherwise another such time begins at its end.

        On a machine that is too busy, the load gets no time to write, and advice for its measured rate is too low
        as soon as it does.
        """
        elapsed_s = self._clock() - self._since_s
        if elapsed_s < self._for_s:
            return False
        sent_bytes = self._producer.sent_bytes
        kept = all(
            abs(sent_bytes[p.key] - self._sent_bytes[p.key] - p.live_bytes_per_s * elapsed_s)
            <= _RATE_TOLERANCE_RATIO * p.live_bytes_per_s * elapsed_s
            for p in PARTITIONS
        )
        self._since_s, self._sent_bytes = self._clock(), sent_bytes
        return kept


def name_of(key: tuple[str, int]) -> str:
    """Return a partition's name as ``topic-partition``."""
    return f"{key[0]}-{key[1]}"


def moves_text() -> str:
    """Return all moves as text: replicas before and after."""
    return ", ".join(f"{name_of(p.key)} {list(p.move.before)} to {list(p.move.after)}" for p in PARTITIONS)
