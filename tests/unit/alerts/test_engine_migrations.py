"""Alerts on migrations over time: when they fire, resolve, and stay."""

from __future__ import annotations

import json

from headroom.alerts.engine import AlertEngine
from headroom.planning.migration.progress.progress import MigrationProgress
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import ClusterSettings, Settings
from tests.unit.builders.migration_progress import doomed, progress, unread

START_MS = 1_800_000_000_000
Change = tuple[int, str, str]


class Watched:
    """An engine that gets a tick every second."""

    def __init__(self) -> None:
        self.now_ms = START_MS
        settings = Settings(cluster=ClusterSettings(name="c"))
        self.engine = AlertEngine(settings, lambda: self.now_ms, elapsed_ms=lambda: self.now_ms)
        self.events: list[AlertEvent] = []

    def seconds(self, count: int, *partitions: MigrationProgress, is_known: bool = True) -> list[Change]:
        """Let seconds with these partitions pass, and return second, kind and state of the events."""
        changes = []
        for _ in range(count):
            second = (self.now_ms - START_MS) // 1000
            events = self.engine.evaluate("c", self.now_ms, ())
            events += self.engine.evaluate_migrations("c", self.now_ms, partitions if is_known else None)
            self.events += events
            changes += [(second, event.kind.removeprefix("migration_"), event.state) for event in events]
            self.now_ms += 1000
        return changes


def test_a_loss_fires_in_the_tick_that_shows_it() -> None:
    watched = Watched()
    assert watched.seconds(5, progress()) == []
    assert watched.seconds(3, progress(lost_offsets=10)) == [
        (5, "records_lost", "pending"),
        (5, "records_lost", "firing"),
    ]


def test_a_loss_that_grows_is_announced_again_with_its_number() -> None:
    watched = Watched()
    watched.seconds(3, progress(lost_offsets=10))
    # After 5 s, within which a change of the alert settles.
    assert watched.seconds(8, progress(lost_offsets=12)) == [(8, "records_lost", "firing")]
    assert json.loads(watched.events[-1].evidence)["offsets"] == 12
    assert len({event.alert_id for event in watched.events}) == 1


def test_a_reader_that_is_overtaken_for_ten_seconds_fires_and_resolves() -> None:
    watched = Watched()
    assert watched.seconds(12, progress(groups=(doomed(),))) == [
        (0, "reader_overtaken", "pending"),
        (10, "reader_overtaken", "firing"),
    ]
    saved = doomed(lost_offsets=0, read_offsets_per_s=1_000.0)
    assert watched.seconds(7, progress(groups=(saved,))) == [(17, "reader_overtaken", "resolved")]


def test_alerts_go_on_while_the_origin_is_shielded_and_end_with_the_migration() -> None:
    watched = Watched()
    watched.seconds(1, progress(lost_offsets=10))
    assert watched.seconds(60, unread()) == []
    assert watched.seconds(10, is_known=False) == []
    # The first tick that is known to have no migration.
    assert watched.seconds(7) == [(71, "records_lost", "resolved")]
    assert watched.events[-1].summary.endswith("; ended: no migration is agreed any more")


def test_pending_alerts_end_with_the_last_migration_too_and_come_again_with_the_next_one() -> None:
    watched = Watched()
    assert watched.seconds(1, progress(groups=(doomed(),))) == [(0, "reader_overtaken", "pending")]
    assert watched.seconds(3) == [(1, "reader_overtaken", "resolved")]
    assert watched.seconds(12, progress(groups=(doomed(),)))[0] == (4, "reader_overtaken", "pending")


def test_alerts_of_one_of_two_migrations_end_once_the_other_one_alone_is_agreed_about() -> None:
    watched, other = Watched(), progress(migration="other")
    watched.seconds(1, progress(lost_offsets=10), other)
    assert [state for _, _, state in watched.seconds(7, other)] == ["resolved"]


def test_alerts_end_if_nothing_is_read_of_migrations_for_a_quarter_of_an_hour() -> None:
    watched = Watched()
    watched.seconds(1, progress(lost_offsets=10))
    assert watched.seconds(901, is_known=False) == [(901, "records_lost", "resolved")]
    assert "the progress of migrations has been unknown" in watched.events[-1].summary


def test_a_crash_between_the_alerts_of_a_tick_and_those_on_its_migrations_costs_and_doubles_none() -> None:
    before, after = Watched(), Watched()
    lost = [progress(lost_offsets=10)]
    assert before.engine.evaluate("c", START_MS, ()) == []
    # The same tick again, in a process that has not stored what it found.
    after.engine.restore(before.events)
    after.engine.evaluate("c", START_MS, ())
    events = after.engine.evaluate_migrations("c", START_MS, lost)
    assert [event.state for event in events] == ["pending", "firing"]
    again = Watched()
    again.engine.restore(events)
    again.engine.evaluate("c", START_MS, ())
    assert again.engine.evaluate_migrations("c", START_MS, lost) == []


def test_a_clock_that_is_set_back_moves_alerts_on_migrations_too() -> None:
    watched = Watched()
    watched.seconds(3, progress(groups=(doomed(),)))
    watched.now_ms -= 600_000
    # Ten seconds of the same condition, as by the clock before.
    changes = watched.seconds(20, progress(groups=(doomed(),)))
    assert [(kind, state) for _, kind, state in changes] == [("reader_overtaken", "firing")]
