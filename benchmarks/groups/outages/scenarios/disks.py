"""Disks that are full, read-only or lose files under the tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fixtures.bench_cluster import failure
from benchmarks.groups.outages.scenarios.arrangement import Arrangement
from benchmarks.groups.outages.scenarios.scenario import Scenario
from benchmarks.groups.outages.stage.damage import (
    cut_newest_commit,
    damaged,
    newest_tick_ms,
    remove_events_of_the_past,
    remove_newest_file,
    repair,
)
from benchmarks.groups.outages.stage.disk import OwnDisk
from benchmarks.groups.outages.stage.stage import Stage
from schemas.alerts import AlertKind
from schemas.tables import ALERT_EVENTS, THROTTLE_HEADROOM

_UNWRITABLE = frozenset({AlertKind.STORE_UNWRITABLE})
_WAY_S = 120.0
_FIRST_VERDICT_S = 180.0


@dataclass(frozen=True, kw_only=True)
class NoWrites(Scenario):
    """Nothing can be written to the tables for a while.

    Attributes:
        spoil: lets nothing be written.
        mend: undoes that.
    """

    spoil: Callable[[OwnDisk], None]
    mend: Callable[[OwnDisk], None]
    arrangement: Arrangement = Arrangement.OWN_DISK
    true_critical: frozenset[AlertKind] = _UNWRITABLE
    length_s: float = 10.0

    def begin(self, stage: Stage) -> None:
        """Let nothing be written."""
        self.spoil(_disk(stage))

    def end(self, stage: Stage) -> None:
        """Let everything be written again."""
        self.mend(_disk(stage))
        super().end(stage)


def _disk(stage: Stage) -> OwnDisk:
    if stage.disk is None:
        raise failure("the tables have no file system of their own")
    return stage.disk


@dataclass(frozen=True, kw_only=True)
class GoldDamage(Scenario):
    """A gold table is damaged while it is written, and repaired.

    Attributes:
        spoil: damages a table below a store, and returns the file that it damaged.
    """

    spoil: Callable[[Path, str], Path]

    def prepare(self, stage: Stage) -> None:
        """Wait until the table is written."""
        self._await_rows(stage, newest_tick_ms(stage.store, THROTTLE_HEADROOM.path))

    def begin(self, stage: Stage) -> None:
        """Damage it."""
        file = self.spoil(stage.store, THROTTLE_HEADROOM.path)
        stage.note(f"damaged: {file.relative_to(stage.store)}")

    def end(self, stage: Stage) -> None:
        """Repair it, and see that it is written again."""
        repair(stage.live.config_arguments(), stage.live.environment)
        if damaged(stage.store, THROTTLE_HEADROOM.path):
            raise failure(f"{THROTTLE_HEADROOM.path} is damaged after its repair")
        super().end(stage)
        self._await_rows(stage, newest_tick_ms(stage.store, THROTTLE_HEADROOM.path))

    def _await_rows(self, stage: Stage, since_ms: int) -> None:
        table = THROTTLE_HEADROOM.path
        stage.await_true(lambda: newest_tick_ms(stage.store, table) > since_ms, _WAY_S, f"further rows in {table}")


@dataclass(frozen=True, kw_only=True)
class EventsLost(Scenario):
    """The watch is killed, a file of its events is lost, and it starts on what is left; then the table is repaired."""

    restarts_judging: bool = True
    loses_rows: bool = True
    length_s: float = 1.0

    def prepare(self, stage: Stage) -> None:
        """Let one alert fire and resolve, so that there is a file about nothing else."""
        stage.leaders.turn()
        subject, before = stage.leaders.subject, stage.notices.alerts(stage.leaders.subject)
        stage.throttle(starving=True)
        stage.await_true(lambda: stage.notices.alerts(subject) - before, _WAY_S, "an alert that will be lost")
        stage.throttle(starving=False)
        stage.await_true(lambda: stage.notices.alerts(subject) <= stage.notices.resolved(subject), _WAY_S, "its end")

    def begin(self, stage: Stage) -> None:
        """Kill the watch, and lose the file."""
        stage.live.kill()
        file = remove_events_of_the_past(stage.store)
        stage.note(f"lost: {file.relative_to(stage.store)}")

    def end(self, stage: Stage) -> None:
        """Start the watch on what is left, and repair the table when it evaluates ticks."""
        super().end(stage)
        stage.await_fresh(_FIRST_VERDICT_S)
        repair(stage.live.config_arguments(), stage.live.environment)
        if damaged(stage.store, ALERT_EVENTS.path):
            raise failure(f"{ALERT_EVENTS.path} is damaged after its repair")


SCENARIOS: tuple[Scenario, ...] = (
    NoWrites(
        name="store_full", title="disk of the tables full for 10 s", spoil=lambda d: d.fill(), mend=lambda d: d.empty()
    ),
    NoWrites(
        name="store_read_only",
        title="disk of the tables read-only for 10 s",
        spoil=lambda d: d.turn_read_only(),
        mend=lambda d: d.turn_writable(),
    ),
    GoldDamage(name="gold_file_removed", title="file of a gold table removed", spoil=remove_newest_file),
    GoldDamage(name="gold_commit_cut", title="newest commit of a gold table cut off", spoil=cut_newest_commit),
    EventsLost(name="events_file_removed", title="file of alerts/events removed while the watch is down"),
)
