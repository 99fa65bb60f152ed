"""Full disks, read-only disks, and lost files under the tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.faults.disks import OwnDisk
from benchmarks.faults.store_files import (
    cut_newest_commit,
    newest_tick_ms,
    remove_events_of_the_past,
    remove_file_of_newest_rows,
    repair_store_of,
)
from benchmarks.fixtures.bench_cluster import failure
from benchmarks.groups.outages.context import ScenarioContext
from benchmarks.groups.outages.scenarios.scenario import Arrangement, Scenario
from headroom.schemas.alerts import AlertKind, AlertState
from headroom.schemas.tables import ALERT_EVENTS, THROTTLE_HEADROOM, Table
from headroom.streaming.delta.damage import damages

_WAIT_S = 120.0
_FIRST_VERDICT_S = 180.0


@dataclass(frozen=True, kw_only=True)
class NoWrites(Scenario):
    """The tables cannot be written for a while.

    Attributes:
        damage: prevents all writes.
        repair: allows them again.
    """

    damage: Callable[[OwnDisk], None]
    repair: Callable[[OwnDisk], None]
    arrangement: Arrangement = Arrangement.OWN_DISK
    true_critical: frozenset[AlertKind] = frozenset({AlertKind.STORE_UNWRITABLE})
    length_s: float = 10.0

    def begin(self, context: ScenarioContext) -> None:
        """Prevent all writes."""
        self.damage(_disk(context))

    def end(self, context: ScenarioContext) -> None:
        """Allow writes again."""
        self.repair(_disk(context))
        super().end(context)


def _disk(context: ScenarioContext) -> OwnDisk:
    if context.disk is None:
        raise failure("the tables have no file system of their own")
    return context.disk


@dataclass(frozen=True, kw_only=True)
class GoldDamage(Scenario):
    """A gold table is damaged while it is written, and repaired.

    Attributes:
        damage: damages a table, and returns the damaged file.
    """

    damage: Callable[[Path], Path]

    def prepare(self, context: ScenarioContext) -> None:
        """Wait until the table is written."""
        _await_rows(context)

    def begin(self, context: ScenarioContext) -> None:
        """Damage the table."""
        file = self.damage(context.store / THROTTLE_HEADROOM.path)
        context.note(f"damaged: {file.relative_to(context.store)}")

    def end(self, context: ScenarioContext) -> None:
        """Repair the table, and wait until it is written again."""
        _repair(context, THROTTLE_HEADROOM)
        super().end(context)
        _await_rows(context)


def _await_rows(context: ScenarioContext) -> None:
    table = context.store / THROTTLE_HEADROOM.path
    since_ms, name = newest_tick_ms(table), THROTTLE_HEADROOM.path
    context.await_true(lambda: newest_tick_ms(table) > since_ms, _WAIT_S, f"further rows in {name}")


def _repair(context: ScenarioContext, table: Table) -> None:
    repair_store_of(context.live.config, context.live.environment)
    if damages(str(context.store / table.path)):
        raise failure(f"{table.path} is damaged after its repair")


@dataclass(frozen=True, kw_only=True)
class EventsLost(Scenario):
    """The watch is killed, a file of its events is removed, and it restarts without it. Then the table is repaired."""

    restarts_judging: bool = True
    loses_rows: bool = True
    length_s: float = 1.0

    def prepare(self, context: ScenarioContext) -> None:
        """Let one alert fire and resolve, so that a file has only events of resolved alerts."""
        context.leaders.advance()
        subject, alerts = context.leaders.subject, context.notifications.alerts
        before = alerts(subject)
        context.throttle(starving=True)
        context.await_true(lambda: alerts(subject) - before, _WAIT_S, "an alert that will be lost")
        context.throttle(starving=False)
        context.await_true(lambda: alerts(subject) <= alerts(subject, AlertState.RESOLVED), _WAIT_S, "its end")

    def begin(self, context: ScenarioContext) -> None:
        """Kill the watch, and remove the file."""
        context.live.kill()
        file = remove_events_of_the_past(context.store)
        context.note(f"removed: {file.relative_to(context.store)}")

    def end(self, context: ScenarioContext) -> None:
        """Restart the watch, and repair the table once it evaluates ticks."""
        super().end(context)
        context.await_fresh(_FIRST_VERDICT_S)
        _repair(context, ALERT_EVENTS)


SCENARIOS: tuple[Scenario, ...] = (
    NoWrites(
        name="store_full",
        title="disk of the tables full for 10 s",
        damage=lambda d: d.fill(),
        repair=lambda d: d.empty(),
    ),
    NoWrites(
        name="store_read_only",
        title="disk of the tables read-only for 10 s",
        damage=lambda d: d.turn_read_only(),
        repair=lambda d: d.turn_writable(),
    ),
    GoldDamage(name="gold_file_removed", title="file of a gold table removed", damage=remove_file_of_newest_rows),
    GoldDamage(name="gold_commit_cut", title="newest commit of a gold table cut off", damage=cut_newest_commit),
    EventsLost(name="events_file_removed", title="file of alerts/events removed while the watch is down"),
)
