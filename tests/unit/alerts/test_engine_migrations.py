"""Alerts on migrations over time: when they fire, resolve, and stay."""

from __future__ import annotations

import json

from headroom.alerts.engine import AlertEngine
from headroom.alerts.inputs.cluster_inputs import Dated
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
            self.engine.inputs("c").migrations = Dated(partitions, self.now_ms) if is_known else None
            events = self.engine.evaluate("c", self.now_ms, ())
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
    assert [state for _, _, state in watched.seconds(7)] == ["resolved"]


def test_alerts_end_if_nothing_is_read_of_migrations_for_a_quarter_of_an_hour() -> None:
    watched = Watched()
    watched.seconds(1, progress(lost_offsets=10))
    assert watched.seconds(901, is_known=False) == [(901, "records_lost", "resolved")]
    assert "the progress of migrations is no longer known" in watched.events[-1].summary
