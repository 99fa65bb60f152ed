"""Advice that was followed resolves its alert, and the alert is not raised again when a dead broker comes back."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable

import pytest

from headroom.alerts.engine import AlertEngine
from headroom.alerts.grouping import THROTTLE_KINDS
from headroom.schemas.alerts import AlertEvent, AlertState
from headroom.schemas.config import ClusterSettings, Settings
from tests.unit.builders.layouts import LEADER, Layout, random_layout
from tests.unit.builders.throttle_status import TICK_MS

INTERVAL_S = 5
SEEDS = 60
_KINDS = {kind.value for kind in THROTTLE_KINDS}


class Watched:
    """A layout under watch; events are those of throttles that are too low."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._now_ms = TICK_MS
        self._engine = AlertEngine(Settings(cluster=ClusterSettings(name="c")), lambda: self._now_ms)

    def ticks(self, for_s: float) -> list[AlertEvent]:
        """Return the events of the next ticks."""
        found: list[AlertEvent] = []
        statuses = self.layout.statuses()
        for _ in range(round(for_s / INTERVAL_S)):
            self._now_ms += INTERVAL_S * 1000
            found += self._engine.evaluate("c", self._now_ms, statuses)
        return [event for event in found if event.kind in _KINDS]

    def active(self) -> list[AlertEvent]:
        return [event for event in self._engine.active() if event.kind in _KINDS]

    def follow(self, event: AlertEvent) -> None:
        """Run Headroom's own command of an alert."""
        words = shlex.split(json.loads(event.recommendation)["commands"][0])
        rate, brokers = (words[words.index(option) + 1] for option in ("--rate", "--brokers"))
        self.layout.raise_rates(float(re.sub("B$", "", rate)), [int(broker) for broker in brokers.split(",")])


def firing(events: Iterable[AlertEvent]) -> list[AlertEvent]:
    return [event for event in events if event.state == AlertState.FIRING.value]


@pytest.mark.parametrize("dies", [False, True])
def test_advice_that_was_followed_resolves_its_alert_for_good(dies: bool) -> None:
    unresolved, again, advised = [], [], 0
    for seed in range(SEEDS):
        watched = Watched(random_layout(seed, dies))
        announced = firing(watched.ticks(20))
        if dies:
            watched.layout.kill(LEADER)
            announced += firing(watched.ticks(20))
        if not announced:
            continue
        advised += 1
        watched.follow(announced[-1])
        if firing(watched.ticks(20)) or watched.active():
            unresolved.append(seed)
        if dies:
            watched.layout.start(LEADER)
            again += [seed] * bool(firing(watched.ticks(30)))
    assert (unresolved, again) == ([], [])
    assert advised > SEEDS / 2
