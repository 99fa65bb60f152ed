"""Rule ``no_data`` for missing ticks: what is known, and possible causes, the most likely first."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.alerts.evidence.evidence import Evidence
from headroom.alerts.finding import Finding
from headroom.alerts.recommendations.recommendation import Action
from headroom.alerts.recommendations.recommender import Recommender
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.text.amounts import clock_text, duration_text

TICKS = "ticks"
# A micro-batch takes one to two seconds; a longer one is worth a mention.
_LONG_BATCH_S = 5.0
# So many times as many programs as the machine has cores: each gets half of what it wants, or less.
_OVERLOADED_RATIO = 2.0

_COLLECTOR = "the collector: does it run, and does it reach the brokers (its log, `headroom check`)"
_TOPIC = "the cluster that holds the ticks topic: is it within reach of both"
_MACHINE = "the process that evaluates ticks (`headroom watch`): is its machine overloaded"


def is_missing(missing_s: float, limit_s: float, batch_s: float | None) -> bool:
    """Return whether ticks are missing.

    Args:
        missing_s: time since the last evaluated tick, seconds.
        limit_s: longest allowed time, seconds.
        batch_s: how long the current micro-batch has been running, seconds; None if none is.
    """
    # A running batch has received its ticks, so it gets the same time again: the first rows of a large move take a busy
    # machine ten seconds, which needs no action.
    is_evaluating = batch_s is not None and _LONG_BATCH_S <= batch_s < limit_s
    return missing_s >= (2 * limit_s if is_evaluating else limit_s)


@dataclass(frozen=True)
class Machine:
    """How busy the machine is that evaluates.

    Attributes:
        load: how many programs run or wait for a core, mean of the last minute.
        cores: its cores.
    """

    load: float
    cores: int

    @property
    def is_overloaded(self) -> bool:
        """Return whether programs wait for a core for as long as they run, or longer."""
        return self.load > _OVERLOADED_RATIO * self.cores

    def __str__(self) -> str:
        """Return the load and the cores as in ``load 10 on 2 cores``."""
        return f"load {self.load:.0f} on {self.cores} cores"


@dataclass(frozen=True, kw_only=True)
class MissingTicksEvidence(Evidence):
    """Evidence that ticks are missing.

    Attributes:
        last_tick_ms: time of the last evaluated tick, epoch milliseconds; None if there was none since the start.
        last_judged_ms: when it was evaluated, epoch milliseconds; None if there was none.
        silent_ms: time since that tick, milliseconds; None if there was none.
        batch_s: how long the current micro-batch has been running, seconds; None if none is.
        machine_load: load of the machine that evaluates, mean of the last minute; None if unknown.
        machine_cores: its cores; None if the load is unknown.
    """

    last_tick_ms: int | None
    last_judged_ms: int | None
    silent_ms: int | None
    batch_s: float | None
    machine_load: float | None
    machine_cores: int | None


@dataclass(frozen=True)
class MissingTicks:
    """State of a cluster whose ticks are missing.

    Attributes:
        cluster: name of the cluster.
        tick_ms: time of the last evaluated tick, epoch milliseconds; None if there was none since the start.
        judged_ms: when that tick was evaluated; without a tick, the start.
        now_ms: current time by the clock of ``judged_ms``, which may have been set since; epoch milliseconds.
        batch_s: how long the current micro-batch has been running, seconds; None if none is.
        old_s: a tick evaluated this many seconds after its time is late.
        machine: how busy the machine is that evaluates; None if unknown.
    """

    cluster: str
    tick_ms: int | None
    judged_ms: int
    now_ms: int
    batch_s: float | None
    old_s: float
    machine: Machine | None = None

    @property
    def late_s(self) -> float | None:
        """Return the delay of the last tick's evaluation in seconds; None if it was in time or there was no tick."""
        late_s = 0.0 if self.tick_ms is None else (self.judged_ms - self.tick_ms) / 1000
        return late_s if late_s > self.old_s else None

    @property
    def long_batch_s(self) -> float | None:
        """Return the duration of a long-running micro-batch in seconds; None if there is none."""
        return self.batch_s if self.batch_s is not None and self.batch_s >= _LONG_BATCH_S else None

    def finding(self, recommender: Recommender) -> Finding:
        """Return the finding that no verdict is possible, with the places to check, the most likely first."""
        return Finding(
            kind=AlertKind.NO_DATA,
            subject=TICKS,
            severity=Severity.CRITICAL,
            summary=f"No verdict on any move: {self._last()}{self._cause()}{self._overload()}",
            evidence=self._evidence(),
            recommendation=recommender.no_throttle_change(self._where(), Action.CHECK),
            hold_s=0.0,
        )

    def _last(self) -> str:
        if self.tick_ms is None:
            since = duration_text((self.now_ms - self.judged_ms) / 1000)
            start = clock_text(self.judged_ms)
            return f"no tick of cluster {self.cluster} was evaluated since the start at {start}, {since} ago"
        ago = duration_text(max(0, self.now_ms - self.tick_ms) / 1000)
        return f"the last evaluated tick of cluster {self.cluster} is of {clock_text(self.tick_ms)}, {ago} ago"

    def _cause(self) -> str:
        if self.long_batch_s is not None:
            return f"; ticks have come, but their batch has been worked on for {duration_text(self.long_batch_s)}"
        if self.late_s is not None:
            return f"; that one was evaluated {duration_text(self.late_s)} late"
        return ""

    def _overload(self) -> str:
        if self.machine is None or not self.machine.is_overloaded:
            return ""
        return f"; this machine is overloaded ({self.machine})"

    def _where(self) -> str:
        if self.machine is not None and self.machine.is_overloaded:
            places = [f"this machine, which is overloaded ({self.machine})", _COLLECTOR, _TOPIC]
        elif self.long_batch_s is not None:
            places = [_MACHINE, _TOPIC, _COLLECTOR]
        elif self.late_s is not None:
            places = [f"{_MACHINE}, or is its clock not the collector's", _TOPIC, _COLLECTOR]
        else:
            places = [_COLLECTOR, _TOPIC, _MACHINE]
        return "look, in this order, at " + "; ".join(f"({i}) {place}" for i, place in enumerate(places, 1))

    def _evidence(self) -> MissingTicksEvidence:
        return MissingTicksEvidence(
            last_tick_ms=self.tick_ms,
            last_judged_ms=None if self.tick_ms is None else self.judged_ms,
            silent_ms=None if self.tick_ms is None else self.now_ms - self.tick_ms,
            batch_s=self.batch_s,
            machine_load=None if self.machine is None else round(self.machine.load, 1),
            machine_cores=None if self.machine is None else self.machine.cores,
        )
